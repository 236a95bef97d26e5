/* pool.h - a pool of plain threads, as the files of this layer share it.  Private.
 *
 * Needs: loop, backend, base.
 *
 * The files: pool.c (the queue and the threads), work.c (who puts something in, and
 * the pools that loops have), options.c (what a pool is made of).
 *
 * What stands in the queue is a struct weft__op.  Of an op that waits the node is free,
 * so it holds the work: node.fn and node.arg, and node.next and `before` as links.  So
 * there is nothing to allocate and nothing that could run out.  A thread that waits
 * for its work by itself has an op without a loop, and so have the tickets of dag/.
 */
#ifndef WEFT_WORK_POOL_H
#define WEFT_WORK_POOL_H

#include <weft/work.h>
#include "backend/op.h"
#include "base/lock.h"
#include "base/look.h"
#include "base/thread.h"

enum {
	WEFT__WORKER_SLEEPS, /* on its bell, or is about to */
	WEFT__WORKER_CALLED,
	WEFT__WORKER_LOOKS,  /* at its bell, for a moment before it sleeps */
};

/* A thread of a pool, or the place of one; it lasts as long as the pool. */
struct weft__worker {
	weft_pool           *pool;   /* set once, as the next */
	struct weft__worker *other;  /* in the pool's list of all */
	weft__a32            bell;   /* WEFT__WORKER_* */
	weft__a32            why;    /* the work it runs was asked to end; or 0 */

	/* Under the pool's lock. */
	struct weft__worker *below;  /* in the list of idle or of spare ones */
	struct weft__op     *op;     /* that it took last, not to be looked into */
	weft_fn              runs;   /* the function of that, while it runs; or NULL */
	uint64_t             thread; /* to be joined, */
	bool                 has_thread; /* if there is one */
};

/* Set once. */
struct weft__pool_setup {
	char     name[16];
	uint32_t threads_min, threads_max, queue_max;
	uint64_t idle_ns;
	size_t   stack_bytes;
	struct weft__cpus cpus;
	bool     has_cpus;
	bool     may_look;    /* there is another CPU to look at */
	uint32_t forks;       /* weft__program.forks at its making */
};

struct weft_pool {
	struct weft__lock lock;
	weft__a32 users;      /* works and calls that are not through with the pool */
	weft__a32 owners;     /* loops that it belongs to, besides others */
	weft__a32 places;     /* of the queue, in use or about to be */
	struct weft__pool_setup set;

	/* Under the lock. */
	struct weft__op     *first, *last; /* the queue */
	struct weft__worker *idle;    /* asleep, or about to be; the latest first */
	struct weft__worker *spare;   /* without a thread, or with one that ends */
	struct weft__worker *workers; /* all */
	uint32_t threads;             /* that have not ended */
	bool     ending;

	weft__a32 looking;            /* 1: one of the idle ones looks at its bell */
	struct weft__luck luck;       /* of such looks */
};

/* --- options.c ---------------------------------------------------------- */

/* Check the options and fill in defaults.  0, or an error with its text. */
int weft__pool_setup(struct weft__pool_setup *out, const weft_pool_opts *opts);

/* --- pool.c ------------------------------------------------------------- */

/* A pool with that setup, or NULL without memory. */
weft_pool *weft__pool_make(const struct weft__pool_setup *set);

/* End its threads and give it back; nobody uses it. */
void weft__pool_end(weft_pool *pool);

/* The pool is a parent process's. */
bool weft__pool_is_forked(const weft_pool *pool);

/* Count a user in and out.  Nothing of the pool is touched before and after. */
void weft__pool_enter(weft_pool *pool);
void weft__pool_leave(weft_pool *pool);

/* Have a place in the queue, or false; push() takes it, or it is given back. */
bool weft__pool_reserve(weft_pool *pool);
void weft__pool_give_back(weft_pool *pool);

/* What `op` is to do, where the pool looks for it.  The node has a function of another
 * type, which is called only after the cast back. */
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

/* Queue the work of `op` and see that a thread comes for it.  0, or an error if there
 * is no thread; then it was not queued. */
int weft__pool_push(weft_pool *pool, struct weft__op *op);

/* Report the work that its threads run now, by function. */
void weft__pool_report_late(weft_pool *pool);

/* End the work of `op` early: true if it was queued and is not any more.  Otherwise
 * its function is told that it should return, and why. */
bool weft__pool_revoke(weft_pool *pool, struct weft__op *op, int why);

/* --- work.c ------------------------------------------------------------- */

/* The function of `op` has returned `result`; on the worker's thread.  Of an op without a
 * loop on_done is called, there, and the pool does not look at it any more. */
void weft__work_finish(struct weft__op *op, int result);

/* The pool that WEFT_CPU or WEFT_BLOCKING is for a loop, made at first need; or NULL without
 * memory.  On the loop's thread. */
weft_pool *weft__loop_pool(weft_loop *loop, const weft_pool *which);

/* Have `loop` use pools of others, which it borrows until it is freed, instead of some
 * of its own.  By its thread, before its first work.  0, WEFT_EBUSY, WEFT_ENOMEM. */
int weft__loop_set_pools(weft_loop *loop, weft_pool *cpu, weft_pool *blocking);

#endif
