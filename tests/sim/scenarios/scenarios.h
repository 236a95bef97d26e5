/* scenarios.h - the scenarios that are simulated.
 *
 * A scenario runs as the first simulated thread, with the sys table of the simulated kernel in
 * place.  It must end whatever fails, free everything, and call sim_fail() or sim_check() when
 * something is wrong.
 *
 * Needs: sim.h.
 */
#ifndef WEFT_SIM_SCENARIOS_H
#define WEFT_SIM_SCENARIOS_H

#include "sim/run/sim.h"

extern const struct sim_scenario *const sim_scenarios[]; /* ended by NULL */

/* On the table alone, without the library. */
extern const struct sim_scenario sim_scenario_relay;
extern const struct sim_scenario sim_scenario_echo;

/* A loop and the threads around it. */
extern const struct sim_scenario sim_scenario_posts;
extern const struct sim_scenario sim_scenario_full;
extern const struct sim_scenario sim_scenario_life;
extern const struct sim_scenario sim_scenario_timers;
extern const struct sim_scenario sim_scenario_numbers;
extern const struct sim_scenario sim_scenario_tasks;

/* Ops. */
extern const struct sim_scenario sim_scenario_own;
extern const struct sim_scenario sim_scenario_cancel;
extern const struct sim_scenario sim_scenario_late;

/* Pools of threads. */
extern const struct sim_scenario sim_scenario_work;

/* Descriptors. */
extern const struct sim_scenario sim_scenario_fd_echo;
extern const struct sim_scenario sim_scenario_fd_multi;
extern const struct sim_scenario sim_scenario_fd_stop;
extern const struct sim_scenario sim_scenario_fd_full;
extern const struct sim_scenario sim_scenario_connect;
extern const struct sim_scenario sim_scenario_reuse;
extern const struct sim_scenario sim_scenario_stolen;
extern const struct sim_scenario sim_scenario_watches;
extern const struct sim_scenario sim_scenario_memory;

/* Datagrams. */
extern const struct sim_scenario sim_scenario_dgram;

/* Signals. */
extern const struct sim_scenario sim_scenario_signals;

/* Threadlets. */
extern const struct sim_scenario sim_scenario_scheds;
extern const struct sim_scenario sim_scenario_bounded;
extern const struct sim_scenario sim_scenario_orphans;
extern const struct sim_scenario sim_scenario_asks;

/* Streams. */
extern const struct sim_scenario sim_scenario_streams;
extern const struct sim_scenario sim_scenario_stream_stops;

/* HTTP. */
extern const struct sim_scenario sim_scenario_http;
extern const struct sim_scenario sim_scenario_http_slow;
extern const struct sim_scenario sim_scenario_http_overload;
extern const struct sim_scenario sim_scenario_http_limits;
extern const struct sim_scenario sim_scenario_http_fetch;

/* Graphs. */
extern const struct sim_scenario sim_scenario_dag;

/* Redis. */
extern const struct sim_scenario sim_scenario_redis;

/* Scenarios with planted bugs.  Each call prints its results and returns how many bugs were not
 * found. */
int scenario_plants(void);
int threadlet_plants(void);
int stream_plants(void);
int http_plants(void);
int dag_plants(void);
int redis_plants(void);

/* 10,000 idle peers and 1,000 slow ones; 1 if that fails. */
int http_many(void);

/* Run the scenario with some seeds until it fails with that text.  Print and return whether it
 * did. */
bool scenario_plant(const struct sim_scenario *scenario, const char *found_as);

/* A planted bug, and the text with which the scenario must fail. */
struct spoiled {
	const char *name;
	int         spoil;
	const char *found_as;
};

/* Plant each bug by run(&plays[i].spoil); returns how many were not found. */
int scenario_plant_all(const struct spoiled *plays, size_t count, void (*run)(void *spoil),
                       uint32_t masked_faults);

#endif
