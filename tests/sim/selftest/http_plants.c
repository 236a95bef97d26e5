/* http_plants.c - the judges of HTTP put to the test: once in a play something is done
 * that the server must not. */
#include "sim/scenarios/http_play.h"
#include "sim/scenarios/scenarios.h"

static const struct plant {
	const char *name;
	enum http_spoil spoil;
	const char *found_as;
} plants[] = {
	{ "http_change_a_byte", HTTP_SPOIL_BYTE, "a wrong byte in the reply" },
	{ "http_swap_replies", HTTP_SPOIL_ORDER, "instead of that to" },
	{ "http_handle_twice", HTTP_SPOIL_TWICE, "is handled twice" },
	{ "http_let_bad_ones_in", HTTP_SPOIL_BAD, "comes to a handler" },
	{ "http_forget_a_reply", HTTP_SPOIL_FORGET, "are answered" },
	{ "http_end_a_reply_early", HTTP_SPOIL_CUT, "ends after" },
	{ "http_take_too_many", HTTP_SPOIL_LIMIT, "requests at once" },
};

static void
run_plant(void *arg)
{
	http_play(*(const enum http_spoil *)arg);
}

int
http_plants(void)
{
	int missed = 0;

	for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
		struct sim_scenario scenario = {
			.name = plants[i].name,
			.run = run_plant,
			.arg = (void *)(uintptr_t)&plants[i].spoil,
		};

		missed += !scenario_plant(&scenario, plants[i].found_as);
	}
	return missed;
}
