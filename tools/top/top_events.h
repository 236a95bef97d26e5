/* top_events.h - a parser for server-sent events that accepts bytes as they arrive. */
#ifndef WEFT_TOP_EVENTS_H
#define WEFT_TOP_EVENTS_H

#include <base/base_bytes.h>
#include <stdbool.h>
#include <stddef.h>

#define EVENTS_NAME_MAX ((size_t)63)

/* Called with each complete event.  `name` and `data` are borrowed until the function returns;
 * `data` has `size` bytes and a NUL after them.  A negative return value ends the parsing. */
typedef int (*events_fn)(const char *name, const char *data, size_t size, void *arg);

/* Zero this first; then set `fn` and `arg`. */
struct events {
	events_fn fn;
	void *arg;
	struct bytes line, data; /* the current line and the current event, so far */
	bool has_data, after_return;
	char name[EVENTS_NAME_MAX + 1];
};

/* Parse more bytes.  Returns 0; WEFT_EMSGSIZE if a line or an event exceeds JSON_BYTES_MAX (and
 * a margin of 64 bytes), WEFT_ENOMEM, or the error that `fn` returned. */
int  events_read(struct events *events, const char *bytes, size_t size);
void events_free(struct events *events);

#endif
