/* values.h - values of fields that a server has to understand.  Private.
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

/* Write seconds since 1970, of the years 0 to 9999, as a date.
 * Returns 0 or WEFT_EINVAL. */
int weft__http_date_format(int64_t seconds, char out[WEFT__HTTP_DATE_SIZE]);

/* Read a date in any of the three forms that were ever used.  The year of two digits is
 * the last that is not more than 50 years after `now`, in seconds.
 * Returns 0 or WEFT_EINVAL. */
int weft__http_date_parse(const char *value, size_t size, int64_t now, int64_t *out);

/* Whether what was modified at `modified` counts as changed since the date in `value`;
 * true also if that is no date, or one that is yet to come. */
bool weft__http_modified_since(const char *value, size_t size, int64_t modified,
                               int64_t now);

/* --- ranges ----------------------------------------------------------------- */

struct weft__http_range {
	uint64_t first, size; /* size > 0 */
};

/* Read a Range field for a body of `total` bytes into at most `room` ranges, those that
 * have bytes there, in the order given.
 * Returns their count; 0 if the field is to be ignored: it is not of bytes or not well
 * formed; WEFT_ENOENT if no range has bytes there, which is 416; WEFT_EMSGSIZE if there
 * are more than `room`, or more bytes in them than there are. */
int weft__http_range_parse(const char *value, size_t size, uint64_t total,
                           struct weft__http_range *out, int room);

/* --- validators and choices -------------------------------------------------- */

/* Whether a list of entity tags, or "*", has `etag`, which is written with its quotes and
 * perhaps "W/".  The weak comparison is for If-None-Match, the strong one, in which weak
 * tags equal nothing, for If-Match and If-Range.  A list that is not well formed has none. */
bool weft__http_etag_match(const char *value, size_t size, const char *etag, bool weak);

/* How much an Accept-Encoding wants `coding` ("gzip", in lower case): 0 not at all, up to
 * 1,000.  "identity" is wanted unless it is refused. */
int weft__http_accept_weight(const char *value, size_t size, const char *coding);

#endif
