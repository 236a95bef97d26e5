/* resp_scan.c - find the end of a reply in bytes that arrive in pieces.
 *
 * Every element begins with a line: a type byte, and a number or a text.  Some lines are
 * followed by as many bytes as the line announces; these are not searched.  For each open list
 * the scan stores the number of elements to come.  The first of these lists is the reply itself, a
 * list of one element.
 *
 * An attribute is a map before an element.  It adds its keys and values to the elements of the
 * enclosing list and has no depth of its own: attributes are dropped, so their structure does
 * not matter.
 *
 * Limits are checked as early as possible: the scan fails as soon as an announced length or
 * count must exceed a limit.
 */
#include "resp.h"

#define LINE_NUMBER_MAX 20 /* bytes of the longest integer */
#define ELEMENT_MIN     3  /* bytes of the shortest element */

enum { MORE = 0, ENDED = 1, OPENED = 2 };

/* What the type byte of a line means. */
enum line {
	LINE_BAD,
	LINE_TEXT,    /* any text: + - */
	LINE_INTEGER, /* : */
	LINE_NUMBER,  /* , */
	LINE_DIGITS,  /* ( */
	LINE_BOOL,    /* # */
	LINE_NIL,     /* _ */
	LINE_BYTES,   /* a length: $ ! = */
	LINE_ITEMS,   /* a count: * % ~ > | */
};

static const uint8_t lines[256] = {
	['+'] = LINE_TEXT,   ['-'] = LINE_TEXT,  [':'] = LINE_INTEGER, [','] = LINE_NUMBER,
	['('] = LINE_DIGITS, ['#'] = LINE_BOOL,  ['_'] = LINE_NIL,     ['$'] = LINE_BYTES,
	['!'] = LINE_BYTES,  ['='] = LINE_BYTES, ['*'] = LINE_ITEMS,   ['%'] = LINE_ITEMS,
	['~'] = LINE_ITEMS,  ['>'] = LINE_ITEMS, ['|'] = LINE_ITEMS,
};

/* The part of the reply that has arrived. */
struct input {
	const struct weft__resp_limits *limits;
	const char *data;
	size_t size;
};

static int
broken(const char *what, size_t at)
{
	return weft_fail(WEFT_EPROTO, "weft_redis_*: %s, at byte %zu of a reply", what, at);
}

static int
too_much(const char *what, uint64_t max, size_t at)
{
	return weft_fail(WEFT_EMSGSIZE, "weft_redis_*: a reply with more than %llu %s, by byte %zu",
	                 (unsigned long long)max, what, at);
}

static int
too_large(const struct input *in, size_t at)
{
	return too_much("bytes", in->limits->bytes_max, at);
}

/* How many bytes of the reply may follow after `at`, which is within the limit. */
static size_t
room_after(const struct input *in, size_t at)
{
	return in->limits->bytes_max - at;
}

/* --- lines ------------------------------------------------------------------ */

/* Find the '\r' of the current line.  Returns ENDED if it is at scan->at with '\n' behind it;
 * MORE; or an error. */
static int
find_line_end(struct weft__resp_scan *scan, const struct input *in)
{
	size_t max = in->limits->bytes_max, at = scan->at;
	size_t limit = in->size < max ? in->size : max;
	enum line line = lines[(unsigned char)in->data[scan->start]];

	while (at < limit && in->data[at] != '\r' && in->data[at] != '\n')
		at++;
	WEFT__RESP_COUNT_SCANNED(at - scan->at + 1);
	scan->at = at;
	if (line > LINE_TEXT && line != LINE_NUMBER && line != LINE_DIGITS
	    && at - scan->start > 1 + LINE_NUMBER_MAX)
		return broken("a number that is too long", scan->start);
	if (at < limit && in->data[at] == '\n')
		return broken("a line feed without carriage return", at);
	if (at + 2 > max && in->size >= max)
		return too_large(in, at);
	if (at + 1 >= in->size)
		return MORE;
	return in->data[at + 1] == '\n' ? ENDED : broken("a carriage return without line feed", at);
}

