/* http_server.c - create a server, serve a listener, drain.
 *
 * weft_listener_serve() accepts the connections, and starts a threadlet for each of them on the
 * loop with the least load.  When accepting has ended it calls on_end(), which begins the drain.
 * It returns when no connection is left.
 */
#include "http/server/http_server.h"

#define HEADER_NS    (10 * WEFT_S)
#define IDLE_NS      (60 * WEFT_S)
#define REQUEST_NS   (60 * WEFT_S)
#define GRACE_NS     (10 * WEFT_S)
#define DRAIN_NS     (WEFT_S / 2)
#define RATE_MIN     128u
#define REQUESTS_MAX 10000u
#define FORCE_NS     (5 * WEFT_S)
#define STACK_MAX    ((size_t)1 << 30)

static uint64_t
time_of(uint64_t given_ns, uint64_t default_ns)
{
	uint64_t time_ns = given_ns ? given_ns : default_ns;

	return time_ns < WEFT_NEVER / 2 ? time_ns : WEFT_NEVER / 2;
}

static void
set_defaults(weft_http_server *server)
{
	weft_http_server_opts *opts = &server->opts;
	size_t head = opts->header_max ? opts->header_max : WEFT__HTTP_HEAD_MAX;
	size_t target = opts->target_max ? opts->target_max : WEFT__HTTP_TARGET_MAX;

	opts->header_max = head < (16u << 20) ? head : 16u << 20;
	opts->target_max = target < opts->header_max ? target : opts->header_max;
	opts->header_ns = time_of(opts->header_ns, HEADER_NS);
	opts->idle_ns = time_of(opts->idle_ns, IDLE_NS);
	opts->request_ns = time_of(opts->request_ns, REQUEST_NS);
	opts->grace_ns = time_of(opts->grace_ns, GRACE_NS);
	opts->drain_ns = time_of(opts->drain_ns, DRAIN_NS);
	opts->rate_min = opts->rate_min ? opts->rate_min : RATE_MIN;
	opts->requests_max = opts->requests_max ? opts->requests_max : REQUESTS_MAX;
	if (opts->stack_bytes > STACK_MAX)
		opts->stack_bytes = STACK_MAX;
	server->limits = (struct weft__http_limits){
		.head_max = (uint32_t)opts->header_max,
		.target_max = (uint32_t)opts->target_max,
		.body_max = opts->body_max,
	};
}

weft_http_server *
weft_http_server_new(const weft_http_server_opts *opts)
{
	weft_http_server *server = weft_alloc(sizeof(*server));

	if (!server)
		return NULL;
	memset(server, 0, sizeof(*server));
	if (opts)
		server->opts = *opts;
	set_defaults(server);
	server->root = weft_alloc(sizeof(*server->root) + 1);
	if (!server->root) {
		weft_release(server);
		return NULL;
	}
	memset(server->root, 0, sizeof(*server->root) + 1);
	return server;
}

static bool
is_serving(const weft_http_server *server)
{
	return __atomic_load_n(&server->counts.serving, __ATOMIC_ACQUIRE);
}

int
weft_http_server_free(weft_http_server *server)
{
	if (!server)
		return 0;
	if (is_serving(server))
		return weft_fail(WEFT_EBUSY, "weft_http_server_free: the server is still serving");
	weft__http_routes_free(server->root);
	weft__http_files_free(server->files);
	weft_release(server);
	return 0;
}

int
weft_http_route(weft_http_server *server, const char *pattern, weft_http_fn fn, void *arg)
{
	if (!server || !pattern || !fn)
		return weft_fail(WEFT_EINVAL, "weft_http_route: an argument is NULL");
	if (is_serving(server))
		return weft_fail(
			WEFT_EBUSY,
			"weft_http_route: routes cannot be added while the server is serving");
	return weft__http_route_add(server->root, pattern, fn, arg);
}

