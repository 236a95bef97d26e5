/* weft/listener.h - accept connections, by threadlet, by callback, for every loop.
 *
 * Safe by default: bounded connections (above, accepting pauses and peers wait in
 * the backlog), a handshake deadline, and when the process is out of descriptors it
 * sheds load and recovers.  A peer that fails, in the handshake too, is dropped and never ends
 * accepting.
 */
#ifndef WEFT_LISTENER_H
#define WEFT_LISTENER_H

#include <weft/base.h>
#include <weft/stream.h>

WEFT_BEGIN

typedef struct weft_listener weft_listener;

typedef struct weft_listener_opts {
	weft_tls *tls;             /* for tls://, needed there; shared, referenced */
	uint32_t  backlog;         /* default 511 */
	uint32_t  connections_max; /* open at once; default 10,000 */
	uint32_t  accept_budget;   /* accepted per turn; default 64 */
	uint64_t  handshake_ns;    /* TLS; default 10 s */
	mode_t    mode;            /* of a Unix path; default 0600 */
	bool      replace;         /* remove a dead socket at a Unix path */
	bool      borrow;          /* fd:N stays open, and the caller's */
	bool      reuse_port;      /* others of this user may listen there, too; see serve */
	uint64_t  spare[4];
} weft_listener_opts;

/* Bind and listen at `address`, or take the listening socket of fd:N; nothing is
 * accepted yet.
 * Returns 0 and fills `out`, WEFT_EADDRINUSE, ...; weft_detail() has the address.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_listener_open(const char *address,
                                const weft_listener_opts *opts,
                                weft_listener **out);

/* Accept one connection, its TLS handshake done.
 * Returns 0 and fills `out`.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_listener_accept(weft_listener *listener, weft_stream **out,
                                  uint64_t deadline_ns);

/* Serve until closed, cancelled or the deadline: each peer on a threadlet of its
 * own, on the loop of the runtime that has least to do.  Then wait for them to end; they
 * are cancelled with the caller.  Handshakes have half a second more.  If cancelled, it stops
 * to listen, as weft_listener_close() does: peers that are queued are still served.
 * With reuse_port each loop can have a listener at one address: the system spreads peers
 * over them by a hash (SO_REUSEPORT), and each is served where it was accepted.
 * Returns WEFT_ESHUTDOWN once closed.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_listener_serve(weft_listener *listener, weft_peer_fn fn,
                                 void *arg, uint64_t deadline_ns);

/* Takes `peer`; or is told the error that ended accepting, with NULL: the last
 * call, WEFT_ESHUTDOWN, also if paused, once it is closed or its loop stops.  After another
 * error it may be started again. */
typedef void (*weft_accept_fn)(weft_listener *listener, weft_stream *peer,
                               int error, void *arg);

/* Deliver connections to a callback on `loop`; and pause.
 * Return 0, WEFT_EBUSY if a threadlet accepts.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_listener_start(weft_listener *listener, weft_loop *loop,
                                 weft_accept_fn fn, void *arg);
WEFT_API int weft_listener_stop(weft_listener *listener);

/* Say whether its callbacks are background work, which does not keep
 * weft_loop_run() from returning.  Off at first; any time; stays over stop and start.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_listener_set_background(weft_listener *listener, bool on);

/* The address it is bound to, with the port the system chose.
 * Returns 0.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_listener_local(weft_listener *listener, weft_addr *out);

/* End the present, else the next, accept with WEFT_EINTR, once.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_listener_interrupt(weft_listener *listener);

/* Close: waiters end with WEFT_ESHUTDOWN; connections already queued are first handed to
 * the callback or to weft_listener_serve(), as far as connections_max has room; the others
 * are dropped.  Takes it; accepts NULL; not cancellable.
 * With reuse_port, a listener that is served or has a callback first drains for 200 ms: it
 * ignores new handshakes, which reach another listener of the port when the peer tries again
 * after a second, and accepts those under way.  A handshake with a longer round trip is
 * reset, unless net.ipv4.tcp_migrate_req is set; so are some where the system cannot ignore
 * handshakes (Linux can): there the close does not wait.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_listener_close(weft_listener *listener);

WEFT_END
#endif
