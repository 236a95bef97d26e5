/* post_weft.c - items through weft_loop_post(). */
#include "bench.h"
#include <weft/loop.h>

static weft_loop *loop;

static void
inbox_open(unsigned producers, uint64_t each)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP };

	(void)producers;
	(void)each; /* the inbox has its own limit */
	loop = weft_loop_new(&opts);
	BENCH_CHECK(loop);
}

static inline bool
inbox_post(weft_fn fn, void *arg)
{
	int rc = weft_loop_post(loop, fn, arg);

	BENCH_CHECK(rc == 0 || rc == WEFT_EAGAIN);
	return rc == 0;
}

static void
inbox_run(void)
{
	BENCH_CHECK(weft_loop_run(loop) == 0);
}

static void
inbox_leave(void)
{
	weft_loop_break(loop);
}

#include "post_bench.h"
