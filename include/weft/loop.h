/* weft/loop.h - the loop: its life, the door from other threads, embedding.
 *
 * idle -> starting -> running <-> sleeping -> stopping -> stopped.  A run that ends
 * for lack of work, or is told to leave, keeps everything and is back at idle.  A
 * loop stops once, for ever, and is then freed.
 *
 *   1. Posting is accepted from creation until stopping, and what was accepted
 *      runs exactly once.
 *   2. An idle loop belongs to whichever one thread uses it; running takes it.
 *   3. The backend opens with the first op or watch, or weft_loop_fd().  One on io_uring
 *      binds the loop to the thread that runs it then: elsewhere it is WEFT_EWRONGLOOP,
 *      unless it was made with WEFT_LOOP_MOVABLE.
 *   4. A microtask checkpoint begins each run and follows every callback.
 *   5. After fork() a loop is only memory in the child: weft_loop_free() gives it
 *      back, whatever its state, and touches nothing the parent shares; all else
 *      is WEFT_EWRONGLOOP.  The child makes loops of its own.
 *
 * With watchdog_ns a thread of the library looks, twice in that time, whether the loop
 * has come to another turn or threadlet; if it has not, and does not sleep, it tells the
 * report hook (WEFT_REPORT_BLOCKED) once which threadlet, or that a callback, holds it,
 * and by which calls.  For that it sends SIGURG to the loop's thread, where the signal is
 * not blocked from then on: a system call under way there may end with EINTR.  The hook
 * is called by that thread of the library, and must not free loops.
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include <weft/base.h>

WEFT_BEGIN

enum {
	WEFT_LOOP_METRICS = 1 << 0, /* times, rates and depths, in 90 kB: weft/metrics.h */
	WEFT_LOOP_NO_SPIN = 1 << 1, /* never look on for a moment before sleeping */
	WEFT_LOOP_KEEP    = 1 << 3, /* running does not end for lack of work */
	WEFT_LOOP_MOVABLE = 1 << 4, /* any thread may run it; io_uring unbound, slower */
};

typedef struct weft_loop_opts {
	const char *name;      /* of the loop and its thread; 15 bytes are kept */
	const char *backend;   /* "uring", "epoll", "poll"; default: $WEFT_BACKEND, or best */
	uint32_t    flags;     /* WEFT_LOOP_* */
	uint32_t    budget;    /* posts run per turn; default 1024 */
	uint32_t    inbox_max; /* posts queued at most, and first posts; 65,536 */
	uint32_t    threadlet_max; /* alive at most; default 4,194,304 */
	size_t      stack_bytes;   /* of a threadlet; default 64 KiB */
	const char *cpus;      /* "0-3,6": where weft_loop_start()'s thread runs */
	uint64_t    watchdog_ns;   /* report a loop held longer, see below; default off */
	uint64_t    spare[3];
} weft_loop_opts;

typedef enum weft_state {
	WEFT_IDLE, WEFT_STARTING, WEFT_RUNNING, WEFT_SLEEPING,
	WEFT_STOPPING, WEFT_STOPPED,
} weft_state;

