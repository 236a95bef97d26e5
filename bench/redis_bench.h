/* redis_bench.h - GET from a private redis-server, for each client that includes this.
 *
 * The server runs on the other core and contains keys with short texts.  For rows with a round
 * trip, it is behind a proxy that delays all bytes by half a millisecond in each direction.  A
 * client requests keys as long as redis_ask() returns one, and reports each text by
 * redis_answer().  The first replies warm up and are not measured.
 */
#ifndef WEFT_BENCH_REDIS_BENCH_H
#define WEFT_BENCH_REDIS_BENCH_H

#include "bench.h"
#include "child.h"
#include "delay.h"

#define REDIS_KEYS  1000
#define REDIS_VALUE 32 /* bytes */
#define REDIS_KEY   16 /* maximum bytes of a key, with its NUL */

/* Measured replies.  A tenth of that number precede them as a warm-up. */
#define REDIS_MANY    500000 /* many in flight */
#define REDIS_ONE     30000  /* one in flight */
#define REDIS_FAR     40000  /* many, with a round trip */
#define REDIS_FAR_FEW 5000   /* few, with a round trip */

static struct {
	uint64_t warm, count;     /* replies */
	uint64_t asked, answered; /* atomic, for clients with threads */
	uint64_t begin_ns, end_ns;
	uint64_t begin_cpu_ns, end_cpu_ns;
} redis_run;

/* --- the server -------------------------------------------------------------- */

__attribute__((noreturn)) static inline void
redis_become(int port)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", port);
	(void)!freopen("/dev/null", "w", stdout);
	(void)execlp("redis-server", "redis-server", "--port", text, "--bind",
	             "127.0.0.1", "--save", "", "--appendonly", "no",
	             (char *)NULL);
	_exit(BENCH_SKIPPED);
}

/* Connect as soon as the server listens; skip the row if there is no server. */
static inline int
redis_await(int port, pid_t child)
{
	for (int i = 0; i < 2000; i++) {
		int status, fd = local_try(port);

		if (fd >= 0)
			return fd;
		if (waitpid(child, &status, WNOHANG) == child)
			bench_skip("redis-server is not installed");
		bench_sleep(5 * BENCH_MS);
	}
	bench_die("redis-server does not listen");
}

static inline void
redis_fill(int fd)
{
	static char text[REDIS_KEYS * 100], back[REDIS_KEYS * 5];
	size_t size = 0, got = 0;

	for (int i = 0; i < REDIS_KEYS; i++)
		size += (size_t)snprintf(text + size, sizeof(text) - size,
		                         "SET key:%d %0*d\r\n", i, REDIS_VALUE,
		                         i);
	BENCH_CHECK(send(fd, text, size, 0) == (ssize_t)size);
	while (got < sizeof(back)) {
		ssize_t more = recv(fd, back + got, sizeof(back) - got, 0);

		BENCH_CHECK(more > 0);
		got += (size_t)more;
	}
	BENCH_CHECK(memcmp(back + got - 5, "+OK\r\n", 5) == 0);
}

/* Start the server and return the port to connect to.  With `far`, it is the proxy's port. */
static inline int
redis_start(bool far)
{
	int port, listener = local_listen(&port), fd;
	pid_t child;

	(void)close(listener); /* the port is almost certainly still free */
	child = child_fork();
	if (child == 0)
		redis_become(port);
	fd = redis_await(port, child);
	redis_fill(fd);
	(void)close(fd);
	if (far) {
		int behind = port;

		listener = local_listen(&port);
		if (child_fork() == 0)
			delay_serve(listener, behind);
		(void)close(listener);
	}
	return port;
}

/* --- the measurement ----------------------------------------------------------- */

static inline void
redis_begin(uint64_t count)
{
	redis_run.warm = count / 10;
	redis_run.count = count;
}

/* Write the next key and its NUL; false if all requests have been made. */
static inline bool
redis_ask(char *key)
{
	uint64_t number = __atomic_fetch_add(&redis_run.asked, 1,
	                                     __ATOMIC_RELAXED);

	if (number >= redis_run.warm + redis_run.count)
		return false;
	number = number * 7919 % REDIS_KEYS; /* scattered */
	memcpy(key, "key:", 4);
	key += 4;
	if (number >= 100)
		*key++ = (char)('0' + number / 100);
	if (number >= 10)
		*key++ = (char)('0' + number / 10 % 10);
	*key++ = (char)('0' + number % 10);
	*key = '\0';
	return true;
}

static inline void
redis_answer(const char *text, size_t size)
{
	uint64_t number = __atomic_add_fetch(&redis_run.answered, 1,
	                                     __ATOMIC_RELAXED);

	BENCH_CHECK(text && size == REDIS_VALUE);
	if (number == redis_run.warm) {
		redis_run.begin_cpu_ns = bench_process_ns();
		redis_run.begin_ns = bench_wall_ns();
	}
	if (number == redis_run.warm + redis_run.count) {
		redis_run.end_ns = bench_wall_ns();
		redis_run.end_cpu_ns = bench_process_ns();
	}
}

static inline double
redis_cpu_ns(void)
{
	BENCH_CHECK(redis_run.end_ns);
	return (double)(redis_run.end_cpu_ns - redis_run.begin_cpu_ns)
	       / (double)redis_run.count;
}

static inline double
redis_per_second(void)
{
	BENCH_CHECK(redis_run.end_ns);
	return (double)redis_run.count * (double)BENCH_S
	       / (double)(redis_run.end_ns - redis_run.begin_ns);
}

#endif
