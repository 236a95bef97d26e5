/* threadlet_op_test.c - threadlets that wait for ops: results, interrupts, and background
 * waits. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <weft/embed.h>
#include "unit/threadlet/sched.h"

/* --- closing -------------------------------------------------------------- */

static struct pair line;
static weft_op receiving;

static int
receive(void *arg)
{
	static char byte;

	OK(weft_op_init(&receiving, NULL, NULL, NULL));
	OK(weft_op_recv(&receiving, line.fd, &byte, 1, 0, WEFT_NEVER));
	CHECK_EQ(weft_op_wait(&receiving, WEFT_NEVER), WEFT_ESHUTDOWN);
	note(arg);
	return 0;
}

/* Waits once for the op, until it has ended.  Afterwards nothing touches the op's memory. */
static void
close_line(uint64_t deadline_ns)
{
	unsigned char bytes[sizeof(weft_op)];
	weft_op op;
	weft_scope shield;

	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_close(&op, line.fd));
	OK(weft_op_wait(&op, deadline_ns));
	CHECK(!op.pending);
	CHECK(!receiving.pending);
	CHECK(fcntl(line.fd, F_GETFD) < 0);
	memset(&op, 0x5a, sizeof(op));
	memset(bytes, 0x5a, sizeof(bytes));
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	CHECK(memcmp(&op, bytes, sizeof(op)) == 0);
	OK(weft_scope_close(&shield));
	note(MARK('c'));
}

static int
close_cancelled(void *arg)
{
	(void)arg;
	OK(weft_sleep_until(weft_after(WEFT_MS))); /* lets the loop begin the receive */
	OK(weft_cancel(weft_self()));
	close_line(WEFT_NEVER);
	return 0;
}

static int
close_late(void *arg)
{
	(void)arg;
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	close_line(weft_now());
	OK(weft_check_canceled());
	return 0;
}

static int
close_interrupted(void *arg)
{
	(void)arg;
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_interrupt(weft_self()));
	CHECK_EQ(weft_yield(), WEFT_EINTR);
	close_line(WEFT_NEVER);
	return 0;
}

static void
close_while_received_on(weft_threadlet_fn closer)
{
	weft_loop *loop = make();

	line = make_pair();
	go_on(loop, receive, MARK('r'));
	go_on(loop, closer, NULL);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "rc");
	OK(close(line.peer));
	OK(weft_loop_free(loop));
}

TEST(close_op_ends_once_whatever_happens_to_its_waiter)
{
	close_while_received_on(close_cancelled);
	close_while_received_on(close_late);
	close_while_received_on(close_interrupted);
}

/* --- detail texts --------------------------------------------------------- */

static void
on_no_cancel(weft_op *op, int why, void *arg)
{
	(void)arg;
	(void)weft_op_finish(op, why);
}

static void
fail_op(void *arg)
{
	(void)weft_fail(WEFT_EPROTO, "over there");
	OK(weft_op_finish(arg, WEFT_EPROTO));
	(void)weft_fail(WEFT_EPROTO, "something else");
}

static int
wait_for_words(void *arg)
{
	weft_op op;

	(void)weft_fail(WEFT_EINVAL, "before");
	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_begin(&op, on_no_cancel, NULL, WEFT_NEVER));
	OK(weft_loop_post(weft_loop_current(), fail_op, &op));
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "over there");
	note(arg);
	return 0;
}

static int
select_words(void *arg)
{
	weft_case choice = { .op = NULL };
	weft_op op;

	(void)weft_fail(WEFT_EINVAL, "before");
	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_begin(&op, on_no_cancel, NULL, WEFT_NEVER));
	OK(weft_loop_post(weft_loop_current(), fail_op, &op));
	choice.op = &op;
	CHECK_EQ(weft_select(&choice, 1, WEFT_NEVER), 0);
	CHECK_EQ(choice.result, WEFT_EPROTO);
	CHECK_STR(weft_detail(), "over there");
	note(arg);
	return 0;
}

