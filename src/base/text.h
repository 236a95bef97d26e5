/* text.h - builds text in a fixed buffer, also in a signal handler.
 *
 * It allocates nothing and calls no library function.  Text that does not fit is cut off, and
 * the buffer always ends with a NUL.
 *
 * Needs: nothing.  Thread: the buffer's owner.
 */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "base/build.h"

struct weft__text {
	char  *buf;
	size_t room; /* size of the buffer, including the NUL */
	size_t size; /* without the NUL */
};

/* Begin an empty text; `room` is at least 1. */
WEFT__SHARED struct weft__text weft__text_begin(char *buf, size_t room);

WEFT__SHARED void weft__text_add(struct weft__text *text, const char *what);
WEFT__SHARED void weft__text_number(struct weft__text *text, int64_t number);
void weft__text_hex(struct weft__text *text, uint64_t number); /* with the prefix 0x */

/* Remove a newline at the end; the code that prints the text adds one. */
void weft__text_end_line(struct weft__text *text);

/* Append a duration in seconds, with milliseconds. */
void weft__text_seconds(struct weft__text *text, uint64_t ns);

#endif
