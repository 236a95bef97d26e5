/* loop.h - the loop, as the files of this layer share it.  Private.
 *
 * Needs: timer, base.  Thread: members say which.
 *
 * The files: new.c, life.c (run, start, stop, free), turn.c (what one turn does),
 * sleep.c (how it waits and is woken), hook.c and embed.c (for bindings, and for life
 * inside another loop), meter.c (what it writes down of itself), metrics.c (who reads
 * that) and observe.c (who asks for it), signal.c and process.c (what watches wait for
 * besides descriptors), local.c, trim.c, registry.c, watchdog.c, post.c, timer.c,
 * schedule.c, microtask.c.
 */
#ifndef WEFT_LOOP_LOOP_H
#define WEFT_LOOP_LOOP_H

#include <weft/loop.h>
#include "base/biased.h"
#include "base/lock.h"
#include "base/look.h"
#include "base/ring.h"
#include "backend/backend.h"
#include "base/thread.h"
#include "loop/inbox.h"
#include "loop/meter.h"
#include "loop/trace.h"
#include "timer/wheel.h"

#define WEFT__CALLS_MAX 1024u /* timers or immediates run in one turn */

/* What a popped place is part of; its tag. */
enum {
	WEFT__TAG_TIMER, /* weft_timer's zero */
	WEFT__TAG_NUMBER,
	WEFT__TAG_OP,
	WEFT__TAG_RESUME, /* of accepts that found no free descriptor */
	WEFT__TAG_THREADLET, /* the wait of one */
	WEFT__TAG_SCOPE,
	WEFT__TAG_KIND = 0xff,
	WEFT__TAG_FIRM = 0x200, /* of a timer of the library's: also as the loop stops */
	WEFT__TAG_DEADLINE = 0x400, /* what has arrived by then comes first; expire.c */
};

/* Timers and immediates by number; schedule.c. */
struct weft__numbers {
	struct weft__biased   lock;    /* of all but `due`; its owner is the runner */
	struct weft__number **buckets; /* by id */
	size_t                room;    /* a power of two, or 0 */
	size_t                count;
	struct weft__number  *spare;
	struct weft__numbers_slab *slabs;
	int64_t               last_id;
	struct weft__number  *due, **due_end; /* immediates; the loop's thread */
};

/* Whether spinning pays; sleep.c. */
struct weft__spin {
	bool     allowed;
	struct weft__luck sleeps; /* of spins before a sleep, */
	struct weft__luck waits;  /* and of looks of threadlets that wait for others */
	uint32_t small; /* batches in a row that were small, with more behind them */
	bool     own;   /* the loop's thread has posted to itself in this turn */
};

/* Which deadlines may expire; expire.c. */
struct weft__expiry {
	uint64_t ns, seq;             /* those due by this time and armed before this start */
	uint64_t asked_ns, asked_seq; /* the same, of the delivery under way */
	uint32_t polls;               /* that may follow, */
	uint32_t steps, turns;        /* and turns after the last poll */
	uint8_t  stage;               /* 0: no delivery is under way */
	bool     asked;               /* the kernel, since it began */
};

/* What bindings have called at points of a turn; hook.c. */
struct weft__hooks {
	weft_loop_hook *first, *last;
	struct weft__hook_cursor *cursors; /* of the series under way, innermost first */
	weft_loop_hook *called;      /* whose `ready` is on the stack, unless dropped */
	uint64_t        pushes;      /* so many */
	uint64_t        waiting;     /* pushes when before_wait was last called */
	uint64_t        told_ns;     /* the host's knowledge of weft_loop_next() */
	uint32_t        checkpoints; /* hooks that have one, */
	uint32_t        changes;     /* that have next_changed, */
	uint32_t        more;        /* whose last `ready` left something */
	bool            telling;     /* next_changed is on the stack */
};

struct weft__text;

