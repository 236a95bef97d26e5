/* inner.h - what the parser's files share: faults, bytes, numbers, lists.  Private. */
#ifndef WEFT_HTTP_INNER_H
#define WEFT_HTTP_INNER_H

#include <string.h>
#include "parse.h"

/* What fields a head had: bits of head->seen. */
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

/* Set the fault, and weft_detail(); returns its error. */
int weft__http_refuse(struct weft__http_fault *fault, int status, const char *text);

/* --- bytes and texts --------------------------------------------------------- */

/* Bytes by what they may be part of (bytes.c). */
enum {
	BYTE_TOKEN = 1 << 0, /* tchar of RFC 9110 */
	BYTE_NAME  = 1 << 1, /* reg-name of RFC 3986, but for its percent */
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

/* 0 to 15 of a byte that is BYTE_HEX. */
static inline unsigned
hex_value(char byte)
{
	return byte <= '9' ? (unsigned)(byte - '0') : (unsigned)((byte | 0x20) - 'a') + 10;
}

/* Bytes of somebody else. */
struct text {
	const char *data;
	size_t      size;
};

static inline struct text
part_text(const char *data, struct weft__http_part part)
{
	return (struct text){ data + part.at, part.size };
}

/* Whether the text is a non-empty token. */
bool weft__http_is_token(struct text text);

/* Whether the text is `name`, in any case. */
bool weft__http_same(struct text text, const char *name);

/* Take the next element of a list with commas from the front of `list`, without white
 * space around it; it may be empty.  Quotes mean nothing: no list that is read this way
 * has an element with a comma in it.  False at the end: "a," has two elements, "" one. */
bool weft__http_list_next(struct text *list, struct text *element);

/* A number of digits alone, at least one; false also if it does not fit. */
bool weft__http_decimal(struct text text, uint64_t *out);

/* --- parts of a head --------------------------------------------------------- */

/* Read one field line; none may end beyond `max`.  Returns WEFT__HTTP_DATA: there is one
 * field more; WEFT__HTTP_DONE: that was the empty line, lines->at is after it;
 * WEFT__HTTP_MORE; or an error. */
int weft__http_field_read(struct weft__http_lines *lines, struct weft__http_fault *fault,
                          struct text input, uint32_t max);

/* Complete the present line, which must end within `max`.  Returns WEFT__HTTP_DONE and
 * its end, before its CRLF, lines->at being after; WEFT__HTTP_MORE; an error;
 * or LINE_TOO_LONG, the fault being up to the caller. */
enum { LINE_TOO_LONG = 3 };
int weft__http_line_read(struct weft__http_lines *lines, struct weft__http_fault *fault,
                         struct text input, uint32_t max, uint32_t *end);

/* The line data[head->lines.line..end) is the first one.  Return 0 or an error. */
int weft__http_request_line(struct weft__http_head *head, const char *data, uint32_t end);
int weft__http_status_line(struct weft__http_head *head, const char *data, uint32_t end);

/* Judge the target: its form, path, query and host.  Returns 0 or an error. */
int weft__http_target(struct weft__http_head *head, const char *data);

/* Whether the text is a host with or without port (":" alone counts as none); if asked
 * for, the port must be there. */
bool weft__http_host_ok(struct text host, bool need_port);

/* Take note of a field that frames the message or rules the connection, and draw the
 * conclusions when all were seen.  Return 0 or an error. */
int weft__http_note_field(struct weft__http_head *head, const char *data,
                          const struct weft__http_field *field);
int weft__http_conclude(struct weft__http_head *head);

/* Whether a field must not come as a trailer. */
bool weft__http_not_a_trailer(struct text name);

#endif
