/* promise.h - promises, as the files of this layer share them.  Private.
 *
 * The files: promise.c (creating, settling, landing), reference.c (references and the end),
 * promise_owner.c (the promises of a loop, and their memory), then.c (resolving and chaining),
 * combine.c (all, any, race), await.c, make.c (promises of ops, functions and threadlets),
 * abort.c (abort signals).
 *
 * A promise belongs to a loop, its owner loop.  It is settled once, by any thread; it has
 * landed when its owner loop knows that it has settled.
 *
 * Needs: threadlet, loop, base.
 */
#ifndef WEFT_PROMISE_PROMISE_H
#define WEFT_PROMISE_PROMISE_H

#include <weft/promise.h>
#include <weft/timer.h>
#include "base/build.h"
#include "base/value.h"
#include "loop/post/mailbox.h"
#include "threadlet/waitable.h"

/* A reaction: a function to call when a promise has settled; embedded in another object.  The loop
 * calls `run` once, in a microtask, with a reference to the promise.  `run` consumes the reference,
 * and from then on the memory of the reaction belongs to it.  NULL: the reaction is part of a
 * struct weft__awaiter. */
struct weft__reaction {
	struct weft__reaction *next;
	void (*run)(struct weft__reaction *reaction, weft_promise *of);
};

/* A thread or threadlet that awaits a promise; on its stack. */
struct weft__awaiter {
	struct weft__reaction      reaction; /* first */
	struct weft__shared_waiter w;
};

/* Whether the rejection of a promise is handled: not yet, yes, or reported as unhandled. */
enum { WEFT__UNHANDLED, WEFT__HANDLED, WEFT__REPORTED };

/* The kind of a promise.  The last two are the first member of a larger struct. */
enum {
	WEFT__PROMISE_PLAIN,
	WEFT__PROMISE_THEN,    /* made by weft_promise_then() */
	WEFT__PROMISE_OP,      /* struct op_promise, in make.c */
	WEFT__PROMISE_ABORT,   /* weft_abort, in abort.c */
};

/* Values of `outcome` besides weft_outcome.  BUSY: a thread holds the promise's lock.  SOURCE, a
 * bit: the promise has a source. */
#define WEFT__PROMISE_BUSY   3u
#define WEFT__PROMISE_SOURCE 4u

/* Two cache lines.  "Locked" means: used by the thread that has set WEFT__PROMISE_BUSY. */
struct weft_promise {
	weft__a32            refs;
	weft__a32            outcome; /* see above; settled once, by the holder of the lock */
	weft__a32            handled; /* WEFT__UNHANDLED, ... */
	union {
		uint32_t     flags;       /* all of the following, to clear them at once */
		struct {
			uint8_t follows : 1; /* locked: only the promise it follows settles it */
			uint8_t in_transit : 1; /* locked: it is on its way to the loop; if it is
			                      * settled meanwhile, it lands on arrival */
			uint8_t awaited : 1; /* locked: some of the reactions are awaiters */
			uint8_t holds : 1;   /* locked: the reactions hold a reference, for their
			                      * job; the loop's thread once settled */
			bool    listed;
			uint8_t kind : 4;    /* WEFT__PROMISE_*; set once, like the next */
			uint8_t foreign : 1; /* listed under owner->lock, in separately allocated
			                      * memory */
			uint8_t landed : 1;  /* the loop's thread: the loop knows that it has
			                      * settled, and has queued the job for all reactions
			                      * that were added before */
			uint8_t sent : 1;    /* the loop's thread: another thread sent it here */
		};
	};
	struct weft__promise_owner *owner; /* promise state of the owner loop; outlives the loop */
	weft_value           value;   /* owned; with a source only a copy of the source's */
	union {
		weft_promise *source; /* referenced: the promise whose value and text it shares */
		char         *text;   /* of its own rejection, or NULL */
	};
	struct weft__reaction *last;  /* of the ring of reactions; locked, and the loop's thread
	                               * once settled */
	weft_promise        *next;        /* in one list of `owner` */
	union {
		weft_promise *prev;       /* in a list of pending promises */
		uint64_t      report_ns;  /* in `expected`: when it is reported */
	};
	union {
		struct weft__letter letter; /* while it is in `settled` of `owner` */
		weft_promise *next_ready;   /* in `ready` of `owner` */
	};
	weft_promise        *before;  /* referenced: had landed when this was chained to it */
	struct weft__reaction chain;  /* reaction to the promise before; and the handlers */
	weft_then_fn         fulfilled, rejected;
	void                *arg;
};
WEFT_STATIC_ASSERT(sizeof(struct weft_promise) == 128, "a promise is two cache lines");

/* Settled promises, by `next`, each with a reference. */
struct weft__promise_queue {
	weft_promise *first, **end;
};

