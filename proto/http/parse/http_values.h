/* http_values.h - header values that a server has to parse.  Private.
 *
 * A value is bytes as the parser found them, not ended by NUL.
 */
#ifndef WEFT_HTTP_VALUES_H
#define WEFT_HTTP_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

/* --- dates ------------------------------------------------------------------ */

#define WEFT__HTTP_DATE_SIZE 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" and its NUL */

/* Write a time in seconds since 1970, within the years 0 to 9999, as a date.  Returns 0 or
 * WEFT_EINVAL. */
int weft__http_date_format(int64_t seconds, char out[WEFT__HTTP_DATE_SIZE]);

/* Parse a date in any of the three forms of HTTP.  A year of two digits becomes the latest one
 * that is not more than 50 years after `now`, which is in seconds.  Returns 0 or WEFT_EINVAL. */
int weft__http_date_parse(const char *value, size_t size, int64_t now, int64_t *out);

/* Whether a resource modified at `modified` has changed since the date in `value`.  True also
 * if `value` is not a date or is in the future. */
bool weft__http_modified_since(const char *value, size_t size, int64_t modified,
                               int64_t now);

/* --- ranges ----------------------------------------------------------------- */

struct weft__http_range {
	uint64_t first, size; /* size > 0 */
};

/* Parse a Range header for a body of `total` bytes into at most `room` ranges.  Only ranges
 * that overlap the body are stored, in the order given.  Returns their count; 0 if the header
 * is to be ignored (its unit is not bytes, or it is malformed); WEFT_ENOENT if no range
 * overlaps the body, which is a 416; WEFT_EMSGSIZE if there are more than `room` ranges, or
 * more bytes in them than in the body. */
int weft__http_range_parse(const char *value, size_t size, uint64_t total,
                           struct weft__http_range *out, int room);

/* --- entity tags ------------------------------------------------------------- */

/* Whether a list of entity tags, or "*", contains `etag`, which has its quotes and perhaps
 * "W/".  The weak comparison is for If-None-Match.  The strong comparison, in which weak tags
 * match nothing, is for If-Match and If-Range.  A malformed list contains nothing. */
bool weft__http_etag_match(const char *value, size_t size, const char *etag, bool weak);

#endif
