/* wake_weft.c - two loops that post to each other by weft_loop_post_node(). */
#include "bench.h"
#include <weft/loop.h>

struct side {
	weft_loop *loop;
	weft_node node;
};

static void on_kick(struct side *side);

static void
on_node(void *arg)
{
	on_kick(arg);
}

static void
side_open(struct side *side, bool may_spin)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_KEEP };

	if (!may_spin)
		opts.flags |= WEFT_LOOP_NO_SPIN;
	side->loop = weft_loop_new(&opts);
	BENCH_CHECK(side->loop);
	side->node.fn = on_node;
	side->node.arg = side;
}

static void
side_kick(struct side *side)
{
	BENCH_CHECK(weft_loop_post_node(side->loop, &side->node) == 0);
}

static void
side_run(struct side *side)
{
	BENCH_CHECK(weft_loop_run(side->loop) == 0);
}

static void
side_leave(struct side *side)
{
	weft_loop_break(side->loop);
}

#include "wake_bench.h"
