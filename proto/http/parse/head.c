/* head.c - parse a head line by line.
 *
 * A scan (scan.h) finds the byte that ends the current line.  It also stops at bytes that no
 * line may contain: NUL and the other control bytes, CR without LF, LF without CR.  When more
 * bytes arrive, the scan continues where it stopped, so each byte is scanned once.  A complete
 * line is then parsed.
 *
 *   1. lines.line <= lines.at <= the bytes that have arrived, and <= the limit.
 *   2. data[lines.line..lines.at) has no byte that ends a line.
 *   3. A function that stops because bytes are missing leaves lines.at where the scan has to
 *      continue: at the CR if only the LF is missing.
 *   4. Nothing beyond the limit is read.  A line that continues there is too long, whatever its
 *      content.
 */
#include "http/parse/parse_inner.h"
#include "http/parse/scan.h"

enum { AT_FIRST_LINE, AT_FIELDS, AT_END };

int
weft__http_line_read(struct weft__http_lines *lines, struct weft__http_fault *fault,
                     struct text input, uint32_t max, uint32_t *end)
{
	size_t size = input.size < max ? input.size : max;
	int unfinished = input.size > max ? LINE_TOO_LONG : WEFT__HTTP_MORE;
	size_t stop;

	if (lines->at > size)
		return weft_fail(WEFT_EINVAL,
		                 "weft_http_*: the head parser was given fewer bytes than before");
	stop = weft__http_scan_text(input.data, lines->at, size);
	lines->at = (uint32_t)stop;
	if (stop == size)
		return unfinished;
	if (input.data[stop] == '\n')
		return weft__http_refuse(fault, 400, "LF without CR");
	if (input.data[stop] != '\r')
		return weft__http_refuse(fault, 400, "control byte in a head");
	if (stop + 1 == size)
		return unfinished;
	if (input.data[stop + 1] != '\n')
		return weft__http_refuse(fault, 400, "CR without LF");
	lines->at = (uint32_t)stop + 2;
	*end = (uint32_t)stop;
	return WEFT__HTTP_DONE;
}

/* Why data[at], after the bytes of a name, is not a colon. */
static const char *
no_name(const char *data, uint32_t line, uint32_t at)
{
	if (is_blank(data[line]))
		return "folded header line, or space before a header name";
	if (is_blank(data[at]))
		return "space after a header name";
	return at == line ? "empty header name" : "malformed header name";
}

/* Where the name at the beginning of the line ends: at the CR of the line at the latest. */
static uint32_t
name_end(struct text input, uint32_t line)
{
	size_t from = weft__http_scan_name(input.data, line, input.size);
	size_t at = from;

	while (byte_is(input.data[at], BYTE_TOKEN))
		at++;
	WEFT__HTTP_COUNT_SCANNED(at - from);
	return (uint32_t)at;
}

/* Split the line from lines->line to `end` into name and value. */
static int
field_split(struct weft__http_lines *lines, struct weft__http_fault *fault, struct text input,
            uint32_t end)
{
	const char *data = input.data;
	uint32_t line = lines->line, at = name_end(input, line);
	uint32_t from, to = end;
	struct weft__http_field *field;

	if (data[at] != ':' || at == line)
		return weft__http_refuse(fault, 400, no_name(data, line, at));
	if (lines->count == lines->room)
		return weft__http_refuse(fault, 431, "too many headers");
	for (from = at + 1; from < end && is_blank(data[from]);)
		from++;
	while (to > from && is_blank(data[to - 1]))
		to--;
	field = &lines->fields[lines->count++];
	field->name = (struct weft__http_part){ line, at - line };
	field->value = (struct weft__http_part){ from, to - from };
	return 0;
}

int
weft__http_field_read(struct weft__http_lines *lines, struct weft__http_fault *fault,
                      struct text input, uint32_t max)
{
	uint32_t end;
	int rc = weft__http_line_read(lines, fault, input, max, &end);

	if (rc == LINE_TOO_LONG)
		return weft__http_refuse(fault, 431, "head too large");
	if (rc != WEFT__HTTP_DONE)
		return rc;
	if (end == lines->line)
		return WEFT__HTTP_DONE;
	rc = field_split(lines, fault, input, end);
	if (rc < 0)
		return rc;
	lines->line = lines->at;
	return WEFT__HTTP_DATA;
}

/* The offset at which a request line must have ended if its method and target are within their
 * limits. */
static uint32_t
request_line_max(const struct weft__http_head *head)
{
	uint64_t max = (uint64_t)head->lines.line + WEFT__HTTP_METHOD_MAX + head->limits.target_max
	               + sizeof("  HTTP/1.1\r\n") - 1;

	return max < head->limits.head_max ? (uint32_t)max : head->limits.head_max;
}

/* A request line that exceeds its limit.  The method is too long if no space comes within
 * WEFT__HTTP_METHOD_MAX + 1 bytes. */
