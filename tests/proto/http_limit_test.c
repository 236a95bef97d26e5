/* http_limit_test.c - requests that a server refuses, sheds and drops. */
#include "http/server/http_server.h"
#include "proto/http_site.h"

static int
count(weft_http *http, void *arg)
{
	struct site *site = arg;

	site->calls++;
	return weft_http_reply(http, 200, NULL, weft_text("hello"), WEFT_NEVER);
}

/* Read to the end.  A failure fails the request. */
static int
swallow(weft_http *http, void *arg)
{
	struct site *site = arg;
	char buf[4096];
	ssize_t n;

	site->calls++;
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0)
		;
	if (n < 0)
		return (int)n;
	return weft_http_reply(http, 200, NULL, weft_text("all"), WEFT_NEVER);
}

static void
prepare(struct site *site)
{
	OK(weft_http_route(site->server, "/{x...}", count, site));
	OK(weft_http_route(site->server, "/swallow", swallow, site));
}

/* --- header sections ------------------------------------------------------- */

static void
visit_with_nonsense(struct site *site)
{
	CHECK(bad_requests_count >= 60);
	for (size_t i = 0; i < bad_requests_count; i++) {
		const struct bad *bad = &bad_requests[i];
		weft_stream *stream = site_enter(site);
		const char *reply;

		say(stream, bad->text, bad->size);
		reply = hear_all(stream);
		if (status_of(reply) != bad->status || site->calls > 0
		    || !strstr(reply, "\r\nConnection: close\r\n"))
			test_fail(__FILE__, __LINE__, "%.*s\ngives %s, not %d; %d calls",
			          (int)bad->size, bad->text, reply, bad->status, site->calls);
		weft_stream_close(stream);
	}
	CHECK_EQ(stats_of(site).bad_requests, bad_requests_count);
	CHECK_EQ(stats_of(site).requests, 0);
}

TEST(malformed_requests_get_their_status_and_reach_no_handler)
{
	site_run(NULL, prepare, visit_with_nonsense);
}

static size_t
add(char *at, const char *text)
{
	memcpy(at, text, strlen(text) + 1);
	return strlen(text);
}

/* Send a request with a path and a header of these sizes.  Returns the status. */
static int
ask_long(struct site *site, size_t target, size_t field)
{
	static char text[9 << 20];
	char *at = text;

	at += add(at, "GET /");
	memset(at, 'x', target);
	at += target;
	at += add(at, " HTTP/1.1\r\n" HOST "X: ");
	memset(at, 'x', field);
	at += field;
	at += add(at, "\r\n\r\n");
	return status_of(ask(site, text, (size_t)(at - text)));
}

static void
visit_with_long_heads(struct site *site)
{
	CHECK_EQ(ask_long(site, 50, 900), 200);
	CHECK_EQ(ask_long(site, 99, 0), 200);
	CHECK_EQ(ask_long(site, 200, 0), 414);
	CHECK_EQ(ask_long(site, 2000, 0), 414);
	CHECK_EQ(ask_long(site, 50, 1000), 431);
	CHECK_EQ(ask_long(site, 50, 20000), 431);
	CHECK_EQ(site->calls, 2);
}

TEST(long_header_sections_and_targets_are_refused)
{
	weft_http_server_opts opts = { .header_max = 1024, .target_max = 100 };

	site_run(&opts, prepare, visit_with_long_heads);
}

static void
visit_with_much_larger_heads(struct site *site)
{
	CHECK_EQ(ask_long(site, 5000, 150000), 200);
	CHECK_EQ(ask_long(site, 5000, 250000), 431);
}

TEST(header_section_may_be_larger_than_the_stream_queue)
{
	weft_http_server_opts opts = { .header_max = 200000 };

	site_run(&opts, prepare, visit_with_much_larger_heads);
}

