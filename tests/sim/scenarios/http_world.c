/* http_world.c - starts and ends the server, and handles the peers' sockets. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include "backend/backend.h"
#include "http/message/exchange.h"
#include "sim/scenarios/http_world.h"

/* The key for the loops' HTTP data is made once per process.  Make it before the first run, so
 * that all runs are alike. */
static __attribute__((constructor)) void
make_key(void)
{
	(void)weft__http_local();
}

/* --- the server ------------------------------------------------------------ */

static const char *
draw_backend(void)
{
	return sim_random_below(2) && weft__backend_exists("epoll") ? "epoll" : "poll";
}

static void
make_runtime(struct http_world *world, const struct http_world_opts *opts)
{
	const weft_runtime_opts runtime = {
		.loops = opts->loops,
		.loop = { .backend = opts->backend ? opts->backend : draw_backend(),
		          .flags = WEFT_LOOP_NO_SPIN },
	};
	int rc;

	do {
		while (!(world->runtime = weft_runtime_new(&runtime)))
			continue;
		rc = weft_runtime_start(world->runtime);
		if (rc == WEFT_EAGAIN) {
			sim_check(weft_runtime_wait_stopped(world->runtime, WEFT_NEVER) == 0);
			sim_check(weft_runtime_free(world->runtime) == 0);
		}
	} while (rc == WEFT_EAGAIN);
	sim_check(rc == 0);
}

static void
make_server(struct http_world *world, const struct http_world_opts *opts)
{
	int rc;

	while (!(world->server = weft_http_server_new(&opts->server)))
		continue;
	for (const struct http_route *at = opts->routes; at->pattern; at++) {
		while ((rc = weft_http_route(world->server, at->pattern, at->fn, NULL))
		       == WEFT_ENOMEM)
			continue;
		sim_check(rc == 0);
	}
	while (weft_listener_open("tcp://127.0.0.1:0", &opts->listener, &world->listener) < 0)
		continue;
}

static int
serve(void *arg)
{
	struct http_world *world = arg;

	/* WEFT_ENOMEM: serving has not begun, or has ended early. */
	do
		world->result = weft_http_serve(world->server, world->listener, world->deadline_ns);
	while (world->result == WEFT_ENOMEM && world->listener);
	count_up(&world->ended);
	return 0;
}

static weft_threadlet
start(struct http_world *world, weft_threadlet_fn fn)
{
	weft_go_opts opts = { .loop = weft_runtime_loop(world->runtime, 0) };
	weft_threadlet id;

	while ((id = weft_go_with(&opts, fn, world)) < 0)
		continue;
	return id;
}

void
http_world_begin(struct http_world *world, const struct http_world_opts *opts)
{
	weft_addr addr;

	memset(world, 0, sizeof(*world));
	world->deadline_ns = opts->deadline_ns ? opts->deadline_ns : WEFT_NEVER;
	make_runtime(world, opts);
	make_server(world, opts);
	sim_check(weft_listener_local(world->listener, &addr) == 0);
	memcpy(&world->name, addr.bytes, sizeof(world->name));
	world->serves = start(world, serve);
}

static int
close_listener(void *arg)
{
	struct http_world *world = arg;
	weft_listener *listener = world->listener;

	world->listener = NULL;
	weft_listener_close(listener);
	count_up(&world->closed);
	return 0;
}

void
http_world_close(struct http_world *world)
{
	(void)start(world, close_listener);
}

static void
check_counts(const struct http_world *world)
{
	struct weft_http_server_stats stats;

	weft_http_server_stats(world->server, &stats);
	if (stats.open > 0 || stats.active > 0)
		sim_fail("%u connections and %u requests are left", stats.open, stats.active);
}

void
http_world_end(struct http_world *world)
{
	uint64_t since_ns;

	sim_heal();
	await_count(&world->ended, 1);
	await_count(&world->closed, 1);
	check_counts(world);
	sim_check(weft_http_server_free(world->server) == 0);
	since_ns = sim_time();
	weft_runtime_shutdown(world->runtime);
	sim_check(weft_runtime_wait_stopped(world->runtime, WEFT_NEVER) == 0);
	if (sim_time() - since_ns > LIVE_NS)
		sim_fail("not live: stopping took more than 60 s");
	sim_check(weft_runtime_free(world->runtime) == 0);
}

/* --- peers ----------------------------------------------------------------- */

bool
http_peer_socket(struct http_peer *peer)
{
	peer->fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0);
	return peer->fd >= 0;
}

static void
settle(struct http_peer *peer, int rc)
{
	if (rc == 0)
		peer->link = HTTP_LINK_OPEN;
	else if (rc != -EINPROGRESS && !is_passing(rc))
		peer->link = HTTP_LINK_RESET;
}

void
http_peer_connect(struct http_peer *peer, const struct http_world *world)
{
	peer->link = HTTP_LINK_CONNECTING;
	settle(peer, weft__sys->connect(peer->fd, (const struct sockaddr *)&world->name,
	                                sizeof(world->name)));
}

void
http_peer_look(struct http_peer *peer)
{
	int error = 0, rc;

	if (!peer_wait(peer->fd, POLLOUT, 0))
		return;
	rc = weft__sys->so_error(peer->fd, &error);
	settle(peer, rc < 0 ? rc : -error);
}

void
http_peer_close(struct http_peer *peer)
{
	if (peer->fd >= 0)
		(void)weft__sys->close(peer->fd);
	peer->fd = -1;
}

size_t
http_peer_send(struct http_peer *peer, size_t most)
{
	size_t size = peer->out_size - peer->out_at;
	int64_t n;

	if (size > most)
		size = most;
	if (size == 0 || http_peer_is_over(peer))
		return 0;
	n = weft__sys->send(peer->fd, peer->out + peer->out_at, size, 0);
	if (n < 0 && !is_passing(n))
		peer->link = HTTP_LINK_RESET;
	peer->out_at += n > 0 ? (size_t)n : 0;
	return n > 0 ? (size_t)n : 0;
}

size_t
http_peer_receive(struct http_peer *peer, size_t most)
{
	size_t room = peer->in_max - peer->in_size;
	int64_t n;

	if (room > most)
		room = most;
	if (room == 0 || http_peer_is_over(peer))
		return 0;
	n = weft__sys->recv(peer->fd, peer->in + peer->in_size, room, 0);
	if (n == 0)
		peer->link = HTTP_LINK_ENDED;
	else if (n < 0 && !is_passing(n))
		peer->link = HTTP_LINK_RESET;
	peer->in_size += n > 0 ? (size_t)n : 0;
	return n > 0 ? (size_t)n : 0;
}
