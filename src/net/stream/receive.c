/* receive.c - the receive op, and the delivery of its bytes.
 *
 *   1. A readiness backend receives bytes only while a reader or a callback wants them.
 *      Otherwise the op is throttled, and the bytes stay in the kernel.  io_uring delivers
 *      bytes as they arrive, until the queue is full.
 *   2. If the queue is empty, bytes go to the reader that waits with a buffer.  Bytes that do
 *      not fit, and all others, go to the queue.
 */
#include <errno.h>
#include <string.h>
#include "net/stream/stream.h"

int
weft__receive_state(const weft_stream *stream)
{
	if (stream->in_error)
		return stream->in_error;
	return !(stream->flags & WEFT__STREAM_ENDED);
}

/* While a received descriptor is pending, the bytes behind it can wait. */
static bool
stream_receive_is_wanted(const weft_stream *stream)
{
	return stream->received_fd < 0
	       && (stream->reader || stream->reader_op || (stream->flags & WEFT__STREAM_STARTED));
}

/* Receive only while bytes are wanted.  0, or -ENOMEM. */
static int
throttle(weft_stream *stream)
{
	return weft__op_throttle(&stream->in, !stream_receive_is_wanted(stream));
}

/* The limit of the queue: read_max, or more if the reader needs more. */
static size_t
limit_of(const weft_stream *stream)
{
	return stream->min > stream->read_max ? stream->min : stream->read_max;
}

/* --- readers ------------------------------------------------------------ */

void
weft__reader_end(weft_stream *stream, int64_t result)
{
	struct weft__waiter *reader = stream->reader;
	weft_op *op = stream->reader_op;

	stream->reader = NULL;
	stream->reader_op = NULL;
	stream->into = NULL;
	stream->min = 0;
	if (stream->in.pending) {
		weft__op_set_buffer(&stream->in, NULL, 0);
		if (!stream_receive_is_wanted(stream))
			(void)weft__op_throttle(&stream->in, true);
	}
	if (reader && weft__claim(reader)) {
		stream->in_flight++;
		weft__wake(reader, result);
	}
	if (op)
		(void)weft_op_finish(op, result);
}

void
weft__reader_serve(weft_stream *stream)
{
	int state = weft__receive_state(stream);

	if (!stream->reader && !stream->reader_op)
		return;
	if (stream->in_queue.size >= stream->min && stream->min > 0)
		weft__reader_end(stream, (int64_t)stream->in_queue.size);
	else if (state == 0 && stream->reader_op)
		weft__reader_end(stream, (int64_t)stream->in_queue.size);
	else if (state <= 0)
		weft__reader_end(stream, state);
}

/* --- received bytes ----------------------------------------------------- */

/* Pause receiving.  The end of the op is reported to weft__receive_result(). */
static void
pause_if_full(weft_stream *stream)
{
	if (stream->in_queue.size < limit_of(stream) || !stream->in.pending
	    || (stream->flags & WEFT__STREAM_PAUSED))
		return;
	stream->flags |= WEFT__STREAM_PAUSED;
	weft_op_cancel(&stream->in);
}

/* Give bytes to the reader that waits with a buffer; returns how many it took.  The backend may
 * have received into that buffer already. */
static size_t
pass(weft_stream *stream, const char *bytes, size_t size)
{
	size_t n = size < stream->into_size ? size : stream->into_size;

	if (!stream->into || stream->in_queue.size > 0)
		return 0;
	if (bytes != stream->into)
		memcpy(stream->into, bytes, n);
	weft__reader_end(stream, (int64_t)n);
	return n;
}

static void
stream_receive_take(weft_stream *stream, const char *bytes, size_t size)
{
	size_t n;

	if (stream->flags & WEFT__STREAM_RECEIVES_FDS)
		weft__stream_fd_keep(stream, stream->in_queue.size + size - 1);
	if (stream->tls) {
		weft__secure_take(stream, bytes, size);
		pause_if_full(stream);
		return;
	}
	n = pass(stream, bytes, size);
	if (size > n
	    && weft__queue_add(&stream->in_queue, &weft__net_of(stream->in.loop)->chunks, bytes + n,
	                       size - n)
	               < 0) {
		stream->in_error = WEFT_ENOMEM;
		weft_op_cancel(&stream->in);
	}
	if (stream->received_fd >= 0 && stream->min > stream->in_queue.size)
		weft__stream_fd_drop(stream); /* the reader wants bytes behind the descriptor */
	if (stream->received_fd >= 0 && stream->in.pending)
		(void)weft__op_throttle(&stream->in, true);
	pause_if_full(stream);
}

/* The connection has ended, or failed. */
static void
end_input(weft_stream *stream, int64_t result)
{
	if (weft__receive_state(stream) <= 0)
		return; /* TLS has ended the input before */
	/* The kernel reports a reset only once.  If a write got that report, a result of 0 is
	 * not the end of the stream.  Nor is any result after this side has dropped the peer
	 * (WEFT_ENOBUFS). */
	if (stream->out_error == WEFT_ENOBUFS
	    || (result == 0 && stream->out_error == WEFT_ECONNRESET))
		stream->in_error = stream->out_error;
	else if (result == 0 && stream->tls)
		weft__secure_end(stream);
	else if (result == 0)
		stream->flags |= WEFT__STREAM_ENDED;
	else
		stream->in_error = (int)result;
}

