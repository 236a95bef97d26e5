/* abort.c - abort signals: a promise that is rejected as the signal fires, and listeners.
 *
 * A signal gets everything it needs of threads, loops and their ends from its promise.  The
 * one reaction of that promise calls the listeners.
 *
 *   1. The list of listeners is changed under its lock.  A listener in the list will be
 *      called, or its owner takes it out.
 *   2. Owners of listeners are on the signal's loop, which calls the listeners: so a listener
 *      that was taken out is not being called.  Signals that depend on this one are the
 *      exception: they may be of other loops, and listen by links of their own.  The loop takes
 *      a reference to such a signal, under the lock, before it calls the link, unless the signal
 *      is ending; and the signal ends only after its link has left the list.
 *   3. A signal whose deadline has passed, or a source of which has fired, has fired for a
 *      thread that checks it: the check does what the loop would do in its next iteration.  So
 *      a threadlet that computes without suspending sees it.
 *   4. The timer is cleared as the signal fires, and as the signal ends without having fired,
 *      both on the loop's thread: so the timer needs no reference until it fires.  Then it takes
 *      one: another thread may have dropped the last one.  That thread does not free a signal with
 *      a timer, but sends it to the loop.
 */
#include <string.h>
#include <weft/abort.h>
#include <weft/schedule.h>
#include "promise/promise.h"

#define DEPTH_MAX 16 /* levels of sources of sources that a check visits */

/* Laid out as weft_node. */
struct listener {
	weft_fn fn;
	void *arg;
	struct listener *next;
	uint32_t listed;
	uint32_t is_link; /* arg is a struct link */
	struct listener *prev;
	uint64_t spare;
};
WEFT_STATIC_ASSERT(sizeof(struct listener) == sizeof(weft_node), "one layout");

/* From a signal to a source, perhaps of another loop. */
struct link {
	struct listener listener;
	weft_abort *source; /* referenced */
	weft_abort *into;
};

struct weft_abort {
	weft_promise promise; /* first */
	struct weft__reaction fired;
	struct weft__lock lock; /* for the list of listeners */
	struct listener *first, *last;
	weft__a64 timer;      /* its timer ID, or 0 */
	uint64_t deadline_ns; /* of the timer; set once */
	bool reacted;         /* the loop's thread: the reaction has run */
	size_t count;
	struct link links[];
};

static weft_abort *
abort_of(const weft_abort *signal)
{
	return (weft_abort *)(uintptr_t)signal;
}

/* --- listeners ------------------------------------------------------------ */

/* Under the lock. */
static void
promise_abort_list(weft_abort *abort, struct listener *listener)
{
	listener->listed = true;
	listener->next = NULL;
	listener->prev = abort->last;
	if (abort->last)
		abort->last->next = listener;
	else
		abort->first = listener;
	abort->last = listener;
}

/* Under the lock. */
static void
promise_abort_unlist(weft_abort *abort, struct listener *listener)
{
	if (listener->prev)
		listener->prev->next = listener->next;
	else
		abort->first = listener->next;
	if (listener->next)
		listener->next->prev = listener->prev;
	else
		abort->last = listener->prev;
	listener->listed = false;
}

/* Invariant 2. */
static bool
ref_link(const struct link *link)
{
	return weft__promise_try_ref((weft_promise *)(void *)link->into);
}

/* Take the first listener that is still to be called; false if there is none. */
static bool
take_first(weft_abort *abort, weft_fn *fn, void **arg)
{
	struct listener *listener;
	bool found = false;

	weft__lock_take(&abort->lock);
	while (!found && (listener = abort->first)) {
		promise_abort_unlist(abort, listener);
		*fn = listener->fn;
		*arg = listener->arg;
		found = !listener->is_link || ref_link(*arg);
	}
	weft__lock_give(&abort->lock);
	return found;
}

static void
call_listeners(weft_abort *abort)
{
	weft_fn fn;
	void *arg;

	while (take_first(abort, &fn, &arg))
		fn(arg);
}

static void
on_fired(struct weft__reaction *reaction, weft_promise *of)
{
	weft_abort *abort = (weft_abort *)(void *)of;
	int64_t timer = (int64_t)weft__load(&abort->timer, WEFT__RELAXED);

	(void)reaction;
	if (timer) /* invariant 4 */
		(void)weft_schedule_clear(weft__promise_loop(of), timer, NULL);
	abort->reacted = true;
	call_listeners(abort);
	(void)weft_promise_unref(of);
}

