/* stream_close_test.c - the order of a stream's last callbacks.  Every op on the stream ends
 * before its on_close, and no callback runs inside a call that the program makes, even while
 * the loop stops. */
#include <string.h>
#include <unistd.h>
#include "net/stream/stream.h"
#include "unit/threadlet/sched.h"

#define WRITES 3
#define LARGE  (4u << 20) /* more than a socket pair buffers */

/* How the stream is closed. */
enum way {
	RESET,        /* weft_stream_reset() in a callback, after weft_loop_shutdown() */
	CLOSE,        /* weft_stream_close() in a callback, after weft_loop_shutdown() */
	CLOSE_AT_END, /* in on_data, which the stopping loop calls */
	RESET_AT_END,
	CLOSE_THEN_STOP, /* the close lingers, and the loop stops */
	CLOSE_AT_WRITE,  /* in the callback of the first write that ends */
	WAYS
};

struct scene {
	weft_loop *loop;
	weft_stream *stream;
	int peer;
	enum way way;
	bool inside; /* the program is inside weft_stream_close() or weft_stream_reset() */
	int pending, closes;
	weft_op writes[WRITES], peek;
	weft_span span;
};

static char large[LARGE];

static void
close_stream(struct scene *scene, bool at_once)
{
	weft_stream *stream = scene->stream;

	if (!stream)
		return;
	scene->stream = NULL;
	scene->inside = true;
	if (at_once)
		weft_stream_reset(stream);
	else
		weft_stream_close(stream);
	scene->inside = false;
}

static void
on_op_done(weft_op *op, int64_t result, void *arg)
{
	struct scene *scene = arg;

	(void)op, (void)result;
	CHECK(!scene->inside);
	CHECK_EQ(scene->closes, 0);
	scene->pending--;
	if (scene->way == CLOSE_AT_WRITE)
		close_stream(scene, false);
}

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct scene *scene = arg;

	(void)stream, (void)data;
	if (size == WEFT_ESHUTDOWN && (scene->way == CLOSE_AT_END || scene->way == RESET_AT_END))
		close_stream(scene, scene->way == RESET_AT_END);
}

static void
on_close(void *arg)
{
	struct scene *scene = arg;

	CHECK(!scene->inside);
	CHECK_EQ(scene->pending, 0);
	scene->closes++;
}

static const weft_stream_events events = { .on_data = on_data, .on_close = on_close };

static void
stop_and_close(void *arg)
{
	struct scene *scene = arg;

	if (scene->way == CLOSE_THEN_STOP)
		close_stream(scene, false);
	weft_loop_shutdown(scene->loop);
	if (scene->way == RESET || scene->way == CLOSE)
		close_stream(scene, scene->way == RESET);
}

static void
open_scene(struct scene *scene, enum way way)
{
	struct pair pair = make_pair();

	*scene = (struct scene){ .loop = make(), .peer = pair.peer, .way = way };
	OK(weft_stream_open_fd(pair.fd, false, &scene->stream));
	OK(weft_stream_set(scene->stream, "write_max", INT64_MAX));
	OK(weft_stream_start(scene->stream, scene->loop, &events, scene));
	scene->span = (weft_span){ large, sizeof(large) };
}

static void
start_writes(struct scene *scene)
{
	for (int i = 0; i < WRITES; i++) {
		OK(weft_op_init(&scene->writes[i], scene->loop, on_op_done, scene));
		CHECK_EQ(weft_stream_write_op(scene->stream, &scene->span, 1, &scene->writes[i],
		                              WEFT_NEVER),
		         1);
		scene->pending++;
	}
}

static void
check_end(struct scene *scene)
{
	CHECK_EQ(weft_loop_state(scene->loop), WEFT_STOPPED);
	CHECK_EQ(scene->pending, 0);
	CHECK_EQ(scene->closes, 1);
	OK(close(scene->peer));
	OK(weft_loop_free(scene->loop));
}

static void
end_scene(struct scene *scene)
{
	OK(weft_loop_run(scene->loop));
	check_end(scene);
}

TEST(on_close_follows_the_last_write_when_the_loop_stops)
{
	for (int way = 0; way < WAYS; way++) {
		struct scene scene;

		open_scene(&scene, (enum way)way);
		start_writes(&scene);
		OK(weft_loop_post(scene.loop, stop_and_close, &scene));
		end_scene(&scene);
	}
}

TEST(on_close_follows_a_close_while_the_loop_stops)
{
	for (int way = 0; way < CLOSE_AT_WRITE; way++) {
		struct scene scene;

		open_scene(&scene, (enum way)way);
		OK(weft_loop_post(scene.loop, stop_and_close, &scene));
		end_scene(&scene);
	}
}

