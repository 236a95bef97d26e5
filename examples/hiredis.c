/* hiredis.c - a hiredis program on a weft loop.
 *
 *     hiredis [PATH | HOST PORT]
 *
 * Only one line differs from a program for another event loop.  A weft timer
 * adds the deadline that hiredis 0.14 does not have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/hiredis.h>
#include <weft/weft.h>

#define VISITS 3

struct app {
	redisAsyncContext *redis;
	weft_timer deadline;
	int failed;
};

static void
on_deadline(weft_timer *timer, void *arg)
{
	struct app *app = arg;

	(void)timer;
	puts("too late");
	redisAsyncFree(app->redis); /* its commands end without a reply */
}

static void
on_visit(redisAsyncContext *redis, void *answer, void *data)
{
	struct app *app = data;
	redisReply *reply = answer;

	if (!reply) {
		printf("lost: %s\n", redis->errstr ? redis->errstr : "freed");
		weft_timer_stop(&app->deadline);
		app->failed = 1;
		return;
	}
	printf("visit %lld\n", reply->integer);
	if (reply->integer < VISITS)
		return;
	weft_timer_stop(&app->deadline);
	redisAsyncDisconnect(redis); /* then run returns: nothing is alive */
}

static redisAsyncContext *
open_redis(int argc, char **argv)
{
	if (argc == 2)
		return redisAsyncConnectUnix(argv[1]);
	if (argc == 3)
		return redisAsyncConnect(argv[1],
		                         (int)strtol(argv[2], NULL, 10));
	return redisAsyncConnect("127.0.0.1", 6379);
}

int
main(int argc, char **argv)
{
	weft_loop *loop = weft_loop_new(NULL);
	struct app app = { .redis = open_redis(argc, argv) };

	if (!loop || !app.redis || app.redis->err
	    || weft_redis_attach_hiredis(loop, app.redis) < 0)
		return 1;
	weft_timer_start(loop, &app.deadline, weft_after(10 * WEFT_S), 0,
	                 on_deadline, &app);
	redisAsyncCommand(app.redis, NULL, NULL, "DEL visits");
	for (int i = 0; i < VISITS; i++)
		redisAsyncCommand(app.redis, on_visit, &app, "INCR visits");
	weft_loop_run(loop);
	return weft_loop_free(loop) < 0 || app.failed;
}
