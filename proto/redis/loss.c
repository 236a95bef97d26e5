/* loss.c - a lost connection: which commands are sent again, and which fail.
 *
 * Commands in pending entries that are sent again keep their order, before the queued ones,
 * which are younger.
 */
#include "client.h"

/* Invariant 6. */
static bool
goes_on(const struct weft__redis_wire *wire, const struct weft__redis_slot *slot)
{
	const struct weft__redis_command *command = slot->command;

	return slot->begin >= wire->given
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

/* Move the commands of the pending entries to the front of the queue, in their order; or end
 * them. */
static void
empty_slots(struct weft__redis_line *line, struct weft__redis_wire *wire, int error,
            const char *why)
{
	struct weft__redis_link *before = line->queue.next;

	for (; wire->head < wire->tail; wire->head++) {
		struct weft__redis_slot *slot = weft__redis_slot_at(wire, wire->head);
		struct weft__redis_command *command = slot->command;

		slot->command = NULL;
		if (!command)
			continue;
		command->state = WEFT__REDIS_NOWHERE;
		*slot = (struct weft__redis_slot){ .command = command, .begin = slot->begin };
		if (error != WEFT_ESHUTDOWN && goes_on(wire, slot)) {
			command->tries = (uint8_t)(command->tries + (slot->begin < wire->given));
			weft__redis_queue_push(line, before, command);
		} else {
			end_lost(line->redis, command, error, why);
		}
	}
}

/* If a session is lost, the commands that wait for it fail too. */
static void
end_session(struct weft__redis_line *line, int error, const char *why)
{
	while (line->queued > 0)
		end_lost(line->redis, weft__redis_queue_pop(line), error, why);
}

void
weft__redis_line_lost(struct weft__redis_line *line, int error)
{
	struct weft__redis_wire *wire = line->wire;
	weft_redis *redis = line->redis;
	char why[512];
	size_t size = strnlen(weft_detail(), sizeof(why) - 1);

	memcpy(why, weft_detail(), size);
	why[size] = '\0';
	if (line->state == WEFT__REDIS_GREETING) {
		(void)weft_fail(error, "%s: %s", redis->address, why);
		weft__redis_line_failed(line, error, weft_detail());
		return;
	}
	empty_slots(line, wire, error, why);
	weft__redis_wire_detach(wire, true);
	line->state = WEFT__REDIS_OFF;
	if (redis->failures++ > 0)
		redis->retry_ns = weft_after(weft__redis_pause(redis));
	else
		redis->retry_ns = 0; /* at once */
	if (line->kind == WEFT__REDIS_SHARED)
		weft__redis_cache_clear(redis);
	if (redis->session)
		end_session(line, error, why);
	if (error == WEFT_ESHUTDOWN)
		weft__redis_queue_end(line, error, why);
	if (line->kind == WEFT__REDIS_LEASED && line->queued == 0)
		weft__redis_line_close(line, error);
	else if (line->kind == WEFT__REDIS_FEEDS && error == WEFT_ESHUTDOWN)
		weft__redis_feed_failed(redis, error, why);
	else if (line->queued > 0 || line->kind == WEFT__REDIS_FEEDS)
		weft__redis_line_start(line);
}

void
weft__redis_line_close(struct weft__redis_line *line, int why)
{
	(void)weft_timer_stop(&line->timer);
	if (line->wire) {
		bool busy = weft__redis_inflight(line->wire) > 0;

		empty_slots(line, line->wire, WEFT_ESHUTDOWN, weft_strerror(why));
		weft__redis_wire_detach(line->wire, busy);
	}
	weft__redis_queue_end(line, why, weft_strerror(why));
	line->dead = true;
	if (line->kind == WEFT__REDIS_LEASED)
		weft__redis_lease_ended(line);
	if (line->state == WEFT__REDIS_CONNECTING) {
		weft_op_cancel(&line->connect);
		return; /* on_connected() frees it */
	}
	line->state = WEFT__REDIS_OFF;
	weft__redis_line_free(line);
}
