/* spawn_st.c - a joinable thread of State Threads.
 *
 * Its event system is epoll, as its manual recommends; nothing waits in it here.  The library
 * reuses the stacks of ended threads.
 */
#include "bench.h"
#include <st.h>

static uint64_t spawn_ran;

static void *
spawn_body(void *arg)
{
	(void)arg;
	spawn_ran++;
	return NULL;
}

static inline void
spawn_join(void)
{
	st_thread_t thread = st_thread_create(spawn_body, NULL, 1, 0);

	BENCH_CHECK(thread);
	BENCH_CHECK(st_thread_join(thread, NULL) == 0);
}

static double
sched_run(double (*measure)(void))
{
	BENCH_CHECK(st_set_eventsys(ST_EVENTSYS_ALT) == 0);
	BENCH_CHECK(st_init() == 0);
	return measure();
}

#include "spawn_bench.h"
