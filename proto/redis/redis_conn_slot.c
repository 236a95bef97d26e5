/* redis_conn_slot.c - a connection slot: its queue, and connecting.
 *
 * A slot connects when a command waits for it.  An attempt that fails ends all waiting commands
 * with its error.  Later commands wait for the next attempt, which is made after a pause that
 * grows with each failure.  So a server that is down costs each caller one error, and no caller
 * hangs.  The first ordinary reply, or the first confirmed channel, resets the pause.
 */
#include "redis_client.h"

#define PAUSE_FIRST (10 * WEFT_MS)

void
weft__redis_conn_slot_init(weft_redis *redis, struct weft__redis_conn_slot *slot,
                           enum weft__redis_conn_slot_kind kind)
{
	*slot = (struct weft__redis_conn_slot){ .redis = redis, .kind = kind };
	weft__link_init(&slot->of_redis);
	weft__link_init(&slot->queue);
	weft_timer_set_background(&slot->timer, true);
}

/* --- the queue --------------------------------------------------------------- */

static struct weft__redis_command *
first_of(struct weft__link *queue)
{
	return WEFT__LINK_OF(weft__redis_command, link, queue->next);
}

void
weft__redis_queue_push(struct weft__redis_conn_slot *slot, struct weft__link *before,
                       struct weft__redis_command *command)
{
	command->slot = slot;
	command->state = WEFT__REDIS_QUEUED;
	weft__link_before(before, &command->link);
	slot->queued++;
}

struct weft__redis_command *
weft__redis_queue_pop(struct weft__redis_conn_slot *slot)
{
	struct weft__redis_command *command = first_of(&slot->queue);

	weft__link_remove(&command->link);
	slot->queued--;
	command->state = WEFT__REDIS_NOWHERE;
	return command;
}

void
weft__redis_queue_end(struct weft__redis_conn_slot *slot, int error, const char *text)
{
	while (slot->queued > 0)
		weft__redis_end(slot->redis, weft__redis_queue_pop(slot), error, text);
}

static uint64_t
room_of(const struct weft__redis_conn_slot *slot)
{
	return slot->kind == WEFT__REDIS_SHARED ? slot->redis->inflight_max : 1;
}

static bool
has_room(const struct weft__redis_conn_slot *slot)
{
	return slot->state == WEFT__REDIS_READY && weft__redis_inflight(slot->conn) < room_of(slot);
}

static void
conn_slot_put(struct weft__redis_conn_slot *slot, struct weft__redis_command *command)
{
	struct weft__redis_pending *pending = weft__redis_conn_put(slot->conn, command);

	if (!pending) {
		weft__redis_end(slot->redis, command, WEFT_ENOMEM, NULL);
		return;
	}
	pending->command = command;
	command->slot = slot;
	command->pending = slot->conn->tail - 1;
	command->state = WEFT__REDIS_SENT;
	if (command->tries > 0)
		slot->redis->stats.repeated++;
}

void
weft__redis_conn_slot_pump(struct weft__redis_conn_slot *slot)
{
	while (slot->queued > 0 && has_room(slot))
		conn_slot_put(slot, weft__redis_queue_pop(slot));
}

void
weft__redis_conn_slot_submit(struct weft__redis_conn_slot *slot,
                             struct weft__redis_command *command)
{
	if (slot->queued == 0 && has_room(slot)) {
		conn_slot_put(slot, command);
		return;
	}
	weft__redis_queue_push(slot, &slot->queue, command);
	if (slot->state == WEFT__REDIS_DISCONNECTED)
		weft__redis_conn_slot_start(slot);
}

void
weft__redis_conn_slot_answered(struct weft__redis_conn_slot *slot)
{
	if (slot->state != WEFT__REDIS_READY)
		return;
	weft__redis_conn_slot_pump(slot);
	if (slot->kind == WEFT__REDIS_DEDICATED && slot->queued == 0
	    && weft__redis_inflight(slot->conn) == 0)
		weft__redis_dedicated_idle(slot);
}

/* --- connecting -------------------------------------------------------------- */

/* Half of the pause is random, so that many clients do not reconnect all at once. */
uint64_t
weft__redis_pause(weft_redis *redis)
{
	uint64_t pause = PAUSE_FIRST, max = redis->backoff_max_ns;

	for (uint32_t i = 1; i < redis->failures && pause < max; i++)
		pause *= 2;
	if (pause > max)
		pause = max;
	redis->random ^= redis->random << 13;
	redis->random ^= redis->random >> 7;
	redis->random ^= redis->random << 17;
	return pause / 2 + (pause > 1 ? redis->random % (pause / 2) : 0);
}

