/* parse.h - HTTP/1.1 messages: heads of requests and responses, and bodies.  Private.
 *
 * A head is everything before the body: the first line, the headers (called fields in the code)
 * and the empty line.
 *
 * The parser reads contiguous bytes, allocates nothing and copies nothing.  Its results are
 * offsets from the first byte of the message, so the bytes may move between two calls, as they
 * do in a buffer that grows.  It remembers how far it has scanned: a message that arrives byte
 * by byte costs as much as one that arrives at once.
 *
 *   1. The outcome depends only on the bytes, never on how they were split.  So a limit is an
 *      offset at which reading stops, not a comparison with what has arrived.
 *   2. A line is checked when it is complete.  Before that, only bytes that are allowed in no
 *      line at all are refused.
 *   3. A message that two readers could understand differently is refused (RFC 9112, section
 *      11.2): each message has one possible end or none.  No option relaxes this.
 *   4. The first fault is final: every later call returns it again.
 *
 * A fault is a status to reply with, a text, and an error: WEFT_EMSGSIZE for 413, 414 and 431,
 * WEFT_EPROTO for the rest.  For a response only the text and the error have a meaning.
 * weft_detail() returns the text.
 *
 * Needs: weft/base.h and the C library.  Thread: any, one at a time for each object.
 */
#ifndef WEFT_HTTP_PARSE_H
#define WEFT_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

#define WEFT__HTTP_FIELDS_MAX 100          /* size of the arrays of headers */
#define WEFT__HTTP_HEAD_MAX   (32u << 10)  /* bytes, including empty lines before the head */
#define WEFT__HTTP_TARGET_MAX (8u << 10)   /* bytes */
#define WEFT__HTTP_BODY_MAX   (UINT64_C(16) << 20)
#define WEFT__HTTP_METHOD_MAX 32           /* bytes; a longer one gets 501 */
#define WEFT__HTTP_EMPTY_MAX  4            /* empty lines before a request */
#define WEFT__HTTP_EXT_MAX    256          /* bytes of extensions of one chunk */

/* A part of the message: an offset from the message's first byte, and a size. */
struct weft__http_part {
	uint32_t at, size;
};

struct weft__http_field {
	struct weft__http_part name, value; /* the value is without the white space around it */
};

/* 0 means the default.  UINT64_MAX as body_max means no limit. */
struct weft__http_limits {
	uint32_t head_max;   /* for the head, and separately for the trailers */
	uint32_t target_max;
	uint64_t body_max;   /* decoded bytes */
};

struct weft__http_fault {
	int         status; /* 400, 413, 414, 417, 431, 501 or 505; 0: none */
	int         error;
	const char *text;   /* static */
};

/* Header lines, up to the empty line.  Private, except for fields and count. */
struct weft__http_lines {
	struct weft__http_field *fields; /* caller's memory */
	uint32_t count, room;
	uint32_t line; /* offset of the current line */
	uint32_t at;   /* everything before it was scanned */
};

/* Where the body ends. */
enum weft__http_framing {
	WEFT__HTTP_NO_BODY,
	WEFT__HTTP_LENGTH,      /* head->length bytes, more than 0 */
	WEFT__HTTP_CHUNKED,
	WEFT__HTTP_UNTIL_CLOSE, /* response only: until the connection ends */
	WEFT__HTTP_TUNNEL,      /* no HTTP after this head: 101, or a CONNECT that succeeded */
};

enum weft__http_form {
	WEFT__HTTP_ORIGIN,    /* "/path?query" */
	WEFT__HTTP_ABSOLUTE,  /* "http://host/path?query"; its path may be empty */
	WEFT__HTTP_AUTHORITY, /* "host:port"; CONNECT only */
	WEFT__HTTP_ASTERISK,  /* "*"; OPTIONS only */
};

enum {
	WEFT__HTTP_KEEP_ALIVE = 1 << 0, /* the connection can be used for another exchange */
	WEFT__HTTP_UPGRADE    = 1 << 1, /* to head->upgrade; Connection lists it too */
	WEFT__HTTP_CONTINUE   = 1 << 2, /* the client waits for 100 before it sends the body */
};

/* The method of the request that a response is for.  A response to HEAD, and a 2xx to CONNECT,
 * has no body, whatever its headers say. */
enum weft__http_reply_to {
	WEFT__HTTP_REPLY_TO_OTHER,
	WEFT__HTTP_REPLY_TO_HEAD,
	WEFT__HTTP_REPLY_TO_CONNECT,
};

