/* text.h - texts that grow: JSON, and what HTML and metrics need.  Private.
 *
 * An error, of memory or size, sticks, and all that follows is dropped: who has written
 * looks once, at the end.
 */
#ifndef WEFT_ADMIN_TEXT_H
#define WEFT_ADMIN_TEXT_H

#include <weft/base.h>
#include <weft/value.h>

#define WEFT__ADMIN_TEXT_MAX ((size_t)8 << 20)

struct weft__admin_text {
	char  *data;
	size_t size, room;
	char   last;  /* byte written, also if it has been sent since */
	int    error; /* WEFT_ENOMEM, WEFT_EMSGSIZE */
};

void weft__admin_text_fini(struct weft__admin_text *text);
void weft__admin_put(struct weft__admin_text *text, const char *data, size_t size);
void weft__admin_puts(struct weft__admin_text *text, const char *data);
void weft__admin_put_number(struct weft__admin_text *text, uint64_t number);
/* As JSON and Prometheus both read it, whatever the locale; with `special` also
 * NaN, +Inf and -Inf, which JSON does not have: then it is null. */
void weft__admin_put_double(struct weft__admin_text *text, double number, bool special);
/* With what means something in HTML, or in a label, escaped. */
void weft__admin_put_html(struct weft__admin_text *text, const char *data);
void weft__admin_put_label(struct weft__admin_text *text, const char *data);
/* A line of help for metrics: what would mean something there is a blank. */
void weft__admin_put_help(struct weft__admin_text *text, const char *data);

/* JSON.  Commas are put where they are due; bytes that are no UTF-8 become U+FFFD. */
void weft__json_open(struct weft__admin_text *text, char bracket);
void weft__json_close(struct weft__admin_text *text, char bracket);
void weft__json_key(struct weft__admin_text *text, const char *key);
void weft__json_text(struct weft__admin_text *text, const char *value);
void weft__json_number(struct weft__admin_text *text, uint64_t value);
void weft__json_signed(struct weft__admin_text *text, int64_t value);
void weft__json_double(struct weft__admin_text *text, double value);
void weft__json_raw(struct weft__admin_text *text, const char *value);

/* The length of the UTF-8 character that begins `data`, which ends with NUL; 0: none. */
size_t weft__admin_utf8(const char *data);

#endif
