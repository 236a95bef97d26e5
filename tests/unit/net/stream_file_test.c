/* stream_file_test.c - sending files into streams, and sending to a peer that no longer reads. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include "base/sys.h"
#include "lines.h"

#define SIZE ((size_t)3 << 20)

struct sending {
	struct ends ends;
	int file;
	int end; /* what a read returns after the last byte */
	int64_t result;
	uint64_t got;
	size_t piece;   /* bytes read at a time */
	uint64_t cut;   /* after the first piece, truncate the file to this size; 0: do not */
	uint64_t turns; /* yields before another threadlet closes the stream */
	bool is_last;   /* set by send_late() before its last call */
	weft_threadlet sender;
};

static int
make_file(size_t size)
{
	static char bytes[SIZE];
	FILE *file = tmpfile();
	int fd;

	CHECK(file != NULL);
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(i);
	CHECK_EQ(fwrite(bytes, 1, size, file), size);
	OK(fflush(file));
	fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
	CHECK(fd >= 0);
	OK(fclose(file));
	return fd;
}

static void
make_narrow(struct sending *s, enum line_kind kind)
{
	if (kind < LINE_PIPE)
		OK(weft_stream_set(s->ends.a, "sndbuf", 5000));
}

/* Reads until the end or an error. */
static int
hear(void *arg)
{
	struct sending *s = arg;
	static char buf[65536];
	ssize_t n;

	while ((n = weft_stream_read(s->ends.b, buf, s->piece, WEFT_NEVER)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (buf[i] != byte_at(s->got + (uint64_t)i))
				CHECK_EQ(s->got + (uint64_t)i, -1);
		s->got += (uint64_t)n;
		if (s->cut > 0)
			OK(ftruncate(s->file, (off_t)s->cut));
		s->cut = 0;
	}
	CHECK_EQ(n, s->end);
	weft_stream_close(s->ends.b);
	return 0;
}

/* Sends some bytes, then the file in two parts, then one more byte.  The first bytes may still
 * be queued when the file follows. */
static int
send_in_parts(void *arg)
{
	struct sending *s = arg;
	char first[10];
	weft_op op;
	weft_span rest = { NULL, 0 };

	for (int i = 0; i < 10; i++)
		first[i] = byte_at((uint64_t)i);
	rest = (weft_span){ first, 10 };
	OK(weft_op_init(&op, NULL, NULL, NULL));
	CHECK(weft_stream_write_op(s->ends.a, &rest, 1, &op, WEFT_NEVER) >= 0);
	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, 10, 100, WEFT_NEVER), 100);
	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, 110, UINT32_MAX, WEFT_NEVER),
	         SIZE - 110);
	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, SIZE, 5, WEFT_NEVER), 0);
	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, 0, 0, WEFT_NEVER), 0);
	/* An error of the file does not affect the stream. */
	CHECK(weft_stream_write_file(s->ends.a, -1, 0, 5, WEFT_NEVER) < 0);
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), 10);
	CHECK_EQ(weft_stream_write(s->ends.a, &(char){ byte_at(SIZE) }, 1, WEFT_NEVER), 1);
	weft_stream_close(s->ends.a);
	return 0;
}

TEST(file_arrives_complete_and_in_order_over_each_kind_of_stream)
{
	for (int kind = 0; kind < LINE_KINDS; kind++) {
		weft_loop *loop = make();
		struct sending s = { .ends = open_ends(kind),
			             .file = make_file(SIZE),
			             .end = line_end(kind),
			             .piece = 7000 };

		make_narrow(&s, kind);
		(void)go_on(loop, send_in_parts, &s);
		(void)go_on(loop, hear, &s);
		OK(weft_loop_run(loop));
		CHECK_EQ(s.got, SIZE + 1);
		OK(weft_loop_free(loop));
		OK(close(s.file));
	}
}

static int
send_all(void *arg)
{
	struct sending *s = arg;

	s->result = weft_stream_write_file(s->ends.a, s->file, 0, SIZE, WEFT_NEVER);
	weft_stream_close(s->ends.a);
	return 0;
}

