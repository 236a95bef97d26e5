/* dag_late_test.c - late attempts, full pools, and runs that are freed by their own steps.
 *
 * An attempt is late if it still runs after its timeout.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/dag.h>
#include "base/atomic.h"
#include "unit/dag/graph.h"

static weft__a32 arrived, opened, inside, most;

static void
begin(void)
{
	weft__store(&arrived, 0, WEFT__RELAXED);
	weft__store(&opened, 0, WEFT__RELAXED);
	weft__store(&inside, 0, WEFT__RELAXED);
	weft__store(&most, 0, WEFT__RELAXED);
}

static void
await_opened(void)
{
	while (!weft__load(&opened, WEFT__ACQUIRE))
		sched_yield();
}

static int
open_it(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	weft__store(&opened, 1, WEFT__RELEASE);
	return 0;
}

static int
nothing(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	return 0;
}

/* Ignores cancellation: ends only when `opened` is set. */
static int
wait_deaf(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	await_opened();
	return 0;
}

static int
run_and_free(weft_dag *dag)
{
	weft_dag_run *run;
	int rc;

	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	rc = weft_dag_run_wait(run, WEFT_NEVER);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	return rc;
}

/* --- late attempts ------------------------------------------------------- */

/* One worker may run both x and y.  It must report the end of x before it starts y. */
static int
run_late_in_graph(void *arg)
{
	weft_dag *inner = graph(), *dag = graph();

	(void)arg;
	begin();
	weft_dag_add(inner, NODE("x", nothing));
	weft_dag_add(inner, NODE("y", wait_deaf, .inputs = INPUTS("x"), .timeout_ns = WEFT_MS,
	                         .optional = true));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, &(weft_dag_node){ .name = "s", .subgraph = inner });
	weft_dag_add(dag, NODE("after", open_it, .inputs = INPUTS("s"), .place = WEFT_DAG_LOOP));
	CHECK_EQ(run_and_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
	return 0;
}

TEST(the_dependents_of_a_subgraph_do_not_wait_for_a_late_step_in_it)
{
	on_a_loop(run_late_in_graph, NULL);
}

static int
put_text(weft_dag_step *step, void *arg)
{
	(void)arg;
	return weft_dag_step_out(step, weft_value_text("text"));
}

/* Reads its input after other steps have used it. */
static int
look_late(weft_dag_step *step, void *arg)
{
	const weft_value *in = weft_dag_step_in(step, 0);

	(void)arg;
	await_opened();
	CHECK_STR(in->as.ptr, "text");
	return 0;
}

static int
add_late(weft_dag_step *step, void *arg)
{
	int rc = weft_dag_step_add(step, NODE("late", look_late, .inputs = INPUTS("owner"),
	                                      .timeout_ns = WEFT_MS, .optional = true));

	return rc < 0 ? rc : put_text(step, arg);
}

static int
add_late_failing(weft_dag_step *step, void *arg)
{
	int rc = weft_dag_step_add(
		step, NODE("late", look_late, .inputs = INPUTS("owner"), .timeout_ns = WEFT_MS));

	return rc < 0 ? rc : put_text(step, arg);
}

static int
take_and_open(weft_dag_step *step, void *arg)
{
	weft_value value;
	int rc = weft_dag_step_take(step, 0, &value);

	(void)arg;
	weft_value_drop(&value);
	weft__store(&opened, 1, WEFT__RELEASE);
	return rc;
}

/* The added node and its owner fail while the late attempt still reads its input. */
static int
run_late_failing(void *arg)
{
	weft_dag *dag = graph();

	(void)arg;
	begin();
	weft_dag_add(dag,
	             NODE("owner", add_late_failing, .optional = true, .type = &weft_type_text));
	weft_dag_add(dag,
	             NODE("after", open_it, .inputs = INPUTS("owner"), .place = WEFT_DAG_LOOP));
	CHECK_EQ(run_and_free(dag), 0);
	return 0;
}

TEST(the_input_of_a_late_step_stays_valid_when_its_owner_has_failed)
{
	on_a_loop(run_late_failing, NULL);
}

static int
run_late_added(void *arg)
{
	weft_dag *dag = graph();

	(void)arg;
	begin();
	weft_dag_add(dag, NODE("owner", add_late, .type = &weft_type_text));
	weft_dag_add(dag, NODE("taker", take_and_open, .inputs = INPUTS("owner"),
	                       .place = WEFT_DAG_LOOP));
	CHECK_EQ(run_and_free(dag), 0);
	return 0;
}

TEST(the_input_of_a_late_step_is_not_moved_to_another_step)
{
	on_a_loop(run_late_added, NULL);
}

