/* schedule.c - timers and immediates with IDs, which any thread may set and clear.
 *
 * A handle (struct weft__timer_handle) is in a table by its ID, under a lock.  Its state on the
 * loop (armed in the wheel, queued as an immediate, counted as alive) belongs to the loop's thread.
 * A caller changes under the lock what the handle is *wanted* to be.  Then schedule_settle() brings
 * the loop's state in line, on the loop's thread: at once if the caller runs there, else when the
 * handle arrives in the mailbox.
 *
 *   1. A handle is `live` exactly while it is in the table.  It leaves the table under the
 *      lock, once: by a clear, or by its expiry, before the callback.  That makes the result of
 *      a clear exact.
 *   2. Other threads post a handle to the mailbox, under the lock, at most once at a time
 *      (`queued`).  The loop clears the flag under the lock when it settles the handle.  Only for
 *      lack of memory does the loop post the handle again itself.
 *   3. The memory of a handle returns to the spare list when the handle is not live, not queued and
 *      not in the list of immediates.  So memory that is still to be read is not reused.
 *   4. Other threads count as visitors of the loop, so the loop is not freed during their
 *      calls.  The thread that runs the loop need not count itself.
 *   5. A loop that stops clears the table.  Under the lock, a call either comes before that, or
 *      sees that the loop is stopping, and adds nothing.
 */
#include <weft/schedule.h>
#include "loop/core/loop.h"

#define ROOM_FIRST   64u
#define SLAB_HANDLES 32u

enum { TIMEOUT, DEADLINE, IMMEDIATE };

struct weft__timer_handle {
	struct weft__wheel_entry entry;  /* in the wheel; the loop's thread */
	struct weft__letter letter;      /* in the mailbox */
	struct weft__timer_handle *next; /* in its bucket or the spare list; under the lock */
	struct weft__timer_handle *next_due;
	int64_t id;
	weft_fn fn;
	void *arg;
	uint8_t kind;
	bool live, queued;              /* under the lock */
	bool attached, counted, in_due; /* the loop's thread */
};

struct weft__timer_handle_slab {
	struct weft__timer_handle_slab *next;
	struct weft__timer_handle handles[SLAB_HANDLES];
};

/* This thread runs the loop, and may use what belongs to the loop's thread. */
static bool
is_runner(const weft_loop *loop)
{
	return weft__load(&loop->runner, WEFT__RELAXED) == (uintptr_t)weft__thread_self();
}

/* --- the table, under the lock ------------------------------------------ */

static struct weft__timer_handle **
bucket_of(struct weft__timer_handles *all, int64_t id)
{
	return &all->buckets[(size_t)id & (all->room - 1)];
}

static void
table_add(struct weft__timer_handles *all, struct weft__timer_handle *n)
{
	struct weft__timer_handle **bucket = bucket_of(all, n->id);

	n->next = *bucket;
	*bucket = n;
	all->count++;
}

/* At most one handle per bucket on average; sequential IDs spread evenly. */
static WEFT__NOINLINE int
table_grow(struct weft__timer_handles *all)
{
	struct weft__timer_handles bigger = { .room = all->room ? 2 * all->room : ROOM_FIRST };

	bigger.buckets = weft__alloc_zero(bigger.room * sizeof(*bigger.buckets));
	if (!bigger.buckets)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < all->room; i++)
		while (all->buckets[i]) {
			struct weft__timer_handle *n = all->buckets[i];

			all->buckets[i] = n->next;
			table_add(&bigger, n);
		}
	weft__sys->release(all->buckets);
	all->buckets = bigger.buckets;
	all->room = bigger.room;
	return 0;
}

static struct weft__timer_handle *
table_find(struct weft__timer_handles *all, int64_t id)
{
	struct weft__timer_handle *n = all->room ? *bucket_of(all, id) : NULL;

	while (n && n->id != id)
		n = n->next;
	return n;
}

static void
table_remove(struct weft__timer_handles *all, struct weft__timer_handle *n)
{
	struct weft__timer_handle **link = bucket_of(all, n->id);

	while (*link != n)
		link = &(*link)->next;
	*link = n->next;
	n->live = false;
	all->count--;
}

