/* dag_loop_test.c - steps on loops and pools: timeouts, retries, limits, external ends.
 *
 * The steps of these tests wait at a gate that the test opens, or for deadlines.  So nothing
 * depends on the speed of the machine.
 */
#include <pthread.h>
#include <sched.h>
#include <weft/dag.h>
#include "base/atomic.h"
#include "unit/dag/graph.h"

static int one = 1, error = WEFT_EPROTO;

/* --- a gate -------------------------------------------------------------- */

static weft__a32 arrived, opened;

static void
close_gate(void)
{
	weft__store(&arrived, 0, WEFT__RELAXED);
	weft__store(&opened, 0, WEFT__RELAXED);
}

static void
open_gate(void)
{
	weft__store(&opened, 1, WEFT__RELEASE);
}

/* Wait until the gate is open or the step is canceled. */
static int
wait_at_gate(weft_dag_step *step, void *arg)
{
	int rc = 0;

	(void)step;
	(void)arg;
	(void)weft__add(&arrived, 1, WEFT__RELAXED);
	while (!weft__load(&opened, WEFT__ACQUIRE) && rc == 0) {
		rc = weft_check_canceled();
		sched_yield();
	}
	return rc;
}

/* The same, but ignores cancellation: only the gate ends it. */
static int
wait_deaf(weft_dag_step *step, void *arg)
{
	(void)arg;
	(void)weft__add(&arrived, 1, WEFT__RELAXED);
	while (!weft__load(&opened, WEFT__ACQUIRE))
		sched_yield();
	return weft_dag_step_out(step, weft_value_integer(99));
}

static void
await_arrivals(uint32_t count)
{
	while (weft__load(&arrived, WEFT__RELAXED) < count)
		CHECK_EQ(weft_yield(), 0);
}

static int
sleep_for_ever(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	(void)weft__add(&arrived, 1, WEFT__RELAXED);
	return weft_sleep_until(WEFT_NEVER);
}

static int
sleep_a_little(weft_dag_step *step, void *arg)
{
	int rc = weft_sleep_until(weft_after(WEFT_MS));

	return rc < 0 ? rc : add_up(step, arg);
}

/* --- places -------------------------------------------------------------- */

static int
is_on_loop(weft_dag_step *step, void *arg)
{
	bool want = arg != NULL;

	(void)step;
	return (weft_self() != 0) == want ? 0 : WEFT_EWRONGLOOP;
}

static int
run_places(void *arg)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	(void)arg;
	weft_dag_add(dag, NODE("cpu", is_on_loop));
	weft_dag_add(dag, NODE("loop", is_on_loop, .arg = &one, .inputs = INPUTS("cpu"),
	                       .place = WEFT_DAG_LOOP));
	weft_dag_add(dag, NODE("loop2", is_on_loop, .arg = &one, .inputs = INPUTS("loop"),
	                       .place = WEFT_DAG_LOOP));
	weft_dag_add(dag, NODE("blocking", is_on_loop, .inputs = INPUTS("loop2"),
	                       .place = WEFT_DAG_BLOCKING));
	weft_dag_add(dag, NODE("end", is_on_loop, .arg = &one, .inputs = INPUTS("blocking", "cpu"),
	                       .place = WEFT_DAG_LOOP));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 100; i++) {
		run = run_of(dag, NULL);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		weft_dag_run_free(run);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_loop_runs_only_steps_with_the_place_loop)
{
	on_a_loop(run_places, NULL);
}

static int
run_sleeps(void *arg)
{
	weft_dag *dag = graph();
	char name[16];
	weft_dag_run *run;

	(void)arg;
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof name, "n%d", i);
		weft_dag_add(dag, NODE(name, sleep_a_little, .type = &weft_type_integer,
		                       .place = WEFT_DAG_LOOP));
	}
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(many_steps_can_be_suspended_on_a_loop_at_once)
{
	on_a_loop(run_sleeps, NULL);
}

/* --- times --------------------------------------------------------------- */

