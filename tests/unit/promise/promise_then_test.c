/* promise_then_test.c - resolving promises, and chaining handlers to them.
 *
 * Most cases run in both ways: in a callback of the loop, and on a thread that does not run the
 * loop, so that the calls are sent to the loop.
 */
#include "unit/promise/promised.h"

static weft_promise *p, *q, *end;
static struct token token, other;

/* --- order -------------------------------------------------------------- */

static void
queue_all_kinds(void *arg)
{
	p = weft_promise_new(arg);
	OK(weft_promise_resolve(p, integer(1)));
	also_note(p, 'a');
	OK(weft_schedule_microtask(arg, note, MARK('b')));
	also_note(p, 'c');
	OK(weft_schedule_tick(arg, note, MARK('t')));
	drop(p);
}

TEST(handlers_and_microtasks_share_one_queue_and_ticks_run_first)
{
	weft_loop *loop = run_on_loop(queue_all_kinds);

	CHECK_STR(trace, "tabc");
	stop_idle(loop);
}

/* The first handler: everything that it queues comes after what is already queued. */
static int
queue_more(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	note(MARK('a'));
	OK(weft_schedule_tick(arg, note, MARK('t')));
	also_note(p, 'x');
	OK(weft_schedule_microtask(arg, note, MARK('y')));
	also_note(p, 'z');
	return 0;
}

static void
queue_behind_a_settled_one(void *arg)
{
	p = weft_promise_new(arg);
	drop(weft_promise_then(hold(p), queue_more, NULL, arg));
	also_note(p, 'b');
	OK(weft_schedule_microtask(arg, note, MARK('0')));
	OK(weft_promise_resolve(p, integer(1)));
	OK(weft_schedule_microtask(arg, note, MARK('m')));
	also_note(p, 'c');
}

TEST(work_queued_by_a_handler_runs_after_work_queued_before_it)
{
	weft_loop *loop = run_on_loop(queue_behind_a_settled_one);

	CHECK_STR(trace, "0abmcxyzt");
	drop(p);
	stop_idle(loop);
}

static void
chain_two_sides(void *arg)
{
	weft_promise *one = weft_promise_new(arg), *two = weft_promise_new(arg);

	OK(weft_promise_resolve(one, integer(1)));
	OK(weft_promise_resolve(two, integer(2)));
	one = then_note(then_note(then_note(one, '1'), '2'), '3');
	two = then_note(then_note(then_note(two, 'a'), 'b'), 'c');
	drop(one);
	drop(two);
}

static int
note_and_chain(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	(void)arg;
	note(MARK('a'));
	also_note(p, 'c');
	return 0;
}

static void
chain_two_to_a_settled_one(void *arg)
{
	p = weft_promise_new(arg);
	OK(weft_promise_resolve(p, integer(1)));
	drop(weft_promise_then(hold(p), note_and_chain, NULL, NULL));
	also_note(p, 'b');
}

static void
check_order(void)
{
	CHECK_STR(trace, "abc");
	drop(p);
}

TEST(handlers_chained_earlier_run_before_those_chained_by_a_handler)
{
	in_both_ways(chain_two_to_a_settled_one, check_order);
}

TEST(two_chains_advance_alternately)
{
	weft_loop *loop = run_on_loop(chain_two_sides);

	CHECK_STR(trace, "1a2b3c");
	stop_idle(loop);
}

/* --- resolved with a promise ---------------------------------------------- */

static void
follow_pending(void *arg)
{
	p = weft_promise_new(arg);
	q = weft_promise_new(arg);
	OK(weft_promise_resolve(p, weft_value_promise(hold(q))));
	check_pending(p);
	CHECK_EQ(weft_promise_resolve(p, alone(&token, 1)), WEFT_EALREADY);
	CHECK_EQ(weft_promise_reject(p, alone(&other, 2)), WEFT_EALREADY);
	CHECK_EQ(owners(&token) + owners(&other), 0);
	CHECK_EQ(weft_promise_resolve(p, weft_value_promise(hold(q))), WEFT_EALREADY);
	CHECK_EQ(weft_promise_resolve(p, weft_value_promise(hold(p))), WEFT_EALREADY);
	end = weft_promise_then(p, note_and_add, NULL, MARK('a'));
	OK(weft_promise_resolve(q, alone(&token, 7)));
	drop(q);
}

