/* biased.h - a lock that its owner acquires with a plain store while no other thread wants it.
 *
 * For data that one thread uses all the time and other threads rarely.  The caller passes
 * whether it is the owner.  There is one owner thread at a time; a new owner must be ordered
 * after the previous one.
 *
 *   1. `own` changes only under the lock.  While it is 0, the owner takes the lock like any
 *      other thread.
 *   2. While `own` is 1, the owner holds the biased lock exactly while `inside` is 1.  The
 *      owner sets `inside` and then reads `own`, with only a compiler fence between.  Another
 *      thread, which holds the lock, clears `own`, issues a barrier in all threads, and then
 *      reads `inside` (B).  So either the owner sees that `own` is 0 and backs out, or the
 *      other thread sees `inside` and waits until the owner clears it (O: released by the
 *      owner, acquired by the other thread).
 *   3. `own` is 0 at first.  It becomes 1 once the owner has taken the lock often enough with
 *      no other thread in between, if the system has barriers.
 */
#ifndef WEFT_BASE_BIASED_H
#define WEFT_BASE_BIASED_H

#include "base/lock.h"

struct weft__biased {
	struct weft__lock lock;
	weft__a32 own;
	weft__a32 inside; /* written by the owner */
	uint32_t  alone;  /* under the lock: times the owner took it since another thread did */
	bool      never;  /* under the lock: the system has no barriers */
};

/* The slow path of the owner; and the path of other threads. */
void weft__biased_take_own(struct weft__biased *biased);
void weft__biased_take_other(struct weft__biased *biased);

static inline void
weft__biased_take(struct weft__biased *biased, bool is_owner)
{
	if (!is_owner) {
		weft__biased_take_other(biased);
		return;
	}
	weft__store(&biased->inside, 1, WEFT__RELAXED); /* B */
	weft__compiler_fence();
	if (__builtin_expect(!weft__load(&biased->own, WEFT__RELAXED), 0)) /* B */
		weft__biased_take_own(biased);
}

/* Called by the thread that took it, with the same `is_owner`. */
static inline void
weft__biased_give(struct weft__biased *biased, bool is_owner)
{
	if (is_owner && weft__load(&biased->inside, WEFT__RELAXED))
		weft__store(&biased->inside, 0, WEFT__RELEASE); /* O */
	else
		weft__lock_give(&biased->lock);
}

#endif
