/* combine.c - one promise of many: all, all_settled, any, race.
 *
 * Each of the many has a reaction, all in one block.  A promise that has settled is referenced
 * until all have settled, so that values need not be copied before they are needed.  A pending
 * promise is not referenced, so that the loss of the last reference that could settle it is
 * noticed.
 *
 *   1. `left` counts the promises that have not settled, plus one for the call that makes the
 *      block.  The thread that decrements it to 0 settles the result and frees the block: the
 *      promises may belong to several loops, so that may be any thread (L: released by each,
 *      acquired by the last).  If all belong to the loop that combines them, only that loop's
 *      thread counts.
 *   2. A promise whose outcome alone decides the result settles it at once.  Otherwise the last
 *      promise settles it, through finish().  The first to settle it wins, as always.
 */
#include "promise/promise.h"

struct many;

struct one {
	struct weft__reaction reaction;
	struct many *of;
	weft_promise *promise; /* if it has settled, referenced */
};

struct many {
	weft__a64 left;
	bool is_local;        /* `left` is used by one thread only */
	weft_outcome decides; /* this outcome alone decides; WEFT_PENDING: any outcome does */
	/* Makes the result when no promise has decided it before. */
	int (*finish)(struct many *many, struct weft__settling *how);
	weft_promise *result;
	size_t count;
	struct one ones[];
};

/* The only reference is the caller's. */
static bool
is_alone(const weft_promise *promise)
{
	return weft__load(&promise->refs, WEFT__ACQUIRE) == 1;
}

/* Move the value if nothing else can reach it; else share it. */
static int
take_value(weft_promise *promise, weft_value *out)
{
	weft_promise *owner = weft__promise_value_owner(promise);

	if (!is_alone(promise) || !is_alone(owner))
		return weft_value_share(&promise->value, out);
	*out = owner->value;
	owner->value = promise->value = (weft_value){ 0 };
	return 0;
}

/* The list of all values, or all reasons. */
static int
list_values(struct many *many, weft_value *out)
{
	weft_value list = weft__value_list(many->count);
	int rc = 0;

	if (list.type != &weft_type_list)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < many->count && rc == 0; i++)
		rc = take_value(many->ones[i].promise, &((weft_list *)list.as.ptr)->items[i]);
	if (rc < 0)
		weft_value_drop(&list);
	else
		*out = list;
	return rc;
}

static int
finish_all(struct many *many, struct weft__settling *how)
{
	how->outcome = WEFT_FULFILLED;
	return list_values(many, &how->value);
}

static int
finish_any(struct many *many, struct weft__settling *how)
{
	how->outcome = WEFT_REJECTED;
	return list_values(many, &how->value);
}

static int
finish_all_settled(struct many *many, struct weft__settling *how)
{
	weft_value list = weft__value_list(many->count);

	if (list.type != &weft_type_list)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < many->count; i++)
		((weft_list *)list.as.ptr)->items[i] = (weft_value){
			&weft_type_promise, { .ptr = weft_promise_ref(many->ones[i].promise) }
		};
	how->outcome = WEFT_FULFILLED;
	how->value = list;
	return 0;
}

/* --- one more has settled ------------------------------------------------- */

static void
promise_combine_finish(struct many *many)
{
	struct weft__settling how = { 0 };
	int rc = many->finish && weft__promise_outcome(many->result) == WEFT_PENDING
	                 ? many->finish(many, &how)
	                 : 0;

	if (rc < 0)
		(void)weft__promise_fail(many->result, rc);
	else if (how.outcome != WEFT_PENDING)
		(void)weft__promise_settle(many->result, &how);
	for (size_t i = 0; i < many->count; i++)
		(void)weft_promise_unref(many->ones[i].promise);
	(void)weft_promise_unref(many->result);
	weft__sys->release(many);
}

