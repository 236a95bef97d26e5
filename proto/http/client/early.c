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

/* Check the statuses of the available heads.  The parser reads these heads again later. */
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

/* Judge the bytes that are available now, once there are `*min`.  Also returns STOP if the
 * connection has ended.  `*min` becomes the number of bytes to wait for, 0 if no more bytes need
 * to be checked. */
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

/* Returns the op's result. */
static int64_t
cancel_and_wait(weft_op *op)
{
	weft_op_cancel(op);
	return weft_op_wait(op, WEFT_NEVER);
}

/* Wait until the write op has finished, or the peer has refused the rest.  A reply that arrives
 * when everything is sent is not a refusal.  The kernel may have taken the last bytes although
 * the write op has not finished yet, so only the result of the op decides.
 * Returns 0, 1 if the peer has refused, or an error. */
static int
wait_both(weft_stream *stream, weft_op *writing, weft_op *reading, uint64_t deadline_ns)
{
	weft_case cases[2] = { { .op = writing }, { .op = reading } };
	size_t min = 1;
	int which;

	for (;;) {
		if (early_check(stream, &min) == STOP)
			return cancel_and_wait(writing) < 0;
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
	if (reading.pending)
		(void)cancel_and_wait(&reading);
	return rc > 0 ? early_refuse(call) : rc;
}
