/* client.h - a client and its calls.  Private.
 *
 * The files: url.c (where to), pool.c (connections), call.c (one try of a request and what
 * becomes of its connection), early.c (replies that come while a body is sent), redirect.c
 * (where to go on), client.c (the public calls).
 *
 * Thread: that of the client's loop.
 */
#ifndef WEFT_HTTP_CLIENT_H
#define WEFT_HTTP_CLIENT_H

#include "exchange.h"
#include "pool.h"
#include "url.h"

#define WEFT__HTTP_DRAIN_MAX (64u << 10) /* bytes of a reply that nobody reads */
#define WEFT__HTTP_DRAIN_NS  WEFT_S      /* and how long, before a redirect */
#define WEFT__HTTP_INTERIM   16          /* replies with 1xx before the one that counts */

#define WEFT__HTTP_REFUSED   "the peer takes no more of the request"

struct weft_http_client {
	struct weft__http_pool pool;
	uint32_t redirects_max;
	uint32_t header_max;
	uint32_t open; /* calls */
};

/* A request from its first try to the end of the reply. */
struct weft__http_call {
	weft_http_client         *client;
	const weft_http_request  *request; /* borrowed by fetch: NULL once that has returned */
	struct weft__http_url     url;
	struct weft__http_slot    slot;
	struct weft__http_wire    wire;
	weft_http                *http;    /* of this try; NULL: none */
	char     method[WEFT__HTTP_METHOD_MAX + 1];
	bool     streamed;     /* and not finished yet */
	bool     with_body;    /* not after a redirect that makes it a GET */
	bool     with_secrets; /* not after one to another origin */
	uint32_t hops;         /* redirects so far */
	/* of this try */
	bool     sent;         /* all of the request: never if http->out is cut */
	bool     refused;      /* the peer has answered, or gone, and takes no more of it */
	bool     asked;        /* its reply is being waited for */
	bool     heard;        /* something of it has come */
	uint32_t interim;      /* replies with 1xx */
	const char *unfit;     /* why what has come leads to no reply, for good; or NULL */
};

/* Of an exchange on a client. */
static inline struct weft__http_call *
weft__http_call_of(weft_http *http)
{
	return http->owner;
}

/* --- call.c ------------------------------------------------------------------ */

/* Send the request, on another connection if a kept one turns out to be dead, and wait
 * for the head of the reply unless the body is streamed.  Returns 0, or an error. */
int weft__http_call_try(struct weft__http_call *call, uint64_t deadline_ns);

/* The head of the final reply, once all is sent or refused.  Returns 0, or an error. */
int weft__http_call_reply(struct weft__http_call *call, uint64_t deadline_ns);

/* End this try: what is left of the reply is dropped if it comes by the deadline and is
 * not much, and then the connection is kept, else closed. */
void weft__http_call_leave(struct weft__http_call *call, uint64_t deadline_ns);

/* Say what it was that failed, in front of weft_detail(), which was made empty before.
 * Returns `error`. */
int weft__http_call_fail(struct weft__http_call *call, int error);

/* Whether a field is the client's to say. */
bool weft__http_is_ours(const char *name);

/* --- early.c ----------------------------------------------------------------- */

/* wire->wait of a client: wait for an op that writes, or with NULL only look; WEFT_EPIPE,
 * with call->refused, once the peer has answered with an error or said its last. */
int weft__http_call_wait(struct weft__http_wire *wire, weft_op *op, uint64_t deadline_ns);

/* --- redirect.c -------------------------------------------------------------- */

/* What to do with a reply: 0: it is the caller's; 1: go on, with what the call says now,
 * its URL being in `next`; or an error. */
int weft__http_redirect(struct weft__http_call *call, struct weft__http_url *next);

/* Whether a field of the request may be sent in this state of the call. */
bool weft__http_may_send(const struct weft__http_call *call, const char *name);

#endif
