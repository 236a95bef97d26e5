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
 */
#include "loop/lane.h"

#define SIZE_FIRST 64u     /* a lane's first share, */
#define PART_FIRST 64u     /* or this part of the limit, if that is less */
#define LINE       64u     /* bytes, of the cache */
#define COOL_AFTER 61u     /* looks in a row that found nothing */
#define GRACE_NS   WEFT_MS /* by then every store is seen, if all else fails */

/* --- life --------------------------------------------------------------- */

static weft__a32 *
slots_left(struct weft__inbox *inbox, uint32_t kind)
{
	return &inbox->slots_left[kind & WEFT__NODE_FIRST];
}

static void
release_lane(struct weft__lane *lane)
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
	release_lane(lane);
}

/* Forget the lanes of `thread`, or only those whose inbox is gone. */
static void
forget_lanes(struct weft__thread *thread, bool all)
{
	struct weft__lane **link = (struct weft__lane **)&thread->lanes;

	thread->post_id = 0;
	while (*link)
		if (all || weft__load(&(*link)->gone, WEFT__RELAXED))
			disown(link);
		else
			link = &(*link)->next_of_thread;
}

void
weft__lanes_give_up(struct weft__inbox *inbox)
{
	/* No order: who made a lane has posted, or whoever frees the loop made
	 * sure that it posts no more. */
	struct weft__lane *lane = (struct weft__lane *)weft__load(
		&inbox->lanes, WEFT__RELAXED);

	while (lane) {
		struct weft__lane *next = lane->next_of_inbox;

		weft__store(&lane->gone, 1, WEFT__RELAXED);
		release_lane(lane);
		lane = next;
	}
	/* Other threads find out when they next look for a lane, or end. */
	forget_lanes(weft__thread_self(), false);
}

static void
on_thread_end(struct weft__thread *thread)
{
	forget_lanes(thread, true);
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
		    && weft__cas(&lane->owned, &owned, 1,
		                 WEFT__ACQUIRE)) /* O */
			return lane;
	}
	return NULL;
}

static struct weft__lane *
first_of(struct weft__inbox *inbox)
{
	return (struct weft__lane *)weft__load(&inbox->lanes, WEFT__ACQUIRE);
}

