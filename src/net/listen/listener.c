/* listener.c - accepts connections for threadlets and callbacks. */
#include <errno.h>
#include <string.h>
#include "net/addr.h"
#include "net/listen/listener.h"
#include "net/tls/tls.h"

#define CONNECTIONS_MAX 10000u
#define BUDGET          64u
#define HANDSHAKE_NS    (10 * WEFT_S)
#define REST_NS         (20 * WEFT_MS)
#define DEAD_MAX        16 /* aborted connections skipped in a row */

static bool
listener_is_wanted(const weft_listener *listener)
{
	return listener->waiter || (listener->flags & WEFT__LISTENER_STARTED);
}

static void
end_waiter(weft_listener *listener, int64_t result)
{
	struct weft__waiter *waiter = listener->waiter;

	listener->waiter = NULL;
	if (waiter && weft__claim(waiter))
		weft__wake(waiter, result);
}

/* --- delivery ----------------------------------------------------------- */

weft_stream *
weft__listener_take(weft_listener *listener)
{
	weft_stream *stream = listener->ready;

	if (stream)
		listener->ready = stream->next;
	return stream;
}

static void
add_ready(weft_listener *listener, weft_stream *stream)
{
	stream->next = NULL;
	if (listener->ready)
		listener->ready_last->next = stream;
	else
		listener->ready = stream;
	listener->ready_last = stream;
}

/* A waiting weft_listener_accept().  Once woken it does not need the listener. */
struct acceptor {
	struct weft__waiter waiter;
	weft_listener *listener;
	weft_stream *stream;
};

static struct acceptor *
acceptor_of(struct weft__waiter *waiter)
{
	return (struct acceptor *)(void *)waiter;
}

/* End the wait of the acceptor if there is a connection or an error for it. */
static void
serve_acceptor(weft_listener *listener)
{
	if (listener->waiter && listener->ready) {
		acceptor_of(listener->waiter)->stream = weft__listener_take(listener);
		end_waiter(listener, 0);
	}
	if (listener->error && listener->waiter)
		end_waiter(listener, listener->error);
}

/* Get what the callback is to be called with next: a connection or, once, the error.  False if
 * there is neither.  If the callback closes the listener, the listener is freed later. */
static bool
begin_call(weft_listener *listener, weft_stream **peer, int *error)
{
	if (!(listener->flags & WEFT__LISTENER_STARTED))
		return false;
	*error = 0;
	*peer = weft__listener_take(listener);
	if (!*peer) {
		if (!listener->error)
			return false;
		*error = listener->error;
		listener->flags &= ~(uint32_t)(WEFT__LISTENER_STARTED | WEFT__LISTENER_OWED);
	}
	listener->flags |= WEFT__LISTENER_CALLED;
	return true;
}

/* Inlined, so that no further frame is between the loop's callback and the program's. */
static inline __attribute__((always_inline)) void
hand_out(weft_listener *listener)
{
	weft_stream *peer;
	int error;

	serve_acceptor(listener);
	while (begin_call(listener, &peer, &error)) {
		listener->fn(listener, peer, error, listener->arg);
		listener->flags &= ~(uint32_t)WEFT__LISTENER_CALLED;
	}
}

/* --- handshakes --------------------------------------------------------- */

struct shaking {
	weft_listener *listener;
	weft_stream *stream;
};

static void
on_handing(void *arg)
{
	weft_listener *listener = arg;

	listener->flags &= ~(uint32_t)WEFT__LISTENER_HANDING;
	hand_out(listener);
	weft__listener_go_on(listener);
}

/* Callbacks are not called on the stack of a threadlet. */
static void
hand_out_later(weft_listener *listener)
{
	if (listener->flags & WEFT__LISTENER_HANDING)
		return;
	listener->handing = (weft_node){ .fn = on_handing, .arg = listener };
	if (weft_loop_post_node(weft__listener_loop(listener), &listener->handing) == 0)
		listener->flags |= WEFT__LISTENER_HANDING;
}

