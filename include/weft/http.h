/* weft/http.h - HTTP/1.1, server and client.
 *
 * A weft_http is one exchange: a request and its reply.  The calls are the same on both sides:
 * "incoming" means the request on a server and the reply on a client, "outgoing" means the
 * reply on a server and the request on a client.  Every size, count and time is limited, and a
 * peer that exceeds a limit gets the matching status.
 *
 * A server runs one threadlet per connection, and handles the exchanges of a connection on it
 * one after the other.  It sends replies once it has handled all requests that have arrived:
 * replies to pipelined requests go out in one write.
 *
 * There is no time limit for a whole transfer.  Two limits end a transfer that makes too little
 * progress.  The server cancels a handler if no byte of its request or reply has moved for
 * request_ns.  And it drops a peer that is slower than rate_min bytes per second, on average,
 * after the first grace_ns.  For this average each peer has a time budget, which begins with
 * grace_ns: waiting for the peer uses up the budget, and each byte that moves adds 1/rate_min
 * seconds to it, up to request_ns (or grace_ns, if that is more).
 *
 * Link with weft_http and weft.
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

/* Handles one request.  If it returns >= 0 without a reply, the server replies with 404.  If it
 * returns an error before the reply has begun, the server replies with 500, or with the status
 * of what the client did wrong (for WEFT_EMSGSIZE 413).  If it returns an error after the reply
 * has begun, the server closes the connection. */
typedef int (*weft_http_fn)(weft_http *http, void *arg);

typedef struct weft_http_server_opts {
	size_t   header_max;     /* limit of the header section in bytes; default 32 KiB */
	uint64_t body_max;       /* limit of a body in bytes; default 16 MiB */
	uint64_t header_ns;      /* time to receive a header section; default 10 s */
	uint64_t idle_ns;        /* keep-alive time; default 60 s */
	uint64_t request_ns;     /* limit for a handler without progress; default 60 s */
	uint32_t rate_min;       /* slowest peer, in bytes per second after grace_ns; default 128 */
	uint32_t requests_max;   /* limit of requests handled at once; others get 503; default
	                          * 10,000 */
	size_t   target_max;     /* limit of path and query in bytes; default 8 KiB */
	uint64_t grace_ns;       /* time before rate_min applies; default 10 s */
	size_t   stack_bytes;    /* of handlers; at most 1 GiB, with TLS at least 64 KiB; default:
	                          * the loop's, 64 KiB */
	uint64_t drain_ns;       /* wait for a last request when draining; default 0.5 s */
	uint32_t idle_max;       /* limit of connections without a request; above it the server
	                          * closes the one that has waited longest, preferably one that
	                          * never got a reply below 400; default: no limit */
	uint64_t spare[2];       /* must be zero: room for later versions */
} weft_http_server_opts;

/* Make a server without routes; free a server that serves no listener.
 * new returns the server, or NULL if memory is exhausted; free accepts NULL and returns 0,
 * WEFT_EBUSY.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_http_server *weft_http_server_new(const weft_http_server_opts *opts);
WEFT_API int weft_http_server_free(weft_http_server *server);

/* Route requests that match `pattern`, copied, to `fn`: "GET /feed/{viewer}",
 * "/static/{path...}".  A pattern without a method matches all methods.  The most specific
 * pattern wins.  Patterns are compared segment by segment: a literal segment comes before {x},
 * and {x} before {x...}, which may match nothing.  A HEAD request without a route of its own
 * goes to the route of GET; an OPTIONS request without one gets the list of methods.
 * Returns 0, WEFT_EEXIST, WEFT_EINVAL, WEFT_ENOMEM, WEFT_EBUSY while it serves.
 * Thread: any, before serving.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_http_route(weft_http_server *server, const char *pattern,
                             weft_http_fn fn, void *arg);

/* Serve requests on `listener`, borrowed, until it is closed, the caller is canceled or the
 * deadline passes; then drain.  While draining, replies carry "Connection: close"; the server
 * closes a connection without a request after drain_ns, because a request may be on its way; and
 * it cancels the handlers of event streams and of upgraded connections.  If the listener was
 * closed, the drain ends at the deadline.  If the caller is canceled, or the deadline began the
 * drain, the drain ends five seconds after that.  Then the server cancels the connections that
 * are left.
 * Returns WEFT_ESHUTDOWN if the listener was closed, else the error that ended the serving.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_serve(weft_http_server *server, weft_listener *listener,
                             uint64_t deadline_ns);

struct weft_http_server_stats {
	uint64_t connections;  /* accepted */
	uint64_t requests;     /* requests with a complete, valid header section */
	uint64_t bad_requests; /* malformed requests: 400 and similar */
	uint64_t rejected_503; /* rejected with 503, above requests_max */
	uint64_t timed_out;    /* dropped: no header section in time, or below rate_min */
	uint64_t idle_closed;  /* closed because they were idle */
	uint64_t failed;       /* failed handlers: 500, or a truncated reply */
	uint32_t open;         /* open connections now */
	uint32_t active;       /* requests in progress now */
	uint64_t spare[4];     /* room for later versions */
};

