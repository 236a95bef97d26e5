/* line.c - a line, which is a connection slot: its queue, and connecting.
 *
 * A line connects when a command waits for it.  An attempt that fails ends all waiting commands
 * with its error.  Later commands wait for the next attempt, which is made after a pause that
 * grows with each failure.  So a server that is down costs each caller one error, and no caller
 * hangs.  The first ordinary reply resets the pause.
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

void
weft__redis_queue_push(struct weft__redis_line *line, struct weft__redis_link *before,
                       struct weft__redis_command *command)
{
	command->line = line;
	command->state = WEFT__REDIS_QUEUED;
	weft__redis_link_before(before, &command->link);
	line->queued++;
}

struct weft__redis_command *
weft__redis_queue_pop(struct weft__redis_line *line)
{
	struct weft__redis_command *command = first_of(&line->queue);

	weft__redis_unlink(&command->link);
	line->queued--;
	command->state = WEFT__REDIS_NOWHERE;
	return command;
}

void
weft__redis_queue_end(struct weft__redis_line *line, int error, const char *text)
{
	while (line->queued > 0)
		weft__redis_end(line->redis, weft__redis_queue_pop(line), error, text);
}

static uint64_t
room_of(const struct weft__redis_line *line)
{
	return line->kind == WEFT__REDIS_SHARED ? line->redis->inflight_max : 1;
}

static bool
has_room(const struct weft__redis_line *line)
{
	return line->state == WEFT__REDIS_READY && weft__redis_inflight(line->wire) < room_of(line);
}

static void
line_put(struct weft__redis_line *line, struct weft__redis_command *command)
{
	struct weft__redis_slot *slot = weft__redis_wire_put(line->wire, command);

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
		line_put(line, weft__redis_queue_pop(line));
}

void
weft__redis_line_submit(struct weft__redis_line *line, struct weft__redis_command *command)
{
	if (line->queued == 0 && has_room(line)) {
		line_put(line, command);
		return;
	}
	weft__redis_queue_push(line, &line->queue, command);
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
weft__redis_line_free(struct weft__redis_line *line)
{
	if (line->kind != WEFT__REDIS_SHARED)
		weft_release(line);
}

void
weft__redis_line_failed(struct weft__redis_line *line, int error, const char *text)
{
	char said[512];
	size_t size = strnlen(text, sizeof(said) - 1);

	memcpy(said, text, size); /* `text` may be weft_detail() */
	said[size] = '\0';
	(void)weft_timer_stop(&line->timer);
	if (line->wire)
		weft__redis_wire_detach(line->wire, true);
	line->state = WEFT__REDIS_OFF;
	line->redis->failures++;
	line->redis->retry_ns = weft_after(weft__redis_pause(line->redis));
	weft__redis_queue_end(line, error, said);
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
	(void)weft_fail(WEFT_ETIMEDOUT, "%s: the server did not answer the handshake in time",
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
		rc = weft_timer_start(line->redis->loop, &line->timer, line->greet_by_ns, 0,
		                      on_greet_time, line);
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
		weft__redis_line_free(line);
	} else if (result < 0) {
		if (!strstr(weft_detail(), redis->address))
			(void)weft_fail((int)result, "connect %s: %s", redis->address,
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

	line->greet_by_ns = weft_after(redis->connect_ns);
	(void)weft_op_init(&line->connect, redis->loop, on_connected, line);
	weft_op_set_background(&line->connect, true);
	line->state = WEFT__REDIS_CONNECTING;
	rc = weft_stream_connect_op(redis->address, &redis->connect, &line->connected,
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
	rc = weft_timer_start(redis->loop, &line->timer, redis->retry_ns, 0, on_pause_over, line);
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
