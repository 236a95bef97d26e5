/* dag_bench.h - graphs of nearly empty nodes: the cost of scheduling.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   graph_begin()                  make an empty graph and its threads, on both cores
 *   graph_node()                   add a node that calls dag_add(); returns its index, from 0
 *   graph_edge(from, to)
 *   graph_ready()                  all nodes and edges have been added
 *   graph_run()                    run the graph once, to its end
 *
 * The rows are wall time per node; dag.diamond is wall time per graph of four nodes, from
 * start to end.  The waiting thread may run nodes.  Building the graph does not count.
 */
#ifdef __cplusplus
#include <atomic>
static std::atomic<uint64_t> dag_sum;

static inline void
dag_add(void)
{
	dag_sum.fetch_add(1, std::memory_order_relaxed);
}

static inline uint64_t
dag_take(void)
{
	return dag_sum.exchange(0);
}

#else
static uint64_t dag_sum;

static inline void
dag_add(void)
{
	__atomic_fetch_add(&dag_sum, 1, __ATOMIC_RELAXED);
}

static inline uint64_t
dag_take(void)
{
	return __atomic_exchange_n(&dag_sum, 0, __ATOMIC_RELAXED);
}
#endif

static void graph_begin(void);
static int graph_node(void);
static void graph_edge(int from, int to);
static void graph_ready(void);
static void graph_run(void);

enum {
	DAG_CHAIN = 100000,
	DAG_FAN = 100000,
	DAG_WIDTH = 100,
	DAG_LAYERS = 2000,
	DAG_DEGREE = 3,
	DAG_RUNS = 10,
	DAG_DIAMONDS = 200000
};

/* Wall time per run of the graph that was built. */
static double
dag_measure(int nodes, int runs)
{
	uint64_t begin;

	graph_ready();
	for (int i = 0; i < (runs > 100 ? runs / 10 : 5); i++)
		graph_run();
	(void)dag_take();
	begin = bench_wall_ns();
	for (int i = 0; i < runs; i++)
		graph_run();
	begin = bench_wall_ns() - begin;
	BENCH_CHECK(dag_take() == (uint64_t)nodes * (uint64_t)runs);
	return (double)begin / runs;
}

static double
dag_chain(void)
{
	graph_begin();
	(void)graph_node();
	for (int i = 1; i < DAG_CHAIN; i++)
		graph_edge(i - 1, graph_node());
	return dag_measure(DAG_CHAIN, DAG_RUNS) / DAG_CHAIN;
}

static double
dag_fan(void)
{
	int last;

	graph_begin();
	(void)graph_node();
	for (int i = 1; i <= DAG_FAN; i++)
		graph_edge(0, graph_node());
	last = graph_node();
	for (int i = 1; i <= DAG_FAN; i++)
		graph_edge(i, last);
	return dag_measure(DAG_FAN + 2, DAG_RUNS) / (DAG_FAN + 2);
}

static double
dag_layered(void)
{
	graph_begin();
	for (int i = 0; i < DAG_WIDTH * DAG_LAYERS; i++) {
		int node = graph_node(), layer = i / DAG_WIDTH;

		for (int k = 0; k < DAG_DEGREE && layer > 0; k++)
			graph_edge((layer - 1) * DAG_WIDTH
			                   + (i + k * 7) % DAG_WIDTH,
			           node);
	}
	return dag_measure(DAG_WIDTH * DAG_LAYERS, DAG_RUNS)
	       / (DAG_WIDTH * DAG_LAYERS);
}

static double
dag_diamond(void)
{
	graph_begin();
	for (int i = 0; i < 4; i++)
		(void)graph_node();
	graph_edge(0, 1);
	graph_edge(0, 2);
	graph_edge(1, 3);
	graph_edge(2, 3);
	return dag_measure(4, DAG_DIAMONDS);
}

static const struct bench_row dag_rows[] = {
	{ "dag.chain", dag_chain },
	{ "dag.fan", dag_fan },
	{ "dag.layered", dag_layered },
	{ "dag.diamond", dag_diamond },
};

BENCH_MAIN(dag_rows)
