/* ring.c - growing and freeing a ring of calls. */
#include "base/ring.h"

#define ROOM_FIRST 64u

int
weft__ring_grow(struct weft__ring *ring)
{
	size_t room = ring->room ? 2 * ring->room : ROOM_FIRST;
	struct weft__call *calls = weft__sys->alloc(room * sizeof(*calls));

	if (!calls)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < ring->count; i++)
		calls[i] = ring->calls[(ring->head + i) & (ring->room - 1)];
	weft__sys->release(ring->calls);
	ring->calls = calls;
	ring->head = 0;
	ring->room = room;
	return 0;
}

void
weft__ring_fini(struct weft__ring *ring)
{
	weft__sys->release(ring->calls);
	*ring = (struct weft__ring){ 0 };
}
