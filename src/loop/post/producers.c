/* producers.c - the loop's side of the producer queues: reading them and putting them to rest.
 *
 * The loop lists a queue that has signaled.  An iteration takes the queues off the list, runs
 * their entries, and lists those again that have more.  A queue that is empty becomes HOT and
 * stays listed, or is set to QUIET and rests until it signals again.  Before the loop sleeps,
 * all queues are put to rest.
 *
 * The invariants, and the letters at the memory orders, are those of producer.c.
 */
#include "base/lock.h"
#include "loop/post/producer.h"

#define COOL_AFTER 61u /* checks in a row that found nothing */

/* --- calls -------------------------------------------------------------- */

static bool
is_empty(const struct weft__producer *producer)
{
	return weft__load(&producer->done, WEFT__RELAXED) == producer->limit
	       && !producer->nodes.first;
}

/* The queue holds more than has been run.  Only checks; takes nothing. */
static bool
has_more(const struct weft__producer *producer)
{
	return weft__load(&producer->call.made, WEFT__RELAXED)
	               != weft__load(&producer->done, WEFT__RELAXED)
	       || producer->nodes.first || weft__load(&producer->call.extra, WEFT__RELAXED);
}

static void
set_stop(struct weft__producer *producer)
{
	uint64_t end = weft__load(&producer->drain->end, WEFT__RELAXED);

	producer->stop = producer->limit < end ? producer->limit : end;
	if (producer->nodes.first && producer->nodes.first->before < producer->stop)
		producer->stop = producer->nodes.first->before;
}

static void
take_extra(struct weft__producer *producer)
{
	struct weft__node *node = (struct weft__node *)weft__exchange(&producer->call.extra, 0,
	                                                              WEFT__ACQUIRE); /* E */

	node = weft__node_turn(node);
	while (node) {
		struct weft__node *next = node->next;

		weft__node_append(&producer->nodes, node);
		node = next;
	}
}

/* `made` must be read before `extra`: invariant 4. */
static void
producers_check(struct weft__producer *producer)
{
	producer->limit = weft__load(&producer->call.made, WEFT__ACQUIRE); /* M */
	weft__assert(producer->limit >= weft__count_get(&producer->done)); /* invariant 1 */
	if (weft__load(&producer->call.extra, WEFT__RELAXED))
		take_extra(producer);
	set_stop(producer);
}

bool
weft__producer_next_slow(struct weft__producer *producer, weft_fn *fn, void **arg)
{
	uint64_t done = weft__load(&producer->done, WEFT__RELAXED);
	struct weft__producer_piece *empty = producer->drain;

	if (producer->nodes.first && producer->nodes.first->before == done) {
		struct weft__node_call call = { 0 };

		(void)weft__node_pop(&producer->nodes, &call);
		*fn = call.fn;
		*arg = call.arg;
		set_stop(producer);
		return true;
	}
	if (done == producer->limit)
		return false;
	if (done == weft__load(&empty->end, WEFT__RELAXED)) {
		producer->drain = weft__get(empty->next);
		producer->drain_at = 0;
		weft__sys->release(empty);
	}
	set_stop(producer);
	return done != producer->stop && weft__producer_next(producer, fn, arg);
}

/* --- lists -------------------------------------------------------------- */

static void
producers_list(struct weft__producer *producer)
{
	struct weft__producer_list *l = &producer->inbox->listed;

	producer->next_listed = NULL;
	if (l->count++ == 0)
		l->first = producer;
	else
		l->last->next_listed = producer;
	l->last = producer;
}

static struct weft__producer *
unlist_first(struct weft__producer_list *l)
{
	struct weft__producer *producer = l->first;

	weft__assert(l->count > 0);
	l->first = producer->next_listed;
	l->count--;
	return producer;
}

void
weft__producer_heard(struct weft__node *node)
{
	struct weft__producer *producer = weft__node_producer(node);

	if (producer->slept != producer->inbox->sleeps) {
		producer->slept = producer->inbox->sleeps;
		producer->heat = 0;
	}
	producer->idle = 0;
	weft__store(&producer->call.rests, 0, WEFT__RELAXED);
	if (!producer->due)
		producers_list(producer);
	producer->due = false;
}

/* --- one queue ---------------------------------------------------------- */

/* Promise to read the queue, unless its producer is already signaling: then the queue is
 * due. */
static void
promise(struct weft__producer *producer)
{
	uint32_t called = WEFT__PRODUCER_QUIET;

	producer->due = !weft__cas(&producer->call.called, &called, WEFT__PRODUCER_CALLED,
	                           WEFT__ACQUIRE); /* R */
}

struct weft__producer *
weft__producer_begin(struct weft__inbox *inbox)
{
	struct weft__producer *producer = unlist_first(&inbox->listed);

	if (producer->due)
		promise(producer);
	if (producer->due)
		weft__sys->yield(); /* to the producer that is about to push the node */
	else
		producers_check(producer);
	return producer;
}

