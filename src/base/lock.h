/* lock.h - a four-byte mutex built on the sys table's park and unpark.
 *
 * For short, rarely used sections that several threads enter.  Paths that must not wait use no
 * lock.  Not recursive.
 */
#ifndef WEFT_BASE_LOCK_H
#define WEFT_BASE_LOCK_H

#include "base/build.h"
#include "base/sys.h"

struct weft__lock {
	weft__a32 word; /* 0 free, 1 held, 2 held and a thread may be parked */
};

WEFT__SHARED void weft__lock_wait(struct weft__lock *lock);

/* Call `fn` in each forked child, to reset locks and data that other threads of the parent were
 * using.  `registered` is 0 at first.  To be called before the first use of such a lock, and not
 * while the lock is held: a registration waits for a fork that is in progress, and in the child of
 * that fork the lock would be held, with no handler to reset it.  Takes no lock of the library.
 * Threads that register at the same time may each register `fn`, so a second call of `fn` must do
 * no harm.  0 or -errno. */
WEFT__SHARED int weft__fork_handler(weft__a32 *registered, void (*fn)(void));

/* A full memory barrier in all threads of the process.  If the system has none, waits until
 * stores can be assumed visible, and returns false. */
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
	/* Releases to the next thread that acquires it in take or wait. */
	if (weft__exchange(&lock->word, 0, WEFT__RELEASE) == 2)
		weft__sys->unpark(&lock->word);
}

#endif
