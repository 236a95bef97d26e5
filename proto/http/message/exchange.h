/* exchange.h - one exchange, a request and its reply, for server and client.  Private.
 *
 * The files: http_memory.c (per-loop slabs), http_io.c (bytes to and from the stream),
 * http_io_file.c (files to the stream), incoming.c (the incoming head), body.c and body_read.c
 * (the incoming body), query.c (parameters), fields.c (outgoing headers), outgoing.c (the
 * outgoing message), http_abort.c (abort signals), phrase.c (status lines and dates).
 *
 *   1. An exchange is in a slab of its loop, together with its allocations as long as they fit;
 *      others come from the allocator.  All are returned when the exchange ends.  A connection
 *      that waits for its next exchange holds no slab.
 *   2. Output is buffered in struct weft__http_io, in the order in which it was made.  The buffer
 *      is sent before a call waits for the peer, so that no wait depends on data that was not
 *      sent.
 *   3. The incoming head stays in the stream's queue until it is complete.  Then it is copied,
 *      and its parts can be ended by NUL in place.
 *   4. An error of the output is final: no message can follow one that was sent in part.
 *
 * Needs: weft, the parser.  Thread: that of the stream's loop.
 */
#ifndef WEFT_HTTP_EXCHANGE_H
#define WEFT_HTTP_EXCHANGE_H

#include <weft/http.h>
#include "http/parse/parse_inner.h"
#include "http/parse/http_values.h"

#define WEFT__HTTP_SLAB      8192u        /* bytes */
#define WEFT__HTTP_SPARE     64u          /* limit of spare slabs per loop */
#define WEFT__HTTP_LINES_MAX (64u << 10)  /* bytes of outgoing headers */
#define WEFT__HTTP_TRAILERS  64u          /* limit of incoming trailers */
#define WEFT__HTTP_PARAMS    16u          /* limit of parameters in a pattern */
#define WEFT__HTTP_UNKNOWN   UINT64_MAX   /* an unknown length */
#define WEFT__HTTP_DRAIN     (64u << 10)  /* bytes; if more of a request's body is unread, the
                                           * server closes the connection */

/* --- http_memory.c ---------------------------------------------------------------- */

/* Per-loop state of all exchanges. */
struct weft__http_local {
	struct weft__http_slab { struct weft__http_slab *next; } *spare;
	uint32_t spare_count;
	uint32_t date_size;
	uint64_t date_until_ns; /* loop clock: `date` is valid before it */
	int64_t  date_s;        /* wall clock */
	char     date[40];      /* "Date: ...\r\n" */
};

/* The state of the caller's loop; NULL without memory. */
struct weft__http_local *weft__http_local(void);

void *weft__http_slab_take(struct weft__http_local *local);
void  weft__http_slab_give(struct weft__http_local *local, void *slab);

/* Allocations that are freed all at once. */
struct weft__http_arena {
	char *at, *end;                                         /* the free range */
	struct weft__http_block { struct weft__http_block *next; } *blocks;
};

/* Allocate, aligned to 8; NULL without memory.  And free everything. */
void *weft__http_arena_take(struct weft__http_arena *arena, size_t size);
void  weft__http_arena_clear(struct weft__http_arena *arena);

/* A copy, ended by NUL; NULL without memory. */
char *weft__http_arena_copy(struct weft__http_arena *arena, const char *text, size_t size);

/* --- http_io.c ------------------------------------------------------------------ */

/* How long the peer may still make no progress: a time budget.  Each byte that moves adds to the
 * budget, and each wait for the peer uses it up. */
struct weft__http_pace {
	uint64_t left_ns;
};

struct weft__http_io {
	weft_stream             *stream;
	struct weft__http_local *local;
	char                    *out;      /* a slab, or NULL */
	uint32_t                 out_size; /* bytes in it */
	uint32_t                 rate_min; /* bytes per second; 0: no minimum */
	uint64_t                 grace_ns; /* initial value of a pace */
	uint64_t                 pause_ns; /* maximum of a pace, if more than grace_ns */
	uint64_t                 unsent;   /* bytes that the peer had not acknowledged at the
	                                    * last count, plus those sent since */
	const uint32_t          *draining; /* atomic; while not 0, a reply closes its connection;
	                                    * or NULL */
	bool                     slow;     /* the peer was too slow */
	int                      error;    /* of output, final; or 0 */
	struct weft__http_pace   out_pace;
	void (*on_progress)(struct weft__http_io *io); /* bytes have moved; or NULL */
	/* If set, replaces the pace for output.  With an op: wait for it.  With NULL: check
	 * whether output may continue.  Returns 0, or an error. */
	int (*wait)(struct weft__http_io *io, weft_op *op, uint64_t deadline_ns);
	void                    *owner;    /* for both functions */
};

/* Prepare input and output.  Returns 0 or WEFT_ENOMEM. */
int weft__http_io_init(struct weft__http_io *io, weft_stream *stream);

