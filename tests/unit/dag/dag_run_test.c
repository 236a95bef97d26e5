/* dag_run_test.c - runs: values along edges, where steps run, failures and dependents.
 *
 * Each test of behavior runs twice: on a plain thread without a loop, which runs every step
 * itself, and from a threadlet, whose loop provides its pools.
 */
#include <pthread.h>
#include <weft/dag.h>
#include "unit/dag/graph.h"

static int
call_body(void *arg)
{
	void (*body)(void);

	memcpy(&body, arg, sizeof body);
	body();
	return 0;
}

#define TEST_BOTH(name)                           \
	static void body_##name(void);            \
	TEST(name)                                \
	{                                         \
		body_##name();                    \
	}                                         \
	TEST(name##_on_a_loop)                    \
	{                                         \
		void (*body)(void) = body_##name; \
		on_a_loop(call_body, &body);      \
	}                                         \
	static void body_##name(void)

static int one = 1, two = 2, three = 3;

/* --- values -------------------------------------------------------------- */

TEST_BOTH(values_go_along_the_edges_of_a_diamond)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, SUM("bottom", .inputs = INPUTS("left", "right")));
	weft_dag_add(dag, SUM("left", .inputs = INPUTS("top"), .arg = &two));
	weft_dag_add(dag, SUM("right", .inputs = INPUTS("top"), .arg = &three));
	weft_dag_add(dag, SUM("top", .inputs = INPUTS("in"), .arg = &one));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 100; i++) {
		run = run_of(dag, NULL);
		CHECK_EQ(weft_dag_run_set(run, "in", weft_value_integer(i)), 0);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		CHECK_EQ(integer_of(run, "top"), i + 1);
		CHECK_EQ(integer_of(run, "bottom"), 2 * i + 7);
		CHECK_EQ(integer_of(run, "in"), i);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EALREADY);
		CHECK_EQ(weft_dag_run_set(run, "in", weft_value_integer(1)), WEFT_EBUSY);
		weft_dag_run_free(run);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(an_empty_graph_ends_at_once)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(an_input_may_be_named_twice_and_may_be_unset)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	weft_dag_add_input(dag, "in", NULL);
	weft_dag_add(dag, SUM("a", .arg = &two));
	weft_dag_add(dag, SUM("b", .inputs = INPUTS("a", "a", "in")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "b"), 4);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(what_is_set_must_be_an_input_and_of_its_type)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, SUM("a", .inputs = INPUTS("in")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_set(run, "a", weft_value_text("x")), WEFT_ENOENT);
	CHECK_EQ(weft_dag_run_set(run, "none", weft_value_text("x")), WEFT_ENOENT);
	CHECK_EQ(weft_dag_run_set(run, "in", weft_value_text("x")), WEFT_EINVAL);
	CHECK_STR(weft_detail(),
	          "weft_dag_run_set: the value for input in is text, but must be integer");
	CHECK_EQ(weft_dag_run_get(run, "a", &value), WEFT_EBUSY);
	weft_dag_run_free(run); /* never started */
	CHECK_EQ(weft_dag_free(dag), 0);
}

static int
put_text(weft_dag_step *step, void *arg)
{
	(void)arg;
	CHECK_EQ(weft_dag_step_out(step, weft_value_text("old")), 0);
	return weft_dag_step_out(step, weft_value_text("text"));
}

/* A type whose values have exactly one owner. */
static int owners;

static void
drop_owned(void *ptr)
{
	(void)ptr;
	owners--;
}

static const weft_type owned = { .name = "owned", .drop = drop_owned };

static int
put_owned(weft_dag_step *step, void *arg)
{
	(void)arg;
	owners++;
	return weft_dag_step_out(step, weft_value_ptr(&owned, &owners));
}

static int
take_it(weft_dag_step *step, void *arg)
{
	weft_value value;
	int rc = weft_dag_step_take(step, 0, &value);

	(void)arg;
	if (rc == 0)
		weft_value_drop(&value);
	return rc;
}

