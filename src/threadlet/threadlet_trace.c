/* threadlet_trace.c - threadlets in a trace.
 *
 * The loop's track shows when a threadlet runs; the threadlet's own track shows what it waits
 * for.  So work that spans several waits, such as a step of a graph, can have a span there.
 *
 *   1. `trace_mark` is left over from the threadlet that was on the same stack before.  If a trace
 *      is recorded as a threadlet starts, its mark is cleared.  Otherwise the mark is of an
 *      earlier trace, and is not valid in a later one.
 */
#include "threadlet/threadlet.h"

uint64_t
weft__threadlet_trace_mark(struct weft__threadlet *t)
{
	return t->trace_mark = weft__trace_mark(t->trace_mark,
	                                        &(struct weft__trace_name){
							.kind = WEFT__TRACK_THREADLET,
							.number = (uint64_t)weft__threadlet_id(t),
							.text = t->name,
							.code = (const void *)(uintptr_t)t->fn,
						});
}

static void
note(uint64_t mark, int kind, uint64_t begin_ns, uint64_t end_ns, const char *what, uint64_t key)
{
	(void)weft__trace_note(mark,
	                       (struct weft__trace_event){ .begin_ns = begin_ns,
	                                                   .end_ns = end_ns,
	                                                   .key = key,
	                                                   .what = what,
	                                                   .kind = (uint16_t)kind },
	                       NULL);
}

static const char started[] = "start";

void
weft__trace_start(struct weft__threadlet *t)
{
	t->trace_mark = 0; /* invariant 1 */
	t->trace_ns = weft__sys->now();
	t->trace_what = started;
}

/* A wait that began before the trace is not recorded: trace_what is NULL, or weft__trace_note()
 * refuses the old time. */
void
weft__trace_resume(struct weft__threadlet *t)
{
	uint64_t now_ns = weft__sys->now();
	uint64_t mark = weft__threadlet_trace_mark(t);

	if (t->trace_what)
		note(mark, WEFT__TRACE_WAITED, t->trace_ns, now_ns, t->trace_what, 0);
	if (t->trace_what == started)
		note(mark, WEFT__TRACE_BEGAN, now_ns, now_ns, "", 0);
	t->trace_ns = now_ns;
}

void
weft__trace_suspend(struct weft__threadlet *t, bool dead)
{
	uint64_t now_ns = weft__sys->now();
	const char *why = dead ? "end" : t->waiter ? weft__waiter_what(t->waiter) : "ready";

	if (t->trace_mark)
		note(weft__loop_trace_mark(t->sched->loop), WEFT__TRACE_RUN, t->trace_ns, now_ns,
		     why, (uint32_t)t->trace_mark);
	if (dead)
		note(t->trace_mark, WEFT__TRACE_ENDED, now_ns, now_ns, "", 0);
	t->trace_ns = now_ns;
	t->trace_what = why;
}
