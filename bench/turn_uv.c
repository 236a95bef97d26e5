/* turn_uv.c - an idle handle of libuv. */
#include "bench.h"
#include <uv.h>

static bool turns_more(void);
static void turn_seen(void);

static uv_loop_t loop;
static uv_idle_t idle;
static uv_prepare_t prepare;

static void
on_idle(uv_idle_t *handle)
{
	if (!turns_more())
		(void)uv_idle_stop(handle);
}

static void
on_prepare(uv_prepare_t *handle)
{
	(void)handle;
	turn_seen();
}

static void
turns_open(void)
{
	BENCH_CHECK(uv_loop_init(&loop) == 0);
	BENCH_CHECK(uv_idle_init(&loop, &idle) == 0);
	BENCH_CHECK(uv_prepare_init(&loop, &prepare) == 0);
	uv_unref((uv_handle_t *)&prepare);
}

static void
turns_run(void)
{
	BENCH_CHECK(uv_idle_start(&idle, on_idle) == 0);
	BENCH_CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
}

static void
turns_watch(bool on)
{
	if (on)
		BENCH_CHECK(uv_prepare_start(&prepare, on_prepare) == 0);
	else
		BENCH_CHECK(uv_prepare_stop(&prepare) == 0);
}

#include "turn_bench.h"