TEST(calls_without_a_step_are_refused)
{
	weft_value value;

	CHECK_MISUSE(weft_dag_step_take(NULL, 0, &value), WEFT_EINVAL);
	CHECK_MISUSE(weft_dag_step_add(NULL, NULL), WEFT_EINVAL);
	CHECK_EQ(weft_dag_step_out(NULL, weft_value_text("x")), WEFT_EINVAL);
}

TEST_BOTH(a_value_with_one_follower_is_moved_to_it)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add(dag, NODE("a", put_owned, .type = &owned));
	weft_dag_add(dag, NODE("b", take_it, .inputs = INPUTS("a")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(owners, 0);
	CHECK_EQ(weft_dag_run_get(run, "a", &value), 0);
	CHECK(!value.type);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(a_value_with_several_followers_is_shared_if_it_can_be)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add(dag, NODE("a", put_text, .type = &weft_type_text));
	weft_dag_add(dag, NODE("b", take_it, .inputs = INPUTS("a")));
	weft_dag_add(dag, NODE("c", take_it, .inputs = INPUTS("a")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(weft_dag_run_get(run, "a", &value), 0);
	CHECK_STR(value.as.ptr, "text");
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);

	dag = graph();
	weft_dag_add(dag, NODE("a", put_owned, .type = &owned));
	weft_dag_add(dag, NODE("b", take_it, .inputs = INPUTS("a")));
	weft_dag_add(dag, NODE("c", take_it, .inputs = INPUTS("a")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPERM);
	weft_dag_run_free(run);
	CHECK_EQ(owners, 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(an_output_of_another_type_fails_the_node)
{
	weft_dag *dag = graph();
	weft_dag_run *run;

	weft_dag_add(dag, NODE("a", add_up, .type = &weft_type_text));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EINVAL);
	CHECK_STR(weft_detail(),
	          "node a: weft_dag_step_out: the value is integer, but the node's output type is "
	          "text");
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

/* --- failures ------------------------------------------------------------ */

static int error = WEFT_EPROTO;

TEST_BOTH(a_failure_ends_the_run_and_names_its_node)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	struct weft_dag_stats stats;
	weft_value value;

	weft_dag_add(dag, SUM("a", .arg = &one));
	weft_dag_add(dag, NODE("b", fail_with, .arg = &error, .inputs = INPUTS("a")));
	weft_dag_add(dag, SUM("c", .inputs = INPUTS("b")));
	weft_dag_add(dag, SUM("d", .inputs = INPUTS("c")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPROTO);
	CHECK_STR(weft_detail(), "node b: told to fail");
	CHECK_EQ(integer_of(run, "a"), 1);
	CHECK_EQ(weft_dag_run_get(run, "b", &value), WEFT_EPROTO);
	CHECK_EQ(weft_dag_run_get(run, "c", &value), WEFT_ECANCELED);
	CHECK_EQ(weft_dag_run_get(run, "d", &value), WEFT_ECANCELED);
	CHECK_EQ(weft_dag_run_get(run, "e", &value), WEFT_ENOENT);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_stats(dag, &stats), 0);
	CHECK_EQ(stats.failed, 1);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(with_collected_errors_all_that_is_not_behind_one_runs)
{
	const weft_dag_run_opts opts = { .collect_errors = true };
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add(dag, NODE("bad", fail_with, .arg = &error));
	weft_dag_add(dag, SUM("behind", .inputs = INPUTS("bad", "good")));
	weft_dag_add(dag, SUM("good", .inputs = INPUTS("first")));
	weft_dag_add(dag, SUM("after", .inputs = INPUTS("good")));
	weft_dag_add(dag, SUM("first", .arg = &two));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(integer_of(run, "after"), 2);
	CHECK_EQ(weft_dag_run_get(run, "behind", &value), WEFT_ECANCELED);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(an_optional_node_that_fails_yields_its_fallback)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add(dag, NODE("bad", fail_with, .arg = &error, .type = &weft_type_integer,
	                       .optional = true, .fallback = weft_value_integer(40)));
	weft_dag_add(dag, NODE("text", fail_with, .arg = &error, .type = &weft_type_text,
	                       .optional = true, .fallback = weft_value_text("none")));
	weft_dag_add(dag, NODE("nothing", fail_with, .arg = &error, .optional = true));
	weft_dag_add(dag, SUM("after", .arg = &two, .inputs = INPUTS("bad", "text", "nothing")));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 3; i++) {
		run = run_of(dag, NULL);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		CHECK_EQ(integer_of(run, "after"), 42);
		CHECK_EQ(weft_dag_run_get(run, "text", &value), 0);
		CHECK_STR(value.as.ptr, "none");
		CHECK_EQ(weft_dag_run_get(run, "nothing", &value), 0);
		CHECK(!value.type);
		weft_dag_run_free(run);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
}

/* Fails in the first *arg attempts. */
static int
fail_at_first(weft_dag_step *step, void *arg)
{
	uint32_t attempt = weft_dag_step_attempt(step);

	if (attempt < (uint32_t) * (const int *)arg)
		return WEFT_EAGAIN;
	return weft_dag_step_out(step, weft_value_integer(attempt));
}

TEST_BOTH(a_node_is_tried_again_as_often_as_allowed)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	struct weft_dag_stats stats;
	weft_value value;

	weft_dag_add(dag, NODE("a", fail_at_first, .arg = &three, .type = &weft_type_integer,
	                       .retries = 3));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "a"), 3);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_stats(dag, &stats), 0);
	CHECK_EQ(stats.retries, 3);
	CHECK_EQ(weft_dag_free(dag), 0);

	dag = graph();
	weft_dag_add(dag, NODE("a", fail_at_first, .arg = &three, .type = &weft_type_integer,
	                       .retries = 2));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EAGAIN);
	CHECK_EQ(weft_dag_run_get(run, "a", &value), WEFT_EAGAIN);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static bool
is_odd(weft_dag_step *step, void *arg)
{
	(void)arg;
	return weft_dag_step_in(step, 0)->as.integer % 2;
}

TEST_BOTH(a_node_whose_condition_says_no_is_skipped_and_others_go_on)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, SUM("odd", .inputs = INPUTS("in"), .condition = is_odd));
	weft_dag_add(dag, SUM("after", .arg = &one, .inputs = INPUTS("odd")));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 2; i++) {
		run = run_of(dag, NULL);
		weft_dag_run_set(run, "in", weft_value_integer(i));
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		CHECK_EQ(weft_dag_run_get(run, "odd", &value), i ? 0 : WEFT_ENOENT);
		CHECK_EQ(integer_of(run, "after"), i + 1);
		weft_dag_run_free(run);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
}