static bool
is_digits(const char *text, size_t size)
{
	size_t at = size > 0 && text[0] == '-';

	if (at == size)
		return false;
	for (; at < size; at++)
		if (text[at] < '0' || text[at] > '9')
			return false;
	return true;
}

/* Whether the text of a line matches its type, for types without bytes or items. */
static bool
line_is_good(enum line line, const char *text, size_t size)
{
	WEFT__RESP_COUNT_SCANNED(size);
	switch (line) {
	case LINE_INTEGER:
		return weft__resp_integer(text, size, NULL);
	case LINE_NUMBER:
		return weft__resp_number(text, size, NULL);
	case LINE_DIGITS:
		return is_digits(text, size);
	case LINE_BOOL:
		return size == 1 && (text[0] == 't' || text[0] == 'f');
	case LINE_NIL:
		return size == 0;
	default:
		return true;
	}
}

/* --- elements ---------------------------------------------------------------- */

/* The line with a length is complete; it ends before scan->at. */
static int
begin_bytes(struct weft__resp_scan *scan, const struct input *in, int64_t length)
{
	char type = in->data[scan->start];

	if (length < 0)
		return type == '$' && length == -1 ? ENDED
		                                   : broken("a negative length", scan->start);
	if (room_after(in, scan->at) < 2 || (uint64_t)length > room_after(in, scan->at) - 2)
		return too_large(in, scan->start);
	if (type == '=' && length < 4)
		return broken("a verbatim text without format", scan->start);
	scan->end = scan->at + (size_t)length;
	return OPENED;
}

static int
end_bytes(struct weft__resp_scan *scan, const struct input *in)
{
	size_t end = scan->end;

	if (in->size < end + 2)
		return MORE;
	WEFT__RESP_COUNT_SCANNED(2);
	if (in->data[end] != '\r' || in->data[end + 1] != '\n')
		return broken("a bulk string that is not followed by CRLF", end);
	if (in->data[scan->start] == '=' && in->data[scan->at + 3] != ':')
		return broken("a verbatim text without format", scan->start);
	scan->at = end + 2;
	scan->end = 0;
	return ENDED;
}

/* The line with a count is complete.  An empty list ends with it.  An attribute is not an
 * element: the elements to come stay as many as before, plus its own. */
static int
begin_items(struct weft__resp_scan *scan, const struct input *in, int64_t count)
{
	const struct weft__resp_limits *limits = in->limits;
	char type = in->data[scan->start];
	uint64_t items = (uint64_t)count;

	if (count < 0)
		return type == '*' && count == -1 ? ENDED : broken("a negative count", scan->start);
	if (type == '%' || type == '|')
		items *= 2;
	if (items > limits->nodes_max - scan->nodes)
		return too_much("items", limits->nodes_max, scan->start);
	if (items > room_after(in, scan->at) / ELEMENT_MIN)
		return too_large(in, scan->start);
	if (type == '|') {
		scan->left[scan->depth - 1] += items;
		return OPENED;
	}
	if (scan->depth > limits->depth_max || scan->depth > WEFT__RESP_DEPTH)
		return too_much("levels of nested lists",
		                limits->depth_max < WEFT__RESP_DEPTH ? limits->depth_max
		                                                     : WEFT__RESP_DEPTH,
		                scan->start);
	if (items == 0)
		return ENDED;
	scan->left[scan->depth++] = items;
	return OPENED;
}

/* The line is complete. */
static int
take_line(struct weft__resp_scan *scan, const struct input *in)
{
	const char *text = in->data + scan->start + 1;
	size_t size = scan->at - scan->start - 1;
	enum line line = lines[(unsigned char)text[-1]];
	int64_t number;

	scan->at += 2;
	if (line != LINE_BYTES && line != LINE_ITEMS)
		return line_is_good(line, text, size)
		               ? ENDED
		               : broken("a value that does not match its type", scan->start);
	WEFT__RESP_COUNT_SCANNED(size);
	if (size == 1 && text[0] == '?')
		return broken("a streamed value, which is not supported", scan->start);
	if (!weft__resp_integer(text, size, &number))
		return broken("a length that is not a number", scan->start);
	return line == LINE_BYTES ? begin_bytes(scan, in, number) : begin_items(scan, in, number);
}

