/* weft/loop.h - event loops: life cycle and posting from other threads.
 *
 * States: idle -> starting -> running <-> sleeping -> stopping -> stopped.  A run that runs out
 * of work, or is ended by weft_loop_break(), keeps everything, and the loop is idle again.  A
 * loop stops only once.  A stopped loop cannot run again; it can only be freed.
 *
 *   1. A loop accepts posts from its creation until it begins to stop.  Every accepted post
 *      runs exactly once.
 *   2. A running loop belongs to the thread that runs it.  Any thread may use an idle loop, but
 *      no two threads at once.
 *   3. The backend opens with the first op or watch, or with weft_loop_fd().  An io_uring
 *      backend binds the loop to the thread that runs it then: other threads get WEFT_EWRONGLOOP,
 *      unless the loop was made with WEFT_LOOP_MOVABLE.
 *   4. A microtask checkpoint begins each run and follows every callback: it runs ticks and
 *      microtasks (weft/schedule.h) until none are left.
 *   5. After fork() the child may only call weft_loop_free() on a loop of its parent, whatever
 *      its state.  That frees the memory and touches nothing that the parent shares.  All other
 *      calls return WEFT_EWRONGLOOP.  The child can make new loops.
 *
 * With watchdog_ns a library thread checks the loop regularly.  If for that long the loop has
 * neither slept, nor begun an iteration, nor switched threadlets, the library thread reports it
 * once (WEFT_REPORT_BLOCKED).  The report names the threadlet that blocks the loop, or says that
 * a callback does, and shows the call stack.  To get the stack, the library thread sends SIGURG
 * to the loop's thread, where the library unblocks that signal: a system call in progress may
 * fail with EINTR.  The report hook runs on the library thread and must not free loops.
 */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include <weft/base.h>

WEFT_BEGIN

enum {
	WEFT_LOOP_METRICS = 1 << 0, /* measure times, rates and depths, in 180 kB: weft/metrics.h */
	WEFT_LOOP_NO_SPIN = 1 << 1, /* never spin before sleeping */
	WEFT_LOOP_KEEP    = 1 << 3, /* a run does not end when the loop runs out of work */
	WEFT_LOOP_MOVABLE = 1 << 4, /* any thread may run it; slower with io_uring */
};

typedef struct weft_loop_opts {
	const char *name;      /* of the loop and its thread; cut to 15 bytes */
	const char *backend;   /* "uring", "epoll", "poll"; default: $WEFT_BACKEND, or best */
	uint32_t    flags;     /* WEFT_LOOP_* */
	uint32_t    budget;    /* posts run per iteration; default 1,024 */
	uint32_t    inbox_max; /* limit of queued posts; default 65,536 */
	uint32_t    threadlet_max; /* limit of live threadlets; default 4,194,304 */
	size_t      stack_bytes;   /* of a threadlet; default 64 KiB */
	const char *cpus;      /* "0-3,6": CPUs of the thread of weft_loop_start() */
	uint64_t    watchdog_ns;   /* report a loop that is blocked this long, see above; default
	                            * off */
	void      (*on_report)(void *arg, const weft_report *report); /* for reports about this
	                            * loop, instead of the hook of weft_set_hooks() */
	void       *report_arg;
	uint64_t    spare[1];      /* must be zero: room for later versions */
} weft_loop_opts;

typedef enum weft_state {
	WEFT_IDLE, WEFT_STARTING, WEFT_RUNNING, WEFT_SLEEPING,
	WEFT_STOPPING, WEFT_STOPPED,
} weft_state;

