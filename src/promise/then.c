/* then.c - resolving a promise, and chaining to it.
 *
 * A chained promise contains its reaction to the promise before, and until that reaction has run
 * it holds a reference to the chained promise.  A promise that is resolved with another promise
 * follows the other one: it settles when and as the other does, with the same value, and resolve
 * and reject have no effect on it meanwhile.
 *
 *   1. Following and passing on copy no value: the promise has the other one, or the other's
 *      own source, as its source.  So a chain of any length is one step deep.
 *   2. The loop calls reactions one after the other, and settling calls none of them: so
 *      chains of any length need no stack.
 *   3. A chain that another thread adds to a settled promise travels to the loop.  If the new
 *      promise is settled meanwhile, it lands when it arrives there.
 *   4. Such chains are letters in `chains`.  Before the loop chains to a settled promise
 *      itself, it drains that mailbox: so handlers run in the order in which they were chained,
 *      from whatever thread.  The loop does not end while the mailbox is due.
 */
#include "promise/promise.h"

#define chain_promise(reaction) \
	((weft_promise *)(void *)((char *)(reaction)-offsetof(weft_promise, chain)))

/* --- following ---------------------------------------------------------- */

static void
settle_as(weft_promise *promise, weft_promise *other, bool follower)
{
	struct weft__settling how = { .source = other, .follower = follower };

	(void)weft__promise_settle(promise, &how);
}

static void
run_follow(struct weft__reaction *reaction, weft_promise *of)
{
	weft_promise *promise = chain_promise(reaction);

	settle_as(promise, of, true);
	(void)weft_promise_unref(promise);
	(void)weft_promise_unref(of);
}

/* A reaction by which a promise follows another one while its own reaction is in use. */
struct apart {
	struct weft__reaction reaction; /* first */
	weft_promise *promise;
};

static void
run_apart(struct weft__reaction *reaction, weft_promise *of)
{
	weft_promise *promise = ((struct apart *)(void *)reaction)->promise;

	weft__sys->release(reaction);
	settle_as(promise, of, true);
	(void)weft_promise_unref(promise);
	(void)weft_promise_unref(of);
}

/* From now on only the promise that it follows settles this one; false if it is settled or
 * follows already. */
static bool
begin_to_follow(weft_promise *promise)
{
	bool can;

	if (!weft__promise_enter(promise))
		return false;
	can = !promise->follows;
	promise->follows = true;
	weft__promise_leave(promise);
	return can;
}

static bool
is_chained(const weft_promise *promise)
{
	return promise->kind == WEFT__PROMISE_THEN;
}

/* The reaction by which a promise follows another; NULL without memory. */
static struct weft__reaction *
make_reaction(weft_promise *promise, bool chain_is_free)
{
	struct apart *apart;

	if (chain_is_free || !is_chained(promise)) {
		promise->chain.run = run_follow;
		return &promise->chain;
	}
	apart = weft__sys->alloc(sizeof(*apart));
	if (!apart)
		return NULL;
	*apart = (struct apart){ { .run = run_apart }, promise };
	return &apart->reaction;
}

static int
fail_follower(weft_promise *promise)
{
	struct weft__settling how = { .outcome = WEFT_REJECTED,
		                      .value = weft_value_error(WEFT_ENOMEM),
		                      .follower = true };

	return weft__promise_settle(promise, &how);
}

/* `promise` follows `other`; begin_to_follow() has succeeded. */
static void
follow(weft_promise *promise, weft_promise *other, bool chain_is_free)
{
	struct weft__reaction *reaction;

	if (weft__promise_outcome(other) != WEFT_PENDING) {
		weft__promise_mark_handled(other);
		settle_as(promise, other, true);
		return;
	}
	reaction = make_reaction(promise, chain_is_free);
	if (!reaction) {
		(void)fail_follower(promise);
		return;
	}
	(void)weft_promise_ref(promise);
	if (!weft__promise_react(other, reaction)) /* it has settled just now */
		reaction->run(reaction, weft_promise_ref(other));
}

