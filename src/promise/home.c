/* home.c - the promises of a loop: pending ones, those under way to it, their memory.
 *
 *   1. A promise is in a list of its owner loop until it has landed, and a loop does not stop
 *      while one is listed: so a thread that settles a promise finds the loop.
 *   2. Lists hold no reference.  A thread that walks a list takes a reference only if one is
 *      left; a promise without any is about to leave the list.
 *   3. A promise that another thread has settled is a letter in `settled`, with a reference.
 *      It is listed until the loop has taken the letter, so the loop does not end before.
 *   4. Promises made on the loop's thread have memory of the loop's slabs, which is kept for
 *      later ones.  Other threads return freed memory by a stack (R, in the same way).
 *   5. This state (struct weft__home) outlives its loop as long as a promise does.  `left`
 *      counts promises with memory of their own, plus ALIVE for the loop.  When the loop is
 *      freed, the slab promises that are not returned replace ALIVE in the count, and from
 *      then on each decrements the count as it is freed.  The thread that makes the count 0
 *      frees the state.
 */
#include <string.h>
#include "promise/promise.h"

#define SLAB_BYTES ((size_t)1 << 16)
#define LINE       64u
#define ORPHANED   ((uintptr_t)1) /* value of `returned`: the loop was freed */
#define ALIVE      (UINT64_C(1) << 48)

struct weft__slab {
	struct weft__slab *next;
};

static const struct weft__part_ops home_ops;

/* The promise has arrived at its loop, with a reference. */
static void
on_settled(struct weft__mailbox *box, struct weft__letter *letter)
{
	weft_promise *promise = (weft_promise *)(void *)((char *)letter
	                                                 - offsetof(weft_promise, letter));

	(void)box;
	if (weft__promise_end_travel(promise))
		weft__promise_land(promise);
	(void)weft_promise_unref(promise);
}

WEFT__NOINLINE void
weft__home_send(weft_promise *promise)
{
	(void)weft__mailbox_post(&promise->home->settled, &promise->letter);
}

/* For promises of a loop that stopped before its first one. */
static struct weft__home nowhere = { .closed = true, .left = { ALIVE } };

static struct weft__home *
home_of(weft_loop *loop)
{
	return (struct weft__home *)(void *)weft__loop_part(loop, WEFT__PART_PROMISES);
}

static WEFT__COLD struct weft__home *
make_home(weft_loop *loop)
{
	struct weft__home *home;
	struct weft__part *part;

	if (weft__loop_is_closed(loop, WEFT__PART_PROMISES))
		return &nowhere;
	home = weft__alloc_zero(sizeof(*home));
	if (!home)
		return NULL;
	home->part.ops = &home_ops;
	weft__store(&home->loop, (uintptr_t)loop, WEFT__RELAXED);
	home->ready_end = &home->ready;
	home->rejected_end = &home->rejected;
	weft__store(&home->left, ALIVE, WEFT__RELAXED);
	weft__mailbox_init(&home->settled, loop, on_settled);
	weft__mailbox_init(&home->travels, loop, weft__promise_arrive);
	part = weft__loop_attach(loop, WEFT__PART_PROMISES, &home->part);
	if (part == &home->part)
		return home;
	weft__sys->release(home); /* another thread was first, or the loop has stopped */
	return part ? (struct weft__home *)(void *)part : &nowhere;
}

struct weft__home *
weft__home_of(weft_loop *loop)
{
	struct weft__home *home = home_of(loop);

	return home ? home : make_home(loop);
}

/* --- memory ------------------------------------------------------------- */

static bool
has_own_memory(const weft_promise *promise)
{
	return promise->foreign || promise->kind >= WEFT__PROMISE_OP;
}

/* Take the memory that other threads have returned. */
static weft_promise *
take_returned(struct weft__home *home)
{
	weft_promise *first = (weft_promise *)weft__exchange(&home->returned, 0,
	                                                     WEFT__ACQUIRE); /* R */

	for (weft_promise *p = first; p; p = p->next)
		home->free_count++;
	return first;
}

static bool
add_slab(struct weft__home *home)
{
	struct weft__slab *slab = weft__sys->alloc(SLAB_BYTES);
	uintptr_t begin = (uintptr_t)(slab + 1);

	if (!slab)
		return false;
	slab->next = home->slabs;
	home->slabs = slab;
	begin = (begin + LINE - 1) & ~(uintptr_t)(LINE - 1);
	home->cut = (char *)begin;
	home->cut_end = (char *)slab + SLAB_BYTES;
	return true;
}

