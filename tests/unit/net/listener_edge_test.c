/* listener_edge_test.c - listeners at their limits, and connections that arrive while a
 * listener changes its state. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "unit/threadlet/sched.h"

struct house {
	weft_loop *loop;
	weft_listener *listener;
	char address[WEFT_ADDR_TEXT_MAX];
	int clients, calls, result;
	weft_stream *bell;
};

static struct house
open_house(const weft_listener_opts *opts)
{
	struct house house = { .result = 1 };
	weft_addr addr;

	OK(weft_listener_open("tcp://127.0.0.1:0", opts, &house.listener));
	OK(weft_listener_local(house.listener, &addr));
	CHECK(weft_addr_format(&addr, house.address, sizeof(house.address)) > 0);
	return house;
}

/* --- the connection limit ------------------------------------------------- */

/* With a limit of one, each peer closes before the loop can report that there is room. */
static int
come_and_go(void *arg)
{
	struct house *house = arg;
	weft_stream *clients[4], *peer, *none;

	for (int i = 0; i < 4; i++)
		OK(weft_stream_connect(house->address, NULL, &clients[i], WEFT_NEVER));
	for (int i = 0; i < 4; i++) {
		OK(weft_listener_accept(house->listener, &peer, WEFT_NOWAIT));
		CHECK_EQ(weft_listener_accept(house->listener, &none, WEFT_NOWAIT), WEFT_ETIMEDOUT);
		weft_stream_close(peer);
		house->clients++;
	}
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	for (int i = 0; i < 4; i++)
		weft_stream_close(clients[i]);
	weft_listener_close(house->listener);
	return 0;
}

TEST(room_made_repeatedly_is_reported_once_at_a_time)
{
	weft_listener_opts opts = { .connections_max = 1 };
	struct house house = open_house(&opts);

	run_threadlet(come_and_go, &house);
	CHECK_EQ(house.clients, 4);
}

/* --- accepting without waiting -------------------------------------------- */

static int
accept_at_once(void *arg)
{
	struct house *house = arg;
	weft_stream *client, *peer;

	for (int i = 0; i < 4; i++) {
		CHECK_EQ(weft_listener_accept(house->listener, &peer, weft_after(WEFT_MS)),
		         WEFT_ETIMEDOUT);
		CHECK_EQ(weft_listener_accept(house->listener, &peer, WEFT_NOWAIT), WEFT_ETIMEDOUT);
		OK(weft_stream_connect(house->address, NULL, &client, WEFT_NEVER));
		while (weft_listener_accept(house->listener, &peer, WEFT_NOWAIT) < 0)
			OK(weft_yield());
		weft_stream_close(peer);
		weft_stream_close(client);
	}
	OK(weft_stream_connect(house->address, NULL, &client, WEFT_NEVER));
	OK(weft_listener_accept(house->listener, &peer, weft_after(HOUR)));
	weft_stream_close(peer);
	weft_stream_close(client);
	weft_listener_close(house->listener);
	return 0;
}

TEST(nonwaiting_accept_neither_blocks_nor_miscounts_after_one_that_waited)
{
	weft_listener_opts opts = { .connections_max = 2 };
	struct house house = open_house(&opts);

	run_threadlet(accept_at_once, &house);
}

/* --- from accept to callback ---------------------------------------------- */

static void
on_client(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct house *house = arg;

	if (!peer) {
		CHECK_EQ(error, WEFT_ESHUTDOWN);
		house->calls++;
		return;
	}
	house->clients++;
	weft_stream_close(peer);
	weft_listener_close(listener);
}

