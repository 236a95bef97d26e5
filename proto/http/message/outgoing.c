/* outgoing.c - an outgoing message: its head, its body, its end.
 *
 * A body is framed by its length if that is known; otherwise in chunks, or by the end of the
 * connection if the peer speaks HTTP/1.0.  What is written to a message without a body, such as
 * a reply to HEAD, is counted and dropped.
 */
#include "http/message/exchange.h"

#define TYPE_MAX  1024u
#define LINES_PUT 2048u /* bytes of headers for which room is reserved with the first line */

static bool
draining(const struct weft__http_io *io)
{
	return io->draining && __atomic_load_n(io->draining, __ATOMIC_RELAXED);
}

/* Whether no other request can follow on this connection.  A client that still waits for 100
 * Continue may or may not send its body, so it is unknown what the next bytes are.  The next
 * request cannot be found behind a body that was lost either.  A `whole` reply is given in one
 * call, after which the handler reads no more of the body: then a rest of the body that is too
 * large to be read and dropped also hides the next request. */
static bool
is_stuck(const weft_http *http, bool whole)
{
	const struct weft__http_in *in = &http->in;

	if (in->expects || in->lost)
		return true;
	return whole && in->text && !in->over && in->head.framing == WEFT__HTTP_LENGTH
	       && in->body.left + in->ready > WEFT__HTTP_DRAIN;
}

/* Decide how the body of a reply is framed, and whether the connection is closed after it. */
static void
frame_reply(weft_http *http, int status, uint64_t length)
{
	struct weft__http_out *out = &http->out;
	bool empty = status == 204 || status == 304;
	bool whole = length != WEFT__HTTP_UNKNOWN;

	if (length == WEFT__HTTP_UNKNOWN)
		length = out->length;
	out->status = status;
	out->bodyless = empty || status == 101
	                || (http->in.text
	                    && text_is(part_text(http->in.text, http->in.head.method), "HEAD"));
	out->left = length;
	if (empty || status == 101)
		out->framing = WEFT__HTTP_NO_BODY;
	else if (length != WEFT__HTTP_UNKNOWN)
		out->framing = WEFT__HTTP_LENGTH;
	else if (http->in.text && http->in.head.minor >= 1)
		out->framing = WEFT__HTTP_CHUNKED;
	else
		out->framing = WEFT__HTTP_UNTIL_CLOSE;
	if (out->framing == WEFT__HTTP_UNTIL_CLOSE || is_stuck(http, whole)
	    || !(http->in.head.flags & WEFT__HTTP_KEEP_ALIVE) || draining(http->io))
		out->close = true;
}

static char *
put_framing(const weft_http *http, char *at)
{
	const struct weft__http_out *out = &http->out;

	if (out->framing == WEFT__HTTP_LENGTH) {
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("Content-Length: "));
		at = weft__http_put_number(at, out->left);
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
	} else if (out->framing == WEFT__HTTP_CHUNKED) {
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("Transfer-Encoding: chunked\r\n"));
	}
	return at;
}

static char *
put_connection(const weft_http *http, char *at)
{
	if (http->out.status == 101)
		return weft__http_put_text(at, WEFT__HTTP_LITERAL("Connection: Upgrade\r\n"));
	if (http->out.close)
		return weft__http_put_text(at, WEFT__HTTP_LITERAL("Connection: close\r\n"));
	if (http->is_server && http->in.head.minor == 0)
		return weft__http_put_text(at, WEFT__HTTP_LITERAL("Connection: keep-alive\r\n"));
	return at;
}

/* Write the headers that were set, and the end of the head. */
static int
put_lines(weft_http *http, char *at, uint64_t deadline_ns)
{
	struct weft__http_out *out = &http->out;
	struct text lines = { out->lines, out->lines_size };
	weft_span span = { lines.data, lines.size };
	int rc;

	out->lines_size = 0; /* lines added from now on are trailers */
	out->stage = WEFT__HTTP_BEGUN;
	if (lines.size <= LINES_PUT) {
		if (lines.size > 0)
			at = weft__http_put_text(at, lines);
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
		weft__http_io_add(http->io, at);
		return 0;
	}
	weft__http_io_add(http->io, at);
	rc = weft__http_io_send(http->io, &span, 1, false, deadline_ns);
	return rc < 0 ? rc : weft__http_io_put(http->io, "\r\n", 2, deadline_ns);
}

static int
check_begin(const weft_http *http)
{
	if (http->out.stage != WEFT__HTTP_NOT_BEGUN)
		return weft_fail(WEFT_EALREADY, "weft_http_*: the message has already begun");
	return http->io->error;
}

