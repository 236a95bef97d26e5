/* http_client.h - a client and its calls.  Private.
 *
 * The files: url.c (URLs), http_pool.c (connections), http_call.c (one attempt of a request),
 * early.c (replies that arrive while a body is sent), redirect.c (redirects), http_client.c (the
 * public calls).
 *
 * Thread: that of the client's loop.
 */
#ifndef WEFT_HTTP_CLIENT_H
#define WEFT_HTTP_CLIENT_H

#include "http/message/exchange.h"
#include "http/client/http_pool.h"
#include "http/parse/url.h"

/* A connection is closed, not kept, if more than DRAIN_MAX bytes of a reply are unread when the
 * exchange ends, or if the rest of a redirect's reply does not arrive within DRAIN_NS. */
#define WEFT__HTTP_DRAIN_MAX (64u << 10)
#define WEFT__HTTP_DRAIN_NS  WEFT_S
#define WEFT__HTTP_INTERIM   16          /* limit of 1xx replies before the final one */

#define WEFT__HTTP_REFUSED   "the peer accepts no more of the request"

struct weft_http_client {
	struct weft__http_pool pool;
	uint32_t redirects_max;
	uint32_t header_max;
	uint32_t open; /* calls */
};

/* A request from its first attempt to the end of the reply. */
struct weft__http_call {
	weft_http_client         *client;
	const weft_http_request  *request; /* borrowed by fetch: NULL once fetch has returned */
	struct weft__http_url     url;
	struct weft__http_conn_slot slot;
	struct weft__http_io    io;
	weft_http                *http;    /* of this attempt; NULL: none */
	char     method[WEFT__HTTP_METHOD_MAX + 1];
	bool     streamed;     /* the body is streamed, and weft_http_finish() has not succeeded */
	bool     with_body;    /* false after a redirect that makes it a GET */
	bool     with_secrets; /* false after a redirect to another origin */
	uint32_t hops;         /* redirects so far */
	/* of this attempt */
	bool     sent;         /* the whole request; never set if http->out.cut is */
	bool     refused;      /* a reply, or the end of the connection, ended sending */
	bool     prepared;     /* in.head is prepared for the reply */
	bool     replied;      /* a head has arrived, of the reply or a 1xx */
	uint32_t interim;      /* 1xx replies so far */
	const char *unfit;     /* why the 1xx heads received rule out a final reply; or NULL */
};

/* The call of a client's exchange. */
static inline struct weft__http_call *
weft__http_call_of(weft_http *http)
{
	return http->owner;
}

/* --- http_call.c ------------------------------------------------------------------ */

/* Send the request, on a new connection if a kept one turns out to be closed.  Then wait for
 * the head of the reply, unless the body is streamed.  Returns 0, or an error. */
int weft__http_call_try(struct weft__http_call *call, uint64_t deadline_ns);

/* Receive the head of the final reply.  If the request was not sent completely, the rest of it is
 * never sent.  Returns 0, or an error. */
int weft__http_call_reply(struct weft__http_call *call, uint64_t deadline_ns);

/* End this attempt and drop the rest of the reply.  The connection is kept if rule 3 of
 * http_call.c allows it and the rest of the reply, at most WEFT__HTTP_DRAIN_MAX bytes, arrives by
 * the deadline; else it is closed. */
void weft__http_call_leave(struct weft__http_call *call, uint64_t deadline_ns);

/* Put method and URL in front of weft_detail(), which the public call cleared when it began.
 * Returns `error`. */
int weft__http_call_fail(struct weft__http_call *call, int error);

/* Whether only the client may set this header. */
bool weft__http_is_ours(const char *name);

/* --- early.c ----------------------------------------------------------------- */

/* io->wait of a client: wait until the write op has finished; with NULL as op, only check whether
 * sending may continue.  If the peer sends a status of 300 or above, or bytes that are not HTTP,
 * or closes the connection before all is sent, the call sets call->refused and returns
 * WEFT_EPIPE.  Else it returns 0, or an error of the op or the wait. */
int weft__http_call_wait(struct weft__http_io *io, weft_op *op, uint64_t deadline_ns);

/* --- redirect.c -------------------------------------------------------------- */

/* Decide whether to follow a redirect.  Returns 0 if not: fetch returns the reply to its caller;
 * 1 if the request is to be sent to the URL in `next`, for which `call` was already updated; or
 * an error. */
int weft__http_redirect(struct weft__http_call *call, struct weft__http_url *next);

/* Whether a header of the request may be sent in the current state of the call. */
bool weft__http_may_send(const struct weft__http_call *call, const char *name);

#endif
