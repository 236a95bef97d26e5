/* stop_wait_test.c - threads and threadlets that wait until another loop has stopped. */
#include <sched.h>
#include <signal.h>
#include "loop/core/loop.h"
#include "unit/threadlet/sched.h"

enum { WAITERS = 8, ROUNDS = TEST_TSAN ? 100 : 1000 };

struct wait {
	weft_loop *other;
	uint64_t deadline_ns; /* 0: never */
	int rc;               /* result of the wait */
	int turns;            /* yields of another threadlet meanwhile */
	weft_threadlet id;
};

static int
wait_for_other(void *arg)
{
	struct wait *w = arg;

	w->rc = WEFT_EAGAIN;
	w->rc = weft_loop_wait_stopped(w->other, w->deadline_ns ? w->deadline_ns : WEFT_NEVER);
	return 0;
}

static int
stop_other(void *arg)
{
	struct wait *w = arg;

	for (; w->turns < 10; w->turns++)
		OK(weft_yield());
	CHECK_EQ(w->rc, WEFT_EAGAIN); /* it waits while this threadlet runs */
	weft_loop_shutdown(w->other);
	return 0;
}

TEST(threadlet_that_waits_for_another_loop_lets_others_run)
{
	struct wait w = { .other = make_started() };
	weft_loop *loop = make();

	(void)go_on(loop, wait_for_other, &w);
	(void)go_on(loop, stop_other, &w);
	OK(weft_loop_run(loop));
	CHECK_EQ(w.rc, 0);
	CHECK_EQ(w.turns, 10);
	CHECK_EQ(weft_loop_state(w.other), WEFT_STOPPED);
	OK(weft_loop_free(w.other));
	OK(weft_loop_free(loop));
}

/* The stop, the end of the loop and its notification all happen on one thread. */
TEST(threadlet_can_wait_for_a_loop_that_no_thread_runs)
{
	struct wait w = { .other = weft_loop_new(NULL) };
	weft_loop *loop = make();

	(void)go_on(loop, wait_for_other, &w);
	(void)go_on(loop, stop_other, &w);
	OK(weft_loop_run(loop));
	CHECK_EQ(w.rc, 0);
	OK(weft_loop_free(w.other));
	OK(weft_loop_free(loop));
}

static int
wait_for_own(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_loop_wait_stopped(NULL, WEFT_NEVER), WEFT_EDEADLK);
	CHECK_EQ(weft_loop_wait_stopped(weft_loop_current(), WEFT_NOWAIT), WEFT_EDEADLK);
	return 0;
}

TEST(threadlet_cannot_wait_for_its_own_loop)
{
	run_threadlet(wait_for_own, NULL);
}

