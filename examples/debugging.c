/* debugging.c - see what threadlets do: reports, the watchdog, a dump. */
#include <stdatomic.h>
#include <stdio.h>
#include <weft/debug.h>
#include <weft/weft.h>

static weft_threadlet left, right;
static atomic_bool reported;

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	fprintf(stderr, "%s: %s\n", report->name, report->text);
	if (report->kind == WEFT_REPORT_BLOCKED)
		atomic_store(&reported, true);
	if (report->kind == WEFT_REPORT_DEADLOCK)
		weft_cancel(left); /* so that this program ends */
}

static int
think(void *arg)
{
	(void)arg;
	while (!atomic_load(&reported)) /* never suspends */
		;
	return 0;
}

static int
wait_for(void *arg)
{
	return weft_join(*(weft_threadlet *)arg, NULL, WEFT_NEVER);
}

static int
family(void *arg)
{
	weft_scope scope;
	weft_go_opts opts = { .scope = &scope };

	(void)arg;
	weft_scope_open(&scope, 0, WEFT_NEVER);
	left = weft_go_with((opts.name = "left", &opts), wait_for, &right);
	right = weft_go_with((opts.name = "right", &opts), wait_for, &left);
	weft_yield();
	weft_dump(2);
	return weft_scope_close(&scope); /* they wait for each other */
}

int
main(void)
{
	weft_hooks hooks = { .on_report = on_report };
	weft_loop_opts watched = { .name = "main",
		                   .watchdog_ns = 20 * WEFT_MS };
	weft_go_opts opts = { .name = "thinker" };

	if (weft_set_hooks(&hooks) < 0 || weft_catch_overflow() < 0)
		return 1;
	opts.loop = weft_loop_new(&watched);
	weft_go_with(&opts, think, NULL);
	opts.name = "family";
	weft_go_with(&opts, family, NULL);
	weft_loop_run(opts.loop);
	return weft_loop_free(opts.loop) < 0;
}
