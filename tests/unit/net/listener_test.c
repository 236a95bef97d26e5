/* listener_test.c - listening and connecting. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/metrics.h>
#include "net/listen/listener.h"
#include "unit/threadlet/sched.h"

struct house {
	weft_listener *listener;
	char address[WEFT_ADDR_TEXT_MAX];
	int served, calls, last_error, clients;
	weft_stream *client;
};

static struct house
open_house(const char *address, const weft_listener_opts *opts)
{
	struct house house = { .served = 0 };
	weft_addr addr;

	OK(weft_listener_open(address, opts, &house.listener));
	OK(weft_listener_local(house.listener, &addr));
	CHECK(weft_addr_format(&addr, house.address, sizeof(house.address)) > 0);
	return house;
}

/* The peer address of one end is the local address of the other. */
static void
check_addresses(const struct house *house, weft_stream *stream)
{
	weft_addr peer, here, there;

	OK(weft_addr_parse(house->address, &there));
	OK(weft_stream_peer(stream, &peer));
	OK(weft_stream_local(stream, &here));
	CHECK(weft_addr_equal(&peer, &there));
	CHECK(!weft_addr_equal(&peer, &here));
}

/* Sends a word and expects it back. */
static int
visit(void *arg)
{
	struct house *house = arg;
	weft_stream *stream;
	char buf[8];

	OK(weft_stream_connect(house->address, NULL, &stream, weft_after(HOUR)));
	check_addresses(house, stream);
	CHECK_EQ(weft_stream_write(stream, "word", 4, WEFT_NEVER), 4);
	CHECK_EQ(weft_stream_read_exact(stream, buf, 4, WEFT_NEVER), 4);
	CHECK(memcmp(buf, "word", 4) == 0);
	weft_stream_close(stream);
	return 0;
}

static int
echo(weft_stream *peer, void *arg)
{
	struct house *house = arg;
	char buf[64];
	ssize_t n;

	house->served++;
	while ((n = weft_stream_read(peer, buf, sizeof(buf), WEFT_NEVER)) > 0)
		if ((n = weft_stream_write(peer, buf, (size_t)n, WEFT_NEVER)) < 0)
			break;
	weft_stream_close(peer);
	return (int)n;
}

/* --- one at a time -------------------------------------------------------- */

static int
accept_one(void *arg)
{
	struct house *house = arg;
	weft_stream *peer;

	CHECK_EQ(weft_listener_accept(house->listener, &peer, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_listener_accept(house->listener, &peer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK(weft_go(visit, house) > 0);
	OK(weft_listener_accept(house->listener, &peer, WEFT_NEVER));
	(void)echo(peer, house);
	weft_listener_close(house->listener);
	return 0;
}

TEST(connection_is_accepted_over_tcp)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);

	run_threadlet(accept_one, &house);
	CHECK_EQ(house.served, 1);
}

TEST(connection_is_accepted_on_every_interface)
{
	struct house house = open_house("tcp://:0", NULL);
	weft_addr addr;
	char *port = strrchr(house.address, ':');

	OK(weft_listener_local(house.listener, &addr));
	CHECK(port != NULL);
	memmove(house.address + strlen("tcp://127.0.0.1"), port, strlen(port) + 1);
	memcpy(house.address, "tcp://127.0.0.1", strlen("tcp://127.0.0.1"));
	run_threadlet(accept_one, &house);
	CHECK_EQ(house.served, 1);
}

TEST(connection_is_accepted_over_an_abstract_unix_address)
{
	struct house house;
	char name[64];

	/* Other processes may run the same test. */
	(void)snprintf(name, sizeof(name), "unix:@weft-test-%d", (int)getpid());
	house = open_house(name, NULL);
	run_threadlet(accept_one, &house);
	CHECK_EQ(house.served, 1);
}

static int visit_all(void *arg);

static int
visit_by_name(void *arg)
{
	struct house *house = arg;
	const char *port = strrchr(house->address, ':');
	weft_stream *stream;
	char name[64];

	(void)snprintf(name, sizeof(name), "tcp://localhost%s", port);
	OK(weft_stream_connect(name, NULL, &stream, WEFT_NEVER));
	weft_stream_close(stream);
	weft_listener_close(house->listener);
	CHECK_EQ(weft_stream_connect(name, NULL, &stream, WEFT_NEVER), WEFT_ECONNREFUSED);
	CHECK(strstr(weft_detail(), name) != NULL);
	CHECK_EQ(weft_stream_connect("tcp://no.such.host.invalid:80", NULL, &stream, WEFT_NOWAIT),
	         WEFT_ETIMEDOUT);
	return 0;
}

/* This host has two addresses.  A listener is open at only one of them. */
TEST(connect_tries_all_addresses_of_a_name)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);

	weft_listener *other;

	run_threadlet(visit_by_name, &house);
	if (weft_listener_open("tcp://[::1]:0", NULL, &other) < 0)
		return; /* no IPv6 here */
	weft_listener_close(other);
	house = open_house("tcp://[::1]:0", NULL);
	run_threadlet(visit_by_name, &house);
}

