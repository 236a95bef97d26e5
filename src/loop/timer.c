/* timer.c - timers on a loop, which are the wheel's. */
#include <weft/timer.h>
#include "loop/loop.h"

static weft_loop *
loop_of(const weft_timer *timer)
{
	return timer->owner;
}

static bool
can_start(const weft_loop *loop, const weft_timer *timer)
{
	return loop && timer && weft__loop_is_usable(loop)
	       && (!timer->block || timer->owner == loop);
}

/* The caller's loop was meant, or it cannot be started: tell why. */
static __attribute__((noinline, cold)) int
start_slowly(weft_loop *loop, weft_timer *timer, uint64_t due_ns,
             uint64_t every_ns, weft_timer_fn fn, void *arg)
{
	int rc;

	loop = weft__loop_or_current(loop);
	if (can_start(loop, timer))
		return weft_timer_start(loop, timer, due_ns, every_ns, fn, arg);
	rc = weft__loop_check(loop, "weft_timer_start");
	if (rc < 0)
		return rc;
	if (weft__loop_is_stopping(loop))
		return weft__fail(WEFT_ESHUTDOWN, "weft_timer_start: stopping");
	return weft__misuse(WEFT_EINVAL,
	                    "weft_timer_start: NULL, or armed elsewhere");
}

/* What is rare is a tail call, so that the short way saves no registers. */
int
weft_timer_start(weft_loop *loop, weft_timer *timer, uint64_t due_ns,
                 uint64_t every_ns, weft_timer_fn fn, void *arg)
{
	if (__builtin_expect(!can_start(loop, timer), 0))
		return start_slowly(loop, timer, due_ns, every_ns, fn, arg);
	timer->owner = loop;
	return weft__timer_arm(&loop->wheel, timer, due_ns, every_ns, fn, arg);
}

static __attribute__((noinline, cold)) int
stop_slowly(weft_timer *timer)
{
	int rc = weft__loop_check(loop_of(timer), "weft_timer_stop");

	return rc < 0 ? rc
	              : weft__wheel_drop(&loop_of(timer)->wheel,
	                                 weft__timer_place(timer));
}

int
weft_timer_stop(weft_timer *timer)
{
	if (!timer || !timer->block)
		return 0;
	if (__builtin_expect(!weft__loop_is_usable(loop_of(timer)), 0))
		return stop_slowly(timer);
	return weft__wheel_drop(&loop_of(timer)->wheel,
	                        weft__timer_place(timer));
}

void
weft_timer_set_background(weft_timer *timer, bool on)
{
	size_t before;

	if (!timer
	    || (timer->block
	        && weft__loop_check(loop_of(timer), "weft_timer_set_background")
	                   < 0))
		return;
	before = !(timer->tag & WEFT__PLACE_BACKGROUND);
	timer->tag = on ? WEFT__TAG_TIMER | WEFT__PLACE_BACKGROUND
	                : WEFT__TAG_TIMER;
	if (timer->block)
		weft__count(&loop_of(timer)->wheel.foreground,
		            (size_t)!on - before);
}