int
weft__promise_follow(weft_promise *promise, weft_promise *other)
{
	if (!begin_to_follow(promise))
		return WEFT_EALREADY;
	follow(promise, other, false);
	return 0;
}

static WEFT__NOINLINE int
resolve_with_promise(weft_promise *promise, weft_promise *other, bool chain_is_free)
{
	int rc = 0;

	if (other == promise) {
		(void)weft__fail(WEFT_EDEADLK,
		                 "weft_promise_resolve: a promise cannot be resolved with itself");
		rc = weft__promise_fail(promise, WEFT_EDEADLK);
	} else if (begin_to_follow(promise)) {
		follow(promise, other, chain_is_free);
	} else {
		rc = WEFT_EALREADY;
	}
	(void)weft_promise_unref(other);
	return rc;
}

/* --- thenables ------------------------------------------------------------- */

/* Borrows a thenable; the chained promise follows the promise that the thenable settles. */
static int
call_thenable(const weft_value *in, weft_value *out, void *arg)
{
	weft_promise *into = weft_promise_new(NULL);
	int rc;

	(void)arg;
	if (!into)
		return WEFT_ENOMEM;
	rc = in->type->then(in->as.ptr, into);
	if (rc < 0)
		(void)weft__promise_fail(into, rc);
	*out = (weft_value){ &weft_type_promise, { .ptr = into } };
	return 0;
}

/* `then` of a thenable is user code, so it is called in a microtask. */
static WEFT__NOINLINE int
resolve_with_thenable(weft_promise *promise, weft_value value, bool chain_is_free)
{
	struct weft__settling how = { .outcome = WEFT_FULFILLED, .value = value };
	weft_promise *carrier, *settled = NULL;

	if (!begin_to_follow(promise)) {
		weft_value_drop(&value);
		return WEFT_EALREADY;
	}
	carrier = weft_promise_new(weft__promise_loop(promise));
	if (carrier) {
		(void)weft__promise_settle(carrier, &how);
		settled = weft_promise_then(carrier, call_thenable, NULL, NULL);
	} else {
		weft_value_drop(&value);
	}
	if (!settled)
		return fail_follower(promise);
	follow(promise, settled, chain_is_free);
	(void)weft_promise_unref(settled);
	return 0;
}

/* With `chain_is_free` the promise's own reaction has run, and can be used to follow. */
static inline int
resolve(weft_promise *promise, weft_value value, bool chain_is_free)
{
	struct weft__settling how = { .outcome = WEFT_FULFILLED };

	weft__value_copy(&how.value, &value);
	if (value.type == &weft_type_promise)
		return resolve_with_promise(promise, value.as.ptr, chain_is_free);
	if (value.type && value.type->then)
		return resolve_with_thenable(promise, value, chain_is_free);
	return weft__promise_settle(promise, &how);
}

WEFT__FLATTEN int
weft_promise_resolve(weft_promise *promise, weft_value value)
{
	if (promise)
		return resolve(promise, value, false);
	weft_value_drop(&value);
	return weft__misuse(WEFT_EINVAL, "weft_promise_resolve: promise is NULL");
}

/* --- chaining ----------------------------------------------------------- */

/* A handler has failed: reject with `out`, if it was filled, else with the error. */
static WEFT__COLD struct weft__settling
failure(int rc, weft_value out)
{
	weft_value reason = out.type ? out : weft_value_error(rc);

	return (struct weft__settling){
		.outcome = WEFT_REJECTED,
		.value = reason,
		.keep_text = reason.type == &weft_type_error,
		.gives = true,
	};
}

/* Call the handler for the outcome of `before`.  Without one the outcome is passed on.  Fills
 * `how`, by which the promise settles. */
