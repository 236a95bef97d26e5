/* post_test.c - posts to a loop: order, budget, limit, wakes, exactly once.
 *
 * An accepted post runs exactly once, and a refused post never runs.  So most tests here count
 * both, and compare.
 */
#include <sched.h>
#include <weft/embed.h>
#include "unit/probe.h"

static weft_loop *
make_sized(uint32_t budget, uint32_t inbox_max)
{
	weft_loop_opts opts = { .budget = budget, .inbox_max = inbox_max };

	return make_with(&opts);
}

static void
count(void *arg)
{
	++*(uint64_t *)arg;
}

/* --- order -------------------------------------------------------------- */

TEST(posts_and_nodes_run_in_the_order_they_were_posted)
{
	weft_loop *loop = make();
	weft_node b = { .fn = note, .arg = MARK('b') };
	weft_node d = { .fn = note, .arg = MARK('d') };

	OK(weft_loop_post(loop, note, MARK('a')));
	OK(weft_loop_post_node(loop, &b));
	OK(weft_loop_post(loop, note, MARK('c')));
	OK(weft_loop_post_node(loop, &d));
	OK(weft_loop_post(loop, note, MARK('e')));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abcde");
	OK(weft_loop_free(loop));
}

static void
post_last(void *arg)
{
	note(MARK('a'));
	OK(weft_loop_post(arg, note, MARK('z')));
}

TEST(a_post_made_by_a_callback_runs_after_the_posts_made_before)
{
	weft_loop *loop = make_sized(2, 0);

	OK(weft_loop_post(loop, post_last, loop));
	for (const char *c = "bcde"; *c; c++)
		OK(weft_loop_post(loop, note, MARK(*c)));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_STR(trace, "ab");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abcdez");
	OK(weft_loop_free(loop));
}

TEST(one_iteration_runs_as_many_posts_as_its_budget)
{
	uint64_t ran = 0;

	for (uint64_t budget = 8; budget <= 1024; budget += 1016) {
		weft_loop *loop = make_sized(budget == 1024 ? 0 : 8, 0);

		for (uint64_t i = 0; i < 2 * budget + 4; i++)
			OK(weft_loop_post(loop, count, &ran));
		ran = 0;
		CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
		CHECK_EQ(ran, budget);
		CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
		CHECK_EQ(ran, 2 * budget);
		CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
		CHECK_EQ(ran, 2 * budget + 4);
		OK(weft_loop_free(loop));
	}
}

static int chain;

static void
post_again(void *arg)
{
	if (--chain > 0 && strlen(trace) < 2)
		OK(weft_loop_post(NULL, post_again, arg));
}

TEST(a_post_that_posts_itself_again_starves_neither_timers_nor_immediates)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	chain = 100000;
	OK(weft_timer_start(loop, &timer, WEFT_NOWAIT, 0, note_timer, MARK('t')));
	CHECK(weft_schedule_immediate(loop, note, MARK('i')) > 0);
	for (int i = 0; i < 2000; i++)
		OK(weft_loop_post(loop, post_again, NULL));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ti");
	CHECK(chain > 0);
	OK(weft_loop_free(loop));
}

/* --- nodes -------------------------------------------------------------- */

struct again {
	weft_node node;
	weft_loop *loop;
	int left;
};

static void
post_node_again(void *arg)
{
	struct again *again = arg;

	if (--again->left > 0)
		OK(weft_loop_post_node(again->loop, &again->node));
	else
		free(again);
}

