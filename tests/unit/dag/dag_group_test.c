/* dag_group_test.c - steps that consist of other steps: subgraphs, list items, added nodes. */
#include <weft/dag.h>
#include "base/atomic.h"
#include "unit/dag/graph.h"

#define SUB(name_, sub_, ...) \
	(&(weft_dag_node){ .name = (name_), .subgraph = (sub_), ##__VA_ARGS__ })

static int
nothing(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	return 0;
}

/* Check and run `dag`, and free both templates.  Returns the outcome of the run. */
static int
run_and_free(weft_dag *dag, weft_dag *inner)
{
	weft_dag_run *run;
	int rc;

	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	rc = weft_dag_run_wait(run, WEFT_NEVER);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
	return rc;
}

static weft_dag *
one_node(weft_dag_fn fn)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("x", fn));
	CHECK_EQ(weft_dag_check(dag), 0);
	return dag;
}

/* --- graphs in graphs ---------------------------------------------------- */

TEST(nested_subgraphs_run_side_by_side)
{
	weft_dag *inner = one_node(nothing), *middle = graph(), *dag = graph();

	weft_dag_add(middle, SUB("in", inner));
	CHECK_EQ(weft_dag_check(middle), 0);
	weft_dag_add(dag, SUB("a", middle));
	weft_dag_add(dag, SUB("b", middle));
	weft_dag_add(dag, SUB("c", middle));
	CHECK_EQ(run_and_free(dag, middle), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

static int failures;

static int
fail_often(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	failures++;
	return WEFT_EPROTO;
}

static int
cancel_after_two(void *run)
{
	while (failures < 2)
		CHECK_EQ(weft_yield(), 0);
	weft_dag_run_cancel(run);
	return 0;
}

static int
run_sleepers(void *arg)
{
	weft_dag *inner = graph(), *dag = graph();
	weft_dag_run *run;

	(void)arg;
	failures = 0;
	weft_dag_add(inner, NODE("x", fail_often, .retries = 1, .backoff_ns = 3600 * WEFT_S,
	                         .place = WEFT_DAG_LOOP));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, SUB("a", inner));
	weft_dag_add(dag, SUB("b", inner));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK(weft_go(cancel_after_two, run) > 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_ECANCELED);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
	return 0;
}

TEST(steps_of_two_subgraphs_that_wait_for_a_retry_can_be_canceled)
{
	on_a_loop(run_sleepers, NULL);
}

static int
sleep_long(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	return weft_sleep_until(weft_after(3600 * WEFT_S));
}

static int
run_bounded(void *arg)
{
	weft_dag *inner = graph(), *dag = graph();

	(void)arg;
	weft_dag_add(inner, NODE("x", sleep_long, .place = WEFT_DAG_LOOP));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, SUB("s", inner, .timeout_ns = WEFT_MS, .retries = 1));
	CHECK_EQ(run_and_free(dag, inner), WEFT_ETIMEDOUT);
	return 0;
}

TEST(a_subgraph_can_have_a_timeout)
{
	on_a_loop(run_bounded, NULL);
}

static char order[16];

static int
note(weft_dag_step *step, void *arg)
{
	(void)step;
	order[strlen(order)] = *(const char *)arg;
	return 0;
}

TEST(priorities_apply_inside_a_subgraph)
{
	static char names[5][2] = { "a", "b", "c", "d", "e" };
	static const int priorities[] = { -5, 7, 0, 100, 7 };
	weft_dag *inner = graph(), *dag = graph();

	memset(order, 0, sizeof order);
	for (int i = 0; i < 5; i++)
		weft_dag_add(inner,
		             NODE(names[i], note, .arg = names[i], .priority = priorities[i]));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, SUB("s", inner));
	CHECK_EQ(run_and_free(dag, inner), 0);
	CHECK_STR(order, "dbeca");
}

static bool
put_and_say_yes(weft_dag_step *step, void *arg)
{
	(void)arg;
	CHECK_EQ(weft_dag_step_out(step, weft_value_text("x")), 0);
	return true;
}

static int
put_text(weft_dag_step *step, void *arg)
{
	(void)arg;
	return weft_dag_step_out(step, weft_value_text("y"));
}

TEST(an_output_set_by_the_condition_of_a_subgraph_is_dropped)
{
	weft_dag *inner = graph(), *dag = graph();

	weft_dag_add(inner, NODE("x", put_text, .type = &weft_type_text));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, SUB("a", inner, .type = &weft_type_text, .condition = put_and_say_yes));
	CHECK_EQ(run_and_free(dag, inner), 0);
}

/* --- items --------------------------------------------------------------- */

static weft_value
numbers(int count)
{
	weft_value items[8];

	for (int i = 0; i < count; i++)
		items[i] = weft_value_integer(i);
	return weft_value_list(items, (size_t)count);
}

