/* timer_test.c - timers on a loop, with the real clock.
 *
 * The tests choose which of two deadlines comes first, but not how long anything takes.  So
 * they check real time only for timers that fire early.
 */
#include "unit/probe.h"

/* A timer that appends its name to the trace and then calls `act`. */
struct alarm {
	weft_timer timer;
	weft_loop *loop;
	char name;
	bool early; /* it fired before its deadline, or off its grid */
	int fired;
	void (*act)(struct alarm *alarm);
	struct alarm *other;
	uint64_t due_ns, last_ns;
};

static void
on_fire(weft_timer *timer, void *arg)
{
	struct alarm *p = arg;

	p->early |= timer != &p->timer || weft_now() < p->due_ns
	            || weft_loop_now(p->loop) < p->due_ns;
	p->fired++;
	if (p->name)
		note(MARK(p->name));
	if (p->act)
		p->act(p);
}

static void
arm(weft_loop *loop, struct alarm *p, uint64_t due_ns, uint64_t every_ns)
{
	p->loop = loop;
	p->due_ns = due_ns;
	OK(weft_timer_start(loop, &p->timer, due_ns, every_ns, on_fire, p));
}

/* --- firing ------------------------------------------------------------- */

TEST(a_timer_fires_once_and_not_before_its_deadline)
{
	weft_loop *loop = make();
	struct alarm p = { .name = 'a' };

	arm(loop, &p, weft_after(WEFT_MS), 0);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "a");
	CHECK(!p.early);
	CHECK_EQ(weft_timer_stop(&p.timer), 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(p.fired, 1);
	OK(weft_loop_free(loop));
}

TEST(timers_fire_in_order_of_deadline_then_of_start)
{
	weft_loop *loop = make();
	struct alarm p[6] = { { .name = 'a' }, { .name = 'b' }, { .name = 'c' },
		              { .name = 'd' }, { .name = 'e' }, { .name = 'f' } };
	uint64_t now = weft_now();

	arm(loop, &p[4], now + 2 * WEFT_MS, 0);
	arm(loop, &p[1], now - 20, 0);
	arm(loop, &p[3], now + WEFT_MS, 0);
	arm(loop, &p[2], now - 20, 0);
	arm(loop, &p[0], WEFT_NOWAIT, 0);
	arm(loop, &p[5], now + 2 * WEFT_MS, 0);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abcdef");
	OK(weft_loop_free(loop));
}

static uint64_t fired, last_due_ns;
static bool disorder;

static void
check_order(weft_timer *timer, void *arg)
{
	(void)arg;
	disorder |= timer->due_ns < last_due_ns || weft_now() < timer->due_ns;
	last_due_ns = timer->due_ns;
	fired++;
}

TEST(all_of_many_due_timers_fire_in_order_and_none_early)
{
	enum { COUNT = 20000 };
	static weft_timer timers[COUNT];
	weft_loop *loop = make();
	uint64_t seed = test_seed(), now = weft_now();

	fired = last_due_ns = 0;
	disorder = false;
	for (int i = 0; i < COUNT; i++) {
		uint64_t due = now + test_random(&seed) % (20 * WEFT_MS);

		timers[i] = (weft_timer)WEFT_INIT;
		OK(weft_timer_start(loop, &timers[i], due, 0, check_order, NULL));
	}
	OK(weft_loop_run(loop));
	CHECK_EQ(fired, COUNT);
	CHECK(!disorder);
	OK(weft_loop_free(loop));
}

TEST(a_timer_with_a_past_deadline_fires_in_the_next_iteration)
{
	weft_loop *loop = make();
	struct alarm p = { .name = 'a' };

	arm(loop, &p, 1, 0);
	CHECK_STR(trace, "");
	turn(loop);
	CHECK_STR(trace, "a");
	OK(weft_loop_free(loop));
}

static void
start_other(struct alarm *p)
{
	arm(p->loop, p->other, WEFT_NOWAIT, 0);
}

TEST(a_timer_started_by_a_timer_fires_in_the_next_iteration)
{
	weft_loop *loop = make();
	struct alarm b = { .name = 'b', .act = start_other };
	struct alarm a = { .name = 'a', .act = start_other, .other = &b };

	b.other = &b; /* b restarts itself forever */
	arm(loop, &a, WEFT_NOWAIT, 0);
	turn(loop);
	CHECK_STR(trace, "a");
	turn(loop);
	CHECK_STR(trace, "ab");
	turn(loop);
	CHECK_STR(trace, "abb");
	OK(weft_loop_free(loop));
}

