/* early.c - replies that arrive while the body of a request is still being sent.
 *
 * A server may reply before it has read the whole request, and then stop reading: with 413,
 * for example.  So a call that waits to send also inspects incoming bytes.  A status of 300 or
 * above, the end of the connection, or bytes that are not HTTP end the sending.  A 1xx does
 * not, nor does a 2xx, which a server may send early while it continues to read.
 */
#include <weft/select.h>
#include <weft/stream.h>
#include "http/client/http_client.h"

enum seen { NOTHING_YET, GO_ON, STOP };

/* The end of the head that begins at `data`, or NULL if it is incomplete. */
static const char *
after_head(const char *data, const char *end)
{
	while ((data = memchr(data, '\n', (size_t)(end - data)))) {
		data++;
		if (end - data >= 2 && data[0] == '\r' && data[1] == '\n')
			return data + 2;
	}
	return NULL;
}

/* Check the statuses of the available heads.  The parser reads them again later. */
static enum seen
judge(const char *data, size_t size)
{
	const char *end = data + size;

	while (data && end - data >= 12) {
		if (memcmp(data, "HTTP/1.", 7) != 0 || data[8] != ' ')
			return STOP;
		if (data[9] != '1')
			return data[9] == '2' ? GO_ON : STOP;
		data = after_head(data, end);
	}
	return NOTHING_YET;
}

/* The same for the bytes that are available now.  `*min` becomes the number of bytes to wait
 * for, 0 if there is nothing to wait for. */
static enum seen
early_check(weft_stream *stream, size_t *min)
{
	const void *data;
	ssize_t n = weft_stream_peek(stream, *min, &data, WEFT_NOWAIT);
	enum seen seen;

	if (n == WEFT_ETIMEDOUT)
		return NOTHING_YET;
	if (n < (ssize_t)*min)
		return STOP;
	seen = judge(data, (size_t)n);
	*min = seen == NOTHING_YET ? (size_t)n + 1 : 0;
	return seen;
}

static int
early_refuse(struct weft__http_call *call)
{
	call->refused = true;
	return weft_fail(WEFT_EPIPE, "%s", WEFT__HTTP_REFUSED);
}

static void
end_op(weft_op *op)
{
	if (op->pending) {
		weft_op_cancel(op);
		(void)weft_op_wait(op, WEFT_NEVER);
	}
}

/* Whether all bytes are sent, though the write op may not have finished yet. */
static bool
is_sent(weft_stream *stream)
{
	int64_t queued = 1;

	(void)weft_stream_get(stream, "queued", &queued);
	return queued == 0;
}

/* Wait until the write op has finished, or the peer has refused the rest.  A reply that arrives
 * when everything is sent is not a refusal.  early_check() may let the rest be sent, so
 * is_sent() is called after it.
 * Returns 0, 1 if the peer has refused, or an error. */
static int
wait_both(weft_stream *stream, weft_op *writing, weft_op *reading, uint64_t deadline_ns)
{
	weft_case cases[2] = { { .op = writing }, { .op = reading } };
	size_t min = 1;
	int which;

	for (;;) {
		enum seen seen = early_check(stream, &min);

		if (is_sent(stream) && weft_op_wait(writing, deadline_ns) >= 0)
			return 0;
		if (seen == STOP)
			return 1;
		if (min > 0 && weft_stream_peek_op(stream, min, reading, WEFT_NEVER) < 0)
			min = 0;
		cases[1].op = min > 0 ? reading : NULL;
		which = weft_select(cases, 2, deadline_ns);
		if (which < 0)
			return which;
		if (which == 0)
			return cases[0].result < 0 ? (int)cases[0].result : 0;
	}
}

int
weft__http_call_wait(struct weft__http_io *io, weft_op *op, uint64_t deadline_ns)
{
	struct weft__http_call *call = io->owner;
	size_t min = 1;
	weft_op reading;
	int rc;

	if (!op && early_check(io->stream, &min) == STOP)
		return early_refuse(call);
	if (!op)
		return 0;
	(void)weft_op_init(&reading, NULL, NULL, NULL);
	rc = wait_both(io->stream, op, &reading, deadline_ns);
	end_op(&reading);
	return rc > 0 ? early_refuse(call) : rc;
}