static uint64_t
http_server_read_count(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void
weft_http_server_stats(const weft_http_server *server, struct weft_http_server_stats *out)
{
	const struct weft__http_counts *counts;

	if (!server || !out)
		return;
	counts = &server->counts;
	*out = (struct weft_http_server_stats){
		.connections = http_server_read_count(&counts->connections),
		.requests = http_server_read_count(&counts->requests),
		.bad_requests = http_server_read_count(&counts->bad_requests),
		.rejected_503 = http_server_read_count(&counts->rejected_503),
		.timed_out = http_server_read_count(&counts->timed_out),
		.idle_closed = http_server_read_count(&counts->idle_closed),
		.failed = http_server_read_count(&counts->failed),
		.open = __atomic_load_n(&counts->open, __ATOMIC_RELAXED),
		.active = __atomic_load_n(&counts->active, __ATOMIC_RELAXED),
	};
}

/* --- the list of connections ------------------------------------------------ */

void
weft__http_service_enter(struct weft__http_conn *conn)
{
	bool forced;

	weft__spin_lock(&conn->service->lock);
	weft__link_after(&conn->service->conns, &conn->link);
	forced = conn->service->forced;
	weft__spin_unlock(&conn->service->lock);
	if (forced)
		(void)weft_cancel(conn->self);
}

void
weft__http_service_leave(struct weft__http_conn *conn)
{
	weft__spin_lock(&conn->service->lock);
	weft__link_remove(&conn->link);
	weft__spin_unlock(&conn->service->lock);
}

/* --- waiting connections ------------------------------------------------------ */

static bool
is_waiting(const struct weft__http_conn *conn)
{
	return !weft__list_is_empty(&conn->wait_link);
}

static void
wait_leave(struct weft__http_conn *conn)
{
	weft__link_remove(&conn->wait_link);
	conn->service->waiting_count--;
}

/* Choose the connection to be closed, but not `newest`: of those that are not proven the one that
 * has waited longest; if there are none, of the proven ones.  Returns its threadlet, which the
 * caller cancels after it has released the lock; 0 if there is no other connection. */
static weft_threadlet
evict(struct weft__http_service *service, const struct weft__http_conn *newest)
{
	struct weft__link *link = service->waiting[0].next;
	struct weft__http_conn *conn;

	if (link == &service->waiting[0] || link == &newest->wait_link)
		link = service->waiting[1].next;
	if (link == &service->waiting[1] || link == &newest->wait_link)
		return 0;
	conn = WEFT__LINK_OF(weft__http_conn, wait_link, link);
	wait_leave(conn);
	conn->evicted = true;
	weft__http_count(&service->server->counts.idle_closed, 1);
	return conn->self;
}

void
weft__http_wait_begin(struct weft__http_conn *conn)
{
	struct weft__http_service *service = conn->service;
	weft_threadlet evicted = 0;

	if (!conn->server->opts.idle_max)
		return;
	weft__spin_lock(&service->lock);
	weft__link_before(&service->waiting[conn->proven], &conn->wait_link);
	if (++service->waiting_count > conn->server->opts.idle_max)
		evicted = evict(service, conn);
	weft__spin_unlock(&service->lock);
	if (evicted)
		(void)weft_cancel(evicted);
}

bool
weft__http_wait_end(struct weft__http_conn *conn)
{
	bool evicted;

	if (!conn->server->opts.idle_max)
		return true;
	weft__spin_lock(&conn->service->lock);
	if (is_waiting(conn))
		wait_leave(conn);
	evicted = conn->evicted;
	weft__spin_unlock(&conn->service->lock);
	return !evicted;
}

/* --- draining --------------------------------------------------------------- */

/* Without `force`, interrupt the connection if it is idle, under the lock: invariant 3.  Returns
 * the threadlet to cancel after the lock is released, with `force` or if the stream is taken; else
 * 0.  By then the threadlet may have ended: canceling it has no effect. */
static weft_threadlet
http_server_notify(struct weft__http_conn *conn, bool force)
{
	uint32_t state = WEFT__HTTP_IDLE;

	if (force)
		return conn->self;
	if (__atomic_compare_exchange_n(&conn->state, &state, WEFT__HTTP_NOTIFIED, false,
	                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		weft_stream_interrupt(conn->io.stream);
	return state == WEFT__HTTP_TAKEN ? conn->self : 0;
}

/* An interrupt is sent under the lock: once this call has held the lock, the interrupt has been
 * sent.  If no wait has consumed it, the peek, which has nothing to wait for, clears it. */
void
weft__http_conn_busy(struct weft__http_conn *conn)
{
	const void *data;

	if (__atomic_exchange_n(&conn->state, WEFT__HTTP_BUSY, __ATOMIC_SEQ_CST)
	    != WEFT__HTTP_NOTIFIED)
		return;
	weft__spin_lock(&conn->service->lock);
	weft__spin_unlock(&conn->service->lock);
	(void)weft_stream_peek(conn->io.stream, 0, &data, WEFT_NEVER);
}

/* Notify one connection that was not notified in this round: invariant 4.  False: all were. */
static bool
http_server_notify_next(struct weft__http_service *service, uint32_t round, bool force)
{
	struct weft__http_conn *conn;
	weft_threadlet canceled = 0;
	bool found;

	weft__spin_lock(&service->lock);
	service->forced |= force;
	conn = WEFT__LINK_OF(weft__http_conn, link, service->conns.next);
	found = !weft__list_is_empty(&service->conns) && conn->round != round;
	if (found) {
		weft__link_remove(&conn->link);
		weft__link_before(&service->conns, &conn->link);
		conn->round = round;
		canceled = http_server_notify(conn, force);
	}
	weft__spin_unlock(&service->lock);
	if (canceled)
		(void)weft_cancel(canceled);
	return found;
}

/* Runs on the loop of the weft_http_serve() call, so rounds do not overlap. */
static void
notify_all(struct weft__http_service *service, bool force)
{
	uint32_t round = ++service->round;

	while (http_server_notify_next(service, round, force))
		;
}

static void
on_limit(weft_timer *timer, void *arg)
{
	(void)timer;
	notify_all(arg, true);
}

/* Cancel the remaining connections at `until_ns`. */
static void
limit(struct weft__http_service *service, uint64_t until_ns)
{
	if (until_ns >= service->force_ns)
		return;
	service->force_ns = until_ns;
	if (weft_timer_start(NULL, &service->force, until_ns, 0, on_limit, service) < 0)
		notify_all(service, true);
}

/* Accepting has ended, or the weft_http_serve() call is canceled while it drains. */
static void
on_end(int why, void *arg)
{
	struct weft__http_service *service = arg;

	if (!service->draining) {
		service->drained_ns = weft_now();
		__atomic_store_n(&service->draining, 1, __ATOMIC_SEQ_CST);
		weft_timer_set_background(&service->force, true);
		notify_all(service, false);
	}
	limit(service, why == WEFT_ESHUTDOWN ? service->deadline_ns : weft_after(FORCE_NS));
}

/* --- serving ---------------------------------------------------------------- */

int
weft_http_serve(weft_http_server *server, weft_listener *listener, uint64_t deadline_ns)
{
	struct weft__http_service service = {
		.server = server,
		.force = WEFT_INIT,
		.force_ns = WEFT_NEVER,
		.deadline_ns = deadline_ns,
	};
	weft_listener_serve_opts opts = { .name = "http", .on_end = on_end };
	int rc;

	if (!server || !listener)
		return weft_fail(WEFT_EINVAL, "weft_http_serve: an argument is NULL");
	opts.stack_bytes = server->opts.stack_bytes;
	weft__link_init(&service.conns);
	weft__link_init(&service.waiting[0]);
	weft__link_init(&service.waiting[1]);
	weft__http_count(&server->counts.serving, 1);
	rc = weft_listener_serve(listener, &opts, weft__http_conn_run, &service, deadline_ns);
	(void)weft_timer_stop(&service.force);
	__atomic_sub_fetch(&server->counts.serving, 1, __ATOMIC_RELEASE);
	return rc;
}
