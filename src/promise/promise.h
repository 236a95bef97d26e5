/* promise.h - promises, as the files of this layer share them.  Private.
 *
 * The files: promise.c (from making to landing), reference.c (who has it, and its end),
 * home.c (the promises of a loop, and their memory), then.c (what one is resolved with, and
 * what is chained to it), combine.c (one of many), await.c, make.c (of ops, functions and
 * threadlets), abort.c (signals).
 *
 * Needs: threadlet, loop, base.
 */
#ifndef WEFT_PROMISE_PROMISE_H
#define WEFT_PROMISE_PROMISE_H

#include <weft/promise.h>
#include "base/value.h"
#include "threadlet/gate.h"

/* What is done when a promise has settled; part of whoever wants to know.  `run` is called
 * once, in a microtask of the promise's loop, with a reference of the promise, which it
 * takes; the memory is its own.  NULL: it is part of a struct weft__awaiter. */
struct weft__reaction {
	struct weft__reaction *next;
	void (*run)(struct weft__reaction *reaction, weft_promise *of);
};

/* Who awaits a promise; on its stack. */
struct weft__awaiter {
	struct weft__reaction      reaction; /* first */
	struct weft__shared_waiter w;
};

/* What is known of who cares for a rejection. */
enum { WEFT__UNCARED, WEFT__CARED, WEFT__REPORTED };

/* What a promise is; the last two are the beginning of something larger. */
enum {
	WEFT__PROMISE_PLAIN,
	WEFT__PROMISE_THEN,    /* chained, */
	WEFT__PROMISE_FINALLY, /* in either case */
	WEFT__PROMISE_OP,      /* struct op_promise, in make.c */
	WEFT__PROMISE_ABORT,   /* weft_abort, in abort.c */
};

/* Of `outcome`, besides weft_outcome: somebody is inside; and has a source. */
#define WEFT__PROMISE_BUSY   3u
#define WEFT__PROMISE_SOURCE 4u

/* Two cache lines. */
struct weft_promise {
	weft__a32            refs;
	weft__a32            outcome; /* see above; settled once, by who is inside */
	weft__a32            care;    /* WEFT__UNCARED, ... */
	union {
		uint32_t     flags;       /* all of the following; of a new one */
		struct {
			uint8_t follows : 1; /* inside: another, which alone settles it */
			uint8_t travels : 1; /* inside: it is on its way to the loop, and
			                      * lands when it is there, if it is settled */
			uint8_t awaited : 1; /* inside: some of the reactions are awaiters */
			uint8_t holds : 1;   /* inside: the reactions hold a reference, which
			                      * is their job's; the loop's when settled */
			bool    listed;
			uint8_t kind : 4;    /* WEFT__PROMISE_*; set once, as the next */
			uint8_t foreign : 1; /* listed under the home's lock, in memory of
			                      * its own */
			bool    landed;      /* the loop's: it knows that it has settled, and
			                      * has queued the job for all reactions until
			                      * then */
		};
	};
	struct weft__home   *home;    /* of its loop's promises; outlives the loop */
	weft_value           value;   /* its own, unless it has a source */
	union {
		weft_promise *source; /* referenced: whose value and text it has */
		char         *text;   /* of its own rejection, or NULL */
	};
	struct weft__reaction *last;  /* of a ring; inside, and the loop's when settled */
	weft_promise        *next, *prev; /* in one list of its home */
	weft_promise        *far;     /* next of those with news for the loop; then of ready */
	weft_promise        *before;  /* referenced: what it was chained to late; the loop's */
	struct weft__reaction chain;  /* to the one before; and what is to be called */
	union {
		weft_then_fn fulfilled;
		int        (*always)(void *arg);
	};
	weft_then_fn         rejected;
	void                *arg;
};
WEFT_STATIC_ASSERT(sizeof(struct weft_promise) == 128, "a promise is two cache lines");

