/* dag_tbb.cc - oneTBB's flow graph: continue_nodes that are made once and run repeatedly. */
#include "bench.h"
#include <deque>
#include <oneapi/tbb/flow_graph.h>

using node = tbb::flow::continue_node<tbb::flow::continue_msg>;

static tbb::flow::graph *dag_graph;
static std::deque<node> dag_nodes;
static std::deque<bool> dag_has_source;

static void dag_add(void);

static void
graph_begin(void)
{
	bench_pin_both();
	dag_graph = new tbb::flow::graph;
}

static int
graph_node(void)
{
	dag_nodes.emplace_back(*dag_graph, [](const tbb::flow::continue_msg &) { dag_add(); });
	dag_has_source.push_back(false);
	return (int)dag_nodes.size() - 1;
}

static void
graph_edge(int from, int to)
{
	tbb::flow::make_edge(dag_nodes[from], dag_nodes[to]);
	dag_has_source[to] = true;
}

static void
graph_ready(void)
{
}

static void
graph_run(void)
{
	for (size_t i = 0; i < dag_nodes.size() && !dag_has_source[i]; i++)
		dag_nodes[i].try_put(tbb::flow::continue_msg());
	dag_graph->wait_for_all();
}

#include "dag_bench.h"