TEST(detail_text_of_a_failed_op_reaches_a_select)
{
	run_threadlet(select_words, MARK('s'));
	CHECK_STR(trace, "s");
}

TEST(detail_text_of_a_failed_op_reaches_its_waiter)
{
	run_threadlet(wait_for_words, MARK('w'));
	CHECK_STR(trace, "w");
}

/* --- the loop of an op ---------------------------------------------------- */

static weft_loop *other;

static int
wait_elsewhere(void *arg)
{
	static weft_op op;

	(void)arg;
	OK(weft_op_init(&op, other, NULL, NULL));
	OK(weft_op_sleep(&op, weft_after(HOUR)));
	CHECK_MISUSE((int)weft_op_wait(&op, WEFT_NEVER), WEFT_EWRONGLOOP);
	CHECK_MISUSE((int)weft_op_wait(&op, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	CHECK(op.pending);
	weft_op_cancel(&op);
	return 0;
}

TEST(threadlet_cannot_wait_for_an_op_of_another_idle_loop)
{
	other = weft_loop_new(NULL);
	run_threadlet(wait_elsewhere, NULL);
	OK(weft_loop_run(other));
	OK(weft_loop_free(other));
}

static int
keep_arg(void *arg)
{
	weft_op op;

	OK(weft_op_init(&op, NULL, NULL, arg));
	OK(weft_op_sleep(&op, weft_after(1)));
	OK(weft_op_wait(&op, WEFT_NEVER));
	CHECK(op.arg == arg);
	CHECK(op.on_done == NULL);
	OK(weft_op_sleep(&op, weft_after(HOUR)));
	CHECK_EQ(weft_op_wait(&op, weft_after(1)), WEFT_ETIMEDOUT);
	CHECK(op.arg == arg);
	return 0;
}

TEST(op_keeps_its_argument_over_a_wait)
{
	int mine;

	run_threadlet(keep_arg, &mine);
}

/* --- interrupts ----------------------------------------------------------- */

static weft_op own;

static void
ignore(weft_op *op, int why, void *arg)
{
	(void)op;
	(void)why;
	(void)arg;
}

static int
wait_for_own(void *arg)
{
	weft_threadlet *id = arg;

	*id = weft_self();
	OK(weft_op_init(&own, NULL, NULL, NULL));
	OK(weft_op_begin(&own, ignore, NULL, WEFT_NEVER));
	CHECK_EQ(weft_op_wait(&own, WEFT_NEVER), 42);
	note(MARK('4'));
	CHECK_EQ(weft_sleep_until(weft_after(HOUR)), WEFT_EINTR);
	note(MARK('i'));
	OK(weft_sleep_until(weft_after(1)));
	OK(weft_yield());
	return 0;
}

static int
finish_and_interrupt(void *arg)
{
	weft_threadlet id = 0;

	CHECK(weft_go(wait_for_own, &id) > 0);
	OK(weft_yield());
	if (arg)
		OK(weft_interrupt(id)); /* cannot end the op */
	OK(weft_op_finish(&own, 42));
	if (!arg)
		OK(weft_interrupt(id)); /* comes too late */
	while (own.pending)
		OK(weft_yield());
	OK(weft_yield());
	return 0;
}

TEST(interrupt_at_the_same_time_as_a_result_ends_the_next_call_once)
{
	run_threadlet(finish_and_interrupt, NULL);
	CHECK_STR(trace, "4i");
	run_threadlet(finish_and_interrupt, MARK(1));
	CHECK_STR(trace, "4i");
}

static int
receive_one(void *arg)
{
	weft_threadlet *id = arg;
	char byte = 0;
	weft_op op;
	int told = 0;

	*id = weft_self();
	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_recv(&op, line.fd, &byte, 1, 0, WEFT_NEVER));
	if (weft_op_wait(&op, WEFT_NEVER) == WEFT_EINTR)
		told++;
	else
		CHECK_EQ(byte, 'y');
	for (int i = 0; i < 4; i++)
		told += weft_sleep_until(weft_after(1)) == WEFT_EINTR;
	CHECK_EQ(told, 1);
	note(MARK('r'));
	return 0;
}

static int
send_and_interrupt(void *arg)
{
	weft_threadlet id = 0;

	(void)arg;
	CHECK(weft_go(receive_one, &id) > 0);
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	put(line.peer, "y");
	OK(weft_interrupt(id));
	return 0;
}

TEST(interrupt_at_the_same_time_as_bytes_is_reported_once)
{
	line = make_pair();
	run_threadlet(send_and_interrupt, NULL);
	CHECK_STR(trace, "r");
	close_pair(line);
}

static int
send_while_interrupted(void *arg)
{
	weft_op op;
	int64_t sent;
	int told = 0;

	(void)arg;
	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_interrupt(weft_self()));
	OK(weft_op_send(&op, line.fd, "x", 1, 0, WEFT_NEVER));
	sent = weft_op_wait(&op, WEFT_NEVER);
	CHECK(sent == 1 || sent == WEFT_EINTR);
	told += sent == WEFT_EINTR;
	for (int i = 0; i < 4; i++)
		told += weft_yield() == WEFT_EINTR;
	CHECK_EQ(told, 1);
	CHECK_EQ(drain(line.peer), sent == 1);
	return 0;
}

