/* order.c - in which order a loop runs what a callback has queued. */
#include <stdio.h>
#include <weft/weft.h>

static weft_loop *loop;

static void
say(void *text)
{
	puts(text);
}

static void
queue_more(void *text)
{
	static char tick[] = "2b. a tick that microtask 2 queued";

	puts(text);
	weft_schedule_tick(loop, say, tick);
}

static void
callback(void *arg)
{
	static char tick[] = "1.  a tick", first[] = "2.  a microtask",
		    second[] = "2a. the next microtask",
		    immediate[] = "3.  an immediate: after the wait for events",
		    timeout[] = "4.  a timeout: in the next iteration",
		    post[] = "5.  a post: after the timers";

	(void)arg;
	weft_loop_post(loop, say, post);
	weft_schedule_timeout(loop, 0, say, timeout);
	weft_schedule_immediate(loop, say, immediate);
	weft_schedule_microtask(loop, queue_more, first);
	weft_schedule_microtask(loop, say, second);
	weft_schedule_tick(loop, say, tick);
	puts("0.  the callback itself");
}

int
main(void)
{
	loop = weft_loop_new(NULL);
	return !loop || weft_loop_post(loop, callback, NULL) < 0
	       || weft_loop_run(loop) < 0 || weft_loop_free(loop) < 0;
}
