/* dgram_send_test.c - threadlets and ops that wait for room to send datagrams. */
#include <errno.h>
#include <unistd.h>
#include "unit/net/letters.h"

static weft_dgram *dgram; /* the sender */
static weft_addr at;      /* the destination */

static void
open_it(void)
{
	dgram = open_at(LOOPBACK);
	at = local_of(dgram);
}

/* --- threadlets --------------------------------------------------------- */

/* `dgram` sends to `sink`, whose queue is full. */
static weft_dgram *sink;
static int sent; /* messages in the queue of `sink` */

static void
open_full(bool connected)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "unixdgram:@weft-sink-%d", (int)getpid());
	sink = open_at(name);
	at = local_of(sink);
	dgram = connected ? open_to("unixdgram:", &at) : open_at("unixdgram:");
	for (sent = 0; send_text(dgram, &at, "full") == 1; sent++)
		;
	CHECK(sent > 0);
	CHECK_EQ(send_text(dgram, &at, "full"), WEFT_ETIMEDOUT);
}

static void
drain_sink(int count)
{
	for (int i = 0; i < count; i++)
		CHECK_GOT(sink, "full");
}

static void
close_full(void)
{
	weft_dgram_close(dgram);
	weft_dgram_close(sink);
}

static int
send_waiting(void *arg)
{
	weft_message message = letter("waited", &at);
	uint64_t deadline_ns = weft_after(2 * WEFT_MS);

	CHECK_EQ(weft_dgram_send(dgram, &message, 1, deadline_ns), WEFT_ETIMEDOUT);
	CHECK(weft_now() >= deadline_ns);
	note(MARK('t'));
	CHECK_EQ(weft_dgram_send(dgram, &message, 1, WEFT_NEVER), *(int *)arg);
	note(MARK('w'));
	return 0;
}

static int
drain_later(void *arg)
{
	(void)arg;
	while (trace[0] != 't')
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_sleep_until(weft_after(2 * WEFT_MS)));
	drain_sink(sent);
	return 0;
}

static void
wait_for_sink(bool connected)
{
	weft_loop *loop = make();
	int want = 1;

	open_full(connected);
	go_on(loop, send_waiting, &want);
	go_on(loop, drain_later, NULL);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "tw");
	CHECK_GOT(sink, "waited");
	close_full();
	OK(weft_loop_free(loop));
}

TEST(threadlet_waits_for_room_to_send)
{
	wait_for_sink(true);
	wait_for_sink(false);
}

static int
end_later(void *arg)
{
	weft_fn end = *(weft_fn *)arg;

	while (trace[0] != 't')
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_sleep_until(weft_after(2 * WEFT_MS)));
	end(dgram);
	return 0;
}

static void
interrupt_fn(void *arg)
{
	weft_dgram_interrupt(arg);
}

static void
close_fn(void *arg)
{
	weft_dgram_close(arg);
	dgram = NULL;
}

static void
end_sender(bool connected, weft_fn end, int want)
{
	weft_loop *loop = make();

	open_full(connected);
	go_on(loop, send_waiting, &want);
	go_on(loop, end_later, &end);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "tw");
	close_full();
	OK(weft_loop_free(loop));
}

TEST(send_waiting_for_room_ends_on_interrupt_and_on_close)
{
	end_sender(true, interrupt_fn, WEFT_EINTR);
	end_sender(false, interrupt_fn, WEFT_EINTR);
	end_sender(true, close_fn, WEFT_ESHUTDOWN);
	end_sender(false, close_fn, WEFT_ESHUTDOWN);
}

/* --- ops ---------------------------------------------------------------- */

static void
send_op(weft_loop *loop, struct probe *p, weft_message *message, uint64_t deadline_ns)
{
	init(loop, p);
	OK(weft_dgram_send_op(dgram, message, 1, &p->op, deadline_ns));
	CHECK(p->op.pending);
}

TEST(send_op_sends_at_once_if_there_is_room)
{
	weft_loop *loop = make();
	weft_message message;
	struct probe p = { .name = 'p' };

	open_it();
	message = letter("to myself", &at);
	send_op(loop, &p, &message, WEFT_NOWAIT);
	CHECK_MISUSE(weft_dgram_send_op(dgram, &message, 1, &p.op, WEFT_NEVER), WEFT_EBUSY);
	CHECK_GOT(dgram, "to myself");
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 1);
	weft_dgram_close(dgram);
	OK(weft_loop_free(loop));
}

static int64_t
queued(void)
{
	int64_t bytes = -1;

	OK(weft_dgram_get(dgram, "queued", &bytes));
	return bytes;
}

