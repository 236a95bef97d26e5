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

#define WEFT__HTTP_DRAIN_MAX (64u << 10) /* unread bytes of a reply that are dropped */
#define WEFT__HTTP_DRAIN_NS  WEFT_S      /* time to do so before a redirect */
#define WEFT__HTTP_INTERIM   16          /* 1xx replies before the final one */

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
	bool     streamed;     /* and not finished yet */
	bool     with_body;    /* false after a redirect that makes it a GET */
	bool     with_secrets; /* false after a redirect to another origin */
	uint32_t hops;         /* redirects so far */
	/* of this attempt */
	bool     sent;         /* the whole request; never set if http->out.cut is */
	bool     refused;      /* the peer has replied or closed, and accepts no more of it */
	bool     prepared;     /* in.head is prepared for the reply */
	bool     replied;      /* a part of the reply has arrived */
	uint32_t interim;      /* 1xx replies so far */
	const char *unfit;     /* why no reply can follow, final; or NULL */
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

/* Receive the head of the final reply, once the request was sent or refused.  Returns 0, or an
 * error. */
int weft__http_call_reply(struct weft__http_call *call, uint64_t deadline_ns);

/* End this attempt and drop the rest of the reply.  The connection is kept if the rest is small
 * and arrives by the deadline, else closed. */
void weft__http_call_leave(struct weft__http_call *call, uint64_t deadline_ns);

/* Put method and URL in front of weft_detail(), which was cleared before the call.  Returns
 * `error`. */
int weft__http_call_fail(struct weft__http_call *call, int error);

/* Whether only the client may set this header. */
bool weft__http_is_ours(const char *name);

/* --- early.c ----------------------------------------------------------------- */

/* io->wait of a client: wait for a write op, or with NULL only check.  Returns WEFT_EPIPE and
 * sets call->refused once the peer has replied with an error or closed its direction. */
int weft__http_call_wait(struct weft__http_io *io, weft_op *op, uint64_t deadline_ns);

/* --- redirect.c -------------------------------------------------------------- */

/* What to do with a reply.  Returns 0: hand it to the caller; 1: send the call, which was
 * updated, to the URL in `next`; or an error. */
int weft__http_redirect(struct weft__http_call *call, struct weft__http_url *next);

/* Whether a header of the request may be sent in the current state of the call. */
bool weft__http_may_send(const struct weft__http_call *call, const char *name);

#endif
