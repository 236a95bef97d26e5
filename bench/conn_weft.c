/* conn_weft.c - idle connections: the memory of each, and the cost of 100,000 of them.
 *
 * Each connection echoes one message, so that everything it needs is allocated, and then
 * waits for more.
 *
 * conn.memory.* is the growth of the server's resident memory per connection, from 5,000
 * connections to 10,000 more.  So it contains neither the fixed memory of a loop nor the
 * kernel's memory for a socket.  The three variants are a threadlet with weft_stream_peek(), which
 * holds no buffer, a threadlet with a buffer of 4 KiB on its stack, and callbacks.
 *
 * conn.idle.100k is the server's CPU time per connection: opened, used, held until all are
 * open, and closed.  If the process may not have that many descriptors, several threads
 * share the connections, each with its own loop and its own descriptor table.
 */
#include "bench.h"
#include <weft/listener.h>
#include <weft/loop.h>
#include <weft/threadlet.h>
#include "conn_clients.h"
#include "resident.h"

#define CONN_BEFORE 5000
#define CONN_MEMORY 10000
#define CONN_IDLE   100000
#define PART_MAX    15000 /* connections of one client, limited by the ports of one address */
#define PARTS       ((CONN_IDLE + PART_MAX - 1) / PART_MAX)

struct server {
	weft_loop *loop;
	weft_listener *listener;
	weft_peer_fn serve; /* NULL: callbacks */
	struct sockaddr_in addr;
	int fd, count;       /* of connections to expect */
	int waiting, closed; /* connections that were used, and that were closed */
	uint64_t before, bytes;
};

static void
one_waits(struct server *server)
{
	if (++server->waiting == CONN_BEFORE)
		server->before = resident_bytes();
	if (server->waiting == server->count)
		server->bytes = resident_bytes() - server->before;
}

static void
one_closed(struct server *server)
{
	if (++server->closed == server->count)
		weft_listener_close(server->listener);
}

static int
serve_leased(weft_stream *peer, void *arg)
{
	struct server *server = arg;
	const void *data;
	ssize_t n;

	while ((n = weft_stream_peek(peer, 1, &data, WEFT_NEVER)) > 0) {
		BENCH_CHECK(weft_stream_write(peer, data, (size_t)n, WEFT_NEVER) == n);
		BENCH_CHECK(weft_stream_skip(peer, (size_t)n) == 0);
		one_waits(server);
	}
	weft_stream_close(peer);
	one_closed(server);
	return 0;
}

static int
serve_stack(weft_stream *peer, void *arg)
{
	struct server *server = arg;
	char buf[4096];
	ssize_t n;

	while ((n = weft_stream_read(peer, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		BENCH_CHECK(weft_stream_write(peer, buf, (size_t)n, WEFT_NEVER) == n);
		one_waits(server);
	}
	weft_stream_close(peer);
	one_closed(server);
	return 0;
}

static void
on_data(weft_stream *peer, const void *data, ssize_t size, void *arg)
{
	struct server *server = arg;
	weft_span span = { data, size > 0 ? (size_t)size : 0 };

	if (size > 0) {
		BENCH_CHECK(weft_stream_write_some(peer, &span, 1) == size);
		BENCH_CHECK(weft_stream_skip(peer, (size_t)size) == 0);
		one_waits(server);
	} else {
		weft_stream_close(peer);
		one_closed(server);
	}
}

static void
on_peer(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	const weft_stream_events events = { .on_data = on_data };
	struct server *server = arg;

	(void)listener;
	BENCH_CHECK(peer || error == WEFT_ESHUTDOWN);
	if (peer)
		BENCH_CHECK(weft_stream_start(peer, server->loop, &events, server) == 0);
}

static int
serve_all(void *arg)
{
	struct server *server = arg;

	(void)weft_listener_serve(server->listener, NULL, server->serve, server, WEFT_NEVER);
	return 0;
}

/* Serve until all expected connections have been closed. */
static void
server_run(struct server *server)
{
	weft_listener_opts opts = { .connections_max = CONN_IDLE + 1 };
	weft_go_opts go = { .loop = weft_loop_new(NULL) };
	char address[32];

	BENCH_CHECK(go.loop);
	server->loop = go.loop;
	(void)snprintf(address, sizeof(address), "fd:%d", server->fd);
	BENCH_CHECK(weft_listener_open(address, &opts, &server->listener) == 0);
	if (server->serve)
		BENCH_CHECK(weft_go_with(&go, serve_all, server) > 0);
	else
		BENCH_CHECK(weft_listener_start(server->listener, server->loop, on_peer, server)
		            == 0);
	BENCH_CHECK(weft_loop_run(server->loop) == 0);
	BENCH_CHECK(server->closed == server->count);
}

static double
conn_memory(weft_peer_fn serve)
{
	struct server server = { .serve = serve, .count = CONN_BEFORE + CONN_MEMORY };
	pid_t child;

	if (raise_limit() < (uint64_t)server.count + 100)
		bench_skip("needs %d descriptors", server.count + 100);
	server.fd = conn_listen(&server.addr);
	child = conn_clients(&server.addr, server.count, 1, meeting_new(1));
	server_run(&server);
	child_wait(child);
	return (double)server.bytes / CONN_MEMORY;
}

static double
conn_memory_leased(void)
{
	return conn_memory(serve_leased);
}

static double
conn_memory_stack(void)
{
	return conn_memory(serve_stack);
}

static double
conn_memory_callback(void)
{
	return conn_memory(NULL);
}

static void *
part_run(void *arg)
{
	BENCH_CHECK(unshare(CLONE_FILES) == 0);
	server_run(arg);
	return NULL;
}

static void
run_parts(struct server *servers, int count)
{
	pthread_t threads[PARTS];

	for (int i = 0; i < count; i++)
		BENCH_CHECK(pthread_create(&threads[i], NULL, part_run, &servers[i]) == 0);
	for (int i = 0; i < count; i++)
		BENCH_CHECK(pthread_join(threads[i], NULL) == 0);
}

static double
conn_idle_100k(void)
{
	struct server servers[PARTS] = { { .count = CONN_IDLE } };
	struct meeting *meeting = meeting_new(PARTS);
	uint64_t limit = raise_limit(), begin;
	bool one = limit >= CONN_IDLE + 100;
	int left = CONN_IDLE, part;
	pid_t clients[PARTS];

	if (limit < PART_MAX + 100)
		bench_skip("needs %d descriptors", PART_MAX + 100);
	servers[0].fd = conn_listen(&servers[0].addr);
	for (int i = 0; i < PARTS; i++, left -= part) {
		struct server *server = &servers[one ? 0 : i];

		part = left < PART_MAX ? left : PART_MAX;
		server->serve = serve_leased;
		if (!one)
			server->count = part;
		if (!one && i > 0)
			server->fd = conn_listen(&server->addr);
		clients[i] = conn_clients(&server->addr, part, (uint32_t)i + 1, meeting);
	}
	begin = bench_process_ns();
	run_parts(servers, one ? 1 : PARTS);
	begin = bench_process_ns() - begin;
	for (int i = 0; i < PARTS; i++)
		child_wait(clients[i]);
	return (double)begin / CONN_IDLE;
}

static const struct bench_row conn_rows[] = {
	{ "conn.memory.leased", conn_memory_leased },
	{ "conn.memory.stack", conn_memory_stack },
	{ "conn.memory.callback", conn_memory_callback },
	{ "conn.idle.100k", conn_idle_100k },
};

BENCH_MAIN(conn_rows)
