/* http_scenarios.c - an HTTP server with simulated clients, and the library's HTTP client. */
#include "sim/scenarios/http_fetch_play.h"
#include "sim/scenarios/http_load.h"
#include "sim/scenarios/http_play.h"
#include "sim/scenarios/scenarios.h"

static void
run_http(void *arg)
{
	(void)arg;
	http_play(HTTP_SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_http = { .name = "http", .run = run_http };

static void
run_fetch(void *arg)
{
	(void)arg;
	http_fetch_play(HTTP_FETCH_SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_http_fetch = { .name = "http_fetch", .run = run_fetch };

/* Usually few peers: more take long, and http_many() has all of them. */
static void
run_slow(void *arg)
{
	struct http_crowd crowd = { .quiet = 30, .slow = 10 };

	(void)arg;
	if (sim_random_below(256) == 0)
		crowd = (struct http_crowd){ .quiet = 1000, .slow = 100 };
	http_slow_play(&crowd);
}

const struct sim_scenario sim_scenario_http_slow = {
	.name = "http_slow",
	.run = run_slow,
	.masked_faults = HTTP_LOAD_MASK,
};

static void
run_limits(void *arg)
{
	(void)arg;
	http_limit_play(HTTP_LOAD_SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_http_limits = {
	.name = "http_limits",
	.run = run_limits,
	.masked_faults = HTTP_OVERLOAD_MASK,
};

static void
run_overload(void *arg)
{
	(void)arg;
	http_overload_play(HTTP_LOAD_SPOIL_NOTHING);
}

const struct sim_scenario sim_scenario_http_overload = {
	.name = "http_overload",
	.run = run_overload,
	.masked_faults = HTTP_OVERLOAD_MASK,
};