/* Who runs on a loop's thread, as the watchdog wants to know it. */
struct weft__holder {
	weft_threadlet id; /* 0: a callback */
	char           name[32];
	const void    *spawned_at, *fn;
	const char    *low, *high; /* its stack */
	const void    *frames[16];
};

/* What the watchdog keeps of a loop; its thread's. */
struct weft__watched {
	uint64_t turns;    /* as last seen, */
	uint32_t left;     /* and this */
	uint64_t since_ns; /* seen so first; 0: it was not held then */
	bool     told;
};

/* Threadlets are of the layer above, which has this table; for loops with a crew. */
struct weft__crew_ops {
	void (*run)(weft_loop *loop);    /* those that are ready, within bounds */
	void (*cancel)(weft_loop *loop); /* all: the loop stops */
	void (*expire)(weft_loop *loop, struct weft__place *place);
	size_t (*trim)(weft_loop *loop);
	void (*check)(weft_loop *loop);  /* whether they can ever go on: it sleeps */
	void (*look)(weft_loop *loop);   /* for whoever has asked to see them */
	void (*tell_holder)(weft_loop *loop, struct weft__holder *out);
	void (*add_rest)(weft_loop *loop, struct weft__text *text); /* those that still run */
	uint64_t (*trace_mark)(struct weft__threadlet *threadlet); /* of trace.h */
	void (*fini)(weft_loop *loop, bool alone);
	const void *layout;              /* for debuggers, who find it by name */
};

extern const struct weft__crew_ops weft__crew_ops;

/* What layers above forget in a forked child. */
void weft__threadlets_forked(void);
void weft__dags_forked(void);

/* Threadlets that are ready to run. */
struct weft__run_queue {
	struct weft__threadlet *first, *last;
};

/* The same for the layer of promises; the beginning of what it keeps for a loop. */
struct weft__loop_promises {
	uint64_t (*run_due)(weft_loop *loop); /* after all microtasks; how many jobs ran */
	bool     (*end)(weft_loop *loop);     /* it stops; true if some have yet to land */
	bool     (*has)(weft_loop *loop);     /* some are pending */
	size_t   (*trim)(weft_loop *loop);
	void     (*leave)(weft_loop *loop);   /* it is freed */
};

/* In place of that: the loop has ended before its first promise, so that whoever makes
 * one knows. */
#define WEFT__PROMISES_LATE ((uintptr_t)1)

struct weft_loop {
	struct weft__inbox inbox;
	weft__a32  state;       /* weft_state; waiters of stopped park here */
	weft__a32  leave;       /* 1: return from the run */
	weft__a32  refs;        /* of weft_loop_ref() */
	weft__a32  visitors;    /* threads inside stop, leave, wake, wait_stopped, looks */
	weft__a32  going;       /* 1: it is being freed */
	weft__a32  looks;       /* asked for, and not answered */
	weft__aptr runner;      /* the weft__thread that uses it exclusively, or 0 */
	weft__aptr host;        /* the weft__thread in whose loop it lives, or 0 */
	struct weft__node wake; /* pushed to wake the loop for no post */
	struct weft__numbers numbers;

	/* Set once. */
	char       name[16];
	uint32_t   flags;       /* WEFT_LOOP_* */
	uint32_t   budget;
	uint32_t   forks;       /* weft__program.forks at its making */
	char       backend_name[8]; /* asked for; "": the best here */
	uint64_t   watchdog_ns; /* 0: not watched */
	struct weft__watched watched;
	weft__a64  pokes_to;    /* the thread that runs it, if it can be asked; or 0 */

	/* Of observe.c. */
	weft__aptr meter;       /* struct weft__meter; 0: nobody has looked yet */
	weft__a64  observed_ns; /* until then it is kept; 0: not; WEFT_NEVER: always */

	/* Of registry.c, under its lock. */
	weft_loop *next_listed;
	bool       listed;
	struct weft__stop_wait *stop_waits; /* of stop_wait.c */

