/* redis_call.c - calls by threadlets on the endpoint's loop. */
#include "redis_client.h"
#include <stdarg.h>
#include <weft/threadlet.h>

static void
on_over(struct weft__redis_command *command, int rc)
{
	command->rc = rc;
	command->is_over = true;
	(void)weft_event_set(&command->over);
}

static void
redis_call_on_cancel(weft_op *op, int why, void *arg)
{
	struct weft__redis_command *command = arg;

	(void)op;
	weft__redis_give_up(command->redis, command, why);
}

static void
on_done(struct weft__redis_command *command, int rc)
{
	(void)weft_op_finish(command->op, rc);
}

/* Waits by an event, which is faster than an op.  A caller that is canceled or late gives up the
 * command itself.  After the wait the endpoint may have been freed, but only if the command is
 * over: so `redis` is used only for a command that is not over. */
static int
redis_call_wait_for(weft_redis *redis, struct weft__redis_command *command, weft_redis_reply **out,
                    uint64_t deadline_ns)
{
	int rc = 0;

	command->done = on_over;
	weft__redis_submit(redis, command);
	if (!command->is_over)
		rc = weft_event_wait(&command->over, deadline_ns);
	if (!command->is_over)
		weft__redis_give_up(redis, command, rc);
	return weft__redis_report(command, command->rc, out);
}

/* A command that blocks at the server and is given up is over only when its connection is closed.
 * So the caller waits by an op, even after it was canceled. */
static int
wait_by_op(weft_redis *redis, struct weft__redis_command *command, weft_redis_reply **out,
           uint64_t deadline_ns)
{
	weft_op op;
	int rc;

	command->redis = redis;
	command->op = &op;
	command->done = on_done;
	(void)weft_op_init(&op, redis->loop, NULL, NULL);
	rc = weft_op_begin(&op, redis_call_on_cancel, command, deadline_ns);
	if (rc < 0)
		return rc;
	weft__redis_submit(redis, command);
	rc = (int)weft_op_wait(&op, WEFT_NEVER);
	return weft__redis_report(command, rc, out);
}

/* A canceled caller is refused: a command that is sent and given up at once may still be
 * executed. */
int
weft__redis_may_wait(void)
{
	int rc = weft_can_suspend();

	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (!weft_loop_current())
		return weft_check_canceled();
	return weft_fail(
		WEFT_ENOSUSPEND,
		"weft_redis_call: a loop callback cannot wait; call from a threadlet, or use "
		"weft_redis_call_op()");
}

static int
run_here(weft_redis *redis, struct weft__redis_command *command, weft_redis_reply **out,
         uint64_t deadline_ns)
{
	int rc = weft__redis_may_wait();

	if (rc == 0)
		rc = weft__redis_admit(redis, command);
	if (rc < 0)
		return rc;
	return command->flags & WEFT__REDIS_BLOCKS
	               ? wait_by_op(redis, command, out, deadline_ns)
	               : redis_call_wait_for(redis, command, out, deadline_ns);
}

int
weft__redis_run(weft_redis *redis, struct weft__redis_command *command, weft_redis_reply **out,
                uint64_t deadline_ns)
{
	int rc;

	if (deadline_ns == WEFT_NOWAIT)
		return weft_fail(
			WEFT_ETIMEDOUT,
			"weft_redis_call: WEFT_NOWAIT is not allowed; a command needs a round "
			"trip");
	if (weft_loop_current() == redis->loop)
		return run_here(redis, command, out, deadline_ns);
	rc = weft__redis_may_wait();
	return rc < 0 ? rc : weft__redis_run_remote(redis, command, out, deadline_ns);
}

/* Answer a call from the cache, without waiting.  Returns 1 if the reply was there. */
static int
find_cached(weft_redis *redis, const struct weft__redis_command *command, weft_redis_reply **out)
{
	char bytes[512];
	weft_redis_reply *reply;
	size_t size = weft__resp_size(command->args, command->count);

	if (size > sizeof(bytes) || weft_loop_current() != redis->loop)
		return 0;
	(void)weft__resp_put(bytes, command->args, command->count);
	reply = weft__redis_cache_find(redis, bytes, size);
	if (!reply)
		return 0;
	redis->stats.calls++;
	redis->stats.replies++;
	if (out)
		*out = reply;
	else
		weft_redis_reply_free(reply);
	return 1;
}

int
weft_redis_call(weft_redis *redis, const weft_span *args, size_t count, weft_redis_reply **out,
                uint64_t deadline_ns)
{
	struct weft__redis_command command;
	int rc;

	if (!redis)
		return weft_fail(WEFT_EINVAL, "weft_redis_call: redis is NULL");
	rc = weft__redis_command_init(redis, &command, args, count);
	if (rc < 0)
		return rc;
	if (redis->cache && (command.flags & WEFT__REDIS_KEYED)
	    && find_cached(redis, &command, out))
		return 0;
	return weft__redis_run(redis, &command, out, deadline_ns);
}

int
weft_redis_callf(weft_redis *redis, weft_redis_reply **out, uint64_t deadline_ns,
                 const char *format, ...)
{
	struct weft__resp_args parsed;
	va_list args;
	int rc;

	if (!redis || !format)
		return weft_fail(WEFT_EINVAL, "weft_redis_callf: redis or format is NULL");
	va_start(args, format);
	rc = weft__resp_format(&parsed, format, args);
	va_end(args);
	if (rc < 0)
		return rc;
	rc = weft_redis_call(redis, parsed.args, parsed.count, out, deadline_ns);
	weft_release(parsed.args);
	return rc;
}
