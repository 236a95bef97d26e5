/* loop.h - the loop, as the files of this layer share it.  Private.
 *
 * Needs: timer, base.  Thread: members state which.  The runner is the thread that runs the
 * loop.
 *
 * The folders:
 *   core     new.c, life.c (run, start, stop, free), turn.c (one loop iteration), sleep.c (how the
 *            loop waits and is woken), hook.c and embed.c (for bindings, and for embedding in a
 *            foreign loop), part.c (what the layers above attach), local.c, registry.c, fork.c
 *   post     posts of other threads: inbox, producer queues, mailboxes
 *   io       ops and watches
 *   time     timers, timers with an ID, deadlines, ticks and microtasks
 *   process  watches on signals and child processes
 *   observe  sampler.c (samples the loop's time), metrics.c (reads the samples), observe.c
 *            (switches sampling on and off), traces, the watchdog
 *
 * The layers above use core/access.h and io/fd.h, and name no member of struct weft_loop.
 */
#ifndef WEFT_LOOP_LOOP_H
#define WEFT_LOOP_LOOP_H

#include <weft/embed.h>
#include "base/biased.h"
#include "base/build.h"
#include "base/lock.h"
#include "base/spin.h"
#include "base/ring.h"
#include "backend/backend.h"
#include "base/thread.h"
#include "loop/post/inbox.h"
#include "loop/post/mailbox.h"
#include "loop/io/op.h"
#include "loop/core/part.h"
#include "loop/observe/sampler.h"
#include "loop/observe/trace.h"
#include "timer/wheel.h"

#define WEFT__CALLS_MAX 1024u /* timers or immediates run in one iteration */

/* What a popped wheel entry is part of; its kind. */
enum {
	WEFT__ENTRY_TIMER, /* a weft_timer; 0, because the program zeroes its timers */
	WEFT__ENTRY_TIMER_HANDLE,
	WEFT__ENTRY_OP,
	WEFT__ENTRY_RESUME, /* try accepts again that found no free descriptor */
	WEFT__ENTRY_THREADLET, /* the wait of a threadlet */
	WEFT__ENTRY_SCOPE,
	WEFT__ENTRY_KIND = 0xff,
	WEFT__ENTRY_FIRM = 0x200, /* a timer of the library: fires also while the loop stops */
	WEFT__ENTRY_DEADLINE = 0x400, /* results that arrived before it come first; expire.c */
};

/* Handles of timers and immediates with IDs; schedule.c. */
struct weft__timer_handles {
	struct weft__biased        lock;     /* for all but `due`; the runner is its owner */
	struct weft__timer_handle **buckets; /* by ID */
	size_t                     room;     /* a power of two, or 0 */
	size_t                     count;
	struct weft__timer_handle *spare;
	struct weft__timer_handle_slab *slabs;
	int64_t                    last_id;
	struct weft__timer_handle *due, **due_end; /* queued immediates; the loop's thread */
	struct weft__mailbox       arrivals; /* handles that other threads have set or cleared */
};

/* Whether spinning pays; sleep.c. */
struct weft__spin {
	bool     allowed;
	struct weft__spin_backoff sleeps; /* adaptive spin before a sleep, */
	struct weft__spin_backoff waits;  /* and of threadlets that wait for other threads */
	uint32_t small; /* small batches in a row, with more posts behind them */
	bool     own;   /* the loop's thread has posted to its own loop in this iteration */
};

/* Which deadlines may expire; expire.c. */
struct weft__expiry {
	uint64_t ns, seq;             /* those due by this time and armed before this start may */
	uint64_t next_ns, next_seq;   /* the same, for when the delivery in progress completes */
	uint32_t polls;               /* polls that may follow, */
	uint32_t steps, turns;        /* and iterations after the last poll */
	uint8_t  stage;               /* 0: no delivery is under way */
	bool     polled;              /* the kernel was polled since the delivery began */
};

/* A tick or microtask that another thread has queued. */
struct weft__task {
	struct weft__letter letter; /* first */
	struct weft__call   call;
	bool                is_tick;
};

struct weft__task_list {
	struct weft__task *first, *last;
};

/* The tasks from other threads. */
struct weft__tasks {
	struct weft__mailbox   box;
	uint64_t               count; /* tasks that have arrived, in these lists */
	struct weft__task_list ticks, microtasks;
};

