/* promise_make_test.c - promises made from ops, functions and threadlets. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
#include <arpa/inet.h>
#include "unit/promise/promised.h"

static weft_promise *p, *end;
static struct token token, other;

/* --- sleep -------------------------------------------------------------- */

static void
sleep_awhile(void *arg)
{
	weft_op *op = NULL;

	p = weft_promise_new_op(arg, &op);
	CHECK(p && op && !op->pending);
	OK(weft_op_sleep(op, weft_after(WEFT_MS)));
	end = weft_promise_then(hold(p), note_and_add, NULL, MARK('s'));
	check_pending(p);
}

static void
check_slept(void)
{
	CHECK_STR(trace, "s");
	end_fulfilled(p, 0);
	end_fulfilled(end, 1);
}

TEST(the_result_of_an_op_fulfills_its_promise)
{
	in_both_ways(sleep_awhile, check_slept);
}

static void
cancel_op(void *arg)
{
	weft_op_cancel(arg);
}

static void
sleep_and_cancel(void *arg)
{
	weft_op *op;

	p = weft_promise_new_op(arg, &op);
	OK(weft_op_sleep(op, weft_after(HOUR)));
	OK(weft_loop_post(arg, cancel_op, op));
	end = weft_promise_then(hold(p), NULL, note_and_fail, MARK('c'));
}

static void
check_cancelled(void)
{
	CHECK_STR(trace, "c");
	end_rejected(p, WEFT_ECANCELED);
	end_rejected(end, WEFT_ECANCELED);
}

TEST(the_error_of_an_op_rejects_its_promise)
{
	in_both_ways(sleep_and_cancel, check_cancelled);
}

static void
never_start(void *arg)
{
	weft_op *op;

	drop(weft_promise_new_op(arg, &op));
	p = weft_promise_new_op(arg, &op);
	end = weft_promise_then(p, note_it, note_and_fail, MARK('n'));
}

static void
check_never_started(void)
{
	CHECK_STR(trace, "n");
	end_rejected(end, WEFT_ECLOSED);
}

TEST(a_promise_whose_op_is_never_started_can_be_dropped)
{
	in_both_ways(never_start, check_never_started);
}

/* The op holds its promise until it has finished. */
static void
forget_sleeping(void *arg)
{
	weft_op *op;

	p = weft_promise_new_op(arg, &op);
	OK(weft_op_sleep(op, weft_after(WEFT_MS)));
	drop(p);
	p = weft_promise_new_op(arg, &op);
	OK(weft_op_sleep(op, weft_after(WEFT_MS)));
	end = weft_promise_then(p, note_and_add, NULL, MARK('f'));
}

static void
check_finished(void)
{
	CHECK_STR(trace, "f");
	end_fulfilled(end, 1);
}

TEST(an_op_finishes_even_if_its_promise_was_dropped)
{
	in_both_ways(forget_sleeping, check_finished);
}

TEST(a_sleeping_op_rejects_its_promise_when_the_loop_stops)
{
	for (int inside = 0; inside < 2; inside++) {
		weft_loop *loop = make();

		if (inside)
			OK(weft_loop_post(loop, sleep_and_cancel, loop));
		else
			sleep_and_cancel(loop);
		if (inside)
			turn(loop);
		stop_idle(loop);
		CHECK(weft_promise_state(p, NULL) == WEFT_REJECTED);
		CHECK_STR(trace, "c");
		drop(p);
		drop(end);
	}
}

TEST(a_promise_of_an_op_without_a_loop_or_out_pointer_is_misuse)
{
	weft_loop *loop = make();
	weft_op *op;

	CHECK_MISUSE(weft_promise_new_op(loop, NULL) ? 1 : 0, 0);
	CHECK_MISUSE(weft_promise_new_op(NULL, &op) ? 1 : 0, 0);
	stop_idle(loop);
}

/* --- settled early, while the op runs ------------------------------------- */

static weft__a32 gate, running;

static int
wait_at_gate(void *arg)
{
	weft__store(&running, 1, WEFT__RELEASE);
	while (!weft__load(&gate, WEFT__ACQUIRE))
		sched_yield();
	return (int)(intptr_t)arg;
}

static void
await_running(void)
{
	while (!weft__load(&running, WEFT__ACQUIRE))
		sched_yield();
}

static void
open_gate(void *arg)
{
	(void)arg;
	weft__store(&gate, 1, WEFT__RELEASE);
}

/* A promise of work that waits at the gate. */
static weft_promise *
work_at_gate(weft_loop *loop, int result)
{
	weft_op *op;
	weft_promise *promise = weft_promise_new_op(loop, &op);

	weft__store(&gate, 0, WEFT__RELAXED);
	weft__store(&running, 0, WEFT__RELAXED);
	OK(weft_work_op(WEFT_CPU, wait_at_gate, MARK(result), op, WEFT_NEVER));
	return promise;
}

static void
work_and_open(void *arg)
{
	p = work_at_gate(arg, 7);
	end = weft_promise_then(hold(p), note_and_add, NULL, MARK('w'));
	open_gate(NULL);
}

