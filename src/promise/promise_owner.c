/* promise_owner.c - the promises of a loop: pending ones, those under way to it, their memory.
 *
 *   1. A promise is in a list of its owner loop until it has landed, and a loop does not stop
 *      while one is listed: so a thread that settles a promise finds the loop.
 *   2. Lists hold no reference.  A thread that walks a list takes a reference only if one is
 *      left; a promise without any is about to leave the list.
 *   3. A promise that another thread has settled is a letter in `settled`, with a reference.
 *      It is listed until the loop has taken the letter, so the loop does not end before.
 *   4. Promises made on the loop's thread have memory of the loop's slabs, which is kept for
 *      later ones.  Other threads return freed memory by a stack (R: release, acquire).
 *   5. A rejected promise is reported at the end of the checkpoint, unless it is handled.  If
 *      another thread made or settled it and there are further references to it, that thread
 *      may be about to attach a handler: such a promise is reported HANDLER_WAIT later.
 *   6. This state (struct weft__promise_owner) outlives its loop as long as a promise does.  `left`
 *      counts promises with memory of their own, plus ALIVE for the loop.  When the loop is
 *      freed, the slab promises that are not returned replace ALIVE in the count, and from
 *      then on each decrements the count as it is freed.  The thread that makes the count 0
 *      frees the state.
 */
#include <string.h>
#include "promise/promise.h"

#define SLAB_BYTES   ((size_t)1 << 16)
#define LINE         64u
#define HANDLER_WAIT WEFT_S
#define ORPHANED     ((uintptr_t)1) /* value of `returned`: the loop was freed */
#define ALIVE        (UINT64_C(1) << 48)

struct weft__slab {
	struct weft__slab *next;
};

static const struct weft__part_ops promise_owner_ops;

/* The promise has arrived at its loop, with a reference. */
static void
on_settled(struct weft__mailbox *box, struct weft__letter *letter)
{
	weft_promise *promise = (weft_promise *)(void *)((char *)letter
	                                                 - offsetof(weft_promise, letter));

	(void)box;
	promise->sent = true;
	if (weft__promise_end_transit(promise))
		weft__promise_land(promise);
	(void)weft_promise_unref(promise);
}

WEFT__NOINLINE void
weft__promise_send(weft_promise *promise)
{
	(void)weft__mailbox_post(&promise->owner->settled, &promise->letter);
}

/* For promises of a loop that stopped before it had any. */
static struct weft__promise_owner nowhere = { .closed = true, .left = { ALIVE } };

static void
nowhere_forked(void)
{
	weft__store(&nowhere.lock.word, 0, WEFT__RELAXED);
}

/* Under its lock nothing is changed.  So a forked child only has to free the lock. */
static struct weft__promise_owner *
use_nowhere(void)
{
	static weft__a32 registered;

	(void)weft__fork_handler(&registered, nowhere_forked);
	return &nowhere;
}

static struct weft__promise_owner *
promise_owner_of(weft_loop *loop)
{
	return (struct weft__promise_owner *)(void *)weft__loop_part(loop, WEFT__PART_PROMISES);
}

static WEFT__COLD struct weft__promise_owner *
make_promise_owner(weft_loop *loop)
{
	struct weft__promise_owner *owner;
	struct weft__part *part;

	if (weft__loop_is_closed(loop, WEFT__PART_PROMISES))
		return use_nowhere();
	owner = weft__alloc_zero(sizeof(*owner));
	if (!owner)
		return NULL;
	owner->part.ops = &promise_owner_ops;
	weft__store(&owner->loop, (uintptr_t)loop, WEFT__RELAXED);
	owner->ready_end = &owner->ready;
	owner->rejected.end = &owner->rejected.first;
	owner->expected.end = &owner->expected.first;
	weft__store(&owner->left, ALIVE, WEFT__RELAXED);
	weft__mailbox_init(&owner->settled, loop, on_settled);
	weft__mailbox_init(&owner->chains, loop, weft__promise_on_chained);
	part = weft__loop_attach(loop, WEFT__PART_PROMISES, &owner->part);
	if (part == &owner->part)
		return owner;
	weft__sys->release(owner); /* another thread was first, or the loop has stopped */
	return part ? (struct weft__promise_owner *)(void *)part : use_nowhere();
}

