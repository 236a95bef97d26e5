/* work.c - submitting work to pools, and the pools of a loop.
 *
 * Work is a custom op whose node is in the pool's queue while it waits (pool.h).  The worker
 * sends the result to the loop's thread, where the op leaves the pool before it is finished.
 * So a callback that frees the pool finds it without users.
 *
 *   1. The pool is left once for each time it was entered: by the code that revokes the work,
 *      in on_worked(), or where the work could not be queued.  The lock decides between the
 *      first two (pool.c, invariant 3).
 *   2. While an op is pending its loop is not freed and does not finish stopping.  A stopping
 *      loop rejects new ops.  So when its count of pending ops is zero, the loop has no work in
 *      any pool and none will come: pools need no drain of their own.
 *   3. A waiting caller is notified under the pool's lock, and takes that lock before it
 *      returns: after that, no other thread accesses its stack.
 */
#include "threadlet/threadlet.h"
#include "work/pool.h"

#define BLOCKING_MAX 64u

/* --- the pools of a loop ------------------------------------------------ */

/* Index: 0 for WEFT_CPU, 1 for WEFT_BLOCKING. */
struct pools {
	struct weft__part part; /* first */
	weft_pool *pool[2];
	bool borrowed;
	struct weft__file_job *left; /* of file.c */
};

static struct pools *
pools_at(const weft_loop *loop)
{
	return (struct pools *)(void *)weft__loop_part(loop, WEFT__PART_POOLS);
}

static void
pools_free(weft_loop *loop, bool alone)
{
	struct pools *pools = pools_at(loop);

	(void)alone;
	for (int i = 0; i < 2; i++) {
		weft_pool *pool = pools->pool[i];

		if (!pool)
			continue;
		if (pools->borrowed)
			(void)weft__add(&pool->owners, UINT32_MAX, WEFT__RELEASE);
		else
			weft__pool_end(pool);
	}
	weft__sys->release(pools);
}

static struct pools *
get_pools(weft_loop *loop)
{
	static const struct weft__part_ops ops = { .free = pools_free };
	struct pools *pools = pools_at(loop);

	if (pools)
		return pools;
	pools = weft__alloc_zero(sizeof(*pools));
	if (!pools)
		return NULL;
	pools->part.ops = &ops;
	(void)weft__loop_attach(loop, WEFT__PART_POOLS, &pools->part);
	return pools;
}

struct weft__file_job **
weft__loop_left_jobs(weft_loop *loop)
{
	struct pools *pools = get_pools(loop);

	return pools ? &pools->left : NULL;
}

weft_pool *
weft__loop_pool(weft_loop *loop, const weft_pool *which)
{
	bool cpu = which == WEFT_CPU;
	const weft_pool_opts opts = {
		.name = cpu ? "weft-cpu" : "weft-blocking",
		.threads_max = cpu ? 0 : BLOCKING_MAX,
		.no_spin = !weft__loop_allows_spin(loop),
	};
	struct weft__pool_setup set;
	struct pools *pools = get_pools(loop);
	weft_pool **slot = pools ? &pools->pool[!cpu] : NULL;

	if (!slot || *slot)
		return slot ? *slot : NULL;
	if (weft__pool_setup(&set, &opts) == 0)
		*slot = weft__pool_make(&set);
	return *slot;
}

int
weft__loop_set_pools(weft_loop *loop, weft_pool *cpu, weft_pool *blocking)
{
	struct pools *pools;

	if (pools_at(loop))
		return WEFT_EBUSY;
	pools = get_pools(loop);
	if (!pools)
		return WEFT_ENOMEM;
	pools->pool[0] = cpu;
	pools->pool[1] = blocking;
	pools->borrowed = true;
	(void)weft__add(&cpu->owners, 1, WEFT__RELAXED);
	(void)weft__add(&blocking->owners, 1, WEFT__RELAXED);
	return 0;
}

/* Resolve `*pool` for work of `loop`, enter it, and reserve an entry of its queue. */
static int
work_enter(weft_pool **pool, weft_loop *loop, const char *call)
{
	if (*pool == WEFT_CPU || *pool == WEFT_BLOCKING) {
		if (!loop)
			return weft__misuse_in(WEFT_EINVAL, call,
			                       "WEFT_CPU and WEFT_BLOCKING need a loop, and none "
			                       "runs on this thread");
		*pool = weft__loop_pool(loop, *pool);
		if (!*pool)
			return weft__fail_in(WEFT_ENOMEM, call, "out of memory");
	}
	if (weft__pool_is_forked(*pool))
		return weft__misuse_in(WEFT_EWRONGLOOP, call,
		                       "the pool was made by a parent process");
	weft__pool_enter(*pool);
	if (weft__pool_reserve(*pool))
		return 0;
	weft__pool_leave(*pool);
	return weft__fail_in(WEFT_EAGAIN, call, "the queue of the pool is full");
}

/* --- ops ---------------------------------------------------------------- */

/* Cancellation; on the loop's thread. */
static void
work_on_cancel(weft_op *op, int why, void *arg)
{
	weft_pool *pool = arg;

	if (!weft__pool_revoke(pool, weft__op_of(op), why))
		return; /* the function runs, or its result is on its way */
	weft__pool_leave(pool);
	(void)weft_op_finish(op, why); /* invariant 1: no other code does */
}

