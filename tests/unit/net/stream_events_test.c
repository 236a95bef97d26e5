/* stream_events_test.c - streams that report by callbacks. */
#include <string.h>
#include <unistd.h>
#include <weft/embed.h>
#include <weft/metrics.h>
#include "unit/probe.h"

struct client {
	weft_stream *stream;
	char got[256];
	size_t size, take; /* take: bytes skipped in each call; 0: all */
	int calls, ends, drains, closes, error;
	bool close_at_end, close_at_data;
	bool in_steps; /* skip byte by byte */
};

static void
on_data(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct client *client = arg;
	size_t n = (size_t)size;

	CHECK(stream == client->stream);
	CHECK_EQ(client->ends, 0);
	client->calls++;
	if (size <= 0) {
		client->ends++;
		client->error = (int)size;
		if (client->close_at_end)
			weft_stream_close(stream);
		return;
	}
	if (client->take && client->take < n)
		n = client->take;
	memcpy(client->got + client->size, data, n);
	client->size += n;
	for (size_t step = client->in_steps ? 1 : n; n > 0; n -= step)
		OK(weft_stream_skip(stream, step));
	if (client->close_at_data)
		weft_stream_close(stream);
}

static void
on_drain(weft_stream *stream, void *arg)
{
	struct client *client = arg;

	CHECK(stream == client->stream);
	client->drains++;
}

static void
on_close(void *arg)
{
	((struct client *)arg)->closes++;
}

static const weft_stream_events events = { .on_data = on_data,
	                                   .on_drain = on_drain,
	                                   .on_close = on_close };

static struct client
open_client(int fd)
{
	struct client client = { .calls = 0 };

	OK(weft_stream_open_fd(fd, false, &client.stream));
	return client;
}

TEST(on_data_reports_what_arrives_and_then_the_end)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	client.close_at_end = true;
	OK(weft_stream_start(client.stream, loop, &events, &client));
	put(pair.peer, "first");
	while (client.size < 5)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	put(pair.peer, "second");
	OK(close(pair.peer));
	OK(weft_loop_run(loop));
	CHECK_STR(client.got, "firstsecond");
	CHECK_EQ(client.ends, 1);
	CHECK_EQ(client.error, 0);
	CHECK_EQ(client.closes, 1);
	OK(weft_loop_free(loop));
}

/* When everything received is skipped, the loop has nothing left to run. */
static void
count_turns(bool in_steps)
{
	enum { MESSAGES = 100 };

	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	int turns = 0;

	client.close_at_end = true;
	client.in_steps = in_steps;
	OK(weft_stream_start(client.stream, loop, &events, &client));
	for (int i = 1; i <= MESSAGES; i++) {
		put(pair.peer, "xy");
		for (; client.size < 2 * (size_t)i; turns++)
			(void)weft_loop_run_once(loop, WEFT_NEVER);
		for (; weft_loop_next(loop) == WEFT_NOWAIT; turns++)
			(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	}
	CHECK_EQ(client.calls, MESSAGES);
	printf("%d turns for %d messages\n", turns, MESSAGES);
	CHECK(turns <= MESSAGES + MESSAGES / 10);
	OK(close(pair.peer));
	OK(weft_loop_run(loop));
	CHECK_EQ(client.ends, 1);
	OK(weft_loop_free(loop));
}

TEST(message_that_is_skipped_completely_takes_one_loop_iteration)
{
	count_turns(false);
}

TEST(message_that_is_skipped_in_steps_takes_one_loop_iteration)
{
	count_turns(true);
}

/* The end has arrived long before its turn comes.  The call that skips the last byte is followed by
 * the end at once, so the loop has nothing left to run. */
TEST(end_that_follows_the_last_bytes_takes_no_further_iteration)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct weft_loop_stats stats;

	client.take = 1;
	OK(weft_stream_start(client.stream, loop, &events, &client));
	put(pair.peer, "0123456789abcdef");
	OK(close(pair.peer));
	while (client.ends == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_STR(client.got, "0123456789abcdef");
	CHECK(weft_loop_next(loop) != WEFT_NOWAIT);
	OK(weft_loop_stats(loop, &stats));
	CHECK_EQ(stats.posts_accepted, 0);
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	CHECK_EQ(client.closes, 1);
	OK(weft_loop_free(loop));
}

/* The end was left by an earlier call, so the loop has to report it. */
TEST(end_is_reported_after_a_skip_outside_of_callbacks)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	client.take = 2;
	OK(weft_stream_start(client.stream, loop, &events, &client));
	put(pair.peer, "abcd");
	while (client.size < 2)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	OK(weft_stream_stop(client.stream));
	OK(weft_stream_start(client.stream, loop, &events, &client));
	OK(weft_stream_skip(client.stream, 2));
	OK(close(pair.peer));
	OK(weft_loop_run(loop));
	CHECK_EQ(client.size, 2);
	CHECK_EQ(client.ends, 1);
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

TEST(on_data_shows_bytes_again_that_were_not_skipped)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	client.take = 2;
	client.close_at_end = true;
	OK(weft_stream_start(client.stream, loop, &events, &client));
	put(pair.peer, "abcdefg");
	OK(close(pair.peer));
	OK(weft_loop_run(loop));
	CHECK_STR(client.got, "abcdefg");
	CHECK_EQ(client.calls, 5);
	CHECK_EQ(client.closes, 1);
	OK(weft_loop_free(loop));
}

