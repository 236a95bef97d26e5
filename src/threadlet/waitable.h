/* waitable.h - waitables: what locks, channels and similar objects have in common.
 *
 * Each such object begins with a struct weft__waitable.  Its state may be used by one caller at a
 * time, which is inside the waitable: for a local one, the code that runs on its loop; for a
 * shared one, the holder of its lock.
 *
 * Needs: threadlet.h.  Thread: for a local waitable, its loop's; for a shared one, any.
 */
#ifndef WEFT_THREADLET_WAITABLE_H
#define WEFT_THREADLET_WAITABLE_H

#include <weft/sync.h>
#include "base/lock.h"
#include "threadlet/threadlet.h"

/* The first words of each public struct. */
struct weft__waitable {
	uint32_t          flags; /* WEFT_SHARED or 0 */
	struct weft__lock lock;  /* if it is shared */
	weft__a64         loop_id; /* if it is local: of its loop, from first use on */
};

/* A shared waitable with two locks, for objects with two directions.  To enter it is to take
 * both locks, `first` before `second`.  A caller that holds only the lock of its own direction
 * excludes every caller that enters. */
#define WEFT__WAITABLE_PAIR (UINT32_C(1) << 31) /* in `flags` */
struct weft__waitable_pair {
	struct weft__waitable  waitable;
	struct weft__lock *first, *second;
};

/* How often a caller tries the lock of a shared waitable before it parks.  The pause
 * doubles before each try, so that the holder can work without losing its cache lines.
 * Not with WEFT__HOOK_ATOMICS: each try would be one more step to schedule, and would show
 * nothing that parking at once does not show. */
#ifdef WEFT__HOOK_ATOMICS
#define WEFT__WAITABLE_TRIES 0
#else
#define WEFT__WAITABLE_TRIES 8
#endif

/* May the caller spin before it suspends?  Only a threadlet, and only if its loop has no other
 * work.  A caller whose spin succeeds yields as if it had suspended.  So spins count against the
 * number of threadlets that may run before the loop goes on. */
#define WEFT__WAITABLE_SKIPS_MAX 64u
bool weft__waitable_may_spin(struct weft__spin_backoff *backoff);

/* The slow part of entering: 0, or an error. */
int weft__waitable_enter_slow(struct weft__waitable *waitable);

/* Whether a local waitable belongs to the loop that runs on this thread. */
static inline bool
weft__waitable_is_of(const struct weft__waitable *waitable, const struct weft__thread *thread)
{
	return weft__load(&waitable->loop_id, WEFT__RELAXED) == weft__loop_id(thread->loop);
}

/* The calling threadlet, if the waitable is local to its loop and the threadlet is neither
 * canceled nor interrupted: then the caller may use the fast path.  Else NULL. */
static inline struct weft__threadlet *
weft__waitable_is_open(const struct weft__waitable *waitable)
{
	const struct weft__thread *thread = weft__thread_here();
	struct weft__threadlet *self = thread ? thread->threadlet : NULL;

	if (!self || self->why | self->interrupted || !weft__waitable_is_of(waitable, thread))
		return NULL;
	return self;
}

/* Enter and leave.  Returns 0; WEFT_EWRONGLOOP if the waitable is local, and belongs to another
 * loop or no loop runs on this thread; WEFT_EINVAL if it was not initialized. */
static inline int
weft__waitable_enter(struct weft__waitable *waitable)
{
	const struct weft__thread *thread = weft__thread_here();

	if (thread && thread->loop && !(waitable->flags & WEFT_SHARED)
	    && weft__load(&waitable->loop_id, WEFT__RELAXED) == weft__loop_id(thread->loop))
		return 0;
	return weft__waitable_enter_slow(waitable);
}

void weft__waitable_leave_pair(struct weft__waitable_pair *pair);

static inline void
weft__waitable_leave(struct weft__waitable *waitable)
{
	if (waitable->flags & WEFT__WAITABLE_PAIR)
		weft__waitable_leave_pair((struct weft__waitable_pair *)(void *)waitable);
	else if (waitable->flags & WEFT_SHARED)
		weft__lock_give(&waitable->lock);
}

/* Take one lock of a waitable. */
void weft__waitable_lock_slow(struct weft__lock *lock);

static inline void
weft__waitable_lock(struct weft__lock *lock)
{
	uint32_t free = 0;

	if (!weft__cas(&lock->word, &free, 1, WEFT__ACQUIRE))
		weft__waitable_lock_slow(lock);
}

/* 0, or the error of a caller that is canceled or interrupted.  Such a caller must not even do
 * what could be done at once, except with WEFT_NOWAIT, which does not wait. */
