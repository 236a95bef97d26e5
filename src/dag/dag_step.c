/* dag_step.c - one attempt at a step, and what its function can do.
 *
 * Most nodes are a function and nothing more; those take a short path.  The attempt, with its
 * output, is on the stack of the worker until it counts.  So a late attempt (dag.h, invariant 5)
 * has changed nothing of the run.
 */
#include "dag/dag.h"

/* --- times --------------------------------------------------------------- */

/* The clock, if the run is timed, else 0. */
static uint64_t
read_clock(struct weft__dag_worker *worker)
{
	return worker->run->timed ? weft_now() : 0;
}

/* The end of the last step can serve as the beginning of the next.  Not in runs that are
 * observed or traced: the worker may have waited or reported progress since, and other workers
 * may have ended the sources of this step. */
static bool
is_clock_known(const struct weft__dag_worker *worker)
{
	return worker->clock_ns && !worker->run->observed && !worker->run->traced;
}

/* A longer time counts at once, a shorter one gradually. */
static void
update_cost(struct weft__dag_node *node, uint64_t took_ns)
{
	uint32_t old = weft__load(&node->cost, WEFT__RELAXED);
	uint32_t took = took_ns < UINT32_MAX ? (uint32_t)took_ns + 1 : UINT32_MAX;

	if (took < old)
		took = old - (old - took) / 4;
	weft__store(&node->cost, took, WEFT__RELAXED);
}

/* Call the function of a node, and measure the time. */
static int
dag_step_call(weft_dag_step *attempt)
{
	struct weft__dag_worker *worker = attempt->worker;
	struct weft__dag_node *node = attempt->step->node;
	int rc;

	attempt->begin_ns = is_clock_known(worker) ? worker->clock_ns : read_clock(worker);
	rc = node->fn(attempt, node->arg);
	worker->clock_ns = attempt->end_ns = read_clock(worker);
	if (attempt->begin_ns) {
		update_cost(node, attempt->end_ns - attempt->begin_ns);
		if (worker->run->observed && !attempt->step->item)
			weft__dag_measure(node, attempt->end_ns - attempt->begin_ns, rc < 0);
	}
	return rc;
}

/* For an attempt that counts: the worker still holds its step. */
static void
keep_times(const weft_dag_step *attempt)
{
	const struct weft__dag_step *step = attempt->step;
	struct weft__dag_frame *frame = step->frame;

	frame->times[step - frame->steps] = (struct weft__dag_times){
		.begin_ns = attempt->begin_ns,
		.end_ns = attempt->end_ns,
		.thread = (uintptr_t)weft__thread_self(),
	};
}

/* --- timeouts on pools --------------------------------------------------- */

uint64_t
weft__dag_deadline_of(const struct weft__dag_step *step)
{
	uint64_t timeout_ns = step->node->flags & WEFT__DAG_TIMED ? step->node->more->set.timeout_ns
	                                                          : 0;
	uint64_t own = timeout_ns ? weft_after(timeout_ns) : WEFT_NEVER;
	uint64_t run = step->frame->run->deadline_ns;

	return own < run ? own : run;
}

/* Let the loop watch the deadline. */
static void
begin_timed(weft_dag_step *attempt)
{
	struct weft__dag_worker *worker = attempt->worker;
	weft_dag_run *run = worker->run;

	weft__dag_switch_frame(worker, NULL); /* the step may end before this worker returns */
	weft__store(&worker->why, 0, WEFT__RELAXED);
	weft__lock_take(&run->lock);
	worker->late_limited = false;
	worker->timed = attempt->step;
	worker->deadline_ns = attempt->deadline_ns;
	worker->other = run->timers;
	worker->link = &run->timers;
	if (worker->other)
		worker->other->link = &worker->other;
	run->timers = worker;
	weft__dag_notify_loop(run, WEFT__DAG_NOTIFY_CHECK);
	weft__lock_give(&run->lock);
}

