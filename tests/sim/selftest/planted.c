/* planted.c - classic mistakes, made on purpose.
 *
 * Each is a small program that works most of the time.  Its comment says what is wrong.  The
 * rest is correct, and tolerates the faults that are not masked.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include "sim/selftest/planted.h"

static uint64_t
start(void (*fn)(void *arg), void *arg)
{
	struct weft__thread_opts opts = { .name = "other", .fn = fn, .arg = arg };
	uint64_t thread = 0;

	while (weft__sys->thread_start(&opts, &thread) < 0)
		continue;
	return thread;
}

/* --- a lost wakeup ---------------------------------------------------- */

struct mailbox {
	weft__a32 full;
	weft__a32 word;
};

/* Wrong: it parks on a different word than the one that says whether to sleep.  So the kernel's
 * comparison cannot notice that the mailbox was filled in between. */
static void
await_mail(void *arg)
{
	struct mailbox *box = arg;

	while (!weft__load(&box->full, WEFT__ACQUIRE))
		(void)weft__sys->park(&box->word, 0, WEFT_NEVER);
}

static void
lose_a_wakeup(void *arg)
{
	struct mailbox box = { { 0 }, { 0 } };
	uint64_t thread = start(await_mail, &box);

	(void)arg;
	weft__store(&box.full, 1, WEFT__RELEASE);
	weft__sys->unpark(&box.word);
	(void)weft__sys->thread_join(thread);
}

/* --- descriptors and memory ------------------------------------------- */

/* Wrong: close failed, so it is called again; by then the number may belong to another thread,
 * or be free. */
static void
close_twice(void *arg)
{
	int fd;

	(void)arg;
	for (int i = 0; i < 20; i++) {
		while ((fd = weft__sys->eventfd()) < 0)
			continue;
		if (weft__sys->close(fd) < 0)
			(void)weft__sys->close(fd);
	}
}

/* Wrong: when the second call fails, the descriptor of the first one is leaked. */
static void
leak_a_descriptor(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		int ep = weft__sys->epoll_create(), fd;

		if (ep < 0)
			continue;
		fd = weft__sys->eventfd();
		if (fd < 0)
			return;
		(void)weft__sys->close(fd);
		(void)weft__sys->close(ep);
	}
}

/* Wrong: a failed resize keeps the old block, but its only pointer is overwritten. */
static void
leak_memory(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		char *mem = weft__sys->alloc(100);

		if (!mem)
			continue;
		mem = weft__sys->resize(mem, 200);
		weft__sys->release(mem);
	}
}

/* Wrong: a stack whose guard fails is not unmapped. */
static void
leak_a_stack(void *arg)
{
	enum { BYTES = 65536 };

	(void)arg;
	for (int i = 0; i < 20; i++) {
		char *stack = weft__sys->stack_map(2 * BYTES);

		if (!stack)
			continue;
		if (weft__sys->stack_guard(stack, BYTES) < 0)
			return;
		weft__sys->stack_discard(stack + BYTES, BYTES);
		weft__sys->stack_unmap(stack, 2 * BYTES);
	}
}

/* Wrong: only the part above the guard is unmapped. */
static void
unmap_a_part(void *arg)
{
	enum { BYTES = 65536 };
	char *stack = weft__sys->stack_map(2 * BYTES);

	(void)arg;
	if (stack)
		weft__sys->stack_unmap(stack + BYTES, BYTES);
}

/* Wrong: writes one byte past the block. */
static void
write_behind(void *arg)
{
	char *mem = weft__sys->alloc(24);
	volatile size_t at = 24;

	(void)arg;
	if (!mem)
		return;
	mem[at] = 1;
	weft__sys->release(mem);
}

/* Wrong: writes to the block after it was freed. */
static void
write_to_freed(void *arg)
{
	char *mem = weft__sys->alloc(24);
	volatile uintptr_t at = (uintptr_t)mem;

	(void)arg;
	if (!mem)
		return;
	weft__sys->release(mem);
	*(char *)at = 1;
}

/* --- bytes ------------------------------------------------------------ */

enum { CHUNK = 100, CHUNKS = 10 };

static void
await(int fd, short events)
{
	struct pollfd look = { .fd = fd, .events = events };

	while (weft__sys->poll(&look, 1, -1) < 0)
		continue;
}

static bool
is_passing(int64_t rc)
{
	return rc == -EAGAIN || rc == -EINTR;
}

/* Wrong: assumes that a send that took some bytes took all of them. */
static void
send_carelessly(void *arg)
{
	int fd = *(int *)arg;
	char chunk[CHUNK] = { 0 };
	int64_t rc;

	for (int i = 0; i < CHUNKS; i++) {
		while (is_passing(rc = weft__sys->send(fd, chunk, CHUNK, 0)))
			await(fd, POLLOUT);
		sim_check(rc > 0);
	}
	(void)weft__sys->shutdown(fd, SHUT_WR);
}

/* Receive everything up to the end; returns the number of bytes. */
static size_t
receive_all(int fd)
{
	char buf[64];
	size_t got = 0;
	int64_t rc = 1;

	while (rc != 0) {
		rc = weft__sys->recv(fd, buf, sizeof(buf), 0);
		if (rc > 0)
			got += (size_t)rc;
		else if (rc < 0 && is_passing(rc))
			await(fd, POLLIN);
	}
	return got;
}

