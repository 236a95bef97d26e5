/* dag_many_test.c - graphs of very many nodes, and very many runs. */
#include <pthread.h>
#include <weft/dag.h>
#include "base/atomic.h"
#include "unit/dag/graph.h"

enum { MANY = TEST_TSAN ? 50000 : 1000000, RUNS = 1000 };

static weft__a32 ran;

static int
count(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	(void)weft__add(&ran, 1, WEFT__RELAXED);
	return 0;
}

static int
fail_halfway(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	return weft__add(&ran, 1, WEFT__RELAXED) == MANY / 2 ? WEFT_EPROTO : 0;
}

static const char *
name_of(int i, char *buf)
{
	snprintf(buf, 16, "n%d", i);
	return buf;
}

/* A chain of nodes.  With `fan`, all nodes depend on the first one instead. */
static weft_dag *
many(bool fan, weft_dag_fn fn)
{
	weft_dag *dag = graph();
	char name[16], before[16];

	CHECK_EQ(weft_dag_add(dag, NODE("n0", fn)), 0);
	for (int i = 1; i < MANY; i++)
		CHECK_EQ(
			weft_dag_add(dag, NODE(name_of(i, name), fn,
		                               .inputs = INPUTS(name_of(fan ? 0 : i - 1, before)))),
			i);
	CHECK_EQ(weft_dag_check(dag), 0);
	return dag;
}

static int
run_it(weft_dag *dag, const weft_dag_run_opts *opts)
{
	weft_dag_run *run = run_of(dag, opts);
	int rc;

	weft__store(&ran, 0, WEFT__RELAXED);
	rc = weft_dag_run_wait(run, WEFT_NEVER);
	weft_dag_run_free(run);
	return rc;
}

TEST(a_chain_of_a_million_nodes_runs_and_can_fail_in_the_middle)
{
	weft_dag *dag = many(false, count);

	CHECK_EQ(run_it(dag, NULL), 0);
	CHECK_EQ(weft__load(&ran, WEFT__RELAXED), MANY);
	CHECK_EQ(weft_dag_free(dag), 0);
	dag = many(false, fail_halfway);
	CHECK_EQ(run_it(dag, NULL), WEFT_EPROTO);
	CHECK_EQ(weft__load(&ran, WEFT__RELAXED), MANY / 2 + 1);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_million_nodes_run_side_by_side_by_a_thread_and_a_pool)
{
	weft_pool *pool = weft_pool_new(NULL);
	const weft_dag_run_opts opts = { .cpu = pool };
	weft_dag *dag = many(true, count);

	for (int i = 0; i < 3; i++) {
		CHECK_EQ(run_it(dag, &opts), 0);
		CHECK_EQ(weft__load(&ran, WEFT__RELAXED), MANY);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_pool_free(pool), 0);
}

static int
sleep_a_little(weft_dag_step *step, void *arg)
{
	int rc = weft_sleep_until(weft_after(WEFT_MS));

	return rc < 0 ? rc : add_up(step, arg);
}

static int
run_request(void *arg)
{
	weft_dag_run *run = run_of(arg, NULL);

	CHECK_EQ(weft_dag_run_set(run, "in", weft_value_integer(1)), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "score"), 4);
	weft_dag_run_free(run);
	return 0;
}

static int
run_requests(void *arg)
{
	weft_dag *dag = graph();
	weft_scope scope;

	(void)arg;
	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, NODE("profile", sleep_a_little, .type = &weft_type_integer,
	                       .place = WEFT_DAG_LOOP, .inputs = INPUTS("in")));
	weft_dag_add(dag, NODE("posts", sleep_a_little, .type = &weft_type_integer,
	                       .place = WEFT_DAG_LOOP, .inputs = INPUTS("in")));
	weft_dag_add(dag, SUM("both", .inputs = INPUTS("profile", "posts")));
	weft_dag_add(dag, SUM("score", .inputs = INPUTS("both", "posts", "profile")));
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER), 0);
	for (int i = 0; i < RUNS; i++)
		CHECK(weft_scope_go(&scope, run_request, dag) > 0);
	CHECK_EQ(weft_scope_close(&scope), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
	return 0;
}

TEST(a_thousand_runs_proceed_at_once_on_a_loop)
{
	on_a_loop(run_requests, NULL);
}

static void *
run_often(void *arg)
{
	for (int i = 0; i < 200; i++) {
		weft_dag_run *run = run_of(arg, NULL);

		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		CHECK_EQ(integer_of(run, "end"), 3);
		weft_dag_run_free(run);
	}
	return NULL;
}

TEST(several_threads_can_run_a_template_at_once)
{
	static int one = 1;
	weft_dag *dag = graph();
	pthread_t threads[4];

	weft_dag_add(dag, SUM("a", .arg = &one));
	weft_dag_add(dag, SUM("b", .inputs = INPUTS("a")));
	weft_dag_add(dag, SUM("c", .inputs = INPUTS("a")));
	weft_dag_add(dag, SUM("end", .arg = &one, .inputs = INPUTS("b", "c")));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, run_often, dag), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}
