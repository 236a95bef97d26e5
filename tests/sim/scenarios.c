/* scenarios.c - the list of scenarios. */
#include <stddef.h>
#include "scenarios.h"

const struct sim_scenario *const sim_scenarios[] = {
	&sim_scenario_relay,
	&sim_scenario_echo,
	NULL,
};