/* The first attempt is late.  The second must not begin before the first has returned. */
static int
count_inside(weft_dag_step *step, void *arg)
{
	uint32_t now = weft__add(&inside, 1, WEFT__RELAXED) + 1;

	(void)arg;
	if (now > weft__load(&most, WEFT__RELAXED))
		weft__store(&most, now, WEFT__RELAXED);
	while (weft_dag_step_attempt(step) == 0 && !weft_check_canceled())
		sched_yield();
	(void)weft__add(&inside, UINT32_MAX, WEFT__RELAXED);
	return 0;
}

static int
run_limited(void *arg)
{
	weft_dag *dag = graph();

	(void)arg;
	begin();
	weft_dag_set_limit(dag, "one", 1);
	weft_dag_add(dag, NODE("a", count_inside, .limit = "one", .timeout_ns = 20 * WEFT_MS,
	                       .retries = 1, .place = WEFT_DAG_BLOCKING));
	CHECK_EQ(run_and_free(dag), 0);
	CHECK_EQ(weft__load(&most, WEFT__RELAXED), 1);
	return 0;
}

TEST(a_limit_counts_attempts_that_are_late)
{
	on_a_loop(run_limited, NULL);
}

/* --- pools --------------------------------------------------------------- */

static int
meet(weft_dag_step *step, void *arg)
{
	(void)step;
	if (!*(const bool *)arg)
		return 0;
	(void)weft__add(&arrived, 1, WEFT__RELAXED);
	while (weft__load(&arrived, WEFT__RELAXED) < 2)
		sched_yield();
	return 0;
}

static int
run_blocking(void *arg)
{
	static bool meets;
	weft_dag *dag = graph();
	weft_dag_run *run;

	(void)arg;
	begin();
	weft_dag_add(dag, NODE("a", meet, .arg = &meets, .place = WEFT_DAG_BLOCKING));
	weft_dag_add(dag, NODE("b", meet, .arg = &meets, .place = WEFT_DAG_BLOCKING));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 20; i++) {
		meets = i == 19; /* by then the steps are known to be quick */
		run = run_of(dag, NULL);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		weft_dag_run_free(run);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(blocking_steps_that_were_quick_still_run_in_parallel)
{
	on_a_loop(run_blocking, NULL);
}

static int
do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

TEST(a_pool_of_another_process_is_refused)
{
	weft_pool *pool = weft_pool_new(NULL);
	const weft_dag_run_opts opts = { .cpu = pool };
	weft_dag *dag = graph();
	int status;
	pid_t child;

	weft_dag_add(dag, NODE("a", nothing));
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_work(pool, do_nothing, NULL, WEFT_NEVER), 0);
	child = test_fork();
	if (child == 0)
		test_child_exit(weft_dag_run_new(dag, &opts) ? 1 : 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK_EQ(weft_pool_free(pool), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}

/* Other work that fills the queue of the pool again and again. */
static weft_pool *pool;
static weft_op fillers[2];

static void
fill_again(weft_op *op, int64_t result, void *arg)
{
	(void)result;
	(void)arg;
	if (!weft__load(&opened, WEFT__RELAXED))
		(void)weft_work_op(pool, do_nothing, NULL, op, WEFT_NEVER);
}

static int
run_in_crowd(void *arg)
{
	const weft_pool_opts opts = { .threads_max = *(const uint32_t *)arg, .queue_max = 2 };
	weft_dag *dag = graph();
	char name[16];

	begin();
	pool = weft_pool_new(&opts);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(weft_op_init(&fillers[i], NULL, fill_again, NULL), 0);
		fill_again(&fillers[i], 0, NULL);
	}
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof name, "n%d", i);
		weft_dag_add(dag, NODE(name, nothing));
	}
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 20; i++) {
		weft_dag_run *run = run_of(dag, &(weft_dag_run_opts){ .cpu = pool });
		int rc = weft_dag_run_wait(run, WEFT_NEVER);

		CHECK(rc == 0 || rc == WEFT_EAGAIN); /* refused when the run starts */
		weft_dag_run_free(run);
	}
	weft__store(&opened, 1, WEFT__RELAXED);
	while (fillers[0].pending || fillers[1].pending)
		CHECK_EQ(weft_yield(), 0);
	CHECK_EQ(weft_pool_free(pool), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_run_ends_although_other_work_fills_the_queue_of_its_pool)
{
	for (uint32_t threads = 1; threads < 4; threads++)
		on_a_loop(run_in_crowd, &threads);
}

