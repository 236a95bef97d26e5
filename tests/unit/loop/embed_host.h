/* embed_host.h - helpers for the tests of embedding: a host loop and what it does. */
#ifndef WEFT_TESTS_EMBED_HOST_H
#define WEFT_TESTS_EMBED_HOST_H

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/embed.h>
#include "test.h"

#define OK(call) CHECK_EQ(call, 0)
#define HOUR     (3600 * WEFT_S)

/* Whether the backend has a descriptor.  The poll backend has none; one test covers that. */
static inline bool
has_fd(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	int fd = weft_loop_fd(loop);

	OK(weft_loop_free(loop));
	CHECK(fd >= 0 || fd == WEFT_ENOSYS);
	return fd >= 0;
}

static inline weft_loop *
make(void)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop != NULL);
	return loop;
}

/* Wait until the loop's descriptor is readable, for at most `ms` milliseconds. */
static inline bool
readable(weft_loop *loop, int ms)
{
	struct pollfd p = { .fd = weft_loop_fd(loop), .events = POLLIN };

	CHECK(p.fd >= 0);
	return poll(&p, 1, ms) == 1;
}

/* Check that the loop has nothing left to do after a few iterations. */
static inline void
check_quiet(weft_loop *loop)
{
	for (int i = 0; i < 3; i++)
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK(!readable(loop, 0));
	CHECK(weft_loop_next(loop) != WEFT_NOWAIT);
}

/* The timeout for poll(2) in milliseconds, rounded up. -1: no limit. */
static inline int
until(uint64_t next_ns)
{
	uint64_t now_ns = weft_now();

	if (next_ns == WEFT_NEVER)
		return -1;
	return next_ns <= now_ns
	               ? 0
	               : (int)((next_ns - now_ns + WEFT_MS - 1) / WEFT_MS);
}

/* One iteration of a foreign loop. */
static inline int
host_once(weft_loop *loop)
{
	(void)readable(loop, until(weft_loop_next(loop)));
	return weft_loop_run_once(loop, WEFT_NOWAIT);
}

static inline void
count(void *arg)
{
	++*(int *)arg;
}

static inline void
elsewhere(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, fn, arg));
	OK(pthread_join(thread, NULL));
}

static inline void
make_pair(int fds[2])
{
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static inline void
close_pair(const int fds[2])
{
	OK(close(fds[0]));
	OK(close(fds[1]));
}

static inline void
put(int fd)
{
	CHECK_EQ(send(fd, "x", 1, MSG_DONTWAIT), 1);
}

struct deed {
	weft_loop *loop;
	weft_op op;
	int ran;
	int what;
};

static inline void
on_op(weft_op *op, int64_t result, void *arg)
{
	struct deed *deed = arg;

	(void)op;
	CHECK(result == 7 || result == 1);
	deed->ran++;
}

static inline void
on_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	++*(int *)arg;
}

#endif
