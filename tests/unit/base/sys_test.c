/* sys_test.c - what the real sys table guarantees to the layers above it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/build.h"
#include "base/sys.h"
#include "base/thread.h"
#include "test.h"

#define SYS weft__sys

TEST(random_bytes_fill_the_buffer_and_differ)
{
	unsigned char a[512] = { 0 }, b[512] = { 0 };

	CHECK_EQ(SYS->random(a, sizeof(a)), 0);
	CHECK_EQ(SYS->random(b, sizeof(b)), 0);
	CHECK(memcmp(a, b, sizeof(a)) != 0);
}

TEST(park_returns_at_once_if_the_word_has_another_value)
{
	weft__a32 word = { 1 };

	CHECK_EQ(SYS->park(&word, 2, WEFT_NEVER), -EAGAIN);
}

TEST(park_ends_at_its_deadline_and_not_before)
{
	weft__a32 word = { 1 };
	uint64_t deadline = weft_after(2 * WEFT_MS);
	int rc;

	do
		rc = SYS->park(&word, 1, deadline);
	while (rc == 0 || rc == -EINTR);
	CHECK_EQ(rc, -ETIMEDOUT);
	CHECK(weft_now() >= deadline);
}

struct meeting {
	weft__a32 word;
	weft__a32 seen_mask;
};

static void
say_hello(void *arg)
{
	struct meeting *m = arg;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	weft__store(&m->seen_mask, (uint32_t)sigismember(&mask, SIGTERM), WEFT__RELAXED);
	weft__store(&m->word, 1, WEFT__RELEASE);
	SYS->unpark(&m->word);
}

TEST(a_started_thread_has_all_signals_blocked_and_unparks_another)
{
	struct meeting m = { { 0 }, { 0 } };
	struct weft__thread_opts opts = { .name = "a name of more than 15 bytes",
		                          .fn = say_hello,
		                          .arg = &m };
	uint64_t thread;

	CHECK_EQ(SYS->thread_start(&opts, &thread), 0);
	while (weft__load(&m.word, WEFT__ACQUIRE) == 0)
		(void)SYS->park(&m.word, 0, WEFT_NEVER);
	CHECK_EQ(SYS->thread_join(thread), 0);
	CHECK_EQ(weft__load(&m.seen_mask, WEFT__RELAXED), 1);
}

TEST(the_number_of_cpus_is_in_a_sane_range)
{
	CHECK(SYS->cpus() >= 0);
	CHECK(SYS->cpus() <= 4096);
}

struct bound {
	weft__a32 rc; /* the result of set_cpus, negated */
	size_t stack_bytes;
	uint32_t cpus; /* that the thread may run on afterwards */
};