	/* Of threadlets, if there have been any. */
	weft__aptr crew;        /* struct weft__crew; made by any thread */
	weft__aptr promises;    /* struct weft__loop_promises, 0, or LATE; the same */
	uint32_t   threadlet_max;
	size_t     stack_bytes;
	struct weft__cpus *cpus; /* of the thread of weft_loop_start(), or NULL */
	struct weft_runtime *runtime; /* that it is of, or NULL */
	bool       quiet;       /* of runtime/quiet.c, under its lock */

	/* The runner's. */
	struct weft__run_queue ready;
	weft__a32  left;        /* switches, in this phase of threadlets */
	uint32_t   traced;      /* 1: something was recorded as this turn began */
	weft__a64  threadlets;  /* that have not ended; read by any */
	const void *stack_end;  /* above all frames of this run */
	bool       draining;    /* it stops, and waits for them to end */
	bool       own_thread;  /* it runs on the thread of weft_loop_start() */
	uint32_t   quick;       /* forks, or other while a host must be told of changes */
	struct weft__hooks hooks;
	struct weft_wheel wheel;
	struct weft__node_list first, posts, last;
	struct weft__node_list own;   /* posted by the runner, for the next turn */
	uint32_t   own_count;
	struct weft__ring ticks, microtasks;
	struct weft__spin spin;
	struct weft__backend backend;
	struct weft__tally tally;     /* of the backend, as the next for all to read */
	struct weft__counts counts;
	uint32_t   own_run;           /* nodes of a list, run, that were not posts */
	weft__aptr metering;          /* the meter while it is kept, or 0; read by any */
	struct weft__meter *timed;    /* the meter while it times a turn */
	uint64_t   timed_turn;        /* the next that it times; 0: none */
	struct weft__loop_trace trace; /* of trace.c, while `traced` */
	struct weft__place resume;    /* when paused accepts are tried again */
	struct weft__signals *signals; /* of signal.c; NULL: no interest */
	uint64_t   ops;               /* pending */
	uint64_t   polled_ns;         /* when the kernel was last asked, while busy */
	uint32_t   unpolled;          /* turns since then */
	struct weft__expiry expiry;
	struct weft__locals *locals;  /* of local.c; NULL: none was set */
	void      *notices;           /* of net/stream/notice.c: interrupts on their way; or NULL */
	void      *left_jobs;         /* of work/file.c: those whose callers have gone */
	void      *pools;             /* of the work layer, or NULL, */
	weft_fn    pools_end;         /* which knows how to end them */
	void      *net;               /* what its streams share, or NULL, */
	size_t   (*net_trim)(void *net); /* and how to give that back */
	weft_fn    net_stop; /* called as the ops of a stopping loop are ended */
	uint64_t   net_started; /* streams with callbacks, which hear of that */
	weft_fn    net_end;
	void      *names;             /* of the net layer: the resolver, or NULL, */
	void     (*names_end)(void *names, bool alone); /* the same */
	uint64_t   now_ns;      /* this turn's reading; 0: not read yet */
	/* What keeps a run going, queues, timers and threadlets aside; less those of them
	 * that do not, so it may be below zero. */
	weft__a64  alive;
	uintptr_t  bound;       /* the weft__thread that alone may run it, or 0 */
	uint64_t   thread;      /* of weft_loop_start(), to be joined */
	bool       has_thread;
	bool       in_turn;
	bool       in_checkpoint;
	bool       promises_due; /* some wait for the end of a checkpoint */
	bool       keep;        /* this run does not end for lack of work */
	bool       woken;       /* by weft_loop_wake(): the next wait returns at once */
	bool       must_poll;   /* this turn asks the kernel: run_once(WEFT_NOW) */
	bool       foreign;     /* dozes IN_FOREIGN, between the turns of an embedded one */
	bool       locals_ended; /* their drops have been called; none can be set */
	bool       ending;      /* past the point where stop disarmed everything */
};

/* See that forks are counted from now on.  0, or -errno. */
int weft__watch_forks(void);

