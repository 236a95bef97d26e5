/* pool.c - the queue of a pool, and the threads that empty it.
 *
 * One lock, held for a few instructions except while a thread is started.  Threads without work
 * sleep, each on a futex word of its own, in a list from which the latest is woken first: so the
 * others stay idle, and exit.
 *
 *   1. A thread enters the idle list under the lock and with the queue empty.  A push takes one
 *      thread out of that list, if there is any, and wakes it.  Otherwise a thread is awake,
 *      and every awake thread checks the queue before it sleeps; or a new thread is started.
 *      So no work waits for a thread that sleeps.
 *   2. Apart from that, only the thread itself leaves the list, when its idle time is up.  A
 *      thread that was called is no longer in the list and so does not exit: work that relies
 *      on it finds it awake.  A thread that has retired accesses nothing more: its slot may
 *      belong to another thread.
 *   3. An op is in the queue exactly if op->queued, under the lock.  The thread or the revoke()
 *      that takes it out owns it exclusively.
 *   4. worker->op is the op that the worker took last, and is only compared, never dereferenced:
 *      the op may have ended long ago.  If that op was started again, it is in the queue, or
 *      another worker has taken it since.  revoke() may then set `why` of the stale worker, too;
 *      that has no effect, because the worker clears `why` when it takes its next work.
 *   5. Every work item and every call is a user, from before it accesses the pool until it is
 *      done with it.  An op is a user until its loop's thread has received the result (or has
 *      revoked it), so that on_cancel and the rest of a push, which run on that thread, find
 *      the pool alive.  Only a caller that sees no user (U, acquire; pairs with leave, release)
 *      frees the pool, and joins all threads first.  So waking a thread, releasing the lock and
 *      sending a result all happen while the pool exists.
 *   6. Entries of the queue are counted outside of the lock: at most queue_max, reserved before
 *      the op is started, so that a started op cannot fail for lack of an entry.
 *   7. Work that runs may push more while the pool ends.  No thread is started for that, because
 *      it might not be joined; at the latest the thread that pushed the work takes it, before
 *      that thread exits.
 *   8. At most one idle thread spins on its futex word before it sleeps, and only while that
 *      pays off (base/spin.h).  While it spins, its word is WEFT__WORKER_SPINS: a caller need not
 *      wake that thread.  The thread ends its spin with a compare-exchange: either it was
 *      called, or any later caller wakes it.
 */
#include "base/os.h"
#include "base/report.h"
#include "loop/core/loop.h"
#include "work/pool.h"

#define SPIN_NS    (20 * WEFT_US) /* these three as for loops, in loop/core/sleep.c */
#define SHORT_NS   (50 * WEFT_US)
#define SKIPS_MAX  1024u

#define LATE_MAX   8 /* functions listed in a report */
#define LATE_BYTES 1000

/* --- the queue ---------------------------------------------------------- */

/* The link points to the node of the next op. */
static struct weft__op *
next_of(struct weft__op *op)
{
	struct weft__node *next = weft__get(op->node.next);

	return next ? weft__node_op(next) : NULL;
}

static void
work_pool_append(weft_pool *pool, struct weft__op *op)
{
	struct weft__op *last = weft__get(pool->last);

	weft__put(op->node.next, NULL);
	weft__put(op->before, last);
	weft__put(op->queued, true);
	weft__put(pool->last, op);
	if (last)
		weft__put(last->node.next, weft__op_node(op));
	else
		weft__put(pool->first, op);
}

static void
work_pool_take_out(weft_pool *pool, struct weft__op *op)
{
	struct weft__op *next = next_of(op), *before = weft__get(op->before);

	weft__assert(op->queued);
	weft__put(op->queued, false);
	if (next)
		weft__put(next->before, before);
	else
		weft__put(pool->last, before);
	if (before)
		weft__put(before->node.next, op->node.next);
	else
		weft__put(pool->first, next);
	weft__pool_unreserve(pool);
}

bool
weft__pool_reserve(weft_pool *pool)
{
	uint32_t queue_used = weft__load(&pool->queue_used, WEFT__RELAXED);

	do
		if (queue_used >= pool->set.queue_max)
			return false;
	while (!weft__cas(&pool->queue_used, &queue_used, queue_used + 1, WEFT__RELAXED));
	return true;
}

void
weft__pool_unreserve(weft_pool *pool)
{
	(void)weft__add(&pool->queue_used, UINT32_MAX, WEFT__RELAXED);
}

/* --- the threads -------------------------------------------------------- */

/* Take a worker off the idle list, for new work or for the end of the pool; false if there is
 * none.  If `*asleep` is not NULL, the caller must wake it, outside of the lock. */
