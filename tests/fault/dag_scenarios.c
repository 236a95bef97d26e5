/* dag_scenarios.c - a graph with steps of every kind, built and run on a loop.
 *
 * Whatever fails, a run has exactly one outcome.  It is an error only if a fault was injected
 * that the run depends on, and the run leaves nothing behind.  After the fault is healed, the
 * same graph runs.
 */
#include <weft/dag.h>
#include <weft/weft.h>
#include "fault.h"
#include "scenarios.h"

#define INPUTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct state {
	weft_op op;
	int64_t result;
	int left;
};

static int
count_up(weft_dag_step *step, void *arg)
{
	int64_t sum = 1;

	(void)arg;
	for (size_t i = 0; i < 4; i++) {
		const weft_value *in = weft_dag_step_in(step, i);

		if (in->type == &weft_type_integer)
			sum += in->as.integer;
	}
	return weft_dag_step_out(step, weft_value_integer(sum));
}

static int
nap(weft_dag_step *step, void *arg)
{
	int rc = weft_sleep_until(weft_after(WEFT_US));

	return rc < 0 ? rc : count_up(step, arg);
}

static int
make_list(weft_dag_step *step, void *arg)
{
	weft_value items[] = { weft_value_integer(1), weft_value_text("two") };

	(void)arg;
	if (items[1].type == &weft_type_error)
		return (int)items[1].as.integer;
	return weft_dag_step_out(step, weft_value_list(items, 2));
}

/* Adds a node that depends on this one. */
static int
grow(weft_dag_step *step, void *arg)
{
	const weft_dag_node node = { .name = "grown",
		                     .fn = count_up,
		                     .inputs = INPUTS("grow", "list"),
		                     .type = &weft_type_integer };
	int rc = weft_dag_step_add(step, &node);

	return rc < 0 ? rc : count_up(step, arg);
}

static int
fail_once(weft_dag_step *step, void *arg)
{
	return weft_dag_step_attempt(step) ? count_up(step, arg) : weft_fail(WEFT_EAGAIN, "once");
}

static const weft_dag_node nodes[] = {
	{ .name = "list", .fn = make_list, .type = &weft_type_list },
	{ .name = "nap",
	  .fn = nap,
	  .place = WEFT_DAG_LOOP,
	  .type = &weft_type_integer,
	  .timeout_ns = 60 * WEFT_S },
	{ .name = "each", .fn = count_up, .map = true, .limit = "one", .type = &weft_type_integer },
	{ .name = "grow", .fn = grow, .type = &weft_type_integer },
	{ .name = "again",
	  .fn = fail_once,
	  .retries = 1,
	  .backoff_ns = 1,
	  .type = &weft_type_integer },
	{ .name = "block",
	  .fn = count_up,
	  .place = WEFT_DAG_BLOCKING,
	  .timeout_ns = 60 * WEFT_S,
	  .type = &weft_type_integer },
};

static const char *const *const inputs[] = {
	NULL, NULL, INPUTS("list"), INPUTS("list"), INPUTS("nap", "grow"), INPUTS("again", "grow"),
};

static weft_dag *
make_inner(void)
{
	weft_dag *dag = weft_dag_new("inner");
	weft_dag_node node = {
		.name = "b", .fn = count_up, .inputs = INPUTS("a"), .type = &weft_type_integer
	};

	if (!dag)
		return NULL;
	if (weft_dag_add_input(dag, "a", &weft_type_integer) >= 0 && weft_dag_add(dag, &node) >= 0
	    && weft_dag_check(dag) == 0)
		return dag;
	EXPECT(weft_dag_free(dag) == 0);
	return NULL;
}

static weft_dag *
make_outer(weft_dag *inner)
{
	weft_dag *dag = weft_dag_new("outer");
	weft_dag_node sub = { .name = "sub",
		              .subgraph = inner,
		              .inputs = INPUTS("block"),
		              .type = &weft_type_integer };
	int rc;

	if (!dag)
		return NULL;
	rc = weft_dag_set_limit(dag, "one", 1);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]) && rc >= 0; i++) {
		weft_dag_node node = nodes[i];

		node.inputs = inputs[i];
		rc = weft_dag_add(dag, &node);
	}
	if (rc >= 0)
		rc = weft_dag_add(dag, &sub);
	if (rc >= 0)
		rc = weft_dag_check(dag);
	if (rc >= 0)
		return dag;
	EXPECT(fault_hits() > 0);
	EXPECT(weft_dag_free(dag) == 0);
	return NULL;
}

static void
on_run(weft_op *op, int64_t result, void *arg)
{
	struct state *state = arg;

	(void)op;
	EXPECT(state->left == 1);
	state->left = 0;
	state->result = result;
}

static void
on_progress(const weft_dag_progress *progress, void *arg)
{
	(void)arg;
	EXPECT(progress->done <= progress->total);
}

static void
inspect_run(weft_dag_run *run)
{
	weft_value value;

	EXPECT(weft_dag_run_get(run, "sub", &value) == 0);
	EXPECT(value.as.integer == 6);
	for (int format = WEFT_DAG_DOT; format <= WEFT_DAG_TRACE; format++)
		if (weft_dag_run_write(run, format, &value) == 0)
			weft_value_drop(&value);
		else
			EXPECT(fault_hits() > 0);
}

/* Run it on the loop.  Returns whether it succeeded. */
static bool
run_once(struct world *world, weft_dag *dag, bool cancel)
{
	const weft_dag_run_opts opts = { .loop = world->loop,
		                         .trace = true,
		                         .on_progress = on_progress };
	weft_dag_run *run = weft_dag_run_new(dag, &opts);
	struct state state = { .left = 0 };

	if (!run) {
		EXPECT(fault_hits() > 0);
		return false;
	}
	EXPECT(weft_op_init(&state.op, world->loop, on_run, &state) == 0);
	state.result = weft_dag_run_op(run, &state.op, weft_after(60 * WEFT_S));
	state.left = state.result == 0;
	if (cancel)
		weft_dag_run_cancel(run);
	for (int i = 0; i < STEPS_MIN && state.left > 0; i++)
		drive(world->loop, &state.left);
	EXPECT(state.left == 0);
	if (state.result == 0)
		inspect_run(run);
	EXPECT(state.result == 0 || fault_hits() > 0 || (cancel && state.result == WEFT_ECANCELED));
	weft_dag_run_free(run);
	return state.result == 0;
}

void
run_dag(const char *backend)
{
	struct world world;
	weft_dag *inner, *outer = NULL;
	bool struck;

	if (!make_world(&world, backend, 0))
		return;
	inner = make_inner();
	if (inner)
		outer = make_outer(inner);
	EXPECT(outer || fault_hits() > 0);
	if (outer) {
		(void)run_once(&world, outer, false);
		(void)run_once(&world, outer, true);
		struck = fault_hits() > 0;
		check_works(&world);
		if (struck) /* otherwise the fault may be injected in this run */
			EXPECT(run_once(&world, outer, false));
	}
	EXPECT(weft_dag_free(outer) == 0);
	EXPECT(weft_dag_free(inner) == 0);
	end_world(&world);
}
