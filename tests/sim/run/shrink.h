/* shrink.h - find a small set of faults that still makes a run fail.
 *
 * Needs: nothing.
 */
#ifndef WEFT_SIM_SHRINK_H
#define WEFT_SIM_SHRINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_shrink {
	bool (*fails)(void *arg, const uint64_t *keys, size_t count);
	void  *arg;
	int    runs_max;
};

/* Remove as many of `keys` as possible, in place, while fails() returns true.  It must return
 * true for all of them.  Returns how many are left. */
size_t sim_shrink(const struct sim_shrink *how, uint64_t *keys, size_t count);

#endif