/* Like send_all(), but leaves the close to another threadlet. */
static int
send_until_closed(void *arg)
{
	struct sending *s = arg;

	s->result = weft_stream_write_file(s->ends.a, s->file, 0, SIZE, WEFT_NEVER);
	return 0;
}

static int
close_after_turns(void *arg)
{
	struct sending *s = arg;

	for (uint64_t i = 0; i < s->turns; i++)
		OK(weft_yield());
	weft_stream_close(s->ends.a);
	return 0;
}

TEST(close_during_the_copy_of_a_file_ends_the_write_with_eshutdown)
{
	for (uint64_t turns = 0; turns < 40; turns++) {
		weft_loop *loop = make();
		struct sending s = { .ends = open_ends(LINE_PIPE),
			             .file = make_file(SIZE),
			             .piece = 7000,
			             .turns = turns };

		(void)go_on(loop, send_until_closed, &s);
		(void)go_on(loop, close_after_turns, &s);
		(void)go_on(loop, hear, &s);
		OK(weft_loop_run(loop));
		CHECK_EQ(s.result, WEFT_ESHUTDOWN);
		OK(weft_loop_free(loop));
		OK(close(s.file));
	}
}

TEST(file_that_becomes_shorter_is_sent_up_to_its_new_end)
{
	for (int kind = 0; kind < LINE_KINDS; kind++) {
		weft_loop *loop = make();
		struct sending s = { .ends = open_ends(kind),
			             .file = make_file(SIZE),
			             .end = line_end(kind),
			             .piece = 7000,
			             .cut = SIZE / 2 };

		make_narrow(&s, kind);
		(void)go_on(loop, send_all, &s);
		(void)go_on(loop, hear, &s);
		OK(weft_loop_run(loop));
		CHECK_EQ(s.result, SIZE / 2);
		CHECK_EQ(s.got, SIZE / 2);
		OK(weft_loop_free(loop));
		OK(close(s.file));
	}
}

/* --- calls that end early ------------------------------------------------ */

static int
send_late(void *arg)
{
	struct sending *s = arg;

	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, 0, SIZE, weft_after(5 * WEFT_MS)),
	         WEFT_ETIMEDOUT);
	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, 0, SIZE, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	s->is_last = true;
	s->result = weft_stream_write_file(s->ends.a, s->file, 0, SIZE, WEFT_NEVER);
	weft_stream_close(s->ends.a);
	return 0;
}

/* Cancels the sender during its last call, which waits. */
static int
cancel_it(void *arg)
{
	struct sending *s = arg;

	while (!s->is_last)
		OK(weft_yield());
	OK(weft_sleep_until(weft_after(5 * WEFT_MS)));
	OK(weft_cancel(s->sender));
	return 0;
}

TEST(file_write_without_a_reader_ends_at_its_deadline_and_on_cancellation)
{
	for (int kind = 0; kind < LINE_KINDS; kind++) {
		weft_loop *loop = make();
		struct sending s = { .ends = open_ends(kind), .file = make_file(SIZE) };

		make_narrow(&s, kind);
		s.sender = go_on(loop, send_late, &s);
		(void)go_on(loop, cancel_it, &s);
		OK(weft_loop_run(loop));
		CHECK_EQ(s.result, WEFT_ECANCELED);
		weft_stream_close(s.ends.b);
		OK(weft_loop_free(loop));
		OK(close(s.file));
	}
}

static int
send_at_once(void *arg)
{
	struct sending *s = arg;
	char buf[100];

	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, 0, 100, WEFT_NOWAIT), 100);
	CHECK_EQ(weft_stream_read_exact(s->ends.b, buf, 100, WEFT_NEVER), 100);
	CHECK_EQ(buf[99], byte_at(99));
	CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, SIZE - 10, 100, WEFT_NOWAIT), 10);
	weft_stream_close(s->ends.a);
	weft_stream_close(s->ends.b);
	return 0;
}