/* Return the buffer; its content is lost. */
void weft__http_io_fini(struct weft__http_io *io);

/* Room for `size` bytes, at most a slab, in the buffer.  The caller writes there and then calls
 * _add() with the end of what was written.  NULL: the reason is io->error. */
char *weft__http_io_room(struct weft__http_io *io, size_t size, uint64_t deadline_ns);

static inline void
weft__http_io_add(struct weft__http_io *io, const char *end)
{
	io->out_size = (uint32_t)(end - io->out);
}

/* Copy bytes, at most half a slab, into the buffer.  Returns 0, or an error. */
int weft__http_io_put(struct weft__http_io *io, const void *bytes, size_t size,
                        uint64_t deadline_ns);

/* Send the buffer and then at most 6 `spans`, in one write if possible.  Small spans are copied
 * into the buffer instead, unless `now` is set.  Returns 0, or an error. */
int weft__http_io_send(struct weft__http_io *io, const weft_span *spans, size_t count,
                         bool now, uint64_t deadline_ns);
int weft__http_io_flush(struct weft__http_io *io, uint64_t deadline_ns);

/* Send a part of a file.  The buffer must be empty.  Returns 0, an error, or WEFT_ETRUNCATED if
 * the file is shorter. */
int weft__http_io_file(struct weft__http_io *io, int fd, struct weft__http_range part,
                         uint64_t deadline_ns);

/* Return the buffer if it is empty.  For a connection that becomes idle. */
void weft__http_io_rest(struct weft__http_io *io);

/* As weft_stream_peek(), but sends the buffer before it waits. */
ssize_t weft__http_io_peek(struct weft__http_io *io, size_t min, const void **out,
                             uint64_t deadline_ns);

/* The same, as long as `pace` lasts.  When it has run out, sets io->slow and returns
 * WEFT_ETIMEDOUT. */
ssize_t weft__http_io_peek_paced(struct weft__http_io *io, size_t min,
                                   const void **out, struct weft__http_pace *pace,
                                   uint64_t deadline_ns);

/* When the pace runs out if no byte moves from now on; and account for a wait during which
 * `bytes` have moved. */
uint64_t weft__http_pace_end(const struct weft__http_io *io,
                             const struct weft__http_pace *pace, uint64_t now_ns);
void weft__http_pace_spend(const struct weft__http_io *io,
                           struct weft__http_pace *pace, uint64_t waited_ns,
                           uint64_t bytes);

/* Account for a wait for output: query how much the peer has acknowledged meanwhile. */
void weft__http_io_waited(struct weft__http_io *io, uint64_t waited_ns);

/* The time at which to account for a wait for output that begins at `now_ns`: when the pace runs
 * out, or earlier, so that progress is noticed before pause_ns has passed. */
uint64_t weft__http_io_recheck(const struct weft__http_io *io, uint64_t now_ns);

/* --- an exchange ------------------------------------------------------------- */

struct weft__http_in {
	struct weft__http_head  head;
	char                   *text;     /* the head; NULL until it is complete */
	char                   *trailers; /* or NULL */
	struct weft__http_body  body;
	uint64_t                ready;    /* bytes of the body at the front of the queue */
	struct weft__http_pace  pace;     /* for the body */
	bool                    over;     /* the body was read to its end */
	int                     lost;     /* the error after which the body cannot be read; or 0 */
	bool                    expects;  /* the client waits for 100 Continue */
	const char             *path;     /* decoded; NULL: not yet */
	uint32_t                path_size;
	char                   *query;    /* "name\0value\0" ..., decoded; NULL: not yet */
	size_t                  query_size;
};

enum weft__http_stage { WEFT__HTTP_NOT_BEGUN, WEFT__HTTP_BEGUN, WEFT__HTTP_ENDED };

struct weft__http_out {
	char    *lines;       /* "Name: value\r\n" ..., of the head, then of the trailers */
	uint32_t lines_size, lines_room;
	uint64_t length;      /* from Content-Length, or WEFT__HTTP_UNKNOWN */
	uint64_t left;        /* bytes of the body not yet written, if its length is known */
	int      status;      /* of a reply */
	uint8_t  stage;       /* enum weft__http_stage */
	uint8_t  framing;     /* enum weft__http_framing */
	bool     bodyless;    /* what is written to the body is not sent */
	bool     close;       /* the message is the last on its connection */
	bool     cut;         /* of a request: the rest is never sent; the stage is ENDED */
	bool     has_date;
};

struct weft__http_param {
	const char *name;
	const char *value; /* not ended by NUL */
	uint32_t    size;
	char       *text;  /* ended by NUL, once it was requested */
};

struct weft_http {
	struct weft__http_io  *io;
	struct weft__http_arena  arena;
	struct weft__http_in     in;
	struct weft__http_out    out;
	void                    *owner; /* a server's connection, or a client's call */
	const weft_abort        *abort; /* a client's, referenced; or NULL */
	bool                     is_server;
	uint8_t                  param_count;
	struct weft__http_param  params[WEFT__HTTP_PARAMS]; /* of the pattern */
	struct weft__http_field  fields[WEFT__HTTP_FIELDS_MAX];
	char                     first[]; /* for the arena: the rest of the slab */
};