static void
call_handler(weft_promise *promise, weft_promise *before, struct weft__settling *how)
{
	bool is_rejected = weft__promise_outcome(before) == WEFT_REJECTED;
	weft_then_fn fn = is_rejected ? promise->rejected : promise->fulfilled;
	weft_value out = { 0 };
	int rc = 0;

	weft__failure_of(weft__thread_self())->text = NULL;
	if (is_rejected && fn)
		(void)weft__promise_error(before);
	if (fn)
		rc = fn(&before->value, &out, promise->arg);
	if (rc < 0) {
		*how = failure(rc, out);
	} else if (!fn) {
		how->source = before;
	} else {
		how->outcome = WEFT_FULFILLED;
		weft__value_copy(&how->value, &out);
	}
}

/* The promise is resolved with another promise or a thenable, and so may stay pending. */
static bool
is_to_follow(const struct weft__settling *how)
{
	return how->outcome == WEFT_FULFILLED && how->value.type
	       && (how->value.type == &weft_type_promise || how->value.type->then);
}

static WEFT__FLATTEN void
run_chain(struct weft__reaction *reaction, weft_promise *of)
{
	weft_promise *promise = chain_promise(reaction);
	struct weft__settling how = { .gives = true };

	call_handler(promise, of, &how);
	if (__builtin_expect(is_to_follow(&how), 0)) {
		(void)resolve(promise, how.value, true);
		(void)weft_promise_unref(promise);
	} else {
		(void)weft__promise_settle(promise, &how);
	}
	(void)weft_promise_unref(of);
}

/* `before` had landed when the promise was chained to it. */
static void
run_late(void *arg)
{
	weft_promise *promise = arg;

	run_chain(&promise->chain, promise->before);
}

/* On the loop's thread: chain to a pending promise, and consume the reference to it.  If
 * `before` is chained itself, the reference is kept for the job of its reactions: `before` is
 * settled by its chain, or by the promise that it follows, and these hold a reference until
 * then.  For any other promise the reference is dropped, so that the loss of the last
 * reference that could settle it is noticed. */
static bool
chain_to_pending(weft_promise *promise, weft_promise *before)
{
	bool gives;

	if (!weft__promise_enter(before)) {
		weft__promise_mark_handled(before);
		return false;
	}
	weft__promise_mark_handled_locked(before);
	weft__reaction_add(&before->last, &promise->chain);
	gives = is_chained(before) && !before->holds;
	if (gives)
		before->holds = true;
	weft__promise_leave(before);
	if (!gives)
		(void)weft_promise_unref(before);
	return true;
}

/* On the loop's thread: chain to a promise that has settled.  0, WEFT_ENOMEM. */
static int
chain_late(weft_promise *promise, weft_promise *before)
{
	weft_loop *loop = weft__promise_loop(promise);

	if (!before->landed) {
		weft__reaction_add(&before->last, &promise->chain);
		return 0;
	}
	promise->before = before;
	if (weft__loop_push_microtask(loop, run_late, promise) < 0)
		return weft__fail(WEFT_ENOMEM, "weft_promise_then: out of memory");
	(void)weft_promise_ref(before);
	weft__loop_changed(loop);
	return 0;
}

/* --- from other threads ----------------------------------------------------- */

/* A promise that is chained to a settled one, on its way to the loop. */
struct chain_letter {
	struct weft__letter letter;     /* first */
	weft_promise *promise, *before; /* both referenced */
};

/* Cannot fail: without memory for a job of its own, the reaction joins the job of `before`,
 * which waits until there is memory. */
void
weft__promise_on_chained(struct weft__mailbox *box, struct weft__letter *letter)
{
	struct chain_letter *chain_letter = (struct chain_letter *)(void *)letter;
	weft_promise *promise = chain_letter->promise, *before = chain_letter->before;
	bool has_job = before->last != NULL;

	(void)box;
	weft__sys->release(chain_letter);
	if (weft__promise_end_transit(promise))
		weft__promise_land(promise);
	if (chain_late(promise, before) < 0) {
		weft__reaction_add(&before->last, &promise->chain);
		if (!has_job)
			weft__promise_queue_job(weft_promise_ref(before));
	}
	(void)weft_promise_unref(before);
}