/* What a loop has for its promises; made with the first one. */
struct weft__home {
	struct weft__loop_promises ops; /* first, for the loop */
	weft__aptr         loop;    /* 0: it was freed; others may look just then */
	struct weft__lock  lock;    /* of the next two */
	weft_promise      *foreign; /* pending: made by other threads, or before it ran */
	bool               closed;  /* the loop has stopped */
	weft_promise      *own;     /* pending: made on its thread */
	weft_promise      *ready, **ready_end; /* by `far`: settled, no room for the job */
	weft_promise      *rejected, **rejected_end; /* by `next`: perhaps nobody cares */
	weft__aptr         news;    /* promises that have some, newest first */
	struct weft__node_head node; /* brings them to the loop */
	weft__aptr         travels; /* of then.c: chains to settled promises, newest first */
	struct weft__node_head travels_node; /* brings these */

	/* Memory of those made on its thread. */
	weft_promise      *free;    /* by `next` */
	uint64_t           free_count, carved;
	struct weft__slab *slabs;
	char              *cut, *cut_end; /* what is not carved of the newest */
	weft__aptr         returned; /* freed elsewhere, by `next`; or ORPHANED */
	weft__a64          left;     /* who needs this struct; see home.c */
};

static inline weft_loop *
weft__home_loop(const struct weft__home *home)
{
	return (weft_loop *)weft__load(&home->loop, WEFT__RELAXED);
}

static inline weft_loop *
weft__promise_loop(const weft_promise *promise)
{
	return weft__home_loop(promise->home);
}

static inline bool
weft__home_is_here(const struct weft__home *home)
{
	const struct weft__thread *thread = weft__thread_here();

	return thread && thread->loop && thread->loop == weft__home_loop(home);
}

static inline bool
weft__promise_is_here(const weft_promise *promise)
{
	return weft__home_is_here(promise->home);
}

static inline weft_outcome
weft__promise_outcome(const weft_promise *promise)
{
	uint32_t outcome = weft__load(&promise->outcome, WEFT__ACQUIRE); /* S */

	return (weft_outcome)(outcome == WEFT__PROMISE_BUSY
	                              ? WEFT_PENDING
	                              : outcome & ~WEFT__PROMISE_SOURCE);
}

/* Go inside of a pending promise; false: it has settled. */
bool weft__promise_enter_slow(weft_promise *promise);

static inline bool
weft__promise_enter(weft_promise *promise)
{
	uint32_t pending = WEFT_PENDING;

	return weft__cas(&promise->outcome, &pending, WEFT__PROMISE_BUSY,
	                 WEFT__ACQUIRE) /* I */
	       || weft__promise_enter_slow(promise);
}

/* Go out; it stays pending. */
static inline void
weft__promise_leave(weft_promise *promise)
{
	weft__store(&promise->outcome, WEFT_PENDING, WEFT__RELEASE); /* I */
}

/* The promise whose value a settled one has. */
static inline weft_promise *
weft__promise_owner(weft_promise *promise)
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

/* Open a ring: the first of a list that ends with NULL; or NULL. */
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

/* --- home.c ------------------------------------------------------------- */

/* The home of a loop's promises, made at first need; NULL without memory. */
struct weft__home *weft__home_of(weft_loop *loop);

/* Allocate a promise of this kind, `size` bytes in all; and free one.  `here`: the caller
 * runs on the thread of the home's loop. */
weft_promise *weft__home_alloc(struct weft__home *home, bool here, uint8_t kind, size_t size);
void          weft__home_release(weft_promise *promise);

/* Add a new promise to the list of the home's loop, unless that has stopped; remove one, if
 * it is listed. */
bool weft__home_list(weft_promise *promise, bool here);
void weft__home_unlist(weft_promise *promise);

/* Queue the job of a landed promise, whose reference is taken. */
void weft__home_queue(weft_promise *promise);

/* It was rejected and has landed: see at the end of the checkpoint whether anybody cares. */
void weft__home_watch(weft_promise *promise);

