/* threadlet_request_test.c - cancel and interrupt requests from other threads: threadlet IDs that
 * outlive their threadlets, and requests that follow a handle to another loop. */
#include <sched.h>
#include <semaphore.h>
#include "unit/threadlet/sched.h"

enum { INDEX = (1 << 24) - 1 }; /* mask of the handle's index in a threadlet ID */

static weft_loop *far;
static weft_threadlet first, second;
static weft__a32 result; /* of the second threadlet */
static sem_t a, b, c;

static void
begin(void)
{
	OK(sem_init(&a, 0, 0));
	OK(sem_init(&b, 0, 0));
	OK(sem_init(&c, 0, 0));
	weft__store(&result, 1, WEFT__RELAXED);
}

static void
finish(void)
{
	OK(sem_destroy(&a));
	OK(sem_destroy(&b));
	OK(sem_destroy(&c));
}

static int
end_at_once(void *arg)
{
	return (int)(intptr_t)arg;
}

static weft_threadlet
go_far(weft_scope *scope, weft_threadlet_fn fn)
{
	weft_go_opts opts = { .loop = far, .scope = scope };
	weft_threadlet id = weft_go_with(&opts, fn, NULL);

	CHECK(id > 0);
	return id;
}

/* --- IDs of ended threadlets ---------------------------------------------- */

static int
ask_whom_no_loop_has(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	first = go_far(&scope, end_at_once);
	OK(weft_join(first, NULL, WEFT_NEVER));
	weft_loop_shutdown(far);
	while (weft_loop_state(far) != WEFT_STOPPED)
		(void)sched_yield();
	OK(weft_loop_free(far));
	CHECK_EQ(weft_cancel(first), WEFT_ESRCH);
	CHECK_EQ(weft_interrupt(first), WEFT_ESRCH);
	OK(weft_join(first, NULL, WEFT_NOWAIT));
	weft_scope_cancel(&scope);
	OK(weft_scope_close(&scope));
	CHECK_EQ(weft_cancel(first), WEFT_ESRCH);
	return 0;
}

TEST(request_for_an_ended_child_is_safe_after_its_loop_was_freed)
{
	far = make_started();
	run_threadlet(ask_whom_no_loop_has, NULL);
}

/* Joins a child, and keeps its ID valid until the semaphore is posted. */
static int
keep_number(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER));
	first = go_far(&scope, end_at_once);
	OK(sem_post(&a));
	OK(weft_join(first, NULL, WEFT_NEVER));
	OK(sem_post(&b));
	OK(sem_wait(&c));
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(request_for_an_ended_child_of_an_idle_loop_does_not_block_its_stop)
{
	weft_loop *near = make();

	begin();
	far = weft_loop_new(NULL);
	go_on(near, keep_number, NULL);
	OK(weft_loop_start(near));
	OK(sem_wait(&a));
	OK(weft_loop_run(far));
	OK(sem_wait(&b));
	OK(weft_cancel(first)); /* its scope still has its handle */
	OK(weft_interrupt(first));
	weft_loop_shutdown(far);
	CHECK_EQ(weft_loop_state(far), WEFT_STOPPED);
	OK(weft_loop_free(far));
	OK(weft_cancel(first));
	OK(sem_post(&c));
	stop_and_free(near);
	CHECK_EQ(weft_cancel(first), WEFT_ESRCH);
	finish();
}

/* --- reused handles ------------------------------------------------------- */

static int
sleep_long(void *arg)
{
	int rc;

	(void)arg;
	OK(sem_post(&b));
	rc = weft_sleep_until(weft_after(HOUR));
	weft__store(&result, (uint32_t)rc, WEFT__RELEASE);
	return 0;
}

static int
reuse_number(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER));
	first = go_far(&scope, end_at_once);
	OK(weft_join(first, NULL, WEFT_NEVER));
	OK(sem_post(&b));
	OK(sem_wait(&c));
	OK(weft_scope_close(&scope));
	second = weft_go(sleep_long, NULL);
	CHECK_EQ(second & INDEX, first & INDEX);
	return 0;
}

