/* parse_inner.h - shared by the parser's files: faults, byte classes, numbers, lists.  Private. */
#ifndef WEFT_HTTP_INNER_H
#define WEFT_HTTP_INNER_H

#include <string.h>
#include "http/parse/parse.h"

/* Which headers a head had: bits of head->seen. */
enum {
	SEEN_HOST       = 1 << 0,
	SEEN_LENGTH     = 1 << 1,
	SEEN_CHUNKED    = 1 << 2,
	SEEN_CODING     = 1 << 3, /* a transfer coding other than chunked */
	SEEN_CLOSE      = 1 << 4,
	SEEN_KEEP_ALIVE = 1 << 5,
	SEEN_UPGRADING  = 1 << 6, /* Connection: upgrade */
	SEEN_CONTINUE   = 1 << 7,
	SEEN_EXPECT     = 1 << 8, /* an expectation other than 100-continue */
};

/* Set the fault and weft_detail().  Returns the fault's error. */
int weft__http_refuse(struct weft__http_fault *fault, int status, const char *text);

/* --- bytes and texts --------------------------------------------------------- */

/* Byte classes (http_bytes.c). */
enum {
	BYTE_TOKEN = 1 << 0, /* tchar of RFC 9110 */
	BYTE_NAME  = 1 << 1, /* reg-name of RFC 3986, without "%" */
	BYTE_HEX   = 1 << 2,
	BYTE_DIGIT = 1 << 3,
	BYTE_ALPHA = 1 << 4,
};
extern const uint8_t weft__http_bytes[256];

static inline bool
byte_is(char byte, unsigned kinds)
{
	return weft__http_bytes[(unsigned char)byte] & kinds;
}

static inline bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Borrowed bytes, not ended by NUL. */
struct text {
	const char *data;
	size_t      size;
};

static inline struct text
part_text(const char *data, struct weft__http_part part)
{
	return (struct text){ data + part.at, part.size };
}

static inline bool
text_equal(struct text a, struct text b)
{
	return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* Whether the text equals `name`, in the same case. */
static inline bool
text_is(struct text text, const char *name)
{
	return text_equal(text, (struct text){ name, strlen(name) });
}

/* Whether the text is a token: at least one byte, all of them BYTE_TOKEN. */
bool weft__http_is_token(struct text text);

/* Whether the text equals `name`, ignoring case. */
bool weft__http_same(struct text text, const char *name);

/* Whether the text equals one of the names, ignoring case.  NULL ends the array. */
bool weft__http_is_one_of(struct text text, const char *const *names);

/* Remove the next element of a comma-separated list from the front of `list`, without the white
 * space around it.  An element may be empty.  Quotes have no special meaning: no list that is
 * read this way has an element with a comma in it.  Returns false at the end: "a," has two
 * elements, "" has one. */
bool weft__http_list_next(struct text *list, struct text *element);

/* Read a decimal number: digits only, at least one.  False also if it does not fit. */
bool weft__http_decimal(struct text text, uint64_t *out);

/* --- parts of a head --------------------------------------------------------- */

/* Read one header line, which must end within `max` bytes of the input.  Returns
 * WEFT__HTTP_DATA: one header was added; WEFT__HTTP_DONE: this was the empty line, and
 * lines->at is after it; WEFT__HTTP_MORE; or an error. */
int weft__http_field_read(struct weft__http_lines *lines, struct weft__http_fault *fault,
                          struct text input, uint32_t max);

/* Complete the current line, which must end within `max` bytes of the input.  Returns
 * WEFT__HTTP_DONE and stores in *end where the line's CRLF begins; lines->at is after the CRLF.
 * Also WEFT__HTTP_MORE, an error, or LINE_TOO_LONG, for which the caller sets the fault. */
enum { LINE_TOO_LONG = 3 };
int weft__http_line_read(struct weft__http_lines *lines, struct weft__http_fault *fault,
                         struct text input, uint32_t max, uint32_t *end);

/* Parse the first line, data[head->lines.line..end).  Return 0 or an error. */
int weft__http_request_line(struct weft__http_head *head, const char *data, uint32_t end);
int weft__http_status_line(struct weft__http_head *head, const char *data, uint32_t end);

/* Parse and check the target: its form, path, query and host.  Returns 0 or an error. */
int weft__http_target(struct weft__http_head *head, const char *data);

/* Whether the text is a host, with or without a port (":" alone counts as no port).  With
 * `need_port` there must be a port. */
bool weft__http_host_ok(struct text host, bool need_port);

/* Record a header that frames the message or controls the connection; and, after the last
 * header, decide the framing from what was recorded.  Return 0 or an error. */
int weft__http_note_field(struct weft__http_head *head, const char *data,
                          const struct weft__http_field *field);
int weft__http_conclude(struct weft__http_head *head);

/* Whether a header must not be sent as a trailer. */
bool weft__http_not_a_trailer(struct text name);

#endif
