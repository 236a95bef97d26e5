/* threadlet.h - threadlets, as the files of this layer share them.  Private.
 *
 * The files: stack.c (memory), handle.c (IDs), sched.c (the threadlet scheduler of a loop),
 * wait.c (suspending and waking), go.c (start and end of a threadlet), scope.c, cancel.c,
 * call.c (yield, sleep, waiting for descriptors and ops), threadlet_list.c (listing threadlets),
 * dump.c and unfinished.c (the listing as text), threadlet_trace.c, deadlock.c, overflow.c and
 * layout.c (for debuggers).  Locks, channels and similar objects: waitable.h.
 *
 * Needs: loop, base.  Thread: the loop's, unless a comment says otherwise.
 */
#ifndef WEFT_THREADLET_THREADLET_H
#define WEFT_THREADLET_THREADLET_H

#include <weft/debug.h>
#include <weft/scope.h>
#include <weft/threadlet.h>
#include "base/build.h"
#include "base/text.h"
#include "loop/core/access.h"
#include "threadlet/handle.h"
#include "threadlet/stack.h"
#include "base/switch/switch.h"

struct weft__waiter;

/* One wait.  It is on the stack of the waiting threadlet or thread until the wait ends.
 *
 *   1. A value, a deadline, a cancellation or an interrupt can end a wait.  The first of them to
 *      claim the waiter ends the wait; the others must not touch the waiter.
 *   2. If only the loop's own thread can claim the waiter, the claim is a plain word.  If other
 *      threads can (`shared`), it is a compare-exchange.  The claim orders no memory: the
 *      waitable whose queue holds the waiter, and the wake, order the waiter's contents.
 *   3. The claimer may write to the waiter's memory until it wakes the waiter. */
struct weft__waiter {
	struct weft__threadlet *threadlet; /* NULL: a plain thread */
	const char *what;      /* for the dump: "chan", "mutex", ... */
	int64_t     on;        /* the fd, threadlet or address */
	/* Requests an early end of the wait; a wake must follow, at once or later.  NULL: the
	 * request claims and wakes the waiter itself. */
	void      (*request_end)(struct weft__waiter *waiter, int why);
	int64_t     result;
	struct weft__wait *chosen; /* the queue entry that ended the wait, or NULL */
	weft__a32   claim;     /* 1: claimed */
	bool        sleeps;    /* reaching the deadline is success */
	bool        deaf;      /* cannot be ended early: not cancelable */
	bool        shared;    /* threads other than the loop's can end it */
};

/* An entry in a queue of waiters. */
struct weft__wait {
	struct weft__wait   *next, *prev;
	struct weft__waits  *queue; /* NULL: in no queue */
	struct weft__waiter *waiter;
	void                *value; /* source or destination of the value */
};

/* By this an abort signal (promise/abort.c) ends a scope.  The scope calls cut() as it closes. */
struct weft__scope_tie {
	void (*cut)(struct weft__scope_tie *tie);
	int  (*check)(const struct weft__scope_tie *tie); /* 0, or the scope's new error */
};

/* A scope.  The public struct only points here, because it may be in a stack frame that is gone
 * while threadlets of the scope still run. */
struct weft__scope {
	struct weft__scope     *outer;  /* of the same threadlet; link of the free list */
	struct weft__threadlet *owner;
	weft_scope             *handle; /* NULL: its frame is gone */
	struct weft__handle    *live;
	struct weft__handle    *ended, *ended_last; /* oldest first */
	uint32_t live_count, ended_count;
	uint32_t flags;
	int      why;                   /* the error that every wait inside returns, or 0 */
	int      error;
	char    *text;                  /* of `error`, or NULL */
	struct weft__waiter    *closer; /* the owner, while it waits for the children */
	struct weft__scope_tie *tie;    /* or NULL */
	struct weft__wheel_entry entry; /* of its deadline */
};

