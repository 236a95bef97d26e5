/* stream_plants.c - tests the checks of stream_play.c and stream_stop_play.c: each scenario
 * plants one bug. */
#include "sim/scenarios/scenarios.h"
#include "sim/scenarios/stream_play.h"

static const struct spoiled plants[] = {
	{ "stream_lose_a_byte", SPOIL_BYTE, "a wrong byte at" },
	{ "stream_end_early", SPOIL_END, "the end comes after" },
	{ "stream_close_twice", SPOIL_CLOSE, "finished more often" },
	{ "stream_invent_an_end", SPOIL_ERROR, "nobody has closed it" },
	{ "stream_forget_one", SPOIL_WAKE, "not live" },
	{ "stream_blame_a_connect", SPOIL_CONNECT, "that a connect tells" },
	{ "stream_blame_an_accept", SPOIL_ACCEPT, "that an accept tells" },
};

static const struct spoiled stop_plants[] = {
	{ "stream_close_before_a_write", SPOIL_ORDER, "on_close comes before" },
	{ "stream_close_inside_a_call", SPOIL_INSIDE, "inside a call" },
};

static void
run_plant(void *arg)
{
	stream_play((enum spoil) * (const int *)arg);
}

static void
run_stop_plant(void *arg)
{
	stream_stop_play((enum spoil) * (const int *)arg);
}

int
stream_plants(void)
{
	return scenario_plant_all(plants, sizeof(plants) / sizeof(plants[0]), run_plant, 0)
	       + scenario_plant_all(stop_plants, sizeof(stop_plants) / sizeof(stop_plants[0]),
	                            run_stop_plant, 0);
}
