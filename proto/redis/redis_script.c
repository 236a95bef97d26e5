/* redis_script.c - Lua scripts, identified by their hash. */
#include "redis_client.h"

/* Call with the command, the script or its hash, and the arguments. */
static int
redis_script_call(weft_redis *redis, weft_span *args, size_t count, weft_redis_reply **out,
                  uint64_t deadline_ns)
{
	struct weft__redis_command command;
	int rc = weft__redis_command_init(redis, &command, args, count);

	return rc < 0 ? rc : weft__redis_run(redis, &command, out, deadline_ns);
}

int
weft_redis_script(weft_redis *redis, const char *script, const weft_span *args, size_t count,
                  weft_redis_reply **out, uint64_t deadline_ns)
{
	char hash[41];
	weft_span *all;
	int rc;

	if (!redis || !script || (!args && count > 0) || count > SIZE_MAX / sizeof(*all) - 2)
		return weft_fail(WEFT_EINVAL,
		                 "weft_redis_script: an argument is NULL, or count is too large");
	all = weft_alloc((count + 2) * sizeof(*all));
	if (!all)
		return weft_fail(WEFT_ENOMEM, "weft_redis_script: out of memory");
	weft__redis_sha1(script, strlen(script), hash);
	all[0] = weft_text("EVALSHA");
	all[1] = (weft_span){ hash, 40 };
	if (count > 0)
		memcpy(all + 2, args, count * sizeof(*all));
	(void)weft__redis_ref(redis); /* the endpoint may be closed between the two calls */
	rc = redis_script_call(redis, all, count + 2, out, deadline_ns);
	if (rc == WEFT_EREPLY && strncmp(weft_detail(), "NOSCRIPT", 8) == 0) {
		all[0] = weft_text("EVAL");
		all[1] = weft_text(script);
		rc = redis_script_call(redis, all, count + 2, out, deadline_ns);
	}
	weft__redis_unref(redis);
	weft_release(all);
	return rc;
}
