/* dag_run_queue.c - run queues: steps that wait for a thread, and the threads that run them.
 *
 * A run has a run queue for each kind of place.  Workers empty those of the pools: threads that
 * a work item in the queue of the pool has called, and, for the CPU, a plain thread that waits
 * for the run.  A work item only says "come and check".
 *
 *   1. A worker leaves a run queue under the lock, when the queue is empty (or another worker
 *      is called in its place).  Code that queues a step calls a worker if none is there, or if
 *      all workers there run long steps.  So no step is left without a worker.
 *   2. Waking a thread costs WAKE_NS.  For CPU steps, only so many threads are called that each
 *      gets more than that to do.  The expected time of a step is what it took before, and long if
 *      that is not known.  For steps that take next to no time no thread is called: sharing the
 *      counters would cost more.
 *   3. A work item is with the pool, or with the thread that took it until the pool is done
 *      with it; or it is free.  An item that becomes free is sent again, if by then a worker is
 *      needed and no other item was free.
 */
#include "dag/dag.h"

#define WAKE_NS        5000u
#define SHARE_NS       200u /* below this, sharing a step costs as much as the step */
#define BATCH_MAX      32u  /* steps that a worker takes from the queue at once */
#define ROUNDS_MAX     16u  /* of a pool's thread, while other work waits for it */
#define WORK_ITEMS_MAX 64u

/* --- memory -------------------------------------------------------------- */

static uint32_t
work_items_of(const weft_dag *dag, int place)
{
	if (place == WEFT_DAG_LOOP)
		return 0;
	/* One more than there are nodes: steps that are added need a thread, too. */
	return dag->work[place] < WORK_ITEMS_MAX ? dag->work[place] + 1 : WORK_ITEMS_MAX;
}

static uint32_t
levels_of(const weft_dag *dag)
{
	return dag->levels ? dag->levels : 1;
}

size_t
weft__dag_run_queues_size(const weft_dag *dag)
{
	size_t size = 3 * levels_of(dag) * sizeof(struct weft__dag_list);

	for (int place = 0; place < 3; place++)
		size += work_items_of(dag, place) * sizeof(struct weft__dag_work_item);
	return size;
}

/* Work items are initialized when they are first used. */
void
weft__dag_run_queues_init(weft_dag_run *run, void *memory)
{
	const weft_dag *dag = run->dag;
	struct weft__dag_work_item *work_items = memory;
	struct weft__dag_list *lists;

	for (int place = 0; place < 3; place++) {
		struct weft__dag_run_queue *run_queue = &run->run_queues[place];

		run_queue->run = run;
		run_queue->work_items = work_items;
		run_queue->work_items_max = work_items_of(dag, place);
		work_items += run_queue->work_items_max;
	}
	lists = (struct weft__dag_list *)(void *)work_items;
	for (int place = 0; place < 3; place++) {
		run->run_queues[place].levels = lists;
		for (uint32_t i = 0; i < levels_of(dag); i++)
			*lists++ = (struct weft__dag_list){ 0 };
	}
	run->run_queues[WEFT_DAG_CPU].pool = run->opts.cpu;
	run->run_queues[WEFT_DAG_BLOCKING].pool = run->opts.blocking;
	for (int place = 0; place < 3; place++)
		if (run->run_queues[place].pool == WEFT_CPU
		    || run->run_queues[place].pool == WEFT_BLOCKING)
			run->run_queues[place].pool = NULL; /* the loop's pools: dag_loop.c */
}

/* --- the queue, under the run's lock ------------------------------------- */

static void
run_queue_put(struct weft__dag_run_queue *run_queue, struct weft__dag_step *step)
{
	weft__dag_append(&run_queue->levels[weft__dag_level_of(step)], step);
	run_queue->queued++;
	run_queue->queued_ns += weft__dag_cost(step);
}

