/* timer.c - timers on a loop: the wheel's, and whether they keep a run going. */
#include <weft/timer.h>
#include "loop/loop.h"

static weft_loop *
loop_of(const weft_timer *timer)
{
	return timer->owner;
}

static bool
is_counted(const weft_timer *timer)
{
	return !(timer->tag & WEFT__TAG_BACKGROUND);
}

int
weft_timer_start(weft_loop *loop, weft_timer *timer, uint64_t due_ns,
                 uint64_t every_ns, weft_timer_fn fn, void *arg)
{
	bool was_armed;
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_timer_start");
	if (rc < 0)
		return rc;
	if (!timer || (timer->block && timer->owner != loop))
		return weft__misuse(
			WEFT_EINVAL,
			"weft_timer_start: NULL, or armed elsewhere");
	if (weft__loop_is_stopping(loop))
		return weft__fail(WEFT_ESHUTDOWN, "weft_timer_start: stopping");
	was_armed = timer->block != NULL;
	timer->owner = loop;
	rc = weft__timer_arm(&loop->wheel, timer, due_ns, every_ns, fn, arg);
	if (rc == 0 && !was_armed)
		loop->alive += is_counted(timer);
	return rc;
}

int
weft_timer_stop(weft_timer *timer)
{
	weft_loop *loop;
	int rc;

	if (!timer || !timer->block)
		return 0;
	loop = loop_of(timer);
	rc = weft__loop_check(loop, "weft_timer_stop");
	if (rc < 0)
		return rc;
	loop->alive -= is_counted(timer);
	weft__wheel_drop(&loop->wheel, weft__timer_place(timer));
	return 1;
}

void
weft_timer_set_background(weft_timer *timer, bool on)
{
	bool was_counted;

	if (!timer
	    || (timer->block
	        && weft__loop_check(loop_of(timer), "weft_timer_set_background")
	                   < 0))
		return;
	was_counted = is_counted(timer);
	timer->tag = WEFT__TAG_TIMER | (on ? WEFT__TAG_BACKGROUND : 0);
	if (timer->block)
		loop_of(timer)->alive += (uint64_t)is_counted(timer)
		                         - was_counted;
}

void
weft__timer_expire(weft_loop *loop, struct weft__place *place)
{
	weft_timer *timer = weft__place_timer(place);

	if (!timer->every_ns)
		loop->alive -= is_counted(timer);
	weft__timer_fire(&loop->wheel, timer);
}