static void
check_followed(void)
{
	CHECK_STR(trace, "a");
	end_fulfilled(end, 8);
	CHECK_EQ(owners(&token), 0);
}

TEST(a_promise_that_follows_another_settles_only_like_that_one)
{
	in_both_ways(follow_pending, check_followed);
}

static void
follow_settled(void *arg)
{
	for (int i = 0; i < 2; i++) {
		p = weft_promise_new(arg);
		q = weft_promise_new(arg);
		OK(i ? weft_promise_reject(q, alone(&token, 3))
		     : weft_promise_resolve(q, alone(&other, 4)));
		OK(weft_promise_resolve(p, weft_value_promise(q)));
		end = weft_promise_then(p, note_and_add, note_and_add, MARK('a' + i));
		if (i == 0)
			drop(end);
	}
}

static void
check_both_followed(void)
{
	CHECK_STR(trace, "ab");
	end_fulfilled(end, 4);
	CHECK_EQ(owners(&token) + owners(&other), 0);
}

TEST(a_promise_that_follows_a_settled_one_takes_its_outcome)
{
	in_both_ways(follow_settled, check_both_followed);
}

static void
follow_self(void *arg)
{
	end = weft_promise_new(arg);
	OK(weft_promise_resolve(end, weft_value_promise(hold(end))));
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EDEADLK);
	CHECK_STR(weft_detail(), "weft_promise_resolve: a promise cannot be resolved with itself");
}

static void
check_deadlock(void)
{
	end_rejected(end, WEFT_EDEADLK);
}

TEST(a_promise_resolved_with_itself_is_rejected)
{
	in_both_ways(follow_self, check_deadlock);
}

static int
give_end(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)arg;
	*out = weft_value_promise(hold(end));
	return 0;
}

static void
return_self(void *arg)
{
	p = weft_promise_new(arg);
	end = weft_promise_then(hold(p), give_end, NULL, NULL);
	OK(weft_promise_resolve(p, integer(1)));
	drop(p);
}

TEST(a_handler_that_returns_its_own_promise_rejects_it)
{
	in_both_ways(return_self, check_deadlock);
}

static void
check_circle(void)
{
	check_pending(p);
	check_pending(q);
}

static void
follow_in_a_circle(void *arg)
{
	p = weft_promise_new(arg);
	q = weft_promise_new(arg);
	OK(weft_promise_resolve(p, weft_value_promise(hold(q))));
	OK(weft_promise_resolve(q, weft_value_promise(hold(p))));
	also_note(p, 'p');
	also_note(q, 'q');
}

TEST(two_promises_that_follow_each_other_are_rejected_at_the_loop_stop)
{
	for (int inside = 0; inside < 2; inside++) {
		weft_loop *loop = inside ? run_on_loop(follow_in_a_circle) : make();

		if (!inside)
			follow_in_a_circle(loop);
		check_circle();
		stop_idle(loop);
		CHECK_EQ(strlen(trace), 2);
		end_rejected(p, WEFT_ESHUTDOWN);
		end_rejected(q, WEFT_ESHUTDOWN);
	}
}

/* --- handlers ----------------------------------------------------------- */

static int
make_reason(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	*out = alone(arg, 9);
	return WEFT_EPERM;
}

static int
say_more_than_0(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	*out = alone(arg, 10);
	return 17;
}

static void
return_reasons(void *arg)
{
	p = weft_promise_new(arg);
	end = weft_promise_then(hold(p), make_reason, NULL, &token);
	q = weft_promise_then(hold(p), say_more_than_0, NULL, &other);
	OK(weft_promise_resolve(p, integer(1)));
	drop(p);
}

