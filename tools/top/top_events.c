/* top_events.c - a parser for server-sent events that accepts bytes as they arrive.
 *
 * A line ends with LF, CR or CR LF; the latter may be split across two reads.  Unknown fields
 * and comments are skipped.  A name that is too long is truncated.
 */
#include <string.h>
#include <weft/base.h>
#include "top_events.h"
#include "json.h"

#define LINE_MAX_BYTES (JSON_BYTES_MAX + 64)

static int
events_append(struct bytes *to, const char *bytes, size_t more)
{
	if (to->size + more >= LINE_MAX_BYTES)
		return weft_fail(WEFT_EMSGSIZE, "an event is too large");
	return bytes_add(to, bytes, more);
}

static int
add_data(struct events *events, const char *value, size_t size)
{
	int rc = events->has_data ? events_append(&events->data, "\n", 1) : 0;

	events->has_data = true;
	return rc < 0 ? rc : events_append(&events->data, value, size);
}

static int
end_event(struct events *events)
{
	int rc = 0;

	if (events->has_data)
		rc = events->fn(*events->name ? events->name : "message", events->data.data,
		                events->data.size, events->arg);
	events->name[0] = '\0';
	events->data.size = 0;
	events->has_data = false;
	return rc;
}

static int
read_field(struct events *events)
{
	char *line = events->line.data;
	char *colon = memchr(line, ':', events->line.size);
	size_t name = colon ? (size_t)(colon - line) : events->line.size;
	char *value = colon ? colon + 1 : line + name;
	size_t size;

	if (*value == ' ')
		value++;
	size = (size_t)(line + events->line.size - value);
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
	int rc = events->line.size == 0 ? end_event(events) : read_field(events);

	events->line.size = 0;
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
		rc = events_append(&events->line, bytes, part);
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
	bytes_free(&events->line);
	bytes_free(&events->data);
	events->has_data = events->after_return = false;
	events->name[0] = '\0';
}
