/* loop_uv.c - loops of libuv.
 *
 * Its descriptors are open from the start; without handles a turn is no poll.
 */
#include "bench.h"
#include <uv.h>

static void
loop_once(void)
{
	uv_loop_t loop;

	BENCH_CHECK(uv_loop_init(&loop) == 0);
	BENCH_CHECK(uv_loop_close(&loop) == 0);
}

static void
loop_once_used(void)
{
	uv_loop_t loop;

	BENCH_CHECK(uv_loop_init(&loop) == 0);
	BENCH_CHECK(uv_run(&loop, UV_RUN_NOWAIT) == 0);
	BENCH_CHECK(uv_loop_close(&loop) == 0);
}

#define LOOP_MORE
#include "loop_bench.h"
