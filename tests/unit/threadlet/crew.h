/* crew.h - what the tests of threadlets share: loops that run some to their end. */
#ifndef WEFT_TEST_CREW_H
#define WEFT_TEST_CREW_H

#include "unit/probe.h"

/* Start `fn(arg)` on a loop that is not running yet. */
static inline weft_threadlet
go_on(weft_loop *loop, weft_threadlet_fn fn, void *arg)
{
	weft_go_opts opts = { .loop = loop };
	weft_threadlet id = weft_go_with(&opts, fn, arg);

	CHECK(id > 0);
	return id;
}

/* Run `fn(arg)` as a threadlet of a new loop, until nothing is left there. */
static inline void
run_threadlet(weft_threadlet_fn fn, void *arg)
{
	weft_loop *loop = make();

	(void)go_on(loop, fn, arg);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* Until it is cancelled. */
static inline int
sleep_until_cancelled(void *arg)
{
	(void)arg;
	return weft_sleep_until(WEFT_NEVER) == WEFT_ECANCELED ? 0 : -1;
}

#endif
