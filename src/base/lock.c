/* lock.c - the slow path of a lock, fork handlers, and process-wide barriers.
 *
 * A waiter marks the lock as contended before it parks, so the thread that releases the lock
 * unparks one waiter.  That waiter marks the lock contended again, because it cannot know
 * whether it was the last.  The worst case is one unneeded unpark.
 */
#include "base/lock.h"

#define GRACE_NS WEFT_MS /* fallback without barriers: stores are assumed to be visible by then */

void
weft__lock_wait(struct weft__lock *lock)
{
	while (weft__exchange(&lock->word, 2, WEFT__ACQUIRE) != 0)
		(void)weft__sys->park(&lock->word, 2, WEFT_NEVER);
}

int
weft__fork_handler(weft__a32 *registered, void (*fn)(void))
{
	int rc;

	if (weft__load(registered, WEFT__ACQUIRE)) /* R */
		return 0;
	rc = weft__sys->at_fork(fn);
	if (rc == 0)
		weft__store(registered, 1, WEFT__RELEASE); /* R */
	return rc;
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