static void
visit_with_many_fields(struct site *site)
{
	static char text[4096];
	char *at = text;

	at += add(at, GET HOST);
	for (int i = 0; i < 99; i++)
		at += add(at, "X: y\r\n");
	(void)add(at, END);
	CHECK_EQ(status_of(ask(site, text, strlen(text))), 200);
	at += add(at, "X: y\r\n");
	(void)add(at, END);
	CHECK_EQ(status_of(ask(site, text, strlen(text))), 431);
	CHECK_EQ(site->calls, 1);
}

TEST(more_than_a_hundred_headers_are_refused)
{
	site_run(NULL, prepare, visit_with_many_fields);
}

/* --- bodies ---------------------------------------------------------------- */

#define SWALLOW "POST /swallow HTTP/1.1\r\n" HOST

static void
visit_with_large_bodies(struct site *site)
{
	CHECK_EQ(status_of(ASK(site, SWALLOW CL "4\r\n" END "abcd")), 200);
	CHECK_EQ(status_of(ASK(site, SWALLOW CL "5\r\n" END "abcde")), 413);
	CHECK_EQ(site->calls, 1);
	CHECK_EQ(status_of(ASK(site, SWALLOW TE "chunked\r\n" END "4\r\nabcd\r\n0\r\n\r\n")), 200);
	CHECK_EQ(status_of(ASK(site, SWALLOW TE "chunked\r\n" END "3\r\nabc\r\n2\r\nde\r\n")), 413);
	CHECK_EQ(status_of(ASK(site, SWALLOW TE "chunked\r\n" END "x\r\nabc\r\n")), 400);
	CHECK_EQ(
		status_of(ASK(site, SWALLOW TE "chunked\r\n" END "1\r\na\r\n0\r\nHost: x\r\n\r\n")),
		400);
	CHECK_EQ(stats_of(site).bad_requests, 4);
	CHECK_EQ(stats_of(site).failed, 0);
}

TEST(large_and_malformed_bodies_are_refused)
{
	weft_http_server_opts opts = { .body_max = 4 };

	site_run(&opts, prepare, visit_with_large_bodies);
}

static void
visit_with_too_much(struct site *site)
{
	static char rest[8 << 20];
	weft_stream *stream = site_enter(site);

	SAY(stream, SWALLOW CL "999999999\r\n" END);
	fill(weft_stream_fd(stream));
	CHECK_EQ(status_of(hear_all(stream)), 413);
	CHECK_EQ(weft_stream_write(stream, rest, sizeof(rest), WEFT_NEVER), (ssize_t)sizeof(rest));
	weft_stream_close(stream);
	CHECK_EQ(site->calls, 0);
}

TEST(client_that_sends_too_much_gets_the_reply_and_no_reset)
{
	site_run(NULL, prepare, visit_with_too_much);
}

/* The client does not half-close before it reads. */
static void
check_closed(struct site *site, const char *text, int status)
{
	weft_stream *stream = site_enter(site);
	const char *reply;

	say(stream, text, strlen(text));
	reply = hear_all(stream);
	CHECK_EQ(status_of(reply), status);
	CHECK(strstr(reply, "\r\nConnection: close\r\n"));
	weft_stream_close(stream);
}

static int
read_little(weft_http *http, void *arg)
{
	char buf[4];
	ssize_t n = weft_http_read_all(http, buf, sizeof(buf), WEFT_NEVER);

	(void)arg;
	return n < 0 ? (int)n : weft_http_reply(http, 200, NULL, weft_text("little"), WEFT_NEVER);
}

static void
prepare_little(struct site *site)
{
	prepare(site);
	OK(weft_http_route(site->server, "/little", read_little, site));
}

#define LITTLE "POST /little HTTP/1.1\r\n" HOST

static void
visit_to_the_last(struct site *site)
{
	check_closed(site, SWALLOW TE "chunked\r\n" END "x\r\nabc\r\n", 400);
	check_closed(site, SWALLOW CL "100\r\n" END "x", 408);
	check_closed(site, LITTLE CL "70000\r\n" END "abcdefgh", 413);
	check_closed(site, POST CL "70000\r\n" END, 200);
}