/* Make a loop.  It opens no descriptors until it needs them.
 * Returns the loop; NULL if memory is exhausted or an option is invalid (see weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_loop *weft_loop_new(const weft_loop_opts *opts);

/* Free a loop that is idle or stopped.  Takes it on success; accepts NULL.
 * Returns 0; WEFT_EBUSY if the loop is running, is referenced, or still has accepted posts to
 * run or ops to finish.
 * Thread: any, but not in a callback of the loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_free(weft_loop *loop);

/* Run the loop on this thread until it has stopped, weft_loop_break() is called, or nothing
 * keeps it alive.
 * Returns 0, WEFT_EBUSY if another thread runs the loop, WEFT_EDEADLK if the caller is inside a
 * run of this loop or in a threadlet, WEFT_EWRONGLOOP if the loop is bound to another thread,
 * WEFT_EALREADY once it has stopped.
 * Thread: any, to which the loop belongs during the run.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_loop_run(weft_loop *loop);

/* Run one loop iteration.  It waits for events until the deadline at most; with WEFT_NOWAIT it
 * polls without waiting.  A timer whose deadline ends the wait fires in the next iteration.
 * Returns 1 if work keeps the loop alive or the loop is stopping, 0 if nothing keeps it alive,
 * or an error as weft_loop_run().
 * Thread: as weft_loop_run().  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_loop_run_once(weft_loop *loop, uint64_t deadline_ns);

/* Make the current run return at the end of its current iteration, which no longer blocks.  If
 * the loop is not running, the next run returns after one iteration, which does not block.  The
 * loop keeps everything and can be run again.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_loop_break(weft_loop *loop);

/* Run the loop on a new thread until it has stopped or weft_loop_break() is called, as with
 * WEFT_LOOP_KEEP.
 * Returns 0 once the thread is started, WEFT_EBUSY if the loop is running, WEFT_EALREADY once it
 * has stopped, WEFT_EWRONGLOOP if it is bound to another thread, WEFT_EAGAIN if the system cannot
 * start a thread.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_start(weft_loop *loop);

/* Begin to stop the loop: it refuses new posts, disarms all timers without calling their
 * callbacks, cancels its threadlets, runs the posts it has accepted, and finishes ops and watches
 * with WEFT_ESHUTDOWN.  The loop does this while it continues to run, or when it is run next; an
 * idle loop with nothing to run or finish stops at once.  Further calls have no effect.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_loop_shutdown(weft_loop *loop);

/* Wait until the loop has stopped.  Once this has returned 0, no callback and no threadlet of the
 * loop runs.  At the deadline (but not with WEFT_NOWAIT) the library reports what has not ended
 * (WEFT_REPORT_LATE_STOP).
 * Returns 0; WEFT_EDEADLK on the loop's own thread, WEFT_ENOSUSPEND in callbacks of another loop.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_loop_wait_stopped(weft_loop *loop, uint64_t deadline_ns);

/* Get the state of the loop at this moment.
 * Returns the state.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_state weft_loop_state(const weft_loop *loop);

/* Get the loop that runs on this thread.
 * Returns the loop, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_loop *weft_loop_current(void);

/* Get the time of the current iteration: the loop reads the clock once per iteration, and again
 * after a wait.  Outside of iterations this is the present time.
 * Returns the time in nanoseconds, as weft_now() does.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_loop_now(const weft_loop *loop);

/* Run `fn(arg)` on the loop.  Posts from one thread run in the order they were made.  Posts from
 * different threads are unordered, even if one happened before the other.  The inbox space that
 * a thread's posts have used stays reserved for that thread until the thread ends.  So if many
 * threads post, some may find the inbox full before inbox_max posts are queued; but every thread
 * can always queue one.
 * Returns 0, WEFT_EAGAIN if the inbox is full or memory is exhausted, WEFT_ESHUTDOWN once the
 * loop is stopping.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_post(weft_loop *loop, weft_fn fn, void *arg);

/* Run `node->fn(node->arg)` on the loop, in order with the posts of weft_loop_post().  The node
 * is memory of the caller, so inbox_max does not limit these posts.
 * Returns 0, WEFT_EBUSY if the node is already queued, WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_post_node(weft_loop *loop, weft_node *node);

/* Make the current wait of the loop, or else the next one, return at once.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_loop_wake(weft_loop *loop);

/* Add and drop a reference to the loop.  A referenced loop cannot be freed.
 * ref returns its argument, unref returns NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_loop *weft_loop_ref(weft_loop *loop);
WEFT_API weft_loop *weft_loop_unref(weft_loop *loop);

WEFT_END
#endif
