/* wire.c - one connection: output, sent once per loop iteration; pending entries; its end.
 *
 * Commands are encoded into `out`.  A node that runs at the end of the loop iteration hands
 * `out` to the kernel.  Bytes that the kernel does not accept become `sending`, which an op
 * writes while `out` collects more.  Empty buffers are kept unless they are large.
 */
#include "client.h"
#include <weft/threadlet.h>

#define OUT_FIRST  4096u
#define OUT_KEEP   (256u << 10) /* bytes that an empty buffer may keep */
#define OUT_ENOUGH (16u << 10)  /* bytes that are sent without waiting for more */
#define TURNS_MAX  8            /* loop iterations to wait for more */
#define SLOTS      64u          /* initially; a power of 2 */
#define KEEPALIVE  30           /* s; detects a dead peer */

/* --- bytes ------------------------------------------------------------------- */

bool
weft__redis_bytes_reserve(struct weft__redis_bytes *bytes, size_t more)
{
	size_t room = bytes->room ? bytes->room : OUT_FIRST, need;
	char *data;

	if (__builtin_add_overflow(bytes->size, more, &need) || need > SIZE_MAX / 4)
		return false;
	if (need <= bytes->room)
		return true;
	while (room < need)
		room *= 2;
	data = weft_alloc(room);
	if (!data)
		return false;
	if (bytes->size > 0)
		memcpy(data, bytes->data, bytes->size);
	weft_release(bytes->data);
	bytes->data = data;
	bytes->room = room;
	return true;
}

void
weft__redis_bytes_drop(struct weft__redis_bytes *bytes)
{
	weft_release(bytes->data);
	*bytes = (struct weft__redis_bytes){ 0 };
}

static void
empty(struct weft__redis_bytes *bytes)
{
	if (bytes->room > OUT_KEEP)
		weft__redis_bytes_drop(bytes);
	bytes->size = 0;
}

/* --- the end ----------------------------------------------------------------- */

/* Invariant 8. */
static void
free_if_over(struct weft__redis_wire *wire)
{
	weft_redis *redis = wire->redis;

	if (!wire->gone || wire->write.pending || wire->flush_queued)
		return;
	weft__redis_bytes_drop(&wire->out);
	weft__redis_bytes_drop(&wire->sending);
	weft__redis_bytes_drop(&wire->in);
	weft_release(wire->slots);
	weft_release(wire);
	weft__redis_unref(redis);
}

static void
on_close(void *arg)
{
	struct weft__redis_wire *wire = arg;

	wire->gone = true;
	if (wire->leaving)
		weft__redis_end_early(wire->redis, wire->leaving, wire->leaving_why);
	free_if_over(wire);
}

static void
close_now(void *arg)
{
	weft_stream_close(((struct weft__redis_wire *)arg)->stream);
}

/* In a threadlet weft_stream_close() would suspend, so it is posted. */
void
weft__redis_wire_detach(struct weft__redis_wire *wire, bool at_once)
{
	wire->line->wire = NULL;
	wire->line = NULL;
	wire->redis->wires--;
	wire->closer = (weft_node){ .fn = close_now, .arg = wire };
	if (at_once)
		weft_stream_reset(wire->stream);
	else if (!weft_self() || weft_loop_post_before_wait(wire->redis->loop, &wire->closer) < 0)
		weft_stream_close(wire->stream);
}

/* --- sending ----------------------------------------------------------------- */

static void schedule_flush(struct weft__redis_wire *wire);

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct weft__redis_wire *wire = arg;

	(void)op;
	if (!wire->line) {
		free_if_over(wire);
		return;
	}
	if (result < 0) {
		weft__redis_line_lost(wire->line, (int)result);
		return;
	}
	empty(&wire->sending);
	if (wire->out.size > 0)
		schedule_flush(wire);
}

/* An op sends what the kernel did not accept.  All of it counts as given. */
static int
send_rest(struct weft__redis_wire *wire, size_t sent)
{
	struct weft__redis_bytes swap = wire->sending;
	int rc;

	wire->sending = wire->out;
	wire->out = swap;
	wire->write_span = (weft_span){ wire->sending.data + sent, wire->sending.size - sent };
	wire->given += wire->write_span.size;
	wire->redis->stats.bytes_out += wire->write_span.size;
	rc = weft_stream_write_op(wire->stream, &wire->write_span, 1, &wire->write, WEFT_NEVER);
	return rc < 0 ? rc : 0;
}

static int
flush(struct weft__redis_wire *wire)
{
	weft_span span = { wire->out.data, wire->out.size };
	ssize_t sent = weft_stream_write_some(wire->stream, &span, 1);

	if (sent < 0)
		return (int)sent;
	wire->given += (uint64_t)sent;
	wire->redis->stats.bytes_out += (uint64_t)sent;
	if ((size_t)sent < span.size)
		return send_rest(wire, (size_t)sent);
	empty(&wire->out);
	return 0;
}

/* Callers that just got their replies are about to run and send more commands.  So the flush is
 * delayed while each loop iteration adds output, for a few iterations and a limited size. */
