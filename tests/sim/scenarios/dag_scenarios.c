/* dag_scenarios.c - graphs of steps, without planted bugs. */
#include "sim/scenarios/dag_play.h"
#include "sim/scenarios/scenarios.h"

static void
run_dag(void *arg)
{
	(void)arg;
	dag_play(DAG_FAIR);
}

const struct sim_scenario sim_scenario_dag = { .name = "dag", .run = run_dag };
