/* http_restart_test.c - servers on the same port replace each other repeatedly while clients
 * send requests: no request may be lost.
 *
 * A client has one request in flight at a time.  After "Connection: close" it sends the next
 * request on a new connection.  Any other end of a connection is a lost request.  Every other
 * client uses a new connection for each request.  WEFT_REQUESTS is the number of requests.
 */
#include <stdlib.h>
#include <weft/http.h>
#include "unit/threadlet/sched.h"

#define CLIENTS  16
#define REQUESTS 4000
#define RESTARTS 20

struct town {
	char address[WEFT_ADDR_TEXT_MAX];
	bool has_port;                  /* the system has chosen one */
	uint32_t asked, answered, most; /* requests; atomic */
};

struct place {
	weft_http_server *server;
	weft_listener *listener;
	weft_event drained;
};

/* --- servers ---------------------------------------------------------------- */

static int
greet(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, "text/plain", weft_text("hello"), WEFT_NEVER);
}

static int
serve(void *arg)
{
	struct place *place = arg;

	CHECK_EQ(weft_http_serve(place->server, place->listener, WEFT_NEVER), WEFT_ESHUTDOWN);
	OK(weft_event_set(&place->drained));
	return 0;
}

static void
open_place(struct place *place, struct town *town)
{
	weft_listener_opts listen = { .reuse_port = true };
	/* On a busy machine, a client may be delayed for long. */
	weft_http_server_opts opts = { .drain_ns = HOUR, .idle_ns = HOUR, .header_ns = HOUR };
	weft_addr addr;

	place->server = weft_http_server_new(&opts);
	CHECK(place->server);
	OK(weft_http_route(place->server, "GET /", greet, NULL));
	OK(weft_listener_open(town->address, &listen, &place->listener));
	if (!town->has_port) { /* clients read it from then on */
		OK(weft_listener_local(place->listener, &addr));
		CHECK(weft_addr_format(&addr, town->address, sizeof(town->address)) > 0);
		town->has_port = true;
	}
	place->drained = (weft_event)WEFT_INIT;
	CHECK(weft_go(serve, place) > 0);
	OK(weft_yield()); /* it serves now */
}

static void
end_place(struct place *place)
{
	weft_listener_close(place->listener);
	OK(weft_event_wait(&place->drained, WEFT_NEVER));
	OK(weft_http_server_free(place->server));
}

static void
wait_for(const struct town *town, uint32_t answered)
{
	while (__atomic_load_n(&town->answered, __ATOMIC_ACQUIRE) < answered)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
}

static void
restart_often(struct town *town, struct place places[2])
{
	for (uint32_t i = 1; i <= RESTARTS; i++) {
		wait_for(town, i * (town->most / (RESTARTS + 1)));
		open_place(&places[i % 2], town);
		end_place(&places[(i + 1) % 2]);
	}
	wait_for(town, town->most);
	end_place(&places[RESTARTS % 2]);
}

/* --- clients ---------------------------------------------------------------- */

/* Returns whether the connection may be used again. */
static bool
ask(weft_stream *stream, bool once)
{
	static const char keep[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	static const char last[] = "GET / HTTP/1.1\r\nHost: a\r\n"
				   "Connection: close\r\n\r\n";
	const char *text = once ? last : keep;
	char reply[512];
	ssize_t n;

	CHECK_EQ(weft_stream_write(stream, text, strlen(text), WEFT_NEVER), strlen(text));
	n = weft_stream_read_until(stream, "hello", reply, sizeof(reply) - 1, WEFT_NEVER);
	if (n <= 0)
		test_fail(__FILE__, __LINE__, "a request is lost: %s",
		          n == 0 ? "end" : weft_strerror((int)n));
	reply[n] = '\0';
	CHECK(memcmp(reply, "HTTP/1.1 200", 12) == 0);
	return !strstr(reply, "Connection: close");
}

static int
ask_often(struct town *town, bool once)
{
	weft_stream *stream = NULL;

	while (__atomic_add_fetch(&town->asked, 1, __ATOMIC_RELAXED) <= town->most) {
		if (!stream)
			OK(weft_stream_connect(town->address, NULL, &stream, WEFT_NEVER));
		if (!ask(stream, once)) {
			weft_stream_close(stream);
			stream = NULL;
		}
		__atomic_add_fetch(&town->answered, 1, __ATOMIC_RELEASE);
	}
	weft_stream_close(stream);
	return 0;
}

static int
client_once(void *arg)
{
	return ask_often(arg, true);
}

static int
client_kept(void *arg)
{
	return ask_often(arg, false);
}

/* --- clients and servers ---------------------------------------------------- */

static int
live(void *arg)
{
	struct town *town = arg;
	weft_scope scope;
	weft_go_opts opts = {
		.scope = &scope,
		.loop = weft_runtime_loop(weft_runtime_current(), 1),
	};
	struct place places[2];

	open_place(&places[0], town);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < CLIENTS; i++)
		CHECK(weft_go_with(&opts, i % 2 ? client_once : client_kept, town) > 0);
	restart_often(town, places);
	return weft_scope_close(&scope);
}

TEST(no_request_is_lost_while_servers_replace_each_other)
{
	const char *most = getenv("WEFT_REQUESTS");
	weft_runtime_opts opts = { .loops = 2 };
	struct town town = {
		.address = "tcp://127.0.0.1:0",
		.most = most ? (uint32_t)strtoul(most, NULL, 10) : REQUESTS,
	};

	if (TEST_PORTABLE)
		test_skip("this system cannot ignore SYN segments");
	OK(weft_main(&opts, live, &town));
	CHECK_EQ(town.answered, town.most);
}
