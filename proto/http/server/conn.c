/* conn.c - one connection: exchange after exchange, and its end.
 *
 * A batch is the requests between two waits for a head: those that arrived together.  A batch
 * counts as active once, and its handlers share a scope whose deadline is moved only after
 * some time has passed.  So pipelined requests need neither atomics nor timers of their own.
 * Between batches a connection holds only its threadlet.
 */
#include "http/server/http_server.h"
#include <weft/loop.h>

#define LINGER_NS    (2 * WEFT_S)
#define LINGER_BYTES (64u << 20) /* more than the buffers of two sockets hold */

/* Default read_max of a stream; a larger head needs a larger queue. */
#define QUEUE_MIN (64u << 10)

/* --- batches ---------------------------------------------------------------- */

static void
end_batch(struct weft__http_conn *conn)
{
	struct weft__http_counts *counts = &conn->server->counts;

	if (conn->active)
		__atomic_sub_fetch(&counts->active, 1, __ATOMIC_RELAXED);
	if (conn->requests)
		weft__http_count(&counts->requests, conn->requests);
	if (conn->scoped && weft_scope_close(&conn->scope) < 0)
		conn->cut = true; /* the handler left a scope open */
	conn->active = false;
	conn->scoped = false;
	conn->requests = 0;
}

/* --- waiting ---------------------------------------------------------------- */

/* When waiting ends if the server drains.  The peer may have sent a request before it could
 * know of the drain. */
static uint64_t
last_wait(const struct weft__http_conn *conn)
{
	uint64_t since_ns = conn->service->drained_ns > conn->since_ns ? conn->service->drained_ns
	                                                               : conn->since_ns;

	return since_ns + conn->server->opts.drain_ns;
}

static ssize_t
wait_byte(struct weft__http_conn *conn)
{
	const weft_http_server_opts *opts = &conn->server->opts;
	uint64_t wait_ns = conn->used ? opts->idle_ns : opts->header_ns;
	uint64_t until = weft_loop_now(conn->loop) + wait_ns;
	const void *data;
	ssize_t n = WEFT_EINTR;

	weft__http_wait_begin(conn);
	while (n == WEFT_EINTR) {
		weft__http_conn_state(conn, WEFT__HTTP_IDLE);
		if (weft__http_draining(conn) && until > last_wait(conn))
			until = last_wait(conn);
		n = weft_stream_peek(conn->io.stream, 1, &data, until);
		weft__http_conn_busy(conn);
	}
	if (!weft__http_wait_end(conn))
		return WEFT_ECANCELED;
	if (n == WEFT_ETIMEDOUT && !weft__http_draining(conn))
		weft__http_count(&conn->server->counts.idle_closed, 1);
	return n;
}

/* No request is in progress: send the output and return the buffer, then wait.  True: the peer
 * has sent something. */
static bool
wait_idle(struct weft__http_conn *conn)
{
	end_batch(conn);
	if (conn->cut || weft__http_io_flush(&conn->io, WEFT_NEVER) < 0)
		return false;
	weft__http_io_rest(&conn->io);
	return wait_byte(conn) > 0;
}

/* --- exchanges -------------------------------------------------------------- */

static bool
next_exchange(struct weft__http_conn *conn)
{
	uint64_t until;
	weft_http *http;
	bool more;
	int rc;

	if (!weft__http_has_more(&conn->io) && !wait_idle(conn))
		return false;
	http = weft__http_new(&conn->io, conn);
	if (!http) {
		conn->cut = true;
		return false;
	}
	http->is_server = true;
	weft__http_request_init(&http->in.head, http->fields, WEFT__HTTP_FIELDS_MAX,
	                        &conn->server->limits);
	rc = weft__http_receive_here(http);
	if (rc == WEFT_EAGAIN) {
		end_batch(conn);
		until = weft_loop_now(conn->loop) + conn->server->opts.header_ns;
		weft__http_wait_begin(conn);
		rc = weft__http_receive(http, until);
		if (!weft__http_wait_end(conn))
			rc = WEFT_ECANCELED;
	}
	more = rc < 0 ? weft__http_answer_fault(conn, http, rc) : weft__http_answer(conn, http);
	conn->used = true;
	weft__http_end(http);
	return more && !conn->cut;
}

/* --- the end ---------------------------------------------------------------- */

/* Close for sending, then read until the peer closes.  Closing while the peer still sends would
 * reset the connection, and the peer might lose the reply. */
static void
linger(struct weft__http_conn *conn)
{
	uint64_t until = weft_after(LINGER_NS);
	weft_stream *stream = conn->io.stream;
	const void *data;
	ssize_t n;

	if (weft_stream_shutdown(stream, until) < 0)
		return;
	for (size_t dropped = 0; dropped < LINGER_BYTES; dropped += (size_t)n) {
		n = weft_stream_peek(stream, 1, &data, until);
		if (n <= 0 || weft_stream_skip(stream, (size_t)n) < 0)
			return;
	}
}

static void
http_conn_finish(struct weft__http_conn *conn)
{
	end_batch(conn);
	if (!conn->taken && weft__http_io_flush(&conn->io, WEFT_NEVER) < 0)
		conn->cut = true;
	weft__http_io_fini(&conn->io);
	if (conn->linger && !conn->cut && !conn->taken) {
		weft__http_wait_begin(conn);
		linger(conn);
		(void)weft__http_wait_end(conn);
	}
	weft__http_service_leave(conn);
	if (conn->taken)
		return;
	if (conn->cut)
		weft_stream_reset(conn->io.stream);
	else
		weft_stream_close(conn->io.stream);
}

static int
http_conn_prepare(struct weft__http_conn *conn)
{
	weft_http_server *server = conn->server;
	size_t max = server->opts.header_max;
	int rc = weft__http_io_init(&conn->io, conn->io.stream);

	conn->io.rate_min = server->opts.rate_min;
	conn->io.grace_ns = server->opts.grace_ns;
	conn->io.pause_ns = server->opts.request_ns;
	conn->io.out_pace.left_ns = server->opts.grace_ns;
	conn->io.on_progress = weft__http_conn_progress;
	conn->io.owner = conn;
	conn->io.draining = &conn->service->draining;
	if (rc == 0 && max >= QUEUE_MIN)
		rc = weft_stream_set(conn->io.stream, "read_max", (int64_t)max + 1);
	return rc;
}

int
weft__http_conn_run(weft_stream *peer, void *arg)
{
	struct weft__http_service *service = arg;
	struct weft__http_counts *counts = &service->server->counts;
	struct weft__http_conn conn = { .service = service,
		                        .server = service->server,
		                        .loop = weft_loop_current(),
		                        .since_ns = weft_now(),
		                        .self = weft_self(),
		                        .io = { .stream = peer } };

	weft__link_init(&conn.link);
	weft__link_init(&conn.wait_link);
	weft__http_count(&counts->connections, 1);
	weft__http_count(&counts->open, 1);
	if (http_conn_prepare(&conn) == 0) {
		weft__http_service_enter(&conn);
		while (next_exchange(&conn))
			;
		http_conn_finish(&conn);
	} else {
		weft_stream_reset(peer);
	}
	__atomic_sub_fetch(&counts->open, 1, __ATOMIC_RELAXED);
	return 0;
}