/* Bind this thread to the first CPU that it may use. */
static void
bind_self(void *arg)
{
	struct bound *bound = arg;
	struct weft__cpus cpus = { { 0 } };
	cpu_set_t set;
	pthread_attr_t attr;
	int cpu = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	cpus.words[cpu / 64] = UINT64_C(1) << (cpu % 64);
	weft__store(&bound->rc, (uint32_t)-SYS->set_cpus(&cpus), WEFT__RELAXED);
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	bound->cpus = (uint32_t)CPU_COUNT(&set);
	CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
	CHECK_EQ(pthread_attr_getstacksize(&attr, &bound->stack_bytes), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
}

static struct bound
started_with(size_t stack_bytes)
{
	struct bound bound = { { 0 }, 0, 0 };
	struct weft__thread_opts opts = { .fn = bind_self,
		                          .arg = &bound,
		                          .stack_bytes = stack_bytes };
	uint64_t thread;

	CHECK_EQ(SYS->thread_start(&opts, &thread), 0);
	CHECK_EQ(SYS->thread_join(thread), 0);
	return bound;
}

TEST(a_thread_gets_the_requested_stack_size_or_the_minimum)
{
	CHECK(started_with(30000001).stack_bytes >= 30000001); /* larger than the default */
	CHECK(started_with(1).stack_bytes >= 4096);
}

TEST(a_thread_is_bound_to_cpus_where_that_is_supported)
{
	int rc = SYS->set_cpus(NULL);
	struct bound bound = started_with(0);

	CHECK(rc == 0 || rc == -ENOSYS);
	CHECK_EQ(weft__load(&bound.rc, WEFT__RELAXED), -rc);
	CHECK(rc < 0 || bound.cpus == 1);
	CHECK(SYS->set_cpus(&(struct weft__cpus){ { 0 } }) < 0);
}

static int
flags_of(int fd)
{
	int nonblock = fcntl(fd, F_GETFL) & O_NONBLOCK;
	int cloexec = fcntl(fd, F_GETFD) & FD_CLOEXEC;

	return (nonblock ? 1 : 0) | (cloexec ? 2 : 0);
}

TEST(new_descriptors_are_nonblocking_and_close_on_exec)
{
	int fds[2], sock = SYS->socket(AF_INET, SOCK_STREAM, 0);

	CHECK(sock >= 0);
	CHECK_EQ(SYS->pipe(fds), 0);
	CHECK_EQ(flags_of(fds[0]) & flags_of(fds[1]) & flags_of(sock), 3);
	CHECK_EQ(SYS->kind(sock), WEFT__FD_SOCKET);
	CHECK_EQ(SYS->kind(fds[0]), WEFT__FD_OTHER);
	CHECK_EQ(SYS->close(sock), 0);
	CHECK_EQ(SYS->close(fds[0]), 0);
	CHECK_EQ(SYS->close(fds[1]), 0);
	CHECK_EQ(SYS->kind(sock), -EBADF);
	CHECK_EQ(SYS->close(-1), -EBADF);
}

TEST(a_pipe_carries_bytes_and_never_blocks)
{
	char buf[8];
	int fds[2];

	CHECK_EQ(SYS->pipe(fds), 0);
	CHECK_EQ(SYS->read(fds[0], buf, sizeof(buf)), -EAGAIN);
	CHECK_EQ(SYS->write(fds[1], "hello", 5), 5);
	CHECK_EQ(SYS->read(fds[0], buf, sizeof(buf)), 5);
	CHECK_EQ(SYS->close(fds[1]), 0);
	CHECK_EQ(SYS->read(fds[0], buf, sizeof(buf)), 0);
	CHECK_EQ(SYS->close(fds[0]), 0);
}

struct pair {
	int listener, client, server;
};

static int
ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	CHECK_EQ(SYS->poll(&p, 1, 10 * (int64_t)WEFT_S), 1);
	return p.revents;
}

static struct pair
connected(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t size = sizeof(addr);
	struct pair p = { .listener = SYS->socket(AF_INET, SOCK_STREAM, 0),
		          .client = SYS->socket(AF_INET, SOCK_STREAM, 0) };
	int error = -1;
	int rc;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(SYS->bind(p.listener, (struct sockaddr *)&addr, size), 0);
	CHECK_EQ(SYS->listen(p.listener, 8), 0);
	CHECK_EQ(SYS->accept(p.listener), -EAGAIN);
	CHECK_EQ(SYS->sockname(p.listener, (struct sockaddr *)&addr, &size), 0);
	rc = SYS->connect(p.client, (struct sockaddr *)&addr, size);
	CHECK(rc == 0 || rc == -EINPROGRESS);
	CHECK(ready(p.client, POLLOUT) & POLLOUT);
	CHECK_EQ(SYS->so_error(p.client, &error), 0);
	CHECK_EQ(error, 0);
	CHECK(ready(p.listener, POLLIN) & POLLIN);
	p.server = SYS->accept(p.listener);
	CHECK(p.server >= 0);
	CHECK_EQ(flags_of(p.server), 3);
	return p;
}

