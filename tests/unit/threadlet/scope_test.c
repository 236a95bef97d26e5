/* scope_test.c - scopes: joining, canceling, deadlines, shields. */
#include "unit/threadlet/sched.h"

static int
note_and_return(void *arg)
{
	OK(weft_yield());
	note(arg);
	return (int)(intptr_t)arg;
}

static int
close_waits(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, note_and_return, MARK('a')) > 0);
	CHECK(weft_scope_go(&scope, note_and_return, MARK('b')) > 0);
	OK(weft_scope_close(&scope));
	note(MARK('c'));
	return 0;
}

TEST(scope_closes_when_all_its_threadlets_have_ended)
{
	run_threadlet(close_waits, NULL);
	CHECK_STR(trace, "abc");
}

static int
join_both(void *arg)
{
	weft_threadlet first, second;
	weft_scope scope;
	int out = 0;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	first = weft_scope_go(&scope, note_and_return, MARK('x'));
	second = weft_scope_go(&scope, note_and_return, MARK('y'));
	CHECK_EQ(weft_join(first, &out, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(out, 0);
	OK(weft_join(second, &out, WEFT_NEVER));
	CHECK_EQ(out, 'y');
	OK(weft_join(first, &out, WEFT_NOWAIT));
	CHECK_EQ(out, 'x');
	OK(weft_join(first, NULL, WEFT_NOWAIT));
	CHECK_EQ(weft_join(weft_self(), NULL, WEFT_NEVER), WEFT_ESRCH);
	OK(weft_scope_close(&scope));
	CHECK_EQ(weft_join(first, &out, WEFT_NEVER), WEFT_ESRCH);
	return 0;
}

TEST(results_can_be_joined_until_the_scope_is_closed)
{
	run_threadlet(join_both, NULL);
}

static int
join_oneself(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_join(weft_self(), NULL, WEFT_NEVER), WEFT_EDEADLK);
	return 0;
}

static int
sleep_for_ever(void *arg)
{
	int rc = weft_sleep_until(WEFT_NEVER);

	note(arg);
	CHECK_EQ(weft_check_canceled(), rc);
	CHECK_EQ(weft_yield(), rc);
	return rc;
}

static int
cancel_all(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, join_oneself, NULL) > 0);
	CHECK(weft_scope_go(&scope, sleep_for_ever, MARK('a')) > 0);
	CHECK(weft_scope_go(&scope, sleep_for_ever, MARK('b')) > 0);
	OK(weft_yield());
	if (arg)
		OK(weft_cancel(weft_self()));
	else
		weft_scope_cancel(&scope);
	CHECK_EQ(weft_yield(), WEFT_ECANCELED);
	CHECK_EQ(weft_scope_go(&scope, sleep_for_ever, NULL), WEFT_ECANCELED);
	CHECK_EQ(weft_scope_set_deadline(&scope, WEFT_NEVER), WEFT_EALREADY);
	OK(weft_scope_close(&scope)); /* cancellation of the children is not a failure */
	CHECK_EQ(weft_yield(), arg ? WEFT_ECANCELED : 0);
	note(MARK('c'));
	return 0;
}

TEST(canceling_a_scope_reaches_its_threadlets_and_its_owner_inside)
{
	run_threadlet(cancel_all, NULL);
	CHECK_STR(trace, "abc");
}

TEST(canceling_a_threadlet_reaches_the_threadlets_in_its_scopes)
{
	run_threadlet(cancel_all, MARK(1));
	CHECK_STR(trace, "abc");
}

/* --- failures ----------------------------------------------------------- */

static int
fail_soon(void *arg)
{
	OK(weft_yield());
	return (int)(intptr_t)arg;
}

static int
fail_one(void *arg)
{
	bool fast = arg != NULL;
	weft_scope scope;

	OK(weft_scope_open(&scope, fast ? WEFT_FAIL_FAST : 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, fail_soon, MARK(WEFT_EPROTO)) > 0);
	CHECK(weft_scope_go(&scope, fast ? sleep_for_ever : fail_soon,
	                    MARK(fast ? 'x' : WEFT_EPIPE))
	      > 0);
	CHECK_EQ(weft_scope_close(&scope), WEFT_EPROTO);
	CHECK_EQ(scope.error, WEFT_EPROTO);
	return 0;
}

TEST(scope_close_returns_the_first_failure)
{
	run_threadlet(fail_one, NULL);
}

TEST(first_failure_in_a_fail_fast_scope_cancels_the_others)
{
	run_threadlet(fail_one, MARK(1));
	CHECK_STR(trace, "x");
}