static void
send_in_order(bool connected)
{
	weft_loop *loop = make();
	weft_message one, two;
	struct probe a = { .name = 'a' }, b = { .name = 'b' };

	open_full(connected);
	one = letter("one", &at);
	two = letter("second", &at);
	send_op(loop, &a, &one, WEFT_NEVER);
	send_op(loop, &b, &two, WEFT_NEVER);
	turns(loop, 3);
	CHECK_EQ(queued(), 9);
	CHECK_EQ(send_text(dgram, &at, "not before them"), WEFT_ETIMEDOUT);
	drain_sink(sent);
	CHECK_EQ(send_text(dgram, &at, "nor now"), WEFT_ETIMEDOUT);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ab");
	CHECK_ENDED(&a, 1);
	CHECK_ENDED(&b, 1);
	CHECK_EQ(queued(), 0);
	CHECK_GOT(sink, "one");
	CHECK_GOT(sink, "second");
	close_full();
	OK(weft_loop_free(loop));
}

TEST(send_ops_wait_for_room_and_keep_their_order)
{
	send_in_order(true);
	send_in_order(false);
}

TEST(queue_of_send_ops_is_limited)
{
	weft_loop *loop = make();
	weft_message message;
	struct probe a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };

	open_full(true);
	OK(weft_dgram_set(dgram, "write_max", 12));
	message = letter("123456", &at);
	send_op(loop, &a, &message, WEFT_NEVER);
	send_op(loop, &b, &message, WEFT_NEVER);
	send_op(loop, &c, &message, WEFT_NEVER);
	CHECK_EQ(queued(), 12);
	turns(loop, 2);
	CHECK_STR(trace, "c");
	CHECK_ENDED(&c, WEFT_ENOBUFS);
	weft_dgram_close(dgram);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "cab");
	CHECK_ENDED(&a, WEFT_ESHUTDOWN);
	CHECK_ENDED(&b, WEFT_ESHUTDOWN);
	weft_dgram_close(sink);
	OK(weft_loop_free(loop));
}

TEST(canceled_or_late_send_op_does_not_affect_the_others)
{
	weft_loop *loop = make();
	weft_message message;
	struct probe a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };

	open_full(true);
	message = letter("x", &at);
	send_op(loop, &a, &message, WEFT_NEVER);
	send_op(loop, &b, &message, weft_after(WEFT_MS));
	send_op(loop, &c, &message, WEFT_NEVER);
	weft_op_cancel(&a.op);
	while (b.op.pending)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_STR(trace, "ab");
	CHECK_ENDED(&a, WEFT_ECANCELED);
	CHECK_ENDED(&b, WEFT_ETIMEDOUT);
	CHECK_EQ(queued(), 1);
	drain_sink(sent);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&c, 1);
	close_full();
	OK(weft_loop_free(loop));
}

TEST(send_op_past_its_deadline_still_uses_room_that_exists)
{
	weft_loop *loop = make();
	weft_message message;
	struct probe a = { .name = 'a' };

	open_full(false);
	message = letter("x", &at);
	send_op(loop, &a, &message, WEFT_NOWAIT);
	drain_sink(sent);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&a, 1);
	close_full();
	OK(weft_loop_free(loop));
}

static weft_message next_message;

static void
send_next(struct probe *p)
{
	send_op(p->op.loop, p->other, &next_message, WEFT_NEVER);
}

TEST(send_op_started_in_the_callback_of_the_last_one_is_sent)
{
	weft_loop *loop = make();
	struct probe b = { .name = 'b' };
	struct probe a = { .name = 'a', .act = send_next, .other = &b };

	open_full(true);
	next_message = letter("x", &at);
	send_op(loop, &a, &next_message, WEFT_NEVER);
	turns(loop, 2);
	weft_dgram_interrupt(dgram);
	turns(loop, 3);
	CHECK_ENDED(&a, WEFT_EINTR);
	CHECK(b.op.pending);
	drain_sink(sent);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&b, 1);
	close_full();
	OK(weft_loop_free(loop));
}

TEST(loop_stop_ends_send_ops)
{
	weft_loop *loop = make();
	weft_message message;
	struct probe a = { .name = 'a' }, b = { .name = 'b' };

	open_full(false);
	message = letter("x", &at);
	send_op(loop, &a, &message, WEFT_NEVER);
	send_op(loop, &b, &message, WEFT_NEVER);
	turns(loop, 2);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&a, WEFT_ESHUTDOWN);
	CHECK_ENDED(&b, WEFT_ESHUTDOWN);
	CHECK_EQ(weft_dgram_send_op(dgram, &message, 1, &a.op, WEFT_NEVER), WEFT_ESHUTDOWN);
	close_full();
	OK(weft_loop_free(loop));
}

TEST(waiting_for_a_full_peer_does_not_spin)
{
	weft_loop *loop = make();
	weft_message message;
	struct probe a = { .name = 'a' };

	open_full(false);
	message = letter("x", &at);
	count_calls();
	send_op(loop, &a, &message, weft_after(20 * WEFT_MS));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&a, WEFT_ETIMEDOUT);
	CHECK(counted(&calls.waits) < 100);
	count_no_more();
	close_full();
	OK(weft_loop_free(loop));
}