/* Returns false if the attempt is late: the loop has ended the step. */
static bool
end_timed(weft_dag_step *attempt)
{
	struct weft__dag_worker *worker = attempt->worker;
	bool ours;

	weft__lock_take(&worker->run->lock);
	ours = worker->timed != NULL;
	worker->timed = NULL;
	*worker->link = worker->other;
	if (worker->other)
		worker->other->link = worker->link;
	weft__lock_give(&worker->run->lock);
	weft__store(&worker->why, 0, WEFT__RELAXED);
	return ours;
}

/* --- an attempt ---------------------------------------------------------- */

/* An attempt that returned after its deadline.  The end of the run has waited for it. */
static void
drop_late(weft_dag_step *attempt)
{
	weft_dag_run *run = attempt->worker->run;

	weft_value_drop(&attempt->out);
	weft__dag_drop_added(attempt->added);
	(void)weft__add(&run->dag->late, 1, WEFT__RELAXED);
	(void)weft__add(&run->late, UINT32_MAX, WEFT__RELEASE); /* T */
	if (attempt->worker->late_limited)
		weft__dag_leave_late(attempt->worker, attempt->step);
	weft__dag_count(attempt->worker, &run->frame);
}

static void
dag_step_finish(weft_dag_step *attempt, int rc)
{
	if (attempt->step->frame->times)
		keep_times(attempt);
	if (attempt->worker->run->traced)
		weft__dag_trace_step(attempt->step, rc < 0);
	if (attempt->added && rc >= 0) {
		if (attempt->step->limited) /* the nodes it adds may need the slot */
			weft__dag_leave_limit(attempt->worker, attempt->step);
		weft__dag_open_added(attempt);
		return;
	}
	weft__dag_drop_added(attempt->added);
	weft__dag_finish(attempt->worker, attempt->step, rc, attempt->out);
}

/* Drop the output that a condition has set, and the nodes that it has added. */
static void
forget(weft_dag_step *attempt)
{
	weft_value_drop(&attempt->out);
	weft__dag_drop_added(attempt->added);
	attempt->added = NULL;
}

/* A node that has more than a function. */
static void
run_special(weft_dag_step *attempt)
{
	struct weft__dag_step *step = attempt->step;
	const weft_dag_node *set = &step->node->more->set;
	bool is_timed = (step->node->flags & WEFT__DAG_TIMED) && step->node->place != WEFT_DAG_LOOP;
	int rc;

	if (set->condition && step->attempt == 0 && !step->item
	    && !set->condition(attempt, set->arg)) {
		forget(attempt);
		weft__dag_end_step(attempt->worker, step, WEFT_DAG_SKIPPED, 0);
		return;
	}
	if (weft__dag_kind(step) != WEFT__DAG_CALLS) {
		forget(attempt);
		weft__dag_open_group(attempt->worker, step);
		return;
	}
	if (is_timed)
		begin_timed(attempt);
	rc = dag_step_call(attempt);
	if (is_timed && !end_timed(attempt))
		drop_late(attempt);
	else
		dag_step_finish(attempt, rc);
}

/* Without a loop, no timer watches the run's deadline. */
static bool
is_past_end(const weft_dag_run *run)
{
	return run->deadline_ns != WEFT_NEVER && !run->loop && weft_now() >= run->deadline_ns;
}

void
weft__dag_run_step(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	weft_dag_step attempt = { .step = step, .worker = worker };
	int why;

	weft__dag_switch_frame(worker, step->frame);
	if (is_past_end(worker->run))
		weft__dag_stop(worker, &worker->run->frame, WEFT_ETIMEDOUT);
	if (worker->outer && (why = worker->outer(worker->outer_arg)) < 0)
		weft__dag_stop(worker, &worker->run->frame, why);
	if (weft__dag_is_stopped(step->frame)) {
		weft__dag_end_step(worker, step, WEFT_DAG_DROPPED, WEFT_ECANCELED);
		return;
	}
	step->state = WEFT_DAG_STARTED;
	weft__dag_record_event(step);
	attempt.deadline_ns = worker->run->deadline_ns;
	attempt.number = step->attempt;
	worker->attempt = &attempt;
	if (!(step->node->flags & WEFT__DAG_SPECIAL)) {
		dag_step_finish(&attempt, dag_step_call(&attempt));
	} else {
		attempt.deadline_ns = weft__dag_deadline_of(step);
		run_special(&attempt);
	}
	worker->attempt = NULL;
}

