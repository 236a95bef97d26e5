/* stream_flood_test.c - a stream that always has more to read or write does not starve the
 * other streams of its loop. */
#include <sys/socket.h>
#include <unistd.h>
#include "unit/threadlet/sched.h"

#define ROUNDS    20
#define TURNS_MAX 4 /* loop iterations until a readable stream must be served */

struct client {
	weft_stream *stream;
	int far;
	uint64_t bytes;
	bool ends, ended; /* threadlets only: stop requested, stopped */
};

static struct client
open_client(void)
{
	struct pair pair = make_pair();
	struct client client = { .far = pair.peer };

	OK(weft_stream_open_fd(pair.fd, false, &client.stream));
	return client;
}

static void
close_client(struct client *client)
{
	weft_stream_close(client->stream);
	OK(close(client->far));
}

/* Sends the quiet client one byte at a time.  Each byte must arrive within `turns_max` loop
 * iterations, while the flood continues. */
static void
take_turns(weft_loop *loop, const struct client *loud, struct client *quiet, int turns_max)
{
	turns(loop, 3);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t before = loud->bytes;
		int count = 0;

		put(quiet->far, "x");
		for (; quiet->bytes == round; count++) {
			CHECK(count < turns_max);
			turn(loop);
		}
		CHECK_EQ(quiet->bytes, round + 1);
		while (loud->bytes == before) {
			CHECK(count++ < 2 * turns_max);
			turn(loop);
		}
	}
}

/* --- callbacks ------------------------------------------------------------ */

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct client *client = arg;

	(void)data;
	CHECK(size > 0);
	client->bytes += (uint64_t)size;
	OK(weft_stream_skip(stream, (size_t)size));
}

static void
on_flood(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	on_data(stream, data, size, arg);
	fill(((struct client *)arg)->far);
}

/* Starts the two streams in either order. */
static void
flood_callback(bool loud_first)
{
	static const weft_stream_events often = { .on_data = on_flood };
	static const weft_stream_events seldom = { .on_data = on_data };
	struct client loud = open_client(), quiet = open_client();
	weft_loop *loop = make();

	if (loud_first)
		OK(weft_stream_start(loud.stream, loop, &often, &loud));
	OK(weft_stream_start(quiet.stream, loop, &seldom, &quiet));
	if (!loud_first)
		OK(weft_stream_start(loud.stream, loop, &often, &loud));
	fill(loud.far);
	take_turns(loop, &loud, &quiet, TURNS_MAX);
	close_client(&loud);
	close_client(&quiet);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

TEST(flooded_callback_does_not_starve_other_streams)
{
	flood_callback(true);
	flood_callback(false);
}

/* More streams than one poll of the descriptors reports. */
#define CROWD           300
#define CROWD_TURNS_MAX 20

static void
on_drop(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	on_data(stream, data, size, arg);
	put(((struct client *)arg)->far, "x");
}

TEST(crowd_of_flooded_streams_does_not_starve_another)
{
	static const weft_stream_events often = { .on_data = on_drop };
	static const weft_stream_events seldom = { .on_data = on_data };
	static struct client crowd[CROWD];
	struct client quiet = open_client();
	weft_loop *loop = make();

	for (int i = 0; i < CROWD; i++) {
		crowd[i] = open_client();
		/* One byte fills the queue.  The stream receives again when the byte is
		 * skipped. */
		OK(weft_stream_set(crowd[i].stream, "read_max", 1));
		OK(weft_stream_start(crowd[i].stream, loop, &often, &crowd[i]));
		put(crowd[i].far, "x");
	}
	OK(weft_stream_start(quiet.stream, loop, &seldom, &quiet));
	take_turns(loop, &crowd[CROWD - 1], &quiet, CROWD_TURNS_MAX);
	for (int i = 0; i < CROWD; i++) {
		CHECK(crowd[i].bytes > 1);
		close_client(&crowd[i]);
	}
	close_client(&quiet);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* --- threadlets ----------------------------------------------------------- */

static int
read_flood(void *arg)
{
	struct client *client = arg;
	static char buf[1000];
	ssize_t n;

	while (!client->ends) {
		n = weft_stream_read(client->stream, buf, sizeof(buf), WEFT_NEVER);
		CHECK(n > 0);
		client->bytes += (uint64_t)n;
		fill(client->far);
	}
	client->ended = true;
	return 0;
}

static int
read_quiet(void *arg)
{
	struct client *client = arg;
	ssize_t n;
	char byte;

	while ((n = weft_stream_read(client->stream, &byte, 1, WEFT_NEVER)) > 0)
		client->bytes += (uint64_t)n;
	CHECK_EQ(n, WEFT_ESHUTDOWN);
	return 0;
}

/* Runs a threadlet that floods, and one that must not be starved by it. */
static void
flood_threadlet(weft_threadlet_fn fn)
{
	struct client loud = open_client(), quiet = open_client();
	weft_loop *loop = make();

	(void)go_on(loop, fn, &loud);
	(void)go_on(loop, read_quiet, &quiet);
	fill(loud.far);
	take_turns(loop, &loud, &quiet, TURNS_MAX);
	loud.ends = true;
	while (!loud.ended)
		turn(loop);
	close_client(&loud);
	close_client(&quiet);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

TEST(flooded_threadlet_does_not_starve_others)
{
	flood_threadlet(read_flood);
}

/* --- writing -------------------------------------------------------------- */

static int
write_flood(void *arg)
{
	struct client *client = arg;
	static char buf[1000];
	ssize_t n;

	while (!client->ends) {
		n = weft_stream_write(client->stream, buf, sizeof(buf), WEFT_NEVER);
		CHECK_EQ(n, sizeof(buf));
		client->bytes += (uint64_t)n;
		(void)drain(client->far);
	}
	client->ended = true;
	return 0;
}

/* The peer reads everything at once. */
TEST(threadlet_that_can_always_write_does_not_starve_others)
{
	flood_threadlet(write_flood);
}
