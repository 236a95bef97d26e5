/* trace_test.c - recordings through the window. */
#include <weft/trace.h>
#include "admin/world.h"

static int
sleep_shortly(void *arg)
{
	bool *stop = arg;

	while (!*stop)
		OK(weft_sleep_until(weft_in(WEFT_MS)));
	return 0;
}

static void
play_trace(struct world *world)
{
	weft_go_opts opts = { .name = "odd \"name\"\n" };
	const struct reply *reply;
	weft_trace *recording;
	static bool stop; /* a threadlet may look at it later */

	stop = false;
	CHECK(weft_go_with(&opts, sleep_shortly, &stop) > 0);
	reply = get(world, "/debug/trace?seconds=1");
	CHECK_EQ(reply->status, 200);
	CHECK_STR(reply->type, "application/json");
	CHECK(strstr(reply->body, "\"ph\":"));
	CHECK(strstr(reply->body, "odd \\\"name\\\""));
	OK(weft_trace_begin(NULL, &recording)); /* the other one has ended */
	CHECK_EQ(get(world, "/debug/trace?seconds=1")->status, 409);
	weft_trace_free(recording);
	stop = true;
}

TEST(admin_records_and_only_for_one_at_a_time)
{
	world_run(&(struct world){ 0 }, play_trace);
}

static void
play_bad(struct world *world)
{
	static const char *const bad[] = { "0", "61", "x", "", "-1", "1.5" };
	char target[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(target, sizeof(target),
		               "/debug/trace?seconds=%s", bad[i]);
		CHECK_EQ(get(world, target)->status, 400);
	}
}

TEST(admin_records_up_to_a_minute)
{
	world_run(&(struct world){ 0 }, play_bad);
}

static void
play_bounded(struct world *world)
{
	static bool stop; /* a threadlet may look at it later */

	stop = false;
	CHECK(weft_go(sleep_shortly, &stop) > 0);
	CHECK_EQ(get(world, "/debug/trace?seconds=1")->status, 200);
	CHECK(get(world, "/debug/trace?seconds=1")->size < 1 << 20);
	stop = true;
}

TEST(admin_bounds_what_is_recorded)
{
	world_run(&(struct world){ .opts = { .trace_max = 16384 } },
	          play_bounded);
}

/* Somebody records for a minute, and the window closes. */
static void
play_close(struct world *world)
{
	static const char request[] = "GET /debug/trace?seconds=60 HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	weft_stream *stream;
	weft_trace *recording;
	uint64_t begun = weft_now();
	int rc;

	OK(weft_connect(world->place, NULL, &stream, weft_in(HOUR)));
	CHECK_EQ(
		weft_write(stream, request, sizeof(request) - 1, weft_in(HOUR)),
		sizeof(request) - 1);
	while ((rc = weft_trace_begin(NULL, &recording)) == 0) {
		weft_trace_free(recording); /* not yet */
		OK(weft_sleep_until(weft_in(WEFT_MS)));
	}
	CHECK_EQ(rc, WEFT_EBUSY);
	weft_admin_close(world->admin);
	world->admin = NULL;
	CHECK(weft_now() - begun < 60 * WEFT_S);
	OK(weft_trace_begin(NULL, &recording));
	weft_trace_free(recording);
	weft_close(stream);
}

TEST(admin_ends_a_recording_as_it_closes)
{
	world_run(&(struct world){ 0 }, play_close);
}
