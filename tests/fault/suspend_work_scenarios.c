/* suspend_work_scenarios.c - work in pools, disturbed while a threadlet waits for it.
 *
 * Queued work is withdrawn.  Running work is requested to end, and the caller waits for it.  So
 * the work has run if and only if the caller gets its result.  File calls continue without
 * their caller, and do not access its memory.
 */
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include "base/atomic.h"
#include "fault.h"
#include "suspend.h"

/* --- work --------------------------------------------------------------- */

enum { DONE = 7 };

/* A pool of one thread: the first task occupies it, the second one waits for it. */
struct task {
	weft_pool *pool;
	weft__a32 *open; /* 1: it may return */
	weft__a32 ran;   /* times */
};

/* Runs on the pool's thread. */
static int
do_task(void *arg)
{
	struct task *task = arg;

	(void)weft__add(&task->ran, 1, WEFT__RELEASE);
	while (!weft__load(task->open, WEFT__ACQUIRE) && weft_check_canceled() == 0)
		(void)sched_yield();
	return DONE;
}

/* The work runs before the threadlet waits for it. */
static int
await_running(void *arg)
{
	struct task *task = arg;
	weft_op op;

	EXPECT(weft_op_init(&op, NULL, NULL, NULL) == 0);
	EXPECT(weft_work_op(task->pool, do_task, task, &op, WEFT_NEVER) == 0);
	while (!weft__load(&task->ran, WEFT__ACQUIRE))
		(void)sched_yield();
	EXPECT(weft_op_wait(&op, WEFT_NEVER) == DONE);
	EXPECT(!op.pending);
	return 0;
}

static int
await_queued(void *arg)
{
	struct task *task = arg;
	enum went went;

	RETRY(went, how(weft_work(task->pool, do_task, task, WEFT_NEVER), DONE));
	EXPECT(weft__load(&task->ran, WEFT__ACQUIRE) == (went == WELL));
	return 0;
}

/* If the wait for the first task is disturbed, only the cancellation ends that task. */
int
run_work(void *arg)
{
	weft_pool_opts opts = { .threads_max = 1 };
	weft_pool *pool = weft_pool_new(&opts);
	weft__a32 open = { 0 };
	struct task first = { .pool = pool, .open = &open }, second = first;
	weft_scope outer, inner;
	weft_threadlet id;

	(void)arg;
	EXPECT(weft_scope_open(&outer, 0, WEFT_NEVER) == 0);
	EXPECT(weft_scope_open(&inner, 0, WEFT_NEVER) == 0);
	id = start_in(&inner, NULL, await_running, &first);
	(void)start_in(&outer, NULL, await_queued, &second);
	(void)nap(2);
	if (target() != id)
		weft__store(&open, 1, WEFT__RELEASE);
	EXPECT(weft_scope_close(&inner) == 0);
	weft__store(&open, 1, WEFT__RELEASE);
	EXPECT(weft_scope_close(&outer) == 0);
	EXPECT(weft_pool_free(pool) == 0); /* fails if the pool is not empty */
	return 0;
}

/* --- files -------------------------------------------------------------- */

int
run_file(void *arg)
{
	int fd = ((struct stage *)arg)->file;
	char buf[] = "----";
	enum went went;

	RETRY(went, how(weft_file_write(fd, "weft", 4, 0, WEFT_NEVER), 4));
	if (went == DISTURBED)
		return 0;
	RETRY(went, how(weft_file_read(fd, buf, 4, 0, WEFT_NEVER), 4));
	EXPECT(strcmp(buf, went == WELL ? "weft" : "----") == 0);
	RETRY(went, how(weft_file_sync(fd, WEFT_NEVER), 0));
	return 0;
}

/* If the caller of an open is disturbed, the descriptor is closed.  Closing cannot be
 * disturbed. */
int
run_file_open(void *arg)
{
	enum went went;
	int fd;

	(void)arg;
	do {
		fd = weft_file_open("/dev/null", O_RDWR, 0, WEFT_NEVER);
		went = how(fd < 0 ? fd : 0, 0);
	} while (went == AGAIN);
	if (went == WELL)
		EXPECT(weft_file_close(fd) == 0);
	return 0;
}