TEST(last_reply_has_connection_close)
{
	weft_http_server_opts opts = { .grace_ns = 20 * WEFT_MS };

	site_run(&opts, prepare_little, visit_to_the_last);
}

/* The client continues to send, and still gets the reply. */
static void
visit_regardless(struct site *site)
{
	static char much[256 << 10];
	weft_stream *stream = site_enter(site);

	SAY(stream, SWALLOW CL "20000000\r\n" END);
	say(stream, much, sizeof(much));
	CHECK_EQ(status_of(hear_all(stream)), 413);
	weft_stream_close(stream);
}

TEST(client_that_continues_to_send_still_gets_the_reply)
{
	site_run(NULL, prepare, visit_regardless);
}

/* --- slow clients ------------------------------------------------------------ */

static void
visit_slowly(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, "GET / HTTP");
	CHECK_EQ(status_of(hear_all(stream)), 408);
	weft_stream_close(stream);
	CHECK_EQ(stats_of(site).timed_out, 1);
	CHECK_EQ(site->calls, 0);
	stream = site_enter(site);
	SAY(stream, SWALLOW CL "100\r\n" END "x");
	CHECK_EQ(status_of(hear_all(stream)), 408);
	weft_stream_close(stream);
	CHECK_EQ(stats_of(site).timed_out, 2);
	CHECK_EQ(site->calls, 1);
	/* The handler does not read the body, and the body does not arrive. */
	stream = site_enter(site);
	SAY(stream, POST CL "100\r\n" END "x");
	CHECK_EQ(status_of(hear_all(stream)), 200);
	weft_stream_close(stream);
	CHECK_EQ(stats_of(site).timed_out, 3);
}

TEST(clients_that_send_too_slowly_are_dropped)
{
	/* A header section that is sent at once must not be too late. */
	weft_http_server_opts opts = { .header_ns = WEFT_S, .grace_ns = 20 * WEFT_MS };

	site_run(&opts, prepare, visit_slowly);
}

/* How long the server waits for a peer that moves `bytes` bytes every `every_ns`: an hour at
 * most. */
static uint64_t
patience(uint64_t every_ns, uint64_t bytes)
{
	const struct weft__http_io io = { .rate_min = 128,
		                          .grace_ns = 10 * WEFT_S,
		                          .pause_ns = 60 * WEFT_S };
	struct weft__http_pace pace = { .left_ns = io.grace_ns };
	uint64_t now_ns = 0;

	while (now_ns < HOUR) {
		uint64_t end_ns = weft__http_pace_end(&io, &pace, now_ns);

		if (end_ns < now_ns + every_ns)
			return end_ns;
		weft__http_pace_spend(&io, &pace, every_ns, bytes);
		now_ns += every_ns;
	}
	return HOUR;
}

TEST(clients_at_the_minimum_rate_stay_and_slower_ones_are_dropped)
{
	CHECK_EQ(patience(WEFT_S, 0), 10 * WEFT_S);
	CHECK_EQ(patience(WEFT_S, 64), 39 * WEFT_S / 2);
	CHECK_EQ(patience(WEFT_S, 128), HOUR);
	CHECK_EQ(patience(WEFT_S, 129), HOUR);
	/* It loses 1/128 s in each second, until less than a second is left. */
	CHECK_EQ(patience(WEFT_S, 127), (9 * 128 + 1) * WEFT_S + 127 * WEFT_S / 128);
	CHECK_EQ(patience(WEFT_S / 128, 1), HOUR);
	CHECK(patience(WEFT_S / 127, 1) < HOUR);
	/* The first bytes must arrive within the grace period. */
	CHECK_EQ(patience(11 * WEFT_S, 11 * 200), 10 * WEFT_S);
}