static bool
waits_for_more(struct weft__redis_wire *wire)
{
	bool grows = wire->put > wire->seen;

	wire->seen = wire->put;
	if (!wire->line || !grows || wire->out.size > OUT_ENOUGH || wire->turns_waited == TURNS_MAX
	    || weft_loop_next(wire->redis->loop) != WEFT_NOWAIT) {
		wire->turns_waited = 0;
		return false;
	}
	wire->turns_waited++;
	(void)weft_loop_post_before_wait(wire->redis->loop, &wire->flush);
	return true;
}

static void
on_flush(void *arg)
{
	struct weft__redis_wire *wire = arg;
	int rc = 0;

	if (waits_for_more(wire))
		return;
	wire->flush_queued = false;
	if (!wire->line)
		free_if_over(wire);
	else if (!wire->write.pending && wire->out.size > 0)
		rc = flush(wire);
	if (rc < 0)
		weft__redis_line_lost(wire->line, rc);
}

static void
schedule_flush(struct weft__redis_wire *wire)
{
	if (wire->flush_queued || wire->write.pending)
		return;
	wire->flush_queued = true;
	(void)weft_loop_post_before_wait(wire->redis->loop, &wire->flush);
}

/* --- pending entries --------------------------------------------------------- */

static bool
grow_slots(struct weft__redis_wire *wire)
{
	uint32_t room = wire->slots ? (wire->slot_mask + 1) * 2 : SLOTS;
	struct weft__redis_slot *slots = weft_alloc(room * sizeof(*slots));

	if (!slots)
		return false;
	for (uint64_t at = wire->head; at < wire->tail; at++)
		slots[at & (room - 1)] = *weft__redis_slot_at(wire, at);
	weft_release(wire->slots);
	wire->slots = slots;
	wire->slot_mask = room - 1;
	return true;
}

struct weft__redis_slot *
weft__redis_wire_put(struct weft__redis_wire *wire, const struct weft__redis_command *command)
{
	size_t size = command->bytes ? command->size
	                             : weft__resp_size(command->words, command->count);
	struct weft__redis_bytes *out = &wire->out;
	struct weft__redis_slot *slot;

	if (wire->tail - wire->head > wire->slot_mask && !grow_slots(wire))
		return NULL;
	if (size > out->room - out->size && !weft__redis_bytes_reserve(out, size))
		return NULL;
	if (command->bytes)
		memcpy(out->data + out->size, command->bytes, size);
	else
		(void)weft__resp_put(out->data + out->size, command->words, command->count);
	slot = weft__redis_slot_at(wire, wire->tail++);
	*slot = (struct weft__redis_slot){ .begin = wire->put, .left = command->replies };
	out->size += size;
	wire->put += size;
	schedule_flush(wire);
	return slot;
}

/* --- the beginning ----------------------------------------------------------- */

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct weft__redis_wire *wire = arg;

	if (!wire->line)
		return;
	if (size == 0)
		weft__redis_line_lost(wire->line, weft_fail(WEFT_EPIPE, "the server closed "
		                                                        "the connection"));
	else if (size < 0)
		weft__redis_line_lost(wire->line,
		                      weft_fail((int)size, "%s", weft_strerror((int)size)));
	if (size <= 0)
		return;
	wire->redis->stats.bytes_in += (uint64_t)size;
	weft__redis_wire_read(wire, data, (size_t)size);
	if (wire->line) /* otherwise the stream and its queue are gone */
		(void)weft_stream_skip(stream, (size_t)size);
}

static int
redis_wire_start(struct weft__redis_wire *wire)
{
	static const weft_stream_events events = { .on_data = on_data, .on_close = on_close };
	weft_redis *redis = wire->redis;
	int rc;

	if (!grow_slots(wire) || !weft__redis_bytes_reserve(&wire->out, OUT_FIRST))
		return weft_fail(WEFT_ENOMEM, "no memory for a connection");
	(void)weft_op_init(&wire->write, redis->loop, on_written, wire);
	weft_op_set_background(&wire->write, true);
	weft_stream_set_background(wire->stream, true);
	rc = weft_stream_set(wire->stream, "write_max", INT64_MAX);
	(void)weft_stream_set(wire->stream, "keepalive_s", KEEPALIVE);
	if (rc == 0)
		rc = weft_stream_start(wire->stream, redis->loop, &events, wire);
	return rc;
}

/* A stream that was not started has no on_close. */
int
weft__redis_wire_open(struct weft__redis_line *line, weft_stream *stream)
{
	struct weft__redis_wire *wire = weft_alloc(sizeof(*wire));
	int rc = WEFT_ENOMEM;

	if (wire) {
		*wire = (struct weft__redis_wire){
			.redis = line->redis,
			.line = line,
			.stream = stream,
			.flush = { .fn = on_flush, .arg = wire },
		};
		rc = redis_wire_start(wire);
	}
	if (rc < 0) {
		weft_stream_reset(stream);
		if (wire) {
			weft__redis_bytes_drop(&wire->out);
			weft_release(wire->slots);
			weft_release(wire);
		}
		return rc;
	}
	(void)weft__redis_ref(line->redis);
	line->redis->wires++;
	line->wire = wire;
	return 0;
}
