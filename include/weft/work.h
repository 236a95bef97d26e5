/* weft/work.h - thread pools for computation and for blocking calls.
 *
 * Every loop has two pools, its own or the runtime's: WEFT_CPU, with one thread per core, and
 * WEFT_BLOCKING, which grows to 64 threads and shrinks again.  A pool starts a thread when work
 * comes and no thread is idle.  Queued work can be canceled.  Running work cannot be stopped; it
 * can only call weft_check_canceled() itself.  The argument of the work is memory of the caller,
 * so the caller waits until the work has returned, and gets its return value even after a
 * cancellation.
 *
 * Work may post to loops, its own loop included, and may start other work through them.  A loop
 * that stops finishes its queued work with WEFT_ESHUTDOWN, cancels running work, and is stopped
 * when all of it has returned.
 */
#ifndef WEFT_WORK_H
#define WEFT_WORK_H

#include <weft/base.h>
#include <weft/op.h>

WEFT_BEGIN

typedef struct weft_pool weft_pool;

/* The pools of the caller's loop; for ops, of the op's loop. */
#define WEFT_CPU      ((weft_pool *)1)
#define WEFT_BLOCKING ((weft_pool *)2)

/* Runs on a pool's thread.  Returns >= 0, or a negative error. */
typedef int (*weft_work_fn)(void *arg);

typedef struct weft_pool_opts {
	const char *name;        /* of the pool and its threads; 15 bytes are kept */
	uint32_t    threads_min; /* threads kept when idle; default 0 */
	uint32_t    threads_max; /* default: the number of cores the process may use */
	uint32_t    queue_max;   /* limit of queued work; default 65,536 */
	uint64_t    idle_ns;     /* a thread above threads_min ends when idle this long; default
	                          * 10 s */
	size_t      stack_bytes; /* default: the system's */
	const char *cpus;        /* CPUs of its threads, "0-3,6"; default: all */
	bool        no_spin;     /* idle threads never spin, as with WEFT_LOOP_NO_SPIN */
	uint64_t    spare[3];    /* must be zero: room for later versions */
} weft_pool_opts;

/* Make a pool; threads start with the first work.  Borrows `opts` until return.
 * Returns the pool; NULL if memory is exhausted or an option is invalid (see weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_pool *weft_pool_new(const weft_pool_opts *opts);

/* Free a pool and end its threads.  Takes it on success; accepts NULL.  In a forked child this
 * only frees memory, and is the only call allowed there.
 * Returns 0; WEFT_EBUSY while it has work whose result has not reached its loop, or while it
 * belongs to a loop that is not freed; WEFT_EDEADLK in one of its own threads.
 * Thread: any but those of the pool.  Blocks: until idle threads have ended.  Since: 0.1. */
WEFT_API int weft_pool_free(weft_pool *pool);

/* Run `fn(arg)` in the pool and wait for it.  Borrows `arg` until return.  After the deadline
 * the call returns at once if `fn` has not begun, else when `fn` returns.  With WEFT_NOWAIT `fn`
 * never begins.
 * Returns what `fn` returned, WEFT_EAGAIN if the queue is full or no thread can be started,
 * WEFT_EDEADLK in one of the pool's own threads, WEFT_EWRONGLOOP in a forked child.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_work(weft_pool *pool, weft_work_fn fn, void *arg,
                       uint64_t deadline_ns);

/* Run `fn(arg)` in the pool; the op finishes with its return value, or with WEFT_EAGAIN if no
 * thread can be started.  Borrows `arg` until then.
 * Returns as every start (weft/op.h), WEFT_EAGAIN if the queue is full.
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_work_op(weft_pool *pool, weft_work_fn fn, void *arg,
                          weft_op *op, uint64_t deadline_ns);

WEFT_END
#endif
