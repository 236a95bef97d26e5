/* uri.c - decode paths and queries.
 *
 * The decoded path only grows at the end of `out`.  Each segment is written first; if it is "."
 * or "..", it is removed again, and for ".." the segment before it too.  The result is never
 * longer than the part of the path that was read.
 */
#include "http/parse/uri.h"
#include <string.h>
#include "base/proto_hex.h"

static bool
path_byte_ok(int byte)
{
	return byte > 0x1f && byte != 0x7f && byte != '/' && byte != '\\';
}

/* Append the segment at *at, up to the next slash. */
static int
add_segment(const char **at, const char *end, char *out, size_t room, size_t *length)
{
	while (*at < end && **at != '/') {
		int byte = weft__percent_next(at, end);

		if (!path_byte_ok(byte))
			return weft_fail(WEFT_EINVAL, "weft_http_*: bad byte in a path");
		if (*length + 1 >= room)
			return weft_fail(WEFT_EMSGSIZE, "weft_http_*: path too long");
		out[(*length)++] = (char)byte;
	}
	return 0;
}

/* The number of dots, 1 or 2, if a segment consists only of dots; else 0. */
static size_t
dots_of(const char *segment, size_t size)
{
	return size <= 2 && memcmp(segment, "..", size) == 0 ? size : 0;
}

/* Remove the last segment of a path that ends with a slash, so that it ends with one again.
 * False at the root. */
static bool
climb(const char *out, size_t *length)
{
	if (*length == 1)
		return false;
	do
		--*length;
	while (out[*length - 1] != '/');
	return true;
}

ssize_t
weft__http_path_decode(const char *path, size_t size, char *out, size_t room)
{
	const char *at = path, *end = path + size;
	size_t length = 0, from, dots;
	bool open = false; /* ends with a slash already, because a dot segment was removed */

	if (size == 0 || *path != '/')
		return weft_fail(WEFT_EINVAL, "weft_http_*: path does not begin with a slash");
	while (at < end) {
		int rc;

		if (length + 1 >= room)
			return weft_fail(WEFT_EMSGSIZE, "weft_http_*: path too long");
		at++;
		if (!open)
			out[length++] = '/';
		from = length;
		rc = add_segment(&at, end, out, room, &length);
		if (rc < 0)
			return rc;
		dots = dots_of(out + from, length - from);
		open = dots > 0;
		length -= dots;
		if (dots == 2 && !climb(out, &length))
			return weft_fail(WEFT_EINVAL, "weft_http_*: the path leads above its root");
	}
	out[length] = '\0';
	return (ssize_t)length;
}

/* The first `byte`, or `end`. */
static const char *
uri_find(const char *at, const char *end, char byte)
{
	const char *found = memchr(at, byte, (size_t)(end - at));

	return found ? found : end;
}

bool
weft__http_query_next(struct weft__http_query *query, struct weft__http_pair *out)
{
	const char *at = query->data, *end = at + query->size, *stop, *equals;

	while (at < end && *at == '&')
		at++;
	if (at == end) {
		query->size = 0;
		return false;
	}
	stop = uri_find(at, end, '&');
	equals = uri_find(at, stop, '=');
	out->name = at;
	out->name_size = (size_t)(equals - at);
	out->value = equals < stop ? equals + 1 : stop;
	out->value_size = (size_t)(stop - out->value);
	query->data = stop;
	query->size = (size_t)(end - stop);
	return true;
}

ssize_t
weft__http_query_decode(const char *text, size_t size, char *out, size_t room)
{
	const char *at = text, *end = text + size;
	size_t length = 0;

	while (at < end) {
		int byte = *at == '+' ? (at++, ' ') : weft__percent_next(&at, end);

		if (byte <= 0)
			return weft_fail(WEFT_EINVAL, "weft_http_*: bad byte in a query");
		if (length + 1 >= room)
			return weft_fail(WEFT_EMSGSIZE, "weft_http_*: query too long");
		out[length++] = (char)byte;
	}
	if (room == 0)
		return weft_fail(WEFT_EMSGSIZE, "weft_http_*: query too long");
	out[length] = '\0';
	return (ssize_t)length;
}
