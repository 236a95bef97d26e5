/* slots.c - memory for posted calls, cached by the threads that post.
 *
 * For each thread, inbox and kind of post there is a ring of slots, which only that
 * thread fills and only that loop empties, in the same order.  Two counters say how
 * much of it is in use, each written by one side; the thread looks at the loop's only
 * when the ring seems full, so that a post costs no shared memory but the slot itself
 * and the push.  A ring that is really full is left for one twice as large, until the
 * inbox's limit is reached.
 *
 *   1. made counts the posts, by the thread; done those that the loop has read, by the
 *      loop (C, release).  Slots from done to made, modulo size, are the loop's.  The
 *      thread uses a slot again only after it has seen it done (A, acquire), so it
 *      overwrites nothing still to be read.
 *   2. made and done_seen belong to the thread that has `owned` set.  One that ends,
 *      or goes on to a larger ring, clears it (O, release), and another may take the
 *      ring over (acquire).
 *   3. A ring is held by its inbox and by its thread; the last one to let go frees it.
 *      So a thread may end before or after the loop.
 *   4. slots_left of the inbox plus the slots of all its rings is the limit, for
 *      each of the two kinds of post.
 */
#include "loop/slots.h"

#define SIZE_FIRST 64u /* of a thread's first ring, */
#define PART_FIRST 64u /* or this part of the limit, if that is less */

/* The part of a node that a post needs; state and kind are written once. */
struct slot {
	weft_fn fn;
	void *arg;
	struct weft__node *next;
	uint32_t index; /* in its ring */
	uint32_t kind;
};
WEFT_STATIC_ASSERT(sizeof(struct slot) == offsetof(struct weft__node, spare),
                   "a slot is the beginning of a node");

struct ring {
	weft__a32 refs;
	weft__a32 owned; /* by a thread */
	weft__a32 gone;  /* the inbox is */
	uint32_t kind;
	uint64_t inbox_id;
	struct ring *next_of_inbox;  /* written before it is published */
	struct ring *next_of_thread; /* the thread's, as the next four */
	uint32_t size;
	uint32_t at; /* made modulo size */
	uint64_t made;
	uint64_t done_seen;
	char pad_before[64]; /* what follows is written by the loop */
	weft__a64 done;
	char pad_after[64];
	struct slot slots[];
};

/* --- life --------------------------------------------------------------- */

static void
release_ring(struct ring *ring)
{
	/* Every other access was before its holder let go. */
	if (weft__add(&ring->refs, UINT32_MAX, WEFT__ACQ_REL) == 1)
		weft__sys->release(ring);
}

/* Take the ring at `link` from its thread. */
static void
disown(struct ring **link)
{
	struct ring *ring = *link;

	*link = ring->next_of_thread;
	weft__store(&ring->owned, 0, WEFT__RELEASE); /* O */
	release_ring(ring);
}

/* Forget the rings of `thread`, or only those whose inbox is gone. */
static void
forget_rings(struct weft__thread *thread, bool all)
{
	struct ring **link = (struct ring **)&thread->rings;

	thread->post_id = 0;
	while (*link)
		if (all || weft__load(&(*link)->gone, WEFT__RELAXED))
			disown(link);
		else
			link = &(*link)->next_of_thread;
}

void
weft__slots_give_up(struct weft__inbox *inbox)
{
	/* No order: who made a ring has posted, or whoever frees the loop made
	 * sure that it posts no more. */
	struct ring *ring = (struct ring *)weft__load(&inbox->rings,
	                                              WEFT__RELAXED);

	while (ring) {
		struct ring *next = ring->next_of_inbox;

		weft__store(&ring->gone, 1, WEFT__RELAXED);
		release_ring(ring);
		ring = next;
	}
	/* Other threads find out when they next look for a ring, or end. */
	forget_rings(weft__thread_self(), false);
}

static void
on_thread_end(struct weft__thread *thread)
{
	forget_rings(thread, true);
}

/* --- a ring for this thread --------------------------------------------- */

/* Is there a free slot?  Looks at the loop's counter only if it must. */
static inline bool
has_room(struct ring *ring)
{
	uint64_t made = weft__get(ring->made);

	if (made - weft__get(ring->done_seen) < ring->size)
		return true;
	weft__put(ring->done_seen,
	          weft__load(&ring->done, WEFT__ACQUIRE)); /* A */
	return made - ring->done_seen < ring->size;
}

/* One with room that no thread owns. */
static struct ring *
adopt_ring(struct weft__inbox *inbox, uint32_t kind)
{
	uintptr_t at = weft__load(&inbox->rings, WEFT__ACQUIRE);

	for (struct ring *r = (struct ring *)at; r;
	     r = weft__get(r->next_of_inbox)) {
		uint32_t owned = 0;

		if (weft__get(r->kind) != kind
		    || !weft__cas(&r->owned, &owned, 1, WEFT__ACQUIRE)) /* O */
			continue;
		if (has_room(r)) {
			(void)weft__add(&r->refs, 1, WEFT__RELAXED);
			return r;
		}
		weft__store(&r->owned, 0, WEFT__RELEASE);
	}
	return NULL;
}

