/* turn.c - one turn of the loop, on one screen.
 *
 *   1. Each phase runs what was there when it began; what callbacks add runs in a
 *      later phase or turn.  So no source starves another: a turn is bounded by the
 *      budgets.
 *   2. A checkpoint follows every callback.
 *   3. Nothing is touched after a callback that it could have freed; the loop
 *      itself cannot be freed while it runs.
 */
#include "loop/loop.h"

static void
run_timers(weft_loop *loop)
{
	struct weft_wheel *wheel = &loop->wheel;
	struct weft__place *place;
	unsigned left = WEFT__CALLS_MAX;

	if (wheel->count == 0 || loop->ending)
		return;
	if (!weft__wheel_has_run(wheel)) {
		if (weft__loop_time(loop) < wheel->bound_ns)
			return;
		weft__wheel_collect(wheel, loop->now_ns);
	}
	while (left-- > 0 && !weft__loop_is_stopping(loop)
	       && (place = weft__wheel_pop(wheel))) {
		if ((place->tag & WEFT__TAG_KIND) == WEFT__TAG_TIMER)
			weft__timer_expire(loop, place);
		else
			weft__number_expire(loop, place);
		weft__checkpoint(loop);
	}
}

/* Run at most `left` calls of a list.  A node without a function is the loop's own
 * and only meant to wake it. */
static void
run_list(weft_loop *loop, struct weft__node_list *list, uint32_t left)
{
	weft_fn fn;
	void *arg;

	while (left-- > 0 && weft__node_pop(list, &fn, &arg)) {
		if (!fn) {
			weft__loop_woken(loop);
			continue;
		}
		fn(arg);
		weft__checkpoint(loop);
	}
}

/* What was asked to run last before the wait; once each, whatever it adds. */
static void
run_last(weft_loop *loop)
{
	struct weft__node_list last = loop->last;

	if (!last.first)
		return;
	loop->last = (struct weft__node_list){ 0 };
	*last.end = NULL;
	run_list(loop, &last, UINT32_MAX);
}

bool
weft__loop_is_runnable(const weft_loop *loop)
{
	return loop->first.first || loop->posts.first || loop->last.first
	       || loop->numbers.due || loop->ticks.count
	       || loop->microtasks.count || weft__wheel_has_run(&loop->wheel)
	       || weft__inbox_has(&loop->inbox);
}

bool
weft__loop_is_alive(const weft_loop *loop)
{
	return loop->alive > 0 || weft__loop_is_runnable(loop);
}

static void
wait(weft_loop *loop, uint64_t deadline_ns)
{
	uint64_t bound_ns;
	bool awake = loop->woken;

	loop->woken = false;
	if (awake || deadline_ns == WEFT_NOW || weft__loop_is_runnable(loop)
	    || weft__loop_is_stopping(loop)
	    || weft__load(&loop->leave, WEFT__RELAXED)
	    || (loop->alive == 0 && !loop->keep))
		return;
	bound_ns = weft__wheel_bound(&loop->wheel);
	weft__loop_sleep(loop, bound_ns < deadline_ns ? bound_ns : deadline_ns);
	loop->now_ns = 0;
}

void
weft__turn(weft_loop *loop, uint64_t deadline_ns)
{
	loop->now_ns = 0;
	loop->in_turn = true;
	run_timers(loop);
	(void)weft__inbox_take(&loop->inbox, &loop->first, &loop->posts);
	run_list(loop, &loop->first, WEFT__CALLS_MAX);
	if (!loop->first.first)
		run_list(loop, &loop->posts, loop->budget);
	run_last(loop);
	wait(loop, deadline_ns);
	weft__numbers_run_due(loop);
	loop->in_turn = false;
}
