/* dag_plants.c - tests the checks of dag_play.c: each scenario plants one bug in a graph. */
#include "sim/scenarios/dag_play.h"
#include "sim/scenarios/scenarios.h"

static const struct spoiled plants[] = {
	{ "dag_lose_an_edge", DAG_SPOIL_EDGE, "a step began before its input had ended" },
	{ "dag_run_a_step_twice", DAG_SPOIL_TWICE, "a step ran more often than it was tried" },
	{ "dag_end_early", DAG_SPOIL_OVER, "a step after the end of its run" },
	{ "dag_change_a_value", DAG_SPOIL_VALUE, "a wrong value" },
};

static void
run_plant(void *arg)
{
	dag_play((enum dag_spoil) * (const int *)arg);
}

int
dag_plants(void)
{
	return scenario_plant_all(plants, sizeof(plants) / sizeof(plants[0]), run_plant, 0);
}
