/* events_test.c - the event stream: its contents, its cost, and its end. */
#include <weft/listener.h>
#include <weft/metrics.h>
#include "admin/admin_private.h"
#include "admin/world.h"

#define READERS 6
#define ROUNDS  3

/* --- events ---------------------------------------------------------------------------- */

static void
play_fan(struct world *world)
{
	weft_http *readers[READERS];
	uint64_t made;

	for (int i = 0; i < READERS; i++) {
		readers[i] = begin_get(world, "/events?ms=250");
		CHECK_EQ(weft_http_status(readers[i]), 200);
		CHECK(is_json(next_event(readers[i])));
	}
	made = world->admin->made;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < READERS; i++)
			CHECK(is_json(next_event(readers[i])));
	/* Each reader gets an event once, and all readers get the same events. */
	made = world->admin->made - made;
	CHECK(made >= ROUNDS - 1);
	CHECK(made < ROUNDS * READERS);
	for (int i = 0; i < READERS; i++)
		weft_http_close(readers[i]);
	UNTIL(world->admin->readers == 0);
}

TEST(admin_formats_an_event_once_for_all_readers)
{
	world_run(&(struct world){ 0 }, play_fan);
}

/* --- several loops --------------------------------------------------------------------- */

static int
visit_from_everywhere(void *arg)
{
	struct world world = { .client = weft_http_client_new(NULL) };
	weft_http *readers[READERS];
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr addr;

	(void)arg;
	OK(weft_admin_open("tcp://127.0.0.1:0", NULL, &world.admin));
	OK(weft_admin_local(world.admin, &addr));
	CHECK(weft_addr_format(&addr, text, sizeof(text)) > 0);
	(void)snprintf(world.url, sizeof(world.url), "http://%s", text + 6);
	for (int i = 0; i < READERS; i++) /* each goes to the loop with the least load */
		readers[i] = begin_get(&world, "/events?ms=250");
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < READERS; i++)
			CHECK(is_json(next_event(readers[i])));
	for (int i = 0; i < READERS; i += 2) /* some readers disconnect first */
		weft_http_close(readers[i]);
	weft_admin_close(world.admin);
	for (int i = 1; i < READERS; i += 2) {
		while (next_event(readers[i]))
			;
		weft_http_close(readers[i]);
	}
	OK(weft_http_client_free(world.client));
	return 0;
}

TEST(admin_serves_readers_on_several_loops_and_closes_while_they_read)
{
	const weft_runtime_opts opts = { .loops = 3 };

	OK(weft_main(&opts, visit_from_everywhere, NULL));
}

static void
play_moving(struct world *world)
{
	weft_http *http = begin_get(world, "/events?ms=250");
	double turns = 0, now = 0;

	CHECK_STR(weft_http_header(http, "Content-Type"), "text/event-stream");
	for (int i = 0; i < 3; i++) {
		const char *event = next_event(http);

		CHECK(number_after(event, "now_ns") > now);
		CHECK(number_after(event, "turns") > turns);
		now = number_after(event, "now_ns");
		turns = number_after(event, "turns");
	}
	weft_http_close(http);
	CHECK_EQ(get(world, "/events?ms=249")->status, 400);
	CHECK_EQ(get(world, "/events?ms=10001")->status, 400);
	CHECK_EQ(get(world, "/events?ms=x")->status, 400);
}

TEST(admin_events_contain_new_values)
{
	world_run(&(struct world){ 0 }, play_moving);
}

/* --- cost -------------------------------------------------------------------------------- */

/* The time that the current loop has measured for its phases.  It measures only while observed. */
static uint64_t
observed_ns(void)
{
	struct weft_loop_stats stats;
	uint64_t sum = 0;

	OK(weft_loop_stats(weft_loop_current(), &stats));
	for (int i = 0; i < WEFT_PHASES; i++)
		sum += stats.phase_ns[i];
	return sum;
}

/* Let the loop run some iterations, which it would measure. */
static void
turn_around(void)
{
	for (int i = 0; i < 20; i++)
		OK(weft_sleep_until(weft_after(5 * WEFT_MS)));
}

