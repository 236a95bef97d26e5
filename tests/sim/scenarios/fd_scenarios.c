/* fd_scenarios.c - an echo server made of ops, and clients on the sys table.
 *
 * The server accepts any number of connections, receives into a buffer of each connection and
 * sends from there.  There are three more variants: receiving into the loop's buffers, stopped
 * while everything is pending, and short of descriptors.
 *
 *   1. A client gets back what it sent, in order.
 *   2. A client may lose its connection, but never waits forever.
 *   3. When a close finishes, no other op of that descriptor is pending.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum {
	CLIENTS = 3,
	ROUNDS = 3, /* connections of each client */
	CONNS = 24,
	IN = 96,           /* received at once */
	WINDOW = 256,      /* of a client: sent and not yet received back */
	HELD = 3 * WINDOW, /* sent bytes count until the send is reported */
};

struct conn {
	weft_op recv, send, close;
	struct once recv_once, send_once, close_once;
	int fd;
	bool used, ending, closing;
	size_t held; /* bytes */
	unsigned char in[IN], out[HELD];
};

static struct {
	struct host host;
	struct conn conns[CONNS];
	weft_op accept, retry, close;
	struct once accept_once, close_once;
	struct sockaddr_in name;
	int listener;
	bool multi, closing, ended;
	weft__a32 opened, closed;
} server;

/* --- the server ------------------------------------------------------- */

static void recv_more(struct conn *conn);

static void
check_running(const weft_op *op)
{
	if (server.ended)
		sim_fail("runs after the end");
	sim_check(weft_loop_current() == op->loop);
	sim_check(op->more == op->pending);
}

static void
drop_if_over(struct conn *conn)
{
	if (!conn->closing || once_is_open(&conn->recv_once) || once_is_open(&conn->send_once)
	    || once_is_open(&conn->close_once))
		return;
	conn->used = false;
	count_up(&server.closed);
}

/* The close takes the descriptor, even if it is refused because the loop stops. */
static void
end_conn(struct conn *conn)
{
	int rc;

	if (!conn->closing) {
		conn->closing = true;
		rc = weft_op_close(&conn->close, conn->fd);
		sim_check(rc == 0 || rc == WEFT_ESHUTDOWN);
		if (rc == 0)
			once_begin(&conn->close_once);
	}
	drop_if_over(conn);
}

static void
on_close(weft_op *op, int64_t result, void *arg)
{
	struct conn *conn = arg;

	check_running(op);
	result_check(OP_CLOSE, result, 0);
	once_end(&conn->close_once);
	once_check(&conn->recv_once);
	once_check(&conn->send_once);
	drop_if_over(conn);
}

static void
send_more(struct conn *conn)
{
	int rc;

	if (conn->closing || conn->held == 0 || once_is_open(&conn->send_once))
		return;
	rc = weft_op_send(&conn->send, conn->fd, conn->out, conn->held, 0, WEFT_NEVER);
	sim_check(rc == 0 || rc == WEFT_ESHUTDOWN);
	if (rc == 0)
		once_begin(&conn->send_once);
	else
		end_conn(conn);
}

static void
on_send(weft_op *op, int64_t result, void *arg)
{
	struct conn *conn = arg;

	check_running(op);
	once_end(&conn->send_once);
	result_check(OP_SEND, result, conn->held);
	if (result <= 0 || conn->closing) {
		end_conn(conn);
		return;
	}
	conn->held -= (size_t)result;
	memmove(conn->out, conn->out + result, conn->held);
	send_more(conn);
	if (conn->held == 0 && conn->ending)
		end_conn(conn);
	else
		recv_more(conn);
}

static void
recv_more(struct conn *conn)
{
	uint64_t deadline_ns = WEFT_NEVER;
	int rc;

	if (conn->closing || conn->ending || once_is_open(&conn->recv_once)
	    || HELD - conn->held < IN)
		return;
	if (sim_random_below(4) == 0)
		deadline_ns = weft_after(sim_random_below(400) * WEFT_US);
	rc = server.multi ? weft_op_recv_multi(&conn->recv, conn->fd, deadline_ns)
	                  : weft_op_recv(&conn->recv, conn->fd, conn->in, 1 + sim_random_below(IN),
	                                 0, deadline_ns);
	sim_check(rc == 0 || rc == WEFT_ESHUTDOWN || rc == WEFT_ENOMEM);
	if (rc == 0)
		once_begin(&conn->recv_once);
	else
		end_conn(conn);
}

