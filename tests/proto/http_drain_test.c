/* http_drain_test.c - a server drains while requests are in progress. */
#include "base/sys.h"
#include "proto/http_site.h"

/* --- several loops ------------------------------------------------------------- */

#define MUCH (8u << 20)

static char much[MUCH];

static int
reply_much(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, NULL, (weft_span){ much, MUCH }, WEFT_NEVER);
}

static int
upgrade_and_leave(weft_http *http, void *arg)
{
	weft_stream *stream;
	char byte;

	(void)arg;
	if (weft_http_upgrade(http, "echo", &stream, WEFT_NEVER) < 0)
		return 0;
	(void)weft_stream_read(stream, &byte, 1, WEFT_NOWAIT);
	weft_stream_close(stream);
	return 0;
}

static void
prepare_much(struct site *site)
{
	OK(weft_http_route(site->server, "/", reply_much, site));
	OK(weft_http_route(site->server, "/up", upgrade_and_leave, site));
}

/* Counts the bytes up to any kind of end. */
static size_t
count_bytes(weft_stream *stream)
{
	static char buf[256 << 10];
	size_t size = 0;
	ssize_t n;

	while ((n = weft_stream_read(stream, buf, sizeof(buf), weft_after(HOUR))) > 0)
		size += (size_t)n;
	return size;
}

static weft_stream *
enter_idle(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, "HEAD / HTTP/1.1\r\n" HOST END);
	(void)hear(stream, END END);
	return stream;
}

static void
check_whole(weft_stream *stream)
{
	size_t size = count_bytes(stream);

	if (size > 0 && size < MUCH)
		test_fail(__FILE__, __LINE__, "cut after %zu bytes", size);
	weft_stream_close(stream);
}

#define ROUNDS 5
#define PEERS  24

/* Some requests arrive just before the end, and some just too late.  But a reply that has begun
 * is finished. */
static void
visit_at_the_end(struct site *site)
{
	weft_stream *streams[PEERS];

	for (int i = 0; i < PEERS; i++)
		streams[i] = enter_idle(site);
	for (int i = 0; i < PEERS; i++)
		SAY(streams[i], GET HOST END);
	site_close(site);
	for (int i = 0; i < PEERS; i++)
		check_whole(streams[i]);
}

TEST(drain_finishes_replies_in_progress)
{
	for (int i = 0; i < ROUNDS; i++)
		site_run_loops(3, prepare_much, visit_at_the_end);
}

#define UPGRADE "GET /up HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: echo\r\n" END

static void
visit_and_upgrade(struct site *site)
{
	weft_stream *streams[PEERS];

	for (int i = 0; i < PEERS; i++)
		streams[i] = enter_idle(site);
	for (int i = 0; i < PEERS; i++)
		SAY(streams[i], UPGRADE);
	site_close(site);
	for (int i = 0; i < PEERS; i++) {
		(void)count_bytes(streams[i]);
		weft_stream_close(streams[i]);
	}
}

TEST(drain_releases_upgraded_connections)
{
	for (int i = 0; i < ROUNDS; i++)
		site_run_loops(3, prepare_much, visit_and_upgrade);
}

/* --- requests in transit --------------------------------------------------------- */

static int
reply_soon(weft_http *http, void *arg)
{
	(void)arg;
	return weft_http_reply(http, 200, NULL, weft_text("hello"), WEFT_NEVER);
}

static void
prepare_soon(struct site *site)
{
	OK(weft_http_route(site->server, "/", reply_soon, site));
}

static void
hear_last(weft_stream *stream)
{
	const char *reply = hear_all(stream);

	CHECK_EQ(status_of(reply), 200);
	CHECK(strstr(reply, "\r\nConnection: close\r\n"));
	weft_stream_close(stream);
}

static weft_stream *
enter_and_ask(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST END);
	CHECK_EQ(status_of(hear(stream, "hello")), 200);
	return stream;
}

/* The connection is idle, and the client sends another request before it can know of the drain. */
static void
visit_on_its_way(struct site *site)
{
	weft_stream *kept = enter_and_ask(site), *fresh = site_enter(site);

	site_close(site);
	turn_often();
	SAY(kept, GET HOST END);
	hear_last(kept);
	SAY(fresh, GET HOST END);
	hear_last(fresh);
}

