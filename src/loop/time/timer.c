/* timer.c - timers on a loop, which are entries of its wheel. */
#include <weft/timer.h>
#include "loop/core/loop.h"

static weft_loop *
loop_of(const weft_timer *timer)
{
	return timer->owner;
}

static bool
is_free_for(const weft_loop *loop, const weft_timer *timer)
{
	return !timer->block || timer->owner == loop;
}

/* The slow path: `loop` is NULL, the loop has a hook with next_changed, or there is an error. */
static __attribute__((noinline, cold)) int
start_slowly(weft_loop *loop, weft_timer *timer, uint64_t due_ns, uint64_t every_ns,
             weft_timer_fn fn, void *arg)
{
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_timer_start");
	if (rc < 0)
		return rc;
	if (weft__loop_is_stopping(loop))
		return weft__fail(WEFT_ESHUTDOWN, "weft_timer_start: the loop is stopping");
	if (!timer || !is_free_for(loop, timer))
		return weft__misuse(WEFT_EINVAL,
		                    "weft_timer_start: timer is NULL, or armed on another loop");
	timer->owner = loop;
	rc = weft__timer_arm(&loop->wheel, timer, due_ns, every_ns, fn, arg);
	weft__loop_changed(loop);
	return rc;
}

/* The rare cases are tail calls, so that the fast path saves no registers. */
int
weft_timer_start(weft_loop *loop, weft_timer *timer, uint64_t due_ns, uint64_t every_ns,
                 weft_timer_fn fn, void *arg)
{
	if (__builtin_expect(
		    !loop || !timer || !weft__loop_is_usable(loop) || !is_free_for(loop, timer), 0))
		return start_slowly(loop, timer, due_ns, every_ns, fn, arg);
	timer->owner = loop;
	return weft__timer_arm(&loop->wheel, timer, due_ns, every_ns, fn, arg);
}

static __attribute__((noinline, cold)) int
stop_slowly(weft_timer *timer)
{
	weft_loop *loop = loop_of(timer);
	int rc = weft__loop_check(loop, "weft_timer_stop");

	if (rc < 0)
		return rc;
	(void)weft__wheel_drop(&loop->wheel, weft__timer_entry(timer));
	weft__loop_changed(loop);
	return 1;
}

int
weft_timer_stop(weft_timer *timer)
{
	if (!timer || !timer->block)
		return 0;
	if (__builtin_expect(!weft__loop_is_usable(loop_of(timer)), 0))
		return stop_slowly(timer);
	return weft__wheel_drop(&loop_of(timer)->wheel, weft__timer_entry(timer));
}

void
weft_timer_set_background(weft_timer *timer, bool on)
{
	uint64_t before;

	if (!timer
	    || (timer->block && weft__loop_check(loop_of(timer), "weft_timer_set_background") < 0))
		return;
	before = !!(timer->tag & WEFT__ENTRY_BACKGROUND);
	timer->tag = on ? WEFT__ENTRY_TIMER | WEFT__ENTRY_BACKGROUND : WEFT__ENTRY_TIMER;
	if (timer->block)
		weft__count(&loop_of(timer)->wheel.background, on - before);
}

uint64_t
weft_loop_now(const weft_loop *loop)
{
	if (!loop)
		loop = weft__thread_self()->loop;
	if (!loop || !loop->in_turn || weft__loop_check(loop, "weft_loop_now") < 0)
		return weft__sys->now();
	return weft__loop_time((weft_loop *)(uintptr_t)loop);
}