struct weft__http_head {
	/* Read-only once the head is complete.  A part that is missing is empty. */
	struct weft__http_part  method, target, path, query; /* of a request */
	struct weft__http_part  host;    /* from the target, else from Host; may have a port */
	struct weft__http_part  reason;  /* of a response */
	struct weft__http_part  upgrade; /* value of the first Upgrade header */
	struct weft__http_lines lines;   /* the headers and their count */
	uint64_t                length;  /* of the body, if framing is WEFT__HTTP_LENGTH */
	uint32_t                size;    /* bytes of the head; the body begins there */
	uint16_t                status;  /* of a response */
	uint8_t                 minor;   /* the version is 1.minor: 0 or 1 */
	uint8_t                 form;    /* enum weft__http_form */
	uint8_t                 framing; /* enum weft__http_framing */
	uint8_t                 flags;   /* WEFT__HTTP_KEEP_ALIVE etc. */
	struct weft__http_fault fault;

	/* private from here on */
	struct weft__http_limits limits;
	uint16_t seen;   /* SEEN_* bits of parse_inner.h */
	uint8_t  state;
	uint8_t  empty;  /* empty lines before the request */
	uint8_t  reply_to;
	bool     is_response;
};

/* Results of a call. */
enum {
	WEFT__HTTP_MORE = 0, /* call again when there are more bytes */
	WEFT__HTTP_DONE = 1, /* the head, or the body, is complete */
	WEFT__HTTP_DATA = 2, /* bytes of the body */
};

/* Prepare to read a head into `room` fields, which are borrowed as long as the head is in use.
 * More headers than that are a 431.  `limits` may be NULL. */
void weft__http_request_init(struct weft__http_head *head, struct weft__http_field *fields,
                             uint32_t room, const struct weft__http_limits *limits);
void weft__http_response_init(struct weft__http_head *head, struct weft__http_field *fields,
                              uint32_t room, const struct weft__http_limits *limits,
                              enum weft__http_reply_to reply_to);

/* Continue with a head of which data[0..size) has arrived.  The bytes begin with the first byte
 * of the head and include those of the call before, unchanged.  Nothing beyond the end of the
 * head is read.  Returns WEFT__HTTP_MORE, WEFT__HTTP_DONE, the fault's error, or WEFT_EINVAL
 * for fewer bytes than before. */
int weft__http_head_parse(struct weft__http_head *head, const char *data, size_t size);

/* Find the next header called `name`, ignoring case, at index *index or later, and set *index
 * to the one after it.  NULL if there is none. */
const struct weft__http_field *weft__http_field_next(const struct weft__http_lines *lines,
                                                     const char *data, const char *name,
                                                     uint32_t *index);

/* --- bodies ----------------------------------------------------------------- */

struct weft__http_body {
	/* Trailers, once the body is complete: offsets are from `at` of the last step. */
	struct weft__http_lines trailers;
	struct weft__http_fault fault;
	uint64_t                taken; /* decoded bytes so far */

	/* private from here on */
	uint64_t left;      /* bytes left of the body or of the current chunk */
	uint64_t max;
	uint32_t head_max;
	uint32_t ext_total; /* bytes of extensions in all chunks */
	uint16_t ext;       /* bytes of extensions in the current chunk */
	uint8_t  digits;    /* of the current chunk's size */
	uint8_t  state;
};

/* What a call consumed and what it found. */
struct weft__http_step {
	size_t used;     /* bytes consumed from the front */
	size_t at, size; /* DATA: bytes of the body, which end at `used`;
	                  * DONE: the trailers with their empty line */
};

/* Prepare to read the body that `head` announces; an incomplete head announces none.  Trailers
 * are stored in `room` fields, like the headers of a head. */
void weft__http_body_init(struct weft__http_body *body, const struct weft__http_head *head,
                          struct weft__http_field *fields, uint32_t room);

/* Continue with a body: data[0] is the first byte that no earlier step has used.  Fills `out`
 * unless the call fails.  Returns WEFT__HTTP_DATA: process the bytes of the step, and call
 * again with the rest; WEFT__HTTP_MORE: call again when bytes are added to those not used;
 * WEFT__HTTP_DONE: the bytes not used are not part of this message; or the fault's error. */
int weft__http_body_next(struct weft__http_body *body, const char *data, size_t size,
                         struct weft__http_step *out);

/* The connection ended.  Returns 0 if that completes the body or it was complete already, else
 * WEFT_ETRUNCATED, or the fault's error. */
int weft__http_body_close(struct weft__http_body *body);

#endif
