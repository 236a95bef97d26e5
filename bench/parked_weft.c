/* parked_weft.c - the memory of a million threadlets that wait.
 *
 * threadlet.memory.1e6 is the growth of the process's resident memory per threadlet: its stack
 * with a guard, its control block, its share of all tables of the library.  The kernel's page
 * tables are not included.
 */
#include "bench.h"
#include "resident.h"
#include "root.h"
#include <weft/scope.h>
#include <weft/sync.h>

#define PARKED_COUNT 1000000

static weft_event over = WEFT_INIT;
static uint64_t parked;

static int
park(void *arg)
{
	(void)arg;
	parked++;
	BENCH_CHECK(weft_event_wait(&over, WEFT_NEVER) == 0);
	return 0;
}

static double
parked_measure(void)
{
	uint64_t before = resident_bytes(), bytes;
	weft_scope scope;

	BENCH_CHECK(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < PARKED_COUNT; i++)
		BENCH_CHECK(weft_scope_go(&scope, park, NULL) > 0);
	while (parked < PARKED_COUNT)
		BENCH_CHECK(weft_yield() == 0);
	bytes = resident_bytes() - before;
	BENCH_CHECK(weft_event_set(&over) == 0);
	BENCH_CHECK(weft_scope_close(&scope) == 0);
	return (double)bytes / PARKED_COUNT;
}

static double
threadlet_memory_1e6(void)
{
	return sched_run(parked_measure);
}

static const struct bench_row parked_rows[] = {
	{ "threadlet.memory.1e6", threadlet_memory_1e6 },
};

BENCH_MAIN(parked_rows)
