/* dgram_send_test.c - threadlets that wait for room to send datagrams. */
#include <errno.h>
#include <unistd.h>
#include "unit/net/letters.h"

static weft_dgram *dgram; /* the sender */
static weft_addr at;      /* the destination */

/* --- one ---------------------------------------------------------------- */

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

static weft_threadlet waiting;

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
	(void)arg;
	OK(weft_interrupt(waiting));
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
	waiting = go_on(loop, send_waiting, &want);
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

/* --- several ------------------------------------------------------------ */

struct sender {
	const char *text; /* the first letter is noted at the end */
	uint64_t deadline_ns;
	weft_threadlet id;
	int result;
};

static int
send_one(void *arg)
{
	struct sender *sender = arg;
	weft_message message = letter(sender->text, &at);

	sender->result = weft_dgram_send(dgram, &message, 1, sender->deadline_ns);
	note(MARK(sender->text[0]));
	return 0;
}

static void
start_sender(weft_loop *loop, struct sender *sender, const char *text, uint64_t deadline_ns)
{
	*sender = (struct sender){ .text = text, .deadline_ns = deadline_ns };
	sender->id = go_on(loop, send_one, sender);
}

static void
send_in_order(bool connected)
{
	weft_loop *loop = make();
	struct sender a, b;

	open_full(connected);
	start_sender(loop, &a, "a", WEFT_NEVER);
	start_sender(loop, &b, "b", WEFT_NEVER);
	turns(loop, 3);
	CHECK_EQ(send_text(dgram, &at, "not before them"), WEFT_ETIMEDOUT);
	drain_sink(sent);
	CHECK_EQ(send_text(dgram, &at, "nor now"), WEFT_ETIMEDOUT);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ab");
	CHECK_EQ(a.result, 1);
	CHECK_EQ(b.result, 1);
	CHECK_GOT(sink, "a");
	CHECK_GOT(sink, "b");
	close_full();
	OK(weft_loop_free(loop));
}

TEST(threadlets_that_wait_to_send_keep_their_order)
{
	send_in_order(true);
	send_in_order(false);
}

TEST(canceled_or_late_send_does_not_affect_the_others)
{
	weft_loop *loop = make();
	struct sender a, b, c;

	open_full(true);
	start_sender(loop, &a, "a", WEFT_NEVER);
	start_sender(loop, &b, "b", weft_after(WEFT_MS));
	start_sender(loop, &c, "c", WEFT_NEVER);
	turn(loop);
	OK(weft_cancel(a.id));
	while (strlen(trace) < 2)
		(void)weft_loop_run_once(loop, weft_after(WEFT_MS));
	CHECK_EQ(a.result, WEFT_ECANCELED);
	CHECK_EQ(b.result, WEFT_ETIMEDOUT);
	drain_sink(sent);
	OK(weft_loop_run(loop));
	CHECK_EQ(c.result, 1);
	CHECK_GOT(sink, "c");
	close_full();
	OK(weft_loop_free(loop));
}

TEST(loop_stop_ends_waiting_sends)
{
	weft_loop *loop = make();
	struct sender a, b;

	open_full(false);
	start_sender(loop, &a, "a", WEFT_NEVER);
	start_sender(loop, &b, "b", WEFT_NEVER);
	turns(loop, 2);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(a.result, WEFT_ECANCELED);
	CHECK_EQ(b.result, WEFT_ECANCELED);
	close_full();
	OK(weft_loop_free(loop));
}

TEST(waiting_for_a_full_peer_does_not_spin)
{
	weft_loop *loop = make();
	struct sender a;

	open_full(false);
	count_calls();
	start_sender(loop, &a, "a", weft_after(20 * WEFT_MS));
	OK(weft_loop_run(loop));
	CHECK_EQ(a.result, WEFT_ETIMEDOUT);
	CHECK(counted(&calls.waits) < 100);
	count_no_more();
	close_full();
	OK(weft_loop_free(loop));
}
