/* table_scenarios.c - scenarios that use only the sys table.
 *
 * They test the simulator itself: threads that pass a turn around by park and unpark, and an
 * echo server on epoll with clients that poll.  Both tolerate every fault, so a failure is a
 * bug in the simulator.
 *
 *   1. Every byte that a client gets back is the one it sent at that position.
 *   2. A client may lose its connection; the server never stops because of one.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include "sim/scenarios/scenarios.h"

/* Start a thread, and retry until that succeeds. */
static uint64_t
start(const char *name, void (*fn)(void *arg), void *arg)
{
	struct weft__thread_opts opts = { .name = name, .fn = fn, .arg = arg };
	uint64_t thread = 0;

	while (weft__sys->thread_start(&opts, &thread) < 0)
		continue;
	return thread;
}

/* --- a relay of threads ----------------------------------------------- */

enum { RUNNERS = 4, ROUNDS = 12 };

struct runner {
	weft__a32 turns; /* how often it has got the turn */
	weft__a32 *laps; /* incremented by all of them */
	struct runner *next;
};

static void
hand_over(struct runner *runner)
{
	(void)weft__add(&runner->turns, 1, WEFT__RELEASE);
	weft__sys->unpark(&runner->turns);
}

static void
run_leg(void *arg)
{
	struct runner *runner = arg;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t laps;

		while (weft__load(&runner->turns, WEFT__ACQUIRE) == round)
			(void)weft__sys->park(&runner->turns, round, WEFT_NEVER);
		laps = weft__load(runner->laps, WEFT__RELAXED);
		weft__sys->yield(); /* no other thread may increment meanwhile */
		weft__store(runner->laps, laps + 1, WEFT__RELAXED);
		hand_over(runner->next);
	}
}

static void
run_relay(void *arg)
{
	weft__a32 laps = { 0 };
	struct runner runners[RUNNERS];
	uint64_t threads[RUNNERS];

	(void)arg;
	for (int i = 0; i < RUNNERS; i++)
		runners[i] = (struct runner){ .laps = &laps, .next = &runners[(i + 1) % RUNNERS] };
	for (int i = 0; i < RUNNERS; i++)
		threads[i] = start("runner", run_leg, &runners[i]);
	hand_over(&runners[0]);
	for (int i = 0; i < RUNNERS; i++)
		sim_check(weft__sys->thread_join(threads[i]) == 0);
	sim_check(weft__load(&laps, WEFT__RELAXED) == RUNNERS * ROUNDS);
}

const struct sim_scenario sim_scenario_relay = { .name = "table_relay", .run = run_relay };

/* --- an echo server and its clients ----------------------------------- */

enum { CLIENTS = 3, CONNECTIONS_MAX = 32, HELD_MAX = 200 };

struct connection {
	int fd;                          /* -1: free */
	bool can_recv, can_send, ending; /* according to the edges */
	size_t held;
	char bytes[HELD_MAX]; /* received, not yet sent back */
};

struct server {
	int ep, listener, stop;
	bool edges;        /* edge-triggered */
	bool trusts_short; /* treats a short count like EAGAIN: see epoll(7) */
	struct sockaddr_in name;
	struct connection connections[CONNECTIONS_MAX];
};

static bool
is_passing(int64_t rc)
{
	return rc == -EINTR || rc == -EAGAIN || rc == -ENOMEM || rc == -ENOBUFS;
}

static void
watch(struct server *server, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	while (weft__sys->epoll_ctl(server->ep, op, fd, &event) < 0)
		continue;
}

static void
drop(struct connection *connection)
{
	(void)weft__sys->close(connection->fd);
	connection->fd = -1;
}

/* False if no connection is pending, or perhaps none. */
static bool
accept_one(struct server *server)
{
	struct connection *connection = server->connections;
	int fd = weft__sys->accept(server->listener);

	if (fd < 0)
		return fd != -EAGAIN;
	while (connection->fd >= 0)
		connection++;
	sim_check(connection < server->connections + CONNECTIONS_MAX);
	*connection = (struct connection){ .fd = fd };
	watch(server, EPOLL_CTL_ADD, fd,
	      server->edges ? EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET : EPOLLIN,
	      2 + (uint64_t)(connection - server->connections));
	return true;
}

static void
accept_some(struct server *server)
{
	while (accept_one(server) && server->edges)
		continue;
}

static int64_t
receive(struct connection *connection)
{
	int64_t rc = weft__sys->recv(connection->fd, connection->bytes + connection->held,
	                             HELD_MAX - connection->held, 0);

	if (rc > 0)
		connection->held += (size_t)rc;
	return rc;
}

static int64_t
send_back(struct connection *connection)
{
	int64_t rc = weft__sys->send(connection->fd, connection->bytes, connection->held, 0);

	if (rc > 0) {
		connection->held -= (size_t)rc;
		memmove(connection->bytes, connection->bytes + rc, connection->held);
	}
	return rc;
}

/* Serve once for each report. */
static void
serve_level(struct server *server, struct connection *connection, uint32_t events)
{
	int64_t rc = -EAGAIN;

	if ((events & EPOLLIN) && connection->held < HELD_MAX)
		rc = receive(connection);
	if (rc > 0 || (is_passing(rc) && connection->held > 0))
		rc = send_back(connection);
	if (rc <= 0 && !is_passing(rc)) {
		drop(connection);
		return;
	}
	watch(server, EPOLL_CTL_MOD, connection->fd,
	      (connection->held < HELD_MAX ? (uint32_t)EPOLLIN : 0)
	              | (connection->held > 0 ? (uint32_t)EPOLLOUT : 0),
	      2 + (uint64_t)(connection - server->connections));
}

