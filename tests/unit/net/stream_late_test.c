/* stream_late_test.c - the buffer of a call that has ended belongs to the caller again.  No
 * bytes are sent from it or received into it, whatever the kernel was about to do. */
#include "lines.h"

/* What ends a call early. */
enum way { DEADLINE, CANCEL, INTERRUPT, OP, WAYS };

static const int64_t whys[WAYS] = { WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EINTR, WEFT_ECANCELED };

#define MUCH     ((size_t)4 << 20)
#define SCRIBBLE ((char)0xff) /* does not occur in the pattern */

struct late {
	struct ends ends;
	enum line_kind kind;
	enum way way;
	weft_threadlet who;
	weft_op op;
	weft_span span;
	int64_t result; /* 0: the call has not returned */
	size_t got;
};

static char much[MUCH], into[65536];

static char
letter_at(size_t at)
{
	return (char)(at * 7 % 251);
}

static uint64_t
deadline_of(const struct late *late)
{
	return late->way == DEADLINE ? weft_after(5 * WEFT_MS) : WEFT_NEVER;
}

static void
request_end(struct late *late)
{
	if (late->way == CANCEL)
		OK(weft_cancel(late->who));
	else if (late->way == INTERRUPT)
		OK(weft_interrupt(late->who));
	else if (late->way == OP)
		weft_op_cancel(&late->op);
}

/* Ends the call after it has been with the kernel for some loop iterations. */
static void
end_call(struct late *late)
{
	for (int i = 0; i < 5; i++)
		OK(weft_yield());
	request_end(late);
	while (late->result == 0)
		OK(weft_yield());
	CHECK_EQ(late->result, whys[late->way]);
}

/* Runs over each kind of stream, and ends the call in each of the first `ways` ways. */
static void
run_late(weft_threadlet_fn fn, int ways)
{
	for (int kind = 0; kind < LINE_KINDS; kind++)
		for (int way = 0; way < ways; way++) {
			struct late late = { .ends = open_ends(kind), .kind = kind, .way = way };

			run_threadlet(fn, &late);
		}
}

/* --- writes --------------------------------------------------------------- */

static int
write_much(void *arg)
{
	struct late *late = arg;

	late->result = weft_stream_write(late->ends.a, much, MUCH, deadline_of(late));
	memset(much, SCRIBBLE, MUCH);
	return 0;
}

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct late *late = arg;

	(void)op;
	late->result = result;
	memset(much, SCRIBBLE, MUCH);
}

static void
begin_write(struct late *late)
{
	late->span = (weft_span){ much, MUCH };
	for (size_t i = 0; i < MUCH; i++)
		much[i] = letter_at(i);
	if (late->way != OP) {
		late->who = weft_go(write_much, late);
		return;
	}
	OK(weft_op_init(&late->op, weft_loop_current(), on_written, late));
	CHECK_EQ(weft_stream_write_op(late->ends.a, &late->span, 1, &late->op, WEFT_NEVER), 1);
}

/* Reads the pattern in order and checks that there is no other byte.  Returns the result of the
 * last read. */
