/* loop_test.c - the life of a loop: create, run, break, start, stop, free, fork.
 *
 * A thread that waits until a loop gets into some state checks its state and yields.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/embed.h>
#include <weft/metrics.h>
#include "open_fds.h"
#include "unit/probe.h"

static void
arm(weft_loop *loop, weft_timer *timer, uint64_t delay)
{
	OK(weft_timer_start(loop, timer, weft_after(delay), 0, note_timer, MARK('t')));
}

/* --- making and freeing ------------------------------------------------- */

TEST(a_new_loop_is_idle_and_has_opened_nothing)
{
	int fds = test_open_fds();
	weft_loop *loop = weft_loop_new(NULL);

	CHECK_EQ(weft_loop_state(loop), WEFT_IDLE);
	CHECK_EQ(test_open_fds(), fds);
	OK(weft_loop_free(loop));
	OK(weft_loop_free(NULL));
}

TEST(unknown_options_are_refused_with_a_text)
{
	weft_loop_opts opts = { .flags = 1u << 30 };

	CHECK_MISUSE(weft_loop_new(&opts) == NULL, true);
	CHECK(test_misuse_aborts || strlen(weft_detail()) > 0);
}

TEST(a_referenced_loop_is_not_freed)
{
	weft_loop *loop = make();

	CHECK(weft_loop_ref(loop) == loop);
	CHECK(weft_loop_ref(loop) == loop);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	CHECK(weft_loop_unref(loop) == NULL);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	CHECK(weft_loop_unref(loop) == NULL);
	OK(weft_loop_free(loop));
}

TEST(an_idle_loop_with_armed_timers_and_timer_ids_can_be_freed)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	arm(loop, &timer, HOUR);
	CHECK(weft_schedule_timeout(loop, HOUR, note, NULL) > 0);
	OK(weft_loop_free(loop));
}

/* --- running ------------------------------------------------------------ */

TEST(run_once_returns_whether_the_loop_is_alive_and_run_ends_when_it_is_not)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	arm(loop, &timer, HOUR);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_EQ(weft_loop_run_once(loop, weft_after(WEFT_MS)), 1);
	CHECK_EQ(weft_timer_stop(&timer), 1);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_state(loop), WEFT_IDLE);
	OK(weft_loop_free(loop));
}

struct seen {
	weft_loop *loop, *other, *current;
	int rc;
	char name[16];
};

static void
inspect(void *arg)
{
	struct seen *seen = arg;

	seen->rc = seen->other ? weft_loop_run(seen->other) : 0;
	seen->current = weft_loop_current();
	(void)pthread_getname_np(pthread_self(), seen->name, 16);
}

TEST(the_current_loop_of_a_callback_is_its_own_loop_also_when_nested)
{
	struct seen outer = { .loop = make() }, inner = { .loop = make() };

	outer.other = inner.loop;
	OK(weft_loop_post(inner.loop, inspect, &inner));
	OK(weft_loop_post(outer.loop, inspect, &outer));
	OK(weft_loop_run(outer.loop));
	OK(outer.rc);
	CHECK(inner.current == inner.loop && outer.current == outer.loop);
	CHECK(weft_loop_current() == NULL);
	OK(weft_loop_free(inner.loop));
	OK(weft_loop_free(outer.loop));
}

static void
try_from_inside(void *arg)
{
	weft_loop *loop = arg;

	CHECK_EQ(weft_loop_state(loop), WEFT_RUNNING);
	CHECK_MISUSE(weft_loop_run(loop), WEFT_EDEADLK);
	CHECK_MISUSE(weft_loop_run_once(loop, WEFT_NOWAIT), WEFT_EDEADLK);
	CHECK_EQ(weft_loop_wait_stopped(loop, WEFT_NEVER), WEFT_EDEADLK);
	CHECK_EQ(weft_loop_start(loop), WEFT_EBUSY);
	CHECK_EQ(weft_loop_free(weft_loop_current()), WEFT_EBUSY);
	note(MARK('.'));
}

TEST(a_loop_cannot_be_run_awaited_started_or_freed_by_its_own_callback)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, try_from_inside, loop));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, ".");
	OK(weft_loop_free(loop));
}