/* Serve as long as something can be done: there may be no other report. */
static void
serve_edge(struct server *server, struct connection *connection, uint32_t events)
{
	int64_t rc = 1;

	connection->can_recv |= (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0;
	connection->can_send |= (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0;
	connection->ending |= (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
	while (rc > 0 || is_passing(rc)) {
		size_t wanted = HELD_MAX - connection->held;
		bool *can = &connection->can_recv;

		if (*can && wanted > 0) {
			rc = receive(connection);
		} else if (connection->held > 0 && connection->can_send) {
			can = &connection->can_send;
			wanted = connection->held;
			rc = send_back(connection);
		} else {
			return;
		}
		if (rc == -EAGAIN
		    || (rc > 0 && (size_t)rc < wanted && server->trusts_short
		        && !connection->ending))
			*can = false;
	}
	drop(connection);
}

static void
serve(struct server *server, struct connection *connection, uint32_t events)
{
	if (server->edges)
		serve_edge(server, connection, events);
	else
		serve_level(server, connection, events);
}

static void
run_server(void *arg)
{
	struct server *server = arg;
	struct epoll_event events[8];
	bool stop = false;

	while (!stop) {
		int count = weft__sys->epoll_wait(server->ep, events, 8, -1);

		sim_check(count > 0 || count == -EINTR);
		for (int i = 0; i < count; i++) {
			uint64_t data = events[i].data.u64;

			if (data == 0)
				stop = true;
			else if (data == 1)
				accept_some(server);
			else
				serve(server, &server->connections[data - 2], events[i].events);
		}
	}
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (server->connections[i].fd >= 0)
			drop(&server->connections[i]);
}

static int
make_listener(struct sockaddr_in *name)
{
	socklen_t size = sizeof(*name);
	int fd;

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
		                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	while ((fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0)) < 0)
		continue;
	while (weft__sys->bind(fd, (struct sockaddr *)name, size) < 0)
		continue;
	while (weft__sys->listen(fd, 1 + (int)sim_random_below(4)) < 0)
		continue;
	while (weft__sys->sockname(fd, (struct sockaddr *)name, &size) < 0)
		continue;
	return fd;
}

static unsigned char
byte_at(size_t at)
{
	return (unsigned char)(at * 31 + at / 251);
}

/* Send `goal` bytes and receive them back; false if the connection was lost. */
static bool
converse(int fd, size_t goal)
{
	unsigned char buf[128];
	size_t sent = 0, got = 0;

	while (got < goal) {
		struct pollfd look = { .fd = fd, .events = POLLIN };
		size_t size = goal - sent < sizeof(buf) ? goal - sent : sizeof(buf);
		int64_t rc;

		look.events |= (short)(sent < goal ? POLLOUT : 0);
		if (weft__sys->poll(&look, 1, -1) < 0)
			continue;
		for (size_t i = 0; i < size; i++)
			buf[i] = byte_at(sent + i);
		rc = look.revents & POLLOUT ? weft__sys->send(fd, buf, size, 0) : -EAGAIN;
		if (rc <= 0 && !is_passing(rc))
			return false;
		sent += rc > 0 ? (size_t)rc : 0;
		rc = weft__sys->recv(fd, buf, sizeof(buf), 0);
		if (rc <= 0 && !is_passing(rc))
			return false;
		for (int64_t i = 0; i < rc; i++)
			sim_check(buf[i] == byte_at(got++));
		sim_check(got <= sent);
	}
	return true;
}

static void
run_client(void *arg)
{
	const struct server *server = arg;
	size_t goal = 200 + sim_random_below(1000);
	bool done = false;

	for (int tries = 0; tries < 3 && !done; tries++) {
		int fd, rc;

		while ((fd = weft__sys->socket(AF_INET, SOCK_STREAM, 0)) < 0)
			continue;
		rc = weft__sys->connect(fd, (const struct sockaddr *)&server->name,
		                        sizeof(server->name));
		if (rc == 0 || rc == -EINPROGRESS)
			done = converse(fd, goal);
		(void)weft__sys->close(fd);
	}
}

static void
run_echo(void *arg)
{
	static struct server server;
	uint64_t threads[CLIENTS + 1], one = 1;

	(void)arg;
	server.edges = sim_random_below(2);
	server.trusts_short = sim_random_below(2);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		server.connections[i].fd = -1;
	while ((server.ep = weft__sys->epoll_create()) < 0)
		continue;
	while ((server.stop = weft__sys->eventfd()) < 0)
		continue;
	server.listener = make_listener(&server.name);
	watch(&server, EPOLL_CTL_ADD, server.stop, EPOLLIN, 0);
	watch(&server, EPOLL_CTL_ADD, server.listener,
	      EPOLLIN | (server.edges ? (uint32_t)EPOLLET : 0), 1);
	threads[CLIENTS] = start("server", run_server, &server);
	for (int i = 0; i < CLIENTS; i++)
		threads[i] = start("client", run_client, &server);
	for (int i = 0; i < CLIENTS; i++)
		sim_check(weft__sys->thread_join(threads[i]) == 0);
	while (weft__sys->write(server.stop, &one, sizeof(one)) == -EINTR)
		continue;
	sim_check(weft__sys->thread_join(threads[CLIENTS]) == 0);
	(void)weft__sys->close(server.listener);
	(void)weft__sys->close(server.stop);
	(void)weft__sys->close(server.ep);
}

const struct sim_scenario sim_scenario_echo = { .name = "table_echo", .run = run_echo };
