/* read.c - read calls.  Each takes bytes from the queue or, if the queue is empty, may receive
 * into the caller's buffer. */
#include <errno.h>
#include <string.h>
#include "net/stream/stream.h"

static struct weft__chunks *
chunks_of(weft_stream *stream)
{
	return &weft__net_of(weft__stream_loop(stream))->chunks;
}

/* Check whether the caller may read now.  Returns 0 or an error. */
static int
stream_read_begin(weft_stream *stream, uint64_t deadline_ns, const char *call)
{
	int rc = weft__stream_wait(stream, deadline_ns, call);

	if (rc < 0)
		return rc;
	if (stream->reader || stream->reader_op || (stream->flags & WEFT__STREAM_STARTED))
		return weft__fail_in(WEFT_EBUSY, call,
		                     "the stream already has a reader or callbacks");
	return 0;
}

/* Take bytes from the queue. */
static ssize_t
stream_read_take(weft_stream *stream, void *buf, size_t size)
{
	size_t n = weft__queue_take(&stream->in_queue, chunks_of(stream), buf, size);

	weft__stream_fd_skip(stream, n);
	weft__receive_more(stream);
	return (ssize_t)n;
}

/* Return the result of a read, with the error text of a failed connection.  After
 * WEFT_ESHUTDOWN the stream may be gone. */
static int64_t
read_result(const weft_stream *stream, int64_t n)
{
	if (n >= 0 || n == WEFT_ESHUTDOWN || n != stream->in_error)
		return n;
	return stream->tls ? weft__secure_explain(stream, "weft_stream_read", (int)n)
	                   : weft__stream_explain(stream, "weft_stream_read", (int)n);
}

static int64_t
read_past_queue(weft_stream *stream, void *buf, size_t size, uint64_t deadline_ns)
{
	int64_t n = weft__receive_state(stream);

	if (n <= 0)
		return read_result(stream, n);
	n = deadline_ns == WEFT_NOWAIT ? 0 : weft__receive_start(stream);
	if (n < 0)
		return n;
	n = weft__receive_now(stream, buf, size, deadline_ns == WEFT_NOWAIT);
	if (n < 0 && n != -EAGAIN)
		return read_result(stream, n);
	if (n >= 0) {
		(void)weft__maybe_yield(weft__self());
		return n;
	}
	if (deadline_ns == WEFT_NOWAIT)
		return WEFT_ETIMEDOUT;
	stream->into = buf;
	stream->into_size = size;
	return read_result(stream, weft__receive_wait(stream, deadline_ns));
}

/* Let other threadlets run if this one has not suspended for a while. */
static int
stream_maybe_yield(weft_stream *stream)
{
	stream->in_flight++;
	(void)weft__maybe_yield(weft__self());
	return weft__stream_leave(stream);
}

/* Receive more bytes, at once or by waiting.  Returns > 0, 0 at the end, or an error. */
static int64_t
receive_more(weft_stream *stream, size_t min, uint64_t deadline_ns)
{
	int64_t n = weft__receive_state(stream);

	weft__stream_fd_drop(stream); /* the wanted bytes are behind that descriptor */
	if (n > 0) {
		n = deadline_ns == WEFT_NOWAIT ? 0 : weft__receive_start(stream);
		n = n < 0 ? n : weft__receive_now(stream, NULL, 0, deadline_ns == WEFT_NOWAIT);
	}
	if (n != -EAGAIN)
		return n;
	if (deadline_ns == WEFT_NOWAIT)
		return WEFT_ETIMEDOUT;
	stream->min = min;
	return weft__receive_wait(stream, deadline_ns);
}

/* Wait until the queue holds `min` bytes.  Returns 1, 0 if the stream ends before, or an error.
 * After WEFT_ESHUTDOWN the stream may be gone. */
static int
gather(weft_stream *stream, size_t min, uint64_t deadline_ns)
{
	int64_t n = stream_maybe_yield(stream);

	if (n < 0)
		return (int)n;
	while (stream->in_queue.size < min) {
		stream->min = min; /* may be more than read_max */
		n = receive_more(stream, min, deadline_ns);
		if (n == WEFT_ESHUTDOWN)
			return WEFT_ESHUTDOWN;
		stream->min = 0;
		if (n <= 0 && stream->in_queue.size < min)
			return (int)read_result(stream, n);
	}
	return 1;
}

ssize_t
weft_stream_read(weft_stream *stream, void *buf, size_t size, uint64_t deadline_ns)
{
	int rc = stream_read_begin(stream, deadline_ns, "weft_stream_read");

	if (rc < 0)
		return rc;
	if (!buf || size == 0)
		return weft__misuse(WEFT_EINVAL, "weft_stream_read: buf is NULL or size is 0");
	if (stream->in_queue.size == 0 && !stream->tls
	    && !(stream->flags & WEFT__STREAM_RECEIVES_FDS))
		return read_past_queue(stream, buf, size, deadline_ns);
	rc = gather(stream, 1, deadline_ns);
	return rc <= 0 ? rc : stream_read_take(stream, buf, size);
}

ssize_t
weft_stream_read_exact(weft_stream *stream, void *buf, size_t size, uint64_t deadline_ns)
{
	int rc = stream_read_begin(stream, deadline_ns, "weft_stream_read_exact");

	if (rc < 0)
		return rc;
	if (!buf && size > 0)
		return weft__misuse(WEFT_EINVAL, "weft_stream_read_exact: buf is NULL");
	if (size > INT32_MAX)
		return weft__fail(WEFT_EMSGSIZE, "weft_stream_read_exact: size is more than 2 GiB");
	rc = gather(stream, size, deadline_ns);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return weft__fail(
			WEFT_EOF,
			"weft_stream_read_exact: the stream ended before all bytes arrived");
	return stream_read_take(stream, buf, size);
}

