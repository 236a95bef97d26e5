/* ring.h - a FIFO queue of calls that grows by doubling and keeps its memory. */
#ifndef WEFT_BASE_RING_H
#define WEFT_BASE_RING_H

#include "base/sys.h"

struct weft__call {
	weft_fn fn;
	void   *arg;
};

struct weft__ring {
	struct weft__call *calls;
	size_t             head;  /* index of the oldest call; grows freely, masked on use */
	size_t             count;
	size_t             room;  /* a power of two, or 0 */
};

/* 0, or WEFT_ENOMEM. */
int  weft__ring_grow(struct weft__ring *ring);
void weft__ring_fini(struct weft__ring *ring);

static inline int
weft__ring_push(struct weft__ring *ring, weft_fn fn, void *arg)
{
	if (ring->count == ring->room && weft__ring_grow(ring) < 0)
		return WEFT_ENOMEM;
	ring->calls[(ring->head + ring->count++) & (ring->room - 1)] =
		(struct weft__call){ fn, arg };
	return 0;
}

/* Remove the oldest call; the queue must not be empty. */
static inline struct weft__call
weft__ring_pop(struct weft__ring *ring)
{
	ring->count--;
	return ring->calls[ring->head++ & (ring->room - 1)];
}

#endif
