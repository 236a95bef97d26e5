/* redis_ev.c - GET with hiredis' asynchronous context on libev, one connection. */
#include "redis_bench.h"
#include <hiredis/async.h>
#include <hiredis/adapters/libev.h>

static void ask_next(redisAsyncContext *context);

static void
on_reply(redisAsyncContext *context, void *answer, void *data)
{
	redisReply *reply = answer;

	(void)data;
	BENCH_CHECK(reply && reply->type == REDIS_REPLY_STRING);
	redis_answer(reply->str, (size_t)reply->len);
	ask_next(context);
}

/* As an argument vector, which costs hiredis less than a format. */
static void
ask_next(redisAsyncContext *context)
{
	char key[REDIS_KEY];
	const char *words[] = { "GET", key };
	size_t sizes[] = { 3, 0 };

	if (!redis_ask(key)) {
		redisAsyncDisconnect(context);
		return;
	}
	sizes[1] = strlen(key);
	BENCH_CHECK(redisAsyncCommandArgv(context, on_reply, NULL, 2, words, sizes) == REDIS_OK);
}

static void
ask(uint64_t count, int at_once, bool far)
{
	struct ev_loop *loop = ev_default_loop(0);
	redisAsyncContext *context = redisAsyncConnect("127.0.0.1", redis_start(far));

	BENCH_CHECK(loop && context && !context->err);
	BENCH_CHECK(redisLibevAttach(loop, context) == REDIS_OK);
	redis_begin(count);
	for (int i = 0; i < at_once; i++)
		ask_next(context);
	(void)ev_run(loop, 0);
}

static double
get_100_cpu(void)
{
	ask(REDIS_MANY, 100, false);
	return redis_cpu_ns();
}

static double
get_100_rps(void)
{
	ask(REDIS_MANY, 100, false);
	return redis_per_second();
}

static double
get_1_rps(void)
{
	ask(REDIS_ONE, 1, false);
	return redis_per_second();
}

static double
rtt_100_rps(void)
{
	ask(REDIS_FAR, 100, true);
	return redis_per_second();
}

static const struct bench_row redis_rows[] = {
	{ "redis.get.100.cpu", get_100_cpu }, { "redis.get.100.op", get_100_cpu },
	{ "redis.get.100.rps", get_100_rps }, { "redis.get.1.rps", get_1_rps },
	{ "redis.rtt.100.rps", rtt_100_rps },
};

BENCH_MAIN(redis_rows)
