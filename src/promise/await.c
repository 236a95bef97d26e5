/* await.c - waiting for a promise of any loop, in a threadlet or on a plain thread.
 *
 * An awaiter is among the promise's reactions.  The thread that settles the promise wakes it
 * directly, without a detour over the owner loop.
 *
 *   1. The settling thread takes awaiters out of the ring, with the lock held, and claims them
 *      there.  It wakes an awaiter that it has claimed, and may use the awaiter's memory until
 *      then.  Any other awaiter leaves the ring by itself, with the lock held, before it returns.
 */
#include "promise/promise.h"

/* Take an awaiter out of the reactions, if it is there. */
static void
promise_await_leave(weft_promise *promise, struct weft__reaction *awaiter)
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

/* With a pending promise locked: unlock it, and wait until it has settled. */
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
		promise_await_leave(promise, &awaiter.reaction);
	return rc;
}

/* Returns 0: the promise has settled. */
static int
promise_await_wait_for(weft_promise *promise, uint64_t deadline_ns)
{
	int rc = weft__waitable_may_wait(true, deadline_ns);
	bool is_pending = weft__promise_enter(promise);

	if (is_pending)
		weft__promise_mark_handled_locked(promise);
	else
		weft__promise_mark_handled(promise);
	if (is_pending && rc < 0)
		weft__promise_leave(promise);
	if (rc < 0)
		return rc;
	if (is_pending)
		rc = wait_inside(promise, deadline_ns);
	/* A result that has arrived beats the reason why the wait ended. */
	return weft__promise_outcome(promise) != WEFT_PENDING ? 0 : rc;
}

int
weft_await(weft_promise *promise, weft_value *out, uint64_t deadline_ns)
{
	int rc;

	if (!promise)
		return weft__misuse(WEFT_EINVAL, "weft_await: promise is NULL");
	rc = weft__check_requests(deadline_ns);
	if (rc < 0)
		return rc;
	if (weft__promise_outcome(promise) == WEFT_PENDING) {
		rc = promise_await_wait_for(promise, deadline_ns);
		if (rc < 0)
			return rc;
	} else {
		weft__promise_mark_handled(promise);
		(void)weft__maybe_yield(weft__self());
	}
	if (weft__promise_outcome(promise) == WEFT_REJECTED)
		return weft__promise_error(promise);
	if (out)
		*out = promise->value;
	return 0;
}