/* A threadlet.  This struct is at the top of the threadlet's stack. */
struct weft__threadlet {
	struct weft__failure    failure; /* must be first; see thread.h */
	/* The members that every wait and wake touches are in two cache lines. */
	struct weft__threadlet *next; /* in the queue of ready threadlets */
	struct weft__sched      *sched;
	struct weft__waiter    *waiter;   /* of the current wait, or NULL */
	uint64_t                since_ns; /* when it last suspended, or was started */
	struct weft__context    context;
	struct weft__wheel_entry entry; /* of the current wait's deadline */
	union {
		struct {
			int    why;         /* the error that every wait returns now, or 0 */
			int    base_why;    /* the same outside of its scopes */
			bool   interrupted;
			bool   closing;     /* its function has returned; now shielded */
			bool   was_canceled; /* canceled before its function returned */
			int    saved_errno;
			void  *exceptions[2]; /* of C++: caught, and in flight */
		};
		uint64_t zero[4]; /* clears the struct above, at the start */
	};
	struct weft__handle    *handle;
	struct weft__stack     *stack;
	weft_threadlet_fn       fn;
	void                   *arg;
	struct weft__scope     *scope;    /* its innermost scope, or NULL */
	struct weft__node      *cleanups; /* last pushed first */
	struct weft__threadlet *older, *newer; /* in the scheduler's list */
	int         result;
	bool        background;
	struct weft__threadlet *next_canceled; /* in the list of a cancellation: cancel.c */
	struct weft__node node; /* carries it to another loop */
	uint64_t    seq;       /* order of arrival in the scheduler, from 1 */
	const void *spawned_at;
	char        name[32];
	/* Used by threadlet_trace.c. */
	uint64_t    trace_mark;
	uint64_t    trace_ns;   /* when it was last resumed or suspended */
	const char *trace_what; /* why it suspended */
} __attribute__((aligned(64)));

#define weft__entry_threadlet(p) \
	((struct weft__threadlet *)(void *)((char *)(p) - offsetof(struct weft__threadlet, entry)))
#define weft__entry_scope(p) \
	((struct weft__scope *)(void *)((char *)(p) - offsetof(struct weft__scope, entry)))

/* The threadlet scheduler of a loop. */
struct weft__sched {
	struct weft__part       part; /* first */
	weft_loop              *loop;
	uint32_t                streak;  /* calls in a row that did not suspend */
	const void             *site;    /* return address of the last wait at a local */
	                                 /* channel: see waitable.h */
	struct weft__threadlet *dead;    /* its stack is not given back yet */
	struct weft__context    context; /* of the thread that runs the loop */
	uint64_t                modes;   /* floating-point modes of new threadlets */
	struct weft__thread    *thread;  /* that runs the loop, or NULL */
	int                    *error;   /* that thread's errno, */
	void                  **exceptions; /* and its C++ exceptions, or NULL */
	weft__a64               starting;  /* started by other threads, not yet arrived */
	struct weft__threadlet *newest;
	struct weft__threadlet *mark;    /* where the last listing continues, or NULL */
	struct weft__threadlet *witness; /* see deadlock.c; or NULL */
	uint64_t                stuck_at; /* switches counted at the deadlock report, plus 1; */
	                                  /* 0: no report */
	bool                    woken_by_posts; /* a threadlet has run after that report */
	uint64_t                seq;     /* of the newest threadlet */
	struct weft__stacks     stacks;
	struct weft__handles    handles;
	struct weft__mailbox    requests; /* of other threads */
	struct weft__scope     *scopes;  /* free list */
	uint32_t                max;
	int                     size_class;   /* default class of its stacks */
};

/* The calling threadlet, or NULL. */
static inline struct weft__threadlet *
weft__self(void)
{
	const struct weft__thread *thread = weft__thread_here();

	return thread ? thread->threadlet : NULL;
}

/* The loop of the calling threadlet.  Read from the thread, not from the threadlet: after a
 * switch the CPU still waits for the pointer to the running threadlet, and every load through
 * that pointer would wait, too. */
static inline weft_loop *
weft__loop_here(void)
{
	return weft__thread_here()->loop;
}

/* The ID of a threadlet; 0 while it ends.  Safe in signal handlers. */
static inline int64_t
weft__threadlet_id(const struct weft__threadlet *t)
{
	const struct weft__handle *handle = t->handle;

	return handle ? (int64_t)weft__load(&handle->id, WEFT__RELAXED) : 0;
}

/* --- sched.c ------------------------------------------------------------- */

/* In a forked child: forget the parent's threadlets.  A fork handler. */
void weft__threadlets_forked(void);

/* Make the scheduler of a loop, unless another thread was first.  Returns the loop's scheduler;
 * NULL without memory.  Thread: any. */
WEFT__COLD struct weft__sched *weft__sched_make(weft_loop *loop);

/* The scheduler of a loop; NULL if it has none yet. */
static inline struct weft__sched *
weft__sched_at(const weft_loop *loop)
{
	return (struct weft__sched *)(void *)weft__loop_part(loop, WEFT__PART_SCHED);
}

/* The scheduler of a loop, made on first use; NULL without memory. */
static inline struct weft__sched *
weft__sched_of(weft_loop *loop)
{
	struct weft__sched *sched = weft__sched_at(loop);

	return sched ? sched : weft__sched_make(loop);
}

