/* schedule_test.c - callbacks with timer IDs, and microtasks.
 *
 * Races here have a random outcome, but the check does not depend on it: every callback either
 * runs or is cleared, and weft_schedule_clear() reports which.
 */
#include <sched.h>
#include <weft/embed.h>
#include "unit/probe.h"

/* --- running ------------------------------------------------------------ */

struct once {
	uint64_t due_ns;
	int ran;
	bool early;
};

static void
follow(void *arg)
{
	struct once *once = arg;

	once->ran++;
	once->early |= weft_now() < once->due_ns;
}

TEST(a_timeout_runs_once_and_not_early)
{
	weft_loop *loop = make();
	struct once once = { weft_now() + WEFT_MS, 0, false };

	CHECK(weft_schedule_timeout(loop, WEFT_MS, follow, &once) > 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(once.ran, 1);
	CHECK(!once.early);
	OK(weft_loop_free(loop));
}

static void
set_some(void *arg)
{
	int64_t late = 0, soon = 0;
	uint64_t from;

	(void)arg;
	do { /* until less time passes than is between the two deadlines */
		(void)weft_schedule_clear(NULL, late, NULL);
		(void)weft_schedule_clear(NULL, soon, NULL);
		from = weft_now();
		late = weft_schedule_timeout(NULL, 3 * WEFT_MS, note, MARK('c'));
		soon = weft_schedule_timeout(NULL, WEFT_MS, note, MARK('a'));
	} while (weft_now() >= from + WEFT_MS);
	CHECK(weft_schedule_immediate(NULL, note, MARK('1')) > 0);
	CHECK(weft_schedule_immediate(NULL, note, MARK('2')) > 0);
}

TEST(immediates_run_after_the_wait_and_timeouts_in_order_of_their_time)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, set_some, NULL));
	OK(weft_loop_post(loop, note, MARK('p')));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "p12ac");
	OK(weft_loop_free(loop));
}

static void
immediate_again(void *arg)
{
	note(arg);
	(void)weft_schedule_immediate(NULL, immediate_again, arg);
}

TEST(an_immediate_set_by_an_immediate_runs_after_the_next_wait)
{
	weft_loop *loop = make();

	CHECK(weft_schedule_immediate(loop, immediate_again, MARK('i')) > 0);
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_STR(trace, "i");
	OK(weft_loop_post(loop, note, MARK('p')));
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	CHECK_STR(trace, "ipi");
	OK(weft_loop_free(loop));
}

TEST(timer_ids_come_from_one_sequence_and_are_never_reused)
{
	weft_loop *loop = make();
	int64_t first = weft_schedule_timeout(loop, HOUR, note, NULL), id = 0;

	OK(weft_schedule_clear(loop, first, NULL));
	for (int64_t last = first, i = 0; i < 3000; last = id, i++) {
		if (i % 2)
			id = weft_schedule_immediate(loop, note, NULL);
		else
			id = weft_schedule_timeout(loop, HOUR, note, NULL);
		CHECK(id > last);
		OK(weft_schedule_clear(loop, id, NULL));
		if (i % 100 == 0)
			(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	}
	CHECK_EQ(weft_schedule_clear(loop, first, NULL), WEFT_ENOENT);
	OK(weft_loop_free(loop));
}

/* --- clearing ----------------------------------------------------------- */

TEST(a_timer_id_is_cleared_once_and_returns_its_argument)
{
	weft_loop *loop = make();
	int64_t id = weft_schedule_timeout(loop, 0, note, MARK('x'));
	void *out = MARK('?');

	CHECK_EQ(weft_schedule_clear(loop, id + 1, &out), WEFT_ENOENT);
	CHECK_EQ(weft_schedule_clear(loop, 0, &out), WEFT_ENOENT);
	CHECK_EQ(weft_schedule_clear(loop, -id, &out), WEFT_ENOENT);
	CHECK(out == MARK('?'));
	OK(weft_schedule_clear(loop, id, &out));
	CHECK(out == MARK('x'));
	out = MARK('?');
	CHECK_EQ(weft_schedule_clear(loop, id, &out), WEFT_ENOENT);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "");
	id = weft_schedule_timeout(loop, 0, note, MARK('y'));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "y");
	CHECK_EQ(weft_schedule_clear(loop, id, &out), WEFT_ENOENT);
	CHECK(out == MARK('?'));
	id = weft_schedule_timeout(loop, HOUR, note, NULL);
	OK(weft_schedule_clear(loop, id, NULL));
	OK(weft_loop_free(loop)); /* nothing is left to run */
}

