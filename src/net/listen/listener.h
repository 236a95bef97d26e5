/* listener.h - listeners: the definitions that the files of this folder share.  Private.
 *
 *   1. One accept op is pending at the backend while a threadlet or the callback wants
 *      connections and the quota has room.  A connection that is no longer wanted waits in
 *      `ready`.
 *   2. The quota counts a connection before it is accepted, and until its stream is freed.
 *   3. A listener is freed when it is closed, its ops have ended, its callback is not on the
 *      stack, weft_listener_serve() no longer uses it, and no threadlet does a handshake for it.
 *      Its close cuts the TLS handshakes in progress: it interrupts them, and their connections
 *      are dropped.  The handshakes of weft_listener_serve() are cut later, see serve.c.
 *   4. A listener that shares its port drains before its socket is closed.  The kernel has
 *      answered SYNs, and the last ACK of some TCP handshakes is still on its way.  These
 *      handshakes belong to this socket alone, so its close would reset the peers.  While
 *      `drain` is pending the socket ignores new SYNs, and connections are accepted and
 *      delivered as before.
 *
 * Needs: threadlet, loop.  Thread: its loop's.
 */
#ifndef WEFT_NET_LISTENER_H
#define WEFT_NET_LISTENER_H

#include <weft/listener.h>
#include "net/stream/stream.h"

enum {
	WEFT__LISTENER_BORROWED = 1 << 0,
	WEFT__LISTENER_DRAINS = 1 << 1,  /* closed; the close continues after `drain` */
	WEFT__LISTENER_STARTED = 1 << 2, /* the callback is active */
	WEFT__LISTENER_CLOSING = 1 << 3,
	WEFT__LISTENER_CALLED = 1 << 4,  /* the callback is on the stack */
	WEFT__LISTENER_PERMIT = 1 << 6,  /* the next connection is already counted */
	WEFT__LISTENER_SERVED = 1 << 7,  /* by weft_listener_serve() */
	WEFT__LISTENER_OWED = 1 << 8,    /* the callback is still owed its last call */
	WEFT__LISTENER_HANDING = 1 << 10, /* `handing` is posted */
	WEFT__LISTENER_RESTS = 1 << 11,  /* `timer` is running */
	WEFT__LISTENER_FULL = 1 << 12,   /* there was no room for the next connection */
	WEFT__LISTENER_SHARES = 1 << 13, /* shares its port; peers stay on its loop */
	WEFT__LISTENER_ENDED = 1 << 14,  /* closer and callback have been notified of the close */
};

/* TLS handshakes of accepted connections. */
struct weft__handshakes {
	weft_tls               *tls;      /* NULL: no TLS */
	uint64_t                limit_ns; /* of one */
	struct weft__lock       lock;     /* for the members below */
	struct weft__handshake *first;    /* in progress */
	bool                    over;     /* none may begin */
};

/* Do the handshake of `stream`, if there is one, on the calling threadlet.  False if it failed or
 * was cut: the stream is to be reset. */
bool weft__handshake(struct weft__handshakes *all, weft_stream *stream);

/* Cut the handshakes in progress, and let no others begin.  Thread: any. */
void weft__handshakes_cut(struct weft__handshakes *all);

struct weft_listener {
	weft__aptr           loop;   /* its weft_loop, or 0 */
	int                  fd;
	uint32_t             flags;
	uint32_t             budget, left; /* accepts per loop iteration, for callbacks; what is
	                                    * left */
	uint64_t             turn;   /* the iteration that `left` is for */
	int                  error;  /* the error that ended accepting, or 0 */
	weft_op              op;     /* the accept op */
	weft_op              standing; /* pending from the first start to the close, so that the
	                                * end of the loop is reported even while nothing is
	                                * accepted */
	weft_op              drain;  /* its deadline ends the drain */
	struct weft__waiter *drainer; /* a canceled weft_listener_serve() that waits for `drain` */
	struct weft__waiter *waiter; /* an acceptor, or NULL */
	weft_stream         *ready;  /* accepted but not delivered, linked by `next` */
	weft_stream         *ready_last; /* the tail of that list */
	weft_accept_fn       fn;
	void                *arg;
	struct weft__quota  *quota;
	struct weft__waiter *closer;
	struct weft__waiter *halter; /* waits until no accept is pending */
	struct weft__handshakes handshakes; /* of accept and callbacks; serve has its own */
	uint32_t             shaking; /* threadlets that do these handshakes */
	uint32_t             forks;  /* weft__program.forks when it was opened */
	weft_timer           timer;  /* delays the next accept after an error */
	weft_node            handing; /* delivers what is in `ready` */
	char                *path;   /* a Unix path to remove, or NULL */
	weft_addr            local;
};

static inline weft_loop *
weft__listener_loop(const weft_listener *listener)
{
	return (weft_loop *)weft__load(&listener->loop, WEFT__RELAXED);
}

/* Open a socket that listens at `address`.  Returns the socket, or an error with its text. */
int weft__listen(const char *address, const weft_listener_opts *opts, weft_addr *local,
                 char **path);

/* Check that this thread may use the listener.  A listener without a loop is bound to `loop`
 * (NULL: the caller's).  Returns 0 or an error. */
int weft__listener_use(weft_listener *listener, weft_loop *loop, const char *call);

/* Accept, if connections are wanted and there is room.  Or continue a close. */
void weft__listener_go_on(weft_listener *listener);

/* Begin the drain, if this listener needs one.  Returns whether a drain is in progress.  Its end
 * continues the close if WEFT__LISTENER_DRAINS is set. */
bool weft__listener_begin_drain(weft_listener *listener);

/* Close the listener now, without a drain; the rest follows when its ops have ended. */
void weft__listener_shut(weft_listener *listener);

/* Wait until the drain has ended, if this listener needs one.  Not cancelable. */
void weft__listener_drain(weft_listener *listener);

/* Accept all queued connections that will be served, and close the socket.  No accept op may be
 * pending. */
void weft__listener_leave(weft_listener *listener);

/* Something that used a closed listener has ended: continue the close, and free the listener if
 * nothing uses it any longer (invariant 3). */
void weft__listener_end(weft_listener *listener);

/* As weft_listener_accept(), for serve.c: after a close, queued connections come first. */
int weft__listener_next(weft_listener *listener, weft_stream **out, uint64_t deadline_ns);

/* halt: stop accepting, and wait until no accept is pending.  take: the next accepted
 * connection, or NULL. */
void         weft__listener_halt(weft_listener *listener);
weft_stream *weft__listener_take(weft_listener *listener);

#endif
