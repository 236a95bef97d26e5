/* timer_ev.c - timers of libev.
 *
 * ev_timer_again() moves a pending timer in place, which is faster than the alternatives in its
 * manual.  It takes the delay from `repeat`.
 */
#include "bench.h"
#include <ev.h>

typedef ev_timer timer;
typedef double delay;

static struct ev_loop *loop;
static uint64_t fired;

static void
on_timer(struct ev_loop *l, ev_timer *t, int events)
{
	(void)l;
	(void)t;
	(void)events;
	fired++;
}

static inline delay
delay_of(uint64_t delay_ns)
{
	return (double)delay_ns / (double)BENCH_S;
}

static void
timers_open(void)
{
	loop = ev_loop_new(EVBACKEND_EPOLL);
	BENCH_CHECK(loop);
}

static inline void
timer_init(timer *t)
{
	ev_timer_init(t, on_timer, 0., 0.);
}

static inline void
timer_arm(timer *t, delay d)
{
	ev_timer_set(t, d, 0.);
	ev_timer_start(loop, t);
}

static inline void
timer_move(timer *t, delay d)
{
	t->repeat = d;
	ev_timer_again(loop, t);
}

static inline void
timer_disarm(timer *t)
{
	ev_timer_stop(loop, t);
}

static void
timers_pass(uint64_t ns)
{
	bench_sleep(ns);
}

static void
timers_fire(void)
{
	ev_run(loop, EVRUN_NOWAIT);
}

#include "timer_bench.h"
