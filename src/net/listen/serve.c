/* serve.c - serves each peer on a threadlet of its own, on the loop that has least to do.
 *
 * A handshake may never end, so it is interrupted HANDSHAKE_NS after accepting has ended.
 * Until then neither the end of accepting nor a cancellation of the caller disturbs it.  Peers
 * past their handshake are waited for.  Handshakes are in a list.  A peer leaves the list,
 * under its lock, before it is served: so an interrupted peer is not served, and a served peer
 * is never interrupted.
 */
#include "base/lock.h"
#include "net/listen/listener.h"
#include "net/tls/tls.h"

#define HANDSHAKE_NS (WEFT_S / 2)

/* A handshake, on the stack of its threadlet. */
struct greeting {
	struct greeting *prev, *next;
	weft_stream *stream;
	bool cut;
};

struct service {
	weft_listener *listener;
	weft_peer_fn fn;
	void *arg;
	weft_scope scope; /* of all peers, so that the service outlives them */
	struct weft__lock lock;
	struct greeting *first;
	bool over;        /* no handshake may begin; the lock protects it and `first` */
	weft_timer timer; /* until the handshakes are interrupted */
};

struct peer {
	struct service *service;
	weft_stream *stream;
	weft_tls *tls; /* NULL: no TLS */
	uint64_t handshake_ns;
};

static bool
begin_greeting(struct service *service, struct greeting *greeting)
{
	bool may;

	weft__lock_take(&service->lock);
	may = !service->over;
	if (may) {
		greeting->next = service->first;
		if (greeting->next)
			greeting->next->prev = greeting;
		service->first = greeting;
	}
	weft__lock_give(&service->lock);
	return may;
}

/* Returns whether the handshake was not interrupted. */
static bool
end_greeting(struct service *service, struct greeting *greeting)
{
	weft__lock_take(&service->lock);
	*(greeting->prev ? &greeting->prev->next : &service->first) = greeting->next;
	if (greeting->next)
		greeting->next->prev = greeting->prev;
	weft__lock_give(&service->lock);
	return !greeting->cut;
}

static void
cut_greetings(weft_timer *timer, void *arg)
{
	struct service *service = arg;

	(void)timer;
	weft__lock_take(&service->lock);
	service->over = true;
	for (struct greeting *g = service->first; g; g = g->next) {
		g->cut = true;
		weft_stream_interrupt(g->stream);
	}
	weft__lock_give(&service->lock);
}

/* Interrupt handshakes later, or now if out of memory for the timer or the loop is stopping.
 * If the loop begins to stop later, it still waits for the handshakes: the timer is firm. */
static void
limit_greetings(struct service *service)
{
	weft_loop *loop = weft__self()->sched->loop;

	service->timer.tag |= WEFT__TAG_FIRM;
	if (!service->listener->tls
	    || weft_timer_start(loop, &service->timer, weft_after(HANDSHAKE_NS), 0, cut_greetings,
	                        service)
	               < 0)
		cut_greetings(NULL, service);
}

/* Do the handshake, shielded from a cancellation of weft_listener_serve(). */
static int
shake_hands(struct peer *peer)
{
	weft_scope scope;
	int rc = weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER);

	if (rc < 0)
		return rc;
	rc = weft_tls_start(peer->stream, peer->tls, WEFT_TLS_SERVER, NULL,
	                    weft_after(peer->handshake_ns));
	(void)weft_scope_close(&scope);
	return rc;
}

/* Do the handshake, if there is one.  True if the peer may be served. */
static bool
greet(struct peer *peer)
{
	struct greeting greeting = { .stream = peer->stream };
	int rc = WEFT_ESHUTDOWN;

	if (!peer->tls)
		return true;
	if (begin_greeting(peer->service, &greeting)) {
		rc = shake_hands(peer);
		if (!end_greeting(peer->service, &greeting))
			rc = WEFT_ESHUTDOWN;
	}
	weft_tls_close(peer->tls);
	return rc == 0;
}

/* The result of the peer function is ignored: the service continues. */
static int
run_peer(void *arg)
{
	struct peer peer = *(struct peer *)arg;
	struct service *service = peer.service;

	weft__sys->release(arg);
	if (greet(&peer))
		(void)service->fn(peer.stream, service->arg);
	else
		weft_stream_reset(peer.stream);
	return 0;
}

static void
start_peer(struct service *service, weft_stream *stream)
{
	const weft_listener *listener = service->listener;
	weft_loop *here = weft__self()->sched->loop;
	weft_go_opts opts = {
		.name = "peer",
		.scope = &service->scope,
		.loop = here->runtime && !(listener->flags & WEFT__LISTENER_SHARES)
		                ? WEFT_LEAST_LOADED
		                : here,
	};
	struct peer *peer = weft__sys->alloc(sizeof(*peer));
	int64_t rc;

	if (peer) {
		*peer = (struct peer){ service, stream,
			               listener->tls ? weft__tls_ref(listener->tls) : NULL,
			               listener->handshake_ns };
		rc = weft_go_with(&opts, run_peer, peer);
		if (rc == WEFT_ECANCELED) /* this threadlet is canceled, too */
			rc = run_peer(peer);
		if (rc >= 0)
			return;
		weft_tls_close(peer->tls);
	}
	weft__sys->release(peer); /* out of memory, or too many threadlets: drop the peer */
	weft__count(&here->counts.accepts_shed, 1);
	weft_stream_reset(stream);
}

static int
accept_peers(struct service *service, uint64_t deadline_ns)
{
	weft_listener *listener = service->listener;
	weft_stream *stream;
	int rc;

	for (;;) {
		rc = weft__may_wait(deadline_ns);
		if (rc == 0 && weft__notice_take(&listener->notice))
			rc = WEFT_EINTR;
		if (rc == 0)
			rc = weft__listener_next(listener, &stream, deadline_ns);
		if (rc < 0)
			return rc;
		start_peer(service, stream);
	}
}

/* Serve the peers that were accepted.  The listener would drop them; the peer function, even if
 * canceled, can notify them. */
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

int
weft_listener_serve(weft_listener *listener, weft_peer_fn fn, void *arg, uint64_t deadline_ns)
{
	struct service service = { .listener = listener, .fn = fn, .arg = arg, .timer = WEFT_INIT };
	int rc = weft__listener_use(listener, NULL, "weft_listener_serve");

	if (rc == 0 && !fn)
		rc = weft__misuse(WEFT_EINVAL, "weft_listener_serve: fn is NULL");
	if (rc == 0
	    && (listener->waiter
	        || listener->flags & (WEFT__LISTENER_STARTED | WEFT__LISTENER_SERVED)))
		rc = weft__fail(
			WEFT_EBUSY,
			"weft_listener_serve: the listener already has an acceptor or a callback");
	if (rc == 0)
		rc = weft__may_wait(deadline_ns);
	if (rc == 0)
		rc = weft_scope_open(&service.scope, 0, WEFT_NEVER);
	if (rc < 0)
		return rc;
	listener->flags |= WEFT__LISTENER_SERVED;
	rc = accept_peers(&service, deadline_ns);
	limit_greetings(&service);
	start_last(&service, rc);
	listener->flags &= ~(uint32_t)WEFT__LISTENER_SERVED;
	if (listener->flags & WEFT__LISTENER_CLOSING)
		weft__listener_end(listener);
	(void)weft_scope_close(&service.scope);
	(void)weft_timer_stop(&service.timer);
	return rc;
}