/* The loop is a parent process's. */
static inline bool
weft__loop_is_forked(const weft_loop *loop)
{
	return loop->forks != weft__load(&weft__program.forks, WEFT__RELAXED);
}

/* May this thread use the loop now?  0, or WEFT_EINVAL, WEFT_EXDEV. */
int weft__loop_check(const weft_loop *loop, const char *call);

/* The short way through that check, for calls that are made very often: false means
 * that the long way has to be taken, for whatever reason. */
static inline bool
weft__loop_is_usable(const weft_loop *loop)
{
	uintptr_t runner = weft__load(&loop->runner, WEFT__RELAXED);

	return (!runner || runner == (uintptr_t)weft__thread_here())
	       && loop->quick == weft__load(&weft__program.forks, WEFT__RELAXED)
	       && weft__load(&loop->state, WEFT__RELAXED) < WEFT_STOPPING;
}

/* Have it for a moment; false if it runs.  And give it back. */
bool weft__loop_claim(weft_loop *loop);
void weft__loop_give_back(weft_loop *loop);

/* Have it for a look, as nobody in particular, if nobody has it: it cannot run until it
 * is given back, but its thread may still use it as an idle loop. */
bool weft__loop_hold(weft_loop *loop);

/* Count this thread in and out as a visitor: the loop is not freed meanwhile. */
void weft__loop_enter(weft_loop *loop);
void weft__loop_exit(weft_loop *loop);

/* The loop meant by `loop`: itself, or for NULL the one that runs here. */
static inline weft_loop *
weft__loop_or_current(weft_loop *loop)
{
	return loop ? loop : weft__thread_self()->loop;
}

static inline bool
weft__loop_is_stopping(const weft_loop *loop)
{
	return weft__load(&loop->state, WEFT__RELAXED) >= WEFT_STOPPING;
}

/* The turn's clock, read at first need. */
static inline uint64_t
weft__loop_time(weft_loop *loop)
{
	if (!loop->now_ns)
		loop->now_ns = weft__sys->now();
	return loop->now_ns;
}

/* Its meter, if that is kept now; for the runner. */
static inline struct weft__meter *
weft__loop_meter(const weft_loop *loop)
{
	return (struct weft__meter *)weft__load(&loop->metering, WEFT__RELAXED);
}

/* What keeps a run going, queues aside. */
static inline uint64_t
weft__loop_alive(const weft_loop *loop)
{
	return weft__count_get(&loop->alive)
	       + weft__count_get(&loop->threadlets)
	       + weft__count_get(&loop->wheel.count)
	       - weft__count_get(&loop->wheel.background);
}

/* A phase has ended, and somebody looks. */
void weft__loop_told(weft_loop *loop, int phase, uint32_t calls);

/* So many calls were made in a phase, which has ended. */
static inline void
weft__loop_called(weft_loop *loop, int phase, uint32_t calls)
{
	if (calls == 0)
		return;
	weft__count(&loop->counts.calls[phase], calls);
	if (__builtin_expect((uintptr_t)loop->timed | loop->traced, 0))
		weft__loop_told(loop, phase, calls);
}

/* Take what is in the inbox; returns how many posts. */
static inline uint32_t
weft__loop_take(weft_loop *loop)
{
	uint32_t taken = loop->own_count;

	if (taken > 0) { /* they were there before what is in the inbox */
		weft__node_move(&loop->own, &loop->posts);
		loop->own_count = 0;
	}
	taken += weft__inbox_take(&loop->inbox, &loop->first, &loop->posts);
	if (taken > 0)
		weft__count(&loop->counts.taken, taken);
	if (loop->timed)
		weft__meter_took(loop, loop->first.first || loop->posts.first
		                               || weft__inbox_has(&loop->inbox));
	return taken;
}