/* An unused handle, or NULL without memory. */
static struct weft__timer_handle *
take_spare(struct weft__timer_handles *all)
{
	struct weft__timer_handle *n = all->spare;

	if (!n) {
		struct weft__timer_handle_slab *slab = weft__sys->alloc(sizeof(*slab));

		if (!slab)
			return NULL;
		slab->next = all->slabs;
		all->slabs = slab;
		for (unsigned i = 0; i < SLAB_HANDLES; i++) {
			slab->handles[i].next = all->spare;
			all->spare = &slab->handles[i];
		}
		n = all->spare;
	}
	all->spare = n->next;
	return n;
}

/* --- the loop's side ---------------------------------------------------- */

static void
attach(weft_loop *loop, struct weft__timer_handle *n)
{
	struct weft__timer_handles *all = &loop->timer_handles;

	if (n->kind != IMMEDIATE) {
		n->entry.kind = WEFT__ENTRY_TIMER_HANDLE | WEFT__ENTRY_BACKGROUND
		                | (n->kind == DEADLINE ? WEFT__ENTRY_DEADLINE : 0);
		n->attached = weft__wheel_add(&loop->wheel, &n->entry, n->entry.due_ns) == 0;
		return;
	}
	if (!all->due)
		all->due_end = &all->due;
	n->next_due = NULL;
	*all->due_end = n;
	all->due_end = &n->next_due;
	n->attached = n->in_due = true;
}

/* An immediate stays in its list until the loop gets to it. */
static void
detach(weft_loop *loop, struct weft__timer_handle *n)
{
	if (n->entry.block)
		weft__wheel_drop(&loop->wheel, &n->entry);
	n->attached = false;
}

/* Bring the loop's state of `n` in line with what is wanted.  Lock held. */
static void
schedule_settle(weft_loop *loop, struct weft__timer_handle *n)
{
	bool count;

	if (n->live && !n->attached)
		attach(loop, n);
	else if (!n->live && n->attached)
		detach(loop, n);
	count = n->attached && n->kind != DEADLINE;
	weft__count(&loop->alive, (uint64_t)count - n->counted);
	n->counted = count;
	if (!n->live && !n->queued && !n->in_due) {
		n->next = loop->timer_handles.spare;
		loop->timer_handles.spare = n;
	}
}

/* Settle here, or have the loop do it.  Returns 1 if the caller must announce the mailbox after it
 * has released the lock; else 0, or WEFT_ENOMEM.  Lock held. */
static int
settle_somewhere(weft_loop *loop, struct weft__timer_handle *n)
{
	if (is_runner(loop)) {
		schedule_settle(loop, n);
		return n->attached || !n->live ? 0 : WEFT_ENOMEM;
	}
	if (n->queued)
		return 0;
	n->queued = true;
	return weft__mailbox_add(&loop->timer_handles.arrivals, &n->letter);
}

/* If the wheel has no memory for a new timer, the handle is posted again until it has. */
static void
on_arrival(struct weft__mailbox *box, struct weft__letter *letter)
{
	struct weft__timer_handle *n =
		(struct weft__timer_handle *)(void *)((char *)letter
	                                              - offsetof(struct weft__timer_handle,
	                                                         letter));
	weft_loop *loop = box->loop;

	weft__biased_take(&loop->timer_handles.lock, true);
	weft__assert(n->queued); /* invariant 2 */
	n->queued = false;
	schedule_settle(loop, n);
	if (n->live && !n->attached)
		n->queued = weft__mailbox_post(box, letter);
	weft__biased_give(&loop->timer_handles.lock, true);
}

void
weft__timer_handles_init(weft_loop *loop)
{
	weft__mailbox_init(&loop->timer_handles.arrivals, loop, on_arrival);
}

/* --- expiry ------------------------------------------------------------- */

/* A handle has expired: remove it from the table, and return its callback; NULL if it was
 * cleared. */
static weft_fn
claim(weft_loop *loop, struct weft__timer_handle *n, void **arg)
{
	weft_fn fn = NULL;

	weft__biased_take(&loop->timer_handles.lock, true);
	if (n->live) {
		fn = n->fn;
		*arg = n->arg;
		table_remove(&loop->timer_handles, n);
	}
	schedule_settle(loop, n);
	weft__biased_give(&loop->timer_handles.lock, true);
	return fn;
}

