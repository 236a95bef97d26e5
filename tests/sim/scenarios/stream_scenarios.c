/* stream_scenarios.c - streams over simulated TCP and Unix sockets. */
#include "sim/scenarios/scenarios.h"
#include "sim/scenarios/stream_play.h"

static void
run_streams(void *arg)
{
	(void)arg;
	stream_play(SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_streams = { .name = "streams", .run = run_streams };

static void
run_stops(void *arg)
{
	(void)arg;
	stream_stop_play(SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_stream_stops = { .name = "stream_stops", .run = run_stops };
