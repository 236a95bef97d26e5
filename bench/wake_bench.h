/* wake_bench.h - two threads on two cores wake each other alternately.
 *
 * Each implementation defines the following and includes this file last:
 *
 *   struct side                    one thread's loop
 *   side_open(side, may_spin)      make it
 *   side_kick(side)                called by any thread: have it run on_kick(side) once
 *   side_run(side)                 run until side_leave()
 *   side_leave(side)               called on its own thread
 *
 * The time is wall time per round trip, after a warm-up.
 */
#include "span.h"

static struct side wake_near, wake_far;
static struct span wake_span; /* of wake_near */
static bool wake_done;        /* written before the last side_kick() */

static void
on_kick(struct side *side)
{
	if (side == &wake_far) {
		if (wake_done)
			side_leave(side);
		else
			side_kick(&wake_near);
		return;
	}
	if (span_count(&wake_span)) {
		wake_done = true;
		side_leave(side);
	}
	side_kick(&wake_far);
}

static void *
run_far(void *arg)
{
	bench_pin(BENCH_OTHER_CORE);
	side_run(arg);
	return NULL;
}

static double
wake_measure(bool may_spin)
{
	pthread_t thread;

	side_open(&wake_near, may_spin);
	side_open(&wake_far, may_spin);
	BENCH_CHECK(!pthread_create(&thread, NULL, run_far, &wake_far));
	span_start(&wake_span);
	side_kick(&wake_far);
	side_run(&wake_near);
	(void)pthread_join(thread, NULL);
	return span_each_ns(&wake_span);
}

static double
roundtrip_spin(void)
{
	return wake_measure(true);
}

static double
roundtrip_park(void)
{
	return wake_measure(false);
}

static const struct bench_row wake_rows[] = {
	{ "wake.roundtrip.spin", roundtrip_spin },
	{ "wake.roundtrip.park", roundtrip_park },
};

BENCH_MAIN(wake_rows)
