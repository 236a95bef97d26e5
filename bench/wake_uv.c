/* wake_uv.c - two libuv loops that wake each other by uv_async_send(). */
#include "bench.h"
#include <uv.h>

struct side {
	uv_loop_t loop;
	uv_async_t async;
};

static void on_kick(struct side *side);

static void
on_async(uv_async_t *async)
{
	on_kick(async->data);
}

static void
side_open(struct side *side, bool may_spin)
{
	(void)may_spin; /* libuv does not spin */
	BENCH_CHECK(uv_loop_init(&side->loop) == 0);
	BENCH_CHECK(uv_async_init(&side->loop, &side->async, on_async) == 0);
	side->async.data = side;
}

static void
side_kick(struct side *side)
{
	BENCH_CHECK(uv_async_send(&side->async) == 0);
}

static void
side_run(struct side *side)
{
	(void)uv_run(&side->loop, UV_RUN_DEFAULT);
}

static void
side_leave(struct side *side)
{
	uv_stop(&side->loop);
}

#include "wake_bench.h"