/* --- deadlines ---------------------------------------------------------- */

static int
sleep_until_told(void *arg)
{
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ETIMEDOUT);
	note(arg);
	return WEFT_ETIMEDOUT;
}

static int
nest_deadlines(void *arg)
{
	weft_scope outer, inner;
	uint64_t due_ns = weft_after(WEFT_MS);

	(void)arg;
	OK(weft_scope_open(&outer, 0, due_ns));
	OK(weft_scope_open(&inner, 0, weft_after(HOUR)));
	CHECK(weft_scope_go(&inner, sleep_until_told, MARK('i')) > 0);
	CHECK_EQ(weft_sleep_until(weft_after(HOUR)), WEFT_ETIMEDOUT);
	CHECK(weft_now() >= due_ns);
	OK(weft_scope_close(&inner));
	CHECK_EQ(weft_yield(), WEFT_ETIMEDOUT);
	OK(weft_scope_close(&outer));
	OK(weft_yield());
	return 0;
}

TEST(nearest_deadline_limits_every_call_inside)
{
	run_threadlet(nest_deadlines, NULL);
	CHECK_STR(trace, "i");
}

static int
move_deadline(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, weft_after(WEFT_MS)));
	OK(weft_scope_set_deadline(&scope, weft_after(HOUR)));
	OK(weft_sleep_until(weft_after(2 * WEFT_MS)));
	CHECK(weft_scope_go(&scope, sleep_until_told, MARK('m')) > 0);
	OK(weft_scope_set_deadline(&scope, weft_after(1)));
	OK(weft_scope_close(&scope));
	CHECK_EQ(weft_scope_open(&scope, 0, WEFT_NOWAIT), 0);
	CHECK_EQ(weft_yield(), WEFT_ETIMEDOUT);
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(scope_deadline_can_be_moved_and_waits_follow)
{
	run_threadlet(move_deadline, NULL);
	CHECK_STR(trace, "m");
}

/* --- shields ------------------------------------------------------------ */

static int
clean_up_shielded(void *arg)
{
	weft_scope shield, inner;

	(void)arg;
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_sleep_until(weft_after(1)));
	CHECK(weft_scope_go(&shield, note_and_return, MARK('s')) > 0);
	OK(weft_scope_open(&inner, 0, WEFT_NEVER));
	OK(weft_yield());
	OK(weft_yield());
	weft_scope_cancel(&shield); /* works from inside the shield */
	CHECK_EQ(weft_yield(), WEFT_ECANCELED);
	OK(weft_scope_close(&inner));
	OK(weft_scope_close(&shield));
	CHECK_EQ(weft_yield(), WEFT_ECANCELED);
	return 0;
}

static int
cancel_child(void *arg)
{
	weft_threadlet child;
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, clean_up_shielded, NULL);
	OK(weft_yield());
	OK(weft_cancel(child));
	OK(weft_cancel(child));
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(canceled_threadlet_can_still_wait_inside_a_shield)
{
	run_threadlet(cancel_child, NULL);
	CHECK_STR(trace, "s");
}

/* The shield is already open when the cancellation arrives. */
static int
sleep_in_shield(void *arg)
{
	weft_scope shield;

	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_sleep_until(weft_after(2 * WEFT_MS)));
	note(arg);
	OK(weft_scope_close(&shield));
	CHECK_EQ(weft_yield(), WEFT_ECANCELED);
	return 0;
}

static int
cancel_one_in_a_shield(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, sleep_in_shield, MARK('h')) > 0);
	OK(weft_yield());
	weft_scope_cancel(&scope);
	return weft_scope_close(&scope);
}

TEST(open_shield_blocks_a_cancellation)
{
	run_threadlet(cancel_one_in_a_shield, NULL);
	CHECK_STR(trace, "h");
}

/* --- interrupts --------------------------------------------------------- */

static int
be_interrupted_in_turn(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_EINTR);
	OK(weft_yield());
	note(MARK('1'));
	CHECK_EQ(weft_sleep_until(weft_after(HOUR)), WEFT_EINTR);
	note(MARK('2'));
	return 0;
}

static int
interrupt_twice(void *arg)
{
	weft_threadlet child;
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, be_interrupted_in_turn, NULL);
	OK(weft_yield());
	OK(weft_interrupt(child)); /* ends its wait, */
	OK(weft_interrupt(child)); /* once */
	while (strcmp(trace, "1") != 0)
		OK(weft_yield());
	OK(weft_yield());
	OK(weft_interrupt(child));
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(interrupt_ends_the_current_or_the_next_wait_once)
{
	run_threadlet(interrupt_twice, NULL);
	CHECK_STR(trace, "12");
}