/* Calls that bindings have requested at points of a loop iteration; hook.c. */
struct weft__hooks {
	weft_loop_hook *first, *last;
	struct weft__hook_cursor *cursors; /* the passes in progress, innermost first */
	weft_loop_hook *called;      /* the hook whose `ready` is on the stack, unless dropped */
	uint64_t        pushes;      /* number of pushes */
	uint64_t        waiting;     /* value of `pushes` when before_wait was last called */
	uint64_t        notified_ns; /* weft_loop_next() as the host last saw it */
	uint32_t        checkpoints; /* number of hooks that have a checkpoint, */
	uint32_t        changes;     /* that have next_changed, */
	uint32_t        more;        /* and whose last `ready` returned > 0 */
	bool            notifying;   /* next_changed is on the stack */
};

struct weft__text;

/* What runs on a loop's thread; for the watchdog. */
struct weft__holder {
	weft_threadlet id; /* 0: a callback */
	char           name[32];
	const void    *spawned_at, *fn;
	const char    *low, *high; /* its stack */
	const void    *frames[16];
};

/* What the watchdog remembers about a loop; the watchdog's thread. */
struct weft__watched {
	uint64_t turns;    /* as last read, */
	uint32_t left;     /* the same for `left` of the loop */
	uint64_t since_ns; /* first time both had this value; 0: the loop was not held */
	bool     reported;
};

/* The operations of the threadlet layer's part. */
struct weft__sched_ops {
	struct weft__part_ops part; /* first */
	void (*run)(weft_loop *loop);    /* run threadlets that are ready, within bounds */
	void (*cancel)(weft_loop *loop); /* cancel all: the loop stops */
	void (*expire)(weft_loop *loop, struct weft__wheel_entry *entry);
	void (*check)(weft_loop *loop);  /* the loop sleeps: can they ever continue? */
	void (*answer_listings)(weft_loop *loop); /* pending requests to list them */
	void (*describe_holder)(weft_loop *loop, struct weft__holder *out);
	void (*add_unfinished)(weft_loop *loop, struct weft__text *text); /* those that still run */
	uint64_t (*trace_mark)(struct weft__threadlet *threadlet); /* of trace.h */
	const void *layout;              /* for debuggers, which find it by name */
};

/* The operations of a runtime, which is a part of several loops. */
struct weft__runtime_ops {
	struct weft__part_ops part; /* first */
	/* The loop has begun a sleep, and only other threads can wake the loop.  True if none of
	 * them will: then the loop must not sleep, and reports the deadlock as it continues. */
	bool (*begin_quiet)(weft_loop *loop);
	/* The loop continues, before it takes anything from its inbox. */
	void (*end_quiet)(weft_loop *loop);
	/* Other threads can wake waiters at shared objects. */
	bool (*has_outside_wakers)(const weft_loop *loop);
	/* The loop that has the fewest threadlets. */
	weft_loop *(*least_loaded)(const weft_loop *loop);
};

/* Queue of threadlets that are ready to run. */
struct weft__run_queue {
	struct weft__threadlet *first, *last;
};

struct weft_loop {
	struct weft__inbox inbox;
	weft__a32  state;       /* weft_state */
	weft__a32  break_requested; /* weft_loop_break() was called: return from the run */
	weft__a32  refs;        /* held by weft_loop_ref() */
	weft__a32  visitors;    /* threads inside stop, break, wake, listings, ... */
	weft__a32  going;       /* 1: weft_loop_free() is in progress; 0 again if it fails */
	weft__a32  listings;    /* requests to list threadlets that are not answered yet */
	weft__aptr runner;      /* the weft__thread that uses the loop exclusively, or 0; life.c
	                         * has other values */
	weft__aptr host;        /* the weft__thread of the foreign loop that embeds it, or 0 */
	struct weft__node wake; /* pushed to wake the loop without a post */
	struct weft__timer_handles timer_handles;

	/* Set once. */
	char       name[16];
	uint32_t   flags;       /* WEFT_LOOP_* */
	uint32_t   budget;
	uint32_t   forks;       /* weft__program.forks when the loop was made */
	char       backend_name[8]; /* requested; "": the best one here */
	uint64_t   watchdog_ns; /* 0: not watched */
	void     (*on_report)(void *arg, const weft_report *report); /* or NULL */
	void      *report_arg;
	struct weft__watched watched;
	weft__a64  signals_to;  /* handle of the runner's thread, for the watchdog's signal; or 0 */