static int64_t ids[3];

static void
clear_all(void *arg)
{
	note(arg);
	for (int i = 0; i < 3; i++)
		note(MARK(weft_schedule_clear(NULL, ids[i], NULL) ? '-' : '+'));
}

TEST(a_callback_can_clear_others_that_are_due_but_not_itself)
{
	weft_loop *loop = make();

	for (int i = 0; i < 3; i++)
		ids[i] = weft_schedule_timeout(loop, 0, clear_all, MARK('t'));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "t-++");
	for (int i = 0; i < 3; i++)
		ids[i] = weft_schedule_immediate(loop, clear_all, MARK('i'));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "t-++i-++");
	OK(weft_loop_free(loop));
}

static void
hit(void *arg)
{
	++*(int *)arg;
}

/* Until the loop stops. */
static void
hit_again(void *arg)
{
	hit(arg);
	(void)weft_loop_post(NULL, hit_again, arg);
}

static int64_t
set_soon(weft_loop *loop, uint64_t chance, int *ran)
{
	uint64_t delay = chance / 4 % (20 * WEFT_US);

	return chance % 4 ? weft_schedule_timeout(loop, delay, hit, ran)
	                  : weft_schedule_immediate(loop, hit, ran);
}

/* Spin for a random time of up to `ns`. */
static void
spin(uint64_t *seed, uint64_t ns)
{
	uint64_t until = weft_after(test_random(seed) % ns);

	while (weft_now() < until)
		weft__pause();
}

TEST(exactly_one_of_a_clear_and_a_concurrent_expiry_wins)
{
	enum { BATCH = 8, COUNT = 40000 };
	static int ran[COUNT], cleared[COUNT], turns;
	uint64_t seed = test_seed();
	weft_loop *loop = make_started();
	int64_t set[BATCH];
	void *out = NULL;

	for (int i = 0; i < COUNT; i++) {
		int rc, at = i % BATCH;

		if (i == COUNT / 2) /* from here on the loop never sleeps */
			OK(weft_loop_post(loop, hit_again, &turns));
		for (int j = 0; at == 0 && j < BATCH; j++)
			set[j] = set_soon(loop, test_random(&seed), &ran[i + j]);
		if (at == 0)
			spin(&seed, 40 * WEFT_US);
		rc = weft_schedule_clear(loop, set[at], &out);
		CHECK(set[at] > 0 && (rc == 0 || rc == WEFT_ENOENT));
		CHECK(rc != 0 || out == &ran[i]);
		cleared[i] = rc == 0;
	}
	stop_and_free(loop);
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ(ran[i] + cleared[i], 1);
}

#define SETS 5000

static int64_t many[4 * SETS];
static int many_ran[4 * SETS];
static weft_loop *common;

static void *
set_many(void *arg)
{
	for (intptr_t i = (intptr_t)arg; i < 4 * SETS; i += 4)
		many[i] = set_soon(common, (uint64_t)i / 4, &many_ran[i]);
	return NULL;
}

static void
stop(void *arg)
{
	weft_loop_shutdown(arg);
}

