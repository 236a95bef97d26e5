/* lane.c - a thread's own way into an inbox, for calls that need memory of ours.
 *
 * For each thread, inbox and kind of post there is a lane: a circular array that only
 * the thread fills and only the loop empties, with a counter for each side.  The loop
 * looks into the lanes that have called it; a lane calls by one node that it pushes into
 * the inbox, and not again before the loop has gone quiet on it.
 *
 * A lane that is in steady use is made HOT: the loop promises to look in every turn, and
 * the thread needs no atomic read-modify-write at all.  The price is paid by the loop
 * when it takes the promise back: a barrier in every thread of the process, a system
 * call.  So a lane must have earned it first.
 *
 *   1. made counts the calls put in, by the thread (M, release); done those read, by the
 *      loop (C, release).  The thread uses a place again only after it has seen it done
 *      (A, acquire), so it overwrites nothing still to be read.
 *   2. The thread puts a call in and then asks by `called` whether the loop must be told;
 *      the loop says QUIET by `called` and then looks once more.  One of them notices:
 *      both ask by a read-modify-write (K, Q), and the later one in its order has
 *      acquired what the earlier one released.  HOT is asked by a plain load, between
 *      which and M the compiler alone is held back (L); there the loop's barrier, between
 *      its store and its look, stands for both sides' fences: a thread that has read HOT
 *      has its call visible after the barrier.
 *   3. While a lane is listed its node is in no queue: it is listed when the node has
 *      been heard, and the node is pushed only by who changes QUIET to CALLED.
 *   4. A thread that has a lane puts callers' nodes into `extra` (E, release), each with
 *      the number of the call that comes after it: order holds.  Whoever has seen call n
 *      made also sees, by that, every node that comes before n.
 *   5. A call is accepted when the loop has promised to look (CALLED, HOT), has looked,
 *      or takes the node.  If the door is closed for the node, the loop was QUIET and
 *      has published, by saying so, what it had read until then: more than that the
 *      thread takes back, and says QUIET again.  The loop does not look meanwhile: it
 *      sees only that something is there, and a compare-exchange from QUIET decides.  If
 *      the thread was first, the lane is `due`: its node comes, or QUIET does.
 *   6. Once a call has been read, the loop may be freed: so a thread that finds it QUIET
 *      first looks whether that is so, and then touches the lane only, which is its own.
 *   7. The thread's members belong to who has `owned` set; one that ends clears it (O,
 *      release), and another may take the lane over (acquire).  Only one that rests is
 *      taken over: in one that the loop looks into, a call would overtake nodes that the
 *      thread has pushed while it had no lane.
 *   8. A lane is held by its inbox and by its thread; the last one to let go frees it.
 *      So a thread may end before or after the loop.
 *   9. A lane has at most `share` calls waiting; slots_left of the inbox plus the shares
 *      of all its lanes is the limit, for each of the two kinds of post, and one more for
 *      each lane that found nothing left.  The newest piece has room for the share;
 *      older ones go when they are empty.
 *
 * Here is the thread's side; lanes.c is the loop's.
 */
#include "loop/lane.h"

#define SIZE_FIRST 64u /* a lane's first share, */
#define PART_FIRST 64u /* or this part of the limit, if that is less */
#define LINE       64u /* bytes, of the cache */

/* --- life --------------------------------------------------------------- */

static weft__a32 *
slots_left(struct weft__inbox *inbox, uint32_t kind)
{
	return &inbox->slots_left[kind & WEFT__NODE_FIRST];
}

void
weft__lane_unref(struct weft__lane *lane)
{
	struct weft__lane_piece *piece, *next;

	/* Every other access was before its holder let go. */
	if (weft__add(&lane->refs, UINT32_MAX, WEFT__ACQ_REL) != 1)
		return;
	for (piece = lane->drain; piece; piece = next) {
		next = weft__get(piece->next);
		weft__sys->release(piece);
	}
	weft__sys->release(lane->memory);
}