static void
use_null(void *arg)
{
	try_from_inside(NULL);
	CHECK_EQ(weft_loop_now(NULL), weft_loop_now(arg));
	weft_loop_wake(NULL);
	weft_loop_break(NULL);
	OK(weft_loop_post(NULL, note, MARK('a')));
}

static void
stop_null(void *arg)
{
	(void)arg;
	weft_loop_shutdown(NULL);
}

TEST(null_means_the_running_loop)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, use_null, loop));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "."); /* the call of weft_loop_break() has ended the run */
	OK(weft_loop_post(loop, stop_null, NULL));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, ".a");
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
}

TEST(null_without_a_running_loop_is_misuse)
{
	CHECK_MISUSE(weft_loop_run(NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_run_once(NULL, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_start(NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_wait_stopped(NULL, WEFT_NOWAIT), WEFT_EINVAL);
}

static void *
use_idle(void *arg)
{
	static weft_timer timer;

	arm(arg, &timer, 0);
	OK(weft_schedule_microtask(arg, note, MARK('m')));
	return NULL;
}

TEST(an_idle_loop_may_be_used_by_one_thread_after_another)
{
	weft_loop *loop = make();

	OK(pthread_join(thread(use_idle, loop), NULL));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "mt");
	OK(weft_loop_free(loop));
}

/* --- breaking a run ----------------------------------------------------- */

static void
leave_and_post(void *arg)
{
	weft_loop_break(arg);
	OK(weft_loop_post(arg, note, MARK('b')));
}

TEST(break_ends_a_run_after_its_iteration_and_keeps_all_work)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	arm(loop, &timer, HOUR);
	OK(weft_loop_post(loop, leave_and_post, loop));
	OK(weft_loop_post(loop, note, MARK('a')));
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_state(loop), WEFT_IDLE);
	CHECK_STR(trace, "a");
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY); /* the post was accepted */
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_STR(trace, "ab");
	CHECK_EQ(weft_timer_stop(&timer), 1);
	OK(weft_loop_free(loop));
}

TEST(break_of_an_idle_loop_ends_its_next_run_and_only_that)
{
	weft_loop *loop = make();
	weft_timer late = WEFT_INIT, soon = WEFT_INIT;

	arm(loop, &late, HOUR);
	weft_loop_break(loop);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_timer_stop(&late), 1);
	arm(loop, &soon, WEFT_MS);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "t");
	OK(weft_loop_free(loop));
}

static void *
leave_sleeper(void *arg)
{
	watch_for(arg, WEFT_SLEEPING);
	weft_loop_break(arg);
	return NULL;
}

TEST(a_kept_loop_sleeps_without_work_until_another_thread_breaks_its_run)
{
	weft_loop *loop = make_with(
		&(weft_loop_opts){ .flags = WEFT_LOOP_KEEP | WEFT_LOOP_NO_SPIN });
	pthread_t other = thread(leave_sleeper, loop);

	OK(weft_loop_run(loop));
	OK(pthread_join(other, NULL));
	OK(weft_loop_free(loop));
}

TEST(a_started_loop_is_idle_in_every_respect_after_a_break)
{
	for (int i = 0; i < 300; i++) {
		weft_loop *loop = make_started();

		weft_loop_break(loop);
		watch_for(loop, WEFT_IDLE);
		OK(i % 2 ? weft_loop_run(loop) : weft_loop_start(loop));
		weft_loop_break(loop);
		watch_for(loop, WEFT_IDLE);
		(i % 3 ? weft_loop_wake : weft_loop_shutdown)(loop);
		CHECK(i % 3 || weft_loop_state(loop) == WEFT_STOPPED);
		OK(weft_loop_free(loop));
	}
}

/* --- a thread of its own ------------------------------------------------ */

TEST(a_started_loop_has_its_own_thread_named_by_15_bytes_of_its_name)
{
	weft_loop_opts opts = { .name = "a name of more than 15 bytes" };
	struct seen seen = { .loop = weft_loop_new(&opts) };

	OK(weft_loop_start(seen.loop));
	OK(weft_loop_post(seen.loop, inspect, &seen));
	stop_and_free(seen.loop);
	CHECK(seen.current == seen.loop);
	CHECK_STR(seen.name, "a name of more ");
}

