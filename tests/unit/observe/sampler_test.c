/* sampler_test.c - how a loop spends its time: phases, quantiles, the sliding window. */
#include <pthread.h>
#include <weft/metrics.h>
#include <weft/op.h>
#include "unit/observe/metrics_fake.h"

/* --- phases and quantiles ------------------------------------------------ */

static void
take_time_and_more(void *arg)
{
	weft_loop *loop = arg;

	OK(weft_schedule_microtask(loop, take_time, TIME(8 * WEFT_MS)));
	CHECK(weft_schedule_immediate(loop, take_time, TIME(4 * WEFT_MS)) > 0);
	take_time(TIME(2 * WEFT_MS));
}

TEST(the_time_of_each_phase_is_reported)
{
	weft_timer timer = WEFT_INIT;
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	OK(weft_loop_post(loop, take_time, TIME(32 * WEFT_MS)));
	OK(weft_loop_post(loop, take_time_and_more, loop));
	OK(weft_timer_start(loop, &timer, clock_ns + 62 * WEFT_MS, 0, take_time_by_timer,
	                    TIME(1 * WEFT_MS)));
	OK(weft_loop_run(loop));
	s = stats_of(loop);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_TIMERS], 1 * WEFT_MS);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_INBOX], 34 * WEFT_MS);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_THREADLETS], 0);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_WAIT], 16 * WEFT_MS);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_IMMEDIATES], 4 * WEFT_MS);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_MICROTASKS], 8 * WEFT_MS);
	CHECK_EQ(s.turn.count, s.turns);
	CHECK_EQ(s.turn.max, 46 * WEFT_MS);
	OK(weft_loop_free(loop));
	unfake();
}

/* A timer whose i-th call takes i us; it stops after `calls` calls. */
struct slow {
	weft_timer timer;
	uint64_t i, calls;
};

static void
take_longer(weft_timer *timer, void *arg)
{
	struct slow *slow = arg;

	clock_ns += ++slow->i * WEFT_US;
	if (slow->i == slow->calls)
		CHECK_EQ(weft_timer_stop(timer), 1);
}

TEST(quantiles_of_iterations_do_not_include_the_wait)
{
	struct slow slow = { .calls = 900 };
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	OK(weft_timer_start(loop, &slow.timer, clock_ns + 10 * WEFT_MS, 10 * WEFT_MS, take_longer,
	                    &slow));
	OK(weft_loop_run(loop));
	s = stats_of(loop);
	CHECK_EQ(s.turn.count, s.turns);
	CHECK_NEAR(s.turn.count, 900);
	CHECK_NEAR(s.turn.p50, 450 * WEFT_US);
	CHECK_NEAR(s.turn.p90, 810 * WEFT_US);
	CHECK_NEAR(s.turn.p99, 891 * WEFT_US);
	CHECK_NEAR(s.turn.mean, 450 * WEFT_US);
	CHECK_EQ(s.turn.max, 900 * WEFT_US);
	CHECK_EQ(s.lag.max, 0); /* every timer was on time */
	CHECK_EQ(s.lag.count, 900);
	OK(weft_loop_free(loop));
	unfake();
}

TEST(a_timer_that_fires_late_shows_as_lag)
{
	weft_timer first = WEFT_INIT, late = WEFT_INIT;
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	OK(weft_timer_start(loop, &first, clock_ns + WEFT_MS, 0, take_time_by_timer,
	                    TIME(7 * WEFT_MS)));
	OK(weft_timer_start(loop, &late, clock_ns + 2 * WEFT_MS, 0, take_time_by_timer, TIME(0)));
	OK(weft_loop_run(loop));
	s = stats_of(loop);
	CHECK_EQ(s.lag.count, 2);
	CHECK_EQ(s.lag.max, 6 * WEFT_MS);
	OK(weft_loop_free(loop));
	unfake();
}

static void
start_overdue(void *arg)
{
	static weft_timer timer;

	OK(weft_timer_start(arg, &timer, WEFT_NOWAIT, 0, take_time_by_timer, TIME(1)));
}

TEST(a_timer_that_was_overdue_when_started_does_not_count_as_lag)
{
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	OK(weft_loop_post(loop, start_overdue, loop));
	OK(weft_loop_run(loop));
	CHECK_EQ(stats_of(loop).timers_fired, 1);
	CHECK_EQ(stats_of(loop).lag.max, 0);
	OK(weft_loop_free(loop));
	unfake();
}

static int wakes_left;

