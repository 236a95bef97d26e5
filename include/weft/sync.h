/* weft/sync.h - mutex, condition, semaphore, group, event.
 *
 * All objects are embedded and need no cleanup.  An object is local or shared.
 *
 *   Local   `weft_mutex m = WEFT_INIT;` makes an object that belongs to the loop that first
 *           uses it.  Its calls use no atomic operations.  Calls of other loops and of plain
 *           threads return WEFT_EWRONGLOOP.
 *   Shared  `weft_mutex m = WEFT_SHARED_INIT;` makes an object for all loops and plain threads.
 *
 * Waiters are served in the order in which they came.  With WEFT_NOWAIT a call only tries.
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

/* Lock and unlock a mutex.  The owner of a locked mutex is the threadlet that locked it or,
 * outside of threadlets, the thread: all callbacks of a loop are one owner.
 * lock returns 0, WEFT_EDEADLK if the caller owns it; unlock returns 0, WEFT_EPERM if the
 * caller does not own it.
 * Thread: loop, or any if shared.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_mutex_lock(weft_mutex *mutex, uint64_t deadline_ns);
WEFT_API int weft_mutex_unlock(weft_mutex *mutex);

/* Unlock `mutex`, wait for a wake of `cond`, and lock `mutex` again.  A caller that held the
 * mutex holds it on return, also after an error: the second locking has no deadline and is not
 * cancelable.
 * Returns 0, WEFT_EPERM if the caller does not hold the mutex.
 * Thread: loop, or any if shared.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_cond_wait(weft_cond *cond, weft_mutex *mutex,
                            uint64_t deadline_ns);

/* wake: wake the waiter that has waited longest.  wake_all: wake all waiters.
 * Return the number of waiters woken.
 * Thread: loop, or any if shared.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_cond_wake(weft_cond *cond);
WEFT_API int weft_cond_wake_all(weft_cond *cond);

/* acquire: wait until the semaphore has a unit, and take it.  release: add `count` units.  A new
 * semaphore has none.
 * Return 0; release returns WEFT_EINVAL if there would be more than 4,294,967,295 units.
 * Thread: loop, or any if shared.  Blocks: waits; no.  Since: 0.1. */
WEFT_API int weft_sem_acquire(weft_sem *sem, uint64_t deadline_ns);
WEFT_API int weft_sem_release(weft_sem *sem, uint32_t count);

/* Count pieces of work, as Go's WaitGroup does.  add: count `count` more, before they begin.
 * done: count one less, when it has ended.  wait: wait until the count is 0.  For threadlets
 * prefer a scope.
 * Return 0; add returns WEFT_EINVAL if the count would exceed 4,294,967,295, done if it would
 * fall below zero.
 * Thread: loop, or any if shared.  Blocks: no; no; waits.  Since: 0.1. */
WEFT_API int weft_group_add(weft_group *group, uint32_t count);
WEFT_API int weft_group_done(weft_group *group);
WEFT_API int weft_group_wait(weft_group *group, uint64_t deadline_ns);

/* Set, reset and await a flag.  Setting it wakes all waiters; it stays set until it is reset.  A
 * waiter whose call has returned 0 may free the event: the weft_event_set() that woke it no
 * longer touches the event.
 * Return 0.
 * Thread: loop, or any if shared.  Blocks: no; no; waits.  Since: 0.1. */
WEFT_API int weft_event_set(weft_event *event);
WEFT_API int weft_event_reset(weft_event *event);
WEFT_API int weft_event_wait(weft_event *event, uint64_t deadline_ns);

WEFT_END
#endif