TEST(a_started_loop_cannot_be_run_started_or_freed_by_another_thread)
{
	for (int i = 0; i < 50; i++) {
		weft_loop *loop = make_started();

		CHECK_EQ(weft_loop_run(loop), WEFT_EBUSY);
		CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), WEFT_EBUSY);
		CHECK_EQ(weft_loop_start(loop), WEFT_EBUSY);
		CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
		stop_and_free(loop);
	}
}

/* --- stopping ----------------------------------------------------------- */

TEST(stopping_an_idle_loop_without_accepted_posts_stops_it_at_once)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	arm(loop, &timer, 0);
	CHECK(weft_schedule_timeout(loop, HOUR, note, MARK('n')) > 0);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_wait_stopped(loop, WEFT_NOWAIT));
	CHECK_EQ(weft_timer_stop(&timer), 0);
	CHECK_STR(trace, "");
	OK(weft_loop_free(loop));
}

TEST(a_stopped_loop_never_runs_again)
{
	weft_loop *loop = make();

	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_run(loop), WEFT_EALREADY);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), WEFT_EALREADY);
	CHECK_EQ(weft_loop_start(loop), WEFT_EALREADY);
	weft_loop_shutdown(loop);
	weft_loop_break(loop);
	weft_loop_wake(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
}

/* In most rounds the loop's thread has not yet released the loop. */
TEST(every_call_after_a_wait_for_the_stop_finds_the_loop_stopped)
{
	enum { ROUNDS = 300 };

	for (int i = 0; i < ROUNDS; i++) {
		weft_loop *loop = make();
		weft_timer timer = WEFT_INIT;

		OK(weft_loop_start(loop));
		weft_loop_shutdown(loop);
		OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
		if (i % 4 == 0)
			CHECK_EQ(weft_loop_run(loop), WEFT_EALREADY);
		else if (i % 4 == 1)
			CHECK_EQ(weft_loop_start(loop), WEFT_EALREADY);
		else if (i % 4 == 2)
			CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), WEFT_EALREADY);
		else
			CHECK_EQ(weft_timer_start(loop, &timer, WEFT_NOWAIT, 0, note_timer, NULL),
			         WEFT_ESHUTDOWN);
		OK(weft_loop_free(loop));
	}
}

TEST(a_stopped_idle_loop_with_accepted_posts_ends_when_it_is_run)
{
	for (int once = 0; once < 2; once++) {
		weft_loop *loop = make();
		weft_timer timer = WEFT_INIT;

		OK(weft_loop_post(loop, note, MARK('a')));
		arm(loop, &timer, 0);
		weft_loop_shutdown(loop);
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPING);
		CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
		CHECK_EQ(weft_loop_wait_stopped(loop, WEFT_NOWAIT), WEFT_ETIMEDOUT);
		OK(once ? weft_loop_run_once(loop, WEFT_NEVER) : weft_loop_run(loop));
		CHECK_STR(trace, "a");
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
		OK(weft_loop_free(loop));
	}
}

static void
wait_for_other(void *arg)
{
	struct seen *seen = arg;

	seen->rc = weft_loop_wait_stopped(seen->other, weft_after(WEFT_MS));
}

TEST(waiting_for_the_stop_ends_at_the_deadline_but_not_in_a_callback)
{
	struct seen seen = { .loop = make(), .other = make_started() };
	uint64_t deadline = weft_after(WEFT_MS);

	CHECK_EQ(weft_loop_wait_stopped(seen.other, deadline), WEFT_ETIMEDOUT);
	CHECK(weft_now() >= deadline);
	OK(weft_loop_post(seen.loop, wait_for_other, &seen));
	OK(weft_loop_run(seen.loop));
	CHECK_EQ(seen.rc, WEFT_ENOSUSPEND); /* a plain callback cannot be suspended */
	OK(weft_loop_free(seen.loop));
	stop_and_free(seen.other);
}

static int called;

static void
count_call(void *arg)
{
	(void)arg;
	called++;
}

static void *
stop_and_wait(void *arg)
{
	weft_loop_shutdown(arg);
	return MARK(weft_loop_wait_stopped(arg, WEFT_NEVER) ? 0 : called);
}

TEST(many_threads_may_stop_and_wait_and_nothing_runs_after_a_wait)
{
	pthread_t threads[4];
	void *seen;

	for (int round = 0; round < 200; round++) {
		weft_loop *loop = make_started();

		called = 0;
		for (int i = 0; i < 100; i++)
			OK(weft_loop_post(loop, count_call, NULL));
		for (int i = 0; i < 4; i++)
			threads[i] = thread(stop_and_wait, loop);
		for (int i = 0; i < 4; i++) {
			OK(pthread_join(threads[i], &seen));
			CHECK_EQ((intptr_t)seen, 100);
		}
		OK(weft_loop_free(loop));
	}
}

