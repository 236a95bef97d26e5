/* pool.h - a pool of plain threads, as shared by the files of this layer.  Private.
 *
 * Needs: loop, base.
 *
 * The files: pool.c (the queue and the threads), work.c (submitting work, and the pools of
 * loops), pool_options.c (the configuration of a pool).
 *
 * The queue holds struct weft__op.  The node of a waiting custom op is free for its owner, so
 * it holds the work: node.fn and node.arg, with node.next and `before` as links.  Nothing is
 * allocated, so nothing can run out.  A thread that waits for its own work uses an op without a
 * loop, and so do the work items of dag/.
 */
#ifndef WEFT_WORK_POOL_H
#define WEFT_WORK_POOL_H

#include <weft/work.h>
#include "base/build.h"
#include "base/lock.h"
#include "base/spin.h"
#include "base/thread.h"
#include "loop/io/op.h"

enum {
	WEFT__WORKER_SLEEPS, /* on its futex, or is about to */
	WEFT__WORKER_CALLED,
	WEFT__WORKER_SPINS,  /* before it sleeps */
};

/* A thread of a pool, or a slot for one; exists as long as the pool. */
struct weft__worker {
	weft_pool           *pool;   /* set once, like `other` */
	struct weft__worker *other;  /* next in the pool's list of all workers */
	weft__a32            futex;  /* WEFT__WORKER_* */
	weft__a32            why;    /* the error with which its work was requested to end; or 0 */

	/* Under the pool's lock. */
	struct weft__worker *below;  /* next in the idle or the spare list */
	struct weft__op     *op;     /* the op taken last; only compared, never dereferenced */
	weft_fn              runs;   /* the function of its work while that runs; or NULL */
	uint64_t             thread; /* to be joined */
	bool                 has_thread; /* `thread` is valid */
};

/* Constant after creation. */
struct weft__pool_setup {
	char     name[16];
	uint32_t threads_min, threads_max, queue_max;
	uint64_t idle_ns;
	size_t   stack_bytes;
	struct weft__cpus cpus;
	bool     has_cpus;
	bool     may_spin;    /* spinning is allowed and there is more than one CPU */
	uint32_t forks;       /* weft__program.forks at creation */
};

struct weft_pool {
	struct weft__lock lock;
	weft__a32 users;      /* work and calls that still use the pool */
	weft__a32 owners;     /* loops that borrow it */
	weft__a32 queue_used; /* entries of the queue, in use or reserved */
	struct weft__pool_setup set;

	/* Under the lock. */
	struct weft__op     *first, *last; /* the queue */
	struct weft__worker *idle;    /* asleep or about to be; latest first */
	struct weft__worker *spare;   /* workers without a thread, or with an exiting one */
	struct weft__worker *workers; /* all */
	uint32_t threads;             /* threads that have not retired */
	bool     ending;

	weft__a32 spinning;           /* 1: one of the idle workers spins */
	struct weft__spin_backoff backoff;       /* adaptive spin */
};

/* --- pool_options.c ------------------------------------------------------ */

/* Check the options and fill in defaults.  0, or an error with its text. */
int weft__pool_setup(struct weft__pool_setup *out, const weft_pool_opts *opts);

/* --- pool.c -------------------------------------------------------------- */

/* A new pool with that setup, or NULL without memory. */
weft_pool *weft__pool_make(const struct weft__pool_setup *set);

/* End its threads and free it; the pool must have no users. */
void weft__pool_end(weft_pool *pool);

/* Whether the pool belongs to a parent process, from before a fork. */
WEFT__SHARED bool weft__pool_is_forked(const weft_pool *pool);

/* Begin and end using the pool.  A caller of leave must not access the pool afterwards. */
WEFT__SHARED void weft__pool_enter(weft_pool *pool);
WEFT__SHARED void weft__pool_leave(weft_pool *pool);

/* Reserve an entry of the queue; false if it is full.  weft__pool_push() consumes the entry;
 * otherwise the caller returns it. */
WEFT__SHARED bool weft__pool_reserve(weft_pool *pool);
WEFT__SHARED void weft__pool_unreserve(weft_pool *pool);

/* Store the work of `op` where the pool expects it.  The node's fn has another type; it is
 * called only after casting it back. */
static inline void
weft__op_set_work(struct weft__op *op, weft_work_fn fn, void *arg)
{
	weft__put(op->node.fn, (weft_fn)(void (*)(void))fn);
	weft__put(op->node.arg, arg);
}

static inline int
weft__op_do_work(struct weft__op *op)
{
	weft_work_fn fn = (weft_work_fn)(void (*)(void))weft__get(op->node.fn);

	return fn(weft__get(op->node.arg));
}

/* Queue the work of `op` and make sure that a thread takes it.  0, or an error if there is no
 * thread; then the work was not queued. */
WEFT__SHARED int weft__pool_push(weft_pool *pool, struct weft__op *op);

/* Report the work that its threads are running, by function. */
void weft__pool_report_late(weft_pool *pool);

/* End the work of `op` early.  True if it was queued, and no longer is.  Otherwise its function
 * learns through weft_check_canceled() that it should return, and why. */
bool weft__pool_revoke(weft_pool *pool, struct weft__op *op, int why);

/* --- work.c -------------------------------------------------------------- */

/* The function of `op` has returned `result`; on the worker's thread.  For an op without a loop
 * this calls on_done there, and the pool does not access the op again. */
void weft__work_finish(struct weft__op *op, int result);

/* The pool that WEFT_CPU or WEFT_BLOCKING means for a loop, created on first use; NULL without
 * memory.  On the loop's thread. */
WEFT__SHARED weft_pool *weft__loop_pool(weft_loop *loop, const weft_pool *which);

/* Make `loop` use the given pools, which it borrows until it is freed, instead of its own.  On
 * its thread, before its first work.  0, WEFT_EBUSY, WEFT_ENOMEM. */
int weft__loop_set_pools(weft_loop *loop, weft_pool *cpu, weft_pool *blocking);

/* The list of file.c's jobs whose callers have left; NULL without memory. */
struct weft__file_job;
struct weft__file_job **weft__loop_left_jobs(weft_loop *loop);

#endif
