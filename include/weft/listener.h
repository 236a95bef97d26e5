/* weft/listener.h - accept connections: by threadlet, by callback, for all loops.
 *
 * Defaults are safe.  The number of connections is limited: at the limit accepting pauses, and
 * peers wait in the backlog.  Handshakes have a deadline.  If the process runs out of
 * descriptors, the listener sheds load and recovers.  A connection that fails, even in its
 * handshake, is dropped, and accepting continues.
 */
#ifndef WEFT_LISTENER_H
#define WEFT_LISTENER_H

#include <weft/base.h>
#include <weft/stream.h>

WEFT_BEGIN

typedef struct weft_listener weft_listener;

typedef struct weft_listener_opts {
	weft_tls *tls;             /* required for tls://; shared, referenced */
	uint32_t  backlog;         /* default 511 */
	uint32_t  connections_max; /* limit of open connections; default 10,000 */
	uint32_t  accept_budget;   /* accepted per iteration; default 64 */
	uint64_t  handshake_ns;    /* limit of the TLS handshake; default 10 s */
	mode_t    mode;            /* of a Unix path; default 0600 */
	bool      replace;         /* replace a dead socket at a Unix path */
	bool      borrow;          /* fd:N stays open and belongs to the caller */
	bool      reuse_port;      /* other listeners of this user may share the port; see
	                            * weft_listener_serve() */
	uint64_t  spare[4];        /* must be zero: room for later versions */
} weft_listener_opts;

/* Bind and listen at `address`, or take the listening socket of fd:N.  Accepts no connections
 * yet.
 * Returns 0 and fills `out`, WEFT_EADDRINUSE, ...; weft_detail() has the address.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_listener_open(const char *address,
                                const weft_listener_opts *opts,
                                weft_listener **out);

/* Accept one connection and complete its TLS handshake.
 * Returns 0 and fills `out`.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_listener_accept(weft_listener *listener, weft_stream **out,
                                  uint64_t deadline_ns);

typedef struct weft_listener_serve_opts {
	const char *name;        /* of the threadlets of peers; default "peer" */
	size_t      stack_bytes; /* default: the loop's; with TLS at least 64 KiB */
	void      (*on_end)(int why, void *arg); /* see below; default: none */
	uint64_t    spare[4];    /* must be zero: room for later versions */
} weft_listener_serve_opts;

/* Serve peers until the listener is closed, the caller is canceled or the deadline passes: each
 * peer on a threadlet of its own, on the least loaded loop of the runtime.  Then wait until the
 * threadlets of all peers have ended.  If the caller is canceled, these threadlets are canceled,
 * too, and the listener stops listening as by weft_listener_close(): peers in the backlog are
 * still served.  Handshakes in progress get half a second more.  `opts` may be NULL.
 * With opts.on_end a canceled caller does not cancel the threadlets of peers: on_end has to end
 * them.  The calling threadlet calls on_end with `arg` when accepting ends, and once more if the
 * threadlet is canceled after that.  `why` is the value that weft_listener_serve() will return,
 * or in the second call the error of the cancellation.  on_end must not suspend.
 * With reuse_port each loop can have a listener at the same address.  The system spreads peers
 * over the listeners by a hash (SO_REUSEPORT), and each peer is served where it was accepted.
 * Returns WEFT_ESHUTDOWN once closed.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_listener_serve(weft_listener *listener,
                                 const weft_listener_serve_opts *opts,
                                 weft_peer_fn fn, void *arg, uint64_t deadline_ns);

/* Called with a new connection, which it takes; or with `peer` NULL and the `error` that has
 * ended accepting.  When the listener is closed or its loop stops, the last call has
 * WEFT_ESHUTDOWN; it comes even if weft_listener_stop() has paused delivery.  After another error
 * the listener may be started again. */
typedef void (*weft_accept_fn)(weft_listener *listener, weft_stream *peer,
                               int error, void *arg);

/* start: deliver connections to a callback on `loop` (NULL: the listener's loop, else the
 * caller's).  stop: pause delivery until the next start.
 * Return 0, WEFT_EBUSY if a threadlet accepts, WEFT_EWRONGLOOP if the listener belongs to another
 * loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_listener_start(weft_listener *listener, weft_loop *loop,
                                 weft_accept_fn fn, void *arg);
WEFT_API int weft_listener_stop(weft_listener *listener);

/* Get the address that the listener is bound to, with the port that the system chose.
 * Returns 0.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_listener_local(weft_listener *listener, weft_addr *out);

/* Close the listener: waiting calls return WEFT_ESHUTDOWN.  Connections in the backlog first go
 * to the callback or to weft_listener_serve(), as far as connections_max permits; the others
 * are dropped.  Takes the listener; accepts NULL; not cancelable.
 * With reuse_port, a listener that is served or has a callback first drains for 200 ms: it
 * completes TCP handshakes in progress and ignores new ones.  A peer whose handshake was ignored
 * retries after a second and reaches another listener of the port.  A handshake with a longer
 * round trip than 200 ms is reset, unless net.ipv4.tcp_migrate_req is set.  On systems that
 * cannot ignore handshakes (Linux can) there is no drain, and some handshakes are reset.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_listener_close(weft_listener *listener);

WEFT_END
#endif