	/* For observe.c. */
	weft__aptr sampler;     /* struct weft__sampler; 0: never observed */
	weft__a64  observed_ns; /* when sampling ends; 0: off; WEFT_NEVER: always on */

	/* For registry.c, under its lock. */
	weft_loop *next_listed;
	bool       listed;
	struct weft__stop_wait *stop_waits; /* of stop_wait.c */

	weft__aptr parts[WEFT__PARTS]; /* each a struct weft__part, 0, or WEFT__PART_CLOSED */

	/* For threadlets. */
	uint32_t   threadlet_max;
	size_t     stack_bytes;
	struct weft__cpus *cpus; /* CPUs of the thread of weft_loop_start(), or NULL */
	bool       quiet;       /* of runtime/quiet.c, under its lock */

	/* Members of the runner. */
	struct weft__run_queue ready;
	weft__a32  left;        /* threadlet switches left in this phase */
	uint32_t   traced;      /* 1: a recording was active as this iteration began */
	weft__a64  threadlets;  /* threadlets that have not ended; read by any thread */
	const void *stack_end;  /* above all stack frames of this run */
	bool       draining;    /* the loop stops, and waits for threadlets to end */
	bool       own_thread;  /* the loop runs on the thread of weft_loop_start() */
	uint32_t   quick;       /* equals `forks`, unless a hook has next_changed */
	struct weft__hooks hooks;
	struct weft_wheel wheel;
	struct weft__node_list first, posts, last;
	struct weft__node_list own;   /* posted by the runner, for the next iteration */
	uint32_t   own_count;
	struct weft__ring ticks, microtasks;
	struct weft__tasks tasks;     /* the mailbox: any thread */
	struct weft__spin spin;
	struct weft__backend backend;
	struct weft__backend_counters backend_counters; /* like the next, read by any thread */
	struct weft__counts counts;
	weft__aptr sampling;          /* the sampler while it is active, or 0; read by any thread */
	struct weft__sampler *timed;  /* the sampler while it times an iteration */
	uint64_t   timed_turn;        /* the next iteration that it times; 0: none */
	struct weft__loop_trace trace; /* of trace.c, while `traced` */
	struct weft__wheel_entry resume; /* when throttled accepts are tried again */
	struct weft__signals *signals; /* of signal.c; NULL: no signal is used */
	uint64_t   ops;               /* pending ops */
	uint64_t   polled_ns;         /* when a busy loop last polled the kernel */
	uint32_t   unpolled;          /* iterations since then */
	struct weft__expiry expiry;
	struct weft__locals *locals;  /* of local.c; NULL: no value was set */
	uint64_t   now_ns;      /* this iteration's clock reading; 0: not read yet */
	/* Number of things that keep a run going, apart from queues, timers and threadlets, minus
	 * the background threadlets: so the number may be below zero. */
	weft__a64  alive;
	uintptr_t  bound;       /* the only weft__thread that may run it, or 0 */
	uint64_t   thread;      /* of weft_loop_start(), to be joined */
	bool       has_thread;
	bool       in_turn;
	bool       in_checkpoint;
	bool       promises_due; /* promises have jobs for the end of a checkpoint */
	bool       keep;        /* this run does not end for lack of work */
	bool       wake_pending; /* weft_loop_wake() was called: the next wait returns at once */
	bool       must_poll;   /* this iteration must poll the kernel: run_once(WEFT_NOWAIT) */
	bool       foreign;     /* sleeps IN_FOREIGN, between iterations of an embedded loop */
	bool       locals_ended; /* the drop functions have run; no value can be set */
	bool       ending;      /* stopping, and everything pending is being ended */
};

/* Begin to count forks.  To be called before a lock of this layer is taken for the first time, and
 * not while such a lock is held (base/lock.h).  0, or -errno. */
int weft__watch_forks(void);

/* The loop was made by a parent process. */
static inline bool
weft__loop_is_forked(const weft_loop *loop)
{
	return loop->forks != weft__load(&weft__program.forks, WEFT__RELAXED);
}

/* Pass a report to the hook of its loop, if it has a loop with a hook, else to weft__report().
 * Safe in a signal handler. */
void weft__loop_report(const weft_report *report);

