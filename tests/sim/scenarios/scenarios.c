/* scenarios.c - the list of scenarios. */
#include <stddef.h>
#include "sim/scenarios/scenarios.h"

const struct sim_scenario *const sim_scenarios[] = {
	&sim_scenario_relay,         &sim_scenario_echo,
	&sim_scenario_posts,         &sim_scenario_full,
	&sim_scenario_life,          &sim_scenario_timers,
	&sim_scenario_numbers,       &sim_scenario_tasks,
	&sim_scenario_own,           &sim_scenario_cancel,
	&sim_scenario_late,          &sim_scenario_fd_echo,
	&sim_scenario_fd_multi,      &sim_scenario_fd_stop,
	&sim_scenario_fd_full,       &sim_scenario_connect,
	&sim_scenario_reuse,         &sim_scenario_watches,
	&sim_scenario_memory,        &sim_scenario_crews,
	&sim_scenario_bounded,       &sim_scenario_orphans,
	&sim_scenario_asks,          &sim_scenario_work,
	&sim_scenario_signals,       &sim_scenario_dgram,
	&sim_scenario_streams,       &sim_scenario_stream_stops,
	&sim_scenario_http,          &sim_scenario_http_slow,
	&sim_scenario_http_overload, &sim_scenario_http_limits,
	&sim_scenario_http_fetch,    &sim_scenario_dag,
	&sim_scenario_redis,         NULL,
};