static int
run_handshake(void *arg)
{
	struct shaking shaking = *(struct shaking *)arg;
	weft_listener *listener = shaking.listener;

	weft__sys->release(arg);
	if (weft__handshake(&listener->handshakes, shaking.stream))
		add_ready(listener, shaking.stream);
	else
		weft_stream_reset(shaking.stream);
	listener->shaking--;
	if (listener->flags & WEFT__LISTENER_CLOSING)
		weft__listener_end(listener);
	else if (listener->flags & WEFT__LISTENER_STARTED)
		hand_out_later(listener);
	else
		serve_acceptor(listener);
	return 0;
}

/* A threadlet does the handshake; then the connection is ready. */
static void
begin_handshake(weft_listener *listener, weft_stream *stream)
{
	const weft_go_opts opts = { .name = "handshake", .loop = weft__listener_loop(listener) };
	struct shaking *shaking = weft__sys->alloc(sizeof(*shaking));

	if (shaking) {
		*shaking = (struct shaking){ listener, stream };
		if (weft_go_with(&opts, run_handshake, shaking) > 0) {
			listener->shaking++;
			return;
		}
	}
	weft__sys->release(shaking);
	weft__count(&weft__loop_counts(weft__listener_loop(listener))->accepts_shed, 1);
	weft_stream_reset(stream);
}

/* --- accepting ---------------------------------------------------------- */

/* How many more connections may be accepted in this loop iteration. */
static uint32_t
left_of(weft_listener *listener)
{
	uint64_t turn = weft__count_get(&weft__loop_counts(weft__listener_loop(listener))->turns);

	if (listener->turn != turn) {
		listener->turn = turn;
		listener->left = listener->budget;
	}
	return listener->left;
}

/* Take over an accepted connection, which is already counted. */
static void
adopt(weft_listener *listener, int fd)
{
	weft_stream *stream = weft__stream_make(
		fd, weft__addr_family(&listener->local) == AF_UNIX ? WEFT__STREAM_LOCAL : 0);

	weft__count(&weft__loop_counts(weft__listener_loop(listener))->accepted, 1);
	weft__fd_disown(weft__listener_loop(listener), fd);
	listener->flags &= ~(uint32_t)WEFT__LISTENER_PERMIT;
	listener->left -= left_of(listener) > 0;
	if (!stream) {
		weft__count(&weft__loop_counts(weft__listener_loop(listener))->accepts_shed, 1);
		(void)weft__sys->close(fd);
		weft__quota_leave(listener->quota);
		return;
	}
	stream->quota = listener->quota;
	/* With weft_listener_serve(), the threadlet of the peer does the handshake. */
	if (listener->handshakes.tls && !(listener->flags & WEFT__LISTENER_SERVED))
		begin_handshake(listener, stream);
	else
		add_ready(listener, stream);
}

/* Whether one more connection may be accepted.  If so, it is counted from now on. */
static bool
permit(weft_listener *listener)
{
	weft_loop *loop = weft__listener_loop(listener);
	bool was_full = listener->flags & WEFT__LISTENER_FULL;

	if (listener->flags & WEFT__LISTENER_PERMIT)
		return true;
	listener->flags &= ~(uint32_t)WEFT__LISTENER_FULL;
	if (weft__quota_enter(listener->quota, loop)) {
		listener->flags |= WEFT__LISTENER_PERMIT;
		return true;
	}
	listener->flags |= WEFT__LISTENER_FULL;
	weft__count(&weft__loop_counts(loop)->accepts_paused, !was_full);
	return false;
}

/* Skip connections that were aborted in the queue. */
static int
accept_live(const weft_listener *listener)
{
	weft_loop *loop = weft__listener_loop(listener);
	int fd = -EAGAIN;

	for (int i = 0; i < DEAD_MAX; i++) {
		fd = weft__loop_kernel(loop)->accept(listener->fd);
		if (fd != -ECONNABORTED && fd != -EPROTO && fd != -EINTR)
			break;
	}
	return fd;
}

