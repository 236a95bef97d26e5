/* listener_share_test.c - several listeners at one address, one for each loop. */
#include <string.h>
#include "unit/threadlet/sched.h"

#define LOOPS   2
#define CLIENTS 64

struct house {
	struct counter {
		struct house *house;
		weft_listener *listener;
		weft_loop *loop;
		int served; /* written by its loop's thread only */
		int result;
	} counters[LOOPS];
	char address[WEFT_ADDR_TEXT_MAX];
};

/* A connection is served on the loop that accepted it. */
static int
greet(weft_stream *peer, void *arg)
{
	struct counter *counter = arg;

	CHECK(weft_loop_current() == counter->loop);
	counter->served++;
	CHECK_EQ(weft_stream_write(peer, "hello", 5, WEFT_NEVER), 5);
	weft_stream_close(peer);
	return 0;
}

static int
serve(void *arg)
{
	struct counter *counter = arg;

	counter->loop = weft_loop_current();
	counter->result = weft_listener_serve(counter->listener, NULL, greet, counter, WEFT_NEVER);
	return 0;
}

static int
close_listener(void *arg)
{
	weft_listener_close(((struct counter *)arg)->listener);
	return 0;
}

static void
visit(const struct house *house)
{
	weft_stream *stream;
	char buf[5];

	OK(weft_stream_connect(house->address, NULL, &stream, WEFT_NEVER));
	CHECK_EQ(weft_stream_read_exact(stream, buf, 5, WEFT_NEVER), 5);
	weft_stream_close(stream);
}

static void
open_all(struct house *house)
{
	weft_listener_opts opts = { .reuse_port = true };
	const char *address = "tcp://127.0.0.1:0";
	weft_addr addr;

	for (int i = 0; i < LOOPS; i++) {
		house->counters[i].house = house;
		OK(weft_listener_open(address, &opts, &house->counters[i].listener));
		OK(weft_listener_local(house->counters[i].listener, &addr));
		CHECK(weft_addr_format(&addr, house->address, sizeof(house->address)) > 0);
		address = house->address;
	}
}

static int
visit_many(void *arg)
{
	struct house *house = arg;
	weft_runtime *runtime = weft_runtime_current();
	weft_scope scope;

	open_all(house);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (uint32_t i = 0; i < LOOPS; i++) {
		weft_go_opts opts = { .scope = &scope, .loop = weft_runtime_loop(runtime, i) };

		CHECK(weft_go_with(&opts, serve, &house->counters[i]) > 0);
	}
	for (int i = 0; i < CLIENTS; i++)
		visit(house);
	for (uint32_t i = 0; i < LOOPS; i++) {
		weft_go_opts opts = { .scope = &scope, .loop = weft_runtime_loop(runtime, i) };

		CHECK(weft_go_with(&opts, close_listener, &house->counters[i]) > 0);
	}
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(each_loop_can_have_a_listener_at_one_address)
{
	weft_runtime_opts opts = { .loops = LOOPS };
	struct house house = { .address = "" };

	OK(weft_main(&opts, visit_many, &house));
	CHECK_EQ(house.counters[0].served + house.counters[1].served, CLIENTS);
	for (int i = 0; i < LOOPS; i++) {
		/* The kernel distributes connections by a hash of the ports.  The chance that
		 * all 64 reach one listener is one in 2^63. */
		CHECK(house.counters[i].served > 0);
		CHECK_EQ(house.counters[i].result, WEFT_ESHUTDOWN);
	}
}

TEST(port_is_shared_only_if_every_listener_requests_it)
{
	weft_listener_opts opts = { .reuse_port = true };
	weft_listener *one, *other;
	char address[WEFT_ADDR_TEXT_MAX];
	weft_addr addr;

	OK(weft_listener_open("tcp://127.0.0.1:0", &opts, &one));
	OK(weft_listener_local(one, &addr));
	CHECK(weft_addr_format(&addr, address, sizeof(address)) > 0);
	CHECK_EQ(weft_listener_open(address, NULL, &other), WEFT_EADDRINUSE);
	weft_listener_close(one);
	CHECK_EQ(weft_listener_open("unix:@weft-share", &opts, &other), WEFT_EINVAL);
	CHECK(strstr(weft_detail(), "reuse_port needs a tcp or tls address") != NULL);
}