static void
queue_both(struct alarm *p)
{
	OK(weft_schedule_microtask(p->loop, note, MARK('m')));
	OK(weft_schedule_tick(p->loop, note, MARK('t')));
}

TEST(a_microtask_checkpoint_follows_every_timer)
{
	weft_loop *loop = make();
	struct alarm a = { .name = 'a', .act = queue_both };
	struct alarm b = { .name = 'b', .act = queue_both };

	arm(loop, &a, WEFT_NOWAIT, 0);
	arm(loop, &b, WEFT_NOWAIT, 0);
	turn(loop);
	CHECK_STR(trace, "atmbtm");
	OK(weft_loop_free(loop));
}

static void
post_chain(void *arg)
{
	int *left = arg;

	if (--*left > 0)
		OK(weft_loop_post(NULL, post_chain, arg));
}

static void
immediate_chain(void *arg)
{
	int *left = arg;

	if (--*left > 0)
		CHECK(weft_schedule_immediate(NULL, immediate_chain, arg) > 0);
}

struct busy {
	weft_timer timer;
	int posts, immediates, fired;
};

static void
start_until_others_ran(weft_timer *timer, void *arg)
{
	struct busy *busy = arg;

	if (++busy->fired < 1000000 && (busy->posts || busy->immediates))
		OK(weft_timer_start(NULL, timer, WEFT_NOWAIT, 0, start_until_others_ran, arg));
}

TEST(a_timer_that_is_always_due_starves_neither_posts_nor_immediates)
{
	weft_loop *loop = make();
	struct busy busy = { .posts = 500, .immediates = 500 };

	OK(weft_timer_start(loop, &busy.timer, WEFT_NOWAIT, 0, start_until_others_ran, &busy));
	OK(weft_loop_post(loop, post_chain, &busy.posts));
	CHECK(weft_schedule_immediate(loop, immediate_chain, &busy.immediates) > 0);
	OK(weft_loop_run(loop));
	CHECK(busy.fired < 1000000);
	CHECK_EQ(busy.posts, 0);
	CHECK_EQ(busy.immediates, 0);
	OK(weft_loop_free(loop));
}

/* --- repeating ---------------------------------------------------------- */

/* The timer's own due_ns is already the next deadline.  Each call takes `last_ns`, so that some
 * deadlines are missed. */
static void
follow_grid(struct alarm *p)
{
	uint64_t until = weft_now() + p->last_ns, before = p->due_ns;

	p->due_ns = p->timer.due_ns;
	p->early |= p->due_ns <= before || (p->due_ns - before) % p->timer.every_ns != 0
	            || p->due_ns <= weft_loop_now(NULL);
	while (weft_now() < until)
		;
	if (p->fired == 20)
		CHECK_EQ(weft_timer_stop(&p->timer), 1);
}

TEST(a_repeating_timer_keeps_its_grid_however_long_its_callbacks_take)
{
	const uint64_t work[] = { 0, 30 * WEFT_US, 100 * WEFT_US, 350 * WEFT_US };

	for (int i = 0; i < 4; i++) {
		weft_loop *loop = make();
		struct alarm p = { .act = follow_grid, .last_ns = work[i] };

		arm(loop, &p, weft_after(50 * WEFT_US), 100 * WEFT_US);
		OK(weft_loop_run(loop));
		CHECK_EQ(p.fired, 20);
		CHECK(!p.early);
		OK(weft_loop_free(loop));
	}
}

static void
become_one_shot(struct alarm *p)
{
	if (p->fired == 3)
		arm(p->loop, p, weft_after(WEFT_US), 0);
}

TEST(a_repeating_timer_restarted_as_one_shot_by_its_callback_fires_once)
{
	weft_loop *loop = make();
	struct alarm p = { .act = become_one_shot };

	arm(loop, &p, WEFT_NOWAIT, WEFT_US);
	p.due_ns = 0;
	OK(weft_loop_run(loop));
	CHECK_EQ(p.fired, 4);
	CHECK(!p.early);
	OK(weft_loop_free(loop));
}

/* --- moving and stopping ------------------------------------------------ */