/* The op has ended.  A loop that ends its ops starts no others. */
static void
stream_receive_end(weft_stream *stream, int64_t result)
{
	if (weft__loop_is_ending(stream->in.loop))
		result = stream->in_error = WEFT_ESHUTDOWN;
	if (result > 0 || (result == WEFT_ECANCELED && (stream->flags & WEFT__STREAM_PAUSED))) {
		stream->flags &= ~(uint32_t)WEFT__STREAM_PAUSED;
		weft__receive_more(stream);
		return;
	}
	stream->flags &= ~(uint32_t)WEFT__STREAM_PAUSED;
	end_input(stream, result);
}

bool
weft__receive_result(weft_stream *stream, const weft_op *op, int64_t result)
{
	bool last = !op->more; /* read first: taking bytes may cancel the op */

	if (stream->flags & WEFT__STREAM_CLOSING) {
		if (last)
			(void)weft__close_go_on(stream);
		return false;
	}
	if (result > 0 && weft__receive_state(stream) > 0) /* after an error there would be a gap */
		stream_receive_take(stream, weft_op_data(op), (size_t)result);
	if (last)
		stream_receive_end(stream, result);
	return true;
}

/* --- starting ----------------------------------------------------------- */

static void
have_op(weft_stream *stream)
{
	if (!stream->in.loop)
		(void)weft_op_init(&stream->in, weft__stream_loop(stream), weft__events_on_received,
		                   stream);
}

int
weft__receive_start(weft_stream *stream)
{
	int rc;

	if (stream->in.pending || weft__receive_state(stream) <= 0
	    || stream->in_queue.size >= limit_of(stream)) {
		return stream->in.pending ? throttle(stream) : 0;
	}
	have_op(stream);
	weft_op_set_background(&stream->in, !(stream->flags & WEFT__STREAM_STARTED)
	                                            || (stream->flags & WEFT__STREAM_BACKGROUND));
	rc = weft_op_recv_multi(&stream->in, stream->fd, WEFT_NEVER);
	return rc < 0 ? rc : throttle(stream);
}

/* Receiving resumes for a reader as soon as the queue has room, for callbacks once half of the
 * queue is free. */
static bool
has_room(const weft_stream *stream)
{
	size_t limit = limit_of(stream);

	return stream->in_queue.size
	       < (stream->flags & WEFT__STREAM_STARTED ? limit / 2 + 1 : limit);
}

void
weft__receive_more(weft_stream *stream)
{
	if (stream->in.pending && (stream->flags & WEFT__STREAM_RECEIVES_FDS)) {
		int rc = throttle(stream);

		if (rc < 0)
			stream->in_error = rc;
	}
	if (!stream->in.pending && stream_receive_is_wanted(stream) && has_room(stream)) {
		int rc = weft__receive_start(stream);

		if (rc < 0)
			stream->in_error = rc;
	}
}

int
weft__stream_leave(weft_stream *stream)
{
	stream->in_flight--;
	if (!(stream->flags & WEFT__STREAM_CLOSING))
		return 0;
	(void)weft__close_go_on(stream);
	return weft__fail(WEFT_ESHUTDOWN, "weft_stream_*: the stream was closed during the call");
}

int64_t
weft__receive_now(weft_stream *stream, void *buf, size_t size, bool must)
{
	int64_t n;

	have_op(stream);
	n = weft__op_recv_now(&stream->in, stream->fd, buf, size, must);
	if (n <= 0 && n != -EAGAIN) {
		/* An apparent end may be an error: TLS announces its end, and a write may have
		 * got the report of a reset. */
		end_input(stream, n);
		n = weft__receive_state(stream);
	} else if (n > 0 && !buf) {
		stream_receive_take(stream, weft_op_data(&stream->in), (size_t)n);
	}
	return n;
}

/* --- waiting ------------------------------------------------------------ */

struct reader {
	struct weft__waiter waiter;
	weft_stream *stream;
};

static void
cancel_reader(struct weft__waiter *waiter, int why)
{
	weft__reader_end(((struct reader *)(void *)waiter)->stream, why);
}

int64_t
weft__receive_wait(weft_stream *stream, uint64_t deadline_ns)
{
	struct reader reader = {
		.waiter = { .what = "read", .on = stream->fd, .request_end = cancel_reader },
		.stream = stream
	};
	bool direct = stream->into != NULL;
	int64_t result;

	stream->reader = &reader.waiter;
	if (stream->in.pending) {
		int rc;

		weft__op_set_buffer(&stream->in, stream->into, stream->into_size);
		rc = weft__op_throttle(&stream->in, false);
		if (rc < 0) {
			stream->reader = NULL;
			stream->into = NULL;
			weft__op_set_buffer(&stream->in, NULL, 0);
			return rc;
		}
	}
	result = weft__wait(&reader.waiter, deadline_ns);
	/* Bytes in the caller's buffer count, but the queue must no longer be used. */
	if (weft__stream_leave(stream) < 0 && !(direct && result > 0))
		return WEFT_ESHUTDOWN;
	return result;
}
