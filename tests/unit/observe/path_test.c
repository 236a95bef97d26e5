/* path_test.c - how many functions of the library are on the stack between a loop iteration and a
 * callback of the program (section 9 of docs/style.md).
 *
 * Callbacks record the stack they are called on.  Their test then counts the frames up to
 * weft__turn().  A function that the compiler has inlined has no frame.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/debug.h>
#include <weft/metrics.h>
#include "base/switch/frames.h"
#include "unit/probe.h"
#include "unit/twice.h"

#define FRAMES_MAX 32

struct path {
	const void *callers[FRAMES_MAX]; /* innermost first */
	size_t count;
};

static const char *high; /* above all frames of the loop */

/* Set `high` in a test, before it runs a loop. */
#define BEGIN() (high = __builtin_frame_address(0))

/* Expanded in the callback itself, so that the first caller is the library. */
#define RECORD(path) \
	((path)->count = weft__frames_walk(weft__frame_here(high), (path)->callers, FRAMES_MAX))

static void
print_path(const struct path *path)
{
	char name[200];

	for (size_t i = 0; i < path->count && i < FRAMES_MAX; i++) {
		(void)weft_symbol(path->callers[i], name, sizeof(name));
		printf("  %s\n", name);
	}
}

static bool
is_turn(const void *caller)
{
	static const char turn[] = "weft__turn";
	char name[200];

	(void)weft_symbol(caller, name, sizeof(name));
	return strncmp(name, turn, sizeof(turn) - 1) == 0;
}

/* The frames between the callback and weft__turn(). */
static size_t
frames_of(const struct path *path)
{
	for (size_t i = 0; i < path->count && i < FRAMES_MAX; i++)
		if (is_turn(path->callers[i]))
			return i;
	print_path(path);
	test_fail(__FILE__, __LINE__, "weft__turn() is not among the callers");
}

static void
check_frames(const struct path *path, size_t max, int line)
{
	size_t frames = frames_of(path);

	if (frames <= max)
		return;
	print_path(path);
	test_fail(__FILE__, line, "%zu frames, but at most %zu are allowed", frames, max);
}

#define CHECK_FRAMES(path, max) check_frames(path, max, __LINE__)

/* --- the count itself --------------------------------------------------- */

struct depths {
	struct path direct, deeper;
};

static __attribute__((noinline)) void
record_one_frame_deeper(struct path *path)
{
	RECORD(path);
	__asm__ volatile(""); /* not a tail call */
}

static void
on_two_depths(weft_op *op, int64_t result, void *arg)
{
	struct depths *depths = arg;

	(void)op, (void)result;
	RECORD(&depths->direct);
	record_one_frame_deeper(&depths->deeper);
	__asm__ volatile("");
}

/* So the limits below mean something, on the backend that this run of the tests is for. */
TEST(count_includes_each_frame_up_to_the_loop_iteration)
{
	const char *backend = getenv("WEFT_BACKEND");
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct depths depths = { .direct = { .count = 0 } };
	struct weft_loop_stats stats;
	weft_op op;
	char byte;

	BEGIN();
	OK(weft_op_init(&op, loop, on_two_depths, &depths));
	OK(weft_op_recv(&op, pair.fd, &byte, 1, 0, WEFT_NEVER));
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	OK(weft_loop_stats(loop, &stats));
	CHECK_STR(stats.backend, backend ? backend : stats.backend);
	CHECK(frames_of(&depths.direct) > 0);
	CHECK_EQ(frames_of(&depths.deeper), frames_of(&depths.direct) + 1);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

/* --- ops ---------------------------------------------------------------- */

static void
on_op(weft_op *op, int64_t result, void *arg)
{
	(void)op, (void)result;
	RECORD((struct path *)arg);
}

static void
on_op_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	(void)weft_op_finish(op, why);
}

TEST(received_result_of_an_op_reaches_the_program_in_two_frames)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct path path = { .count = 0 };
	weft_op op;
	char byte;

	BEGIN();
	OK(weft_op_init(&op, loop, on_op, &path));
	OK(weft_op_recv(&op, pair.fd, &byte, 1, 0, WEFT_NEVER));
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_EQ(op.result, 1);
	CHECK_FRAMES(&path, 2);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(result_that_needs_no_kernel_reaches_the_program_in_two_frames)
{
	weft_loop *loop = make();
	struct path slept = { .count = 0 }, finished = slept, canceled = slept;
	weft_op sleep, own, own_canceled;

	BEGIN();
	OK(weft_op_init(&sleep, loop, on_op, &slept));
	OK(weft_op_init(&own, loop, on_op, &finished));
	OK(weft_op_init(&own_canceled, loop, on_op, &canceled));
	OK(weft_op_sleep(&sleep, weft_after(WEFT_MS)));
	OK(weft_op_begin(&own, on_op_cancel, NULL, WEFT_NEVER));
	OK(weft_op_begin(&own_canceled, on_op_cancel, NULL, WEFT_NEVER));
	OK(weft_op_finish(&own, 0));
	weft_op_cancel(&own_canceled);
	OK(weft_loop_run(loop));
	CHECK_EQ(own_canceled.result, WEFT_ECANCELED);
	CHECK_FRAMES(&slept, 2);
	CHECK_FRAMES(&finished, 2);
	CHECK_FRAMES(&canceled, 2);
	OK(weft_loop_free(loop));
}