static void
path_in(char *out, size_t size)
{
	char dir[] = "/tmp/weft-XXXXXX";

	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(out, size, "unix:%s/s", dir);
}

static void
remove_dir(char *address)
{
	*strrchr(address, '/') = '\0';
	OK(rmdir(address + strlen("unix:")));
}

TEST(unix_socket_file_is_private_and_removed_with_its_listener)
{
	weft_listener_opts replace = { .replace = true };
	weft_listener *other;
	struct stat info;
	struct house house;
	char address[64];

	path_in(address, sizeof(address));
	house = open_house(address, NULL);
	OK(stat(address + 5, &info));
	CHECK_EQ(info.st_mode & 0777, 0600);
	CHECK_EQ(weft_listener_open(address, NULL, &other), WEFT_EADDRINUSE);
	CHECK(strstr(weft_detail(), address) != NULL);
	/* A socket that is in use is not replaced. */
	CHECK_EQ(weft_listener_open(address, &replace, &other), WEFT_EADDRINUSE);
	run_threadlet(visit_all, &house);
	CHECK(stat(address + 5, &info) < 0);
	remove_dir(address);
}

TEST(stale_unix_socket_file_is_replaced_if_requested)
{
	weft_listener_opts replace = { .replace = true };
	struct house house;
	weft_listener *other;
	char address[64];
	weft_addr addr;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	path_in(address, sizeof(address));
	OK(weft_addr_parse(address, &addr));
	OK(bind(fd, (struct sockaddr *)addr.bytes, addr.size));
	OK(close(fd));
	CHECK_EQ(weft_listener_open(address, NULL, &other), WEFT_EADDRINUSE);
	house = open_house(address, &replace);
	run_threadlet(accept_one, &house);
	CHECK_EQ(house.served, 1);
	remove_dir(address);
}

static int
accept_in_turns(void *arg)
{
	struct house *house = arg;
	weft_stream *peer, *clients[2];

	/* The first call leaves its accept pending with the loop.  The second does not replace
	 * it. */
	CHECK_EQ(weft_listener_accept(house->listener, &peer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_listener_accept(house->listener, &peer, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	for (int i = 0; i < 2; i++)
		OK(weft_stream_connect(house->address, NULL, &clients[i], WEFT_NEVER));
	for (int i = 0; i < 2; i++) {
		int rc;

		while ((rc = weft_listener_accept(house->listener, &peer, WEFT_NOWAIT))
		       == WEFT_ETIMEDOUT)
			OK(weft_yield());
		OK(rc);
		weft_stream_close(peer);
		weft_stream_close(clients[i]);
	}
	weft_listener_close(house->listener);
	return 0;
}

TEST(waiting_and_nonwaiting_accepts_each_count_one_connection)
{
	weft_listener_opts opts = { .connections_max = 2 };
	struct house house = open_house("tcp://127.0.0.1:0", &opts);

	run_threadlet(accept_in_turns, &house);
}

/* --- errors --------------------------------------------------------------- */

TEST(error_for_an_address_that_cannot_be_bound_names_it)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);
	weft_listener *other;

	CHECK_EQ(weft_listener_open(house.address, NULL, &other), WEFT_EADDRINUSE);
	CHECK(strstr(weft_detail(), house.address) != NULL);
	CHECK_EQ(weft_listener_open("udp://127.0.0.1:0", NULL, &other), WEFT_EINVAL);
	CHECK_EQ(weft_listener_open("nonsense", NULL, &other), WEFT_EINVAL);
	CHECK_EQ(weft_listener_open("unix:/nowhere/at/all", NULL, &other), WEFT_ENOENT);
	CHECK(strstr(weft_detail(), "unix:/nowhere/at/all") != NULL);
	CHECK_EQ(weft_listener_open("tcp://192.0.2.1:80", NULL, &other), -EADDRNOTAVAIL);
	weft_listener_close(house.listener);
	weft_listener_close(NULL);
}

static int
connect_to_nobody(void *arg)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);
	weft_stream *stream = arg;
	struct weft_loop_stats stats;

	weft_listener_close(house.listener);
	CHECK_EQ(weft_stream_connect(house.address, NULL, &stream, WEFT_NEVER), WEFT_ECONNREFUSED);
	CHECK(strstr(weft_detail(), house.address) != NULL);
	CHECK_EQ(weft_stream_connect("unix:/nowhere/at/all", NULL, &stream, WEFT_NEVER),
	         WEFT_ENOENT);
	CHECK_EQ(weft_stream_connect("udp://127.0.0.1:9", NULL, &stream, WEFT_NEVER), WEFT_EINVAL);
	/* TCP cannot connect to a broadcast address. */
	CHECK_EQ(weft_stream_connect("tcp://255.255.255.255:9", NULL, &stream, WEFT_NEVER),
	         -ENETUNREACH);
	CHECK(strstr(weft_detail(), "tcp://255.255.255.255:9") != NULL);
	CHECK(stream == NULL);
	OK(weft_loop_stats(weft_loop_current(), &stats));
	CHECK_EQ(stats.connects_failed, 3);
	CHECK_EQ(stats.connected, 0);
	return 0;
}