/* Take the lane at `link` from its thread. */
static void
disown(struct weft__lane **link)
{
	struct weft__lane *lane = *link;

	*link = lane->next_of_thread;
	weft__store(&lane->owned, 0, WEFT__RELEASE); /* O */
	weft__lane_unref(lane);
}

void
weft__lanes_forget(struct weft__thread *thread, bool all)
{
	struct weft__lane **link = (struct weft__lane **)&thread->lanes;

	thread->post_id = 0;
	while (*link)
		if (all || weft__load(&(*link)->gone, WEFT__RELAXED))
			disown(link);
		else
			link = &(*link)->next_of_thread;
}

static void
on_thread_end(struct weft__thread *thread)
{
	weft__lanes_forget(thread, true);
}

/* --- shares ------------------------------------------------------------- */

/* Up to `want` of what the inbox has left; 0 if there is none. */
static uint32_t
reserve(weft__a32 *left, uint32_t want)
{
	uint32_t before = weft__load(left, WEFT__RELAXED);
	uint32_t count;

	do
		count = want < before ? want : before;
	while (!weft__cas(left, &before, before - count, WEFT__RELAXED));
	return count;
}

/* The next lane from `lane` on, of a kind and of no thread; it is this one's now. */
static struct weft__lane *
take_over(struct weft__lane *lane, uint32_t kind)
{
	for (; lane; lane = weft__get(lane->next_of_inbox)) {
		uint32_t owned = 0;

		if (weft__get(lane->kind) == kind
		    && weft__cas(&lane->owned, &owned, 1, WEFT__ACQUIRE)) /* O */
			return lane;
	}
	return NULL;
}

/* Take from lanes of no thread what they do not use. */
static void
reclaim(struct weft__inbox *inbox, uint32_t kind)
{
	struct weft__lane *lane = take_over(weft__lanes_first(inbox), kind);

	while (lane) {
		uint64_t waiting = weft__load(&lane->call.made, WEFT__RELAXED)
		                   - weft__load(&lane->done, WEFT__RELAXED);
		uint32_t share = weft__get(lane->share);

		if (waiting < share) {
			uint32_t lent = waiting == 0 && lane->lent;

			(void)weft__add(slots_left(inbox, kind), share - (uint32_t)waiting - lent,
			                WEFT__RELAXED);
			weft__put(lane->share, (uint32_t)waiting);
			lane->lent &= !lent;
		}
		weft__store(&lane->owned, 0, WEFT__RELEASE); /* O */
		lane = take_over(weft__get(lane->next_of_inbox), kind);
	}
}

/* Go on in a piece that has room for `share` calls, if the present one has not.  False
 * without memory. */
static bool
stretch(struct weft__lane *lane, uint32_t share)
{
	struct weft__lane_piece *piece;
	uint32_t size = share;

	if (lane->fill && lane->fill->size >= share)
		return true;
	if (lane->fill && 2 * lane->fill->size > share)
		size = 2 * lane->fill->size; /* so that little steps are few */
	piece = weft__alloc_zero(sizeof(*piece) + size * sizeof(piece->calls[0]));
	if (!piece)
		return false;
	piece->size = size;
	weft__store(&piece->end, UINT64_MAX, WEFT__RELAXED);
	if (lane->fill) {
		weft__put(lane->fill->next, piece);
		weft__store(&lane->fill->end, weft__load(&lane->call.made, WEFT__RELAXED),
		            WEFT__RELAXED);
	}
	lane->fill = piece;
	lane->at = 0;
	return true;
}

/* Raise the lane's share by `want`, or as much as there is; false without that, or
 * without memory.  One that has nothing gets room for one, so that no thread can keep
 * another out for ever. */
static bool
grow(struct weft__inbox *inbox, struct weft__lane *lane, uint32_t want)
{
	weft__a32 *left = slots_left(inbox, lane->kind);
	uint32_t more = reserve(left, want), counted;
	bool lent;

	if (more == 0) {
		reclaim(inbox, lane->kind);
		more = reserve(left, want);
	}
	counted = more;
	lent = lane->share == 0 && more == 0;
	more += lent;
	if (more == 0 || !stretch(lane, lane->share + more)) {
		(void)weft__add(left, counted, WEFT__RELAXED);
		return false;
	}
	lane->lent |= lent;
	lane->share += more;
	lane->full_at += more;
	return true;
}