/* Its op has finished, but the result has not been delivered yet. */
static int
wait_for_finished(void *arg)
{
	const struct pair *pair = arg;
	weft_op op;

	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_send(&op, pair->fd, "x", 1, 0, WEFT_NEVER));
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), 1);
	CHECK_EQ(weft_yield(), WEFT_EINTR);
	OK(weft_yield());
	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, WEFT_NEVER), WEFT_EINTR);
	OK(weft_yield());
	note(MARK('o'));
	return 0;
}

static int
interrupt_an_op(void *arg)
{
	weft_threadlet child;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, wait_for_finished, arg);
	OK(weft_yield());
	OK(weft_interrupt(child));
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_interrupt(child));
	return weft_scope_close(&scope);
}

/* With io_uring, a send is made only when the loop waits. */
TEST(interrupt_that_finds_its_op_finished_applies_to_the_next_call)
{
	weft_loop *loop = make_with(&(weft_loop_opts){ .backend = "poll" });
	struct pair pair = make_pair();

	go_on(loop, interrupt_an_op, &pair);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "o");
	OK(weft_loop_free(loop));
	close_pair(pair);
}

/* --- scopes left open --------------------------------------------------- */

static int
leave_open(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, sleep_in_shield, MARK('l')) > 0);
	weft_scope_cancel(&scope);
	return 'e';
}

static int
see_the_end(void *arg)
{
	weft_threadlet child;
	weft_scope scope;
	int out = 0;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, leave_open, NULL);
	OK(weft_join(child, &out, WEFT_NEVER));
	note(MARK(out));
	return weft_scope_close(&scope);
}

TEST(threadlet_that_leaves_a_scope_open_waits_for_its_children)
{
	run_threadlet(see_the_end, NULL);
	CHECK_STR(trace, "le");
}

/* --- misuse ------------------------------------------------------------- */

static int
misuse(void *arg)
{
	weft_scope outer, inner;

	(void)arg;
	CHECK_MISUSE(weft_scope_open(NULL, 0, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft_scope_open(&outer, 1u << 9, WEFT_NEVER), WEFT_EINVAL);
	OK(weft_scope_open(&outer, 0, WEFT_NEVER));
	OK(weft_scope_open(&inner, 0, WEFT_NEVER));
	CHECK_MISUSE(weft_scope_close(&outer), WEFT_EINVAL);
	OK(weft_scope_close(&inner));
	CHECK_MISUSE(weft_scope_close(&inner), WEFT_EINVAL);
	CHECK_MISUSE((int)weft_scope_go(&inner, misuse, NULL), WEFT_EINVAL);
	CHECK_MISUSE((int)weft_scope_go(NULL, misuse, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_scope_set_deadline(&inner, 1), WEFT_EINVAL);
	OK(weft_scope_close(&outer));
	return 0;
}

TEST(scopes_must_be_closed_in_reverse_order)
{
	weft_scope scope;

	run_threadlet(misuse, NULL);
	CHECK_EQ(weft_scope_open(&scope, 0, WEFT_NEVER), WEFT_ENOSUSPEND);
}

/* --- a deep tree -------------------------------------------------------- */

enum { DEEP = TEST_TSAN ? 1000 : 3000 };
static int depth, ended;

static int
go_deeper(void *arg)
{
	weft_scope scope;
	int rc;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	if (++depth < DEEP)
		CHECK(weft_scope_go(&scope, go_deeper, NULL) > 0);
	rc = weft_sleep_until(WEFT_NEVER);
	CHECK_EQ(rc, WEFT_ECANCELED);
	OK(weft_scope_close(&scope));
	ended++;
	return 0;
}

static int
cancel_the_tree(void *arg)
{
	weft_scope scope;

	(void)arg;
	depth = ended = 0;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, go_deeper, NULL) > 0);
	while (depth < DEEP)
		OK(weft_yield());
	OK(weft_yield());
	weft_scope_cancel(&scope);
	return weft_scope_close(&scope);
}

TEST(deep_tree_of_threadlets_is_canceled_on_a_small_stack)
{
	run_threadlet(cancel_the_tree, NULL);
	CHECK_EQ(ended, DEEP);
}

/* --- stopping ----------------------------------------------------------- */

static int
stop_myself(void *arg)
{
	weft_scope shield;
	struct pair *pair = arg;

	weft_loop_shutdown(NULL);
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_sleep_until(weft_after(WEFT_MS))); /* the loop waits for this threadlet */
	put(pair->peer, "x");
	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	CHECK(weft_scope_go(&shield, sleep_for_ever, MARK('b')) > 0);
	note(MARK('a'));
	OK(weft_scope_close(&shield));
	return 0;
}