/* The end of input has been reported, so the kernel holds no request of the stream. */
TEST(on_close_follows_a_close_with_nothing_pending)
{
	for (int way = RESET; way <= CLOSE; way++) {
		struct scene scene;

		open_scene(&scene, (enum way)way);
		OK(shutdown(scene.peer, SHUT_WR));
		turns(scene.loop, 3);
		OK(weft_loop_post(scene.loop, stop_and_close, &scene));
		end_scene(&scene);
	}
}

TEST(on_close_follows_a_pending_peek_when_the_loop_stops)
{
	for (int way = RESET; way <= CLOSE; way++) {
		struct scene scene;

		open_scene(&scene, (enum way)way);
		OK(weft_stream_stop(scene.stream));
		OK(weft_op_init(&scene.peek, scene.loop, on_op_done, &scene));
		OK(weft_stream_peek_op(scene.stream, 1, &scene.peek, WEFT_NEVER));
		scene.pending++;
		OK(weft_loop_post(scene.loop, stop_and_close, &scene));
		end_scene(&scene);
	}
}

TEST(on_close_follows_the_writes_of_a_stream_reset_between_two_runs)
{
	struct scene scene;

	open_scene(&scene, RESET);
	start_writes(&scene);
	turns(scene.loop, 2);
	close_stream(&scene, true);
	CHECK_EQ(scene.closes, 0);
	weft_loop_shutdown(scene.loop);
	end_scene(&scene);
}

/* --- streams that do not receive ------------------------------------------- */

struct holder {
	int ends, closes;
};

/* Skips nothing, so that the receive queue stays as it is. */
static void
on_held(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct holder *holder = arg;

	(void)data;
	if (size > 0)
		return;
	CHECK_EQ(size, WEFT_ESHUTDOWN);
	holder->ends++;
	weft_stream_close(stream);
}

static void
on_holder_closed(void *arg)
{
	((struct holder *)arg)->closes++;
}

