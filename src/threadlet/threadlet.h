/* threadlet.h - threadlets, as the files of this layer share them.  Private.
 *
 * The files: stack.c (memory), handle.c (numbers), crew.c (the threadlets of a loop, and
 * who runs next), wait.c (how one waits and is woken), go.c (from start to end),
 * scope.c, cancel.c, call.c (what a threadlet can wait for by itself), look.c (what
 * others can see of it), dump.c and rest.c (the same as text), trace.c, deadlock.c and
 * overflow.c.
 *
 * Needs: loop, base.  Thread: the loop's, unless a comment says otherwise.
 */
#ifndef WEFT_THREADLET_THREADLET_H
#define WEFT_THREADLET_THREADLET_H

#include <weft/scope.h>
#include <weft/threadlet.h>
#include "base/text.h"
#include "loop/loop.h"
#include "threadlet/handle.h"
#include "threadlet/stack.h"
#include "threadlet/switch/switch.h"

struct weft__waiter;

/* One wait: on the stack of whoever waits, for as long as it lasts.
 *
 *   1. A wait is ended by whoever claims its waiter first: a value, a deadline, a
 *      cancellation.  Nobody else touches it then.
 *   2. The claim is a plain word while only the loop's own thread can make it, and a
 *      compare-exchange where others can (`shared`).  It orders nothing: what is in the
 *      waiter is ordered by the gate in whose queue it stands, and by the wake.
 *   3. Who has claimed it may write into the waiter's memory until it wakes it. */
struct weft__waiter {
	struct weft__threadlet *threadlet; /* NULL: a plain thread */
	const char *what;      /* for the dump: "chan", "mutex", ... */
	int64_t     on;        /* the fd, threadlet or address */
	/* Asked to end early: see that a wake follows.  NULL: it can end at once. */
	void      (*ask)(struct weft__waiter *waiter, int why);
	int64_t     result;
	struct weft__wait *chosen; /* the one that ended it, or NULL */
	weft__a32   claim;     /* 1: claimed */
	bool        sleeps;    /* the deadline is what it waits for */
	bool        deaf;      /* cannot be asked: not cancellable */
	bool        shared;    /* others than the loop's thread can end it */
};

/* A place in the queue of what is waited for. */
struct weft__wait {
	struct weft__wait   *next, *prev;
	struct weft__waits  *queue; /* NULL: in none */
	struct weft__waiter *waiter;
	void                *value; /* to copy from or into */
};

/* What else ends a scope, of the layer above; cut as the scope is closed. */
struct weft__scope_tie {
	void (*cut)(struct weft__scope_tie *tie);
	int  (*check)(const struct weft__scope_tie *tie); /* 0, or why the scope ends */
};

/* What a scope is; the public struct only points here, since it may lie in a frame that
 * is gone while threadlets of the scope still run. */
struct weft__scope {
	struct weft__scope     *outer;  /* of the same threadlet; next: while free */
	struct weft__threadlet *owner;
	weft_scope             *public; /* NULL: its frame is gone */
	struct weft__handle    *live;
	struct weft__handle    *ended, *ended_last; /* oldest first */
	uint32_t live_count, ended_count;
	uint32_t flags;
	int      why;                   /* what every wait inside returns, or 0 */
	int      error;
	char    *text;                  /* of the error, or NULL */
	struct weft__waiter    *closer; /* the owner, as it waits for the last */
	struct weft__scope_tie *tie;    /* or NULL */
	struct weft__place      place;  /* of its deadline */
};

/* At the top of its stack. */
struct weft__threadlet {
	struct weft__failure    failure; /* the first; see thread.h */
	/* What every wait and wake touches stands in two cache lines. */
	struct weft__threadlet *next; /* ready to run */
	struct weft__crew      *crew;
	struct weft__waiter    *waiter;   /* of the present wait, or NULL */
	uint64_t                since_ns; /* of the present wait, or of being ready */
	struct weft__context    context;
	struct weft__place      place;    /* of the deadline of the present wait */
	union {
		struct {
			int    why;         /* what every wait returns now, or 0 */
			int    base_why;    /* the same outside of its scopes */
			bool   interrupted;
			bool   closing;     /* its function has returned: shielded */
			bool   was_told;    /* to end, before its function returned */
			bool   locals_ended;
			int    saved_errno;
			void  *exceptions[2]; /* of C++: caught now, and flying */
		};
		uint64_t zero[4]; /* all of it, at the start */
	};
	struct weft__handle    *handle;
	struct weft__stack     *stack;
	weft_threadlet_fn       fn;
	void                   *arg;
	struct weft__scope     *scope;    /* innermost of its own, or NULL */
	struct weft__node      *cleanups; /* last first */
	struct weft__locals    *locals;
	struct weft__threadlet *older, *newer; /* of the crew */
	int         result;
	bool        background;
	struct weft__threadlet *told; /* next to be told of a cancellation */
	struct weft__node node; /* by which it goes to another loop */
	uint64_t    seq;       /* of its arrival in the crew, from 1 */
	const void *spawned_at;
	char        name[32];
	/* Of trace.c. */
	uint64_t    trace_mark;
	uint64_t    trace_ns;   /* when it last came or left */
	const char *trace_what; /* why it left */
} __attribute__((aligned(64)));

