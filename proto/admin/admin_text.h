/* admin_text.h - growing texts: JSON, and escaping for HTML and metrics.  Private.
 *
 * An error, no memory or too large, is sticky, and all later output is dropped.  So the writer
 * checks for an error once, at the end.
 */
#ifndef WEFT_ADMIN_TEXT_H
#define WEFT_ADMIN_TEXT_H

#include <weft/base.h>
#include <weft/value.h>
#include "base/proto_buffer.h"

#define WEFT__ADMIN_TEXT_MAX ((size_t)8 << 20)

struct weft__admin_text {
	struct weft__buffer out;
	char                last;  /* last byte written, even if it was sent since */
	int                 error; /* WEFT_ENOMEM, WEFT_EMSGSIZE */
};

void weft__admin_text_fini(struct weft__admin_text *text);
void weft__admin_put(struct weft__admin_text *text, const char *data, size_t size);
void weft__admin_puts(struct weft__admin_text *text, const char *data);
void weft__admin_put_number(struct weft__admin_text *text, uint64_t number);
/* A number in the syntax of JSON and Prometheus, whatever the locale.  With `special` also NaN,
 * +Inf and -Inf; without it these become null, as JSON does not have them. */
void weft__admin_put_double(struct weft__admin_text *text, double number, bool special);
/* Escaped for HTML; and for a label of Prometheus. */
void weft__admin_put_html(struct weft__admin_text *text, const char *data);
void weft__admin_put_label(struct weft__admin_text *text, const char *data);
/* A help line of a metric: bytes that would need an escape become blanks. */
void weft__admin_put_help(struct weft__admin_text *text, const char *data);

/* JSON.  Commas are inserted automatically.  Bytes that are not UTF-8 become U+FFFD. */
void weft__json_open(struct weft__admin_text *text, char bracket);
void weft__json_close(struct weft__admin_text *text, char bracket);
void weft__json_key(struct weft__admin_text *text, const char *key);
void weft__json_text(struct weft__admin_text *text, const char *value);
void weft__json_number(struct weft__admin_text *text, uint64_t value);
void weft__json_signed(struct weft__admin_text *text, int64_t value);
void weft__json_double(struct weft__admin_text *text, double value);
void weft__json_raw(struct weft__admin_text *text, const char *value);

#endif