static struct weft__dag_step *
get(struct weft__dag_run_queue *run_queue)
{
	struct weft__dag_list *level = run_queue->levels;
	struct weft__dag_step *step;
	uint64_t cost;

	if (run_queue->queued == 0)
		return NULL;
	while (!level->first)
		level++;
	step = weft__dag_pop(level);
	cost = weft__dag_cost(step); /* the cost may have changed meanwhile */
	run_queue->queued--;
	run_queue->queued_ns -= run_queue->queued_ns < cost ? run_queue->queued_ns : cost;
	if (run_queue->queued == 0)
		run_queue->queued_ns = 0;
	return step;
}

struct weft__dag_list
weft__dag_take_all(struct weft__dag_run_queue *run_queue)
{
	struct weft__dag_list all = { 0 };
	struct weft__dag_step *step;

	while ((step = get(run_queue)))
		weft__dag_append(&all, step);
	return all;
}

/* --- calling workers ----------------------------------------------------- */

/* The workers to call: a list of work items, and the thread that waits. */
struct call {
	struct weft__dag_work_item *work_items;
	bool waiter;
};

/* How many more workers the run queue could use. */
static uint32_t
wanted(const struct weft__dag_run_queue *run_queue)
{
	uint64_t count = run_queue->queued;

	if (count == 0)
		return 0;
	if (run_queue == &run_queue->run->run_queues[WEFT_DAG_CPU]) {
		uint64_t worth = run_queue->queued_ns / WAKE_NS;

		if (run_queue->queued_ns / SHARE_NS < count)
			worth = 0;
		count = worth < count ? worth : count;
		if (run_queue->active == run_queue->busy && count == 0)
			count = 1; /* invariant 1 */
	}
	return count < WORK_ITEMS_MAX ? (uint32_t)count : WORK_ITEMS_MAX;
}

static struct weft__dag_work_item *
get_work_item(struct weft__dag_run_queue *run_queue)
{
	struct weft__dag_work_item *work_item = run_queue->free_work_items;

	if (work_item) {
		run_queue->free_work_items = work_item->next;
		return work_item;
	}
	if (run_queue->work_items_made == run_queue->work_items_max
	    || run_queue->work_items_made >= run_queue->pool->set.threads_max)
		return NULL;
	return &run_queue->work_items[run_queue->work_items_made++];
}

/* Under the lock: choose the workers to call. */
static void
choose_workers(struct weft__dag_run_queue *run_queue, struct call *call)
{
	weft_dag_run *run = run_queue->run;
	uint32_t count = wanted(run_queue);

	if (count == 0)
		return;
	if (run->waiter_parked && run_queue == &run->run_queues[WEFT_DAG_CPU]) {
		run->waiter_parked = false;
		weft__store(&run->futex, 1, WEFT__RELAXED);
		call->waiter = true;
		run_queue->active++;
		count--;
	}
	for (; count > 0 && run_queue->pool; count--) {
		struct weft__dag_work_item *work_item = get_work_item(run_queue);

		if (!work_item)
			return;
		if (run->alone)
			run->alone = false;
		work_item->run_queue = run_queue;
		work_item->next = call->work_items;
		call->work_items = work_item;
		run_queue->active++;
		weft__dag_run_ref(run);
		weft__pool_enter(run_queue->pool); /* until it is sent */
	}
}

static int work_item_main(void *arg);
static void on_work_item_done(weft_op *op, int64_t result, void *arg);

static void
prepare_work_item(struct weft__dag_work_item *work_item)
{
	work_item->again = false;
	work_item->op = (struct weft__op){ .on_done = on_work_item_done, .arg = work_item };
	weft__op_set_work(&work_item->op, work_item_main, work_item);
}

/* Send a work item to the pool.  Returns 0, or an error if it was not sent. */
static int
send_work_item(struct weft__dag_work_item *work_item)
{
	weft_pool *pool = work_item->run_queue->pool;
	int rc = WEFT_EAGAIN;

	prepare_work_item(work_item);
	if (weft__pool_reserve(pool)) {
		rc = weft__pool_push(pool, &work_item->op);
		if (rc < 0)
			weft__pool_unreserve(pool);
	}
	weft__pool_leave(pool);
	return rc;
}

/* The pool did not take the work item.  Other workers of the run queue run its steps; if there are
 * none, the steps fail. */
