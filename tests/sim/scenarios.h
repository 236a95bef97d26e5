/* scenarios.h - what is simulated.
 *
 * A scenario runs as the first simulated thread, with the sys table of the
 * simulated kernel in place.  It must come to its end whatever fails, give
 * everything back, and call sim_fail() or sim_check() for what must not be.
 *
 * Needs: sim.h.
 */
#ifndef WEFT_SIM_SCENARIOS_H
#define WEFT_SIM_SCENARIOS_H

#include "sim.h"

extern const struct sim_scenario *const sim_scenarios[]; /* ended by NULL */

/* On the table alone, without the library. */
extern const struct sim_scenario sim_scenario_relay;
extern const struct sim_scenario sim_scenario_echo;

#endif
