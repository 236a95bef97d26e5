/* wait_stopped.c - a threadlet or a thread waits until a loop has stopped.
 *
 * The thread on which that loop ends claims the waiter, if it still waits, and wakes it, as
 * waitables do (waitable.c).
 */
#include "threadlet/waitable.h"

struct stopped_wait {
	struct weft__stop_wait stop; /* first */
	struct weft__shared_waiter w;
};

static bool
stopped_claim(struct weft__stop_wait *stop)
{
	return weft__claim(&((struct stopped_wait *)(void *)stop)->w.waiter);
}

static void
stopped_wake(struct weft__stop_wait *stop)
{
	weft__waitable_wake_shared(&((struct stopped_wait *)(void *)stop)->w, 0);
}

/* Whether the caller may wait.  A loop that runs on this thread, or that this thread embeds,
 * could not run on while the thread waits. */
static int
stopped_check(const weft_loop *loop, uint64_t deadline_ns)
{
	if (loop == weft__thread_self()->loop
	    || (deadline_ns != WEFT_NOWAIT && !weft__self() && weft__loop_is_hosted_here(loop)))
		return weft__fail(WEFT_EDEADLK, "weft_loop_wait_stopped: a loop cannot wait for "
		                                "its own end");
	return weft__waitable_may_wait(true, deadline_ns);
}

/* The deadline has passed. */
static int
stopped_late(struct stopped_wait *wait)
{
	weft_loop *loop = weft__stop_wait_drop(&wait->stop);

	if (!loop)
		return 0; /* it has just stopped */
	/* The report may suspend, and a visitor must not: weft_loop_free() waits for visitors. */
	(void)weft_loop_ref(loop);
	weft__loop_exit(loop);
	weft__loop_report_late(loop);
	(void)weft_loop_unref(loop);
	return WEFT_ETIMEDOUT;
}

int
weft_loop_wait_stopped(weft_loop *loop, uint64_t deadline_ns)
{
	struct stopped_wait wait = { .stop = { .claim = stopped_claim, .wake = stopped_wake } };
	int rc;

	loop = weft__loop_or_current(loop);
	if (!loop || weft__loop_is_forked(loop))
		return weft__misuse(
			loop ? WEFT_EWRONGLOOP : WEFT_EINVAL,
			"weft_loop_wait_stopped: loop is NULL, or was made by a parent process");
	if (weft_loop_state(loop) == WEFT_STOPPED)
		return 0;
	rc = stopped_check(loop, deadline_ns);
	if (rc < 0)
		return rc;
	weft__shared_waiter_init(&wait.w, "stop", loop);
	wait.w.waiter.request_end = weft__waitable_end_wait;
	wait.w.may_spin = false;
	if (!weft__stop_wait_add(loop, &wait.stop))
		return 0;
	rc = (int)weft__shared_wait(&wait.w, deadline_ns);
	if (rc == WEFT_ETIMEDOUT)
		return stopped_late(&wait);
	if (rc < 0 && (loop = weft__stop_wait_drop(&wait.stop)))
		weft__loop_exit(loop);
	return rc;
}
