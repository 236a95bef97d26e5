/* sched.h - shared by the threadlet tests: running threadlets on a loop until they end. */
#ifndef WEFT_TEST_SCHED_H
#define WEFT_TEST_SCHED_H

#include "unit/probe.h"

/* Starts `fn(arg)` on a loop that is not running yet. */
static inline weft_threadlet
go_on(weft_loop *loop, weft_threadlet_fn fn, void *arg)
{
	weft_go_opts opts = { .loop = loop };
	weft_threadlet id = weft_go_with(&opts, fn, arg);

	CHECK(id > 0);
	return id;
}

/* Runs `fn(arg)` as a threadlet of a new loop, until the loop has nothing left to run. */
static inline void
run_threadlet(weft_threadlet_fn fn, void *arg)
{
	weft_loop *loop = make();

	(void)go_on(loop, fn, arg);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* Sleeps until it is canceled. */
static inline int
sleep_until_cancelled(void *arg)
{
	(void)arg;
	return weft_sleep_until(WEFT_NEVER) == WEFT_ECANCELED ? 0 : -1;
}

#endif
