/* poller_test.c - the poller on its own, on every backend of the build. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/poller.h>
#include "test.h"

static const char *const names[] = { "poll", "epoll", "uring" };

/* Run `fn` on each backend that is available. */
static void
on_each(void (*fn)(weft_poller *poller, int fds[2]))
{
	int tried = 0;

	for (int i = 0; i < 3; i++) {
		weft_poller *poller;
		int fds[2];

		if (weft_poller_open(names[i], &poller) < 0)
			continue;
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
		fn(poller, fds);
		weft_poller_close(poller);
		close(fds[0]);
		close(fds[1]);
		tried++;
	}
	CHECK(tried > 0);
}

static int
wait_now(weft_poller *poller, weft_poller_event *event)
{
	return weft_poller_wait(poller, event, 1, WEFT_NOWAIT);
}

static void
reports_levels(weft_poller *poller, int fds[2])
{
	weft_poller_event event;
	char byte;

	CHECK_EQ(weft_poller_add(poller, fds[0], WEFT_READABLE, 7), 0);
	CHECK_EQ(wait_now(poller, &event), 0);
	CHECK_EQ(write(fds[1], "ab", 2), 2);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(weft_poller_wait(poller, &event, 1, WEFT_NEVER), 1);
		CHECK_EQ(event.token, 7);
		CHECK_EQ(event.events, WEFT_READABLE);
		CHECK_EQ(read(fds[0], &byte, 1), 1);
	}
	CHECK_EQ(wait_now(poller, &event), 0);
}

TEST(a_readable_descriptor_is_reported_with_its_token_until_it_is_read)
{
	on_each(reports_levels);
}

/* How often the poller reports that `fds[0]` has become writable, at most three times.  Before, the
 * other side may have closed its direction, which is no event that the poller was to report. */
static int
count_writable(weft_poller *poller, const int fds[2], bool closes)
{
	static char bytes[4096];
	weft_poller_event event;
	int count = 0;

	while (write(fds[0], bytes, sizeof(bytes)) > 0)
		;
	CHECK_EQ(weft_poller_add(poller, fds[0], WEFT_WRITABLE | WEFT_EDGE, 1), 0);
	if (closes)
		CHECK_EQ(shutdown(fds[1], SHUT_WR), 0);
	CHECK_EQ(wait_now(poller, &event), 0);
	while (read(fds[1], bytes, sizeof(bytes)) > 0)
		;
	while (count < 3 && wait_now(poller, &event) > 0)
		count++;
	CHECK_EQ(weft_poller_remove(poller, fds[0]), 0);
	return count;
}

static void
keeps_edges(weft_poller *poller, int fds[2])
{
	int count = count_writable(poller, fds, false);

	CHECK(count == 1 || count == 3); /* once, or on the poll backend as long as it is */
	CHECK_EQ(count_writable(poller, fds, true), count);
}

TEST(an_edge_stays_an_edge_after_an_event_that_was_not_requested)
{
	on_each(keeps_edges);
}

static void
modifies(weft_poller *poller, int fds[2])
{
	weft_poller_event event;

	CHECK_EQ(weft_poller_add(poller, fds[0], WEFT_READABLE, 1), 0);
	CHECK_EQ(weft_poller_modify(poller, fds[0], WEFT_WRITABLE, 2), 0);
	CHECK_EQ(wait_now(poller, &event), 1);
	CHECK_EQ(event.token, 2);
	CHECK_EQ(event.events, WEFT_WRITABLE);
	CHECK_EQ(weft_poller_remove(poller, fds[0]), 0);
	CHECK_EQ(wait_now(poller, &event), 0);
	CHECK_EQ(weft_poller_remove(poller, fds[0]), WEFT_ENOENT);
}

TEST(events_and_token_can_be_changed_and_the_descriptor_removed)
{
	on_each(modifies);
}

static void
mutes(weft_poller *poller, int fds[2])
{
	weft_poller_event event;

	CHECK_EQ(weft_poller_add(poller, fds[0], WEFT_READABLE, 1), 0);
	CHECK_EQ(write(fds[1], "a", 1), 1);
	CHECK_EQ(shutdown(fds[1], SHUT_RDWR), 0);
	CHECK_EQ(weft_poller_modify(poller, fds[0], 0, 1), 0);
	CHECK_EQ(wait_now(poller, &event), 0);
	CHECK_EQ(weft_poller_modify(poller, fds[0], WEFT_READABLE, 1), 0);
	CHECK_EQ(wait_now(poller, &event), 1);
	CHECK(event.events & WEFT_READABLE);
	CHECK(event.events & WEFT_EV_HUP);
}

TEST(events_of_0_mute_a_descriptor_hangups_included)
{
	on_each(mutes);
}