int
weft__http_begin_reply(weft_http *http, int status, const char *type, uint64_t length,
                       uint64_t deadline_ns)
{
	struct text kind = { type, type ? strlen(type) : 0 };
	char number[8], *at;
	int rc = check_begin(http);

	if (rc < 0)
		return rc;
	if (status < 101 || status > 999 || kind.size > TYPE_MAX || !weft__http_is_value(kind))
		return weft_fail(
			WEFT_EINVAL,
			"weft_http_*: the status is not from 101 to 999, or the type is malformed "
			"or longer than 1 KiB");
	frame_reply(http, status, length);
	if (type && http->out.lines_size > 0)
		weft__http_cut_field(http, "content-type");
	at = weft__http_io_room(http->io, 256 + kind.size + LINES_PUT, deadline_ns);
	if (!at)
		return http->io->error;
	at = weft__http_put_text(at, WEFT__HTTP_LITERAL("HTTP/1.1 "));
	at = weft__http_put_text(at, weft__http_phrase(status, number));
	at = weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
	if (!http->out.has_date)
		at = weft__http_put_text(at, weft__http_date_line(http->io->local));
	if (type) {
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("Content-Type: "));
		at = weft__http_put_text(at, kind);
		at = weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
	}
	at = put_framing(http, at);
	at = put_connection(http, at);
	return put_lines(http, at, deadline_ns);
}

int
weft__http_begin_request(weft_http *http, struct text line, uint64_t length, uint64_t deadline_ns)
{
	struct weft__http_out *out = &http->out;
	weft_span span = { line.data, line.size };
	char *at;
	int rc = check_begin(http);

	if (rc < 0)
		return rc;
	if (length == WEFT__HTTP_UNKNOWN)
		length = out->length;
	out->left = length;
	out->framing = length == 0                    ? WEFT__HTTP_NO_BODY
	               : length == WEFT__HTTP_UNKNOWN ? WEFT__HTTP_CHUNKED
	                                              : WEFT__HTTP_LENGTH;
	rc = weft__http_io_send(http->io, &span, 1, false, deadline_ns);
	if (rc < 0)
		return rc;
	at = weft__http_io_room(http->io, 256 + LINES_PUT, deadline_ns);
	if (!at)
		return http->io->error;
	at = put_framing(http, at);
	at = put_connection(http, at);
	return put_lines(http, at, deadline_ns);
}

/* --- the body -------------------------------------------------------------- */

static int
write_chunk(weft_http *http, weft_span body, uint64_t deadline_ns)
{
	char size[20], *at = weft__http_put_hex(size, body.size);
	weft_span spans[3] = { { size, 0 }, body, { "\r\n", 2 } };

	at = weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
	spans[0].size = (size_t)(at - size);
	return weft__http_io_send(http->io, spans, 3, true, deadline_ns);
}

static int
write_piece(weft_http *http, weft_span body, uint64_t deadline_ns)
{
	struct weft__http_out *out = &http->out;

	if (out->framing == WEFT__HTTP_LENGTH) {
		if (body.size > out->left)
			return weft_fail(
				WEFT_EINVAL,
				"weft_http_write: more bytes than Content-Length announces");
		out->left -= body.size;
	}
	if (out->bodyless)
		return 0;
	if (out->framing == WEFT__HTTP_NO_BODY)
		return weft_fail(WEFT_EINVAL, "weft_http_write: this message has no body");
	if (out->framing == WEFT__HTTP_CHUNKED)
		return write_chunk(http, body, deadline_ns);
	return weft__http_io_send(http->io, &body, 1, true, deadline_ns);
}

/* An empty body means: send the buffer. */
static int
write_guarded(weft_http *http, weft_span body, uint64_t deadline_ns)
{
	struct weft__http_guard guard;
	int rc = weft__http_guard_begin(&guard, http->abort);

	if (rc < 0)
		return rc;
	rc = body.size > 0 ? write_piece(http, body, deadline_ns)
	                   : weft__http_io_flush(http->io, deadline_ns);
	weft__http_guard_end(&guard);
	return rc;
}

ssize_t
weft_http_write(weft_http *http, const void *buf, size_t size, uint64_t deadline_ns)
{
	weft_span body = { buf, size };
	int rc = 0;

	if (!http || (!buf && size > 0) || size > INT64_MAX)
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_write: an argument is NULL, or size is too large");
	if (http->out.stage == WEFT__HTTP_NOT_BEGUN && http->is_server)
		rc = weft__http_begin_reply(http, 200, NULL, WEFT__HTTP_UNKNOWN, deadline_ns);
	if (rc < 0)
		return rc;
	if (http->out.cut)
		return weft__http_explain(http, WEFT_EPIPE);
	if (http->out.stage != WEFT__HTTP_BEGUN)
		return weft_fail(WEFT_EALREADY, "weft_http_write: the message is already complete");
	rc = write_guarded(http, body, deadline_ns);
	return rc < 0 ? weft__http_explain(http, rc) : (ssize_t)size;
}

int
weft__http_finish_message(weft_http *http, uint64_t deadline_ns)
{
	struct weft__http_out *out = &http->out;
	weft_span end[3] = { { "0\r\n", 3 }, { out->lines, out->lines_size }, { "\r\n", 2 } };

	if (out->stage != WEFT__HTTP_BEGUN)
		return http->io->error;
	out->stage = WEFT__HTTP_ENDED;
	if (out->bodyless)
		return http->io->error;
	if (out->framing == WEFT__HTTP_LENGTH && out->left > 0) {
		out->close = true;
		return weft_fail(
			WEFT_ETRUNCATED,
			"weft_http_*: fewer bytes were written than Content-Length announced");
	}
	if (out->framing == WEFT__HTTP_CHUNKED)
		return weft__http_io_send(http->io, end, 3, false, deadline_ns);
	return http->io->error;
}