/* Search the first `max` bytes of the queue for `delimiter`, starting at `*seen`, which is set for
 * the next search.  Returns the length up to the end of the delimiter, or 0 if there is none. */
static size_t
stream_read_find(weft_stream *stream, const char *delimiter, size_t max, size_t *seen)
{
	size_t length = strlen(delimiter), size = stream->in_queue.size;
	int64_t at = weft__queue_find(&stream->in_queue, delimiter, length, *seen,
	                              size < max ? size : max);

	*seen = size < length ? 0 : size - length + 1;
	return at < 0 ? 0 : (size_t)at + length;
}

ssize_t
weft_stream_read_until(weft_stream *stream, const char *delimiter, void *buf, size_t max,
                       uint64_t deadline_ns)
{
	size_t seen = 0, size;
	int rc = stream_read_begin(stream, deadline_ns, "weft_stream_read_until");

	if (rc < 0)
		return rc;
	if (!buf || !delimiter || !*delimiter)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_stream_read_until: buf is NULL, or the delimiter is NULL or empty");
	while ((size = stream_read_find(stream, delimiter, max, &seen)) == 0) {
		if (stream->in_queue.size >= max)
			return weft__fail(
				WEFT_EMSGSIZE,
				"weft_stream_read_until: the delimiter is not within max bytes");
		rc = gather(stream, stream->in_queue.size + 1, deadline_ns);
		if (rc < 0)
			return rc;
		if (rc == 0 && stream->in_queue.size > 0)
			return weft__fail(
				WEFT_EOF,
				"weft_stream_read_until: the stream ended before a delimiter");
		if (rc == 0)
			return 0;
	}
	return stream_read_take(stream, buf, size);
}

/* --- peeking ------------------------------------------------------------ */

static int
check_min(const weft_stream *stream, size_t min)
{
	return min > stream->read_max
	               ? weft__fail(WEFT_EMSGSIZE, "weft_stream_peek: min is larger than the "
	                                           "stream's read_max")
	               : 0;
}

ssize_t
weft_stream_peek(weft_stream *stream, size_t min, const void **out, uint64_t deadline_ns)
{
	int rc = stream_read_begin(stream, deadline_ns, "weft_stream_peek");
	size_t size;

	if (rc == 0 && !out)
		rc = weft__misuse(WEFT_EINVAL, "weft_stream_peek: out is NULL");
	if (rc == 0)
		rc = check_min(stream, min);
	if (rc == 0)
		rc = gather(stream, min, deadline_ns);
	if (rc < 0)
		return rc;
	size = stream->in_queue.size;
	if (!weft__queue_join(&stream->in_queue, chunks_of(stream), min < size ? min : size))
		return weft__fail(WEFT_ENOMEM, "weft_stream_peek: out of memory");
	return (ssize_t)weft__queue_piece(&stream->in_queue, out);
}

static void
on_peek_cancel(weft_op *op, int why, void *arg)
{
	weft_stream *stream = arg;

	if (stream->reader_op == op)
		weft__reader_end(stream, why);
}

/* The immediate result of a peek op, or -EAGAIN. */
static int64_t
peek_at_once(weft_stream *stream, size_t min)
{
	int state = weft__receive_state(stream);

	if (stream->in_queue.size >= min)
		return (int64_t)stream->in_queue.size;
	return state > 0 ? -EAGAIN : state < 0 ? state : (int64_t)stream->in_queue.size;
}

int
weft_stream_peek_op(weft_stream *stream, size_t min, weft_op *op, uint64_t deadline_ns)
{
	int64_t result;
	int rc = weft__stream_use(stream, op ? op->loop : NULL, "weft_stream_peek_op");

	if (rc == 0)
		rc = check_min(stream, min);
	if (rc == 0
	    && (stream->reader || stream->reader_op || (stream->flags & WEFT__STREAM_STARTED)))
		rc = weft__fail(
			WEFT_EBUSY,
			"weft_stream_peek_op: the stream already has a reader or callbacks");
	if (rc == 0)
		rc = weft_op_begin(op, on_peek_cancel, stream, deadline_ns);
	if (rc < 0)
		return rc;
	stream->flags |= WEFT__STREAM_OPS;
	result = weft__stream_take_interrupt(stream) ? WEFT_EINTR : peek_at_once(stream, min);
	if (result == -EAGAIN) {
		weft__stream_fd_drop(stream);
		stream->min = min;
		stream->reader_op = op;
		rc = weft__receive_start(stream);
		if (rc < 0)
			weft__reader_end(stream, rc);
	} else {
		(void)weft_op_finish(op, result);
	}
	return 0;
}

int
weft_stream_skip(weft_stream *stream, size_t size)
{
	int rc = weft__stream_use(stream, NULL, "weft_stream_skip");

	if (rc < 0)
		return rc;
	if (size > stream->in_queue.size)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_stream_skip: size is more than the queue holds");
	weft__queue_skip(&stream->in_queue, chunks_of(stream), size);
	weft__stream_fd_skip(stream, size);
	weft__receive_more(stream);
	weft__events_again(stream);
	return 0;
}
