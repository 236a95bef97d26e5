/* work_uv.c - uv_queue_work(), whose callback queues the next. */
#include "bench.h"
#include <uv.h>

static uv_loop_t loop;
static uv_work_t request;

static void work_once(void);
static bool work_back(void);
static void queue(void);

static void
on_work(uv_work_t *r)
{
	(void)r;
	work_once();
}

static void
on_back(uv_work_t *r, int status)
{
	(void)r;
	BENCH_CHECK(status == 0);
	if (!work_back())
		queue();
}

static void
queue(void)
{
	BENCH_CHECK(uv_queue_work(&loop, &request, on_work, on_back) == 0);
}

static void
work_run(void)
{
	BENCH_CHECK(uv_loop_init(&loop) == 0);
	queue();
	BENCH_CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
	BENCH_CHECK(uv_loop_close(&loop) == 0);
}

#include "work_bench.h"
