/* line.c - a line: its queue, its connection, what happens when that is lost.
 *
 * It connects when somebody waits for it.  A try that fails ends all who wait, with its
 * error; those who come later wait until the next, which is not made before a pause that
 * grows with each failure.  So a server that is gone costs each caller one error, and
 * nobody hangs.  The pause is over with the first ordinary reply.
 */
#include "client.h"

#define PAUSE_FIRST (10 * WEFT_MS)

void
weft__redis_line_init(weft_redis *redis, struct weft__redis_line *line,
                      enum weft__redis_line_kind kind)
{
	*line = (struct weft__redis_line){ .redis = redis, .kind = kind };
	weft__redis_ring(&line->of_redis);
	weft__redis_ring(&line->queue);
	weft_timer_set_background(&line->timer, true);
}

/* --- the queue --------------------------------------------------------------- */

static struct weft__redis_command *
first_of(struct weft__redis_link *queue)
{
	return WEFT__REDIS_OF(weft__redis_command, link, queue->next);
}

static void
push(struct weft__redis_line *line, struct weft__redis_link *before,
     struct weft__redis_command *command)
{
	command->line = line;
	command->state = WEFT__REDIS_QUEUED;
	weft__redis_link_before(before, &command->link);
	line->queued++;
}

static struct weft__redis_command *
pop(struct weft__redis_line *line)
{
	struct weft__redis_command *command = first_of(&line->queue);

	weft__redis_unlink(&command->link);
	line->queued--;
	command->state = WEFT__REDIS_NOWHERE;
	return command;
}

static void
end_queue(struct weft__redis_line *line, int error, const char *text)
{
	while (line->queued > 0)
		weft__redis_end(line->redis, pop(line), error, text);
}

static uint64_t
room_of(const struct weft__redis_line *line)
{
	return line->kind == WEFT__REDIS_SHARED ? line->redis->inflight_max : 1;
}

static bool
has_room(const struct weft__redis_line *line)
{
	return line->state == WEFT__REDIS_READY
	       && weft__redis_inflight(line->wire) < room_of(line);
}

static void
put(struct weft__redis_line *line, struct weft__redis_command *command)
{
	struct weft__redis_slot *slot = weft__redis_wire_put(line->wire,
	                                                     command);

	if (!slot) {
		weft__redis_end(line->redis, command, WEFT_ENOMEM, NULL);
		return;
	}
	slot->command = command;
	command->line = line;
	command->slot = line->wire->tail - 1;
	command->state = WEFT__REDIS_SENT;
	if (command->tries > 0)
		line->redis->stats.repeated++;
}

void
weft__redis_line_pump(struct weft__redis_line *line)
{
	while (line->queued > 0 && has_room(line))
		put(line, pop(line));
}

void
weft__redis_line_submit(struct weft__redis_line *line,
                        struct weft__redis_command *command)
{
	if (line->queued == 0 && has_room(line)) {
		put(line, command);
		return;
	}
	push(line, &line->queue, command);
	if (line->state == WEFT__REDIS_OFF)
		weft__redis_line_start(line);
}

void
weft__redis_line_answered(struct weft__redis_line *line)
{
	if (line->state != WEFT__REDIS_READY)
		return;
	weft__redis_line_pump(line);
	if (line->kind == WEFT__REDIS_LEASED && line->queued == 0
	    && weft__redis_inflight(line->wire) == 0)
		weft__redis_lease_idle(line);
}

/* --- connecting -------------------------------------------------------------- */

/* Half of it is certain: callers of many endpoints do not come back all at once. */
static uint64_t
pause_of(weft_redis *redis)
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

static void
free_line(struct weft__redis_line *line)
{
	if (line->kind != WEFT__REDIS_SHARED)
		weft_release(line);
}

void
weft__redis_line_failed(struct weft__redis_line *line, int error,
                        const char *text)
{
	char said[512];
	size_t size = strnlen(text, sizeof(said) - 1);

	memcpy(said, text, size); /* it may be of weft_detail() */
	said[size] = '\0';
	(void)weft_timer_stop(&line->timer);
	if (line->wire)
		weft__redis_wire_detach(line->wire, true);
	line->state = WEFT__REDIS_OFF;
	line->redis->failures++;
	line->redis->retry_ns = weft_in(pause_of(line->redis));
	end_queue(line, error, said);
	if (line->kind == WEFT__REDIS_LEASED)
		weft__redis_lease_failed(line, error, said);
	else if (line->kind == WEFT__REDIS_FEEDS)
		weft__redis_feed_failed(line->redis, error, said);
}

static void
on_greet_time(weft_timer *timer, void *arg)
{
	struct weft__redis_line *line = arg;

	(void)timer;
	(void)weft_fail(WEFT_ETIMEDOUT, "%s: no answer to the greeting",
	                line->redis->address);
	weft__redis_line_failed(line, WEFT_ETIMEDOUT, weft_detail());
}

static void
greet(struct weft__redis_line *line)
{
	int rc = weft__redis_wire_open(line, line->connected);

	line->connected = NULL;
	if (rc == 0) {
		line->state = WEFT__REDIS_GREETING;
		rc = weft__redis_greet(line->wire);
	}
	if (rc == 0)
		rc = weft_timer_start(line->redis->loop, &line->timer,
		                      line->greet_by_ns, 0, on_greet_time,
		                      line);
	if (rc < 0)
		weft__redis_line_failed(line, rc, weft_strerror(rc));
}