static void
see_that_second_was_told(int why)
{
	while (weft__load(&result, WEFT__ACQUIRE) == 1)
		(void)sched_yield();
	CHECK_EQ((int)weft__load(&result, WEFT__RELAXED), why);
}

static void
ask_first_then_second(int (*ask)(weft_threadlet), int why)
{
	weft_loop *near = make();

	begin();
	far = make_started();
	go_on(near, reuse_number, NULL);
	OK(weft_loop_start(near));
	OK(sem_wait(&b));
	weft_loop_shutdown(far);
	OK(weft_loop_wait_stopped(far, WEFT_NEVER));
	OK(weft_cancel(first));
	OK(weft_loop_free(far));
	OK(sem_post(&c));
	OK(sem_wait(&b));
	CHECK_EQ(weft__load(&result, WEFT__ACQUIRE), 1);
	CHECK_EQ(weft_cancel(first), WEFT_ESRCH);
	OK(ask(second));
	see_that_second_was_told(why);
	stop_and_free(near);
	finish();
}

TEST(request_for_an_ended_threadlet_does_not_reach_the_next_with_its_handle)
{
	ask_first_then_second(weft_cancel, WEFT_ECANCELED);
	ask_first_then_second(weft_interrupt, WEFT_EINTR);
}

/* The far loop has not processed a request for the first threadlet when the handle is reused. */
static int
end_when_asked(void *arg)
{
	(void)arg;
	OK(sem_post(&a));
	OK(sem_wait(&c));
	return 0;
}

static int
block_loop(void *arg)
{
	(void)arg;
	OK(sem_wait(&a));
	return 0;
}

static int
reuse_while_far_is_blocked(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER));
	first = go_far(&scope, end_when_asked);
	(void)go_far(NULL, block_loop);
	OK(sem_post(&b));
	OK(weft_join(first, NULL, WEFT_NEVER));
	OK(weft_scope_close(&scope));
	second = weft_go(sleep_long, NULL);
	CHECK_EQ(second & INDEX, first & INDEX);
	return 0;
}

static void
ask_while_far_is_blocked(bool free_far)
{
	weft_loop *near = make();

	begin();
	far = weft_loop_new(NULL);
	go_on(near, reuse_while_far_is_blocked, NULL);
	OK(weft_loop_start(near));
	OK(sem_wait(&b));
	OK(weft_loop_start(far));
	OK(sem_wait(&a)); /* the first threadlet runs; it gets the request, and ends */
	OK(weft_cancel(first));
	OK(sem_post(&c));
	OK(sem_wait(&b)); /* the second threadlet sleeps */
	OK(weft_cancel(second));
	if (free_far)
		weft_loop_shutdown(far);
	OK(sem_post(&a));
	see_that_second_was_told(WEFT_ECANCELED);
	stop_and_free(far);
	stop_and_free(near);
	finish();
}

TEST(request_follows_a_handle_that_has_moved_to_another_loop)
{
	ask_while_far_is_blocked(false);
	ask_while_far_is_blocked(true);
}

/* --- storms ----------------------------------------------------------------- */

enum { KIDS = 16, ROUNDS = TEST_TSAN ? 100 : 400 };
static weft_loop *loops[2];
static weft__a64 kids[KIDS];
static weft__a32 owners;

static int
live_a_little(void *arg)
{
	int turns_left = (int)(intptr_t)arg, rc = 0;

	while (turns_left-- > 0 && rc == 0)
		rc = turns_left % 2 ? weft_yield() : weft_sleep_until(weft_after(20 * WEFT_US));
	return rc;
}

static void
run_round(uint64_t *seed)
{
	weft_scope scope;
	weft_threadlet id = 0;
	uint64_t drawn = test_random(seed);

	OK(weft_scope_open(&scope, drawn % 2 ? WEFT_FAIL_FAST : 0,
	                   drawn % 3 ? weft_after(drawn % 200 * WEFT_US) : WEFT_NEVER));
	for (int k = 0; k < 4; k++) {
		weft_go_opts opts = { .scope = &scope };

		drawn = test_random(seed);
		opts.loop = loops[drawn % 2];
		id = weft_go_with(&opts, live_a_little, MARK(drawn / 2 % 7));
		if (id > 0)
			weft__store(&kids[drawn / 16 % KIDS], (uint64_t)id, WEFT__RELAXED);
	}
	if (drawn / 1024 % 3 == 0 && id > 0)
		(void)weft_join(id, NULL, weft_after(100 * WEFT_US));
	if (drawn / 4096 % 5 == 0)
		weft_scope_cancel(&scope);
	(void)weft_scope_close(&scope);
}