static bool
schedule_call(weft_fn fn, void *arg)
{
	if (fn)
		fn(arg);
	return fn != NULL;
}

bool
weft__timer_handle_expire(weft_loop *loop, struct weft__wheel_entry *entry)
{
	struct weft__timer_handle *n = (struct weft__timer_handle *)(void *)entry;
	weft_fn fn;
	void *arg = NULL;

	n->attached = false; /* popped */
	fn = claim(loop, n, &arg);
	return schedule_call(fn, arg);
}

void
weft__timer_handles_run_due(weft_loop *loop)
{
	struct weft__timer_handles *all = &loop->timer_handles;
	struct weft__timer_handle **end = all->due_end;
	unsigned left = WEFT__CALLS_MAX;
	uint32_t calls = 0;
	bool last = false;

	/* Run up to the entry that is the last now; callbacks add more behind it. */
	while (all->due && !last && left-- > 0 && !weft__loop_is_stopping(loop)) {
		struct weft__timer_handle *n = all->due;
		weft_fn fn;
		void *arg = NULL;

		last = &n->next_due == end;
		all->due = n->next_due;
		n->in_due = n->attached = false;
		fn = claim(loop, n, &arg);
		calls += schedule_call(fn, arg);
		weft__checkpoint(loop);
	}
	weft__loop_called(loop, WEFT_PHASE_IMMEDIATES, calls);
}

/* --- life --------------------------------------------------------------- */

void
weft__timer_handles_clear(weft_loop *loop)
{
	struct weft__timer_handles *all = &loop->timer_handles;
	bool is_owner = is_runner(loop);

	weft__biased_take(&all->lock, is_owner);
	while (all->due) {
		all->due->in_due = false;
		all->due = all->due->next_due;
	}
	for (size_t i = 0; i < all->room; i++)
		while (all->buckets[i]) {
			struct weft__timer_handle *n = all->buckets[i];

			table_remove(all, n);
			schedule_settle(loop, n);
		}
	weft__biased_give(&all->lock, is_owner);
}

static void
release_all(struct weft__timer_handles *all)
{
	while (all->slabs) {
		struct weft__timer_handle_slab *slab = all->slabs;

		all->slabs = slab->next;
		weft__sys->release(slab);
	}
	weft__sys->release(all->buckets);
}

void
weft__timer_handles_fini(weft_loop *loop)
{
	release_all(&loop->timer_handles);
}

/* --- the calls ---------------------------------------------------------- */

static const struct weft__schedule_texts texts_of[] = {
	[TIMEOUT] = WEFT__SCHEDULE_TEXTS("weft_schedule_timeout"),
	[DEADLINE] = WEFT__SCHEDULE_TEXTS("weft_abort_new_timeout"),
	[IMMEDIATE] = WEFT__SCHEDULE_TEXTS("weft_schedule_immediate"),
};

int
weft__schedule_check(const weft_loop *loop, weft_fn fn, const struct weft__schedule_texts *texts)
{
	if (!loop)
		return weft__misuse(WEFT_EINVAL, texts->no_loop);
	if (weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EWRONGLOOP, texts->forked);
	return fn ? 0 : weft__misuse(WEFT_EINVAL, texts->no_fn);
}

/* Invariant 4.  True: the caller must call weft__loop_exit() afterwards. */
static bool
visit(weft_loop *loop)
{
	if (is_runner(loop))
		return false;
	weft__loop_enter(loop);
	return true;
}

/* The parameters of a new handle. */
struct wanted {
	uint64_t due_ns;
	weft_fn fn;
	void *arg;
	uint8_t kind;
};

/* Lock held. */
static void
init(struct weft__timer_handle *n, weft_loop *loop, const struct wanted *wanted)
{
	n->entry = (struct weft__wheel_entry){ .due_ns = wanted->due_ns };
	n->fn = wanted->fn;
	n->arg = wanted->arg;
	n->kind = wanted->kind;
	n->live = true;
	n->queued = n->attached = n->counted = n->in_due = false;
	n->id = ++loop->timer_handles.last_id;
}

