/* await.c - waiting for a promise, of any loop, on a threadlet or a plain thread.
 *
 * Whoever waits stands among the promise's reactions, and is woken by the thread that
 * settles it, without a detour over the promise's loop.
 *
 *   1. Who settles takes awaiters out, inside, and claims them there.  One that was claimed
 *      is woken, and its memory is the waker's until then; any other leaves the ring by
 *      itself, inside, before it returns.
 */
#include "promise/promise.h"

/* Take an awaiter out, if it is there. */
static void
leave(weft_promise *promise, struct weft__reaction *awaiter)
{
	struct weft__reaction *reaction, *next;

	if (!weft__promise_enter(promise))
		return; /* it was taken out */
	reaction = weft__reaction_take(&promise->last);
	for (; reaction; reaction = next) {
		next = reaction->next;
		if (reaction != awaiter)
			weft__reaction_add(&promise->last, reaction);
	}
	weft__promise_leave(promise);
}

/* Inside of a pending promise: go out, and wait until it has settled. */
static int
wait_inside(weft_promise *promise, uint64_t deadline_ns)
{
	struct weft__awaiter awaiter = { .reaction = { 0 } };
	int rc;

	weft__shared_waiter_init(&awaiter.w, "promise", promise);
	promise->awaited = true;
	weft__reaction_add(&promise->last, &awaiter.reaction);
	weft__promise_leave(promise);
	rc = (int)weft__shared_wait(&awaiter.w, deadline_ns);
	if (!weft__get(awaiter.w.waiter.chosen))
		leave(promise, &awaiter.reaction);
	return rc;
}

/* 0: it has settled. */
static int
wait_for(weft_promise *promise, uint64_t deadline_ns)
{
	int rc = weft__gate_may_wait(true, deadline_ns);
	bool is_pending = weft__promise_enter(promise);

	if (is_pending)
		weft__promise_care_inside(promise);
	else
		weft__promise_care(promise);
	if (is_pending && rc < 0)
		weft__promise_leave(promise);
	if (rc < 0)
		return rc;
	if (is_pending)
		rc = wait_inside(promise, deadline_ns);
	/* What has come beats what ended the wait. */
	return weft__promise_outcome(promise) != WEFT_PENDING ? 0 : rc;
}

int
weft_await(weft_promise *promise, weft_value *out, uint64_t deadline_ns)
{
	int rc;

	if (!promise)
		return weft__misuse(WEFT_EINVAL, "weft_await: NULL");
	rc = weft__told(deadline_ns);
	if (rc < 0)
		return rc;
	if (weft__promise_outcome(promise) == WEFT_PENDING) {
		rc = wait_for(promise, deadline_ns);
		if (rc < 0)
			return rc;
	} else {
		weft__promise_care(promise);
		(void)weft__stayed(weft__self());
	}
	if (weft__promise_outcome(promise) == WEFT_REJECTED)
		return weft__promise_error(promise);
	if (out)
		*out = promise->value;
	return 0;
}
