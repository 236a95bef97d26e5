/* sleep_weft.c - many threadlets of one loop that sleep at the same time.
 *
 * sleep.10k starts 10,000 of them; each sleeps 1 ms a hundred times in a row.  The result is the
 * wall time from the first start to the last end, divided by the 100 ms that it would take if
 * starting and waking took no time.
 */
#include "bench.h"
#include "root.h"
#include <weft/scope.h>

#define SLEEP_COUNT 10000
#define SLEEP_TIMES 100
#define SLEEP_NS    BENCH_MS

static int
sleeper(void *arg)
{
	(void)arg;
	for (int i = 0; i < SLEEP_TIMES; i++)
		BENCH_CHECK(weft_sleep(SLEEP_NS) == 0);
	return 0;
}

static double
sleep_measure(void)
{
	weft_scope scope;
	uint64_t begin = bench_wall_ns();

	BENCH_CHECK(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	for (int i = 0; i < SLEEP_COUNT; i++)
		BENCH_CHECK(weft_scope_go(&scope, sleeper, NULL) > 0);
	BENCH_CHECK(weft_scope_close(&scope) == 0);
	return (double)(bench_wall_ns() - begin) / (double)(SLEEP_NS * SLEEP_TIMES);
}

static double
sleep_10k(void)
{
	return sched_run(sleep_measure);
}

static const struct bench_row sleep_rows[] = {
	{ "sleep.10k", sleep_10k },
};

BENCH_MAIN(sleep_rows)