static void
fail_work_item(struct weft__dag_worker *worker, struct weft__dag_work_item *work_item, int rc)
{
	struct weft__dag_run_queue *run_queue = work_item->run_queue;
	weft_dag_run *run = run_queue->run;
	struct weft__dag_step *step;
	struct weft__dag_list lost = { 0 };

	weft__lock_take(&run->lock);
	work_item->next = run_queue->free_work_items;
	run_queue->free_work_items = work_item;
	if (--run_queue->active == 0)
		while ((step = get(run_queue)))
			weft__dag_append(&lost, step);
	weft__lock_give(&run->lock);
	while ((step = weft__dag_pop(&lost))) {
		(void)weft_fail(rc, "the pool's queue is full, or it could not start a thread");
		weft__dag_finish(worker, step, rc, (weft_value){ 0 });
	}
	weft__dag_run_unref(run);
}

/* Outside of the lock: call the workers. */
static void
call_workers(struct weft__dag_worker *worker, struct call *call)
{
	struct weft__dag_work_item *work_item;
	int rc;

	if (__builtin_expect(!call->waiter && !call->work_items, 1))
		return;
	if (call->waiter)
		weft__sys->unpark(&worker->run->futex);
	while ((work_item = call->work_items)) {
		call->work_items = work_item->next;
		rc = send_work_item(work_item);
		if (rc < 0)
			fail_work_item(worker, work_item, rc);
	}
}

void
weft__dag_queue(struct weft__dag_worker *worker, struct weft__dag_list *steps)
{
	weft_dag_run *run = worker->run;
	struct call call = { 0 };
	struct weft__dag_step *step;

	weft__lock_take(&run->lock);
	while ((step = weft__dag_pop(steps)))
		run_queue_put(&run->run_queues[step->node->place], step);
	choose_workers(&run->run_queues[WEFT_DAG_CPU], &call);
	choose_workers(&run->run_queues[WEFT_DAG_BLOCKING], &call);
	if (run->run_queues[WEFT_DAG_LOOP].queued > 0)
		weft__dag_notify_loop(run, WEFT__DAG_NOTIFY_CHECK);
	weft__lock_give(&run->lock);
	call_workers(worker, &call);
}

/* --- workers ------------------------------------------------------------- */

/* If other work waits for this thread of a pool, and the worker has been here for long: mark its
 * work item to be sent to the end of the pool's queue, if there is room.  Returns whether. */
static bool
yields_to_pool(struct weft__dag_worker *worker, const struct weft__dag_run_queue *run_queue)
{
	if (!worker->work_item || ++worker->rounds < ROUNDS_MAX || run_queue->queued == 0
	    || run_queue->run->waiter_parked
	    || weft__load(&run_queue->pool->queue_used, WEFT__RELAXED) == 0
	    || !weft__pool_reserve(run_queue->pool))
		return false;
	worker->work_item->again = true;
	return true;
}

/* Call workers, outside of the lock, from a worker that then continues or leaves. */
static void
call_workers_of(weft_dag_run *run, struct call *call)
{
	struct weft__dag_worker worker = { .run = run, .place = -1 };

	call_workers(&worker, call);
	weft__dag_flush(&worker);
}

/* Take steps out of the run queue; false if the worker has left it. */
static bool
run_queue_take(struct weft__dag_worker *worker)
{
	struct weft__dag_run_queue *run_queue = &worker->run->run_queues[worker->place];
	struct call call = { 0 };
	uint64_t cost = 0;
	uint32_t count = 0, max = worker->place == WEFT_DAG_CPU ? BATCH_MAX : 1;
	struct weft__dag_step *step;
	bool behind;

	weft__lock_take(&worker->run->lock);
	behind = yields_to_pool(worker, run_queue);
	while (!behind && count < max && cost < WEFT__DAG_BATCH_NS && (step = get(run_queue))) {
		weft__dag_append(&worker->taken, step);
		cost += weft__dag_cost(step);
		count++;
	}
	if (count == 0 && !behind) {
		run_queue->active--;
		choose_workers(run_queue, &call);
	}
	weft__lock_give(&worker->run->lock);
	if (call.work_items || call.waiter)
		call_workers_of(worker->run, &call);
	return count > 0;
}

