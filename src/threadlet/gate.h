/* gate.h - what locks, channels and the like have in common.
 *
 * Each begins with a gate.  It lets in one at a time: of a local one that is whoever
 * runs on its loop, of a shared one whoever has its lock.
 *
 * Needs: threadlet.h.  Thread: of a local gate its loop's, of a shared one any.
 */
#ifndef WEFT_THREADLET_GATE_H
#define WEFT_THREADLET_GATE_H

#include <weft/sync.h>
#include "base/lock.h"
#include "threadlet/threadlet.h"

/* The first words of each public struct. */
struct weft__gate {
	uint32_t          flags; /* WEFT_SHARED or 0 */
	struct weft__lock lock;  /* of a shared one */
	weft__a64         home;  /* the number of a local one's loop, from first use on */
};

/* A shared gate with two doors, for what has two sides: going in is to take both locks,
 * the first one first.  Who takes one of them alone, which is his side's, keeps everybody
 * out who goes in. */
#define WEFT__GATE_PAIR (UINT32_C(1) << 31) /* in its flags */
struct weft__gate_pair {
	struct weft__gate  gate;
	struct weft__lock *first, *second;
};

/* How often the lock of a shared gate is tried until it is waited for, after pauses each
 * twice as long as the one before: whoever has it meanwhile gets on with its lines in its
 * cache.  Where each try is a step of the hook, none shows all that can happen. */
#ifdef WEFT__HOOK_ATOMICS
#define WEFT__GATE_TRIES 0
#else
#define WEFT__GATE_TRIES 8
#endif

/* May the caller look on before it suspends?  Not if its loop has something else to do.
 * And if what it looked for has come, it gives way as if it had suspended: so the loop
 * comes to its turn after as many looks as others may run in one. */
#define WEFT__GATE_SKIPS_MAX 64u
bool weft__gate_may_look(struct weft__luck *luck);

/* The slow part: 0, or why it cannot be entered. */
int weft__gate_enter_slow(struct weft__gate *gate);

/* The gate is of the loop that runs on this thread, and of no other. */
static inline bool
weft__gate_is_of(const struct weft__gate *gate, const struct weft__thread *thread)
{
	return weft__load(&gate->home, WEFT__RELAXED) == thread->loop->inbox.id;
}

/* The calling threadlet, if the gate is of its loop alone and it was told nothing: then
 * what can be done at once is done without more ado.  Else NULL. */
static inline struct weft__threadlet *
weft__gate_is_open(const struct weft__gate *gate)
{
	const struct weft__thread *thread = weft__thread_here();
	struct weft__threadlet *self = thread ? thread->threadlet : NULL;

	if (!self || self->why | self->interrupted || !weft__gate_is_of(gate, thread))
		return NULL;
	return self;
}

/* Go in, and out.  0, or WEFT_EXDEV (it is of another loop), WEFT_EINVAL. */
static inline int
weft__gate_enter(struct weft__gate *gate)
{
	const struct weft__thread *thread = weft__thread_here();

	if (thread && thread->loop && !(gate->flags & WEFT_SHARED)
	    && weft__load(&gate->home, WEFT__RELAXED) == thread->loop->inbox.id)
		return 0;
	return weft__gate_enter_slow(gate);
}

void weft__gate_leave_pair(struct weft__gate_pair *pair);

static inline void
weft__gate_leave(struct weft__gate *gate)
{
	if (gate->flags & WEFT__GATE_PAIR)
		weft__gate_leave_pair((struct weft__gate_pair *)(void *)gate);
	else if (gate->flags & WEFT_SHARED)
		weft__lock_give(&gate->lock);
}

/* Take one lock, as gates do. */
void weft__gate_lock_slow(struct weft__lock *lock);

static inline void
weft__gate_lock(struct weft__lock *lock)
{
	uint32_t free = 0;

	if (!weft__cas(&lock->word, &free, 1, WEFT__ACQUIRE))
		weft__gate_lock_slow(lock);
}

/* Cancelled or interrupted: then not even what could be done at once is done, but for
 * WEFT_NOW, which does not wait. */
