/* listener.h - listeners, as the files of this folder share them.  Private.
 *
 *   1. One accept is with the backend while somebody wants connections and there is
 *      room for one; what it brings waits in `ready` if nobody wants it any more.
 *   2. A connection is counted before it is accepted, and by its stream when that goes.
 *   3. It is freed when it is closed, its ops have ended, nobody serves it, and no
 *      connection is in its handshake, which a threadlet does for each.
 *
 *   4. A listener that shares its port drains before its socket is closed: the kernel has
 *      answered SYNs whose last ACK is still on its way, and would reset those peers, since
 *      their handshakes belong to this socket alone.  While `drain` is pending the socket
 *      ignores new SYNs, and connections are accepted and handed out as before.
 *
 * Needs: threadlet, loop.  Thread: its loop's.
 */
#ifndef WEFT_NET_LISTENER_H
#define WEFT_NET_LISTENER_H

#include <weft/listener.h>
#include "net/stream/stream.h"

enum {
	WEFT__LISTENER_BORROWED = 1 << 0,
	WEFT__LISTENER_DRAINS = 1 << 1,  /* it was closed; the close follows `drain` */
	WEFT__LISTENER_STARTED = 1 << 2, /* the callback is told */
	WEFT__LISTENER_CLOSING = 1 << 3,
	WEFT__LISTENER_CALLED = 1 << 4,  /* it is on the stack */
	WEFT__LISTENER_BACKGROUND = 1 << 5,
	WEFT__LISTENER_PERMIT = 1 << 6,  /* the next connection is counted */
	WEFT__LISTENER_SERVED = 1 << 7,  /* by weft_listener_serve() */
	WEFT__LISTENER_OWED = 1 << 8,    /* the callback is to be told of the end */
	WEFT__LISTENER_HANDING = 1 << 10, /* `handing` is */
	WEFT__LISTENER_RESTS = 1 << 11,  /* `timer` counts */
	WEFT__LISTENER_FULL = 1 << 12,   /* there was no room for the next */
	WEFT__LISTENER_SHARES = 1 << 13, /* its port; peers stay on its loop */
	WEFT__LISTENER_ENDED = 1 << 14,  /* its closer and its callback know of the close */
};

struct weft_listener {
	struct weft__notice  notice; /* its loop, and interrupts */
	int                  fd;
	uint32_t             flags;
	uint32_t             budget, left; /* that may be accepted: in a turn, and in */
	uint64_t             turn;   /* this one, by callbacks */
	int                  error;  /* that ended accepting, or 0 */
	weft_op              op;     /* accepts */
	weft_op              standing; /* from the first start to the close: so that the end
	                              * of the loop is heard of while nothing is accepted */
	weft_op              drain;  /* its deadline ends the drain */
	struct weft__waiter *drainer; /* a canceled server that waits for `drain` */
	struct weft__waiter *waiter; /* an acceptor, or NULL */
	weft_stream         *ready;  /* accepted, and not given to anybody; by `next`, */
	weft_stream         *ready_last; /* up to this one */
	weft_accept_fn       fn;
	void                *arg;
	struct weft__quota  *quota;
	struct weft__waiter *closer;
	struct weft__waiter *halter; /* waits until nothing is accepted any more */
	weft_tls            *tls;    /* NULL: plain */
	uint64_t             handshake_ns;
	uint32_t             greeted; /* connections in their handshake */
	uint32_t             forks;  /* weft__program.forks at its opening */
	weft_timer           timer;  /* until it is tried again, after an error */
	weft_node            handing; /* that hands out what is ready */
	char                *path;   /* to be removed, or NULL */
	weft_addr            local;
};

#define weft__notice_listener(n) \
	((weft_listener *)(void *)((char *)(n) - offsetof(weft_listener, notice)))

/* Open a socket that listens at `address`.  It, or an error with its text. */
int weft__listen(const char *address, const weft_listener_opts *opts, weft_addr *local,
                 char **path);

/* May this thread use it?  If it has no loop, it gets `loop` (NULL: the caller's).  0, or
 * an error. */
int weft__listener_use(weft_listener *listener, weft_loop *loop, const char *call);

/* See that it accepts, if that is wanted and there is room. */
void weft__listener_go_on(weft_listener *listener);

/* Begin the drain, if this listener needs one.  Returns whether it is under way; its end
 * goes on with the close if WEFT__LISTENER_DRAINS is set. */
bool weft__listener_begin_drain(weft_listener *listener);

/* Close it now; the rest follows when its ops have ended. */
void weft__listener_shut(weft_listener *listener);

/* Wait until the drain has ended, if this listener needs one.  Not cancellable. */
void weft__listener_drain(weft_listener *listener);

/* Accept all that is queued, and close the socket; no accept is with the backend. */
void weft__listener_leave(weft_listener *listener);

/* Something has ended: free it, if that was the last. */
void weft__listener_end(weft_listener *listener);

/* As weft_listener_accept(), for serve.c: after a close, what was queued comes first. */
int weft__listener_next(weft_listener *listener, weft_stream **out, uint64_t deadline_ns);

/* Accept no more for now, which is seen to when it returns; and take what was accepted,
 * one by one, or NULL. */
void         weft__listener_halt(weft_listener *listener);
weft_stream *weft__listener_take(weft_listener *listener);

#endif
