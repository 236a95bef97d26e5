/* turn_weft.c - a callback that posts itself again by weft_loop_post_node().
 *
 * turn_metrics.c includes this file and defines TURN_FLAGS.
 */
#include "bench.h"
#include <weft/loop.h>

#ifndef TURN_FLAGS
#define TURN_FLAGS 0
#endif

static bool turns_more(void);
static void turn_seen(void);

static weft_loop *loop;
static weft_node node;
static bool watched;

static void
on_node(void *arg)
{
	(void)arg;
	if (turns_more())
		BENCH_CHECK(weft_loop_post_node(loop, &node) == 0);
}

static void
turns_open(void)
{
	weft_loop_opts opts = { .flags = TURN_FLAGS };

	loop = weft_loop_new(&opts);
	BENCH_CHECK(loop);
	node.fn = on_node;
}

/* Run single iterations until nothing is alive. */
static void
step(void)
{
	int rc;

	do {
		rc = weft_loop_run_once(loop, WEFT_NOWAIT);
		BENCH_CHECK(rc >= 0);
		turn_seen();
	} while (rc > 0);
}

static void
turns_run(void)
{
	BENCH_CHECK(weft_loop_post_node(loop, &node) == 0);
	if (watched)
		step();
	else
		BENCH_CHECK(weft_loop_run(loop) == 0);
}

static void
turns_watch(bool on)
{
	watched = on;
}

#include "turn_bench.h"