static bool
call_idle(weft_pool *pool, struct weft__worker **asleep)
{
	struct weft__worker *worker = weft__get(pool->idle);

	*asleep = NULL;
	if (!worker)
		return false;
	weft__put(pool->idle, weft__get(worker->below));
	if (weft__exchange(&worker->futex, WEFT__WORKER_CALLED, WEFT__RELAXED)
	    == WEFT__WORKER_SLEEPS)
		*asleep = worker;
	return true;
}

static void
wake(struct weft__worker *asleep)
{
	if (asleep)
		weft__sys->unpark(&asleep->futex); /* invariant 5 */
}

/* Take this worker off the idle list; false if it was called (invariant 2). */
static bool
leave_idle(struct weft__worker *worker)
{
	struct weft__worker **link = &worker->pool->idle;

	while (weft__get(*link) && *link != worker)
		link = &(*link)->below;
	if (!*link)
		return false;
	weft__put(*link, weft__get(worker->below));
	return true;
}

/* The worker's thread is about to exit. */
static void
retire(struct weft__worker *worker)
{
	weft_pool *pool = worker->pool;

	weft__assert(weft__get(pool->threads) > 0);
	weft__put(worker->below, weft__get(pool->spare));
	weft__put(pool->spare, worker);
	weft__put(pool->threads, weft__get(pool->threads) - 1);
}

/* When the thread may exit if it is not called. */
static uint64_t
end_of_idling(const weft_pool *pool)
{
	return weft__get(pool->threads) > pool->set.threads_min ? weft_after(pool->set.idle_ns)
	                                                        : WEFT_NEVER;
}

/* Invariant 8; under the lock, as the worker becomes idle. */
static bool
begin_spin(weft_pool *pool)
{
	if (!pool->set.may_spin || weft__count_get(&pool->spinning)
	    || !weft__spin_is_due(&pool->backoff))
		return false;
	weft__count_set(&pool->spinning, 1);
	return true;
}

static void
worker_spin(struct weft__worker *worker)
{
	weft_pool *pool = worker->pool;
	uint32_t word = WEFT__WORKER_SPINS;
	bool called = weft__spin_on(&worker->futex, word, SPIN_NS)
	              || !weft__cas(&worker->futex, &word, WEFT__WORKER_SLEEPS, WEFT__RELAXED);

	weft__spin_update(&pool->backoff, called, SKIPS_MAX);
	weft__count_set(&pool->spinning, 0);
}

/* Sleep until called, or until the idle time is up.  If spinning would have paid off, the next
 * wait begins with a spin. */
static void
worker_sleep(struct weft__worker *worker, uint64_t deadline_ns)
{
	weft_pool *pool = worker->pool;
	uint64_t begin_ns = pool->set.may_spin ? weft__sys->now() : 0;
	int rc = 0;

	while (weft__load(&worker->futex, WEFT__RELAXED) == WEFT__WORKER_SLEEPS && rc != -ETIMEDOUT)
		rc = weft__sys->park(&worker->futex, WEFT__WORKER_SLEEPS, deadline_ns);
	if (begin_ns && rc != -ETIMEDOUT && weft__sys->now() - begin_ns < SHORT_NS)
		weft__spin_paid(&pool->backoff);
}

/* There is no work: sleep, without the lock.  False if the thread has retired. */
static bool
idle(struct weft__worker *worker)
{
	weft_pool *pool = worker->pool;
	uint64_t deadline_ns = end_of_idling(pool);
	bool spins;

	if (weft__get(pool->ending)) {
		retire(worker);
		return false;
	}
	spins = begin_spin(pool);
	weft__put(worker->below, weft__get(pool->idle));
	weft__put(pool->idle, worker); /* invariant 1 */
	weft__store(&worker->futex, spins ? WEFT__WORKER_SPINS : WEFT__WORKER_SLEEPS,
	            WEFT__RELAXED);
	weft__lock_give(&pool->lock);
	if (spins)
		worker_spin(worker);
	worker_sleep(worker, deadline_ns);
	weft__lock_take(&pool->lock);
	/* Whatever ended the sleep, the list shows whether this worker was called.  If another
	 * one was called instead, its work may still be in the queue. */
	if (!leave_idle(worker) || weft__get(pool->first)
	    || weft__get(pool->threads) <= pool->set.threads_min)
		return true;
	retire(worker);
	return false;
}

/* Wait for the next work of this thread; NULL if the thread must exit. */
static struct weft__op *
next_work(struct weft__worker *worker)
{
	weft_pool *pool = worker->pool;
	struct weft__op *op;

	weft__lock_take(&pool->lock);
	weft__put(worker->runs, NULL);
	while (!(op = weft__get(pool->first)) && idle(worker))
		;
	if (op) {
		work_pool_take_out(pool, op);
		weft__put(worker->op, op);
		weft__put(worker->runs, weft__get(op->node.fn));
		weft__store(&worker->why, 0, WEFT__RELAXED);
	}
	weft__lock_give(&pool->lock);
	return op;
}

