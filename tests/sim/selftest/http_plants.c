/* http_plants.c - tests the checks of the HTTP scenarios: each scenario plants one bug of a
 * server or client. */
#include <stdio.h>
#include "sim/scenarios/http_fetch_play.h"
#include "sim/scenarios/http_load.h"
#include "sim/scenarios/http_play.h"
#include "sim/scenarios/scenarios.h"

static const struct spoiled plants[] = {
	{ "http_change_a_byte", HTTP_SPOIL_BYTE, "a wrong byte in the reply" },
	{ "http_swap_replies", HTTP_SPOIL_ORDER, "instead of that to" },
	{ "http_handle_twice", HTTP_SPOIL_TWICE, "is handled twice" },
	{ "http_let_bad_ones_in", HTTP_SPOIL_BAD, "comes to a handler" },
	{ "http_forget_a_reply", HTTP_SPOIL_FORGET, "are answered" },
	{ "http_end_a_reply_early", HTTP_SPOIL_CUT, "ends after" },
	{ "http_take_too_many", HTTP_SPOIL_LIMIT, "requests at once" },
};

static const struct spoiled load_plants[] = {
	{ "http_keep_the_slow", HTTP_LOAD_SPOIL_KEEP, "is not dropped" },
	{ "http_drop_early", HTTP_LOAD_SPOIL_HASTE, "is dropped after" },
	{ "http_hold_the_healthy", HTTP_LOAD_SPOIL_HOLD, "waits" },
	{ "http_use_too_much", HTTP_LOAD_SPOIL_MEMORY, "bytes for" },
	{ "http_shed_too_much", HTTP_LOAD_SPOIL_SHED, "are answered" },
	{ "http_spin", HTTP_LOAD_SPOIL_SPIN, "turns without" },
};

static const struct spoiled limit_plants[] = {
	{ "http_limits_without_end", HTTP_LOAD_SPOIL_KEEP, "has no end" },
	{ "http_limits_too_soon", HTTP_LOAD_SPOIL_HASTE, "has its end after" },
};

static void
run_limit_plant(void *arg)
{
	http_limit_play((enum http_load_spoil) * (const int *)arg);
}

static const struct spoiled fetch_plants[] = {
	{ "fetch_change_a_byte", HTTP_FETCH_SPOIL_BYTE, "a wrong byte in" },
	{ "fetch_end_early", HTTP_FETCH_SPOIL_END, "ends after" },
	{ "fetch_end_twice", HTTP_FETCH_SPOIL_TWICE, "finished more often" },
	{ "fetch_say_again", HTTP_FETCH_SPOIL_AGAIN, "is sent again" },
	{ "fetch_invent_an_error", HTTP_FETCH_SPOIL_ERROR, "tells" },
	{ "fetch_do_not_say_why", HTTP_FETCH_SPOIL_MUTE, "does not say" },
	{ "fetch_keep_an_exchange", HTTP_FETCH_SPOIL_KEEP, "are left" },
	{ "fetch_waste_connections", HTTP_FETCH_SPOIL_POOL, "connections for" },
	{ "fetch_forget_one", HTTP_FETCH_SPOIL_WAKE, "not live" },
};

static void
run_fetch_plant(void *arg)
{
	http_fetch_play((enum http_fetch_spoil) * (const int *)arg);
}

static void
run_plant(void *arg)
{
	http_play((enum http_spoil) * (const int *)arg);
}

static void
run_load_plant(void *arg)
{
	struct http_crowd crowd = { .quiet = 20, .slow = 10 };

	crowd.spoil = (enum http_load_spoil) * (const int *)arg;
	if (crowd.spoil >= HTTP_LOAD_SPOIL_SHED)
		http_overload_play(crowd.spoil);
	else
		http_slow_play(&crowd);
}

int
http_plants(void)
{
	return scenario_plant_all(plants, sizeof(plants) / sizeof(plants[0]), run_plant, 0)
	       + scenario_plant_all(load_plants, sizeof(load_plants) / sizeof(load_plants[0]),
	                            run_load_plant, HTTP_OVERLOAD_MASK)
	       + scenario_plant_all(limit_plants, sizeof(limit_plants) / sizeof(limit_plants[0]),
	                            run_limit_plant, HTTP_OVERLOAD_MASK)
	       + scenario_plant_all(fetch_plants, sizeof(fetch_plants) / sizeof(fetch_plants[0]),
	                            run_fetch_plant, 0);
}

/* --- thousands of peers ------------------------------------------------------ */

static void
run_crowd(void *arg)
{
	http_slow_play(arg);
}

int
http_many(void)
{
	static const struct http_crowd crowd = { .quiet = 10000, .slow = 1000 };
	const struct sim_scenario scenario = {
		.name = "http_many",
		.run = run_crowd,
		.arg = (void *)(uintptr_t)&crowd,
		.masked_faults = HTTP_LOAD_MASK,
	};
	const struct sim_opts opts = { .steps_max = UINT64_C(1) << 30 };
	struct sim_result result;

	sim_run(&scenario, 1, &opts, &result);
	(void)printf("%s  %s %s\n", result.failed ? "FAILED" : "ok", scenario.name, result.text);
	return result.failed;
}