/* A long step begins: put the other steps back, and call another worker for them. */
static void
begin_long(struct weft__dag_worker *worker)
{
	struct weft__dag_run_queue *run_queue = &worker->run->run_queues[WEFT_DAG_CPU];
	struct call call = { 0 };
	struct weft__dag_step *step;

	weft__lock_take(&worker->run->lock);
	run_queue->busy++;
	while ((step = weft__dag_pop(&worker->taken)))
		run_queue_put(run_queue, step);
	choose_workers(run_queue, &call);
	weft__lock_give(&worker->run->lock);
	if (call.work_items || call.waiter)
		call_workers_of(worker->run, &call);
}

static void
end_long(struct weft__dag_worker *worker)
{
	weft__lock_take(&worker->run->lock);
	worker->run->run_queues[WEFT_DAG_CPU].busy--;
	weft__lock_give(&worker->run->lock);
}

static void
run_step(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	bool is_long = worker->place == WEFT_DAG_CPU
	               && (weft__dag_cost(step) > WAKE_NS || (step->node->flags & WEFT__DAG_TIMED));

	if (is_long)
		begin_long(worker);
	weft__dag_run_step(worker, step);
	if (is_long)
		end_long(worker);
}

static struct weft__dag_step *
next_step(struct weft__dag_worker *worker)
{
	struct weft__dag_step *step = worker->next;

	worker->next = NULL;
	if (!step)
		step = weft__dag_pop(&worker->taken);
	if (!worker->taken.first)
		worker->kept_ns = 0;
	return step;
}

static bool
is_over(const weft_dag_run *run)
{
	return weft__load(&run->state, WEFT__RELAXED) == WEFT__DAG_OVER;
}

/* Before each step, all that is ready is queued, because the step may be long. */
void
weft__dag_work(struct weft__dag_worker *worker)
{
	struct weft__dag_step *step;

	for (;;) {
		if (worker->own.first || worker->ready.first)
			weft__dag_settle(worker);
		if (worker->is_waiter && !worker->run->loop)
			weft__dag_report_events(worker->run);
		step = next_step(worker);
		if (step) {
			run_step(worker, step);
			continue;
		}
		weft__dag_flush(worker);
		if (!worker->next && !worker->taken.first
		    && (is_over(worker->run) || !run_queue_take(worker)))
			return;
	}
}

/* A thread of the pool has taken the work item.  A step that it runs may wait for another run. */
static int
work_item_main(void *arg)
{
	struct weft__dag_work_item *work_item = arg;
	struct weft__dag_run_queue *run_queue = work_item->run_queue;
	struct weft__thread *self = weft__thread_self();
	int (*canceled)(void *arg) = self->canceled;
	void *canceled_arg = self->canceled_arg;
	struct weft__dag_worker worker = { .run = run_queue->run,
		                           .work_item = work_item,
		                           .place = (int)(run_queue - run_queue->run->run_queues) };

	self->canceled = weft__dag_canceled;
	self->canceled_arg = &worker;
	weft__dag_work(&worker);
	self->canceled = canceled;
	self->canceled_arg = canceled_arg;
	return 0;
}

/* The pool is done with the work item. */
static void
on_work_item_done(weft_op *op, int64_t result, void *arg)
{
	struct weft__dag_work_item *work_item = arg;
	struct weft__dag_run_queue *run_queue = work_item->run_queue;
	weft_dag_run *run = run_queue->run;
	struct weft__dag_worker worker = { .run = run, .place = -1 };
	struct call call = { 0 };

	(void)op;
	(void)result;
	if (work_item->again) { /* cannot fail: a slot is reserved, and this thread exists */
		prepare_work_item(work_item);
		(void)weft__pool_push(run_queue->pool, &work_item->op);
		return;
	}
	weft__lock_take(&run->lock);
	work_item->next = run_queue->free_work_items;
	run_queue->free_work_items = work_item;
	choose_workers(run_queue, &call); /* invariant 3 */
	weft__lock_give(&run->lock);
	call_workers(&worker, &call);
	weft__dag_flush(&worker);
	weft__dag_run_unref(run);
}