/* The promise state of a loop; made with its first promise. */
struct weft__promise_owner {
	struct weft__part part; /* first */
	weft__aptr         loop;    /* 0: the loop was freed; other threads may read it just then */
	struct weft__lock  lock;    /* for the next two */
	weft_promise      *foreign; /* pending: made by other threads, or before the loop ran */
	bool               closed;  /* the loop has stopped */
	weft_promise      *own;     /* pending: made on the loop's thread */
	weft_promise      *ready, **ready_end; /* settled, but no memory to queue the job */
	struct weft__promise_queue rejected; /* to be checked at the end of the checkpoint */
	struct weft__promise_queue expected; /* another thread may be about to handle them */
	weft_timer         report;  /* for the first promise in `expected` */
	struct weft__mailbox settled; /* promises that other threads have settled or chained */
	struct weft__mailbox chains;  /* of then.c: chains to settled promises */

	/* Memory of the promises made on the loop's thread. */
	weft_promise      *free;    /* by `next` */
	uint64_t           free_count, carved;
	struct weft__slab *slabs;
	char              *cut, *cut_end; /* unused part of the newest slab */
	weft__aptr         returned; /* freed by other threads, by `next`; or ORPHANED */
	weft__a64          left;     /* number of users of this struct; see promise_owner.c */
};

static inline weft_loop *
weft__promise_owner_loop(const struct weft__promise_owner *owner)
{
	return (weft_loop *)weft__load(&owner->loop, WEFT__RELAXED);
}

static inline weft_loop *
weft__promise_loop(const weft_promise *promise)
{
	return weft__promise_owner_loop(promise->owner);
}

static inline bool
weft__promise_owner_is_here(const struct weft__promise_owner *owner)
{
	const struct weft__thread *thread = weft__thread_here();

	return thread && thread->loop && thread->loop == weft__promise_owner_loop(owner);
}

static inline bool
weft__promise_is_here(const weft_promise *promise)
{
	return weft__promise_owner_is_here(promise->owner);
}

static inline weft_outcome
weft__promise_outcome(const weft_promise *promise)
{
	uint32_t outcome = weft__load(&promise->outcome, WEFT__ACQUIRE); /* S */

	return (weft_outcome)(outcome == WEFT__PROMISE_BUSY
	                              ? WEFT_PENDING
	                              : outcome & ~WEFT__PROMISE_SOURCE);
}

/* Lock a pending promise; false: it has settled. */
bool weft__promise_enter_slow(weft_promise *promise);

static inline bool
weft__promise_enter(weft_promise *promise)
{
	uint32_t pending = WEFT_PENDING;

	return weft__cas(&promise->outcome, &pending, WEFT__PROMISE_BUSY,
	                 WEFT__ACQUIRE) /* I */
	       || weft__promise_enter_slow(promise);
}

/* Unlock a promise that stays pending. */
static inline void
weft__promise_leave(weft_promise *promise)
{
	weft__store(&promise->outcome, WEFT_PENDING, WEFT__RELEASE); /* I */
}

/* The promise that owns the value of a settled promise. */
static inline weft_promise *
weft__promise_value_owner(weft_promise *promise)
{
	return weft__load(&promise->outcome, WEFT__RELAXED) & WEFT__PROMISE_SOURCE
	               ? promise->source
	               : promise;
}

/* --- rings of reactions --------------------------------------------------- */

static inline void
weft__reaction_add(struct weft__reaction **last, struct weft__reaction *reaction)
{
	if (*last) {
		reaction->next = (*last)->next;
		(*last)->next = reaction;
	} else {
		reaction->next = reaction;
	}
	*last = reaction;
}

/* Empty a ring: returns its first reaction, of a list that ends with NULL; or NULL. */
static inline struct weft__reaction *
weft__reaction_take(struct weft__reaction **last)
{
	struct weft__reaction *first = NULL;

	if (*last) {
		first = (*last)->next;
		(*last)->next = NULL;
		*last = NULL;
	}
	return first;
}

/* --- promise_owner.c ---------------------------------------------------- */

/* The promise state of a loop, made at first need; NULL without memory. */
struct weft__promise_owner *weft__promise_owner_of(weft_loop *loop);

/* Allocate a promise of this kind, `size` bytes in all; and free one.  `here`: the caller runs
 * on the thread of the owner loop. */
weft_promise *weft__promise_alloc(struct weft__promise_owner *owner, bool here, uint8_t kind,
                                  size_t size);
void          weft__promise_release(weft_promise *promise);

/* Add a new promise to the list of its owner loop; false if the loop accepts no more, because it
 * ends or has stopped.  Remove a promise, if it is listed. */
bool weft__promise_list(weft_promise *promise, bool here);
void weft__promise_unlist(weft_promise *promise);

/* Queue the job of a landed promise.  Consumes a reference to it. */
void weft__promise_queue_job(weft_promise *promise);

/* A rejected promise has landed: check at the end of the checkpoint whether it is handled, and
 * report it if not. */
void weft__promise_watch_rejection(weft_promise *promise);

/* Send a promise, with a reference, to its owner loop.  There it lands, if it is settled, and
 * the reference is dropped. */
void weft__promise_send(weft_promise *promise);

