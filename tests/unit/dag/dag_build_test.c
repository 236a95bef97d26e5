/* dag_build_test.c - templates: what is accepted, what is refused, and the error texts. */
#include <weft/dag.h>
#include "unit/dag/graph.h"

TEST(adding_a_node_or_input_returns_its_index)
{
	weft_dag *dag = graph();

	CHECK_EQ(weft_dag_add_input(dag, "a", NULL), 0);
	CHECK_EQ(weft_dag_add(dag, NODE("b", add_up)), 1);
	CHECK_EQ(weft_dag_add_input(dag, "c", &weft_type_integer), 2);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(NULL), 0);
}

TEST(a_name_can_be_used_only_once)
{
	weft_dag *dag = graph();

	CHECK_EQ(weft_dag_add(dag, NODE("a", add_up)), 0);
	CHECK_EQ(weft_dag_add(dag, NODE("a", add_up)), WEFT_EEXIST);
	CHECK_EQ(weft_dag_add_input(dag, "a", NULL), WEFT_EEXIST);
	CHECK_STR(weft_detail(), "weft_dag: a node or input named a already exists");
	CHECK_EQ(weft_dag_add(dag, NODE("", add_up)), WEFT_EINVAL);
	CHECK_EQ(weft_dag_add(dag, NODE(NULL, add_up)), WEFT_EINVAL);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(an_invalid_node_is_refused_and_named_in_the_error)
{
	weft_dag *dag = graph(), *other = graph();

	CHECK_EQ(weft_dag_add(dag, &(weft_dag_node){ .name = "x" }), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node x needs either a function or a subgraph, not both");
	CHECK_EQ(weft_dag_add(dag, NODE("x", add_up, .subgraph = other)), WEFT_EINVAL);
	CHECK_EQ(weft_dag_add(dag, NODE("x", add_up, .place = 7)), WEFT_EINVAL);
	CHECK_EQ(weft_dag_add(dag, NODE("x", add_up, .map = true)), WEFT_EINVAL);
	CHECK_EQ(weft_dag_add(dag, NODE("x", add_up, .retries = 70000)), WEFT_EINVAL);
	CHECK_EQ(weft_dag_add(dag, NODE("x", add_up, .fallback = weft_value_integer(1))),
	         WEFT_EINVAL);
	CHECK_EQ(weft_dag_add(dag, NODE("x", add_up, .optional = true, .type = &weft_type_integer,
	                                .fallback = weft_value_text("?"))),
	         WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node x has a fallback that is not of the node's output type");
	CHECK_EQ(weft_dag_free(other), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(an_undeclared_input_is_named_in_the_error)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", add_up, .inputs = INPUTS("b")));
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node a: there is no node or input named b");
	/* the missing node can still be added */
	CHECK_EQ(weft_dag_add(dag, NODE("b", add_up)), 1);
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_dag_add(dag, NODE("c", add_up)), WEFT_EBUSY);
	CHECK_EQ(weft_dag_add_input(dag, "c", NULL), WEFT_EBUSY);
	CHECK_EQ(weft_dag_set_limit(dag, "c", 1), WEFT_EBUSY);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_cycle_is_reported_with_its_path)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("start", add_up));
	weft_dag_add(dag, NODE("a", add_up, .inputs = INPUTS("start", "c")));
	weft_dag_add(dag, NODE("b", add_up, .inputs = INPUTS("a")));
	weft_dag_add(dag, NODE("c", add_up, .inputs = INPUTS("b")));
	weft_dag_add(dag, NODE("end", add_up, .inputs = INPUTS("c")));
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "graph: the nodes form a cycle: a -> b -> c -> a");
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_node_that_waits_for_itself_is_a_cycle)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", add_up, .inputs = INPUTS("a")));
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "graph: the nodes form a cycle: a -> a");
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_long_cycle_is_reported_in_part)
{
	weft_dag *dag = graph();
	char name[16], before[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "n%d", i);
		snprintf(before, sizeof before, "n%d", (i + 999) % 1000);
		weft_dag_add(dag, NODE(name, add_up, .inputs = INPUTS(before)));
	}
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK(strstr(weft_detail(), "n0 -> ... -> "));
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(mismatched_types_are_reported_with_both_names)
{
	static const weft_type *const text[] = { &weft_type_text };
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", add_up, .type = &weft_type_integer));
	weft_dag_add(dag, NODE("b", add_up, .inputs = INPUTS("a"), .input_types = text));
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node b expects its input a to be text, but it is integer");
	CHECK_EQ(weft_dag_free(dag), 0);

	dag = graph();
	weft_dag_add(dag, NODE("a", add_up));
	weft_dag_add(dag, NODE("b", add_up, .inputs = INPUTS("a"), .input_types = text));
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node b expects its input a to be text, but it is no value");
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_node_for_each_item_needs_a_list)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", add_up, .type = &weft_type_integer));
	weft_dag_add(dag, NODE("b", add_up, .inputs = INPUTS("a"), .map = true));
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node b runs for each item of a, which is not a list");
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_limit_must_be_declared)
{
	weft_dag *dag = graph();

	weft_dag_add(dag, NODE("a", add_up, .limit = "few"));
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(),
	          "node a: limit few is not declared; call weft_dag_set_limit() first");
	CHECK_MISUSE(weft_dag_set_limit(dag, "few", 0), WEFT_EINVAL);
	CHECK_EQ(weft_dag_set_limit(dag, "few", 2), 0);
	CHECK_EQ(weft_dag_set_limit(dag, "few", 3), 0);
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_template_has_at_most_16_priorities)
{
	weft_dag *dag = graph();
	char name[16];

	for (int i = 0; i < 17; i++) {
		snprintf(name, sizeof name, "n%d", i);
		weft_dag_add(dag, NODE(name, add_up, .priority = i * 3));
	}
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_EQ(weft_dag_free(dag), 0);
}