static void
trust_send(void *arg)
{
	int fds[2];
	uint64_t thread;
	size_t got;

	(void)arg;
	sim_check(sim_socketpair(fds) == 0);
	thread = start(send_carelessly, &fds[0]);
	got = receive_all(fds[1]);
	(void)weft__sys->thread_join(thread);
	(void)weft__sys->close(fds[0]);
	(void)weft__sys->close(fds[1]);
	if (got != CHUNK * CHUNKS)
		sim_fail("bytes were lost: %zu of %d", got, CHUNK * CHUNKS);
}

/* Wrong: treats a signal during the wait as the end of the connection. */
static void
ignore_signals(void *arg)
{
	int fds[2] = { -1, -1 };
	char byte = 0;

	(void)arg;
	sim_check(sim_socketpair(fds) == 0);
	for (int i = 0; i < 50; i++) {
		int64_t rc;

		while (weft__sys->send(fds[0], &byte, 1, 0) != 1)
			continue;
		await(fds[1], POLLIN);
		rc = weft__sys->recv(fds[1], &byte, 1, 0);
		if (rc != 1 && rc != -EAGAIN)
			sim_fail("the connection is thought to be broken");
		if (rc != 1)
			break;
	}
	(void)weft__sys->close(fds[0]);
	(void)weft__sys->close(fds[1]);
}

/* --- hanging and spinning --------------------------------------------- */

/* Wrong: if the other thread was faster, no thread is left to change the word. */
static void
spin(void *arg)
{
	weft__a32 *word = arg;

	while (weft__load(word, WEFT__ACQUIRE) != 1)
		weft__sys->yield();
}

static void
spin_for_ever(void *arg)
{
	weft__a32 word = { 0 };
	uint64_t thread = start(spin, &word);

	(void)arg;
	weft__store(&word, 1, WEFT__RELEASE);
	weft__sys->yield();
	weft__store(&word, 2, WEFT__RELEASE);
	(void)weft__sys->thread_join(thread);
}

static void
do_nothing(void *arg)
{
	(void)arg;
}

/* Wrong: no thread joins the thread. */
static void
join_nobody(void *arg)
{
	(void)arg;
	(void)start(do_nothing, NULL);
}

#define ONLY_BYTES                                                                                 \
	(SIM_MASK_ALL                                                                              \
	 & ~(SIM_MASK(SIM_SHORT) | SIM_MASK(SIM_EINTR) | SIM_MASK(SIM_EAGAIN) | SIM_MASK(SIM_LATE) \
	     | SIM_MASK(SIM_CLOCK) | SIM_MASK(SIM_BATCH)))

const struct planted planted[] = {
	{ .scenario = { .name = "lose_a_wakeup", .run = lose_a_wakeup },
	  .found_as = "deadlock",
	  .seeds = 200,
	  .faults = SIZE_MAX },
	{ .scenario = { .name = "close_twice", .run = close_twice },
	  .found_as = "closes descriptor",
	  .seeds = 200,
	  .faults = 1 },
	{ .scenario = { .name = "leak_a_descriptor", .run = leak_a_descriptor },
	  .found_as = "leaves descriptors",
	  .seeds = 200,
	  .faults = 1 },
	{ .scenario = { .name = "leak_memory", .run = leak_memory },
	  .found_as = "leaves memory",
	  .seeds = 200,
	  .faults = 1 },
	{ .scenario = { .name = "leak_a_stack", .run = leak_a_stack },
	  .found_as = "leaves stacks",
	  .seeds = 200,
	  .faults = 1 },
	{ .scenario = { .name = "unmap_a_part", .run = unmap_a_part },
	  .found_as = "unmaps 65536 of 131072",
	  .seeds = 20,
	  .faults = SIZE_MAX },
	{ .scenario = { .name = "write_to_freed", .run = write_to_freed },
	  .found_as = "writes to memory after freeing it",
	  .seeds = 50,
	  .faults = SIZE_MAX,
	  .unwatched = true },
	{ .scenario = { .name = "write_behind", .run = write_behind },
	  .found_as = "writes past",
	  .seeds = 50,
	  .faults = SIZE_MAX,
	  .unwatched = true },
	{ .scenario = { .name = "trust_send", .run = trust_send, .masked_faults = ONLY_BYTES },
	  .found_as = "bytes were lost",
	  .seeds = 200,
	  .faults = 3,
	  .calm = true },
	{ .scenario = { .name = "ignore_signals",
	                .run = ignore_signals,
	                .masked_faults = ONLY_BYTES },
	  .found_as = "the connection is thought",
	  .seeds = 200,
	  .faults = 3,
	  .calm = true },
	{ .scenario = { .name = "spin_for_ever", .run = spin_for_ever },
	  .found_as = "does not end",
	  .seeds = 100,
	  .faults = SIZE_MAX },
	{ .scenario = { .name = "join_nobody", .run = join_nobody },
	  .found_as = "leaves threads",
	  .seeds = 20,
	  .faults = SIZE_MAX },
	{ .found_as = NULL },
};
