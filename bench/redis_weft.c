/* redis_weft.c - GET with weft: threadlets on one loop and one connection.
 *
 * redis.get.100.op uses callbacks instead of threadlets.
 */
#include "redis_bench.h"
#include <weft/loop.h>
#include <weft/redis.h>
#include <weft/scope.h>
#include <weft/threadlet.h>

struct asker {
	weft_redis *redis;
	weft_redis_reply *reply; /* this and the following members are used with ops only */
	weft_op op;
	char key[REDIS_KEY];
};

static void
take_reply(weft_redis_reply *reply)
{
	weft_span text;

	BENCH_CHECK(weft_redis_text(reply, &text) == 0);
	redis_answer(text.data, text.size);
	weft_redis_reply_free(reply);
}

static int
ask_on(void *arg)
{
	char key[REDIS_KEY];

	while (redis_ask(key)) {
		weft_span words[] = { { "GET", 3 }, { key, strlen(key) } };
		weft_redis_reply *reply;

		BENCH_CHECK(weft_redis_call(arg, words, 2, &reply, WEFT_NEVER) == 0);
		take_reply(reply);
	}
	return 0;
}

static void
start_op(struct asker *asker)
{
	weft_span words[] = { { "GET", 3 }, { asker->key, 0 } };

	if (!redis_ask(asker->key))
		return;
	words[1].size = strlen(asker->key);
	BENCH_CHECK(
		weft_redis_call_op(asker->redis, words, 2, &asker->reply, &asker->op, WEFT_NEVER)
		== 0);
}

static void
on_done(weft_op *op, int64_t result, void *arg)
{
	struct asker *asker = arg;

	(void)op;
	BENCH_CHECK(result == 0);
	take_reply(asker->reply);
	start_op(asker);
}

static void
ask_by_ops(weft_loop *loop, weft_redis *redis, int askers)
{
	struct asker *all = bench_array((size_t)askers, sizeof(*all));

	for (int i = 0; i < askers; i++) {
		all[i].redis = redis;
		BENCH_CHECK(weft_op_init(&all[i].op, loop, on_done, &all[i]) == 0);
		start_op(&all[i]);
	}
	BENCH_CHECK(weft_loop_run(loop) == 0);
	free(all);
}

static void
ask_by_threadlets(weft_loop *loop, weft_redis *redis, int askers)
{
	weft_go_opts go = { .loop = loop };

	for (int i = 0; i < askers; i++)
		BENCH_CHECK(weft_go_with(&go, ask_on, redis) > 0);
	BENCH_CHECK(weft_loop_run(loop) == 0);
}

static void
ask(uint64_t count, int askers, bool far, bool by_ops)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_redis_opts opts = { .loop = loop };
	weft_redis *redis;
	char address[64];

	(void)snprintf(address, sizeof(address), "redis://127.0.0.1:%d", redis_start(far));
	redis_begin(count);
	BENCH_CHECK(loop);
	BENCH_CHECK(weft_redis_open(address, &opts, &redis) == 0);
	if (by_ops)
		ask_by_ops(loop, redis, askers);
	else
		ask_by_threadlets(loop, redis, askers);
	weft_redis_close(redis);
	BENCH_CHECK(weft_loop_run(loop) == 0);
}

static double
get_100_cpu(void)
{
	ask(REDIS_MANY, 100, false, false);
	return redis_cpu_ns();
}

static double
get_100_op(void)
{
	ask(REDIS_MANY, 100, false, true);
	return redis_cpu_ns();
}

static double
get_100_rps(void)
{
	ask(REDIS_MANY, 100, false, false);
	return redis_per_second();
}

static double
get_1_rps(void)
{
	ask(REDIS_ONE, 1, false, false);
	return redis_per_second();
}

static double
rtt_100_rps(void)
{
	ask(REDIS_FAR, 100, true, false);
	return redis_per_second();
}

static const struct bench_row redis_rows[] = {
	{ "redis.get.100.cpu", get_100_cpu }, { "redis.get.100.op", get_100_op },
	{ "redis.get.100.rps", get_100_rps }, { "redis.get.1.rps", get_1_rps },
	{ "redis.rtt.100.rps", rtt_100_rps },
};

BENCH_MAIN(redis_rows)