static void
on_connected(weft_op *op, int64_t result, void *arg)
{
	struct weft__redis_line *line = arg;
	weft_redis *redis = line->redis;

	(void)op;
	if (line->dead || redis->closed) {
		if (result == 0)
			weft_stream_reset(line->connected);
		line->connected = NULL;
		line->state = WEFT__REDIS_OFF;
		free_line(line);
	} else if (result < 0) {
		if (!strstr(weft_detail(), redis->address))
			(void)weft_fail((int)result, "connect %s: %s",
			                redis->address,
			                weft_strerror((int)result));
		weft__redis_line_failed(line, (int)result, weft_detail());
	} else {
		greet(line);
	}
	weft__redis_unref(redis);
}

static void
dial(struct weft__redis_line *line)
{
	weft_redis *redis = line->redis;
	int rc;

	line->greet_by_ns = weft_in(redis->connect_ns);
	(void)weft_op_init(&line->connect, redis->loop, on_connected, line);
	weft_op_set_background(&line->connect, true);
	line->state = WEFT__REDIS_CONNECTING;
	rc = weft_connect_op(redis->address, &redis->connect, &line->connected,
	                     &line->connect, line->greet_by_ns);
	if (rc < 0)
		weft__redis_line_failed(line, rc, weft_detail());
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
weft__redis_line_start(struct weft__redis_line *line)
{
	weft_redis *redis = line->redis;
	int rc;

	if (redis->failures == 0 || redis->retry_ns <= weft_now()) {
		dial(line);
		return;
	}
	rc = weft_timer_start(redis->loop, &line->timer, redis->retry_ns, 0,
	                      on_pause_over, line);
	if (rc < 0)
		weft__redis_line_failed(line, rc, weft_strerror(rc));
	else
		line->state = WEFT__REDIS_PAUSED;
}

void
weft__redis_line_ready(struct weft__redis_line *line)
{
	(void)weft_timer_stop(&line->timer);
	line->state = WEFT__REDIS_READY;
	line->redis->stats.connects++;
	if (line->kind == WEFT__REDIS_FEEDS)
		weft__redis_feed_ready(line->redis);
	else
		weft__redis_line_answered(line);
}

/* --- losing it --------------------------------------------------------------- */

/* Invariant 6. */
static bool
goes_on(const struct weft__redis_wire *wire,
        const struct weft__redis_slot *slot)
{
	const struct weft__redis_command *command = slot->command;

	return slot->begin >= wire->given
	       || ((command->flags & WEFT__REDIS_READS)
	           && command->tries < WEFT__REDIS_TRIES);
}

static void
end_lost(weft_redis *redis, struct weft__redis_command *command, int error,
         const char *why)
{
	if (error != WEFT_ESHUTDOWN) {
		(void)weft_fail(
			WEFT_EPIPE, "%.*s: the connection to %s was lost: %s",
			(int)command->name.size,
			(const char *)command->name.data, redis->address, why);
		error = WEFT_EPIPE;
		redis->stats.lost++;
	} else {
		(void)weft_fail(error, "%s", why);
	}
	weft__redis_end(redis, command, error, weft_detail());
}

/* What was in slots goes on, ahead of what is queued and in its order; or ends. */
static void
empty_slots(struct weft__redis_line *line, struct weft__redis_wire *wire,
            int error, const char *why)
{
	struct weft__redis_link *before = line->queue.next;

	for (; wire->head < wire->tail; wire->head++) {
		struct weft__redis_slot *slot = weft__redis_slot_at(wire,
		                                                    wire->head);
		struct weft__redis_command *command = slot->command;

		slot->command = NULL;
		if (!command)
			continue;
		command->state = WEFT__REDIS_NOWHERE;
		*slot = (struct weft__redis_slot){ .command = command,
			                           .begin = slot->begin };
		if (error != WEFT_ESHUTDOWN && goes_on(wire, slot)) {
			command->tries = (uint8_t)(command->tries
			                           + (slot->begin
			                              < wire->given));
			push(line, before, command);
		} else {
			end_lost(line->redis, command, error, why);
		}
	}
}

/* A session that is lost is lost for those too who wait to use it. */
static void
end_session(struct weft__redis_line *line, int error, const char *why)
{
	while (line->queued > 0)
		end_lost(line->redis, pop(line), error, why);
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
		redis->retry_ns = weft_in(pause_of(redis));
	else
		redis->retry_ns = 0; /* at once */
	if (line->kind == WEFT__REDIS_SHARED)
		weft__redis_cache_clear(redis);
	if (redis->session)
		end_session(line, error, why);
	if (error == WEFT_ESHUTDOWN)
		end_queue(line, error, why);
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

		empty_slots(line, line->wire, WEFT_ESHUTDOWN,
		            weft_strerror(why));
		weft__redis_wire_detach(line->wire, busy);
	}
	end_queue(line, why, weft_strerror(why));
	line->dead = true;
	if (line->kind == WEFT__REDIS_LEASED)
		weft__redis_lease_ended(line);
	if (line->state == WEFT__REDIS_CONNECTING) {
		weft_op_cancel(&line->connect);
		return; /* on_connected() has it now */
	}
	line->state = WEFT__REDIS_OFF;
	free_line(line);
}
