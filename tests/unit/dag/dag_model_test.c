/* dag_model_test.c - random graphs, compared with a model that predicts each node's end.
 *
 * Nodes fail a random number of times, are optional, skipped, retried, and run anywhere.  With
 * collected errors the outcome of each node is determined, whatever the order.  With the first
 * failure, or a cancel at any point, the test checks that each node begins after all its inputs
 * have ended, once per attempt, and never after the end of the run.
 */
#include <pthread.h>
#include <sched.h>
#include <weft/dag.h>
#include "base/atomic.h"
#include "unit/dag/graph.h"

enum { NODES_MAX = 40, INPUTS_MAX = 4, FALLBACK = 1000000 };

struct node {
	char name[16];
	int inputs[INPUTS_MAX];
	int input_count;
	uint32_t fails; /* the number of attempts that fail, from the first on */
	uint32_t retries;
	bool optional, skipped;
	weft_dag_place place;
	struct world *world;
	int index;
	/* Of one run. */
	weft__a32 attempts, ended;
	/* Predicted by the model. */
	weft_dag_state state;
	int64_t value;
	uint32_t expected;
};

struct world {
	struct node nodes[NODES_MAX];
	int count;
	bool elsewhere; /* nodes run on loops and pools, too */
	weft__a32 steps, stop_after;
	weft__a32 over;
	weft_dag *dag;
	weft_dag_run *run;
};

/* --- a node -------------------------------------------------------------- */

static void
check_inputs(const struct node *node)
{
	CHECK(!weft__load(&node->world->over, WEFT__RELAXED));
	for (int i = 0; i < node->input_count; i++)
		CHECK(weft__load(&node->world->nodes[node->inputs[i]].ended, WEFT__RELAXED));
}

static int
work(weft_dag_step *step, void *arg)
{
	struct node *node = arg;
	struct world *world = node->world;
	uint32_t attempt = weft__add(&node->attempts, 1, WEFT__RELAXED);
	int64_t sum = node->index;

	check_inputs(node);
	CHECK_EQ(attempt, weft_dag_step_attempt(step));
	CHECK(attempt <= node->retries);
	if (weft__add(&world->steps, 1, WEFT__RELAXED)
	    == weft__load(&world->stop_after, WEFT__RELAXED))
		weft_dag_run_cancel(world->run);
	if (node->place == WEFT_DAG_LOOP && attempt % 2 == 0)
		(void)weft_sleep_until(weft_after(WEFT_US * 20));
	for (int i = 0; i < node->input_count; i++) {
		const weft_value *in = weft_dag_step_in(step, (size_t)i);

		if (in->type)
			sum += in->as.integer;
	}
	if (attempt == node->retries || attempt == node->fails)
		weft__store(&node->ended, 1, WEFT__RELAXED);
	if (attempt < node->fails)
		return WEFT_EPROTO;
	return weft_dag_step_out(step, weft_value_integer(sum));
}

static bool
is_wanted(weft_dag_step *step, void *arg)
{
	struct node *node = arg;

	(void)step;
	check_inputs(node);
	if (node->skipped)
		weft__store(&node->ended, 1, WEFT__RELAXED);
	return !node->skipped;
}

/* --- random graphs ------------------------------------------------------- */

static void
draw_node(struct world *world, int index, uint64_t *random)
{
	struct node *node = &world->nodes[index];

	*node = (struct node){ .index = index, .world = world };
	snprintf(node->name, sizeof node->name, "n%d", index);
	if (index > 0)
		node->input_count = (int)(test_random(random) % INPUTS_MAX);
	for (int i = 0; i < node->input_count; i++)
		node->inputs[i] = (int)(test_random(random) % (uint64_t)index);
	node->retries = test_random(random) % 4 ? 0 : test_random(random) % 3;
	node->fails = test_random(random) % 5 ? 0 : test_random(random) % 4;
	node->optional = test_random(random) % 2;
	node->skipped = test_random(random) % 8 == 0;
	if (world->elsewhere)
		node->place = (weft_dag_place)(test_random(random) % 3);
}

static void
add_node(struct world *world, struct node *node)
{
	const char *inputs[INPUTS_MAX + 1] = { 0 };
	weft_dag_node set = { .name = node->name,
		              .fn = work,
		              .arg = node,
		              .inputs = inputs,
		              .type = &weft_type_integer,
		              .condition = is_wanted,
		              .retries = node->retries,
		              .place = node->place,
		              .optional = node->optional };

	for (int i = 0; i < node->input_count; i++)
		inputs[i] = world->nodes[node->inputs[i]].name;
	if (node->optional)
		set.fallback = weft_value_integer(FALLBACK);
	if (node->retries > 1 && world->elsewhere)
		set.backoff_ns = 10 * WEFT_US;
	CHECK(weft_dag_add(world->dag, &set) >= 0);
}

