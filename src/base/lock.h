/* lock.h - a mutex of four bytes, on the sys table's parking.
 *
 * For short, cold sections that several threads enter; the paths that must not
 * wait use none.  Not recursive.
 */
#ifndef WEFT_BASE_LOCK_H
#define WEFT_BASE_LOCK_H

#include "base/sys.h"

struct weft__lock {
	weft__a32 word; /* 0 free, 1 held, 2 held and somebody may be parked */
};

void weft__lock_wait(struct weft__lock *lock);

/* A barrier in all threads; without one, time enough for it to be as good, and false. */
bool weft__barrier(void);

static inline void
weft__lock_take(struct weft__lock *lock)
{
	uint32_t word = 0;

	if (!weft__cas(&lock->word, &word, 1, WEFT__ACQUIRE))
		weft__lock_wait(lock);
}

static inline void
weft__lock_give(struct weft__lock *lock)
{
	/* Releases to the next taker, in take or in wait. */
	if (weft__exchange(&lock->word, 0, WEFT__RELEASE) == 2)
		weft__sys->unpark(&lock->word);
}

#endif
