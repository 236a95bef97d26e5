/* http_life_test.c - how connections and servers end; upgrades and event streams. */
#include "proto/http_site.h"

static weft_event entered, released;
static int handler_rc;

static int
hello(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, NULL, weft_text("hello"), WEFT_NEVER);
}

static int
wait_for_release(weft_http *http, void *arg)
{
	(void)arg;
	OK(weft_event_set(&entered));
	handler_rc = weft_event_wait(&released, WEFT_NEVER);
	if (handler_rc < 0)
		return handler_rc;
	return weft_http_reply(http, 200, NULL, weft_text("waited"), WEFT_NEVER);
}

static int
echo(weft_http *http, void *arg)
{
	char buf[100];
	ssize_t n;

	(void)arg;
	while ((n = weft_http_read(http, buf, sizeof(buf), WEFT_NEVER)) > 0) {
		n = weft_http_write(http, buf, (size_t)n, WEFT_NEVER);
		if (n < 0)
			return (int)n;
	}
	return (int)n;
}

static void
prepare(struct site *site)
{
	entered = released = (weft_event)WEFT_INIT;
	handler_rc = 1;
	OK(weft_http_route(site->server, "/", hello, site));
	OK(weft_http_route(site->server, "/wait", wait_for_release, site));
	OK(weft_http_route(site->server, "/echo", echo, site));
}

#define WAIT "GET /wait HTTP/1.1\r\n" HOST END

/* --- draining ---------------------------------------------------------------- */

static void
visit_drained(struct site *site)
{
	weft_stream *idle = site_enter(site), *busy = site_enter(site);
	weft_stream *silent = site_enter(site);
	const char *reply;

	SAY(idle, GET HOST END);
	(void)hear(idle, "hello");
	SAY(busy, WAIT GET HOST END);
	OK(weft_event_wait(&entered, weft_after(HOUR)));
	site_close(site);
	CHECK_STR(hear_all(idle), "");
	CHECK_STR(hear_all(silent), "");
	CHECK_EQ(site->served, 1);
	OK(weft_event_set(&released));
	reply = hear_all(busy);
	CHECK(strstr(reply, "Connection: close\r\n"));
	CHECK_EQ(count_of(reply, "HTTP/1.1"), 1);
	weft_stream_close(idle);
	weft_stream_close(silent);
	weft_stream_close(busy);
}

TEST(closing_the_listener_drains_requests_in_flight)
{
	weft_http_server_opts opts = { .drain_ns = 20 * WEFT_MS };

	site_run(&opts, prepare, visit_drained);
}

static void
visit_forced(struct site *site)
{
	weft_stream *busy = site_enter(site);

	SAY(busy, WAIT);
	OK(weft_event_wait(&entered, weft_after(HOUR)));
	site_close(site);
	CHECK_EQ(status_of(hear_all(busy)), 500);
	CHECK_EQ(handler_rc, WEFT_ECANCELED);
	weft_stream_close(busy);
}

static void
prepare_forced(struct site *site)
{
	prepare(site);
	site->until_ns = weft_after(WEFT_S); /* its visitor has connected by then */
}

TEST(deadline_of_serve_forces_the_drain)
{
	site_run(NULL, prepare_forced, visit_forced);
}

static void
visit_cancelled(struct site *site)
{
	weft_stream *busy = site_enter(site);

	SAY(busy, WAIT);
	OK(weft_event_wait(&entered, weft_after(HOUR)));
	OK(weft_cancel(site->serving));
	OK(weft_yield());
	OK(weft_event_set(&released));
	CHECK_EQ(status_of(hear_all(busy)), 200);
	OK(handler_rc);
	weft_stream_close(busy);
	while (site->served == 1)
		OK(weft_yield());
	CHECK_EQ(site->served, WEFT_ECANCELED);
}

TEST(canceled_server_drains_too)
{
	site_run(NULL, prepare, visit_cancelled);
}