/* Make a loop; it opens nothing until it needs to.
 * Returns it, or NULL: out of memory, or an option is wrong (weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_loop *weft_loop_new(const weft_loop_opts *opts);

/* Free a loop that is idle or stopped.  Takes it on success; accepts NULL.
 * Returns 0, WEFT_EBUSY if it runs, is referenced, or has accepted posts to run or
 * ops to finish.
 * Thread: any, not from inside it.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_free(weft_loop *loop);

/* Run on this thread until stopped, told to leave, or nothing is alive.
 * Returns 0, WEFT_EBUSY if it runs elsewhere, WEFT_EDEADLK inside itself, WEFT_EWRONGLOOP
 * if bound to another thread, WEFT_EALREADY once stopped.
 * Thread: the one that becomes its own.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_loop_run(weft_loop *loop);

/* Run one turn, which waits for events until the deadline at most, and with
 * WEFT_NOWAIT always polls.  A timer whose deadline ends the wait fires in the next.
 * Returns 1 while something is alive or stopping, 0 when nothing is, or as
 * weft_loop_run().
 * Thread: its own.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_loop_run_once(weft_loop *loop, uint64_t deadline_ns);

/* Make the present, else the next, run return after one turn, which does not
 * block.  All is kept, and the loop can be run again.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_loop_break(weft_loop *loop);

/* Run on a new thread, until stopped or told to leave, as with WEFT_LOOP_KEEP.
 * Returns 0 when it runs, WEFT_EBUSY, WEFT_EALREADY, WEFT_EAGAIN (no thread).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_start(weft_loop *loop);

/* Begin to stop: refuse posts, disarm timers and numbers without a call, finish ops
 * and watches with WEFT_ESHUTDOWN, run what was accepted.  Any number of times.  It
 * happens as the loop goes on running; an idle one that has nothing to run or finish
 * is stopped at once.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_loop_shutdown(weft_loop *loop);

/* Wait until the loop is stopped: nothing of it runs after this returned 0.  At
 * the deadline what has not ended is reported (WEFT_REPORT_LATE_STOP).
 * Returns 0, WEFT_EDEADLK on its own thread, WEFT_ENOSUSPEND in callbacks of another loop.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_loop_wait_stopped(weft_loop *loop, uint64_t deadline_ns);

/* The state at this moment.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_state weft_loop_state(const weft_loop *loop);

/* The loop that runs on this thread, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_loop *weft_loop_current(void);

/* A key for a value that each loop has of its own.  `drop` (may be NULL) ends the value
 * with it.  Keys are for ever: at most 64.
 * Returns the key, which is not 0, or WEFT_EAGAIN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_key_new(weft_fn drop);

/* Read and set the loop's value for a key of weft_key_new(); NULL if unset.  The
 * key's drop ends a value that is replaced, at once, and what is left as the loop stops,
 * else as it is freed: last key first, by the thread that does that, and not in a
 * forked child.  It may read other values, but none can be set any more.
 * set takes `value` on success, else it stays the caller's, and returns 0, WEFT_EINVAL,
 * WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_loop_local_get(const weft_loop *loop, int key);
WEFT_API int   weft_loop_local_set(weft_loop *loop, int key, void *value);

/* The clock of this turn: one reading, renewed when a wait is over; outside of
 * turns, as it is now.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_loop_now(const weft_loop *loop);

/* Run `fn(arg)` on the loop; _first ahead of all other posts.  Posts of a thread run in
 * its order; those of two threads in none, even if one is known to have been made
 * first.  A thread keeps the room that its posts have once taken, until it ends:
 * where many threads post, some find the inbox full before inbox_max are queued; but
 * each can always have one.
 * Returns 0, WEFT_EAGAIN if the inbox is full or without memory for that, WEFT_ESHUTDOWN
 * once stopping.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_post(weft_loop *loop, weft_fn fn, void *arg);
WEFT_API int weft_loop_post_first(weft_loop *loop, weft_fn fn, void *arg);

/* Run `node->fn(node->arg)` on the loop, in order with weft_loop_post(), from the
 * caller's memory.
 * Returns 0, WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_post_node(weft_loop *loop, weft_node *node);

/* Run `node->fn(node->arg)` before the loop next waits, after all else: what many
 * callbacks of a turn add to is flushed once.  A node that is queued stays so.
 * Returns 0, also while stopping.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_post_before_wait(weft_loop *loop, weft_node *node);

/* Make the present, else the next, wait of the loop return at once.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_loop_wake(weft_loop *loop);

/* Hold the loop's memory: while referenced it cannot be freed.  ref returns its
 * argument, unref NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_loop *weft_loop_ref(weft_loop *loop);
WEFT_API weft_loop *weft_loop_unref(weft_loop *loop);

/* Give back memory that is kept for reuse and in use by nothing now.
 * Returns the bytes given back.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int64_t weft_loop_trim(weft_loop *loop);

/* --- for bindings, and for life inside another loop --------------------- */

/* Calls at points of each turn; those that are NULL are not made.  Zeroed at first; must
 * stay put and unchanged while pushed.  What is called may push and drop any hook: one
 * that was pushed meanwhile takes part from the next point on. */
typedef struct weft_loop_hook {
	/* Once a turn, before the wait is decided and before weft_loop_post_before_wait():
	 * run a queue of one's own, return > 0 if more is left: do not block or end. */
	int  (*ready)(weft_loop *loop, void *arg);
	/* Around each wait and each look at descriptors, spinning included; `may_block`
	 * tells whether it can take time (a GIL).  No microtasks run between the two.  A
	 * signal (EINTR) ends a wait: after_wait can see to it. */
	void (*before_wait)(weft_loop *loop, bool may_block, void *arg);
	void (*after_wait)(weft_loop *loop, bool may_block, void *arg);
	/* Part of each microtask checkpoint: run some jobs, return how many.
	 * Called until it returns 0 and the microtask queue is empty. */
	int  (*checkpoint)(weft_loop *loop, void *arg);
	/* weft_loop_next() has changed; outside of turns only, and not for what goes
	 * through the inbox (posts, numbers), which the descriptor tells. */
	void (*next_changed)(weft_loop *loop, void *arg);
	void    *arg;       /* caller's */
	uint64_t opaque[4]; /* private */
	uint64_t spare[1];
} weft_loop_hook;

/* Add a hook, any number of them, called in order, after_wait last to first; and
 * take it off: afterwards it is not called and its memory is the caller's.  A loop that
 * has stopped, or is freed, has dropped them all.
 * push returns 0, WEFT_EBUSY if it is on a loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int  weft_loop_push_hook(weft_loop *loop, weft_loop_hook *hook);
WEFT_API void weft_loop_drop_hook(weft_loop *loop, weft_loop_hook *hook);

/* A descriptor that becomes readable when weft_loop_run_once() has something to do; for
 * no more than that: it is never read, and may be readable for nothing.  The loop is the
 * calling thread's from then on, also between turns: if another thread stops it, it
 * stops when it is next run.
 * Returns it, borrowed until the loop is freed, or WEFT_ENOSYS (poll backend).
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_fd(weft_loop *loop);

/* When weft_loop_run_once() must be called even if the descriptor stays quiet:
 * WEFT_NOWAIT if work is runnable, WEFT_NEVER if nothing is planned.  To be asked after
 * each turn; and before each wait of the host's, unless next_changed is called.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_loop_next(weft_loop *loop);

WEFT_END
#endif
