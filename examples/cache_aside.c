/* cache_aside.c - a hundred threadlets share one Redis connection.
 *
 *     cache_aside [ADDRESS]
 */
#include <stdio.h>
#include <weft/redis.h>
#include <weft/weft.h>

struct job {
	weft_redis *redis;
	int id;
};

static int
load_slowly(int id, char *out, size_t max)
{
	int rc = weft_sleep(20 * WEFT_MS);

	return rc < 0 ? rc : snprintf(out, max, "profile of %d", id);
}

static int
lookup(void *arg)
{
	struct job *job = arg;
	weft_redis_reply *reply = NULL;
	char fresh[64];
	weft_span text;
	int rc = weft_redis_callf(job->redis, &reply, weft_after(WEFT_S),
	                          "GET profile:%d", job->id);

	if (rc == 0)
		rc = weft_redis_text(reply, &text);
	if (rc == 0)
		printf("hit %.*s\n", (int)text.size, (const char *)text.data);
	weft_redis_reply_free(reply);
	if (rc == 0)
		return 0;
	if (rc != WEFT_ENOENT) /* continue without a cache */
		fprintf(stderr, "%s\n", weft_detail());
	if ((rc = load_slowly(job->id, fresh, sizeof fresh)) < 0)
		return rc;
	printf("miss %s\n", fresh);
	(void)weft_redis_callf(job->redis, NULL, weft_after(WEFT_S),
	                       "SET profile:%d %s EX 60", job->id, fresh);
	return 0;
}

static int
run(void *arg)
{
	struct job jobs[100];
	weft_redis *redis;
	weft_scope scope;
	int rc = weft_redis_open(arg, NULL, &redis);

	if (rc < 0)
		return puts(weft_detail()), rc;
	weft_scope_open(&scope, WEFT_FAIL_FAST, weft_after(10 * WEFT_S));
	for (int i = 0; i < 100; i++) {
		jobs[i] = (struct job){ redis, i };
		weft_scope_go(&scope, lookup, &jobs[i]);
	}
	rc = weft_scope_close(&scope);
	weft_redis_close(redis);
	return rc;
}

int
main(int argc, char **argv)
{
	static char here[] = "redis://127.0.0.1";

	return weft_main(NULL, run, argc > 1 ? argv[1] : here);
}
