/* stream_end_test.c - streams that are closed, moved or interrupted while a call on them is
 * about to return. */
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit/threadlet/sched.h"

/* A stream whose other end is a plain descriptor, and a second stream, the bell.  A byte on the
 * bell makes the loop close the first one. */
struct scene {
	weft_loop *loop;
	weft_stream *stream, *bell;
	int far, bell_far;
	ssize_t result;
	int calls;
	char got[16];
};

static weft_stream *
open_half(int *far)
{
	weft_stream *stream;
	int fds[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	OK(weft_stream_open_fd(fds[0], false, &stream));
	*far = fds[1];
	return stream;
}

static void
open_scene(struct scene *scene)
{
	*scene = (struct scene){ .loop = make() };
	scene->stream = open_half(&scene->far);
	scene->bell = open_half(&scene->bell_far);
}

static void
end_scene(struct scene *scene)
{
	OK(weft_loop_run(scene->loop));
	OK(weft_loop_free(scene->loop));
	(void)close(scene->bell_far);
}

/* --- closing under a reader ----------------------------------------------- */

static void
on_bell(weft_stream *bell, const void *data, ssize_t size, void *arg)
{
	struct scene *scene = arg;

	(void)data, (void)size;
	weft_stream_close(scene->stream);
	weft_stream_close(bell);
}

static int
read_four(void *arg)
{
	struct scene *scene = arg;

	scene->result = weft_stream_read_exact(scene->stream, scene->got, 4, WEFT_NEVER);
	return 0;
}

/* Sends the reader's bytes, and right after them a byte on the bell. */
static void
close_under_reader(const char *text, ssize_t want)
{
	static const weft_stream_events events = { .on_data = on_bell };
	struct scene scene;

	open_scene(&scene);
	OK(weft_stream_start(scene.bell, scene.loop, &events, &scene));
	(void)go_on(scene.loop, read_four, &scene);
	for (int i = 0; i < 4; i++)
		(void)weft_loop_run_once(scene.loop, WEFT_NOWAIT);
	CHECK_EQ(write(scene.far, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(scene.far);
	CHECK_EQ(write(scene.bell_far, "!", 1), 1);
	end_scene(&scene);
	CHECK(scene.result == want || scene.result == WEFT_ESHUTDOWN);
}

TEST(close_while_the_end_arrives_does_not_break_a_waiting_reader)
{
	close_under_reader("ab", WEFT_EOF);
}

TEST(close_while_bytes_arrive_does_not_break_a_waiting_reader)
{
	close_under_reader("abcd", 4);
}

/* --- buffers from on_buffer ----------------------------------------------- */

static void *
skip_instead(weft_stream *stream, size_t *size, void *arg)
{
	(void)arg;
	OK(weft_stream_skip(stream, *size));
	return NULL;
}

static void
on_rest(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct scene *scene = arg;

	if (size > 0) {
		scene->result += size;
		OK(weft_stream_skip(stream, (size_t)size));
		return;
	}
	CHECK(data == NULL);
	scene->calls++;
	weft_stream_close(stream);
}

TEST(skip_in_on_buffer_is_not_reported_as_the_end)
{
	static const weft_stream_events events = { .on_data = on_rest, .on_buffer = skip_instead };
	struct scene scene;
	char much[8192] = "";

	open_scene(&scene);
	OK(weft_stream_start(scene.stream, scene.loop, &events, &scene));
	weft_stream_close(scene.bell);
	CHECK_EQ(write(scene.far, much, sizeof(much)), (ssize_t)sizeof(much));
	for (int i = 0; i < 8; i++)
		(void)weft_loop_run_once(scene.loop, WEFT_NOWAIT);
	CHECK_EQ(scene.calls, 0);
	(void)close(scene.far);
	end_scene(&scene);
	CHECK_EQ(scene.calls, 1);
}

/* --- on_close ------------------------------------------------------------- */

struct last {
	weft_op op;
	int written, closed;
};

static void
on_last_written(weft_op *op, int64_t result, void *arg)
{
	struct last *last = arg;

	(void)op;
	CHECK_EQ(result, WEFT_ESHUTDOWN);
	CHECK_EQ(last->closed, 0);
	last->written++;
}

static void
on_last_close(void *arg)
{
	((struct last *)arg)->closed++;
}

static void
on_any(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	(void)stream, (void)data, (void)size, (void)arg;
}

TEST(on_close_follows_the_end_of_the_last_write_after_a_reset)
{
	static const weft_stream_events events = { .on_data = on_any, .on_close = on_last_close };
	static char much[1 << 20];
	weft_span span = { much, sizeof(much) };
	struct last last = { .written = 0 };
	struct scene scene;

	open_scene(&scene);
	weft_stream_close(scene.bell);
	OK(weft_stream_start(scene.stream, scene.loop, &events, &last));
	OK(weft_op_init(&last.op, scene.loop, on_last_written, &last));
	CHECK(weft_stream_write_op(scene.stream, &span, 1, &last.op, WEFT_NEVER) >= 0);
	for (int i = 0; i < 4; i++)
		(void)weft_loop_run_once(scene.loop, WEFT_NOWAIT);
	weft_stream_reset(scene.stream);
	end_scene(&scene);
	CHECK_EQ(last.written, 1);
	CHECK_EQ(last.closed, 1);
	(void)close(scene.far);
}

/* --- interrupts from other threads and processes -------------------------- */

static int
fork_and_interrupt(void *arg)
{
	struct scene *scene = arg;
	char byte;
	int status;
	pid_t pid;

	CHECK_EQ(weft_stream_read(scene->stream, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	pid = fork();
	if (pid == 0) {
		weft_stream_interrupt(scene->stream);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(weft_stream_read(scene->stream, &byte, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	weft_stream_close(scene->stream);
	weft_stream_close(scene->bell);
	return 0;
}

TEST(interrupt_in_a_forked_child_does_not_reach_the_parent)
{
	struct scene scene;

	open_scene(&scene);
	(void)go_on(scene.loop, fork_and_interrupt, &scene);
	end_scene(&scene);
	(void)close(scene.far);
}