/* A listener was added after the signal had called its listeners. */
static void
call_late(void *arg)
{
	weft_abort *abort = arg;

	call_listeners(abort);
	(void)weft_abort_unref(abort);
}

int
weft__abort_push(const weft_abort *signal, weft_node *node)
{
	weft_abort *abort = abort_of(signal);
	struct listener *listener = (struct listener *)(void *)node;
	int rc;

	if (!abort || !node || !node->fn)
		return weft__misuse(WEFT_EINVAL, "weft__abort_push: abort, node or its fn is NULL");
	rc = weft__loop_check(weft__promise_loop(&abort->promise), "weft__abort_push");
	if (rc < 0)
		return rc;
	if (listener->listed)
		return weft__misuse(WEFT_EBUSY, "weft__abort_push: the node is already listening");
	if (abort->reacted) {
		rc = weft_schedule_microtask(weft__promise_loop(&abort->promise), call_late, abort);
		if (rc < 0)
			return rc;
		(void)weft_abort_ref(abort);
	}
	listener->is_link = false;
	weft__lock_take(&abort->lock);
	promise_abort_list(abort, listener);
	weft__lock_give(&abort->lock);
	return 0;
}

void
weft__abort_drop(const weft_abort *signal, weft_node *node)
{
	weft_abort *abort = abort_of(signal);
	struct listener *listener = (struct listener *)(void *)node;

	if (!abort || !node
	    || weft__loop_check(weft__promise_loop(&abort->promise), "weft__abort_drop") < 0)
		return;
	weft__lock_take(&abort->lock);
	if (listener->listed)
		promise_abort_unlist(abort, listener);
	weft__lock_give(&abort->lock);
}

/* --- creation and end ------------------------------------------------------- */

static weft_abort *
promise_abort_make(weft_loop *loop, size_t count)
{
	struct weft__making how = { .loop = loop,
		                    .size = sizeof(weft_abort) + count * sizeof(struct link),
		                    .refs = 1,
		                    .handled = true,
		                    .kind = WEFT__PROMISE_ABORT };
	weft_abort *abort = (weft_abort *)(void *)weft__promise_make(&how);

	if (!abort)
		return NULL;
	memset(&abort->fired, 0, how.size - offsetof(weft_abort, fired));
	abort->fired.run = on_fired;
	abort->count = count;
	abort->deadline_ns = WEFT_NEVER;
	if (weft__promise_add(&abort->promise, &abort->fired))
		return abort;
	(void)weft__fail(WEFT_ESHUTDOWN, "weft_abort_*: the loop is stopping");
	return weft_abort_unref(abort);
}

weft_abort *
weft_abort_new(weft_loop *loop)
{
	return promise_abort_make(loop, 0);
}

bool
weft__abort_is_tied(const weft_promise *promise)
{
	const weft_abort *abort = (const weft_abort *)(const void *)promise;

	return weft__load(&abort->timer, WEFT__RELAXED) != 0;
}

void
weft__abort_end(weft_promise *promise)
{
	weft_abort *abort = (weft_abort *)(void *)promise;
	int64_t timer = (int64_t)weft__load(&abort->timer, WEFT__RELAXED);

	if (timer && weft__promise_outcome(promise) == WEFT_PENDING)
		(void)weft_schedule_clear(weft__promise_loop(promise), timer, NULL);
	for (size_t i = 0; i < abort->count; i++) {
		struct link *link = &abort->links[i];

		if (!link->source)
			continue;
		weft__lock_take(&link->source->lock);
		if (link->listener.listed)
			promise_abort_unlist(link->source, &link->listener);
		weft__lock_give(&link->source->lock);
		(void)weft_abort_unref(link->source);
	}
}

const weft_abort *
weft_abort_ref(const weft_abort *signal)
{
	if (signal)
		(void)weft_promise_ref(&abort_of(signal)->promise);
	return signal;
}

weft_abort *
weft_abort_unref(const weft_abort *signal)
{
	if (signal)
		(void)weft_promise_unref(&abort_of(signal)->promise);
	return NULL;
}

int
weft_abort_fire(weft_abort *abort, weft_value reason)
{
	if (!abort) {
		weft_value_drop(&reason);
		return weft__misuse(WEFT_EINVAL, "weft_abort_fire: abort is NULL");
	}
	if (reason.type)
		return weft_promise_reject(&abort->promise, reason);
	(void)weft__fail(WEFT_ECANCELED, "aborted");
	return weft__promise_fail(&abort->promise, WEFT_ECANCELED);
}

