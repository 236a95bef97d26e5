/* stream_queue_test.c - long write queues: their order, and writes that are canceled. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "unit/probe.h"

#define COUNT   3000 /* more than one call sends */
#define CANCELS 900  /* fewer than one loop iteration handles */
#define LARGE   (4u << 20)

struct item {
	weft_op op;
	weft_span span;
	uint64_t number;
	int64_t result;
	bool canceled;
};

static char large[LARGE];
static struct item items[COUNT];
static int ended;

static void
on_written(weft_op *op, int64_t result, void *arg)
{
	struct item *item = arg;

	(void)op;
	item->result = result;
	ended++;
}

static void
queue_item(weft_loop *loop, weft_stream *stream, uint64_t number)
{
	struct item *item = &items[number];

	*item = (struct item){ .number = number, .result = 1 };
	item->span = (weft_span){ &item->number, sizeof(item->number) };
	OK(weft_op_init(&item->op, loop, on_written, item));
	CHECK(weft_stream_write_op(stream, &item->span, 1, &item->op, WEFT_NEVER) >= 0);
}

static int64_t
queued_of(weft_stream *stream)
{
	int64_t size;

	OK(weft_stream_get(stream, "queued", &size));
	return size;
}

/* Reads `size` bytes at the other end while the loop sends them. */
static void
receive(weft_loop *loop, int fd, void *buf, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = recv(fd, (char *)buf + at, size - at, MSG_DONTWAIT);

		CHECK(n > 0 || (n < 0 && errno == EAGAIN));
		at += n > 0 ? (size_t)n : 0;
		if (n < 0)
			(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	}
}

/* Cancels CANCELS random writes, among them the first and the last. */
static void
cancel_some(uint64_t *seed)
{
	int count = 0;

	for (uint64_t i = 0; count < CANCELS; count++) {
		struct item *item = &items[i];

		item->canceled = true;
		weft_op_cancel(&item->op);
		do
			i = count == 0 ? COUNT - 1 : test_random(seed) % COUNT;
		while (items[i].canceled);
	}
}

static void
check_survivors(weft_loop *loop, int fd)
{
	static char sink[LARGE];

	receive(loop, fd, sink, sizeof(sink));
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t number;

		if (items[i].canceled)
			continue;
		receive(loop, fd, &number, sizeof(number));
		CHECK_EQ(number, i);
	}
}

TEST(canceled_writes_are_not_sent_and_the_others_keep_their_order)
{
	uint64_t seed = test_seed();
	weft_loop *loop = make();
	struct pair pair = make_pair();
	weft_stream *stream;
	weft_span span = { large, sizeof(large) };
	struct item first = { .result = 1 };
	int64_t before;

	ended = 0;
	OK(weft_stream_open_fd(pair.fd, false, &stream));
	OK(weft_stream_set(stream, "write_max", INT64_MAX));
	OK(weft_op_init(&first.op, loop, on_written, &first));
	/* Larger than the socket buffer, so the writes behind it wait. */
	CHECK_EQ(weft_stream_write_op(stream, &span, 1, &first.op, WEFT_NEVER), 1);
	before = queued_of(stream);
	for (uint64_t i = 0; i < COUNT; i++)
		queue_item(loop, stream, i);
	CHECK_EQ(queued_of(stream), before + COUNT * 8);
	cancel_some(&seed);
	turn(loop);
	check_survivors(loop, pair.peer);
	while (ended < COUNT + 1)
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_EQ(first.result, (int64_t)sizeof(large));
	for (uint64_t i = 0; i < COUNT; i++)
		CHECK_EQ(items[i].result, items[i].canceled ? WEFT_ECANCELED : 8);
	CHECK_EQ(queued_of(stream), 0);
	weft_stream_close(stream);
	OK(weft_loop_run(loop));
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(broken_connection_ends_every_write_of_a_long_queue)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	weft_stream *stream;
	weft_span span = { large, sizeof(large) };
	struct item first = { .result = 1 };

	ended = 0;
	OK(weft_stream_open_fd(pair.fd, false, &stream));
	OK(weft_stream_set(stream, "write_max", INT64_MAX));
	OK(weft_op_init(&first.op, loop, on_written, &first));
	CHECK_EQ(weft_stream_write_op(stream, &span, 1, &first.op, WEFT_NEVER), 1);
	for (uint64_t i = 0; i < COUNT; i++)
		queue_item(loop, stream, i);
	turn(loop);
	OK(close(pair.peer));
	while (ended < COUNT + 1)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK(first.result < 0);
	for (uint64_t i = 0; i < COUNT; i++)
		CHECK_EQ(items[i].result, first.result);
	CHECK_EQ(queued_of(stream), 0);
	weft_stream_close(stream);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

TEST(write_op_on_an_empty_queue_is_sent_before_the_loop_runs)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	weft_stream *stream;
	char got[3 * 8];

	ended = 0;
	OK(weft_stream_open_fd(pair.fd, false, &stream));
	for (uint64_t i = 0; i < 3; i++)
		queue_item(loop, stream, i);
	CHECK_EQ(recv(pair.peer, got, sizeof(got), MSG_DONTWAIT), (ssize_t)sizeof(got));
	CHECK_EQ(ended, 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(ended, 3);
	weft_stream_close(stream);
	OK(weft_loop_run(loop));
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}
