/* stop_wait.c - waiting for a loop to stop by a callback, without a parked thread.
 *
 *   1. A wait is in the list of its loop, or its callback was made, or it was dropped; under
 *      the registry's lock.  A wait in a list holds a reference to the loop, which the thread
 *      that removes the wait drops: while something waits, the loop is not freed.
 *   2. A thread that adds a wait is a visitor of the loop (V in life.c), then reads the state, and
 *      enters the list before it leaves.  The runner writes STOPPED (S), then checks for visitors
 *      and references: if a thread has not seen STOPPED, the runner finds one of the two.
 *   3. A callback does not touch the loop, which may have been freed.
 */
#include "base/report.h"
#include "base/text.h"
#include "loop/loop.h"

#define LATE_BYTES 1200 /* bytes of a report */

bool
weft__stop_wait_add(weft_loop *loop, struct weft__stop_wait *wait)
{
	bool stopped;

	weft__loop_enter(loop); /* V */
	weft__lock_take(&weft__registry.lock);
	stopped = weft__load(&loop->state, WEFT__SEQ_CST) == WEFT_STOPPED;
	if (!stopped) {
		(void)weft_loop_ref(loop);
		wait->loop = loop;
		wait->next = loop->stop_waits;
		loop->stop_waits = wait;
	}
	weft__lock_give(&weft__registry.lock);
	weft__loop_exit(loop);
	return !stopped;
}

/* The caller holds the lock. */
static void
loop_stop_wait_take_out(struct weft__stop_wait *wait)
{
	struct weft__stop_wait **link = &wait->loop->stop_waits;

	while (*link != wait)
		link = &(*link)->next;
	*link = wait->next;
	wait->loop = NULL;
}

weft_loop *
weft__stop_wait_drop(struct weft__stop_wait *wait)
{
	weft_loop *loop;

	weft__lock_take(&weft__registry.lock);
	loop = wait->loop;
	if (loop)
		loop_stop_wait_take_out(wait);
	weft__lock_give(&weft__registry.lock);
	return loop;
}

void
weft__stop_waits_tell(weft_loop *loop)
{
	struct weft__stop_wait *wait;

	do {
		weft__lock_take(&weft__registry.lock);
		wait = loop->stop_waits;
		if (wait)
			loop_stop_wait_take_out(wait);
		weft__lock_give(&weft__registry.lock);
		if (!wait)
			break;
		(void)weft_loop_unref(loop);
		wait->told(wait);
	} while (true);
}

void
weft__loop_report_late(weft_loop *loop)
{
	char buf[LATE_BYTES];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));

	weft__text_add(&text, "has not stopped by the deadline");
	if (weft__loop_sched(loop))
		weft__loop_sched(loop)->add_rest(loop, &text);
	weft__report(&(weft_report){ .kind = WEFT_REPORT_LATE_STOP,
	                             .level = 1,
	                             .error = WEFT_ETIMEDOUT,
	                             .loop = loop,
	                             .name = loop->name,
	                             .text = buf });
}