/* --- forking ------------------------------------------------------------ */

/* Call number `what`, which a child must not make with its parent's loop. */
static int64_t
use_forked(weft_loop *loop, int what)
{
	static weft_node node = { .fn = note };
	static weft_timer timer;
	struct weft_loop_stats stats;

	/* clang-format off */
	switch (what) {
	case 0: return weft_loop_run(loop);
	case 1: return weft_loop_run_once(loop, WEFT_NOWAIT);
	case 2: return weft_loop_start(loop);
	case 3: return weft_loop_wait_stopped(loop, WEFT_NOWAIT);
	case 4: return weft_loop_post(loop, note, NULL);
	case 5: return weft_loop_post_node(loop, &node);
	case 6: return weft_loop_post_before_wait(loop, &node);
	case 7: return weft_timer_start(loop, &timer, 0, 0, note_timer, NULL);
	case 8: return weft_schedule_timeout(loop, 0, note, NULL);
	case 9: return weft_schedule_immediate(loop, note, NULL);
	case 10: return weft_schedule_clear(loop, 1, NULL);
	case 11: return weft_schedule_microtask(loop, note, NULL);
	case 12: return weft_schedule_tick(loop, note, NULL);
	default: return weft_loop_stats(loop, &stats);
	}
	/* clang-format on */
}

/* Whether the child exited with 0 or, if `may_abort`, was killed by a signal. */
static bool
is_well(int child, bool may_abort)
{
	int status = -1;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	return status == 0 || (may_abort && WIFSIGNALED(status));
}

TEST(a_forked_child_cannot_use_its_parents_loop)
{
	weft_loop *loops[2] = { make(), make_started() };
	int wrong = 0;

	for (int i = 0; i < 2 * 14; i++) {
		int child = test_fork();

		if (child == 0)
			test_child_exit(use_forked(loops[i % 2], i / 2) != WEFT_EWRONGLOOP);
		if (is_well(child, test_misuse_aborts))
			continue;
		printf("loop %d, call %d\n", i % 2, i / 2);
		wrong++;
	}
	CHECK_EQ(wrong, 0);
	stop_and_free(loops[0]);
	stop_and_free(loops[1]);
}

/* Runs in a child.  `held` is the number of allocations before the parent made its loop. */
static int
free_and_make_own(weft_loop *parents, int64_t held)
{
	weft_loop *own = make();
	weft_timer timer = WEFT_INIT;

	arm(own, &timer, WEFT_US);
	if (weft_loop_run(own) != 0 || strcmp(trace, "t") != 0)
		return 1;
	if (weft_loop_free(own) != 0 || weft_loop_free(parents) != 0)
		return 2;
	return test_live_allocations() == held ? 0 : 3;
}

TEST(a_forked_child_frees_its_parents_loop_in_any_state_and_makes_its_own)
{
	for (int state = 0; state < 3; state++) {
		int64_t held = test_live_allocations();
		weft_loop *loop = make();
		weft_timer timer = WEFT_INIT;
		int child;

		arm(loop, &timer, HOUR);
		OK(weft_schedule_microtask(loop, note, MARK('m')));
		CHECK(weft_schedule_timeout(loop, HOUR, note, NULL) > 0);
		if (state > 0)
			OK(weft_loop_start(loop));
		if (state == 2)
			weft_loop_shutdown(loop);
		child = test_fork();
		if (child == 0)
			test_child_exit(free_and_make_own(loop, held));
		CHECK(is_well(child, false));
		if (state == 0)
			CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
		stop_and_free(loop); /* the parent's loop is unchanged */
		CHECK_STR(trace, "m");
	}
}

static void
fork_inside(void *arg)
{
	int child = test_fork();

	if (child == 0)
		test_child_exit(weft_loop_free(arg));
	if (is_well(child, false))
		note(MARK('.'));
}

TEST(a_child_forked_in_a_callback_can_free_the_running_loop)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, fork_inside, loop));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, ".");
	OK(weft_loop_free(loop));
}
