/* scope_late_test.c - scopes: late children, scopes left open, and the failures that are
 * reported. */
#include "threadlet/threadlet.h"
#include "unit/threadlet/sched.h"

static int
nap(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		OK(weft_sleep_until(weft_after(1)));
	note(arg);
	return 0;
}

static int
fail(void *arg)
{
	return (int)(intptr_t)arg;
}

/* --- late children ------------------------------------------------------ */

static weft_scope *open_scope;
static bool last_has_ended;

static int
end_as_the_last(void *arg)
{
	(void)arg;
	OK(weft_yield());
	last_has_ended = true;
	return 0;
}

/* Runs after the last child has ended and woken the owner, but before the owner runs. */
static int
add_one_more(void *arg)
{
	(void)arg;
	while (!last_has_ended)
		OK(weft_yield());
	note(MARK('+'));
	CHECK(weft_scope_go(open_scope, nap, MARK('n')) > 0);
	return 0;
}

static int
close_around_a_late_child(void *arg)
{
	weft_scope scope;

	(void)arg;
	last_has_ended = false;
	open_scope = &scope;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, end_as_the_last, NULL) > 0);
	CHECK(weft_go(add_one_more, NULL) > 0);
	OK(weft_scope_close(&scope));
	note(MARK('c'));
	return 0;
}

TEST(scope_close_waits_for_a_child_added_after_the_last_has_ended)
{
	run_threadlet(close_around_a_late_child, NULL);
	CHECK_STR(trace, "+nc");
}

static int
fail_late(void *arg)
{
	(void)arg;
	while (!last_has_ended)
		OK(weft_yield());
	CHECK(weft_scope_go(open_scope, fail, MARK(WEFT_EPROTO)) > 0);
	return 0;
}

static int
close_around_a_late_failure(void *arg)
{
	weft_scope scope;

	(void)arg;
	last_has_ended = false;
	open_scope = &scope;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, end_as_the_last, NULL) > 0);
	CHECK(weft_go(fail_late, NULL) > 0);
	CHECK_EQ(weft_scope_close(&scope), WEFT_EPROTO);
	return 0;
}

TEST(scope_close_returns_the_failure_of_a_late_child)
{
	run_threadlet(close_around_a_late_failure, NULL);
}

/* --- scopes left open by cleanups --------------------------------------- */

static weft_scope left_open;
static struct weft__node node;

static void
clean_up_by(weft_fn fn, void *arg)
{
	node = (struct weft__node){ .fn = fn, .arg = arg };
	weft__cleanup_push(&node);
}

static void
open_in_cleanup(void *arg)
{
	OK(weft_scope_open(&left_open, 0, weft_after(arg ? HOUR : WEFT_MS)));
	if (arg)
		CHECK(weft_scope_go(&left_open, nap, arg) > 0);
	note(MARK('o'));
}

static int
leave_cleanup_open(void *arg)
{
	clean_up_by(open_in_cleanup, arg);
	return 0;
}

/* Runs on the stack of an ended threadlet, whose deadline must have no effect here. */
static int
sleep_undisturbed(void *arg)
{
	OK(weft_sleep_until(weft_after(3 * WEFT_MS)));
	OK(weft_check_canceled());
	note(arg);
	return 0;
}

static int
join_then_go_on(void *arg)
{
	weft_threadlet child;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, leave_cleanup_open, arg);
	OK(weft_join(child, NULL, WEFT_NEVER));
	note(MARK('j'));
	CHECK(weft_scope_go(&scope, sleep_undisturbed, MARK('s')) > 0);
	OK(weft_scope_close(&scope));
	CHECK_MISUSE(weft_scope_set_deadline(&left_open, 1), WEFT_EINVAL);
	return 0;
}

TEST(scope_left_open_by_a_cleanup_is_closed)
{
	run_threadlet(join_then_go_on, NULL);
	CHECK_STR(trace, "ojs");
}

static int
sleep_until_told(void *arg)
{
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ETIMEDOUT);
	note(arg);
	return 0;
}

static void
open_with_a_sleeper(void *arg)
{
	OK(weft_scope_open(&left_open, 0, weft_after(WEFT_MS)));
	CHECK(weft_scope_go(&left_open, sleep_until_told, arg) > 0);
}

static int
leave_a_sleeper(void *arg)
{
	clean_up_by(open_with_a_sleeper, arg);
	return 0;
}

static int
join_it(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	OK(weft_join(weft_scope_go(&scope, leave_a_sleeper, arg), NULL, WEFT_NEVER));
	note(MARK('j'));
	return weft_scope_close(&scope);
}

