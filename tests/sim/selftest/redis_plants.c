/* redis_plants.c - tests the checks of redis_play.c: each scenario plants one bug of a Redis
 * client. */
#include "sim/scenarios/redis_play.h"
#include "sim/scenarios/scenarios.h"

static const struct spoiled plants[] = {
	{ "redis_mix_up_replies", REDIS_SPOIL_PAIR, "has the reply" },
	{ "redis_repeat_a_write", REDIS_SPOIL_AGAIN, "is done again" },
	{ "redis_blame_a_command", REDIS_SPOIL_ERROR, "tells" },
	{ "redis_end_twice", REDIS_SPOIL_TWICE, "finished more often" },
	{ "redis_forget_one", REDIS_SPOIL_WAKE, "not live" },
};

static void
run_plant(void *arg)
{
	redis_play((enum redis_spoil) * (const int *)arg);
}

int
redis_plants(void)
{
	return scenario_plant_all(plants, sizeof(plants) / sizeof(plants[0]), run_plant, 0);
}
