/* work_scenarios.c - a loop and a plain thread that use pools.
 *
 * Whatever fails, each accepted work has exactly one result, and it has run if and only if that
 * result is its return value.  At the end the pool is empty and can be freed.
 */
#include <sched.h>
#include <weft/weft.h>
#include "base/sys.h"
#include "fault.h"
#include "scenarios.h"

enum { VALUE = 7, MANY = 6 };

struct task {
	weft_op op;
	int64_t result;
	int left;       /* 1: started and not finished */
	weft__a32 ran;  /* number of runs, by a pool */
	weft__a32 gate; /* 1: it may return */
};

static int
run_task(void *arg)
{
	struct task *task = arg;

	(void)weft__add(&task->ran, 1, WEFT__RELAXED);
	while (!weft__load(&task->gate, WEFT__ACQUIRE))
		(void)sched_yield();
	return VALUE;
}

static void
on_task(weft_op *op, int64_t result, void *arg)
{
	struct task *task = arg;

	(void)op;
	EXPECT(task->left == 1);
	task->left = 0;
	task->result = result;
}

static void
start(struct world *world, struct task *task, weft_pool *pool, uint64_t deadline_ns)
{
	*task = (struct task){ .gate = { 1 } };
	EXPECT(weft_op_init(&task->op, world->loop, on_task, task) == 0);
	task->result = weft_work_op(pool, run_task, task, &task->op, deadline_ns);
	task->left = task->result == 0;
}

/* Returns the result.  It is the return value of the work if the work has run.  If an untrue
 * error lost the wake, running the loop delivers the result. */
static int64_t
finish(struct world *world, struct task *task)
{
	weft__store(&task->gate, 1, WEFT__RELEASE);
	for (int i = 0; i < STEPS_MIN && task->left > 0; i++)
		drive(world->loop, &task->left);
	EXPECT(task->left == 0);
	EXPECT(weft__load(&task->ran, WEFT__RELAXED) == (task->result == VALUE));
	EXPECT(task->result == VALUE || task->result == WEFT_ECANCELED
	       || task->result == WEFT_ETIMEDOUT || fault_hits() > 0);
	return task->result;
}

/* One task runs, the others wait; one of those is canceled and one times out. */
static void
queue_much(struct world *world, weft_pool *pool)
{
	struct task tasks[MANY];

	for (int i = 0; i < MANY; i++)
		start(world, &tasks[i], pool, i == 3 ? WEFT_NOWAIT : WEFT_NEVER);
	weft_op_cancel(&tasks[MANY - 1].op);
	turn(world->loop);
	for (int i = 0; i < MANY; i++)
		(void)finish(world, &tasks[i]);
}

static void
use_pools_of_loop(struct world *world)
{
	struct task task;

	start(world, &task, WEFT_CPU, WEFT_NEVER);
	(void)finish(world, &task);
	start(world, &task, WEFT_BLOCKING, weft_after(50 * WAIT_NS));
	(void)finish(world, &task);
}

static void
call(weft_pool *pool, uint64_t deadline_ns)
{
	struct task task = { .gate = { 1 } };
	int rc = weft_work(pool, run_task, &task, deadline_ns);

	EXPECT(weft__load(&task.ran, WEFT__RELAXED) == (rc == VALUE));
	EXPECT(rc == VALUE || fault_hits() > 0);
}

/* After check_works() no more faults are injected: work is done. */
static void
check_pools(struct world *world, weft_pool *pool)
{
	struct task task;

	check_works(world);
	if (fault_hits() == 0)
		return;
	start(world, &task, pool ? pool : WEFT_CPU, WEFT_NEVER);
	EXPECT(finish(world, &task) == VALUE);
}

void
run_work(const char *backend)
{
	weft_pool_opts opts = { .name = "sweep", .threads_max = 2 };
	struct world world;
	weft_pool *pool;

	if (weft__sys_real.set_cpus(NULL) == 0)
		opts.cpus = "0-3";
	if (!make_world(&world, backend, 0))
		return;
	pool = weft_pool_new(&opts);
	EXPECT(pool || fault_hits() > 0);
	if (pool) {
		queue_much(&world, pool);
		call(pool, WEFT_NEVER);
		call(pool, weft_after(50 * WAIT_NS));
	}
	use_pools_of_loop(&world);
	check_pools(&world, pool);
	EXPECT(weft_pool_free(pool) == 0);
	end_world(&world);
}