/* Accept up to `max` connections that are queued already. */
static void
accept_more(weft_listener *listener, uint32_t max)
{
	for (; max > 0 && permit(listener); max--) {
		int fd = accept_live(listener);

		if (fd < 0)
			return;
		adopt(listener, fd);
	}
}

/* Whether the listener itself has failed.  Other errors pass: no descriptor is available, the
 * network is down, a connection was aborted. */
static bool
is_final(int64_t error)
{
	return error == WEFT_ESHUTDOWN || error == WEFT_EBADF || error == WEFT_EINVAL
	       || error == -ENOTSOCK || error == -EOPNOTSUPP;
}

static void
on_rested(weft_timer *timer, void *arg)
{
	weft_listener *listener = arg;

	(void)timer;
	listener->flags &= ~(uint32_t)WEFT__LISTENER_RESTS;
	weft__listener_go_on(listener);
}

/* Try again a little later; at once if out of memory for the timer. */
static void
rest(weft_listener *listener)
{
	weft__count(&weft__loop_counts(weft__listener_loop(listener))->accepts_shed, 1);
	if (weft_timer_start(weft__listener_loop(listener), &listener->timer, weft_after(REST_NS),
	                     0, on_rested, listener)
	    == 0)
		listener->flags |= WEFT__LISTENER_RESTS;
}

static void
on_accepted(weft_op *op, int64_t result, void *arg)
{
	weft_listener *listener = arg;

	if (result >= 0) {
		adopt(listener, (int)result);
		if ((listener->flags & WEFT__LISTENER_STARTED) && !weft__loop_batches(op->loop))
			accept_more(listener, left_of(listener));
	} else if (is_final(result)) {
		listener->error = (int)result;
	} else if (result != WEFT_ECANCELED) {
		rest(listener);
	}
	if (listener->halter && weft__claim(listener->halter))
		weft__wake(listener->halter, 0);
	listener->halter = NULL;
	hand_out(listener);
	weft__listener_go_on(listener);
}

/* Starting an accept may deliver a connection at once.  So none is started in a loop iteration
 * that has used its budget. */
static bool
is_put_off(weft_listener *listener)
{
	if (!(listener->flags & WEFT__LISTENER_STARTED) || left_of(listener) > 0)
		return false;
	hand_out_later(listener);
	return listener->flags & WEFT__LISTENER_HANDING;
}

void
weft__listener_go_on(weft_listener *listener)
{
	int rc;

	if (listener->flags & WEFT__LISTENER_CLOSING) {
		weft__listener_end(listener);
		return;
	}
	if (listener->op.pending || !listener_is_wanted(listener) || listener->error
	    || (listener->flags & WEFT__LISTENER_RESTS) || is_put_off(listener)
	    || !permit(listener))
		return;
	weft_op_set_background(&listener->op, !(listener->flags & WEFT__LISTENER_STARTED));
	rc = weft_op_accept(&listener->op, listener->fd, 0, WEFT_NEVER);
	if (rc < 0 && is_final(rc))
		listener->error = rc;
	else if (rc < 0)
		rest(listener);
}

static void
on_room(void *arg)
{
	weft__listener_go_on(arg);
}

int
weft__listener_use(weft_listener *listener, weft_loop *loop, const char *name)
{
	weft_loop *its = listener ? weft__listener_loop(listener) : NULL;
	int rc;

	if (!listener)
		return weft__misuse_in(WEFT_EINVAL, name, "listener is NULL");
	if (its && loop && its != loop)
		return weft__misuse_in(WEFT_EWRONGLOOP, name,
		                       "the listener belongs to another loop");
	if (!its)
		its = weft__loop_or_current(loop);
	rc = weft__loop_check(its, name);
	if (rc < 0)
		return rc;
	if (listener->flags & (WEFT__LISTENER_CLOSING | WEFT__LISTENER_DRAINS))
		return weft__fail_in(WEFT_ESHUTDOWN, name, "the listener was already closed");
	if (weft__listener_loop(listener))
		return 0;
	weft__store(&listener->loop, (uintptr_t)weft_loop_ref(its), WEFT__RELAXED);
	return weft_op_init(&listener->op, its, on_accepted, listener);
}

