/* redis_multi.c - transactions: MULTI, commands and EXEC as one piece of the pipeline.
 *
 * A transaction is encoded completely before it is queued.  So it is in the output as a whole
 * or not at all, and no other command comes between.  Its pending entry expects a reply for
 * each part; the last one is the transaction's.
 */
#include "redis_client.h"

static int
check_part(const weft_redis *redis, const weft_redis_command *part)
{
	struct weft__redis_command command;
	int rc = weft__redis_command_init(redis, &command, part->args, part->count);

	if (rc < 0)
		return rc;
	if (command.flags & (WEFT__REDIS_NEVER | WEFT__REDIS_STATE))
		return weft_fail(WEFT_EINVAL,
		                 "weft_redis_multi: %.*s is not allowed in a transaction",
		                 command.name.size < 40 ? (int)command.name.size : 40,
		                 (const char *)command.name.data);
	return 0;
}

static int
measure(const weft_redis *redis, const weft_redis_command *commands, size_t count, size_t *out)
{
	const weft_span multi = weft_text("MULTI"), exec = weft_text("EXEC");
	size_t size = weft__resp_size(&multi, 1) + weft__resp_size(&exec, 1);

	if (!commands || count == 0 || count > UINT32_MAX - 2)
		return weft_fail(WEFT_EINVAL, "weft_redis_multi: there are no commands");
	for (size_t i = 0; i < count; i++) {
		int rc = check_part(redis, &commands[i]);

		if (rc < 0)
			return rc;
		size += weft__resp_size(commands[i].args, commands[i].count);
	}
	*out = size;
	return 0;
}

int
weft_redis_multi(weft_redis *redis, const weft_redis_command *commands, size_t count,
                 weft_redis_reply **out, uint64_t deadline_ns)
{
	const weft_span multi = weft_text("MULTI"), exec = weft_text("EXEC");
	struct weft__redis_command unit = { .name = multi };
	char *bytes, *at;
	size_t size = 0;
	int rc;

	if (!redis)
		return weft_fail(WEFT_EINVAL, "weft_redis_multi: redis is NULL");
	rc = measure(redis, commands, count, &size);
	if (rc < 0)
		return rc;
	bytes = weft_alloc(size);
	if (!bytes)
		return weft_fail(WEFT_ENOMEM, "weft_redis_multi: no memory");
	at = weft__resp_put(bytes, &multi, 1);
	for (size_t i = 0; i < count; i++)
		at = weft__resp_put(at, commands[i].args, commands[i].count);
	(void)weft__resp_put(at, &exec, 1);
	unit.bytes = bytes;
	unit.size = size;
	unit.replies = (uint32_t)count + 2;
	rc = weft__redis_run(redis, &unit, out, deadline_ns);
	weft_release(bytes);
	return rc;
}
