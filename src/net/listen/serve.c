/* serve.c - serves each peer on a threadlet of its own, on the loop that has least to do.
 *
 * The threadlet of a peer does its TLS handshake.  A handshake may take long, so those that are
 * still in progress HANDSHAKE_NS after accepting has ended are cut.  Until then neither the end of
 * accepting nor a cancellation of the caller disturbs a handshake.
 *
 * The service is on the stack of the caller, which waits for the threadlets of all peers.  They are
 * in a scope, through which a cancellation of the caller reaches them.  With `on_end` they are in a
 * group, which only counts them.
 */
#include "net/listen/listener.h"
#include "net/tls/tls.h"
#include "threadlet/waitable.h"

#define HANDSHAKE_NS    (WEFT_S / 2)
#define HANDSHAKE_STACK ((size_t)64 << 10)

struct service {
	weft_listener *listener; /* may be freed once the last peer was started */
	const weft_listener_serve_opts *opts;
	weft_peer_fn fn;
	void *arg;
	weft_scope scope; /* of all peers, without `on_end` */
	weft_group group; /* of all peers, with `on_end` */
	struct weft__handshakes handshakes;
	weft_timer timer; /* cuts the handshakes */
};

struct peer {
	struct service *service;
	weft_stream *stream;
};

static void
on_limit(weft_timer *timer, void *arg)
{
	(void)timer;
	weft__handshakes_cut(arg);
}

/* Cut handshakes later, or now if out of memory for the timer or the loop is stopping.  If the
 * loop begins to stop later, it still waits for the handshakes: the timer is firm. */
static void
limit_handshakes(struct service *service)
{
	weft_loop *loop = weft__self()->sched->loop;

	service->timer.tag |= WEFT__ENTRY_FIRM;
	if (!service->handshakes.tls
	    || weft_timer_start(loop, &service->timer, weft_after(HANDSHAKE_NS), 0, on_limit,
	                        &service->handshakes)
	               < 0)
		weft__handshakes_cut(&service->handshakes);
}

/* Do the handshake, shielded from a cancellation of weft_listener_serve(). */
static bool
run_handshake(struct peer *peer)
{
	weft_scope scope;
	bool done;

	if (!peer->service->handshakes.tls)
		return true;
	if (weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER) < 0)
		return false;
	done = weft__handshake(&peer->service->handshakes, peer->stream);
	(void)weft_scope_close(&scope);
	return done;
}

/* The result of the peer function is ignored: the service continues. */
static int
run_peer(void *arg)
{
	struct peer peer = *(struct peer *)arg;
	struct service *service = peer.service;

	weft__sys->release(arg);
	if (run_handshake(&peer))
		(void)service->fn(peer.stream, service->arg);
	else
		weft_stream_reset(peer.stream);
	if (service->opts->on_end)
		(void)weft_group_done(&service->group);
	return 0;
}

/* The cryptography of a handshake needs more than the smallest stacks have. */
static size_t
stack_for(const struct service *service)
{
	size_t bytes = service->opts->stack_bytes;

	return service->handshakes.tls && bytes > 0 && bytes < HANDSHAKE_STACK ? HANDSHAKE_STACK
	                                                                       : bytes;
}

static int64_t
go_peer(struct service *service, struct peer *peer)
{
	const weft_listener_serve_opts *opts = service->opts;
	bool same_loop = service->listener->flags & WEFT__LISTENER_SHARES;
	const weft_go_opts go = { .name = opts->name ? opts->name : "peer",
		                  .stack_bytes = stack_for(service),
		                  .scope = opts->on_end ? NULL : &service->scope,
		                  .loop = same_loop ? NULL : WEFT_LEAST_LOADED };
	int64_t rc;

	if (opts->on_end)
		(void)weft_group_add(&service->group, 1);
	rc = weft_go_with(&go, run_peer, peer);
	if (rc == WEFT_ECANCELED) /* this threadlet is canceled, too */
		return run_peer(peer);
	if (rc < 0 && opts->on_end)
		(void)weft_group_done(&service->group);
	return rc;
}