TEST(stopped_stream_reports_nothing_until_it_is_started_again)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	OK(weft_stream_start(client.stream, loop, &events, &client));
	turns(loop, 2);
	OK(weft_stream_stop(client.stream));
	put(pair.peer, "x");
	turns(loop, 5);
	CHECK_EQ(client.calls, 0);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0); /* and it does not keep the loop
	                                                     * alive */
	OK(weft_stream_start(client.stream, loop, &events, &client));
	while (client.size < 1) /* queued bytes are shown before the loop waits */
		(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_STR(client.got, "x");
	weft_stream_close(client.stream);
	CHECK_EQ(client.closes, 0); /* no callback runs inside weft_stream_close() */
	OK(weft_loop_run(loop));
	CHECK_EQ(client.closes, 1);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(callback_may_close_its_stream)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	client.close_at_data = true;
	OK(weft_stream_start(client.stream, loop, &events, &client));
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_EQ(client.calls, 1);
	CHECK_EQ(client.closes, 1);
	CHECK_EQ(drain(pair.peer), 0);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(background_stream_does_not_keep_the_loop_alive)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	OK(weft_stream_start(client.stream, loop, &events, &client));
	weft_stream_set_background(client.stream, true);
	OK(weft_loop_run(loop));
	weft_stream_reset(client.stream);
	OK(weft_loop_run(loop));
	CHECK_EQ(client.closes, 1);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(loop_stop_is_reported_to_on_data_as_the_end)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	OK(weft_stream_start(client.stream, loop, &events, &client));
	turns(loop, 2);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(client.ends, 1);
	CHECK_EQ(client.error, WEFT_ESHUTDOWN);
	weft_stream_close(client.stream);
	CHECK_EQ(client.closes, 1);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

/* --- writing -------------------------------------------------------------- */

struct sent {
	weft_op op;
	int64_t result;
	int calls;
};

static void
on_sent(weft_op *op, int64_t result, void *arg)
{
	struct sent *sent = arg;

	(void)op;
	sent->result = result;
	sent->calls++;
}

static char much[1 << 20];

/* Byte `at` of what is sent: `much`, then "end". */
static char
sent_at(size_t at)
{
	CHECK(at < sizeof(much) + 3);
	return at < sizeof(much) ? much[at] : "end"[at - sizeof(much)];
}

/* Like drain(), but compares the bytes.  `at` bytes were received before. */
static size_t
drain_sent(int fd, size_t at)
{
	static char buf[65536];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			if (buf[i] != sent_at(at))
				CHECK_EQ(at, -1);
	return at;
}

TEST(writes_are_sent_in_order_and_on_drain_reports_low_water)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct sent a = { .calls = 0 }, b = { .calls = 0 };
	weft_span big = { much, sizeof(much) }, small = { "end", 3 };
	int64_t queued;
	size_t all = 0;

	for (size_t i = 0; i < sizeof(much); i++)
		much[i] = (char)(i * 7 % 251);
	OK(weft_op_init(&a.op, loop, on_sent, &a));
	OK(weft_op_init(&b.op, loop, on_sent, &b));
	OK(weft_stream_start(client.stream, loop, &events, &client));
	CHECK_EQ(weft_stream_write_op(client.stream, &big, 1, &a.op, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_write_op(client.stream, &small, 1, &b.op, WEFT_NEVER), 1);
	OK(weft_stream_get(client.stream, "queued", &queued));
	CHECK(queued > 65536);
	turns(loop, 3);
	CHECK_EQ(a.calls + b.calls + client.drains, 0);
	while (all < sizeof(much) + 3) {
		all = drain_sent(pair.peer, all);
		turn(loop);
	}
	while (b.calls == 0)
		turn(loop);
	CHECK_EQ(all, sizeof(much) + 3);
	CHECK_EQ(a.result, (int64_t)sizeof(much));
	CHECK_EQ(b.result, 3);
	CHECK_EQ(client.drains, 1);
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(canceled_or_late_write_ends_without_affecting_the_others)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct sent a = { .calls = 0 }, b = { .calls = 0 }, c = { .calls = 0 };
	weft_span big = { much, sizeof(much) }, small = { "end", 3 };

	OK(weft_op_init(&a.op, loop, on_sent, &a));
	OK(weft_op_init(&b.op, loop, on_sent, &b));
	OK(weft_op_init(&c.op, loop, on_sent, &c));
	CHECK_EQ(weft_stream_write_op(client.stream, &big, 1, &a.op, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_write_op(client.stream, &small, 1, &b.op, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_write_op(client.stream, &small, 1, &c.op, weft_after(WEFT_MS)), 1);
	weft_op_cancel(&b.op);
	while (c.calls == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(b.calls, 1);
	CHECK_EQ(b.result, WEFT_ECANCELED);
	CHECK_EQ(c.result, WEFT_ETIMEDOUT);
	OK(close(pair.peer));
	while (a.calls == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK(a.result == WEFT_EPIPE || a.result == WEFT_ECONNRESET);
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

TEST(peer_that_does_not_read_is_dropped_at_write_max)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct sent a = { .calls = 0 }, b = { .calls = 0 };
	weft_span big = { much, sizeof(much) };
	struct weft_loop_stats stats;
	char byte;

	OK(weft_op_init(&a.op, loop, on_sent, &a));
	OK(weft_op_init(&b.op, loop, on_sent, &b));
	OK(weft_stream_start(client.stream, loop, &events, &client));
	OK(weft_stream_set(client.stream, "write_max", 100000));
	CHECK_EQ(weft_stream_write_op(client.stream, &big, 1, &a.op, WEFT_NEVER), 1);
	CHECK(weft_stream_write_op(client.stream, &big, 1, &b.op, WEFT_NEVER) >= 0);
	while (a.calls + b.calls + client.ends < 3)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(a.result, WEFT_ENOBUFS);
	CHECK_EQ(b.result, WEFT_ENOBUFS);
	CHECK_EQ(client.error, WEFT_ENOBUFS);
	(void)drain(pair.peer);
	CHECK_EQ(recv(pair.peer, &byte, 1, 0), 0); /* the peer sees the end */
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	CHECK_EQ(client.closes, 1);
	OK(weft_loop_stats(loop, &stats));
	CHECK_EQ(stats.peers_dropped, 1);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(close_sends_queued_writes_first)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct sent a = { .calls = 0 };
	weft_span big = { much, sizeof(much) };
	size_t all = 0;

	OK(weft_op_init(&a.op, loop, on_sent, &a));
	CHECK_EQ(weft_stream_write_op(client.stream, &big, 1, &a.op, WEFT_NEVER), 1);
	weft_stream_close(client.stream);
	while (a.calls == 0) {
		all += (size_t)drain(pair.peer);
		turn(loop);
	}
	CHECK_EQ(a.result, (int64_t)sizeof(much));
	all += (size_t)drain(pair.peer);
	CHECK_EQ(all, sizeof(much));
	OK(weft_loop_run(loop));
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(half_close_of_a_callback_waits_for_queued_writes)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct sent a = { .calls = 0 };
	weft_span big = { much, sizeof(much) };
	size_t all = 0;

	OK(weft_op_init(&a.op, loop, on_sent, &a));
	CHECK_EQ(weft_stream_write_op(client.stream, &big, 1, &a.op, WEFT_NEVER), 1);
	CHECK_EQ(weft_stream_shutdown(client.stream, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	while (a.calls == 0) {
		all += (size_t)drain(pair.peer);
		turn(loop);
	}
	all += (size_t)drain(pair.peer);
	CHECK_EQ(all, sizeof(much));
	OK(weft_stream_shutdown(client.stream, WEFT_NOWAIT));
	CHECK_EQ(weft_stream_write_op(client.stream, &big, 1, &a.op, WEFT_NEVER), 0);
	turns(loop, 2);
	CHECK_EQ(a.result, WEFT_EPIPE);
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(close_does_not_linger_forever_for_a_peer_that_does_not_read)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct sent a = { .calls = 0 };
	weft_span big = { much, sizeof(much) };

	OK(weft_op_init(&a.op, loop, on_sent, &a));
	OK(weft_stream_start(client.stream, loop, &events, &client));
	OK(weft_stream_set(client.stream, "linger_ns", (int64_t)WEFT_MS));
	CHECK_EQ(weft_stream_write_op(client.stream, &big, 1, &a.op, WEFT_NEVER), 1);
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	CHECK_EQ(a.result, WEFT_ESHUTDOWN);
	CHECK_EQ(client.closes, 1);
	OK(close(pair.peer));
	OK(weft_loop_free(loop));
}

TEST(peek_op_finishes_when_enough_bytes_are_there)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);
	struct sent a = { .calls = 0 };

	OK(weft_op_init(&a.op, loop, on_sent, &a));
	OK(weft_stream_peek_op(client.stream, 4, &a.op, WEFT_NEVER));
	put(pair.peer, "abc");
	turns(loop, 4);
	CHECK_EQ(a.calls, 0);
	put(pair.peer, "de");
	while (a.calls == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK(a.result >= 4);
	a.calls = 0;
	OK(close(pair.peer));
	OK(weft_stream_skip(client.stream, 2));
	OK(weft_stream_peek_op(client.stream, 4, &a.op, WEFT_NEVER));
	while (a.calls == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(a.result, 3); /* everything that is left, at the end */
	weft_stream_close(client.stream);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

static char elsewhere[6000];

static void *
on_buffer(weft_stream *stream, size_t *size, void *arg)
{
	(void)stream;
	(void)arg;
	*size = *size < sizeof(elsewhere) ? *size : sizeof(elsewhere);
	return elsewhere;
}

static void
on_bulk(weft_stream *stream, const void *data, ssize_t size, void *arg)
{
	struct client *client = arg;

	if (size <= 0) {
		client->ends++;
		weft_stream_close(stream);
		return;
	}
	client->size += (size_t)size;
	client->calls += data == elsewhere;
	if (data != elsewhere)
		OK(weft_stream_skip(stream, (size_t)size));
}

TEST(on_buffer_memory_receives_bulk_data_completely)
{
	static const weft_stream_events bulk = { .on_data = on_bulk, .on_buffer = on_buffer };
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct client client = open_client(pair.fd);

	CHECK_EQ(send(pair.peer, much, 20000, 0), 20000);
	OK(close(pair.peer));
	OK(weft_stream_start(client.stream, loop, &bulk, &client));
	OK(weft_loop_run(loop));
	CHECK_EQ(client.size, 20000);
	CHECK(client.calls > 0);
	CHECK_EQ(client.ends, 1);
	OK(weft_loop_free(loop));
}