TEST(retries_apply_to_each_item_and_not_to_the_list)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	failures = 0;
	weft_dag_add_input(dag, "list", &weft_type_list);
	weft_dag_add(dag,
	             NODE("e", fail_often, .map = true, .retries = 2, .inputs = INPUTS("list")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_set(run, "list", numbers(1)), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(failures, 3);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static int
fail_second(weft_dag_step *step, void *arg)
{
	int64_t item = weft_dag_step_in(step, 0)->as.integer;

	(void)arg;
	return item == 1 ? WEFT_EPROTO : weft_dag_step_out(step, weft_value_integer(item));
}

TEST(the_fallback_of_a_node_for_each_item_replaces_the_whole_list)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add_input(dag, "list", &weft_type_list);
	CHECK(weft_dag_add(dag, NODE("e", fail_second, .map = true, .inputs = INPUTS("list"),
	                             .type = &weft_type_integer, .optional = true,
	                             .fallback = numbers(0)))
	      >= 0);
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_set(run, "list", numbers(3)), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(weft_dag_run_get(run, "e", &value), 0);
	CHECK_EQ(((weft_list *)value.as.ptr)->count, 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

/* --- added nodes --------------------------------------------------------- */

static int
add_one(weft_dag_step *step, void *arg)
{
	(void)arg;
	return weft_dag_step_add(step, NODE("more", nothing));
}

TEST(a_step_without_inputs_can_add_a_node_without_inputs)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("grow", add_one));
	CHECK_EQ(run_and_free(dag, NULL), 0);
}

static int
add_limited(weft_dag_step *step, void *arg)
{
	(void)arg;
	return weft_dag_step_add(step,
	                         NODE("more", nothing, .limit = "one", .inputs = INPUTS("grow")));
}

TEST(a_step_with_a_limit_can_add_a_node_with_the_same_limit)
{
	weft_dag *dag = graph();

	weft_dag_set_limit(dag, "one", 1);
	weft_dag_add(dag, NODE("grow", add_limited, .limit = "one"));
	CHECK_EQ(run_and_free(dag, NULL), 0);
}

static int
take_and_add(weft_dag_step *step, void *arg)
{
	weft_value value;

	(void)arg;
	CHECK_EQ(weft_dag_step_take(step, 0, &value), 0);
	weft_value_drop(&value);
	CHECK_EQ(weft_dag_step_add(step, SUM("more", .inputs = INPUTS("in"))), WEFT_EINVAL);
	return 0;
}

TEST(an_added_node_cannot_use_an_input_that_was_taken)
{
	weft_dag *dag = graph();

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, NODE("a", take_and_add, .inputs = INPUTS("in")));
	CHECK_EQ(run_and_free(dag, NULL), 0);
}

static bool
add_and_say_no(weft_dag_step *step, void *arg)
{
	(void)arg;
	CHECK_EQ(weft_dag_step_add(step, NODE("x", nothing)), 0);
	return false;
}

TEST(nodes_added_by_a_condition_that_returns_false_are_dropped)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", nothing, .condition = add_and_say_no));
	CHECK_EQ(run_and_free(dag, NULL), 0);
}

static int
add_graph(weft_dag_step *step, void *inner)
{
	return weft_dag_step_add(
		step, SUB("sub", inner, .inputs = INPUTS("in"), .type = &weft_type_integer));
}

static int
run_with_added(weft_dag *inner)
{
	weft_dag *dag = graph();

	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add_input(dag, "in", NULL);
	weft_dag_add(dag, NODE("grow", add_graph, .arg = inner, .inputs = INPUTS("in")));
	return run_and_free(dag, inner);
}

TEST(an_added_subgraph_needs_one_result_of_its_type_and_available_places)
{
	weft_dag *inner = graph();

	weft_dag_add_input(inner, "i", NULL);
	weft_dag_add(inner, SUM("x"));
	weft_dag_add(inner, SUM("y"));
	CHECK_EQ(run_with_added(inner), WEFT_EINVAL);

	inner = graph();
	weft_dag_add_input(inner, "i", NULL);
	weft_dag_add(inner, NODE("x", put_text, .type = &weft_type_text));
	CHECK_EQ(run_with_added(inner), WEFT_EINVAL);

	inner = graph();
	weft_dag_add_input(inner, "i", NULL);
	weft_dag_add(inner, SUM("x", .place = WEFT_DAG_BLOCKING));
	CHECK_EQ(run_with_added(inner), WEFT_EINVAL);

	inner = graph();
	weft_dag_add_input(inner, "i", NULL);
	weft_dag_add(inner, SUM("x"));
	CHECK_EQ(run_with_added(inner), 0);
}

/* --- fallbacks and progress ---------------------------------------------- */

TEST(a_fallback_that_is_an_error_or_cannot_be_shared_is_refused)
{
	static const weft_type owned = { .name = "owned" };
	static int thing;
	weft_dag *dag = graph();

	CHECK_EQ(weft_dag_add(dag, NODE("a", nothing, .type = &weft_type_text, .optional = true,
	                                .fallback = weft_value_error(WEFT_ENOMEM))),
	         WEFT_ENOMEM);
	CHECK_EQ(weft_dag_add(dag, NODE("a", nothing, .type = &owned, .optional = true,
	                                .fallback = weft_value_ptr(&owned, &thing))),
	         WEFT_EINVAL);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static int told;

static void
count_done(const weft_dag_progress *progress, void *arg)
{
	(void)arg;
	told += progress->state == WEFT_DAG_DONE;
}

static int
look_whether_told(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	return told > 0 ? 0 : weft_fail(WEFT_EPROTO, "not told before");
}

TEST(progress_without_a_loop_is_reported_while_the_run_continues)
{
	const weft_dag_run_opts opts = { .on_progress = count_done };
	weft_dag *dag = graph();
	weft_dag_run *run;

	told = 0;
	weft_dag_add(dag, NODE("a", nothing));
	weft_dag_add(dag, NODE("b", nothing, .inputs = INPUTS("a")));
	weft_dag_add(dag, NODE("c", look_whether_told, .inputs = INPUTS("b")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(told, 3);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}
