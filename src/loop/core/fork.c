/* fork.c - what fork() does to loops: the child counts it, and forgets its parent's loops.
 *
 * A loop keeps the count from when it was made.  If that differs from the count of the process,
 * the loop is a copy of the parent's: memory only (invariant 5 of life.c).  The layers above have
 * fork handlers of their own.
 */
#include "loop/core/loop.h"

struct weft__program weft__program;

static void
count_fork(void)
{
	(void)weft__add(&weft__program.forks, 1, WEFT__RELAXED);
	weft__trace_forked();
	weft__signals_forked();
	weft__registry_forget();
	weft__watchdog_forget();
	weft__locals_forked();
}

int
weft__watch_forks(void)
{
	static weft__a32 registered;

	return weft__fork_handler(&registered, count_fork);
}
