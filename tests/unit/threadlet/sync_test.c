/* sync_test.c - mutexes, conditions, semaphores, groups, events. */
#include <weft/metrics.h>
#include "unit/threadlet/sched.h"

/* --- mutex -------------------------------------------------------------- */

struct shop {
	weft_mutex mutex;
	weft_cond cond;
	weft_group group;
	int inside, count;
};

static int
work_alone(void *arg)
{
	struct shop *shop = arg;

	for (int i = 0; i < 100; i++) {
		OK(weft_mutex_lock(&shop->mutex, WEFT_NEVER));
		CHECK_EQ(shop->inside++, 0);
		OK(weft_yield());
		CHECK_EQ(--shop->inside, 0);
		shop->count++;
		OK(weft_mutex_unlock(&shop->mutex));
	}
	return 0;
}

TEST(mutex_admits_one_threadlet_at_a_time)
{
	struct shop local = WEFT_INIT, shared = { .mutex = WEFT_SHARED_INIT };
	weft_loop *loop = make();

	for (int i = 0; i < 5; i++) {
		go_on(loop, work_alone, &local);
		go_on(loop, work_alone, &shared);
	}
	OK(weft_loop_run(loop));
	CHECK_EQ(local.count, 500);
	CHECK_EQ(shared.count, 500);
	OK(weft_loop_free(loop));
}

static int
hold_and_note(void *arg)
{
	struct shop *shop = arg;

	OK(weft_mutex_lock(&shop->mutex, WEFT_NEVER));
	note(MARK('a' + shop->count++));
	OK(weft_yield());
	OK(weft_mutex_unlock(&shop->mutex));
	return 0;
}