TEST(timer_ids_set_by_many_threads_differ_and_all_run)
{
	static bool used[4 * SETS + 2];
	pthread_t threads[4];

	common = make_started();
	for (int i = 0; i < 4; i++)
		threads[i] = thread(set_many, MARK(i));
	for (int i = 0; i < 4; i++)
		OK(pthread_join(threads[i], NULL));
	/* Due after all of them. */
	CHECK(weft_schedule_timeout(common, WEFT_MS, stop, common) > 0);
	OK(weft_loop_wait_stopped(common, WEFT_NEVER));
	OK(weft_loop_free(common));
	for (int i = 0; i < 4 * SETS; i++) {
		CHECK(many[i] > 0 && many[i] < 4 * SETS + 2);
		CHECK(!used[many[i]]);
		used[many[i]] = true;
		CHECK_EQ(many_ran[i], 1);
	}
}

static void *
clear_many(void *arg)
{
	intptr_t cleared = 0;

	for (int i = 0; i < SETS; i++)
		cleared += weft_schedule_clear(arg, many[i], NULL) == 0;
	return MARK(cleared);
}

TEST(only_one_of_two_threads_clears_a_timer_id)
{
	weft_loop *loop = make_started();
	void *other = NULL, *own;
	pthread_t clearer;

	for (int i = 0; i < SETS; i++)
		many[i] = weft_schedule_timeout(loop, HOUR, note, NULL);
	clearer = thread(clear_many, loop);
	own = clear_many(loop);
	OK(pthread_join(clearer, &other));
	CHECK_EQ((intptr_t)own + (intptr_t)other, SETS);
	stop_and_free(loop);
}

/* --- background --------------------------------------------------------- */

/* The loop sets and clears timer IDs all the time; another thread clears some of them. */
static struct {
	weft__a64 offered; /* a timer ID, or 0 */
	weft__a32 over;
	uint64_t own, other;
} shared;

static void *
clear_offered(void *loop)
{
	while (!weft__load(&shared.over, WEFT__ACQUIRE)) {
		uint64_t id = weft__exchange(&shared.offered, 0, WEFT__ACQUIRE);

		if (!id)
			weft__pause();
		else if (weft_schedule_clear(loop, (int64_t)id, NULL) == 0)
			shared.other++;
	}
	return NULL;
}

#define OFFERS     300
#define EACH_OFFER 400 /* sets between two offers, in which only the loop clears */

static void
set_and_clear(void *loop)
{
	for (int i = 0; i < OFFERS * EACH_OFFER; i++) {
		int64_t id = weft_schedule_timeout(loop, HOUR, note, NULL);
		int rc;

		CHECK(id > 0);
		if (i % EACH_OFFER == 0)
			weft__store(&shared.offered, (uint64_t)id, WEFT__RELEASE);
		rc = weft_schedule_clear(loop, id, NULL);
		CHECK(rc == 0 || rc == WEFT_ENOENT);
		shared.own += rc == 0;
	}
	weft__store(&shared.over, 1, WEFT__RELEASE);
}

TEST(clears_by_another_thread_while_the_loop_sets_ids_are_exact)
{
	weft_loop *loop = make();
	pthread_t other = thread(clear_offered, loop);

	OK(weft_loop_post(loop, set_and_clear, loop));
	OK(weft_loop_run(loop));
	OK(pthread_join(other, NULL));
	CHECK_EQ(shared.own + shared.other, OFFERS * EACH_OFFER);
	OK(weft_loop_free(loop));
}

static void *
release_sleeper(void *arg)
{
	while (weft_loop_state(arg) != WEFT_SLEEPING)
		sched_yield();
	OK(weft_schedule_clear(arg, ids[0], NULL));
	OK(weft_schedule_clear(arg, ids[1], NULL));
	return NULL;
}

TEST(a_run_ends_when_another_thread_clears_what_kept_the_loop_alive)
{
	weft_loop *loop = make();
	pthread_t other;

	ids[0] = weft_schedule_timeout(loop, HOUR, note, NULL);
	ids[1] = weft_schedule_timeout(loop, HOUR, note, NULL);
	other = thread(release_sleeper, loop);
	OK(weft_loop_run(loop));
	OK(pthread_join(other, NULL));
	OK(weft_loop_free(loop));
}

/* --- when the loop stops ------------------------------------------------ */

