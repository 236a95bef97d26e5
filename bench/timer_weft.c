/* timer_weft.c - timers on a loop.
 *
 * Each callback checks the firing order; the check is part of the measured time.
 */
#include "bench.h"
#include <weft/loop.h>
#include <weft/timer.h>

typedef weft_timer timer;
typedef uint64_t delay;

static weft_loop *loop;
static uint64_t now_ns;
static uint64_t last_ns; /* the deadline of the timer fired last */
static uint64_t fired;

static void
on_timer(weft_timer *t, void *arg)
{
	(void)arg;
	BENCH_CHECK(t->due_ns >= last_ns);
	last_ns = t->due_ns;
	fired++;
}

static inline delay
delay_of(uint64_t delay_ns)
{
	return delay_ns;
}

static void
timers_open(void)
{
	now_ns = weft_now();
	loop = weft_loop_new(NULL);
	BENCH_CHECK(loop);
}

static inline void
timer_init(timer *t)
{
	(void)t; /* zeroed already */
}

static inline void
timer_arm(timer *t, delay d)
{
	BENCH_CHECK(!weft_timer_start(loop, t, now_ns + d, 0, on_timer, NULL));
}

static inline void
timer_move(timer *t, delay d)
{
	timer_arm(t, d);
}

static inline void
timer_disarm(timer *t)
{
	BENCH_CHECK(weft_timer_stop(t) == 1);
}

static void
timers_pass(uint64_t ns)
{
	bench_sleep(ns);
}

static void
timers_fire(void)
{
	while (weft_loop_run_once(loop, WEFT_NOWAIT) == 1)
		;
}

#include "timer_bench.h"
