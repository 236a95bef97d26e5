/* producer.c - producer queues: posts whose memory the library provides.
 *
 * There is one producer queue (`producer`) for each thread and inbox.  It is a circular array
 * that only the thread, its producer, fills and only the loop empties, with one counter for each
 * side.  An entry is one call, a function and its argument.  The loop reads the queues that have
 * signaled it.  A producer signals by pushing the queue's one node into the inbox, and does not
 * signal again before the loop has set the queue to QUIET.
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
 *   9. At most `share` entries of a queue wait.  slots_left of the inbox plus the shares of all
 *      its queues is the limit, plus one for each queue that found nothing left.  The newest
 *      piece has room for the share; the loop frees older pieces when they are empty.
 *
 * This file is the producer's side; producers.c is the loop's.
 */
#include "loop/post/producer.h"

#define SIZE_FIRST 64u /* a queue's first share, */
#define PART_FIRST 64u /* or the limit divided by this, if that is less */
#define LINE       64u /* bytes of a cache line */

/* --- life --------------------------------------------------------------- */

void
weft__producer_unref(struct weft__producer *producer)
{
	struct weft__producer_piece *piece, *next;
	/* Every other access comes before the unref of its holder. */
	uint32_t before = weft__add(&producer->refs, UINT32_MAX, WEFT__ACQ_REL);

	weft__assert(before > 0); /* invariant 8 */
	if (before != 1)
		return;
	for (piece = producer->drain; piece; piece = next) {
		next = weft__get(piece->next);
		weft__sys->release(piece);
	}
	weft__sys->release(producer->memory);
}

/* Remove the queue at `link` from its thread. */
static void
disown(struct weft__producer **link)
{
	struct weft__producer *producer = *link;

	weft__assert(weft__count_get(&producer->owned)); /* invariant 7 */
	*link = producer->next_of_thread;
	weft__store(&producer->owned, 0, WEFT__RELEASE); /* O */
	weft__producer_unref(producer);
}

void
weft__producers_forget(struct weft__thread *thread, bool all)
{
	struct weft__producer **link = (struct weft__producer **)&thread->producers;

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
	weft__producers_forget(thread, true);
}

/* --- shares ------------------------------------------------------------- */

/* Reserve up to `want` of what the inbox has left; 0 if there is none. */
static uint32_t
producer_reserve(weft__a32 *left, uint32_t want)
{
	uint32_t before = weft__load(left, WEFT__RELAXED);
	uint32_t count;

	do
		count = want < before ? want : before;
	while (!weft__cas(left, &before, before - count, WEFT__RELAXED));
	return count;
}

/* Find the next queue, from `producer` on, that no thread owns, and own it. */
static struct weft__producer *
take_over(struct weft__producer *producer)
{
	for (; producer; producer = weft__get(producer->next_of_inbox)) {
		uint32_t owned = 0;

		if (weft__cas(&producer->owned, &owned, 1, WEFT__ACQUIRE)) /* O */
			return producer;
	}
	return NULL;
}

/* Take unused shares from queues that no thread owns. */
static void
reclaim(struct weft__inbox *inbox)
{
	struct weft__producer *producer = take_over(weft__producers_first(inbox));

	while (producer) {
		uint64_t waiting = weft__load(&producer->call.made, WEFT__RELAXED)
		                   - weft__load(&producer->done, WEFT__RELAXED);
		uint32_t share = weft__get(producer->share);

		if (waiting < share) {
			uint32_t lent = waiting == 0 && producer->lent;

			(void)weft__add(&inbox->slots_left, share - (uint32_t)waiting - lent,
			                WEFT__RELAXED);
			weft__put(producer->share, (uint32_t)waiting);
			producer->lent &= !lent;
		}
		weft__store(&producer->owned, 0, WEFT__RELEASE); /* O */
		producer = take_over(weft__get(producer->next_of_inbox));
	}
}

/* Make sure that the producer fills a piece with room for `share` entries.  False without
 * memory. */
static bool
stretch(struct weft__producer *producer, uint32_t share)
{
	struct weft__producer_piece *piece;
	uint32_t size = share;

	if (producer->fill && producer->fill->size >= share)
		return true;
	if (producer->fill && 2 * producer->fill->size > share)
		size = 2 * producer->fill->size; /* so that small steps are few */
	piece = weft__alloc_zero(sizeof(*piece) + size * sizeof(piece->calls[0]));
	if (!piece)
		return false;
	piece->size = size;
	weft__store(&piece->end, UINT64_MAX, WEFT__RELAXED);
	if (producer->fill) {
		weft__put(producer->fill->next, piece);
		weft__store(&producer->fill->end, weft__load(&producer->call.made, WEFT__RELAXED),
		            WEFT__RELAXED);
	}
	producer->fill = piece;
	producer->at = 0;
	return true;
}

