/* resp_scan.c - find the end of a reply in bytes that come in pieces.
 *
 * Every element begins with a line: a byte for its type, and a number or a text.  Behind
 * some lines there are bytes, as many as the line says, which are not looked at.  Lists
 * are a number of elements to come, one number for each that is open; the reply itself is
 * the first of them, of one element.
 *
 * An attribute is a map before an element.  It makes the list in which it stands longer by
 * its keys and values, and has no depth of its own: what is not kept needs no shape.
 *
 * Limits are judged as soon as they can be: where a length or count is announced that must
 * exceed one, nothing more is awaited.
 */
#include "resp.h"

#define LINE_NUMBER_MAX 20 /* bytes of the longest integer */
#define ELEMENT_MIN     3  /* bytes of the shortest element */

enum { MORE = 0, ENDED = 1, OPENED = 2 };

/* What a byte in front of a line stands for. */
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

/* The reply that is read, as far as it has come. */
struct input {
	const struct weft__resp_limits *limits;
	const char *data;
	size_t size;
};

static int
broken(const char *what, size_t at)
{
	return weft_fail(WEFT_EPROTO, "redis: %s, at byte %zu of a reply", what, at);
}

static int
too_much(const char *what, uint64_t max, size_t at)
{
	return weft_fail(WEFT_EMSGSIZE, "redis: a reply with more than %llu %s, by byte %zu",
	                 (unsigned long long)max, what, at);
}

static int
too_large(const struct input *in, size_t at)
{
	return too_much("bytes", in->limits->bytes_max, at);
}

/* Bytes of the reply that may still come after `at`, which is within the limit. */
static size_t
room_after(const struct input *in, size_t at)
{
	return in->limits->bytes_max - at;
}

/* --- lines ------------------------------------------------------------------ */

/* Go on to the '\r' of the present line.  Returns ENDED, scan->at being there and the
 * "\n" behind it; MORE; or an error. */
static int
find_line_end(struct weft__resp_scan *scan, const struct input *in)
{
	size_t max = in->limits->bytes_max, at = scan->at;
	size_t limit = in->size < max ? in->size : max;
	enum line line = lines[(unsigned char)in->data[scan->start]];

	while (at < limit && in->data[at] != '\r' && in->data[at] != '\n')
		at++;
	WEFT__RESP_LOOKED_AT(at - scan->at + 1);
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

/* Whether the text of a line without bytes or items behind it is what its type says. */
static bool
line_is_good(enum line line, const char *text, size_t size)
{
	WEFT__RESP_LOOKED_AT(size);
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

/* The line of a length was read, which ends before scan->at. */
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
	WEFT__RESP_LOOKED_AT(2);
	if (in->data[end] != '\r' || in->data[end + 1] != '\n')
		return broken("bytes that do not end as announced", end);
	if (in->data[scan->start] == '=' && in->data[scan->at + 3] != ':')
		return broken("a verbatim text without format", scan->start);
	scan->at = end + 2;
	scan->end = 0;
	return ENDED;
}

/* The line of a count was read.  A list without items has ended with it; an attribute is
 * no element, so that as many are left to come as before, and its own. */
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
		return too_much("lists in each other",
		                limits->depth_max < WEFT__RESP_DEPTH ? limits->depth_max
		                                                     : WEFT__RESP_DEPTH,
		                scan->start);
	if (items == 0)
		return ENDED;
	scan->left[scan->depth++] = items;
	return OPENED;
}

/* A whole line was read. */
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
		               : broken("a value that is not of its type", scan->start);
	WEFT__RESP_LOOKED_AT(size);
	if (size == 1 && text[0] == '?')
		return broken("a streamed value, which is not supported", scan->start);
	if (!weft__resp_integer(text, size, &number))
		return broken("a length that is not a number", scan->start);
	return line == LINE_BYTES ? begin_bytes(scan, in, number) : begin_items(scan, in, number);
}

/* A new element begins with the byte at scan->at, which is there. */
static int
begin_element(struct weft__resp_scan *scan, const struct input *in)
{
	scan->start = scan->at;
	if (lines[(unsigned char)in->data[scan->at]] == LINE_BAD)
		return broken("a type that does not exist", scan->at);
	if (scan->nodes >= in->limits->nodes_max)
		return too_much("items", in->limits->nodes_max, scan->at);
	scan->nodes++;
	scan->at++;
	scan->in_line = true;
	return ENDED;
}

/* A text of up to 9,999 bytes that begins at `at` and is all there: most are.  Returns
 * where it ends, or 0 for everything else, mistakes too. */
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

/* Read on in the present element, or begin the next.  Returns ENDED if it has ended,
 * OPENED if something is to come that belongs to it, MORE, or an error. */
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
			WEFT__RESP_LOOKED_AT(8);
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

/* An element has ended, and with it every list whose last it was. */
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
	WEFT__RESP_LOOKED_AT(8);
	scan->nodes = 1;
	scan->at = end;
	return (ssize_t)end;
}
