/* timer_uv.c - timers of libuv.
 *
 * Its unit is the millisecond.  uv_timer_start() restarts a pending timer, so it need not be
 * stopped first.
 */
#include "bench.h"
#include <uv.h>

typedef uv_timer_t timer;
typedef uint64_t delay;

static uv_loop_t loop;
static uint64_t fired;

static void
on_timer(uv_timer_t *t)
{
	(void)t;
	fired++;
}

static inline delay
delay_of(uint64_t delay_ns)
{
	return delay_ns / BENCH_MS;
}

static void
timers_open(void)
{
	BENCH_CHECK(uv_loop_init(&loop) == 0);
}

static inline void
timer_init(timer *t)
{
	BENCH_CHECK(uv_timer_init(&loop, t) == 0);
}

static inline void
timer_arm(timer *t, delay d)
{
	BENCH_CHECK(uv_timer_start(t, on_timer, d, 0) == 0);
}

static inline void
timer_move(timer *t, delay d)
{
	timer_arm(t, d);
}

static inline void
timer_disarm(timer *t)
{
	BENCH_CHECK(uv_timer_stop(t) == 0);
}

static void
timers_pass(uint64_t ns)
{
	bench_sleep(ns);
}

static void
timers_fire(void)
{
	(void)uv_run(&loop, UV_RUN_NOWAIT);
}

#include "timer_bench.h"
