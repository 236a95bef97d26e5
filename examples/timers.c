/* timers.c - timers: one-shot, repeating, and with an ID. */
#include <inttypes.h>
#include <stdio.h>
#include <weft/weft.h>

struct app {
	weft_loop *loop;
	weft_timer tick, quit;
	int64_t hello;
	int ticks;
};

static void
on_tick(weft_timer *timer, void *arg)
{
	struct app *app = arg;

	printf("tick %d, due at %" PRIu64 "\n", ++app->ticks, timer->due_ns);
}

static void
on_hello(void *arg)
{
	(void)arg;
	puts("never said");
}

static void
on_quit(weft_timer *timer, void *arg)
{
	struct app *app = arg;

	(void)timer;
	weft_timer_stop(&app->tick); /* now run returns: nothing is alive */
	printf("clear: %d\n", weft_schedule_clear(app->loop, app->hello, NULL));
}

int
main(void)
{
	struct app app = { .loop = weft_loop_new(NULL) };

	if (!app.loop)
		return 1;
	weft_timer_start(app.loop, &app.tick, weft_after(100 * WEFT_MS),
	                 100 * WEFT_MS, on_tick, &app);
	weft_timer_start(app.loop, &app.quit, weft_after(550 * WEFT_MS), 0,
	                 on_quit, &app);
	app.hello = weft_schedule_timeout(app.loop, 5 * WEFT_S, on_hello, NULL);
	weft_loop_run(app.loop);
	return weft_loop_free(app.loop) < 0;
}
