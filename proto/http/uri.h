/* uri.h - paths and queries of request targets, decoded.  Private.
 *
 * Decoding happens once, and after the path was split: so an encoded dot is a dot, and
 * what a decoded path says is what a file system would understand.
 */
#ifndef WEFT_HTTP_URI_H
#define WEFT_HTTP_URI_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/base.h>

/* Decode a path, which begins with a slash, and take out its "." and ".." segments; `out`,
 * of `room` bytes, gets the result and a NUL, and on failure anything.  size + 1 is
 * always enough.
 * Returns its length; WEFT_EINVAL for a path above the root, a percent that encodes
 * nothing, and NUL, control bytes, slashes or backslashes that are encoded (a backslash
 * also as it is); WEFT_EMSGSIZE. */
ssize_t weft__http_path_decode(const char *path, size_t size, char *out, size_t room);

/* What is left of a query; not decoded. */
struct weft__http_query {
	const char *data;
	size_t      size;
};

struct weft__http_pair {
	const char *name;
	size_t      name_size;
	const char *value; /* empty also without "=" */
	size_t      value_size;
};

/* Take the next pair from the front of a query; empty ones are skipped.  False at its
 * end. */
bool weft__http_query_next(struct weft__http_query *query, struct weft__http_pair *out);

/* Decode a name or value of a query, in which "+" is a space.
 * Returns its length, WEFT_EINVAL for a NUL or a percent that encodes nothing,
 * WEFT_EMSGSIZE. */
ssize_t weft__http_query_decode(const char *text, size_t size, char *out, size_t room);

#endif
