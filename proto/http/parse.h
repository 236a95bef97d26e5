/* parse.h - HTTP/1.1 messages: heads of requests and responses, and bodies.  Private.
 *
 * The parser reads bytes that lie in one piece, allocates nothing and copies nothing.
 * What it finds are offsets from the first byte of the message, so the bytes may move
 * between two calls, as they do in a buffer that grows.  It remembers how far it has
 * looked: a message that comes byte by byte costs as much as one that comes at once.
 *
 *   1. The outcome depends on the bytes alone, never on how they were cut.  So a limit
 *      is where reading stops, not a comparison with what has arrived.
 *   2. A line is judged when it is complete; until then only bytes that may stand in
 *      no line at all are refused.
 *   3. What two readers could understand differently is refused (RFC 9112, section
 *      11.2): there is one end of each message or none.  No option makes this laxer.
 *   4. The first fault is final: every later call returns it again.
 *
 * A fault is a status to answer with, a text, and an error: WEFT_EMSGSIZE for 413, 414
 * and 431, WEFT_EPROTO for the rest.  Of a response only text and error have a meaning.
 * The error's detail (weft_detail) is the text.
 *
 * Needs: weft/base.h and the C library.  Thread: any, one at a time for each object.
 */
#ifndef WEFT_HTTP_PARSE_H
#define WEFT_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/base.h>

#define WEFT__HTTP_FIELDS_MAX 100          /* what arrays of fields are made for */
#define WEFT__HTTP_HEAD_MAX   (32u << 10)  /* bytes, with empty lines before it */
#define WEFT__HTTP_TARGET_MAX (8u << 10)   /* bytes */
#define WEFT__HTTP_BODY_MAX   (UINT64_C(16) << 20)
#define WEFT__HTTP_METHOD_MAX 32           /* bytes; a longer one is 501 */
#define WEFT__HTTP_EMPTY_MAX  4            /* empty lines before a request */
#define WEFT__HTTP_EXT_MAX    256          /* bytes of one chunk's extensions */

/* A part of the message, by its offset from the message's first byte. */
struct weft__http_part {
	uint32_t at, size;
};

struct weft__http_field {
	struct weft__http_part name, value; /* the value without white space around it */
};

/* 0 is the default; UINT64_MAX as body_max is no limit. */
struct weft__http_limits {
	uint32_t head_max;   /* of the head, and once more of the trailers */
	uint32_t target_max;
	uint64_t body_max;   /* decoded bytes */
};

struct weft__http_fault {
	int         status; /* 400, 413, 414, 417, 431, 501 or 505; 0: none */
	int         error;
	const char *text;   /* static */
};

/* Lines of fields up to the empty one.  Private, but for fields and count. */
struct weft__http_lines {
	struct weft__http_field *fields; /* caller's memory */
	uint32_t count, room;
	uint32_t line; /* where the present line begins */
	uint32_t at;   /* all before it was looked at */
};

/* Where the body ends. */
enum weft__http_framing {
	WEFT__HTTP_NO_BODY,
	WEFT__HTTP_LENGTH,      /* after head->length bytes, which are not 0 */
	WEFT__HTTP_CHUNKED,
	WEFT__HTTP_UNTIL_CLOSE, /* of a response */
	WEFT__HTTP_TUNNEL,      /* no HTTP after this head: 101, or CONNECT was granted */
};

enum weft__http_form {
	WEFT__HTTP_ORIGIN,    /* "/path?query" */
	WEFT__HTTP_ABSOLUTE,  /* "http://host/path?query"; its path may be empty */
	WEFT__HTTP_AUTHORITY, /* "host:port", of CONNECT alone */
	WEFT__HTTP_ASTERISK,  /* "*", of OPTIONS alone */
};

enum {
	WEFT__HTTP_KEEP_ALIVE = 1 << 0, /* the connection can serve another exchange */
	WEFT__HTTP_UPGRADE    = 1 << 1, /* to head->upgrade, also named by Connection */
	WEFT__HTTP_CONTINUE   = 1 << 2, /* the client waits for 100 before its body */
};

/* The request that a response answers: these have no body whatever is in the head. */
enum weft__http_asked {
	WEFT__HTTP_ASKED_OTHER,
	WEFT__HTTP_ASKED_HEAD,
	WEFT__HTTP_ASKED_CONNECT,
};