/* --- upgrades ------------------------------------------------------------------ */

static int
upgrade(weft_http *http, void *arg)
{
	weft_stream *stream;
	char buf[64];
	ssize_t n;

	(void)arg;
	CHECK_EQ(weft_http_upgrade(http, "other", &stream, WEFT_NEVER), WEFT_EINVAL);
	OK(weft_http_set_header(http, "Sec-Word", "x"));
	OK(weft_http_upgrade(http, "echo", &stream, WEFT_NEVER));
	CHECK_EQ(weft_http_write(http, "x", 1, WEFT_NEVER), WEFT_EALREADY);
	while ((n = weft_stream_read(stream, buf, sizeof(buf), WEFT_NEVER)) > 0)
		CHECK_EQ(weft_stream_write(stream, buf, (size_t)n, WEFT_NEVER), n);
	handler_rc = (int)n;
	weft_stream_close(stream);
	return 0;
}

static int
upgrade_unasked(weft_http *http, void *arg)
{
	weft_stream *stream;

	CHECK_EQ(weft_http_upgrade(http, "echo", &stream, WEFT_NEVER), WEFT_EINVAL);
	return hello(http, arg);
}

static void
prepare_upgrade(struct site *site)
{
	OK(weft_http_route(site->server, "/", upgrade, site));
	OK(weft_http_route(site->server, "/unasked", upgrade_unasked, site));
}

#define UPGRADE_TO "Connection: Upgrade\r\nUpgrade: x, Echo\r\n"

static void
visit_upgrade(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST UPGRADE_TO END "early");
	CHECK_STR(hear(stream, END END),
	          "HTTP/1.1 101 Switching Protocols\r\n"
	          "Connection: Upgrade\r\nSec-Word: x\r\nUpgrade: echo\r\n" END);
	CHECK_STR(hear(stream, "early"), "early");
	SAY(stream, "late");
	CHECK_STR(hear(stream, "late"), "late");
	OK(weft_stream_shutdown(stream, WEFT_NEVER));
	CHECK_STR(hear_all(stream), "");
	OK(handler_rc);
	weft_stream_close(stream);
	CHECK_EQ(status_of(ASK(site, "GET /unasked HTTP/1.1\r\n" HOST END)), 200);
}

TEST(upgraded_stream_includes_bytes_received_early)
{
	site_run(NULL, prepare_upgrade, visit_upgrade);
}

static void
visit_upgrade_drained(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST UPGRADE_TO END "early");
	(void)hear(stream, "early");
	site_close(site);
	CHECK_STR(hear_all(stream), "");
	CHECK_EQ(handler_rc, WEFT_ECANCELED);
	weft_stream_close(stream);
}

TEST(drain_cancels_the_handler_of_an_upgraded_connection)
{
	site_run(NULL, prepare_upgrade, visit_upgrade_drained);
}

/* --- events ------------------------------------------------------------------- */

