/* signal_wait_test.c - threadlets that wait for signals. */
#include <signal.h>
#include <weft/runtime.h>
#include <weft/threadlet.h>
#include "unit/probe.h"

#define BOTH_SIGNALS (WEFT_SIG(SIGUSR1) | WEFT_SIG(SIGUSR2))

static int
wait_for_two(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_signal_wait(BOTH_SIGNALS, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_signal_wait(BOTH_SIGNALS, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(raise(SIGUSR2)); /* between two waits */
	CHECK_EQ(weft_signal_wait(BOTH_SIGNALS, WEFT_NEVER), SIGUSR2);
	OK(raise(SIGUSR1));
	CHECK_EQ(weft_signal_wait(BOTH_SIGNALS, WEFT_NOWAIT), SIGUSR1);
	CHECK_MISUSE(weft_signal_wait(0, WEFT_NEVER), WEFT_EINVAL);
	return 0;
}

TEST(threadlet_waits_for_signals_and_loses_none_between_two_waits)
{
	weft_loop *loop = make();
	weft_go_opts opts = { .loop = loop };

	CHECK(weft_go_with(&opts, wait_for_two, NULL) > 0);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}