static int
own_many(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++)
		run_round(&seed);
	(void)weft__add(&owners, (uint32_t)-1, WEFT__RELEASE);
	return 0;
}

static void *
ask_at_random(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg;

	while (weft__load(&owners, WEFT__ACQUIRE) > 0) {
		uint64_t drawn = test_random(&seed);
		weft_threadlet id = (int64_t)weft__load(&kids[drawn / 2 % KIDS], WEFT__RELAXED);

		if (id)
			(void)(drawn % 2 ? weft_cancel(id) : weft_interrupt(id));
		(void)sched_yield();
	}
	return NULL;
}

TEST(storm_of_requests_across_loops_ends)
{
	uint64_t seed = test_seed();
	pthread_t asking;

	memset(kids, 0, sizeof(kids));
	weft__store(&owners, 6, WEFT__RELAXED);
	loops[0] = make_started();
	loops[1] = make_started();
	for (int i = 0; i < 6; i++)
		go_on(loops[i % 2], own_many, MARK((intptr_t)(test_random(&seed) >> 1)));
	asking = thread(ask_at_random, MARK((intptr_t)(seed >> 1)));
	OK(pthread_join(asking, NULL));
	stop_and_free(loops[0]);
	stop_and_free(loops[1]);
}

/* Some requests arrive while the loop processes others. */
static void *
start_and_ask(void *arg)
{
	weft_go_opts opts = { .loop = arg };

	for (int left = TEST_TSAN ? 3000 : 60000; left > 0;) {
		weft_threadlet id = weft_go_with(&opts, end_at_once, NULL);

		if (id > 0) {
			(void)weft_cancel(id);
			left--;
		} else {
			(void)sched_yield(); /* the loop has reached threadlet_max */
		}
	}
	return NULL;
}

TEST(requests_of_several_threads_to_one_loop_are_all_processed)
{
	weft_loop *loop = make_with(&(weft_loop_opts){ .threadlet_max = 500 });
	pthread_t threads[2];

	OK(weft_loop_start(loop));
	for (int i = 0; i < 2; i++)
		threads[i] = thread(start_and_ask, loop);
	for (int i = 0; i < 2; i++)
		OK(pthread_join(threads[i], NULL));
	begin();
	second = go_on(loop, sleep_long, NULL);
	OK(sem_wait(&b));
	OK(weft_cancel(second));
	see_that_second_was_told(WEFT_ECANCELED);
	stop_and_free(loop);
	finish();
}

/* --- joining from another loop --------------------------------------------- */

static weft__a64 newest;
static weft__a32 enough;

static void
join_for_nothing(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++) {
		int64_t id = (int64_t)weft__load(&newest, WEFT__RELAXED);

		CHECK_EQ(weft_join(id, NULL, WEFT_NOWAIT), WEFT_ESRCH);
	}
	if (!weft__load(&enough, WEFT__RELAXED))
		(void)weft_loop_post(NULL, join_for_nothing, NULL); /* until it is stopped */
}

TEST(loop_without_threadlets_can_join_those_of_loops_being_freed)
{
	weft_loop *joining = make_started();
	int count = TEST_TSAN ? 300 : 2000;

	weft__store(&enough, 0, WEFT__RELAXED);
	OK(weft_loop_post(joining, join_for_nothing, NULL));
	for (int i = 0; i < count; i++) {
		weft_loop *loop = weft_loop_new(NULL);

		weft__store(&newest, (uint64_t)go_on(loop, end_at_once, NULL), WEFT__RELAXED);
		OK(weft_loop_run(loop));
		OK(weft_loop_free(loop));
	}
	weft__store(&enough, 1, WEFT__RELAXED);
	stop_and_free(joining);
}

