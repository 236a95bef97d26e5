/* fields.c - outgoing headers: which are allowed, and the lines that hold them.
 *
 * The lines are stored in the form in which they are sent.  No byte that would end a line or
 * the head gets into a line.  A handler's header that frames the message is not stored as a
 * line: it is refused, or (Content-Length) decides the framing.  So no message has two possible
 * ends.
 */
#include "http/message/exchange.h"
#include "http/parse/scan.h"

bool
weft__http_is_value(struct text value)
{
	return weft__http_scan_text(value.data, 0, value.size) == value.size;
}

/* --- lines ----------------------------------------------------------------- */

/* The end of the line that begins at `at`, after its CRLF. */
static char *
line_end(char *at, char *end)
{
	char *lf = memchr(at, '\n', (size_t)(end - at));

	return lf ? lf + 1 : end;
}

/* Find the first line of the name, whose text is ended by NUL.  NULL if there is none. */
static char *
fields_find(struct weft__http_out *out, struct text name)
{
	char *end = out->lines + out->lines_size, *next;

	for (char *at = out->lines; at < end; at = next) {
		next = line_end(at, end);
		if ((size_t)(next - at) > name.size && at[name.size] == ':'
		    && weft__http_same((struct text){ at, name.size }, name.data))
			return at;
	}
	return NULL;
}

/* Remove every line of the name, likewise. */
static void
cut(struct weft__http_out *out, struct text name)
{
	char *at;

	while (out->lines_size && (at = fields_find(out, name))) {
		char *end = out->lines + out->lines_size;
		char *next = line_end(at, end);

		memmove(at, next, (size_t)(end - next));
		out->lines_size -= (uint32_t)(next - at);
	}
}

/* Make room for `size` more bytes.  Returns where; NULL: the reason is in *error. */
static char *
more_room(weft_http *http, size_t size, int *error)
{
	struct weft__http_out *out = &http->out;
	size_t room = 2 * (out->lines_size + size);
	char *lines;

	if (size > WEFT__HTTP_LINES_MAX - out->lines_size) {
		*error = weft_fail(WEFT_EMSGSIZE,
		                   "weft_http_set_header: more than 64 KiB of headers");
		return NULL;
	}
	if (size <= out->lines_room - out->lines_size)
		return out->lines + out->lines_size;
	room = room < 512 ? 512 : room;
	lines = weft__http_arena_take(&http->arena, room);
	if (!lines) {
		*error = weft_fail(WEFT_ENOMEM, "weft_http_*: out of memory");
		return NULL;
	}
	if (out->lines_size)
		memcpy(lines, out->lines, out->lines_size);
	out->lines = lines;
	out->lines_room = (uint32_t)room;
	return lines + out->lines_size;
}

static int
fields_append(weft_http *http, struct text name, struct text value)
{
	int error = 0;
	char *at = more_room(http, name.size + value.size + 4, &error);

	if (!at)
		return error;
	at = weft__http_put_text(at, name);
	at = weft__http_put_text(at, WEFT__HTTP_LITERAL(": "));
	at = weft__http_put_text(at, value);
	at = weft__http_put_text(at, WEFT__HTTP_LITERAL("\r\n"));
	http->out.lines_size = (uint32_t)(at - http->out.lines);
	return 0;
}

int
weft__http_add_lines(weft_http *http, struct text lines)
{
	int error = 0;
	char *at = more_room(http, lines.size, &error);

	if (!at)
		return error;
	memcpy(at, lines.data, lines.size);
	http->out.lines_size += (uint32_t)lines.size;
	return 0;
}

/* --- headers with a special meaning ------------------------------------------ */

static int
set_length(struct weft__http_out *out, const char *value)
{
	uint64_t length = WEFT__HTTP_UNKNOWN;

	if (value
	    && (!weft__http_decimal((struct text){ value, strlen(value) }, &length)
	        || length == WEFT__HTTP_UNKNOWN))
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_set_header: Content-Length is not a number");
	out->length = length;
	return 0;
}

static int
set_connection(struct weft__http_out *out, const char *value)
{
	if (value && !weft__http_same((struct text){ value, strlen(value) }, "close"))
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_set_header: Connection can only be \"close\"");
	out->close = value != NULL;
	return 0;
}

/* Returns 1 if the header is to be stored as a line; 0 if it was handled here; or an error. */
static int
set_special(weft_http *http, struct text name, const char *value)
{
	if (weft__http_same(name, "content-length"))
		return set_length(&http->out, value);
	if (weft__http_same(name, "connection"))
		return set_connection(&http->out, value);
	if (weft__http_same(name, "transfer-encoding") || weft__http_same(name, "upgrade")
	    || weft__http_same(name, "keep-alive"))
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_set_header: %.*s cannot be set; the library manages it",
		                 (int)name.size, name.data);
	if (weft__http_same(name, "date"))
		http->out.has_date = value != NULL;
	return 1;
}

/* Whether there may be a trailer of that name.  Returns 1; 0: the trailer is dropped silently,
 * because the peer speaks HTTP/1.0; or an error. */
static int
check_trailer(const struct weft__http_out *out, struct text name)
{
	if (out->stage == WEFT__HTTP_ENDED)
		return weft_fail(WEFT_EALREADY,
		                 "weft_http_set_header: the message is already complete");
	if (weft__http_not_a_trailer(name))
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_set_header: this header is not allowed as a trailer");
	if (out->framing == WEFT__HTTP_UNTIL_CLOSE)
		return 0;
	if (out->framing != WEFT__HTTP_CHUNKED)
		return weft_fail(WEFT_EINVAL, "weft_http_set_header: trailers need a chunked body");
	return 1;
}

int
weft__http_add_field(weft_http *http, const char *name, const char *value)
{
	struct text n = { name, name ? strlen(name) : 0 };
	struct text v = { value, value ? strlen(value) : 0 };

	if (!weft__http_is_token(n) || !value || !weft__http_is_value(v))
		return weft_fail(WEFT_EINVAL, "weft_http_*: malformed header name or value");
	return fields_append(http, n, v);
}

int
weft_http_set_header(weft_http *http, const char *name, const char *value)
{
	struct text n = { name, name ? strlen(name) : 0 };
	int rc;

	if (!http || !weft__http_is_token(n)
	    || (value && !weft__http_is_value((struct text){ value, strlen(value) })))
		return weft_fail(
			WEFT_EINVAL,
			"weft_http_set_header: http is NULL, or the header name or value is "
			"malformed");
	rc = http->out.stage == WEFT__HTTP_NOT_BEGUN ? set_special(http, n, value)
	                                             : check_trailer(&http->out, n);
	if (rc <= 0)
		return rc;
	if (!weft__http_same(n, "set-cookie") || !value)
		cut(&http->out, n);
	return value ? fields_append(http, n, (struct text){ value, strlen(value) }) : 0;
}

void
weft__http_cut_field(weft_http *http, const char *name)
{
	cut(&http->out, (struct text){ name, strlen(name) });
}

bool
weft__http_has_field(weft_http *http, const char *name)
{
	return http->out.lines_size > 0
	       && fields_find(&http->out, (struct text){ name, strlen(name) });
}

void
weft__http_cut_fields(weft_http *http)
{
	http->out.lines_size = 0;
	http->out.length = WEFT__HTTP_UNKNOWN;
	http->out.has_date = false;
}
