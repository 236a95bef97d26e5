/* weft/http.h - HTTP/1.1, server and client.
 *
 * A weft_http is one exchange, a request and its reply, and is the same on both
 * sides: "incoming" is the request on a server and the reply on a client, "outgoing"
 * the other.  Every dimension is bounded, and a peer that exceeds a bound gets the right
 * status.
 *
 * A server has one threadlet for each connection, and the exchanges of a connection
 * run on it one after the other.  Replies leave when the peer has nothing more in hand to
 * be answered: those to pipelined requests in one write.
 *
 * No limit bounds a whole transfer.  A handler is cancelled after request_ns in which no byte
 * of its request or reply has moved.  A peer may move nothing for grace_ns at first; each byte
 * it moves then adds 1/rate_min seconds, up to request_ns.  A slower peer is dropped.
 *
 * Link with weft_http, and with weft.
 */
#ifndef WEFT_HTTP_H
#define WEFT_HTTP_H

#include <weft/abort.h>
#include <weft/addr.h>
#include <weft/base.h>
#include <weft/listener.h>
#include <weft/value.h>

WEFT_BEGIN

typedef struct weft_http        weft_http;
typedef struct weft_http_server weft_http_server;
typedef struct weft_http_client weft_http_client;

typedef struct weft_http_field { const char *name, *value; } weft_http_field;

/* Answers one request.  A negative return before the reply has begun becomes a
 * 500 (WEFT_EMSGSIZE a 413), after it ends the connection; an exchange that was not
 * answered is a 404. */
typedef int (*weft_http_fn)(weft_http *http, void *arg);

typedef struct weft_http_server_opts {
	size_t   header_max;     /* bytes; default 32 KiB */
	uint64_t body_max;       /* bytes; default 16 MiB */
	uint64_t header_ns;      /* to receive a header; default 10 s */
	uint64_t idle_ns;        /* kept alive; default 60 s */
	uint64_t request_ns;     /* a handler without progress; default 60 s */
	uint32_t rate_min;       /* bytes per second after grace_ns; default 128 */
	uint32_t requests_max;   /* handled at once, above: 503; default 10,000 */
	size_t   target_max;     /* bytes of path and query; default 8 KiB */
	uint64_t grace_ns;       /* before rate_min counts; default 10 s */
	size_t   stack_bytes;    /* for handlers; at most 1 GiB; default: the loop's, 64 KiB */
	uint64_t drain_ns;       /* for the last request of a connection; default 0.5 s */
	uint32_t idle_max;       /* connections without a request; above, the one that waits
	                          * longest is closed, first of all one that was never
	                          * answered below 400; default: no bound */
	uint64_t spare[2];
} weft_http_server_opts;

/* Make a server without routes; NULL without memory.  Free it once nothing serves;
 * accepts NULL.
 * free returns 0, WEFT_EBUSY.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_http_server *weft_http_server_new(const weft_http_server_opts *opts);
WEFT_API int weft_http_server_free(weft_http_server *server);

/* Answer requests that match `pattern`, copied, by `fn`: "GET /feed/{viewer}",
 * "/static/{path...}".  Without a method it is for all.  The most specific pattern
 * wins, from left to right: a segment as it stands, then {x}, then {x...}, which may be
 * empty.  HEAD is answered by what answers GET, OPTIONS by the list of methods, if nothing
 * else does.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY while it serves.
 * Thread: any, before serving.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_http_route(weft_http_server *server, const char *pattern,
                             weft_http_fn fn, void *arg);

/* Serve requests on `listener`, borrowed, until it is closed, the caller is cancelled or
 * the deadline; then drain.  Replies from then on say "Connection: close".  A connection
 * without a request waits for one for drain_ns, since it may be on its way, and is closed.
 * Event streams are cancelled, which is their end.  What is left at the deadline, or five
 * seconds after the deadline that ended it or a cancellation, is cancelled.
 * Returns WEFT_ESHUTDOWN once closed, else why it ended.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_serve(weft_http_server *server, weft_listener *listener,
                             uint64_t deadline_ns);

struct weft_http_server_stats {
	uint64_t connections; /* taken */
	uint64_t requests;    /* whole heads that were understood */
	uint64_t faults;      /* heads and bodies that were refused: 400 and its like */
	uint64_t shed;        /* 503 for more than requests_max at once */
	uint64_t slow;        /* dropped: no head in time, or under rate_min */
	uint64_t idle;        /* closed for being idle */
	uint64_t failed;      /* handlers that failed: 500, or a reply cut short */
	uint32_t open;        /* connections now */
	uint32_t active;      /* requests in hand now */
	uint64_t spare[4];
};