static WEFT__COLD weft_promise *
alloc_slow(struct weft__home *home)
{
	char *cut;

	home->free = take_returned(home);
	if (home->free) {
		weft_promise *promise = home->free;

		home->free = promise->next;
		home->free_count--;
		return promise;
	}
	if ((size_t)(home->cut_end - home->cut) < sizeof(weft_promise) && !add_slab(home))
		return NULL;
	cut = home->cut;
	home->cut += sizeof(weft_promise);
	home->carved++;
	return (weft_promise *)(void *)cut;
}

weft_promise *
weft__home_alloc(struct weft__home *home, bool here, uint8_t kind, size_t size)
{
	weft_promise *promise;

	if (kind >= WEFT__PROMISE_OP || !here) {
		promise = weft__sys->alloc(size);
		if (promise)
			(void)weft__add(&home->left, 1, WEFT__RELAXED);
		return promise;
	}
	promise = home->free;
	if (__builtin_expect(!promise, 0))
		return alloc_slow(home);
	home->free = promise->next;
	home->free_count--;
	return promise;
}

static void
release_slabs(struct weft__home *home)
{
	struct weft__slab *slab;

	while ((slab = home->slabs)) {
		home->slabs = slab->next;
		weft__sys->release(slab);
	}
	home->free = NULL;
	home->free_count = home->carved = 0;
	home->cut = home->cut_end = NULL;
}

/* Add to `left`; at 0 free the state. */
static WEFT__NOINLINE void
count_left(struct weft__home *home, uint64_t more)
{
	if (weft__add(&home->left, more, WEFT__ACQ_REL) + more != 0)
		return;
	release_slabs(home);
	weft__sys->release(home);
}

/* On another thread than the loop's.  Invariants 4 and 5. */
static WEFT__NOINLINE void
return_promise(struct weft__home *home, weft_promise *promise)
{
	uintptr_t head = weft__load(&home->returned, WEFT__RELAXED);

	do {
		if (head == ORPHANED) {
			count_left(home, UINT64_MAX);
			return;
		}
		promise->next = (weft_promise *)head;
	} while (!weft__cas(&home->returned, &head, (uintptr_t)promise, WEFT__RELEASE)); /* R */
}

void
weft__home_release(weft_promise *promise)
{
	struct weft__home *home = promise->home;

	if (has_own_memory(promise)) {
		weft__sys->release(promise);
		count_left(home, UINT64_MAX);
	} else if (weft__home_is_here(home)) {
		promise->next = home->free;
		home->free = promise;
		home->free_count++;
	} else {
		return_promise(home, promise);
	}
}

/* The loop is freed.  Invariant 5. */
static void
leave_home(weft_loop *loop, bool alone)
{
	struct weft__home *home = home_of(loop);
	uintptr_t returned;

	(void)alone;
	weft__store(&home->loop, 0, WEFT__RELAXED);
	returned = weft__exchange(&home->returned, ORPHANED, WEFT__ACQUIRE);
	for (weft_promise *p = (weft_promise *)returned; p; p = p->next)
		home->free_count++;
	count_left(home, home->carved - home->free_count - ALIVE);
}

/* --- lists -------------------------------------------------------------- */

static void
list_add(weft_promise **head, weft_promise *promise)
{
	promise->prev = NULL;
	promise->next = *head;
	if (*head)
		(*head)->prev = promise;
	*head = promise;
	promise->listed = true;
}

static void
list_remove(weft_promise **head, weft_promise *promise)
{
	if (promise->prev)
		promise->prev->next = promise->next;
	else
		*head = promise->next;
	if (promise->next)
		promise->next->prev = promise->prev;
	promise->listed = false;
}

bool
weft__home_list(weft_promise *promise, bool here)
{
	struct weft__home *home = promise->home;
	bool open;

	if (here) {
		if (weft__loop_is_ending(weft__home_loop(home)))
			return false;
		list_add(&home->own, promise);
		return true;
	}
	promise->foreign = true;
	weft__lock_take(&home->lock);
	open = !home->closed;
	if (open)
		list_add(&home->foreign, promise);
	weft__lock_give(&home->lock);
	return open;
}

