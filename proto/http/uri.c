/* uri.c - paths and queries, decoded.
 *
 * The decoded path grows at the end of `out` alone: a segment is written, and if it
 * turns out to be "." or ".." it is taken back, with the one before it.  It is never
 * longer than what was read of the path.
 */
#include "uri.h"
#include "inner.h"

/* The byte at *at, decoded; moves behind it.  Negative if a percent encodes nothing. */
static int
decode_byte(const char **at, const char *end)
{
	const char *x = *at;

	if (*x != '%') {
		*at = x + 1;
		return (unsigned char)*x;
	}
	if (end - x < 3 || !byte_is(x[1], BYTE_HEX) || !byte_is(x[2], BYTE_HEX))
		return -1;
	*at = x + 3;
	return (int)(hex_value(x[1]) << 4 | hex_value(x[2]));
}

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
		int byte = decode_byte(at, end);

		if (!path_byte_ok(byte))
			return weft_fail(WEFT_EINVAL, "http: bad byte in a path");
		if (*length + 1 >= room)
			return weft_fail(WEFT_EMSGSIZE, "http: path too long");
		out[(*length)++] = (char)byte;
	}
	return 0;
}

/* How many dots are all of a segment: 1 or 2, else 0. */
static size_t
dots_of(const char *segment, size_t size)
{
	return size <= 2 && memcmp(segment, "..", size) == 0 ? size : 0;
}

/* Of a path that ends with a slash take back the last segment, so that it does again.
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
	bool open = false; /* ends with a slash already, since dots were taken out */

	if (size == 0 || *path != '/')
		return weft_fail(WEFT_EINVAL, "http: path does not begin with a slash");
	while (at < end) {
		int rc;

		if (length + 1 >= room)
			return weft_fail(WEFT_EMSGSIZE, "http: path too long");
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
			return weft_fail(WEFT_EINVAL, "http: path above its root");
	}
	out[length] = '\0';
	return (ssize_t)length;
}

/* Where the first `byte` is, or the end. */
static const char *
find(const char *at, const char *end, char byte)
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
	stop = find(at, end, '&');
	equals = find(at, stop, '=');
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
		int byte = *at == '+' ? (at++, ' ') : decode_byte(&at, end);

		if (byte <= 0)
			return weft_fail(WEFT_EINVAL, "http: bad byte in a query");
		if (length + 1 >= room)
			return weft_fail(WEFT_EMSGSIZE, "http: query too long");
		out[length++] = (char)byte;
	}
	if (room == 0)
		return weft_fail(WEFT_EMSGSIZE, "http: query too long");
	out[length] = '\0';
	return (ssize_t)length;
}