static void
stop_with_a_queue(bool full)
{
	static const weft_stream_events held = { .on_data = on_held, .on_close = on_holder_closed };
	struct holder holder = { 0 };
	weft_loop *loop = make();
	struct pair pair = make_pair();
	weft_stream *stream;

	OK(weft_stream_open_fd(pair.fd, false, &stream));
	OK(weft_stream_start(stream, loop, &held, &holder));
	if (full)
		fill(pair.peer);
	else
		put(pair.peer, "x");
	OK(shutdown(pair.peer, SHUT_WR));
	turns(loop, 8);
	CHECK_EQ(holder.ends, 0);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(holder.ends, 1);
	CHECK_EQ(holder.closes, 1);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(on_data_reports_the_loop_stop_to_a_stream_with_a_full_queue)
{
	stop_with_a_queue(true);
}

TEST(on_data_reports_the_loop_stop_after_an_end_that_was_not_read)
{
	stop_with_a_queue(false);
}

/* --- threadlets ----------------------------------------------------------- */

static int
write_and_close(void *arg)
{
	struct scene *scene = arg;

	for (int i = 0; i < WRITES; i++) {
		OK(weft_op_init(&scene->writes[i], NULL, on_op_done, scene));
		CHECK(weft_stream_write_op(scene->stream, &scene->span, 1, &scene->writes[i],
		                           WEFT_NEVER)
		      >= 0);
		scene->pending++;
	}
	weft_stream_close(scene->stream);
	CHECK_EQ(scene->pending, 0);
	return 0;
}

static void
close_by_threadlet(size_t size)
{
	struct pair pair = make_pair();
	struct scene scene = { .loop = make(), .peer = pair.peer, .span = { large, size } };

	OK(weft_stream_open_fd(pair.fd, false, &scene.stream));
	OK(weft_stream_set(scene.stream, "linger_ns", 0));
	OK(weft_stream_set(scene.stream, "write_max", INT64_MAX));
	(void)go_on(scene.loop, write_and_close, &scene);
	OK(weft_loop_run(scene.loop));
	OK(close(scene.peer));
	OK(weft_loop_free(scene.loop));
}

TEST(close_in_a_threadlet_returns_after_the_writes_it_dropped)
{
	close_by_threadlet(sizeof(large));
}

TEST(close_in_a_threadlet_returns_after_the_writes_it_sent)
{
	close_by_threadlet(1);
}

static int
write_and_close_once(void *arg)
{
	struct scene *scene = arg;

	OK(weft_op_init(&scene->writes[0], NULL, on_op_done, scene));
	CHECK(weft_stream_write_op(scene->stream, &scene->span, 1, &scene->writes[0], WEFT_NEVER)
	      >= 0);
	scene->pending++;
	OK(weft_loop_post(scene->loop, stop_and_close, scene));
	weft_stream_close(scene->stream);
	CHECK_EQ(scene->pending, 0);
	return 0;
}

/* The peer does not read, and the loop stops while the close lingers. */
TEST(close_in_a_threadlet_ends_within_its_linger_though_the_loop_stops)
{
	struct pair pair = make_pair();
	struct scene scene = { .loop = make(),
		               .peer = pair.peer,
		               .way = CLOSE_AT_END,
		               .span = { large, sizeof(large) } };

	OK(weft_stream_open_fd(pair.fd, false, &scene.stream));
	OK(weft_stream_set(scene.stream, "linger_ns", 50 * WEFT_MS));
	(void)go_on(scene.loop, write_and_close_once, &scene);
	OK(weft_loop_run(scene.loop));
	CHECK_EQ(weft_loop_state(scene.loop), WEFT_STOPPED);
	OK(close(scene.peer));
	OK(weft_loop_free(scene.loop));
}

/* --- interrupts on their way ------------------------------------------------ */

TEST(on_close_follows_a_close_while_an_interrupt_is_on_its_way)
{
	for (int way = RESET; way <= CLOSE; way++) {
		struct scene scene;

		open_scene(&scene, (enum way)way);
		OK(shutdown(scene.peer, SHUT_WR));
		turns(scene.loop, 3);
		weft_stream_interrupt(scene.stream);
		close_stream(&scene, way == RESET);
		CHECK_EQ(scene.closes, 0);
		weft_loop_shutdown(scene.loop);
		end_scene(&scene);
	}
}

/* The thread that posts the first of two letters has added it, and is preempted before it sends the
 * node that announces both.  It continues when the loop yields. */
static struct {
	const struct weft__sys *real_sys;
	struct weft__mailbox *letters;
	weft_stream *first;
	bool announced;
} late;

static void
add_first_letter(struct pair *pair, weft_loop *loop)
{
	*pair = make_pair();
	late.real_sys = weft__sys;
	late.announced = false;
	late.letters = &weft__net_of(loop)->letters;
	OK(weft_stream_open_fd(pair->fd, false, &late.first));
	OK(weft_stream_start(late.first, loop, &(weft_stream_events){ .on_data = on_held }, NULL));
	OK(weft_stream_stop(late.first));
	CHECK_EQ(weft__mailbox_add(late.letters, &late.first->letter), 1);
}

static void
announce_and_yield(void)
{
	if (!late.announced) {
		late.announced = true;
		weft__mailbox_announce(late.letters);
	}
	late.real_sys->yield();
}

TEST(loop_that_stops_waits_for_the_letter_of_a_stream_being_closed)
{
	struct weft__sys sys = *weft__sys;
	struct scene scene;
	struct pair first;

	open_scene(&scene, CLOSE);
	add_first_letter(&first, scene.loop);
	weft_stream_interrupt(scene.stream);
	close_stream(&scene, false);
	weft_loop_shutdown(scene.loop);
	sys.yield = announce_and_yield;
	weft__sys = &sys;
	OK(weft_loop_run(scene.loop));
	weft__sys = late.real_sys;
	CHECK(late.announced);
	CHECK_EQ(scene.closes, 1);
	weft_stream_close(late.first);
	OK(close(first.peer));
	check_end(&scene);
}

TEST(interrupted_stream_of_a_stopped_loop_is_freed_by_its_close)
{
	struct pair pair = make_pair(), other = make_pair();
	weft_loop *loop = make();
	weft_stream *streams[2];
	char byte;

	OK(weft_stream_open_fd(pair.fd, false, &streams[0]));
	OK(weft_stream_open_fd(other.fd, false, &streams[1]));
	for (int i = 0; i < 2; i++) {
		OK(weft_stream_start(streams[i], loop, &(weft_stream_events){ .on_data = on_held },
		                     NULL));
		OK(weft_stream_stop(streams[i]));
	}
	weft_loop_shutdown(loop);
	(void)weft_loop_run(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	for (int i = 0; i < 2; i++)
		weft_stream_interrupt(streams[i]);
	for (int i = 0; i < 2; i++)
		weft_stream_close(streams[i]);
	CHECK_EQ(read(pair.peer, &byte, 1), 0);
	CHECK_EQ(read(other.peer, &byte, 1), 0);
	OK(close(pair.peer));
	OK(close(other.peer));
	OK(weft_loop_free(loop));
}
