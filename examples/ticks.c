/* ticks.c - a loop, and a timer that stops itself. */
#include <stdio.h>
#include <weft/weft.h>

static void
on_tick(weft_timer *timer, void *arg)
{
	int *ticks = arg;

	printf("tick %d\n", ++*ticks);
	if (*ticks == 3)
		weft_timer_stop(timer); /* now run returns: nothing is alive */
}

int
main(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_timer timer = WEFT_INIT;
	int ticks = 0;

	weft_timer_start(loop, &timer, weft_after(100 * WEFT_MS), 100 * WEFT_MS,
	                 on_tick, &ticks);
	weft_loop_run(loop);
	return weft_loop_free(loop) < 0;
}
