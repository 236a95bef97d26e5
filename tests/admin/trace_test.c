/* trace_test.c - trace recordings through the admin endpoint. */
#include <unistd.h>
#include <weft/trace.h>
#include "admin/world.h"

static int pieces, strays; /* reads, and those on a loop; atomic */

int __wrap_weft_trace_read(weft_trace *recording, const char **out, size_t *size);
int __real_weft_trace_read(weft_trace *recording, const char **out, size_t *size);

int
__wrap_weft_trace_read(weft_trace *recording, const char **out, size_t *size)
{
	(void)__atomic_add_fetch(&pieces, 1, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&strays, weft_loop_current() != NULL, __ATOMIC_RELAXED);
	return __real_weft_trace_read(recording, out, size);
}

static int
sleep_shortly(void *arg)
{
	bool *stop = arg;

	while (!*stop)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	return 0;
}

/* Produces more events than socket buffers hold, so that sending them waits for the reader. */
static int
be_busy(void *arg)
{
	bool *stop = arg;

	while (!*stop)
		OK(weft_yield());
	return 0;
}

/* Request a recording, and read nothing of it. */
static weft_stream *
ask_for(struct world *world, unsigned seconds)
{
	char request[96];
	weft_stream *stream;
	int size = snprintf(request, sizeof(request),
	                    "GET /debug/trace?seconds=%u HTTP/1.1\r\n"
	                    "Host: localhost\r\n\r\n",
	                    seconds);

	OK(weft_stream_connect(world->place, NULL, &stream, weft_after(HOUR)));
	CHECK_EQ(weft_stream_write(stream, request, (size_t)size, weft_after(HOUR)), size);
	return stream;
}

/* Wait until a recording has begun. */
static void
await_recording(void)
{
	weft_trace *recording;
	int rc;

	while ((rc = weft_trace_begin(NULL, &recording)) == 0) {
		weft_trace_free(recording); /* not yet */
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	}
	CHECK_EQ(rc, WEFT_EBUSY);
}

/* Wait until no recording is in progress. */
static void
await_its_end(void)
{
	weft_trace *recording;
	int rc;

	while ((rc = weft_trace_begin(NULL, &recording)) == WEFT_EBUSY)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(rc);
	weft_trace_free(recording);
}

static void
play_trace(struct world *world)
{
	weft_go_opts opts = { .name = "odd \"name\"\n" };
	const struct reply *reply;
	weft_trace *recording;
	static bool stop; /* a threadlet may read it later */

	stop = false;
	CHECK(weft_go_with(&opts, sleep_shortly, &stop) > 0);
	reply = get(world, "/debug/trace?seconds=1");
	CHECK_EQ(reply->status, 200);
	CHECK_STR(reply->type, "application/json");
	CHECK(strstr(reply->body, "\"ph\":"));
	CHECK(strstr(reply->body, "odd \\\"name\\\""));
	OK(weft_trace_begin(NULL, &recording)); /* the first one has ended */
	CHECK_EQ(get(world, "/debug/trace?seconds=1")->status, 409);
	weft_trace_free(recording);
	stop = true;
}

TEST(admin_makes_one_trace_recording_at_a_time)
{
	world_run(&(struct world){ 0 }, play_trace);
}

static void
play_bad(struct world *world)
{
	static const char *const bad[] = { "0", "61", "x", "", "-1", "1.5" };
	char target[64];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(target, sizeof(target), "/debug/trace?seconds=%s", bad[i]);
		CHECK_EQ(get(world, target)->status, 400);
	}
}

TEST(admin_refuses_invalid_recording_times)
{
	world_run(&(struct world){ 0 }, play_bad);
}

static void
play_bounded(struct world *world)
{
	static bool stop; /* a threadlet may read it later */
	const char *at;

	stop = false;
	CHECK(weft_go(be_busy, &stop) > 0);
	at = strstr(get(world, "/debug/trace?seconds=1")->body, "\"dropped_events\"");
	CHECK(at);
	CHECK(number_after(at, "count") > 0);
	stop = true;
}

TEST(admin_limits_the_size_of_a_recording)
{
	world_run(&(struct world){ .opts = { .trace_max = 16384 } }, play_bounded);
}

/* The first recording has ended and is being sent, to a client that reads only some bytes. */
static void
play_slow(struct world *world)
{
	static const char request[] = "GET /debug/trace?seconds=1 HTTP/1.1\r\n"
				      "Host: localhost\r\n\r\n";
	static bool stop; /* a threadlet may read it later */
	weft_stream *stream;
	char byte = 0;

	stop = false;
	CHECK(weft_go(be_busy, &stop) > 0);
	stream = ask_for(world, 1);
	while (byte != '[')
		CHECK_EQ(weft_stream_read(stream, &byte, 1, weft_after(HOUR)), 1);
	stop = true;
	CHECK_EQ(raw(world->place, request), 409);
	weft_stream_close(stream);
	while (raw(world->place, request) != 200) /* until the server has noticed the close */
		OK(weft_sleep_until(weft_after(WEFT_MS)));
}

TEST(admin_refuses_to_record_while_a_recording_is_being_sent)
{
	char folder[] = "/tmp/weft-trace-XXXXXX", address[128];

	CHECK(mkdtemp(folder));
	(void)snprintf(address, sizeof(address), "unix:%s/socket", folder);
	world_run(&(struct world){ .address = address, .opts = { .trace_max = 4 << 20 } },
	          play_slow);
	CHECK_EQ(rmdir(folder), 0);
}

/* A client requests a minute, and disconnects before that. */
static void
play_gone(struct world *world)
{
	weft_stream *stream = ask_for(world, 60);
	uint64_t begun = weft_now();
	char text[13] = { 0 };

	await_recording();
	CHECK_EQ(weft_stream_read_exact(stream, text, 12, weft_after(HOUR)), 12);
	CHECK_STR(text, "HTTP/1.1 200"); /* while the recording is in progress */
	weft_stream_close(stream);
	await_its_end();
	CHECK(weft_now() - begun < 60 * WEFT_S);
}

TEST(admin_ends_a_recording_when_its_client_disconnects)
{
	world_run(&(struct world){ 0 }, play_gone);
}

static void
play_pieces(struct world *world)
{
	pieces = strays = 0;
	CHECK_EQ(get(world, "/debug/trace?seconds=1")->status, 200);
	CHECK(__atomic_load_n(&pieces, __ATOMIC_RELAXED) > 0);
	CHECK_EQ(__atomic_load_n(&strays, __ATOMIC_RELAXED), 0);
}

TEST(admin_formats_a_recording_outside_of_loop_threads)
{
	world_run(&(struct world){ 0 }, play_pieces);
}

/* The admin endpoint closes during a recording of a minute. */
static void
play_close(struct world *world)
{
	weft_stream *stream = ask_for(world, 60);
	uint64_t begun = weft_now();

	await_recording();
	weft_admin_close(world->admin);
	world->admin = NULL;
	CHECK(weft_now() - begun < 60 * WEFT_S);
	await_its_end();
	weft_stream_close(stream);
}

TEST(admin_close_ends_a_recording)
{
	world_run(&(struct world){ 0 }, play_close);
}