static int
run_timeouts(void *arg)
{
	static const weft_dag_place places[] = { WEFT_DAG_CPU, WEFT_DAG_LOOP, WEFT_DAG_BLOCKING };

	(void)arg;
	for (int i = 0; i < 3; i++) {
		weft_dag *dag = graph();
		weft_dag_run *run;

		close_gate();
		weft_dag_add(dag, NODE("slow",
		                       places[i] == WEFT_DAG_LOOP ? sleep_for_ever : wait_at_gate,
		                       .place = places[i], .timeout_ns = WEFT_MS, .retries = 2));
		weft_dag_add(dag, SUM("after", .inputs = INPUTS("slow")));
		CHECK_EQ(weft_dag_check(dag), 0);
		run = run_of(dag, NULL);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ETIMEDOUT);
		CHECK_EQ(weft__load(&arrived, WEFT__RELAXED), 3);
		weft_dag_run_free(run);
		CHECK_EQ(weft_dag_free(dag), 0);
	}
	return 0;
}

TEST(an_attempt_that_times_out_is_ended_and_retried_in_every_place)
{
	on_a_loop(run_timeouts, NULL);
}

static int
on_fallback(weft_dag_step *step, void *arg)
{
	(void)arg;
	CHECK_EQ(weft_dag_step_in(step, 0)->as.integer, 7);
	open_gate(); /* the late attempt may return now */
	return 0;
}

static int
run_late(void *arg)
{
	weft_dag *dag = graph();
	struct weft_dag_stats stats;
	weft_dag_run *run;

	(void)arg;
	close_gate();
	weft_dag_add(dag, NODE("slow", wait_deaf, .timeout_ns = WEFT_MS, .type = &weft_type_integer,
	                       .optional = true, .fallback = weft_value_integer(7)));
	weft_dag_add(dag,
	             NODE("after", on_fallback, .inputs = INPUTS("slow"), .place = WEFT_DAG_LOOP));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "slow"), 7);
	CHECK_EQ(weft_dag_stats(dag, &stats), 0);
	CHECK_EQ(stats.late, 1);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(dependents_get_the_fallback_and_the_late_result_is_dropped)
{
	on_a_loop(run_late, NULL);
}

static int
run_deadline(void *arg)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	(void)arg;
	close_gate();
	weft_dag_add(dag, NODE("sleeps", sleep_for_ever, .place = WEFT_DAG_LOOP, .retries = 5,
	                       .timeout_ns = WEFT_S * 3600));
	weft_dag_add(dag, NODE("computes", wait_at_gate));
	weft_dag_add(dag, NODE("blocks", wait_at_gate, .place = WEFT_DAG_BLOCKING));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, weft_after(2 * WEFT_MS)), WEFT_ETIMEDOUT);
	weft_dag_run_free(run);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, weft_now()), WEFT_ETIMEDOUT);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(the_deadline_of_a_run_ends_steps_in_every_place)
{
	on_a_loop(run_deadline, NULL);
}