/* The accept op continues; its connection goes to the next acceptor. */
static void
listener_request(struct weft__waiter *waiter, int why)
{
	end_waiter(acceptor_of(waiter)->listener, why);
}

int
weft__listener_next(weft_listener *listener, weft_stream **out, uint64_t deadline_ns)
{
	struct acceptor a = {
		.waiter = { .what = "accept", .on = listener->fd, .request_end = listener_request },
		.listener = listener
	};
	int64_t rc;

	if (listener->ready) {
		*out = weft__listener_take(listener);
		(void)weft__maybe_yield(weft__self());
		return 0;
	}
	if (!listener->error) {
		listener->waiter = &a.waiter;
		weft__listener_go_on(listener);
	}
	if (listener->error) {
		listener->waiter = NULL;
		return listener->error;
	}
	rc = weft__wait(&a.waiter, deadline_ns);
	if (rc == 0)
		*out = a.stream;
	return (int)rc;
}

void
weft__listener_halt(weft_listener *listener)
{
	struct weft__waiter waiter = { .what = "accept", .on = listener->fd, .deaf = true };

	if (!listener->op.pending)
		return;
	listener->halter = &waiter;
	weft_op_cancel(&listener->op);
	(void)weft__wait(&waiter, WEFT_NEVER);
}

/* Accept a connection that is queued now.  If an accept op is pending, connections come only
 * through that op. */
static int
accept_now(weft_listener *listener, weft_stream **out)
{
	if (!listener->ready && !listener->op.pending && !listener->error) {
		if (weft__sys->set_nonblock(listener->fd) == 0)
			accept_more(listener, 1);
	}
	if (!listener->ready)
		return listener->error ? listener->error : WEFT_ETIMEDOUT;
	*out = weft__listener_take(listener);
	return 0;
}

static bool
is_busy(const weft_listener *listener)
{
	return listener->waiter
	       || (listener->flags & (WEFT__LISTENER_STARTED | WEFT__LISTENER_SERVED));
}

int
weft_listener_accept(weft_listener *listener, weft_stream **out, uint64_t deadline_ns)
{
	int rc = weft__listener_use(listener, NULL, "weft_listener_accept");

	if (rc == 0 && !out)
		rc = weft__misuse(WEFT_EINVAL, "weft_listener_accept: out is NULL");
	if (rc < 0)
		return rc;
	if (is_busy(listener))
		return weft__fail(
			WEFT_EBUSY,
			"weft_listener_accept: the listener already has an acceptor or a callback");
	if (deadline_ns == WEFT_NOWAIT)
		return accept_now(listener, out);
	rc = weft__may_wait_in(deadline_ns, "weft_listener_accept");
	return rc < 0 ? rc : weft__listener_next(listener, out, deadline_ns);
}

/* --- callbacks ---------------------------------------------------------- */

static void
on_standing_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	(void)weft_op_finish(op, why);
}

/* The loop stops, or the listener is closed. */
static void
on_stood(weft_op *op, int64_t result, void *arg)
{
	weft_listener *listener = arg;

	(void)op;
	if (result == WEFT_ESHUTDOWN && !listener->error)
		listener->error = WEFT_ESHUTDOWN;
	if (listener->error && (listener->flags & WEFT__LISTENER_OWED)) {
		listener->flags |= WEFT__LISTENER_STARTED;
		hand_out(listener);
	}
	weft__listener_go_on(listener);
}

static int
stand(weft_listener *listener)
{
	int rc;

	if (listener->standing.pending)
		return 0;
	rc = weft_op_init(&listener->standing, weft__listener_loop(listener), on_stood, listener);
	if (rc < 0)
		return rc;
	weft_op_set_background(&listener->standing, true);
	return weft_op_begin(&listener->standing, on_standing_cancel, listener, WEFT_NEVER);
}

