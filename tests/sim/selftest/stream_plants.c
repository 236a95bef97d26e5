/* stream_plants.c - the judge of streams put to the test: once in a play something is done
 * that the library must not. */
#include "sim/scenarios/scenarios.h"
#include "sim/scenarios/stream_play.h"

static const struct plant {
	const char *name;
	enum spoil spoil;
	const char *found_as;
} plants[] = {
	{ "stream_lose_a_byte", SPOIL_BYTE, "a wrong byte at" },
	{ "stream_end_early", SPOIL_END, "the end comes after" },
	{ "stream_close_twice", SPOIL_CLOSE, "finished more often" },
	{ "stream_invent_an_end", SPOIL_ERROR, "nobody has closed it" },
	{ "stream_forget_one", SPOIL_WAKE, "not live" },
};

static void
run_plant(void *arg)
{
	stream_play(*(const enum spoil *)arg);
}

int
stream_plants(void)
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