TEST(starting_an_armed_timer_moves_it)
{
	weft_loop *loop = make();
	struct alarm a = { .name = 'a' }, b = { .name = 'b' };

	arm(loop, &a, weft_after(HOUR), WEFT_US);
	arm(loop, &b, weft_after(WEFT_MS), 0);
	arm(loop, &a, WEFT_NOWAIT, 0); /* sooner, and no longer repeating */
	arm(loop, &b, weft_after(2 * WEFT_MS), 0);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ab");
	CHECK(!b.early);
	OK(weft_loop_free(loop));
}

TEST(a_stopped_timer_does_not_fire_or_keep_the_loop_alive)
{
	weft_loop *loop = make();
	struct alarm p = { .name = 'a' };

	CHECK_EQ(weft_timer_stop(&p.timer), 0); /* never started */
	arm(loop, &p, WEFT_NOWAIT, WEFT_US);
	CHECK_EQ(weft_timer_stop(&p.timer), 1);
	CHECK_EQ(weft_timer_stop(&p.timer), 0);
	memset(&p.timer, 0xee, sizeof(p.timer));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "");
	OK(weft_loop_free(loop));
}

static void
stop_other(struct alarm *p)
{
	note(MARK(weft_timer_stop(&p->other->timer) ? '+' : '-'));
}

static void
move_other(struct alarm *p)
{
	arm(p->loop, p->other, weft_after(WEFT_MS), 0);
}

TEST(a_timer_may_stop_or_move_another_that_is_due_with_it)
{
	weft_loop *loop = make();
	struct alarm b = { .name = 'b' }, d = { .name = 'd' };
	struct alarm a = { .name = 'a', .act = stop_other, .other = &b };
	struct alarm c = { .name = 'c', .act = move_other, .other = &d };
	struct alarm e = { .name = 'e', .act = stop_other, .other = &e };

	arm(loop, &a, 10, 0);
	arm(loop, &b, 10, 0);
	arm(loop, &c, 10, 0);
	arm(loop, &d, 10, 0);
	arm(loop, &e, 10, 0);
	turn(loop);
	CHECK_STR(trace, "a+ce-");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "a+ce-d");
	CHECK(!d.early);
	OK(weft_loop_free(loop));
}

static void
free_timer(weft_timer *timer, void *arg)
{
	CHECK_EQ(weft_timer_stop(timer), timer->every_ns ? 1 : 0);
	memset(timer, 0xee, sizeof(*timer));
	free(timer);
	++*(int *)arg;
}

TEST(a_timer_may_be_freed_by_its_callback_if_repeating_after_a_stop)
{
	weft_loop *loop = make();
	int freed = 0;

	for (int i = 0; i < 100; i++) {
		weft_timer *timer = calloc(1, sizeof(*timer));

		OK(weft_timer_start(loop, timer, weft_after(WEFT_US), i % 2 ? WEFT_US : 0,
		                    free_timer, &freed));
	}
	OK(weft_loop_run(loop));
	CHECK_EQ(freed, 100);
	OK(weft_loop_free(loop));
}

/* --- background --------------------------------------------------------- */

TEST(a_background_timer_does_not_keep_the_loop_alive_but_fires)
{
	weft_loop *loop = make();
	struct alarm back = { .name = 'b' }, late = { .name = 'l' };

	weft_timer_set_background(&back.timer, true);
	arm(loop, &back, weft_after(HOUR), 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_timer_stop(&back.timer), 1);
	arm(loop, &back, weft_after(WEFT_MS), 0); /* still in the background */
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	arm(loop, &late, weft_after(2 * WEFT_MS), 0);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "bl");
	OK(weft_loop_free(loop));
}

static void
to_background(struct alarm *p)
{
	if (p->fired == 3)
		weft_timer_set_background(&p->timer, true);
}

TEST(a_timer_may_enter_and_leave_the_background_at_any_time)
{
	weft_loop *loop = make();
	struct alarm p = { .act = to_background };

	arm(loop, &p, WEFT_NOWAIT, WEFT_US);
	OK(weft_loop_run(loop));
	CHECK_EQ(p.fired, 3);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	weft_timer_set_background(&p.timer, false);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	weft_timer_set_background(&p.timer, false);
	weft_timer_set_background(&p.timer, true);
	weft_timer_set_background(&p.timer, true);
	p.act = NULL;
	OK(weft_loop_run(loop));
	CHECK_EQ(weft_timer_stop(&p.timer), 1);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	OK(weft_loop_free(loop));
}

/* --- when the loop stops ------------------------------------------------ */