static void
set_and_stop(void *arg)
{
	int64_t *id = arg;

	*id = weft_schedule_immediate(NULL, note, MARK('i'));
	CHECK(weft_schedule_timeout(NULL, 0, note, MARK('t')) > 0);
	weft_loop_shutdown(weft_loop_current());
	CHECK_EQ(weft_schedule_timeout(NULL, 0, note, NULL), WEFT_ESHUTDOWN);
	CHECK_EQ(weft_schedule_immediate(NULL, note, NULL), WEFT_ESHUTDOWN);
	OK(weft_schedule_microtask(NULL, note, MARK('m')));
}

TEST(all_timer_ids_are_cleared_without_a_callback_when_the_loop_stops)
{
	weft_loop *loop = make();
	int64_t id = 0, other;

	other = weft_schedule_timeout(loop, HOUR, note, MARK('x'));
	OK(weft_loop_post(loop, set_and_stop, &id));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "m");
	CHECK_EQ(weft_schedule_clear(loop, id, NULL), WEFT_ENOENT);
	CHECK_EQ(weft_schedule_clear(loop, other, NULL), WEFT_ENOENT);
	CHECK_EQ(weft_schedule_timeout(loop, 0, note, NULL), WEFT_ESHUTDOWN);
	OK(weft_loop_free(loop));
}

static void *
clear_first(void *arg)
{
	OK(weft_schedule_clear(arg, ids[0], NULL));
	return NULL;
}

static void
clear_elsewhere_and_stop(void *arg)
{
	OK(pthread_join(thread(clear_first, arg), NULL));
	weft_loop_shutdown(arg);
}

TEST(nothing_is_alive_after_a_stop_concurrent_with_a_clear)
{
	weft_loop *loop = make();

	ids[0] = weft_schedule_timeout(loop, HOUR, note, NULL);
	(void)weft_loop_run_once(loop, WEFT_NOWAIT);
	OK(weft_loop_post(loop, clear_elsewhere_and_stop, loop));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NEVER), 0);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	OK(weft_loop_free(loop));
}

/* --- microtasks --------------------------------------------------------- */

static void
queue_both(void *arg)
{
	note(arg);
	OK(weft_schedule_microtask(NULL, note, MARK('m')));
	OK(weft_schedule_tick(NULL, note, MARK('t')));
}

#define KINDS 5

static int64_t
set(weft_loop *loop, int kind, int i)
{
	static weft_node nodes[2];
	void *arg = MARK('1' + i);

	nodes[i] = (weft_node){ .fn = queue_both, .arg = arg };
	/* clang-format off */
	switch (kind) {
	case 0: return weft_loop_post(loop, queue_both, arg);
	case 1: return weft_loop_post_node(loop, &nodes[i]);
	case 2: return weft_loop_post_before_wait(loop, &nodes[i]);
	case 3: return weft_schedule_timeout(loop, 0, queue_both, arg);
	default: return weft_schedule_immediate(loop, queue_both, arg);
	}
	/* clang-format on */
}

TEST(a_checkpoint_begins_each_run_and_follows_every_kind_of_callback)
{
	for (int kind = 0; kind < 2 * KINDS; kind++) {
		weft_loop *loop = make();
		int rc = 1;

		CHECK(set(loop, kind / 2, 0) >= 0 && set(loop, kind / 2, 1) >= 0);
		OK(weft_schedule_microtask(loop, note, MARK('x')));
		OK(weft_schedule_tick(loop, note, MARK('y')));
		while (rc == 1)
			rc = kind % 2 ? weft_loop_run(loop) : weft_loop_run_once(loop, WEFT_NOWAIT);
		OK(rc);
		CHECK_STR(trace, "yx1tm2tm");
		OK(weft_loop_free(loop));
	}
}

static void
queue_each(void *arg)
{
	note(arg);
	if (arg == MARK('a')) {
		OK(weft_schedule_microtask(NULL, queue_each, MARK('d')));
		OK(weft_schedule_microtask(NULL, note, MARK('e')));
		OK(weft_schedule_tick(NULL, queue_each, MARK('b')));
	} else {
		OK(weft_schedule_tick(NULL, note, MARK(arg == MARK('b') ? 'c' : 'f')));
	}
}

