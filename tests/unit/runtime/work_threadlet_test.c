/* work_threadlet_test.c - pool work called from threadlets. */
#include "unit/threadlet/sched.h"

static weft_event running = WEFT_SHARED_INIT, release = WEFT_SHARED_INIT;

static int
square(void *arg)
{
	int *value = arg;

	*value *= *value;
	return *value;
}

static int
work_some(void *arg)
{
	int given = (int)(intptr_t)arg, value = given;

	CHECK_EQ(weft_work(WEFT_CPU, square, &value, WEFT_NEVER), given * given);
	CHECK_EQ(value, given * given);
	CHECK_EQ(weft_work(WEFT_BLOCKING, square, &value, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	note(MARK('w'));
	return 0;
}

TEST(threadlet_suspends_while_its_work_runs)
{
	weft_loop *loop = make();

	for (int i = 0; i < 20; i++)
		go_on(loop, work_some, MARK(i));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "wwwwwwwwwwwwwwwwwwww");
	OK(weft_loop_free(loop));
}

static int
run_until_asked(void *arg)
{
	(void)arg;
	OK(weft_event_set(&running));
	while (weft_check_canceled() == 0)
		;
	return weft_check_canceled();
}

static int
cancel_running(void *arg)
{
	int *rc = arg;

	*rc = weft_work(WEFT_CPU, run_until_asked, NULL, WEFT_NEVER);
	return 0;
}

static int
cancel_it(void *arg)
{
	weft_scope scope;
	int rc = 0;

	(void)arg;
	OK(weft_event_reset(&running));
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, cancel_running, &rc) > 0);
	OK(weft_event_wait(&running, WEFT_NEVER));
	weft_scope_cancel(&scope);
	OK(weft_scope_close(&scope));
	CHECK_EQ(rc, WEFT_ECANCELED);
	OK(weft_scope_open(&scope, 0, weft_after(WEFT_MS)));
	CHECK_EQ(weft_work(WEFT_CPU, run_until_asked, NULL, WEFT_NEVER), WEFT_ETIMEDOUT);
	OK(weft_scope_close(&scope));
	CHECK_EQ(weft_work(WEFT_CPU, run_until_asked, NULL, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	return 0;
}

TEST(canceled_running_work_is_waited_for)
{
	run_threadlet(cancel_it, NULL);
}

static int
block(void *arg)
{
	(void)arg;
	OK(weft_event_set(&running));
	OK(weft_event_wait(&release, WEFT_NEVER));
	return 1;
}

static int
block_in(void *arg)
{
	CHECK_EQ(weft_work(arg, block, NULL, WEFT_NEVER), 1);
	note(MARK('b'));
	return 0;
}

static int
never_run(void *arg)
{
	(void)arg;
	note(MARK('!'));
	return 0;
}

static int
cancel_queued(void *arg)
{
	weft_pool *pool = weft_pool_new(&(weft_pool_opts){ .threads_max = 1, .queue_max = 1 });
	weft_scope scope;

	(void)arg;
	OK(weft_event_reset(&running));
	OK(weft_event_reset(&release));
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, block_in, pool) > 0);
	OK(weft_event_wait(&running, WEFT_NEVER));
	CHECK_EQ(weft_work(pool, never_run, NULL, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(weft_interrupt(weft_self()));
	CHECK_EQ(weft_work(pool, never_run, NULL, WEFT_NEVER), WEFT_EINTR);
	OK(weft_event_set(&release));
	OK(weft_scope_close(&scope));
	CHECK_STR(trace, "b");
	OK(weft_pool_free(pool));
	return 0;
}

TEST(queued_work_is_removed_on_deadline_and_interrupt)
{
	run_threadlet(cancel_queued, NULL);
}

static int
wait_in_pool(void *arg)
{
	(void)weft_work(WEFT_BLOCKING, square, arg, WEFT_NEVER);
	return 0;
}

static int
start_and_stop(void *arg)
{
	static int values[50];

	(void)arg;
	for (int i = 0; i < 50; i++)
		CHECK(weft_go(wait_in_pool, &values[i]) > 0);
	OK(weft_yield());
	weft_loop_shutdown(NULL);
	return 0;
}

TEST(loop_stops_with_work_queued_and_in_flight)
{
	for (int i = 0; i < 20; i++)
		run_threadlet(start_and_stop, NULL);
}

/* --- detail texts --------------------------------------------------------- */

static int
fail_with_text(void *arg)
{
	return weft_fail(WEFT_EPROTO, "%s", (const char *)arg);
}

static int
fail_work(void *arg)
{
	(void)weft_fail(WEFT_EINVAL, "before");
	CHECK_EQ(weft_work(WEFT_CPU, fail_with_text, (void *)(uintptr_t) "in the pool", WEFT_NEVER),
	         WEFT_EPROTO);
	CHECK_STR(weft_detail(), "in the pool");
	note(arg);
	return 0;
}

TEST(detail_text_of_failed_work_is_passed_to_the_threadlet)
{
	run_threadlet(fail_work, MARK('w'));
	CHECK_STR(trace, "w");
}

TEST(detail_text_of_failed_work_is_passed_to_the_plain_thread)
{
	weft_pool *pool = weft_pool_new(NULL);

	(void)weft_fail(WEFT_EINVAL, "before");
	CHECK_EQ(weft_work(pool, fail_with_text, (void *)(uintptr_t) "in the pool", WEFT_NEVER),
	         WEFT_EPROTO);
	CHECK_STR(weft_detail(), "in the pool");
	OK(weft_pool_free(pool));
}
