/* weft/work.h - pools of plain threads for computing and for calls that block.
 *
 * Every loop has two pools, its own or the runtime's: WEFT_CPU, one thread per
 * core, and WEFT_BLOCKING, which grows to 64 threads and shrinks.  Threads start when
 * work finds none that is idle.  Queued work can be cancelled; running work is asked
 * by weft_check_canceled() and waited for, since its argument is the caller's memory, and
 * what it returns is the result in any case.
 *
 * Work may post to loops, its own loop included, and may start other work by them.  A
 * loop that stops ends its queued work with WEFT_ESHUTDOWN, asks what runs, and is
 * stopped when all of it has returned.
 */
#ifndef WEFT_WORK_H
#define WEFT_WORK_H

#include <weft/base.h>
#include <weft/op.h>

WEFT_BEGIN

typedef struct weft_pool weft_pool;

/* The caller's loop's own pools; for ops, the op's loop's. */
#define WEFT_CPU      ((weft_pool *)1)
#define WEFT_BLOCKING ((weft_pool *)2)

/* Runs on a pool's thread.  Returns >= 0, or a negative error. */
typedef int (*weft_work_fn)(void *arg);

typedef struct weft_pool_opts {
	const char *name;        /* of the pool and its threads; 15 bytes are kept */
	uint32_t    threads_min; /* kept when idle; default 0 */
	uint32_t    threads_max; /* default: the cores allowed to the process */
	uint32_t    queue_max;   /* work that waits for a thread; default 65,536 */
	uint64_t    idle_ns;     /* an idle thread above the minimum ends; default 10 s */
	size_t      stack_bytes; /* default: the system's */
	const char *cpus;        /* that its threads run on, "0-3,6"; default: all */
	bool        no_spin;     /* an idle thread sleeps at once, as WEFT_LOOP_NO_SPIN */
	uint64_t    spare[3];
} weft_pool_opts;

/* Make a pool; threads start with the first work.  Borrows `opts` until return.
 * Returns it, or NULL: out of memory, or an option is wrong (weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_pool *weft_pool_new(const weft_pool_opts *opts);

/* Free a pool and end its threads.  Takes it on success; accepts NULL.  In a forked
 * child it gives back memory only, as nothing else can be done with it there.
 * Returns 0, WEFT_EBUSY while it has work, until that has been told to its loop, or
 * belongs to a loop not freed yet, WEFT_EDEADLK in one of its own threads.
 * Thread: any but its own.  Blocks: until idle threads have ended.  Since: 0.1. */
WEFT_API int weft_pool_free(weft_pool *pool);

/* Run `fn(arg)` in the pool and wait for it.  Borrows `arg` until return.
 * Returns what `fn` did, WEFT_EAGAIN if the queue is full or no thread is to be had,
 * WEFT_EDEADLK in one of the pool's own threads, WEFT_EWRONGLOOP in a forked child.  After
 * the deadline it returns when `fn` does, unless that has not begun; with WEFT_NOWAIT it
 * is never begun.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_work(weft_pool *pool, weft_work_fn fn, void *arg,
                       uint64_t deadline_ns);

/* Run `fn(arg)` in the pool; finish `op` with what it returned.  Borrows `arg` until
 * the op has finished, which with WEFT_EAGAIN means that no thread is to be had.
 * Returns as every start (weft/op.h), WEFT_EAGAIN if the queue is full.
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_work_op(weft_pool *pool, weft_work_fn fn, void *arg,
                          weft_op *op, uint64_t deadline_ns);

WEFT_END
#endif
