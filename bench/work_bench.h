/* work_bench.h - calls on a pool's thread and back, one after the other.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   work_run()                     call work_once() in the pool, then work_back()
 *                                  on the loop, until work_back() returns true
 *
 * work.roundtrip is wall time per round trip.  The loop and the pool may use both
 * cores, and the pool has its default size.
 */
#include "span.h"

static struct span work_span;
static uint64_t work_done; /* by the pool's threads, one at a time */

static void
work_once(void)
{
	work_done++;
}

/* Count a round trip.  Returns whether it was the last. */
static bool
work_back(void)
{
	BENCH_CHECK(work_done == work_span.count + 1);
	return span_count(&work_span);
}

static double
work_roundtrip(void)
{
	bench_pin_both();
	span_start(&work_span);
	work_run();
	return span_each_ns(&work_span);
}

static const struct bench_row work_rows[] = {
	{ "work.roundtrip", work_roundtrip },
};

BENCH_MAIN(work_rows)