TEST(bytes_moved_earn_a_longer_pause)
{
	const struct weft__http_io io = { .rate_min = 128,
		                          .grace_ns = 10 * WEFT_S,
		                          .pause_ns = 60 * WEFT_S };
	struct weft__http_pace pace = { .left_ns = io.grace_ns };

	weft__http_pace_spend(&io, &pace, 9 * WEFT_S, 20 * 128);
	CHECK_EQ(pace.left_ns, 21 * WEFT_S);
	weft__http_pace_spend(&io, &pace, 0, 1 << 20);
	CHECK_EQ(pace.left_ns, 60 * WEFT_S);
	weft__http_pace_spend(&io, &pace, 61 * WEFT_S, 0);
	CHECK_EQ(pace.left_ns, 0);
}

static weft_event replied;
static int reply_rc;

static int
reply_much(weft_http *http, void *arg)
{
	static char much[1 << 20];

	(void)arg;
	do
		reply_rc = (int)weft_http_write(http, much, sizeof(much), WEFT_NEVER);
	while (reply_rc > 0);
	OK(weft_event_set(&replied));
	return reply_rc;
}

static void
prepare_much(struct site *site)
{
	replied = (weft_event)WEFT_INIT;
	OK(weft_http_route(site->server, "/", reply_much, site));
}

static void
visit_and_not_read(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST END);
	OK(weft_event_wait(&replied, weft_after(HOUR)));
	CHECK_EQ(reply_rc, WEFT_ETIMEDOUT);
	weft_stream_close(stream);
}

TEST(clients_that_do_not_read_are_dropped)
{
	weft_http_server_opts opts = { .grace_ns = 20 * WEFT_MS, .request_ns = 40 * WEFT_MS };

	site_run(&opts, prepare_much, visit_and_not_read);
}

static void
visit_and_idle(struct site *site)
{
	weft_stream *stream = site_enter(site), *other = site_enter(site);

	SAY(stream, GET HOST END);
	(void)hear(stream, "hello");
	CHECK_STR(hear_all(stream), "");
	CHECK_STR(hear_all(other), "");
	CHECK_EQ(stats_of(site).idle_closed, 2);
	weft_stream_close(stream);
	weft_stream_close(other);
}

TEST(idle_connections_are_closed)
{
	weft_http_server_opts opts = { .header_ns = WEFT_S, .idle_ns = 10 * WEFT_MS };

	site_run(&opts, prepare, visit_and_idle);
}

/* Whether the server has closed or reset the connection. */
static bool
is_closed(weft_stream *stream)
{
	const void *data;

	for (int i = 0; i < 3; i++)
		turn_often();
	return weft_stream_peek(stream, 1, &data, WEFT_NOWAIT) != WEFT_ETIMEDOUT;
}

#define MANY 20

static void
visit_among_many(struct site *site)
{
	weft_stream *kept = site_enter(site), *crowd[MANY];

	SAY(kept, GET HOST END);
	(void)hear(kept, "hello");
	for (int i = 0; i < MANY; i++) {
		crowd[i] = site_enter(site);
		if (i % 2) /* the server waits for the rest of a header section */
			SAY(crowd[i], "GET / HTTP");
		turn_often();
	}
	for (int i = 0; i < MANY; i++)
		CHECK_EQ(is_closed(crowd[i]), i < MANY - 3);
	SAY(kept, GET HOST END);
	CHECK_EQ(status_of(hear(kept, "hello")), 200);
	SAY(crowd[MANY - 1], "/1.1\r\n" HOST END);
	CHECK_EQ(status_of(hear(crowd[MANY - 1], "hello")), 200);
	CHECK_EQ(stats_of(site).idle_closed, MANY - 3);
	for (int i = 0; i < MANY; i++)
		weft_stream_close(crowd[i]);
	weft_stream_close(kept);
}

TEST(connection_that_waits_longest_is_closed_for_a_new_one)
{
	weft_http_server_opts opts = { .header_ns = HOUR, .idle_ns = HOUR, .idle_max = 4 };

	site_run(&opts, prepare, visit_among_many);
}

