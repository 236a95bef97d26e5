/* parked.c - a program with waiting threadlets, for the test of the gdb script to inspect. */
#include <stdlib.h>
#include <weft/weft.h>

static volatile int answer;

static __attribute__((noinline)) int
wait_deep(int depth)
{
	volatile int secret = 4200 + depth;

	if (depth > 0)
		return wait_deep(depth - 1) + (secret < 0);
	return weft_sleep_until(WEFT_NEVER) + (secret < 0);
}

static int
sleeper(void *arg)
{
	return wait_deep((int)(intptr_t)arg) < 0 ? 0 : answer;
}

static int
joiner(void *arg)
{
	weft_go_opts opts = { .name = "child" };
	weft_scope scope;

	(void)arg;
	if (weft_scope_open(&scope, 0, WEFT_NEVER) < 0)
		return -1;
	opts.scope = &scope;
	(void)weft_join(weft_go_with(&opts, sleeper, (void *)1), NULL, WEFT_NEVER);
	weft_scope_cancel(&scope);
	return weft_scope_close(&scope);
}

/* The script stops here. */
static __attribute__((noinline)) void
all_parked(void)
{
	answer++;
}

static void
on_timer(weft_timer *timer, void *arg)
{
	(void)timer;
	all_parked();
	if (arg)
		abort();
	weft_loop_shutdown(NULL);
}

int
main(int argc, char **argv)
{
	weft_loop_opts named = { .name = "yard" };
	weft_loop *loop = weft_loop_new(&named);
	weft_go_opts opts = { .loop = loop, .name = "deep" };
	weft_timer timer = WEFT_INIT;

	(void)argv;
	if (weft_go_with(&opts, sleeper, (void *)3) < 0)
		return 1;
	opts.name = "joiner";
	if (weft_go_with(&opts, joiner, NULL) < 0)
		return 1;
	weft_timer_start(loop, &timer, weft_after(WEFT_MS), 0, on_timer, argc > 1 ? loop : NULL);
	weft_loop_run(loop);
	return weft_loop_free(loop) < 0;
}