TEST(a_node_may_be_posted_again_or_freed_by_its_own_callback)
{
	weft_loop *loop = make();
	struct again *again = calloc(1, sizeof(*again));

	*again = (struct again){ { .fn = post_node_again, .arg = again }, loop, 100 };
	OK(weft_loop_post_node(loop, &again->node));
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

static weft_node flush = { .fn = note, .arg = MARK('.') };

static void
note_and_flush(void *arg)
{
	note(arg);
	OK(weft_loop_post_before_wait(NULL, &flush));
}

TEST(a_node_posted_to_run_before_the_wait_runs_once_after_all_else)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	OK(weft_timer_start(loop, &timer, weft_after(HOUR), 0, note_timer, NULL));
	OK(weft_loop_post(loop, note_and_flush, MARK('a')));
	OK(weft_loop_post(loop, note_and_flush, MARK('b')));
	OK(weft_loop_post(loop, note, MARK('c')));
	CHECK_EQ(weft_loop_run_once(loop, weft_after(WEFT_MS)), 1);
	CHECK_STR(trace, "abc.");
	OK(weft_loop_post(loop, note_and_flush, MARK('d')));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_STR(trace, "abc.d.");
	OK(weft_loop_post_before_wait(loop, &flush));
	OK(weft_loop_post_before_wait(loop, &flush));
	CHECK_EQ(weft_timer_stop(&timer), 1);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abc.d..");
	OK(weft_loop_free(loop));
}

/* --- the limit ---------------------------------------------------------- */

TEST(a_full_inbox_refuses_posts_but_not_nodes_until_some_have_run)
{
	weft_loop *loop = make_sized(4, 100);
	weft_node node = { .fn = note, .arg = MARK('n') };
	uint64_t ran = 0;

	for (int i = 0; i < 100; i++)
		OK(weft_loop_post(loop, count, &ran));
	CHECK_EQ(weft_loop_post(loop, count, &ran), WEFT_EAGAIN);
	OK(weft_loop_post_node(loop, &node));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	for (int i = 0; i < 4; i++)
		OK(weft_loop_post(loop, count, &ran));
	CHECK_EQ(weft_loop_post(loop, count, &ran), WEFT_EAGAIN);
	OK(weft_loop_run(loop));
	CHECK_EQ(ran, 104);
	CHECK_STR(trace, "n");
	OK(weft_loop_free(loop));
}

TEST(the_inbox_is_full_exactly_when_its_limit_of_posts_is_queued)
{
	uint64_t seed = test_seed(), ran = 0, accepted = 0;
	weft_loop *loop = make_sized(3, 70);

	for (int i = 0; i < 20000; i++) {
		unsigned what = (unsigned)test_random(&seed) % 8;
		bool full = accepted - ran == 70;
		int rc;

		if (what == 0) {
			(void)weft_loop_run_once(loop, WEFT_NOWAIT);
			continue;
		}
		rc = weft_loop_post(loop, count, &ran);
		CHECK_EQ(rc, full ? WEFT_EAGAIN : 0);
		accepted += rc == 0;
	}
	OK(weft_loop_run(loop));
	CHECK_EQ(ran, accepted);
	OK(weft_loop_free(loop));
}

static void *
post_100(void *arg)
{
	static uint64_t ran;
	intptr_t accepted = 0;

	while (accepted < 100 && weft_loop_post(arg, count, &ran) == 0)
		accepted++;
	return MARK(accepted);
}

TEST(the_inbox_room_of_a_thread_that_exited_is_reused)
{
	weft_loop *loop = make_sized(0, 100);
	void *accepted;

	OK(pthread_join(thread(post_100, loop), &accepted));
	CHECK_EQ((intptr_t)accepted, 100);
	OK(weft_loop_run(loop));
	OK(pthread_join(thread(post_100, loop), &accepted));
	CHECK_EQ((intptr_t)accepted, 100);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* --- stopping ----------------------------------------------------------- */

static void
stop_and_try(void *arg)
{
	static weft_node node = { .fn = note, .arg = MARK('x') };
	weft_loop *loop = arg, *other = make();

	note(MARK('s'));
	weft_loop_shutdown(loop);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_post(loop, note, MARK('x')), WEFT_ESHUTDOWN);
	CHECK_EQ(weft_loop_post_node(loop, &node), WEFT_ESHUTDOWN);
	OK(weft_loop_post_before_wait(loop, &flush));
	OK(weft_loop_post_node(other, &node)); /* a refused node can be posted again */
	OK(weft_loop_run(other));
	OK(weft_loop_free(other));
	trace[0] = '\0';
}

TEST(a_stopping_loop_refuses_posts_and_runs_the_accepted_ones)
{
	weft_loop *loop = make_sized(2, 0);

	OK(weft_loop_post(loop, stop_and_try, loop));
	for (const char *c = "abcd"; *c; c++)
		OK(weft_loop_post(loop, note, MARK(*c)));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "a.bcd");
	CHECK_EQ(weft_loop_post(loop, note, NULL), WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}