/* What the layer of promises has for it, or NULL. */
static inline const struct weft__loop_promises *
weft__loop_promises(const weft_loop *loop)
{
	uintptr_t promises = weft__load(&loop->promises, WEFT__ACQUIRE);

	return promises == WEFT__PROMISES_LATE
	               ? NULL
	               : (const struct weft__loop_promises *)promises;
}

/* The same as it ends: if there is nothing by now, what others make is late.  Either they
 * see that, or this sees theirs. */
static inline const struct weft__loop_promises *
weft__loop_close_promises(weft_loop *loop)
{
	uintptr_t none = 0;

	(void)weft__cas(&loop->promises, &none, WEFT__PROMISES_LATE, WEFT__RELAXED);
	return weft__loop_promises(loop);
}

static inline bool
weft__loop_has_promises(weft_loop *loop)
{
	const struct weft__loop_promises *promises = weft__loop_promises(loop);

	return promises && promises->has(loop);
}

/* --- turn.c ------------------------------------------------------------- */

/* One turn, whose wait lasts until the deadline at most. */
void weft__turn(weft_loop *loop, uint64_t deadline_ns);

/* Something can run without waiting; and the same, timers and deadlines aside. */
bool weft__loop_is_runnable(const weft_loop *loop);
bool weft__loop_has_work(const weft_loop *loop);

/* Something keeps a run going. */
bool weft__loop_is_alive(weft_loop *loop);

/* --- microtask.c -------------------------------------------------------- */

/* Run ticks and microtasks until there are none; after every callback. */
void weft__checkpoint_slow(weft_loop *loop);

static inline void
weft__checkpoint(weft_loop *loop)
{
	if (loop->ticks.count | loop->microtasks.count | loop->hooks.checkpoints
	    | loop->promises_due)
		weft__checkpoint_slow(loop);
}

/* --- hook.c ------------------------------------------------------------- */

/* Call that member of each hook; not needed while hooks.first is NULL. */
void weft__hooks_ready(weft_loop *loop);
void weft__hooks_before_wait(weft_loop *loop, bool may_block);
void weft__hooks_after_wait(weft_loop *loop, bool may_block);
uint64_t weft__hooks_checkpoint(weft_loop *loop); /* returns how many jobs ran */

/* Drop all of them. */
void weft__hooks_fini(weft_loop *loop);

/* See whether weft_loop_next() has changed between turns, and tell. */
void weft__hooks_tell(weft_loop *loop);

/* After whatever can have changed it. */
static inline void
weft__loop_changed(weft_loop *loop)
{
	if (__builtin_expect(loop->hooks.changes > 0, 0))
		weft__hooks_tell(loop);
}

/* --- embed.c ------------------------------------------------------------ */

static inline bool
weft__loop_is_embedded(const weft_loop *loop)
{
	return weft__load(&loop->host, WEFT__RELAXED) != 0;
}

/* ... in the loop of another thread than this. */
bool weft__loop_is_hosted_elsewhere(const weft_loop *loop);

/* A run ends: an embedded loop dozes from now on.  And the end of that: for a run by
 * this thread, which is then its host, or for whatever has claimed it. */
void weft__loop_settle(weft_loop *loop);
void weft__loop_adopt(weft_loop *loop);
void weft__loop_rouse(weft_loop *loop);

/* When a turn is needed without a word of the kernel's; not of a stopped loop. */
uint64_t weft__loop_next(weft_loop *loop);

/* --- sleep.c ------------------------------------------------------------ */

/* Posts keep coming in small batches: let a larger one come together. */
void weft__loop_gather(weft_loop *loop, uint32_t taken);

/* Sleep until woken or the deadline. */
void weft__loop_sleep(weft_loop *loop, uint64_t deadline_ns);

/* Wake the loop as weft__inbox_push() said it must be. */
void weft__loop_kick(weft_loop *loop, int mode);

/* Make the present or next wait return; and the loop's side of that. */
void weft__loop_wake(weft_loop *loop);
void weft__loop_woken(weft_loop *loop);