/* Append a threadlet to the ready queue of `loop`, which is its own loop. */
static inline void
weft__make_ready(weft_loop *loop, struct weft__threadlet *threadlet)
{
	struct weft__run_queue *ready = weft__loop_ready(loop);

	threadlet->next = NULL;
	if (ready->first)
		ready->last->next = threadlet;
	else
		ready->first = threadlet;
	ready->last = threadlet;
}

/* Switch away from `self`.  Returns once it has been made ready and scheduled again. */
void weft__switch_out(struct weft__threadlet *self);

/* `self` is dead.  Returns the context to continue with. */
struct weft__context *weft__switch_out_dead(struct weft__threadlet *self);

/* First call on a new threadlet's stack: completes the switch to it. */
void weft__switch_in(struct weft__threadlet *self);

/* --- wait.c -------------------------------------------------------------- */

/* May the caller suspend?  Returns 0, or the error that the caller's call returns. */
WEFT__SHARED int weft__may_wait(uint64_t deadline_ns);

/* The same, with the call named in the text of an error. */
WEFT__SHARED WEFT__COLD int weft__wait_refused(int error, const char *call);

static inline int
weft__may_wait_in(uint64_t deadline_ns, const char *call)
{
	int rc = weft__may_wait(deadline_ns);

	return __builtin_expect(rc < 0, 0) ? weft__wait_refused(rc, call) : rc;
}

/* The text for weft_detail() about a wait for `what` that ended with `error`.  The second sets
 * it as the failure of the waiter's threadlet. */
WEFT__COLD const char *weft__wait_text(const char *what, int error);
WEFT__COLD void weft__wait_failed(const struct weft__waiter *waiter, int error);

/* Arm the deadline of the wait that has just begun, or move it. */
void weft__wait_until(struct weft__threadlet *self, uint64_t deadline_ns);

/* Suspend until woken.  The deadline wakes, too. */
static inline int64_t
weft__wait_as(struct weft__threadlet *self, struct weft__waiter *waiter,
              uint64_t deadline_ns)
{
	self->waiter = waiter;
	if (deadline_ns != WEFT_NEVER)
		weft__wait_until(self, deadline_ns);
	weft__switch_out(self);
	if (waiter->result == WEFT_EINTR)
		self->interrupted = false;
	return waiter->result;
}

static inline int64_t
weft__wait(struct weft__waiter *waiter, uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__self();

	if (!waiter->shared) /* else other threads may read it already */
		waiter->threadlet = self;
	return weft__wait_as(self, waiter, deadline_ns);
}

/* Go to the end of the ready queue: all ready threadlets run first, and the rest of the loop if
 * this phase ends before.  Returns 0, so that the call can be a tail call. */
__attribute__((noinline)) int weft__yield(struct weft__threadlet *self);

/* For a call that did not suspend: yields if too many calls in a row have not
 * suspended.  Returns 0. */
static inline int
weft__maybe_yield(struct weft__threadlet *self)
{
	return self && ++self->sched->streak >= 64 ? weft__yield(self) : 0;
}

static inline bool
weft__claim(struct weft__waiter *waiter)
{
	uint32_t none = 0;

	if (waiter->shared)
		return weft__cas(&waiter->claim, &none, 1, WEFT__RELAXED);
	if (weft__load(&waiter->claim, WEFT__RELAXED))
		return false;
	weft__store(&waiter->claim, 1, WEFT__RELAXED);
	return true;
}

/* End the wait of a waiter that the caller has claimed, on the thread of its loop. */
static inline void
weft__wake_on(weft_loop *loop, struct weft__waiter *waiter, int64_t result)
{
	struct weft__threadlet *threadlet = waiter->threadlet;

	waiter->result = result;
	if (__builtin_expect(result < 0, 0))
		weft__wait_failed(waiter, (int)result);
	threadlet->waiter = NULL;
	if (__builtin_expect(threadlet->entry.block != NULL, 0))
		(void)weft__wheel_drop(weft__loop_wheel(loop), &threadlet->entry);
	weft__make_ready(loop, threadlet);
}

static inline void
weft__wake(struct weft__waiter *waiter, int64_t result)
{
	weft__wake_on(waiter->threadlet->sched->loop, waiter, result);
}

/* Request that the current wait of a threadlet, if any, end early. */
void weft__request_end(struct weft__threadlet *threadlet, int why);

