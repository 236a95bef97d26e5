/* redis_command.c - commands: accept, give up, end, report the result. */
#include "redis_client.h"

/* --- accepting --------------------------------------------------------------- */

int
weft__redis_command_init(const weft_redis *redis, struct weft__redis_command *command,
                         const weft_span *args, size_t count)
{
	if (!args || count == 0 || args[0].size == 0)
		return weft_fail(WEFT_EINVAL, "weft_redis_call: the command is empty");
	for (size_t i = 0; i < count; i++)
		if (!args[i].data && args[i].size > 0)
			return weft_fail(WEFT_EINVAL, "weft_redis_call: an argument is NULL");
	*command = (struct weft__redis_command){
		.args = args,
		.count = count,
		.name = args[0],
		.replies = 1,
		.flags = (uint8_t)weft__redis_flags(redis, args, count),
	};
	if (command->flags & WEFT__REDIS_KEYED)
		command->key = args[1];
	return 0;
}

/* The arguments before number `index` contain no line feeds, so the line feeds that are counted are
 * those of the framing. */
weft_span
weft__redis_arg(const char *bytes, size_t index, size_t size)
{
	for (size_t lines = 0; lines < 2 * index + 2; lines++)
		bytes = strchr(bytes, '\n') + 1;
	return (weft_span){ bytes, size };
}

static int
command_refuse(const struct weft__redis_command *command, const char *why)
{
	return weft_fail(WEFT_EINVAL, "%.*s: %s",
	                 command->name.size < 40 ? (int)command->name.size : 40,
	                 (const char *)command->name.data, why);
}

int
weft__redis_check(const weft_redis *redis, const struct weft__redis_command *command)
{
	if (command->flags & WEFT__REDIS_NEVER)
		return command_refuse(
			command, "cannot be sent by a call; weft_redis_subscribe() subscribes");
	if ((command->flags & WEFT__REDIS_STATE) && !redis->session)
		return command_refuse(command,
		                      "would change the state of a shared "
		                      "connection; use weft_redis_multi() or the option session");
	if ((command->flags & WEFT__REDIS_BLOCKS) && !redis->session && redis->connections_max < 2)
		return command_refuse(command, "blocks at the server, so it needs a connection "
		                               "of its own; connections_max must be at least 2");
	return 0;
}

int
weft__redis_admit(weft_redis *redis, const struct weft__redis_command *command)
{
	bool is_dedicated = (command->flags & WEFT__REDIS_BLOCKS) && !redis->session;
	uint32_t waiting = is_dedicated ? redis->blocked_count : redis->shared.queued;
	int rc = weft__redis_check(redis, command);

	if (rc < 0)
		return rc;
	if (redis->closed)
		return weft_fail(WEFT_ESHUTDOWN, "weft_redis_call: the endpoint is closed");
	if (waiting >= redis->queue_max)
		return weft_fail(WEFT_EAGAIN, "weft_redis_call: %u commands already wait for %s",
		                 (unsigned)waiting, redis->address);
	return 0;
}

void
weft__redis_submit(weft_redis *redis, struct weft__redis_command *command)
{
	if (!command->fetches)
		redis->stats.calls++;
	if (redis->cache && (command->flags & WEFT__REDIS_KEYED) && !command->fetches
	    && weft__redis_cache_join(redis, command))
		return;
	if ((command->flags & WEFT__REDIS_BLOCKS) && !redis->session)
		weft__redis_dedicated_submit(redis, command);
	else
		weft__redis_conn_slot_submit(&redis->shared, command);
}

/* --- ending ------------------------------------------------------------------ */

void
weft__redis_end(weft_redis *redis, struct weft__redis_command *command, int rc, const char *text)
{
	(void)redis;
	if (text && !command->text)
		command->text = weft__redis_copy(text, strlen(text));
	command->done(command, rc);
}