static int
change_hands(void *arg)
{
	struct house *house = arg;
	weft_stream *client, *peer;

	CHECK_EQ(weft_listener_accept(house->listener, &peer, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(weft_stream_connect(house->address, NULL, &client, WEFT_NEVER));
	OK(weft_sleep_until(weft_after(2 * WEFT_MS))); /* the loop accepts it for the next caller */
	OK(weft_listener_start(house->listener, NULL, on_client, house));
	for (int i = 0; i < 100 && house->clients == 0; i++)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	if (house->clients == 0)
		weft_listener_close(house->listener);
	weft_stream_close(client);
	return 0;
}

TEST(connection_accepted_for_no_caller_goes_to_the_callback_started_next)
{
	struct house house = open_house(NULL);

	run_threadlet(change_hands, &house);
	CHECK_EQ(house.clients, 1);
	CHECK_EQ(house.calls, 1);
}

/* --- closed while a connection arrives ------------------------------------ */

static void
on_bell(weft_stream *bell, const void *data, ssize_t size, void *arg)
{
	struct house *house = arg;

	(void)data, (void)size;
	weft_listener_close(house->listener);
	weft_stream_close(bell);
}

static int
accept_one(void *arg)
{
	struct house *house = arg;
	weft_stream *peer = NULL;

	house->result = weft_listener_accept(house->listener, &peer, WEFT_NEVER);
	weft_stream_close(peer);
	return 0;
}

TEST(close_while_a_connection_arrives_does_not_break_a_waiting_accept)
{
	static const weft_stream_events events = { .on_data = on_bell };
	struct house house = open_house(NULL);
	weft_addr addr;
	int fds[2], client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	house.loop = make();
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	OK(weft_stream_open_fd(fds[0], false, &house.bell));
	OK(weft_stream_start(house.bell, house.loop, &events, &house));
	(void)go_on(house.loop, accept_one, &house);
	for (int i = 0; i < 4; i++)
		(void)weft_loop_run_once(house.loop, WEFT_NOWAIT);
	OK(weft_listener_local(house.listener, &addr));
	CHECK_EQ(connect(client, (struct sockaddr *)(void *)addr.bytes, addr.size), 0);
	CHECK_EQ(write(fds[1], "!", 1), 1);
	OK(weft_loop_run(house.loop));
	OK(weft_loop_free(house.loop));
	CHECK(house.result == 0 || house.result == WEFT_ESHUTDOWN);
	(void)close(fds[1]);
	(void)close(client);
}

/* --- loop stop ------------------------------------------------------------ */

static void
keep_client(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct house *house = arg;

	(void)listener;
	house->calls++;
	if (peer)
		house->bell = peer;
	else
		house->result = error;
}

TEST(stopped_listener_calls_its_callback_when_the_loop_stops)
{
	struct house house = open_house(NULL);

	house.loop = make();
	OK(weft_listener_start(house.listener, house.loop, keep_client, &house));
	turns(house.loop, 2);
	OK(weft_listener_stop(house.listener));
	turns(house.loop, 2);
	weft_loop_shutdown(house.loop);
	OK(weft_loop_run(house.loop));
	CHECK_EQ(house.calls, 1);
	CHECK_EQ(house.result, WEFT_ESHUTDOWN);
	weft_listener_close(house.listener);
	OK(weft_loop_free(house.loop));
}

TEST(listener_at_its_limit_calls_its_callback_when_the_loop_stops)
{
	weft_listener_opts opts = { .connections_max = 1 };
	struct house house = open_house(&opts);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	weft_addr addr;

	house.loop = make();
	OK(weft_listener_start(house.listener, house.loop, keep_client, &house));
	OK(weft_listener_local(house.listener, &addr));
	OK(connect(client, (struct sockaddr *)(void *)addr.bytes, addr.size));
	while (!house.bell)
		(void)weft_loop_run_once(house.loop, WEFT_NEVER);
	turns(house.loop, 2);
	weft_loop_shutdown(house.loop);
	OK(weft_loop_run(house.loop));
	CHECK_EQ(house.calls, 2);
	CHECK_EQ(house.result, WEFT_ESHUTDOWN);
	weft_stream_close(house.bell);
	weft_listener_close(house.listener);
	OK(weft_loop_free(house.loop));
	(void)close(client);
}

/* The address is free once the loop has run, although no accept was pending. */
TEST(closing_a_stopped_listener_frees_its_address)
{
	struct house house = open_house(NULL);
	weft_listener *other;

	house.loop = make();
	OK(weft_listener_start(house.listener, house.loop, keep_client, &house));
	OK(weft_listener_stop(house.listener));
	turns(house.loop, 3);
	house.calls = 0;
	weft_listener_close(house.listener);
	OK(weft_loop_run(house.loop));
	OK(weft_listener_open(house.address, NULL, &other));
	weft_listener_close(other);
	CHECK_EQ(house.calls, 1);
	OK(weft_loop_free(house.loop));
}

/* --- the end of weft_listener_serve() --------------------------------------- */

/* A listening socket that the listener only borrows, as if it were shared with a successor. */
static int
open_door(struct sockaddr_in *addr)
{
	socklen_t size = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET };
	addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	OK(bind(fd, (struct sockaddr *)addr, size));
	OK(listen(fd, 8));
	OK(getsockname(fd, (struct sockaddr *)addr, &size));
	return fd;
}

static int
take_none(weft_stream *peer, void *arg)
{
	(*(int *)arg)++;
	weft_stream_close(peer);
	return 0;
}

struct shared {
	weft_listener *listener;
	struct sockaddr_in addr;
	int door, client, served;
};

static int
serve_shared(void *arg)
{
	struct shared *shared = arg;

	CHECK_EQ(
		weft_listener_serve(shared->listener, NULL, take_none, &shared->served, WEFT_NEVER),
		WEFT_ECANCELED);
	/* A connection that arrives now is not ours. */
	shared->client = socket(AF_INET, SOCK_STREAM, 0);
	OK(connect(shared->client, (struct sockaddr *)&shared->addr, sizeof(shared->addr)));
	return 0;
}

static int
end_shared(void *arg)
{
	struct shared *shared = arg;
	weft_threadlet serving = weft_go(serve_shared, shared);

	OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_cancel(serving));
	OK(weft_sleep_until(weft_after(20 * WEFT_MS)));
	weft_listener_close(shared->listener);
	return 0;
}

