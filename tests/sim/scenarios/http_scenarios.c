/* http_scenarios.c - an HTTP server and its clients. */
#include "sim/scenarios/http_play.h"
#include "sim/scenarios/scenarios.h"

static void
run_http(void *arg)
{
	(void)arg;
	http_play(HTTP_SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_http = { .name = "http",
	                                        .run = run_http };
