/* dag_worker.c - the end of a step, and what follows from it.
 *
 * A worker is what ends steps: a thread of a pool, a thread that waits for the run, a
 * threadlet, or the loop for timed steps.  A worker runs the steps that become ready itself, if
 * it can, or queues them.  Steps to be dropped and groups to be opened go into a list, which
 * weft__dag_settle() empties, so that graphs of any depth need little stack.
 */
#include "dag/dag.h"

/* --- counting ------------------------------------------------------------ */

static void
flush_count(struct weft__dag_worker *worker)
{
	struct weft__dag_frame *frame = worker->frame;
	uint32_t ended = worker->ended;

	worker->frame = NULL;
	worker->ended = 0;
	if (!frame || weft__dag_lower(worker->run, &frame->left, ended) != ended) /* L */
		return;
	if (frame->owner)
		weft__dag_close_group(worker, frame);
	else
		weft__dag_run_over(worker);
}

void
weft__dag_switch_frame(struct weft__dag_worker *worker, const struct weft__dag_frame *frame)
{
	while (worker->frame && worker->frame != frame)
		flush_count(worker);
}

/* --- becoming ready ------------------------------------------------------ */

static bool
is_dropped(const struct weft__dag_step *step)
{
	return (weft__load(&step->missing, WEFT__RELAXED) & WEFT__DAG_SOURCE_FAILED)
	       || weft__dag_is_stopped(step->frame);
}

/* Can the step be queued?  If its node has a limit, the step needs a slot.  A group without a
 * condition is not queued: the worker opens it. */
static bool
dag_worker_prepare(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	const struct weft__dag_more *more = step->node->more;
	int kind = weft__dag_kind(step);

	if (more->limit && kind != WEFT__DAG_ITEMS && !step->limited
	    && !weft__dag_enter_limit(step))
		return false;
	if (kind == WEFT__DAG_CALLS || more->set.condition)
		return true;
	weft__dag_append(&worker->own, step);
	return false;
}

/* Does the worker keep the step, to run it itself?  It keeps the first step, and short ones. */
static bool
dag_worker_keep(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	if (!worker->next) {
		worker->next = step;
		return true;
	}
	worker->kept_ns += weft__dag_cost(step);
	if (worker->place != WEFT_DAG_CPU || worker->kept_ns > WEFT__DAG_BATCH_NS)
		return false;
	weft__dag_append(&worker->taken, step);
	return true;
}

void
weft__dag_ready(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	const struct weft__dag_node *node = step->node;

	if (is_dropped(step)) {
		weft__dag_append(&worker->own, step);
		return;
	}
	if ((node->flags & WEFT__DAG_SPECIAL) && !dag_worker_prepare(worker, step))
		return;
	if (node->place != worker->place || weft__dag_level_of(step) > 0
	    || !dag_worker_keep(worker, step))
		weft__dag_append(&worker->ready, step);
}

/* --- ending -------------------------------------------------------------- */

static void
release_dependents(struct weft__dag_worker *worker, struct weft__dag_step *step, bool bad)
{
	struct weft__dag_frame *frame = step->frame;
	const struct weft__dag_node *node = step->node;
	const uint32_t *out = frame->out + node->out_at;

	for (uint32_t k = 0; k < node->out_count; k++) {
		struct weft__dag_step *to = &frame->steps[out[k]];

		if (bad)
			(void)weft__or(&to->missing, WEFT__DAG_SOURCE_FAILED, WEFT__RELAXED);
		if ((weft__dag_lower(worker->run, &to->missing, 1) /* M */
		     & ~WEFT__DAG_SOURCE_FAILED)
		    == 1)
			weft__dag_ready(worker, to);
	}
}

void
weft__dag_end_step(struct weft__dag_worker *worker, struct weft__dag_step *step,
                   weft_dag_state state, int error)
{
	step->state = (uint8_t)state;
	step->error = error;
	weft__dag_record_event(step);
	if (step->limited)
		weft__dag_leave_limit(worker, step);
	if (!step->item)
		release_dependents(worker, step,
		                   state >= WEFT_DAG_FAILED && state != WEFT_DAG_SKIPPED);
	weft__dag_count(worker, step->frame);
}

/* Name the step that failed; for an item also its index.  For a list, the text of its item has
 * the name already. */
static void
add_step_name(struct weft__text *to, const struct weft__dag_step *step)
{
	if (weft__dag_kind(step) == WEFT__DAG_ITEMS && step->below)
		return;
	weft__text_add(to, "node ");
	weft__text_add(to, step->node->more->name);
	if (step->item) {
		weft__text_add(to, "[");
		weft__text_number(to, step->item - 1);
		weft__text_add(to, "]");
	}
	weft__text_add(to, ": ");
}

/* The step that sets frame->error makes the text.  That step has not ended yet, so a thread
 * that sees the end of the frame sees the text, too. */
static void
keep_error(struct weft__dag_step *step, int error)
{
	struct weft__dag_frame *frame = step->frame;
	const char *detail = weft_detail();
	uint32_t none = 0;
	char *text;

	if (!weft__cas(&frame->error, &none, (uint32_t)error, WEFT__RELAXED))
		return;
	text = weft__sys->alloc(WEFT__TEXT_BYTES);
	if (text) {
		struct weft__text to = weft__text_begin(text, WEFT__TEXT_BYTES);

		add_step_name(&to, step);
		weft__text_add(&to, *detail ? detail : weft_strerror(error));
	}
	frame->text = text;
}

