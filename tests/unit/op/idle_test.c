/* idle_test.c - a loop with nothing to do does nothing at all.
 *
 * The loop under test sleeps on its own thread.  Meanwhile this thread runs another loop until
 * a deadline, which is the clock of the test.  The wrapped system calls count how often the
 * loop under test begins to wait, so a single wakeup shows.
 */
#include <sched.h>
#include "unit/probe.h"

#define WHILE_NS (200 * WEFT_MS)

/* What a loop can have and still have nothing to do. */
enum { A_TIMER = 1, A_NUMBER = 2, A_WATCH = 4, AN_EDGE = 8, A_MUTED = 16, AN_OP = 32, ALL = 63 };

struct idle {
	weft_timer timer;
	struct watcher watch, edge, muted;
	struct probe op;
	struct pair pairs[4];
};

static weft_loop *
make_idle(struct idle *idle, int has)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP };
	weft_loop *loop = make_with(&opts);

	*idle = (struct idle){ .watch.calls = 0 };
	for (int i = 0; i < 4; i++)
		idle->pairs[i] = make_pair();
	if (has & A_TIMER)
		OK(weft_timer_start(loop, &idle->timer, weft_after(HOUR), 0, note_timer,
		                    MARK('t')));
	if (has & A_NUMBER)
		CHECK(weft_schedule_timeout(loop, HOUR, note, MARK('n')) > 0);
	if (has & A_WATCH)
		watch(loop, &idle->watch, idle->pairs[0].fd, WEFT_READABLE);
	if (has & AN_EDGE)
		watch(loop, &idle->edge, idle->pairs[1].fd, WEFT_READABLE | WEFT_EDGE);
	if (has & A_MUTED) {
		put(idle->pairs[2].peer, "x");
		watch(loop, &idle->muted, idle->pairs[2].fd, 0);
	}
	if (has & AN_OP) {
		init(loop, &idle->op);
		OK(try_start(&idle->op, RECV, idle->pairs[3].fd, weft_after(HOUR)));
	}
	return loop;
}

/* Let time pass on this thread. */
static void
pass(uint64_t delay_ns)
{
	weft_loop *clock = make();
	weft_timer timer = WEFT_INIT;

	OK(weft_timer_start(clock, &timer, weft_after(delay_ns), 0, note_timer, MARK('.')));
	OK(weft_loop_run(clock));
	CHECK_STR(trace, ".");
	OK(weft_loop_free(clock));
}

/* How often a loop with the sources in `has` begins to wait while it sleeps for WHILE_NS. */
static int64_t
waits_of(int has)
{
	struct idle idle;
	weft_loop *loop;
	int64_t before, waits = 1;

	count_calls();
	loop = make_idle(&idle, has);
	calls.only = loop;
	OK(weft_loop_start(loop));
	/* On a busy machine the loop may still be about to fall asleep in the first of them. */
	for (int i = 0; waits > 0 && i < 3; i++) {
		watch_for(loop, WEFT_SLEEPING);
		before = counted(&calls.waits);
		pass(WHILE_NS);
		waits = counted(&calls.waits) - before;
	}
	CHECK(counted(&calls.waits) > 0);
	CHECK_EQ(weft_loop_state(loop), WEFT_SLEEPING);
	stop_and_free(loop);
	count_no_more();
	for (int i = 0; i < 4; i++)
		close_pair(idle.pairs[i]);
	return waits;
}

TEST(an_empty_loop_sleeps_without_a_wakeup)
{
	CHECK_EQ(waits_of(0), 0);
}

TEST(a_loop_with_only_distant_deadlines_sleeps_without_a_wakeup)
{
	CHECK_EQ(waits_of(A_TIMER | A_NUMBER), 0);
}

TEST(a_loop_with_quiet_descriptors_sleeps_without_a_wakeup)
{
	CHECK_EQ(waits_of(A_WATCH), 0);
	CHECK_EQ(waits_of(A_TIMER | A_WATCH), 0);
	CHECK_EQ(waits_of(AN_OP), 0);
	CHECK_EQ(waits_of(ALL), 0);
}

/* --- after the last descriptor ------------------------------------------ */

