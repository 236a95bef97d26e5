/* lanes.c - the loop's side of the producer queues: reading them and putting them to rest.
 *
 * The loop lists a queue that has signaled.  An iteration takes the queues off the list, runs
 * their entries, and lists those again that have more.  A queue that is empty becomes HOT and
 * stays listed, or is set to QUIET and rests until it signals again.  Before the loop sleeps,
 * all queues are put to rest.
 *
 * The invariants, and the letters at the memory orders, are those of lane.c.
 */
#include "base/lock.h"
#include "loop/lane.h"

#define COOL_AFTER 61u /* checks in a row that found nothing */

/* --- calls -------------------------------------------------------------- */

static bool
is_empty(const struct weft__lane *lane)
{
	return weft__load(&lane->done, WEFT__RELAXED) == lane->limit && !lane->nodes.first;
}

/* The queue holds more than has been run.  Only checks; takes nothing. */
static bool
has_more(const struct weft__lane *lane)
{
	return weft__load(&lane->call.made, WEFT__RELAXED) != weft__load(&lane->done, WEFT__RELAXED)
	       || lane->nodes.first || weft__load(&lane->call.extra, WEFT__RELAXED);
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
	struct weft__node *node = (struct weft__node *)weft__exchange(&lane->call.extra, 0,
	                                                              WEFT__ACQUIRE); /* E */

	node = weft__node_turn(node);
	while (node) {
		struct weft__node *next = node->next;

		weft__node_append(&lane->nodes, node);
		node = next;
	}
}

/* `made` must be read before `extra`: invariant 4. */
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
	struct weft__lane_list *l = &lane->inbox->listed[lane->kind & WEFT__NODE_FIRST];

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

/* --- one queue ---------------------------------------------------------- */

/* Promise to read the queue, unless its producer is already signaling: then the queue is
 * due. */
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
		weft__sys->yield(); /* to the producer that is about to push the node */
	else
		look(lane);
	return lane;
}

/* The loop has just set QUIET.  A producer that still relied on the promise may have put an
 * entry in. */
static void
look_again(struct weft__lane *lane)
{
	lane->hot = false;
	if (!has_more(lane)) {
		lane->due = false; /* invariant 5: the producer withdrew its entry */
		weft__store(&lane->call.rests, 1, WEFT__RELAXED);
		return;
	}
	promise(lane);
	list(lane);
}

static void
barrier(struct weft__inbox *inbox)
{
	if (!weft__barrier())
		inbox->barriers = WEFT__BARRIERS_NONE;
}

static bool
has_barriers(struct weft__inbox *inbox)
{
	if (weft__inbox_is_closed(inbox)) /* nothing is promised after that */
		return false;
	if (inbox->barriers == WEFT__BARRIERS_UNKNOWN)
		inbox->barriers = weft__sys->barrier() == 0 ? WEFT__BARRIERS_WORK
		                                            : WEFT__BARRIERS_NONE;
	return inbox->barriers == WEFT__BARRIERS_WORK;
}

static void
cool(struct weft__lane *lane)
{
	weft__store(&lane->call.called, WEFT__LANE_QUIET, WEFT__RELEASE); /* B */
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
	} else if (lane->heat >= lane->inbox->hot_after && has_barriers(lane->inbox)) {
		lane->hot = true;
		weft__store(&lane->call.called, WEFT__LANE_HOT, WEFT__RELAXED);
		list(lane);
	} else {
		(void)weft__exchange(&lane->call.called, WEFT__LANE_QUIET, WEFT__ACQ_REL); /* Q */
		look_again(lane);
	}
}

/* --- all queues --------------------------------------------------------- */

/* Reading `made` takes its cache line from the producer just when the producer needs it.  So a
 * hot queue that had entries in this iteration is assumed to hold more, and the next iteration
 * checks; `surely` checks now. */
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
		weft__sys->yield(); /* perhaps to producers whose queues are due */
		return false;
	}
	for (int i = 0; i < 2; i++) {
		struct weft__lane *lane = inbox->listed[i].first;

		for (uint32_t left = inbox->listed[i].count; left > 0; left--) {
			weft__store(&lane->call.called, WEFT__LANE_QUIET, WEFT__RELEASE); /* B */
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

	for (struct weft__lane *lane = weft__lanes_first(inbox); lane;
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

void
weft__lanes_give_up(struct weft__inbox *inbox)
{
	/* Needs no order: a thread that made a queue has posted through it, or the thread that
	 * frees the loop has made sure that it posts no more. */
	struct weft__lane *lane = (struct weft__lane *)weft__load(&inbox->lanes, WEFT__RELAXED);

	while (lane) {
		struct weft__lane *next = lane->next_of_inbox;

		weft__store(&lane->gone, 1, WEFT__RELAXED);
		weft__lane_unref(lane);
		lane = next;
	}
	/* Other threads notice `gone` when they next search for a queue, or when they end. */
	weft__lanes_forget(weft__thread_self(), false);
}
