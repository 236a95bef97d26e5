/* switch_bench.h - two threadlets that yield to each other.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   sched_run(measure)             call measure() where it can suspend
 *   pair_run(fn)                   called by measure(): run fn(NULL) in two threadlets, to
 *                                  their end
 *   switch_yield()                 let the other threadlet run
 *
 * threadlet.switch is CPU time of the process per yield, made three frames deep.
 */
#include "depth.h"

#define SWITCH_TIMES 3000000 /* yields of each threadlet */

static uint64_t switch_each;

static inline uint64_t
yield_leaf(uint64_t x)
{
	switch_yield();
	return x + 1;
}

DEPTH(yield_down, yield_leaf)

static int
switch_body(void *arg)
{
	uint64_t x = 0;

	(void)arg;
	while (x < switch_each)
		x = yield_down(x);
	return 0;
}

static double
switch_measure(void)
{
	uint64_t begin;

	switch_each = SWITCH_TIMES / 10;
	pair_run(switch_body);
	switch_each = SWITCH_TIMES;
	begin = bench_process_ns();
	pair_run(switch_body);
	return (double)(bench_process_ns() - begin) / (2.0 * SWITCH_TIMES);
}

static double
threadlet_switch(void)
{
	return sched_run(switch_measure);
}

static const struct bench_row switch_rows[] = {
	{ "threadlet.switch", threadlet_switch },
};

BENCH_MAIN(switch_rows)
