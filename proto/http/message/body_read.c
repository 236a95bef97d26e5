/* body_read.c - the incoming body, from the stream's queue.
 *
 *   1. The first `ready` bytes of the queue belong to the body, and the parser has counted
 *      them.  The parser has seen nothing behind them.
 *   2. `over` and `lost` are final: the end of the body was reached, or never will be.
 */
#include "http/message/exchange.h"

static int
lose(weft_http *http, ssize_t error)
{
	http->in.lost = (int)error;
	return (int)error;
}

/* The client waits for 100 Continue before it sends its body.  If bytes of the body are there
 * already, no 100 is needed. */
static int
send_continue(weft_http *http, uint64_t deadline_ns)
{
	http->in.expects = false;
	if (!http->is_server || http->out.stage != WEFT__HTTP_NOT_BEGUN
	    || weft__http_has_more(http->io))
		return 0;
	return weft__http_io_put(http->io, "HTTP/1.1 100 Continue\r\n\r\n",
	                         sizeof("HTTP/1.1 100 Continue\r\n\r\n") - 1, deadline_ns);
}

static int
take_trailers(weft_http *http, const char *data, struct weft__http_step step)
{
	struct weft__http_in *in = &http->in;

	if (in->body.trailers.count > 0) {
		in->trailers = weft__http_arena_copy(&http->arena, data + step.at, step.size);
		if (!in->trailers)
			return lose(http, weft_fail(WEFT_ENOMEM, "weft_http_*: out of memory"));
	}
	in->over = true;
	return weft_stream_skip(http->io->stream, step.used);
}

/* Parse the n bytes that are available.  Returns 1 if some are ready, 0 at the end of the body,
 * 2 if *min bytes have to be available first, or an error. */
static int
body_read_check(weft_http *http, const char *data, size_t n, size_t *min)
{
	struct weft__http_step step;
	int rc = weft__http_body_next(&http->in.body, data, n, &step);

	switch (rc) {
	case WEFT__HTTP_DATA:
		http->in.ready = step.size;
		(void)weft_stream_skip(http->io->stream, step.at);
		return 1;
	case WEFT__HTTP_DONE:
		return take_trailers(http, data, step);
	case WEFT__HTTP_MORE:
		(void)weft_stream_skip(http->io->stream, step.used);
		*min = n - step.used + 1;
		return 2;
	default:
		return lose(http, rc);
	}
}

/* Make bytes ready.  Returns 1, 0 at the end of the body, or an error. */
static int
next_piece(weft_http *http, uint64_t deadline_ns)
{
	struct weft__http_in *in = &http->in;
	size_t min = 1;
	int rc = 2;

	while (rc == 2) {
		const void *data;
		ssize_t n;

		/* The end of the body is known here, without waiting for another byte. */
		if (in->body.left == 0 && in->head.framing == WEFT__HTTP_LENGTH) {
			in->over = true;
			return 0;
		}
		n = weft__http_io_peek_paced(http->io, min, &data, &in->pace, deadline_ns);
		if (n < 0)
			return http->io->slow ? lose(http, n) : (int)n;
		if ((size_t)n < min) {
			rc = weft__http_body_close(&in->body);
			in->over = rc == 0;
			return rc < 0 ? lose(http, rc) : 0;
		}
		rc = body_read_check(http, data, (size_t)n, &min);
	}
	return rc;
}

ssize_t
weft__http_drop_here(weft_http *http)
{
	struct weft__http_in *in = &http->in;
	size_t min = 1;
	int rc = in->over ? 0 : 1;

	if (in->lost)
		return in->lost;
	while (rc == 1) {
		const void *data;
		ssize_t n;

		(void)weft_stream_skip(http->io->stream, in->ready);
		in->ready = 0;
		if (in->body.left == 0 && in->head.framing == WEFT__HTTP_LENGTH) {
			in->over = true;
			return 0;
		}
		n = weft_stream_peek(http->io->stream, 0, &data, WEFT_NOWAIT);
		if (n <= 0)
			return n < 0 ? n : 1;
		rc = body_read_check(http, data, (size_t)n, &min);
	}
	return rc == 2 ? (ssize_t)min : rc;
}

/* Begin to read.  Returns 1 if bytes are ready, 0 if the body was read to its end, or an error. */
static int
body_read_begin(weft_http *http, uint64_t deadline_ns)
{
	if (!http->in.text)
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_read: the reply has not been received yet");
	if (http->in.over)
		return 0;
	if (http->in.lost)
		return weft_fail(http->in.lost,
		                 "weft_http_read: the body cannot be read after an earlier error");
	if (http->in.expects) {
		int rc = send_continue(http, deadline_ns);

		if (rc < 0)
			return rc;
	}
	return http->in.ready > 0 ? 1 : next_piece(http, deadline_ns);
}

static int
begin_guarded(weft_http *http, uint64_t deadline_ns)
{
	struct weft__http_guard guard;
	int rc = weft__http_guard_begin(&guard, http->abort);

	if (rc < 0)
		return rc;
	rc = body_read_begin(http, deadline_ns);
	weft__http_guard_end(&guard);
	return rc;
}

ssize_t
weft_http_read(weft_http *http, void *buf, size_t size, uint64_t deadline_ns)
{
	const void *data;
	ssize_t n;
	int rc;

	if (!http || !buf || size == 0)
		return weft_fail(WEFT_EINVAL, "weft_http_read: an argument is NULL, or size is 0");
	rc = begin_guarded(http, deadline_ns);
	if (rc <= 0)
		return rc < 0 ? weft__http_explain(http, rc) : 0;
	n = weft_stream_peek(http->io->stream, 1, &data, WEFT_NOWAIT);
	if (n < 0)
		return n;
	if ((uint64_t)n > http->in.ready)
		n = (ssize_t)http->in.ready;
	if ((size_t)n > size)
		n = (ssize_t)size;
	memcpy(buf, data, (size_t)n);
	http->in.ready -= (uint64_t)n;
	(void)weft_stream_skip(http->io->stream, (size_t)n);
	if (http->in.ready == 0 && http->in.head.framing == WEFT__HTTP_LENGTH
	    && http->in.body.left == 0)
		http->in.over = true;
	return n;
}

ssize_t
weft_http_read_all(weft_http *http, void *buf, size_t size, uint64_t deadline_ns)
{
	char more;
	size_t got = 0;
	ssize_t n;

	if (!http || (!buf && size > 0))
		return weft_fail(WEFT_EINVAL, "weft_http_read_all: an argument is NULL");
	do {
		bool full = got == size;

		n = weft_http_read(http, full ? &more : (char *)buf + got, full ? 1 : size - got,
		                   deadline_ns);
		if (n > 0 && full)
			return weft_fail(WEFT_EMSGSIZE,
			                 "weft_http_read_all: the body has more than %zu bytes",
			                 size);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	return n < 0 ? n : (ssize_t)got;
}

int
weft__http_drain(weft_http *http, uint64_t max, uint64_t deadline_ns)
{
	for (uint64_t dropped = 0; dropped <= max;) {
		int rc = body_read_begin(http, deadline_ns);

		if (rc <= 0)
			return rc;
		(void)weft_stream_skip(http->io->stream, http->in.ready);
		dropped += http->in.ready;
		http->in.ready = 0;
	}
	return weft_fail(WEFT_EMSGSIZE, "weft_http_*: the unread body is too large to be skipped");
}