static void
check_worked(void)
{
	CHECK_STR(trace, "w");
	end_fulfilled(p, 7);
	end_fulfilled(end, 8);
}

TEST(the_result_of_work_on_a_pool_fulfills_its_promise)
{
	in_both_ways(work_and_open, check_worked);
}

static void
work_in_vain(void *arg)
{
	p = work_at_gate(arg, WEFT_EPROTO);
	end = weft_promise_then(p, NULL, note_and_fail, MARK('e'));
	open_gate(NULL);
}

static void
check_in_vain(void)
{
	CHECK_STR(trace, "e");
	end_rejected(end, WEFT_EPROTO);
}

TEST(the_error_of_work_on_a_pool_rejects_its_promise)
{
	in_both_ways(work_in_vain, check_in_vain);
}

/* The op continues.  Its promise lives until the op has finished, and ignores the op's result. */
static void
settle_before_op(void *arg)
{
	p = work_at_gate(arg, 7);
	OK(weft_promise_resolve(p, alone(&token, 3)));
	also_note(p, 'h');
	drop(p);
	OK(weft_schedule_immediate(arg, open_gate, NULL) > 0 ? 0 : -1);
}

static void
check_settled_before(void)
{
	CHECK_STR(trace, "h");
	CHECK_EQ(owners(&token), 0);
}

TEST(a_promise_settled_early_lives_until_its_op_has_finished)
{
	in_both_ways(settle_before_op, check_settled_before);
}

static int
drop_and_open(const weft_value *in, weft_value *out, void *arg)
{
	(void)out;
	CHECK_EQ(number_of(in), WEFT_ESHUTDOWN);
	drop(arg);
	note(MARK('d'));
	return weft_schedule_microtask(NULL, open_gate, NULL);
}

TEST(a_promise_may_be_dropped_while_the_loop_stops_before_its_op_finishes)
{
	weft_loop *loop = make();

	p = work_at_gate(loop, 7);
	await_running();
	drop(weft_promise_then(hold(p), NULL, drop_and_open, p));
	stop_idle(loop);
	CHECK_STR(trace, "d");
}

static void *
drop_there(void *arg)
{
	await_running();
	drop(arg);
	return NULL;
}

/* The thread that drops the promise does not run the loop. */
TEST(another_thread_may_drop_the_last_reference_while_the_op_runs)
{
	for (int settled = 0; settled < 2; settled++) {
		weft_loop *loop = make();
		pthread_t id;

		p = work_at_gate(loop, 7);
		if (settled)
			OK(weft_promise_resolve(p, alone(&token, 3)));
		end = weft_promise_then(hold(p), note_it, NULL, MARK('t'));
		id = thread(drop_there, p);
		OK(pthread_join(id, NULL));
		OK(weft_loop_post(loop, open_gate, NULL));
		OK(weft_loop_run(loop));
		CHECK_STR(trace, "t");
		CHECK_EQ(owners(&token), 0);
		drop(end);
		stop_idle(loop);
	}
}

/* --- streams -------------------------------------------------------------- */

static char address[64];
static weft_stream *stream;
static int listener, accepted;

static void
name_address(const struct sockaddr_in *addr)
{
	(void)snprintf(address, sizeof(address), "tcp://127.0.0.1:%d", ntohs(addr->sin_port));
}

static const weft_span hello = { "hello", 5 };

/* Runs when connected: start a write, and return its promise. */
static int
write_hello(const weft_value *in, weft_value *out, void *arg)
{
	weft_op *op;
	weft_promise *written = weft_promise_new_op(NULL, &op);

	(void)arg;
	CHECK_EQ(number_of(in), 0);
	note(MARK('c'));
	CHECK(weft_stream_write_op(stream, &hello, 1, op, WEFT_NEVER) >= 0);
	*out = weft_value_promise(written);
	return 0;
}

static int
read_reply(const weft_value *in, weft_value *out, void *arg)
{
	weft_op *op;
	weft_promise *peeked = weft_promise_new_op(NULL, &op);

	(void)arg;
	CHECK_EQ(number_of(in), 5);
	note(MARK('w'));
	accepted = accept(listener, NULL, NULL);
	CHECK(accepted >= 0);
	put(accepted, "bye");
	OK(weft_stream_peek_op(stream, 3, op, WEFT_NEVER));
	*out = weft_value_promise(peeked);
	return 0;
}

static int
close_stream(const weft_value *in, weft_value *out, void *arg)
{
	const void *bytes;

	(void)arg;
	*out = *in;
	CHECK_EQ(weft_stream_peek(stream, 3, &bytes, WEFT_NOWAIT), 3);
	CHECK(memcmp(bytes, "bye", 3) == 0);
	note(MARK('r'));
	(void)weft_stream_close(stream);
	return 0;
}

static void
talk(void *arg)
{
	struct sockaddr_in addr;
	weft_op *op;

	listener = make_listener(4, &addr);
	name_address(&addr);
	p = weft_promise_new_op(arg, &op);
	OK(weft_stream_connect_op(address, NULL, &stream, op, WEFT_NEVER));
	p = weft_promise_then(p, write_hello, NULL, NULL);
	p = weft_promise_then(p, read_reply, NULL, NULL);
	end = weft_promise_then(p, close_stream, NULL, NULL);
}