TEST(the_deadline_of_a_run_without_a_loop_is_seen_by_its_steps)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	close_gate();
	weft_dag_add(dag, NODE("computes", wait_at_gate));
	weft_dag_add(dag, NODE("after", wait_at_gate, .inputs = INPUTS("computes")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, weft_after(2 * WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft__load(&arrived, WEFT__RELAXED), 1);
	weft_dag_run_free(run);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static int
fail_twice(weft_dag_step *step, void *arg)
{
	uint64_t *times = arg;

	times[weft_dag_step_attempt(step)] = weft_now();
	return weft_dag_step_attempt(step) < 2 ? WEFT_EAGAIN : 0;
}

static int
run_backoff(void *arg)
{
	static const weft_dag_place places[] = { WEFT_DAG_CPU, WEFT_DAG_LOOP };

	(void)arg;
	for (int i = 0; i < 2; i++) {
		uint64_t times[3];
		weft_dag *dag = graph();
		weft_dag_run *run;

		weft_dag_add(dag, NODE("a", fail_twice, .arg = times, .retries = 2,
		                       .place = places[i], .backoff_ns = 4 * WEFT_MS));
		CHECK_EQ(weft_dag_check(dag), 0);
		run = run_of(dag, NULL);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		CHECK(times[1] - times[0] >= 3 * WEFT_MS);
		CHECK(times[2] - times[1] >= 6 * WEFT_MS);
		weft_dag_run_free(run);
		CHECK_EQ(weft_dag_free(dag), 0);
	}
	return 0;
}

TEST(the_delay_before_a_retry_doubles)
{
	on_a_loop(run_backoff, NULL);
}

/* --- ends from outside --------------------------------------------------- */

static weft_dag *
all_places(void)
{
	weft_dag *dag = graph();

	close_gate();
	weft_dag_add(dag, NODE("sleeps", sleep_for_ever, .place = WEFT_DAG_LOOP));
	weft_dag_add(dag, NODE("computes", wait_at_gate));
	weft_dag_add(dag, NODE("blocks", wait_at_gate, .place = WEFT_DAG_BLOCKING));
	weft_dag_add(dag, NODE("again", fail_with, .arg = &error, .retries = 1,
	                       .backoff_ns = 3600 * WEFT_S));
	weft_dag_add(dag, SUM("after", .inputs = INPUTS("sleeps", "computes", "blocks", "again")));
	CHECK_EQ(weft_dag_check(dag), 0);
	return dag;
}

static int
cancel_it(void *arg)
{
	await_arrivals(3);
	weft_dag_run_cancel(arg);
	weft_dag_run_cancel(arg);
	return 0;
}

static int
run_canceled(void *arg)
{
	weft_dag *dag = all_places();
	weft_dag_run *run = run_of(dag, NULL);
	weft_value value;

	(void)arg;
	CHECK(weft_go(cancel_it, run) > 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(weft_dag_run_get(run, "after", &value), WEFT_ECANCELED);
	weft_dag_run_cancel(run);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_canceled_run_ends_its_steps_in_every_place)
{
	on_a_loop(run_canceled, NULL);
}

static int
run_failing(void *arg)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	(void)arg;
	close_gate();
	weft_dag_add(dag, NODE("sleeps", sleep_for_ever, .place = WEFT_DAG_LOOP));
	weft_dag_add(dag, NODE("computes", wait_at_gate));
	weft_dag_add(dag, NODE("little", sleep_a_little, .type = &weft_type_integer,
	                       .place = WEFT_DAG_LOOP));
	weft_dag_add(dag, NODE("fails", fail_with, .arg = &error, .inputs = INPUTS("little"),
	                       .place = WEFT_DAG_LOOP));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "node fails: told to fail");
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(the_first_failure_ends_the_running_steps)
{
	on_a_loop(run_failing, NULL);
}

static int
run_aborted(void *arg)
{
	weft_dag *dag = all_places();
	weft_abort *abort = weft_abort_new_timeout(NULL, weft_after(WEFT_MS));
	const weft_dag_run_opts opts = { .abort = abort };
	weft_dag_run *run = run_of(dag, &opts);

	(void)arg;
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ETIMEDOUT);
	weft_dag_run_free(run);
	run = run_of(dag, &opts); /* the signal has already fired */
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ETIMEDOUT);
	weft_dag_run_free(run);
	(void)weft_abort_unref(abort);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(an_abort_signal_ends_a_run_with_its_reason)
{
	on_a_loop(run_aborted, NULL);
}

static int
free_it(void *arg)
{
	await_arrivals(3);
	weft_dag_run_free(arg);
	return 0;
}

static int
run_freed(void *arg)
{
	weft_dag *dag = all_places();
	weft_dag_run *run = run_of(dag, NULL);
	weft_op op;

	(void)arg;
	CHECK_EQ(weft_op_init(&op, NULL, NULL, NULL), 0);
	CHECK_EQ(weft_dag_run_op(run, &op, WEFT_NEVER), 0);
	CHECK_EQ(weft_dag_run_op(run, &op, WEFT_NEVER), WEFT_EALREADY);
	CHECK(weft_go(free_it, run) > 0);
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_run_that_is_freed_while_it_runs_is_canceled_and_its_op_ends)
{
	on_a_loop(run_freed, NULL);
}

/* The waiting threadlet itself is canceled.  It cancels the run and waits for its end. */
static int
wait_for_run(void *arg)
{
	CHECK_EQ(weft_dag_run_wait(arg, WEFT_NEVER), WEFT_ECANCELED);
	return 0;
}

static int
cancel_waiter(void *arg)
{
	weft_dag *dag = all_places();
	weft_dag_run *run = run_of(dag, NULL);
	weft_scope scope;

	(void)arg;
	CHECK_EQ(weft_scope_open(&scope, 0, WEFT_NEVER), 0);
	CHECK(weft_scope_go(&scope, wait_for_run, run) > 0);
	await_arrivals(3);
	weft_scope_cancel(&scope);
	CHECK_EQ(weft_scope_close(&scope), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(canceling_the_threadlet_that_waits_for_a_run_cancels_the_run)
{
	on_a_loop(cancel_waiter, NULL);
}

/* --- limits -------------------------------------------------------------- */

static weft__a32 inside, most;

static int
count_inside(weft_dag_step *step, void *arg)
{
	uint32_t now = weft__add(&inside, 1, WEFT__RELAXED) + 1;
	uint32_t seen = weft__load(&most, WEFT__RELAXED);
	int rc = 0;

	(void)step;
	while (now > seen && !weft__cas(&most, &seen, now, WEFT__RELAXED))
		;
	if (arg)
		rc = weft_sleep_until(weft_after(WEFT_MS / 10));
	else
		sched_yield();
	(void)weft__add(&inside, UINT32_MAX, WEFT__RELAXED);
	return rc;
}

static weft_dag *
limited(void)
{
	weft_dag *dag = graph();
	char name[16];

	CHECK_EQ(weft_dag_set_limit(dag, "two", 2), 0);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "n%d", i);
		weft_dag_add(dag,
		             NODE(name, count_inside, .limit = "two", .arg = i % 2 ? &one : NULL,
		                  .place = i % 2 ? WEFT_DAG_LOOP : WEFT_DAG_CPU));
	}
	CHECK_EQ(weft_dag_check(dag), 0);
	weft__store(&most, 0, WEFT__RELAXED);
	return dag;
}

static int
run_one(void *arg)
{
	weft_dag_run *run = run_of(arg, NULL);

	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	weft_dag_run_free(run);
	return 0;
}

static int
run_limited(void *arg)
{
	weft_dag *dag = limited();
	weft_scope scope;

	(void)arg;
	CHECK_EQ(weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER), 0);
	for (int i = 0; i < 10; i++)
		CHECK(weft_scope_go(&scope, run_one, dag) > 0);
	CHECK_EQ(weft_scope_close(&scope), 0);
	CHECK_EQ(weft__load(&most, WEFT__RELAXED), 2);
	CHECK_EQ(weft__load(&inside, WEFT__RELAXED), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_limit_applies_across_all_runs_of_a_template)
{
	on_a_loop(run_limited, NULL);
}

static int
run_limit_canceled(void *arg)
{
	weft_dag *dag = graph();
	weft_dag_run *holder, *waits;
	weft_op op;

	(void)arg;
	close_gate();
	weft_dag_set_limit(dag, "one", 1);
	weft_dag_add(dag, NODE("a", wait_at_gate, .limit = "one"));
	CHECK_EQ(weft_dag_check(dag), 0);
	holder = run_of(dag, NULL);
	CHECK_EQ(weft_op_init(&op, NULL, NULL, NULL), 0);
	CHECK_EQ(weft_dag_run_op(holder, &op, WEFT_NEVER), 0);
	await_arrivals(1);
	waits = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(waits, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	weft_dag_run_free(waits);
	open_gate();
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), 0);
	weft_dag_run_free(holder);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_run_that_waits_for_a_limit_ends_at_its_deadline)
{
	on_a_loop(run_limit_canceled, NULL);
}