/* Wake the loop `wakes_left` times, then break its run. */
static void
post_and_again(void)
{
	post_from_outside();
	if (--wakes_left > 0)
		on_park = post_and_again;
	else
		weft_loop_break(woken);
}

TEST(the_lag_of_a_post_is_the_time_from_the_wake_to_its_run)
{
	struct weft_loop_stats s;

	fake_clock();
	woken = make(WEFT_LOOP_METRICS | WEFT_LOOP_KEEP);
	wakes_left = 100;
	on_park = post_and_again;
	OK(weft_loop_run(woken));
	OK(weft_loop_run_once(woken, WEFT_NOWAIT));
	s = stats_of(woken);
	CHECK_EQ(s.posts_executed, 100);
	CHECK(s.lag.count >= 99);
	CHECK_NEAR(s.lag.p50, 300 * WEFT_US);
	CHECK_EQ(s.lag.max, 300 * WEFT_US);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_WAIT], 100 * 400 * WEFT_US);
	OK(weft_loop_free(woken));
	unfake();
}

/* --- a loop that is always busy ----------------------------------------- */

static uint64_t busy_left, stall_at;

static void
stay_busy(void *arg)
{
	clock_ns += busy_left == stall_at ? 50 * WEFT_MS : 100;
	if (--busy_left > 0)
		OK(weft_loop_post(arg, stay_busy, arg));
}

static struct weft_loop_stats
run_busy(uint64_t turns, uint64_t stalled)
{
	weft_loop *loop = make(WEFT_LOOP_METRICS);
	struct weft_loop_stats s;

	busy_left = turns;
	stall_at = stalled;
	OK(weft_loop_post(loop, stay_busy, loop));
	OK(weft_loop_run(loop));
	s = stats_of(loop);
	OK(weft_loop_free(loop));
	return s;
}

static int readings;

static uint64_t
count_now(void)
{
	readings++;
	return clock_ns;
}

TEST(busy_iterations_are_sampled_and_the_samples_represent_all)
{
	struct weft_loop_stats s;

	fake_clock();
	faked.now = count_now;
	readings = 0;
	s = run_busy(10000, 0);
	CHECK(readings < 10000 / 16); /* about every 82nd iteration is timed, with 2 readings */
	CHECK_EQ(s.turns, 10000);
	CHECK_EQ(s.turn.count, 10000);
	CHECK_NEAR(s.turn.p50, 100);
	CHECK_NEAR(s.turn.p99, 100);
	CHECK_NEAR(s.phase_ns[WEFT_PHASE_INBOX], 10000 * 100);
	CHECK_NEAR(s.lag.p50, 100); /* each ran one iteration after it was posted */
	CHECK_NEAR(s.lag.count, 10000);
	unfake();
}

TEST(an_iteration_that_stalls_between_samples_is_detected)
{
	struct weft_loop_stats s;

	fake_clock();
	for (uint64_t at = 1; at < 5000; at += 617) {
		s = run_busy(10000, at);
		CHECK_NEAR(s.turn.max, 50 * WEFT_MS);
		CHECK_NEAR(s.turn.p99, 100);
		CHECK_EQ(s.turn.count, 10000);
	}
	unfake();
}

/* --- the window --------------------------------------------------------- */

static void
tick(weft_timer *timer, void *arg)
{
	uint64_t *left = arg;

	clock_ns += WEFT_MS;
	if (--*left == 0)
		CHECK_EQ(weft_timer_stop(timer), 1);
}

/* Ten calls a second, each of 1 ms. */
static void
run_seconds(weft_loop *loop, uint64_t seconds)
{
	weft_timer timer = WEFT_INIT;
	uint64_t left = 10 * seconds;

	OK(weft_timer_start(loop, &timer, clock_ns + 100 * WEFT_MS, 100 * WEFT_MS, tick, &left));
	OK(weft_loop_run(loop));
}

TEST(rates_cover_the_last_ten_seconds)
{
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	run_seconds(loop, 3); /* shorter than the window: counts from the loop's creation */
	CHECK_NEAR(stats_of(loop).callbacks_per_s, 10);
	run_seconds(loop, 30);
	s = stats_of(loop);
	CHECK_NEAR(s.callbacks_per_s, 10);
	CHECK_NEAR(s.turns_per_s, 10);
	CHECK_NEAR(s.turn.count, 95); /* quantiles cover 9 to 10 seconds */
	clock_ns += 5 * WEFT_S;
	CHECK_NEAR(stats_of(loop).callbacks_per_s, 5);
	clock_ns += 4 * WEFT_S;
	CHECK_NEAR(stats_of(loop).callbacks_per_s, 1);
	OK(weft_loop_free(loop));
	unfake();
}