/* Read what a server has seen, shed and dropped so far.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_http_server_stats(const weft_http_server *server,
                                     struct weft_http_server_stats *out);

/* --- the incoming side ---------------------------------------------------- */

/* Method and path of the request, the path decoded and without dots ("" on a client, which
 * has weft_http_url()); the status of the reply, 0 before it is known.  Borrowed until the
 * exchange ends.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_http_method(weft_http *http);
WEFT_API const char *weft_http_path(weft_http *http);
WEFT_API int         weft_http_status(weft_http *http);

/* A parameter of the pattern or of the query, decoded, the first of its name; an incoming
 * header by name, the first such; headers by index, trailers after them once the body was
 * read.  NULL, or false, if there is none.  Borrowed until the exchange ends.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_http_param(weft_http *http, const char *name);
WEFT_API const char *weft_http_header(weft_http *http, const char *name);
WEFT_API bool weft_http_header_at(weft_http *http, size_t index,
                                  weft_http_field *out);

/* Who the other side is; of a Unix socket an address of that kind.
 * Returns 0, WEFT_EPIPE once the connection is gone, or as weft_stream_peer().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_http_peer(weft_http *http, weft_addr *out);

/* Read some of the incoming body, decoded; a client that asked whether it may send it
 * is told to, by the first call.
 * Returns the count, 0 at its end, WEFT_EMSGSIZE, WEFT_ETRUNCATED, WEFT_EPROTO.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_http_read(weft_http *http, void *buf, size_t size,
                                uint64_t deadline_ns);

/* Read all of the incoming body, at most `size` bytes.
 * Returns the count, WEFT_EMSGSIZE if there are more, or as weft_http_read().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_http_read_all(weft_http *http, void *buf, size_t size,
                                    uint64_t deadline_ns);

/* --- the outgoing side ---------------------------------------------------- */

/* Set an outgoing header in place of one of that name, but for Set-Cookie, of which there
 * may be many; after the body has begun, a trailer, which a peer that speaks 1.0 is not
 * sent; copies.  NULL takes it back.
 * Connection is for "close" alone; Content-Length tells the size of a body that is
 * written piece by piece.
 * Returns 0, WEFT_EINVAL for what cannot stand in a header or is not the caller's to say,
 * WEFT_EALREADY after the last, WEFT_EMSGSIZE above 64 KiB, WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_http_set_header(weft_http *http, const char *name, const char *value);

/* Server: send a whole reply of `type`, which may be NULL.
 * Returns 0, WEFT_EALREADY if begun, or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_reply(weft_http *http, int status, const char *type,
                             weft_span body, uint64_t deadline_ns);

/* Server: reply with the file `name` under `root`, which it cannot leave; a folder by its
 * index.html.  Validators, one range and the type by its suffix are seen to; a request
 * for several ranges gets the whole file.  What a file is is looked at once a second.
 * Returns 0, also when it answered 404; or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_reply_file(weft_http *http, const char *root,
                                  const char *name, uint64_t deadline_ns);

/* Server: begin a reply whose body is written piece by piece, and leaves with the first
 * of them; and turn the connection into a plain stream, which the caller owns (101): the
 * handler has no other deadline from then on.
 * Return 0, WEFT_EALREADY, WEFT_EINVAL, or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_begin(weft_http *http, int status, const char *type,
                             uint64_t deadline_ns);
WEFT_API int weft_http_upgrade(weft_http *http, const char *protocol,
                               weft_stream **out, uint64_t deadline_ns);

/* Write a piece of the outgoing body; send a server-sent event (begins the reply
 * if need be; `event` may be NULL).  With events the handler has no deadline but its own
 * any more, and no incoming body; it is cancelled when the peer is gone, has sent more than
 * 4 KiB ahead, or the server drains.
 * Return the count (0), or as weft_stream_write(); WEFT_EINVAL for more than Content-Length, or
 * an event's name of several lines.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_http_write(weft_http *http, const void *buf, size_t size,
                                 uint64_t deadline_ns);
WEFT_API int weft_http_send_event(weft_http *http, const char *event, const char *data,
                             uint64_t deadline_ns);

/* --- client ---------------------------------------------------------------- */

