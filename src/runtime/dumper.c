/* dumper.c - dumps all threadlets on a signal.
 *
 * The dumper has a loop and a thread of its own.  So it works while all other loops are blocked,
 * which is when a dump is needed, and no other loop waits for standard error.
 */
#include <weft/debug.h>
#include "loop/core/access.h"
#include "runtime/dumper.h"

#define STANDARD_ERROR 2

/* Write one dump at a time.  Several requests during a dump cause one more dump. */
static int
dump(void *arg)
{
	struct weft__dumper *dumper = arg;

	do {
		dumper->again = false;
		(void)weft_dump(STANDARD_ERROR); /* an error has nowhere to go */
	} while (dumper->again);
	dumper->busy = false;
	return 0;
}

/* A callback must not wait for other loops, so a threadlet writes the dump. */
static void
dumper_on_signal(weft_watch *watch, int what, void *arg)
{
	struct weft__dumper *dumper = arg;
	weft_go_opts opts = { .name = "dump", .loop = watch->loop };

	if (what < 0)
		return;
	dumper->again = dumper->busy;
	if (!dumper->busy)
		dumper->busy = weft_go_with(&opts, dump, dumper) > 0;
}

int
weft__dumper_make(struct weft__dumper *dumper, int signo)
{
	weft_loop_opts opts = { .name = "weft-dump" };

	dumper->signo = signo;
	if (signo == 0)
		return 0;
	if (signo < 0 || signo > 63)
		return weft__fail(WEFT_EINVAL, "weft_runtime_new: dump_signal must be 0 to 63");
	dumper->loop = weft_loop_new(&opts);
	return dumper->loop ? 0 : WEFT_ENOMEM;
}

void
weft__dumper_free(struct weft__dumper *dumper)
{
	(void)weft_loop_free(dumper->loop);
}

int
weft__dumper_start(struct weft__dumper *dumper)
{
	int rc;

	if (!dumper->loop)
		return 0;
	rc = weft_watch_start_signal(dumper->loop, &dumper->watch, dumper->signo, dumper_on_signal,
	                             dumper);
	if (rc < 0)
		return rc;
	rc = weft_loop_start(dumper->loop);
	if (rc < 0)
		(void)weft_watch_stop(&dumper->watch);
	return rc;
}

int
weft__dumper_stop(struct weft__dumper *dumper, uint64_t deadline_ns)
{
	if (!dumper->loop || weft__loop_is_forked(dumper->loop))
		return 0;
	weft_loop_shutdown(dumper->loop);
	return weft_loop_wait_stopped(dumper->loop, deadline_ns);
}
