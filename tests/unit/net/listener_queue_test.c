/* listener_queue_test.c - those who wait at a listener's door: how many are let in at a time,
 * when it is closed, and when there are no descriptors for them. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/sys.h"
#include "net/addr.h"
#include "unit/threadlet/crew.h"

#define GUESTS 20
#define ROOM   4

struct house {
	weft_listener *listener;
	weft_addr addr;
	int guests[GUESTS]; /* who came, and is not known of yet */
	int served, ends, error;
};

static void
open_house(struct house *house, const weft_listener_opts *opts)
{
	*house = (struct house){ .served = 0 };
	OK(weft_listener_open("tcp://127.0.0.1:0", opts, &house->listener));
	OK(weft_listener_local(house->listener, &house->addr));
}

/* Into the queue of the kernel; nothing of the library runs meanwhile. */
static void
come(struct house *house)
{
	for (int i = 0; i < GUESTS; i++) {
		house->guests[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		OK(connect(house->guests[i], weft__addr_sockaddr(&house->addr), house->addr.size));
	}
}

/* The first so many were greeted and have seen the end; the others a reset. */
static void
check_greeted(const struct house *house, int count)
{
	char buf[8];

	for (int i = 0; i < GUESTS; i++) {
		ssize_t n = recv(house->guests[i], buf, sizeof(buf), 0);

		if (i < count) {
			CHECK_EQ(n, 1);
			CHECK_EQ(recv(house->guests[i], buf, sizeof(buf), 0), 0);
		} else {
			CHECK_EQ(n, -1);
			CHECK_EQ(errno, ECONNRESET);
		}
		OK(close(house->guests[i]));
	}
}

/* --- closed, and served --------------------------------------------------- */

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

	house->error = weft_listener_serve(house->listener, greet, house, WEFT_NEVER);
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

TEST(who_is_queued_as_a_listener_closes_is_served)
{
	struct house house;

	open_house(&house, NULL);
	run_threadlet(close_on_all, &house);
	CHECK_EQ(house.error, WEFT_ESHUTDOWN);
	CHECK_EQ(house.served, GUESTS);
	check_greeted(&house, GUESTS);
}

TEST(who_is_queued_above_the_limit_as_a_listener_closes_is_dropped)
{
	weft_listener_opts opts = { .connections_max = ROOM };
	struct house house;

	open_house(&house, &opts);
	run_threadlet(close_on_all, &house);
	CHECK_EQ(house.error, WEFT_ESHUTDOWN);
	CHECK_EQ(house.served, ROOM);
	check_greeted(&house, ROOM);
}

/* --- closed, and told to a callback --------------------------------------- */

static void
on_guest(weft_listener *listener, weft_stream *peer, int error, void *arg)
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
	OK(weft_listener_start(house.listener, loop, on_guest, &house));
	turns(loop, 3);
	come(&house);
	weft_listener_close(house.listener);
	CHECK_EQ(house.served + house.ends, 0); /* not from inside of a call */
	OK(weft_loop_run(loop));
	CHECK_EQ(house.served, served);
	CHECK_EQ(house.ends, 1);
	CHECK_EQ(house.error, WEFT_ESHUTDOWN);
	check_greeted(&house, served);
	OK(weft_loop_free(loop));
}

TEST(a_callback_is_told_of_all_who_are_queued_as_its_listener_closes)
{
	close_on_all_by_callback(NULL, GUESTS);
}

TEST(a_callback_is_told_of_as_many_as_there_is_room_for_as_its_listener_closes)
{
	weft_listener_opts opts = { .connections_max = ROOM };

	close_on_all_by_callback(&opts, ROOM);
}

/* --- connections that died ------------------------------------------------ */

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

/* Each other one has died in the queue. */
static int
accept_half(int fd)
{
	return ++hooked.calls % 2 ? -ECONNABORTED : hooked.before->accept(fd);
}

TEST(a_connection_that_died_in_the_queue_does_not_hide_the_others)
{
	hook();
	hooked.table.accept = accept_half;
	close_on_all_by_callback(NULL, GUESTS);
	unhook();
}

/* --- how many ------------------------------------------------------------- */

TEST(a_turn_accepts_no_more_than_its_budget)
{
	weft_listener_opts opts = { .accept_budget = 2 };
	weft_loop *loop = make();
	struct house house;
	int before = 0;

	open_house(&house, &opts);
	OK(weft_listener_start(house.listener, loop, on_guest, &house));
	turns(loop, 3);
	come(&house);
	while (house.served < GUESTS) {
		turn(loop);
		CHECK(house.served <= before + 2);
		before = house.served;
	}
	weft_listener_close(house.listener);
	OK(weft_loop_run(loop));
	check_greeted(&house, GUESTS);
	OK(weft_loop_free(loop));
}

static int
note_backlog(int fd, int backlog)
{
	hooked.backlog = backlog;
	return hooked.before->listen(fd, backlog);
}

TEST(the_backlog_is_what_was_asked_for)
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

/* --- without descriptors -------------------------------------------------- */

/* Let there be no number for another descriptor. */
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

TEST(a_process_without_descriptors_does_not_spin)
{
	weft_loop *loop = make();
	struct rlimit before;
	struct house house;
	uint64_t until_ns;
	int count = 0;

	open_house(&house, NULL);
	OK(weft_listener_start(house.listener, loop, on_guest, &house));
	turns(loop, 3);
	/* A ring remembers the limit that held when an accept was started. */
	OK(weft_listener_stop(house.listener));
	turns(loop, 3);
	come(&house);
	before = use_up_numbers();
	OK(weft_listener_start(house.listener, loop, on_guest, &house));
	until_ns = weft_after(200 * WEFT_MS);
	for (; weft_now() < until_ns; count++)
		CHECK(weft_loop_run_once(loop, until_ns) >= 0);
	/* It rests 20 ms after each try, which takes a few turns. */
	CHECK(count < 60);
	CHECK_EQ(house.served, 0);
	OK(setrlimit(RLIMIT_NOFILE, &before));
	while (house.served < GUESTS)
		CHECK(weft_loop_run_once(loop, WEFT_NEVER) >= 0);
	weft_listener_close(house.listener);
	OK(weft_loop_run(loop));
	check_greeted(&house, GUESTS);
	OK(weft_loop_free(loop));
}
