/* threadlet_list.c - listing threadlets.
 *
 * While a loop runs, only its own thread may read its threadlets.  So a listing from elsewhere
 * is a request: the caller wakes the loop, and the loop answers when it empties its inbox.  A
 * loop that does not run is held for a moment, and read by the caller itself.
 *
 *   1. A pending request is in the registry, under its lock.  The loop takes the request and
 *      claims its waiter under the lock.  If the requester is ending its wait, the claim fails and
 *      the loop does not touch the request again; else the requester waits for the answer.
 *   2. Only a loop that runs answers.  Its run may end without an answer.  Therefore each wait
 *      is short, and then the state of the loop is checked again.
 *   3. The scheduler's list is in order of arrival.  A cursor is the `seq` of the last threadlet
 *      that was read.  `mark` says where the list continues, and moves if that threadlet ends.
 *      With several readers `mark` may be another reader's; then the position is searched for.
 *   4. The requester is a visitor of the loop (life.c) while it reads the loop, and while its
 *      request is pending.  The thread that takes the request ends that visit: so a requester that
 *      is suspended never delays weft_loop_free(), which may run on the requester's own thread.
 */
#include "base/switch/frames.h"
#include "threadlet/waitable.h"

#define SLICE_MAX 64u
#define WAIT_NS   (10 * WEFT_MS) /* invariant 2 */

struct weft__listing {
	struct weft__listing *next;
	uint64_t loop_id;
	weft_loop *loop; /* NULL: the visit has ended */
	uint64_t cursor;
	weft_threadlet_info *out;
	size_t max;
	int count;
	bool pending; /* under the lock, as `next` */
	struct weft__shared_waiter w;
};

/* --- one threadlet ------------------------------------------------------ */

const char *
weft__waiter_what(const struct weft__waiter *waiter)
{
	static const char *const names[] = {
		[WEFT__OP_POLL] = "fd",         [WEFT__OP_RECV] = "recv",
		[WEFT__OP_RECV_MULTI] = "recv", [WEFT__OP_ACCEPT] = "accept",
		[WEFT__OP_SEND] = "send",       [WEFT__OP_SENDMSG] = "send",
		[WEFT__OP_SENDFILE] = "send",   [WEFT__OP_CONNECT] = "connect",
	};
	const struct weft__op *op = weft__waiter_op(waiter);

	return op && op->kind >= WEFT__OP_POLL ? names[op->kind] : waiter->what;
}

/* An op that waits for a descriptor names it. */
static void
describe_op(const struct weft__op *op, weft_threadlet_info *out)
{
	if (op->entry.block && out->deadline_ns == WEFT_NEVER)
		out->deadline_ns = op->entry.due_ns;
	if (op->kind >= WEFT__OP_POLL)
		out->waits_on = op->fd;
}

static void
describe_wait(const struct weft__threadlet *t, weft_threadlet_info *out)
{
	const struct weft__waiter *waiter = t->waiter;
	const struct weft__op *op = waiter ? weft__waiter_op(waiter) : NULL;

	out->state = waiter ? "waiting" : "ready";
	out->waits_for = waiter ? weft__waiter_what(waiter) : "";
	out->waits_on = waiter ? waiter->on : 0;
	out->deadline_ns = t->entry.block ? t->entry.due_ns : WEFT_NEVER;
	if (op)
		describe_op(op, out);
}

static void
describe_stack(const struct weft__threadlet *t, weft_threadlet_info *out)
{
	struct weft__stack *stack = t->stack;
	const char *end;

	out->stack_bytes = weft__stack_bytes(stack->size_class);
	end = stack->base + out->stack_bytes;
	out->stack_high = weft__sys->stack_touched(stack->base, out->stack_bytes);
	if (weft__self() == t) {
		out->state = "running";
		out->stack_used = (size_t)(end - (const char *)__builtin_frame_address(0));
		(void)weft__frames_walk(weft__frame_here(t), out->frames, 16);
	} else {
		out->stack_used = (size_t)(end - (const char *)t->context.sp);
		(void)weft__frames_of(&t->context, out->frames, 16);
	}
	if (out->stack_high < out->stack_used)
		out->stack_high = out->stack_used;
	if (!out->frames[0]) /* it has not begun to run */
		out->frames[0] = out->fn;
}

void
weft__threadlet_describe(const struct weft__threadlet *t, weft_threadlet_info *out)
{
	*out = (weft_threadlet_info){
		.id = (int64_t)weft__load(&t->handle->id, WEFT__RELAXED),
		.since_ns = t->since_ns,
		.spawned_at = t->spawned_at,
		.fn = (const void *)(uintptr_t)t->fn,
	};
	__builtin_memcpy(out->name, t->name, sizeof(out->name));
	describe_wait(t, out);
	describe_stack(t, out);
}

/* --- a slice ------------------------------------------------------------ */

/* Invariant 3. */
static struct weft__threadlet *
find_position(const struct weft__sched *sched, uint64_t cursor)
{
	struct weft__threadlet *t = sched->newest;

	if (cursor == 0)
		return t;
	if (sched->mark && sched->mark->seq < cursor
	    && (!sched->mark->newer || sched->mark->newer->seq >= cursor))
		return sched->mark;
	while (t && t->seq >= cursor)
		t = t->older;
	return t;
}

/* On the loop's thread, or with the loop held. */
static void
listing_copy(struct weft__listing *listing)
{
	struct weft__sched *sched = weft__sched_at(listing->loop);
	struct weft__threadlet *t = find_position(sched, listing->cursor);

	for (; t && (size_t)listing->count < listing->max; t = t->older) {
		weft__threadlet_describe(t, &listing->out[listing->count++]);
		listing->cursor = t->seq;
	}
	sched->mark = t;
}

