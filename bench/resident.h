/* resident.h - the resident memory of this process. */
#ifndef WEFT_BENCH_RESIDENT_H
#define WEFT_BENCH_RESIDENT_H

#include <unistd.h>
#include "bench.h"

static inline uint64_t
resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long all, resident;

	BENCH_CHECK(file);
	BENCH_CHECK(fscanf(file, "%lu %lu", &all, &resident) == 2);
	(void)fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

#endif
