/* threadlet_lock.c - mutex and condition variable.
 *
 * A lock is handed over: the caller that unlocks it makes the longest waiter the owner, and
 * wakes that waiter.  So a lock is never free while a caller waits for it.  Waiters are served
 * in order.
 */
#include <weft/sync.h>
#include "threadlet/waitable.h"

struct mutex {
	struct weft__waitable waitable;
	struct weft__waits waits;
	void *owner; /* NULL: unlocked.  The value of a waiter is the owner it will be */
};
WEFT_STATIC_ASSERT(sizeof(struct mutex) == sizeof(weft_mutex), "one layout");

struct cond {
	struct weft__waitable waitable;
	struct weft__waits waits;
};
WEFT_STATIC_ASSERT(sizeof(struct cond) == sizeof(weft_cond), "one layout");

/* --- mutex -------------------------------------------------------------- */

/* Called inside the waitable, which it leaves. */
static int
threadlet_lock_take(struct mutex *mutex, bool deaf, uint64_t deadline_ns)
{
	void *caller = weft__waitable_caller();

	if (!weft__get(mutex->owner)) {
		weft__put(mutex->owner, caller);
		weft__waitable_leave(&mutex->waitable);
		return 0;
	}
	if (weft__get(mutex->owner) == caller) {
		weft__waitable_leave(&mutex->waitable);
		return weft__misuse(WEFT_EDEADLK,
		                    "weft_mutex_lock: the caller already holds the mutex");
	}
	return weft__waitable_wait(
		&mutex->waitable,
		&(struct weft__waitable_wait){ "mutex", &mutex->waits, caller, deaf }, deadline_ns);
}

/* Called inside the waitable, which it leaves. */
static void
threadlet_lock_hand_over(struct mutex *mutex)
{
	struct weft__wait *next = weft__wait_claim(&mutex->waits);

	weft__put(mutex->owner, next ? next->value : NULL);
	weft__waitable_leave(&mutex->waitable);
	if (next)
		weft__waitable_wake(next->waiter, 0);
}

__attribute__((noinline)) static int
lock_slow(struct mutex *mutex, uint64_t deadline_ns)
{
	int rc = weft__check_requests(deadline_ns);

	if (rc == 0)
		rc = weft__waitable_enter(&mutex->waitable);
	return rc < 0 ? rc : threadlet_lock_take(mutex, false, deadline_ns);
}

int
weft_mutex_lock(weft_mutex *handle, uint64_t deadline_ns)
{
	struct mutex *mutex = (struct mutex *)(void *)handle;
	struct weft__threadlet *self = weft__waitable_is_open(&mutex->waitable);

	if (__builtin_expect(!self || mutex->owner, 0))
		return lock_slow(mutex, deadline_ns);
	mutex->owner = self;
	return 0;
}

__attribute__((noinline)) static int
unlock_slow(struct mutex *mutex)
{
	int rc = weft__waitable_enter(&mutex->waitable);

	if (rc < 0)
		return rc;
	if (weft__get(mutex->owner) != weft__waitable_caller()) {
		weft__waitable_leave(&mutex->waitable);
		return weft__misuse(WEFT_EPERM,
		                    "weft_mutex_unlock: the caller does not hold the mutex");
	}
	threadlet_lock_hand_over(mutex);
	return 0;
}

int
weft_mutex_unlock(weft_mutex *handle)
{
	struct mutex *mutex = (struct mutex *)(void *)handle;
	const struct weft__thread *thread = weft__thread_here();
	const void *self = thread ? thread->threadlet : NULL;

	if (__builtin_expect(!self || !weft__waitable_is_of(&mutex->waitable, thread)
	                             || mutex->owner != self || mutex->waits.first,
	                     0))
		return unlock_slow(mutex);
	mutex->owner = NULL;
	return 0;
}

/* --- condition variable ------------------------------------------------- */

/* Called inside both waitables, which it leaves.  It queues the caller before it unlocks the
 * mutex, so that no wake can miss the caller. */
static int
unlock_and_wait(struct cond *cond, struct mutex *mutex, uint64_t deadline_ns)
{
	struct weft__shared_waiter w;
	struct weft__wait wait = { .waiter = &w.waiter };
	int rc;

	weft__shared_waiter_init(&w, "cond", cond);
	w.waiter.shared = cond->waitable.flags & WEFT_SHARED;
	weft__wait_push(&cond->waits, &wait);
	weft__waitable_leave(&cond->waitable);
	threadlet_lock_hand_over(mutex);
	rc = (int)weft__shared_wait(&w, deadline_ns);
	if (!weft__get(w.waiter.chosen)) {
		(void)weft__waitable_enter(&cond->waitable);
		weft__wait_drop(&wait);
		weft__waitable_leave(&cond->waitable);
	}
	return rc;
}

int
weft_cond_wait(weft_cond *handle, weft_mutex *mutex_handle, uint64_t deadline_ns)
{
	struct cond *cond = (struct cond *)(void *)handle;
	struct mutex *mutex = (struct mutex *)(void *)mutex_handle;
	int rc = weft__waitable_enter(&mutex->waitable), again;

	if (rc < 0)
		return rc;
	rc = weft__get(mutex->owner) == weft__waitable_caller() ? 0 : WEFT_EPERM;
	weft__waitable_leave(&mutex->waitable);
	if (rc < 0)
		return weft__misuse(rc, "weft_cond_wait: the caller does not hold the mutex");
	rc = weft__waitable_may_wait(cond->waitable.flags & WEFT_SHARED, deadline_ns);
	if (rc == 0)
		rc = weft__waitable_enter(&cond->waitable);
	if (rc < 0)
		return rc;
	/* Enter both.  The order is always the same: condition variable, then mutex. */
	(void)weft__waitable_enter(&mutex->waitable);
	rc = unlock_and_wait(cond, mutex, deadline_ns);
	(void)weft__waitable_enter(&mutex->waitable);
	again = threadlet_lock_take(mutex, true, WEFT_NEVER);
	weft__assert(again == 0);
	return rc;
}

int
weft_cond_wake(weft_cond *handle)
{
	struct cond *cond = (struct cond *)(void *)handle;
	struct weft__wait *wait;
	int rc = weft__waitable_enter(&cond->waitable);

	if (rc < 0)
		return rc;
	wait = weft__wait_claim(&cond->waits);
	weft__waitable_leave(&cond->waitable);
	if (wait)
		weft__waitable_wake(wait->waiter, 0);
	return wait != NULL;
}

int
weft_cond_wake_all(weft_cond *handle)
{
	struct cond *cond = (struct cond *)(void *)handle;
	struct weft__wait *all;
	int rc = weft__waitable_enter(&cond->waitable);

	if (rc < 0)
		return rc;
	all = weft__waitable_claim_all(&cond->waits);
	weft__waitable_leave(&cond->waitable);
	return weft__waitable_wake_all(all, 0);
}