struct weft__promise_owner *
weft__promise_owner_of(weft_loop *loop)
{
	struct weft__promise_owner *owner = promise_owner_of(loop);

	return owner ? owner : make_promise_owner(loop);
}

/* --- queues of rejected promises ---------------------------------------- */

static void
queue_add(struct weft__promise_queue *queue, weft_promise *promise)
{
	promise->next = NULL;
	*queue->end = promise;
	queue->end = &promise->next;
}

static weft_promise *
queue_take(struct weft__promise_queue *queue)
{
	weft_promise *promise = queue->first;

	queue->first = promise->next;
	if (!queue->first)
		queue->end = &queue->first;
	return promise;
}

/* Report the first promise of the queue, if it is still not handled. */
static void
report_first(struct weft__promise_queue *queue)
{
	weft_promise *promise = queue_take(queue);

	weft__promise_report(promise);
	(void)weft_promise_unref(promise);
}

static void
report_all(struct weft__promise_queue *queue)
{
	while (queue->first)
		report_first(queue);
}

/* --- memory ------------------------------------------------------------- */

static bool
has_own_memory(const weft_promise *promise)
{
	return promise->foreign || promise->kind >= WEFT__PROMISE_OP;
}

/* Take the memory that other threads have returned. */
static weft_promise *
take_returned(struct weft__promise_owner *owner)
{
	weft_promise *first = (weft_promise *)weft__exchange(&owner->returned, 0,
	                                                     WEFT__ACQUIRE); /* R */

	for (weft_promise *p = first; p; p = p->next)
		owner->free_count++;
	return first;
}

static bool
add_slab(struct weft__promise_owner *owner)
{
	struct weft__slab *slab = weft__sys->alloc(SLAB_BYTES);
	uintptr_t begin = (uintptr_t)(slab + 1);

	if (!slab)
		return false;
	slab->next = owner->slabs;
	owner->slabs = slab;
	begin = (begin + LINE - 1) & ~(uintptr_t)(LINE - 1);
	owner->cut = (char *)begin;
	owner->cut_end = (char *)slab + SLAB_BYTES;
	return true;
}

static WEFT__COLD weft_promise *
alloc_slow(struct weft__promise_owner *owner)
{
	char *cut;

	owner->free = take_returned(owner);
	if (owner->free) {
		weft_promise *promise = owner->free;

		owner->free = promise->next;
		owner->free_count--;
		return promise;
	}
	if ((size_t)(owner->cut_end - owner->cut) < sizeof(weft_promise) && !add_slab(owner))
		return NULL;
	cut = owner->cut;
	owner->cut += sizeof(weft_promise);
	owner->carved++;
	return (weft_promise *)(void *)cut;
}

weft_promise *
weft__promise_alloc(struct weft__promise_owner *owner, bool here, uint8_t kind, size_t size)
{
	weft_promise *promise;

	if (kind >= WEFT__PROMISE_OP || !here) {
		promise = weft__sys->alloc(size);
		if (promise)
			(void)weft__add(&owner->left, 1, WEFT__RELAXED);
		return promise;
	}
	promise = owner->free;
	if (__builtin_expect(!promise, 0))
		return alloc_slow(owner);
	owner->free = promise->next;
	owner->free_count--;
	return promise;
}

static void
release_slabs(struct weft__promise_owner *owner)
{
	struct weft__slab *slab;

	while ((slab = owner->slabs)) {
		owner->slabs = slab->next;
		weft__sys->release(slab);
	}
	owner->free = NULL;
	owner->free_count = owner->carved = 0;
	owner->cut = owner->cut_end = NULL;
}