TEST(ticks_run_before_microtasks_and_ticks_queued_by_those_after_them)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, queue_each, MARK('a')));
	OK(weft_loop_post(loop, note, MARK('g')));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abcdefg");
	OK(weft_loop_free(loop));
}

static void
queue_next(void *arg)
{
	int *left = arg;

	if (--*left > 0)
		OK((*left % 2 ? weft_schedule_tick : weft_schedule_microtask)(NULL, queue_next,
		                                                              arg));
	else
		note(MARK('.'));
}

TEST(a_checkpoint_runs_until_both_queues_are_empty)
{
	weft_loop *loop = make();
	int left = 10000;

	OK(weft_loop_post(loop, queue_next, &left));
	OK(weft_loop_post(loop, note, MARK('p')));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, ".p");
	OK(weft_loop_free(loop));
}

/* --- microtasks from other threads --------------------------------------- */

static weft_loop *target;

static void
set_word(void *arg)
{
	weft__store((weft__a32 *)arg, 1, WEFT__RELAXED);
}

static void *
queue_here(void *arg)
{
	(void)arg;
	OK(weft_schedule_microtask(target, note, MARK('m')));
	OK(weft_schedule_tick(target, note, MARK('t')));
	OK(weft_schedule_microtask(target, note, MARK('n')));
	OK(weft_schedule_tick(target, note, MARK('u')));
	return NULL;
}

static void
queue_elsewhere(void *arg)
{
	note(arg);
	OK(pthread_join(thread(queue_here, NULL), NULL));
}

TEST(ticks_and_microtasks_of_another_thread_run_at_the_next_checkpoint)
{
	target = make();
	OK(weft_loop_post(target, queue_elsewhere, MARK('a')));
	OK(weft_loop_post(target, note, MARK('b')));
	OK(weft_loop_run(target));
	CHECK_STR(trace, "atumnb");
	OK(weft_loop_free(target));
}

static void
queue_in_a_tick(void *arg)
{
	note(arg);
	OK(weft_schedule_tick(NULL, queue_elsewhere, MARK('x')));
	OK(weft_schedule_microtask(NULL, note, MARK('y')));
}

TEST(what_another_thread_queues_during_a_checkpoint_runs_at_the_next)
{
	target = make();
	OK(weft_loop_post(target, queue_in_a_tick, MARK('a')));
	OK(weft_loop_post(target, note, MARK('b')));
	OK(weft_loop_run(target));
	CHECK_STR(trace, "axybtumn");
	OK(weft_loop_free(target));
}

TEST(what_two_threads_queue_on_an_idle_loop_runs_when_the_loop_runs)
{
	target = make();
	OK(weft_schedule_tick(target, note, MARK('s')));
	OK(pthread_join(thread(queue_here, NULL), NULL));
	CHECK_EQ(weft_loop_free(target), WEFT_EBUSY);
	OK(weft_schedule_tick(target, note, MARK('v')));
	OK(weft_loop_run(target));
	CHECK_STR(trace, "stuvmn");
	OK(weft_loop_free(target));
}

TEST(a_microtask_of_another_thread_wakes_a_loop_that_sleeps)
{
	weft_loop *loop = make_started();
	static weft__a32 ran;

	for (int i = 0; i < 100; i++) {
		weft__store(&ran, 0, WEFT__RELAXED);
		watch_for(loop, WEFT_SLEEPING);
		OK((i % 2 ? weft_schedule_tick : weft_schedule_microtask)(loop, set_word, &ran));
		while (!weft__load(&ran, WEFT__RELAXED))
			sched_yield();
	}
	stop_and_free(loop);
}

/* Each thread queues numbers, and the loop checks their order, for each kind. */
enum { SENDERS = 3, EACH = 10000 }; /* no checkpoint has so many that it is reported */

