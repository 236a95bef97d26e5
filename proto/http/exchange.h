/* exchange.h - one exchange, a request and its reply, on either side.  Private.
 *
 * The files: memory.c (what a loop keeps for exchanges), wire.c (bytes to and from the
 * stream), incoming.c (a head and what it says), body.c and body_read.c (its body),
 * query.c (parameters), fields.c (outgoing fields), outgoing.c (a message going out),
 * phrase.c (statuses and dates).
 *
 *   1. An exchange and what is made for it lie in slabs of its loop, which go back when
 *      it ends: a connection without an exchange holds none.
 *   2. Output is buffered in the wire, in the order in which it was made.  It is sent
 *      before anything waits for the peer, so that nobody waits for what was not sent.
 *   3. The incoming head stays in the stream's queue until it is complete; then it is
 *      copied, and parts of it can be ended by NUL where they lie.
 *   4. An error of the wire is for good: no other message fits after half a one.
 *
 * Needs: weft, the parser.  Thread: that of the stream's loop.
 */
#ifndef WEFT_HTTP_EXCHANGE_H
#define WEFT_HTTP_EXCHANGE_H

#include <weft/http.h>
#include "inner.h"
#include "values.h"

#define WEFT__HTTP_SLAB      8192u        /* bytes */
#define WEFT__HTTP_SPARE     64u          /* slabs that a loop keeps */
#define WEFT__HTTP_LINES_MAX (64u << 10)  /* bytes of outgoing fields */
#define WEFT__HTTP_TRAILERS  64u          /* incoming ones */
#define WEFT__HTTP_PARAMS    16u          /* in a pattern */
#define WEFT__HTTP_UNKNOWN   UINT64_MAX   /* length */
#define WEFT__HTTP_DRAIN     (64u << 10)  /* bytes of a body that nobody wants */

/* --- memory.c ---------------------------------------------------------------- */

/* What a loop keeps for all exchanges on it. */
struct weft__http_local {
	struct weft__http_slab { struct weft__http_slab *next; } *spare;
	uint32_t spare_count;
	uint32_t date_size;
	uint64_t date_until_ns; /* clock of the loop: the text is right before that */
	int64_t  date_s;        /* wall clock */
	char     date[40];      /* "Date: ...\r\n" */
};

/* That of the caller's loop; NULL without memory. */
struct weft__http_local *weft__http_local(void);

void *weft__http_slab_take(struct weft__http_local *local);
void  weft__http_slab_give(struct weft__http_local *local, void *slab);

/* Memory that goes all at once. */
struct weft__http_arena {
	char *at, *end;                                         /* free */
	struct weft__http_block { struct weft__http_block *next; } *blocks;
};

/* NULL without memory; aligned to 8. */
void *weft__http_arena_take(struct weft__http_arena *arena, size_t size);
void  weft__http_arena_clear(struct weft__http_arena *arena);

/* A copy ended by NUL, or NULL. */
char *weft__http_arena_copy(struct weft__http_arena *arena, const char *text, size_t size);

/* --- wire.c ------------------------------------------------------------------ */

/* How long the peer may still move nothing.  Each byte that it moves adds to that. */
struct weft__http_pace {
	uint64_t left_ns;
};

struct weft__http_wire {
	weft_stream             *stream;
	struct weft__http_local *local;
	char                    *out;      /* a slab, or NULL */
	uint32_t                 out_size; /* bytes in it */
	uint32_t                 rate_min; /* bytes per second; 0: any */
	uint64_t                 grace_ns; /* a pace begins with this, */
	uint64_t                 pause_ns; /* and grows to this, if that is more */
	uint64_t                 unsent;   /* bytes that the peer had not acknowledged when
	                                    * they were last counted, and what was sent since */
	const uint32_t          *draining; /* if set and not 0, replies are the last */
	bool                     slow;     /* the peer was too slow */
	int                      error;    /* of output, for good; or 0 */
	struct weft__http_pace   out_pace;
	void (*on_progress)(struct weft__http_wire *wire); /* bytes have moved; or NULL */
	/* If set, it decides on output instead of a pace: whether it may go on (NULL), and
	 * how long an op is waited for.  0, or an error. */
	int (*wait)(struct weft__http_wire *wire, weft_op *op, uint64_t deadline_ns);
	void                    *owner;    /* of both functions */
};

/* Prepare one; 0 or WEFT_ENOMEM. */
int weft__http_wire_init(struct weft__http_wire *wire, weft_stream *stream);

/* Give the buffer back; what is in it is lost. */
void weft__http_wire_fini(struct weft__http_wire *wire);

/* Room for `size` bytes, at most a slab, in the buffer; to be told of by _add() once they
 * are written there.  NULL: wire->error is why. */
