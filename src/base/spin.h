/* spin.h - adaptive spinning before a thread sleeps.
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
#ifndef WEFT_BASE_SPIN_H
#define WEFT_BASE_SPIN_H

#include "base/sys.h"

struct weft__spin_backoff {
	weft__a32 skip;  /* waits left that begin without a spin */
	weft__a32 skips; /* value of `skip` after the previous spin that did not pay off */
};

/* Whether this wait begins with a spin. */
static inline bool
weft__spin_is_due(struct weft__spin_backoff *backoff)
{
	uint32_t skip = weft__count_get(&backoff->skip);

	if (skip > 0)
		weft__count_set(&backoff->skip, skip - 1);
	return skip == 0;
}

static inline void
weft__spin_paid(struct weft__spin_backoff *backoff)
{
	weft__count_set(&backoff->skip, 0);
	weft__count_set(&backoff->skips, 0);
}

static inline void
weft__spin_wasted(struct weft__spin_backoff *backoff, uint32_t skips_max)
{
	uint32_t skips = 2 * weft__count_get(&backoff->skips) + 1;

	skips = skips < skips_max ? skips : skips_max;
	weft__count_set(&backoff->skip, skips);
	weft__count_set(&backoff->skips, skips);
}

static inline void
weft__spin_update(struct weft__spin_backoff *backoff, bool good, uint32_t skips_max)
{
	if (good)
		weft__spin_paid(backoff);
	else
		weft__spin_wasted(backoff, skips_max);
}

/* Reads of the word between two reads of the clock.  In a build with atomic hooks each read is
 * a step of the schedule, and one read covers every case that many reads would. */
#ifdef WEFT__HOOK_ATOMICS
#define WEFT__SPINS 1
#else
#define WEFT__SPINS 32 /* about 400 ns */
#endif

/* Spin for about `for_ns` while `word` equals `value`.  Returns whether it changed.  Implies no
 * memory ordering. */
bool weft__spin_on(const weft__a32 *word, uint32_t value, uint64_t for_ns);

#endif
