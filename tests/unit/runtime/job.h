/* job.h - shared by the pool tests: work that waits at a gate. */
#ifndef WEFT_TEST_JOB_H
#define WEFT_TEST_JOB_H

#include <sched.h>
#include "unit/probe.h"
#include "work/pool.h"

struct job {
	struct probe p;
	weft__a32    gate;        /* 1: open */
	weft__a32    running;     /* 1: it has begun */
	bool         until_asked; /* ends without the gate when a cancellation is requested */
	int          asked;       /* reason of the cancellation, or 0; written by the work */
	uint32_t     number;      /* start order, from 1; written by the work */
};

static weft__a32 job_numbers;

static inline int
run_job(void *arg)
{
	struct job *job = arg;

	job->number = weft__add(&job_numbers, 1, WEFT__RELAXED) + 1;
	weft__store(&job->running, 1, WEFT__RELEASE);
	while (!weft__load(&job->gate, WEFT__ACQUIRE)
	       && !(job->until_asked && weft_check_canceled()))
		sched_yield();
	job->asked = weft_check_canceled();
	return 1;
}

static inline void
open_gate(struct job *job)
{
	weft__store(&job->gate, 1, WEFT__RELEASE);
}

static inline void
await_running(struct job *job)
{
	while (!weft__load(&job->running, WEFT__ACQUIRE))
		sched_yield();
}

static inline void
init_job(weft_loop *loop, struct job *job)
{
	*job = (struct job){ .asked = 0 };
	init(loop, &job->p);
}

static inline void
push_job(weft_loop *loop, weft_pool *pool, struct job *job)
{
	init_job(loop, job);
	OK(weft_work_op(pool, run_job, job, &job->p.op, WEFT_NEVER));
}

static inline void
push_open_job(weft_loop *loop, weft_pool *pool, struct job *job)
{
	init_job(loop, job);
	open_gate(job);
	OK(weft_work_op(pool, run_job, job, &job->p.op, WEFT_NEVER));
}

static inline weft_pool *
make_pool(uint32_t threads_max, uint32_t threads_min)
{
	weft_pool_opts opts = { .threads_max = threads_max,
	                        .threads_min = threads_min };
	weft_pool *pool = weft_pool_new(&opts);

	CHECK(pool != NULL);
	return pool;
}

static inline uint32_t
threads_of(weft_pool *pool)
{
	uint32_t count;

	weft__lock_take(&pool->lock);
	count = pool->threads;
	weft__lock_give(&pool->lock);
	return count;
}

/* Yields until this many threads are idle. */
static inline void
await_idle(weft_pool *pool, uint32_t count)
{
	uint32_t idle;

	do {
		idle = 0;
		weft__lock_take(&pool->lock);
		for (struct weft__worker *w = pool->idle; w; w = w->below)
			idle++;
		weft__lock_give(&pool->lock);
		sched_yield();
	} while (idle < count);
}

#endif