/* Some threads post to a loop while another thread stops it.  All of them meet at the barrier
 * between the rounds. */
struct race {
	pthread_barrier_t barrier;
	weft_loop *loop; /* NULL: no more rounds */
	uint64_t ran;    /* written by the loop */
	weft__a64 accepted;
};

static void *
post_until_refused(void *arg)
{
	struct race *race = arg;

	for (;;) {
		uint64_t accepted = 0;
		int rc = 0;

		(void)pthread_barrier_wait(&race->barrier);
		if (!race->loop)
			return NULL;
		while (rc == 0 || rc == WEFT_EAGAIN) {
			rc = weft_loop_post(race->loop, count, &race->ran);
			accepted += rc == 0;
			if (rc != 0 || accepted % 16 == 0)
				sched_yield();
		}
		(void)weft__add(&race->accepted, accepted, WEFT__RELAXED);
		(void)pthread_barrier_wait(&race->barrier);
	}
}

/* One round.  The loop has its own thread, or it is idle and has to be run to its end. */
static void
stop_among_posts(struct race *race, bool started, uint64_t pause)
{
	race->loop = make();
	race->ran = 0;
	weft__store(&race->accepted, 0, WEFT__RELAXED);
	if (started)
		OK(weft_loop_start(race->loop));
	(void)pthread_barrier_wait(&race->barrier);
	for (uint64_t i = 0; i < pause; i++)
		weft__pause();
	weft_loop_shutdown(race->loop);
	if (!started && weft_loop_state(race->loop) != WEFT_STOPPED)
		OK(weft_loop_run(race->loop));
	OK(weft_loop_wait_stopped(race->loop, WEFT_NEVER));
	(void)pthread_barrier_wait(&race->barrier);
	CHECK_EQ(race->ran, weft__load(&race->accepted, WEFT__RELAXED));
	OK(weft_loop_free(race->loop));
}

TEST(posts_accepted_while_another_thread_stops_the_loop_run_once)
{
	struct race race = { 0 };
	uint64_t seed = test_seed();
	pthread_t threads[2];

	OK(pthread_barrier_init(&race.barrier, NULL, 3));
	for (int i = 0; i < 2; i++)
		threads[i] = thread(post_until_refused, &race);
	for (int i = 0; i < 3000; i++)
		stop_among_posts(&race, i % 4 != 0, test_random(&seed) % 4096);
	race.loop = NULL;
	(void)pthread_barrier_wait(&race.barrier);
	for (int i = 0; i < 2; i++)
		OK(pthread_join(threads[i], NULL));
	OK(pthread_barrier_destroy(&race.barrier));
}

/* --- many threads ------------------------------------------------------- */

static weft_loop *sides[2];
static int hits_left;

static void
play(void *arg)
{
	intptr_t other = !(intptr_t)arg;

	if (hits_left-- > 0 && !weft_loop_post(sides[other], play, MARK(other)))
		return;
	weft_loop_shutdown(sides[0]);
	weft_loop_shutdown(sides[1]);
}

TEST(two_loops_that_sleep_between_posts_wake_each_other_every_time)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_NO_SPIN };

	for (int round = 0; round < 2; round++) {
		hits_left = 10000;
		for (int i = 0; i < 2; i++) {
			sides[i] = weft_loop_new(round ? &opts : NULL);
			OK(weft_loop_start(sides[i]));
		}
		OK(weft_loop_post(sides[0], play, MARK(0)));
		for (int i = 0; i < 2; i++) {
			OK(weft_loop_wait_stopped(sides[i], WEFT_NEVER));
			OK(weft_loop_free(sides[i]));
		}
		CHECK_EQ(hits_left, -1);
	}
}

TEST(posts_of_threads_that_exited_run_and_their_room_is_reused)
{
	weft_loop *loop = make_sized(0, 100);
	void *accepted;

	for (int i = 0; i < 20; i++) {
		OK(pthread_join(thread(post_100, loop), &accepted));
		CHECK_EQ((intptr_t)accepted, 100);
		OK(weft_loop_run(loop));
	}
	OK(weft_loop_free(loop));
}