/* --- watches ------------------------------------------------------------ */

struct witness {
	weft_watch watch;
	struct path path;
	int what;
};

static void
on_watch(weft_watch *watch, int what, void *arg)
{
	struct witness *witness = arg;

	RECORD(&witness->path);
	witness->what = what;
	(void)weft_watch_stop(watch);
}

TEST(watch_on_a_descriptor_is_called_in_two_frames)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct witness witness = { .what = 0 };

	BEGIN();
	OK(weft_watch_start(loop, &witness.watch, pair.fd, WEFT_READABLE, on_watch, &witness));
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_EQ(witness.what, WEFT_READABLE);
	CHECK_FRAMES(&witness.path, 2);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(end_of_a_watch_is_reported_in_two_frames)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct witness witness = { .what = 0 };
	weft_op op;

	BEGIN();
	OK(weft_watch_start(loop, &witness.watch, pair.fd, WEFT_READABLE, on_watch, &witness));
	OK(weft_op_init(&op, loop, NULL, NULL));
	OK(weft_op_close(&op, pair.fd));
	OK(weft_loop_run(loop));
	CHECK_EQ(witness.what, WEFT_ESHUTDOWN);
	CHECK_FRAMES(&witness.path, 2);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(watch_on_a_signal_is_called_in_two_frames)
{
	weft_loop *loop = make();
	struct witness witness = { .what = 0 };

	BEGIN();
	OK(weft_watch_start_signal(loop, &witness.watch, SIGUSR1, on_watch, &witness));
	OK(raise(SIGUSR1));
	while (witness.what == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(witness.what, SIGUSR1);
	CHECK_FRAMES(&witness.path, 2);
	OK(weft_loop_free(loop));
}

TEST_TWICE(watch_on_a_pid_is_called_in_two_frames)
{
	weft_loop *loop = make();
	struct witness witness = { .what = 0 };
	pid_t pid = test_fork();

	if (pid == 0)
		test_child_exit(5);
	BEGIN();
	OK(weft_watch_start_pid(loop, &witness.watch, pid, on_watch, &witness));
	OK(weft_loop_run(loop));
	CHECK_EQ(WEXITSTATUS(witness.what), 5);
	CHECK_FRAMES(&witness.path, 2);
	OK(weft_loop_free(loop));
}

/* --- streams ------------------------------------------------------------ */

struct reader {
	weft_stream *stream;
	struct path first, rest, end, buffer, drain, close;
	size_t take; /* bytes skipped in the first call; 0: all */
	size_t size; /* bytes that were reported, and skipped or moved */
	char room[8192];
	int calls, error;
	bool drained, ended;
	bool lazy; /* skips nothing */
};

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct reader *reader = arg;
	size_t n = size > 0 ? (size_t)size : 0;

	if (size <= 0) {
		RECORD(&reader->end);
		reader->ended = true;
		reader->error = (int)size;
		weft_stream_close(stream);
		return;
	}
	if (reader->calls++ > 0) {
		RECORD(&reader->rest);
	} else {
		RECORD(&reader->first);
		n = reader->take ? reader->take : n;
	}
	reader->size += n;
	if (data != reader->room && !reader->lazy)
		OK(weft_stream_skip(stream, n));
}

static void *
on_buffer(weft_stream *stream, size_t *size, void *arg)
{
	struct reader *reader = arg;

	(void)stream;
	RECORD(&reader->buffer);
	*size = *size < sizeof(reader->room) ? *size : sizeof(reader->room);
	return reader->room;
}

static void
on_drain(weft_stream *stream, void *arg)
{
	struct reader *reader = arg;

	RECORD(&reader->drain);
	reader->drained = true;
	weft_stream_close(stream);
}

static void
on_close(void *arg)
{
	RECORD(&((struct reader *)arg)->close);
}

static const weft_stream_events events = { .on_data = on_data,
	                                   .on_drain = on_drain,
	                                   .on_close = on_close };

TEST(stream_data_reaches_the_program_in_three_frames)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct reader reader = { .take = 2 };

	BEGIN();
	OK(weft_stream_open_fd(pair.fd, false, &reader.stream));
	OK(weft_stream_start(reader.stream, loop, &events, &reader));
	put(pair.peer, "hello");
	while (reader.size < 5)
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	OK(close(pair.peer));
	OK(weft_loop_run(loop));
	CHECK_EQ(reader.error, 0);
	CHECK_FRAMES(&reader.first, 3);
	CHECK_FRAMES(&reader.rest, 3); /* what was not skipped: by the letter */
	CHECK_FRAMES(&reader.end, 3);
	CHECK_FRAMES(&reader.close, 3);
	OK(weft_loop_free(loop));
}