static inline int
weft__check_requests(uint64_t deadline_ns)
{
	const struct weft__threadlet *self = weft__self();

	return self && __builtin_expect(self->why | self->interrupted, 0)
	                       && deadline_ns != WEFT_NOWAIT
	               ? weft__may_wait(deadline_ns)
	               : 0;
}

/* The identity of the caller, as the owner of a lock. */
static inline void *
weft__waitable_caller(void)
{
	struct weft__thread *thread = weft__thread_self();

	return thread->threadlet ? (void *)thread->threadlet : (void *)thread;
}

enum {
	WEFT__WAIT_SPINS, /* it spins, or will: setting the word wakes it */
	WEFT__WAIT_WOKEN,
	WEFT__WAIT_SLEEPS,
};

/* A waiter that another thread can wake, and that may be a plain thread.  All that the waking
 * thread reads of it is here, in few cache lines. */
struct weft__shared_waiter {
	struct weft__waiter    waiter;
	weft_loop             *loop;  /* of its threadlet; NULL: a plain thread */
	struct weft__node_head node;  /* carries the wake to the loop */
	weft__a32              woken; /* WEFT__WAIT_*; a plain thread parks here */
	bool                   may_spin; /* spinning may pay: another thread may wake it soon */
} __attribute__((aligned(64)));

/* Initialize a waiter for the caller, before it is queued. */
void weft__shared_waiter_init(struct weft__shared_waiter *w, const char *what,
                              const void *on);

/* As weft__may_wait(); a plain thread may wait, too, if `shared`. */
int weft__waitable_may_wait(bool shared, uint64_t deadline_ns);

/* The `request_end` of a waiter that something other than a threadlet will wake.  It ends the
 * wait at once, as NULL would; but deadlock.c takes a waiter with a `request_end` for proof that
 * there is no deadlock. */
void weft__waitable_end_wait(struct weft__waiter *waiter, int why);

/* Suspend, or park a plain thread, until the wait ends.  Returns the result of the wait. */
int64_t weft__shared_wait(struct weft__shared_waiter *w, uint64_t deadline_ns);

void weft__waitable_wake_shared(struct weft__shared_waiter *w, int64_t result);

/* Wake a claimed waiter, shared or not.  The caller is outside of all waitables. */
static inline void
weft__waitable_wake(struct weft__waiter *waiter, int64_t result)
{
	if (waiter->shared)
		weft__waitable_wake_shared((struct weft__shared_waiter *)(void *)waiter, result);
	else
		weft__wake(waiter, result);
}

/* Called inside a waitable: leave it and wait in `queue` for `value`.  Returns 0, or the error
 * that prevented or ended the wait.  The waitable is left in any case. */
struct weft__waitable_wait {
	const char         *what;
	struct weft__waits *queue;
	void               *value;
	bool                deaf; /* not cancelable */
};
int weft__waitable_wait(struct weft__waitable *waitable, const struct weft__waitable_wait *how,
                    uint64_t deadline_ns);

/* The same for a waitable that weft__waitable_is_open() has found open for `self`.  Make this a
 * tail call, so that it returns to the user's code.
 *
 * A CPU predicts that a return goes back to the latest unreturned call.  After a switch that is
 * the call by which the previous threadlet waits.  The prediction is right if both threadlets
 * wait in the same code.  Between a sender and a receiver it is wrong each time.  A jump is
 * predicted by its last target instead, and makes the whole exchange a third faster.  So
 * weft__waitable_wait_here(), in assembly, passes its return address to
 * weft__waitable_wait_from(), which compares it with that of the last wait and requests a jump
 * if the two differ.  On arm64 it always returns. */
struct weft__waitable_return {
	int64_t  result;
	uint64_t by_jump; /* 1: return by a jump */
};
int weft__waitable_wait_here(struct weft__waits *queue, const char *what, void *value,
                         uint64_t deadline_ns, struct weft__threadlet *self);
struct weft__waitable_return
weft__waitable_wait_from(struct weft__waits *queue, const char *what, void *value,
                     uint64_t deadline_ns, struct weft__threadlet *self,
                     const void *site);

/* Like weft_group_wait(), but not cancelable, and without a deadline. */
int weft__group_join(weft_group *group);

/* Inside the waitable of an event: whether the event is set, and its waiters. */
bool weft__event_is_set(weft_event *event);
struct weft__waits *weft__event_waits(weft_event *event);

/* Wait until a shared event is set, whatever happens. */
void weft__event_wait_shielded(weft_event *event, const char *what);

/* Claim all waiters of a queue, as a list linked by `next`.  Wake such a list, which may be
 * NULL, with one result; returns their number. */
struct weft__wait *weft__waitable_claim_all(struct weft__waits *queue);
int weft__waitable_wake_all(struct weft__wait *list, int64_t result);

#endif