/* Queues of waits. */
static inline void
weft__wait_push(struct weft__waits *queue, struct weft__wait *wait)
{
	struct weft__wait *last = weft__get(queue->last);

	weft__put(wait->next, NULL);
	weft__put(wait->prev, last);
	weft__put(wait->queue, queue);
	if (last)
		weft__put(last->next, wait);
	else
		weft__put(queue->first, wait);
	weft__put(queue->last, wait);
}

void weft__wait_drop(struct weft__wait *wait); /* if it is in a queue */

/* Remove the first entry of a queue that is not empty. */
static inline struct weft__wait *
weft__wait_pop(struct weft__waits *queue)
{
	struct weft__wait *wait = weft__get(queue->first), *next = weft__get(wait->next);

	weft__put(queue->first, next);
	if (next)
		weft__put(next->prev, NULL);
	else
		weft__put(queue->last, NULL);
	weft__put(wait->queue, NULL);
	return wait;
}

/* Remove entries until the waiter of one can be claimed.  Returns that entry, with the waiter
 * claimed; NULL if there is none. */
static inline struct weft__wait *
weft__wait_claim(struct weft__waits *queue)
{
	while (weft__get(queue->first)) {
		struct weft__wait *wait = weft__wait_pop(queue);

		if (weft__claim(wait->waiter)) {
			weft__put(wait->waiter->chosen, wait);
			return wait;
		}
	}
	return NULL;
}

/* The deadline of a threadlet or of a scope has passed. */
void weft__sched_expire(weft_loop *loop, struct weft__wheel_entry *entry);

/* The on_done of an op that a threadlet of the op's loop waits for; `arg` is the waiter. */
void weft__op_waited(weft_op *op, int64_t result, void *arg);

/* --- go.c ---------------------------------------------------------------- */

/* The threadlet to start. */
struct weft__start {
	const weft_go_opts *opts;
	weft_scope         *scope; /* that joins it, or NULL */
	weft_threadlet_fn   fn;
	void               *arg;
	const void         *from; /* return address of the call */
};

/* Start a threadlet on `loop`. */
WEFT__SHARED weft_threadlet weft__go_on(weft_loop *loop, const struct weft__start *start);

/* Starts a threadlet for a thread without a loop: on the first started runtime that is not
 * stopping.  A weft__go_fn, or 0 before any runtime was started. */
typedef weft_threadlet (*weft__go_fn)(const struct weft__start *start);
extern weft__aptr weft__go_anywhere;

/* Reap a dead threadlet: give its stack back, or send the threadlet, with the stack, to the loop
 * of its scope. */
void weft__threadlet_reap(struct weft__sched *sched, struct weft__threadlet *dead);

/* --- cancel.c ------------------------------------------------------------ */

/* Every wait of a threadlet, or of a scope and all inside it, returns `why` from now on; except
 * in shielded scopes, and where an earlier reason applies: see cancel.c. */
void weft__threadlet_end(struct weft__threadlet *threadlet, int why);
void weft__scope_end(struct weft__scope *scope, int why);

/* The mailbox of a scheduler has a letter: another thread cancels or interrupts a threadlet. */
void weft__on_request(struct weft__mailbox *box, struct weft__letter *letter);

/* Check whether `self` has to end, as the loop would in an iteration.  Returns 0, or the error
 * that its waits return. */
int weft__threadlet_recheck(struct weft__threadlet *self);

/* --- scope.c ------------------------------------------------------------- */

/* The open scope, if it belongs to the loop that runs here; or NULL. */
struct weft__scope *weft__scope_here(const weft_scope *scope);

/* Add a child whose ID is not published yet; undo that; record the child's end, which
 * takes the handle. */
static inline void
weft__scope_add(struct weft__scope *scope, struct weft__handle *handle)
{
	struct weft__handle *next = scope->live;

	handle->scope = scope;
	weft__store(&handle->scope_sched, (uintptr_t)scope->owner->sched, WEFT__RELAXED);
	handle->prev = NULL;
	handle->next = next;
	if (next)
		next->prev = handle;
	scope->live = handle;
	scope->live_count++;
}
void weft__scope_remove(struct weft__handle *handle);
void weft__scope_child_ended(struct weft__handle *handle, int result, bool canceled);

/* Like child_ended, for the usual case: the last child of a scope that is closing, which no
 * threadlet waits to join.  Its handle is given back at once.  Returns false in all other
 * cases, and does nothing. */
static inline bool
weft__scope_ends_with(struct weft__scope *scope, struct weft__handle *handle, int result)
{
	struct weft__waiter *closer = scope->closer;

	if (result < 0 || !closer || scope->live_count != 1 || handle->joiners.first)
		return false;
	scope->live = NULL;
	scope->live_count = 0;
	weft__handle_give(&scope->owner->sched->handles, handle);
	if (weft__claim(closer))
		weft__wake_on(weft__loop_here(), closer, 0);
	return true;
}