TEST(error_of_a_refused_connection_names_the_address)
{
	run_threadlet(connect_to_nobody, NULL);
}

static void
on_refused(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	CHECK_EQ(result, WEFT_ECONNREFUSED);
	CHECK(strstr(weft_detail(), arg) != NULL);
}

TEST(failed_connect_op_has_a_detail_text_that_names_the_address)
{
	struct house one = open_house("tcp://127.0.0.1:0", NULL);
	struct house two = open_house("tcp://127.0.0.1:0", NULL);
	weft_stream *stream = NULL;
	weft_loop *loop = make();
	weft_op ops[2];

	weft_listener_close(one.listener);
	weft_listener_close(two.listener);
	OK(weft_op_init(&ops[0], loop, on_refused, one.address));
	OK(weft_op_init(&ops[1], loop, on_refused, two.address));
	OK(weft_stream_connect_op(one.address, NULL, &stream, &ops[0], WEFT_NEVER));
	OK(weft_stream_connect_op(two.address, NULL, &stream, &ops[1], WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK(stream == NULL);
	OK(weft_loop_free(loop));
}

/* --- waiting acceptors ---------------------------------------------------- */

static int
wait_for_client(void *arg)
{
	struct house *house = arg;
	weft_stream *peer;

	house->last_error = weft_listener_accept(house->listener, &peer, WEFT_NEVER);
	return 0;
}

static int
disturb(void *arg)
{
	struct house *house = arg;
	weft_threadlet id;
	weft_stream *peer;

	id = weft_go(wait_for_client, house);
	CHECK(id > 0);
	OK(weft_yield());
	CHECK_EQ(weft_listener_accept(house->listener, &peer, WEFT_NEVER), WEFT_EBUSY);
	OK(weft_interrupt(id));
	while (house->last_error == 0)
		OK(weft_yield());
	CHECK_EQ(house->last_error, WEFT_EINTR);
	house->last_error = 0;
	CHECK(weft_go(wait_for_client, house) > 0);
	OK(weft_yield());
	weft_listener_close(house->listener);
	while (house->last_error == 0)
		OK(weft_yield());
	CHECK_EQ(house->last_error, WEFT_ESHUTDOWN);
	return 0;
}

TEST(accept_ends_on_interrupt_and_on_close)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);

	run_threadlet(disturb, &house);
}

/* --- serving -------------------------------------------------------------- */

static int
serve_house(void *arg)
{
	struct house *house = arg;

	house->last_error = weft_listener_serve(house->listener, NULL, echo, house, WEFT_NEVER);
	return 0;
}

#define CLIENTS 20