/* --- groups -------------------------------------------------------------- */

static int
square(weft_dag_step *step, void *arg)
{
	int64_t in = weft_dag_step_in(step, 0)->as.integer;
	const weft_value *other = weft_dag_step_in(step, 1);

	(void)arg;
	if (in == 13)
		return weft_fail(WEFT_EPROTO, "unlucky");
	return weft_dag_step_out(
		step, weft_value_integer(in * in + (other->type ? other->as.integer : 0)));
}

static weft_value
numbers(int count)
{
	weft_value items[1000];

	for (int i = 0; i < count; i++)
		items[i] = weft_value_integer(i);
	return weft_value_list(items, (size_t)count);
}

static weft_dag *
squares(weft_dag_place place)
{
	weft_dag *dag = graph();

	weft_dag_add_input(dag, "list", &weft_type_list);
	weft_dag_add_input(dag, "more", &weft_type_integer);
	weft_dag_add(dag, NODE("square", square, .map = true, .inputs = INPUTS("list", "more"),
	                       .type = &weft_type_integer, .place = place));
	weft_dag_add(dag, NODE("copy", take_it, .inputs = INPUTS("square")));
	CHECK_EQ(weft_dag_check(dag), 0);
	return dag;
}

static int
run_squares(weft_dag *dag, int count)
{
	weft_dag_run *run = run_of(dag, NULL);
	weft_value value;
	int rc;

	CHECK_EQ(weft_dag_run_set(run, "list", numbers(count)), 0);
	CHECK_EQ(weft_dag_run_set(run, "more", weft_value_integer(5)), 0);
	rc = weft_dag_run_wait(run, WEFT_NEVER);
	if (rc < 0)
		CHECK_STR(weft_detail(), "node square[13]: unlucky");
	else
		CHECK_EQ(weft_dag_run_get(run, "square", &value), 0);
	weft_dag_run_free(run);
	return rc;
}