#define weft__place_threadlet(p) \
	((struct weft__threadlet *)(void *)((char *)(p) - offsetof(struct weft__threadlet, place)))
#define weft__place_scope(p) \
	((struct weft__scope *)(void *)((char *)(p) - offsetof(struct weft__scope, place)))

/* The threadlets of a loop. */
struct weft__crew {
	weft_loop              *loop;
	uint32_t                streak;  /* calls in a row that did not suspend */
	const void             *site;    /* to which the last to wait at a local channel */
	                                 /* returns: see gate.h */
	struct weft__threadlet *dead;    /* its stack is still to be given back */
	struct weft__context    context; /* of the thread that runs the loop, */
	uint64_t                modes;   /* and those of it with which functions begin */
	struct weft__thread    *thread;  /* that it is of, or NULL */
	int                    *error;   /* its errno, */
	void                  **exceptions; /* and its exceptions, or NULL */
	weft__a64               coming;  /* started by others, and not here yet */
	struct weft__threadlet *newest;
	struct weft__threadlet *mark;    /* where the last look goes on, or NULL */
	struct weft__threadlet *witness; /* of deadlock.c, or NULL */
	uint64_t                stuck_at; /* calls made when that was reported, plus 1 */
	bool                    fed;     /* it has gone on after that */
	uint64_t                seq;     /* of the newest */
	struct weft__stacks     stacks;
	struct weft__handles    handles;
	struct weft__requests   asked;   /* by other threads */
	struct weft__scope     *scopes;  /* free ones */
	uint32_t                max;
	int                     class;   /* of its stacks, by default */
};

/* The calling threadlet, or NULL. */
static inline struct weft__threadlet *
weft__self(void)
{
	const struct weft__thread *thread = weft__thread_here();

	return thread ? thread->threadlet : NULL;
}

/* The loop of the calling threadlet.  By its thread, and not by itself: a switch has the
 * processor wait until it knows who runs, and so would all that is found by way of that. */
static inline weft_loop *
weft__loop_here(void)
{
	return weft__thread_here()->loop;
}

/* Its number; 0 while it ends.  Also for signal handlers. */
static inline int64_t
weft__threadlet_id(const struct weft__threadlet *t)
{
	const struct weft__handle *handle = t->handle;

	return handle ? (int64_t)weft__load(&handle->id, WEFT__RELAXED) : 0;
}

/* --- crew.c ------------------------------------------------------------- */

/* The crew of a loop, made at first need; NULL without memory.  Thread: any. */
WEFT__SELDOM struct weft__crew *weft__crew_make(weft_loop *loop);

static inline struct weft__crew *
weft__crew_of(weft_loop *loop)
{
	uintptr_t crew = weft__load(&loop->crew, WEFT__ACQUIRE);

	return crew ? (struct weft__crew *)crew : weft__crew_make(loop);
}

/* Send an internal node to a loop that exists; it runs fn(arg), which has to count
 * itself in own_run.  Thread: any. */
void weft__loop_tell(weft_loop *loop, struct weft__node_head *node, weft_fn fn,
                     void *arg);

/* It can run, after all that can; on that loop, which is its own. */
static inline void
weft__make_ready(weft_loop *loop, struct weft__threadlet *threadlet)
{
	struct weft__run_queue *ready = &loop->ready;

	threadlet->next = NULL;
	if (ready->first)
		ready->last->next = threadlet;
	else
		ready->first = threadlet;
	ready->last = threadlet;
}

/* Go on with whoever is next, until this one is made ready and its turn has come. */
void weft__leave(struct weft__threadlet *self);

/* It is dead: who is to go on. */
struct weft__context *weft__leave_for_ever(struct weft__threadlet *self);

/* Where a threadlet begins; what it finds there is in place. */
void weft__arrive(struct weft__threadlet *self);

/* --- wait.c ------------------------------------------------------------- */

/* May the caller suspend?  0, or the error that its call returns. */
int weft__may_wait(uint64_t deadline_ns);

/* What weft_detail() says of a wait for `what` that ended with `error`; and let the waiter's
 * threadlet say so. */
WEFT__SELDOM const char *weft__wait_text(const char *what, int error);
WEFT__SELDOM void weft__wait_failed(const struct weft__waiter *waiter, int error);