TEST(scope_left_open_by_a_cleanup_waits_for_its_children_and_keeps_its_deadline)
{
	run_threadlet(join_then_go_on, MARK('n'));
	CHECK_STR(trace, "onjs");
	run_threadlet(join_it, MARK('t'));
	CHECK_STR(trace, "tj");
}

/* --- reported failures --------------------------------------------------- */

/* Fails, and then waits for the child in the scope it left open. */
static int
fail_with_a_scope_open(void *arg)
{
	OK(weft_scope_open(&left_open, WEFT_SHIELD, WEFT_NEVER));
	CHECK(weft_scope_go(&left_open, nap, MARK('n')) > 0);
	note(MARK('f'));
	return (int)(intptr_t)arg;
}

static int
cancel_after_the_failure(void *arg)
{
	weft_threadlet child;
	weft_scope scope;
	int out = 0;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, fail_with_a_scope_open, arg);
	OK(weft_yield());
	CHECK_STR(trace, "f");
	weft_scope_cancel(&scope);
	CHECK_EQ(weft_scope_close(&scope), arg ? WEFT_EPROTO : 0);
	CHECK_EQ(weft_join(child, &out, WEFT_NOWAIT), WEFT_ESRCH);
	return 0;
}

TEST(failure_is_reported_although_the_scope_was_canceled_after_it)
{
	run_threadlet(cancel_after_the_failure, MARK(WEFT_EPROTO));
	CHECK_STR(trace, "fn");
	run_threadlet(cancel_after_the_failure, NULL);
	CHECK_STR(trace, "fn");
}

static int
leave_failures_behind(void *arg)
{
	static weft_scope inner;

	OK(weft_scope_open(&left_open, 0, WEFT_NEVER));
	OK(weft_scope_open(&inner, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&left_open, fail, MARK(WEFT_EPIPE)) > 0);
	CHECK(weft_scope_go(&inner, fail, MARK(WEFT_EPROTO)) > 0);
	return (int)(intptr_t)arg;
}

static int
learn_of_failures(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, leave_failures_behind, arg) > 0);
	CHECK_EQ(weft_scope_close(&scope), (intptr_t)arg < 0 ? (intptr_t)arg : 0);
	return 0;
}

TEST(failures_in_scopes_left_open_do_not_change_the_owners_result)
{
	run_threadlet(learn_of_failures, NULL);
	run_threadlet(learn_of_failures, MARK('r'));
	run_threadlet(learn_of_failures, MARK(WEFT_EBADF));
}

/* --- memory --------------------------------------------------------------- */

static int
leave_on_the_heap(void *arg)
{
	return weft_scope_open(arg, 0, WEFT_NEVER);
}

static int
use_what_was_left(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, leave_on_the_heap, arg) > 0);
	OK(weft_scope_close(&scope));
	CHECK_MISUSE(weft_scope_set_deadline(arg, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE((int)weft_scope_go(arg, nap, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_scope_close(arg), WEFT_EINVAL);
	return 0;
}

TEST(scope_left_open_on_the_heap_counts_as_closed)
{
	weft_scope *scope = calloc(1, sizeof(*scope));

	run_threadlet(use_what_was_left, scope);
	free(scope);
}

/* --- cleanups and interrupts ---------------------------------------------- */

static void
sleep_in_cleanup(void *arg)
{
	OK(weft_sleep_until(weft_after(1)));
	OK(weft_yield());
	note(arg);
}

static int
interrupt_oneself(void *arg)
{
	clean_up_by(sleep_in_cleanup, arg);
	OK(weft_interrupt(weft_self()));
	return 0;
}

TEST(pending_interrupt_does_not_reach_cleanups)
{
	run_threadlet(interrupt_oneself, MARK('s'));
	CHECK_STR(trace, "s");
}

static weft_threadlet in_cleanup;

static void
sleep_while_interrupted(void *arg)
{
	in_cleanup = weft_self();
	note(MARK('('));
	(void)weft_sleep_until(weft_after(2 * WEFT_MS));
	OK(weft_check_canceled());
	note(arg);
}

static int
end_slowly(void *arg)
{
	clean_up_by(sleep_while_interrupted, arg);
	return 0;
}

static int
cancel_in_cleanup(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, end_slowly, MARK(')')) > 0);
	OK(weft_yield());
	CHECK_STR(trace, "(");
	OK(weft_cancel(in_cleanup));
	return weft_scope_close(&scope);
}

TEST(cancellation_does_not_reach_cleanups)
{
	run_threadlet(cancel_in_cleanup, NULL);
	CHECK_STR(trace, "()");
}