/* --- a lane for this thread --------------------------------------------- */

/* Is there room for one more, now that it seems not so? */
static bool
has_room(struct weft__lane *lane)
{
	lane->full_at = weft__load(&lane->done, WEFT__ACQUIRE) /* A */
	                + weft__get(lane->share);
	return weft__load(&lane->call.made, WEFT__RELAXED) != lane->full_at;
}

static uint32_t
first_share(const struct weft__inbox *inbox)
{
	uint32_t want = inbox->slots_max / PART_FIRST;

	return want < 1 ? 1 : want < SIZE_FIRST ? want : SIZE_FIRST;
}

static __attribute__((noinline)) bool
make_room(struct weft__inbox *inbox, struct weft__lane *lane)
{
	uint32_t want = lane->share;

	if (want < first_share(inbox))
		want = first_share(inbox);
	return has_room(lane) || grow(inbox, lane, want);
}

/* One that no thread owns, and that will call before the loop looks: so nodes that this
 * thread has pushed before it had a lane come first. */
static struct weft__lane *
adopt_lane(struct weft__inbox *inbox, uint32_t kind)
{
	struct weft__lane *lane = take_over(weft__lanes_first(inbox), kind);

	/* QUIET as the loop last said it, and then whether it was done by then.  The
	 * latter needs no order: each side's store depends on what it has loaded. */
	while (lane
	       && (weft__load(&lane->call.called, WEFT__ACQUIRE) /* Q, B */
	           || !weft__load(&lane->call.rests, WEFT__RELAXED))) {
		weft__store(&lane->owned, 0, WEFT__RELEASE); /* O */
		lane = take_over(weft__get(lane->next_of_inbox), kind);
	}
	if (lane) {
		(void)weft__add(&lane->refs, 1, WEFT__RELAXED);
		(void)has_room(lane); /* refreshes what it knows of that */
	}
	return lane;
}

static void
publish(struct weft__inbox *inbox, struct weft__lane *lane)
{
	uintptr_t first = weft__load(&inbox->lanes, WEFT__RELAXED);

	do
		weft__put(lane->next_of_inbox, (struct weft__lane *)first);
	while (!weft__cas(&inbox->lanes, &first, (uintptr_t)lane, WEFT__RELEASE));
}

static struct weft__lane *
make_lane(struct weft__inbox *inbox, uint32_t kind)
{
	char *memory = weft__alloc_zero(sizeof(struct weft__lane) + LINE - 1);
	struct weft__lane *lane = (struct weft__lane *)(void *)(memory + -(uintptr_t)memory % LINE);

	if (!memory)
		return NULL;
	lane->memory = memory;
	weft__put(lane->kind, kind);
	if (!grow(inbox, lane, first_share(inbox))) {
		weft__sys->release(memory);
		return NULL;
	}
	weft__store(&lane->refs, 2, WEFT__RELAXED);
	weft__store(&lane->owned, 1, WEFT__RELAXED);
	weft__store(&lane->call.rests, 1, WEFT__RELAXED);
	lane->inbox = inbox;
	lane->inbox_id = inbox->id;
	lane->drain = lane->fill;
	lane->call.node.kind = WEFT__NODE_LANE | kind;
	publish(inbox, lane);
	return lane;
}

/* This thread's lane of that kind, or NULL. */
static struct weft__lane *
known_lane(struct weft__inbox *inbox, struct weft__thread *self, uint32_t kind)
{
	struct weft__lane *lane = self->lanes;

	if (self->post_id == inbox->id && kind == 0)
		return self->post_lane;
	while (lane && (lane->inbox_id != inbox->id || lane->kind != kind))
		lane = lane->next_of_thread;
	return lane;
}

