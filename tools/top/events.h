/* events.h - server-sent events, as their bytes come in. */
#ifndef WEFT_TOP_EVENTS_H
#define WEFT_TOP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#define EVENTS_NAME_MAX ((size_t)63)

/* Is given each whole event: its name, and its data, which ends with a NUL, too; both are
 * borrowed until it returns.  A negative return ends the reading. */
typedef int (*events_fn)(const char *name, const char *data, size_t size, void *arg);

/* Zeroed at first, but for the two that are the caller's. */
struct events {
	events_fn fn;
	void *arg;
	char *line, *data; /* what there is of the present line, and of its event */
	size_t line_size, line_room, data_size, data_room;
	bool has_data, after_return;
	char name[EVENTS_NAME_MAX + 1];
};

/* Read more bytes.  Returns 0; WEFT_EMSGSIZE for an event above JSON_BYTES_MAX, WEFT_ENOMEM, or
 * what `fn` has returned. */
int  events_read(struct events *events, const char *bytes, size_t size);
void events_free(struct events *events);

#endif