/* Up to `want` of the slots that the inbox has left; 0 if there is none. */
static uint32_t
reserve(weft__a32 *slots_left, uint32_t want)
{
	uint32_t left = weft__load(slots_left, WEFT__RELAXED);
	uint32_t count;

	do
		count = want < left ? want : left;
	while (!weft__cas(slots_left, &left, left - count, WEFT__RELAXED));
	return count;
}

static void
publish(struct weft__inbox *inbox, struct ring *ring)
{
	uintptr_t first = weft__load(&inbox->rings, WEFT__RELAXED);

	do
		weft__put(ring->next_of_inbox, (struct ring *)first);
	while (!weft__cas(&inbox->rings, &first, (uintptr_t)ring,
	                  WEFT__RELEASE));
}

static struct ring *
make_ring(struct weft__inbox *inbox, uint32_t kind, uint32_t want)
{
	weft__a32 *left = &inbox->slots_left[kind & WEFT__NODE_FIRST];
	uint32_t size = reserve(left, want);
	struct ring *ring = NULL;

	if (size > 0)
		ring = weft__alloc_zero(sizeof(*ring)
		                        + size * sizeof(struct slot));
	if (!ring) {
		(void)weft__add(left, size, WEFT__RELAXED);
		return NULL;
	}
	weft__store(&ring->refs, 2, WEFT__RELAXED);
	weft__store(&ring->owned, 1, WEFT__RELAXED);
	ring->inbox_id = inbox->id;
	weft__put(ring->kind, kind);
	ring->size = size;
	for (uint32_t i = 0; i < size; i++) {
		weft__put(ring->slots[i].index, i);
		weft__put(ring->slots[i].kind, kind | WEFT__NODE_SLOT);
	}
	publish(inbox, ring);
	return ring;
}

/* A ring of this thread's with room, or NULL; it comes to the front. */
static __attribute__((noinline)) struct ring *
find_ring(struct weft__inbox *inbox, struct weft__thread *self, uint32_t kind)
{
	struct ring **link = (struct ring **)&self->rings;
	struct ring *ring;
	uint32_t want = inbox->slots_max / PART_FIRST;

	want = want < 1 ? 1 : want < SIZE_FIRST ? want : SIZE_FIRST;
	self->post_id = 0;
	while (*link
	       && ((*link)->inbox_id != inbox->id || (*link)->kind != kind))
		link = &(*link)->next_of_thread;
	ring = *link;
	if (ring && !has_room(ring)) {
		want = 2 * ring->size;
		disown(link);
		ring = NULL;
	}
	if (!ring) {
		forget_rings(self, false);
		ring = make_ring(inbox, kind, want);
		if (!ring)
			ring = adopt_ring(inbox, kind);
		if (!ring)
			return NULL;
		self->end = on_thread_end;
		ring->next_of_thread = self->rings;
		self->rings = ring;
	}
	if (kind == 0) {
		self->post_id = inbox->id;
		self->post_ring = ring;
	}
	return ring;
}

/* --- slots -------------------------------------------------------------- */

struct weft__node *
weft__slot_get(struct weft__inbox *inbox, uint32_t kind)
{
	struct weft__thread *self = weft__thread_self();
	struct ring *ring = self->post_ring;
	struct slot *slot;

	if (self->post_id != inbox->id || kind != 0 || !has_room(ring)) {
		ring = find_ring(inbox, self, kind);
		if (!ring)
			return NULL;
	}
	slot = &ring->slots[weft__get(ring->at)];
	weft__put(ring->at, ring->at + 1 == ring->size ? 0 : ring->at + 1);
	weft__put(ring->made, ring->made + 1);
	return (struct weft__node *)(void *)slot;
}

static struct ring *
ring_of(struct weft__node *node)
{
	struct slot *slot = (struct slot *)(void *)node;

	return (struct ring *)(void *)((char *)(slot - weft__get(slot->index))
	                               - offsetof(struct ring, slots));
}

void
weft__slot_put_back(struct weft__node *node)
{
	struct ring *ring = ring_of(node);

	weft__put(ring->at, (ring->at ? ring->at : ring->size) - 1);
	weft__put(ring->made, ring->made - 1);
}

void
weft__slot_done(struct weft__node *node)
{
	struct ring *ring = ring_of(node);
	uint64_t done = weft__load(&ring->done, WEFT__RELAXED);

	weft__store(&ring->done, done + 1, WEFT__RELEASE); /* C */
}