static int
send_events(weft_http *http, void *arg)
{
	int rc;

	(void)arg;
	CHECK_EQ(weft_http_send_event(http, "a\nb", "x", WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_send_event(http, "a\rb", "x", WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_http_send_event(http, "a", NULL, WEFT_NEVER), WEFT_EINVAL);
	rc = weft_http_send_event(http, NULL, "one", WEFT_NEVER);
	if (rc == 0)
		rc = weft_http_send_event(http, "two", "a\nb\r\nc\rd\n\n", WEFT_NEVER);
	if (rc == 0)
		rc = weft_http_send_event(http, NULL, "", WEFT_NEVER);
	OK(weft_event_set(&entered));
	if (rc == 0)
		rc = weft_event_wait(&released, WEFT_NEVER);
	handler_rc = rc;
	if (rc < 0)
		CHECK(weft_http_send_event(http, NULL, "gone", WEFT_NEVER) < 0);
	return rc;
}

static void
prepare_events(struct site *site)
{
	entered = released = (weft_event)WEFT_INIT;
	handler_rc = 1;
	OK(weft_http_route(site->server, "/", send_events, site));
}

#define EVENTS                                                   \
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" \
	"Transfer-Encoding: chunked\r\nCache-Control: no-store\r\n" END

static weft_stream *
begin_events(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST END);
	CHECK_STR(hear(stream, "8\r\ndata: \n\n\r\n"),
	          EVENTS "b\r\ndata: one\n\n\r\n"
	                 "3a\r\nevent: two\ndata: a\ndata: b\ndata: c\n"
	                 "data: d\ndata: \ndata: \n\n\r\n"
	                 "8\r\ndata: \n\n\r\n");
	return stream;
}

static void
visit_events(struct site *site)
{
	weft_stream *stream = begin_events(site);

	OK(weft_event_set(&released));
	CHECK_STR(hear(stream, END END), "0\r\n\r\n");
	OK(handler_rc);
	weft_stream_close(stream);
	/* A HEAD request has no body, so events fail. */
	CHECK_STR(ASK(site, "HEAD / HTTP/1.1\r\n" HOST END), EVENTS);
	CHECK_EQ(handler_rc, WEFT_EPIPE);
}

TEST(events_are_sent_line_by_line)
{
	site_run(NULL, prepare_events, visit_events);
}

static void
visit_after_events(struct site *site)
{
	weft_stream *stream = begin_events(site);

	SAY(stream, "GET /none HTTP/1.1\r\n" HOST END);
	OK(weft_event_set(&released));
	CHECK_STR(hear(stream, END END), "0\r\n\r\n");
	CHECK_EQ(status_of(hear(stream, "\r\n")), 404);
	weft_stream_close(stream);
}

TEST(request_pipelined_behind_events_is_answered)
{
	site_run(NULL, prepare_events, visit_after_events);
}

static void
visit_for_long(struct site *site)
{
	weft_stream *stream = begin_events(site);

	OK(weft_sleep_until(weft_after(60 * WEFT_MS)));
	CHECK_EQ(handler_rc, 1);
	CHECK_EQ(stats_of(site).requests, 1);
	OK(weft_event_set(&released));
	CHECK_STR(hear(stream, END END), "0\r\n\r\n");
	OK(handler_rc);
	weft_stream_close(stream);
}

TEST(event_stream_outlasts_the_handler_deadline)
{
	weft_http_server_opts opts = { .request_ns = 20 * WEFT_MS };

	site_run(&opts, prepare_events, visit_for_long);
}

static void
visit_and_vanish(struct site *site)
{
	weft_stream *stream = begin_events(site);

	weft_stream_reset(stream);
	while (handler_rc == 1)
		OK(weft_yield());
	CHECK_EQ(handler_rc, WEFT_ECANCELED);
	handler_rc = 1;
	stream = begin_events(site);
	SAY(stream, "something");
	weft_stream_close(stream);
	while (handler_rc == 1)
		OK(weft_yield());
	CHECK_EQ(handler_rc, WEFT_ECANCELED);
}

TEST(event_client_that_disconnects_is_noticed)
{
	site_run(NULL, prepare_events, visit_and_vanish);
}

#define UNREAD_CHUNKS "POST / HTTP/1.1\r\n" HOST TE "chunked\r\n" END

static weft_stream *
begin_unread(struct site *site, const char *text)
{
	weft_stream *stream = site_enter(site);

	handler_rc = 1;
	entered = (weft_event)WEFT_INIT;
	say(stream, text, strlen(text));
	OK(weft_event_wait(&entered, weft_after(HOUR)));
	return stream;
}

static void
wait_cancelled(void)
{
	while (handler_rc == 1)
		OK(weft_yield());
	CHECK_EQ(handler_rc, WEFT_ECANCELED);
}

/* The handler does not read the body, and more of it may arrive. */
static void
visit_with_a_body_and_vanish(struct site *site)
{
	static char much[32 << 10];
	weft_stream *stream;

	stream = begin_unread(site, POST CL "4\r\n" END "abcd");
	weft_stream_reset(stream);
	wait_cancelled();
	stream = begin_unread(site, POST CL "40000\r\n" END "abcd");
	say(stream, much, sizeof(much));
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	CHECK_EQ(handler_rc, 1);
	weft_stream_close(stream);
	wait_cancelled();
	stream = begin_unread(site, UNREAD_CHUNKS "4\r\nabcd\r\n4");
	SAY(stream, "\r\nefgh\r\n0\r\n\r\n" GET);
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	CHECK_EQ(handler_rc, 1);
	weft_stream_close(stream);
	wait_cancelled();
	/* More than the server keeps for later. */
	stream = begin_unread(site, GET HOST END);
	say(stream, much, sizeof(much));
	wait_cancelled();
	weft_stream_close(stream);
}

TEST(event_client_that_disconnects_is_noticed_behind_unread_data)
{
	site_run(NULL, prepare_events, visit_with_a_body_and_vanish);
}

/* A body that was not read is not taken for a request. */
static void
visit_with_a_body(struct site *site)
{
	weft_stream *stream = begin_unread(site, UNREAD_CHUNKS "4\r\nabcd\r\n4");

	SAY(stream, "\r\nefgh\r\n0\r\n\r\n" GET HOST END);
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_event_set(&released));
	(void)hear(stream, "\r\n0\r\n\r\n");
	CHECK_EQ(status_of(hear(stream, "\r\n0\r\n\r\n")), 200);
	weft_stream_close(stream);
}