TEST(drain_answers_a_request_in_transit_on_an_idle_connection)
{
	weft_http_server_opts opts = { .drain_ns = HOUR };

	site_run(&opts, prepare_soon, visit_on_its_way);
}

/* Two requests at once: the second is too late, but that must not lose the first reply. */
static void
visit_with_two(struct site *site)
{
	weft_stream *kept = enter_and_ask(site);

	site_close(site);
	SAY(kept, GET HOST END);
	SAY(kept, GET HOST END);
	hear_last(kept);
}

TEST(request_after_the_last_does_not_reset_the_connection)
{
	weft_http_server_opts opts = { .drain_ns = HOUR };

	site_run(&opts, prepare_soon, visit_with_two);
}

static void
visit_and_say_nothing(struct site *site)
{
	weft_stream *kept = enter_and_ask(site);

	site_close(site);
	CHECK_STR(hear_all(kept), "");
	weft_stream_close(kept);
	CHECK_EQ(stats_of(site).idle_closed, 0);
}

TEST(drain_closes_idle_connections_after_drain_ns)
{
	weft_http_server_opts opts = { .drain_ns = 20 * WEFT_MS };

	site_run(&opts, prepare_soon, visit_and_say_nothing);
}

/* --- canceling a drain ---------------------------------------------------------- */

static const struct weft__sys *real_sys;
static struct weft__sys ahead_sys;
static uint64_t ahead_ns;
static weft_event entered;
static int handler_rc;

static uint64_t
now_ahead(void)
{
	return real_sys->now() + __atomic_load_n(&ahead_ns, __ATOMIC_RELAXED);
}

static void
run_with_clock(uint64_t (*now)(void), const weft_http_server_opts *opts,
               void (*prepare)(struct site *site), void (*visit)(struct site *site))
{
	real_sys = weft__sys;
	ahead_sys = *real_sys;
	ahead_sys.now = now;
	weft__sys = &ahead_sys;
	site_run(opts, prepare, visit);
	weft__sys = real_sys;
}

static int
wait_for_ever(weft_http *http, void *arg)
{
	(void)http, (void)arg;
	OK(weft_event_set(&entered));
	handler_rc = weft_sleep_until(WEFT_NEVER);
	return handler_rc;
}

static void
prepare_waiting(struct site *site)
{
	entered = (weft_event)WEFT_INIT;
	handler_rc = 1;
	OK(weft_http_route(site->server, "/", wait_for_ever, site));
}

static void
yield_often(void)
{
	for (int i = 0; i < 20; i++)
		OK(weft_yield());
}

static void
visit_and_cancel(struct site *site)
{
	weft_stream *stream = site_enter(site);

	SAY(stream, GET HOST END);
	OK(weft_event_wait(&entered, WEFT_NEVER));
	site_close(site);
	ahead_ns += HOUR;
	yield_often();
	CHECK_EQ(handler_rc, 1);
	OK(weft_cancel(site->serving));
	yield_often();
	ahead_ns += 4 * WEFT_S;
	yield_often();
	CHECK_EQ(handler_rc, 1);
	ahead_ns += 2 * WEFT_S;
	CHECK_EQ(status_of(hear_all(stream)), 500);
	CHECK_EQ(handler_rc, WEFT_ECANCELED);
	weft_stream_close(stream);
}

TEST(canceled_drain_ends_five_seconds_later)
{
	weft_http_server_opts opts = { .request_ns = 100 * HOUR };

	run_with_clock(now_ahead, &opts, prepare_waiting, visit_and_cancel);
}

static uint64_t
now_still(void)
{
	return ahead_ns;
}

/* The clock does not move, so the five seconds do not pass. */
static void
visit_after_a_cancel(struct site *site)
{
	weft_stream *kept = enter_and_ask(site), *queued = site_enter(site);
	weft_stream *late;

	OK(weft_cancel(site->serving));
	turn_often();
	CHECK_EQ(weft_stream_connect(site->address, NULL, &late, WEFT_NEVER), WEFT_ECONNREFUSED);
	SAY(queued, GET HOST END);
	hear_last(queued);
	SAY(kept, GET HOST END);
	hear_last(kept);
}

TEST(canceled_server_stops_listening_and_answers_its_connections)
{
	ahead_ns = weft_now();
	run_with_clock(now_still, NULL, prepare_soon, visit_after_a_cancel);
}