/* --- checking ------------------------------------------------------------- */

/* A source has fired: so does the signal, with the same reason. */
static void
fire_by(weft_abort *abort, const struct link *link)
{
	struct weft__settling how = { .source = &link->source->promise };

	(void)weft__promise_settle(&abort->promise, &how);
}

static void
time_out(weft_abort *abort)
{
	(void)weft__fail(WEFT_ETIMEDOUT, "timed out");
	(void)weft__promise_fail(&abort->promise, WEFT_ETIMEDOUT);
}

/* Invariant 3.  Sources of sources are checked down to a depth that fits small stacks. */
static bool
is_pending(weft_abort *abort, int depth)
{
	if (weft__promise_outcome(&abort->promise) != WEFT_PENDING)
		return false;
	if (abort->deadline_ns != WEFT_NEVER && weft__sys->now() >= abort->deadline_ns) {
		time_out(abort);
		return false;
	}
	for (size_t i = 0; depth > 0 && i < abort->count; i++) {
		struct link *link = &abort->links[i];

		if (is_pending(link->source, depth - 1))
			continue;
		fire_by(abort, link);
		return false;
	}
	return true;
}

int
weft_abort_check(const weft_abort *signal, weft_value *out)
{
	weft_abort *abort = abort_of(signal);
	int error;

	if (!abort || is_pending(abort, DEPTH_MAX)
	    || weft_promise_state(&abort->promise, out) == WEFT_PENDING)
		return 0;
	error = weft__promise_error(&abort->promise);
	return error == WEFT_EREJECTED ? WEFT_ECANCELED : error;
}

/* --- by time ------------------------------------------------------------ */

static void
on_timeout(void *arg)
{
	weft_abort *abort = arg;

	weft__promise_ref_pending(&abort->promise); /* invariant 4 */
	weft__store(&abort->timer, 0, WEFT__RELAXED);
	time_out(abort);
	(void)weft_abort_unref(abort);
}

weft_abort *
weft_abort_new_timeout(weft_loop *loop, uint64_t deadline_ns)
{
	weft_abort *abort = promise_abort_make(loop, 0);
	int64_t timer;

	if (!abort || deadline_ns == WEFT_NEVER)
		return abort;
	abort->deadline_ns = deadline_ns;
	timer = weft__schedule_deadline(weft__promise_loop(&abort->promise), deadline_ns,
	                                on_timeout, abort);
	if (timer < 0)
		return weft_abort_unref(abort);
	/* If it has fired meanwhile the ID is unknown to the loop, and is never reused. */
	weft__store(&abort->timer, (uint64_t)timer, WEFT__RELAXED);
	return abort;
}

/* --- by others ---------------------------------------------------------- */

/* The caller has taken a reference to the signal. */
static void
fire_by_source(void *arg)
{
	struct link *link = arg;
	weft_abort *abort = link->into;

	fire_by(abort, link);
	(void)weft_abort_unref(abort);
}

/* Begin to listen to a source.  A source that has fired may never call its listeners again. */
static void
tie_link(struct link *link)
{
	link->listener.fn = fire_by_source;
	link->listener.arg = link;
	link->listener.is_link = true;
	weft__lock_take(&link->source->lock);
	promise_abort_list(link->source, &link->listener);
	weft__lock_give(&link->source->lock);
	if (weft__promise_outcome(&link->source->promise) == WEFT_PENDING)
		return;
	(void)weft_abort_ref(link->into);
	fire_by_source(link);
}

weft_abort *
weft_abort_new_any(weft_loop *loop, const weft_abort *const *sources, size_t count)
{
	weft_abort *abort = NULL;
	bool whole = true;

	for (size_t i = 0; i < count; i++)
		whole &= sources && sources[i];
	if (!whole)
		(void)weft__misuse(WEFT_EINVAL,
		                   "weft_abort_new_any: sources or one of them is NULL");
	else if (count < SIZE_MAX / sizeof(struct link) / 2)
		abort = promise_abort_make(loop, count);
	if (!abort)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		struct link *link = &abort->links[i];

		link->source = abort_of(weft_abort_ref(sources[i]));
		link->into = abort;
		tie_link(link);
	}
	return abort;
}