TEST(loop_stop_cancels_its_threadlets_and_waits_for_their_end)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();

	go_on(loop, sleep_for_ever, MARK('1'));
	go_on(loop, stop_myself, &pair);
	go_on(loop, sleep_for_ever, MARK('2'));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "12ab");
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
	close_pair(pair);
}

static int
see_whether_cancelled(void *arg)
{
	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED);
	note(arg);
	return 0;
}

static void
go_late(void *arg)
{
	CHECK(weft_go(see_whether_cancelled, arg) > 0);
}

TEST(threadlet_started_by_a_post_on_a_stopping_loop_is_born_canceled)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, go_late, MARK('p')));
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "p");
	CHECK_EQ(weft_go_with(&(weft_go_opts){ .loop = loop }, see_whether_cancelled, NULL),
	         WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}

/* --- on another loop ---------------------------------------------------- */

static struct {
	weft_loop *here, *there;
	weft_threadlet child;
	bool joined, gone;
} far;

static int
join_far(void *arg)
{
	weft_scope scope;
	int out = 0;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	far.child = weft_go_with(&(weft_go_opts){ .loop = far.there, .scope = &scope },
	                         note_and_return, MARK('f'));
	CHECK(far.child > 0);
	OK(weft_join(far.child, &out, WEFT_NEVER));
	CHECK_EQ(out, 'f');
	far.joined = true;
	while (!far.gone)
		OK(weft_yield());
	CHECK_EQ(weft_cancel(far.child), WEFT_ESRCH);
	CHECK_EQ(weft_interrupt(far.child), WEFT_ESRCH);
	return weft_scope_close(&scope);
}

TEST(ended_threadlet_can_be_canceled_after_its_loop_was_freed)
{
	weft_loop *here = make(), *there = weft_loop_new(NULL);

	far = (typeof(far)){ .here = here, .there = there };
	go_on(here, join_far, NULL);
	while (!far.joined) {
		turn(here);
		turn(there);
	}
	OK(weft_loop_free(there));
	OK(weft_cancel(far.child)); /* it can still be found */
	far.gone = true;
	OK(weft_loop_run(here));
	OK(weft_loop_free(here));
}

static int
start_far_then_sleep(void *arg)
{
	weft_threadlet *last = arg;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	far.child = weft_go_with(&(weft_go_opts){ .loop = far.there, .scope = &scope },
	                         note_and_return, MARK('f'));
	CHECK(far.child > 0);
	OK(weft_scope_close(&scope));
	*last = weft_go(sleep_for_ever, MARK('s')); /* reuses the same handle */
	CHECK(*last > 0);
	return 0;
}

/* A cancel for the first threadlet, made just after it ended, leaves a request queued at the
 * far loop.  The request is still there when the second threadlet is canceled here. */
TEST(cancel_is_not_lost_behind_one_that_came_too_late)
{
	for (int free_it = 0; free_it < 2; free_it++) {
		weft_loop *here = make(), *there = weft_loop_new(NULL);
		weft_threadlet last = 0;

		far = (typeof(far)){ .here = here, .there = there };
		go_on(here, start_far_then_sleep, &last);
		turn(here);
		while (strcmp(trace, "f") != 0)
			turn(there);
		OK(weft_cancel(far.child));
		if (free_it)
			OK(weft_loop_free(there));
		while (!last)
			turn(here);
		OK(weft_cancel(last));
		if (!free_it) {
			turn(there);
			OK(weft_loop_free(there));
		}
		OK(weft_loop_run(here));
		CHECK_STR(trace, "fs");
		OK(weft_loop_free(here));
	}
}

static int
start_bounded(void *arg)
{
	weft_scope shield;

	(void)arg;
	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED);
	OK(weft_scope_open(&shield, WEFT_SHIELD, weft_after(WEFT_MS)));
	CHECK(weft_go_with(&(weft_go_opts){ .loop = far.there, .scope = &shield }, sleep_until_told,
	                   MARK('d'))
	      > 0);
	return weft_scope_close(&shield);
}

TEST(scope_deadline_works_on_a_loop_that_was_stopped_before_it_ran)
{
	weft_loop *here = make(), *there = make_started();

	far = (typeof(far)){ .here = here, .there = there };
	go_on(here, start_bounded, NULL);
	weft_loop_shutdown(here);
	OK(weft_loop_run(here));
	CHECK_STR(trace, "d");
	OK(weft_loop_free(here));
	stop_and_free(there);
}
