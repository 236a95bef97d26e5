/* listener_queue_test.c - connections in the kernel's accept queue: how many are accepted at a
 * time, what happens to them at a close, and when the process has no descriptors left. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/sys.h"
#include "net/addr.h"
#include "unit/threadlet/sched.h"

#define CLIENTS 20
#define ROOM    4

struct house {
	weft_listener *listener;
	weft_addr addr;
	int clients[CLIENTS]; /* connected clients, not accepted yet */
	int served, ends, error;
};

static void
open_house(struct house *house, const weft_listener_opts *opts)
{
	*house = (struct house){ .served = 0 };
	OK(weft_listener_open("tcp://127.0.0.1:0", opts, &house->listener));
	OK(weft_listener_local(house->listener, &house->addr));
}

/* Connects clients, which stay in the kernel's queue.  No library code runs meanwhile. */
static void
come(struct house *house)
{
	for (int i = 0; i < CLIENTS; i++) {
		house->clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		OK(connect(house->clients[i], weft__addr_sockaddr(&house->addr), house->addr.size));
	}
}

/* The first `count` clients got a byte and then the end.  The others got a reset. */
static void
check_greeted(const struct house *house, int count)
{
	char buf[8];

	for (int i = 0; i < CLIENTS; i++) {
		ssize_t n = recv(house->clients[i], buf, sizeof(buf), 0);

		if (i < count) {
			CHECK_EQ(n, 1);
			CHECK_EQ(recv(house->clients[i], buf, sizeof(buf), 0), 0);
		} else {
			CHECK_EQ(n, -1);
			CHECK_EQ(errno, ECONNRESET);
		}
		OK(close(house->clients[i]));
	}
}

/* --- close while serving -------------------------------------------------- */

static int
greet(weft_stream *peer, void *arg)
{
	struct house *house = arg;

	house->served++;
	CHECK_EQ(weft_stream_write(peer, "!", 1, WEFT_NEVER), 1);
	weft_stream_close(peer);
	return 0;
}

static int
serve(void *arg)
{
	struct house *house = arg;

	house->error = weft_listener_serve(house->listener, NULL, greet, house, WEFT_NEVER);
	return 0;
}

static int
close_on_all(void *arg)
{
	struct house *house = arg;

	CHECK(weft_go(serve, house) > 0);
	for (int i = 0; i < 5; i++)
		OK(weft_yield());
	come(house);
	weft_listener_close(house->listener);
	return 0;
}

TEST(connections_queued_when_a_listener_closes_are_served)
{
	struct house house;

	open_house(&house, NULL);
	run_threadlet(close_on_all, &house);
	CHECK_EQ(house.error, WEFT_ESHUTDOWN);
	CHECK_EQ(house.served, CLIENTS);
	check_greeted(&house, CLIENTS);
}

TEST(connections_queued_above_the_limit_when_a_listener_closes_are_reset)
{
	weft_listener_opts opts = { .connections_max = ROOM };
	struct house house;

	open_house(&house, &opts);
	run_threadlet(close_on_all, &house);
	CHECK_EQ(house.error, WEFT_ESHUTDOWN);
	CHECK_EQ(house.served, ROOM);
	check_greeted(&house, ROOM);
}

/* --- close with a callback ------------------------------------------------ */

static void
on_client(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct house *house = arg;

	CHECK(listener == house->listener);
	CHECK_EQ(house->ends, 0);
	if (!peer) {
		house->ends++;
		house->error = error;
		return;
	}
	CHECK_EQ(send(weft_stream_fd(peer), "!", 1, 0), 1);
	house->served++;
	weft_stream_close(peer);
}

static void
close_on_all_by_callback(const weft_listener_opts *opts, int served)
{
	weft_loop *loop = make();
	struct house house;

	open_house(&house, opts);
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	turns(loop, 3);
	come(&house);
	weft_listener_close(house.listener);
	CHECK_EQ(house.served + house.ends, 0); /* no callback runs inside weft_listener_close() */
	OK(weft_loop_run(loop));
	CHECK_EQ(house.served, served);
	CHECK_EQ(house.ends, 1);
	CHECK_EQ(house.error, WEFT_ESHUTDOWN);
	check_greeted(&house, served);
	OK(weft_loop_free(loop));
}