TEST_BOTH(a_node_for_each_item_runs_as_often_as_there_are_items)
{
	weft_dag *dag = squares(WEFT_DAG_CPU);

	CHECK_EQ(run_squares(dag, 0), 0);
	CHECK_EQ(run_squares(dag, 1), 0);
	CHECK_EQ(run_squares(dag, 12), 0);
	CHECK_EQ(run_squares(dag, 1000), WEFT_EPROTO);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(what_items_put_out_is_a_list_in_their_order)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	const weft_list *list;
	weft_value value;

	weft_dag_add_input(dag, "list", &weft_type_list);
	weft_dag_add(dag, NODE("square", square, .map = true, .inputs = INPUTS("list"),
	                       .type = &weft_type_integer));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_set(run, "list", numbers(13)), 0);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(weft_dag_run_get(run, "square", &value), 0);
	list = value.as.ptr;
	CHECK_EQ(list->count, 13);
	for (int i = 0; i < 13; i++)
		CHECK_EQ(list->items[i].as.integer, i * i);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static weft_dag *
add_two(void)
{
	weft_dag *dag = graph();

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, SUM("one", .arg = &one, .inputs = INPUTS("in")));
	weft_dag_add(dag, SUM("two", .arg = &one, .inputs = INPUTS("one")));
	CHECK_EQ(weft_dag_check(dag), 0);
	return dag;
}

TEST_BOTH(a_graph_can_be_a_node_of_another_and_for_each_item)
{
	weft_dag *inner = add_two(), *dag = graph();
	weft_dag_run *run;
	weft_value value;

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add_input(dag, "list", &weft_type_list);
	weft_dag_add(dag, &(weft_dag_node){ .name = "first",
	                                    .subgraph = inner,
	                                    .type = &weft_type_integer,
	                                    .inputs = INPUTS("in") });
	weft_dag_add(dag, &(weft_dag_node){ .name = "again",
	                                    .subgraph = inner,
	                                    .type = &weft_type_integer,
	                                    .inputs = INPUTS("first") });
	weft_dag_add(dag, &(weft_dag_node){ .name = "all",
	                                    .subgraph = inner,
	                                    .type = &weft_type_integer,
	                                    .map = true,
	                                    .inputs = INPUTS("list") });
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	weft_dag_run_set(run, "in", weft_value_integer(1));
	weft_dag_run_set(run, "list", numbers(100));
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "again"), 5);
	CHECK_EQ(weft_dag_run_get(run, "all", &value), 0);
	CHECK_EQ(((weft_list *)value.as.ptr)->items[99].as.integer, 101);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

TEST_BOTH(a_failure_inside_of_an_optional_graph_stays_there)
{
	weft_dag *inner = graph(), *dag = graph();
	weft_dag_run *run;

	weft_dag_add(inner, NODE("bad", fail_with, .arg = &error));
	weft_dag_add(inner, SUM("never", .inputs = INPUTS("bad")));
	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add(dag, &(weft_dag_node){ .name = "sub",
	                                    .subgraph = inner,
	                                    .type = &weft_type_integer,
	                                    .optional = true,
	                                    .retries = 2,
	                                    .fallback = weft_value_integer(6) });
	weft_dag_add(dag, SUM("after", .inputs = INPUTS("sub"), .arg = &one));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "after"), 7);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