static int
visit_all(void *arg)
{
	struct house *house = arg;
	weft_scope scope;

	CHECK(weft_go(serve_house, house) > 0);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < CLIENTS; i++)
		CHECK(weft_scope_go(&scope, visit, house) > 0);
	OK(weft_scope_close(&scope));
	weft_listener_close(house->listener);
	return 0;
}

TEST(each_peer_is_served_on_a_threadlet_until_the_listener_is_closed)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);

	run_threadlet(visit_all, &house);
	CHECK_EQ(house.served, CLIENTS);
	CHECK_EQ(house.last_error, WEFT_ESHUTDOWN);
}

static int
visit_few_at_a_time(void *arg)
{
	struct weft_loop_stats stats;

	OK(visit_all(arg));
	OK(weft_loop_stats(weft_loop_current(), &stats));
	CHECK_EQ(stats.accepted, CLIENTS);
	CHECK_EQ(stats.connected, CLIENTS);
	CHECK(stats.accepts_paused > 0 && stats.accepts_paused <= CLIENTS);
	CHECK_EQ(stats.accepts_shed, 0);
	return 0;
}

TEST(connections_above_the_limit_wait_until_others_have_closed)
{
	weft_listener_opts opts = { .connections_max = 2 };
	struct house house = open_house("tcp://127.0.0.1:0", &opts);

	run_threadlet(visit_few_at_a_time, &house);
	CHECK_EQ(house.served, CLIENTS);
}

static int
cancel_service(void *arg)
{
	struct house *house = arg;
	weft_stream *stream;
	weft_scope scope;
	char byte;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, serve_house, house) > 0);
	OK(weft_stream_connect(house->address, NULL, &stream, WEFT_NEVER));
	CHECK_EQ(weft_stream_write(stream, "x", 1, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_read(stream, &byte, 1, WEFT_NEVER), 1);
	weft_scope_cancel(&scope);
	OK(weft_scope_close(&scope));
	CHECK_EQ(house->last_error, WEFT_ECANCELED);
	CHECK(weft_stream_read(stream, &byte, 1, WEFT_NEVER) <= 0);
	weft_stream_close(stream);
	weft_listener_close(house->listener);
	return 0;
}

TEST(canceled_serve_ends_together_with_its_peers)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);

	run_threadlet(cancel_service, &house);
	CHECK_EQ(house.served, 1);
}

/* --- callbacks ------------------------------------------------------------ */

static void
on_client(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct house *house = arg;

	CHECK(listener == house->listener);
	CHECK((peer == NULL) == (error < 0));
	house->calls++;
	house->last_error = error;
	if (peer) {
		house->clients++;
		weft_stream_close(peer);
	}
}

TEST(callback_is_called_for_each_connection_and_once_for_the_end)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);
	weft_loop *loop = make();
	weft_addr addr;
	int fds[3];

	OK(weft_addr_parse(house.address, &addr));
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	for (int i = 0; i < 3; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		OK(connect(fds[i], (struct sockaddr *)addr.bytes, addr.size));
	}
	while (house.clients < 3)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	weft_listener_close(house.listener);
	CHECK_EQ(house.calls, 3);
	OK(weft_loop_run(loop));
	CHECK_EQ(house.calls, 4);
	CHECK_EQ(house.last_error, WEFT_ESHUTDOWN);
	for (int i = 0; i < 3; i++)
		OK(close(fds[i]));
	OK(weft_loop_free(loop));
}

TEST(callback_that_closes_each_peer_gets_all_of_them_one_at_a_time)
{
	weft_listener_opts opts = { .connections_max = 1 };
	struct house house = open_house("tcp://127.0.0.1:0", &opts);
	weft_loop *loop = make();
	weft_addr addr;
	int fds[8];

	OK(weft_addr_parse(house.address, &addr));
	for (int i = 0; i < 8; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		OK(connect(fds[i], (struct sockaddr *)addr.bytes, addr.size));
	}
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	while (house.clients < 8)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	weft_listener_close(house.listener);
	OK(weft_loop_run(loop));
	for (int i = 0; i < 8; i++)
		OK(close(fds[i]));
	OK(weft_loop_free(loop));
}