void
weft__redis_answer(weft_redis *redis, struct weft__redis_command *command, weft_redis_reply *reply)
{
	weft_redis_type kind = weft_redis_reply_type(reply);

	command->state = WEFT__REDIS_NOWHERE;
	command->reply = reply;
	if (!command->fetches)
		redis->stats.replies++;
	if (redis->cache && !(command->flags & WEFT__REDIS_READS))
		weft__redis_cache_wrote(redis, command);
	if (kind == WEFT_REDIS_NIL && command->replies > 1)
		command->done(command, WEFT_EAGAIN);
	else
		command->done(command, kind == WEFT_REDIS_ERROR ? WEFT_EREPLY : 0);
}

static void
leave_queue(weft_redis *redis, struct weft__redis_command *command)
{
	weft__link_remove(&command->link);
	if (command->slot)
		command->slot->queued--;
	else
		redis->blocked_count--;
}

/* A command that blocks at the server is given up together with its connection, and ends when
 * that is closed: until then it could still consume data at the server that the caller
 * meanwhile intends for others. */
static void
leave_with_conn(struct weft__redis_command *command, int why)
{
	struct weft__redis_conn_slot *slot = command->slot;

	weft__redis_pending_at(slot->conn, command->pending)->command = NULL;
	command->state = WEFT__REDIS_LEAVING;
	slot->conn->leaving = command;
	slot->conn->leaving_why = why;
	(void)weft_fail(why, "%.*s: canceled or timed out", (int)command->name.size,
	                (const char *)command->name.data);
	if (slot->kind == WEFT__REDIS_DEDICATED)
		weft__redis_conn_slot_close(slot, WEFT_ESHUTDOWN);
	else
		weft__redis_conn_slot_lost(slot, why == WEFT_ESHUTDOWN ? why : WEFT_EPIPE);
}

/* The error text names the server that did not answer or was not connected. */
void
weft__redis_end_early(weft_redis *redis, struct weft__redis_command *command, int why)
{
	bool was_sent = command->state == WEFT__REDIS_SENT || command->state == WEFT__REDIS_LEAVING;

	command->state = WEFT__REDIS_NOWHERE;
	(void)weft_fail(why, "%.*s: %s, %s %s",
	                command->name.size < 40 ? (int)command->name.size : 40,
	                (const char *)command->name.data, weft_strerror(why),
	                was_sent ? "no reply from" : "before it could be sent to", redis->address);
	weft__redis_end(redis, command, why, weft_detail());
}

void
weft__redis_give_up(weft_redis *redis, struct weft__redis_command *command, int why)
{
	switch (command->state) {
	case WEFT__REDIS_QUEUED:
		leave_queue(redis, command);
		break;
	case WEFT__REDIS_SENT:
		if (command->flags & WEFT__REDIS_BLOCKS) {
			leave_with_conn(command, why);
			return;
		}
		weft__redis_pending_at(command->slot->conn, command->pending)->command = NULL;
		break;
	case WEFT__REDIS_AWAITS_CACHE:
		weft__link_remove(&command->link);
		break;
	default:
		return; /* it has ended, or is about to */
	}
	weft__redis_end_early(redis, command, why);
}

int
weft__redis_report(struct weft__redis_command *command, int rc, weft_redis_reply **out)
{
	weft_span text = { "", 0 };

	if (rc == 0 && out) {
		weft_release(command->text);
		*out = command->reply;
		return 0;
	}
	if (rc < 0 && command->text)
		(void)weft_fail(rc, "%s", command->text);
	else if (rc == WEFT_EREPLY && weft_redis_text(command->reply, &text) == 0)
		(void)weft_fail(rc, "%.*s", (int)text.size, (const char *)text.data);
	else if (rc == WEFT_EAGAIN)
		(void)weft_fail(rc, "weft_redis_multi: a watched key has changed");
	else if (rc < 0)
		(void)weft_fail(rc, "%.*s: %s", (int)command->name.size,
		                (const char *)command->name.data, weft_strerror(rc));
	weft_release(command->text);
	weft_redis_reply_free(command->reply);
	return rc;
}
