/* events.c - a parser for server-sent events that accepts bytes as they arrive.
 *
 * A line ends with LF, CR or CR LF; the latter may be split across two reads.  Unknown fields
 * and comments are skipped.  A name that is too long is truncated.
 */
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>
#include "events.h"
#include "json.h"

#define LINE_MAX_BYTES (JSON_BYTES_MAX + 64)

/* Appends bytes and keeps a NUL after them. */
static int
top_events_append(char **to, size_t *size, size_t *room, const char *bytes, size_t more)
{
	size_t needed = *size + more + 1;
	char *grown;

	if (needed > LINE_MAX_BYTES)
		return weft_fail(WEFT_EMSGSIZE, "an event is too large");
	if (needed > *room) {
		size_t twice = needed < 2048 ? 4096 : needed * 2;

		grown = realloc(*to, twice);
		if (!grown)
			return weft_fail(WEFT_ENOMEM, "out of memory");
		*to = grown;
		*room = twice;
	}
	if (more > 0)
		memcpy(*to + *size, bytes, more);
	*size += more;
	(*to)[*size] = '\0';
	return 0;
}

static int
add_data(struct events *events, const char *value, size_t size)
{
	int rc = 0;

	if (events->has_data)
		rc = top_events_append(&events->data, &events->data_size, &events->data_room, "\n",
		                       1);
	events->has_data = true;
	if (rc < 0)
		return rc;
	return top_events_append(&events->data, &events->data_size, &events->data_room, value,
	                         size);
}

static int
end_event(struct events *events)
{
	int rc = 0;

	if (events->has_data)
		rc = events->fn(*events->name ? events->name : "message", events->data,
		                events->data_size, events->arg);
	events->name[0] = '\0';
	events->data_size = 0;
	events->has_data = false;
	return rc;
}

static int
read_field(struct events *events)
{
	char *line = events->line;
	char *colon = memchr(line, ':', events->line_size);
	size_t name = colon ? (size_t)(colon - line) : events->line_size;
	char *value = colon ? colon + 1 : line + name;
	size_t size;

	if (*value == ' ')
		value++;
	size = (size_t)(line + events->line_size - value);
	if (name == 4 && memcmp(line, "data", 4) == 0)
		return add_data(events, value, size);
	if (name == 5 && memcmp(line, "event", 5) == 0) {
		size = size < EVENTS_NAME_MAX ? size : EVENTS_NAME_MAX;
		memcpy(events->name, value, size);
		events->name[size] = '\0';
	}
	return 0;
}

static int
end_line(struct events *events)
{
	int rc = events->line_size == 0 ? end_event(events) : read_field(events);

	events->line_size = 0;
	return rc;
}

/* The number of bytes before the next end of line. */
static size_t
to_line_end(const char *bytes, size_t size)
{
	size_t i = 0;

	while (i < size && bytes[i] != '\n' && bytes[i] != '\r')
		i++;
	return i;
}

int
events_read(struct events *events, const char *bytes, size_t size)
{
	int rc = 0;

	while (size > 0 && rc >= 0) {
		size_t part = to_line_end(bytes, size);

		if (part == 0 && *bytes == '\n' && events->after_return) {
			events->after_return = false; /* the LF of a CR LF */
			bytes++;
			size--;
			continue;
		}
		rc = top_events_append(&events->line, &events->line_size, &events->line_room, bytes,
		                       part);
		events->after_return = part < size && bytes[part] == '\r';
		if (rc == 0 && part < size) {
			rc = end_line(events);
			part++;
		}
		bytes += part;
		size -= part;
	}
	return rc < 0 ? rc : 0;
}

void
events_free(struct events *events)
{
	free(events->line);
	free(events->data);
	events->line = events->data = NULL;
	events->line_size = events->line_room = 0;
	events->data_size = events->data_room = 0;
	events->has_data = events->after_return = false;
	events->name[0] = '\0';
}
