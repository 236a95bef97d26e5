/* body.c - a body: by its length, in chunks, or until the connection ends.
 *
 * A state machine reads the chunk framing byte by byte and stores nothing but its state.  Bytes
 * of the body are reported where they are, without a copy.  Trailers are header lines as in a
 * head, and stay in the caller's buffer until they are complete.
 *
 *   1. taken <= max at all times; one byte more is a 413.
 *   2. A chunk's size is 1 to 16 hexadecimal digits, so it fits in 64 bits.  No sign, prefix or
 *      space is allowed: another parser, which skips such bytes, would read another size.
 *   3. Extensions are checked and ignored.  Their size is limited per chunk and per body, since
 *      body_max does not count them.
 */
#include "base/proto_hex.h"
#include "http/parse/parse_inner.h"
#include "http/parse/scan.h"

enum {
	BODY_OVER,
	BODY_LENGTH,
	BODY_UNTIL_CLOSE,
	CHUNK_DATA,
	TRAILERS,
	/* chunk framing, byte by byte, from here on */
	CHUNK_SIZE,
	EXT_BEGIN,
	EXT_NAME,
	EXT_EQUALS,
	EXT_TOKEN,
	EXT_QUOTED,
	EXT_ESCAPED,
	EXT_CLOSED,
	SIZE_LF,
	DATA_CR,
	DATA_LF,
};

static int
body_refuse(struct weft__http_body *body, const char *text)
{
	return weft__http_refuse(&body->fault, 400, text);
}

static int
size_byte(struct weft__http_body *body, char byte)
{
	int digit = weft__hex_value(byte);

	if (digit >= 0) {
		if (++body->digits > 16)
			return body_refuse(body, "chunk size too long");
		body->left = body->left << 4 | (unsigned)digit;
		return 0;
	}
	if (body->digits == 0 || (byte != '\r' && byte != ';'))
		return body_refuse(body, "bad chunk size");
	body->ext = 0;
	body->state = byte == '\r' ? SIZE_LF : EXT_BEGIN;
	return 0;
}

/* The state that follows after a byte outside of quotes; 0: the byte is not allowed. */
static int
after_plain(int state, char byte)
{
	bool token = byte_is(byte, BYTE_TOKEN), begun = state != EXT_BEGIN;

	if (token && state == EXT_EQUALS)
		return EXT_TOKEN;
	if (token && state != EXT_CLOSED)
		return state == EXT_BEGIN ? EXT_NAME : state;
	if (byte == '"' && state == EXT_EQUALS)
		return EXT_QUOTED;
	if (byte == '=' && state == EXT_NAME)
		return EXT_EQUALS;
	if (byte == ';' && begun && state != EXT_EQUALS)
		return EXT_BEGIN;
	if (byte == '\r' && begun && state != EXT_EQUALS)
		return SIZE_LF;
	return 0;
}

static int
after_quoted(int state, char byte)
{
	if (weft__http_stops_text((unsigned char)byte))
		return 0;
	if (state == EXT_ESCAPED)
		return EXT_QUOTED;
	return byte == '"' ? EXT_CLOSED : byte == '\\' ? EXT_ESCAPED : state;
}

static int
ext_byte(struct weft__http_body *body, char byte)
{
	int state = body->state, next;

	next = state == EXT_QUOTED || state == EXT_ESCAPED ? after_quoted(state, byte)
	                                                   : after_plain(state, byte);
	if (next == 0)
		return body_refuse(body, "bad chunk extension");
	if (++body->ext > WEFT__HTTP_EXT_MAX || ++body->ext_total > body->head_max)
		return body_refuse(body, "chunk extensions too long");
	body->state = (uint8_t)next;
	return 0;
}

/* The line with the size is complete.  By rule 1 the difference is not negative. */
static int
chunk_begin(struct weft__http_body *body)
{
	if (body->left > body->max - body->taken)
		return weft__http_refuse(&body->fault, 413, "body too large");
	body->state = body->left > 0 ? CHUNK_DATA : TRAILERS;
	return 0;
}

static int
frame_byte(struct weft__http_body *body, char byte)
{
	switch (body->state) {
	case CHUNK_SIZE:
		return size_byte(body, byte);
	case SIZE_LF:
		if (byte != '\n')
			return body_refuse(body, "CR without LF");
		return chunk_begin(body);
	case DATA_CR:
		if (byte != '\r')
			return body_refuse(body, "no CRLF after a chunk");
		body->state = DATA_LF;
		return 0;
	case DATA_LF:
		if (byte != '\n')
			return body_refuse(body, "no CRLF after a chunk");
		body->digits = 0;
		body->state = CHUNK_SIZE;
		return 0;
	default:
		return ext_byte(body, byte);
	}
}