TEST(callback_gets_all_connections_queued_when_its_listener_closes)
{
	close_on_all_by_callback(NULL, CLIENTS);
}

TEST(callback_gets_queued_connections_up_to_the_limit_at_a_close)
{
	weft_listener_opts opts = { .connections_max = ROOM };

	close_on_all_by_callback(&opts, ROOM);
}

/* --- aborted connections -------------------------------------------------- */

static struct {
	const struct weft__sys *before;
	struct weft__sys table;
	int calls, backlog;
} hooked;

static void
hook(void)
{
	hooked.calls = hooked.backlog = 0;
	hooked.before = weft__sys;
	hooked.table = *weft__sys;
	weft__sys = &hooked.table;
}

static void
unhook(void)
{
	weft__sys = hooked.before;
}

/* Every other accept reports that the connection was aborted. */
static int
accept_half(int fd)
{
	return ++hooked.calls % 2 ? -ECONNABORTED : hooked.before->accept(fd);
}

TEST(aborted_connection_in_the_queue_does_not_hide_the_others)
{
	hook();
	hooked.table.accept = accept_half;
	close_on_all_by_callback(NULL, CLIENTS);
	unhook();
}

/* --- limits --------------------------------------------------------------- */

TEST(loop_iteration_accepts_at_most_accept_budget_connections)
{
	weft_listener_opts opts = { .accept_budget = 2 };
	weft_loop *loop = make();
	struct house house;
	int before = 0;

	open_house(&house, &opts);
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	turns(loop, 3);
	come(&house);
	while (house.served < CLIENTS) {
		turn(loop);
		CHECK(house.served <= before + 2);
		before = house.served;
	}
	weft_listener_close(house.listener);
	OK(weft_loop_run(loop));
	check_greeted(&house, CLIENTS);
	OK(weft_loop_free(loop));
}

static int
note_backlog(int fd, int backlog)
{
	hooked.backlog = backlog;
	return hooked.before->listen(fd, backlog);
}

TEST(backlog_is_511_or_as_requested)
{
	weft_listener_opts opts = { .backlog = 7 };
	struct house house;

	hook();
	hooked.table.listen = note_backlog;
	open_house(&house, NULL);
	CHECK_EQ(hooked.backlog, 511);
	weft_listener_close(house.listener);
	open_house(&house, &opts);
	CHECK_EQ(hooked.backlog, 7);
	weft_listener_close(house.listener);
	unhook();
}

/* --- no descriptors left -------------------------------------------------- */

/* Lowers the limit so that no further descriptor can be opened. */
static struct rlimit
use_up_numbers(void)
{
	struct rlimit before, few;
	int spare = dup(STDOUT_FILENO);

	CHECK(spare >= 0);
	OK(getrlimit(RLIMIT_NOFILE, &before));
	few = before;
	few.rlim_cur = (rlim_t)spare;
	OK(close(spare));
	OK(setrlimit(RLIMIT_NOFILE, &few));
	return before;
}

TEST(listener_without_descriptors_does_not_spin)
{
	weft_loop *loop = make();
	struct rlimit before;
	struct house house;
	uint64_t until_ns;
	int count = 0;

	open_house(&house, NULL);
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	turns(loop, 3);
	/* With io_uring, an accept keeps the limit that was in force when it was started. */
	OK(weft_listener_stop(house.listener));
	turns(loop, 3);
	come(&house);
	before = use_up_numbers();
	OK(weft_listener_start(house.listener, loop, on_client, &house));
	until_ns = weft_after(200 * WEFT_MS);
	for (; weft_now() < until_ns; count++)
		CHECK(weft_loop_run_once(loop, until_ns) >= 0);
	/* The listener pauses for 20 ms after each attempt, and an attempt takes a few
	 * iterations. */
	CHECK(count < 60);
	CHECK_EQ(house.served, 0);
	OK(setrlimit(RLIMIT_NOFILE, &before));
	while (house.served < CLIENTS)
		CHECK(weft_loop_run_once(loop, WEFT_NEVER) >= 0);
	weft_listener_close(house.listener);
	OK(weft_loop_run(loop));
	check_greeted(&house, CLIENTS);
	OK(weft_loop_free(loop));
}
