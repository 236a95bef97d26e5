/* listener_drain_test.c - a listener that shares its port is closed while a TCP handshake is in
 * progress.
 *
 * TCP_DEFER_ACCEPT holds a handshake: the server counts it as finished when the client has sent
 * its first byte.  The library's clock belongs to the test and advances only in pass(), so the
 * drain lasts until the test ends it.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include "base/sys.h"
#include "net/addr.h"
#include "net/listen/listener.h"
#include "unit/threadlet/sched.h"

static struct {
	const struct weft__sys *before;
	struct weft__sys table;
	uint64_t now_ns;
} hooked;

struct server {
	weft_listener *listener;
	weft_addr addr;
	weft_threadlet serving;
	int served, ends, result;
	bool closed;
};

static uint64_t
hooked_now(void)
{
	return hooked.now_ns;
}

static int
hooked_listen(int fd, int backlog)
{
	int seconds = 60;

	OK(setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds)));
	return hooked.before->listen(fd, backlog);
}

static int
hooked_ignore_syn(int fd)
{
	(void)fd;
	return -ENOSYS;
}

static void
hook(void)
{
	if (TEST_PORTABLE)
		test_skip("this system cannot ignore SYN segments");
	hooked.before = weft__sys;
	hooked.table = *weft__sys;
	hooked.table.now = hooked_now;
	hooked.now_ns = weft__sys->now();
	weft__sys = &hooked.table;
}

static void
unhook(void)
{
	weft__sys = hooked.before;
}

static void
on_turn(void *arg)
{
	OK(weft_event_set(arg));
}

/* Lets the loop of this threadlet run some iterations. */
static void
turn_often(void)
{
	for (int i = 0; i < 5; i++) {
		weft_event turned = WEFT_INIT;

		OK(weft_loop_post(weft_loop_current(), on_turn, &turned));
		OK(weft_event_wait(&turned, WEFT_NEVER));
	}
}

static void
pass(uint64_t ns)
{
	hooked.now_ns += ns;
}

/* --- servers -------------------------------------------------------------- */

static void
open_server(struct server *server, const char *address)
{
	weft_listener_opts opts = { .reuse_port = true };

	*server = (struct server){ .served = 0 };
	OK(weft_listener_open(address, &opts, &server->listener));
	OK(weft_listener_local(server->listener, &server->addr));
}

/* The peer's threadlet may be canceled already, so this sends without waiting. */
static int
greet(weft_stream *peer, void *arg)
{
	struct server *server = arg;
	int fd = weft_stream_fd(peer);
	char byte;

	/* A close with an unread byte would send a reset. */
	(void)recv(fd, &byte, 1, MSG_DONTWAIT);
	CHECK_EQ(send(fd, "!", 1, MSG_NOSIGNAL), 1);
	server->served++;
	weft_stream_close(peer);
	return 0;
}

static int
serve(void *arg)
{
	struct server *server = arg;

	server->result = weft_listener_serve(server->listener, NULL, greet, server, WEFT_NEVER);
	server->ends++;
	return 0;
}

static void
start_server(struct server *server)
{
	server->serving = weft_go(serve, server);
	CHECK(server->serving > 0);
	turn_often();
}

static int
close_server(void *arg)
{
	struct server *server = arg;

	weft_listener_close(server->listener);
	server->closed = true;
	return 0;
}

static void
begin_close(struct server *server)
{
	CHECK(weft_go(close_server, server) > 0);
	turn_often();
}

static void
on_client(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct server *server = arg;

	(void)listener;
	CHECK_EQ(server->ends, 0);
	if (peer)
		(void)greet(peer, server);
	server->ends += !peer;
	server->result = error;
}

/* --- clients -------------------------------------------------------------- */

/* Connects a client.  From the client's view the connection is established. */
static int
come(const struct server *server)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	OK(connect(fd, weft__addr_sockaddr(&server->addr), server->addr.size));
	return fd;
}

/* Sends the first byte, which ends the handshake. */
static void
speak(int client)
{
	CHECK_EQ(send(client, "?", 1, MSG_NOSIGNAL), 1);
}

static void
check_greeted(int client)
{
	char byte;

	CHECK_EQ(recv(client, &byte, 1, 0), 1);
	OK(close(client));
}

/* --- handshake during a close --------------------------------------------- */

static int
close_during_a_handshake(void *arg)
{
	struct server server;
	int client;

	(void)arg;
	open_server(&server, "tcp://127.0.0.1:0");
	start_server(&server);
	client = come(&server);
	begin_close(&server);
	speak(client);
	CHECK(weft_wait_fd(client, WEFT_READABLE, WEFT_NEVER) > 0);
	check_greeted(client);
	CHECK(!server.closed);
	pass(WEFT_S);
	while (!server.closed || !server.ends)
		turn_often();
	CHECK_EQ(server.served, 1);
	CHECK_EQ(server.result, WEFT_ESHUTDOWN);
	return 0;
}

TEST(handshake_in_progress_when_a_shared_port_closes_is_served)
{
	hook();
	hooked.table.listen = hooked_listen;
	run_threadlet(close_during_a_handshake, NULL);
	unhook();
}