/* --- requests to a loop that runs --------------------------------------- */

/* The caller holds the lock. */
static void
listing_take_off(struct weft__listing *listing)
{
	struct weft__listing **link = &weft__registry.listings;

	while (*link != listing)
		link = &(*link)->next;
	*link = listing->next;
	listing->pending = false;
	weft__loop_add_listings(listing->loop, -1);
}

/* On the thread that has taken the request; invariant 4. */
static void
listing_end_visit(struct weft__listing *listing)
{
	weft_loop *loop = listing->loop;

	listing->loop = NULL;
	weft__loop_exit(loop);
}

/* Take requests to the loop until one is claimed; NULL: there are no more. */
static struct weft__listing *
listing_next(const weft_loop *loop)
{
	struct weft__listing *listing;
	bool claimed = false;

	weft__lock_take(&weft__registry.lock);
	do {
		listing = weft__registry.listings;
		while (listing && listing->loop != loop)
			listing = listing->next;
		if (!listing)
			break;
		listing_take_off(listing);
		claimed = weft__claim(&listing->w.waiter);
		if (!claimed)
			listing_end_visit(listing);
	} while (!claimed);
	weft__lock_give(&weft__registry.lock);
	return listing;
}

void
weft__sched_answer_listings(weft_loop *loop)
{
	struct weft__listing *listing;

	while ((listing = listing_next(loop))) {
		listing_copy(listing);
		listing_end_visit(listing);
		weft__waitable_wake_shared(&listing->w, 0);
	}
}

/* Once the request is pending, it may be taken, and the visit ended, at any time. */
static void
listing_request(struct weft__listing *listing)
{
	weft_loop *loop = listing->loop;

	weft__loop_enter(loop); /* until it has been woken */
	weft__lock_take(&weft__registry.lock);
	listing->pending = true;
	listing->next = weft__registry.listings;
	weft__registry.listings = listing;
	weft__loop_add_listings(loop, 1);
	weft__lock_give(&weft__registry.lock);
	weft__loop_wake(loop);
	weft__loop_exit(loop);
}

static void
listing_withdraw(struct weft__listing *listing)
{
	weft__lock_take(&weft__registry.lock);
	if (listing->pending)
		listing_take_off(listing);
	weft__lock_give(&weft__registry.lock);
}

static int
listing_wait(struct weft__listing *listing, uint64_t until_ns)
{
	int rc;

	weft__shared_waiter_init(&listing->w, "list", listing->loop);
	listing->w.waiter.request_end = weft__waitable_end_wait;
	listing->w.may_spin = false;
	listing_request(listing);
	rc = (int)weft__shared_wait(&listing->w, until_ns);
	if (rc < 0)
		listing_withdraw(listing);
	return rc;
}

/* --- the calls ---------------------------------------------------------- */

/* Invariant 2. */
static int
listing_from_outside(struct weft__listing *listing, uint64_t deadline_ns)
{
	uint64_t until_ns;
	int rc;

	while (listing->loop && !weft__loop_is_going(listing->loop)) {
		if (weft__loop_hold(listing->loop)) {
			listing_copy(listing);
			weft__loop_give_back(listing->loop);
			return 0;
		}
		rc = weft__waitable_may_wait(true, deadline_ns);
		if (rc < 0)
			return rc;
		until_ns = weft_after(WAIT_NS);
		until_ns = until_ns < deadline_ns ? until_ns : deadline_ns;
		rc = listing_wait(listing, until_ns);
		if (rc != WEFT_ETIMEDOUT || weft__sys->now() >= deadline_ns)
			return rc;
		if (!listing->loop)
			listing->loop = weft__registry_find(listing->loop_id);
	}
	return 0;
}

/* The caller visits the loop.  The visit ends here. */
static int
listing_fill(weft_loop *loop, uint64_t *cursor, struct weft__listing *listing, uint64_t deadline_ns)
{
	int rc = 0;

	listing->loop = loop;
	listing->loop_id = weft__loop_id(loop);
	listing->cursor = *cursor;
	if (loop == weft__thread_self()->loop)
		listing_copy(listing);
	else if (weft__sched_at(loop))
		rc = listing_from_outside(listing, deadline_ns);
	if (listing->loop)
		listing_end_visit(listing);
	if (rc < 0)
		return rc;
	*cursor = listing->cursor;
	return listing->count;
}

int
weft__threadlet_list(weft_loop *loop, uint64_t *cursor, weft_threadlet_info *out, size_t max,
                     uint64_t deadline_ns)
{
	struct weft__listing listing = { .out = out, .max = max < SLICE_MAX ? max : SLICE_MAX };

	weft__loop_enter(loop);
	return listing_fill(loop, cursor, &listing, deadline_ns);
}

int
weft_threadlet_list(uint64_t loop_id, uint64_t *cursor, weft_threadlet_info *out, size_t max,
                    uint64_t deadline_ns)
{
	struct weft__listing listing = { .out = out, .max = max < SLICE_MAX ? max : SLICE_MAX };
	weft_loop *loop;

	if (!cursor || !out || max == 0)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_threadlet_list: cursor or out is NULL, or max is 0");
	loop = weft__registry_find(loop_id);
	if (!loop)
		return weft__fail(WEFT_ENOENT, "weft_threadlet_list: no loop has that ID");
	return listing_fill(loop, cursor, &listing, deadline_ns);
}