/* Whether this thread may use the loop now.  0, or WEFT_EINVAL, WEFT_EWRONGLOOP, WEFT_ESHUTDOWN. */
int weft__loop_check(const weft_loop *loop, const char *call);

/* The fast path of that check, for frequent calls.  False means only that the caller must use
 * the full check. */
static inline bool
weft__loop_is_usable(const weft_loop *loop)
{
	uintptr_t runner = weft__load(&loop->runner, WEFT__RELAXED);

	return (!runner || runner == (uintptr_t)weft__thread_here())
	       && loop->quick == weft__load(&weft__program.forks, WEFT__RELAXED)
	       && weft__load(&loop->state, WEFT__RELAXED) < WEFT_STOPPING;
}

/* This thread runs the loop, or has claimed the loop to end it.  True in callbacks of the loop. */
bool weft__loop_is_mine(const weft_loop *loop);

/* Claim the loop for a moment; false if a thread runs it.  And give the loop back. */
bool weft__loop_claim(weft_loop *loop);
void weft__loop_give_back(weft_loop *loop);

/* Claim a loop that no thread has claimed, on behalf of no thread: the loop cannot run until it
 * is given back, but the thread that uses it while it is idle may continue to do so. */
bool weft__loop_hold(weft_loop *loop);

/* Begin and end a visit by the calling thread: the loop is not freed meanwhile. */
void weft__loop_enter(weft_loop *loop);
void weft__loop_exit(weft_loop *loop);

/* A part, or NULL.  Acquires what the thread that attached it has written. */
static inline struct weft__part *
weft__loop_part(const weft_loop *loop, int slot)
{
	uintptr_t part = weft__load(&loop->parts[slot], WEFT__ACQUIRE); /* P, in part.h */

	return part == WEFT__PART_CLOSED ? NULL : (struct weft__part *)part;
}

static inline bool
weft__loop_is_closed(const weft_loop *loop, int slot)
{
	return weft__load(&loop->parts[slot], WEFT__RELAXED) == WEFT__PART_CLOSED;
}

/* The operations of the scheduler, or NULL if no threadlet was started on the loop. */
static inline const struct weft__sched_ops *
weft__loop_sched(const weft_loop *loop)
{
	const struct weft__part *part = weft__loop_part(loop, WEFT__PART_SCHED);

	return part ? (const struct weft__sched_ops *)(const void *)part->ops : NULL;
}

/* The operations of the loop's runtime, or NULL if the loop is not part of a runtime. */
static inline const struct weft__runtime_ops *
weft__loop_runtime(const weft_loop *loop)
{
	const struct weft__part *part = weft__loop_part(loop, WEFT__PART_RUNTIME);

	return part ? (const struct weft__runtime_ops *)(const void *)part->ops : NULL;
}

/* `loop` itself, or for NULL the loop that runs on this thread. */
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

/* The clock of this iteration, read at first need. */
static inline uint64_t
weft__loop_time(weft_loop *loop)
{
	if (!loop->now_ns)
		loop->now_ns = weft__sys->now();
	return loop->now_ns;
}

/* The loop's sampler, if it is active now; for the runner. */
static inline struct weft__sampler *
weft__loop_sampler(const weft_loop *loop)
{
	return (struct weft__sampler *)weft__load(&loop->sampling, WEFT__RELAXED);
}

/* What keeps a run going, apart from queues. */
static inline uint64_t
weft__loop_alive(const weft_loop *loop)
{
	return weft__count_get(&loop->alive)
	       + weft__count_get(&loop->threadlets)
	       + weft__count_get(&loop->wheel.count)
	       - weft__count_get(&loop->wheel.background);
}

/* A phase has ended, in an iteration that is timed or traced. */
void weft__loop_end_phase(weft_loop *loop, int phase, uint32_t calls);

/* A phase has ended in which `calls` calls were made. */
static inline void
weft__loop_called(weft_loop *loop, int phase, uint32_t calls)
{
	if (calls == 0)
		return;
	weft__count(&loop->counts.calls[phase], calls);
	if (__builtin_expect((uintptr_t)loop->timed | loop->traced, 0))
		weft__loop_end_phase(loop, phase, calls);
}