TEST(canceled_server_accepts_no_further_connections)
{
	struct shared shared = { .served = 0 };
	weft_listener_opts opts = { .borrow = true };
	char text[32];
	int fd;

	shared.door = open_door(&shared.addr);
	(void)snprintf(text, sizeof(text), "fd:%d", shared.door);
	OK(weft_listener_open(text, &opts, &shared.listener));
	run_threadlet(end_shared, &shared);
	fd = accept(shared.door, NULL, NULL);
	CHECK(fd >= 0);
	CHECK_EQ(shared.served, 0);
	OK(close(fd));
	OK(close(shared.client));
	OK(close(shared.door));
}

/* --- close while the loop stops -------------------------------------------- */

struct ending {
	struct house house;
	bool inside; /* the program is inside weft_listener_close() */
};

static void
on_ending(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct ending *ending = arg;

	(void)listener;
	CHECK(!peer);
	CHECK(!ending->inside);
	CHECK_EQ(error, WEFT_ESHUTDOWN);
	ending->house.calls++;
}

static void
stop_and_close(void *arg)
{
	struct ending *ending = arg;

	weft_loop_shutdown(ending->house.loop);
	ending->inside = true;
	weft_listener_close(ending->house.listener);
	ending->inside = false;
}

static void
close_while_stopping(bool paused)
{
	struct ending ending = { .house = open_house(NULL) };
	weft_loop *loop = ending.house.loop = make();

	OK(weft_listener_start(ending.house.listener, loop, on_ending, &ending));
	turns(loop, 2);
	if (paused)
		OK(weft_listener_stop(ending.house.listener));
	turns(loop, 2);
	OK(weft_loop_post(loop, stop_and_close, &ending));
	OK(weft_loop_run(loop));
	CHECK_EQ(ending.house.calls, 1);
	OK(weft_loop_free(loop));
}

TEST(close_while_the_loop_stops_calls_the_callback_after_it_returned)
{
	close_while_stopping(false);
	close_while_stopping(true);
}