static void
refuses(weft_poller *poller, int fds[2])
{
	weft_poller_event event;

	CHECK_EQ(weft_poller_add(poller, fds[0], WEFT_READABLE, 1), 0);
	CHECK_EQ(weft_poller_add(poller, fds[0], WEFT_READABLE, 1), WEFT_EEXIST);
	CHECK_EQ(weft_poller_modify(poller, fds[1], WEFT_READABLE, 1), WEFT_ENOENT);
	CHECK_EQ(weft_poller_add(poller, -1, WEFT_READABLE, 1), WEFT_EBADF);
	CHECK_EQ(weft_poller_add(poller, 9999, WEFT_READABLE, 1), WEFT_EBADF);
	CHECK_MISUSE(weft_poller_add(poller, fds[1], 0x4000, 1), WEFT_EINVAL);
	CHECK_MISUSE(weft_poller_modify(poller, fds[0], 0x4000, 1), WEFT_EINVAL);
	CHECK_MISUSE(weft_poller_wait(poller, &event, 0, WEFT_NOWAIT), WEFT_EINVAL);
}

TEST(a_descriptor_already_added_unknown_or_closed_is_refused)
{
	weft_poller *poller;

	on_each(refuses);
	CHECK_EQ(weft_poller_open("nonsense", &poller), WEFT_EINVAL);
	weft_poller_close(NULL);
	weft_poller_wake(NULL);
}

static void
takes_a_number_again(weft_poller *poller, int fds[2])
{
	static const uint32_t wanted[] = { WEFT_READABLE, 0 };

	for (int i = 0; i < 2; i++) { /* the second time with a muted descriptor */
		weft_poller_event event;
		int stale[2], fresh[2];

		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, stale), 0);
		CHECK_EQ(weft_poller_add(poller, stale[0], wanted[i], 1), 0);
		CHECK_EQ(close(stale[0]), 0);
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fresh), 0);
		CHECK_EQ(fresh[0], stale[0]);
		CHECK_EQ(weft_poller_add(poller, fresh[0], WEFT_READABLE, 2), 0);
		CHECK_EQ(weft_poller_add(poller, fresh[0], WEFT_READABLE, 3), WEFT_EEXIST);
		CHECK_EQ(write(fresh[1], "x", 1), 1);
		CHECK_EQ(weft_poller_wait(poller, &event, 1, WEFT_NEVER), 1);
		CHECK_EQ(event.token, 2);
		CHECK_EQ(weft_poller_remove(poller, fresh[0]), 0);
		CHECK_EQ(close(fresh[0]), 0);
		CHECK_EQ(close(fresh[1]), 0);
		CHECK_EQ(close(stale[1]), 0);
	}
	(void)fds;
}

TEST(a_descriptor_number_closed_without_removal_can_be_added_again)
{
	on_each(takes_a_number_again);
}

static void *
wake_it(void *arg)
{
	weft_poller_wake(arg);
	return NULL;
}

static void
wakes(weft_poller *poller, int fds[2])
{
	weft_poller_event event;
	pthread_t thread;

	(void)fds;
	CHECK_EQ(pthread_create(&thread, NULL, wake_it, poller), 0);
	CHECK_EQ(weft_poller_wait(poller, &event, 1, WEFT_NEVER), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(a_wake_by_another_thread_ends_the_current_or_next_wait)
{
	on_each(wakes);
}

static void
times_out(weft_poller *poller, int fds[2])
{
	weft_poller_event event;
	uint64_t deadline = weft_after(2 * WEFT_MS);

	(void)fds;
	while (weft_now() < deadline)
		CHECK_EQ(weft_poller_wait(poller, &event, 1, deadline), 0);
}

TEST(a_wait_ends_at_its_deadline)
{
	on_each(times_out);
}

static void
takes_turns(weft_poller *poller, int fds[2])
{
	weft_poller_event event;
	int seen[3] = { 0 };
	int more[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, more), 0);
	CHECK_EQ(weft_poller_add(poller, fds[0], WEFT_WRITABLE, 0), 0);
	CHECK_EQ(weft_poller_add(poller, fds[1], WEFT_WRITABLE, 1), 0);
	CHECK_EQ(weft_poller_add(poller, more[0], WEFT_WRITABLE, 2), 0);
	for (int i = 0; i < 9; i++) {
		CHECK_EQ(wait_now(poller, &event), 1);
		seen[event.token]++;
	}
	CHECK(seen[0] >= 2 && seen[1] >= 2 && seen[2] >= 2);
	close(more[0]);
	close(more[1]);
}

TEST(all_descriptors_are_reported_when_there_is_room_for_one_event)
{
	on_each(takes_turns);
}

static void
watches_files(weft_poller *poller, int fds[2])
{
	weft_poller_event event;
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)fds;
	CHECK(file >= 0);
	CHECK_EQ(weft_poller_add(poller, file, WEFT_READABLE, 3), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(weft_poller_wait(poller, &event, 1, WEFT_NEVER), 1);
		CHECK_EQ(event.token, 3);
		CHECK(event.events & WEFT_READABLE);
	}
	CHECK_EQ(weft_poller_remove(poller, file), 0);
	CHECK_EQ(wait_now(poller, &event), 0);
	close(file);
}

TEST(a_regular_file_is_always_ready)
{
	on_each(watches_files);
}