/* Take what is in the inbox.  Returns the number of posts. */
static inline uint32_t
weft__loop_take(weft_loop *loop)
{
	uint32_t taken = loop->own_count;
	struct weft__taken from_inbox;

	if (taken > 0) { /* these posts are older than what is in the inbox */
		weft__node_move(&loop->own, &loop->posts);
		loop->own_count = 0;
	}
	from_inbox = weft__inbox_take(&loop->inbox, &loop->first, &loop->posts);
	if (from_inbox.first > 0)
		weft__count(&loop->counts.internal, from_inbox.first);
	taken += from_inbox.posts;
	if (taken > 0)
		weft__count(&loop->counts.taken, taken);
	if (loop->timed)
		weft__sampler_took(loop, loop->first.first || loop->posts.first
		                   || weft__inbox_has(&loop->inbox));
	return taken;
}

/* --- turn.c ------------------------------------------------------------- */

/* One loop iteration.  Its wait lasts until the deadline at most. */
void weft__turn(weft_loop *loop, uint64_t deadline_ns);

/* Something can run without waiting; and the same apart from timers and deadlines. */
bool weft__loop_is_runnable(const weft_loop *loop);
bool weft__loop_has_work(const weft_loop *loop);

/* Something keeps a run going. */
bool weft__loop_is_alive(weft_loop *loop);

/* --- microtask.c -------------------------------------------------------- */

/* The microtask checkpoint: run ticks and microtasks until there are none.  Follows every
 * callback. */
void weft__checkpoint_slow(weft_loop *loop);

/* Ticks and microtasks that the loop's thread has queued, or that have arrived from others. */
static inline uint64_t
weft__loop_task_count(const weft_loop *loop)
{
	return loop->ticks.count + loop->microtasks.count + loop->tasks.count;
}

/* There are ticks or microtasks; or other threads may have sent some. */
static inline bool
weft__loop_may_have_tasks(const weft_loop *loop)
{
	return loop->ticks.count | loop->microtasks.count | loop->tasks.count
	       | weft__load(&loop->tasks.box.head, WEFT__RELAXED);
}

static inline void
weft__checkpoint(weft_loop *loop)
{
	if (weft__loop_may_have_tasks(loop) | loop->hooks.checkpoints | loop->promises_due)
		weft__checkpoint_slow(loop);
}

void weft__tasks_init(weft_loop *loop);

/* Refuse ticks and microtasks of other threads from now on.  Those that were accepted run at the
 * next checkpoint. */
void weft__tasks_close(weft_loop *loop);

/* The loop is freed. */
void weft__tasks_fini(weft_loop *loop);

/* --- hook.c ------------------------------------------------------------- */

/* Call the member of that name of each hook.  Not needed while hooks.first is NULL. */
void weft__hooks_ready(weft_loop *loop);
void weft__hooks_before_wait(weft_loop *loop, bool may_block);
void weft__hooks_after_wait(weft_loop *loop, bool may_block);
uint64_t weft__hooks_checkpoint(weft_loop *loop); /* returns how many jobs ran */

/* Drop all hooks. */
void weft__hooks_fini(weft_loop *loop);

/* Call next_changed if weft_loop_next() has changed between iterations. */
void weft__hooks_notify(weft_loop *loop);

/* To be called after every change that can affect weft_loop_next(). */
static inline void
weft__loop_changed(weft_loop *loop)
{
	if (__builtin_expect(loop->hooks.changes > 0, 0))
		weft__hooks_notify(loop);
}

/* --- embed.c ------------------------------------------------------------ */

static inline bool
weft__loop_is_embedded(const weft_loop *loop)
{
	return weft__load(&loop->host, WEFT__RELAXED) != 0;
}

/* The calling thread is the thread of the foreign loop that embeds the loop. */
static inline bool
weft__loop_is_hosted_here(const weft_loop *loop)
{
	return weft__load(&loop->host, WEFT__RELAXED) == (uintptr_t)weft__thread_self();
}

/* The loop is embedded in the foreign loop of another thread. */
bool weft__loop_is_hosted_elsewhere(const weft_loop *loop);

/* settle: a run has ended, and an embedded loop begins to sleep; adopt: that sleep ends for a
 * run by this thread, which becomes the host; end_sleep: it ends for any other claim. */
void weft__loop_settle(weft_loop *loop);
void weft__loop_adopt(weft_loop *loop);
void weft__loop_end_sleep(weft_loop *loop);

/* The time at which an iteration is needed even without an event of the kernel.  Not for a stopped
 * loop. */
uint64_t weft__loop_next(weft_loop *loop);

