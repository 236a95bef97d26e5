/* differ.h - runs random programs on both kernels and compares the results.
 *
 * Needs: semantics.h.
 */
#ifndef WEFT_SIM_DIFFER_H
#define WEFT_SIM_DIFFER_H

#include "sim/selftest/semantics.h"

enum { DIFFER_LOG_MAX = 1024 };

/* What a program did, step by step, in numbers that do not depend on the kernel. */
struct differ_log {
	size_t count;
	struct differ_step {
		const char *what;
		int64_t     a, b, result;
	} steps[DIFFER_LOG_MAX];
};

/* Run the program determined by `seed`, with or without TCP. */
void differ_run(const struct host *host, uint64_t seed, bool tcp,
                struct differ_log *log);

/* Compare two logs; and print their steps up to the first difference. */
bool differ_equal(const struct differ_log *real,
                  const struct differ_log *simulated);
void differ_print(const struct differ_log *real,
                  const struct differ_log *simulated);

#endif
