/* dag_weft.c - one template; each run is made and freed. */
#include "bench.h"
#include <weft/dag.h>

enum { DAG_INPUTS_MAX = 100001 };

static int dag_nodes, dag_edges;
static int (*dag_pairs)[2];

static void dag_add(void);

static void
graph_begin(void)
{
	bench_pin_both();
	dag_pairs = bench_array(1000000, sizeof(*dag_pairs));
}

static int
graph_node(void)
{
	return dag_nodes++;
}

static void
graph_edge(int from, int to)
{
	dag_pairs[dag_edges][0] = from;
	dag_pairs[dag_edges++][1] = to;
}

static int
dag_body(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	dag_add();
	return 0;
}

static weft_dag *dag_template;
static weft_pool *dag_pool;

/* Its inputs are the sources of all edges that lead to it. */
static void
add_node(int node, const int *first, const int *next, const char **inputs)
{
	static char names[DAG_INPUTS_MAX][16];
	char name[16];
	int count = 0;

	for (int e = first[node]; e >= 0; e = next[e]) {
		(void)snprintf(names[count], sizeof(names[count]), "%d", dag_pairs[e][0]);
		inputs[count] = names[count];
		count++;
	}
	inputs[count] = NULL;
	(void)snprintf(name, sizeof(name), "%d", node);
	BENCH_CHECK(weft_dag_add(dag_template,
	                         &(weft_dag_node){ .name = name, .fn = dag_body, .inputs = inputs })
	            >= 0);
}

static void
graph_ready(void)
{
	static const char *inputs[DAG_INPUTS_MAX + 1];
	int *first = bench_array((size_t)dag_nodes, sizeof(*first));
	int *next = bench_array((size_t)dag_edges + 1, sizeof(*next));

	dag_pool = weft_pool_new(NULL);
	dag_template = weft_dag_new("bench");
	for (int i = 0; i < dag_nodes; i++)
		first[i] = -1;
	for (int e = 0; e < dag_edges; e++) {
		next[e] = first[dag_pairs[e][1]];
		first[dag_pairs[e][1]] = e;
	}
	for (int i = 0; i < dag_nodes; i++)
		add_node(i, first, next, inputs);
	BENCH_CHECK(weft_dag_check(dag_template) == 0);
	free(first);
	free(next);
}

static void
graph_run(void)
{
	const weft_dag_run_opts opts = { .cpu = dag_pool };
	weft_dag_run *run = weft_dag_run_new(dag_template, &opts);

	BENCH_CHECK(run && weft_dag_run_wait(run, WEFT_NEVER) == 0);
	weft_dag_run_free(run);
}

#include "dag_bench.h"
