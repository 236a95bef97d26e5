/* planted.h - scenarios that are wrong on purpose, each in one way.
 *
 * A simulator that does not find them finds nothing.
 *
 * Needs: sim.h.
 */
#ifndef WEFT_SIM_PLANTED_H
#define WEFT_SIM_PLANTED_H

#include "sim/run/sim.h"

struct planted {
	struct sim_scenario scenario;
	const char *found_as; /* how the text of the failure begins */
	uint32_t    seeds;    /* within which it must be found */
	size_t      faults;   /* to which its list must shrink; SIZE_MAX: any */
	bool        calm;     /* run it where only faults can find it */
	bool        unwatched; /* ASan would end the process over it */
};

extern const struct planted planted[]; /* ended by a NULL name */

#endif
