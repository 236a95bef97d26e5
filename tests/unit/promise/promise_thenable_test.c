/* promise_thenable_test.c - promises resolved with a thenable, which settles them itself.
 *
 * A thenable here does what its plan specifies.  It is also a token, so it must be dropped
 * exactly once.
 */
#include "unit/promise/promised.h"

static weft_promise *p, *end;
static struct token token, other;

struct thenable {
	struct token token; /* must be first */
	int (*then)(struct thenable *self, weft_promise *into);
	weft_promise *kept;
	int calls;
};

static struct thenable one, two;

static int
call_plan(void *ptr, weft_promise *into)
{
	struct thenable *self = ptr;

	self->calls++;
	note(MARK('t'));
	check_pending(into);
	return self->then(self, into);
}

static const weft_type type_thenable = { .name = "thenable",
	                                 .drop = drop_token,
	                                 .then = call_plan };

static weft_value
thenable(struct thenable *self, int (*then)(struct thenable *self, weft_promise *into))
{
	self->then = then;
	self->kept = NULL;
	self->calls = 0;
	return make_value(&type_thenable, &self->token, 0);
}

static void
check_called_once(struct thenable *self)
{
	CHECK_EQ(self->calls, 1);
	CHECK_EQ(owners(&self->token), 0);
}

/* The plan for resolve_by_plan(), which resolves a promise with a thenable.  The handler notes
 * the outcome. */
static int (*plan)(struct thenable *self, weft_promise *into);

static void
resolve_by_plan(void *arg)
{
	p = weft_promise_new(arg);
	OK(weft_promise_resolve(p, thenable(&one, plan)));
	CHECK_STR(trace, ""); /* not called at once */
	check_pending(p);
	CHECK_EQ(weft_promise_resolve(p, alone(&other, 1)), WEFT_EALREADY);
	CHECK_EQ(weft_promise_reject(p, alone(&other, 1)), WEFT_EALREADY);
	CHECK_EQ(weft_promise_resolve(p, thenable(&two, plan)), WEFT_EALREADY);
	CHECK_EQ(owners(&other) + owners(&two.token), 0);
	end = weft_promise_then(hold(p), note_and_add, note_and_fail, MARK('h'));
}

static void
try_plan(int (*then)(struct thenable *self, weft_promise *into), void (*check)(void))
{
	plan = then;
	in_both_ways(resolve_by_plan, check);
}

/* --- settles at once ------------------------------------------------------ */

static int
settle_at_once(struct thenable *self, weft_promise *into)
{
	(void)self;
	OK(weft_promise_resolve(into, alone(&token, 3)));
	return 0;
}

static void
check_at_once(void)
{
	CHECK_STR(trace, "th");
	check_called_once(&one);
	CHECK_EQ(two.calls, 0);
	end_fulfilled(end, 4);
	CHECK_EQ(owners(&token), 1);
	end_fulfilled(p, 3);
	CHECK_EQ(owners(&token), 0);
}

TEST(a_thenable_is_called_in_a_microtask_and_settles_the_promise)
{
	try_plan(settle_at_once, check_at_once);
}

static int
settle_thrice(struct thenable *self, weft_promise *into)
{
	OK(settle_at_once(self, into));
	CHECK_EQ(weft_promise_reject(into, alone(&other, 4)), WEFT_EALREADY);
	CHECK_EQ(weft_promise_resolve(into, alone(&other, 5)), WEFT_EALREADY);
	CHECK_EQ(owners(&other), 0);
	return WEFT_EPROTO;
}

TEST(a_thenable_settles_once_and_its_later_calls_are_refused)
{
	try_plan(settle_thrice, check_at_once);
}

/* --- rejects -------------------------------------------------------------- */

static int
return_error(struct thenable *self, weft_promise *into)
{
	(void)self;
	(void)into;
	return weft_fail(WEFT_EPROTO, "no then today");
}

static void
check_error(void)
{
	CHECK_STR(trace, "th");
	check_called_once(&one);
	CHECK_EQ(weft_await(p, NULL, WEFT_NOWAIT), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "no then today");
	drop(p);
	end_rejected(end, WEFT_EPROTO);
}

TEST(a_thenable_that_returns_an_error_rejects_the_promise)
{
	try_plan(return_error, check_error);
}

static int
reject_with_thenable(struct thenable *self, weft_promise *into)
{
	(void)self;
	OK(weft_promise_reject(into, thenable(&two, settle_at_once)));
	return 0;
}

static void
check_reason_not_called(void)
{
	weft_value value;

	CHECK_EQ(weft_promise_state(p, &value), WEFT_REJECTED);
	CHECK(value.as.ptr == &two);
	CHECK_EQ(two.calls, 0);
	CHECK_EQ(owners(&two.token), 1);
	drop(p);
	drop(end);
	check_called_once(&one);
	CHECK_EQ(owners(&two.token), 0);
}

static void
reject_by_plan(void *arg)
{
	p = weft_promise_new(arg);
	OK(weft_promise_resolve(p, thenable(&one, reject_with_thenable)));
	end = weft_promise_then(hold(p), NULL, note_it, MARK('r'));
}

TEST(a_thenable_used_as_a_reason_is_not_called)
{
	in_both_ways(reject_by_plan, check_reason_not_called);
}

/* --- with others ---------------------------------------------------------- */