/* Add a chain of nodes, and a last node that sums up the end of the chain and the input. */
static int
add_nodes(weft_dag_step *step, void *arg)
{
	char name[24], before[24] = "grow";
	int count = *(const int *)arg;

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof name, "added%d", i);
		CHECK_EQ(weft_dag_step_add(step, SUM(name, .arg = &one, .inputs = INPUTS(before))),
		         0);
		memcpy(before, name, sizeof before);
	}
	CHECK_EQ(weft_dag_step_add(step, SUM("added0")), WEFT_EEXIST);
	CHECK_EQ(weft_dag_step_add(step, SUM("after")), WEFT_EEXIST);
	CHECK_EQ(weft_dag_step_add(step, SUM("x", .inputs = INPUTS("after"))), WEFT_EINVAL);
	CHECK_EQ(weft_dag_step_add(step, SUM("x", .limit = "none")), WEFT_EINVAL);
	CHECK_EQ(weft_dag_step_add(step, SUM("last", .inputs = INPUTS(before, "in"))), 0);
	return weft_dag_step_out(step, weft_value_integer(10));
}

TEST_BOTH(a_step_can_add_nodes_which_its_followers_wait_for)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	static int count = 50;

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, NODE("grow", add_nodes, .arg = &count, .inputs = INPUTS("in"),
	                       .type = &weft_type_integer));
	weft_dag_add(dag, SUM("after", .inputs = INPUTS("grow")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	weft_dag_run_set(run, "in", weft_value_integer(1000));
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	CHECK_EQ(integer_of(run, "last"), 1060);
	CHECK_EQ(integer_of(run, "after"), 10);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

/* --- progress and output ------------------------------------------------- */

struct seen {
	int started, done, failed, skipped, retrying, dropped;
	uint32_t last_done, total;
};

static void
on_progress(const weft_dag_progress *progress, void *arg)
{
	struct seen *seen = arg;

	seen->started += progress->state == WEFT_DAG_STARTED;
	seen->done += progress->state == WEFT_DAG_DONE;
	seen->failed += progress->state == WEFT_DAG_FAILED;
	seen->skipped += progress->state == WEFT_DAG_SKIPPED;
	seen->retrying += progress->state == WEFT_DAG_RETRYING;
	if (progress->state == WEFT_DAG_RETRYING)
		CHECK_EQ(progress->error, WEFT_EPROTO);
	if (progress->state == WEFT_DAG_STARTED)
		CHECK_EQ(progress->error, 0);
	seen->dropped += progress->state == WEFT_DAG_DROPPED;
	seen->last_done = progress->done;
	seen->total = progress->total;
}

TEST_BOTH(progress_tells_of_every_change_before_the_run_has_ended)
{
	struct seen seen = { 0 };
	weft_dag_run_opts opts = { .on_progress = on_progress, .arg = &seen };
	weft_dag *dag = graph();
	weft_dag_run *run;

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, SUM("a", .inputs = INPUTS("in")));
	weft_dag_add(dag, SUM("b", .inputs = INPUTS("a"), .condition = is_odd));
	weft_dag_add(dag, NODE("c", fail_with, .arg = &error, .inputs = INPUTS("b"), .retries = 2));
	weft_dag_add(dag, SUM("d", .inputs = INPUTS("c")));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	weft_dag_run_set(run, "in", weft_value_integer(2));
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(seen.started, 5);
	CHECK_EQ(seen.done, 1);
	CHECK_EQ(seen.skipped, 1);
	CHECK_EQ(seen.retrying, 2);
	CHECK_EQ(seen.failed, 1);
	CHECK_EQ(seen.dropped, 1);
	CHECK_EQ(seen.last_done, 4);
	CHECK_EQ(seen.total, 4);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST_BOTH(a_run_is_written_with_its_states_and_times)
{
	const weft_dag_run_opts opts = { .trace = true };
	weft_dag *dag = graph();
	weft_dag_run *run;
	weft_value text;

	weft_dag_add(dag, SUM("a"));
	weft_dag_add(dag, NODE("b", fail_with, .arg = &error, .inputs = INPUTS("a")));
	weft_dag_add(dag, SUM("c", .inputs = INPUTS("b"), .optional = true));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(weft_dag_run_write(run, WEFT_DAG_DOT, &text), 0);
	CHECK(strstr(text.as.ptr, "\"b\" [shape=box, style=filled, fillcolor=salmon];"));
	weft_value_drop(&text);
	CHECK_EQ(weft_dag_run_write(run, WEFT_DAG_JSON, &text), 0);
	CHECK(strstr(text.as.ptr, "\"outcome\": \"WEFT_EPROTO\""));
	CHECK(strstr(text.as.ptr, "\"state\": \"dropped\""));
	weft_value_drop(&text);
	CHECK_EQ(weft_dag_run_write(run, WEFT_DAG_TRACE, &text), 0);
	CHECK(strstr(text.as.ptr, "\"name\": \"a\", \"cat\": \"cpu\""));
	CHECK(!strstr(text.as.ptr, "\"name\": \"c\""));
	weft_value_drop(&text);
	weft_dag_run_free(run);

	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), WEFT_EPROTO);
	CHECK_EQ(weft_dag_run_write(run, WEFT_DAG_TRACE, &text), WEFT_EINVAL);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static int
look_around(weft_dag_step *step, void *arg)
{
	weft_dag_run *run = weft_dag_step_run(step);

	(void)arg;
	CHECK_STR(weft_dag_run_context(run), "context");
	CHECK(!weft_dag_step_in(step, 0)->type);
	CHECK_EQ(weft_dag_step_deadline(step), WEFT_NEVER);
	return 0;
}

TEST_BOTH(a_step_knows_its_run_and_what_the_caller_gave_it)
{
	static char context[] = "context";
	const weft_dag_run_opts opts = { .context = context };
	weft_dag *dag = graph();
	weft_dag_run *run;

	weft_dag_add(dag, NODE("a", look_around));
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, &opts);
	CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
	weft_dag_run_free(run);
	CHECK_EQ(weft_dag_free(dag), 0);
}

