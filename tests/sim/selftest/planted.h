/* planted.h - scenarios with one planted bug each.
 *
 * A simulator that does not find them is useless.
 *
 * Needs: sim.h.
 */
#ifndef WEFT_SIM_PLANTED_H
#define WEFT_SIM_PLANTED_H

#include "sim/run/sim.h"

struct planted {
	struct sim_scenario scenario;
	const char *found_as; /* start of the failure text */
	uint32_t    seeds;    /* seeds to try; one must find it */
	size_t      faults;   /* number that its list must shrink to; SIZE_MAX: any */
	bool        calm;     /* use a calm network, where only faults expose it */
	bool        unwatched; /* skip with ASan, which would end the process */
};

extern const struct planted planted[]; /* ended by a NULL name */

#endif