/* Run `count` posts at `at_ns`. */
static void
run_at(weft_loop *loop, uint64_t at_ns, int count)
{
	clock_ns = at_ns;
	for (int i = 0; i < count; i++)
		OK(weft_loop_post(loop, nothing, NULL));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
}

/* The number of callbacks in the window that ends at `at_ns`, if it covers `span_ns`. */
static double
calls_at(weft_loop *loop, uint64_t at_ns, uint64_t span_ns)
{
	clock_ns = at_ns;
	return stats_of(loop).callbacks_per_s * (double)span_ns / (double)WEFT_S;
}

TEST(a_rate_slice_ends_after_exactly_100_ms_and_leaves_the_window_after_ten_seconds)
{
	uint64_t from;
	weft_loop *loop;

	fake_clock();
	from = clock_ns; /* the border of a slice */
	loop = make(WEFT_LOOP_METRICS);
	run_at(loop, from, 1);
	run_at(loop, from + 100 * WEFT_MS - 1, 2); /* the same slice */
	run_at(loop, from + 100 * WEFT_MS, 4);     /* the second one */
	run_at(loop, from + 250 * WEFT_MS, 8);     /* the third one */
	CHECK_NEAR(calls_at(loop, from + 300 * WEFT_MS, 300 * WEFT_MS), 15);
	CHECK_NEAR(calls_at(loop, from + 10 * WEFT_S - 1, 10 * WEFT_S), 15);
	CHECK_NEAR(calls_at(loop, from + 10 * WEFT_S, 9900 * WEFT_MS), 12);
	CHECK_NEAR(calls_at(loop, from + 10100 * WEFT_MS - 1, 10 * WEFT_S), 12);
	CHECK_NEAR(calls_at(loop, from + 10100 * WEFT_MS, 9900 * WEFT_MS), 8);
	CHECK(calls_at(loop, from + 10200 * WEFT_MS, 9900 * WEFT_MS) <= 0);
	OK(weft_loop_free(loop));
	unfake();
}

TEST(a_rate_slice_that_is_used_again_counts_only_its_new_callbacks)
{
	uint64_t from;
	weft_loop *loop;

	fake_clock();
	from = clock_ns;
	loop = make(WEFT_LOOP_METRICS);
	run_at(loop, from, 100);
	run_at(loop, from + 50 * WEFT_MS, 10);
	run_at(loop, from + 10100 * WEFT_MS, 1); /* 101 slices later: the same memory */
	CHECK_NEAR(calls_at(loop, from + 10100 * WEFT_MS, 9900 * WEFT_MS), 1);
	run_at(loop, from + 30300 * WEFT_MS, 2);
	CHECK_NEAR(calls_at(loop, from + 30300 * WEFT_MS, 9900 * WEFT_MS), 2);
	OK(weft_loop_free(loop));
	unfake();
}

TEST(the_rate_falls_every_100_ms_when_a_steady_load_ends)
{
	uint64_t from;
	weft_loop *loop;

	fake_clock();
	from = clock_ns;
	loop = make(WEFT_LOOP_METRICS);
	for (unsigned i = 0; i < 100; i++)
		run_at(loop, from + i * 100 * WEFT_MS, 10);
	for (unsigned i = 0; i <= 100; i++) { /* one slice after the other leaves */
		uint64_t at_ns = from + (100 + i) * 100 * WEFT_MS - 1;

		CHECK_NEAR(calls_at(loop, at_ns, 10 * WEFT_S), 10 * (100 - i));
	}
	OK(weft_loop_free(loop));
	unfake();
}

TEST(quantiles_forget_events_older_than_ten_seconds_and_counters_do_not)
{
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	run_seconds(loop, 1);
	CHECK(stats_of(loop).turn.max == WEFT_MS);
	clock_ns += 8 * WEFT_S;
	CHECK(stats_of(loop).turn.max == WEFT_MS);
	clock_ns += 2 * WEFT_S;
	s = stats_of(loop);
	CHECK(s.turn.count == 0 && s.turn.max == 0 && s.lag.count == 0);
	CHECK(s.turns_per_s <= 0 && s.callbacks_per_s <= 0);
	CHECK_EQ(s.timers_fired, 10);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_TIMERS], 10 * WEFT_MS);
	run_seconds(loop, 1); /* old slices of the window are reused */
	CHECK_EQ(stats_of(loop).turn.max, WEFT_MS);
	CHECK(stats_of(loop).turn.count <= 12);
	OK(weft_loop_free(loop));
	unfake();
}