/* On the loop's thread: first chain what other threads have chained before.  Invariant 4. */
static int
chain_in_order(weft_promise *promise, weft_promise *before)
{
	weft__mailbox_drain(&before->owner->chains);
	return chain_late(promise, before);
}

/* On another thread than the loop's; consumes `chain_letter`.  Invariant 3. */
static void
chain_by_letter(weft_promise *promise, weft_promise *before, struct chain_letter *chain_letter)
{
	if (!weft__promise_react(before, &promise->chain)) {
		chain_letter->promise = promise;
		chain_letter->before = weft_promise_ref(before);
		(void)weft__mailbox_post(&promise->owner->chains, &chain_letter->letter);
		return;
	}
	weft__sys->release(chain_letter);
	(void)weft_promise_ref(promise);
	if (weft__promise_end_transit(promise))
		weft__promise_send(promise);
	else
		(void)weft_promise_unref(promise);
}

/* --- the call ------------------------------------------------------------ */

/* Drop a promise that was chained to nothing and that no other code has. */
static WEFT__NOINLINE weft_promise *
undo(weft_promise *promise)
{
	(void)weft_promise_unref(promise);
	return weft_promise_unref(promise);
}

/* Will the loop call handlers?  While the loop ends, new promises are rejected at once, and
 * handlers still run. */
static bool
is_served(const weft_promise *promise, bool is_here)
{
	return promise->listed || (is_here && weft__loop_is_ending(weft__promise_loop(promise)));
}

struct handlers {
	weft_then_fn fulfilled, rejected;
	void *arg;
};

static weft_promise *
make_next(const weft_promise *before, const struct handlers *handlers, bool is_here)
{
	struct weft__making how = { .loop = weft__promise_loop(before),
		                    .size = sizeof(*before),
		                    .refs = 2,
		                    .in_transit = !is_here,
		                    .kind = WEFT__PROMISE_THEN };
	weft_promise *promise = how.loop ? weft__promise_make(&how) : NULL;

	if (!promise)
		return NULL;
	promise->fulfilled = handlers->fulfilled;
	promise->rejected = handlers->rejected;
	promise->arg = handlers->arg;
	promise->chain.run = run_chain;
	if (is_served(promise, is_here))
		return promise;
	(void)weft__fail(WEFT_ESHUTDOWN, "weft_promise_then: the promise's loop has stopped");
	return undo(promise);
}

static WEFT__NOINLINE weft_promise *
chain_elsewhere(weft_promise *before, const struct handlers *handlers)
{
	struct chain_letter *chain_letter = weft__alloc_zero(sizeof(*chain_letter));
	weft_promise *promise = chain_letter ? make_next(before, handlers, false) : NULL;

	if (promise)
		chain_by_letter(promise, before, chain_letter);
	else
		weft__sys->release(chain_letter);
	(void)weft_promise_unref(before);
	return promise;
}

/* Consumes the caller's reference to `before`. */
static weft_promise *
chain(weft_promise *before, const struct handlers *handlers)
{
	weft_promise *promise;

	if (!before)
		return NULL;
	if (!weft__promise_is_here(before))
		return chain_elsewhere(before, handlers);
	promise = make_next(before, handlers, true);
	if (promise && chain_to_pending(promise, before))
		return promise;
	if (promise && chain_in_order(promise, before) < 0)
		promise = undo(promise);
	(void)weft_promise_unref(before);
	return promise;
}

WEFT__FLATTEN weft_promise *
weft_promise_then(weft_promise *promise, weft_then_fn fulfilled, weft_then_fn rejected, void *arg)
{
	struct handlers handlers = { .fulfilled = fulfilled, .rejected = rejected, .arg = arg };

	return chain(promise, &handlers);
}
