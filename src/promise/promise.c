/* promise.c - a promise: creating, settling, landing.
 *
 * A promise is settled by the first thread that does so.  That makes its outcome visible to
 * all threads and wakes the awaiters.  Its reactions run on its owner loop: there the promise
 * lands, at once if it was settled on the loop's thread, else after promise_owner.c has sent it
 * there.
 *
 *   1. `outcome` is also the lock of a pending promise: BUSY while a thread holds it (I:
 *      released by one holder, acquired by the next).  A holder never waits.  The holder
 *      settles the promise: it writes value, source and text first (S: released, and acquired
 *      by every reader of the outcome).  They stay until the promise is freed.
 *   2. While the promise is pending, any thread may add reactions, with the lock held.  Once
 *      it has settled, the ring belongs to the loop alone: the loop adds reactions that come
 *      before the landing, and queues one microtask for all of them at the landing.  Later
 *      ones are queued one by one.  So reactions run in the order in which they were added.
 *   3. Each reaction runs exactly once.  A promise that would never settle is rejected: when
 *      its last reference is dropped (WEFT_ECLOSED), or as the loop stops (WEFT_ESHUTDOWN).
 *   4. An unhandled rejection is reported where the promise landed; later, if another thread
 *      may be about to handle it (promise_owner.c).  A thread that handles it after the report
 *      reports that, too, on whatever thread it runs.  `handled` orders nothing: it is changed
 *      with the lock held, so before there is anything to report (I, S), or by a thread that
 *      has found the promise settled, and so sees its value (S).
 *   5. After a promise has landed, only calls that add reactions access its loop, and their
 *      documentation says so.
 *   6. The job for the reactions holds a reference: one that was given with a reaction or by
 *      the settling call, if there was one, else a new one.
 */
#include <string.h>
#include "base/text.h"
#include "promise/promise.h"

#define REPORT_TEXT 512

/* --- making ------------------------------------------------------------- */

/* The loop has stopped: the promise is rejected from the beginning, and nothing can be added. */
static WEFT__COLD void
be_late(weft_promise *promise)
{
	promise->value = weft_value_error(WEFT_ESHUTDOWN);
	promise->text = NULL;
	promise->landed = true;
	weft__store(&promise->handled, WEFT__HANDLED, WEFT__RELAXED);
	weft__store(&promise->outcome, WEFT_REJECTED, WEFT__RELEASE); /* S */
}

static WEFT__COLD weft_promise *
cannot_make(weft_loop *loop)
{
	if (!loop)
		(void)weft__misuse(
			WEFT_EINVAL,
			"weft_promise_*: no loop is given, and none runs on this thread");
	else if (weft__loop_is_forked(loop))
		(void)weft__misuse(WEFT_EWRONGLOOP,
		                   "weft_promise_*: the loop was made by a parent process");
	else
		(void)weft__fail(WEFT_ENOMEM, "weft_promise_*: out of memory");
	return NULL;
}

/* No other thread has the promise, so plain stores suffice.  Members not written here are
 * written before they are read: the outcome when it settles, the chain when it is chained. */
static inline void
init(weft_promise *promise, struct weft__promise_owner *owner, const struct weft__making *how)
{
	promise->refs = (weft__a32){ how->refs };
	promise->outcome = (weft__a32){ WEFT_PENDING };
	promise->handled = (weft__a32){ how->handled ? WEFT__HANDLED : WEFT__UNHANDLED };
	promise->flags = 0;
	promise->kind = how->kind;
	if (how->in_transit)
		promise->in_transit = true;
	promise->owner = owner;
	promise->last = NULL;
}

weft_promise *
weft__promise_make(const struct weft__making *how)
{
	weft_loop *loop = weft__loop_or_current(how->loop);
	struct weft__promise_owner *owner;
	weft_promise *promise = NULL;
	bool here = false;

	if (loop && !weft__loop_is_forked(loop)) {
		owner = weft__promise_owner_of(loop);
		if (owner) {
			here = weft__promise_owner_is_here(owner);
			promise = weft__promise_alloc(owner, here, how->kind, how->size);
		}
	}
	if (!promise)
		return cannot_make(loop);
	init(promise, owner, how);
	if (!weft__promise_list(promise, here))
		be_late(promise);
	return promise;
}

WEFT__FLATTEN weft_promise *
weft_promise_new(weft_loop *loop)
{
	struct weft__making how = { .loop = loop, .size = sizeof(weft_promise), .refs = 1 };

	return weft__promise_make(&how);
}

/* --- reports ------------------------------------------------------------ */