char *weft__http_wire_room(struct weft__http_wire *wire, size_t size, uint64_t deadline_ns);

static inline void
weft__http_wire_add(struct weft__http_wire *wire, const char *end)
{
	wire->out_size = (uint32_t)(end - wire->out);
}

/* Put bytes into the buffer, at most half a slab.  0, or an error. */
int weft__http_wire_put(struct weft__http_wire *wire, const void *bytes, size_t size,
                        uint64_t deadline_ns);

/* Send the buffer, and at most 6 `spans` behind it, in one write if it can be; what is
 * small is put into the buffer instead, unless told to go `now`.  0, or an error. */
int weft__http_wire_send(struct weft__http_wire *wire, const weft_span *spans, size_t count,
                         bool now, uint64_t deadline_ns);
int weft__http_wire_flush(struct weft__http_wire *wire, uint64_t deadline_ns);

/* Send a part of a file; what was buffered has been sent.  0, or an error; WEFT_ETRUNCATED
 * if it ends before. */
int weft__http_wire_file(struct weft__http_wire *wire, int fd, struct weft__http_range part,
                         uint64_t deadline_ns);

/* The buffer has been sent, and nothing is to follow soon: give it back. */
void weft__http_wire_rest(struct weft__http_wire *wire);

/* As weft_peek(), after sending the buffer if there is something to wait for. */
ssize_t weft__http_wire_peek(struct weft__http_wire *wire, size_t min, const void **out,
                             uint64_t deadline_ns);

/* The same, as fast as the peer has to be: if it is not, wire->slow. */
ssize_t weft__http_wire_peek_paced(struct weft__http_wire *wire, size_t min,
                                   const void **out, struct weft__http_pace *pace,
                                   uint64_t deadline_ns);

/* When the pace ends if nothing moves from now on; and account for a wait in which `bytes`
 * have moved. */
uint64_t weft__http_pace_end(const struct weft__http_wire *wire,
                             const struct weft__http_pace *pace, uint64_t now_ns);
void weft__http_pace_spend(const struct weft__http_wire *wire,
                           struct weft__http_pace *pace, uint64_t waited_ns,
                           uint64_t bytes);

/* Account for a wait for output: ask how much the peer has acknowledged meanwhile. */
void weft__http_wire_waited(struct weft__http_wire *wire, uint64_t waited_ns);

/* When a wait for output that began at `now_ns` has to be accounted for: at the end of its
 * pace, or sooner, so that progress is noticed before pause_ns has passed. */
uint64_t weft__http_wire_look(const struct weft__http_wire *wire, uint64_t now_ns);

/* --- an exchange ------------------------------------------------------------- */

struct weft__http_in {
	struct weft__http_head  head;
	char                   *text;     /* the head; NULL until it is complete */
	char                   *trailers; /* or NULL */
	struct weft__http_body  body;
	uint64_t                ready;    /* bytes of the body at the front of the queue */
	struct weft__http_pace  pace;     /* of the body */
	bool                    over;     /* the body was read to its end */
	int                     lost;     /* why it never will be, or 0 */
	bool                    asks;     /* the client waits for 100 */
	const char             *path;     /* decoded; NULL: not yet */
	uint32_t                path_size;
	char                   *query;    /* "name\0value\0" ..., decoded; NULL: not yet */
	size_t                  query_size;
};

enum weft__http_stage { WEFT__HTTP_NOT_BEGUN, WEFT__HTTP_BEGUN, WEFT__HTTP_ENDED };

struct weft__http_out {
	char    *lines;       /* "Name: value\r\n" ..., of the head, then of the trailers */
	uint32_t lines_size, lines_room;
	uint64_t length;      /* told by Content-Length, or WEFT__HTTP_UNKNOWN */
	uint64_t left;        /* of it */
	int      status;      /* of a reply */
	uint8_t  stage;       /* enum weft__http_stage */
	uint8_t  framing;     /* enum weft__http_framing */
	bool     bodyless;    /* whatever is written, no body is sent */
	bool     close;       /* it is the last on its connection */
	bool     cut;         /* the peer takes no more of it; it has ended */
	bool     has_date;
};

struct weft__http_param {
	const char *name;
	const char *value; /* not ended; */
	uint32_t    size;
	char       *text;  /* once it was asked for */
};

struct weft_http {
	struct weft__http_wire  *wire;
	struct weft__http_arena  arena;
	struct weft__http_in     in;
	struct weft__http_out    out;
	void                    *owner; /* connection of a server, or what a client has */
	const weft_abort        *abort; /* of a client's request, referenced; or NULL */
	bool                     is_server;
	uint8_t                  param_count;
	struct weft__http_param  params[WEFT__HTTP_PARAMS]; /* of the pattern */
	struct weft__http_field  fields[WEFT__HTTP_FIELDS_MAX];
	char                     first[]; /* of the arena: the rest of the slab */
};