/* --- sleep.c ------------------------------------------------------------ */

/* Posts keep arriving in small batches: pause so that a larger batch can collect. */
void weft__loop_gather(weft_loop *loop, uint32_t taken);

/* Sleep until woken or the deadline. */
void weft__loop_sleep(weft_loop *loop, uint64_t deadline_ns);

/* Wake the loop in the way that weft__inbox_push() has returned. */
void weft__loop_wake_sleeper(weft_loop *loop, int mode);

/* Post an internal node to a loop that exists.  The loop runs fn(arg).  Thread: any. */
WEFT__SHARED void weft__loop_send(weft_loop *loop, struct weft__node_head *node, weft_fn fn,
                                  void *arg);

/* Make the present or next wait return.  And: the loop has found the wake node in its inbox. */
void weft__loop_wake(weft_loop *loop);
void weft__loop_take_wake(weft_loop *loop);

/* Open the backend, unless it is open.  0, or an error. */
int weft__loop_open_backend(weft_loop *loop);

/* Poll the kernel without waiting, if a poll is due.  weft__loop_poll() calls the hooks, too;
 * weft__loop_poll_kernel() is for a caller that has called them. */
void weft__loop_poll(weft_loop *loop);
void weft__loop_poll_kernel(weft_loop *loop);

/* --- expire.c ----------------------------------------------------------- */

/* Whether a deadline that has passed may expire.  If not, begin to deliver what has
 * arrived. */
bool weft__deadline_may_expire(weft_loop *loop, const struct weft__wheel_entry *entry);

/* wants_poll: this iteration must poll the kernel; polled: it has polled; slept: a sleep until
 * `until_ns` ended by its timeout; step: an iteration has ended while a delivery is in
 * progress. */
bool weft__expiry_wants_poll(const weft_loop *loop);
void weft__expiry_polled(weft_loop *loop);
void weft__expiry_slept(weft_loop *loop, uint64_t until_ns);
void weft__expiry_step(weft_loop *loop);

/* --- op.c, watch.c ------------------------------------------------------ */

/* Hand a result to its owner.  Every result goes through this function. */
void weft__op_deliver(weft_loop *loop, struct weft__op *op);

/* Deliver finished ops. */
void weft__ops_run_done(weft_loop *loop);

void weft__op_expire(weft_loop *loop, struct weft__wheel_entry *entry);

/* The loop stops: request cancellation of everything pending, and notify the owners of custom
 * ops. */
void weft__ops_end(weft_loop *loop);

/* Set whether the watch is background work.  On by default for signals, off for others.  May be
 * called at any time; stop and start keep the setting. */
void weft__watch_set_background(weft_watch *watch, bool on);

/* End all ops and watches on `fd`. */
void weft__fd_evict(weft_loop *loop, int fd);

/* End a watch; its callback runs in the closing phase. */
void weft__watch_end(weft_loop *loop, weft_watch *watch);
void weft__watches_run_ended(weft_loop *loop);

/* --- signal.c ----------------------------------------------------------- */

/* fini: the loop is freed (`alone`: in a forked child); forked: this process is a forked
 * child. */
void weft__signals_fini(weft_loop *loop, bool alone);
void weft__signals_forked(void);

/* --- registry.c --------------------------------------------------------- */

struct weft__listing;

struct weft__registry {
	struct weft__lock lock;
	weft_loop        *first;
	struct weft__listing *listings; /* requests, of threadlet_list.c */
};

extern struct weft__registry weft__registry;

/* Add a loop, unless it is listed; remove it. */
void weft__registry_add(weft_loop *loop);
void weft__registry_remove(weft_loop *loop);

/* The loop with the next higher ID after `*after` (begin with 0), which is set to its ID.  The
 * calling thread becomes a visitor of it.  NULL at the end. */
weft_loop *weft__registry_next(uint64_t *after);

/* The loop with that ID, with the calling thread as a visitor; or NULL. */
weft_loop *weft__registry_find(uint64_t id);

/* In a forked child. */
void weft__registry_forget(void);

/* weft_loop_free() is in progress: it has claimed the loop, on which no work is left.  It gives the
 * loop back only if it fails, because of a visitor that stops the loop or has left a reference. */
static inline bool
weft__loop_is_going(const weft_loop *loop)
{
	return weft__load(&loop->going, WEFT__SEQ_CST) != 0; /* F, in registry.c */
}