/* Make an exchange in a slab of the stream's loop, NULL without memory; and end it. */
weft_http *weft__http_new(struct weft__http_io *io, void *owner);
void       weft__http_end(weft_http *http);

/* --- http_abort.c ------------------------------------------------------------------------ */

/* Encloses a call of an exchange, so that the exchange's abort signal ends the call. */
struct weft__http_guard {
	weft_scope scope;
	bool       is_open;
};

/* Begin such a call, and end it.  Begin returns 0; or an error, such as the signal's, and then
 * the call must not be made. */
int  weft__http_guard_begin(struct weft__http_guard *guard, const weft_abort *abort);
void weft__http_guard_end(struct weft__http_guard *guard);

/* --- incoming.c, body_read.c ----------------------------------------------------- */

/* Receive the head into in.head, which the caller has prepared by weft__http_request_init() or
 * _response_init() with http->fields, and copy it out of the queue.
 * Returns 0; WEFT_EPIPE if the connection ended before the first byte, WEFT_ETRUNCATED if it
 * ended within the head; the fault's error; or as weft_stream_peek(). */
int weft__http_receive(weft_http *http, uint64_t deadline_ns);

/* The same from the bytes that are available; WEFT_EAGAIN if the head is incomplete. */
int weft__http_receive_here(weft_http *http);

/* Whether incoming bytes are available. */
bool weft__http_has_more(struct weft__http_io *io);

/* Read the rest of the incoming body and drop it, at most `max` bytes.  Returns 0 at the end of
 * the body, WEFT_EMSGSIZE, or as weft_http_read(). */
int weft__http_drain(weft_http *http, uint64_t max, uint64_t deadline_ns);

/* Drop the available part of the incoming body, without waiting.  Returns 0 at the end of the
 * body; the number of bytes that must be available for further progress; or an error, after
 * which the body cannot be read. */
ssize_t weft__http_drop_here(weft_http *http);

/* A part of the head, ended by NUL in place. */
const char *weft__http_text(weft_http *http, struct weft__http_part part);

/* Find a header and store its value, not ended by NUL, in *out.  False if there is none. */
bool weft__http_value(weft_http *http, const char *name, struct text *out);

/* Decode the path.  Returns 0, WEFT_EINVAL if it is malformed, WEFT_ENOMEM. */
int weft__http_decode_path(weft_http *http);

/* --- outgoing.c, fields.c ------------------------------------------------------- */

/* Begin a reply, or a request with the given first line ("GET / HTTP/1.1\r\n"): decide how the
 * body is framed and put the head into the buffer.  `length` is the body's, or
 * WEFT__HTTP_UNKNOWN.  Return 0, WEFT_EALREADY, WEFT_EINVAL for a bad status or type, or an error
 * of the output. */
int weft__http_begin_reply(weft_http *http, int status, const char *type, uint64_t length,
                           uint64_t deadline_ns);
int weft__http_begin_request(weft_http *http, struct text line, uint64_t length,
                             uint64_t deadline_ns);

/* End an outgoing message.  With chunks, the last chunk and the trailers go into the buffer.
 * Returns 0; WEFT_ETRUNCATED if less than the length was written; or an error. */
int weft__http_finish_message(weft_http *http, uint64_t deadline_ns);

/* Add a header line, even if there is another of that name.  Name and value are checked. */
int weft__http_add_field(weft_http *http, const char *name, const char *value);

/* Add lines that are known to be well-formed. */
int weft__http_add_lines(weft_http *http, struct text lines);

/* cut_field: remove every line of that name.  has_field: whether there is a line of that name.
 * cut_fields: remove all lines and the length that was set, but not "Connection: close". */
void weft__http_cut_field(weft_http *http, const char *name);
bool weft__http_has_field(weft_http *http, const char *name);
void weft__http_cut_fields(weft_http *http);

/* Whether a value is allowed in a header: no control bytes except HTAB. */
bool weft__http_is_value(struct text value);

/* --- http_call.c ------------------------------------------------------------------- */

/* On a client, after fetch, put the URL in front of the text of an error from reading or writing
 * a body.  Returns `error`. */
int weft__http_explain(weft_http *http, int error);

/* The method of a client's request, after redirects. */
const char *weft__http_request_method(weft_http *http);

/* --- phrase.c ---------------------------------------------------------------- */

/* "200 OK"; for a status without a name only the number and a space, in `number`.  At most 48
 * bytes. */
struct text weft__http_phrase(int status, char number[8]);

/* "Date: ...\r\n" with the current time. */
struct text weft__http_date_line(struct weft__http_local *local);

/* Write a number, at most 20 digits.  Returns the end. */
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
