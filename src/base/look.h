/* look.h - adaptive spinning before a thread sleeps.
 *
 * A wakeup by another thread takes microseconds, or tens of them if the sleeper's CPU is idle.
 * Spinning avoids that delay but takes CPU time from other threads.  So each spin that does not
 * pay off doubles the number of waits that skip spinning, and a spin that pays off resets it.
 * A thread that waits only occasionally therefore almost never spins.  There is nothing to
 * tune.
 *
 * Needs: sys.h.  Thread: any.  The counters affect speed only: if several threads write them,
 * the last write wins.
 */
#ifndef WEFT_BASE_LOOK_H
#define WEFT_BASE_LOOK_H

#include "base/sys.h"

struct weft__luck {
	weft__a32 skip;  /* waits left that begin without a spin */
	weft__a32 skips; /* value of `skip` after the previous spin that did not pay off */
};

/* Whether this wait begins with a spin. */
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

/* Reads of the word between two reads of the clock.  In a build with atomic hooks each read is
 * a step of the schedule, and one read covers every case that many reads would. */
#ifdef WEFT__HOOK_ATOMICS
#define WEFT__LOOKS 1
#else
#define WEFT__LOOKS 32 /* about 400 ns */
#endif

/* Spin for about `for_ns` while `word` equals `value`.  Returns whether it changed.  Implies no
 * memory ordering. */
bool weft__look_at(const weft__a32 *word, uint32_t value, uint64_t for_ns);

#endif