/* Report at most `most` of the bytes from `at` on. */
static int
data_step(struct weft__http_body *body, size_t at, size_t size, uint64_t most,
          struct weft__http_step *out)
{
	size_t count = size - at < most ? size - at : (size_t)most;

	*out = (struct weft__http_step){ at + count, at, count };
	body->taken += count;
	return count > 0 ? WEFT__HTTP_DATA : WEFT__HTTP_MORE;
}

/* The same for data of a known length.  State `next` follows after the last byte. */
static int
counted_step(struct weft__http_body *body, size_t at, size_t size, int next,
             struct weft__http_step *out)
{
	int rc = data_step(body, at, size, body->left, out);

	body->left -= out->size;
	if (body->left == 0)
		body->state = (uint8_t)next;
	return rc;
}

static int
until_close_step(struct weft__http_body *body, size_t size, struct weft__http_step *out)
{
	uint64_t most = body->max - body->taken;

	if (most == 0 && size > 0)
		return weft__http_refuse(&body->fault, 413, "body too large");
	return data_step(body, 0, size, most, out);
}

static int
trailer_step(struct weft__http_body *body, const char *data, size_t at, size_t size,
             struct weft__http_step *out)
{
	struct weft__http_lines *lines = &body->trailers;
	struct text input = { data + at, size - at };
	int rc;

	while ((rc = weft__http_field_read(lines, &body->fault, input, body->head_max))
	       == WEFT__HTTP_DATA) {
		struct weft__http_field *last = &lines->fields[lines->count - 1];

		if (weft__http_not_a_trailer(part_text(input.data, last->name)))
			return body_refuse(body, "header not allowed as a trailer");
	}
	if (rc < 0)
		return rc;
	if (rc == WEFT__HTTP_MORE) {
		*out = (struct weft__http_step){ at, at, 0 };
		return rc;
	}
	*out = (struct weft__http_step){ at + lines->at, at, lines->at };
	body->state = BODY_OVER;
	return WEFT__HTTP_DONE;
}

int
weft__http_body_next(struct weft__http_body *body, const char *data, size_t size,
                     struct weft__http_step *out)
{
	size_t at = 0;
	int rc = 0;

	if (body->fault.status)
		return weft_fail(body->fault.error, "weft_http_*: %s", body->fault.text);
	while (at < size && body->state >= CHUNK_SIZE && rc == 0)
		rc = frame_byte(body, data[at++]);
	if (rc < 0)
		return rc;
	switch (body->state) {
	case BODY_OVER:
		*out = (struct weft__http_step){ 0, 0, 0 };
		return WEFT__HTTP_DONE;
	case BODY_LENGTH:
		return counted_step(body, at, size, BODY_OVER, out);
	case CHUNK_DATA:
		return counted_step(body, at, size, DATA_CR, out);
	case BODY_UNTIL_CLOSE:
		return until_close_step(body, size, out);
	case TRAILERS:
		return trailer_step(body, data, at, size, out);
	default:
		*out = (struct weft__http_step){ at, at, 0 };
		return WEFT__HTTP_MORE;
	}
}

int
weft__http_body_close(struct weft__http_body *body)
{
	if (body->fault.status)
		return weft_fail(body->fault.error, "weft_http_*: %s", body->fault.text);
	if (body->state == BODY_UNTIL_CLOSE)
		body->state = BODY_OVER;
	if (body->state == BODY_OVER)
		return 0;
	return weft_fail(WEFT_ETRUNCATED, "weft_http_*: the connection ended within the body");
}

void
weft__http_body_init(struct weft__http_body *body, const struct weft__http_head *head,
                     struct weft__http_field *fields, uint32_t room)
{
	static const uint8_t begin[] = {
		[WEFT__HTTP_NO_BODY] = BODY_OVER,
		[WEFT__HTTP_TUNNEL] = BODY_OVER,
		[WEFT__HTTP_LENGTH] = BODY_LENGTH,
		[WEFT__HTTP_CHUNKED] = CHUNK_SIZE,
		[WEFT__HTTP_UNTIL_CLOSE] = BODY_UNTIL_CLOSE,
	};

	*body = (struct weft__http_body){
		.trailers = { fields, 0, room, 0, 0 },
		.max = head->limits.body_max,
		.head_max = head->limits.head_max,
		.state = begin[head->framing],
	};
	if (head->framing == WEFT__HTTP_LENGTH)
		body->left = head->length;
}