/* Try again, at once or after a while.  The error belongs to the attempt, not to the step: only
 * on_progress gets it. */
static void
try_again(struct weft__dag_worker *worker, struct weft__dag_step *step, int error)
{
	step->attempt++;
	step->state = WEFT_DAG_RETRYING;
	step->error = error;
	weft__dag_record_event(step);
	step->error = 0;
	(void)weft__add(&((weft_dag *)(uintptr_t)step->frame->dag)->retries, 1, WEFT__RELAXED);
	if (step->limited)
		weft__dag_leave_limit(worker, step);
	if (step->node->more->set.backoff_ns)
		weft__dag_sleep(worker, step);
	else
		weft__dag_ready(worker, step);
}

/* A loop that stops cancels its threadlets before it cancels the run. */
static bool
is_shut_down(const weft_dag_run *run, int error)
{
	return error == WEFT_ECANCELED && run->loop && weft_loop_state(run->loop) >= WEFT_STOPPING;
}

static void
fail_attempt(struct weft__dag_worker *worker, struct weft__dag_step *step, int error)
{
	weft_dag_run *run = step->frame->run;
	const weft_dag_node *set = &step->node->more->set;
	bool goes_on, list = weft__dag_kind(step) == WEFT__DAG_ITEMS;

	if (is_shut_down(run, error))
		weft__dag_stop(worker, &run->frame, WEFT_ESHUTDOWN);
	goes_on = !weft__dag_is_stopped(step->frame);

	/* Items are tried again each by itself.  The fallback is for the whole list. */
	if (goes_on && !list && step->attempt < set->retries) {
		try_again(worker, step, error);
		return;
	}
	if (goes_on && set->optional && !step->item
	    && weft_value_share(&set->fallback, &step->out) == 0) {
		weft__dag_end_step(worker, step, WEFT_DAG_DONE, error);
		return;
	}
	keep_error(step, error);
	if (!run->collect)
		weft__dag_stop(worker, step->frame, error);
	weft__dag_end_step(worker, step, WEFT_DAG_FAILED, error);
}

void
weft__dag_finish(struct weft__dag_worker *worker, struct weft__dag_step *step, int rc,
                 weft_value out)
{
	if (rc < 0) {
		weft_value_drop(&out);
		fail_attempt(worker, step, rc);
		return;
	}
	step->out = out;
	weft__dag_end_step(worker, step, WEFT_DAG_DONE, 0);
}

/* --- stopping ------------------------------------------------------------ */

/* Under the run's lock.  Afterwards no step of a stopped frame goes to sleep. */
static void
sweep_sleepers(struct weft__dag_worker *worker)
{
	struct weft__dag_list all = worker->run->sleepers;
	struct weft__dag_step *step;

	worker->run->sleepers = (struct weft__dag_list){ 0 };
	while ((step = weft__dag_pop(&all)))
		weft__dag_append(weft__dag_is_stopped(step->frame) ? &worker->own
		                                                   : &worker->run->sleepers,
		                 step);
}

static void
sweep_limits(struct weft__dag_worker *worker)
{
	const weft_dag_run *run = worker->run;

	weft__dag_sweep_limits(worker, run->dag);
	for (struct weft__dag_frame *f = run->frames; f; f = f->next)
		weft__dag_sweep_limits(worker, f->dag);
}

void
weft__dag_stop(struct weft__dag_worker *worker, struct weft__dag_frame *frame, int error)
{
	weft_dag_run *run = frame->run;
	uint32_t none = 0;

	(void)weft__cas(&frame->error, &none, (uint32_t)error, WEFT__RELAXED);
	none = 0;
	if (!weft__cas(&frame->stopped, &none, (uint32_t)error, WEFT__SEQ_CST))
		return; /* S, in dag_limit.c */
	weft__lock_take(&run->lock);
	if (weft__load(&run->state, WEFT__RELAXED) == WEFT__DAG_GOING) {
		sweep_sleepers(worker);
		if (weft__load(&run->waiting, WEFT__SEQ_CST) > 0) /* W */
			sweep_limits(worker);
		weft__dag_notify_loop(run, WEFT__DAG_NOTIFY_CHECK);
	}
	weft__lock_give(&run->lock);
}

/* --- remaining work ------------------------------------------------------ */

void
weft__dag_settle(struct weft__dag_worker *worker)
{
	struct weft__dag_step *step;

	while (worker->own.first || worker->ready.first) {
		while ((step = weft__dag_pop(&worker->own)))
			if (is_dropped(step))
				weft__dag_end_step(worker, step, WEFT_DAG_DROPPED, WEFT_ECANCELED);
			else
				weft__dag_open_group(worker, step);
		if (worker->ready.first)
			weft__dag_queue(worker, &worker->ready);
	}
}

void
weft__dag_flush(struct weft__dag_worker *worker)
{
	worker->clock_ns = 0;
	do {
		weft__dag_settle(worker);
		flush_count(worker);
	} while (worker->own.first || worker->ready.first || worker->frame);
}
