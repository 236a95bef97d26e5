/* redis_raw.c - GET without a client library: a hundred commands in one send, and the bytes of
 * their replies are counted.
 *
 * Only the kernel and the benchmark itself use CPU time, so this is the value of
 * redis.get.100.cpu for a client that costs nothing.
 */
#include "redis_bench.h"

#define AT_ONCE 100
#define REPLY   (sizeof("$32\r\n") - 1 + REDIS_VALUE + 2)

/* Write commands for at most AT_ONCE keys; returns how many. */
static size_t
put_commands(char *to, size_t *size)
{
	char *at = to, key[REDIS_KEY];
	size_t count = 0;

	for (; count < AT_ONCE && redis_ask(key); count++) {
		size_t length = strlen(key);

		memcpy(at, "*2\r\n$3\r\nGET\r\n$0\r\n", 17);
		at[14] = (char)('0' + length);
		memcpy(at + 17, key, length);
		memcpy(at + 17 + length, "\r\n", 2);
		at += 17 + length + 2;
	}
	*size = (size_t)(at - to);
	return count;
}

static void
take_replies(int fd, size_t count)
{
	char buf[AT_ONCE * REPLY];
	size_t got = 0;

	while (got < count * REPLY) {
		ssize_t n = recv(fd, buf + got, sizeof(buf) - got, 0);

		BENCH_CHECK(n > 0);
		got += (size_t)n;
	}
	for (size_t i = 0; i < count; i++)
		redis_answer(buf + i * REPLY + 5, REDIS_VALUE);
}

static double
get_100_cpu(void)
{
	int fd = local_try(redis_start(false));
	char buf[AT_ONCE * (19 + REDIS_KEY)];
	size_t size, count;

	BENCH_CHECK(fd >= 0);
	redis_begin(REDIS_MANY);
	while ((count = put_commands(buf, &size)) > 0) {
		BENCH_CHECK(send(fd, buf, size, 0) == (ssize_t)size);
		take_replies(fd, count);
	}
	(void)close(fd);
	return redis_cpu_ns();
}

static const struct bench_row redis_rows[] = {
	{ "redis.get.100.cpu", get_100_cpu },
};

BENCH_MAIN(redis_rows)