/* A letter of `chains` has arrived; then.c. */
void weft__promise_on_chained(struct weft__mailbox *box, struct weft__letter *letter);

/* --- promise.c ---------------------------------------------------------- */

/* Parameters of a new promise. */
struct weft__making {
	weft_loop *loop;    /* NULL: the caller's */
	size_t     size;    /* of the memory that begins with the promise */
	uint32_t   refs;
	bool       in_transit; /* initial value of the member */
	bool       handled; /* initial value of the member: WEFT__HANDLED */
	uint8_t    kind;
};

/* Returns it; NULL: no memory, or no loop. */
weft_promise *weft__promise_make(const struct weft__making *how);

/* Parameters of settling a promise. */
struct weft__settling {
	weft_outcome  outcome;
	weft_value    value;  /* taken */
	weft_promise *source; /* instead of the value: settle like this promise; borrowed */
	bool          keep_text; /* the value is an error: keep weft_detail() as it is now */
	bool          follower;  /* settle the promise even if it follows another one */
	bool          gives;     /* consumes a reference to the promise; on the loop's thread */
};

/* Returns 0, WEFT_EALREADY; in either case the call consumes the value, and with `gives` the
 * reference. */
int weft__promise_settle(weft_promise *promise, const struct weft__settling *how);

/* Reject with an error and the present text of weft_detail(). */
int weft__promise_fail(weft_promise *promise, int error);

/* Add a reaction to a pending promise; false: it has settled, and nothing was added.  In
 * either case a rejection counts as handled. */
bool weft__promise_react(weft_promise *promise, struct weft__reaction *reaction);

/* The same, but a rejection does not count as handled. */
bool weft__promise_add(weft_promise *promise, struct weft__reaction *reaction);

/* The rejection of a settled promise counts as handled from now on.  Reports that, if it was
 * reported as unhandled. */
void weft__promise_mark_handled_slow(weft_promise *promise);

static inline void
weft__promise_mark_handled(weft_promise *promise)
{
	if (weft__promise_outcome(promise) == WEFT_REJECTED
	    && weft__load(&promise->handled, WEFT__RELAXED) != WEFT__HANDLED)
		weft__promise_mark_handled_slow(promise);
}

/* The same for a pending promise that the caller has locked.  Nothing was reported yet, and
 * the store comes before any report: invariant 4 of promise.c. */
static inline void
weft__promise_mark_handled_locked(weft_promise *promise)
{
	if (weft__load(&promise->handled, WEFT__RELAXED) != WEFT__HANDLED)
		weft__store(&promise->handled, WEFT__HANDLED, WEFT__RELAXED);
}

/* Report an unhandled rejection, unless it is handled. */
void weft__promise_report(weft_promise *promise);

/* Make weft_detail() describe the rejection; returns its error. */
int weft__promise_error(const weft_promise *promise);

/* Call the reactions of a landed promise.  Consumes a reference to it. */
void weft__promise_run(void *promise);

/* The loop learns that a promise has settled. */
void weft__promise_land(weft_promise *promise);

/* A promise has arrived at the loop, or need not be sent.  True if it was settled while it was
 * marked as in transit, and so has to land. */
bool weft__promise_end_transit(weft_promise *promise);

/* Take a reference unless none is left; under a lock that keeps the memory valid. */
bool weft__promise_try_ref(weft_promise *promise);

/* On the loop's thread, for a timer or an op of the promise: take a reference.  If another thread
 * has just dropped the last one, wait until that thread has taken one for the loop. */
void weft__promise_ref_pending(weft_promise *promise);

/* --- then.c ------------------------------------------------------------- */

/* Make `promise` settle as `other` does; from then on only calls with `follower` settle it.
 * Returns 0, WEFT_EALREADY if it is settled or follows already. */
int weft__promise_follow(weft_promise *promise, weft_promise *other);

/* --- abort.c ------------------------------------------------------------ */

/* Add a listener: `node->fn(node->arg)` runs once in a microtask of the signal's loop when the
 * signal fires, or soon if it has already fired.  Remove a listener: after that it does not run.
 * On the loop's thread.  push returns 0, WEFT_EINVAL, WEFT_EBUSY (already listening),
 * WEFT_EWRONGLOOP, WEFT_ENOMEM (if the signal has fired), WEFT_ESHUTDOWN. */
WEFT__SHARED int weft__abort_push(const weft_abort *abort, weft_node *node);
WEFT__SHARED void weft__abort_drop(const weft_abort *abort, weft_node *node);

/* The signal has a timer, so only the owner loop's thread can end it. */
bool weft__abort_is_tied(const weft_promise *promise);

/* A signal is freed: stop listening to all of its sources. */
void weft__abort_end(weft_promise *promise);

/* --- make.c ------------------------------------------------------------- */

/* On the loop's thread: give the op of a promise a reference, if the op is pending and has
 * none.  True if this call gave one. */
bool weft__promise_op_keeps(weft_promise *promise);

#endif