struct feed {
	pthread_barrier_t barrier;
	weft_loop *loops[50];
	uint64_t ran[50];
};

static void *
feed_all(void *arg)
{
	struct feed *feed = arg;
	uintptr_t refused = 0;

	for (int i = 0; i < 5000; i++)
		refused += weft_loop_post(feed->loops[i % 50], count, &feed->ran[i % 50]) != 0;
	(void)pthread_barrier_wait(&feed->barrier); /* all posts are made */
	(void)pthread_barrier_wait(&feed->barrier); /* all loops are freed */
	return (void *)refused;
}

TEST(one_thread_posts_to_many_loops_and_outlives_them)
{
	struct feed feed = { 0 };
	pthread_t feeder;
	void *refused;

	OK(pthread_barrier_init(&feed.barrier, NULL, 2));
	for (int i = 0; i < 50; i++) {
		feed.loops[i] = make();
		OK(weft_loop_start(feed.loops[i]));
	}
	feeder = thread(feed_all, &feed);
	(void)pthread_barrier_wait(&feed.barrier);
	for (int i = 0; i < 50; i++)
		stop_and_free(feed.loops[i]);
	(void)pthread_barrier_wait(&feed.barrier);
	OK(pthread_join(feeder, &refused));
	CHECK(refused == NULL);
	for (int i = 0; i < 50; i++)
		CHECK_EQ(feed.ran[i], 100);
	OK(pthread_barrier_destroy(&feed.barrier));
}

/* --- waking ------------------------------------------------------------- */

static void *
wake_sleeper(void *arg)
{
	while (weft_loop_state(arg) != WEFT_SLEEPING)
		sched_yield();
	weft_loop_wake(arg);
	return NULL;
}

TEST(a_wake_ends_the_current_or_else_the_next_wait)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;
	pthread_t waker;

	OK(weft_timer_start(loop, &timer, weft_after(HOUR), 0, note_timer, NULL));
	weft_loop_wake(loop);
	weft_loop_wake(loop);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 1);
	waker = thread(wake_sleeper, loop);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 1);
	OK(pthread_join(waker, NULL));
	CHECK_EQ(weft_timer_stop(&timer), 1);
	OK(weft_loop_free(loop));
}

/* Wait once, until another thread wakes the loop. */
static void
wait_until_woken(weft_loop *loop)
{
	pthread_t waker = thread(wake_sleeper, loop);

	CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 1);
	OK(pthread_join(waker, NULL));
}

static void
check_waits(weft_loop *loop)
{
	uint64_t deadline_ns = weft_after(2 * WEFT_MS);

	CHECK_EQ(weft_loop_run_once(loop, deadline_ns), 1);
	CHECK(weft_now() >= deadline_ns);
}

TEST(a_wake_ends_one_wait_only)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	OK(weft_timer_start(loop, &timer, weft_after(HOUR), 0, note_timer, NULL));
	wait_until_woken(loop);
	check_waits(loop);
	OK(weft_loop_free(loop));
}

TEST(a_wake_after_a_woken_wait_ends_the_next_wait)
{
	weft_loop *loop = make();
	weft_timer timer = WEFT_INIT;

	OK(weft_timer_start(loop, &timer, weft_after(HOUR), 0, note_timer, NULL));
	wait_until_woken(loop);
	weft_loop_wake(loop);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 1);
	check_waits(loop);
	OK(weft_loop_free(loop));
}

/* --- misuse ------------------------------------------------------------- */

TEST(a_post_without_function_or_loop_is_misuse)
{
	weft_loop *loop = make();
	weft_node empty = WEFT_INIT, node = { .fn = note };

	CHECK_MISUSE(weft_loop_post(loop, NULL, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_post_node(loop, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_post_node(loop, &empty), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_post_before_wait(loop, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_post_before_wait(loop, &empty), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_post(NULL, note, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_post_node(NULL, &node), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_post_before_wait(NULL, &node), WEFT_EINVAL);
	OK(weft_loop_start(loop));
	CHECK_MISUSE(weft_loop_post_before_wait(loop, &node), WEFT_EWRONGLOOP);
	stop_and_free(loop);
}
