/* http_share_test.c - one HTTP server that each loop serves at the same address. */
#include <weft/http.h>
#include "unit/threadlet/sched.h"

#define LOOPS  2
#define GUESTS 64

struct place {
	struct house *house;
	weft_listener *listener;
	weft_loop *loop;
	int served; /* requests, counted on its loop's thread */
	int result;
};

struct house {
	weft_http_server *server;
	struct place places[LOOPS];
	char address[WEFT_ADDR_TEXT_MAX];
};

static int
greet(weft_http *http, void *arg)
{
	struct house *house = arg;

	for (int i = 0; i < LOOPS; i++) /* each loop writes only its own */
		if (house->places[i].loop == weft_loop_current())
			house->places[i].served++;
	return weft_http_reply(http, 200, "text/plain", weft_text("hello"), WEFT_NEVER);
}

static int
serve(void *arg)
{
	struct place *place = arg;

	place->result = weft_http_serve(place->house->server, place->listener, WEFT_NEVER);
	return 0;
}

static int
close_listener(void *arg)
{
	weft_listener_close(((struct place *)arg)->listener);
	return 0;
}

/* Two requests on one connection: it stays on the loop that accepted it. */
static void
visit(const struct house *house)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	char reply[512];
	weft_stream *stream;

	OK(weft_stream_connect(house->address, NULL, &stream, WEFT_NEVER));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(weft_stream_write(stream, request, sizeof(request) - 1, WEFT_NEVER),
		         sizeof(request) - 1);
		CHECK(weft_stream_read_until(stream, "hello", reply, sizeof(reply), WEFT_NEVER)
		      > 0);
		CHECK(memcmp(reply, "HTTP/1.1 200", 12) == 0);
	}
	weft_stream_close(stream);
}

static void
open_places(struct house *house)
{
	weft_listener_opts opts = { .reuse_port = true };
	const char *address = "tcp://127.0.0.1:0";
	weft_addr addr;

	for (uint32_t i = 0; i < LOOPS; i++) {
		struct place *place = &house->places[i];

		place->house = house;
		place->loop = weft_runtime_loop(weft_runtime_current(), i);
		OK(weft_listener_open(address, &opts, &place->listener));
		OK(weft_listener_local(place->listener, &addr));
		CHECK(weft_addr_format(&addr, house->address, sizeof(house->address)) > 0);
		address = house->address;
	}
}

static void
go_at_each(struct house *house, weft_scope *scope, weft_threadlet_fn fn)
{
	for (int i = 0; i < LOOPS; i++) {
		weft_go_opts opts = { .scope = scope, .loop = house->places[i].loop };

		CHECK(weft_go_with(&opts, fn, &house->places[i]) > 0);
	}
}

static int
visit_many(void *arg)
{
	struct house *house = arg;
	weft_scope scope;

	open_places(house);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	go_at_each(house, &scope, serve);
	for (int i = 0; i < GUESTS; i++)
		visit(house);
	go_at_each(house, &scope, close_listener);
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(several_loops_serve_one_http_server_at_one_address)
{
	weft_runtime_opts opts = { .loops = LOOPS };
	struct house house = { .server = weft_http_server_new(NULL) };
	struct weft_http_server_stats stats;

	CHECK(house.server);
	OK(weft_http_route(house.server, "GET /", greet, &house));
	OK(weft_main(&opts, visit_many, &house));
	weft_http_server_stats(house.server, &stats);
	CHECK_EQ(stats.connections, GUESTS);
	CHECK_EQ(stats.requests, 2 * GUESTS);
	CHECK_EQ(stats.open, 0);
	CHECK_EQ(house.places[0].served + house.places[1].served, 2 * GUESTS);
	for (int i = 0; i < LOOPS; i++) {
		/* The kernel distributes by a hash of the ports.  The probability that all 64
		 * go to one loop is 2^-63. */
		CHECK(house.places[i].served > 0);
		CHECK_EQ(house.places[i].served % 2, 0);
		CHECK_EQ(house.places[i].result, WEFT_ESHUTDOWN);
	}
	OK(weft_http_server_free(house.server));
}