TEST(stream_data_reaches_the_memory_of_the_program_in_three_frames)
{
	weft_stream_events with_buffer = events;
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct reader reader = { .take = 0 };
	char bytes[4096] = { 0 };

	BEGIN();
	with_buffer.on_buffer = on_buffer;
	OK(weft_stream_open_fd(pair.fd, false, &reader.stream));
	OK(weft_stream_start(reader.stream, loop, &with_buffer, &reader));
	CHECK_EQ(write(pair.peer, bytes, sizeof(bytes)), sizeof(bytes));
	while (reader.size < sizeof(bytes))
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	OK(close(pair.peer));
	OK(weft_loop_run(loop));
	CHECK_FRAMES(&reader.buffer, 3);
	CHECK_FRAMES(&reader.first, 3);
	OK(weft_loop_free(loop));
}

TEST(stop_of_the_loop_reaches_a_stream_in_three_frames)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct reader reader = { .take = 0 };

	BEGIN();
	OK(weft_stream_open_fd(pair.fd, false, &reader.stream));
	OK(weft_stream_start(reader.stream, loop, &events, &reader));
	turns(loop, 2);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(reader.error, WEFT_ESHUTDOWN);
	CHECK_FRAMES(&reader.end, 3);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(drain_of_a_stream_is_reported_in_three_frames)
{
	static const char bytes[1 << 20];
	weft_span span = { bytes, sizeof(bytes) };
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct reader reader = { .take = 0 };
	weft_op op;

	BEGIN();
	OK(weft_stream_open_fd(pair.fd, false, &reader.stream));
	OK(weft_stream_start(reader.stream, loop, &events, &reader));
	OK(weft_op_init(&op, loop, NULL, NULL));
	CHECK_EQ(weft_stream_write_op(reader.stream, &span, 1, &op, WEFT_NEVER), 1);
	while (!reader.drained) {
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
		(void)drain(pair.peer);
	}
	OK(weft_loop_run(loop));
	CHECK_FRAMES(&reader.drain, 3);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

/* The queue is full, so no receive is pending that the loop could end. */
TEST(stop_of_the_loop_reaches_a_stream_with_a_full_queue_in_three_frames)
{
	static const char bytes[1 << 20];
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct reader reader = { .lazy = true };

	BEGIN();
	OK(weft_stream_open_fd(pair.fd, false, &reader.stream));
	OK(weft_stream_start(reader.stream, loop, &events, &reader));
	while (send(pair.peer, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		turns(loop, 1);
	turns(loop, 8);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(reader.error, WEFT_ESHUTDOWN);
	CHECK_FRAMES(&reader.end, 3);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

/* --- listeners and datagrams -------------------------------------------- */

struct host {
	struct path path;
	int clients;
};

static void
on_accept(weft_listener *listener, weft_stream *peer, int error, void *arg)
{
	struct host *host = arg;

	(void)listener;
	if (error < 0)
		return;
	RECORD(&host->path);
	host->clients++;
	weft_stream_reset(peer);
}

TEST(connection_reaches_the_program_in_three_frames)
{
	weft_loop *loop = make();
	struct host host = { .clients = 0 };
	weft_listener *listener;
	weft_addr local;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	BEGIN();
	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &listener));
	OK(weft_listener_local(listener, &local));
	OK(weft_listener_start(listener, loop, on_accept, &host));
	OK(connect(fd, (struct sockaddr *)(void *)local.bytes, local.size));
	while (host.clients == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	weft_listener_close(listener);
	OK(weft_loop_run(loop));
	CHECK_FRAMES(&host.path, 3);
	OK(close(fd));
	OK(weft_loop_free(loop));
}

static void
on_messages(weft_dgram *dgram, const weft_message *messages, int count, void *arg)
{
	struct path *path = arg;

	(void)dgram, (void)messages;
	if (count > 0)
		RECORD(path);
}

TEST(datagram_reaches_the_program_in_three_frames)
{
	weft_loop *loop = make();
	struct path path = { .count = 0 };
	weft_dgram *dgram;
	weft_addr local;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	BEGIN();
	OK(weft_dgram_open("udp://127.0.0.1:0", NULL, &dgram));
	OK(weft_dgram_local(dgram, &local));
	OK(weft_dgram_start(dgram, loop, on_messages, &path));
	CHECK_EQ(sendto(fd, "x", 1, 0, (struct sockaddr *)(void *)local.bytes, local.size), 1);
	while (path.count == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	weft_dgram_close(dgram);
	OK(weft_loop_run(loop));
	CHECK_FRAMES(&path, 3);
	OK(close(fd));
	OK(weft_loop_free(loop));
}