/* A thread on the wrong CPU is better than none. */
static void
bind_to_cpus(const weft_pool *pool)
{
	int rc = weft__sys->set_cpus(&pool->set.cpus);

	if (rc < 0)
		weft__report(
			&(weft_report){ .kind = WEFT_REPORT_LOG,
		                        .level = 1,
		                        .error = rc,
		                        .name = pool->set.name,
		                        .text = "a thread of the pool could not be bound to its "
		                                "cpus" });
}

static int
work_traced(struct weft__op *op)
{
	const void *fn = (const void *)(uintptr_t)weft__get(op->node.fn);
	uint64_t begin_ns = weft__sys->now();
	int rc = weft__op_do_work(op);

	weft__trace_did(WEFT__TRACE_WORK, (uintptr_t)op, fn, begin_ns);
	return rc;
}

static int
worker_check_canceled(void *arg)
{
	const struct weft__worker *worker = arg;

	return (int)weft__load(&worker->why, WEFT__RELAXED);
}

static void
worker_main(void *arg)
{
	struct weft__worker *worker = arg;
	struct weft__op *op;

	weft__thread_self()->worker = worker;
	weft__thread_self()->canceled = worker_check_canceled;
	weft__thread_self()->canceled_arg = worker;
	weft__thread_self()->name = worker->pool->set.name;
	if (worker->pool->set.has_cpus)
		bind_to_cpus(worker->pool);
	while ((op = next_work(worker)))
		weft__work_finish(op, weft__tracing() ? work_traced(op) : weft__op_do_work(op));
}

/* A worker without a thread, or NULL without memory. */
static struct weft__worker *
get_spare(weft_pool *pool)
{
	struct weft__worker *worker = weft__get(pool->spare);

	if (worker) {
		weft__put(pool->spare, weft__get(worker->below));
		if (worker->has_thread) /* it exits without needing the lock */
			(void)weft__sys->thread_join(worker->thread);
		worker->has_thread = false;
		return worker;
	}
	worker = weft__alloc_zero(sizeof(*worker));
	if (!worker)
		return NULL;
	worker->pool = pool;
	worker->other = pool->workers;
	pool->workers = worker;
	return worker;
}

/* Start one more thread; under the lock, so that it finds the work it is started for. */
static int
start_thread(weft_pool *pool)
{
	struct weft__thread_opts opts = {
		.name = pool->set.name,
		.fn = worker_main,
		.stack_bytes = pool->set.stack_bytes,
	};
	struct weft__worker *worker = get_spare(pool);
	int rc;

	if (!worker)
		return WEFT_ENOMEM;
	opts.arg = worker;
	rc = weft__sys->thread_start(&opts, &worker->thread);
	weft__put(pool->threads, weft__get(pool->threads) + 1);
	worker->has_thread = rc == 0;
	if (rc < 0)
		retire(worker);
	return rc;
}

/* --- pushing and revoking ----------------------------------------------- */

static int
work_pool_push(weft_pool *pool, struct weft__op *op)
{
	struct weft__worker *asleep;
	int rc = 0;

	weft__lock_take(&pool->lock);
	if (!call_idle(pool, &asleep) && !weft__get(pool->ending)
	    && weft__get(pool->threads) < pool->set.threads_max)
		rc = start_thread(pool);
	/* An error to start a thread matters only if there is no other. */
	if (weft__get(pool->threads) > 0) {
		work_pool_append(pool, op);
		rc = 0;
	}
	weft__lock_give(&pool->lock);
	wake(asleep);
	return rc;
}

int
weft__pool_push(weft_pool *pool, struct weft__op *op)
{
	const void *fn = (const void *)(uintptr_t)weft__get(op->node.fn);
	uint64_t begin_ns;
	int rc;

	if (__builtin_expect(!weft__tracing(), 1))
		return work_pool_push(pool, op);
	begin_ns = weft__sys->now();
	rc = work_pool_push(pool, op);
	if (rc == 0)
		weft__trace_did(WEFT__TRACE_QUEUED, (uintptr_t)op, fn, begin_ns);
	return rc;
}

bool
weft__pool_revoke(weft_pool *pool, struct weft__op *op, int why)
{
	bool queued;

	weft__lock_take(&pool->lock);
	queued = weft__get(op->queued);
	if (queued)
		work_pool_take_out(pool, op); /* invariant 3 */
	for (struct weft__worker *w = pool->workers; w && !queued; w = w->other)
		if (weft__get(w->op) == op) /* invariant 4 */
			weft__store(&w->why, (uint32_t)why, WEFT__RELAXED);
	weft__lock_give(&pool->lock);
	return queued;
}