TEST(callback_gets_a_handshake_in_progress_when_a_shared_port_closes)
{
	struct server server;
	weft_loop *loop;
	int client;

	hook();
	hooked.table.listen = hooked_listen;
	loop = make();
	open_server(&server, "tcp://127.0.0.1:0");
	OK(weft_listener_start(server.listener, loop, on_client, &server));
	turns(loop, 3);
	client = come(&server);
	weft_listener_close(server.listener);
	turns(loop, 3);
	CHECK_EQ(server.ends, 0);
	CHECK_EQ(weft_listener_stop(server.listener), WEFT_ESHUTDOWN);
	speak(client);
	while (server.served == 0)
		turn(loop);
	check_greeted(client);
	pass(WEFT_S);
	OK(weft_loop_run(loop));
	CHECK_EQ(server.ends, 1);
	CHECK_EQ(server.result, WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
	unhook();
}

/* --- handshake during a cancellation -------------------------------------- */

static int
cancel_during_a_handshake(void *arg)
{
	struct server server;
	int client;

	(void)arg;
	open_server(&server, "tcp://127.0.0.1:0");
	start_server(&server);
	client = come(&server);
	OK(weft_cancel(server.serving));
	while (server.listener->op.pending)
		turn_often();
	turn_often();
	CHECK_EQ(server.ends, 0);
	speak(client);
	CHECK_EQ(weft_wait_fd(server.listener->fd, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	pass(WEFT_S);
	while (!server.ends)
		turn_often();
	check_greeted(client);
	CHECK_EQ(server.served, 1);
	CHECK_EQ(server.result, WEFT_ECANCELED);
	weft_listener_close(server.listener);
	return 0;
}

TEST(handshake_in_progress_when_serving_is_canceled_is_served)
{
	hook();
	hooked.table.listen = hooked_listen;
	run_threadlet(cancel_during_a_handshake, NULL);
	unhook();
}

static int
cancel_and_close(void *arg)
{
	struct server server;

	(void)arg;
	open_server(&server, "tcp://127.0.0.1:0");
	start_server(&server);
	begin_close(&server);
	OK(weft_cancel(server.serving));
	turn_often();
	CHECK_EQ(server.ends, 0);
	CHECK(!server.closed);
	pass(WEFT_S);
	while (!server.ends || !server.closed)
		turn_often();
	return 0;
}

TEST(serving_canceled_during_the_drain_of_a_close_ends_with_it)
{
	hook();
	run_threadlet(cancel_and_close, NULL);
	unhook();
}

/* --- new handshakes ------------------------------------------------------- */

/* The kernel repeats the SYN after a second. */
static int
come_during_a_drain(void *arg)
{
	char address[WEFT_ADDR_TEXT_MAX];
	struct server before, after;
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)arg;
	open_server(&before, "tcp://127.0.0.1:0");
	start_server(&before);
	begin_close(&before);
	CHECK(connect(client, weft__addr_sockaddr(&before.addr), before.addr.size) < 0);
	CHECK(weft_addr_format(&before.addr, address, sizeof(address)) > 0);
	turn_often();
	open_server(&after, address);
	start_server(&after);
	pass(WEFT_S);
	while (!before.closed)
		turn_often();
	CHECK(weft_wait_fd(client, WEFT_READABLE, WEFT_NEVER) > 0);
	check_greeted(client);
	CHECK_EQ(before.served, 0);
	CHECK_EQ(after.served, 1);
	begin_close(&after);
	pass(WEFT_S);
	return 0;
}

TEST(handshake_begun_during_the_drain_reaches_the_other_listener)
{
	hook();
	run_threadlet(come_during_a_drain, NULL);
	unhook();
}

/* --- without a drain ------------------------------------------------------ */

static int
close_without_filter(void *arg)
{
	struct server server;

	(void)arg;
	open_server(&server, "tcp://127.0.0.1:0");
	start_server(&server);
	begin_close(&server);
	while (!server.closed || !server.ends)
		turn_often();
	CHECK_EQ(server.result, WEFT_ESHUTDOWN);
	return 0;
}

TEST(close_of_a_shared_port_does_not_drain_where_syns_cannot_be_ignored)
{
	hook();
	hooked.table.ignore_syn = hooked_ignore_syn;
	run_threadlet(close_without_filter, NULL);
	unhook();
}

static int
stop_during_a_drain(void *arg)
{
	struct server *server = arg;

	open_server(server, "tcp://127.0.0.1:0");
	start_server(server);
	begin_close(server);
	CHECK(!server->closed);
	weft_loop_shutdown(weft_loop_current());
	pass(WEFT_S);
	return 0;
}

TEST(loop_that_stops_waits_for_the_drain_of_its_threadlets)
{
	struct server server;

	hook();
	run_threadlet(stop_during_a_drain, &server);
	unhook();
	CHECK(server.closed);
	CHECK_EQ(server.ends, 1);
}

TEST(callback_is_called_once_when_the_loop_stops_during_the_drain)
{
	struct server server;
	weft_loop *loop;

	hook();
	loop = make();
	open_server(&server, "tcp://127.0.0.1:0");
	OK(weft_listener_start(server.listener, loop, on_client, &server));
	turns(loop, 3);
	weft_listener_close(server.listener);
	turns(loop, 3);
	CHECK_EQ(server.ends, 0);
	stop_idle(loop);
	unhook();
	CHECK_EQ(server.ends, 1);
	CHECK_EQ(server.result, WEFT_ESHUTDOWN);
}