/* Add to `left`; at 0 free the state. */
static WEFT__NOINLINE void
count_left(struct weft__promise_owner *owner, uint64_t more)
{
	if (weft__add(&owner->left, more, WEFT__ACQ_REL) + more != 0)
		return;
	release_slabs(owner);
	weft__sys->release(owner);
}

/* On another thread than the loop's.  Invariants 4 and 6. */
static WEFT__NOINLINE void
return_promise(struct weft__promise_owner *owner, weft_promise *promise)
{
	uintptr_t head = weft__load(&owner->returned, WEFT__RELAXED);

	do {
		if (head == ORPHANED) {
			count_left(owner, UINT64_MAX);
			return;
		}
		promise->next = (weft_promise *)head;
	} while (!weft__cas(&owner->returned, &head, (uintptr_t)promise, WEFT__RELEASE)); /* R */
}

void
weft__promise_release(weft_promise *promise)
{
	struct weft__promise_owner *owner = promise->owner;

	if (has_own_memory(promise)) {
		weft__sys->release(promise);
		count_left(owner, UINT64_MAX);
	} else if (weft__promise_owner_is_here(owner)) {
		promise->next = owner->free;
		owner->free = promise;
		owner->free_count++;
	} else {
		return_promise(owner, promise);
	}
}