static void
stop_watch(void *arg)
{
	struct idle *idle = arg;

	CHECK_EQ(weft_watch_stop(&idle->watch.watch), 1);
}

static void
count_run(void *arg)
{
	(void)weft__add((weft__a32 *)arg, 1, WEFT__RELEASE);
}

/* Wake the loop `times` times by a post, and each time wait until it sleeps again. */
static void
wake_by_posts(weft_loop *loop, uint32_t times)
{
	weft__a32 ran = { 0 };

	for (uint32_t i = 1; i <= times; i++) {
		OK(weft_loop_post(loop, count_run, &ran));
		while (weft__load(&ran, WEFT__ACQUIRE) < i)
			(void)sched_yield();
		watch_for(loop, WEFT_SLEEPING);
	}
}

/* An io_uring backend may still wait on the ring until the removal of the watch has completed.
 * So the first 20 wakes after the stop do not count. */
TEST(a_loop_without_descriptors_left_sleeps_on_its_inbox_again)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP | WEFT_LOOP_NO_SPIN };
	struct idle idle = { .pairs[0] = make_pair() };
	int64_t polled, parked;
	weft_loop *loop;

	count_calls();
	loop = make_with(&opts);
	calls.only = loop;
	watch(loop, &idle.watch, idle.pairs[0].fd, WEFT_READABLE);
	OK(weft_loop_start(loop));
	wake_by_posts(loop, 20);
	CHECK_EQ(counted(&calls.parks), 0);
	OK(weft_loop_post(loop, stop_watch, &idle));
	wake_by_posts(loop, 20);
	parked = counted(&calls.parks);
	polled = counted(&calls.waits) - parked;
	wake_by_posts(loop, 50);
	CHECK(counted(&calls.parks) > parked);
	CHECK_EQ(counted(&calls.waits) - counted(&calls.parks), polled);
	stop_and_free(loop);
	count_no_more();
	close_pair(idle.pairs[0]);
}

/* --- waiting for one deadline ------------------------------------------- */

/* The wake keeps the iteration in which the timer fires from waiting. */
static void
note_and_wake(weft_timer *timer, void *arg)
{
	note_timer(timer, arg);
	weft_loop_wake(NULL);
}

TEST(a_loop_runs_at_most_two_iterations_before_its_next_deadline)
{
	struct idle idle;
	weft_timer timer = WEFT_INIT;
	weft_loop *loop = make_idle(&idle, ALL);
	int count = 0;

	turns(loop, 3);
	OK(weft_timer_start(loop, &timer, weft_after(WHILE_NS), 0, note_and_wake, MARK('.')));
	while (trace[0] == '\0') {
		(void)weft_loop_run_once(loop, WEFT_NEVER);
		count++;
	}
	CHECK_STR(trace, ".");
	printf("%d turns, of which the last has fired\n", count);
	CHECK(count <= 3);
	stop_idle(loop);
	for (int i = 0; i < 4; i++)
		close_pair(idle.pairs[i]);
}

TEST(timers_stopped_or_postponed_cost_at_most_one_iteration_each)
{
	enum { COUNT = 40 };
	weft_timer timers[COUNT] = { WEFT_INIT }, last = WEFT_INIT;
	weft_loop *loop = make();
	int count = 0;

	for (uint64_t i = 0; i < COUNT; i++)
		OK(weft_timer_start(loop, &timers[i], weft_after((1 + i) * WEFT_MS), 0, note_timer,
		                    MARK('x')));
	OK(weft_timer_start(loop, &last, weft_after(60 * WEFT_MS), 0, note_and_wake, MARK('.')));
	for (int i = 0; i < COUNT; i += 2) {
		CHECK_EQ(weft_timer_stop(&timers[i]), 1);
		OK(weft_timer_start(loop, &timers[i + 1], weft_after(HOUR), 0, note_timer,
		                    MARK('x')));
	}
	while (trace[0] == '\0') {
		(void)weft_loop_run_once(loop, WEFT_NEVER);
		count++;
	}
	CHECK_STR(trace, ".");
	printf("%d turns, %d timers stopped or put off\n", count, COUNT);
	CHECK(count <= COUNT + 3);
	stop_idle(loop);
}