static weft_dag *
inner_graph(void)
{
	weft_dag *dag = graph();

	weft_dag_add_input(dag, "in", &weft_type_integer);
	weft_dag_add(dag, NODE("out", add_up, .inputs = INPUTS("in"), .type = &weft_type_integer));
	return dag;
}

TEST(a_subgraph_must_match_the_inputs_and_types_of_its_node)
{
	weft_dag *inner = inner_graph(), *dag = graph();

	weft_dag_add_input(dag, "x", &weft_type_text);
	weft_dag_add(dag,
	             &(weft_dag_node){ .name = "sub", .subgraph = inner, .inputs = INPUTS("x") });
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node sub: call weft_dag_check() for its graph graph first");
	CHECK_EQ(weft_dag_check(inner), 0);
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(),
	          "node sub passes input x as text to its graph, which expects integer");
	CHECK_EQ(weft_dag_free(dag), 0);

	dag = graph();
	weft_dag_add(dag, &(weft_dag_node){ .name = "sub", .subgraph = inner });
	CHECK_EQ(weft_dag_check(dag), WEFT_EINVAL);
	CHECK_STR(weft_detail(), "node sub has 0 inputs, but its graph graph expects 1");
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

TEST(a_template_cannot_be_freed_while_another_uses_it)
{
	weft_dag *inner = inner_graph(), *dag = graph();

	CHECK_EQ(weft_dag_check(inner), 0);
	weft_dag_add_input(dag, "x", &weft_type_integer);
	weft_dag_add(dag, &(weft_dag_node){ .name = "sub",
	                                    .subgraph = inner,
	                                    .type = &weft_type_integer,
	                                    .inputs = INPUTS("x") });
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_dag_free(inner), WEFT_EBUSY);
	CHECK_EQ(weft_dag_free(dag), 0);
	CHECK_EQ(weft_dag_free(inner), 0);
}

TEST(a_template_cannot_be_freed_while_a_run_uses_it)
{
	weft_dag *dag = inner_graph();
	struct weft_dag_stats stats;
	weft_dag_run *run;

	CHECK(!weft_dag_run_new(dag, NULL));
	CHECK_STR(weft_detail(),
	          "weft_dag_run_new: the graph is not checked; call weft_dag_check() first");
	CHECK_EQ(weft_dag_check(dag), 0);
	run = run_of(dag, NULL);
	CHECK_EQ(weft_dag_free(dag), WEFT_EBUSY);
	CHECK_EQ(weft_dag_stats(dag, &stats), 0);
	CHECK_EQ(stats.runs, 1);
	CHECK_EQ(stats.users, 1);
	weft_dag_run_free(run);
	weft_dag_run_free(NULL);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_template_can_be_written_for_graphviz)
{
	weft_dag *dag = inner_graph();
	weft_value text;

	CHECK_MISUSE(weft_dag_write(dag, WEFT_DAG_DOT, &text), WEFT_EINVAL);
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_dag_write(dag, WEFT_DAG_DOT, &text), 0);
	CHECK_STR(text.as.ptr, "digraph \"graph\" {\n\trankdir=LR;\n"
	                       "\t\"in\" [shape=oval];\n"
	                       "\t\"out\" [shape=box];\n"
	                       "\t\"in\" -> \"out\";\n}\n");
	weft_value_drop(&text);
	CHECK_MISUSE(weft_dag_write(dag, WEFT_DAG_TRACE, &text), WEFT_EINVAL);
	CHECK_EQ(weft_dag_free(dag), 0);
}

TEST(a_template_can_be_written_as_json_with_escaped_names)
{
	weft_dag *dag = weft_dag_new("quo\"te");
	weft_value text;

	weft_dag_add(dag, NODE("a\\b\n", add_up));
	CHECK_EQ(weft_dag_check(dag), 0);
	CHECK_EQ(weft_dag_write(dag, WEFT_DAG_JSON, &text), 0);
	CHECK_STR(text.as.ptr, "{\n\t\"name\": \"quo\\\"te\",\n\t\"nodes\": [\n"
	                       "\t\t{\"name\": \"a\\\\b\\u000a\", \"place\": \"cpu\", "
	                       "\"inputs\": []}\n\t]\n}\n");
	weft_value_drop(&text);
	CHECK_EQ(weft_dag_free(dag), 0);
}