/* --- other threads and loops --------------------------------------------- */

TEST(a_plain_thread_can_run_a_graph_that_uses_a_loop)
{
	weft_loop *loop = weft_loop_new(NULL);
	const weft_dag_run_opts opts = { .loop = loop };
	weft_dag *dag = graph();
	weft_dag_run *run;

	weft_dag_add(dag, SUM("a", .arg = &one));
	weft_dag_add(dag, NODE("b", sleep_a_little, .arg = &one, .type = &weft_type_integer,
	                       .inputs = INPUTS("a"), .place = WEFT_DAG_LOOP));
	weft_dag_add(dag, SUM("c", .arg = &one, .inputs = INPUTS("b"), .place = WEFT_DAG_BLOCKING));
	weft_dag_add(dag, SUM("d", .arg = &one, .inputs = INPUTS("c")));
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_loop_start(loop), 0);
	for (int i = 0; i < 20; i++) {
		run = run_of(dag, &opts);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		CHECK_EQ(integer_of(run, "d"), 4);
		weft_dag_run_free(run);
	}
	run = run_of(dag, &opts);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_wait_stopped(loop, WEFT_NEVER), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ESHUTDOWN);
	weft_dag_run_free(run);
	CHECK_EQ(weft_loop_free(loop), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static void *
stop_soon(void *arg)
{
	while (weft__load(&arrived, WEFT__RELAXED) < 3)
		sched_yield();
	weft_loop_shutdown(arg);
	return NULL;
}

TEST(a_loop_that_stops_ends_its_runs_and_waits_for_their_steps)
{
	weft_loop *loop = weft_loop_new(NULL);
	const weft_dag_run_opts opts = { .loop = loop };
	weft_dag *dag = all_places();
	weft_dag_run *run = run_of(dag, &opts);
	pthread_t thread;

	CHECK_EQ(weft_loop_start(loop), 0);
	CHECK_EQ(pthread_create(&thread, NULL, stop_soon, loop), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ESHUTDOWN);
	CHECK_EQ(weft_loop_wait_stopped(loop, WEFT_NEVER), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_loop_free(loop), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static int
run_elsewhere(void *arg)
{
	const weft_dag_run_opts opts = { .loop = arg };
	weft_dag *dag = graph();
	weft_dag_run *run;

	weft_dag_add(dag, NODE("a", sleep_a_little, .arg = &one, .type = &weft_type_integer,
	                       .place = WEFT_DAG_LOOP));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "a"), 1);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_threadlet_can_wait_for_a_run_on_another_loop)
{
	weft_loop *loop = weft_loop_new(NULL);

	CHECK_EQ(weft_loop_start(loop), 0);
	on_a_loop(run_elsewhere, loop);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_wait_stopped(loop, WEFT_NEVER), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
}

static int
wait_both(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	(void)weft__add(&arrived, 1, WEFT__RELAXED);
	while (weft__load(&arrived, WEFT__RELAXED) < 2)
		sched_yield();
	return 0;
}

/* Uses a new graph in each round: a node that has never run is not yet known to be quick, so
 * the thread shares it with the pool. */
TEST(a_plain_thread_and_a_pool_share_the_work)
{
	weft_pool *pool = weft_pool_new(NULL);
	const weft_dag_run_opts opts = { .cpu = pool };

	for (int i = 0; i < 20; i++) {
		weft_dag *dag = graph();
		weft_dag_run *run;

		close_gate();
		weft_dag_add(dag, NODE("a", wait_both));
		weft_dag_add(dag, NODE("b", wait_both));
		CHECK_EQ(weft_dag_check(dag), 0);
		run = run_of(dag, &opts);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		weft_dag_run_free(run);
		CHECK_EQ(weft_dag_free(dag), 0);
	}
	CHECK_EQ(weft_pool_free(pool), 0);
}

static int
run_inner(weft_dag_step *step, void *arg)
{
	weft_dag_run *run = run_of(arg, NULL);
	int rc = weft_dag_run_wait(run, weft_dag_step_deadline(step));

	weft_dag_run_free(run);
	return rc;
}

TEST(a_step_may_start_another_run_and_wait_for_it)
{
	weft_pool *pool = weft_pool_new(NULL);
	const weft_dag_run_opts opts = { .cpu = pool };
	weft_dag *inner = graph(), *dag = graph();
	weft_dag_run *run;
	char name[16];

	weft_dag_add(inner, SUM("a"));
	CHECK_EQ(weft_dag_check(inner), 0);
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "n%d", i);
		weft_dag_add(dag, NODE(name, run_inner, .arg = inner));
	}
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_pool_free(pool), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

static void
wait_in_callback(void *arg)
{
	CHECK_EQ(weft_dag_run_wait(arg, WEFT_NEVER), WEFT_ENOSUSPEND);
}

TEST(a_callback_cannot_wait_for_a_run)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_dag *dag = graph();
	weft_dag_run *run;

	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_loop_post(loop, wait_in_callback, run), 0);
	CHECK_EQ(weft_loop_run(loop), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_loop_free(loop), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}
