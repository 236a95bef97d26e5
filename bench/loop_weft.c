/* loop_weft.c - loops of weft: creating them, and the memory they hold. */
#include "bench.h"
#include "memory.h"
#include <weft/loop.h>

static double
loop_memory(void)
{
	weft_loop *loop;
	size_t bytes;

	count_memory();
	loop = weft_loop_new(NULL);
	BENCH_CHECK(loop);
	bytes = held_bytes;
	BENCH_CHECK(weft_loop_free(loop) == 0);
	return (double)bytes;
}

static void
loop_once(void)
{
	weft_loop *loop = weft_loop_new(NULL);

	BENCH_CHECK(loop);
	BENCH_CHECK(weft_loop_free(loop) == 0);
}

static void
loop_once_used(void)
{
	weft_loop *loop = weft_loop_new(NULL);

	BENCH_CHECK(loop);
	BENCH_CHECK(weft_loop_run_once(loop, WEFT_NOWAIT) == 0);
	BENCH_CHECK(weft_loop_free(loop) == 0);
}

#define LOOP_MORE { "loop.memory", loop_memory },
#include "loop_bench.h"
