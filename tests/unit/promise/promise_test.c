/* promise_test.c - promises: settled once, handled in order, awaited, rejected at the end. */
#include "unit/threadlet/sched.h"

/* --- chains --------------------------------------------------------------- */

static weft_value
integer(int64_t number)
{
	return weft_value_integer(number);
}

static int64_t
number_of(const weft_value *value)
{
	CHECK(value->type == &weft_type_integer);
	return value->as.integer;
}

/* Note the character.  The value is the input plus 1. */
static int
note_and_add(const weft_value *in, weft_value *out, void *arg)
{
	note(arg);
	*out = integer(number_of(in) + 1);
	return 0;
}

static int
note_error(const weft_value *in, weft_value *out, void *arg)
{
	(void)out;
	CHECK(in->type == &weft_type_error);
	note(arg);
	return (int)in->as.integer;
}

static int
fail(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	return weft_fail((int)(intptr_t)arg, "as it was to");
}

static void
drop(weft_promise *promise)
{
	CHECK(!weft_promise_unref(promise));
}

TEST(handlers_run_after_the_call_that_settles_and_in_order)
{
	weft_loop *loop = make();
	weft_promise *promise = weft_promise_new(loop);

	for (int i = 0; i < 3; i++)
		drop(weft_promise_then(weft_promise_ref(promise), note_and_add, NULL,
		                       MARK('a' + i)));
	OK(weft_promise_resolve(promise, integer(1)));
	drop(weft_promise_then(weft_promise_ref(promise), note_and_add, NULL, MARK('d')));
	CHECK_STR(trace, "");
	CHECK_EQ(weft_promise_resolve(promise, integer(2)), WEFT_EALREADY);
	CHECK_EQ(weft_promise_reject(promise, integer(3)), WEFT_EALREADY);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abcd");
	drop(promise);
	stop_idle(loop);
}

TEST(a_chain_passes_values_and_errors_on_to_their_handlers)
{
	weft_loop *loop = make();
	weft_promise *promise = weft_promise_new(loop), *end;
	weft_value value;

	end = weft_promise_then(weft_promise_ref(promise), note_and_add, NULL, MARK('a'));
	end = weft_promise_then(end, NULL, note_error, MARK('-'));
	end = weft_promise_then(end, fail, NULL, MARK(WEFT_EPERM));
	end = weft_promise_then(end, note_and_add, NULL, MARK('-'));
	end = weft_promise_then(end, note_and_add, note_error, MARK('e'));
	OK(weft_promise_resolve(promise, integer(1)));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ae");
	CHECK_EQ(weft_promise_state(end, &value), WEFT_REJECTED);
	CHECK_EQ(value.as.integer, WEFT_EPERM);
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EPERM);
	CHECK_STR(weft_detail(), "as it was to");
	drop(promise);
	drop(end);
	stop_idle(loop);
}

#define LINKS 1000000

static int
add(const weft_value *in, weft_value *out, void *arg)
{
	(void)arg;
	*out = integer(number_of(in) + 1);
	return 0;
}

TEST(a_chain_of_a_million_links_needs_no_stack)
{
	weft_loop *loop = make();
	weft_promise *promise = weft_promise_new(loop), *end;
	weft_value value;

	end = weft_promise_ref(promise);
	for (int i = 0; i < LINKS; i++)
		end = weft_promise_then(end, i & 1 ? add : NULL, NULL, NULL);
	OK(weft_promise_resolve(promise, integer(0)));
	drop(promise);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_promise_state(end, &value), WEFT_FULFILLED);
	CHECK_EQ(number_of(&value), LINKS / 2);
	drop(end);
	stop_idle(loop);
}

TEST(a_million_promises_that_follow_each_other_need_no_stack)
{
	weft_loop *loop = make();
	weft_promise *first = weft_promise_new(loop), *last = first, *next;
	weft_value value;

	(void)weft_promise_ref(first);
	for (int i = 0; i < LINKS; i++) {
		next = weft_promise_new(loop);
		OK(weft_promise_resolve(last, weft_value_promise(weft_promise_ref(next))));
		drop(last);
		last = next;
	}
	OK(weft_promise_resolve(last, integer(7)));
	drop(last);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_promise_state(first, &value), WEFT_FULFILLED);
	CHECK_EQ(number_of(&value), 7);
	drop(first);
	stop_idle(loop);
}

TEST(a_promise_that_can_no_longer_be_settled_is_rejected)
{
	weft_loop *loop = make();
	weft_promise *end = weft_promise_new(loop);

	for (int i = 0; i < 3; i++)
		end = weft_promise_then(end, note_and_add, note_error, MARK('a' + i));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abc");
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_ECLOSED);
	drop(end);
	stop_idle(loop);
}

TEST(pending_promises_are_rejected_when_the_loop_stops)
{
	weft_loop *loop = make();
	weft_promise *promise = weft_promise_new(loop), *end;

	end = weft_promise_then(weft_promise_ref(promise), note_and_add, note_error, MARK('a'));
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	stop_idle(loop);
	CHECK_STR(trace, "a");
	CHECK_EQ(weft_await(promise, NULL, WEFT_NOWAIT), WEFT_ESHUTDOWN);
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_ESHUTDOWN);
	drop(promise);
	drop(end);
}

static int
await_it(void *arg)
{
	weft_value value;

	OK(weft_await(arg, &value, WEFT_NEVER));
	CHECK_EQ(number_of(&value), 5);
	note(MARK('w'));
	return 0;
}

static void *
settle(void *arg)
{
	OK(weft_promise_resolve(arg, integer(5)));
	return NULL;
}

TEST(a_promise_is_settled_by_another_thread_and_awaited_by_threadlets)
{
	weft_loop *loop = make();
	weft_promise *promise = weft_promise_new(loop);
	pthread_t id;

	for (int i = 0; i < 3; i++)
		(void)go_on(loop, await_it, promise);
	id = thread(settle, promise);
	OK(weft_loop_run(loop));
	CHECK_EQ(pthread_join(id, NULL), 0);
	CHECK_STR(trace, "www");
	OK(weft_await(promise, NULL, WEFT_NEVER)); /* a plain thread can wait, too */
	drop(promise);
	stop_idle(loop);
}