static void
queue_five(void *arg)
{
	for (int i = 0; i < 5; i++)
		OK(weft_schedule_microtask(arg, nothing, NULL));
}

TEST(queue_depths_are_reported_as_current_maximum_and_average)
{
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	for (int i = 0; i < 9; i++)
		OK(weft_loop_post(loop, nothing, NULL));
	OK(weft_loop_post(loop, queue_five, loop));
	OK(weft_loop_run(loop));
	s = stats_of(loop);
	CHECK(s.inbox.now == 0 && s.inbox.max == 10);
	CHECK(s.inbox.average > 0 && s.inbox.average < 10);
	CHECK(s.microtasks.now == 0 && s.microtasks.max == 5);
	clock_ns += 10 * WEFT_S;
	CHECK_EQ(stats_of(loop).inbox.max, 0);
	OK(weft_loop_free(loop));
	unfake();
}

/* --- read by another thread --------------------------------------------- */

/* Seconds pass in milliseconds, so that slices are reused while the reader reads them. */
static uint64_t
now_fast(void)
{
	return weft__sys_real.now() * 1000;
}

static void
go_on(void *arg)
{
	OK(weft_schedule_microtask(arg, nothing, NULL));
	(void)weft_loop_post(arg, go_on, arg); /* until the loop stops */
}

static void
check_growth(const struct weft_loop_stats *a, const struct weft_loop_stats *b)
{
	CHECK(b->turns >= a->turns && b->syscalls >= a->syscalls);
	CHECK(b->posts_accepted >= a->posts_accepted);
	CHECK(b->posts_executed >= a->posts_executed);
	CHECK(b->posts_executed <= b->posts_accepted);
	CHECK(b->wakes >= a->wakes && b->posts_refused >= a->posts_refused);
	for (int i = 0; i < WEFT_PHASES; i++)
		CHECK(b->phase_ns[i] >= a->phase_ns[i]);
	CHECK(b->turn.p50 <= b->turn.p90 && b->turn.p90 <= b->turn.p95);
	CHECK(b->turn.p95 <= b->turn.p99 && b->turn.p99 <= b->turn.max);
}

TEST(counters_of_a_running_loop_only_grow_for_a_reader_on_another_thread)
{
	struct weft_loop_stats a = WEFT_INIT, b;
	weft_loop *loop;
	uint64_t end_ns;

	fake();
	faked.now = now_fast;
	loop = make(WEFT_LOOP_METRICS);
	OK(weft_loop_start(loop));
	OK(weft_loop_post(loop, go_on, loop));
	end_ns = weft__sys_real.now() + 200 * WEFT_MS;
	while (weft__sys_real.now() < end_ns || a.turn.count == 0) {
		b = stats_of(loop);
		check_growth(&a, &b);
		a = b;
	}
	end(loop);
	unfake();
}

enum { FINISHED = 3 };

static void
cancel_op(weft_op *op, int why, void *arg)
{
	(void)arg;
	(void)weft_op_finish(op, why);
}

static void
ignore_op(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)result;
	(void)arg;
}

static void *
finish_ops(void *arg)
{
	weft_op *ops = arg;

	for (int i = 0; i < FINISHED; i++)
		OK(weft_op_finish(&ops[i], 0));
	return NULL;
}

TEST(the_depth_of_the_librarys_own_queue_is_reported_separately)
{
	weft_op ops[FINISHED];
	struct weft_loop_stats s;
	pthread_t thread;
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	for (int i = 0; i < FINISHED; i++) {
		weft_op_init(&ops[i], loop, ignore_op, NULL);
		OK(weft_op_begin(&ops[i], cancel_op, NULL, WEFT_NEVER));
	}
	CHECK_EQ(pthread_create(&thread, NULL, finish_ops, ops), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	OK(weft_loop_run(loop));
	s = stats_of(loop);
	CHECK_EQ(s.internal.now, 0);
	CHECK_EQ(s.internal.max, FINISHED);
	CHECK(s.internal.average > 0);
	CHECK_EQ(s.inbox.max, 0);
	CHECK_EQ(s.posts_accepted, 0);
	OK(weft_loop_free(loop));
	unfake();
}