static void
check_reasons(void)
{
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EREJECTED);
	end_rejected(end, 9);
	end_fulfilled(q, 10);
}

TEST(a_handler_may_reject_with_its_own_reason_or_return_a_value)
{
	in_both_ways(return_reasons, check_reasons);
	CHECK_EQ(owners(&token) + owners(&other), 0);
}

/* A promise as the reason of a rejection is not followed. */
static void
reject_with_promise(void *arg)
{
	q = weft_promise_new(arg);
	end = weft_promise_new(arg);
	OK(weft_promise_reject(end, weft_value_promise(q)));
	also_note(end, 'r');
}

static void
check_promise_as_reason(void)
{
	weft_value value;

	CHECK_STR(trace, "r");
	CHECK_EQ(weft_promise_state(end, &value), WEFT_REJECTED);
	CHECK(value.type == &weft_type_promise && value.as.ptr == q);
	check_pending(q);
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EREJECTED);
	drop(end);
}

TEST(a_promise_may_be_the_reason_of_a_rejection)
{
	in_both_ways(reject_with_promise, check_promise_as_reason);
}

static int
see_text(const weft_value *in, weft_value *out, void *arg)
{
	(void)out;
	(void)arg;
	CHECK_EQ(number_of(in), WEFT_EPERM);
	CHECK_STR(weft_detail(), "as it was to");
	note(MARK('s'));
	return WEFT_EPERM;
}

static int
fail_silently(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)out;
	(void)arg;
	CHECK_STR(weft_detail(), "");
	return WEFT_ENOENT;
}

static void
fail_with_texts(void *arg)
{
	p = weft_promise_new(arg);
	OK(weft_promise_resolve(p, integer(1)));
	(void)weft_fail(WEFT_EPROTO, "of something else");
	q = weft_promise_then(hold(p), fail_silently, NULL, NULL);
	p = weft_promise_then(p, fail, NULL, MARK(WEFT_EPERM));
	p = weft_promise_then(p, NULL, NULL, NULL);
	end = weft_promise_then(p, NULL, see_text, NULL);
}

static void
check_texts(void)
{
	CHECK_STR(trace, "s");
	CHECK_EQ(weft_await(end, NULL, WEFT_NOWAIT), WEFT_EPERM);
	CHECK_STR(weft_detail(), "as it was to");
	CHECK_EQ(weft_await(q, NULL, WEFT_NOWAIT), WEFT_ENOENT);
	CHECK_STR(weft_detail(), weft_strerror(WEFT_ENOENT));
	drop(end);
	drop(q);
}

TEST(error_texts_travel_only_with_their_own_errors)
{
	in_both_ways(fail_with_texts, check_texts);
}

/* --- values ------------------------------------------------------------- */

static int
see_owner(const weft_value *in, weft_value *out, void *arg)
{
	(void)arg;
	(void)out;
	CHECK_EQ(owners(in->as.ptr), 1);
	note(MARK('0' + number_of(in)));
	return 0;
}

static void
pass_on_alone(void *arg)
{
	p = end = weft_promise_new(arg);
	hold(p);
	for (int i = 0; i < 5; i++) {
		end = weft_promise_then(end, NULL, note_it, MARK('-'));
		drop(weft_promise_then(hold(end), see_owner, NULL, NULL));
	}
	OK(weft_promise_resolve(p, alone(&token, 3)));
	drop(p);
}

static void
check_passed_on(void)
{
	CHECK_STR(trace, "33333");
	CHECK_EQ(owners(&token), 1);
	end_fulfilled(end, 3);
	CHECK_EQ(owners(&token), 0);
}

TEST(an_unshareable_value_is_passed_on_and_dropped_with_its_last_holder)
{
	in_both_ways(pass_on_alone, check_passed_on);
}

/* A drop callback that settles `q`. */
static void
drop_and_settle(void *ptr)
{
	drop_token(ptr);
	OK(weft_promise_resolve(q, integer(4)));
}

