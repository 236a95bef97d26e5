/* redis_sync.c - GET with hiredis' blocking contexts: one thread, or one context in each of 8. */
#include "redis_bench.h"
#include <hiredis/hiredis.h>

#define THREADS 8

static void *
ask_on(void *arg)
{
	const int *port = arg;
	redisContext *context = redisConnect("127.0.0.1", *port);
	char key[REDIS_KEY];
	const char *words[] = { "GET", key };

	BENCH_CHECK(context && !context->err);
	while (redis_ask(key)) {
		size_t sizes[] = { 3, strlen(key) };
		redisReply *reply = redisCommandArgv(context, 2, words, sizes);

		BENCH_CHECK(reply && reply->type == REDIS_REPLY_STRING);
		redis_answer(reply->str, (size_t)reply->len);
		freeReplyObject(reply);
	}
	return context;
}

static double
get_1_rps(void)
{
	int port = redis_start(false);

	redis_begin(REDIS_ONE);
	redisFree(ask_on(&port));
	return redis_per_second();
}

static double
rtt_100_rps(void)
{
	int port = redis_start(true);
	pthread_t threads[THREADS];
	void *contexts[THREADS];

	redis_begin(REDIS_FAR_FEW);
	for (int i = 0; i < THREADS; i++)
		BENCH_CHECK(pthread_create(&threads[i], NULL, ask_on, &port) == 0);
	/* The proxy exits when its first connection ends, so all stay open until the last. */
	for (int i = 0; i < THREADS; i++)
		BENCH_CHECK(pthread_join(threads[i], &contexts[i]) == 0);
	for (int i = 0; i < THREADS; i++)
		redisFree(contexts[i]);
	return redis_per_second();
}

static const struct bench_row redis_rows[] = {
	{ "redis.get.1.rps", get_1_rps },
	{ "redis.rtt.100.rps", rtt_100_rps },
};

BENCH_MAIN(redis_rows)
