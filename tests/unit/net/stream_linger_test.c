/* stream_linger_test.c - a close with a long write queue, and a peer that reads slowly.
 *
 * The test controls the clock: each piece that the peer reads takes one second. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/sys.h"
#include "unit/threadlet/sched.h"

#define SIZE  (2u << 20)
#define PIECE (16u << 10)

static const struct weft__sys *real_sys;
static struct weft__sys slow_sys;
static uint64_t clock_ns;
static char much[SIZE];

struct scene {
	weft_loop *loop;
	weft_stream *stream;
	weft_op op;
	weft_span span;
	int64_t result;
	int far;
	bool closed;
};

static uint64_t
now_slow(void)
{
	return clock_ns;
}

static void
on_sent(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	((struct scene *)arg)->result = result;
}

static void
open_scene(struct scene *scene)
{
	int fds[2];

	real_sys = weft__sys;
	slow_sys = *real_sys;
	slow_sys.now = now_slow;
	clock_ns = real_sys->now();
	weft__sys = &slow_sys;
	*scene = (struct scene){ .loop = make(), .result = 1 };
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	OK(weft_stream_open_fd(fds[0], false, &scene->stream));
	scene->far = fds[1];
}

/* Queues all of it, then closes. */
static int
write_and_close(void *arg)
{
	struct scene *scene = arg;

	scene->span = (weft_span){ much, SIZE };
	OK(weft_op_init(&scene->op, scene->loop, on_sent, scene));
	CHECK(weft_stream_write_op(scene->stream, &scene->span, 1, &scene->op, WEFT_NEVER) >= 0);
	weft_stream_close(scene->stream);
	scene->closed = true;
	return 0;
}

static void
post_close(void *arg)
{
	(void)write_and_close(arg);
}

/* Reads one piece per second.  Returns how many bytes arrived. */
static size_t
read_slowly(struct scene *scene, size_t max)
{
	static char buf[PIECE];
	size_t size = 0;
	ssize_t n = 1;

	while (size < max && n != 0) {
		for (int i = 0; i < 3; i++)
			(void)weft_loop_run_once(scene->loop, WEFT_NOWAIT);
		n = recv(scene->far, buf, sizeof(buf), MSG_DONTWAIT);
		CHECK(n >= 0 || errno == EAGAIN);
		size += n > 0 ? (size_t)n : 0;
		clock_ns += WEFT_S;
	}
	return size;
}

static void
end_scene(struct scene *scene)
{
	OK(weft_loop_run(scene->loop));
	CHECK(scene->closed);
	OK(close(scene->far));
	OK(weft_loop_free(scene->loop));
	weft__sys = real_sys;
}

TEST(close_sends_its_queue_however_slowly_the_peer_reads)
{
	struct scene scene;

	open_scene(&scene);
	(void)go_on(scene.loop, write_and_close, &scene);
	CHECK_EQ(read_slowly(&scene, SIZE), SIZE);
	CHECK_EQ(scene.result, SIZE);
	end_scene(&scene);
}

TEST(close_in_a_callback_sends_its_queue_however_slowly_the_peer_reads)
{
	struct scene scene;

	open_scene(&scene);
	OK(weft_loop_post(scene.loop, post_close, &scene));
	CHECK_EQ(read_slowly(&scene, SIZE), SIZE);
	CHECK_EQ(scene.result, SIZE);
	end_scene(&scene);
}

TEST(close_gives_up_on_a_peer_that_stops_reading)
{
	struct scene scene;

	open_scene(&scene);
	(void)go_on(scene.loop, write_and_close, &scene);
	CHECK(read_slowly(&scene, SIZE / 2) >= SIZE / 2);
	CHECK_EQ(scene.result, 1);
	for (int i = 0; i < 25; i++) {
		clock_ns += WEFT_S;
		for (int j = 0; j < 3; j++)
			(void)weft_loop_run_once(scene.loop, WEFT_NOWAIT);
	}
	CHECK_EQ(scene.result, WEFT_ESHUTDOWN);
	end_scene(&scene);
}