TEST(interrupt_before_an_op_is_reported_once)
{
	line = make_pair();
	run_threadlet(send_while_interrupted, NULL);
	close_pair(line);
}

/* --- background ----------------------------------------------------------- */

static int
await_line(void *arg)
{
	int rc = weft_wait_fd(line.fd, WEFT_READABLE, WEFT_NEVER);

	note(rc == WEFT_READABLE ? arg : MARK('x'));
	return 0;
}

TEST(background_threadlet_that_waits_for_a_descriptor_does_not_keep_the_loop)
{
	weft_loop *loop = make();
	weft_go_opts opts = { .loop = loop, .background = true };

	line = make_pair();
	CHECK(weft_go_with(&opts, await_line, MARK('b')) > 0);
	OK(weft_loop_run(loop));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "");
	put(line.peer, "y");
	go_on(loop, await_line, MARK('f')); /* refused: another threadlet waits */
	while (!strchr(trace, 'b'))
		(void)weft_loop_run_once(loop, weft_after(HOUR));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "xb");
	OK(weft_loop_free(loop));
	close_pair(line);
}

TEST(waiting_background_threadlet_is_canceled_when_the_loop_stops)
{
	weft_loop *loop = make();
	weft_go_opts opts = { .loop = loop, .background = true };

	line = make_pair();
	CHECK(weft_go_with(&opts, await_line, MARK('b')) > 0);
	OK(weft_loop_run(loop));
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "x");
	OK(weft_loop_free(loop));
	close_pair(line);
}

/* --- errno ---------------------------------------------------------------- */

static int
spoil_errno(void *arg)
{
	CHECK_EQ(errno, 0);
	errno = 5;
	OK(weft_yield());
	CHECK_EQ(errno, 5);
	note(arg);
	return 0;
}

static void
see_errno(void *arg)
{
	CHECK_EQ(errno, 77);
	note(arg);
}

static weft_node last;

static void
set_errno(void *arg)
{
	last = (weft_node){ .fn = see_errno, .arg = arg };
	CHECK(weft_go(spoil_errno, MARK('t')) > 0);
	OK(weft_loop_post_before_wait(NULL, &last));
	errno = 77;
}

TEST(callbacks_after_threadlets_keep_the_errno_of_earlier_callbacks)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, set_errno, MARK('e')));
	OK(weft_loop_run(loop));
	CHECK(strcmp(trace, "te") == 0 || strcmp(trace, "et") == 0);
	OK(weft_loop_free(loop));
}