/* The scope behind a public one; NULL: not open. */
static inline struct weft__scope *
weft__scope_of(const weft_scope *handle)
{
	struct weft__scope *scope =
		handle ? (struct weft__scope *)(uintptr_t)handle->opaque[0] : NULL;

	return scope && scope->handle == handle ? scope : NULL;
}

/* Queue a wait for the end of a threadlet in a scope of this loop.  For select. */
void weft__join_push(weft_threadlet id, struct weft__wait *wait);

/* Close the scopes that a threadlet's function left open.  Returns 0, or the first failure. */
int weft__scopes_close(struct weft__threadlet *self);

/* --- threadlet_list.c, dump.c, unfinished.c ------------------------------ */

/* Answer the pending requests to list the threadlets of this loop. */
void weft__sched_answer_listings(weft_loop *loop);

/* Describe a threadlet that is suspended, or the caller itself. */
void weft__threadlet_describe(const struct weft__threadlet *t, weft_threadlet_info *out);

/* Add the name of a threadlet, or that of its function if it has none. */
void weft__add_name(struct weft__text *text, const weft_threadlet_info *info);

/* Add one block of text about a threadlet; about the threadlets of a scheduler, as many as
 * fit. */
void weft__add_threadlet(struct weft__text *text, const weft_threadlet_info *info,
                         uint64_t now_ns);
void weft__add_sched(struct weft__text *text, const struct weft__sched *sched);

/* Add one line about the threadlets of a loop that has not stopped in time.  In unfinished.c. */
void weft__sched_add_unfinished(weft_loop *loop, struct weft__text *text);

/* What a waiter waits for, as a short static text. */
const char *weft__waiter_what(const struct weft__waiter *waiter);

/* --- deadlock.c ---------------------------------------------------------- */

/* All loops of a runtime sleep: does each threadlet of this loop wait for another threadlet of
 * the runtime?  Adds the number of those that keep a run going to `alive`. */
bool weft__sched_is_stuck(weft_loop *loop, uint64_t *alive);

/* --- threadlet_trace.c --------------------------------------------------- */

uint64_t weft__threadlet_trace_mark(struct weft__threadlet *threadlet);

/* In a traced loop iteration: a threadlet is about to run; it has suspended, or is dead. */
void weft__trace_resume(struct weft__threadlet *threadlet);
void weft__trace_suspend(struct weft__threadlet *threadlet, bool dead);

/* A threadlet is started.  Called by any thread, before the ID is published. */
void weft__trace_start(struct weft__threadlet *threadlet);

/* --- deadlock.c ---------------------------------------------------------- */

/* The loop is about to sleep forever: report a deadlock if its threadlets cannot continue. */
void weft__sched_check(weft_loop *loop);

/* --- overflow.c ---------------------------------------------------------- */

extern weft__a32 weft__overflow_is_caught; /* 1: by weft_catch_overflow() */

/* Catch overflows, unless the program has a handler for faults. */
void weft__overflow_catch_unasked(void);

/* This thread is about to run threadlets: prepare it for an overflow. */
void weft__overflow_prepare(struct weft__thread *self);

/* --- layout.c ------------------------------------------------------------ */

struct weft__gdb_entry {
	char      name[24];
	uintptr_t value;
};

extern const struct weft__gdb_entry weft_gdb_layout[];

/* --- call.c, threadlet_list.c -------------------------------------------- */

/* The op that a waiter waits for, or NULL. */
const struct weft__op *weft__waiter_op(const struct weft__waiter *waiter);

/* weft__op_init_waited() prepares an op that the calling threadlet will wait for.
 * weft__op_wait() waits for an op just started; the caller has checked weft__may_wait().
 * weft__op_wait_shielded() waits in any case, and cannot be canceled. */
WEFT__SHARED void weft__op_init_waited(weft_op *op);
WEFT__SHARED int64_t weft__op_wait(weft_op *op, const char *what);
int64_t weft__op_wait_shielded(weft_op *op, const char *what);

/* List the threadlets of `loop`, as weft_threadlet_list() does. */
int weft__threadlet_list(weft_loop *loop, uint64_t *cursor, weft_threadlet_info *out, size_t max,
                         uint64_t deadline_ns);

/* Register a cleanup for the end of the calling threadlet, however it ends.  Once its function has
 * returned and its scopes are closed, the registered cleanups run, last to first, shielded from
 * cancellation. */
void weft__cleanup_push(struct weft__node *node);

#endif