/* The loop, of a runtime, has dozed, and only other threads can wake it: true if none of them
 * will, which is reported as it goes on; so it must not sleep.  And: it goes on, before it
 * takes anything from its inbox.  In runtime/. */
bool weft__runtime_rest(weft_loop *loop);
void weft__runtime_go_on(weft_loop *loop);

/* Open the backend, unless it is open.  0, or an error. */
int weft__loop_open_backend(weft_loop *loop);

/* Ask the kernel what is ready, without waiting, if it is time to.  poll tells hooks;
 * for ask that has been done. */
void weft__loop_poll(weft_loop *loop);
void weft__loop_ask(weft_loop *loop);

/* --- expire.c ----------------------------------------------------------- */

/* May a deadline that has passed expire?  If not, begin to deliver what has arrived. */
bool weft__deadline_may_expire(weft_loop *loop, const struct weft__place *place);

/* The kernel has to be asked in this turn.  It has been asked.  A sleep until then was
 * ended by its timeout.  The turn has ended, and a delivery is under way. */
bool weft__expiry_wants_poll(const weft_loop *loop);
void weft__expiry_asked(weft_loop *loop);
void weft__expiry_slept(weft_loop *loop, uint64_t until_ns);
void weft__expiry_step(weft_loop *loop);

/* --- op.c, watch.c ------------------------------------------------------ */

/* Hand a result to its owner; the one place where results leave. */
void weft__op_deliver(weft_loop *loop, struct weft__op *op);

/* Deliver what is finished. */
void weft__ops_run_done(weft_loop *loop);

/* Ask a pending op to finish with `why`. */
void weft__op_ask(struct weft__op *op, int why);

void weft__op_expire(weft_loop *loop, struct weft__place *place);

/* Does the backend of `loop`, opened for that, take ops on files?  And start one. */
bool weft__loop_has_files(weft_loop *loop);
int  weft__op_start_file(weft_op *op, const struct weft__file_call *call,
                         uint64_t deadline_ns);

/* Send some of a file over a socket: finish with the count, 0 at the end of the file. */
int  weft__op_sendfile(weft_op *op, int fd, const struct weft__file_part *part,
                       uint64_t deadline_ns);

/* Finish an own kind, as its one finisher and not on its loop's thread: there `fn(op)`
 * is called, which ends with weft__op_told(op). */
void weft__op_tell(struct weft__op *op, int64_t result, weft_fn fn);
void weft__op_told(void *op);

/* Deliver 0 to `op`, which is initialized, after every result that this thread has
 * finished ops with.  It needs no memory, and a stopping loop takes it: so it cannot fail,
 * unless the loop has stopped. */
void weft__op_follow(weft_op *op);

/* The loop stops: ask everything pending, and tell the owners of own kinds. */
void weft__ops_end(weft_loop *loop);

/* The program closes `fd` by an object that has no loop: those who wait on it on the
 * calling thread's loop end with WEFT_ESHUTDOWN. */
void weft__fd_forget(int fd);

/* End whoever waits on `fd`. */
void weft__fd_evict(weft_loop *loop, int fd);

/* End a watch: it is told in the closing phase. */
void weft__watch_end(weft_loop *loop, weft_watch *watch);
void weft__watches_run_ended(weft_loop *loop);

/* --- signal.c ----------------------------------------------------------- */

/* The loop is freed; `alone`: in a forked child.  And: this is a forked child. */
void weft__signals_fini(weft_loop *loop, bool alone);
void weft__signals_forked(void);

/* --- registry.c --------------------------------------------------------- */

struct weft__look;

struct weft__registry {
	struct weft__lock lock;
	weft_loop        *first;
	struct weft__look *asked; /* of threadlet/look.c */
};

extern struct weft__registry weft__registry;

/* Add a loop, unless it is there; take it out. */
void weft__registry_add(weft_loop *loop);
void weft__registry_remove(weft_loop *loop);

/* The loop that was made next after number `*after` (begin with 0), which is set to its
 * number; with this thread as its visitor.  NULL: there is none. */