static void
visit_with_proven(struct site *site)
{
	weft_stream *kept[6];

	for (int i = 0; i < 6; i++) {
		kept[i] = site_enter(site);
		SAY(kept[i], GET HOST END);
		(void)hear(kept[i], "hello");
		turn_often();
	}
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(is_closed(kept[i]), i < 2);
		weft_stream_close(kept[i]);
	}
}

TEST(longest_idle_connection_is_closed_among_answered_ones)
{
	weft_http_server_opts opts = { .header_ns = HOUR, .idle_ns = HOUR, .idle_max = 4 };

	site_run(&opts, prepare, visit_with_proven);
}

/* --- load ------------------------------------------------------------------- */

static weft_event entered, released;

static int
wait_for_release(weft_http *http, void *arg)
{
	struct site *site = arg;

	site->calls++;
	OK(weft_event_set(&entered));
	OK(weft_event_wait(&released, WEFT_NEVER));
	return weft_http_reply(http, 200, NULL, weft_text("hello"), WEFT_NEVER);
}

static void
prepare_load(struct site *site)
{
	entered = released = (weft_event)WEFT_INIT;
	OK(weft_http_route(site->server, "/", wait_for_release, site));
}

static void
visit_with_others(struct site *site)
{
	weft_stream *first = site_enter(site), *other = site_enter(site);

	SAY(first, GET HOST END);
	OK(weft_event_wait(&entered, weft_after(HOUR)));
	CHECK_EQ(stats_of(site).active, 1);
	for (int i = 0; i < 2; i++) {
		SAY(other, GET HOST END);
		CHECK_STR(hear(other, "Unavailable\n"),
		          "HTTP/1.1 503 Service Unavailable\r\n"
		          "Content-Type: text/plain\r\n"
		          "Content-Length: 24\r\nRetry-After: 1\r\n\r\n"
		          "503 Service Unavailable\n");
	}
	CHECK_EQ(site->calls, 1);
	OK(weft_event_set(&released));
	CHECK_EQ(status_of(hear(first, "hello")), 200);
	/* The first request has ended when its connection waits again, which is now. */
	OK(weft_yield());
	SAY(other, GET HOST END);
	CHECK_EQ(status_of(hear(other, "hello")), 200);
	CHECK_EQ(stats_of(site).rejected_503, 2);
	weft_stream_close(first);
	weft_stream_close(other);
}

TEST(requests_over_the_concurrency_limit_get_503)
{
	weft_http_server_opts opts = { .requests_max = 1 };

	site_run(&opts, prepare_load, visit_with_others);
}

/* Sleeps for that many milliseconds, and replies 504 if it timed out. */
static int
take_time(weft_http *http, void *arg)
{
	struct site *site = arg;
	const char *ms = weft_http_param(http, "ms");
	int rc = weft_sleep_until(weft_after(strtoull(ms, NULL, 10) * WEFT_MS));

	site->calls++;
	if (rc == 0)
		return weft_http_reply(http, 200, NULL, weft_text("slept"), WEFT_NEVER);
	CHECK_EQ(rc, WEFT_ETIMEDOUT);
	return weft_http_reply(http, 504, NULL, weft_text("woken"), WEFT_NOWAIT);
}

static void
prepare_time(struct site *site)
{
	OK(weft_http_route(site->server, "/{ms}", take_time, site));
}

#define TAKE(ms) "GET /" #ms " HTTP/1.1\r\n" HOST END

static void
visit_one_after_the_other(struct site *site)
{
	const char *reply = ASK(site, TAKE(100) TAKE(100) TAKE(100) TAKE(100) TAKE(100) TAKE(100)
	                                      TAKE(100) TAKE(100));

	CHECK_EQ(count_of(reply, "200 OK"), 8);
	reply = ASK(site, TAKE(5000) TAKE(1) TAKE(5000) TAKE(1));
	CHECK_EQ(count_of(reply, "504 "), 2);
	CHECK_EQ(count_of(reply, "200 OK"), 2);
	CHECK_EQ(site->calls, 12);
	CHECK_EQ(stats_of(site).failed, 0);
}