/* Bring a promise, and a reference, to the loop: there it lands, if it is settled, and the
 * reference is dropped. */
void weft__home_tell(weft_promise *promise);

/* --- promise.c ---------------------------------------------------------- */

/* How a promise is made. */
struct weft__making {
	weft_loop *loop;    /* NULL: the caller's */
	size_t     size;    /* of the memory, of which it is the beginning */
	uint32_t   refs;
	bool       travels; /* as the member */
	bool       cared;   /* somebody cares for how it ends */
	uint8_t    kind;
};

/* Returns it; NULL: no memory, or no loop. */
weft_promise *weft__promise_make(const struct weft__making *how);

/* How a promise is settled. */
struct weft__settling {
	weft_outcome  outcome;
	weft_value    value;  /* taken */
	weft_promise *source; /* instead of the value: the same as this one; borrowed */
	bool          keep_text; /* of the value, an error: weft_detail() as it is now */
	bool          follower;  /* by the one that it follows, or as the loop ends */
	bool          gives;     /* a reference of the promise, by its loop's thread */
};

/* Returns 0, WEFT_EALREADY; in either case what is given is taken. */
int weft__promise_settle(weft_promise *promise, const struct weft__settling *how);

/* Reject with an error, of which weft_detail() speaks. */
int weft__promise_fail(weft_promise *promise, int error);

/* Add a reaction, if it is pending; false: it is not, and there is nothing added.
 * Somebody cares for it in any case. */
bool weft__promise_react(weft_promise *promise, struct weft__reaction *reaction);

/* The same, and whether anybody cares is not changed. */
bool weft__promise_add(weft_promise *promise, struct weft__reaction *reaction);

/* Somebody cares for how it has ended: it has settled, as the caller knows.  Of a value there
 * is nothing to report. */
void weft__promise_care_late(weft_promise *promise);

static inline void
weft__promise_care(weft_promise *promise)
{
	if (weft__promise_outcome(promise) == WEFT_REJECTED
	    && weft__load(&promise->care, WEFT__RELAXED) != WEFT__CARED)
		weft__promise_care_late(promise);
}

/* The same for how it will end.  Inside, where nothing was reported yet, and what is written
 * comes before that: invariant 4 of promise.c. */
static inline void
weft__promise_care_inside(weft_promise *promise)
{
	if (weft__load(&promise->care, WEFT__RELAXED) != WEFT__CARED)
		weft__store(&promise->care, WEFT__CARED, WEFT__RELAXED);
}

/* Report that it was rejected and nobody cares, unless somebody does. */
void weft__promise_report(weft_promise *promise);

/* Let weft_detail() speak of its rejection; returns the error of that. */
int weft__promise_error(const weft_promise *promise);

/* Call the reactions of a landed promise, whose reference is taken. */
void weft__promise_run(void *promise);

/* The loop learns that it has settled. */
void weft__promise_land(weft_promise *promise);

/* It does not travel any more; true if it was settled meanwhile, and has to land. */
bool weft__promise_end_travel(weft_promise *promise);

/* Take a reference unless none is left, under a lock that keeps the memory. */
bool weft__promise_try_ref(weft_promise *promise);

/* --- then.c ------------------------------------------------------------- */

/* Have `promise` settle as `other` does, and by nobody else who is not a follower;
 * WEFT_EALREADY if it cannot. */
int weft__promise_follow(weft_promise *promise, weft_promise *other);

/* --- abort.c ------------------------------------------------------------ */

/* It has a timer, so that only its loop's thread can end it. */
bool weft__abort_is_tied(const weft_promise *promise);

/* A signal is freed: let go of all that it listens to. */
void weft__abort_end(weft_promise *promise);

/* --- make.c ------------------------------------------------------------- */

/* On the loop: give the op of a promise that has one a reference, if it goes on and has
 * none; true if it has got one now. */
bool weft__promise_op_keeps(weft_promise *promise);

#endif
