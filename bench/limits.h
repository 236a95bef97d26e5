/* limits.h - as many descriptors as the system lets us have. */
#ifndef WEFT_BENCH_LIMITS_H
#define WEFT_BENCH_LIMITS_H

#include <sys/resource.h>
#include "bench.h"

/* Returns how many there may be now. */
static inline uint64_t
raise_limit(void)
{
	struct rlimit limit;

	BENCH_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	BENCH_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	return limit.rlim_cur;
}

#endif