TEST(listener_that_ran_out_of_descriptors_accepts_again_later)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);
	weft_loop *loop = make();
	struct rlimit few, before;
	struct weft_loop_stats stats;
	weft_addr addr;
	int fd = socket(AF_INET, SOCK_STREAM, 0), spare;

	OK(weft_addr_parse(house.address, &addr));
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	turns(loop, 2);
	/* With io_uring, an accept keeps the limit that was in force when it was started. */
	OK(weft_listener_stop(house.listener));
	turns(loop, 3);
	spare = dup(fd);
	OK(getrlimit(RLIMIT_NOFILE, &before));
	few = before;
	few.rlim_cur = (rlim_t)spare;
	OK(close(spare));
	OK(setrlimit(RLIMIT_NOFILE, &few));
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	OK(connect(fd, (struct sockaddr *)addr.bytes, addr.size));
	turns(loop, 5);
	CHECK_EQ(house.calls, 0);
	OK(setrlimit(RLIMIT_NOFILE, &before));
	while (house.clients < 1)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	weft_listener_close(house.listener);
	OK(weft_loop_run(loop));
	OK(weft_loop_stats(loop, &stats));
	CHECK_EQ(stats.accepted, 1);
	CHECK(stats.accepts_shed > 0);
	OK(close(fd));
	OK(weft_loop_free(loop));
}

TEST(callback_is_called_when_its_loop_stops)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);
	weft_loop *loop = make();

	OK(weft_listener_start(house.listener, loop, on_client, &house));
	turns(loop, 2);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(house.calls, 1);
	CHECK_EQ(house.last_error, WEFT_ESHUTDOWN);
	weft_listener_close(house.listener);
	OK(weft_loop_free(loop));
}

TEST(stopped_listener_leaves_connections_queued_until_it_is_started_again)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);
	weft_loop *loop = make();
	weft_addr addr;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	OK(weft_addr_parse(house.address, &addr));
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	turns(loop, 2);
	OK(weft_listener_stop(house.listener));
	turns(loop, 2);
	OK(connect(fd, (struct sockaddr *)addr.bytes, addr.size));
	turns(loop, 4);
	CHECK_EQ(house.calls, 0);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	while (house.clients < 1)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	weft_listener_close(house.listener);
	OK(weft_loop_run(loop));
	CHECK_EQ(house.last_error, WEFT_ESHUTDOWN);
	OK(close(fd));
	OK(weft_loop_free(loop));
}

static weft_stream *called_for;

static void
on_connected(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	*(int64_t *)arg = result;
}

TEST(connect_op_fills_its_stream_before_it_finishes)
{
	struct house house = open_house("tcp://127.0.0.1:0", NULL);
	weft_loop *loop = make();
	int64_t result = 1;
	weft_op op;

	OK(weft_op_init(&op, loop, on_connected, &result));
	OK(weft_stream_connect_op(house.address, NULL, &called_for, &op, WEFT_NEVER));
	OK(weft_loop_run(loop));
	CHECK_EQ(result, 0);
	CHECK(called_for != NULL);
	weft_stream_close(called_for);
	result = 1;
	OK(weft_stream_connect_op(house.address, NULL, &called_for, &op, WEFT_NEVER));
	weft_op_cancel(&op);
	OK(weft_loop_run(loop));
	CHECK(result == WEFT_ECANCELED || result == 0);
	if (result == 0)
		weft_stream_close(called_for);
	weft_listener_close(house.listener);
	OK(weft_loop_free(loop));
}

/* --- defaults ------------------------------------------------------------- */

static void
check_room(weft_loop *loop, const weft_listener_opts *opts, uint32_t want)
{
	struct house house = open_house("tcp://127.0.0.1:0", opts);
	struct weft__quota *quota = house.listener->quota;
	uint32_t room = 0;

	while (room <= want && weft__quota_enter(quota, loop))
		room++;
	CHECK_EQ(room, want);
	while (room-- > 0)
		weft__quota_leave(quota);
	OK(weft_loop_run(loop)); /* it is notified that there is room */
	weft_listener_close(house.listener);
}

TEST(listener_allows_ten_thousand_connections_by_default)
{
	const weft_listener_opts none = WEFT_INIT, some = { .connections_max = 7 };
	weft_loop *loop = make();

	check_room(loop, NULL, 10000);
	check_room(loop, &none, 10000);
	check_room(loop, &some, 7);
	OK(weft_loop_free(loop));
}