/* A new element begins with the byte at scan->at, which has arrived. */
static int
begin_element(struct weft__resp_scan *scan, const struct input *in)
{
	scan->start = scan->at;
	if (lines[(unsigned char)in->data[scan->at]] == LINE_BAD)
		return broken("an unknown type byte", scan->at);
	if (scan->nodes >= in->limits->nodes_max)
		return too_much("items", in->limits->nodes_max, scan->at);
	scan->nodes++;
	scan->at++;
	scan->in_line = true;
	return ENDED;
}

/* The fast path for a complete text of up to 9,999 bytes, which most are.  Returns the end of
 * the text at `at`, or 0 for everything else, including errors. */
static size_t
end_of_text(const struct input *in, size_t at)
{
	const char *data = in->data + at;
	size_t size = in->size - at, length = 0, digits = 1;

	if (size < 6 || data[1] < '0' || data[1] > '9')
		return 0;
	while (digits < 5 && data[digits] >= '0' && data[digits] <= '9')
		length = length * 10 + (size_t)(data[digits++] - '0');
	if (data[1] == '0' && digits > 2)
		return 0;
	if (length + digits + 4 > size || data[digits] != '\r' || data[digits + 1] != '\n')
		return 0;
	data += digits + 2 + length;
	if (data[0] != '\r' || data[1] != '\n')
		return 0;
	at += digits + 4 + length;
	return at <= in->limits->bytes_max ? at : 0;
}

/* Continue the current element, or begin the next.  Returns ENDED if it has ended, OPENED if
 * parts of it follow, MORE, or an error. */
static int
read_element(struct weft__resp_scan *scan, const struct input *in)
{
	size_t end = 0;
	int rc = ENDED;

	if (scan->end)
		return end_bytes(scan, in);
	if (scan->at >= in->limits->bytes_max)
		return too_large(in, scan->at);
	if (scan->at >= in->size)
		return MORE;
	if (!scan->in_line) {
		if (in->data[scan->at] == '$')
			end = end_of_text(in, scan->at);
		if (end && scan->nodes < in->limits->nodes_max) {
			WEFT__RESP_COUNT_SCANNED(8);
			scan->nodes++;
			scan->at = end;
			return ENDED;
		}
		rc = begin_element(scan, in);
	}
	if (rc == ENDED)
		rc = find_line_end(scan, in);
	if (rc != ENDED)
		return rc;
	scan->in_line = false;
	return take_line(scan, in);
}

/* An element has ended, and with it every list of which it was the last. */
static void
end_element(struct weft__resp_scan *scan)
{
	while (scan->depth > 0 && --scan->left[scan->depth - 1] == 0)
		scan->depth--;
}

static ssize_t
scan_on(struct weft__resp_scan *scan, const struct input *in)
{
	if (scan->depth == 0) {
		scan->depth = 1;
		scan->left[0] = 1;
	}
	while (scan->depth > 0) {
		int rc = read_element(scan, in);

		if (rc == MORE || rc < 0)
			return rc;
		if (rc == ENDED)
			end_element(scan);
	}
	return (ssize_t)scan->at;
}

ssize_t
weft__resp_scan(struct weft__resp_scan *scan, const struct weft__resp_limits *limits,
                const char *data, size_t size)
{
	struct input in = { limits, data, size };
	size_t end = 0;

	if (scan->depth == 0 && size > 0 && data[0] == '$')
		end = end_of_text(&in, 0);
	if (!end || limits->nodes_max == 0)
		return scan_on(scan, &in);
	WEFT__RESP_COUNT_SCANNED(8);
	scan->nodes = 1;
	scan->at = end;
	return (ssize_t)end;
}