TEST(request_is_answered_after_events_with_an_unread_body)
{
	site_run(NULL, prepare_events, visit_with_a_body);
}

static int event_streams;

/* The first stream of events waits until it is canceled, and ends well. */
static int
send_one_event(weft_http *http, void *arg)
{
	int rc = weft_http_send_event(http, NULL, "one", WEFT_NEVER);

	(void)arg;
	if (rc == 0 && ++event_streams == 1)
		CHECK_EQ(weft_event_wait(&released, WEFT_NEVER), WEFT_ECANCELED);
	return 0;
}

static void
prepare_one_event(struct site *site)
{
	released = (weft_event)WEFT_INIT;
	event_streams = 0;
	OK(weft_http_route(site->server, "/", send_one_event, NULL));
}

static void
visit_behind_canceled_events(struct site *site)
{
	static const char one_event[] = "b\r\ndata: one\n\n\r\n", more[] = GET HOST "X-Pad: ";
	static char pad[5 << 10];
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST END);
	(void)hear(stream, one_event);
	memset(pad, 'a', sizeof(pad));
	say(stream, more, sizeof(more) - 1);
	say(stream, pad, sizeof(pad)); /* more than the server keeps for later */
	CHECK_STR(hear(stream, END END), "0\r\n\r\n");
	SAY(stream, END END);
	(void)hear(stream, one_event);
	CHECK_EQ(event_streams, 2);
	weft_stream_close(stream);
}

TEST(events_are_sent_on_a_connection_on_which_earlier_events_were_canceled)
{
	site_run(NULL, prepare_one_event, visit_behind_canceled_events);
}

static void
visit_events_drained(struct site *site)
{
	weft_stream *stream = begin_events(site);

	site_close(site);
	CHECK_STR(hear_all(stream), "0\r\n\r\n");
	CHECK_EQ(handler_rc, WEFT_ECANCELED);
	weft_stream_close(stream);
}

TEST(drain_ends_event_streams)
{
	site_run(NULL, prepare_events, visit_events_drained);
}

/* --- bodies that end early -------------------------------------------------------- */

static int
read_to_the_end(weft_http *http, void *arg)
{
	char buf[64];

	(void)arg;
	return (int)weft_http_read_all(http, buf, sizeof(buf), WEFT_NEVER);
}