static void
start_peer(struct service *service, weft_stream *stream)
{
	struct peer *peer = weft__sys->alloc(sizeof(*peer));

	if (peer) {
		*peer = (struct peer){ service, stream };
		if (go_peer(service, peer) >= 0)
			return;
	}
	weft__sys->release(peer); /* out of memory, or too many threadlets: drop the peer */
	weft__count(&weft__loop_counts(weft__self()->sched->loop)->accepts_shed, 1);
	weft_stream_reset(stream);
}

static int
accept_peers(struct service *service, uint64_t deadline_ns)
{
	weft_listener *listener = service->listener;
	weft_stream *stream;
	int rc;

	for (;;) {
		rc = weft__may_wait_in(deadline_ns, "weft_listener_serve");
		if (rc == 0)
			rc = weft__listener_next(listener, &stream, deadline_ns);
		if (rc < 0)
			return rc;
		start_peer(service, stream);
	}
}

/* Serve the peers that were accepted.  The listener would drop them.  The peer function can notify
 * them, even if its threadlet is canceled. */
static void
start_last(struct service *service, int why)
{
	weft_stream *stream;

	weft__listener_halt(service->listener);
	/* This service accepts no more, so new peers have to reach another listener. */
	if (why == WEFT_ECANCELED) {
		weft__listener_drain(service->listener);
		weft__listener_leave(service->listener);
	}
	while ((stream = weft__listener_take(service->listener)))
		start_peer(service, stream);
}

/* Accepting has ended with `why`.  Wait for all peers. */
static void
join_peers(struct service *service, int why)
{
	int rc;

	if (!service->opts->on_end) {
		(void)weft_scope_close(&service->scope);
		return;
	}
	do
		rc = weft_group_wait(&service->group, WEFT_NEVER);
	while (rc == WEFT_EINTR);
	if (rc < 0 && rc != why)
		service->opts->on_end(rc, service->arg);
	(void)weft__group_join(&service->group);
}

static int
check_serve(weft_listener *listener, weft_peer_fn fn, uint64_t deadline_ns)
{
	int rc = weft__listener_use(listener, NULL, "weft_listener_serve");

	if (rc == 0 && !fn)
		rc = weft__misuse(WEFT_EINVAL, "weft_listener_serve: fn is NULL");
	if (rc == 0
	    && (listener->waiter
	        || listener->flags & (WEFT__LISTENER_STARTED | WEFT__LISTENER_SERVED)))
		rc = weft__fail(
			WEFT_EBUSY,
			"weft_listener_serve: the listener already has an acceptor or a callback");
	return rc < 0 ? rc : weft__may_wait_in(deadline_ns, "weft_listener_serve");
}

int
weft_listener_serve(weft_listener *listener, const weft_listener_serve_opts *opts, weft_peer_fn fn,
                    void *arg, uint64_t deadline_ns)
{
	const weft_listener_serve_opts defaults = WEFT_INIT;
	struct service service = { .listener = listener,
		                   .opts = opts ? opts : &defaults,
		                   .fn = fn,
		                   .arg = arg,
		                   .group = WEFT_SHARED_INIT,
		                   .timer = WEFT_INIT };
	int rc = check_serve(listener, fn, deadline_ns);

	if (rc == 0 && !service.opts->on_end)
		rc = weft_scope_open(&service.scope, 0, WEFT_NEVER);
	if (rc < 0)
		return rc;
	listener->flags |= WEFT__LISTENER_SERVED;
	service.handshakes.limit_ns = listener->handshakes.limit_ns;
	if (listener->handshakes.tls)
		service.handshakes.tls = weft__tls_ref(listener->handshakes.tls);
	rc = accept_peers(&service, deadline_ns);
	if (service.opts->on_end)
		service.opts->on_end(rc, arg);
	limit_handshakes(&service);
	start_last(&service, rc);
	listener->flags &= ~(uint32_t)WEFT__LISTENER_SERVED;
	if (listener->flags & WEFT__LISTENER_CLOSING)
		weft__listener_end(listener);
	join_peers(&service, rc);
	(void)weft_timer_stop(&service.timer);
	weft_tls_close(service.handshakes.tls);
	return rc;
}