/* --- observe.c ---------------------------------------------------------- */

/* For the runner, or the thread that holds the loop.  on: begin to sample, if the loop has a
 * sampler; off: end sampling if its time has passed; true if sampling has ended. */
void weft__sampler_on(weft_loop *loop);
bool weft__sampler_off(weft_loop *loop, uint64_t now_ns);

/* --- stop_wait.c -------------------------------------------------------- */

/* A wait for a loop to stop.  The loop's runner makes both calls: claim, under the registry's lock,
 * returns whether the wait can be ended; then wake ends it. */
struct weft__stop_wait {
	bool (*claim)(struct weft__stop_wait *wait);
	void (*wake)(struct weft__stop_wait *wait);
	struct weft__stop_wait *next; /* under the registry's lock, like the next */
	weft_loop *loop;              /* NULL: not in its list */
};

/* Begin to wait.  False: the loop has stopped, and neither function will be called. */
bool weft__stop_wait_add(weft_loop *loop, struct weft__stop_wait *wait);

/* End a wait early.  Returns the loop, which the caller now visits; NULL: the loop has stopped. */
weft_loop *weft__stop_wait_drop(struct weft__stop_wait *wait);

/* The loop has stopped: end all waits. */
void weft__stop_waits_end(weft_loop *loop);

/* Report that the loop has not stopped by the deadline of a wait. */
void weft__loop_report_late(weft_loop *loop);

/* --- watchdog.c --------------------------------------------------------- */

/* Watch a loop, until it is destroyed.  0, or an error. */
int  weft__watchdog_add(weft_loop *loop);
void weft__watchdog_remove(weft_loop *loop);

/* This thread begins, and ends, a run of a loop for which weft__loop_holder() works. */
void weft__watchdog_begin(weft_loop *loop);
void weft__watchdog_end(weft_loop *loop);

/* Find out what runs on the loop's thread now.  False if that thread does not answer. */
bool weft__loop_holder(weft_loop *loop, struct weft__holder *out);

/* Check a loop: true if it has been held for longer than its limit and that was not reported
 * yet. */
bool weft__watchdog_check(weft_loop *loop, uint64_t now_ns);

/* In a forked child. */
void weft__watchdog_forget(void);

/* --- local.c ------------------------------------------------------------ */

#define WEFT__LOCALS 64

struct weft__locals {
	void *values[WEFT__LOCALS]; /* by key minus 1 */
};

/* Whether the key exists; and end a value, which may be NULL, by its key's drop function. */
bool weft__local_is_key(int key);
void weft__local_drop(int key, void *value);

/* Drop all values; true if there was any. */
bool weft__locals_end(weft_loop *loop);

/* In a forked child. */
void weft__locals_forked(void);

/* --- schedule.c ------------------------------------------------ */

/* Error texts of one of the weft_schedule_* calls. */
struct weft__schedule_texts {
	const char *no_loop, *no_fn, *forked, *no_memory, *stopping;
};

#define WEFT__SCHEDULE_TEXTS(call)                                                      \
	{                                                                               \
		call ": there is no loop; pass one, or call it in a callback of a loop", \
		call ": fn is NULL",                                                    \
		call ": the loop was made by a parent process",                         \
		call ": out of memory",                                                 \
		call ": the loop is stopping, or has stopped",                          \
	}

/* Whether the loop can be used, also by other threads, and `fn` is not NULL.  0, or an error. */
int weft__schedule_check(const weft_loop *loop, weft_fn fn,
                         const struct weft__schedule_texts *texts);

/* Like weft_schedule_timeout(), but at `deadline_ns` and as background work; results that arrived
 * before the deadline come first. */
int64_t weft__schedule_deadline(weft_loop *loop, uint64_t deadline_ns, weft_fn fn,
                                void *arg);

/* A handle has expired.  True if its callback was called. */
bool weft__timer_handle_expire(weft_loop *loop, struct weft__wheel_entry *entry);

/* Run immediates queued before this call, within the budget. */
void weft__timer_handles_run_due(weft_loop *loop);

/* init: once, as the loop is made; clear: clear all handles; fini: free their memory. */
void weft__timer_handles_init(weft_loop *loop);
void weft__timer_handles_clear(weft_loop *loop);
void weft__timer_handles_fini(weft_loop *loop);

#endif
