/* weft/sync.h - mutex, condition, semaphore, group, event.
 *
 * All objects are embedded and need no cleanup.  `weft_mutex m = WEFT_INIT;` makes an object
 * for the loop that first uses it, without atomics; from elsewhere calls return WEFT_EWRONGLOOP.
 * WEFT_SHARED_INIT makes an object for all loops and plain threads.  Waiters are served first
 * come, first served.  With WEFT_NOWAIT a call only tries.
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_mutex { uint32_t flags, word; uint64_t opaque[4]; } weft_mutex;
typedef struct weft_cond  { uint32_t flags, word; uint64_t opaque[3]; } weft_cond;
typedef struct weft_sem   { uint32_t flags, word; uint64_t opaque[4]; } weft_sem;
typedef struct weft_group { uint32_t flags, word; uint64_t opaque[4]; } weft_group;
typedef struct weft_event { uint32_t flags, word; uint64_t opaque[4]; } weft_event;

/* Lock and unlock a mutex.  Its owner is a threadlet, a plain thread, or a loop (if a callback
 * locks it).
 * lock returns 0, WEFT_EDEADLK if the caller owns it; unlock returns 0, WEFT_EPERM if the
 * caller does not own it.
 * Thread: loop, or any if shared.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_mutex_lock(weft_mutex *mutex, uint64_t deadline_ns);
WEFT_API int weft_mutex_unlock(weft_mutex *mutex);

/* Unlock `mutex`, wait to be woken, and lock it again.  The caller holds the lock on return,
 * whatever the call returns; locking it again is not cancelable.
 * Returns 0, WEFT_EPERM if the caller does not hold it.
 * Thread: loop, or any if shared.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_cond_wait(weft_cond *cond, weft_mutex *mutex,
                            uint64_t deadline_ns);

/* Wake the waiter that waits longest, or all waiters.
 * Return the number woken.
 * Thread: loop, or any if shared.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_cond_wake(weft_cond *cond);
WEFT_API int weft_cond_wake_all(weft_cond *cond);

/* Take one unit, waiting until there is one; add `count` units.  A new semaphore has none.
 * Return 0; release returns WEFT_EINVAL above 4,294,967,295 units.
 * Thread: loop, or any if shared.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_sem_acquire(weft_sem *sem, uint64_t deadline_ns);
WEFT_API int weft_sem_release(weft_sem *sem, uint32_t count);

/* Count pieces of work: add before they begin, call done as each ends, wait until none is left.
 * For threadlets prefer a scope.
 * Return 0; add returns WEFT_EINVAL above 4,294,967,295, done returns it below zero.
 * Thread: loop, or any if shared.  Blocks: no; no; waits.  Since: 0.1. */
WEFT_API int weft_group_add(weft_group *group, uint32_t count);
WEFT_API int weft_group_done(weft_group *group);
WEFT_API int weft_group_wait(weft_group *group, uint64_t deadline_ns);

/* Set, reset and await a flag.  A set event stays set until it is reset, and wakes all waiters.
 * A waiter that got 0 may free the event: weft_event_set() no longer touches it.
 * Return 0.
 * Thread: loop, or any if shared.  Blocks: no; no; waits.  Since: 0.1. */
WEFT_API int weft_event_set(weft_event *event);
WEFT_API int weft_event_reset(weft_event *event);
WEFT_API int weft_event_wait(weft_event *event, uint64_t deadline_ns);

WEFT_END
#endif