static void
check_talked(void)
{
	CHECK_STR(trace, "cwr");
	end_fulfilled(end, 3);
	OK(close(accepted));
	OK(close(listener));
}

TEST(a_stream_is_connected_written_and_read_by_a_chain_of_ops)
{
	in_both_ways(talk, check_talked);
}

static void
connect_in_vain(void *arg)
{
	struct sockaddr_in addr;
	weft_op *op;

	listener = make_listener(1, &addr);
	name_address(&addr);
	OK(close(listener));
	p = weft_promise_new_op(arg, &op);
	OK(weft_stream_connect_op(address, NULL, &stream, op, WEFT_NEVER));
}

static void
check_refused(void)
{
	CHECK_EQ(weft_await(p, NULL, WEFT_NOWAIT), WEFT_ECONNREFUSED);
	CHECK(strstr(weft_detail(), "127.0.0.1") != NULL);
	drop(p);
}

TEST(the_error_text_of_an_op_travels_with_its_error)
{
	in_both_ways(connect_in_vain, check_refused);
}

/* --- functions that settle a promise ---------------------------------------- */

static int
give_token(const weft_value *in, weft_value *out, void *arg)
{
	CHECK(!in);
	note(arg);
	*out = alone(&token, 4);
	return 0;
}

static int
give_reason(const weft_value *in, weft_value *out, void *arg)
{
	CHECK(!in);
	note(arg);
	*out = alone(&other, 4);
	return WEFT_EPERM;
}

static int
give_promise(const weft_value *in, weft_value *out, void *arg)
{
	CHECK(!in);
	note(MARK('p'));
	*out = weft_value_promise(hold(arg));
	return 0;
}

static int
give_nothing(const weft_value *in, weft_value *out, void *arg)
{
	(void)out;
	CHECK(!in);
	note(arg);
	return 0;
}

/* --- go ------------------------------------------------------------------- */

static int
sleep_and_give(const weft_value *in, weft_value *out, void *arg)
{
	CHECK(!in);
	CHECK(weft_self() != 0);
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	return give_token(in, out, arg);
}

static int
sleep_in_vain(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	(void)arg;
	OK(weft_yield());
	return weft_fail(WEFT_EPROTO, "of a threadlet");
}

static void
go_each(void *arg)
{
	p = weft_promise_go(arg, sleep_and_give, MARK('g'));
	CHECK_STR(trace, "");
	end = weft_promise_go(arg, sleep_in_vain, NULL);
	also_note(end, 'e');
}

static void
check_gone_through(void)
{
	CHECK_STR(trace, "eg");
	end_fulfilled(p, 4);
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "of a threadlet");
	drop(end);
	CHECK_EQ(owners(&token), 0);
}

TEST(go_starts_a_threadlet_that_settles_a_promise)
{
	in_both_ways(go_each, check_gone_through);
}

static weft_promise *inner, *nothing;

static void
go_by_each_result(void *arg)
{
	inner = weft_promise_new(arg);
	p = weft_promise_go(arg, give_reason, MARK('b'));
	also_note(p, 'r');
	end = weft_promise_go(arg, give_promise, inner);
	nothing = weft_promise_go(arg, give_nothing, MARK('n'));
	OK(weft_promise_resolve(inner, integer(2)));
}

static void
check_each_result(void)
{
	weft_value value;

	CHECK_STR(trace, "brpn");
	end_rejected(p, 4);
	end_fulfilled(end, 2);
	CHECK_EQ(weft_promise_state(nothing, &value), WEFT_FULFILLED);
	CHECK(!value.type);
	drop(nothing);
	drop(inner);
	CHECK_EQ(owners(&token) + owners(&other), 0);
}

TEST(go_settles_by_a_reason_a_promise_or_no_value)
{
	in_both_ways(go_by_each_result, check_each_result);
}

static int
sleep_for_ever(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	note(arg);
	return weft_sleep_until(WEFT_NEVER);
}

TEST(a_threadlet_canceled_by_the_stop_of_its_loop_rejects_its_promise)
{
	weft_loop *loop = make();

	p = weft_promise_go(loop, sleep_for_ever, MARK('s'));
	turns(loop, 2);
	end = weft_promise_go(loop, sleep_for_ever, MARK('t'));
	drop(weft_promise_go(loop, sleep_for_ever, MARK('u')));
	stop_idle(loop);
	CHECK_STR(trace, "stu");
	end_rejected(p, WEFT_ECANCELED);
	end_rejected(end, WEFT_ECANCELED);
}

TEST(go_without_a_function_or_on_a_stopped_loop_is_refused)
{
	weft_loop *loop = make();

	CHECK_MISUSE(weft_promise_go(loop, NULL, NULL) ? 1 : 0, 0);
	CHECK_MISUSE(weft_promise_go(NULL, sleep_in_vain, NULL) ? 1 : 0, 0);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK(!weft_promise_go(loop, sleep_in_vain, NULL));
	OK(weft_loop_free(loop));
}