TEST(file_that_fits_is_sent_without_waiting)
{
	struct sending s = { .ends = open_ends(LINE_TCP), .file = make_file(SIZE) };

	if (weft__sys->sendfile) {
		run_threadlet(send_at_once, &s);
	} else { /* without sendfile(), reading the file must wait */
		weft_stream_close(s.ends.a);
		weft_stream_close(s.ends.b);
	}
	OK(close(s.file));
}

static int
leave_soon(void *arg)
{
	struct sending *s = arg;
	char buf[100];

	CHECK(weft_stream_read(s->ends.b, buf, sizeof(buf), WEFT_NEVER) > 0);
	weft_stream_close(s->ends.b);
	return 0;
}

static void
check_gone(const struct sending *s, int64_t rc)
{
	if (s->end)
		CHECK_EQ(rc, s->end);
	else
		CHECK(rc == WEFT_EPIPE || rc == WEFT_ECONNRESET);
}

static int
send_to_nobody(void *arg)
{
	struct sending *s = arg;
	int64_t rc = weft_stream_write_file(s->ends.a, s->file, 0, SIZE, WEFT_NEVER);

	check_gone(s, rc);
	rc = weft_stream_write(s->ends.a, "x", 1, WEFT_NEVER);
	check_gone(s, rc);
	weft_stream_close(s->ends.a);
	return 0;
}

/* SIGPIPE has its default action here.  No handler runs, and no signal stays pending. */
TEST(write_to_a_closed_peer_returns_an_error_without_sigpipe)
{
	struct sigaction before, usual = { .sa_handler = SIG_DFL };
	sigset_t pending;

	OK(sigaction(SIGPIPE, &usual, &before));
	for (int kind = 0; kind < LINE_KINDS; kind++) {
		weft_loop *loop = make();
		struct sending s = { .ends = open_ends(kind),
			             .file = make_file(SIZE),
			             .end = line_end(kind) };

		make_narrow(&s, kind);
		(void)go_on(loop, send_to_nobody, &s);
		(void)go_on(loop, leave_soon, &s);
		OK(weft_loop_run(loop));
		OK(weft_loop_free(loop));
		OK(close(s.file));
	}
	OK(sigpending(&pending));
	CHECK_EQ(sigismember(&pending, SIGPIPE), 0);
	OK(sigaction(SIGPIPE, &before, NULL));
}

/* Sends a file and some bytes, then reads a reply, several times. */
static int
converse(void *arg)
{
	struct sending *s = arg;
	static char buf[100];

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(weft_stream_write_file(s->ends.a, s->file, 0, 100000, WEFT_NEVER), 100000);
		CHECK_EQ(weft_stream_write(s->ends.a, "next", 4, WEFT_NEVER), 4);
		CHECK_EQ(weft_stream_read_exact(s->ends.a, buf, 2, WEFT_NEVER), 2);
	}
	weft_stream_close(s->ends.a);
	return 0;
}

static int
answer(void *arg)
{
	struct sending *s = arg;
	static char buf[100004];

	for (int i = 0; i < 20; i++) {
		CHECK_EQ(weft_stream_read_exact(s->ends.b, buf, sizeof(buf), WEFT_NEVER),
		         sizeof(buf));
		CHECK_EQ(buf[99999], byte_at(99999));
		CHECK(memcmp(buf + 100000, "next", 4) == 0);
		CHECK_EQ(weft_stream_write(s->ends.b, "ok", 2, WEFT_NEVER), 2);
	}
	CHECK_EQ(weft_stream_read(s->ends.b, buf, 1, WEFT_NEVER), 0);
	weft_stream_close(s->ends.b);
	return 0;
}

TEST(files_bytes_and_replies_alternate_on_one_stream)
{
	for (int kind = 0; kind < LINE_PIPE; kind++) {
		weft_loop *loop = make();
		struct sending s = { .ends = open_ends(kind), .file = make_file(SIZE) };

		make_narrow(&s, kind);
		(void)go_on(loop, converse, &s);
		(void)go_on(loop, answer, &s);
		OK(weft_loop_run(loop));
		OK(weft_loop_free(loop));
		OK(close(s.file));
	}
}
