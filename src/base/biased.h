/* biased.h - a lock that its owner takes by a plain store, while no other thread wants it.
 *
 * For what one thread uses all the time and any other now and then.  Who the owner is the
 * caller says: one thread at a time, and the next one after the one before.
 *
 *   1. `own` is changed under the lock.  While it is 0, the owner takes the lock as all
 *      others do.
 *   2. While it is 1, the owner is inside exactly while `inside` is.  It sets that and looks
 *      at `own` then, with the compiler alone held back; another thread, which has the
 *      lock, makes `own` 0, has a barrier in all threads, and looks at `inside` then (B).
 *      Either the owner sees that, and goes out, or the other sees the owner, and waits
 *      (O: released by the owner as it goes out, acquired by the other).
 *   3. At first `own` is 0.  It becomes 1 when the owner has had the lock often enough and
 *      nobody else in between, where there are barriers.
 */
#ifndef WEFT_BASE_BIASED_H
#define WEFT_BASE_BIASED_H

#include "base/lock.h"

struct weft__biased {
	struct weft__lock lock;
	weft__a32 own;
	weft__a32 inside; /* written by the owner */
	uint32_t  alone;  /* under the lock: times that the owner has had it, since another */
	bool      never;  /* under the lock: there are no barriers */
};

/* By the owner, which has to take the lock; and by another thread. */
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

/* By the same thread, as the same. */
static inline void
weft__biased_give(struct weft__biased *biased, bool is_owner)
{
	if (is_owner && weft__load(&biased->inside, WEFT__RELAXED))
		weft__store(&biased->inside, 0, WEFT__RELEASE); /* O */
	else
		weft__lock_give(&biased->lock);
}

#endif
