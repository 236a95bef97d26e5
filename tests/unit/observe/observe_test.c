/* observe_test.c - listing and observing all loops of the process by id. */
#include <sched.h>
#include <weft/metrics.h>
#include "unit/observe/metrics_fake.h"

/* Returns how many loops there are, and fills the first `max` entries of `out`. */
static int
list_loops(weft_loop_info *out, int max)
{
	weft_loop_info more;
	uint64_t cursor = 0;
	int count = 0;

	while (weft_loop_list(&cursor, count < max ? &out[count] : &more) > 0)
		count++;
	return count;
}

static weft_loop *
make_named(const char *name)
{
	weft_loop_opts opts = { .name = name, .flags = WEFT_LOOP_NO_SPIN };
	weft_loop *loop = weft_loop_new(&opts);

	CHECK(loop != NULL);
	return loop;
}

/* --- lists -------------------------------------------------------------- */

TEST(loops_are_listed_in_the_order_of_their_creation)
{
	weft_loop *first = make_named("first"), *second = make_named("second");
	weft_loop_info info[2];

	CHECK_EQ(list_loops(info, 2), 2);
	CHECK_STR(info[0].name, "first");
	CHECK_STR(info[1].name, "second");
	CHECK(info[0].id > 0 && info[0].id < info[1].id);
	CHECK_EQ(info[0].state, WEFT_IDLE);
	OK(weft_loop_free(first));
	CHECK_EQ(list_loops(info, 2), 1);
	CHECK_STR(info[0].name, "second");
	OK(weft_loop_free(second));
	CHECK_EQ(list_loops(info, 2), 0);
}

TEST(the_id_of_a_loop_is_not_reused)
{
	weft_loop *loop = make_named("one");
	weft_loop_info before, after;

	CHECK_EQ(list_loops(&before, 1), 1);
	OK(weft_loop_free(loop));
	loop = make_named("other");
	CHECK_EQ(list_loops(&after, 1), 1);
	CHECK(after.id > before.id);
	OK(weft_loop_free(loop));
}

TEST(a_listed_loop_has_its_counters_and_texts)
{
	weft_loop *loop = make_named("counted");
	weft_loop_info info;

	OK(weft_loop_post(loop, nothing, NULL));
	OK(weft_loop_run(loop));
	CHECK_EQ(list_loops(&info, 1), 1);
	CHECK_EQ(info.stats.posts_executed, 1);
	CHECK_EQ(info.threadlets, 0);
	CHECK_STR(info.backend, "");
	CHECK_STR(info.backend_reason, "not opened yet");
	CHECK(info.stats.backend == NULL && info.stats.backend_reason == NULL);
	weft_loop_shutdown(loop);
	CHECK_EQ(list_loops(&info, 1), 1);
	CHECK_EQ(info.state, WEFT_STOPPED);
	OK(weft_loop_free(loop));
}

TEST(a_list_of_loops_needs_a_cursor_and_room)
{
	weft_loop_info info;
	uint64_t cursor = 0;

	CHECK_MISUSE(weft_loop_list(NULL, &info), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_list(&cursor, NULL), WEFT_EINVAL);
}

/* --- metrics while observed --------------------------------------------- */

static uint64_t readings;

static uint64_t
count_reading(void)
{
	readings++;
	return clock_ns;
}

/* An iteration with a callback that takes a millisecond. */
static void
work(weft_loop *loop)
{
	OK(weft_loop_post(loop, take_time, TIME(WEFT_MS)));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
}

static uint64_t
id_of(const char *name)
{
	weft_loop_info info;
	uint64_t cursor = 0;

	while (weft_loop_list(&cursor, &info) > 0)
		if (strcmp(info.name, name) == 0)
			return info.id;
	test_fail(__FILE__, __LINE__, "%s is not listed", name);
}

TEST(an_observed_loop_reports_how_it_spends_its_time)
{
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make_named("observed");
	work(loop);
	OK(weft_loop_observe(id_of("observed"), clock_ns + 5 * WEFT_S));
	work(loop);
	work(loop);
	s = stats_of(loop);
	CHECK_EQ(s.phase_ns[WEFT_PHASE_INBOX], 2 * WEFT_MS);
	CHECK_EQ(s.turn.count, 2);
	CHECK_NEAR(s.turn.max, WEFT_MS);
	CHECK_NEAR(s.turns_per_s, 1000); /* two iterations in two milliseconds */
	OK(weft_loop_free(loop));
	unfake();
}

TEST(a_loop_that_is_no_longer_observed_reads_no_clock)
{
	struct weft_loop_stats s;
	weft_loop *loop;
	uint64_t before;

	fake_clock();
	loop = make_named("observed");
	work(loop);
	faked.now = count_reading;
	before = readings;
	work(loop);
	before = readings - before; /* readings of an iteration without observation */
	OK(weft_loop_observe(0, clock_ns + 5 * WEFT_S));
	work(loop);
	clock_ns += 6 * WEFT_S;
	work(loop); /* detects that the observation has expired */
	readings = 0;
	work(loop);
	CHECK_EQ(readings, before);
	s = stats_of(loop);
	CHECK(s.turn.count == 0 && s.phase_ns[WEFT_PHASE_INBOX] == 0);
	OK(weft_loop_free(loop));
	unfake();
}