weft_loop *weft__registry_next(uint64_t *after);

/* The loop of that number, the same way; or NULL. */
weft_loop *weft__registry_find(uint64_t number);

/* In a forked child. */
void weft__registry_forget(void);

/* Being freed: nothing is alive there, and it will not be given back. */
static inline bool
weft__loop_is_going(const weft_loop *loop)
{
	return weft__load(&loop->going, WEFT__SEQ_CST) != 0; /* F, in registry.c */
}

/* --- observe.c ---------------------------------------------------------- */

/* By the runner, or who holds the loop: keep the meter from now on, if that is asked for;
 * and no more, unless it has been asked for anew. */
void weft__meter_on(weft_loop *loop);
bool weft__meter_off(weft_loop *loop, uint64_t now_ns);

/* --- stop_wait.c -------------------------------------------------------- */

/* A wait for the end of a loop that is told by a call, on the thread where that comes. */
struct weft__stop_wait {
	void (*told)(struct weft__stop_wait *wait); /* once, unless it is dropped */
	struct weft__stop_wait *next; /* under the registry's lock, as the next */
	weft_loop *loop;              /* NULL: told, or about to be, or dropped */
};

/* Begin to wait; false: it has stopped, and nothing is told. */
bool weft__stop_wait_add(weft_loop *loop, struct weft__stop_wait *wait);

/* End it early: the loop, whose reference is the caller's then; NULL: it is told. */
weft_loop *weft__stop_wait_drop(struct weft__stop_wait *wait);

/* The loop has stopped: tell all, by its runner. */
void weft__stop_waits_tell(weft_loop *loop);

/* Suspend the calling threadlet until another loop has stopped; in threadlet/. */
int weft__threadlet_wait_stopped(weft_loop *loop, uint64_t deadline_ns);

/* Report that the end of the loop was waited for in vain. */
void weft__loop_report_late(weft_loop *loop);

/* --- watchdog.c --------------------------------------------------------- */

/* Watch a loop, until it is destroyed.  0, or an error. */
int  weft__watchdog_add(weft_loop *loop);
void weft__watchdog_remove(weft_loop *loop);

/* This thread begins, and ends, a run of a loop whose holder can be asked for. */
void weft__watchdog_begin(weft_loop *loop);
void weft__watchdog_end(weft_loop *loop);

/* What runs on the loop's thread now.  False if the thread does not answer. */
bool weft__loop_holder(weft_loop *loop, struct weft__holder *out);

/* Look at a loop: has it been held for longer than it may, and not been told of? */
bool weft__watchdog_look(weft_loop *loop, uint64_t now_ns);

/* In a forked child. */
void weft__watchdog_forget(void);

/* --- local.c ------------------------------------------------------------ */

#define WEFT__LOCALS 64

struct weft__locals {
	void *values[WEFT__LOCALS]; /* by key, less 1 */
};

/* Whether there is such a key; and the end of a value, which may be NULL. */
bool weft__local_is_key(int key);
void weft__local_drop(int key, void *value);

/* Drop all values; true if there was any. */
bool weft__locals_end(weft_loop *loop);

/* --- schedule.c ------------------------------------------------ */

/* As weft_schedule_timeout(), at `deadline_ns`: what has arrived by then comes first. */
int64_t weft__schedule_deadline(weft_loop *loop, uint64_t deadline_ns, weft_fn fn,
                                void *arg);

/* What has a number is due; true if it was called. */
bool weft__number_expire(weft_loop *loop, struct weft__place *place);

/* Run immediates queued before this call, within the budget. */
void weft__numbers_run_due(weft_loop *loop);

/* Give memory back if no number is in use; returns the bytes. */
size_t weft__numbers_trim(weft_loop *loop);

/* Clear all numbers; give their memory back. */
void weft__numbers_clear(weft_loop *loop);
void weft__numbers_fini(weft_loop *loop);

#endif
