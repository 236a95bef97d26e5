/* incoming.c - receive the head of a message, and the calls that read from it. */
#include "http/message/exchange.h"
#include "http/parse/uri.h"

/* The head is complete at `data`: copy it and remove it from the queue. */
static int
take_head(weft_http *http, const char *data)
{
	struct weft__http_in *in = &http->in;
	struct weft__http_field *trailers = NULL;
	uint32_t room = 0;

	in->text = weft__http_arena_copy(&http->arena, data, in->head.size);
	if (!in->text)
		return weft_fail(WEFT_ENOMEM, "weft_http_*: out of memory");
	if (in->head.framing == WEFT__HTTP_CHUNKED) {
		room = WEFT__HTTP_TRAILERS;
		trailers = weft__http_arena_take(&http->arena, room * sizeof(*trailers));
		if (!trailers)
			return weft_fail(WEFT_ENOMEM, "weft_http_*: out of memory");
	}
	weft__http_body_init(&in->body, &in->head, trailers, room);
	in->over = in->head.framing == WEFT__HTTP_NO_BODY || in->head.framing == WEFT__HTTP_TUNNEL;
	in->expects = !in->over && (in->head.flags & WEFT__HTTP_CONTINUE);
	return weft_stream_skip(http->io->stream, in->head.size);
}

int
weft__http_receive(weft_http *http, uint64_t deadline_ns)
{
	size_t min = 1;

	for (;;) {
		const void *data;
		ssize_t n = weft__http_io_peek(http->io, min, &data, deadline_ns);
		int rc;

		if (n < 0)
			return (int)n;
		if (n == 0)
			return weft_fail(WEFT_EPIPE, "weft_http_*: the peer closed the connection");
		if ((size_t)n < min)
			return weft_fail(WEFT_ETRUNCATED,
			                 "weft_http_*: the connection ended within the head");
		rc = weft__http_head_parse(&http->in.head, data, (size_t)n);
		if (rc == WEFT__HTTP_DONE)
			return take_head(http, data);
		if (rc < 0)
			return rc;
		min = (size_t)n + 1;
	}
}

int
weft__http_receive_here(weft_http *http)
{
	const void *data;
	ssize_t n = weft_stream_peek(http->io->stream, 0, &data, WEFT_NOWAIT);
	int rc;

	if (n < 0)
		return (int)n;
	rc = weft__http_head_parse(&http->in.head, data, (size_t)n);
	if (rc == WEFT__HTTP_DONE)
		return take_head(http, data);
	return rc < 0 ? rc : WEFT_EAGAIN;
}

/* --- reading the head ------------------------------------------------------ */

/* The byte after a part is a separator that is no longer needed, or the copy's final NUL. */
const char *
weft__http_text(weft_http *http, struct weft__http_part part)
{
	http->in.text[part.at + part.size] = '\0';
	return http->in.text + part.at;
}

bool
weft__http_value(weft_http *http, const char *name, struct text *out)
{
	const struct weft__http_field *field;
	uint32_t index = 0;

	if (!http->in.text)
		return false;
	field = weft__http_field_next(&http->in.head.lines, http->in.text, name, &index);
	if (!field)
		return false;
	*out = part_text(http->in.text, field->value);
	return true;
}

/* Whether the path has nothing to decode.  False also for some paths that decode to themselves. */
static bool
http_incoming_is_plain(struct text path)
{
	for (size_t i = 0; i < path.size; i++) {
		char byte = path.data[i];

		if (byte == '%' || byte == '\\'
		    || (byte == '.' && i > 0 && path.data[i - 1] == '/'))
			return false;
	}
	return path.size > 0;
}

int
weft__http_decode_path(weft_http *http)
{
	struct weft__http_in *in = &http->in;
	struct text path = part_text(in->text, in->head.path);
	char *copy;
	ssize_t rc = 0;

	if (in->path)
		return 0;
	if (in->head.form == WEFT__HTTP_ABSOLUTE && path.size == 0)
		path = WEFT__HTTP_LITERAL("/");
	else if (in->head.form == WEFT__HTTP_ASTERISK || in->head.form == WEFT__HTTP_AUTHORITY)
		path = part_text(in->text, in->head.target);
	copy = weft__http_arena_copy(&http->arena, path.data, path.size);
	if (!copy)
		return weft_fail(WEFT_ENOMEM, "weft_http_*: out of memory");
	in->path_size = (uint32_t)path.size;
	if (path.data[0] == '/' && !http_incoming_is_plain(path)) {
		rc = weft__http_path_decode(path.data, path.size, copy, path.size + 1);
		in->path_size = (uint32_t)rc;
	}
	if (rc < 0)
		return (int)rc;
	in->path = copy;
	return 0;
}

const char *
weft_http_method(weft_http *http)
{
	if (http && !http->is_server)
		return weft__http_request_method(http);
	if (!http || !http->in.text)
		return "";
	return weft__http_text(http, http->in.head.method);
}

const char *
weft_http_path(weft_http *http)
{
	if (!http || !http->in.text || http->in.head.is_response
	    || weft__http_decode_path(http) < 0)
		return "";
	return http->in.path;
}

int
weft_http_status(weft_http *http)
{
	if (!http)
		return 0;
	if (http->is_server)
		return http->out.status;
	return http->in.text ? http->in.head.status : 0;
}

int
weft_http_peer(weft_http *http, weft_addr *out)
{
	if (!http || !out)
		return weft_fail(WEFT_EINVAL, "weft_http_peer: an argument is NULL");
	if (!http->io || !http->io->stream)
		return weft_fail(WEFT_EPIPE, "weft_http_peer: the connection is gone");
	return weft_stream_peer(http->io->stream, out);
}

const char *
weft_http_header(weft_http *http, const char *name)
{
	const struct weft__http_field *field;
	uint32_t index = 0;

	if (!http || !name || !http->in.text)
		return NULL;
	field = weft__http_field_next(&http->in.head.lines, http->in.text, name, &index);
	return field ? weft__http_text(http, field->value) : NULL;
}

static weft_http_field
ended(char *text, const struct weft__http_field *field)
{
	text[field->name.at + field->name.size] = '\0';
	text[field->value.at + field->value.size] = '\0';
	return (weft_http_field){ text + field->name.at, text + field->value.at };
}

bool
weft_http_header_at(weft_http *http, size_t index, weft_http_field *out)
{
	const struct weft__http_in *in;

	if (!http || !out || !http->in.text)
		return false;
	in = &http->in;
	if (index < in->head.lines.count) {
		*out = ended(in->text, &in->head.lines.fields[index]);
		return true;
	}
	index -= in->head.lines.count;
	if (!in->trailers || index >= in->body.trailers.count)
		return false;
	*out = ended(in->trailers, &in->body.trailers.fields[index]);
	return true;
}
