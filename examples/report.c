/* report.c - errors without a caller to return to go to one hook. */
#include <stdio.h>
#include <weft/weft.h>

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	fprintf(stderr, "threadlet %s failed: %s (%s)\n", report->name,
	        report->text, weft_errname(report->error));
}

static int
load(void *arg)
{
	(void)arg;
	return weft_fail(WEFT_ENOENT, "load %s: no such file", "settings");
}

static int
run(void *arg)
{
	const weft_go_opts opts = { .name = "loader" };

	(void)arg;
	if (weft_go_with(&opts, load, NULL) < 0)
		return WEFT_ENOMEM;
	return weft_yield(); /* now it runs; it is never joined */
}

int
main(void)
{
	const weft_hooks hooks = { .on_report = on_report };

	weft_set_hooks(&hooks);
	return weft_main(NULL, run, NULL);
}