/* --- computing -------------------------------------------------------------- */

static int
compute_past_deadlines(void *arg)
{
	weft_scope outer, shield;
	uint64_t due_ns;

	(void)arg;
	OK(weft_scope_open(&outer, 0, weft_after(HOUR)));
	OK(weft_check_canceled());
	due_ns = weft_after(WEFT_MS);
	OK(weft_scope_set_deadline(&outer, due_ns));
	while (weft_now() < due_ns)
		;
	CHECK_EQ(weft_check_canceled(), WEFT_ETIMEDOUT);
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_check_canceled());
	OK(weft_scope_close(&shield));
	CHECK_EQ(weft_check_canceled(), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ETIMEDOUT);
	OK(weft_scope_close(&outer));
	OK(weft_check_canceled());
	return 0;
}

TEST(computation_sees_a_deadline_that_has_passed)
{
	run_threadlet(compute_past_deadlines, NULL);
}

static int
compute_in_scope(void *arg)
{
	const uint64_t *due_ns = arg;

	while (weft_now() < *due_ns)
		;
	CHECK_EQ(weft_check_canceled(), WEFT_ETIMEDOUT);
	note(MARK('d'));
	return 0;
}

static int
bound_a_child(void *arg)
{
	weft_scope scope;
	uint64_t due_ns = weft_after(WEFT_MS);

	(void)arg;
	OK(weft_scope_open(&scope, 0, due_ns));
	CHECK(weft_scope_go(&scope, compute_in_scope, &due_ns) > 0);
	return weft_scope_close(&scope);
}

TEST(computation_sees_the_deadline_of_its_scope)
{
	run_threadlet(bound_a_child, NULL);
	CHECK_STR(trace, "d");
}

static void *
cancel_first(void *arg)
{
	OK(weft_cancel(first));
	return arg;
}

static int
compute_while_cancelled(void *arg)
{
	weft_scope shield;

	(void)arg;
	first = weft_self();
	OK(weft_check_canceled());
	OK(pthread_join(thread(cancel_first, NULL), NULL));
	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED);
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	OK(weft_check_canceled());
	OK(weft_sleep_until(weft_after(1)));
	OK(weft_scope_close(&shield));
	CHECK_EQ(weft_check_canceled(), WEFT_ECANCELED);
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	note(MARK('c'));
	return 0;
}

TEST(computation_sees_a_cancel_by_another_thread)
{
	run_threadlet(compute_while_cancelled, NULL);
	CHECK_STR(trace, "c");
}

/* --- whether a call could suspend ------------------------------------------ */

static void
ask_in_callback(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_can_suspend(), 0);
	note(MARK('c'));
}

static int
ask_before_and_after_cancel(void *arg)
{
	weft_scope shield;

	(void)arg;
	CHECK_EQ(weft_can_suspend(), 1);
	OK(weft_loop_post(weft_loop_current(), ask_in_callback, NULL));
	OK(weft_sleep_until(weft_after(1)));
	OK(weft_cancel(weft_self()));
	CHECK_EQ(weft_can_suspend(), WEFT_ECANCELED);
	CHECK_STR(weft_detail(), weft_strerror(WEFT_ECANCELED));
	OK(weft_scope_open(&shield, WEFT_SHIELD, WEFT_NEVER));
	CHECK_EQ(weft_can_suspend(), 1);
	OK(weft_scope_close(&shield));
	note(MARK('t'));
	return 0;
}

TEST(threadlet_can_suspend_until_it_is_canceled_and_a_callback_cannot)
{
	CHECK_EQ(weft_can_suspend(), 0); /* a plain thread */
	run_threadlet(ask_before_and_after_cancel, NULL);
	CHECK_STR(trace, "ct");
}

static int
ask_when_interrupted(void *arg)
{
	(void)arg;
	OK(weft_interrupt(weft_self()));
	CHECK_EQ(weft_can_suspend(), 1);
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_EINTR);
	return 0;
}

TEST(can_suspend_leaves_an_interrupt_to_the_next_wait)
{
	run_threadlet(ask_when_interrupted, NULL);
}
