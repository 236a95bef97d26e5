/* limits.h - raises the limit of descriptors to its maximum. */
#ifndef WEFT_BENCH_LIMITS_H
#define WEFT_BENCH_LIMITS_H

#include <sys/resource.h>
#include "bench.h"

/* Returns the new limit. */
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