static ssize_t
read_letters(struct late *late, uint64_t wait_ns)
{
	static char buf[65536];
	ssize_t n;

	while ((n = weft_stream_read(late->ends.b, buf, sizeof(buf), weft_after(wait_ns))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (buf[i] != letter_at(late->got + (size_t)i))
				CHECK_EQ(late->got + (size_t)i, -1);
		late->got += (size_t)n;
	}
	return n;
}

static int
write_to_nobody(void *arg)
{
	struct late *late = arg;

	if (late->kind < LINE_PIPE) {
		OK(weft_stream_set(late->ends.a, "sndbuf", 50000));
		OK(weft_stream_set(late->ends.b, "rcvbuf", 50000));
	}
	begin_write(late);
	end_call(late);
	/* Now there is room for the bytes that were not sent. */
	CHECK_EQ(read_letters(late, 5 * WEFT_MS), WEFT_ETIMEDOUT);
	weft_stream_close(late->ends.a);
	CHECK_EQ(read_letters(late, HOUR), line_end(late->kind));
	CHECK(late->got > 0 && late->got < MUCH);
	weft_stream_close(late->ends.b);
	return 0;
}

TEST(bytes_left_by_an_ended_write_are_never_sent)
{
	run_late(write_to_nobody, WAYS);
}

/* --- reads ---------------------------------------------------------------- */

/* From `at` on, the buffer must be as it was filled. */
static void
check_untouched(size_t at)
{
	for (; at < sizeof(into); at++)
		if (into[at] != SCRIBBLE)
			CHECK_EQ(at, -1);
}

static int
read_nothing(void *arg)
{
	struct late *late = arg;

	late->result = weft_stream_read(late->ends.b, into, sizeof(into), deadline_of(late));
	return 0;
}

static void
say_late(struct late *late)
{
	char buf[8];

	CHECK_EQ(weft_stream_write(late->ends.a, "late", 4, WEFT_NEVER), 4);
	for (int i = 0; i < 5; i++)
		OK(weft_yield());
	check_untouched(0);
	CHECK_EQ(weft_stream_read(late->ends.b, buf, sizeof(buf), WEFT_NEVER), 4);
	CHECK(memcmp(buf, "late", 4) == 0);
	check_untouched(0);
}

static void
on_late(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct late *late = arg;

	CHECK(size > 0 && data != into);
	late->got += (size_t)size;
	OK(weft_stream_skip(stream, (size_t)size));
}

/* Receives by a callback, which provides no buffer. */
static void
say_to_callback(struct late *late)
{
	static const weft_stream_events events = { .on_data = on_late };

	OK(weft_stream_start(late->ends.b, NULL, &events, late));
	CHECK_EQ(weft_stream_write(late->ends.a, "late", 4, WEFT_NEVER), 4);
	while (late->got < 4)
		OK(weft_yield());
	check_untouched(0);
}

static int
read_from_nobody(void *arg)
{
	struct late *late = arg;

	memset(into, SCRIBBLE, sizeof(into));
	late->who = weft_go(read_nothing, late);
	end_call(late);
	if (late->way == DEADLINE)
		say_late(late);
	say_to_callback(late);
	weft_stream_close(late->ends.a);
	weft_stream_close(late->ends.b);
	return 0;
}

TEST(bytes_that_arrive_after_a_read_ended_stay_out_of_its_buffer)
{
	run_late(read_from_nobody, OP);
}

/* Bytes arrive while the read is being ended.  The read returns all of them or none. */
static int
read_as_it_ends(void *arg)
{
	struct late *late = arg;
	char buf[8];

	memset(into, SCRIBBLE, sizeof(into));
	late->who = weft_go(read_nothing, late);
	for (int i = 0; i < 5; i++)
		OK(weft_yield());
	CHECK_EQ(write(weft_stream_fd(late->ends.a), "late", 4), 4);
	request_end(late);
	while (late->result == 0)
		OK(weft_yield());
	if (late->result == 4) {
		CHECK(memcmp(into, "late", 4) == 0);
		check_untouched(4);
	} else {
		CHECK_EQ(late->result, whys[late->way]);
		CHECK_EQ(weft_stream_read(late->ends.b, buf, sizeof(buf), WEFT_NEVER), 4);
		CHECK(memcmp(buf, "late", 4) == 0);
		check_untouched(0);
	}
	weft_stream_close(late->ends.a);
	weft_stream_close(late->ends.b);
	return 0;
}

TEST(bytes_that_arrive_while_a_read_ends_go_to_it_or_to_the_next_read)
{
	run_late(read_as_it_ends, OP);
}

/* --- deadlines ------------------------------------------------------------ */

/* The scope's deadline comes before the read's own.  The read then rechecks the socket for
 * bytes that the loop has not seen yet. */
static int
read_in_scope(void *arg)
{
	struct late *late = arg;
	weft_scope scope;
	char buf[8];

	OK(weft_scope_open(&scope, 0, weft_after(WEFT_MS)));
	CHECK_EQ(weft_stream_read(late->ends.b, buf, sizeof(buf), weft_after(HOUR)),
	         WEFT_ETIMEDOUT);
	OK(weft_scope_close(&scope));
	CHECK_EQ(weft_stream_read(late->ends.b, buf, sizeof(buf), weft_after(WEFT_MS)),
	         WEFT_ETIMEDOUT);
	weft_stream_close(late->ends.a);
	weft_stream_close(late->ends.b);
	return 0;
}

TEST(read_that_its_scope_timed_out_leaves_no_deadline_behind)
{
	for (int kind = 0; kind < LINE_KINDS; kind++) {
		struct late late = { .ends = open_ends(kind) };
		weft_loop *loop = weft_loop_new(NULL);

		go_on(loop, read_in_scope, &late);
		OK(weft_loop_run(loop));
		stop_idle(loop);
	}
}
