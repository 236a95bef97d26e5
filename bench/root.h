/* root.h - runs the measured code of weft in the first threadlet of a loop. */
#ifndef WEFT_BENCH_ROOT_H
#define WEFT_BENCH_ROOT_H

#include <weft/loop.h>
#include <weft/threadlet.h>
#include "bench.h"

struct root {
	double (*measure)(void);
	double value;
};

static inline int
root_main(void *arg)
{
	struct root *root = (struct root *)arg;

	root->value = root->measure();
	return 0;
}

/* Call measure() in a threadlet of a new loop, which runs on this thread. */
static inline double
sched_run(double (*measure)(void))
{
	struct root root = { measure, 0 };
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .name = "root", .loop = loop };

	BENCH_CHECK(loop);
	BENCH_CHECK(weft_go_with(&opts, root_main, &root) > 0);
	BENCH_CHECK(weft_loop_run(loop) == 0);
	BENCH_CHECK(weft_loop_free(loop) == 0);
	return root.value;
}

#endif