/* Lock held. */
static int64_t
add_locked(weft_loop *loop, const struct wanted *wanted, bool *announces)
{
	const struct weft__schedule_texts *texts = &texts_of[wanted->kind];
	struct weft__timer_handles *all = &loop->timer_handles;
	struct weft__timer_handle *n;
	int rc;

	if (all->count >= all->room && table_grow(all) < 0)
		return weft__fail(WEFT_ENOMEM, texts->no_memory);
	n = take_spare(all);
	if (!n)
		return weft__fail(WEFT_ENOMEM, texts->no_memory);
	init(n, loop, wanted);
	table_add(all, n);
	rc = settle_somewhere(loop, n);
	*announces = rc > 0;
	if (rc >= 0)
		return n->id;
	table_remove(all, n);
	n->next = all->spare;
	all->spare = n;
	return weft__fail(WEFT_ENOMEM, texts->no_memory);
}

static int64_t
schedule_add(weft_loop *loop, const struct wanted *wanted)
{
	const struct weft__schedule_texts *texts = &texts_of[wanted->kind];
	int64_t id;
	bool visits, announces = false;
	int rc;

	rc = weft__schedule_check(loop, wanted->fn, texts);
	if (rc < 0)
		return rc;
	visits = visit(loop);
	weft__biased_take(&loop->timer_handles.lock, !visits);
	id = weft__loop_is_stopping(loop) ? weft__fail(WEFT_ESHUTDOWN, texts->stopping)
	                                  : add_locked(loop, wanted, &announces); /* invariant 5 */
	weft__biased_give(&loop->timer_handles.lock, !visits);
	if (announces)
		weft__mailbox_announce(&loop->timer_handles.arrivals);
	if (visits)
		weft__loop_exit(loop);
	return id;
}

/* The deadline for a delay.  WEFT_NEVER becomes the latest deadline that can expire. */
static uint64_t
due_in(uint64_t delay_ns)
{
	uint64_t due_ns = weft_after(delay_ns);

	return due_ns == WEFT_NEVER ? WEFT_NEVER - 1 : due_ns;
}

WEFT__FLATTEN int64_t
weft_schedule_timeout(weft_loop *loop, uint64_t delay_ns, weft_fn fn, void *arg)
{
	struct wanted wanted = {
		.due_ns = due_in(delay_ns), .fn = fn, .arg = arg, .kind = TIMEOUT
	};

	return schedule_add(weft__loop_or_current(loop), &wanted);
}

int64_t
weft__schedule_deadline(weft_loop *loop, uint64_t deadline_ns, weft_fn fn, void *arg)
{
	struct wanted wanted = { .due_ns = deadline_ns, .fn = fn, .arg = arg, .kind = DEADLINE };

	return schedule_add(loop, &wanted);
}

int64_t
weft_schedule_immediate(weft_loop *loop, weft_fn fn, void *arg)
{
	struct wanted wanted = { .fn = fn, .arg = arg, .kind = IMMEDIATE };

	return schedule_add(weft__loop_or_current(loop), &wanted);
}

WEFT__FLATTEN int
weft_schedule_clear(weft_loop *loop, int64_t id, void **out)
{
	struct weft__timer_handle *n;
	bool visits, announces = false;

	loop = weft__loop_or_current(loop);
	if (!loop)
		return weft__misuse(WEFT_EINVAL, "weft_schedule_clear: there is no loop");
	if (weft__loop_is_forked(loop))
		return weft__misuse(WEFT_EWRONGLOOP, "weft_schedule_clear: the loop was made by "
		                                     "a parent process");
	visits = visit(loop);
	weft__biased_take(&loop->timer_handles.lock, !visits);
	n = table_find(&loop->timer_handles, id);
	if (n) {
		if (out)
			*out = n->arg;
		table_remove(&loop->timer_handles, n);
		announces = settle_somewhere(loop, n) > 0;
	}
	weft__biased_give(&loop->timer_handles.lock, !visits);
	if (announces)
		weft__mailbox_announce(&loop->timer_handles.arrivals);
	if (visits)
		weft__loop_exit(loop);
	return n ? 0
	         : weft__fail(
			 WEFT_ENOENT,
			 "weft_schedule_clear: no timer has this ID; it has run, was cleared, or "
			 "never existed");
}
