/* answer.c - one exchange of a connection: choose and run the handler, then complete the reply. */
#include "http/server/http_server.h"
#include <weft/loop.h>

#define DRAIN_NS    (5 * WEFT_S)
#define SLACK_NS    (WEFT_S / 4)
#define RETRY_AFTER "1" /* second */

static struct weft__http_counts *
counts_of(struct weft__http_conn *conn)
{
	return &conn->server->counts;
}

/* --- choosing the handler ---------------------------------------------------- */

static void
close_scope(struct weft__http_conn *conn)
{
	if (conn->scoped && weft_scope_close(&conn->scope) < 0)
		conn->cut = true;
	conn->scoped = false;
	conn->endless = false;
}

/* The handlers of a batch share a scope, whose deadline is not moved again before this time has
 * passed.  So a handler may lose as much of its request_ns. */
static uint64_t
slack(const struct weft__http_conn *conn)
{
	uint64_t part = conn->server->opts.request_ns / 64;

	return part < SLACK_NS ? part : SLACK_NS;
}

/* Open the scope of the handler, with its deadline.  A scope that the previous handler's
 * deadline or cancellation has ended cannot be used again. */
static int
open_scope(struct weft__http_conn *conn)
{
	uint64_t now = weft_loop_now(conn->loop);
	uint64_t until = now + conn->server->opts.request_ns;
	int rc = 0;

	if (conn->scoped && now - conn->scope_since_ns < slack(conn))
		return 0;
	if (conn->scoped && weft_scope_set_deadline(&conn->scope, until) < 0)
		close_scope(conn);
	if (!conn->scoped)
		rc = weft_scope_open(&conn->scope, 0, until);
	if (rc < 0)
		return rc;
	conn->scope_since_ns = now;
	conn->scoped = true;
	return 0;
}

/* The deadline includes the slack, so that the pace of a peer that stops runs out first.  The pace
 * is measured by weft_now(), and so is the deadline here: the loop's time may be older by more
 * than the slack. */
void
weft__http_conn_progress(struct weft__http_io *io)
{
	struct weft__http_conn *conn = io->owner;
	uint64_t now;

	if (!conn->scoped || conn->endless)
		return;
	now = weft_now();
	if (now < conn->scope_since_ns + slack(conn))
		return;
	conn->scope_since_ns = now;
	(void)weft_scope_set_deadline(&conn->scope,
	                              now + conn->server->opts.request_ns + slack(conn));
}

static void
count_active(struct weft__http_conn *conn)
{
	uint32_t active = __atomic_add_fetch(&counts_of(conn)->active, 1, __ATOMIC_RELAXED);

	conn->active = true;
	conn->shed = active > conn->server->opts.requests_max;
}

static int
shed(struct weft__http_conn *conn, weft_http *http)
{
	weft__http_count(&counts_of(conn)->rejected_503, 1);
	(void)weft_http_set_header(http, "Retry-After", RETRY_AFTER);
	return weft__http_reply_status(http, 503, WEFT_NEVER);
}

/* No route matches: the path is unknown, or does not support the method. */
static int
answer_unrouted(struct weft__http_conn *conn, weft_http *http)
{
	const char *methods = weft__http_route_methods(conn->server->root, http);
	const char *method = weft_http_method(http);
	int rc;

	if (!methods)
		return WEFT_ENOMEM;
	if (!*methods)
		return weft__http_reply_status(http, 404, WEFT_NEVER);
	rc = weft_http_set_header(http, "Allow", methods);
	if (rc < 0)
		return rc;
	return weft__http_reply_status(http, strcmp(method, "OPTIONS") == 0 ? 204 : 405,
	                               WEFT_NEVER);
}

static int
dispatch(struct weft__http_conn *conn, weft_http *http)
{
	const struct weft__http_route *route;
	int rc;

	if (conn->shed)
		return shed(conn, http);
	if (http->in.head.form == WEFT__HTTP_AUTHORITY)
		return weft__http_reply_status(http, 501, WEFT_NEVER);
	rc = weft__http_decode_path(http);
	if (rc == WEFT_EINVAL) {
		weft__http_count(&counts_of(conn)->bad_requests, 1);
		return weft__http_reply_status(http, 400, WEFT_NEVER);
	}
	if (rc == 0)
		rc = open_scope(conn);
	if (rc < 0)
		return rc;
	route = weft__http_route_find(conn->server->root, http);
	if (!route)
		return answer_unrouted(conn, http);
	return route->fn(http, route->arg);
}