/* Arm the deadline of the wait that has just begun, or move it. */
void weft__wait_until(struct weft__threadlet *self, uint64_t deadline_ns);

/* Suspend until woken; the deadline wakes, too. */
static inline int64_t
weft__wait_as(struct weft__threadlet *self, struct weft__waiter *waiter,
              uint64_t deadline_ns)
{
	self->waiter = waiter;
	if (deadline_ns != WEFT_NEVER)
		weft__wait_until(self, deadline_ns);
	weft__leave(self);
	if (waiter->result == WEFT_EINTR)
		self->interrupted = false;
	return waiter->result;
}

static inline int64_t
weft__wait(struct weft__waiter *waiter, uint64_t deadline_ns)
{
	struct weft__threadlet *self = weft__self();

	if (!waiter->shared) /* else others may look at it already */
		waiter->threadlet = self;
	return weft__wait_as(self, waiter, deadline_ns);
}

/* Let all that can run go first, and the loop when it is its turn.  Returns 0: what ends
 * with this call need not save anything for it. */
__attribute__((noinline)) int weft__give_way(struct weft__threadlet *self);

/* A call has not suspended: it does when too many in a row have not.  Returns 0. */
static inline int
weft__stayed(struct weft__threadlet *self)
{
	return self && ++self->crew->streak >= 64 ? weft__give_way(self) : 0;
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

/* End the wait of a waiter that the caller has claimed, on its loop's thread. */
static inline void
weft__wake_on(weft_loop *loop, struct weft__waiter *waiter, int64_t result)
{
	struct weft__threadlet *threadlet = waiter->threadlet;

	waiter->result = result;
	if (__builtin_expect(result < 0, 0))
		weft__wait_failed(waiter, (int)result);
	threadlet->waiter = NULL;
	if (__builtin_expect(threadlet->place.block != NULL, 0))
		(void)weft__wheel_drop(&loop->wheel, &threadlet->place);
	weft__make_ready(loop, threadlet);
}

static inline void
weft__wake(struct weft__waiter *waiter, int64_t result)
{
	weft__wake_on(waiter->threadlet->crew->loop, waiter, result);
}

/* Ask the present wait of a threadlet, if there is one, to end early. */
void weft__ask(struct weft__threadlet *threadlet, int why);

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

/* The first of a queue that has one, taken out. */
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

/* Take the first whose waiter can be claimed, and claim it; or NULL. */
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

/* A deadline of a threadlet or of a scope has come. */
void weft__crew_expire(weft_loop *loop, struct weft__place *place);

/* Wait for a started op of the caller's loop, whose on_done is weft__op_waited and arg
 * the waiter. */
void weft__op_waited(weft_op *op, int64_t result, void *arg);

/* --- go.c --------------------------------------------------------------- */

/* What is to be started. */
struct weft__start {
	const weft_go_opts *opts;
	weft_scope         *scope; /* where it is joined, or NULL */
	weft_threadlet_fn   fn;
	void               *arg;
	const void         *from; /* where it was called */
};

/* Start it on that loop. */
weft_threadlet weft__go_on(weft_loop *loop, const struct weft__start *start);

/* What a forked child forgets of its parent's runtimes; in runtime/. */
void weft__runtimes_forked(void);

/* Start it where there is least to do: in runtime/, which knows of more than one loop. */
weft_threadlet weft__go_place(const struct weft__start *start);

/* A dead one: give its stack back, or send word of it to the loop of its scope. */
void weft__threadlet_bury(struct weft__crew *crew, struct weft__threadlet *dead);

/* --- cancel.c ----------------------------------------------------------- */

/* Every wait of a threadlet, or of a scope and all inside, returns `why` from now on. */
void weft__threadlet_end(struct weft__threadlet *threadlet, int why);
void weft__scope_end(struct weft__scope *scope, int why);
void weft__on_asked(void *crew);

/* Look whether it has to end, as the loop would in a turn: 0, or what its waits return. */
int weft__threadlet_look(struct weft__threadlet *self);

/* --- scope.c ------------------------------------------------------------ */

/* The open scope, if it is of the loop that runs here; or NULL. */
struct weft__scope *weft__scope_here(const weft_scope *scope);

/* Add a child, whose handle is not shown yet; take it back; and its end, which takes the
 * handle. */
static inline void
weft__scope_add(struct weft__scope *scope, struct weft__handle *handle)
{
	struct weft__handle *next = scope->live;

	handle->scope = scope;
	weft__store(&handle->home, (uintptr_t)scope->owner->crew, WEFT__RELAXED);
	handle->prev = NULL;
	handle->next = next;
	if (next)
		next->prev = handle;
	scope->live = handle;
	scope->live_count++;
}
void weft__scope_remove(struct weft__handle *handle);
void weft__scope_child_ended(struct weft__handle *handle, int result, bool told);

/* The same for the last child of a scope that closes, as most do: nobody is left to join
 * it, and it takes its handle along.  false: that is not so. */
static inline bool
weft__scope_ends_with(struct weft__scope *scope, struct weft__handle *handle, int result)
{
	struct weft__waiter *closer = scope->closer;

	if (result < 0 || !closer || scope->live_count != 1 || handle->joiners.first)
		return false;
	scope->live = NULL;
	scope->live_count = 0;
	weft__handle_give(&scope->owner->crew->handles, handle);
	if (weft__claim(closer))
		weft__wake_on(weft__loop_here(), closer, 0);
	return true;
}

/* The scope that a public one stands for, or NULL: not open. */
static inline struct weft__scope *
weft__scope_of(const weft_scope *public)
{
	struct weft__scope *scope =
		public ? (struct weft__scope *)(uintptr_t)public->opaque[0] : NULL;

	return scope && scope->public == public ? scope : NULL;
}

/* Wait for the end of a threadlet of this loop that has not ended; for select. */
void weft__join_push(weft_threadlet id, struct weft__wait *wait);

/* Close what its function has left open.  0, or the first failure there. */
int weft__scopes_close(struct weft__threadlet *self);

/* --- look.c, dump.c ----------------------------------------------------- */

/* Answer those who have asked to see the threadlets of this loop. */
void weft__crew_look(weft_loop *loop);

/* Fill in what is to be seen of one, which is suspended or calls this itself. */
void weft__threadlet_describe(const struct weft__threadlet *t, weft_threadlet_info *out);

/* Its name; else that of its function. */
void weft__add_name(struct weft__text *text, const weft_threadlet_info *info);

/* One block of text about a threadlet; about all that fit. */
void weft__add_threadlet(struct weft__text *text, const weft_threadlet_info *info,
                         uint64_t now_ns);
void weft__add_crew(struct weft__text *text, const struct weft__crew *crew);

/* The same of a loop that has not stopped in time, in one line; of rest.c. */
void weft__crew_add_rest(weft_loop *loop, struct weft__text *text);

/* What a waiter waits for, in a word; static. */
const char *weft__waiter_what(const struct weft__waiter *waiter);

/* --- deadlock.c --------------------------------------------------------- */

/* Does each threadlet of this loop of a runtime, all of which sleep, wait for another one of
 * the runtime?  Adds those that keep a run going to `alive`. */
bool weft__crew_is_stuck(weft_loop *loop, uint64_t *alive);

/* Are there threads that may use shared objects, besides the loops of the runtime?  In
 * runtime/. */
bool weft__runtime_is_fed(struct weft_runtime *runtime);

/* --- trace.c ------------------------------------------------------------- */

uint64_t weft__threadlet_trace_mark(struct weft__threadlet *threadlet);

/* In a turn that is recorded: one is about to run; it has suspended, or is dead. */
void weft__trace_come(struct weft__threadlet *threadlet);
void weft__trace_leave(struct weft__threadlet *threadlet, bool dead);

/* One is started; by any thread, before it is shown. */
void weft__trace_start(struct weft__threadlet *threadlet);

/* --- deadlock.c --------------------------------------------------------- */

/* The loop is about to sleep for ever: report it if nobody can end that. */
void weft__crew_check(weft_loop *loop);

/* --- overflow.c --------------------------------------------------------- */

extern weft__a32 weft__overflow_is_caught; /* 1: by weft_catch_overflow() */

/* Catch overflows, unless the program has a handler for faults. */
void weft__overflow_catch_unasked(void);

/* This thread is to run threadlets: be ready for an overflow. */
void weft__overflow_prepare(struct weft__thread *self);

/* --- layout.c ----------------------------------------------------------- */

struct weft__gdb_place {
	char      name[24];
	uintptr_t value;
};

extern const struct weft__gdb_place weft_gdb_layout[];

/* --- call.c, local.c ---------------------------------------------------- */

/* The op that a waiter is for, or NULL. */
const struct weft__op *weft__waiter_op(const struct weft__waiter *waiter);

/* Prepare an op that the calling threadlet will wait for.  Wait for it, just started, by a
 * threadlet that may wait; and by one that may not, whatever happens. */
void    weft__op_init_waited(weft_op *op);
int64_t weft__op_wait(weft_op *op, const char *what);
int64_t weft__op_wait_shielded(weft_op *op, const char *what);

/* What pool work that runs on this thread was asked to end with, or 0; in work/. */
int weft__work_canceled(void);

void weft__threadlet_end_locals(struct weft__threadlet *self);

#endif
