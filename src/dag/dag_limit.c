/* dag_limit.c - how many steps with the same named limit run at once, over all runs.
 *
 * A slot that is freed goes to the first waiting step, so no step overtakes another.  That step
 * may belong to another run, which cannot end before the step has ended.
 *
 * A step that waits is first counted in its run (W), and then checks whether its frame was
 * stopped (S).  A worker that stops a frame sets S first, and then removes waiting steps if
 * there are any (W).  So one of the two sees the other.
 *
 * Order of locks: a run's, then a template's.
 */
#include "dag/dag.h"

static void
stop_waiting(const struct weft__dag_step *step)
{
	(void)weft__add(&step->frame->run->waiting, UINT32_MAX, WEFT__RELAXED);
}

static bool
is_stopped(const struct weft__dag_frame *frame)
{
	while (!weft__load(&frame->stopped, WEFT__SEQ_CST)) { /* S */
		if (!frame->owner)
			return false;
		frame = frame->owner->frame;
	}
	return true;
}

bool
weft__dag_enter_limit(struct weft__dag_step *step)
{
	struct weft__dag_limit *limit = step->node->more->limit;
	weft_dag *dag = (weft_dag *)(uintptr_t)step->frame->dag;
	struct weft__dag_list wait;
	bool enters;

	weft__lock_take(&dag->lock);
	(void)weft__add(&step->frame->run->waiting, 1, WEFT__SEQ_CST); /* W */
	enters = limit->used < limit->max || is_stopped(step->frame);
	if (enters) {
		stop_waiting(step);
		step->limited = true;
		limit->used++; /* of a stopped step it may exceed the limit for a moment */
	} else {
		wait = (struct weft__dag_list){ limit->first, limit->last };
		weft__dag_append(&wait, step);
		limit->first = wait.first;
		limit->last = wait.last;
	}
	weft__lock_give(&dag->lock);
	return enters; /* a waiting step may belong to another worker by now */
}

/* Give the slot of a leaving step to the next one; NULL: none.  Under the lock. */
static struct weft__dag_step *
pass_on(struct weft__dag_limit *limit)
{
	struct weft__dag_step *next = limit->first;

	if (!next || limit->used > limit->max) {
		limit->used--;
		return NULL;
	}
	limit->first = next->next;
	next->limited = true;
	stop_waiting(next);
	return next;
}

void
weft__dag_leave_late(struct weft__dag_worker *worker, const struct weft__dag_step *step)
{
	weft_dag *dag = (weft_dag *)(uintptr_t)step->frame->dag;
	struct weft__dag_step *next;

	weft__lock_take(&dag->lock);
	next = pass_on(step->node->more->limit);
	weft__lock_give(&dag->lock);
	if (!next)
		return;
	if (next->frame->run == worker->run) {
		weft__dag_ready(worker, next);
	} else {
		weft_dag_run *run = next->frame->run;
		struct weft__dag_worker other = { .run = run, .place = -1 };

		weft__dag_run_ref(run);
		weft__dag_ready(&other, next);
		weft__dag_flush(&other);
		weft__dag_run_unref(run);
	}
}

void
weft__dag_leave_limit(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	step->limited = false;
	weft__dag_leave_late(worker, step);
}

void
weft__dag_sweep_limits(struct weft__dag_worker *worker, const weft_dag *of)
{
	weft_dag *dag = (weft_dag *)(uintptr_t)of;

	if (!dag->limits)
		return;
	weft__lock_take(&dag->lock);
	for (struct weft__dag_limit *l = dag->limits; l; l = l->next) {
		struct weft__dag_list all = { l->first, l->last }, rest = { 0 };
		struct weft__dag_step *step;

		while ((step = weft__dag_pop(&all))) {
			bool ends = step->frame->run == worker->run && is_stopped(step->frame);

			weft__dag_append(ends ? &worker->own : &rest, step);
			if (ends)
				stop_waiting(step);
		}
		l->first = rest.first;
		l->last = rest.last;
	}
	weft__lock_give(&dag->lock);
}