static const weft_type type_settles = { .name = "settles", .drop = drop_and_settle };

static void
drop_what_settles(void *arg)
{
	p = weft_promise_new(arg);
	q = weft_promise_new(arg);
	end = weft_promise_then(hold(q), note_and_add, NULL, MARK('q'));
	OK(weft_promise_resolve(p, make_value(&type_settles, &token, 1)));
	drop(then_note(p, 'p'));
}

static void
check_dropped_and_settled(void)
{
	CHECK_STR(trace, "pq");
	end_fulfilled(end, 5);
	drop(q);
	CHECK_EQ(owners(&token), 0);
}

TEST(a_drop_callback_may_settle_another_promise)
{
	in_both_ways(drop_what_settles, check_dropped_and_settled);
}

TEST(values_given_too_late_or_to_no_promise_are_dropped)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	OK(weft_promise_reject(p, alone(&token, 1)));
	CHECK_EQ(weft_promise_resolve(p, alone(&other, 2)), WEFT_EALREADY);
	CHECK_EQ(owners(&other), 0);
	CHECK_EQ(weft_promise_reject(p, alone(&other, 2)), WEFT_EALREADY);
	CHECK_EQ(owners(&other), 0);
	also_note(p, 'a');
	OK(weft_loop_run(loop));
	end_rejected(p, 1);
	CHECK_EQ(owners(&token), 0);
	CHECK_MISUSE(weft_promise_resolve(NULL, alone(&token, 1)), WEFT_EINVAL);
	CHECK_MISUSE(weft_promise_reject(NULL, alone(&other, 1)), WEFT_EINVAL);
	if (!test_misuse_aborts)
		CHECK_EQ(owners(&token) + owners(&other), 0);
	stop_idle(loop);
}

TEST(null_promises_are_refused_or_ignored)
{
	weft_loop *loop = make();
	weft_value value = integer(5);

	CHECK(!weft_promise_then(NULL, note_it, NULL, NULL));
	CHECK(!weft_promise_ref(NULL));
	CHECK(!weft_promise_unref(NULL));
	CHECK_EQ(weft_promise_state(NULL, &value), WEFT_PENDING);
	CHECK_MISUSE((int)weft_value_promise(NULL).as.integer, WEFT_EINVAL);
	CHECK_MISUSE(weft_promise_new(NULL) ? 1 : 0, 0);
	p = weft_promise_new(loop);
	CHECK_EQ(weft_promise_state(p, &value), WEFT_PENDING);
	CHECK_EQ(weft_promise_state(p, NULL), WEFT_PENDING);
	CHECK_EQ(number_of(&value), 5);
	OK(weft_promise_resolve(p, (weft_value){ 0 }));
	CHECK_EQ(weft_promise_state(p, NULL), WEFT_FULFILLED);
	CHECK_EQ(weft_promise_state(p, &value), WEFT_FULFILLED);
	CHECK(!value.type);
	drop(p);
	stop_idle(loop);
}

/* --- what handlers do ----------------------------------------------------- */

/* Drop the promise that this handler is chained to, and the handler's own promise. */
static int
drop_both(const weft_value *in, weft_value *out, void *arg)
{
	(void)arg;
	drop(p);
	drop(end);
	CHECK_EQ(owners(in->as.ptr), 1);
	note(MARK('0' + number_of(in)));
	*out = alone(&other, 1);
	return 0;
}

static void
be_dropped(void *arg)
{
	p = weft_promise_new(arg);
	end = weft_promise_then(hold(p), drop_both, NULL, NULL);
	OK(weft_promise_resolve(p, alone(&token, 8)));
}

static void
check_both_dropped(void)
{
	CHECK_STR(trace, "8");
	CHECK_EQ(owners(&token) + owners(&other), 0);
}

TEST(a_handler_may_drop_its_promises)
{
	in_both_ways(be_dropped, check_both_dropped);
}

static int
stop_loop(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	weft_loop_shutdown(arg);
	note(MARK('s'));
	*out = integer(1);
	return 0;
}