static int
give_up(void *arg)
{
	struct wait *w = arg;

	CHECK_EQ(weft_loop_wait_stopped(w->other, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	w->deadline_ns = weft_after(WEFT_MS);
	OK(wait_for_other(w));
	CHECK_EQ(w->rc, WEFT_ETIMEDOUT);
	CHECK(weft_now() >= w->deadline_ns);
	OK(weft_interrupt(weft_self()));
	OK(wait_for_other(w));
	CHECK_EQ(w->rc, WEFT_EINTR);
	OK(weft_cancel(weft_self()));
	OK(wait_for_other(w));
	CHECK_EQ(w->rc, WEFT_ECANCELED);
	return 0;
}

TEST(wait_for_a_loop_ends_on_deadline_interrupt_and_cancel)
{
	struct wait w = { .other = make_started() };

	run_threadlet(give_up, &w);
	stop_and_free(w.other); /* no waiter is left behind there */
}

static int
cancel_waiter(void *arg)
{
	struct wait *w = arg;

	OK(weft_yield());
	CHECK_EQ(w->rc, WEFT_EAGAIN);
	CHECK_EQ(weft_loop_free(w->other), WEFT_EBUSY);
	OK(weft_cancel(w->id));
	return 0;
}

TEST(loop_that_a_threadlet_waits_for_cannot_be_freed)
{
	struct wait w = { .other = weft_loop_new(NULL) };
	weft_loop *loop = make();

	w.id = go_on(loop, wait_for_other, &w);
	(void)go_on(loop, cancel_waiter, &w);
	OK(weft_loop_run(loop));
	CHECK_EQ(w.rc, WEFT_ECANCELED);
	OK(weft_loop_free(w.other));
	OK(weft_loop_free(loop));
}

static void *
wait_a_moment(void *loop)
{
	CHECK_EQ(weft_loop_wait_stopped(loop, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_STR(weft_detail(), "weft_loop_wait_stopped: timed out");
	return NULL;
}

TEST(wait_of_a_thread_ends_at_its_deadline)
{
	weft_loop *other = make_started();

	OK(pthread_join(thread(wait_a_moment, other), NULL));
	stop_and_free(other); /* no waiter is left behind there */
}

static void *
wait_until_stopped(void *loop)
{
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	return NULL;
}

/* No thread runs the loop, and a plain thread waits until the loop is stopped. */
TEST(loop_that_a_thread_waits_for_cannot_be_freed)
{
	weft_loop *loop = weft_loop_new(NULL);
	pthread_t other = thread(wait_until_stopped, loop);

	while (weft__load(&loop->refs, WEFT__ACQUIRE) == 0)
		sched_yield();
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	weft_loop_shutdown(loop);
	OK(pthread_join(other, NULL));
	OK(weft_loop_free(loop));
}

/* The first waiter that returns may free the loop, even if other waits have not returned yet. */
TEST(loop_can_be_freed_by_the_first_of_its_waiters)
{
	for (int round = 0; round < ROUNDS; round++) {
		weft_loop *loop = make_started();
		pthread_t others[2];

		for (int i = 0; i < 2; i++)
			others[i] = thread(wait_until_stopped, loop);
		while (weft__load(&loop->refs, WEFT__ACQUIRE) < 2)
			sched_yield();
		weft_loop_shutdown(loop);
		OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
		OK(weft_loop_free(loop));
		for (int i = 0; i < 2; i++)
			OK(pthread_join(others[i], NULL));
	}
}

/* --- many --------------------------------------------------------------- */

static weft__a32 returned;

/* A waiter is canceled if its own loop stops too soon. */
static int
wait_and_count(void *arg)
{
	struct wait *w = arg;
	int rc = weft_loop_wait_stopped(w->other,
	                                w->turns % 3 ? WEFT_NEVER : weft_after(10 * WEFT_US));

	CHECK(rc == 0 || rc == WEFT_ETIMEDOUT || rc == WEFT_ECANCELED);
	(void)weft__add(&returned, 1, WEFT__RELAXED);
	return 0;
}

/* Threadlets on two loops wait for a third loop, which a post on one of the two stops.  Some
 * waits time out, and a plain thread waits, too.  No waiter touches the loop after it was
 * freed. */
TEST(all_threadlets_that_wait_for_a_loop_are_woken_once)
{
	weft__store(&returned, 0, WEFT__RELAXED);
	for (int round = 1; round <= ROUNDS; round++) {
		struct wait waits[WAITERS];
		weft_loop *other = make_started(), *home = make();
		weft_loop *there = make_started();
		pthread_t plain = thread(wait_until_stopped, other);

		for (int i = 0; i < WAITERS; i++) {
			waits[i] = (struct wait){ .other = other, .turns = i };
			(void)go_on(i % 2 ? home : there, wait_and_count, &waits[i]);
		}
		OK(weft_loop_post(home, (weft_fn)(void (*)(void))weft_loop_shutdown, other));
		OK(weft_loop_run(home));
		weft_loop_shutdown(there);
		OK(weft_loop_wait_stopped(there, WEFT_NEVER));
		OK(pthread_join(plain, NULL));
		CHECK_EQ(weft__load(&returned, WEFT__RELAXED), round * WAITERS);
		OK(weft_loop_free(other));
		OK(weft_loop_free(there));
		OK(weft_loop_free(home));
	}
}

static int
wait_and_free(void *arg)
{
	struct wait *w = arg;

	OK(wait_for_other(w));
	OK(weft_loop_free(w->other));
	return 0;
}

TEST(threadlet_that_has_waited_for_a_loop_may_free_it)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct wait w = { .other = make_started() };
		weft_loop *loop = make();

		(void)go_on(loop, wait_and_free, &w);
		if (round % 2)
			weft_loop_shutdown(w.other);
		else
			(void)go_on(loop, stop_other, &w);
		OK(weft_loop_run(loop));
		CHECK_EQ(w.rc, 0);
		OK(weft_loop_free(loop));
	}
}

static int
end_runtime(void *arg)
{
	weft_runtime *runtime = arg;

	OK(weft_runtime_start(runtime));
	weft_runtime_shutdown(runtime);
	OK(weft_runtime_wait_stopped(runtime, weft_after(HOUR)));
	OK(weft_runtime_free(runtime));
	return 0;
}

TEST(threadlet_can_wait_for_another_runtime)
{
	weft_runtime_opts opts = { .loops = 3, .dump_signal = SIGUSR1 };
	weft_runtime *runtime = weft_runtime_new(&opts);

	CHECK(runtime != NULL);
	run_threadlet(end_runtime, runtime);
}
