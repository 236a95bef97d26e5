/* mutex_pthread.c - a default POSIX mutex.
 *
 * The program has one thread, so the C library may skip atomic operations: the best case.
 */
#include "bench.h"

static pthread_mutex_t mutex __attribute__((aligned(BENCH_LINE))) = PTHREAD_MUTEX_INITIALIZER;

static inline void
mutex_lock(void)
{
	BENCH_CHECK(pthread_mutex_lock(&mutex) == 0);
}

static inline void
mutex_unlock(void)
{
	BENCH_CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static double
sched_run(double (*measure)(void))
{
	return measure();
}

#include "mutex_bench.h"