static void
settle_and_stop(void *arg)
{
	p = weft_promise_new(arg);
	q = weft_promise_new(arg);
	end = weft_promise_then(hold(p), stop_loop, NULL, arg);
	end = weft_promise_then(end, note_and_add, NULL, MARK('e'));
	also_note(p, 'b');
	also_note(q, 'q');
	OK(weft_promise_resolve(p, integer(1)));
	drop(p);
}

TEST(a_handler_may_stop_the_loop_and_all_other_handlers_still_run)
{
	for (int inside = 0; inside < 2; inside++) {
		weft_loop *loop = make();

		if (inside)
			OK(weft_loop_post(loop, settle_and_stop, loop));
		else
			settle_and_stop(loop);
		OK(weft_loop_run(loop));
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
		CHECK_STR(trace, "sbeq");
		end_fulfilled(end, 2);
		end_rejected(q, WEFT_ESHUTDOWN);
		OK(weft_loop_free(loop));
	}
}

/* While the loop stops, create and chain promises, and settle one that is about to be rejected. */
static int
go_on_at_the_end(const weft_value *in, weft_value *out, void *arg)
{
	weft_promise *fresh = weft_promise_new(arg);

	(void)out;
	CHECK_EQ(number_of(in), WEFT_ESHUTDOWN);
	check_rejected(fresh, WEFT_ESHUTDOWN);
	CHECK_EQ(weft_promise_resolve(fresh, alone(&token, 1)), WEFT_EALREADY);
	also_note(fresh, 'f');
	drop(fresh);
	also_note(p, 'p');
	(void)weft_promise_resolve(q, integer(1));
	note(MARK('a'));
	return 0;
}

TEST(handlers_may_chain_and_settle_while_the_loop_stops)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	q = weft_promise_new(loop);
	end = weft_promise_then(hold(p), NULL, go_on_at_the_end, loop);
	also_note(q, 'q');
	stop_idle(loop);
	CHECK_EQ(strlen(trace), 4);
	CHECK(strchr(trace, 'a') && strchr(trace, 'f') && strchr(trace, 'p') && strchr(trace, 'q'));
	CHECK_EQ(owners(&token), 0);
	drop(p);
	drop(q);
	drop(end);
}

TEST(the_first_promise_of_a_loop_may_be_created_after_its_stop)
{
	weft_loop *loop = make();

	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	p = weft_promise_new(loop);
	check_rejected(p, WEFT_ESHUTDOWN);
	CHECK(!weft_promise_then(hold(p), note_it, note_it, MARK('-')));
	CHECK_EQ(weft_promise_resolve(p, alone(&token, 1)), WEFT_EALREADY);
	CHECK_EQ(owners(&token), 0);
	OK(weft_loop_free(loop));
	drop(p);
}

TEST(promises_of_a_stopped_loop_are_rejected_and_cannot_be_chained)
{
	weft_loop *loop = make();
	weft_promise *both[2];

	q = weft_promise_new(loop);
	OK(weft_promise_resolve(q, alone(&token, 2)));
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	p = weft_promise_new(loop);
	check_rejected(p, WEFT_ESHUTDOWN);
	CHECK_EQ(weft_promise_resolve(p, alone(&other, 1)), WEFT_EALREADY);
	CHECK_EQ(owners(&other), 0);
	CHECK(!weft_promise_then(hold(p), note_it, note_it, MARK('-')));
	CHECK(!weft_promise_then(hold(q), note_it, NULL, MARK('-')));
	both[0] = hold(q);
	both[1] = hold(p);
	end = weft_promise_all(both, 2);
	end_rejected(end, WEFT_ESHUTDOWN);
	CHECK_EQ(weft_promise_reject(p, integer(1)), WEFT_EALREADY);
	drop(p);
	end_fulfilled(q, 2);
	CHECK_EQ(owners(&token), 0);
	CHECK_STR(trace, "");
	OK(weft_loop_free(loop));
}