/* --- completing the reply ---------------------------------------------------- */

/* The status for a request that was not replied to. */
static int
status_of(struct weft__http_conn *conn, weft_http *http, int rc)
{
	int fault = http->in.body.fault.status;

	if (rc >= 0)
		return 404;
	if (rc == WEFT_EMSGSIZE && !fault) /* the body was too large for the handler */
		fault = 413;
	if (http->in.lost == WEFT_ETRUNCATED && !fault)
		fault = 400;
	if (fault) {
		weft__http_count(&counts_of(conn)->bad_requests, 1);
		return fault;
	}
	if (conn->io.slow)
		return 408;
	weft__http_count(&counts_of(conn)->failed, 1);
	return 500;
}

/* Complete the reply, or make sure that the peer notices that the reply is incomplete. */
static void
complete(struct weft__http_conn *conn, weft_http *http, int rc)
{
	struct weft__http_out *out = &http->out;

	if (out->stage == WEFT__HTTP_NOT_BEGUN) {
		if (rc < 0)
			close_scope(conn);   /* an ended scope would fail this reply too */
		weft__http_cut_fields(http); /* the handler's were for another reply */
		(void)weft__http_reply_status(http, status_of(conn, http, rc), WEFT_NEVER);
		return;
	}
	if (out->bodyless)
		rc = 0;
	if (out->stage == WEFT__HTTP_BEGUN && rc >= 0)
		rc = weft__http_finish_message(http, WEFT_NEVER);
	if (rc < 0) {
		weft__http_count(&counts_of(conn)->failed, 1);
		conn->cut = out->stage == WEFT__HTTP_BEGUN || rc == WEFT_ETRUNCATED;
		out->close = true;
	}
}

/* Whether the next request may follow. */
static bool
go_on(struct weft__http_conn *conn, weft_http *http)
{
	bool keep = !http->out.close && !http->in.lost;
	const void *data;

	if (keep && !http->in.over)
		keep = weft__http_drain(http, WEFT__HTTP_DRAIN, weft_after(DRAIN_NS)) == 0;
	if (conn->io.slow)
		weft__http_count(&counts_of(conn)->timed_out, 1);
	if (conn->io.error)
		return false;
	if (conn->io.out_pace.left_ns < conn->io.grace_ns)
		conn->io.out_pace.left_ns = conn->io.grace_ns;
	/* Unread bytes in the kernel count too: closing with unread bytes resets the
	 * connection.  During a drain the peer may send its next request before it sees that
	 * this reply was the last. */
	if (!keep)
		conn->linger = !http->in.over || weft__http_draining(conn)
		               || weft_stream_peek(conn->io.stream, 1, &data, WEFT_NOWAIT) > 0;
	return keep;
}

bool
weft__http_answer(struct weft__http_conn *conn, weft_http *http)
{
	int rc;

	conn->requests++;
	if (!conn->active)
		count_active(conn);
	rc = dispatch(conn, http);
	if (conn->watch && weft__http_watch_stop(conn) < 0)
		http->out.close = true;
	if (conn->taken)
		return false;
	if (conn->endless) {
		/* The drain has canceled the handler: this is its regular end. */
		if (rc == WEFT_ECANCELED && weft__http_draining(conn))
			rc = 0;
		close_scope(conn);
		weft__http_conn_busy(conn);
	}
	complete(conn, http, rc);
	conn->proven |= http->out.status < 400;
	return go_on(conn, http);
}

bool
weft__http_answer_fault(struct weft__http_conn *conn, weft_http *http, int error)
{
	int status = http->in.head.fault.status;

	if (status) {
		weft__http_count(&counts_of(conn)->bad_requests, 1);
	} else if (error == WEFT_ETIMEDOUT) {
		weft__http_count(&counts_of(conn)->timed_out, 1);
		status = 408;
	} else if (error == WEFT_ENOMEM) {
		status = 503;
	}
	if (!status)
		return false; /* the connection is gone */
	http->out.close = true;
	conn->linger = true;
	(void)weft__http_reply_status(http, status, WEFT_NEVER);
	return false;
}