/* The loop has just set QUIET.  A producer that still relied on the promise may have put an
 * entry in. */
static void
producer_recheck(struct weft__producer *producer)
{
	producer->hot = false;
	if (!has_more(producer)) {
		producer->due = false; /* invariant 5: the producer withdrew its entry */
		weft__store(&producer->call.rests, 1, WEFT__RELAXED);
		return;
	}
	promise(producer);
	producers_list(producer);
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
cool(struct weft__producer *producer)
{
	weft__store(&producer->call.called, WEFT__PRODUCER_QUIET, WEFT__RELEASE); /* B */
	barrier(producer->inbox);
	producer_recheck(producer);
}

void
weft__producer_end(struct weft__producer *producer, uint32_t ran)
{
	producer->heat += ran;
	producer->idle = ran ? 0 : producer->idle + 1;
	if (producer->due || !is_empty(producer)) {
		producers_list(producer);
	} else if (producer->hot) {
		if (producer->idle >= COOL_AFTER)
			cool(producer);
		else
			producers_list(producer);
	} else if (producer->heat >= producer->inbox->hot_after && has_barriers(producer->inbox)) {
		producer->hot = true;
		weft__store(&producer->call.called, WEFT__PRODUCER_HOT, WEFT__RELAXED);
		producers_list(producer);
	} else {
		(void)weft__exchange(&producer->call.called, WEFT__PRODUCER_QUIET,
		                     WEFT__ACQ_REL); /* Q */
		producer_recheck(producer);
	}
}

/* --- all queues --------------------------------------------------------- */

/* Reading `made` takes its cache line from the producer just when the producer needs it.  So a
 * hot queue that had entries in this iteration is assumed to hold more, and the next iteration
 * checks; `surely` checks now. */
static bool
have(const struct weft__inbox *inbox, bool surely)
{
	const struct weft__producer *producer = inbox->listed.first;

	for (uint32_t left = inbox->listed.count; left > 0; left--) {
		if ((!surely && producer->hot && producer->idle == 0) || has_more(producer))
			return true;
		producer = producer->next_listed;
	}
	return false;
}

bool
weft__producers_peek(const struct weft__inbox *inbox)
{
	return have(inbox, false);
}

bool
weft__producers_rest(struct weft__inbox *inbox)
{
	struct weft__producer *producer = inbox->listed.first;

	if (!weft__inbox_has_producers(inbox))
		return true;
	if (have(inbox, true)) {
		weft__sys->yield(); /* perhaps to producers whose queues are due */
		return false;
	}
	for (uint32_t left = inbox->listed.count; left > 0; left--) {
		weft__store(&producer->call.called, WEFT__PRODUCER_QUIET, WEFT__RELEASE); /* B */
		producer = producer->next_listed;
	}
	barrier(inbox);
	for (uint32_t left = inbox->listed.count; left > 0; left--)
		producer_recheck(unlist_first(&inbox->listed));
	return !weft__inbox_has_producers(inbox);
}

uint64_t
weft__producers_depth(struct weft__inbox *inbox)
{
	uint64_t depth = 0;

	for (struct weft__producer *producer = weft__producers_first(inbox); producer;
	     producer = weft__get(producer->next_of_inbox)) {
		uint64_t done = weft__load(&producer->done, WEFT__RELAXED);
		uint64_t made = weft__load(&producer->call.made, WEFT__RELAXED);

		depth += made > done ? made - done : 0;
	}
	return depth;
}

bool
weft__producers_own(const struct weft__inbox *inbox)
{
	const struct weft__producer *producer = weft__thread_self()->producers;

	while (producer && (producer->inbox_id != inbox->id || !has_more(producer)))
		producer = producer->next_of_thread;
	return producer;
}

void
weft__producers_check(struct weft__inbox *inbox)
{
	struct weft__producer *producer = inbox->listed.first;

	for (uint32_t left = inbox->listed.count; left > 0; left--) {
		producer->idle += producer->idle == 0 && !has_more(producer);
		producer = producer->next_listed;
	}
}

void
weft__producers_give_up(struct weft__inbox *inbox)
{
	/* Needs no order: a thread that made a queue has posted through it, or the thread that
	 * frees the loop has made sure that it posts no more. */
	struct weft__producer *producer = (struct weft__producer *)weft__load(&inbox->producers,
	                                                                      WEFT__RELAXED);

	while (producer) {
		struct weft__producer *next = producer->next_of_inbox;

		weft__store(&producer->gone, 1, WEFT__RELAXED);
		weft__producer_unref(producer);
		producer = next;
	}
	/* Other threads notice `gone` when they next search for a queue, or when they end. */
	weft__producers_forget(weft__thread_self(), false);
}
