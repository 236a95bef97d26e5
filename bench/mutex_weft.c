/* mutex_weft.c - a local mutex, locked by a threadlet. */
#include "bench.h"
#include "root.h"
#include <weft/sync.h>

static weft_mutex mutex __attribute__((aligned(BENCH_LINE))) = WEFT_INIT;

static inline void
mutex_lock(void)
{
	BENCH_CHECK(weft_mutex_lock(&mutex, WEFT_NEVER) == 0);
}

static inline void
mutex_unlock(void)
{
	BENCH_CHECK(weft_mutex_unlock(&mutex) == 0);
}

#include "mutex_bench.h"