int
weft_listener_start(weft_listener *listener, weft_loop *loop, weft_accept_fn fn, void *arg)
{
	int rc = weft__listener_use(listener, loop, "weft_listener_start");

	if (rc == 0 && !fn)
		rc = weft__misuse(WEFT_EINVAL, "weft_listener_start: fn is NULL");
	if (rc < 0)
		return rc;
	if (listener->waiter || (listener->flags & WEFT__LISTENER_SERVED))
		return weft__fail(
			WEFT_EBUSY,
			"weft_listener_start: a threadlet already accepts on this listener");
	rc = stand(listener);
	if (rc < 0)
		return rc;
	listener->fn = fn;
	listener->arg = arg;
	listener->flags |= WEFT__LISTENER_STARTED | WEFT__LISTENER_OWED;
	weft_op_set_background(&listener->op, false);
	weft__listener_go_on(listener);
	if (listener->error)
		listener->flags &= ~(uint32_t)(WEFT__LISTENER_STARTED | WEFT__LISTENER_OWED);
	else if (listener->ready)
		hand_out_later(listener);
	return listener->error;
}

int
weft_listener_stop(weft_listener *listener)
{
	int rc = weft__listener_use(listener, NULL, "weft_listener_stop");

	if (rc < 0)
		return rc;
	listener->flags &= ~(uint32_t)WEFT__LISTENER_STARTED;
	weft_op_cancel(&listener->op);
	return 0;
}

/* --- creation and freeing ----------------------------------------------- */

static void
listener_release(weft_listener *listener)
{
	weft_loop *loop = weft__listener_loop(listener);

	if (listener->flags & WEFT__LISTENER_RESTS)
		(void)weft_timer_stop(&listener->timer);
	if (loop)
		weft_loop_unref(loop);
	if (listener->flags & WEFT__LISTENER_PERMIT)
		weft__quota_leave(listener->quota);
	weft__quota_drop(listener->quota);
	weft_tls_close(listener->handshakes.tls);
	weft__sys->release(listener->path);
	weft__sys->release(listener);
}

int
weft_listener_open(const char *address, const weft_listener_opts *opts, weft_listener **out)
{
	const weft_listener_opts defaults = WEFT_INIT;
	weft_listener *listener;

	if (!address || !out)
		return weft__misuse(WEFT_EINVAL, "weft_listener_open: address or out is NULL");
	opts = opts ? opts : &defaults;
	listener = weft__alloc_zero(sizeof(*listener));
	if (listener)
		listener->quota = weft__quota_new(opts->connections_max ? opts->connections_max
		                                                        : CONNECTIONS_MAX,
		                                  on_room, listener);
	if (!listener || !listener->quota) {
		weft__sys->release(listener);
		return weft__fail(WEFT_ENOMEM, "weft_listener_open: out of memory");
	}
	listener->forks = weft__load(&weft__program.forks, WEFT__RELAXED);
	listener->budget = opts->accept_budget ? opts->accept_budget : BUDGET;
	listener->flags = (opts->borrow ? WEFT__LISTENER_BORROWED : 0u)
	                  | (opts->reuse_port ? WEFT__LISTENER_SHARES : 0u);
	listener->handshakes.limit_ns = opts->handshake_ns ? opts->handshake_ns : HANDSHAKE_NS;
	if (opts->tls && strncmp(address, "tls:", 4) == 0) /* only tls:// uses opts.tls */
		listener->handshakes.tls = weft__tls_ref(opts->tls);
	listener->fd = weft__listen(address, opts, &listener->local, &listener->path);
	if (listener->fd < 0) {
		int rc = listener->fd;

		listener->path = NULL;
		listener_release(listener);
		return rc;
	}
	*out = listener;
	return 0;
}