/* Raise the queue's share by up to `want`.  False if nothing is left, or without memory.  A
 * queue with no share always gets one entry, so that no thread can block another forever. */
static bool
producer_grow(struct weft__inbox *inbox, struct weft__producer *producer, uint32_t want)
{
	weft__a32 *left = &inbox->slots_left;
	uint32_t more = producer_reserve(left, want), counted;
	bool lent;

	if (more == 0) {
		reclaim(inbox);
		more = producer_reserve(left, want);
	}
	counted = more;
	lent = producer->share == 0 && more == 0;
	more += lent;
	if (more == 0 || !stretch(producer, producer->share + more)) {
		(void)weft__add(left, counted, WEFT__RELAXED);
		return false;
	}
	producer->lent |= lent;
	producer->share += more;
	producer->full_at += more;
	return true;
}

/* --- a queue for this thread -------------------------------------------- */

/* Recheck whether there is room for one more entry, after it seemed full. */
static bool
has_room(struct weft__producer *producer)
{
	producer->full_at = weft__load(&producer->done, WEFT__ACQUIRE) /* A */
	                    + weft__get(producer->share);
	return weft__load(&producer->call.made, WEFT__RELAXED) != producer->full_at;
}

static uint32_t
first_share(const struct weft__inbox *inbox)
{
	uint32_t want = inbox->slots_max / PART_FIRST;

	return want < 1 ? 1 : want < SIZE_FIRST ? want : SIZE_FIRST;
}

static __attribute__((noinline)) bool
producer_make_room(struct weft__inbox *inbox, struct weft__producer *producer)
{
	uint32_t want = producer->share;

	if (want < first_share(inbox))
		want = first_share(inbox);
	return has_room(producer) || producer_grow(inbox, producer, want);
}

/* Adopt a queue that no thread owns and that will signal before the loop reads it.  So nodes
 * that this thread has pushed before it had a queue come first. */
static struct weft__producer *
adopt_producer(struct weft__inbox *inbox)
{
	struct weft__producer *producer = take_over(weft__producers_first(inbox));

	/* Reads QUIET, as the loop last stored it, and then whether the loop was done with the
	 * queue by then.  The second load needs no order: each side's store depends on what
	 * that side has loaded. */
	while (producer
	       && (weft__load(&producer->call.called, WEFT__ACQUIRE) /* Q, B */
	           || !weft__load(&producer->call.rests, WEFT__RELAXED))) {
		weft__store(&producer->owned, 0, WEFT__RELEASE); /* O */
		producer = take_over(weft__get(producer->next_of_inbox));
	}
	if (producer) {
		(void)weft__add(&producer->refs, 1, WEFT__RELAXED);
		(void)has_room(producer); /* refreshes full_at */
	}
	return producer;
}

static void
publish(struct weft__inbox *inbox, struct weft__producer *producer)
{
	uintptr_t first = weft__load(&inbox->producers, WEFT__RELAXED);

	do
		weft__put(producer->next_of_inbox, (struct weft__producer *)first);
	while (!weft__cas(&inbox->producers, &first, (uintptr_t)producer, WEFT__RELEASE));
}

static struct weft__producer *
make_producer(struct weft__inbox *inbox)
{
	char *memory = weft__alloc_zero(sizeof(struct weft__producer) + LINE - 1);
	struct weft__producer *producer =
		(struct weft__producer *)(void *)(memory + -(uintptr_t)memory % LINE);

	if (!memory)
		return NULL;
	producer->memory = memory;
	if (!producer_grow(inbox, producer, first_share(inbox))) {
		weft__sys->release(memory);
		return NULL;
	}
	weft__store(&producer->refs, 2, WEFT__RELAXED);
	weft__store(&producer->owned, 1, WEFT__RELAXED);
	weft__store(&producer->call.rests, 1, WEFT__RELAXED);
	producer->inbox = inbox;
	producer->inbox_id = inbox->id;
	producer->drain = producer->fill;
	producer->call.node.kind = WEFT__NODE_PRODUCER;
	publish(inbox, producer);
	return producer;
}

