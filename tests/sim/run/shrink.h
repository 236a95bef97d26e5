/* shrink.h - find few faults that still make a run fail.
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

/* Take as many of `keys` away as possible while fails() holds, in place; it
 * holds for all of them.  Returns how many are left. */
size_t sim_shrink(const struct sim_shrink *how, uint64_t *keys, size_t count);

#endif