static struct sender {
	weft_loop *loop;
	int queued[2]; /* by the thread: microtasks, ticks */
	int next[2];   /* that the loop expects */
} senders[SENDERS];

static void
check_order(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg, kind = number % 2;
	struct sender *sender = &senders[number / 2 % SENDERS];

	CHECK_EQ(sender->next[kind], number / 2 / SENDERS);
	sender->next[kind]++;
}

static void *
queue_numbers(void *arg)
{
	struct sender *sender = arg;

	for (int i = 0; i < 2 * EACH; i++) {
		int kind = i / 3 % 2, rc;
		int number = (sender->queued[kind] * SENDERS + (int)(sender - senders)) * 2 + kind;

		rc = (kind ? weft_schedule_tick
		           : weft_schedule_microtask)(sender->loop, check_order, MARK(number));
		if (rc == WEFT_ESHUTDOWN)
			break;
		OK(rc);
		sender->queued[kind]++;
	}
	return NULL;
}

static void
run_senders(weft_loop *loop, pthread_t threads[SENDERS])
{
	for (int i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){ .loop = loop };
		threads[i] = thread(queue_numbers, &senders[i]);
	}
}

static void
check_senders(pthread_t threads[SENDERS])
{
	for (int i = 0; i < SENDERS; i++)
		OK(pthread_join(threads[i], NULL));
}

static void
check_all_ran(void)
{
	for (int i = 0; i < SENDERS; i++)
		for (int kind = 0; kind < 2; kind++)
			CHECK_EQ(senders[i].next[kind], senders[i].queued[kind]);
}

TEST(ticks_and_microtasks_of_each_thread_run_in_its_order)
{
	weft_loop *loop = make_started();
	pthread_t threads[SENDERS];

	run_senders(loop, threads);
	check_senders(threads);
	stop_and_free(loop);
	check_all_ran();
	CHECK_EQ(senders[0].queued[0] + senders[0].queued[1], 2 * EACH);
}

TEST(a_loop_that_stops_runs_every_microtask_that_it_accepted_and_refuses_the_rest)
{
	for (int round = 0; round < 50; round++) {
		weft_loop *loop = make_started();
		pthread_t threads[SENDERS];

		run_senders(loop, threads);
		for (int i = 0; i < round; i++)
			sched_yield();
		weft_loop_shutdown(loop);
		OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
		CHECK_EQ(weft_schedule_tick(loop, note, NULL), WEFT_ESHUTDOWN);
		CHECK_STR(weft_detail(),
		          "weft_schedule_tick: the loop is stopping, or has stopped");
		CHECK_EQ(weft_schedule_microtask(loop, note, NULL), WEFT_ESHUTDOWN);
		CHECK_STR(weft_detail(),
		          "weft_schedule_microtask: the loop is stopping, or has stopped");
		check_senders(threads);
		OK(weft_loop_free(loop));
		check_all_ran();
	}
}

TEST(an_idle_loop_that_is_shut_down_runs_the_microtasks_it_has_at_its_end)
{
	target = make();
	OK(pthread_join(thread(queue_here, NULL), NULL));
	weft_loop_shutdown(target);
	CHECK_EQ(weft_schedule_tick(target, note, NULL), WEFT_ESHUTDOWN);
	CHECK_EQ(weft_loop_state(target), WEFT_STOPPING);
	OK(weft_loop_run(target));
	CHECK_STR(trace, "tumn");
	OK(weft_loop_free(target));
}

/* --- misuse ------------------------------------------------------------- */

static void
misuse(weft_loop *loop, weft_fn fn)
{
	CHECK_MISUSE(weft_schedule_timeout(loop, 1, fn, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_schedule_immediate(loop, fn, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_schedule_microtask(loop, fn, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_schedule_tick(loop, fn, NULL), WEFT_EINVAL);
}

TEST(a_timer_id_or_microtask_without_function_or_loop_is_misuse)
{
	weft_loop *loop = make();

	misuse(loop, NULL);
	misuse(NULL, note);
	CHECK_MISUSE(weft_schedule_clear(NULL, 1, NULL), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}
