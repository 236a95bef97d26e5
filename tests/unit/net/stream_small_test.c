/* stream_small_test.c - small writes over TCP arrive in order, whatever follows them. */
#include <string.h>
#include <unistd.h>
#include "unit/threadlet/sched.h"

struct line {
	weft_stream *near, *far;
	int step;
};

static void
connect_line(struct line *line)
{
	char address[WEFT_ADDR_TEXT_MAX];
	weft_listener *listener;
	weft_addr addr;

	OK(weft_listener_open("tcp://127.0.0.1:0", NULL, &listener));
	OK(weft_listener_local(listener, &addr));
	CHECK(weft_addr_format(&addr, address, sizeof(address)) > 0);
	OK(weft_stream_connect(address, NULL, &line->near, WEFT_NEVER));
	OK(weft_listener_accept(listener, &line->far, WEFT_NEVER));
	weft_listener_close(listener);
}

static void
say(weft_stream *stream, const char *text)
{
	CHECK_EQ(weft_stream_write(stream, text, strlen(text), WEFT_NEVER), (ssize_t)strlen(text));
}

/* Reads to the end; it must be exactly this text. */
static void
hear(weft_stream *stream, const char *text)
{
	char buf[256];
	ssize_t n = weft_stream_read_exact(stream, buf, strlen(text), WEFT_NEVER);

	CHECK_EQ(n, (ssize_t)strlen(text));
	CHECK(memcmp(buf, text, strlen(text)) == 0);
	CHECK_EQ(weft_stream_read(stream, buf, 1, WEFT_NEVER), 0);
}

/* --- order ---------------------------------------------------------------- */

static int
write_in_pieces(void *arg)
{
	struct line line;

	(void)arg;
	connect_line(&line);
	say(line.near, "a");
	say(line.near, "bc");
	say(line.near, "def");
	CHECK_EQ(weft_stream_write(line.near, "g", 1, WEFT_NOWAIT), 1);
	CHECK_EQ(write(weft_stream_fd(line.near), "h", 1), 1);
	OK(weft_stream_shutdown(line.near, WEFT_NEVER));
	hear(line.far, "abcdefgh");
	weft_stream_close(line.near);
	weft_stream_close(line.far);
	return 0;
}

TEST(small_writes_arrive_in_order)
{
	run_threadlet(write_in_pieces, NULL);
}

static char much[4 << 20];

static int
write_all_sizes(void *arg)
{
	struct line *line = arg;
	size_t at = 0;

	for (size_t size = 1; at < sizeof(much); size = size * 3 % 8191 + 1) {
		size_t n = sizeof(much) - at < size ? sizeof(much) - at : size;

		CHECK_EQ(weft_stream_write(line->near, much + at, n, WEFT_NEVER), (ssize_t)n);
		at += n;
	}
	weft_stream_close(line->near);
	return 0;
}

static int
read_all_sizes(void *arg)
{
	static char got[sizeof(much)];
	struct line line;

	(void)arg;
	for (size_t i = 0; i < sizeof(much); i++)
		much[i] = (char)(i * 31 >> 3);
	connect_line(&line);
	CHECK(weft_go(write_all_sizes, &line) > 0);
	for (size_t at = 0; at < sizeof(got); at += 4096)
		CHECK_EQ(weft_stream_read_exact(line.far, got + at, 4096, WEFT_NEVER), 4096);
	CHECK(memcmp(got, much, sizeof(got)) == 0);
	CHECK_EQ(weft_stream_read(line.far, got, 1, WEFT_NEVER), 0);
	weft_stream_close(line.far);
	return 0;
}

TEST(writes_of_all_sizes_arrive_as_they_were_written)
{
	run_threadlet(read_all_sizes, NULL);
}

/* --- limits --------------------------------------------------------------- */

static int
write_until_full(void *arg)
{
	struct line line;
	int64_t queued;
	int rc = 1;

	(void)arg;
	connect_line(&line);
	OK(weft_stream_set(line.near, "sndbuf", 4096));
	/* On a busy machine the millisecond may pass although there is room again. */
	for (int i = 0; rc == 1; i++) {
		rc = (int)weft_stream_write(line.near, "x", 1, weft_after(WEFT_MS));
		if (rc == WEFT_ETIMEDOUT)
			rc = (int)weft_stream_write(line.near, "x", 1, WEFT_NOWAIT);
		CHECK(i < 64 << 20);
	}
	CHECK_EQ(rc, WEFT_ETIMEDOUT);
	OK(weft_stream_get(line.near, "queued", &queued));
	CHECK(queued <= 4096);
	weft_stream_reset(line.near);
	weft_stream_close(line.far);
	return 0;
}

TEST(small_writes_wait_for_a_peer_that_does_not_read)
{
	run_threadlet(write_until_full, NULL);
}

static int
read_much(void *arg)
{
	static char buf[65536];
	struct line *line = arg;
	size_t all = 0;
	ssize_t n;

	while ((n = weft_stream_read(line->far, buf, sizeof(buf), WEFT_NEVER)) > 0)
		all += (size_t)n;
	CHECK_EQ(n, 0);
	CHECK_EQ(all, 4 + sizeof(much));
	weft_stream_close(line->far);
	return 0;
}

static int
write_small_then_much(void *arg)
{
	static struct line line; /* static, because the reader outlives this function */
	const weft_span span = { much, sizeof(much) };
	weft_op op;

	(void)arg;
	connect_line(&line);
	OK(weft_stream_set(line.near, "write_max", sizeof(much)));
	CHECK(weft_go(read_much, &line) > 0);
	OK(weft_op_init(&op, NULL, NULL, NULL));
	say(line.near, "word");
	CHECK(weft_stream_write_op(line.near, &span, 1, &op, WEFT_NEVER) >= 0);
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), (int64_t)sizeof(much));
	weft_stream_close(line.near);
	return 0;
}

TEST(one_write_may_be_as_large_as_write_max_after_small_ones)
{
	run_threadlet(write_small_then_much, NULL);
}

/* --- interrupts, moves and stops after a write ------------------------------ */

static int
interrupt_after_write(void *arg)
{
	struct line line;
	char byte;

	(void)arg;
	connect_line(&line);
	say(line.near, "word");
	weft_stream_interrupt(line.near);
	OK(weft_yield());
	CHECK_EQ(weft_stream_read(line.near, &byte, 1, WEFT_NEVER), WEFT_EINTR);
	weft_stream_close(line.near);
	hear(line.far, "word");
	weft_stream_close(line.far);
	return 0;
}

TEST(interrupt_does_not_drop_written_bytes)
{
	run_threadlet(interrupt_after_write, NULL);
}

static int
write_and_stop(void *arg)
{
	struct line *line = arg;

	connect_line(line);
	say(line->near, "last word");
	weft_loop_shutdown(weft_loop_current());
	return 0;
}

static int
hear_last(void *arg)
{
	struct line *line = arg;

	hear(line->far, "last word");
	weft_stream_close(line->far);
	return 0;
}

TEST(written_bytes_are_sent_when_the_loop_stops)
{
	weft_loop *loop = make();
	struct line line;

	(void)go_on(loop, write_and_stop, &line);
	OK(weft_loop_run(loop));
	weft_stream_close(line.near);
	OK(weft_loop_free(loop));
	run_threadlet(hear_last, &line);
}