static void
on_recv(weft_op *op, int64_t result, void *arg)
{
	struct conn *conn = arg;

	check_running(op);
	result_check(server.multi ? OP_RECV_MULTI : OP_RECV, result, server.multi ? WINDOW : IN);
	if (!op->more)
		once_end(&conn->recv_once);
	else
		sim_check(server.multi && result > 0);
	if (result > 0 && !conn->closing) {
		sim_check((size_t)result <= HELD - conn->held);
		memcpy(conn->out + conn->held, server.multi ? weft_op_data(op) : conn->in,
		       (size_t)result);
		conn->held += (size_t)result;
		send_more(conn);
	}
	conn->ending |= result == 0;
	if (op->more)
		return;
	if (conn->closing || (result < 0 && result != WEFT_ETIMEDOUT))
		end_conn(conn);
	else if (conn->ending && conn->held == 0)
		end_conn(conn);
	else
		recv_more(conn);
}

static void
take_conn(int fd)
{
	struct conn *conn = server.conns;

	while (conn < server.conns + CONNS && conn->used)
		conn++;
	sim_check(conn < server.conns + CONNS);
	memset(conn, 0, sizeof(*conn));
	conn->used = true;
	conn->fd = fd;
	sim_check(weft_op_init(&conn->recv, NULL, on_recv, conn) == 0);
	sim_check(weft_op_init(&conn->send, NULL, on_send, conn) == 0);
	sim_check(weft_op_init(&conn->close, NULL, on_close, conn) == 0);
	count_up(&server.opened);
	recv_more(conn);
}

static void
on_listener_closed(weft_op *op, int64_t result, void *arg)
{
	(void)arg;
	check_running(op);
	result_check(OP_CLOSE, result, 0);
	once_end(&server.close_once);
	count_up(&server.closed);
}

static void
close_listener(void)
{
	sim_check(weft_op_init(&server.close, NULL, on_listener_closed, NULL) == 0);
	if (weft_op_close(&server.close, server.listener) == 0)
		once_begin(&server.close_once);
}

static void
accept_more(void)
{
	int rc = weft_op_accept(&server.accept, server.listener, WEFT_MULTI, WEFT_NEVER);

	sim_check(rc == 0 || rc == WEFT_ESHUTDOWN);
	if (rc == 0)
		once_begin(&server.accept_once);
	else
		close_listener();
}

static void
on_accept(weft_op *op, int64_t result, void *arg)
{
	(void)arg;
	check_running(op);
	result_check(OP_ACCEPT, result, 0);
	if (result >= 0)
		take_conn((int)result);
	if (op->more)
		return;
	once_end(&server.accept_once);
	if (server.closing || result == WEFT_ESHUTDOWN)
		close_listener();
	else if (weft_op_sleep(&server.retry, weft_after(WEFT_MS)) < 0)
		accept_more();
}

static void
on_retry(weft_op *op, int64_t result, void *arg)
{
	(void)arg;
	check_running(op);
	result_check(OP_SLEEP, result, 0);
	if (server.closing || result == WEFT_ESHUTDOWN)
		close_listener();
	else
		accept_more();
}

static void
open_server(void *arg)
{
	(void)arg;
	sim_check(weft_op_init(&server.accept, NULL, on_accept, NULL) == 0);
	sim_check(weft_op_init(&server.retry, NULL, on_retry, NULL) == 0);
	accept_more();
}

static void
close_server(void *arg)
{
	(void)arg;
	server.closing = true;
	count_up(&server.opened); /* the listener */
	weft_op_cancel(&server.accept);
	weft_op_cancel(&server.retry);
}

/* --- clients ---------------------------------------------------------- */

