/* stream_test.c - threadlets that read and write streams. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "stream_pair.h"
#include "unit/threadlet/sched.h"

/* --- two connected ends -------------------------------------------------- */

struct line {
	weft_stream *a, *b;
	int result;
	char got[64];
};

static struct line
open_line(void)
{
	struct line line = { .result = 0 };

	OK(open_stream_pair(&line.a, &line.b));
	return line;
}

/* Runs one or two threadlets on a new loop, each with the line as its argument. */
static void
run_two(weft_threadlet_fn one, weft_threadlet_fn two, struct line *line)
{
	weft_loop *loop = make();

	(void)go_on(loop, one, line);
	if (two)
		(void)go_on(loop, two, line);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

static int
close_both(struct line *line)
{
	weft_stream_close(line->a);
	weft_stream_close(line->b);
	return 0;
}

static int
echo_b(void *arg)
{
	struct line *line = arg;
	char buf[512];
	ssize_t n;

	while ((n = weft_stream_read(line->b, buf, sizeof(buf), WEFT_NEVER)) > 0)
		CHECK_EQ(weft_stream_write(line->b, buf, (size_t)n, WEFT_NEVER), n);
	CHECK_EQ(n, 0);
	weft_stream_close(line->b);
	return 0;
}

static int
talk_a(void *arg)
{
	struct line *line = arg;
	char buf[64];

	for (int i = 0; i < 10; i++) {
		CHECK_EQ(weft_stream_write(line->a, "hello", 5, WEFT_NEVER), 5);
		CHECK_EQ(weft_stream_read_exact(line->a, buf, 5, WEFT_NEVER), 5);
		CHECK(memcmp(buf, "hello", 5) == 0);
	}
	weft_stream_close(line->a);
	return 0;
}

TEST(bytes_written_at_one_end_are_read_at_the_other)
{
	struct line line = open_line();

	run_two(talk_a, echo_b, &line);
}

/* --- reading ------------------------------------------------------------- */

static int
read_in_ways(void *arg)
{
	struct line *line = arg;
	const void *seen;
	char buf[64];

	CHECK_EQ(weft_stream_write(line->b, "GET /\r\nHost: x\r\n\r\nbody", 22, WEFT_NEVER), 22);
	CHECK(weft_stream_peek(line->a, 3, &seen, WEFT_NEVER) >= 3);
	CHECK(memcmp(seen, "GET", 3) == 0);
	CHECK_EQ(weft_stream_read_until(line->a, "\r\n", buf, sizeof(buf), WEFT_NEVER), 7);
	CHECK_EQ(weft_stream_read_until(line->a, "\r\n\r\n", buf, sizeof(buf), WEFT_NEVER), 11);
	CHECK_EQ(weft_stream_read_until(line->a, "\n", buf, 4, WEFT_NEVER), WEFT_EMSGSIZE);
	OK(weft_stream_skip(line->a, 1));
	CHECK_EQ(weft_stream_read_exact(line->a, buf, 3, WEFT_NEVER), 3);
	CHECK(memcmp(buf, "ody", 3) == 0);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_write(line->b, "ab", 2, WEFT_NEVER), 2);
	OK(weft_stream_shutdown(line->b, WEFT_NEVER));
	CHECK_EQ(weft_stream_read_exact(line->a, buf, 3, WEFT_NEVER), WEFT_EOF);
	CHECK_EQ(weft_stream_peek(line->a, 10, &seen, WEFT_NEVER), 2);
	CHECK_EQ(weft_stream_read_until(line->a, "\n", buf, 8, WEFT_NEVER), WEFT_EOF);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, WEFT_NEVER), 2);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, WEFT_NEVER), 0);
	CHECK_EQ(weft_stream_read_until(line->a, "\n", buf, 8, WEFT_NEVER), 0);
	CHECK_EQ(weft_stream_write(line->b, "x", 1, WEFT_NEVER), WEFT_EPIPE);
	/* The other direction is still open. */
	CHECK_EQ(weft_stream_write(line->a, "back", 4, WEFT_NEVER), 4);
	CHECK_EQ(weft_stream_read(line->b, buf, 8, WEFT_NEVER), 4);
	return close_both(line);
}

