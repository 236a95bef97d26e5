/* redis_conn.c - one connection: output, sent once per loop iteration; pending entries; its end.
 *
 * Commands are encoded into `out`.  A node that runs at the end of the loop iteration hands
 * `out` to the kernel.  Bytes that the kernel does not accept become `sending`, which an op
 * writes while `out` collects more.  Empty buffers are kept unless they are large.
 */
#include "redis_client.h"
#include <weft/embed.h>
#include <weft/threadlet.h>

#define OUT_KEEP   (256u << 10) /* bytes that an empty buffer may keep */
#define OUT_ENOUGH (16u << 10)  /* bytes that are sent without waiting for more */
#define TURNS_MAX  8            /* loop iterations to wait for more */
#define PENDING    64u          /* initially; a power of 2 */
#define KEEPALIVE  30           /* s; detects a dead peer */

/* --- bytes ------------------------------------------------------------------- */

static void
empty(struct weft__buffer *bytes)
{
	if (bytes->room > OUT_KEEP)
		weft__buffer_free(bytes);
	bytes->size = 0;
}

/* --- the end ----------------------------------------------------------------- */

/* Invariant 8. */
static void
free_if_over(struct weft__redis_conn *conn)
{
	weft_redis *redis = conn->redis;

	if (!conn->gone || conn->write.pending || conn->flush_queued)
		return;
	weft__buffer_free(&conn->out);
	weft__buffer_free(&conn->sending);
	weft__buffer_free(&conn->in);
	weft_release(conn->pending);
	weft_release(conn);
	weft__redis_unref(redis);
}

static void
on_close(void *arg)
{
	struct weft__redis_conn *conn = arg;

	conn->gone = true;
	if (conn->leaving)
		weft__redis_end_early(conn->redis, conn->leaving, conn->leaving_why);
	free_if_over(conn);
}

static void
close_now(void *arg)
{
	weft_stream_close(((struct weft__redis_conn *)arg)->stream);
}

/* In a threadlet weft_stream_close() would suspend, so the call is posted. */
void
weft__redis_conn_detach(struct weft__redis_conn *conn, bool at_once)
{
	conn->slot->conn = NULL;
	conn->slot = NULL;
	conn->redis->connections--;
	conn->closer = (weft_node){ .fn = close_now, .arg = conn };
	if (at_once)
		weft_stream_reset(conn->stream);
	else if (!weft_can_suspend()
	         || weft_loop_post_before_wait(conn->redis->loop, &conn->closer) < 0)
		weft_stream_close(conn->stream);
}

/* --- sending ----------------------------------------------------------------- */

static void schedule_flush(struct weft__redis_conn *conn);

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct weft__redis_conn *conn = arg;

	(void)op;
	if (!conn->slot) {
		free_if_over(conn);
		return;
	}
	if (result < 0) {
		weft__redis_conn_slot_lost(conn->slot, (int)result);
		return;
	}
	empty(&conn->sending);
	if (conn->out.size > 0)
		schedule_flush(conn);
}

/* An op sends what the kernel did not accept.  All of it counts as given. */
static int
send_rest(struct weft__redis_conn *conn, size_t sent)
{
	struct weft__buffer swap = conn->sending;
	int rc;

	conn->sending = conn->out;
	conn->out = swap;
	conn->write_span = (weft_span){ conn->sending.data + sent, conn->sending.size - sent };
	conn->given += conn->write_span.size;
	conn->redis->stats.bytes_out += conn->write_span.size;
	rc = weft_stream_write_op(conn->stream, &conn->write_span, 1, &conn->write, WEFT_NEVER);
	return rc < 0 ? rc : 0;
}

static int
flush(struct weft__redis_conn *conn)
{
	weft_span span = { conn->out.data, conn->out.size };
	ssize_t sent = weft_stream_write_some(conn->stream, &span, 1);

	if (sent < 0)
		return (int)sent;
	conn->given += (uint64_t)sent;
	conn->redis->stats.bytes_out += (uint64_t)sent;
	if ((size_t)sent < span.size)
		return send_rest(conn, (size_t)sent);
	empty(&conn->out);
	return 0;
}

/* Callers that just got their replies are about to run and send more commands.  So the flush is
 * delayed while each loop iteration adds output, for a few iterations and a limited size. */
static bool
waits_for_more(struct weft__redis_conn *conn)
{
	bool grows = conn->put > conn->seen;

	conn->seen = conn->put;
	if (!conn->slot || !grows || conn->out.size > OUT_ENOUGH || conn->turns_waited == TURNS_MAX
	    || weft_loop_next(conn->redis->loop) != WEFT_NOWAIT) {
		conn->turns_waited = 0;
		return false;
	}
	conn->turns_waited++;
	(void)weft_loop_post_before_wait(conn->redis->loop, &conn->flush);
	return true;
}

