/* write.c - write calls: at once if the kernel accepts the bytes, else through the queue. */
#include <errno.h>
#include "net/stream/stream.h"

struct writer {
	struct weft__waiter waiter;
	struct weft__write write;
};

static void
cancel_writer(struct weft__waiter *waiter, int why)
{
	weft__send_request_cancel(&((struct writer *)(void *)waiter)->write, why);
}

int
weft__send_check(const weft_stream *stream)
{
	if (!stream->out_error)
		return 0;
	if (stream->flags & WEFT__STREAM_SHUT)
		return weft__fail(stream->out_error,
		                  "weft_stream_write: the sending side is already closed");
	if (stream->tls)
		return weft__secure_explain(stream, "weft_stream_write", stream->out_error);
	return weft__stream_explain(stream, "weft_stream_write", stream->out_error);
}

static int
check_spans(const weft_span *spans, size_t count, size_t *size)
{
	size_t all = 0;

	for (size_t i = 0; i < count; i++) {
		if (!spans || (!spans[i].data && spans[i].size > 0))
			return weft__misuse(
				WEFT_EINVAL,
				"weft_stream_write: spans, or the data of a span, is NULL");
		if (__builtin_add_overflow(all, spans[i].size, &all) || all > INT64_MAX)
			return weft__fail(
				WEFT_EINVAL,
				"weft_stream_write: the total size is more than INT64_MAX");
	}
	*size = all;
	return 0;
}

/* A write of what is left after `sent` bytes. */
static struct weft__write
rest_of(const weft_span *spans, size_t count, size_t size, size_t sent)
{
	struct weft__write write = {
		.size = size,
		.left = size - sent,
	};

	for (; count > 0 && sent >= spans->size; spans++, count--)
		sent -= spans->size;
	write.spans = spans;
	write.count = count;
	write.skip = sent;
	return write;
}

int64_t
weft__send_wait(weft_stream *stream, struct weft__write write, uint64_t deadline_ns)
{
	struct writer w = {
		.waiter = { .what = "write", .on = stream->fd, .request_end = cancel_writer },
		.write = write
	};
	int rc = weft__send_queue(stream, &w.write);
	int64_t result;

	if (rc < 0)
		return rc;
	if (w.write.ended) {
		(void)weft__maybe_yield(weft__self());
		return w.write.result;
	}
	w.write.waiter = &w.waiter;
	result = weft__wait(&w.waiter, deadline_ns);
	if (result < 0 && result == stream->out_error)
		(void)weft__send_check(stream);
	(void)weft__stream_leave(stream);
	return result;
}

/* Send what the kernel accepts at once.  Returns the count, or an error with its text. */
static int64_t
send_some(weft_stream *stream, const weft_span *spans, size_t count, bool must)
{
	int64_t sent = weft__send_now(stream, spans, count, must);

	return sent < 0 ? weft__send_check(stream) : sent;
}

ssize_t
weft_stream_write(weft_stream *stream, const void *buf, size_t size, uint64_t deadline_ns)
{
	weft_span span = { buf, size };
	int rc = weft__stream_wait(stream, deadline_ns, "weft_stream_write");
	int64_t sent;

	if (rc == 0)
		rc = check_spans(&span, 1, &size);
	if (rc == 0)
		rc = weft__send_check(stream);
	if (rc < 0)
		return rc;
	sent = send_some(stream, &span, 1, deadline_ns == WEFT_NOWAIT);
	if (sent < 0)
		return sent;
	if ((size_t)sent == size) {
		(void)weft__maybe_yield(weft__self());
		return (ssize_t)size;
	}
	if (deadline_ns == WEFT_NOWAIT)
		return WEFT_ETIMEDOUT;
	return weft__send_wait(stream, rest_of(&span, 1, size, (size_t)sent), deadline_ns);
}

ssize_t
weft_stream_write_some(weft_stream *stream, const weft_span *spans, size_t count)
{
	int rc = weft__stream_use(stream, NULL, "weft_stream_write_some");
	size_t size = 0;

	if (rc == 0)
		rc = check_spans(spans, count, &size);
	if (rc == 0)
		rc = weft__send_check(stream);
	if (rc < 0)
		return rc;
	return send_some(stream, spans, count, true);
}