/* Take from lanes of no thread what they do not use. */
static void
reclaim(struct weft__inbox *inbox, uint32_t kind)
{
	struct weft__lane *lane = take_over(first_of(inbox), kind);

	while (lane) {
		uint64_t waiting = weft__load(&lane->call.made, WEFT__RELAXED)
		                   - weft__load(&lane->done, WEFT__RELAXED);
		uint32_t share = weft__get(lane->share);

		if (waiting < share) {
			uint32_t lent = waiting == 0 && lane->lent;

			(void)weft__add(slots_left(inbox, kind),
			                share - (uint32_t)waiting - lent,
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
	piece = weft__alloc_zero(sizeof(*piece)
	                         + size * sizeof(piece->calls[0]));
	if (!piece)
		return false;
	piece->size = size;
	weft__store(&piece->end, UINT64_MAX, WEFT__RELAXED);
	if (lane->fill) {
		weft__put(lane->fill->next, piece);
		weft__store(&lane->fill->end,
		            weft__load(&lane->call.made, WEFT__RELAXED),
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

	if (more == 0) {
		reclaim(inbox, lane->kind);
		more = reserve(left, want);
	}
	counted = more;
	lane->lent |= lane->share == 0 && more == 0;
	more += lane->share == 0 && more == 0;
	if (more == 0 || !stretch(lane, lane->share + more)) {
		(void)weft__add(left, counted, WEFT__RELAXED);
		return false;
	}
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
	struct weft__lane *lane = take_over(first_of(inbox), kind);

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
	while (!weft__cas(&inbox->lanes, &first, (uintptr_t)lane,
	                  WEFT__RELEASE));
}

static struct weft__lane *
make_lane(struct weft__inbox *inbox, uint32_t kind)
{
	char *memory = weft__alloc_zero(sizeof(struct weft__lane) + LINE - 1);
	struct weft__lane *lane =
		(struct weft__lane *)(void *)(memory
	                                      + -(uintptr_t)memory % LINE);

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
		forget_lanes(self, false);
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
	weft__store(&lane->call.called, WEFT__LANE_QUIET,
	            WEFT__RELEASE); /* R */
	return rc;
}

/* Push the lane's node. */
static int
call(struct weft__inbox *inbox, struct weft__lane *lane)
{
	return weft__inbox_push(
		inbox, (struct weft__node *)(void *)&lane->call.node, false);
}

/* True if the loop has promised to look, and need not be called. */
static bool
is_promised(struct weft__lane *lane)
{
	return weft__or(&lane->call.called, WEFT__LANE_CALLED,
	                WEFT__ACQ_REL); /* K */
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
	return weft__lane_put(lane, fn, arg) ? WEFT__AWAKE
	                                     : weft__lane_tell(inbox, lane);
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
	while (!weft__cas(&lane->call.extra, &top, (uintptr_t)node,
	                  WEFT__RELEASE)); /* E */
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

/* --- the loop's side ---------------------------------------------------- */

static bool
is_empty(const struct weft__lane *lane)
{
	return weft__load(&lane->done, WEFT__RELAXED) == lane->limit
	       && !lane->nodes.first;
}

/* More than has been run; what is new is not taken yet. */
static bool
has_more(const struct weft__lane *lane)
{
	return weft__load(&lane->call.made, WEFT__RELAXED)
	               != weft__load(&lane->done, WEFT__RELAXED)
	       || lane->nodes.first
	       || weft__load(&lane->call.extra, WEFT__RELAXED);
}

static void
set_stop(struct weft__lane *lane)
{
	uint64_t end = weft__load(&lane->drain->end, WEFT__RELAXED);

	lane->stop = lane->limit < end ? lane->limit : end;
	if (lane->nodes.first && lane->nodes.first->before < lane->stop)
		lane->stop = lane->nodes.first->before;
}

static void
take_extra(struct weft__lane *lane)
{
	struct weft__node *node = (struct weft__node *)weft__exchange(
		&lane->call.extra, 0, WEFT__ACQUIRE); /* E */

	node = weft__node_turn(node);
	while (node) {
		struct weft__node *next = node->next;

		weft__node_append(&lane->nodes, node);
		node = next;
	}
}

/* First made, then extra: invariant 4. */
static void
look(struct weft__lane *lane)
{
	lane->limit = weft__load(&lane->call.made, WEFT__ACQUIRE); /* M */
	if (weft__load(&lane->call.extra, WEFT__RELAXED))
		take_extra(lane);
	set_stop(lane);
}

bool
weft__lane_next_slow(struct weft__lane *lane, weft_fn *fn, void **arg)
{
	uint64_t done = weft__load(&lane->done, WEFT__RELAXED);
	struct weft__lane_piece *empty = lane->drain;

	if (lane->nodes.first && lane->nodes.first->before == done) {
		(void)weft__node_pop(&lane->nodes, fn, arg);
		set_stop(lane);
		return true;
	}
	if (done == lane->limit)
		return false;
	if (done == weft__load(&empty->end, WEFT__RELAXED)) {
		lane->drain = weft__get(empty->next);
		lane->drain_at = 0;
		weft__sys->release(empty);
	}
	set_stop(lane);
	return done != lane->stop && weft__lane_next(lane, fn, arg);
}

/* --- lists -------------------------------------------------------------- */

static void
list(struct weft__lane *lane)
{
	struct weft__lane_list *l =
		&lane->inbox->listed[lane->kind & WEFT__NODE_FIRST];

	lane->next_listed = NULL;
	if (l->count++ == 0)
		l->first = lane;
	else
		l->last->next_listed = lane;
	l->last = lane;
}

static struct weft__lane *
unlist_first(struct weft__lane_list *l)
{
	struct weft__lane *lane = l->first;

	l->first = lane->next_listed;
	l->count--;
	return lane;
}

void
weft__lane_heard(struct weft__node *node)
{
	struct weft__lane *lane = weft__node_lane(node);

	if (lane->slept != lane->inbox->sleeps) {
		lane->slept = lane->inbox->sleeps;
		lane->heat = 0;
	}
	lane->idle = 0;
	weft__store(&lane->call.rests, 0, WEFT__RELAXED);
	if (!lane->due)
		list(lane);
	lane->due = false;
}

/* Look on, unless the thread has called: then the lane is due. */
static void
promise(struct weft__lane *lane)
{
	uint32_t called = WEFT__LANE_QUIET;

	lane->due = !weft__cas(&lane->call.called, &called, WEFT__LANE_CALLED,
	                       WEFT__ACQUIRE); /* R */
}

struct weft__lane *
weft__lane_begin(struct weft__inbox *inbox, int which)
{
	struct weft__lane *lane = unlist_first(&inbox->listed[which]);

	if (lane->due)
		promise(lane);
	if (lane->due)
		weft__sys->yield(); /* to the thread that is on its way */
	else
		look(lane);
	return lane;
}

/* The loop has said QUIET: something may have been put in by a thread that still
 * thought it would look. */
static void
look_again(struct weft__lane *lane)
{
	lane->hot = false;
	if (!has_more(lane)) {
		weft__store(&lane->call.rests, 1, WEFT__RELAXED);
		return;
	}
	promise(lane);
	list(lane);
}

/* A barrier in all threads; without one, long enough for it to be as good. */
static void
barrier(struct weft__inbox *inbox)
{
	weft__a32 word = { 0 };
	uint64_t end_ns;

	if (weft__sys->barrier() == 0)
		return;
	inbox->barriers = WEFT__BARRIERS_NONE;
	end_ns = weft__sys->now() + GRACE_NS;
	while (weft__sys->now() < end_ns)
		(void)weft__sys->park(&word, 0, end_ns);
}

static bool
has_barriers(struct weft__inbox *inbox)
{
	if (weft__inbox_is_closed(inbox)) /* nothing is promised any more */
		return false;
	if (inbox->barriers == WEFT__BARRIERS_UNKNOWN)
		inbox->barriers = weft__sys->barrier() == 0
		                          ? WEFT__BARRIERS_WORK
		                          : WEFT__BARRIERS_NONE;
	return inbox->barriers == WEFT__BARRIERS_WORK;
}

static void
cool(struct weft__lane *lane)
{
	weft__store(&lane->call.called, WEFT__LANE_QUIET,
	            WEFT__RELEASE); /* B */
	barrier(lane->inbox);
	look_again(lane);
}

void
weft__lane_end(struct weft__lane *lane, uint32_t ran)
{
	lane->heat += ran;
	lane->idle = ran ? 0 : lane->idle + 1;
	if (lane->due || !is_empty(lane)) {
		list(lane);
	} else if (lane->hot) {
		if (lane->idle >= COOL_AFTER)
			cool(lane);
		else
			list(lane);
	} else if (lane->heat >= lane->inbox->hot_after
	           && has_barriers(lane->inbox)) {
		lane->hot = true;
		weft__store(&lane->call.called, WEFT__LANE_HOT, WEFT__RELAXED);
		list(lane);
	} else {
		(void)weft__exchange(&lane->call.called, WEFT__LANE_QUIET,
		                     WEFT__ACQ_REL); /* Q */
		look_again(lane);
	}
}

/* To look at `made` takes its line from the thread just when that needs it.  So a hot
 * lane that had something in this turn is taken to have more, and the next turn looks;
 * `surely` looks now. */
static bool
have(const struct weft__inbox *inbox, int which, bool surely)
{
	const struct weft__lane *lane = inbox->listed[which].first;

	for (uint32_t left = inbox->listed[which].count; left > 0; left--) {
		if ((!surely && lane->hot && lane->idle == 0) || has_more(lane))
			return true;
		lane = lane->next_listed;
	}
	return false;
}

bool
weft__lanes_look(const struct weft__inbox *inbox, int which)
{
	return have(inbox, which, false);
}

bool
weft__lanes_rest(struct weft__inbox *inbox)
{
	if (!weft__inbox_has_lanes(inbox))
		return true;
	if (have(inbox, 0, true) || have(inbox, 1, true)) {
		weft__sys->yield(); /* perhaps to those whose lanes are due */
		return false;
	}
	for (int i = 0; i < 2; i++) {
		struct weft__lane *lane = inbox->listed[i].first;

		for (uint32_t left = inbox->listed[i].count; left > 0; left--) {
			weft__store(&lane->call.called, WEFT__LANE_QUIET,
			            WEFT__RELEASE); /* B */
			lane = lane->next_listed;
		}
	}
	barrier(inbox);
	for (int i = 0; i < 2; i++)
		for (uint32_t left = inbox->listed[i].count; left > 0; left--)
			look_again(unlist_first(&inbox->listed[i]));
	return !weft__inbox_has_lanes(inbox);
}

uint64_t
weft__lanes_depth(struct weft__inbox *inbox)
{
	uint64_t depth = 0;

	for (struct weft__lane *lane = first_of(inbox); lane;
	     lane = weft__get(lane->next_of_inbox)) {
		uint64_t done = weft__load(&lane->done, WEFT__RELAXED);
		uint64_t made = weft__load(&lane->call.made, WEFT__RELAXED);

		depth += made > done ? made - done : 0;
	}
	return depth;
}

bool
weft__lanes_own(const struct weft__inbox *inbox)
{
	const struct weft__lane *lane = weft__thread_self()->lanes;

	while (lane && (lane->inbox_id != inbox->id || !has_more(lane)))
		lane = lane->next_of_thread;
	return lane;
}

void
weft__lanes_check(struct weft__inbox *inbox)
{
	for (int i = 0; i < 2; i++) {
		struct weft__lane *lane = inbox->listed[i].first;

		for (uint32_t left = inbox->listed[i].count; left > 0; left--) {
			lane->idle += lane->idle == 0 && !has_more(lane);
			lane = lane->next_listed;
		}
	}
}