struct weft__http_head {
	/* Read-only once the head is complete.  A part that is not there is empty. */
	struct weft__http_part  method, target, path, query; /* of a request */
	struct weft__http_part  host;    /* of the target, else of Host; may have a port */
	struct weft__http_part  reason;  /* of a response */
	struct weft__http_part  upgrade; /* value of the first Upgrade field */
	struct weft__http_lines lines;   /* its fields and their count */
	uint64_t                length;  /* of a body framed by its length */
	uint32_t                size;    /* bytes of the head: the body begins there */
	uint16_t                status;  /* of a response */
	uint8_t                 minor;   /* the version is 1.minor: 0 or 1 */
	uint8_t                 form;    /* enum weft__http_form */
	uint8_t                 framing; /* enum weft__http_framing */
	uint8_t                 flags;   /* WEFT__HTTP_KEEP_ALIVE and so on */
	struct weft__http_fault fault;

	/* private from here on */
	struct weft__http_limits limits;
	uint16_t seen;   /* what fields were there */
	uint8_t  state;
	uint8_t  empty;  /* lines before the request */
	uint8_t  asked;
	bool     is_response;
};

/* What a call found. */
enum {
	WEFT__HTTP_MORE = 0, /* call again when there are more bytes */
	WEFT__HTTP_DONE = 1, /* the head, or the body, is complete */
	WEFT__HTTP_DATA = 2, /* bytes of the body */
};

/* Begin to read a head into `room` fields, borrowed as long as the head is in use.  One
 * field more than that is 431.  `limits` may be NULL. */
void weft__http_request_init(struct weft__http_head *head, struct weft__http_field *fields,
                             uint32_t room, const struct weft__http_limits *limits);
void weft__http_response_init(struct weft__http_head *head, struct weft__http_field *fields,
                              uint32_t room, const struct weft__http_limits *limits,
                              enum weft__http_asked asked);

/* Go on with a head of which data[0..size) has arrived: from its first byte on, at least
 * as much as the call before had, and the same.  Does not look beyond its end.
 * Returns WEFT__HTTP_MORE, WEFT__HTTP_DONE, the fault's error, or WEFT_EINVAL for fewer
 * bytes than before. */
int weft__http_head_parse(struct weft__http_head *head, const char *data, size_t size);

/* The next field called `name`, in any case, from number *index on, which is moved
 * beyond it; NULL if there is none. */
const struct weft__http_field *weft__http_field_next(const struct weft__http_lines *lines,
                                                     const char *data, const char *name,
                                                     uint32_t *index);

/* --- bodies ----------------------------------------------------------------- */

struct weft__http_body {
	/* Trailers, once the body is complete: offsets from `at` of the last step. */
	struct weft__http_lines trailers;
	struct weft__http_fault fault;
	uint64_t                taken; /* decoded bytes so far */

	/* private from here on */
	uint64_t left;      /* of the length or of the present chunk */
	uint64_t max;
	uint32_t head_max;
	uint32_t ext_total; /* bytes of extensions, of all chunks */
	uint16_t ext;       /* of the present one */
	uint8_t  digits;    /* of the size of the present chunk */
	uint8_t  state;
};

/* What a call consumed, and where it found something. */
struct weft__http_step {
	size_t used;     /* bytes from the front that are done with */
	size_t at, size; /* DATA: bytes of the body, which end at `used`;
	                  * DONE: the trailers, their empty line included */
};

/* Begin to read the body that `head` announces, once that is complete (before, there is
 * none); trailers go into `room` fields as those of a head do. */
void weft__http_body_init(struct weft__http_body *body, const struct weft__http_head *head,
                          struct weft__http_field *fields, uint32_t room);

/* Go on with a body: data[0] is the first byte that no step before has used.  Fills `out`
 * unless it fails.
 * Returns WEFT__HTTP_DATA: use the bytes of the step, and call again for the rest;
 * WEFT__HTTP_MORE: once there is more than what is left; WEFT__HTTP_DONE: what is left is
 * no longer of this message; or the fault's error. */
int weft__http_body_next(struct weft__http_body *body, const char *data, size_t size,
                         struct weft__http_step *out);

/* The connection ended.  Returns 0 if the body is complete by that or was before, else
 * WEFT_ETRUNCATED, or the fault's error. */
int weft__http_body_close(struct weft__http_body *body);

#endif
