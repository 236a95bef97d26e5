/* part.c - calls the parts of a loop. */
#include "loop/core/loop.h"

struct weft__part *
weft__loop_attach(weft_loop *loop, enum weft__part_slot slot, struct weft__part *part)
{
	uintptr_t other = 0;

	if (weft__cas_else(&loop->parts[slot], &other, (uintptr_t)part, WEFT__RELEASE,
	                   WEFT__ACQUIRE)) /* P */
		return part;
	return other == WEFT__PART_CLOSED ? NULL : (struct weft__part *)other;
}

void
weft__loop_detach(weft_loop *loop, enum weft__part_slot slot)
{
	weft__assert(weft__loop_part(loop, slot)); /* invariant 1 */
	weft__store(&loop->parts[slot], 0, WEFT__RELAXED);
}

void
weft__loop_close_slot(weft_loop *loop, enum weft__part_slot slot)
{
	uintptr_t none = 0;

	(void)weft__cas(&loop->parts[slot], &none, WEFT__PART_CLOSED, WEFT__RELAXED);
}

bool
weft__parts_have(weft_loop *loop)
{
	for (int slot = 0; slot < WEFT__PARTS; slot++) {
		const struct weft__part *part = weft__loop_part(loop, slot);

		if (part && part->ops->has && part->ops->has(loop))
			return true;
	}
	return false;
}

void
weft__parts_stop(weft_loop *loop)
{
	for (int slot = 0; slot < WEFT__PARTS; slot++) {
		const struct weft__part *part = weft__loop_part(loop, slot);

		if (part && part->ops->stop)
			part->ops->stop(loop);
	}
}

bool
weft__parts_end(weft_loop *loop)
{
	bool more = false;

	for (int slot = 0; slot < WEFT__PARTS; slot++) {
		const struct weft__part *part = weft__loop_part(loop, slot);

		if (part && part->ops->end)
			more |= part->ops->end(loop);
	}
	return more;
}

void
weft__parts_ended(weft_loop *loop)
{
	for (int slot = 0; slot < WEFT__PARTS; slot++) {
		const struct weft__part *part = weft__loop_part(loop, slot);

		if (part && part->ops->ended)
			part->ops->ended(loop);
	}
}

void
weft__parts_free(weft_loop *loop, bool alone)
{
	for (int slot = 0; slot < WEFT__PARTS; slot++) {
		const struct weft__part *part = weft__loop_part(loop, slot);

		if (part && part->ops->free)
			part->ops->free(loop, alone);
	}
}
