/* listen_drain.c - the time between the end of listening and the close of a socket that shares
 * its port.
 *
 * The kernel answers a SYN before the peer's last ACK has arrived.  The unfinished handshake
 * belongs to one listening socket, although others share the port.  An ACK that arrives after
 * the close of that socket is answered by a reset.  On the loopback interface the ACK takes
 * microseconds, or longer if the thread that handles the segments has to wait for its CPU.  A
 * program cannot count unfinished handshakes without reading the tables of all sockets of the
 * machine, so the drain lasts for a fixed time, in which the socket ignores new SYNs.
 */
#include "net/listen/listener.h"

#define DRAIN_NS (200 * WEFT_MS) /* longer than nearly all round trips */

static void
on_drain_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	(void)weft_op_finish(op, why);
}

/* The time is over, or the loop stops. */
static void
on_drained(weft_op *op, int64_t result, void *arg)
{
	weft_listener *listener = arg;

	(void)op, (void)result;
	if (listener->drainer && weft__claim(listener->drainer))
		weft__wake(listener->drainer, 0);
	listener->drainer = NULL;
	if (listener->flags & WEFT__LISTENER_DRAINS)
		weft__listener_shut(listener);
}

/* A listener without weft_listener_serve() or a callback needs no drain: it accepts no queued
 * connection.  If the socket cannot ignore SYNs, a drain is of no use: at its end there are new
 * handshakes to lose. */
bool
weft__listener_begin_drain(weft_listener *listener)
{
	if (listener->drain.pending)
		return true;
	return listener->fd >= 0 && (listener->flags & WEFT__LISTENER_SHARES)
	       && (listener->flags & (WEFT__LISTENER_SERVED | WEFT__LISTENER_STARTED))
	       && weft__sys->ignore_syn(listener->fd) == 0
	       && weft_op_init(&listener->drain, weft__listener_loop(listener), on_drained,
	                       listener)
	                  == 0
	       && weft_op_begin(&listener->drain, on_drain_cancel, listener, weft_after(DRAIN_NS))
	                  == 0;
}

void
weft__listener_drain(weft_listener *listener)
{
	struct weft__waiter waiter = { .what = "accept", .on = listener->fd, .deaf = true };

	if (!weft__listener_begin_drain(listener))
		return;
	listener->drainer = &waiter;
	(void)weft__wait(&waiter, WEFT_NEVER);
}
