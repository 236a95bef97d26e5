/* close.c - closing: waiters are notified, queued writes are sent, and the stream is freed when
 * neither the kernel nor the loop uses it. */
#include "net/stream/stream.h"

#define WASTE_MAX 64 /* pieces to read and discard */

/* If received bytes were never read, the kernel resets the connection and drops the bytes it
 * has still to send.  With TLS the program cannot prevent that: a server sends session tickets
 * on its own. */
static void
read_away(const weft_stream *stream)
{
	const struct weft__sys *sys = weft__loop_kernel(weft__stream_loop(stream));
	char waste[1024];

	for (int i = 0; i < WASTE_MAX; i++)
		if (sys->recv(stream->fd, waste, sizeof(waste), 0) <= 0)
			return;
}

/* Everything has ended: close the descriptor, free the stream, and notify.  Also the callback of
 * `in`, for finish_behind_results(). */
static void
on_gone(weft_op *op, int64_t result, void *arg)
{
	weft_stream *stream = arg;
	weft_loop *loop = weft__stream_loop(stream);
	struct weft__waiter *closer = stream->closer;
	void (*on_close)(void *arg) = stream->events.on_close;

	(void)op, (void)result;
	arg = stream->arg;
	if (stream->tls && !stream->out_error)
		read_away(stream);
	weft__fd_forget(loop, stream->fd);
	if (!(stream->flags & WEFT__STREAM_BORROWED))
		(void)weft__loop_kernel(loop)->close(stream->fd);
	else /* io_uring may have made the descriptor blocking */
		(void)weft__loop_kernel(loop)->set_nonblock(stream->fd);
	weft__stream_free(stream);
	if (closer && weft__claim(closer))
		weft__wake(closer, 0);
	if (on_close)
		on_close(arg);
}

/* Results of ops on the stream may be on their way to the program, and a call of the program may be
 * on the stack.  So the end is delivered as one more result.  A loop that has stopped has delivered
 * all results, and delivers no more: then the caller ends the stream at once. */
static bool
finish_behind_results(weft_stream *stream)
{
	weft_loop *loop = weft__stream_loop(stream);

	if ((!stream->events.on_close && !(stream->flags & WEFT__STREAM_OPS))
	    || weft_loop_state(loop) == WEFT_STOPPED)
		return false;
	(void)weft_op_init(&stream->in, loop, on_gone, stream);
	weft__op_follow(&stream->in);
	return true;
}

bool
weft__close_go_on(weft_stream *stream)
{
	if (stream->in.pending || stream->out || (stream->flags & WEFT__STREAM_CALLED)
	    || stream->in_flight > 0 || !weft__stream_seal(stream))
		return false;
	if (finish_behind_results(stream))
		return false;
	on_gone(&stream->in, 0, stream);
	return true;
}

static void linger(weft_stream *stream);

static void
on_linger(weft_timer *timer, void *arg)
{
	weft_stream *stream = arg;
	const struct weft__sender *out = stream->out;

	(void)timer;
	if (stream->queued < out->linger_queued || weft__stream_unsent(stream) < out->linger_unsent)
		linger(stream);
	else
		weft__send_fail(stream, WEFT_ESHUTDOWN);
}

/* Send the queue as long as the peer takes some bytes within linger_ns.  A stopping loop still
 * waits for threadlets that close streams, but it refuses new timers and disarms those that it
 * has.  So this timer is marked as firm, and armed without weft_timer_start(). */
static void
linger(weft_stream *stream)
{
	weft_loop *loop = weft__stream_loop(stream);
	struct weft__sender *out = stream->out;

	out->linger_queued = stream->queued;
	out->linger_unsent = weft__stream_unsent(stream);
	out->linger.tag |= WEFT__ENTRY_FIRM;
	out->linger.owner = loop;
	if (weft__loop_is_ending(loop)
	    || weft__timer_arm(weft__loop_wheel(loop), &out->linger, weft_after(stream->linger_ns),
	                       0, on_linger, stream)
	               < 0)
		weft__send_fail(stream, WEFT_ESHUTDOWN);
	weft__loop_changed(loop);
}

/* End the writes of threadlets.  Writes that were queued by ops are still sent, for a while. */
static void
end_writes(weft_stream *stream)
{
	struct weft__write *write = stream->first;

	while (write) {
		struct weft__write *next = write->next;

		if (write->waiter)
			weft__send_request_cancel(write, WEFT_ESHUTDOWN);
		write = next;
	}
	if (stream->tls) {
		/* Send the close_notify.  The in-flight count keeps the sender from freeing the
		 * stream, which the caller still uses, if everything is sent at once. */
		stream->in_flight++;
		weft__send_flush(stream);
		stream->in_flight--;
	}
}

static void
stream_close_begin(weft_stream *stream)
{
	stream->flags |= WEFT__STREAM_CLOSING;
	weft__events_end(stream);
	if (stream->reader || stream->reader_op)
		weft__reader_end(stream, WEFT_ESHUTDOWN);
	if (stream->in.pending) {
		weft_op_set_background(&stream->in, false);
		weft_op_cancel(&stream->in);
	}
}

/* Close a stream that is not bound to a loop. */
static void
close_unbound(weft_stream *stream)
{
	if (!(stream->flags & WEFT__STREAM_BORROWED)) {
		weft__fd_forget(NULL, stream->fd);
		(void)weft__sys->close(stream->fd);
	}
	weft__stream_free(stream);
}

static bool
is_unbound(const weft_stream *stream)
{
	return !(stream->flags & WEFT__STREAM_BOUND);
}

/* The streams of a stopped loop can still be closed. */
static int
stream_close_check(weft_stream *stream, const char *call)
{
	weft_loop *loop = weft__stream_loop(stream);
	int rc = weft__loop_check(loop, call);

	return rc == WEFT_ESHUTDOWN ? 0 : rc;
}

void
weft_stream_close(weft_stream *stream)
{
	struct weft__waiter closer = { .what = "close", .deaf = true };

	if (!stream || (stream->flags & WEFT__STREAM_CLOSING))
		return;
	if (is_unbound(stream)) {
		close_unbound(stream);
		return;
	}
	if (stream_close_check(stream, "weft_stream_close") < 0)
		return;
	closer.on = stream->fd;
	stream_close_begin(stream);
	end_writes(stream);
	if (weft__close_go_on(stream))
		return;
	if (stream->out) {
		stream->out->linger = (weft_timer)WEFT_INIT;
		stream->out->lingers = true;
		linger(stream);
	}
	if (!weft__self())
		return;
	stream->closer = &closer;
	(void)weft__wait(&closer, WEFT_NEVER);
}

void
weft_stream_reset(weft_stream *stream)
{
	struct linger at_once = { .l_onoff = 1 };

	if (!stream)
		return;
	if (!is_unbound(stream) && stream_close_check(stream, "weft_stream_reset") < 0)
		return;
	if (!(stream->flags & WEFT__STREAM_PLAIN))
		(void)weft__sys->set_option(stream->fd, SOL_SOCKET, SO_LINGER, &at_once,
		                            sizeof(at_once));
	if (is_unbound(stream)) {
		close_unbound(stream);
		return;
	}
	if (!(stream->flags & WEFT__STREAM_CLOSING))
		stream_close_begin(stream);
	weft__send_fail(stream, WEFT_ESHUTDOWN);
	(void)weft__close_go_on(stream);
}