TEST(sockets_never_block_and_never_raise_a_signal)
{
	struct pair p = connected();
	char there[] = "there";
	struct iovec iov = { there, 5 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[16];

	CHECK_EQ(SYS->recv(p.server, buf, sizeof(buf), 0), -EAGAIN);
	CHECK_EQ(SYS->send(p.client, "hello", 5, 0), 5);
	CHECK_EQ(SYS->sendmsg(p.client, &msg, 0), 5);
	(void)ready(p.server, POLLIN);
	CHECK_EQ(SYS->recv(p.server, buf, 5, 0), 5);
	iov = (struct iovec){ buf, sizeof(buf) };
	CHECK_EQ(SYS->recvmsg(p.server, &msg, 0), 5);
	CHECK_EQ(SYS->shutdown(p.client, SHUT_WR), 0);
	CHECK_EQ(SYS->send(p.client, "x", 1, 0), -EPIPE); /* and no SIGPIPE */
	(void)ready(p.server, POLLIN);
	CHECK_EQ(SYS->recv(p.server, buf, sizeof(buf), 0), 0);
	CHECK_EQ(SYS->close(p.client), 0);
	CHECK_EQ(SYS->close(p.server), 0);
	CHECK_EQ(SYS->close(p.listener), 0);
}

TEST(many_messages_are_sent_and_received_in_one_call)
{
	char in[4][8], out[3][2] = { "a", "b", "c" };
	struct weft__mmsg msgs[4] = { { .size = 0 } };
	struct iovec iov[4];
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ i < 3 ? out[i] : NULL, i < 3 };
		msgs[i].hdr.msg_iov = &iov[i];
		msgs[i].hdr.msg_iovlen = 1;
	}
	CHECK_EQ(SYS->recvmmsg(fds[0], msgs, 4, 0), -EAGAIN);
	CHECK_EQ(SYS->sendmmsg(fds[1], msgs, 4, 0), 4); /* the last is empty */
	for (int i = 0; i < 4; i++)
		iov[i] = (struct iovec){ in[i], 8 };
	CHECK_EQ(SYS->recvmmsg(fds[0], msgs, 2, 0), 2);
	CHECK_EQ(SYS->recvmmsg(fds[0], msgs + 2, 2, 0), 2);
	CHECK_EQ(in[0][0], 'a');
	CHECK_EQ(in[2][0], 'c');
	CHECK_EQ(msgs[2].size, 1);
	CHECK_EQ(msgs[3].size, 0);
	CHECK_EQ(SYS->close(fds[0]), 0);
	CHECK_EQ(SYS->sendmmsg(fds[1], msgs, 4, 0), -ECONNREFUSED);
	CHECK_EQ(SYS->close(fds[1]), 0);
}

TEST(polling_no_descriptors_waits_for_the_full_timeout)
{
	uint64_t before = weft_now();

	CHECK_EQ(SYS->poll(NULL, 0, 1500000), 0);
	CHECK(weft_now() - before >= 1500000);
	CHECK_EQ(SYS->poll(NULL, 0, 0), 0);
}

/* --- memory ------------------------------------------------------------- */

TEST(resized_memory_keeps_its_bytes_and_always_moves_in_stress_builds)
{
	unsigned char *mem = weft__sys->alloc(100), *moved;
	uintptr_t before = (uintptr_t)mem;

	CHECK(!WEFT__STRESS || (mem[0] == 0xa5 && mem[99] == 0xa5));
	memset(mem, 7, 100);
	moved = weft__sys->resize(mem, 50);
	CHECK(!WEFT__STRESS || (uintptr_t)moved != before);
	before = (uintptr_t)moved;
	moved = weft__sys->resize(moved, 5000);
	CHECK(!WEFT__STRESS || (uintptr_t)moved != before);
	for (int i = 0; i < 50; i++)
		CHECK_EQ(moved[i], 7);
	weft__sys->release(moved);
	moved = weft__sys->resize(NULL, 10);
	CHECK(moved != NULL);
	weft__sys->release(moved);
	weft__sys->release(NULL);
}
