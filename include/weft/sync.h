/* weft/sync.h - mutex, read-write lock, condition, semaphore, group, once, event.
 *
 * All are embedded and need no end.  `weft_mutex m = WEFT_INIT;` makes one for
 * the loop that first uses it, without atomics; WEFT_SHARED_INIT one for all
 * loops and plain threads.  A local one used elsewhere is WEFT_EWRONGLOOP.  Waiters
 * are served first come, first served; WEFT_NOWAIT is the try form.
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_mutex  { uint32_t flags, word; uint64_t opaque[4]; } weft_mutex;
typedef struct weft_rwlock { uint32_t flags, word; uint64_t opaque[7]; } weft_rwlock;
typedef struct weft_cond   { uint32_t flags, word; uint64_t opaque[3]; } weft_cond;
typedef struct weft_sem    { uint32_t flags, word; uint64_t opaque[4]; } weft_sem;
typedef struct weft_group  { uint32_t flags, word; uint64_t opaque[4]; } weft_group;
typedef struct weft_once   { uint32_t flags, word; uint64_t opaque[4]; } weft_once;
typedef struct weft_event  { uint32_t flags, word; uint64_t opaque[4]; } weft_event;

/* Lock and unlock a mutex.  The owner is a threadlet; or a loop, for its callbacks, or
 * a plain thread.
 * lock returns 0, WEFT_EDEADLK if the caller has it; unlock 0, WEFT_EPERM if not.
 * Thread: loop, or any if shared.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_mutex_lock(weft_mutex *mutex, uint64_t deadline_ns);
WEFT_API int weft_mutex_unlock(weft_mutex *mutex);

/* Lock for reading with others, or for writing alone; writers go first.
 * Return 0, WEFT_EDEADLK if the caller has it for writing; unlock 0, WEFT_EPERM if
 * nobody has it, or another for writing.
 * Thread: loop, or any if shared.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_rwlock_read(weft_rwlock *lock, uint64_t deadline_ns);
WEFT_API int weft_rwlock_write(weft_rwlock *lock, uint64_t deadline_ns);
WEFT_API int weft_rwlock_unlock(weft_rwlock *lock);

/* Unlock `mutex`, wait to be woken, lock it again.  The lock is held on return,
 * whatever is returned; taking it again is not cancellable.
 * Returns 0, WEFT_EPERM if the caller does not hold it.
 * Thread: loop, or any if shared.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_cond_wait(weft_cond *cond, weft_mutex *mutex,
                            uint64_t deadline_ns);

/* Wake the longest waiting, or all.
 * Return the number woken.
 * Thread: loop, or any if shared.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_cond_wake(weft_cond *cond);
WEFT_API int weft_cond_wake_all(weft_cond *cond);

/* Take one unit, waiting until there is one; give back, or make, `count`.  A new
 * semaphore has none.
 * Return 0; release WEFT_EINVAL above 4,294,967,295 units.
 * Thread: loop, or any if shared.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_sem_acquire(weft_sem *sem, uint64_t deadline_ns);
WEFT_API int weft_sem_release(weft_sem *sem, uint32_t count);

/* Count work: add before it begins, done as it ends, wait until none is left.
 * For threadlets prefer a scope.
 * Return 0; add WEFT_EINVAL above 4,294,967,295, done below zero.
 * Thread: loop, or any if shared.  Blocks: no; no; waits.  Since: 0.1. */
WEFT_API int weft_group_add(weft_group *group, uint32_t count);
WEFT_API int weft_group_done(weft_group *group);
WEFT_API int weft_group_wait(weft_group *group, uint64_t deadline_ns);

/* Run `fn(arg)` if no call has succeeded yet; others wait for the one at it.  A
 * negative return of `fn` is returned to its caller, and the next one tries.
 * Returns 0 once it is done; WEFT_EDEADLK from inside `fn`.
 * Thread: loop, or any if shared.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_once_run(weft_once *once, int (*fn)(void *arg), void *arg,
                           uint64_t deadline_ns);

/* A flag to wait for.  Set stays set until reset; all waiters go on.  A waiter
 * that returned 0 may free it: set does not touch it any more.
 * Return 0.
 * Thread: loop, or any if shared.  Blocks: no; no; waits.  Since: 0.1. */
WEFT_API int weft_event_set(weft_event *event);
WEFT_API int weft_event_reset(weft_event *event);
WEFT_API int weft_event_wait(weft_event *event, uint64_t deadline_ns);

WEFT_END
#endif
