/* graph.h - helpers for the tests of graphs: short ways to build and run a graph. */
#ifndef WEFT_TESTS_GRAPH_H
#define WEFT_TESTS_GRAPH_H

#include <weft/dag.h>
#include "test.h"

#define INPUTS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NODE(name_, fn_, ...) \
	(&(weft_dag_node){ .name = (name_), .fn = (fn_), ##__VA_ARGS__ })
#define SUM(name_, ...) NODE(name_, add_up, .type = &weft_type_integer, ##__VA_ARGS__)

static inline weft_dag *
graph(void)
{
	weft_dag *dag = weft_dag_new("graph");

	CHECK(dag);
	return dag;
}

/* A new run of a checked template.  The caller frees it. */
static inline weft_dag_run *
run_of(weft_dag *dag, const weft_dag_run_opts *opts)
{
	weft_dag_run *run = weft_dag_run_new(dag, opts);

	CHECK(run);
	return run;
}

static inline int64_t
integer_of(weft_dag_run *run, const char *node)
{
	weft_value value;

	CHECK_EQ(weft_dag_run_get(run, node, &value), 0);
	CHECK(value.type == &weft_type_integer);
	return value.as.integer;
}

/* A node whose output is the sum of its inputs and of *arg, unless `arg` is NULL. */
static inline int
add_up(weft_dag_step *step, void *arg)
{
	int64_t sum = arg ? *(const int *)arg : 0;

	for (size_t i = 0; i < 8; i++) {
		const weft_value *in = weft_dag_step_in(step, i);

		if (in->type == &weft_type_integer)
			sum += in->as.integer;
	}
	return weft_dag_step_out(step, weft_value_integer(sum));
}

/* A node that fails with *arg. */
static inline int
fail_with(weft_dag_step *step, void *arg)
{
	(void)step;
	return weft_fail(*(const int *)arg, "told to fail");
}

/* Run `fn` as the only threadlet of a new loop, until the loop ends. */
static inline void
on_a_loop(weft_threadlet_fn fn, void *arg)
{
	weft_loop *loop = weft_loop_new(NULL);
	const weft_go_opts opts = { .loop = loop };

	CHECK(loop);
	CHECK(weft_go_with(&opts, fn, arg) > 0);
	CHECK_EQ(weft_loop_run(loop), 0);
	CHECK_EQ(weft_loop_free(loop), 0);
}

#endif