/* --- order --------------------------------------------------------------- */

static char order[64];

static int
note_order(weft_dag_step *step, void *arg)
{
	(void)step;
	order[strlen(order)] = *(const char *)arg;
	return 0;
}

TEST(ready_nodes_with_a_higher_priority_run_first)
{
	weft_dag *dag = graph();
	weft_dag_run *run;
	static char names[5][2] = { "a", "b", "c", "d", "e" };
	static const int priorities[] = { -5, 7, 0, 100, 7 };

	for (int i = 0; i < 5; i++)
		weft_dag_add(dag, NODE(names[i], note_order, .arg = names[i],
		                       .priority = priorities[i]));
	CHECK_EQ(weft_dag_check(dag), 0);
	for (int i = 0; i < 10; i++) {
		memset(order, 0, sizeof order);
		run = run_of(dag, NULL);
		CHECK_EQ(weft_dag_run_wait(run, WEFT_NEVER), 0);
		CHECK_STR(order, "dbeca");
		weft_dag_run_free(run);
	}
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_run_without_a_loop_refuses_nodes_that_need_one)
{
	static const weft_dag_node nodes[] = {
		{ .name = "a", .fn = add_up, .place = WEFT_DAG_LOOP },
		{ .name = "a", .fn = add_up, .timeout_ns = 1 },
		{ .name = "a", .fn = add_up, .retries = 1, .backoff_ns = 1 },
		{ .name = "a", .fn = add_up, .place = WEFT_DAG_BLOCKING },
	};

	for (int i = 0; i < 4; i++) {
		weft_dag *dag = graph();

		weft_dag_add(dag, &nodes[i]);
		CHECK_EQ(weft_dag_check(dag), 0);
		CHECK(!weft_dag_run_new(dag, NULL));
		CHECK_EQ(weft_dag_free(dag), 0);
	}
}