/* The loop is freed.  Invariant 6. */
static void
promise_owner_loop_freed(weft_loop *loop, bool alone)
{
	struct weft__promise_owner *owner = promise_owner_of(loop);
	uintptr_t returned;

	while (alone && owner->expected.first)
		(void)weft_promise_unref(queue_take(&owner->expected)); /* the parent reports */
	report_all(&owner->expected);
	if (owner->report.block) /* the wheel is freed later than the timer */
		(void)weft__wheel_drop(weft__loop_wheel(loop), weft__timer_entry(&owner->report));
	weft__store(&owner->loop, 0, WEFT__RELAXED);
	returned = weft__exchange(&owner->returned, ORPHANED, WEFT__ACQUIRE);
	for (weft_promise *p = (weft_promise *)returned; p; p = p->next)
		owner->free_count++;
	count_left(owner, owner->carved - owner->free_count - ALIVE);
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
weft__promise_list(weft_promise *promise, bool here)
{
	struct weft__promise_owner *owner = promise->owner;
	bool open;

	if (here) {
		if (weft__loop_is_ending(weft__promise_owner_loop(owner)))
			return false;
		list_add(&owner->own, promise);
		return true;
	}
	promise->foreign = true;
	weft__lock_take(&owner->lock);
	open = !owner->closed;
	if (open)
		list_add(&owner->foreign, promise);
	weft__lock_give(&owner->lock);
	return open;
}

void
weft__promise_unlist(weft_promise *promise)
{
	struct weft__promise_owner *owner = promise->owner;

	if (!promise->listed)
		return;
	if (!promise->foreign) {
		list_remove(&owner->own, promise);
		return;
	}
	weft__lock_take(&owner->lock);
	list_remove(&owner->foreign, promise);
	weft__lock_give(&owner->lock);
}

/* --- jobs --------------------------------------------------------------- */

/* Settling cannot fail: jobs for which there is no memory wait until all microtasks have run.
 * Reactions added meanwhile join the job, so that they run after earlier ones. */
void
weft__promise_queue_job(weft_promise *promise)
{
	struct weft__promise_owner *owner = promise->owner;
	weft_loop *loop = weft__promise_owner_loop(owner);

	if (owner->ready || weft__loop_push_microtask(loop, weft__promise_run, promise) < 0) {
		promise->next_ready = NULL;
		*owner->ready_end = promise;
		owner->ready_end = &promise->next_ready;
		promise->landed = false;
		weft__loop_set_promises_due(loop);
	}
	weft__loop_changed(loop);
}

WEFT__NOINLINE void
weft__promise_watch_rejection(weft_promise *promise)
{
	struct weft__promise_owner *owner = promise->owner;

	queue_add(&owner->rejected, weft_promise_ref(promise));
	weft__loop_set_promises_due(weft__promise_owner_loop(owner));
}

/* Run the jobs for which there was no memory; returns how many. */
static uint64_t
run_ready(struct weft__promise_owner *owner)
{
	weft_promise *promise = owner->ready, *next;
	uint64_t count = 0;

	owner->ready = NULL;
	owner->ready_end = &owner->ready;
	for (; promise; promise = next, count++) {
		next = promise->next_ready;
		promise->landed = true;
		weft__promise_run(promise);
	}
	return count;
}

static void
on_report_due(weft_timer *timer, void *arg)
{
	struct weft__promise_owner *owner = arg;
	weft_loop *loop = weft__promise_owner_loop(owner);
	weft_promise *first;

	while ((first = owner->expected.first) && first->report_ns <= weft_loop_now(loop))
		report_first(&owner->expected);
	if (first && weft_timer_start(loop, timer, first->report_ns, 0, on_report_due, owner) < 0)
		report_all(&owner->expected);
}

/* Invariant 5.  The queue has one of the references. */
static bool
may_be_handled(const weft_promise *promise)
{
	return (promise->sent || promise->foreign) && weft__load(&promise->refs, WEFT__RELAXED) > 1
	       && weft__load(&promise->handled, WEFT__RELAXED) == WEFT__UNHANDLED
	       && !weft__loop_is_ending(weft__promise_loop(promise));
}

/* Report the first rejected promise HANDLER_WAIT from now. */
static void
report_later(struct weft__promise_owner *owner)
{
	weft_promise *promise = queue_take(&owner->rejected);
	bool is_first = !owner->expected.first;

	promise->report_ns = weft_after(HANDLER_WAIT);
	queue_add(&owner->expected, promise);
	if (!is_first)
		return;
	weft_timer_set_background(&owner->report, true);
	if (weft_timer_start(weft__promise_owner_loop(owner), &owner->report, promise->report_ns, 0,
	                     on_report_due, owner)
	    < 0)
		report_first(&owner->expected);
}

/* All microtasks have run: a rejection that is not handled by now counts as unhandled. */
static void
report_rejected(struct weft__promise_owner *owner)
{
	while (owner->rejected.first)
		if (may_be_handled(owner->rejected.first))
			report_later(owner);
		else
			report_first(&owner->rejected);
}

static uint64_t
run_due(weft_loop *loop)
{
	struct weft__promise_owner *owner = promise_owner_of(loop);
	uint64_t count;

	count = run_ready(owner);
	if (count == 0 && !weft__loop_has_microtasks(loop))
		report_rejected(owner);
	else if (owner->rejected.first)
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
take_pending(struct weft__promise_owner *owner)
{
	weft_promise *promise = first_pending(owner->own);

	if (promise)
		return promise;
	weft__lock_take(&owner->lock);
	promise = first_pending(owner->foreign);
	owner->closed = !owner->foreign;
	weft__lock_give(&owner->lock);
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
	struct weft__promise_owner *owner = promise_owner_of(loop);
	weft_promise *promise;
	bool more;

	report_all(&owner->expected);
	while ((promise = take_pending(owner))) {
		(void)weft__fail(WEFT_ESHUTDOWN, "weft_promise_*: the promise's loop is stopping");
		(void)weft__promise_settle(promise, &how);
		(void)weft_promise_unref(promise);
	}
	more = owner->own || !owner->closed || weft__mailbox_is_due(&owner->chains);
	if (more) /* invariant 2: some may be about to leave */
		weft__sys->yield();
	return more;
}

static bool
has_promises(weft_loop *loop)
{
	struct weft__promise_owner *owner = promise_owner_of(loop);
	bool has = owner->own || weft__mailbox_is_due(&owner->chains);

	weft__lock_take(&owner->lock);
	has |= owner->foreign != NULL;
	weft__lock_give(&owner->lock);
	return has;
}

static const struct weft__part_ops promise_owner_ops = {
	.due = run_due,
	.end = end_promises,
	.has = has_promises,
	.free = promise_owner_loop_freed,
};
