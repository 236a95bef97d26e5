/* dag_trace.c - steps of graphs in a trace (weft/trace.h).
 *
 * A run that is made while a trace is recorded keeps times for it, with the track of the thread
 * or threadlet that ran each step.  When a step has ended, its span is recorded, and an arrow
 * from each of its sources: the times of the sources are known, because they ended before the
 * step began.  An arrow from a group begins at the step of the group that ended last.
 */
#include "dag/dag.h"

/* The times of a step, if they are kept; or NULL. */
static struct weft__dag_times *
times_of(const struct weft__dag_step *step)
{
	struct weft__dag_frame *frame = step->frame;

	return frame->times ? &frame->times[step - frame->steps] : NULL;
}

static void
note_edge(const struct weft__dag_times *from, const struct weft__dag_times *to)
{
	if (!from->edges_ns || from->mark >> 32 != to->mark >> 32)
		return;
	(void)weft__trace_note(to->mark,
	                       (struct weft__trace_event){
				       .begin_ns = from->edges_ns,
				       .end_ns = to->begin_ns,
				       .key = (uint32_t)from->mark,
				       .kind = WEFT__TRACE_EDGE,
			       },
	                       NULL);
}

/* An item has the sources of its list.  Added nodes keep their sources elsewhere, and get no
 * edges. */
static void
note_edges(const struct weft__dag_step *step, const struct weft__dag_times *to)
{
	const struct weft__dag_frame *frame;

	if (step->item)
		step = step->frame->owner;
	frame = step->frame;
	if (frame->added)
		return;
	for (uint32_t i = 0; i < step->node->in_count; i++)
		note_edge(times_of(&frame->steps[frame->dag->in[step->node->in_at + i]]), to);
}

void
weft__dag_trace_step(const struct weft__dag_step *step, bool failed)
{
	struct weft__dag_times *times = times_of(step);

	times->mark = weft__trace_here();
	if (!weft__trace_note(times->mark,
	                      (struct weft__trace_event){
				      .begin_ns = times->begin_ns,
				      .end_ns = times->end_ns,
				      .kind = WEFT__TRACE_STEP,
				      .number = failed,
			      },
	                      step->node->more->name))
		return; /* without a span, edges cannot begin or end there */
	/* Arrows begin at the end of the span, but still inside it. */
	times->edges_ns = times->end_ns - (times->end_ns > times->begin_ns);
	note_edges(step, times);
}

void
weft__dag_trace_group(const struct weft__dag_frame *group)
{
	struct weft__dag_times *times = times_of(group->owner);

	for (uint32_t i = 0; i < group->count; i++)
		if (group->times[i].edges_ns > times->edges_ns) {
			times->mark = group->times[i].mark;
			times->edges_ns = group->times[i].edges_ns;
		}
}