static inline int
weft__told(uint64_t deadline_ns)
{
	const struct weft__threadlet *self = weft__self();

	return self && __builtin_expect(self->why | self->interrupted, 0)
	                       && deadline_ns != WEFT_NOW
	               ? weft__may_wait(deadline_ns)
	               : 0;
}

/* Who the caller is, as the owner of a lock. */
static inline void *
weft__gate_caller(void)
{
	struct weft__thread *thread = weft__thread_self();

	return thread->threadlet ? (void *)thread->threadlet : (void *)thread;
}

enum {
	WEFT__WAIT_LOOKS, /* it looks on, or will: it need only be told */
	WEFT__WAIT_WOKEN,
	WEFT__WAIT_SLEEPS,
};

/* A waiter that another thread can wake, and that may be a plain thread.  All that the
 * other one has to know is here, so that it fetches few lines from this one's cache. */
struct weft__shared_waiter {
	struct weft__waiter    waiter;
	weft_loop             *loop;  /* of its threadlet; NULL: a plain thread */
	struct weft__node_head node;  /* carries the wake to the loop */
	weft__a32              woken; /* WEFT__WAIT_*; a plain thread parks here */
	bool                   looks; /* another thread may wake it in a moment */
} __attribute__((aligned(64)));

/* Set up a waiter for the caller, before it is put in a queue. */
void weft__shared_waiter_init(struct weft__shared_waiter *w, const char *what,
                              const void *on);

/* As weft__may_wait(); a plain thread may, too, if `shared`. */
int weft__gate_may_wait(bool shared, uint64_t deadline_ns);

/* Wait until it is woken. */
int64_t weft__shared_wait(struct weft__shared_waiter *w, uint64_t deadline_ns);

void weft__gate_wake_shared(struct weft__shared_waiter *w, int64_t result);

/* Wake a claimed waiter, shared or not, wherever it waits.  Outside of gates. */
static inline void
weft__gate_wake(struct weft__waiter *waiter, int64_t result)
{
	if (waiter->shared)
		weft__gate_wake_shared((struct weft__shared_waiter *)(void *)waiter, result);
	else
		weft__wake(waiter, result);
}

/* Inside of a gate: leave it and wait in `queue` for `value`.  0 or what ended it; the
 * gate is left in any case. */
struct weft__gate_wait {
	const char         *what;
	struct weft__waits *queue;
	void               *value;
	bool                deaf; /* cannot be cancelled */
};
int weft__gate_wait(struct weft__gate *gate, const struct weft__gate_wait *how,
                    uint64_t deadline_ns);

/* The same in a gate that weft__gate_is_open() has found open for `self`.  To be called
 * last, so that it returns to the user, and all who wait return by the same frames.
 *
 * A CPU predicts that a return goes behind the last call that has not returned; after a
 * switch that is the call by which the other threadlet waits.  Where both wait in the same
 * code that is right.  Else, as between a sender and a receiver, it is wrong each time, and
 * a jump, which is predicted by where it went before, takes a third off the whole.  So
 * weft__gate_wait_here(), which is in assembly, tells weft__gate_wait_from() where it
 * returns to, and returns as that says. */
struct weft__gate_return {
	int64_t  result;
	uint64_t by_jump;
};
int weft__gate_wait_here(struct weft__waits *queue, const char *what, void *value,
                         uint64_t deadline_ns, struct weft__threadlet *self);
struct weft__gate_return
weft__gate_wait_from(struct weft__waits *queue, const char *what, void *value,
                     uint64_t deadline_ns, struct weft__threadlet *self,
                     const void *site);

/* Inside of the gate of an event: whether it is set, and who waits. */
bool weft__event_is_set(weft_event *event);
struct weft__waits *weft__event_waits(weft_event *event);

/* Claim all in a queue, as a list by `next`; and wake such a list, which may be NULL, with
 * one result.  Returns how many. */
struct weft__wait *weft__gate_claim_all(struct weft__waits *queue);
int weft__gate_wake_all(struct weft__wait *list, int64_t result);

#endif