typedef struct weft_http_client_opts {
	weft_loop *loop;           /* default: the caller's */
	weft_tls  *tls;            /* default: verify with the system's CAs; borrowed */
	uint32_t   per_host_max;   /* connections to an origin; default 64 */
	uint32_t   redirects_max;  /* default 10 */
	uint64_t   idle_ns;        /* a connection is kept unused; default 30 s */
	size_t     header_max;     /* bytes; default 32 KiB */
	uint32_t   queue_max;      /* who wait for a connection to an origin; default 1,024 */
	uint32_t   idle_max;       /* connections kept unused, of all; default 256 */
	uint64_t   spare[3];
} weft_http_client_opts;

typedef struct weft_http_request {
	const char            *method;  /* default GET; not CONNECT */
	const char            *url;     /* http://, https:// or http+unix://%2Fpath/ */
	const weft_http_field *fields;
	size_t                 field_count;
	weft_span              body;
	bool                   streamed; /* body by weft_http_write(), then _finish() */
	bool                   no_redirect; /* a redirect is a reply like any other */
	const weft_abort      *abort;    /* ends the exchange, its body included; or NULL */
	uint64_t               spare[4];
} weft_http_request;

/* Make a client with its pool of connections, for one loop; NULL without memory or loop.
 * An origin is a scheme, a host and a port; connections to it are kept and used again, the
 * latest first.  Idle ones are background work.  The client refers to its loop until it is
 * freed, and closes what is idle then.
 * Free it with no exchange open; accepts NULL; returns 0, WEFT_EBUSY.
 * Thread: any; loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_http_client *weft_http_client_new(const weft_http_client_opts *opts);
WEFT_API int weft_http_client_free(weft_http_client *client);

/* Send `request`, borrowed, and wait for the head of the reply (if streamed: only
 * send its head).  The caller ends the exchange by weft_http_close().
 *
 * Host, Content-Length, Connection and all else that frames a message or rules the
 * connection is the client's to say: as fields they are WEFT_EINVAL.  A request without a
 * User-Agent gets one.  Bodies are what was sent: nothing is decompressed.
 *
 * Redirects are followed: 303, and after a POST 301 and 302, by a GET without body, others
 * with method and body.  To another origin Authorization, Cookie and Proxy-Authorization do
 * not go along; from https:// to http://, or to a Unix socket, nothing does: WEFT_EPERM.
 * Streamed requests are not redirected.
 *
 * A request that finds its kept connection closed before any byte of a reply is sent once
 * more, on a new one, if its method is idempotent.  A reply that comes while the body is
 * still being sent, and is no success, ends the sending.
 *
 * Returns 0, whatever the status, and fills `out`; or an error of weft_stream_connect(),
 * WEFT_EINVAL, WEFT_EPROTO, WEFT_ETRUNCATED, WEFT_EMSGSIZE (a head above header_max),
 * WEFT_EAGAIN if the pool's queue is full, -ELOOP after too many redirects; the URL, without
 * its query, is in weft_detail().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_fetch(weft_http_client *client,
                             const weft_http_request *request, weft_http **out,
                             uint64_t deadline_ns);

/* End a streamed request body and wait for the head of the reply; also after a write that
 * failed with WEFT_EPIPE or WEFT_ECONNRESET, since the peer may have said why.
 * Returns 0, or as weft_http_fetch(); WEFT_EALREADY if it has done so before.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_finish(weft_http *http, uint64_t deadline_ns);

/* Client: the URL that the exchange is with, after redirects, without a fragment.
 * Borrowed until the exchange ends; "" on a server.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_http_url(weft_http *http);

/* End an exchange of a client; takes it; accepts NULL.  The connection is kept if
 * its reply was read to the end, or the rest is there and not more than 64 KiB.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_http_close(weft_http *http);

WEFT_END
#endif
