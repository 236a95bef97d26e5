/* uri.h - decoded paths and queries of request targets.  Private.
 *
 * A path is split into segments before it is decoded, and decoded only once.  Dot segments are
 * recognized after decoding, so "%2e%2e" counts as "..", as it would in a file system.
 */
#ifndef WEFT_HTTP_URI_H
#define WEFT_HTTP_URI_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/base.h>

/* Decode a path, which begins with a slash, and remove its "." and ".." segments.  `out`, of
 * `room` bytes, receives the result and a NUL; size + 1 bytes are always enough.  After a
 * failure its content is undefined.
 * Returns the length; WEFT_EMSGSIZE; or WEFT_EINVAL for a path above the root, a "%" without
 * two hexadecimal digits, an encoded NUL, control byte or slash, and a backslash, encoded or
 * not. */
ssize_t weft__http_path_decode(const char *path, size_t size, char *out, size_t room);

/* The rest of a query, not decoded. */
struct weft__http_query {
	const char *data;
	size_t      size;
};

struct weft__http_pair {
	const char *name;
	size_t      name_size;
	const char *value; /* empty also if there is no "=" */
	size_t      value_size;
};

/* Remove the next pair from the front of a query.  Empty pairs are skipped.  False at the end. */
bool weft__http_query_next(struct weft__http_query *query, struct weft__http_pair *out);

/* Decode a name or value of a query, in which "+" is a space.  Returns its length;
 * WEFT_EMSGSIZE; or WEFT_EINVAL for a NUL or a "%" without two hexadecimal digits. */
ssize_t weft__http_query_decode(const char *text, size_t size, char *out, size_t room);

#endif
