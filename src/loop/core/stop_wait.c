/* stop_wait.c - the waits for a loop to stop; threadlet/wait_stopped.c waits.
 *
 *   1. A wait is in the list of its loop until the loop has stopped or the waiter drops the wait.
 *      The registry's lock protects the list.  A wait in a list holds a reference to the loop, so
 *      the loop is not freed.  weft_loop_free() waits until the runner gives up the loop, and the
 *      runner empties the list before that: so a free after a wait does not fail because of these
 *      references.
 *   2. A thread that adds a wait is a visitor of the loop (V in life.c), then reads the state, and
 *      enters the list before it leaves.  The runner writes STOPPED (S), then checks for visitors
 *      and references: if a thread has not seen STOPPED, the runner finds one of the two.
 *   3. The runner claims a wait under the lock.  If the wait ends for another reason, the claim
 *      fails and the runner does not touch the wait again.  The runner wakes the claimed waits
 *      after it has released the lock.
 */
#include "base/text.h"
#include "loop/core/loop.h"

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

	weft__assert(weft__count_get(&wait->loop->refs) > 0); /* invariant 1 */
	while (*link != wait)
		link = &(*link)->next;
	*link = wait->next;
	wait->loop = NULL;
}

/* The visit begins before the reference ends, so a free waits for it. */
weft_loop *
weft__stop_wait_drop(struct weft__stop_wait *wait)
{
	weft_loop *loop;

	weft__lock_take(&weft__registry.lock);
	loop = wait->loop;
	if (loop) {
		loop_stop_wait_take_out(wait);
		weft__loop_enter(loop);
		(void)weft_loop_unref(loop);
	}
	weft__lock_give(&weft__registry.lock);
	return loop;
}

void
weft__stop_waits_end(weft_loop *loop)
{
	struct weft__stop_wait *claimed = NULL, *wait;

	weft__lock_take(&weft__registry.lock);
	while ((wait = loop->stop_waits)) {
		loop_stop_wait_take_out(wait);
		(void)weft_loop_unref(loop);
		if (!wait->claim(wait))
			continue;
		wait->next = claimed;
		claimed = wait;
	}
	weft__lock_give(&weft__registry.lock);
	while ((wait = claimed)) {
		claimed = wait->next;
		wait->wake(wait);
	}
}

void
weft__loop_report_late(weft_loop *loop)
{
	char buf[LATE_BYTES];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));

	weft__text_add(&text, "has not stopped by the deadline");
	if (weft__loop_sched(loop))
		weft__loop_sched(loop)->add_unfinished(loop, &text);
	weft__loop_report(&(weft_report){ .kind = WEFT_REPORT_LATE_STOP,
	                                  .level = 1,
	                                  .error = WEFT_ETIMEDOUT,
	                                  .loop = loop,
	                                  .name = loop->name,
	                                  .text = buf });
}
