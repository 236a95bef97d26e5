/* look.h - looking on for a moment before one sleeps.
 *
 * To be woken by another thread takes microseconds, tens of them where its CPU sleeps,
 * too; to look on takes CPU from others.  So a look that did not pay makes the next ones
 * rarer, twice as rare each time, and one that paid starts over.  Whoever waits now and
 * then hardly ever looks so, and nobody is asked to set anything.
 *
 * Needs: sys.h.  Thread: any.  The numbers are a matter of speed alone: of several who
 * write them, whoever comes last.
 */
#ifndef WEFT_BASE_LOOK_H
#define WEFT_BASE_LOOK_H

#include "base/sys.h"

struct weft__luck {
	weft__a32 skip;  /* waits left that begin without a look, */
	weft__a32 skips; /* and how many it will be after the next one that does not pay */
};

/* Is it time for a look again? */
static inline bool
weft__luck_try(struct weft__luck *luck)
{
	uint32_t skip = weft__count_get(&luck->skip);

	if (skip > 0)
		weft__count_set(&luck->skip, skip - 1);
	return skip == 0;
}

static inline void
weft__luck_good(struct weft__luck *luck)
{
	weft__count_set(&luck->skip, 0);
	weft__count_set(&luck->skips, 0);
}

static inline void
weft__luck_bad(struct weft__luck *luck, uint32_t skips_max)
{
	uint32_t skips = 2 * weft__count_get(&luck->skips) + 1;

	skips = skips < skips_max ? skips : skips_max;
	weft__count_set(&luck->skip, skips);
	weft__count_set(&luck->skips, skips);
}

static inline void
weft__luck_tell(struct weft__luck *luck, bool good, uint32_t skips_max)
{
	if (good)
		weft__luck_good(luck);
	else
		weft__luck_bad(luck, skips_max);
}

/* Looks between two at the clock.  Where each is a step of the hook, one shows all that
 * many do. */
#ifdef WEFT__HOOK_ATOMICS
#define WEFT__LOOKS 1
#else
#define WEFT__LOOKS 32 /* some 400 ns */
#endif

/* Look at a word for about so long, or until it is another than `value`: whether it is.
 * Orders nothing. */
bool weft__look_at(const weft__a32 *word, uint32_t value, uint64_t for_ns);

#endif