void
weft__redis_conn_slot_free(struct weft__redis_conn_slot *slot)
{
	if (slot->kind != WEFT__REDIS_SHARED)
		weft_release(slot);
}

void
weft__redis_conn_slot_failed(struct weft__redis_conn_slot *slot, int error, const char *text)
{
	char detail[512];
	size_t size = strnlen(text, sizeof(detail) - 1);

	memcpy(detail, text, size); /* `text` may be weft_detail() */
	detail[size] = '\0';
	(void)weft_timer_stop(&slot->timer);
	if (slot->conn)
		weft__redis_conn_detach(slot->conn, true);
	slot->state = WEFT__REDIS_DISCONNECTED;
	slot->redis->failures++;
	slot->redis->retry_ns = weft_after(weft__redis_pause(slot->redis));
	weft__redis_queue_end(slot, error, detail);
	if (slot->kind == WEFT__REDIS_DEDICATED)
		weft__redis_dedicated_failed(slot, error, detail);
	else if (slot->kind == WEFT__REDIS_SUBSCRIPTIONS)
		weft__redis_subscription_failed(slot->redis, error, detail);
}

static void
on_handshake_time(weft_timer *timer, void *arg)
{
	struct weft__redis_conn_slot *slot = arg;

	(void)timer;
	(void)weft_fail(WEFT_ETIMEDOUT, "%s: the server did not answer the handshake in time",
	                slot->redis->address);
	weft__redis_conn_slot_failed(slot, WEFT_ETIMEDOUT, weft_detail());
}

static void
begin_handshake(struct weft__redis_conn_slot *slot)
{
	int rc = weft__redis_conn_open(slot, slot->connected);

	slot->connected = NULL;
	if (rc == 0) {
		slot->state = WEFT__REDIS_HANDSHAKE;
		rc = weft__redis_handshake_start(slot->conn);
	}
	if (rc == 0)
		rc = weft_timer_start(slot->redis->loop, &slot->timer, slot->handshake_by_ns, 0,
		                      on_handshake_time, slot);
	if (rc < 0)
		weft__redis_conn_slot_failed(slot, rc, weft_strerror(rc));
}

static void
on_connected(weft_op *op, int64_t result, void *arg)
{
	struct weft__redis_conn_slot *slot = arg;
	weft_redis *redis = slot->redis;

	(void)op;
	if (slot->dead || redis->closed) {
		if (result == 0)
			weft_stream_reset(slot->connected);
		slot->connected = NULL;
		slot->state = WEFT__REDIS_DISCONNECTED;
		weft__redis_conn_slot_free(slot);
	} else if (result < 0) {
		if (!strstr(weft_detail(), redis->address))
			(void)weft_fail((int)result, "connect %s: %s", redis->address,
			                weft_strerror((int)result));
		weft__redis_conn_slot_failed(slot, (int)result, weft_detail());
	} else {
		begin_handshake(slot);
	}
	weft__redis_unref(redis);
}

static void
dial(struct weft__redis_conn_slot *slot)
{
	weft_redis *redis = slot->redis;
	int rc;

	slot->handshake_by_ns = weft_after(redis->connect_ns);
	(void)weft_op_init(&slot->connect, redis->loop, on_connected, slot);
	weft_op_set_background(&slot->connect, true);
	slot->state = WEFT__REDIS_CONNECTING;
	rc = weft_stream_connect_op(redis->address, &redis->connect, &slot->connected,
	                            &slot->connect, slot->handshake_by_ns);
	if (rc < 0)
		weft__redis_conn_slot_failed(slot, rc, weft_detail());
	else
		(void)weft__redis_ref(redis);
}

static void
on_pause_over(weft_timer *timer, void *arg)
{
	(void)timer;
	dial(arg);
}

void
weft__redis_conn_slot_start(struct weft__redis_conn_slot *slot)
{
	weft_redis *redis = slot->redis;
	int rc;

	if (redis->failures == 0 || redis->retry_ns <= weft_now()) {
		dial(slot);
		return;
	}
	rc = weft_timer_start(redis->loop, &slot->timer, redis->retry_ns, 0, on_pause_over, slot);
	if (rc < 0)
		weft__redis_conn_slot_failed(slot, rc, weft_strerror(rc));
	else
		slot->state = WEFT__REDIS_PAUSED;
}

void
weft__redis_conn_slot_ready(struct weft__redis_conn_slot *slot)
{
	(void)weft_timer_stop(&slot->timer);
	slot->state = WEFT__REDIS_READY;
	slot->redis->stats.connects++;
	if (slot->kind == WEFT__REDIS_SUBSCRIPTIONS)
		weft__redis_subscription_ready(slot->redis);
	else
		weft__redis_conn_slot_answered(slot);
}