static void
stop_loop(struct alarm *p)
{
	weft_loop_shutdown(p->loop);
	CHECK_EQ(weft_timer_start(p->loop, &p->timer, WEFT_NOWAIT, 0, on_fire, p), WEFT_ESHUTDOWN);
	note(MARK('.'));
}

TEST(timers_are_disarmed_without_a_callback_when_the_loop_stops)
{
	weft_loop *loop = make();
	struct alarm late = { .name = 'l' }, late_too = { .name = 'm' };
	struct alarm a = { .name = 'a', .act = stop_loop };

	arm(loop, &late, weft_after(HOUR), 0);
	arm(loop, &late_too, weft_after(HOUR), HOUR);
	arm(loop, &a, WEFT_NOWAIT, 0);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "a.");
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK_EQ(weft_timer_stop(&late.timer), 0);
	CHECK_EQ(weft_timer_stop(&late_too.timer), 0);
	CHECK_EQ(weft_timer_start(loop, &a.timer, WEFT_NOWAIT, 0, on_fire, &a), WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}

TEST(a_timer_that_is_due_when_another_stops_the_loop_does_not_fire)
{
	weft_loop *loop = make();
	struct alarm a = { .name = 'a', .act = stop_loop };
	struct alarm b = { .name = 'b' };

	arm(loop, &a, WEFT_NOWAIT, 0);
	arm(loop, &b, WEFT_NOWAIT, 0);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "a.");
	OK(weft_loop_free(loop));
}

/* --- the clock of an iteration ------------------------------------------ */

static void
read_clock(void *arg)
{
	uint64_t *now = arg;

	*now = weft_loop_now(NULL);
	while (weft_now() <= *now)
		;
}

TEST(the_loop_clock_is_constant_within_an_iteration_and_never_ahead)
{
	weft_loop *loop = make();
	uint64_t now[3], before = weft_now(), outside = weft_loop_now(loop);

	CHECK(outside >= before && outside <= weft_now());
	OK(weft_loop_post(loop, read_clock, &now[0]));
	OK(weft_loop_post(loop, read_clock, &now[1]));
	turn(loop);
	CHECK(now[0] >= outside);
	CHECK_EQ(now[1], now[0]);
	OK(weft_loop_post(loop, read_clock, &now[2]));
	turn(loop);
	CHECK(now[2] > now[0] && now[2] <= weft_now());
	OK(weft_loop_free(loop));
}

/* --- misuse ------------------------------------------------------------- */

TEST(a_timer_without_function_deadline_or_loop_is_misuse)
{
	weft_loop *loop = make(), *other = make();
	struct alarm p = { .name = 'a' };
	weft_timer *t = &p.timer;

	CHECK_MISUSE(weft_timer_start(loop, NULL, 1, 0, on_fire, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_timer_start(loop, t, 1, 0, NULL, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_timer_start(loop, t, WEFT_NEVER, 0, on_fire, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_timer_start(NULL, t, 1, 0, on_fire, &p), WEFT_EINVAL);
	arm(loop, &p, WEFT_NOWAIT, 0);
	CHECK_MISUSE(weft_timer_start(other, t, 1, 0, on_fire, &p), WEFT_EINVAL);
	OK(weft_loop_run(loop)); /* the timer is unchanged */
	CHECK_STR(trace, "a");
	OK(weft_loop_free(loop));
	OK(weft_loop_free(other));
}

static weft_timer far;

static void
arm_far(void *arg)
{
	(void)weft_timer_start(NULL, &far, weft_after(HOUR), 0, on_fire, NULL);
	(void)pthread_barrier_wait(arg);
}

TEST(a_timer_of_a_loop_running_on_another_thread_is_misuse)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;
	pthread_barrier_t barrier;

	OK(pthread_barrier_init(&barrier, NULL, 2));
	OK(weft_loop_start(loop));
	CHECK_MISUSE(weft_timer_start(loop, &timer, 1, 0, on_fire, NULL), WEFT_EWRONGLOOP);
	OK(weft_loop_post(loop, arm_far, &barrier));
	(void)pthread_barrier_wait(&barrier);
	CHECK_MISUSE(weft_timer_stop(&far), WEFT_EWRONGLOOP);
	/* Runs after our call above has read the timer. */
	OK(weft_loop_post(loop, arm_far, &barrier));
	(void)pthread_barrier_wait(&barrier);
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	CHECK_EQ(weft_timer_stop(&far), 0);
	OK(weft_loop_free(loop));
	OK(pthread_barrier_destroy(&barrier));
}