/* This thread's queue, or NULL. */
static struct weft__producer *
known_producer(struct weft__inbox *inbox, struct weft__thread *self)
{
	struct weft__producer *producer = self->producers;

	if (self->post_id == inbox->id)
		return self->post_producer;
	while (producer && producer->inbox_id != inbox->id)
		producer = producer->next_of_thread;
	return producer;
}

static __attribute__((noinline)) struct weft__producer *
find_producer(struct weft__inbox *inbox, struct weft__thread *self)
{
	struct weft__producer *producer = known_producer(inbox, self);

	if (!producer) {
		weft__producers_forget(self, false);
		producer = adopt_producer(inbox);
		if (!producer)
			producer = make_producer(inbox);
		if (!producer)
			return NULL;
		self->end = on_thread_end;
		producer->next_of_thread = self->producers;
		self->producers = producer;
	}
	self->post_id = inbox->id;
	self->post_producer = producer;
	return producer;
}

/* --- posting ------------------------------------------------------------ */

/* The queue was QUIET and is set to QUIET again; the last entry was read, or was withdrawn. */
static int
stay_quiet(struct weft__producer *producer, int rc)
{
	weft__store(&producer->call.called, WEFT__PRODUCER_QUIET, WEFT__RELEASE); /* R */
	return rc;
}

static int
producer_call(struct weft__inbox *inbox, struct weft__producer *producer)
{
	return weft__inbox_push(inbox, (struct weft__node *)(void *)&producer->call.node, false);
}

/* True if the loop has promised to read the queue, and need not be signaled. */
static bool
is_promised(struct weft__producer *producer)
{
	return weft__or(&producer->call.called, WEFT__PRODUCER_CALLED, WEFT__ACQ_REL); /* K */
}

/* Invariants 5 and 6: once the entry has been read, the producer must not touch the inbox. */
__attribute__((noinline)) int
weft__producer_signal(struct weft__inbox *inbox, struct weft__producer *producer)
{
	uint64_t number = weft__load(&producer->call.made, WEFT__RELAXED) - 1;
	int rc;

	if (is_promised(producer))
		return WEFT__AWAKE;
	if (weft__load(&producer->done, WEFT__RELAXED) > number)
		return stay_quiet(producer, WEFT__AWAKE);
	rc = producer_call(inbox, producer);
	if (rc != WEFT_ESHUTDOWN)
		return rc;
	weft__store(&producer->call.made, number, WEFT__RELAXED);
	producer->at = (producer->at ? producer->at : producer->fill->size) - 1;
	return stay_quiet(producer, rc);
}

int
weft__producer_post(struct weft__inbox *inbox, weft_fn fn, void *arg)
{
	struct weft__producer *producer = find_producer(inbox, weft__thread_self());

	if (!producer || (weft__producer_is_full(producer) && !producer_make_room(inbox, producer)))
		return WEFT_EAGAIN;
	return weft__producer_put(producer, fn, arg) ? WEFT__AWAKE
	                                             : weft__producer_signal(inbox, producer);
}

int
weft__producer_post_node(struct weft__inbox *inbox, struct weft__node *node)
{
	struct weft__producer *producer = known_producer(inbox, weft__thread_self());
	uintptr_t top;
	int rc;

	if (!producer)
		return weft__inbox_push(inbox, node, false);
	top = weft__load(&producer->call.extra, WEFT__RELAXED);
	weft__put(node->before, weft__load(&producer->call.made, WEFT__RELAXED));
	do
		weft__put(node->next, (struct weft__node *)top);
	while (!weft__cas(&producer->call.extra, &top, (uintptr_t)node, WEFT__RELEASE)); /* E */
	if (is_promised(producer))
		return WEFT__AWAKE;
	if (weft__load(&producer->call.extra, WEFT__RELAXED) != (uintptr_t)node)
		return stay_quiet(producer, WEFT__AWAKE);
	rc = producer_call(inbox, producer);
	if (rc != WEFT_ESHUTDOWN)
		return rc;
	weft__store(&producer->call.extra, top, WEFT__RELAXED);
	return stay_quiet(producer, rc);
}

/* Touches nothing of the inbox: the loop may have been freed. */
uint64_t
weft__producer_last_key(uint64_t inbox_id)
{
	const struct weft__producer *producer = weft__thread_self()->producers;

	while (producer && producer->inbox_id != inbox_id)
		producer = producer->next_of_thread;
	return producer ? weft__producer_key(producer,
	                                     weft__load(&producer->call.made, WEFT__RELAXED) - 1)
	                : 0;
}