TEST(stream_is_read_by_count_by_delimiter_and_by_peeking)
{
	struct line line = open_line();

	run_two(read_in_ways, NULL, &line);
}

/* When the poll starts, no caller waits for the receive of the canceled peek.  So the backend
 * watches only for writability then. */
static int
read_during_poll(void *arg)
{
	static const char full[4096];
	struct line *line = arg;
	int fd = weft_stream_fd(line->a);
	weft_op peek, poll;
	char buf[8];

	OK(weft_op_init(&peek, NULL, NULL, NULL));
	OK(weft_op_init(&poll, NULL, NULL, NULL));
	OK(weft_stream_peek_op(line->a, 1, &peek, WEFT_NEVER));
	weft_op_cancel(&peek);
	CHECK_EQ(weft_op_wait(&peek, WEFT_NEVER), WEFT_ECANCELED);
	while (send(fd, full, sizeof(full), MSG_DONTWAIT) > 0)
		;
	OK(weft_op_poll(&poll, fd, WEFT_WRITABLE, WEFT_NEVER));
	CHECK_EQ(send(weft_stream_fd(line->b), "one", 3, 0), 3);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, weft_after(10 * WEFT_S)), 3);
	CHECK(poll.pending);
	weft_op_cancel(&poll);
	CHECK_EQ(weft_op_wait(&poll, WEFT_NEVER), WEFT_ECANCELED);
	return close_both(line);
}

TEST(stream_reads_while_an_op_polls_its_descriptor_for_writability)
{
	struct line line = open_line();

	run_two(read_during_poll, NULL, &line);
}

static int
wait_for_byte(void *arg)
{
	struct line *line = arg;

	line->result = (int)weft_stream_read(line->a, line->got, 1, WEFT_NEVER);
	return 0;
}

static int
close_a(void *arg)
{
	struct line *line = arg;
	char byte;

	OK(weft_yield());
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NEVER), WEFT_EBUSY);
	weft_stream_close(line->a);
	weft_stream_close(line->b);
	return 0;
}

TEST(second_reader_is_refused_and_a_close_ends_the_first)
{
	struct line line = open_line();

	run_two(wait_for_byte, close_a, &line);
	CHECK_EQ(line.result, WEFT_ESHUTDOWN);
}

static int
reset_a(void *arg)
{
	struct line *line = arg;

	OK(weft_yield());
	weft_stream_reset(line->a);
	weft_stream_close(line->b);
	return 0;
}

TEST(reset_ends_a_waiting_read)
{
	struct line line = open_line();

	run_two(wait_for_byte, reset_a, &line);
	CHECK_EQ(line.result, WEFT_ESHUTDOWN);
}

static int
interrupt_a(void *arg)
{
	struct line *line = arg;
	char byte;

	OK(weft_yield());
	weft_stream_interrupt(line->a);
	while (line->result == 0)
		OK(weft_yield());
	CHECK_EQ(line->result, WEFT_EINTR);
	weft_stream_interrupt(line->a); /* no call waits: the next one is interrupted */
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NEVER), WEFT_EINTR);
	CHECK_EQ(weft_stream_read(line->a, &byte, 1, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	return close_both(line);
}

TEST(interrupt_ends_the_current_or_the_next_wait_once)
{
	struct line line = open_line();

	run_two(wait_for_byte, interrupt_a, &line);
}

static int
cancel_reader(void *arg)
{
	struct line *line = arg;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, wait_for_byte, line) > 0);
	OK(weft_yield());
	weft_scope_cancel(&scope);
	OK(weft_scope_close(&scope));
	CHECK_EQ(line->result, WEFT_ECANCELED);
	/* Bytes that arrive later go to the next reader. */
	CHECK_EQ(weft_stream_write(line->b, "x", 1, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_read(line->a, line->got, 8, WEFT_NEVER), 1);
	return close_both(line);
}

