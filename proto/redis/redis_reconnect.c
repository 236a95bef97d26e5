/* redis_reconnect.c - a lost connection: which commands are sent again, and which fail.
 *
 * Commands that are sent again keep their order, and go before the commands in the queue, which
 * are younger.
 */
#include "redis_client.h"

/* Invariant 6 of redis_client.h. */
static bool
may_repeat(const struct weft__redis_conn *conn, const struct weft__redis_pending *pending)
{
	const struct weft__redis_command *command = pending->command;

	return pending->begin >= conn->given
	       || ((command->flags & WEFT__REDIS_READS) && command->tries < WEFT__REDIS_TRIES);
}

static void
end_lost(weft_redis *redis, struct weft__redis_command *command, int error, const char *why)
{
	if (error != WEFT_ESHUTDOWN) {
		(void)weft_fail(WEFT_EPIPE, "%.*s: the connection to %s was lost: %s",
		                (int)command->name.size, (const char *)command->name.data,
		                redis->address, why);
		error = WEFT_EPIPE;
		redis->stats.lost++;
	} else {
		(void)weft_fail(error, "%s", why);
	}
	weft__redis_end(redis, command, error, weft_detail());
}

/* Move the commands that may be sent again from the pending entries to the front of the queue, in
 * their order.  End the others. */
static void
empty_pending(struct weft__redis_conn_slot *slot, struct weft__redis_conn *conn, int error,
              const char *why)
{
	struct weft__link *before = slot->queue.next;

	for (; conn->head < conn->tail; conn->head++) {
		struct weft__redis_pending *pending = weft__redis_pending_at(conn, conn->head);
		struct weft__redis_command *command = pending->command;

		pending->command = NULL;
		if (!command)
			continue;
		command->state = WEFT__REDIS_NOWHERE;
		*pending = (struct weft__redis_pending){ .command = command,
			                                 .begin = pending->begin };
		if (error != WEFT_ESHUTDOWN && may_repeat(conn, pending)) {
			command->tries = (uint8_t)(command->tries + (pending->begin < conn->given));
			weft__redis_queue_push(slot, before, command);
		} else {
			end_lost(slot->redis, command, error, why);
		}
	}
}

/* If a session is lost, the commands that wait for it fail too. */
static void
end_session(struct weft__redis_conn_slot *slot, int error, const char *why)
{
	while (slot->queued > 0)
		end_lost(slot->redis, weft__redis_queue_pop(slot), error, why);
}

void
weft__redis_conn_slot_lost(struct weft__redis_conn_slot *slot, int error)
{
	struct weft__redis_conn *conn = slot->conn;
	weft_redis *redis = slot->redis;
	char why[512];
	size_t size = strnlen(weft_detail(), sizeof(why) - 1);

	memcpy(why, weft_detail(), size);
	why[size] = '\0';
	if (slot->state == WEFT__REDIS_HANDSHAKE) {
		(void)weft_fail(error, "%s: %s", redis->address, why);
		weft__redis_conn_slot_failed(slot, error, weft_detail());
		return;
	}
	empty_pending(slot, conn, error, why);
	weft__redis_conn_detach(conn, true);
	slot->state = WEFT__REDIS_DISCONNECTED;
	if (redis->failures++ > 0)
		redis->retry_ns = weft_after(weft__redis_pause(redis));
	else
		redis->retry_ns = 0; /* at once */
	if (slot->kind == WEFT__REDIS_SHARED)
		weft__redis_cache_clear(redis);
	if (redis->session)
		end_session(slot, error, why);
	if (error == WEFT_ESHUTDOWN)
		weft__redis_queue_end(slot, error, why);
	if (slot->kind == WEFT__REDIS_DEDICATED && slot->queued == 0)
		weft__redis_conn_slot_close(slot, error);
	else if (slot->kind == WEFT__REDIS_SUBSCRIPTIONS && error == WEFT_ESHUTDOWN)
		weft__redis_subscription_failed(redis, error, why);
	else if (slot->queued > 0 || slot->kind == WEFT__REDIS_SUBSCRIPTIONS)
		weft__redis_conn_slot_start(slot);
}

void
weft__redis_conn_slot_close(struct weft__redis_conn_slot *slot, int why)
{
	(void)weft_timer_stop(&slot->timer);
	if (slot->conn) {
		bool busy = weft__redis_inflight(slot->conn) > 0;

		empty_pending(slot, slot->conn, WEFT_ESHUTDOWN, weft_strerror(why));
		weft__redis_conn_detach(slot->conn, busy);
	}
	weft__redis_queue_end(slot, why, weft_strerror(why));
	slot->dead = true;
	if (slot->kind == WEFT__REDIS_DEDICATED)
		weft__redis_dedicated_ended(slot);
	if (slot->state == WEFT__REDIS_CONNECTING) {
		weft_op_cancel(&slot->connect);
		return; /* on_connected() frees the slot */
	}
	slot->state = WEFT__REDIS_DISCONNECTED;
	weft__redis_conn_slot_free(slot);
}