int
weft__dag_canceled(void *arg)
{
	struct weft__dag_worker *worker = arg;
	const struct weft__dag_frame *frame;
	int why = (int)weft__load(&worker->why, WEFT__RELAXED);

	if (!why && worker->outer)
		why = worker->outer(worker->outer_arg);
	if (why || !worker->attempt)
		return why;
	frame = worker->attempt->step->frame;
	while (!(why = (int)weft__load(&frame->stopped, WEFT__RELAXED)) && frame->owner)
		frame = frame->owner->frame;
	if (!why && is_past_end(worker->run))
		why = WEFT_ETIMEDOUT;
	return why;
}

/* --- calls of a step's function ------------------------------------------ */

weft_value *
weft__dag_source(const struct weft__dag_step *step, size_t index)
{
	const struct weft__dag_frame *frame = step->frame;

	if (index >= step->node->in_count)
		return NULL;
	if (frame->added || step->item)
		return weft__dag_group_source(step, index);
	return &frame->steps[frame->dag->in[step->node->in_at + index]].out;
}

const weft_value *
weft_dag_step_in(weft_dag_step *step, size_t index)
{
	static const weft_value none;
	const weft_value *value = NULL;

	if (step)
		value = weft__dag_source(step->step, index);
	return value ? value : &none;
}

/* Can nothing else use the value of an input?  Its source has no other dependent, this step has no
 * other attempt, and the value is not borrowed from outside of the frame. */
static bool
is_last(const struct weft__dag_step *step, size_t index)
{
	const struct weft__dag_frame *frame = step->frame;
	const struct weft__dag_node *from;

	if (frame->added || step->item || step->node->more->set.retries
	    || (step->node->flags & WEFT__DAG_TIMED)
	    || weft__load(&frame->run->late, WEFT__ACQUIRE) > 0) /* T */
		return false;
	from = frame->steps[frame->dag->in[step->node->in_at + index]].node;
	return from->out_count == 1 && !((from->flags & WEFT__DAG_INPUT) && frame->owner);
}

int
weft_dag_step_take(weft_dag_step *step, size_t index, weft_value *out)
{
	weft_value *value = step ? weft__dag_source(step->step, index) : NULL;

	if (!value || !out)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_dag_step_take: step or out is NULL, or there is no such input");
	if (step->added || index >= 64 || !is_last(step->step, index))
		return weft_value_share(value, out);
	*out = *value;
	*value = (weft_value){ 0 };
	step->moved |= UINT64_C(1) << index;
	return 0;
}

int
weft_dag_step_out(weft_dag_step *step, weft_value value)
{
	const weft_dag_node *set = step ? &step->step->node->more->set : NULL;

	if (!set || !value.type || value.type != set->type) {
		int rc = weft_fail(
			WEFT_EINVAL,
			"weft_dag_step_out: the value is %s, but the node's output type is %s",
			value.type ? value.type->name : "no value",
			set && set->type ? set->type->name : "none");

		/* If the value is an error, that error is returned. */
		if (value.type == &weft_type_error && value.as.integer < 0)
			rc = (int)value.as.integer;
		weft_value_drop(&value);
		return rc;
	}
	weft_value_drop(&step->out);
	step->out = value;
	return 0;
}

weft_dag_run *
weft_dag_step_run(weft_dag_step *step)
{
	return step ? step->worker->run : NULL;
}

uint32_t
weft_dag_step_attempt(weft_dag_step *step)
{
	return step ? step->number : 0;
}

uint64_t
weft_dag_step_deadline(weft_dag_step *step)
{
	return step ? step->deadline_ns : WEFT_NEVER;
}