TEST(canceled_read_loses_no_bytes)
{
	struct line line = open_line();

	run_two(cancel_reader, NULL, &line);
}

static int
read_late(void *arg)
{
	struct line *line = arg;
	uint64_t until;

	CHECK_EQ(weft_stream_write(line->b, "late", 4, WEFT_NEVER), 4);
	until = weft_after(WEFT_MS); /* past by the time the loop checks it */
	while (weft_now() < until + WEFT_MS)
		;
	CHECK_EQ(weft_stream_read(line->a, line->got, 8, until), 4);
	return close_both(line);
}

TEST(read_past_its_deadline_still_returns_bytes_that_have_arrived)
{
	struct line line = open_line();

	run_two(read_late, NULL, &line);
}

static int
read_at_once(void *arg)
{
	struct line *line = arg;
	const void *seen;
	char buf[8];

	CHECK_EQ(weft_stream_read(line->a, buf, 8, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_write(line->b, "abcd", 4, WEFT_NOWAIT), 4);
	CHECK_EQ(weft_stream_read(line->a, buf, 2, WEFT_NOWAIT), 2);
	CHECK_EQ(weft_stream_peek(line->a, 2, &seen, WEFT_NOWAIT), 2);
	CHECK_EQ(weft_stream_read_exact(line->a, buf, 3, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, WEFT_NOWAIT), 2);
	CHECK(memcmp(buf, "cd", 2) == 0);
	weft_stream_close(line->b);
	CHECK_EQ(weft_stream_read(line->a, buf, 8, WEFT_NOWAIT), 0);
	weft_stream_close(line->a);
	return 0;
}

TEST(nonwaiting_read_returns_bytes_that_have_arrived)
{
	struct line line = open_line();

	run_two(read_at_once, NULL, &line);
}

/* --- writing ------------------------------------------------------------- */

static int
fill_a(void *arg)
{
	struct line *line = arg;
	static char much[4 << 20];
	weft_span spans[3] = { { much, 3 << 20 }, { much, 0 }, { "x", 1 } };

	CHECK_EQ(weft_stream_write(line->a, much, sizeof(much), weft_after(5 * WEFT_MS)),
	         WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_write_some(line->a, spans, 3), 0);
	weft_stream_close(line->b);
	CHECK_EQ(weft_stream_write(line->a, "y", 1, WEFT_NEVER), WEFT_EPIPE);
	CHECK(weft_stream_write(line->a, "y", 1, WEFT_NEVER) < 0);
	weft_stream_close(line->a);
	return 0;
}

TEST(write_ends_at_its_deadline_and_when_the_peer_closes)
{
	struct line line = open_line();

	run_two(fill_a, NULL, &line);
}

#define BULK ((size_t)8 << 20)

static uint32_t
next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

static int
send_bulk(void *arg)
{
	struct line *line = arg;
	uint32_t bytes = 1, sizes = 7;
	static char buf[100000];

	for (size_t left = BULK; left > 0;) {
		size_t n = 1 + next(&sizes) % sizeof(buf);

		n = n < left ? n : left;
		for (size_t i = 0; i < n; i++)
			buf[i] = (char)next(&bytes);
		CHECK_EQ(weft_stream_write(line->a, buf, n, WEFT_NEVER), n);
		left -= n;
	}
	OK(weft_stream_shutdown(line->a, WEFT_NEVER));
	return 0;
}

static int
read_bulk(void *arg)
{
	struct line *line = arg;
	uint32_t bytes = 1, sizes = 3;
	static char buf[100000];
	size_t all = 0;
	ssize_t n;

	while ((n = weft_stream_read(line->b, buf, 1 + next(&sizes) % sizeof(buf), WEFT_NEVER))
	       > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (buf[i] != (char)next(&bytes))
				CHECK_EQ(i, -1);
		all += (size_t)n;
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(all, BULK);
	return close_both(line);
}

TEST(bulk_data_arrives_complete_and_in_order)
{
	struct line line = open_line();

	run_two(send_bulk, read_bulk, &line);
}

static int
peek_bulk(void *arg)
{
	struct line *line = arg;
	uint32_t bytes = 1, sizes = 3;
	const void *seen;
	size_t all = 0;
	ssize_t n;

	while ((n = weft_stream_peek(line->b, 1 + next(&sizes) % 20000, &seen, WEFT_NEVER)) > 0) {
		const char *at = seen;
		size_t size = 1 + next(&sizes) % (size_t)n;

		for (size_t i = 0; i < size; i++)
			if (at[i] != (char)next(&bytes))
				CHECK_EQ(i, -1);
		OK(weft_stream_skip(line->b, size));
		all += size;
	}
	CHECK_EQ(n, 0);
	CHECK_EQ(all, BULK);
	return close_both(line);
}

TEST(bulk_data_is_seen_complete_by_peeking)
{
	struct line line = open_line();

	run_two(send_bulk, peek_bulk, &line);
}

static int
send_file(void *arg)
{
	struct line *line = arg;
	FILE *file = tmpfile();
	uint32_t bytes = 1;

	CHECK(file != NULL);
	for (size_t i = 0; i < BULK; i++)
		CHECK(putc((int)(next(&bytes) & 0xff), file) != EOF);
	OK(fflush(file));
	CHECK_EQ(weft_stream_write_file(line->a, fileno(file), 0, 100000, WEFT_NEVER), 100000);
	CHECK_EQ(weft_stream_write_file(line->a, fileno(file), 100000, UINT32_MAX, WEFT_NEVER),
	         (int64_t)BULK - 100000);
	CHECK(weft_stream_write_file(line->a, -1, 0, 1, WEFT_NEVER) < 0);
	OK(weft_stream_shutdown(line->a, WEFT_NEVER));
	OK(fclose(file));
	return 0;
}

TEST(file_is_sent_in_parts_up_to_its_end)
{
	struct line line = open_line();

	run_two(send_file, read_bulk, &line);
}

/* --- descriptors and options --------------------------------------------- */

static int
talk_by_pipe(void *arg)
{
	char buf[8];
	weft_stream *in, *out;
	int fds[2];

	(void)arg;
	OK(pipe(fds));
	OK(weft_stream_open_fd(fds[0], false, &in));
	OK(weft_stream_open_fd(fds[1], false, &out));
	CHECK_EQ(weft_stream_read(in, buf, 8, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_write(out, "pipe", 4, WEFT_NEVER), 4);
	CHECK_EQ(weft_stream_read(in, buf, 8, WEFT_NEVER), 4);
	CHECK_EQ(weft_stream_shutdown(out, WEFT_NEVER), WEFT_EINVAL);
	weft_stream_close(out);
	CHECK_EQ(weft_stream_read(in, buf, 8, WEFT_NEVER), 0);
	weft_stream_close(in);
	return 0;
}

TEST(pipe_can_be_a_stream)
{
	run_threadlet(talk_by_pipe, NULL);
}

static int
borrow_fd(void *arg)
{
	struct pair *pair = arg;
	weft_stream *stream;
	char buf[8];

	OK(weft_stream_open_fd(pair->fd, true, &stream));
	put(pair->peer, "x");
	CHECK_EQ(weft_stream_read(stream, buf, 8, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_fd(stream), pair->fd);
	weft_stream_close(stream);
	CHECK(fcntl(pair->fd, F_GETFL) & O_NONBLOCK);
	put(pair->peer, "y");
	take(pair->fd); /* the caller still owns it */
	return 0;
}

TEST(borrowed_descriptor_stays_open_when_the_stream_closes)
{
	struct pair pair = make_pair();

	run_threadlet(borrow_fd, &pair);
	close_pair(pair);
}

static int
check_options(void *arg)
{
	struct line *line = arg;
	int64_t value;

	CHECK_EQ(weft_stream_set(line->a, "nonsense", 1), WEFT_ENOENT);
	CHECK_STR(weft_detail(), "weft_stream_set: there is no option named \"nonsense\"");
	CHECK_EQ(weft_stream_set(line->a, "read_max", 0), WEFT_EINVAL);
	CHECK_EQ(weft_stream_set(line->a, "queued", 1), WEFT_EINVAL);
	OK(weft_stream_set(line->a, "read_max", 1000));
	OK(weft_stream_get(line->a, "read_max", &value));
	CHECK_EQ(value, 1000);
	OK(weft_stream_set(line->a, "sndbuf", 30000));
	OK(weft_stream_get(line->a, "sndbuf", &value));
	CHECK(value >= 30000);
	return close_both(line);
}

TEST(stream_options_are_set_and_read_by_name)
{
	struct line line = open_line();

	run_two(check_options, NULL, &line);
}

TEST(open_fd_of_a_bad_descriptor_is_refused_and_null_streams_are_ignored)
{
	weft_stream *stream;

	CHECK_EQ(weft_stream_open_fd(-1, false, &stream), WEFT_EBADF);
	CHECK_EQ(weft_stream_open_fd(9999, false, &stream), WEFT_EBADF);
	weft_stream_close(NULL);
	weft_stream_reset(NULL);
	weft_stream_interrupt(NULL);
}

/* --- closed while another threadlet uses it ------------------------------- */

static int
read_two(void *arg)
{
	struct line *line = arg;

	line->result = (int)weft_stream_read_exact(line->a, line->got, 2, WEFT_NEVER);
	return 0;
}

static void
close_by_post(void *arg)
{
	weft_stream_close(((struct line *)arg)->a);
}

TEST(reader_woken_by_bytes_does_not_touch_a_stream_closed_meanwhile)
{
	weft_loop *loop = make();
	struct line line = open_line();
	weft_node node = { .fn = close_by_post, .arg = &line };
	int peer;

	(void)go_on(loop, read_two, &line);
	turns(loop, 3);
	peer = weft_stream_fd(line.b);
	CHECK_EQ(send(peer, "x", 1, 0), 1);
	turns(loop, 2);
	CHECK_EQ(send(peer, "y", 1, 0), 1);
	OK(weft_loop_post_node(loop, &node));
	turns(loop, 5);
	CHECK(line.result == WEFT_ESHUTDOWN || line.result == 2);
	weft_stream_close(line.b);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

static int
read_many_times(void *arg)
{
	struct line *line = arg;
	char buf[200] = "";

	CHECK_EQ(send(weft_stream_fd(line->b), buf, sizeof(buf), 0), (ssize_t)sizeof(buf));
	for (int i = 0; i < 200 && line->result == 0; i++) {
		ssize_t n = weft_stream_read_exact(line->a, buf, 1, WEFT_NEVER);

		if (n != 1)
			line->result = (int)n;
	}
	return 0;
}

static int
close_soon(void *arg)
{
	struct line *line = arg;

	weft_stream_close(line->a);
	weft_stream_close(line->b);
	return 0;
}

TEST(close_amid_reads_that_do_not_wait_is_reported_to_the_reader)
{
	struct line line = open_line();

	run_two(read_many_times, close_soon, &line);
	CHECK(line.result == WEFT_ESHUTDOWN || line.result == 0);
}

/* --- the end of a loop ---------------------------------------------------- */

TEST(loop_stop_cancels_reads_and_a_close_still_works)
{
	weft_loop *loop = make();
	struct line line = open_line();

	(void)go_on(loop, wait_for_byte, &line);
	turns(loop, 3);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(line.result, WEFT_ECANCELED);
	weft_stream_close(line.a);
	weft_stream_close(line.b);
	OK(weft_loop_free(loop));
}
