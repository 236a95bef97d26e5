/* lane.c - producer queues: posts whose memory the library provides.
 *
 * There is one producer queue (`lane`) for each thread, inbox and kind of post.  It is a
 * circular array that only the thread, its producer, fills and only the loop empties, with one
 * counter for each side.  An entry is one call, a function and its argument.  The loop reads
 * the queues that have signaled it.  A producer signals by pushing the queue's one node into
 * the inbox, and does not signal again before the loop has set the queue to QUIET.
 *
 * A queue in steady use becomes HOT: the loop promises to check it in every iteration, and the
 * producer needs no atomic read-modify-write at all.  The loop pays when it withdraws the
 * promise: it issues a memory barrier in every thread of the process, which is a system call.
 * So a queue becomes HOT only after many entries.
 *
 *   1. `made` counts the entries written, by the producer (M, release).  `done` counts the
 *      entries read, by the loop (C, release).  The producer reuses an array element only
 *      after it has seen in `done` that the loop has read it (A, acquire), so it never
 *      overwrites an unread entry.
 *   2. The producer writes an entry and then reads `called` to learn whether it must signal
 *      the loop.  The loop sets `called` to QUIET and then rechecks the queue.  At least one
 *      of them notices the other.  Both access `called` by a read-modify-write (K by the
 *      producer, Q by the loop), and the later one in the modification order of `called` has
 *      acquired what the earlier one released.  A producer detects HOT by a plain load, and
 *      only a compiler fence (L) separates that load from M.  There the loop's barrier in all
 *      threads, between its store (B) and its recheck, replaces the fences of both sides: if a
 *      producer has read HOT, its entry is visible to the loop after the barrier.
 *   3. While a queue is listed its node is in no list, unless the queue is `due` (invariant
 *      5).  The loop lists the queue when it takes the node, and the node is pushed only by
 *      the producer that changed QUIET to CALLED.
 *   4. A producer that has a queue pushes callers' nodes onto `extra` (E, release).  Each node
 *      carries the number of the entry that comes after it, so the order of posts is kept.
 *      The producer stores `made` (M) after E: so a loop that sees entry n in `made` also sees
 *      every node that comes before n.
 *   5. A post is accepted when the loop has promised to read the queue (CALLED, HOT), has read
 *      the entry, or takes the node.  If the inbox is closed for the node, the loop had set
 *      QUIET, and by that store the loop published how much it had read.  The producer
 *      withdraws an entry beyond that, and sets QUIET again (R).  The loop does not read the
 *      queue meanwhile: it only sees that something is there, and a compare-exchange from
 *      QUIET decides.  If the producer was first, the queue is `due`: either its node arrives,
 *      or the producer sets QUIET again.
 *   6. Once the loop has read an entry, the loop may be freed.  So a producer that finds QUIET
 *      first checks whether its entry has been read.  If so, it touches only the queue, of
 *      which it holds a reference, and not the inbox.
 *   7. The producer's members belong to the thread that has set `owned`.  A thread that ends
 *      clears `owned` (O, release), and another thread may take the queue over (acquire).  A
 *      thread adopts only a queue at rest: in a queue that the loop is reading, an entry would
 *      overtake nodes that the thread has pushed while it had no queue.
 *   8. The inbox and the thread each hold a reference to a queue; the last one to drop its
 *      reference frees the queue.  So a thread may end before or after the loop.
 *   9. At most `share` entries of a queue wait.  slots_left of the inbox plus the shares of
 *      all its queues is the limit, for each of the two kinds of post, plus one for each queue
 *      that found nothing left.  The newest piece has room for the share; the loop frees older
 *      pieces when they are empty.
 *
 * This file is the producer's side; lanes.c is the loop's.
 */
#include "loop/lane.h"

#define SIZE_FIRST 64u /* a queue's first share, */
#define PART_FIRST 64u /* or the limit divided by this, if that is less */
#define LINE       64u /* bytes of a cache line */

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

	/* Every other access comes before the unref of its holder. */
	if (weft__add(&lane->refs, UINT32_MAX, WEFT__ACQ_REL) != 1)
		return;
	for (piece = lane->drain; piece; piece = next) {
		next = weft__get(piece->next);
		weft__sys->release(piece);
	}
	weft__sys->release(lane->memory);
}

/* Remove the queue at `link` from its thread. */
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

/* Reserve up to `want` of what the inbox has left; 0 if there is none. */
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

/* Find the next queue of this kind, from `lane` on, that no thread owns, and own it. */
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

/* Take unused shares from queues that no thread owns. */
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

/* Make sure that the producer fills a piece with room for `share` entries.  False without
 * memory. */
static bool
stretch(struct weft__lane *lane, uint32_t share)
{
	struct weft__lane_piece *piece;
	uint32_t size = share;

	if (lane->fill && lane->fill->size >= share)
		return true;
	if (lane->fill && 2 * lane->fill->size > share)
		size = 2 * lane->fill->size; /* so that small steps are few */
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

/* Raise the queue's share by up to `want`.  False if nothing is left, or without memory.  A
 * queue with no share always gets one entry, so that no thread can block another forever. */
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

/* --- a queue for this thread -------------------------------------------- */

/* Recheck whether there is room for one more entry, after it seemed full. */
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

/* Adopt a queue that no thread owns and that will signal before the loop reads it.  So nodes
 * that this thread has pushed before it had a queue come first. */
static struct weft__lane *
adopt_lane(struct weft__inbox *inbox, uint32_t kind)
{
	struct weft__lane *lane = take_over(weft__lanes_first(inbox), kind);

	/* Reads QUIET, as the loop last stored it, and then whether the loop was done with the
	 * queue by then.  The second load needs no order: each side's store depends on what
	 * that side has loaded. */
	while (lane
	       && (weft__load(&lane->call.called, WEFT__ACQUIRE) /* Q, B */
	           || !weft__load(&lane->call.rests, WEFT__RELAXED))) {
		weft__store(&lane->owned, 0, WEFT__RELEASE); /* O */
		lane = take_over(weft__get(lane->next_of_inbox), kind);
	}
	if (lane) {
		(void)weft__add(&lane->refs, 1, WEFT__RELAXED);
		(void)has_room(lane); /* refreshes full_at */
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

/* This thread's queue of that kind, or NULL. */
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

/* The queue was QUIET and is set to QUIET again; the last entry was read, or was withdrawn. */
static int
stay_quiet(struct weft__lane *lane, int rc)
{
	weft__store(&lane->call.called, WEFT__LANE_QUIET, WEFT__RELEASE); /* R */
	return rc;
}

static int
call(struct weft__inbox *inbox, struct weft__lane *lane)
{
	return weft__inbox_push(inbox, (struct weft__node *)(void *)&lane->call.node, false);
}

/* True if the loop has promised to read the queue, and need not be signaled. */
static bool
is_promised(struct weft__lane *lane)
{
	return weft__or(&lane->call.called, WEFT__LANE_CALLED, WEFT__ACQ_REL); /* K */
}

/* Invariants 5 and 6: once the entry has been read, the producer must not touch the inbox. */
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

/* Touches nothing of the inbox: the loop may have been freed. */
uint64_t
weft__lane_last_key(uint64_t inbox_id, uint32_t kind)
{
	const struct weft__lane *lane = weft__thread_self()->lanes;

	while (lane && (lane->inbox_id != inbox_id || lane->kind != kind))
		lane = lane->next_of_thread;
	return lane ? weft__lane_key(lane, weft__load(&lane->call.made, WEFT__RELAXED) - 1) : 0;
}