/* Make one in a slab of the wire's loop, and end it; NULL without memory. */
weft_http *weft__http_new(struct weft__http_wire *wire, void *owner);
void       weft__http_end(weft_http *http);

/* --- guard.c ------------------------------------------------------------------------ */

/* What the calls of an exchange are made in, so that its signal ends them. */
struct weft__http_guard {
	weft_scope scope;
	bool       is_open;
};

/* Begin such a call; and end it.  0, or the signal's error; then it is not to be made. */
int  weft__http_guard_begin(struct weft__http_guard *guard, const weft_abort *abort);
void weft__http_guard_end(struct weft__http_guard *guard);

/* --- incoming.c, body_read.c ----------------------------------------------------- */

/* Receive the head, which in.head was prepared for (weft__http_request_init() or
 * _response_init() with http->fields), and copy it out of the queue.
 * Returns 0; WEFT_EPIPE if the connection ended before its first byte, WEFT_ETRUNCATED
 * within it; the fault's error, or as weft_peek(). */
int weft__http_receive(weft_http *http, uint64_t deadline_ns);

/* The same from what is there already; WEFT_EAGAIN: that is not all of it. */
int weft__http_receive_here(weft_http *http);

/* Whether the next head begins in bytes that are there. */
bool weft__http_has_more(struct weft__http_wire *wire);

/* Read the rest of the incoming body and drop it, at most `max` bytes.  Returns 0 at its
 * end, WEFT_EMSGSIZE, or as weft_http_read(). */
int weft__http_drain(weft_http *http, uint64_t max, uint64_t deadline_ns);

/* Drop what has come of the incoming body, without waiting.  Returns 0 if that was the rest;
 * how many bytes there have to be for more of it; or an error, after which nobody can. */
ssize_t weft__http_drop_here(weft_http *http);

/* A part of the head, ended by NUL where it lies. */
const char *weft__http_text(weft_http *http, struct weft__http_part part);

/* A field of the head as it is: its value is in *out.  False: there is none. */
bool weft__http_value(weft_http *http, const char *name, struct text *out);

/* Have the path decoded.  0, WEFT_EINVAL if it cannot be, WEFT_ENOMEM. */
int weft__http_decode_path(weft_http *http);

/* --- outgoing.c, fields.c ------------------------------------------------------- */

/* Begin a reply, or a request whose first line ("GET / HTTP/1.1\r\n") is given: decide how
 * its body is framed (length: WEFT__HTTP_UNKNOWN, or what it is) and put the head
 * into the buffer.  0, WEFT_EALREADY, or an error of the wire. */
int weft__http_begin_reply(weft_http *http, int status, const char *type, uint64_t length,
                           uint64_t deadline_ns);
int weft__http_begin_request(weft_http *http, struct text line, uint64_t length,
                             uint64_t deadline_ns);

/* The last of an outgoing message: with chunks their end and the trailers; into the
 * buffer.  0; WEFT_ETRUNCATED if less than its length was written; or an error. */
int weft__http_finish_message(weft_http *http, uint64_t deadline_ns);

/* Add a line without looking for one like it; both are checked. */
int weft__http_add_field(weft_http *http, const char *name, const char *value);

/* Add lines that are well-formed. */
int weft__http_add_lines(weft_http *http, struct text lines);

/* Take back every line of a name; whether there is one; and take back all that was set, but
 * for "Connection: close". */
void weft__http_cut_field(weft_http *http, const char *name);
bool weft__http_has_field(weft_http *http, const char *name);
void weft__http_cut_fields(weft_http *http);

/* Whether a value can stand in a head: no control bytes but HTAB. */
bool weft__http_is_value(struct text value);

/* --- call.c ------------------------------------------------------------------- */

/* On a client, put the URL in front of the text of an error of reading or writing a body.
 * Returns `error`. */
int weft__http_told(weft_http *http, int error);

/* The method of a client's request, after redirects. */
const char *weft__http_asked_by(weft_http *http);

/* --- phrase.c ---------------------------------------------------------------- */

/* "200 OK"; for a status without a name its number alone.  At most 48 bytes. */
struct text weft__http_phrase(int status, char number[8]);

/* "Date: ...\r\n" of now. */
struct text weft__http_date_line(struct weft__http_local *local);

/* Write a number in digits; returns the end.  At most 20 bytes. */
char *weft__http_put_number(char *at, uint64_t number);
char *weft__http_put_hex(char *at, uint64_t number);

static inline char *
weft__http_put_text(char *at, struct text text)
{
	memcpy(at, text.data, text.size);
	return at + text.size;
}

#define WEFT__HTTP_LITERAL(literal) ((struct text){ literal, sizeof(literal) - 1 })

#endif