/* --- ops ---------------------------------------------------------------- */

static void
on_write_cancel(weft_op *op, int why, void *arg)
{
	struct weft__write *write = arg;

	/* The write may have ended, and its memory may belong to another write. */
	if (write->op == op && !write->ended)
		weft__send_request_cancel(write, why);
}

/* Queue the rest of an op's write. */
static void
queue_op(weft_stream *stream, struct weft__write *write, weft_op *op)
{
	int rc = 0;

	write->op = op;
	if (stream->first && stream->queued + write->left > stream->write_max) {
		rc = weft__stream_explain(stream, "weft_stream_write_op", WEFT_ENOBUFS);
		weft__count(&weft__loop_counts(op->loop)->peers_dropped, 1);
		weft__send_fail(stream, WEFT_ENOBUFS);
		(void)weft__sys->shutdown(stream->fd, SHUT_RDWR);
	}
	if (rc == 0) {
		rc = weft__send_queue(stream, write);
		if (rc < 0) /* fail later writes too: they would follow a gap */
			stream->out_error = rc;
	}
	if (rc < 0) {
		weft__write_give(op->loop, write);
		(void)weft_op_finish(op, rc);
	}
}

/* Returns 1 if the writer should wait for on_drain. */
static int
mark_high(weft_stream *stream)
{
	if (stream->queued <= stream->high_water)
		return 0;
	stream->flags |= WEFT__STREAM_HIGH;
	return 1;
}

static int
begin_op(weft_stream *stream, weft_op *op, uint64_t deadline_ns, struct weft__write **out)
{
	int rc = weft__stream_use(stream, op ? op->loop : NULL, "weft_stream_write_op");

	if (rc < 0)
		return rc;
	*out = weft__write_take(weft__stream_loop(stream));
	if (!*out)
		return weft__fail(WEFT_ENOMEM, "weft_stream_write_op: out of memory");
	rc = weft_op_begin(op, on_write_cancel, *out, deadline_ns);
	if (rc < 0)
		weft__write_give(weft__stream_loop(stream), *out);
	else
		stream->flags |= WEFT__STREAM_OPS;
	return rc;
}

/* The first write of an empty queue goes to the kernel at once, also with io_uring.  A ring
 * would send nothing before the loop's next wait.  A program that writes much until then would
 * have its peer dropped at write_max, no matter how fast the peer reads (decision 14). */
static int64_t
send_ahead(weft_stream *stream, const weft_span *spans, size_t count)
{
	bool must = weft__loop_batches(weft__stream_loop(stream));

	return weft__send_now(stream, spans, count, must);
}

int
weft_stream_write_op(weft_stream *stream, const weft_span *spans, size_t count, weft_op *op,
                     uint64_t deadline_ns)
{
	struct weft__write *write;
	size_t size = 0;
	int64_t sent;
	int rc = check_spans(spans, count, &size);

	if (rc == 0)
		rc = begin_op(stream, op, deadline_ns, &write);
	if (rc < 0)
		return rc;
	sent = weft__send_check(stream);
	if (sent == 0)
		sent = send_ahead(stream, spans, count);
	if (sent < 0 || (size_t)sent == size) {
		weft__write_give(op->loop, write);
		(void)weft_op_finish(op, sent);
		return 0;
	}
	*write = rest_of(spans, count, size, (size_t)sent);
	queue_op(stream, write, op);
	return mark_high(stream);
}

/* --- closing the sending side ------------------------------------------- */

int
weft_stream_shutdown(weft_stream *stream, uint64_t deadline_ns)
{
	int rc = weft__stream_wait(stream, deadline_ns, "weft_stream_shutdown");

	if (rc == 0 && (stream->flags & WEFT__STREAM_PLAIN))
		rc = weft__fail(WEFT_EINVAL, "weft_stream_shutdown: the stream is not a socket");
	if (rc == 0)
		rc = weft__send_check(stream);
	if (rc == 0 && deadline_ns == WEFT_NOWAIT && stream->first)
		rc = WEFT_ETIMEDOUT;
	if (rc < 0)
		return rc;
	return (int)weft__send_wait(stream, (struct weft__write){ .kind = WEFT__WRITE_HALF_CLOSE },
	                            deadline_ns);
}