static int
request_line_too_long(struct weft__http_head *head, const char *data)
{
	const char *line = data + head->lines.line;
	size_t size = head->lines.at - head->lines.line;

	if (size > WEFT__HTTP_METHOD_MAX && !memchr(line, ' ', WEFT__HTTP_METHOD_MAX + 1))
		return weft__http_refuse(&head->fault, 501, "method too long");
	if (size <= head->limits.target_max)
		return weft__http_refuse(&head->fault, 431, "head too large");
	return weft__http_refuse(&head->fault, 414, "target too long");
}

/* An empty line before the first line.  Some clients send one after a body. */
static int
empty_line(struct weft__http_head *head)
{
	if (head->is_response)
		return weft__http_refuse(&head->fault, 400, "no status line");
	if (head->empty == WEFT__HTTP_EMPTY_MAX)
		return weft__http_refuse(&head->fault, 400,
		                         "too many empty lines before a request");
	head->empty++;
	head->lines.line = head->lines.at;
	return 0;
}

/* Returns WEFT__HTTP_DATA after the first line, or after an empty line before it. */
static int
first_line(struct weft__http_head *head, struct text input)
{
	uint32_t max = head->is_response ? head->limits.head_max : request_line_max(head);
	uint32_t end;
	int rc = weft__http_line_read(&head->lines, &head->fault, input, max, &end);

	if (rc == LINE_TOO_LONG)
		return head->is_response ? weft__http_refuse(&head->fault, 431, "head too large")
		                         : request_line_too_long(head, input.data);
	if (rc != WEFT__HTTP_DONE)
		return rc;
	if (end == head->lines.line) {
		rc = empty_line(head);
		return rc < 0 ? rc : WEFT__HTTP_DATA;
	}
	rc = head->is_response ? weft__http_status_line(head, input.data, end)
	                       : weft__http_request_line(head, input.data, end);
	if (rc < 0)
		return rc;
	head->lines.line = head->lines.at;
	head->state = AT_FIELDS;
	return WEFT__HTTP_DATA;
}

/* Returns WEFT__HTTP_DATA after one header. */
static int
next_field(struct weft__http_head *head, struct text input)
{
	int rc = weft__http_field_read(&head->lines, &head->fault, input, head->limits.head_max);

	if (rc == WEFT__HTTP_DATA) {
		uint32_t last = head->lines.count - 1;
		int noted = weft__http_note_field(head, input.data, &head->lines.fields[last]);

		return noted < 0 ? noted : rc;
	}
	if (rc != WEFT__HTTP_DONE)
		return rc;
	rc = weft__http_conclude(head);
	if (rc < 0)
		return rc;
	head->size = head->lines.at;
	head->state = AT_END;
	return WEFT__HTTP_DONE;
}

int
weft__http_head_parse(struct weft__http_head *head, const char *data, size_t size)
{
	struct text input = { data, size };
	int rc = WEFT__HTTP_DATA;

	if (head->fault.status)
		return weft_fail(head->fault.error, "weft_http_*: %s", head->fault.text);
	if (head->state == AT_END)
		return WEFT__HTTP_DONE;
	while (rc == WEFT__HTTP_DATA && head->state == AT_FIRST_LINE)
		rc = first_line(head, input);
	while (rc == WEFT__HTTP_DATA)
		rc = next_field(head, input);
	return rc;
}

static void
head_init(struct weft__http_head *head, struct weft__http_field *fields, uint32_t room,
          const struct weft__http_limits *limits)
{
	*head = (struct weft__http_head){ .lines = { fields, 0, room, 0, 0 } };
	if (limits)
		head->limits = *limits;
	if (head->limits.head_max == 0)
		head->limits.head_max = WEFT__HTTP_HEAD_MAX;
	if (head->limits.target_max == 0)
		head->limits.target_max = WEFT__HTTP_TARGET_MAX;
	if (head->limits.body_max == 0)
		head->limits.body_max = WEFT__HTTP_BODY_MAX;
}

void
weft__http_request_init(struct weft__http_head *head, struct weft__http_field *fields,
                        uint32_t room, const struct weft__http_limits *limits)
{
	head_init(head, fields, room, limits);
}

void
weft__http_response_init(struct weft__http_head *head, struct weft__http_field *fields,
                         uint32_t room, const struct weft__http_limits *limits,
                         enum weft__http_reply_to reply_to)
{
	head_init(head, fields, room, limits);
	head->is_response = true;
	head->reply_to = (uint8_t)reply_to;
}

const struct weft__http_field *
weft__http_field_next(const struct weft__http_lines *lines, const char *data, const char *name,
                      uint32_t *index)
{
	while (*index < lines->count) {
		const struct weft__http_field *field = &lines->fields[(*index)++];

		if (weft__http_same(part_text(data, field->name), name))
			return field;
	}
	return NULL;
}
