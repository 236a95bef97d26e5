/* redis_dedicated.c - dedicated connections for commands that block at the server: one per command,
 * reused by the next.
 *
 * A command that is given up closes its connection, since it could still consume data at the
 * server.  Slots that have nothing to do are kept.
 */
#include "redis_client.h"

static bool
is_idle(const struct weft__redis_conn_slot *slot)
{
	return slot->state == WEFT__REDIS_READY && slot->queued == 0
	       && weft__redis_inflight(slot->conn) == 0;
}

static struct weft__redis_conn_slot *
find_idle(weft_redis *redis)
{
	struct weft__link *at = redis->dedicated.next;

	for (; at != &redis->dedicated; at = at->next) {
		struct weft__redis_conn_slot *slot = WEFT__LINK_OF(weft__redis_conn_slot, of_redis,
		                                                   at);

		if (is_idle(slot))
			return slot;
	}
	return NULL;
}

/* One connection is for ordinary commands, and one for subscriptions if there are any. */
static uint32_t
dedicated_max(const weft_redis *redis)
{
	uint32_t others = 1 + (redis->subscription_slot != NULL);

	return redis->connections_max > others ? redis->connections_max - others : 0;
}

static struct weft__redis_conn_slot *
open_slot(weft_redis *redis)
{
	struct weft__redis_conn_slot *slot = weft_alloc(sizeof(*slot));

	if (!slot)
		return NULL;
	weft__redis_conn_slot_init(redis, slot, WEFT__REDIS_DEDICATED);
	weft__link_before(&redis->dedicated, &slot->of_redis);
	redis->dedicated_count++;
	return slot;
}

static void
dedicated_push(weft_redis *redis, struct weft__redis_command *command)
{
	command->slot = NULL;
	command->state = WEFT__REDIS_QUEUED;
	weft__link_before(&redis->blocked, &command->link);
	redis->blocked_count++;
}

static struct weft__redis_command *
dedicated_pop(weft_redis *redis)
{
	struct weft__redis_command *command = WEFT__LINK_OF(weft__redis_command, link,
	                                                    redis->blocked.next);

	weft__link_remove(&command->link);
	redis->blocked_count--;
	command->state = WEFT__REDIS_NOWHERE;
	return command;
}

void
weft__redis_dedicated_submit(weft_redis *redis, struct weft__redis_command *command)
{
	struct weft__redis_conn_slot *slot = find_idle(redis);

	if (!slot && redis->dedicated_count >= dedicated_max(redis)) {
		dedicated_push(redis, command);
		return;
	}
	if (!slot)
		slot = open_slot(redis);
	if (slot)
		weft__redis_conn_slot_submit(slot, command);
	else
		weft__redis_end(redis, command, WEFT_ENOMEM, NULL);
}

void
weft__redis_dedicated_idle(struct weft__redis_conn_slot *slot)
{
	if (slot->redis->blocked_count > 0)
		weft__redis_conn_slot_submit(slot, dedicated_pop(slot->redis));
}

bool
weft__redis_dedicated_drop(weft_redis *redis)
{
	struct weft__redis_conn_slot *slot = find_idle(redis);

	if (slot)
		weft__redis_conn_slot_close(slot, WEFT_ESHUTDOWN);
	return slot;
}

void
weft__redis_dedicated_ended(struct weft__redis_conn_slot *slot)
{
	weft_redis *redis = slot->redis;

	weft__link_remove(&slot->of_redis);
	redis->dedicated_count--;
	if (redis->blocked_count > 0 && !redis->closed
	    && redis->dedicated_count < dedicated_max(redis))
		weft__redis_dedicated_submit(redis, dedicated_pop(redis));
}

void
weft__redis_dedicated_failed(struct weft__redis_conn_slot *slot, int error, const char *text)
{
	weft_redis *redis = slot->redis;

	while (redis->blocked_count > 0)
		weft__redis_end(redis, dedicated_pop(redis), error, text);
	weft__redis_conn_slot_close(slot, error);
}
