/* lease.c - dedicated connections for commands that block at the server: one per command,
 * reused by the next.
 *
 * A command that is given up closes its connection, since it could still consume data at the
 * server.  Lines that have nothing to do are kept.
 */
#include "client.h"

static bool
is_idle(const struct weft__redis_line *line)
{
	return line->state == WEFT__REDIS_READY && line->queued == 0
	       && weft__redis_inflight(line->wire) == 0;
}

static struct weft__redis_line *
find_idle(weft_redis *redis)
{
	struct weft__redis_link *at = redis->leased.next;

	for (; at != &redis->leased; at = at->next) {
		struct weft__redis_line *line = WEFT__REDIS_OF(weft__redis_line, of_redis, at);

		if (is_idle(line))
			return line;
	}
	return NULL;
}

/* One connection is for ordinary commands, and one for subscriptions if there are any. */
static uint32_t
leases_max(const weft_redis *redis)
{
	uint32_t others = 1 + (redis->feed_line != NULL);

	return redis->connections_max > others ? redis->connections_max - others : 0;
}

static struct weft__redis_line *
open_line(weft_redis *redis)
{
	struct weft__redis_line *line = weft_alloc(sizeof(*line));

	if (!line)
		return NULL;
	weft__redis_line_init(redis, line, WEFT__REDIS_LEASED);
	weft__redis_link_before(&redis->leased, &line->of_redis);
	redis->leased_count++;
	return line;
}

static void
lease_push(weft_redis *redis, struct weft__redis_command *command)
{
	command->line = NULL;
	command->state = WEFT__REDIS_QUEUED;
	weft__redis_link_before(&redis->blocked, &command->link);
	redis->blocked_count++;
}

static struct weft__redis_command *
lease_pop(weft_redis *redis)
{
	struct weft__redis_command *command = WEFT__REDIS_OF(weft__redis_command, link,
	                                                     redis->blocked.next);

	weft__redis_unlink(&command->link);
	redis->blocked_count--;
	command->state = WEFT__REDIS_NOWHERE;
	return command;
}

void
weft__redis_lease(weft_redis *redis, struct weft__redis_command *command)
{
	struct weft__redis_line *line = find_idle(redis);

	if (!line && redis->leased_count >= leases_max(redis)) {
		lease_push(redis, command);
		return;
	}
	if (!line)
		line = open_line(redis);
	if (line)
		weft__redis_line_submit(line, command);
	else
		weft__redis_end(redis, command, WEFT_ENOMEM, NULL);
}

void
weft__redis_lease_idle(struct weft__redis_line *line)
{
	if (line->redis->blocked_count > 0)
		weft__redis_line_submit(line, lease_pop(line->redis));
}

bool
weft__redis_lease_drop(weft_redis *redis)
{
	struct weft__redis_line *line = find_idle(redis);

	if (line)
		weft__redis_line_close(line, WEFT_ESHUTDOWN);
	return line;
}

void
weft__redis_lease_ended(struct weft__redis_line *line)
{
	weft_redis *redis = line->redis;

	weft__redis_unlink(&line->of_redis);
	redis->leased_count--;
	if (redis->blocked_count > 0 && !redis->closed && redis->leased_count < leases_max(redis))
		weft__redis_lease(redis, lease_pop(redis));
}

void
weft__redis_lease_failed(struct weft__redis_line *line, int error, const char *text)
{
	weft_redis *redis = line->redis;

	while (redis->blocked_count > 0)
		weft__redis_end(redis, lease_pop(redis), error, text);
	weft__redis_line_close(line, error);
}