static void
on_flush(void *arg)
{
	struct weft__redis_conn *conn = arg;
	int rc = 0;

	if (waits_for_more(conn))
		return;
	conn->flush_queued = false;
	if (!conn->slot)
		free_if_over(conn);
	else if (!conn->write.pending && conn->out.size > 0)
		rc = flush(conn);
	if (rc < 0)
		weft__redis_conn_slot_lost(conn->slot, rc);
}

static void
schedule_flush(struct weft__redis_conn *conn)
{
	if (conn->flush_queued || conn->write.pending)
		return;
	conn->flush_queued = true;
	(void)weft_loop_post_before_wait(conn->redis->loop, &conn->flush);
}

/* --- pending entries --------------------------------------------------------- */

static bool
grow_pending(struct weft__redis_conn *conn)
{
	uint32_t room = conn->pending ? (conn->pending_mask + 1) * 2 : PENDING;
	struct weft__redis_pending *pending = weft_alloc(room * sizeof(*pending));

	if (!pending)
		return false;
	for (uint64_t at = conn->head; at < conn->tail; at++)
		pending[at & (room - 1)] = *weft__redis_pending_at(conn, at);
	weft_release(conn->pending);
	conn->pending = pending;
	conn->pending_mask = room - 1;
	return true;
}

struct weft__redis_pending *
weft__redis_conn_put(struct weft__redis_conn *conn, const struct weft__redis_command *command)
{
	size_t size = command->bytes ? command->size
	                             : weft__resp_size(command->args, command->count);
	struct weft__buffer *out = &conn->out;
	struct weft__redis_pending *pending;

	if (conn->tail - conn->head > conn->pending_mask && !grow_pending(conn))
		return NULL;
	if (!weft__buffer_reserve(out, size))
		return NULL;
	if (command->bytes)
		memcpy(out->data + out->size, command->bytes, size);
	else
		(void)weft__resp_put(out->data + out->size, command->args, command->count);
	pending = weft__redis_pending_at(conn, conn->tail++);
	*pending = (struct weft__redis_pending){ .begin = conn->put, .left = command->replies };
	out->size += size;
	conn->put += size;
	schedule_flush(conn);
	return pending;
}

/* --- the beginning ----------------------------------------------------------- */

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct weft__redis_conn *conn = arg;

	if (!conn->slot)
		return;
	if (size == 0)
		weft__redis_conn_slot_lost(conn->slot, weft_fail(WEFT_EPIPE, "the server closed "
		                                                             "the connection"));
	else if (size < 0)
		weft__redis_conn_slot_lost(conn->slot,
		                           weft_fail((int)size, "%s", weft_strerror((int)size)));
	if (size <= 0)
		return;
	conn->redis->stats.bytes_in += (uint64_t)size;
	weft__redis_conn_read(conn, data, (size_t)size);
	if (conn->slot) /* otherwise the stream and its queue are gone */
		(void)weft_stream_skip(stream, (size_t)size);
}

static int
redis_conn_start(struct weft__redis_conn *conn)
{
	static const weft_stream_events events = { .on_data = on_data, .on_close = on_close };
	weft_redis *redis = conn->redis;
	int rc;

	if (!grow_pending(conn) || !weft__buffer_reserve(&conn->out, 1))
		return weft_fail(WEFT_ENOMEM, "weft_redis_*: out of memory");
	(void)weft_op_init(&conn->write, redis->loop, on_written, conn);
	weft_op_set_background(&conn->write, true);
	weft_stream_set_background(conn->stream, true);
	rc = weft_stream_set(conn->stream, "write_max", INT64_MAX);
	(void)weft_stream_set(conn->stream, "keepalive_s", KEEPALIVE);
	if (rc == 0)
		rc = weft_stream_start(conn->stream, redis->loop, &events, conn);
	return rc;
}

/* A stream that was not started calls no on_close, so a failure frees the connection here. */
int
weft__redis_conn_open(struct weft__redis_conn_slot *slot, weft_stream *stream)
{
	struct weft__redis_conn *conn = weft_alloc(sizeof(*conn));
	int rc = WEFT_ENOMEM;

	if (conn) {
		*conn = (struct weft__redis_conn){
			.redis = slot->redis,
			.slot = slot,
			.stream = stream,
			.flush = { .fn = on_flush, .arg = conn },
		};
		rc = redis_conn_start(conn);
	}
	if (rc < 0) {
		weft_stream_reset(stream);
		if (conn) {
			weft__buffer_free(&conn->out);
			weft_release(conn->pending);
			weft_release(conn);
		}
		return rc;
	}
	(void)weft__redis_ref(slot->redis);
	slot->redis->connections++;
	slot->conn = conn;
	return 0;
}