TEST(each_handler_of_pipelined_requests_has_its_own_deadline)
{
	weft_http_server_opts opts = { .request_ns = 700 * WEFT_MS };

	site_run(&opts, prepare_time, visit_one_after_the_other);
}

static int
wait_for_ever(weft_http *http, void *arg)
{
	(void)http, (void)arg;
	return weft_sleep_until(WEFT_NEVER);
}

static void
prepare_waiting(struct site *site)
{
	OK(weft_http_route(site->server, "/", wait_for_ever, site));
}

static void
visit_waiting(struct site *site)
{
	CHECK_EQ(status_of(ASK(site, GET HOST END GET HOST END)), 500);
	CHECK_EQ(stats_of(site).failed, 2);
}

TEST(handler_has_a_deadline)
{
	weft_http_server_opts opts = { .request_ns = 10 * WEFT_MS };

	site_run(&opts, prepare_waiting, visit_waiting);
}

/* --- defaults --------------------------------------------------------------- */

/* Replies with a local array of 128 KiB. */
static int
use_much_stack(weft_http *http, void *arg)
{
	char much[128 << 10];

	(void)arg;
	memset(much, 'a', sizeof(much));
	return weft_http_reply(http, 200, NULL, (weft_span){ much, sizeof(much) }, WEFT_NEVER);
}

static void
prepare_much_stack(struct site *site)
{
	OK(weft_http_route(site->server, "GET /", use_much_stack, NULL));
}

static void
visit_much_stack(struct site *site)
{
	CHECK_EQ(status_of(ASK(site, GET HOST END)), 200);
}

TEST(handlers_have_the_stack_size_of_the_server_options)
{
	weft_http_server_opts opts = { .stack_bytes = 256 << 10 };

	site_run(&opts, prepare_much_stack, visit_much_stack);
}

TEST(stack_of_handlers_is_at_most_a_gibibyte)
{
	weft_http_server_opts opts = { .stack_bytes = SIZE_MAX };
	weft_http_server *server = weft_http_server_new(&opts);

	CHECK_EQ(server->opts.stack_bytes, (size_t)1 << 30);
	OK(weft_http_server_free(server));
}

/* The defaults documented in weft/http.h.  The simulation tests those that take time. */
TEST(server_without_options_has_the_documented_limits)
{
	const weft_http_server_opts none = WEFT_INIT;
	const weft_http_server_opts *given[] = { NULL, &none };

	for (int i = 0; i < 2; i++) {
		weft_http_server *server = weft_http_server_new(given[i]);

		CHECK_EQ(server->opts.header_ns, 10 * WEFT_S);
		CHECK_EQ(server->opts.idle_ns, 60 * WEFT_S);
		CHECK_EQ(server->opts.request_ns, 60 * WEFT_S);
		CHECK_EQ(server->opts.grace_ns, 10 * WEFT_S);
		CHECK_EQ(server->opts.rate_min, 128);
		CHECK_EQ(server->opts.requests_max, 10000);
		OK(weft_http_server_free(server));
	}
}

static void
visit_at_the_limits(struct site *site)
{
	const size_t rest = strlen(GET HOST "X: \r\n\r\n"), most = 32 << 10;

	CHECK_EQ(ask_long(site, 0, most - rest), 200);
	CHECK_EQ(ask_long(site, 0, most - rest + 1), 431);
	CHECK_EQ(ask_long(site, 8191, 0), 200); /* plus the slash */
	CHECK_EQ(ask_long(site, 8192, 0), 414);
	CHECK_EQ(site->calls, 2);
	CHECK_EQ(status_of(ASK(site, POST "Content-Length: 16777216\r\n\r\n")), 200);
	CHECK_EQ(status_of(ASK(site, POST "Content-Length: 16777217\r\n\r\n")), 413);
}

TEST(header_target_and_body_limits_are_exact_by_default)
{
	site_run(NULL, prepare, visit_at_the_limits);
}