void
weft__home_unlist(weft_promise *promise)
{
	struct weft__home *home = promise->home;

	if (!promise->listed)
		return;
	if (!promise->foreign) {
		list_remove(&home->own, promise);
		return;
	}
	weft__lock_take(&home->lock);
	list_remove(&home->foreign, promise);
	weft__lock_give(&home->lock);
}

/* --- jobs --------------------------------------------------------------- */

/* Settling cannot fail: jobs for which there is no memory wait until all microtasks have run.
 * Reactions added meanwhile join the job, so that they run after earlier ones. */
void
weft__home_queue(weft_promise *promise)
{
	struct weft__home *home = promise->home;
	weft_loop *loop = weft__home_loop(home);

	if (home->ready || weft__loop_push_microtask(loop, weft__promise_run, promise) < 0) {
		promise->next_ready = NULL;
		*home->ready_end = promise;
		home->ready_end = &promise->next_ready;
		promise->landed = false;
		weft__loop_set_promises_due(loop);
	}
	weft__loop_changed(loop);
}

WEFT__NOINLINE void
weft__home_watch(weft_promise *promise)
{
	struct weft__home *home = promise->home;

	promise->next = NULL;
	*home->rejected_end = weft_promise_ref(promise);
	home->rejected_end = &promise->next;
	weft__loop_set_promises_due(weft__home_loop(home));
}

/* Run the jobs for which there was no memory; returns how many. */
static uint64_t
run_ready(struct weft__home *home)
{
	weft_promise *promise = home->ready, *next;
	uint64_t count = 0;

	home->ready = NULL;
	home->ready_end = &home->ready;
	for (; promise; promise = next, count++) {
		next = promise->next_ready;
		promise->landed = true;
		weft__promise_run(promise);
	}
	return count;
}

/* All microtasks have run: a rejection that is not handled by now counts as unhandled. */
static void
report_rejected(struct weft__home *home)
{
	weft_promise *promise;

	while ((promise = home->rejected)) {
		home->rejected = promise->next;
		if (!home->rejected)
			home->rejected_end = &home->rejected;
		weft__promise_report(promise);
		(void)weft_promise_unref(promise);
	}
}

static uint64_t
run_due(weft_loop *loop)
{
	struct weft__home *home = home_of(loop);
	uint64_t count;

	count = run_ready(home);
	if (count == 0 && !weft__loop_has_microtasks(loop))
		report_rejected(home);
	else if (home->rejected)
		weft__loop_set_promises_due(loop);
	return count;
}

/* --- the end of the loop -------------------------------------------------- */

/* The first promise of a list that is pending and still referenced, with a new reference. */
static weft_promise *
first_pending(weft_promise *promise)
{
	for (; promise; promise = promise->next)
		if (weft__promise_outcome(promise) == WEFT_PENDING
		    && weft__promise_try_ref(promise))
			return promise;
	return NULL;
}

static weft_promise *
take_pending(struct weft__home *home)
{
	weft_promise *promise = first_pending(home->own);

	if (promise)
		return promise;
	weft__lock_take(&home->lock);
	promise = first_pending(home->foreign);
	home->closed = !home->foreign;
	weft__lock_give(&home->lock);
	return promise;
}

/* Reject pending promises.  True if some have not landed yet. */
static bool
end_promises(weft_loop *loop)
{
	struct weft__settling how = { .outcome = WEFT_REJECTED,
		                      .value = weft_value_error(WEFT_ESHUTDOWN),
		                      .keep_text = true,
		                      .follower = true };
	struct weft__home *home = home_of(loop);
	weft_promise *promise;
	bool more;

	while ((promise = take_pending(home))) {
		(void)weft__fail(WEFT_ESHUTDOWN, "promise: its loop is stopping");
		(void)weft__promise_settle(promise, &how);
		(void)weft_promise_unref(promise);
	}
	more = home->own || !home->closed || weft__mailbox_is_due(&home->travels);
	if (more) /* invariant 2: some may be about to leave */
		weft__sys->yield();
	return more;
}

static bool
has_promises(weft_loop *loop)
{
	struct weft__home *home = home_of(loop);
	bool has = home->own || weft__mailbox_is_due(&home->travels);

	weft__lock_take(&home->lock);
	has |= home->foreign != NULL;
	weft__lock_give(&home->lock);
	return has;
}

static const struct weft__part_ops home_ops = {
	.due = run_due,
	.end = end_promises,
	.has = has_promises,
	.free = leave_home,
};