TEST(observing_again_extends_the_time_and_never_shortens_it)
{
	weft_loop *loop;
	uint64_t begin_ns;

	fake_clock();
	begin_ns = clock_ns;
	loop = make_named("observed");
	OK(weft_loop_observe(0, begin_ns + 5 * WEFT_S));
	OK(weft_loop_observe(0, begin_ns + 8 * WEFT_S));
	OK(weft_loop_observe(0, begin_ns + 2 * WEFT_S));
	clock_ns = begin_ns + 7 * WEFT_S;
	work(loop);
	CHECK_EQ(stats_of(loop).turn.count, 1);
	clock_ns = begin_ns + 9 * WEFT_S;
	/* Renewed before an iteration has noticed the end. */
	OK(weft_loop_observe(0, begin_ns + 20 * WEFT_S));
	work(loop);
	CHECK_EQ(stats_of(loop).turn.count, 2);
	OK(weft_loop_free(loop));
	unfake();
}

TEST(iterations_in_a_pause_of_observation_do_not_count_for_rates)
{
	weft_loop *loop;

	fake_clock();
	loop = make_named("observed");
	OK(weft_loop_observe(0, clock_ns + WEFT_S));
	work(loop);
	for (int i = 2; i < 60; i += 50) {
		clock_ns += (uint64_t)i * WEFT_S;
		for (int k = 0; k < 100; k++)
			work(loop);
		CHECK(stats_of(loop).turns_per_s == 0);
		OK(weft_loop_observe(0, clock_ns + WEFT_S));
		work(loop);
		CHECK_NEAR(stats_of(loop).turns_per_s, 1000);
	}
	OK(weft_loop_free(loop));
	unfake();
}

TEST(a_loop_created_with_metrics_keeps_them_after_an_observation)
{
	weft_loop *loop;

	fake_clock();
	loop = make(WEFT_LOOP_METRICS);
	OK(weft_loop_observe(0, clock_ns + WEFT_S));
	clock_ns += 5 * WEFT_S;
	for (int i = 0; i < 3; i++)
		work(loop);
	CHECK_EQ(stats_of(loop).turn.count, 3);
	OK(weft_loop_free(loop));
	unfake();
}

TEST(a_loop_that_sleeps_on_its_thread_is_observed_from_another)
{
	weft_loop_opts opts = { .name = "asleep", .flags = WEFT_LOOP_KEEP };
	weft_loop *loop = weft_loop_new(&opts);
	uint64_t id = id_of("asleep");

	OK(weft_loop_start(loop));
	while (weft_loop_state(loop) != WEFT_SLEEPING)
		sched_yield();
	OK(weft_loop_observe(id, weft_after(3600 * WEFT_S)));
	while (stats_of(loop).turn.count == 0) {
		int rc = weft_loop_post(loop, nothing, NULL);

		CHECK(rc == 0 || rc == WEFT_EAGAIN); /* the inbox is full */
		sched_yield();
	}
	end(loop);
	CHECK_EQ(weft_loop_observe(id, WEFT_NEVER), WEFT_ENOENT);
}

static void
observe_oneself(void *arg)
{
	OK(weft_loop_observe(0, clock_ns + WEFT_S));
	take_time(arg);
}

TEST(a_callback_may_start_observing_its_own_loop)
{
	weft_loop *loop;

	fake_clock();
	loop = make_named("self");
	OK(weft_loop_post(loop, observe_oneself, TIME(WEFT_MS)));
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	work(loop);
	CHECK_EQ(stats_of(loop).turn.count, 1); /* observation begins with the next iteration */
	OK(weft_loop_free(loop));
	unfake();
}

static void *
no_memory(size_t size)
{
	(void)size;
	return NULL;
}

TEST(observing_without_memory_fails_and_changes_nothing)
{
	weft_loop *loop;

	fake_clock();
	loop = make_named("poor");
	faked.alloc = no_memory;
	CHECK_EQ(weft_loop_observe(0, clock_ns + WEFT_S), WEFT_ENOMEM);
	faked.alloc = plain->alloc;
	work(loop);
	CHECK_EQ(stats_of(loop).turn.count, 0);
	OK(weft_loop_free(loop));
	unfake();
}

/* Ten iterations per second, for `seconds`. */
static void
go_on(weft_loop *loop, int seconds)
{
	for (int i = 0; i < 10 * seconds; i++) {
		work(loop);
		clock_ns += 99 * WEFT_MS;
	}
}

TEST(rates_cover_the_window_after_a_pause_of_observation)
{
	weft_loop *loop;

	fake_clock();
	loop = make_named("steady");
	OK(weft_loop_observe(0, clock_ns + WEFT_S));
	go_on(loop, 9);
	OK(weft_loop_observe(0, clock_ns + 100 * WEFT_S));
	go_on(loop, 9);
	CHECK_NEAR(stats_of(loop).turns_per_s, 10);
	OK(weft_loop_free(loop));
	unfake();
}