static void
prepare_reader(struct site *site)
{
	OK(weft_http_route(site->server, "/", read_to_the_end, site));
}

static void
visit_with_half_a_body(struct site *site)
{
	const char *reply = ASK(site, POST CL "6\r\n" END "foo");

	CHECK_EQ(status_of(reply), 400);
	CHECK_EQ(count_of(reply, "Connection: close\r\n"), 1);
	CHECK_EQ(stats_of(site).failed, 0);
	CHECK_EQ(stats_of(site).bad_requests, 1);
}

TEST(truncated_request_body_counts_as_a_client_error)
{
	site_run(NULL, prepare_reader, visit_with_half_a_body);
}

/* --- clients that disconnect ----------------------------------------------------- */

#define ECHO_TWICE                                          \
	"POST /echo HTTP/1.1\r\n" HOST TE "chunked\r\n" END \
	"3;a=b\r\nabc\r\n4\r\ndefg\r\n0\r\nX: y\r\n\r\n"    \
	"POST /echo HTTP/1.1\r\n" HOST CL "6\r\nExpect: 100-continue\r\n" END "foobar"

static void
visit_in_part(struct site *site)
{
	size_t all = sizeof(ECHO_TWICE) - 1;

	for (size_t i = 0; i <= all; i++) {
		for (int how = 0; how < 3; how++) {
			weft_stream *stream = site_enter(site);

			if (i > 0)
				say(stream, ECHO_TWICE, i);
			OK(weft_yield());
			if (how == 1)
				OK(weft_stream_shutdown(stream, WEFT_NEVER));
			if (how == 2)
				weft_stream_reset(stream);
			else
				weft_stream_close(stream);
		}
	}
	CHECK_STR(ASK(site, GET HOST END), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" END "hello");
}

TEST(clients_may_disconnect_at_any_point)
{
	site_run(NULL, prepare, visit_in_part);
}

/* --- several loops --------------------------------------------------------------- */

static void
visit_many(struct site *site)
{
	weft_stream *streams[20];

	for (int i = 0; i < 20; i++)
		streams[i] = site_enter(site);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 20; i++)
			SAY(streams[i], GET HOST END);
		for (int i = 0; i < 20; i++)
			CHECK_EQ(status_of(hear(streams[i], "hello")), 200);
	}
	site_close(site);
	for (int i = 0; i < 20; i++) {
		CHECK_STR(hear_all(streams[i]), "");
		weft_stream_close(streams[i]);
	}
	CHECK_EQ(stats_of(site).requests, 200);
	CHECK_EQ(stats_of(site).connections, 20);
}

/* --- peer address ------------------------------------------------------------ */

static int
tell_peer(weft_http *http, void *arg)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr peer;

	(void)arg;
	OK(weft_http_peer(http, &peer));
	CHECK(weft_addr_format(&peer, text, sizeof(text)) > 0);
	return weft_http_reply(http, 200, NULL, weft_text(text), WEFT_NEVER);
}

static void
prepare_peer(struct site *site)
{
	OK(weft_http_route(site->server, "/", tell_peer, NULL));
}

static void
visit_as_peer(struct site *site)
{
	weft_stream *stream = site_enter(site);
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr local;

	OK(weft_stream_local(stream, &local));
	CHECK(weft_addr_format(&local, text, sizeof(text)) > 0);
	SAY(stream, GET HOST END);
	CHECK(strstr(hear(stream, text), text));
	weft_stream_close(stream);
}

TEST(handler_gets_the_address_of_its_peer)
{
	weft_addr peer;

	site_run(NULL, prepare_peer, visit_as_peer);
	CHECK_EQ(weft_http_peer(NULL, &peer), WEFT_EINVAL);
}

TEST(connections_on_several_loops_are_served_and_drained)
{
	site_run_loops(3, prepare, visit_many);
}