static void
count_one(struct many *many)
{
	uint64_t left;

	if (many->is_local)
		left = weft__count(&many->left, UINT64_MAX);
	else
		left = weft__add(&many->left, UINT64_MAX, WEFT__ACQ_REL) - 1; /* L */
	if (left == 0)
		promise_combine_finish(many);
}

static void
decide(struct many *many, weft_promise *by)
{
	weft_outcome outcome = weft__promise_outcome(by);
	struct weft__settling how = { .source = by };

	if (many->decides == WEFT_PENDING || many->decides == outcome)
		(void)weft__promise_settle(many->result, &how);
}

static void
run_one(struct weft__reaction *reaction, weft_promise *of)
{
	struct one *one = (struct one *)(void *)reaction;

	one->promise = of;
	decide(one->of, of);
	count_one(one->of);
}

/* --- making ------------------------------------------------------------- */

static void
unref_all(weft_promise *const *promises, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)weft_promise_unref(promises[i]);
}

static struct many *
make_many(weft_promise *const *promises, size_t count)
{
	struct many *many = NULL;
	weft_promise *result = weft_promise_new(count > 0 ? weft__promise_loop(promises[0]) : NULL);

	if (result && count < (SIZE_MAX - sizeof(*many)) / sizeof(struct one))
		many = weft__sys->alloc(sizeof(*many) + count * sizeof(struct one));
	if (!many) {
		(void)weft_promise_unref(result);
		unref_all(promises, count);
		(void)weft__fail(WEFT_ENOMEM, "weft_promise_*: out of memory");
		return NULL;
	}
	*many = (struct many){ .result = result, .count = count };
	weft__store(&many->left, count + 1, WEFT__RELAXED);
	return many;
}

/* None of them is NULL. */
static bool
is_whole(weft_promise *const *promises, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!promises[i])
			return false;
	return true;
}

static bool
are_here(weft_promise *const *promises, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!weft__promise_is_here(promises[i]))
			return false;
	return true;
}

/* Consumes the reference: keeps it if the promise has settled, else drops it. */
static void
watch(struct one *one, weft_promise *promise)
{
	if (weft__promise_outcome(promise) == WEFT_PENDING
	    && weft__promise_react(promise, &one->reaction)) {
		(void)weft_promise_unref(promise);
		return;
	}
	weft__promise_mark_handled(promise);
	run_one(&one->reaction, promise);
}

static weft_promise *
combine(weft_promise *const *promises, size_t count, weft_outcome decides,
        int (*finish_late)(struct many *, struct weft__settling *))
{
	struct many *many = NULL;
	weft_promise *result;

	if (!is_whole(promises, count))
		unref_all(promises, count);
	else
		many = make_many(promises, count);
	if (!many)
		return NULL;
	many->decides = decides;
	many->finish = finish_late;
	many->is_local = are_here(promises, count);
	result = weft_promise_ref(many->result);
	for (size_t i = 0; i < count; i++) {
		many->ones[i].reaction.run = run_one;
		many->ones[i].of = many;
	}
	for (size_t i = 0; i < count; i++)
		watch(&many->ones[i], promises[i]);
	count_one(many);
	return result;
}

/* An outcome that no promise has: nothing is decided early. */
#define NEVER_EARLY ((weft_outcome)(WEFT_REJECTED + 1))

weft_promise *
weft_promise_all(weft_promise *const *promises, size_t count)
{
	return combine(promises, count, WEFT_REJECTED, finish_all);
}

weft_promise *
weft_promise_all_settled(weft_promise *const *promises, size_t count)
{
	return combine(promises, count, NEVER_EARLY, finish_all_settled);
}

weft_promise *
weft_promise_any(weft_promise *const *promises, size_t count)
{
	return combine(promises, count, WEFT_FULFILLED, finish_any);
}

weft_promise *
weft_promise_race(weft_promise *const *promises, size_t count)
{
	return combine(promises, count, WEFT_PENDING, NULL);
}