/* Send, and receive back; false if the connection was lost. */
static bool
exchange(int fd, struct stream *stream, size_t goal)
{
	unsigned char buf[WINDOW];
	size_t size = WINDOW - (size_t)(stream->made - stream->taken);
	int events = POLLIN;
	int64_t rc;

	if (size > goal - stream->made)
		size = (size_t)(goal - stream->made);
	events = peer_wait(fd, POLLIN | (size > 0 ? POLLOUT : 0), INT64_MAX);
	if (size > 0 && (events & POLLOUT)) {
		stream_fill(stream, buf, size);
		rc = weft__sys->send(fd, buf, size, 0);
		if (rc <= 0 && !is_passing(rc))
			return false;
		stream_sent(stream, rc > 0 ? (size_t)rc : 0);
	}
	rc = events & ~POLLOUT ? weft__sys->recv(fd, buf, WINDOW, 0) : -EAGAIN;
	if (rc <= 0 && !is_passing(rc))
		return false;
	stream_take(stream, buf, rc > 0 ? (size_t)rc : 0);
	return true;
}

static void
run_client(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		struct stream stream = { .key = sim_random() };
		size_t goal = 100 + sim_random_below(600);
		int fd = peer_socket();

		if (peer_connect(fd, &server.name) == 0)
			while (stream.taken < goal && exchange(fd, &stream, goal))
				continue;
		(void)weft__sys->close(fd);
	}
}

/* --- the scenarios ---------------------------------------------------- */

static void
reset_server(bool multi)
{
	memset(&server, 0, sizeof(server));
	server.multi = multi;
	server.listener = peer_listen(&server.name, 1 + (int)sim_random_below(4));
	host_make(&server.host);
	host_run(&server.host);
	host_call(&server.host, open_server, NULL);
}

static void
join_clients(const uint64_t *threads)
{
	uint64_t since_ns = sim_time();

	for (int i = 0; i < CLIENTS; i++)
		thread_join(threads[i]);
	if (sim_time() - since_ns > 5 * LIVE_NS) /* a network may be slow */
		sim_fail("not live: clients take more than 300 s");
}

/* All clients have ended: the rest of the server ends by itself. */
static void
end_server(void)
{
	host_call(&server.host, close_server, NULL);
	await_count(&server.closed, count_of(&server.opened));
	host_end(&server.host);
	sim_check(count_of(&server.closed) == count_of(&server.opened));
	once_check(&server.accept_once);
	once_check(&server.close_once);
}

static void
run_echo(void *arg)
{
	uint64_t threads[CLIENTS];

	reset_server(arg != NULL);
	for (int i = 0; i < CLIENTS; i++)
		threads[i] = thread_start("client", run_client, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << (14 + sim_random_below(16))));
	sim_heal();
	join_clients(threads);
	end_server();
}

static void
run_stop(void *arg)
{
	uint64_t threads[CLIENTS];

	(void)arg;
	reset_server(sim_random_below(2));
	for (int i = 0; i < CLIENTS; i++)
		threads[i] = thread_start("client", run_client, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << (10 + sim_random_below(14))));
	host_stop(&server.host);
	server.ended = true;
	once_check(&server.accept_once);
	once_check(&server.close_once);
	for (int i = 0; i < CONNS; i++)
		sim_check(!server.conns[i].used);
	sim_heal();
	join_clients(threads);
	host_free(&server.host);
}

static void
run_full(void *arg)
{
	uint64_t threads[CLIENTS];

	(void)arg;
	reset_server(sim_random_below(2));
	sim_limit_fds(sim_count_fds() + 1 + (int)sim_random_below(5));
	for (int i = 0; i < CLIENTS; i++)
		threads[i] = thread_start("client", run_client, NULL);
	pause_ns(sim_random_below(UINT64_C(1) << (10 + sim_random_below(18))));
	sim_limit_fds(1024);
	sim_heal();
	join_clients(threads);
	end_server();
}

const struct sim_scenario sim_scenario_fd_echo = { .name = "fd_echo", .run = run_echo };
const struct sim_scenario sim_scenario_fd_multi = { .name = "fd_echo_multi",
	                                            .run = run_echo,
	                                            .arg = &server };
const struct sim_scenario sim_scenario_fd_stop = { .name = "fd_echo_stop", .run = run_stop };
const struct sim_scenario sim_scenario_fd_full = { .name = "fd_echo_full", .run = run_full };
