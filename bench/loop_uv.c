/* loop_uv.c - loops of libuv.
 *
 * libuv opens its descriptors at the start.  An iteration without handles does not poll.
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