static void
play_observation(struct world *world)
{
	weft_http *http;
	uint64_t observed = 1;

	CHECK_EQ(get(world, "/metrics")->status, 200);
	CHECK_EQ(get(world, "/debug/loops")->status, 200);
	CHECK_EQ(get(world, "/debug/threadlets")->status, 200);
	turn_around();
	CHECK_EQ(observed_ns(), 0); /* without a reader of events, nothing is observed */
	CHECK_EQ(world->admin->made, 0);

	http = begin_get(world, "/events?ms=250");
	(void)next_event(http);
	while (observed_ns() == 0)
		turn_around();
	weft_http_close(http);
	UNTIL(world->admin->readers == 0);
	while (observed != observed_ns()) { /* until the observation has ended */
		observed = observed_ns();
		turn_around();
	}
	turn_around();
	CHECK_EQ(observed_ns(), observed);
}

TEST(admin_observes_loops_only_while_a_client_reads_events)
{
	world_run(&(struct world){ 0 }, play_observation);
}

/* --- limits and ends ----------------------------------------------------------------------- */

static void
play_many(struct world *world)
{
	weft_http *readers[2];
	struct house house;
	weft_scope scope;

	open_house(&house);
	OK(weft_admin_mount(world->admin, house.server, ""));
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, serve_house, &house) > 0);
	memcpy(world->url, house.url, sizeof(house.url));
	for (int i = 0; i < 2; i++) {
		readers[i] = begin_get(world, "/events");
		CHECK(next_event(readers[i]));
	}
	CHECK_EQ(get(world, "/events")->status, 503);
	CHECK_EQ(get(world, "/metrics")->status, 200);
	/* The server's drain ends the streams. */
	weft_listener_close(house.listener);
	OK(weft_scope_close(&scope));
	for (int i = 0; i < 2; i++) {
		while (next_event(readers[i]))
			;
		weft_http_close(readers[i]);
	}
	OK(weft_http_server_free(house.server));
}

TEST(admin_limits_event_readers_and_the_servers_drain_ends_them)
{
	world_run(&(struct world){ .opts = { .connections_max = 2 } }, play_many);
}

/* Open event streams do not block other requests, nor the error reply to one more reader. */
static void
play_room(struct world *world)
{
	weft_http *readers[2];

	for (int i = 0; i < 2; i++) {
		readers[i] = begin_get(world, "/events");
		CHECK(next_event(readers[i]));
	}
	CHECK_EQ(get(world, "/metrics")->status, 200);
	CHECK_EQ(get(world, "/events")->status, 503);
	for (int i = 0; i < 2; i++)
		weft_http_close(readers[i]);
}

TEST(admin_answers_other_requests_at_the_limit_of_event_readers)
{
	world_run(&(struct world){ .opts = { .connections_max = 2 } }, play_room);
}

static void
play_close(struct world *world)
{
	weft_http *readers[READERS];

	for (int i = 0; i < READERS; i++) {
		readers[i] = begin_get(world, "/events?ms=10000");
		CHECK(next_event(readers[i]));
	}
	weft_admin_close(world->admin);
	world->admin = NULL;
	for (int i = 0; i < READERS; i++) {
		CHECK(!next_event(readers[i]));
		weft_http_close(readers[i]);
	}
}

TEST(admin_closes_while_readers_are_connected)
{
	world_run(&(struct world){ 0 }, play_close);
}

static double
read_zero(void *arg)
{
	(void)arg;
	return 0;
}

/* The events are large, so that buffers fill up quickly. */
static void
play_slow(struct world *world)
{
	static char help[8192];
	weft_stream *stream;
	char name[32];
	weft_admin_metric metric = { .name = name, .help = help, .read = read_zero };

	memset(help, 'x', sizeof(help) - 1);
	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "number_%d", i);
		OK(weft_admin_add_metric(world->admin, &metric));
	}
	OK(weft_stream_connect(world->place, NULL, &stream, weft_after(HOUR)));
	CHECK(weft_stream_write(stream,
	                        "GET /events?ms=250 HTTP/1.1\r\n"
	                        "Host: localhost\r\n\r\n",
	                        48, weft_after(HOUR))
	      == 48);
	UNTIL(world->admin->readers == 1);
	while (world->admin->readers == 1)
		turn_around();
	weft_stream_reset(stream);
}

TEST(admin_drops_a_reader_that_does_not_read)
{
	world_run(&(struct world){ 0 }, play_slow);
}