/* --- work that is late -------------------------------------------------- */

void
weft__pool_report_late(weft_pool *pool)
{
	char name[32], buf[LATE_BYTES];
	struct weft__text title = weft__text_begin(name, sizeof(name));
	struct weft__text text = weft__text_begin(buf, sizeof(buf));
	weft_fn running[LATE_MAX];
	int count = 0, more = 0;

	weft__lock_take(&pool->lock);
	for (struct weft__worker *w = pool->workers; w; w = w->other)
		if (weft__get(w->runs) && count < LATE_MAX)
			running[count++] = weft__get(w->runs);
		else
			more += weft__get(w->runs) != NULL;
	weft__lock_give(&pool->lock);
	if (count == 0)
		return;
	weft__text_add(&title, "pool ");
	weft__text_add(&title, pool->set.name);
	for (int i = 0; i < count; i++) {
		weft__text_add(&text, i ? ", " : "still runs ");
		weft__os_add_symbol(&text, (const void *)(uintptr_t)running[i]);
	}
	if (more > 0) {
		weft__text_add(&text, " and ");
		weft__text_number(&text, more);
		weft__text_add(&text, " more");
	}
	weft__report(&(weft_report){ .kind = WEFT_REPORT_LATE_STOP,
	                             .level = 1,
	                             .error = WEFT_ETIMEDOUT,
	                             .name = name,
	                             .text = buf });
}

/* --- creating and freeing ----------------------------------------------- */

bool
weft__pool_is_forked(const weft_pool *pool)
{
	return pool->set.forks != weft__load(&weft__program.forks, WEFT__RELAXED);
}

void
weft__pool_enter(weft_pool *pool)
{
	(void)weft__add(&pool->users, 1, WEFT__RELAXED);
}

void
weft__pool_leave(weft_pool *pool)
{
	(void)weft__add(&pool->users, UINT32_MAX, WEFT__RELEASE); /* U */
}

weft_pool *
weft__pool_make(const struct weft__pool_setup *set)
{
	weft_pool *pool = weft__alloc_zero(sizeof(*pool));

	if (pool)
		pool->set = *set;
	return pool;
}

/* Make all threads exit, and join them. */
static void
end_threads(weft_pool *pool)
{
	struct weft__worker *asleep;

	weft__lock_take(&pool->lock);
	weft__put(pool->ending, true);
	while (call_idle(pool, &asleep))
		wake(asleep);
	weft__lock_give(&pool->lock);
	for (struct weft__worker *w = pool->workers; w; w = w->other)
		if (w->has_thread)
			(void)weft__sys->thread_join(w->thread);
}

void
weft__pool_end(weft_pool *pool)
{
	struct weft__thread *self = weft__thread_self();
	struct weft__worker *worker;

	if (!weft__pool_is_forked(pool))
		end_threads(pool);
	else if (self->worker && self->worker->pool == pool) {
		self->worker = NULL; /* this thread of the pool has forked */
		self->canceled = NULL;
	}
	while ((worker = pool->workers)) {
		pool->workers = worker->other;
		weft__sys->release(worker);
	}
	weft__sys->release(pool);
}

weft_pool *
weft_pool_new(const weft_pool_opts *opts)
{
	static const weft_pool_opts defaults;
	struct weft__pool_setup set;
	weft_pool *pool;

	if (weft__watch_forks() < 0) {
		(void)weft__fail(WEFT_ENOMEM, "weft_pool_new: out of memory");
		return NULL;
	}
	if (weft__pool_setup(&set, opts ? opts : &defaults) < 0)
		return NULL;
	pool = weft__pool_make(&set);
	if (!pool)
		(void)weft__fail(WEFT_ENOMEM, "weft_pool_new: out of memory");
	return pool;
}

int
weft_pool_free(weft_pool *pool)
{
	const struct weft__worker *self = weft__thread_self()->worker;

	if (!pool)
		return 0;
	if (pool == WEFT_CPU || pool == WEFT_BLOCKING)
		return weft__fail(
			WEFT_EBUSY,
			"weft_pool_free: WEFT_CPU and WEFT_BLOCKING are freed with their loop");
	if (!weft__pool_is_forked(pool)) {
		if (self && self->pool == pool)
			return weft__fail(
				WEFT_EDEADLK,
				"weft_pool_free: must not be called on a thread of the pool");
		if (weft__load(&pool->users, WEFT__ACQUIRE) > 0 /* U */
		    || weft__load(&pool->owners, WEFT__ACQUIRE) > 0)
			return weft__fail(WEFT_EBUSY, "weft_pool_free: the pool still has work, or "
			                              "belongs to a loop");
	}
	weft__pool_end(pool);
	return 0;
}