/* --- ends ---------------------------------------------------------------- */

static int
free_own_run(weft_dag_step *step, void *arg)
{
	(void)arg;
	weft_dag_run_free(weft_dag_step_run(step));
	return 0;
}

static int
run_that_is_freed(void *arg)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", free_own_run, .place = arg ? WEFT_DAG_LOOP : WEFT_DAG_CPU));
	weft_dag_add(dag, NODE("b", nothing, .inputs = INPUTS("a")));
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_dag_run_wait(run_of(dag, NULL), WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_step_may_free_its_run_while_a_thread_or_threadlet_waits_for_it)
{
	(void)run_that_is_freed(NULL);
	on_a_loop(run_that_is_freed, NULL);
	on_a_loop(run_that_is_freed, &opened);
}

static int
wait_until_asked(weft_dag_step *step, void *arg)
{
	int rc = 0;

	(void)step;
	(void)arg;
	weft__store(&arrived, 1, WEFT__RELEASE);
	while ((rc = weft_check_canceled()) == 0)
		sched_yield();
	return rc;
}

static int
run_inner(weft_dag_step *step, void *inner)
{
	weft_dag_run *run = run_of(inner, NULL);
	int rc = weft_dag_run_wait(run, weft_dag_step_deadline(step));

	weft_dag_run_free(run);
	return rc;
}

static void *
cancel_run(void *run)
{
	while (!weft__load(&arrived, WEFT__ACQUIRE))
		sched_yield();
	weft_dag_run_cancel(run);
	return NULL;
}

TEST(canceling_a_run_cancels_a_run_that_one_of_its_steps_waits_for)
{
	weft_dag *inner = graph(), *dag = graph();
	weft_dag_run *run;
	pthread_t thread;

	begin();
	weft_dag_add(inner, NODE("x", wait_until_asked));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, NODE("a", run_inner, .arg = inner));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(pthread_create(&thread, NULL, cancel_run, run), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

static int
let_cancel(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	weft__store(&arrived, 1, WEFT__RELEASE);
	await_opened();
	return 0;
}

static int
count_begun(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	(void)weft__add(&inside, 1, WEFT__RELAXED);
	return 0;
}

static void *
cancel_and_open(void *run)
{
	(void)cancel_run(run);
	weft__store(&opened, 1, WEFT__RELEASE);
	return NULL;
}

TEST(no_step_begins_in_a_run_whose_waiter_was_canceled)
{
	weft_dag *inner = graph(), *dag = graph();
	weft_dag_run *run;
	pthread_t thread;

	begin();
	weft_dag_add(inner, NODE("x", let_cancel));
	weft_dag_add(inner, NODE("y", count_begun, .inputs = INPUTS("x")));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, NODE("a", run_inner, .arg = inner));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(pthread_create(&thread, NULL, cancel_and_open, run), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(weft__load(&inside, WEFT__RELAXED), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

/* Free the run at once, and cancel its op, which belongs to another loop, at about the time
 * when the run ends. */
static int
run_there_and_cancel(void *arg)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", nothing, .place = WEFT_DAG_LOOP));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 300; i++) {
		weft_dag_run *run = run_of(dag, &(weft_dag_run_opts){ .loop = arg });
		weft_op op;
		int64_t rc;

		CHECK_EQ(weft_op_init(&op, NULL, NULL, NULL), 0);
		CHECK_EQ(weft_dag_run_op(run, &op, WEFT_NEVER), 0);
		weft_dag_run_free(run);
		for (int k = 0; k < i % 10; k++)
			(void)weft_yield();
		weft_op_cancel(&op);
		rc = weft_op_wait(&op, WEFT_NEVER);
		CHECK(rc == 0 || rc == WEFT_ECANCELED);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(an_op_of_another_loop_may_be_canceled_while_its_run_ends)
{
	weft_loop *loop = weft_loop_new(NULL);

	CHECK_EQ(weft_loop_start(loop), 0);
	on_a_loop(run_there_and_cancel, loop);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_wait_stopped(loop, WEFT_NEVER), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
}

TEST(a_run_cannot_be_started_with_an_op_of_a_stopped_loop)
{
	weft_loop *loop = weft_loop_new(NULL);
	const weft_dag_run_opts opts = { .loop = loop };
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_op op;

	weft_dag_add(dag, NODE("a", nothing));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_op_init(&op, loop, NULL, NULL), 0);
	CHECK_EQ(weft_dag_run_op(run, &op, WEFT_NEVER), WEFT_ESHUTDOWN);
	weft_dag_run_free(run);
	CHECK_EQ(weft_loop_free(loop), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}
