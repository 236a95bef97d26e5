/* work_scenarios.c - a loop and a plain thread that submit work to pools.
 *
 *   1. Accepted work has one result.  It has run, once, exactly if the result is what it
 *      returned.
 *   2. It gets its result even if no later work wakes a thread.
 *   3. When the loop has stopped and no caller is left, the pool can be freed.
 */
#include <string.h>
#include <weft/work.h>
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { TASKS = 8, ACTS = 150 };

struct task {
	weft_op op;
	struct once once;
	weft__a32 ran; /* how often, since it was started */
};

static struct {
	struct host host;
	weft_pool *pool;
	struct task tasks[TASKS];
	weft_timer timer;
	int acts;
	weft__a32 done, over;
	bool told;        /* `done` was counted */
	uint64_t idle_ns; /* then a thread of the pool ends */
} work;

static uint64_t
draw_deadline(void)
{
	switch (sim_random_below(5)) {
	case 0:
		return WEFT_NOWAIT;
	case 1:
	case 2:
		return weft_after(sim_random_below(200) * WEFT_US);
	default:
		return WEFT_NEVER;
	}
}

static weft_pool *
draw_pool(void)
{
	switch (sim_random_below(6)) {
	case 0:
		return WEFT_CPU;
	case 1:
		return WEFT_BLOCKING;
	default:
		return work.pool;
	}
}

/* Run for a while; the result identifies the task. */
static int
do_task(void *arg)
{
	struct task *task = arg;

	(void)weft__add(&task->ran, 1, WEFT__RELAXED);
	if (sim_random_below(2))
		pause_ns(sim_random_below(100 * WEFT_US));
	return 1 + (int)(task - work.tasks);
}

static int
do_call(void *arg)
{
	(void)weft__add((weft__a32 *)arg, 1, WEFT__RELAXED);
	if (sim_random_below(2))
		pause_briefly();
	return 1;
}

/* No memory, no room in the queue, no thread. */
static bool
is_refusal(int64_t rc)
{
	return rc == WEFT_ENOMEM || rc == WEFT_EAGAIN || rc == WEFT_ESHUTDOWN;
}

static void
start_task(struct task *task)
{
	int rc;

	weft__store(&task->ran, 0, WEFT__RELAXED);
	rc = weft_work_op(draw_pool(), do_task, task, &task->op, draw_deadline());
	sim_check(rc == 0 || is_refusal(rc));
	if (rc == 0)
		once_begin(&task->once);
}

/* Count `done` when nothing will be started and all has ended. */
static void
tell_if_done(void)
{
	if (work.acts > 0 || work.told)
		return;
	for (int i = 0; i < TASKS; i++)
		if (work.tasks[i].op.pending)
			return;
	work.told = true;
	count_up(&work.done);
}

static void
on_task(weft_op *op, int64_t result, void *arg)
{
	struct task *task = arg;
	bool worked = result == 1 + (task - work.tasks);

	sim_check(op == &task->op && !op->pending);
	once_end(&task->once);
	sim_check(weft__load(&task->ran, WEFT__RELAXED) == worked);
	sim_check(worked || result == WEFT_ECANCELED || result == WEFT_ETIMEDOUT
	          || is_refusal(result));
	if (work.acts > 0 && sim_random_below(2))
		start_task(task);
	tell_if_done();
}

static void
act_on_task(weft_timer *timer, void *arg)
{
	struct task *task = &work.tasks[sim_random_below(TASKS)];

	(void)arg;
	if (task->op.pending)
		weft_op_cancel(&task->op);
	else
		start_task(task);
	if (--work.acts == 0)
		(void)weft_timer_stop(timer);
	tell_if_done();
}

static void
begin_work(void *arg)
{
	(void)arg;
	for (int i = 0; i < TASKS; i++) {
		struct task *task = &work.tasks[i];

		sim_check(weft_op_init(&task->op, NULL, on_task, task) == 0);
		start_task(task);
	}
	while (weft_timer_start(NULL, &work.timer, weft_after(WEFT_US),
	                        1 + sim_random_below(40 * WEFT_US), act_on_task, NULL)
	       == WEFT_ENOMEM)
		continue;
}

/* A plain thread that calls and waits. */
static void
be_caller(void *arg)
{
	(void)arg;
	while (!weft__load(&work.over, WEFT__ACQUIRE)) {
		weft__a32 ran = { 0 };
		int rc = weft_work(work.pool, do_call, &ran, draw_deadline());

		sim_check(rc == 1 || rc == WEFT_ETIMEDOUT || is_refusal(rc));
		sim_check(weft__load(&ran, WEFT__RELAXED) == (rc == 1));
		pause_ns(sim_random_below(30 * WEFT_US));
	}
}

static void
end_caller(uint64_t caller)
{
	weft__store(&work.over, 1, WEFT__RELEASE);
	thread_join(caller);
}

/* No other work wakes a thread; and each call comes about when the thread has been idle long
 * enough to end. */
static void
call_alone(void)
{
	for (int i = 0; i < 40; i++) {
		weft__a32 ran = { 0 };

		pause_ns(work.idle_ns - 3 * WEFT_US + sim_random_below(6 * WEFT_US));
		sim_check(weft_work(work.pool, do_call, &ran, WEFT_NEVER) == 1);
		sim_check(weft__load(&ran, WEFT__RELAXED) == 1);
	}
}

static void
make_pool(void)
{
	weft_pool_opts opts = {
		.threads_max = 1 + (uint32_t)sim_random_below(3),
		.threads_min = (uint32_t)sim_random_below(2),
		.queue_max = 1 + (uint32_t)sim_random_below(6),
		.idle_ns = 3 * WEFT_US + sim_random_below(200 * WEFT_US),
		.cpus = sim_random_below(2) ? "0-1" : NULL,
	};

	work.idle_ns = opts.idle_ns;
	while (!(work.pool = weft_pool_new(&opts)))
		continue;
}

static void
run_work(void *arg)
{
	uint64_t caller;
	bool calm = sim_random_below(2);

	(void)arg;
	memset(&work, 0, sizeof(work));
	work.acts = ACTS;
	make_pool();
	host_make(&work.host);
	host_run(&work.host);
	host_call(&work.host, begin_work, NULL);
	caller = thread_start("caller", be_caller, NULL);
	pause_ns(sim_random_below(8 * WEFT_MS));
	sim_heal();
	if (calm) {
		end_caller(caller);
		await_count(&work.done, 1);
		call_alone();
	}
	host_stop(&work.host);
	for (int i = 0; i < TASKS; i++)
		once_check(&work.tasks[i].once);
	if (!calm)
		end_caller(caller);
	sim_check(weft_pool_free(work.pool) == 0);
	host_free(&work.host);
}

const struct sim_scenario sim_scenario_work = { .name = "work", .run = run_work };