/* The result has arrived on the loop's thread. */
static void
on_worked(void *arg)
{
	struct weft__op *op = arg;

	weft__pool_leave(op->cancel_arg);
	weft__op_take_result(op);
}

int
weft_work_op(weft_pool *pool, weft_work_fn fn, void *arg, weft_op *handle, uint64_t deadline_ns)
{
	struct weft__op *op = weft__op_of(handle);
	int rc;

	if (!pool || !fn || !op || !op->loop)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_work_op: pool, fn or op is NULL, or the op has no loop");
	rc = weft__loop_check(op->loop, "weft_work_op");
	if (rc == 0)
		rc = work_enter(&pool, op->loop, "weft_work_op");
	if (rc < 0)
		return rc;
	rc = weft_op_begin(handle, work_on_cancel, pool, deadline_ns);
	if (rc < 0) {
		weft__pool_unreserve(pool);
		weft__pool_leave(pool);
		return rc;
	}
	weft__op_set_work(op, fn, arg);
	rc = weft__pool_push(pool, op);
	if (rc < 0) {
		weft__pool_unreserve(pool);
		weft__pool_leave(pool);
		(void)weft_op_finish(handle, rc); /* the op has begun, so it must finish */
	}
	return 0;
}

/* --- calls that wait ---------------------------------------------------- */

/* A thread that waits for its work. */
struct call {
	struct weft__op op;            /* must be first; has no loop */
	weft__a32 done;                /* 1: `result` is set; the caller parks here */
	int result;                    /* under the pool's lock */
	struct weft__failure *failure; /* of the waiting caller: the error text goes there */
};

/* The work of a waiting caller is done; invariant 3. */
static void
finish_call(weft_op *op, int64_t result, void *arg)
{
	struct call *call = (struct call *)(void *)op;
	weft_pool *pool = arg;

	weft__lock_take(&pool->lock);
	weft__put(call->result, (int)result);
	if (result < 0)
		weft__pass_words((int)result, call->failure);
	weft__store(&call->done, 1, WEFT__RELAXED);
	weft__sys->unpark(&call->done);
	weft__lock_give(&pool->lock);
}

void
weft__work_finish(struct weft__op *op, int result)
{
	if (op->loop)
		weft__op_post_result(op, result, on_worked);
	else
		op->on_done((weft_op *)(void *)op, result, op->arg);
}

/* Park until the call is done; false if the deadline came first. */
static bool
await(struct call *call, uint64_t deadline_ns)
{
	int rc = 0;

	while (weft__load(&call->done, WEFT__RELAXED) == 0) {
		if (rc == -ETIMEDOUT)
			return false;
		rc = weft__sys->park(&call->done, 0, deadline_ns);
	}
	return true;
}

static int
work_in_thread(weft_pool *pool, weft_work_fn fn, void *arg, uint64_t deadline_ns)
{
	struct call call = { .done = { 0 } };
	int rc = work_enter(&pool, NULL, "weft_work");

	if (rc < 0)
		return rc;
	call.op.on_done = finish_call;
	call.op.arg = pool;
	call.failure = weft__failure_of(weft__thread_self());
	weft__op_set_work(&call.op, fn, arg);
	rc = weft__pool_push(pool, &call.op);
	if (rc < 0) {
		weft__pool_unreserve(pool);
	} else if (!await(&call, deadline_ns)
	           && weft__pool_revoke(pool, &call.op, WEFT_ETIMEDOUT)) {
		rc = WEFT_ETIMEDOUT;
	} else {
		while (!await(&call, WEFT_NEVER)) /* whatever park() returns */
			;
		weft__lock_take(&pool->lock); /* invariant 3 */
		rc = weft__get(call.result);
		weft__lock_give(&pool->lock);
	}
	weft__pool_leave(pool);
	return rc;
}

/* The op is on the threadlet's stack, so the threadlet always waits for its end: work that runs
 * cannot be stopped, and canceling is only a request. */
static int
work_in_threadlet(weft_pool *pool, weft_work_fn fn, void *arg, uint64_t deadline_ns)
{
	weft_op op;
	int rc = weft__may_wait_in(deadline_ns, "weft_work");

	if (rc < 0)
		return rc;
	weft__op_init_waited(&op);
	rc = weft_work_op(pool, fn, arg, &op, deadline_ns);
	return rc < 0 ? rc : (int)weft__op_wait(&op, "work");
}

int
weft_work(weft_pool *pool, weft_work_fn fn, void *arg, uint64_t deadline_ns)
{
	const struct weft__thread *self = weft__thread_self();

	if (!pool || !fn)
		return weft__misuse(WEFT_EINVAL, "weft_work: pool or fn is NULL");
	if (deadline_ns == WEFT_NOWAIT) /* the work needs another thread */
		return weft__fail(
			WEFT_ETIMEDOUT,
			"weft_work: WEFT_NOWAIT is not possible; work runs on another thread");
	if (self->worker && self->worker->pool == pool)
		return weft__fail(WEFT_EDEADLK,
		                  "weft_work: must not wait on a thread of the same pool");
	if (self->threadlet)
		return work_in_threadlet(pool, fn, arg, deadline_ns);
	if (self->loop)
		return weft__fail(
			WEFT_ENOSUSPEND,
			"weft_work: a callback cannot wait; use weft_work_op or a threadlet");
	return work_in_thread(pool, fn, arg, deadline_ns);
}
