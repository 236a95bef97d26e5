/* text.h - text put together in a buffer, also inside a signal handler.
 *
 * It allocates nothing and calls nothing.  What does not fit is left out, and the
 * buffer always ends with a NUL.
 *
 * Needs: nothing.  Thread: that of the buffer.
 */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct weft__text {
	char  *buf;
	size_t room; /* of it, with the NUL */
	size_t size; /* without the NUL */
};

/* Begin an empty text; `room` is at least 1. */
struct weft__text weft__text_begin(char *buf, size_t room);

void weft__text_add(struct weft__text *text, const char *what);
void weft__text_number(struct weft__text *text, int64_t number);
void weft__text_hex(struct weft__text *text, uint64_t number); /* with its 0x */

/* Without the end of its last line, which whoever prints it adds. */
void weft__text_end_line(struct weft__text *text);

/* A time in seconds, with milliseconds. */
void weft__text_seconds(struct weft__text *text, uint64_t ns);

/* Bytes of the character of UTF-8 that begins there; 0: that is none. */
size_t weft__text_character(const char *text);

#endif