/* On other threads than the loop's, the loop may be freed, and is not part of the report. */
static WEFT__COLD void
promise_report(const weft_promise *promise, weft_report_kind kind, const char *what)
{
	char text[REPORT_TEXT];
	struct weft__text to = weft__text_begin(text, sizeof(text));
	int error = weft__promise_error(promise);
	weft_loop *loop = weft__promise_is_here(promise) ? weft__promise_loop(promise) : NULL;

	weft__text_add(&to, "a promise was ");
	weft__text_add(&to, what);
	weft__text_add(&to, ": ");
	weft__text_add(&to, weft_detail());
	weft__loop_report(&(weft_report){ .kind = kind,
	                                  .level = kind == WEFT_REPORT_UNHANDLED ? 0 : 2,
	                                  .error = error,
	                                  .loop = loop,
	                                  .promise = (weft_promise *)(uintptr_t)promise,
	                                  .reason = &promise->value,
	                                  .name = loop ? weft__loop_name(loop) : NULL,
	                                  .text = text });
}

void
weft__promise_report(weft_promise *promise)
{
	uint32_t handled = WEFT__UNHANDLED;

	if (weft__cas(&promise->handled, &handled, WEFT__REPORTED, WEFT__RELAXED))
		promise_report(promise, WEFT_REPORT_UNHANDLED,
		               "rejected, and no handler was attached");
}

void
weft__promise_mark_handled_slow(weft_promise *promise)
{
	uint32_t before = weft__exchange(&promise->handled, WEFT__HANDLED, WEFT__RELAXED);

	if (before == WEFT__REPORTED)
		promise_report(promise, WEFT_REPORT_HANDLED,
		               "handled after it was reported as unhandled");
}

/* --- landing ------------------------------------------------------------ */

/* The last reaction gets the job's reference.  So while it runs, the job holds no reference of its
 * own: a reaction that has the only one may move the value (combine.c). */
void
weft__promise_run(void *arg)
{
	weft_promise *promise = arg;
	struct weft__reaction *reaction = weft__reaction_take(&promise->last);
	struct weft__reaction *next;

	for (; reaction; reaction = next) {
		next = reaction->next;
		if (next)
			(void)weft_promise_ref(promise);
		reaction->run(reaction, promise);
	}
}

/* Invariant 6. */
static inline void
queue_job(weft_promise *promise)
{
	if (!promise->holds)
		(void)weft_promise_ref(promise);
	promise->holds = false;
	weft__promise_queue_job(promise);
}

void
weft__promise_land(weft_promise *promise)
{
	weft__promise_unlist(promise);
	promise->landed = true;
	if (promise->kind == WEFT__PROMISE_OP)
		(void)weft__promise_op_keeps(promise);
	if (promise->last)
		queue_job(promise);
	else if (weft__promise_outcome(promise) == WEFT_REJECTED
	         && weft__load(&promise->handled, WEFT__RELAXED) == WEFT__UNHANDLED)
		weft__promise_watch_rejection(promise);
}

bool
weft__promise_enter_slow(weft_promise *promise)
{
	uint32_t outcome;

	do {
		outcome = WEFT_PENDING;
		if (weft__cas(&promise->outcome, &outcome, WEFT__PROMISE_BUSY,
		              WEFT__ACQUIRE)) /* I */
			return true;
		if (outcome == WEFT__PROMISE_BUSY)
			weft__sys->yield();
	} while (outcome <= WEFT_PENDING || outcome == WEFT__PROMISE_BUSY);
	(void)weft__load(&promise->outcome, WEFT__ACQUIRE); /* S */
	return false;
}

bool
weft__promise_end_transit(weft_promise *promise)
{
	bool pending = weft__promise_enter(promise);

	promise->in_transit = false;
	if (pending)
		weft__promise_leave(promise);
	return !pending;
}

/* --- settling ----------------------------------------------------------- */

/* A copy of weft_detail(), if there is memory. */
static WEFT__NOINLINE char *
keep_text(void)
{
	const char *text = weft_detail();
	size_t size = strlen(text) + 1;
	char *copy = size > 1 ? weft__sys->alloc(size) : NULL;

	if (copy)
		memcpy(copy, text, size);
	return copy;
}

/* Locked; this unlocks. */
static inline void
write_outcome(weft_promise *promise, const struct weft__settling *how, char *text)
{
	uint32_t outcome = how->outcome;

	if (how->source) {
		weft_promise *owner = weft__promise_value_owner(how->source);

		promise->source = weft_promise_ref(owner);
		weft__value_copy(&promise->value, &owner->value);
		outcome = weft__promise_outcome(owner) | WEFT__PROMISE_SOURCE;
	} else {
		weft__value_copy(&promise->value, &how->value);
		promise->text = text;
	}
	weft__store(&promise->outcome, outcome, WEFT__RELEASE); /* S */
}

/* Locked: take the awaiters out of the reactions, and claim them.  An awaiter that cannot be
 * claimed leaves by itself.  Returns a list by `next`. */