static __attribute__((noinline)) struct weft__lane *
find_lane(struct weft__inbox *inbox, struct weft__thread *self, uint32_t kind)
{
	struct weft__lane *lane = known_lane(inbox, self, kind);

	if (!lane) {
		weft__lanes_forget(self, false);
		lane = adopt_lane(inbox, kind);
		if (!lane)
			lane = make_lane(inbox, kind);
		if (!lane)
			return NULL;
		self->end = on_thread_end;
		lane->next_of_thread = self->lanes;
		self->lanes = lane;
	}
	if (kind == 0) {
		self->post_id = inbox->id;
		self->post_lane = lane;
	}
	return lane;
}

/* --- posting ------------------------------------------------------------ */

/* The loop was QUIET and goes on so; what was put in last is read, or taken back. */
static int
stay_quiet(struct weft__lane *lane, int rc)
{
	weft__store(&lane->call.called, WEFT__LANE_QUIET, WEFT__RELEASE); /* R */
	return rc;
}

/* Push the lane's node. */
static int
call(struct weft__inbox *inbox, struct weft__lane *lane)
{
	return weft__inbox_push(inbox, (struct weft__node *)(void *)&lane->call.node, false);
}

/* True if the loop has promised to look, and need not be called. */
static bool
is_promised(struct weft__lane *lane)
{
	return weft__or(&lane->call.called, WEFT__LANE_CALLED, WEFT__ACQ_REL); /* K */
}

/* Invariants 5 and 6: a call that has been read must not touch the inbox any more. */
__attribute__((noinline)) int
weft__lane_tell(struct weft__inbox *inbox, struct weft__lane *lane)
{
	uint64_t number = weft__load(&lane->call.made, WEFT__RELAXED) - 1;
	int rc;

	if (is_promised(lane))
		return WEFT__AWAKE;
	if (weft__load(&lane->done, WEFT__RELAXED) > number)
		return stay_quiet(lane, WEFT__AWAKE);
	rc = call(inbox, lane);
	if (rc != WEFT_ESHUTDOWN)
		return rc;
	weft__store(&lane->call.made, number, WEFT__RELAXED);
	lane->at = (lane->at ? lane->at : lane->fill->size) - 1;
	return stay_quiet(lane, rc);
}

int
weft__lane_post(struct weft__inbox *inbox, weft_fn fn, void *arg, uint32_t kind)
{
	struct weft__lane *lane = find_lane(inbox, weft__thread_self(), kind);

	if (!lane || (weft__lane_is_full(lane) && !make_room(inbox, lane)))
		return WEFT_EAGAIN;
	return weft__lane_put(lane, fn, arg) ? WEFT__AWAKE : weft__lane_tell(inbox, lane);
}

int
weft__lane_post_node(struct weft__inbox *inbox, struct weft__node *node)
{
	struct weft__lane *lane = known_lane(inbox, weft__thread_self(), 0);
	uintptr_t top;
	int rc;

	if (!lane)
		return weft__inbox_push(inbox, node, false);
	top = weft__load(&lane->call.extra, WEFT__RELAXED);
	weft__put(node->before, weft__load(&lane->call.made, WEFT__RELAXED));
	do
		weft__put(node->next, (struct weft__node *)top);
	while (!weft__cas(&lane->call.extra, &top, (uintptr_t)node, WEFT__RELEASE)); /* E */
	if (is_promised(lane))
		return WEFT__AWAKE;
	if (weft__load(&lane->call.extra, WEFT__RELAXED) != (uintptr_t)node)
		return stay_quiet(lane, WEFT__AWAKE);
	rc = call(inbox, lane);
	if (rc != WEFT_ESHUTDOWN)
		return rc;
	weft__store(&lane->call.extra, top, WEFT__RELAXED);
	return stay_quiet(lane, rc);
}

/* Nothing of the inbox is touched: the loop may be gone. */
uint64_t
weft__lane_last_key(uint64_t inbox_id, uint32_t kind)
{
	const struct weft__lane *lane = weft__thread_self()->lanes;

	while (lane && (lane->inbox_id != inbox_id || lane->kind != kind))
		lane = lane->next_of_thread;
	return lane ? weft__lane_key(lane, weft__load(&lane->call.made, WEFT__RELAXED) - 1) : 0;
}