/* Read the counters of a server.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_http_server_stats(const weft_http_server *server,
                                     struct weft_http_server_stats *out);

/* --- incoming --------------------------------------------------------------- */

/* Get the method and the path of the request, and the status of the reply.  The path is decoded
 * and has no dot segments; on a client it is "" (see weft_http_url()).  The status is 0 until it
 * is known.  Texts are borrowed until the exchange ends.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_http_method(weft_http *http);
WEFT_API const char *weft_http_path(weft_http *http);
WEFT_API int         weft_http_status(weft_http *http);

/* param: get the first parameter of that name in the pattern or the query, decoded.  header: get
 * the first incoming header of that name.  header_at: get an incoming header by its index;
 * trailers follow the headers once the body has been read.  Texts are borrowed until the
 * exchange ends.
 * Return the text (header_at: true and fills `out`); NULL (false) if there is none.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_http_param(weft_http *http, const char *name);
WEFT_API const char *weft_http_header(weft_http *http, const char *name);
WEFT_API bool weft_http_header_at(weft_http *http, size_t index,
                                  weft_http_field *out);

/* Get the address of the peer.  For a connection over a Unix socket it is a Unix address.
 * Returns 0, WEFT_EPIPE once the connection is gone, or as weft_stream_peer().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_http_peer(weft_http *http, weft_addr *out);

/* Read part of the incoming body, decoded.  The first call sends 100 Continue to a client that
 * expects it.
 * Returns the count, 0 at the end, WEFT_EMSGSIZE, WEFT_ETRUNCATED, WEFT_EPROTO.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_http_read(weft_http *http, void *buf, size_t size,
                                uint64_t deadline_ns);

/* Read the whole incoming body, at most `size` bytes.
 * Returns the count, WEFT_EMSGSIZE if it is larger, or as weft_http_read().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_http_read_all(weft_http *http, void *buf, size_t size,
                                    uint64_t deadline_ns);

/* --- outgoing --------------------------------------------------------------- */

/* Set an outgoing header; copies.  It replaces a header of the same name, except for
 * Set-Cookie, which may occur several times.  A NULL value removes the header.  After the body
 * has begun, the call sets a trailer, which is not sent to an HTTP/1.0 peer.  The only value
 * allowed for Connection is "close".  Set Content-Length to announce the size of a body that is
 * written piece by piece.
 * Returns 0, WEFT_EINVAL for invalid headers and those that only the library may set,
 * WEFT_EALREADY once the message is complete, WEFT_EMSGSIZE above 64 KiB, WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_http_set_header(weft_http *http, const char *name, const char *value);

/* Server: send a complete reply with the content type `type`, which may be NULL.
 * Returns 0, WEFT_EALREADY if the reply has begun, or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_reply(weft_http *http, int status, const char *type,
                             weft_span body, uint64_t deadline_ns);

/* Server: reply with the file `name` under the directory `root`; for a directory reply with its
 * index.html.  A name that leads out of `root` gets 404.  Handles validators (If-None-Match and
 * the like), a single range, and the content type by suffix; a request for several ranges gets
 * the whole file.  The server checks a file for changes once a second.
 * Returns 0, also if it replied with 404; or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_reply_file(weft_http *http, const char *root,
                                  const char *name, uint64_t deadline_ns);

/* Server.  begin: begin a reply whose body is written piece by piece; the header section is sent
 * with the first piece.  upgrade: reply with 101 and turn the connection into a plain stream,
 * which the caller owns; from then on request_ns no longer limits the handler.
 * Return 0, WEFT_EALREADY if the reply has begun, WEFT_EINVAL (upgrade: also if the client did not
 * request `protocol`), or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_begin(weft_http *http, int status, const char *type,
                             uint64_t deadline_ns);
WEFT_API int weft_http_upgrade(weft_http *http, const char *protocol,
                               weft_stream **out, uint64_t deadline_ns);

/* write: write a piece of the outgoing body; with size 0 send what is buffered.  A server begins
 * a reply with status 200 first, if none has begun.  send_event: send a server-sent event, and
 * first begin the reply if it has not begun; `event`, its name, may be NULL.  For a handler that
 * sends events, request_ns is no limit and there is no incoming body.  The handler is canceled
 * when the peer is gone, when the peer has sent more than 4 KiB of further requests, or when the
 * server drains.
 * Return the count (0 for an event), or as weft_stream_write(); WEFT_EINVAL for more bytes than
 * Content-Length announced, or for an event name of several lines.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_http_write(weft_http *http, const void *buf, size_t size,
                                 uint64_t deadline_ns);
WEFT_API int weft_http_send_event(weft_http *http, const char *event, const char *data,
                             uint64_t deadline_ns);

/* --- client ---------------------------------------------------------------- */