static void
draw(struct world *world, bool elsewhere, uint64_t *random)
{
	world->count = 1 + (int)(test_random(random) % (NODES_MAX - 1));
	world->elsewhere = elsewhere;
	world->dag = graph();
	for (int i = 0; i < world->count; i++)
		draw_node(world, i, random);
	for (int i = world->count - 1; i >= 0; i--)
		add_node(world, &world->nodes[i]);
	CHECK_EQ(weft_dag_check(world->dag), 0);
}

/* --- the model ----------------------------------------------------------- */

static void
predict(struct world *world)
{
	for (int i = 0; i < world->count; i++) {
		struct node *node = &world->nodes[i];
		bool dropped = false;

		node->value = node->index;
		for (int k = 0; k < node->input_count; k++) {
			struct node *in = &world->nodes[node->inputs[k]];

			dropped |= in->state == WEFT_DAG_FAILED || in->state == WEFT_DAG_DROPPED;
			node->value += in->value;
		}
		node->expected = 0;
		if (dropped || node->skipped) {
			node->state = dropped ? WEFT_DAG_DROPPED : WEFT_DAG_SKIPPED;
			node->value = 0;
			continue;
		}
		node->state = WEFT_DAG_DONE;
		node->expected = 1 + (node->fails < node->retries ? node->fails : node->retries);
		if (node->fails <= node->retries)
			continue;
		node->value = node->optional ? FALLBACK : 0;
		if (!node->optional)
			node->state = WEFT_DAG_FAILED;
	}
}

static void
check_outcome(struct world *world, int rc)
{
	bool failed = false;

	for (int i = 0; i < world->count; i++) {
		struct node *node = &world->nodes[i];
		weft_value value = { 0 };
		int got = weft_dag_run_get(world->run, node->name, &value);

		CHECK_EQ(weft__load(&node->attempts, WEFT__RELAXED), node->expected);
		switch (node->state) {
		case WEFT_DAG_DONE:
			CHECK_EQ(got, 0);
			CHECK_EQ(value.as.integer, node->value);
			break;
		case WEFT_DAG_SKIPPED:
			CHECK_EQ(got, WEFT_ENOENT);
			break;
		case WEFT_DAG_FAILED:
			CHECK_EQ(got, WEFT_EPROTO);
			failed = true;
			break;
		default:
			CHECK_EQ(got, WEFT_ECANCELED);
			break;
		}
	}
	CHECK_EQ(rc, failed ? WEFT_EPROTO : 0);
}

/* --- runs ---------------------------------------------------------------- */

static int
run_world(struct world *world, const weft_dag_run_opts *opts)
{
	int rc;

	for (int i = 0; i < world->count; i++) {
		weft__store(&world->nodes[i].attempts, 0, WEFT__RELAXED);
		weft__store(&world->nodes[i].ended, 0, WEFT__RELAXED);
	}
	weft__store(&world->steps, 0, WEFT__RELAXED);
	weft__store(&world->over, 0, WEFT__RELAXED);
	world->run = run_of(world->dag, opts);
	rc = weft_dag_run_wait(world->run, WEFT_NEVER);
	weft__store(&world->over, 1, WEFT__RELAXED);
	return rc;
}

/* Run one graph in all ways in which a run can end. */
static void
run_all_ways(struct world *world, weft_pool *pool, uint64_t *random)
{
	weft_dag_run_opts opts = { .cpu = pool, .collect_errors = true };
	int rc;

	weft__store(&world->stop_after, UINT32_MAX, WEFT__RELAXED);
	predict(world);
	for (int i = 0; i < 3; i++) {
		check_outcome(world, run_world(world, &opts));
		weft_dag_run_free(world->run);
	}
	opts.collect_errors = false;
	rc = run_world(world, &opts);
	CHECK(rc == 0 || rc == WEFT_EPROTO);
	weft_dag_run_free(world->run);
	weft__store(&world->stop_after, (uint32_t)(test_random(random) % (uint64_t)world->count),
	            WEFT__RELAXED);
	rc = run_world(world, &opts);
	CHECK(rc == 0 || rc == WEFT_EPROTO || rc == WEFT_ECANCELED);
	weft_dag_run_free(world->run);
}

static void
run_worlds(int count, bool elsewhere, weft_pool *pool)
{
	static struct world world;
	uint64_t random = test_seed();

	for (int i = 0; i < count; i++) {
		draw(&world, elsewhere, &random);
		run_all_ways(&world, pool, &random);
		CHECK_EQ(weft_dag_free(world.dag), 0);
	}
}

TEST(runs_on_a_single_thread_match_the_model)
{
	run_worlds(2000, false, NULL);
}

TEST(runs_on_a_thread_and_a_pool_match_the_model)
{
	weft_pool *pool = weft_pool_new(&(weft_pool_opts){ .threads_max = 3 });

	run_worlds(1000, false, pool);
	CHECK_EQ(weft_pool_free(pool), 0);
}

static int
worlds_on_loop(void *arg)
{
	(void)arg;
	run_worlds(500, true, NULL);
	return 0;
}

TEST(runs_on_a_loop_and_its_pools_match_the_model)
{
	on_a_loop(worlds_on_loop, NULL);
}