/* A signal that fires with `signal`, on this loop, referenced; or NULL. */
static weft_abort *
bring_here(const weft_abort *signal)
{
	if (weft__promise_is_here(&signal->promise))
		return abort_of(weft_abort_ref(signal));
	return weft_abort_new_any(NULL, &signal, 1);
}

/* --- scopes ------------------------------------------------------------- */

struct tie {
	struct weft__scope_tie tie; /* first */
	weft_node node;
	weft_abort *signal;
	struct weft__scope *scope;
};

static void
end_scope(void *arg)
{
	struct tie *tie = arg;

	weft__scope_end(tie->scope, weft_abort_check(tie->signal, NULL));
}

static int
check_tie(const struct weft__scope_tie *base)
{
	return weft_abort_check(((const struct tie *)(const void *)base)->signal, NULL);
}

static void
cut(struct weft__scope_tie *base)
{
	struct tie *tie = (struct tie *)(void *)base;

	weft__abort_drop(tie->signal, &tie->node);
	(void)weft_abort_unref(tie->signal);
	weft__sys->release(tie);
}

int
weft_abort_scope(const weft_abort *abort, weft_scope *handle)
{
	struct weft__scope *scope = handle ? weft__scope_here(handle) : NULL;
	struct tie *tie;
	int rc;

	if (!abort || !scope)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_abort_scope: abort is NULL, or the scope is not open here");
	if (scope->tie)
		return weft__misuse(WEFT_EBUSY,
		                    "weft_abort_scope: the scope already has an abort signal");
	rc = weft_abort_check(abort, NULL);
	if (rc < 0) {
		weft__scope_end(scope, rc);
		return 0;
	}
	tie = weft__alloc_zero(sizeof(*tie));
	if (tie)
		tie->signal = bring_here(abort);
	if (!tie || !tie->signal) {
		weft__sys->release(tie);
		return weft__fail(WEFT_ENOMEM, "weft_abort_scope: out of memory");
	}
	tie->tie.cut = cut;
	tie->tie.check = check_tie;
	tie->scope = scope;
	tie->node = (weft_node){ .fn = end_scope, .arg = tie };
	(void)weft__abort_push(tie->signal, &tie->node);
	scope->tie = &tie->tie;
	return 0;
}

/* --- promises ----------------------------------------------------------- */

/* Rejects `result` as the signal fires; exists until the result has settled. */
struct guard {
	struct weft__reaction reaction; /* first: a reaction of the result, which owns the guard */
	weft_node node;
	weft_abort *signal;
	weft_promise *result;
};

static void
end_guard(struct weft__reaction *reaction, weft_promise *of)
{
	struct guard *guard = (struct guard *)(void *)reaction;

	weft__abort_drop(guard->signal, &guard->node);
	(void)weft_abort_unref(guard->signal);
	weft__sys->release(guard);
	(void)weft_promise_unref(of);
}

static void
reject_result(void *arg)
{
	struct guard *guard = arg;
	struct weft__settling how = { .source = &guard->signal->promise, .follower = true };

	(void)weft__promise_settle(guard->result, &how);
}

static struct guard *
make_guard(const weft_abort *abort)
{
	struct guard *guard = weft__alloc_zero(sizeof(*guard));

	if (!guard)
		return NULL;
	guard->signal = bring_here(abort);
	guard->result = guard->signal ? weft_promise_new(NULL) : NULL;
	if (guard->result)
		return guard;
	(void)weft_abort_unref(guard->signal);
	weft__sys->release(guard);
	return NULL;
}

weft_promise *
weft_abort_promise(const weft_abort *abort, weft_promise *promise)
{
	struct guard *guard = abort && promise ? make_guard(abort) : NULL;
	weft_promise *result = guard ? guard->result : NULL;

	if (!guard)
		return weft_promise_unref(promise);
	guard->reaction.run = end_guard;
	guard->node = (weft_node){ .fn = reject_result, .arg = guard };
	if (!weft__promise_add(result, &guard->reaction)) /* the loop ends */
		end_guard(&guard->reaction, weft_promise_ref(result));
	else if (weft__promise_outcome(&guard->signal->promise) != WEFT_PENDING)
		reject_result(guard);
	else if (weft__abort_push(guard->signal, &guard->node) == 0)
		(void)weft__promise_follow(result, promise);
	(void)weft_promise_unref(promise);
	return result;
}