typedef struct weft_http_client_opts {
	weft_loop *loop;           /* default: the caller's */
	weft_tls  *tls;            /* default: verify with the system's CAs; borrowed */
	uint32_t   per_host_max;   /* connections per origin; default 64 */
	uint32_t   redirects_max;  /* default 10 */
	uint64_t   idle_ns;        /* time that an unused connection is kept; default 30 s */
	size_t     header_max;     /* limit of the header section in bytes; default 32 KiB */
	uint32_t   queue_max;      /* requests waiting for a connection per origin; default 1,024 */
	uint32_t   idle_max;       /* unused connections kept in all; default 256 */
	uint64_t   spare[3];       /* must be zero: room for later versions */
} weft_http_client_opts;

typedef struct weft_http_request {
	const char            *method;  /* default GET; not CONNECT */
	const char            *url;     /* http://, https:// or http+unix://%2Fpath/ */
	const weft_http_field *fields;
	size_t                 field_count;
	weft_span              body;
	bool                   streamed; /* the caller sends the body with weft_http_write(), then
	                                  * calls weft_http_finish() */
	bool                   no_redirect; /* return redirects instead of following them */
	const weft_abort      *abort;    /* cancels the exchange, its body included; or NULL */
	uint64_t               spare[4]; /* must be zero: room for later versions */
} weft_http_request;

/* Make and free a client with a connection pool, for one loop.  An origin is a scheme, a host and
 * a port.  The client keeps connections to an origin and reuses them, the most recent first; idle
 * connections are background work.  The client references its loop until it is freed.  free
 * closes idle connections; it is refused while an exchange is open.
 * new returns the client; NULL if memory is exhausted or there is no loop.  free accepts NULL and
 * returns 0, WEFT_EBUSY.
 * Thread: any; loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_http_client *weft_http_client_new(const weft_http_client_opts *opts);
WEFT_API int weft_http_client_free(weft_http_client *client);

/* Send `request`, borrowed, and wait for the header section of the reply.  For a streamed
 * request, only send its header section.  The caller must end the exchange with
 * weft_http_close().
 *
 * The client itself sets Host, Content-Length, Connection and all other headers that control
 * framing or the connection: if `fields` contains one of these, the call returns WEFT_EINVAL.
 * A request without a User-Agent gets one.  Bodies are not decompressed.
 *
 * The client follows redirects.  After a 303 (except in reply to a HEAD), and after a 301 or 302
 * in reply to a POST, it sends a GET without a body; else the same method and body again.  It
 * does not send Authorization, Cookie and Proxy-Authorization to another origin.  A redirect
 * from https:// to http://, or from another origin to a Unix socket, fails with WEFT_EPERM.  The
 * reply to a streamed request is returned even if it is a redirect.
 *
 * If a reused connection is closed before any byte of the reply has arrived, the client sends an
 * idempotent request once more, on a new connection.  If a reply that is not a success arrives
 * while the body is still being sent, the client stops sending.
 *
 * Returns 0, whatever the status, and fills `out`; or an error of weft_stream_connect(),
 * WEFT_EINVAL, WEFT_EPROTO, WEFT_ETRUNCATED, WEFT_EMSGSIZE (a header section above header_max),
 * WEFT_EAGAIN if the pool's queue is full, -ELOOP after too many redirects; the URL, without its
 * query, is in weft_detail().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_fetch(weft_http_client *client,
                             const weft_http_request *request, weft_http **out,
                             uint64_t deadline_ns);

/* End a streamed request body and wait for the header section of the reply.  Call it also after
 * a write that failed with WEFT_EPIPE or WEFT_ECONNRESET: the peer may have sent the reason.
 * Returns 0, or as weft_http_fetch(); WEFT_EALREADY if the request is not streamed, or this call
 * has already succeeded.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_http_finish(weft_http *http, uint64_t deadline_ns);

/* Client: get the URL of the exchange, after redirects, without a fragment.
 * Returns the URL, borrowed until the exchange ends; "" on a server.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_http_url(weft_http *http);

/* End an exchange of a client; takes it; accepts NULL.  The client keeps the connection if the
 * reply was read to its end, or if the rest of the reply has arrived and is at most 64 KiB.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_http_close(weft_http *http);

WEFT_END
#endif