static int
settle_with_another(struct thenable *self, weft_promise *into)
{
	(void)self;
	OK(weft_promise_resolve(into, thenable(&two, settle_at_once)));
	CHECK_EQ(weft_promise_resolve(into, alone(&other, 5)), WEFT_EALREADY);
	return 0;
}

static void
check_another(void)
{
	CHECK_STR(trace, "tth");
	check_called_once(&one);
	check_called_once(&two);
	end_fulfilled(end, 4);
	end_fulfilled(p, 3);
	CHECK_EQ(owners(&token), 0);
}

TEST(a_thenable_may_resolve_with_another_thenable)
{
	try_plan(settle_with_another, check_another);
}

static int
settle_with_settled(struct thenable *self, weft_promise *into)
{
	weft_promise *inner = weft_promise_new(NULL);

	(void)self;
	OK(weft_promise_resolve(inner, alone(&token, 3)));
	OK(weft_promise_resolve(into, weft_value_promise(inner)));
	return 0;
}

TEST(a_thenable_may_resolve_with_a_promise)
{
	try_plan(settle_with_settled, check_at_once);
}

/* Resolves with the outer promise, which waits for this thenable: a cycle. */
static int
settle_with_outer(struct thenable *self, weft_promise *into)
{
	(void)self;
	OK(weft_promise_resolve(into, weft_value_promise(hold(p))));
	return 0;
}

static void
check_no_way_out(void)
{
	check_pending(p);
	check_pending(end);
}

TEST(a_thenable_that_resolves_with_its_own_promise_ends_with_the_loop)
{
	weft_loop *loop;

	plan = settle_with_outer;
	loop = run_on_loop(resolve_by_plan);
	check_no_way_out();
	check_called_once(&one);
	stop_idle(loop);
	CHECK_STR(trace, "th");
	end_rejected(p, WEFT_ESHUTDOWN);
	end_rejected(end, WEFT_ESHUTDOWN);
}

/* --- later ------------------------------------------------------------------ */

static int
keep_into(struct thenable *self, weft_promise *into)
{
	self->kept = hold(into);
	return 0;
}

static void
settle_kept(void *arg)
{
	struct thenable *self = arg;

	OK(weft_promise_resolve(self->kept, alone(&token, 3)));
	CHECK_EQ(weft_promise_resolve(self->kept, alone(&other, 3)), WEFT_EALREADY);
	drop(self->kept);
}

TEST(a_thenable_may_settle_later)
{
	for (int inside = 0; inside < 2; inside++) {
		weft_loop *loop = make();

		plan = keep_into;
		resolve_by_plan(loop);
		OK(weft_loop_run(loop));
		CHECK_STR(trace, "t");
		check_called_once(&one);
		check_pending(p);
		if (inside)
			OK(weft_loop_post(loop, settle_kept, &one));
		else
			settle_kept(&one);
		OK(weft_loop_run(loop));
		check_at_once();
		stop_idle(loop);
	}
}

TEST(a_thenable_that_has_not_settled_rejects_when_the_loop_stops)
{
	weft_loop *loop = make();

	plan = keep_into;
	resolve_by_plan(loop);
	OK(weft_loop_run(loop));
	stop_idle(loop);
	end_rejected(p, WEFT_ESHUTDOWN);
	end_rejected(end, WEFT_ESHUTDOWN);
	end_rejected(one.kept, WEFT_ESHUTDOWN);
	check_called_once(&one);
}

static int
forget(struct thenable *self, weft_promise *into)
{
	(void)self;
	(void)into;
	return 0;
}

static void
check_forgotten(void)
{
	CHECK_STR(trace, "th");
	check_called_once(&one);
	end_rejected(end, WEFT_ECLOSED);
	end_rejected(p, WEFT_ECLOSED);
}

TEST(a_thenable_that_never_settles_rejects_the_promise)
{
	try_plan(forget, check_forgotten);
}

/* --- returned by a handler, and when the loop stops ----------------------- */

static int
give_thenable(const weft_value *in, weft_value *out, void *arg)
{
	(void)in;
	(void)arg;
	note(MARK('a'));
	*out = thenable(&one, settle_at_once);
	return 0;
}

static void
chain_thenable(void *arg)
{
	weft_promise *first = weft_promise_new(arg);

	OK(weft_promise_resolve(first, integer(1)));
	p = weft_promise_then(first, give_thenable, NULL, NULL);
	end = weft_promise_then(hold(p), note_and_add, NULL, MARK('h'));
}

static void
check_given(void)
{
	CHECK_STR(trace, "ath");
	check_called_once(&one);
	end_fulfilled(end, 4);
	end_fulfilled(p, 3);
	CHECK_EQ(owners(&token), 0);
}

TEST(a_handler_may_return_a_thenable)
{
	in_both_ways(chain_thenable, check_given);
}

TEST(a_promise_resolved_with_a_thenable_settles_when_the_loop_stops)
{
	weft_loop *loop = make();

	p = weft_promise_new(loop);
	OK(weft_promise_resolve(p, thenable(&one, settle_at_once)));
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK(weft_promise_state(p, NULL) != WEFT_PENDING);
	drop(p);
	CHECK_EQ(owners(&one.token) + owners(&token), 0);
	p = weft_promise_new(loop);
	CHECK_EQ(weft_promise_resolve(p, thenable(&one, settle_at_once)), WEFT_EALREADY);
	CHECK_EQ(owners(&one.token), 0);
	drop(p);
	OK(weft_loop_free(loop));
}