int
weft_listener_local(weft_listener *listener, weft_addr *out)
{
	if (!listener || !out)
		return weft__misuse(WEFT_EINVAL, "weft_listener_local: listener or out is NULL");
	*out = listener->local;
	return 0;
}

/* --- closing ------------------------------------------------------------ */

/* Close the socket and remove its path: no new connections come.  A forked child leaves the path to
 * its parent. */
static void
close_socket(weft_listener *listener)
{
	weft_loop *loop = weft__listener_loop(listener);

	if (loop || !(listener->flags & WEFT__LISTENER_BORROWED))
		weft__fd_forget(loop, listener->fd);
	if (!(listener->flags & WEFT__LISTENER_BORROWED))
		(void)weft__sys->close(listener->fd);
	if (listener->path && listener->forks == weft__load(&weft__program.forks, WEFT__RELAXED))
		(void)weft__sys->path_remove(listener->path);
	listener->fd = -1;
	if (!listener->error)
		listener->error = WEFT_ESHUTDOWN;
}

void
weft__listener_leave(weft_listener *listener)
{
	if (listener->fd < 0)
		return;
	/* Accept the connections that are queued, if something serves them. */
	if ((listener->flags & (WEFT__LISTENER_SERVED | WEFT__LISTENER_STARTED))
	    && weft__sys->set_nonblock(listener->fd) == 0)
		accept_more(listener, UINT32_MAX);
	close_socket(listener);
}

void
weft__listener_end(weft_listener *listener)
{
	weft_stream *stream;

	if (listener->op.pending || listener->standing.pending
	    || (listener->flags & (WEFT__LISTENER_CALLED | WEFT__LISTENER_HANDING)))
		return;
	if (!(listener->flags & WEFT__LISTENER_ENDED)) {
		listener->flags |= WEFT__LISTENER_ENDED;
		weft__listener_leave(listener);
		if (listener->flags & WEFT__LISTENER_OWED)
			listener->flags |= WEFT__LISTENER_STARTED;
		hand_out(listener);
		if (listener->closer && weft__claim(listener->closer))
			weft__wake(listener->closer, 0);
		listener->closer = NULL;
	}
	if ((listener->flags & WEFT__LISTENER_SERVED) || listener->shaking > 0)
		return;
	while ((stream = weft__listener_take(listener)))
		weft_stream_reset(stream);
	listener_release(listener);
}

/* weft_listener_close() does not call the callback.  While the callback is owed its last call,
 * `standing` is pending, and the end of `standing` continues the close. */
void
weft__listener_shut(weft_listener *listener)
{
	listener->flags |= WEFT__LISTENER_CLOSING;
	weft__handshakes_cut(&listener->handshakes);
	if (listener->op.pending)
		weft_op_cancel(&listener->op);
	if (listener->standing.pending) {
		weft_op_set_background(&listener->standing, false);
		(void)weft_op_finish(&listener->standing, 0);
	}
	weft__listener_end(listener);
}

void
weft_listener_close(weft_listener *listener)
{
	struct weft__waiter waiter = { .what = "close", .deaf = true };
	weft_loop *loop = listener ? weft__listener_loop(listener) : NULL;
	bool drains, waits;

	if (!listener || (listener->flags & (WEFT__LISTENER_CLOSING | WEFT__LISTENER_DRAINS)))
		return;
	if (loop) {
		/* The listeners of a stopped loop can still be closed. */
		int rc = weft__loop_check(loop, "weft_listener_close");

		if (rc < 0 && rc != WEFT_ESHUTDOWN)
			return;
	}
	drains = weft__listener_begin_drain(listener);
	waits = weft__self() && (drains || listener->op.pending);
	waiter.on = listener->fd;
	listener->closer = waits ? &waiter : NULL;
	if (drains)
		listener->flags |= WEFT__LISTENER_DRAINS;
	else
		weft__listener_shut(listener);
	if (waits)
		(void)weft__wait(&waiter, WEFT_NEVER);
}