static int
misuse_mutex(void *arg)
{
	struct shop *shop = arg;

	CHECK_MISUSE(weft_mutex_unlock(&shop->mutex), WEFT_EPERM);
	OK(weft_mutex_lock(&shop->mutex, WEFT_NEVER));
	CHECK_MISUSE(weft_mutex_lock(&shop->mutex, WEFT_NEVER), WEFT_EDEADLK);
	CHECK(weft_go(hold_and_note, shop) > 0);
	OK(weft_yield());
	OK(weft_mutex_unlock(&shop->mutex)); /* passed to the waiter */
	CHECK_MISUSE(weft_mutex_unlock(&shop->mutex), WEFT_EPERM);
	CHECK_EQ(weft_mutex_lock(&shop->mutex, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_mutex_lock(&shop->mutex, weft_after(HOUR)), 0);
	OK(weft_mutex_unlock(&shop->mutex));
	return 0;
}

TEST(mutex_checks_its_owner_and_is_passed_to_the_longest_waiter)
{
	struct shop shop = WEFT_INIT;

	run_threadlet(misuse_mutex, &shop);
}

static int
wait_for_lock(void *arg)
{
	struct shop *shop = arg;

	CHECK_EQ(weft_mutex_lock(&shop->mutex, WEFT_NEVER), WEFT_ECANCELED);
	note(MARK('x'));
	return 0;
}

static int
cancel_waiter(void *arg)
{
	struct shop *shop = arg;
	weft_threadlet first, second;
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	OK(weft_mutex_lock(&shop->mutex, WEFT_NEVER));
	first = weft_scope_go(&scope, wait_for_lock, shop);
	second = weft_scope_go(&scope, hold_and_note, shop);
	OK(weft_yield());
	OK(weft_cancel(first));
	OK(weft_mutex_unlock(&shop->mutex)); /* not to the canceled one */
	OK(weft_join(second, NULL, WEFT_NEVER));
	OK(weft_scope_close(&scope));
	OK(weft_mutex_lock(&shop->mutex, WEFT_NOWAIT));
	OK(weft_mutex_unlock(&shop->mutex));
	return 0;
}

TEST(lock_is_not_lost_to_a_canceled_waiter)
{
	struct shop shop = WEFT_INIT;

	run_threadlet(cancel_waiter, &shop);
	CHECK_STR(trace, "xa");
}

/* --- between threads ---------------------------------------------------- */

enum { ROUNDS = TEST_TSAN ? 2000 : 20000 };

static int
count_shared(void *arg)
{
	struct shop *shop = arg;

	for (int i = 0; i < ROUNDS; i++) {
		OK(weft_mutex_lock(&shop->mutex, WEFT_NEVER));
		shop->count++;
		OK(weft_mutex_unlock(&shop->mutex));
		if (i % 16 == 0 && weft_self())
			OK(weft_yield());
	}
	OK(weft_group_done(&shop->group));
	return 0;
}

static void *
count_in_thread(void *arg)
{
	(void)count_shared(arg);
	return NULL;
}

TEST(shared_mutex_excludes_loops_and_threads)
{
	struct shop shop = { .mutex = WEFT_SHARED_INIT, .group = WEFT_SHARED_INIT };
	weft_loop *other = make_started(), *here = weft_loop_new(NULL);
	pthread_t plain;

	OK(weft_group_add(&shop.group, 5));
	plain = thread(count_in_thread, &shop);
	for (int i = 0; i < 2; i++) {
		go_on(other, count_shared, &shop);
		go_on(here, count_shared, &shop);
	}
	OK(weft_loop_run(here));
	OK(pthread_join(plain, NULL));
	OK(weft_group_wait(&shop.group, WEFT_NEVER));
	stop_and_free(other);
	OK(weft_loop_free(here));
	CHECK_EQ(shop.count, 5 * ROUNDS);
}

/* --- condition ---------------------------------------------------------- */

static int
consume(void *arg)
{
	struct shop *shop = arg;

	OK(weft_mutex_lock(&shop->mutex, WEFT_NEVER));
	while (shop->count == 0)
		OK(weft_cond_wait(&shop->cond, &shop->mutex, WEFT_NEVER));
	shop->count--;
	OK(weft_mutex_unlock(&shop->mutex));
	note(MARK('c'));
	return 0;
}

static int
produce(void *arg)
{
	struct shop *shop = arg;

	OK(weft_yield());
	CHECK_EQ(weft_cond_wait(&shop->cond, &shop->mutex, WEFT_NEVER), WEFT_EPERM);
	OK(weft_mutex_lock(&shop->mutex, WEFT_NEVER));
	CHECK_EQ(weft_cond_wait(&shop->cond, &shop->mutex, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	shop->count = 3;
	CHECK_EQ(weft_cond_wake(&shop->cond), 1);
	CHECK_EQ(weft_cond_wake_all(&shop->cond), 2);
	CHECK_EQ(weft_cond_wake(&shop->cond), 0);
	note(MARK('p'));
	OK(weft_mutex_unlock(&shop->mutex));
	CHECK_EQ(weft_mutex_lock(&shop->mutex, weft_after(HOUR)), 0);
	CHECK_EQ(weft_cond_wait(&shop->cond, &shop->mutex, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(weft_mutex_unlock(&shop->mutex)); /* the mutex is held on return */
	return 0;
}

TEST(condition_wakes_one_or_all_with_the_lock_held)
{
	struct shop local = WEFT_INIT;
	struct shop shared = { .mutex = WEFT_SHARED_INIT, .cond = WEFT_SHARED_INIT };

	for (int i = 0; i < (test_misuse_aborts ? 0 : 2); i++) {
		struct shop *shop = i ? &shared : &local;
		weft_loop *loop = make();

		for (int k = 0; k < 3; k++)
			go_on(loop, consume, shop);
		go_on(loop, produce, shop);
		OK(weft_loop_run(loop));
		CHECK_STR(trace, "pccc");
		OK(weft_loop_free(loop));
	}
}

/* --- semaphore, group --------------------------------------------------- */

struct counters {
	weft_sem sem;
	weft_group group;
	weft_event event;
	int inside, most, runs, rc;
};

static int
be_one_of_two(void *arg)
{
	struct counters *c = arg;

	OK(weft_sem_acquire(&c->sem, WEFT_NEVER));
	c->inside++;
	c->most = c->inside > c->most ? c->inside : c->most;
	OK(weft_yield());
	c->inside--;
	OK(weft_sem_release(&c->sem, 1));
	OK(weft_group_done(&c->group));
	return 0;
}

static int
count_units(void *arg)
{
	struct counters *c = arg;

	CHECK_EQ(weft_sem_acquire(&c->sem, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_sem_acquire(&c->sem, weft_after(1)), WEFT_ETIMEDOUT);
	OK(weft_sem_release(&c->sem, 2));
	CHECK_MISUSE(weft_sem_release(&c->sem, UINT32_MAX), WEFT_EINVAL);
	OK(weft_group_wait(&c->group, WEFT_NOWAIT));
	CHECK_MISUSE(weft_group_done(&c->group), WEFT_EINVAL);
	OK(weft_group_add(&c->group, 10));
	CHECK_MISUSE(weft_group_add(&c->group, UINT32_MAX), WEFT_EINVAL);
	CHECK_EQ(weft_group_wait(&c->group, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	for (int i = 0; i < 10; i++)
		CHECK(weft_go(be_one_of_two, c) > 0);
	OK(weft_group_wait(&c->group, WEFT_NEVER));
	CHECK_EQ(c->most, 2);
	return 0;
}

TEST(semaphore_counts_units_and_group_counts_work)
{
	struct counters local = WEFT_INIT;
	struct counters shared = { .sem = WEFT_SHARED_INIT, .group = WEFT_SHARED_INIT };

	run_threadlet(count_units, &local);
	run_threadlet(count_units, &shared);
}

/* Two loops wake each other alternately, each time so soon that neither threadlet needs to
 * suspend. */
struct rally {
	weft_sem ball[2];
	weft__a32 done;
};

struct player {
	struct rally *rally;
	int side;
	uint64_t rounds;
};

static int
play(void *arg)
{
	struct player *player = arg;
	struct rally *rally = player->rally;
	bool done = false;

	while (!done) { /* the player that gets the ball later sees it, too */
		OK(weft_sem_acquire(&rally->ball[player->side], WEFT_NEVER));
		done = weft__load(&rally->done, WEFT__RELAXED);
		OK(weft_sem_release(&rally->ball[!player->side], 1));
		player->rounds++;
	}
	return 0;
}

static int
rest_some_times(void *arg)
{
	struct rally *rally = arg;

	for (int i = 0; i < 10; i++)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	weft__store(&rally->done, 1, WEFT__RELAXED);
	return 0;
}

TEST(loop_whose_threadlet_is_woken_at_once_each_time_still_iterates)
{
	struct rally rally = { .ball = { WEFT_SHARED_INIT, WEFT_SHARED_INIT } };
	struct player players[] = { { &rally, 0, 0 }, { &rally, 1, 0 } };
	struct weft_loop_stats stats;
	weft_loop *other = make_started(), *here = weft_loop_new(NULL);

	OK(weft_sem_release(&rally.ball[0], 1));
	go_on(other, play, &players[0]);
	go_on(here, play, &players[1]);
	go_on(here, rest_some_times, &rally);
	OK(weft_loop_run(here));
	stop_and_free(other);
	/* One loop iteration has at most 64 threadlet switches.  A few rounds may need none. */
	OK(weft_loop_stats(here, &stats));
	CHECK(stats.turns >= players[1].rounds / 512);
	OK(weft_loop_free(here));
}

/* --- event -------------------------------------------------------------- */

static int
wait_for_event(void *arg)
{
	struct counters *c = arg;

	OK(weft_event_wait(&c->event, WEFT_NEVER));
	note(MARK('e'));
	return 0;
}

static int
set_it(void *arg)
{
	struct counters *c = arg;

	OK(weft_yield());
	CHECK_EQ(weft_event_wait(&c->event, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	OK(weft_event_set(&c->event));
	OK(weft_event_wait(&c->event, WEFT_NEVER));
	OK(weft_event_reset(&c->event));
	CHECK_EQ(weft_event_wait(&c->event, weft_after(1)), WEFT_ETIMEDOUT);
	return 0;
}

TEST(event_releases_all_waiters_until_it_is_reset)
{
	struct counters c = WEFT_INIT;
	weft_loop *loop = make();

	go_on(loop, wait_for_event, &c);
	go_on(loop, wait_for_event, &c);
	go_on(loop, set_it, &c);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ee");
	OK(weft_loop_free(loop));
}

/* The waiter frees the event as soon as its wait returns. */
static void *
wait_and_free(void *arg)
{
	weft_event *event = arg;

	OK(weft_event_wait(event, WEFT_NEVER));
	free(event);
	return NULL;
}

TEST(waiter_may_free_the_event_at_once)
{
	for (int i = 0; i < 200; i++) {
		weft_event *event = calloc(1, sizeof(*event));
		pthread_t t;

		event->flags = WEFT_SHARED;
		t = thread(wait_and_free, event);
		OK(weft_event_set(event));
		OK(pthread_join(t, NULL));
	}
}

static int
lock_foreign(void *arg)
{
	CHECK_MISUSE(weft_mutex_lock(arg, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	return 0;
}

static int
lock_own(void *arg)
{
	OK(weft_mutex_lock(arg, WEFT_NOWAIT));
	OK(weft_mutex_unlock(arg));
	return 0;
}

TEST(local_mutex_belongs_to_the_first_loop_that_uses_it)
{
	weft_mutex mutex = WEFT_INIT;

	CHECK_MISUSE(weft_mutex_lock(&mutex, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	run_threadlet(lock_own, &mutex);
	run_threadlet(lock_foreign, &mutex);
}
