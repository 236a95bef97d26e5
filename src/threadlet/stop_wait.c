/* stop_wait.c - a threadlet waits until another loop has stopped.
 *
 * The thread on which that loop ends notifies the threadlet's own loop, which ends the wait.  A
 * request to end early withdraws the wait, or finds that the notification is on its way.
 */
#include "threadlet/threadlet.h"

struct wait {
	struct weft__stop_wait stop; /* first */
	struct weft__waiter waiter;
	struct weft__node_head node;
	weft_loop *home; /* owner loop of the threadlet */
	weft_loop *late; /* it has not stopped by the deadline; a reference */
};

/* On the thread of the threadlet's loop. */
static void
on_word(void *arg)
{
	struct wait *wait = arg;

	if (weft__claim(&wait->waiter))
		weft__wake(&wait->waiter, 0);
}

/* On the thread of the loop that has stopped. */
static void
on_stopped(struct weft__stop_wait *stop)
{
	struct wait *wait = (struct wait *)(void *)stop;

	weft__loop_send(wait->home, &wait->node, on_word, wait);
}

static void
give_up(struct weft__waiter *waiter, int why)
{
	struct wait *wait = (struct wait *)(void *)((char *)waiter - offsetof(struct wait, waiter));
	weft_loop *loop = weft__stop_wait_drop(&wait->stop);

	if (!loop)
		return;
	if (why == WEFT_ETIMEDOUT)
		wait->late = loop;
	else
		(void)weft_loop_unref(loop);
	if (weft__claim(waiter))
		weft__wake(waiter, why);
}

int
weft__threadlet_wait_stopped(weft_loop *loop, uint64_t deadline_ns)
{
	struct wait wait = { .stop = { .told = on_stopped },
		             .waiter = { .what = "stop", .on = (intptr_t)loop, .ask = give_up } };
	int rc = weft__may_wait(deadline_ns);

	if (rc < 0)
		return rc;
	wait.home = weft__self()->sched->loop;
	if (!weft__stop_wait_add(loop, &wait.stop))
		return 0;
	rc = (int)weft__wait(&wait.waiter, deadline_ns);
	if (wait.late) {
		weft__loop_report_late(wait.late);
		(void)weft_loop_unref(wait.late);
	}
	return rc;
}
