/* reference.c - references to a promise, and its end.
 *
 *   1. The thread that decrements `refs` to 0 had the last reference, and ends the promise.
 *      Everything done under any reference comes before (released by each unref, acquired by
 *      the last).
 *   2. A pending promise without references is rejected, if anything has to be notified.  Its
 *      loop does that, and gets a reference for it.
 *   3. Lists hold no reference.  A thread that walks a list takes one by
 *      weft__promise_try_ref(), while something keeps the memory valid: the list's lock, or
 *      being the list's only thread.
 *   4. What a promise holds ends with it, at once.  For promises nested in each other, the
 *      depth of the recursion is bounded.
 */
#include "promise/promise.h"

#define NESTED_MAX 8u /* fits the stack of a threadlet */

/* --- references --------------------------------------------------------- */

weft_promise *
weft_promise_ref(weft_promise *promise)
{
	if (promise)
		(void)weft__add(&promise->refs, 1, WEFT__RELAXED);
	return promise;
}

bool
weft__promise_try_ref(weft_promise *promise)
{
	uint32_t refs = weft__load(&promise->refs, WEFT__RELAXED);

	while (refs > 0)
		if (weft__cas(&promise->refs, &refs, refs + 1, WEFT__ACQUIRE)) /* T */
			return true;
	return false;
}

void
weft__promise_ref_pending(weft_promise *promise)
{
	while (!weft__promise_try_ref(promise))
		weft__sys->yield(); /* abandon() does not free it, and takes the reference */
}

static void
end_promise(weft_promise *promise)
{
	weft_promise *owner = weft__promise_value_owner(promise);

	if (promise->kind == WEFT__PROMISE_ABORT)
		weft__abort_end(promise);
	if (owner != promise) {
		(void)weft_promise_unref(owner);
	} else {
		if (promise->value.type && promise->value.type->drop)
			weft_value_drop(&promise->value);
		if (promise->text)
			weft__sys->release(promise->text);
	}
	weft__promise_release(promise);
}

/* The end of this promise ends no other promise and drops no value. */
static inline bool
ends_alone(const weft_promise *promise)
{
	const weft_type *type = promise->value.type;

	return (!type || !type->drop) && promise->kind != WEFT__PROMISE_ABORT
	       && !(weft__load(&promise->outcome, WEFT__RELAXED) & WEFT__PROMISE_SOURCE);
}

/* Values are dropped at once, also values of promises in lists in promises.  If these are
 * nested deeply, inner ones wait until the outer ones no longer need the stack. */
static WEFT__NOINLINE void
end_nested(weft_promise *promise)
{
	struct weft__thread *thread = weft__thread_self();

	if (thread->ends == NESTED_MAX) {
		promise->next = thread->ending;
		thread->ending = promise;
		return;
	}
	thread->ends++;
	end_promise(promise);
	while (thread->ends == NESTED_MAX && (promise = thread->ending)) {
		thread->ending = promise->next;
		end_promise(promise);
	}
	thread->ends--;
}

static void
destroy(weft_promise *promise)
{
	if (ends_alone(promise))
		end_promise(promise);
	else
		end_nested(promise);
}

/* No reference is left through which the promise could be settled, and nothing has to be notified
 * of that.  Listeners of an abort signal are not notified either: it simply never fires. */
static bool
is_forgotten(const weft_promise *promise, bool is_here)
{
	if (promise->kind == WEFT__PROMISE_ABORT)
		return is_here || (promise->foreign && !weft__abort_is_tied(promise));
	return !promise->last
	       && (is_here || (promise->foreign && promise->kind != WEFT__PROMISE_OP));
}

/* The last reference was dropped on the loop's thread.  Invariant 3 of promise.c. */
static void
break_promise(weft_promise *promise)
{
	struct weft__settling how = { .outcome = WEFT_REJECTED,
		                      .value = weft_value_error(WEFT_ECLOSED),
		                      .keep_text = true,
		                      .follower = true };

	weft__store(&promise->handled, WEFT__HANDLED, WEFT__RELAXED);
	weft__store(&promise->refs, 1, WEFT__RELAXED);
	(void)weft__fail(
		WEFT_ECLOSED,
		"weft_promise_unref: the last reference was dropped before the promise settled");
	(void)weft__promise_settle(promise, &how);
	(void)weft_promise_unref(promise);
}

/* The last reference to a pending promise was dropped. */
static WEFT__COLD void
abandon(weft_promise *promise)
{
	bool is_here = weft__promise_is_here(promise);

	if (is_forgotten(promise, is_here)) {
		weft__promise_unlist(promise);
		promise->value = (weft_value){ 0 };
		promise->text = NULL;
		destroy(promise);
	} else if (is_here) {
		break_promise(promise);
	} else { /* the loop has to reject it */
		promise->in_transit = true;
		weft__store(&promise->refs, 1, WEFT__RELEASE); /* T */
		weft__promise_send(promise);
	}
}

/* Each unref releases and the last one acquires: so everything done under a reference comes
 * before.  A count of 1 means that this is the last reference, unless a thread that walks a
 * list is about to take another: for lists of the loop that can only be its thread, for lists
 * of abort signals any thread. */
static inline bool
was_last(weft_promise *promise)
{
	if (weft__load(&promise->refs, WEFT__ACQUIRE) != 1 || promise->kind == WEFT__PROMISE_ABORT
	    || !weft__promise_is_here(promise))
		return weft__add(&promise->refs, UINT32_MAX, WEFT__ACQ_REL) == 1;
	weft__store(&promise->refs, 0, WEFT__RELAXED);
	return true;
}

WEFT__FLATTEN weft_promise *
weft_promise_unref(weft_promise *promise)
{
	if (!promise || !was_last(promise))
		return NULL;
	if (promise->kind == WEFT__PROMISE_OP && weft__promise_is_here(promise)
	    && weft__promise_op_keeps(promise))
		return NULL;
	if (weft__promise_outcome(promise) == WEFT_PENDING)
		abandon(promise);
	else
		destroy(promise);
	return NULL;
}

weft_outcome
weft_promise_state(weft_promise *promise, weft_value *out)
{
	weft_outcome outcome = promise ? weft__promise_outcome(promise) : WEFT_PENDING;

	if (out && outcome != WEFT_PENDING)
		*out = promise->value;
	return outcome;
}

int
weft__promise_error(const weft_promise *promise)
{
	const weft_promise *owner = weft__promise_value_owner((weft_promise *)(uintptr_t)promise);
	const weft_value *reason = &owner->value;
	int error = reason->type == &weft_type_error ? (int)reason->as.integer : WEFT_EREJECTED;

	if (owner->text)
		return weft_fail(error, "%s", owner->text);
	if (reason->type == &weft_type_text)
		return weft_fail(error, "%s", (const char *)reason->as.ptr);
	return weft__fail(error, weft_strerror(error));
}

/* --- as a value --------------------------------------------------------- */

static void
drop_value(void *ptr)
{
	(void)weft_promise_unref(ptr);
}

static void
share_value(void *ptr)
{
	(void)weft_promise_ref(ptr);
}

const weft_type weft_type_promise = { .name = "promise", .drop = drop_value, .share = share_value };

weft_value
weft_value_promise(weft_promise *promise)
{
	if (!promise)
		return weft_value_error(
			weft__misuse(WEFT_EINVAL, "weft_value_promise: promise is NULL"));
	return (weft_value){ &weft_type_promise, { .ptr = promise } };
}
