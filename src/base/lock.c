/* lock.c - the slow way into a lock, and barriers.
 *
 * A waiter marks the lock as contended before it parks, so whoever gives it back
 * unparks one; that one marks it contended again, not knowing whether it was the
 * last.  At worst that is one unpark too many.
 */
#include "base/lock.h"

#define GRACE_NS WEFT_MS /* by then every store is seen, if all else fails */

void
weft__lock_wait(struct weft__lock *lock)
{
	while (weft__exchange(&lock->word, 2, WEFT__ACQUIRE) != 0)
		(void)weft__sys->park(&lock->word, 2, WEFT_NEVER);
}

bool
weft__barrier(void)
{
	weft__a32 word = { 0 };
	uint64_t end_ns;

	if (weft__sys->barrier() == 0)
		return true;
	end_ns = weft__sys->now() + GRACE_NS;
	while (weft__sys->now() < end_ns)
		(void)weft__sys->park(&word, 0, end_ns);
	return false;
}
