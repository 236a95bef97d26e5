/* redis_scenarios.c - a Redis client and its callers. */
#include "sim/scenarios/redis_play.h"
#include "sim/scenarios/scenarios.h"

static void
run_redis(void *arg)
{
	(void)arg;
	redis_play(REDIS_SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_redis = { .name = "redis", .run = run_redis };
