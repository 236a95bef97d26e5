/* work_weft.c - a threadlet that calls weft_work() on its loop's CPU pool. */
#include "bench.h"
#include "root.h"
#include <weft/work.h>

static void work_once(void);
static bool work_back(void);

static int
on_work(void *arg)
{
	(void)arg;
	work_once();
	return 0;
}

static double
work_loop(void)
{
	do
		BENCH_CHECK(weft_work(WEFT_CPU, on_work, NULL, WEFT_NEVER) == 0);
	while (!work_back());
	return 0;
}

static void
work_run(void)
{
	(void)sched_run(work_loop);
}

#include "work_bench.h"
