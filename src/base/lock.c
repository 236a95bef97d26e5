/* lock.c - the slow way into a lock.
 *
 * A waiter marks the lock as contended before it parks, so whoever gives it back
 * unparks one; that one marks it contended again, not knowing whether it was the
 * last.  At worst that is one unpark too many.
 */
#include "base/lock.h"

void
weft__lock_wait(struct weft__lock *lock)
{
	while (weft__exchange(&lock->word, 2, WEFT__ACQUIRE) != 0)
		(void)weft__sys->park(&lock->word, 2, WEFT_NEVER);
}