static WEFT__NOINLINE struct weft__reaction *
claim_awaiters(weft_promise *promise)
{
	struct weft__reaction *reaction = weft__reaction_take(&promise->last);
	struct weft__reaction *awaiters = NULL, *next;

	promise->awaited = false;
	for (; reaction; reaction = next) {
		struct weft__awaiter *awaiter = (struct weft__awaiter *)(void *)reaction;

		next = reaction->next;
		if (reaction->run) {
			weft__reaction_add(&promise->last, reaction);
		} else if (weft__claim(&awaiter->w.waiter)) {
			weft__put(awaiter->w.waiter.chosen, (struct weft__wait *)(void *)awaiter);
			weft__reaction_add(&awaiters, reaction);
		}
	}
	return weft__reaction_take(&awaiters);
}

static WEFT__NOINLINE void
wake_awaiters(struct weft__reaction *reaction)
{
	struct weft__reaction *next;

	for (; reaction; reaction = next) {
		next = reaction->next; /* its memory is invalid after the wake */
		weft__waitable_wake_shared(&((struct weft__awaiter *)(void *)reaction)->w, 0);
	}
}

static void
promise_give_back(weft_promise *promise, bool given)
{
	if (given)
		(void)weft_promise_unref(promise);
}

static WEFT__COLD int
refuse_settling(weft_promise *promise, weft_value value, char *text, bool given)
{
	weft__sys->release(text);
	weft_value_drop(&value);
	promise_give_back(promise, given);
	return WEFT_EALREADY;
}

/* On the loop's thread: drop one of two references, of which the other is the job's.  If there
 * are exactly two, no other thread has a reference from which to make a third, and only this
 * thread walks the loop's lists. */
static inline void
drop_second(weft_promise *promise)
{
	if (weft__load(&promise->refs, WEFT__ACQUIRE) == 2)
		weft__store(&promise->refs, 1, WEFT__RELAXED);
	else
		(void)weft_promise_unref(promise);
}

/* On the loop's thread: land, and consume a reference. */
static inline void
land_given(weft_promise *promise)
{
	bool has_job = promise->last != NULL, is_wanted = !promise->holds;

	if (has_job)
		promise->holds = true;
	weft__promise_land(promise);
	if (!has_job)
		(void)weft_promise_unref(promise);
	else if (!is_wanted)
		drop_second(promise);
}

int
weft__promise_settle(weft_promise *promise, const struct weft__settling *how)
{
	char *text = how->keep_text ? keep_text() : NULL;
	struct weft__reaction *awaiters = NULL;
	bool in_transit;

	if (!weft__promise_enter(promise))
		return refuse_settling(promise, how->value, text, how->gives);
	if (promise->follows && !how->follower) {
		weft__promise_leave(promise);
		return refuse_settling(promise, how->value, text, how->gives);
	}
	if (promise->awaited)
		awaiters = claim_awaiters(promise);
	in_transit = promise->in_transit;
	write_outcome(promise, how, text);
	if (in_transit) /* it lands when it arrives */
		promise_give_back(promise, how->gives);
	else if (how->gives)
		land_given(promise);
	else if (weft__promise_is_here(promise))
		weft__promise_land(promise);
	else
		weft__promise_send(weft_promise_ref(promise));
	if (awaiters)
		wake_awaiters(awaiters);
	return 0;
}

int
weft__promise_fail(weft_promise *promise, int error)
{
	struct weft__settling how = { .outcome = WEFT_REJECTED,
		                      .value = weft_value_error(error),
		                      .keep_text = true };

	return weft__promise_settle(promise, &how);
}

int
weft_promise_reject(weft_promise *promise, weft_value reason)
{
	struct weft__settling how = { .outcome = WEFT_REJECTED, .value = reason };

	if (!promise) {
		weft_value_drop(&reason);
		return weft__misuse(WEFT_EINVAL, "weft_promise_reject: promise is NULL");
	}
	how.keep_text = reason.type == &weft_type_error;
	return weft__promise_settle(promise, &how);
}

/* --- reactions ---------------------------------------------------------- */

bool
weft__promise_add(weft_promise *promise, struct weft__reaction *reaction)
{
	if (!weft__promise_enter(promise))
		return false;
	weft__reaction_add(&promise->last, reaction);
	weft__promise_leave(promise);
	return true;
}

bool
weft__promise_react(weft_promise *promise, struct weft__reaction *reaction)
{
	if (!weft__promise_enter(promise)) {
		weft__promise_mark_handled(promise);
		return false;
	}
	weft__promise_mark_handled_locked(promise);
	weft__reaction_add(&promise->last, reaction);
	weft__promise_leave(promise);
	return true;
}
