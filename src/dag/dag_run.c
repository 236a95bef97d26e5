/* dag_run.c - one run: allocated in one piece, started once, ended once.
 *
 * The caller waits through an op, which is finished; or it is a plain thread, which runs steps
 * of the CPU run queue and parks when there are none.  A run with a loop ends on the loop's
 * thread (dag_loop.c), any other on the thread that ended its last step.
 */
#include "base/fence.h"
#include "dag/dag.h"

/* How many runs of a template are timed: the first ones, then one of so many. */
#define TIMED_FIRST 4u
#define TIMED_EVERY 64u

#define SPIN_NS     (5 * WEFT_MS) /* between checks of a thread that parks inside a step */

/* --- creation ------------------------------------------------------------ */

void
weft__dag_frame_init(struct weft__dag_frame *frame, weft_dag_run *run, const weft_dag *dag)
{
	frame->run = run;
	frame->dag = dag;
	frame->count = dag->count;
	frame->out = dag->out;
	weft__store(&frame->left, dag->count - dag->inputs, WEFT__RELAXED);
	for (uint32_t i = 0; i < dag->count; i++)
		frame->steps[i] = (struct weft__dag_step){
			.missing = { dag->nodes[i].missing },
			.frame = frame,
			.node = &dag->nodes[i],
		};
}

static bool
is_timed(weft_dag *dag)
{
	uint64_t number = weft__add(&dag->started, 1, WEFT__RELAXED);

	return number < TIMED_FIRST || number % TIMED_EVERY == 0;
}

static weft_dag_run *
dag_run_make(weft_dag *dag, const weft_dag_run_opts *opts)
{
	size_t run_queues = weft__dag_run_queues_size(dag);
	size_t steps = dag->count * sizeof(struct weft__dag_step);
	bool traced = weft__tracing() != 0;
	size_t times = opts->trace || traced ? dag->count * sizeof(struct weft__dag_times) : 0;
	weft_dag_run *run = weft__sys->alloc(sizeof(*run) + run_queues + steps + times);
	char *memory = (char *)(run + 1);

	if (!run)
		return NULL;
	__builtin_memset(run, 0, sizeof(*run));
	run->dag = dag;
	run->opts = *opts;
	run->deadline_ns = WEFT_NEVER;
	run->collect = opts->collect_errors;
	run->observed = weft__dag_is_observed();
	run->traced = traced;
	run->timed = is_timed(dag) || times || run->observed;
	run->total = dag->count - dag->inputs;
	weft__store(&run->users, 1, WEFT__RELAXED);
	weft__store(&run->holders, 2, WEFT__RELAXED); /* one for the run itself */
	(void)weft__add(&dag->users, 1, WEFT__RELAXED);
	run->frame.steps = (struct weft__dag_step *)(void *)memory;
	weft__dag_frame_init(&run->frame, run, dag);
	weft__store(&run->frame.left, run->total + 1, WEFT__RELAXED);
	weft__dag_run_queues_init(run, memory + steps);
	if (times) {
		run->frame.times = (void *)(memory + steps + run_queues);
		__builtin_memset(run->frame.times, 0, times);
	}
	return run;
}

static bool
is_forked(const weft_pool *pool)
{
	return pool && pool != WEFT_CPU && pool != WEFT_BLOCKING && weft__pool_is_forked(pool);
}

static const char *
what_is_wrong(const weft_dag *dag, const weft_dag_run_opts *opts, const weft_loop *loop)
{
	if (!dag->checked)
		return "the graph is not checked; call weft_dag_check() first";
	if (dag->needs_loop && !loop)
		return "the graph has nodes that need a loop, but there is none";
	if (dag->work[WEFT_DAG_BLOCKING] && !loop
	    && (!opts->blocking || opts->blocking == WEFT_BLOCKING))
		return "the graph has blocking nodes, but there is no blocking pool";
	if (opts->abort && !loop)
		return "an abort signal needs a loop";
	if (is_forked(opts->cpu) || is_forked(opts->blocking))
		return "a pool belongs to the parent process";
	return NULL;
}

weft_dag_run *
weft_dag_run_new(weft_dag *dag, const weft_dag_run_opts *opts)
{
	static const weft_dag_run_opts defaults;
	weft_loop *loop;
	weft_dag_run *run;
	const char *wrong;

	opts = opts ? opts : &defaults;
	loop = opts->loop ? opts->loop : weft_loop_current();
	wrong = dag ? what_is_wrong(dag, opts, loop) : "dag is NULL";
	if (wrong) {
		(void)weft_fail(WEFT_EINVAL, "weft_dag_run_new: %s", wrong);
		return NULL;
	}
	run = dag_run_make(dag, opts);
	if (!run) {
		(void)weft__fail(WEFT_ENOMEM, "weft_dag_run_new: out of memory");
		return NULL;
	}
	if (loop)
		run->loop = weft_loop_ref(loop);
	return run;
}

int
weft_dag_run_set(weft_dag_run *run, const char *input, weft_value value)
{
	const weft_type *type;
	int64_t index = -1;
	int rc = 0;

	if (!run || !input)
		rc = weft__misuse(WEFT_EINVAL, "weft_dag_run_set: run or input is NULL");
	else if (weft__load(&run->state, WEFT__RELAXED) != WEFT__DAG_NEW)
		rc = weft__fail(WEFT_EBUSY, "weft_dag_run_set: the run is already started");
	else if ((index = weft__dag_find(run->dag, input)) < 0
	         || !(run->dag->nodes[index].flags & WEFT__DAG_INPUT))
		rc = weft_fail(WEFT_ENOENT, "weft_dag_run_set: the graph has no input named %s",
		               input);
	else if ((type = run->dag->nodes[index].more->type) && value.type != type)
		rc = weft_fail(WEFT_EINVAL,
		               "weft_dag_run_set: the value for input %s is %s, but must be %s",
		               input, value.type ? value.type->name : "no value", type->name);
	if (rc < 0) {
		weft_value_drop(&value);
		return rc;
	}
	weft_value_drop(&run->frame.steps[index].out);
	run->frame.steps[index].out = value;
	return 0;
}

/* --- references ---------------------------------------------------------- */

void
weft__dag_run_ref(weft_dag_run *run)
{
	(void)weft__add(&run->users, 1, WEFT__RELAXED);
}

/* Drop one reference.  Returns whether it was the last.  A count of 1 is not lowered: nothing else
 * reads it anymore, and this needs no locked instruction. */
static bool
is_last(weft__a32 *count)
{
	return weft__load(count, WEFT__ACQUIRE) == 1
	       || weft__add(count, UINT32_MAX, WEFT__ACQ_REL) == 1;
}

void
weft__dag_run_unref(weft_dag_run *run)
{
	if (is_last(&run->users))
		weft__sys->release(run);
}

static void
dag_run_end(weft_dag_run *run)
{
	struct weft__dag_frame *frame;

	while ((frame = run->frames)) {
		run->frames = frame->next;
		weft__dag_free_frame(frame);
	}
	for (uint32_t i = 0; i < run->frame.count; i++)
		if (run->frame.steps[i].out.type)
			weft_value_drop(&run->frame.steps[i].out);
	weft__sys->release(run->frame.text);
	weft__dag_unref(run->dag);
	if (run->loop)
		(void)weft_loop_unref(run->loop);
	weft__dag_run_unref(run);
}

/* The last holder sees what all others have done. */
static void
release_holder(weft_dag_run *run)
{
	if (is_last(&run->holders))
		dag_run_end(run);
}

void
weft_dag_run_free(weft_dag_run *run)
{
	uint32_t state;

	if (!run)
		return;
	state = weft__load(&run->state, WEFT__ACQUIRE);
	if (state == WEFT__DAG_GOING)
		weft_dag_run_cancel(run);
	else if (state == WEFT__DAG_NEW)
		release_holder(run); /* the reference of the run itself */
	release_holder(run);
}

/* --- starting ------------------------------------------------------------ */

void
weft__dag_frame_start(struct weft__dag_worker *worker, struct weft__dag_frame *frame)
{
	const weft_dag *dag = frame->dag;

	for (uint32_t i = 0; i < dag->root_count; i++)
		weft__dag_ready(worker, &frame->steps[dag->roots[i]]);
}

/* The start counts as a step, so that the run cannot end before it is complete. */
void
weft__dag_start(struct weft__dag_worker *worker)
{
	struct weft__dag_frame *frame = &worker->run->frame;

	weft__dag_frame_start(worker, frame);
	weft__dag_count(worker, frame);
}

static int
claim(weft_dag_run *run)
{
	uint32_t fresh = WEFT__DAG_NEW;

	if (!weft__cas(&run->state, &fresh, WEFT__DAG_GOING, WEFT__RELAXED))
		return weft__fail(WEFT_EALREADY, "weft_dag_run: the run was already started");
	return 0;
}

static void
unclaim(weft_dag_run *run)
{
	weft__store(&run->state, WEFT__DAG_NEW, WEFT__RELAXED);
}

void
weft__dag_run_end(weft_dag_run *run, int why)
{
	struct weft__dag_worker worker = { .run = run, .place = -1 };

	weft__dag_stop(&worker, &run->frame, why);
	weft__dag_flush(&worker);
}

/* The caller's op is to end early. */
static void
dag_run_on_cancel(weft_op *op, int why, void *arg)
{
	(void)op;
	weft__dag_run_end(arg, why);
}

int
weft_dag_run_op(weft_dag_run *run, weft_op *op, uint64_t deadline_ns)
{
	int rc;

	if (!run || !op || !op->loop)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_dag_run_op: run or op is NULL, or the op is not initialized");
	rc = claim(run);
	if (rc < 0)
		return rc;
	rc = weft_op_begin(op, dag_run_on_cancel, run, deadline_ns);
	if (rc < 0) {
		unclaim(run);
		return rc;
	}
	run->op = op;
	run->deadline_ns = deadline_ns;
	if (!run->loop)
		run->loop = weft_loop_ref(op->loop);
	if (run->loop == op->loop) {
		weft__dag_begin_here(run);
		return 0;
	}
	rc = weft__dag_begin_there(run);
	if (rc < 0) {
		weft__store(&run->frame.error, (uint32_t)rc, WEFT__RELAXED);
		weft__dag_run_notify(run, NULL); /* the op has begun */
	}
	return 0;
}

/* --- a plain thread that waits ------------------------------------------- */

static bool
is_over(weft_dag_run *run)
{
	return weft__load(&run->state, WEFT__ACQUIRE) == WEFT__DAG_OVER;
}

/* Under the lock: is there nothing to do but to park? */
static bool
prepare_to_park(weft_dag_run *run)
{
	if (is_over(run) || run->run_queues[WEFT_DAG_CPU].queued > 0)
		return false;
	weft__store(&run->futex, 0, WEFT__RELAXED);
	return run->waiter_parked = true;
}

/* Under the lock: count this thread as active again, unless the waking thread has done so. */
static void
end_park(weft_dag_run *run)
{
	if (!run->waiter_parked)
		return;
	run->waiter_parked = false;
	run->run_queues[WEFT_DAG_CPU].active++;
}

/* If the step or pool work in which this thread waits has to end, end the run, too. */
static bool
is_outer_canceled(struct weft__dag_worker *worker)
{
	int why = worker->outer ? worker->outer(worker->outer_arg) : 0;

	if (!why)
		return false;
	worker->outer = NULL;
	weft__dag_run_end(worker->run, why);
	return true;
}

/* Nothing wakes this thread when the outer step is canceled, so it checks at intervals. */
static void
park(struct weft__dag_worker *worker, uint64_t *deadline_ns)
{
	weft_dag_run *run = worker->run;
	int rc = 0;

	while (weft__load(&run->futex, WEFT__RELAXED) == 0 && !is_outer_canceled(worker)) {
		uint64_t check_ns = worker->outer ? weft_after(SPIN_NS) : WEFT_NEVER;

		if (rc == -ETIMEDOUT && weft_now() >= *deadline_ns)
			break;
		rc = weft__sys->park(&run->futex, 0,
		                     check_ns < *deadline_ns ? check_ns : *deadline_ns);
	}
	if (*deadline_ns == WEFT_NEVER || weft_now() < *deadline_ns)
		return;
	*deadline_ns = WEFT_NEVER;
	weft__dag_run_end(run, WEFT_ETIMEDOUT);
}

/* Run steps, and park when there are none, until the run has ended.  The worker has started the
 * run, or is empty. */
static void
run_and_park(void *arg)
{
	struct weft__dag_worker *worker = arg;
	weft_dag_run *run = worker->run;
	uint64_t deadline_ns = run->deadline_ns;
	bool parks;

	for (;;) {
		weft__dag_work(worker);
		if (!run->loop)
			weft__dag_report_events(run);
		if (is_over(run))
			return;
		weft__lock_take(&run->lock);
		parks = prepare_to_park(run);
		if (!parks)
			run->run_queues[WEFT_DAG_CPU].active++;
		weft__lock_give(&run->lock);
		if (!parks)
			continue;
		park(worker, &deadline_ns);
		weft__lock_take(&run->lock);
		end_park(run);
		weft__lock_give(&run->lock);
	}
}

static int
wait_in_thread(weft_dag_run *run, uint64_t deadline_ns)
{
	struct weft__thread *self = weft__thread_self();
	struct weft__dag_worker worker = { .run = run,
		                           .place = WEFT_DAG_CPU,
		                           .is_waiter = true,
		                           .outer = self->canceled,
		                           .outer_arg = self->canceled_arg };
	int (*canceled)(void *arg) = self->canceled;
	void *canceled_arg = self->canceled_arg;
	int rc = claim(run);

	if (rc < 0)
		return rc;
	run->deadline_ns = deadline_ns;
	run->run_queues[WEFT_DAG_CPU].active = 1;
	if (run->loop) {
		rc = weft__dag_begin_there(run);
	} else {
		run->alone = !run->dag->has_limits;
		weft__dag_enter_pools(run);
		weft__dag_start(&worker);
	}
	if (rc < 0) {
		unclaim(run);
		return rc;
	}
	self->canceled = weft__dag_canceled;
	self->canceled_arg = &worker;
	weft__fence(run_and_park, &worker);
	self->canceled = canceled;
	self->canceled_arg = canceled_arg;
	return 0;
}

/* --- the end ------------------------------------------------------------- */

void
weft__dag_run_over(struct weft__dag_worker *worker)
{
	weft_dag_run *run = worker->run;

	if (!run->loop) {
		weft__dag_run_notify(run, worker);
		return;
	}
	weft__lock_take(&run->lock);
	weft__dag_notify_loop(run, WEFT__DAG_NOTIFY_OVER);
	weft__lock_give(&run->lock);
}

/* Returns the outcome, with the text of the first failure in weft_detail(). */
static int
outcome(weft_dag_run *run)
{
	int error = (int)weft__load(&run->frame.error, WEFT__RELAXED);

	if (error == 0)
		return 0;
	return run->frame.text ? weft_fail(error, "%s", run->frame.text)
	                       : weft_fail(error, "%s: %s", run->dag->name, weft_strerror(error));
}

void
weft__dag_enter_pools(weft_dag_run *run)
{
	run->has_pools = true;
	for (int place = 0; place < 3; place++)
		if (run->run_queues[place].pool)
			weft__pool_enter(run->run_queues[place].pool);
}

static void
leave_pools(weft_dag_run *run)
{
	for (int place = 0; place < 3 && run->has_pools; place++)
		if (run->run_queues[place].pool)
			weft__pool_leave(run->run_queues[place].pool);
}

/* Under the lock, or with no thread parked.  Returns whether the waiting thread must be woken. */
static bool
set_over(weft_dag_run *run)
{
	weft__store(&run->state, WEFT__DAG_OVER, WEFT__RELEASE);
	weft__store(&run->futex, 1, WEFT__RELAXED);
	return run->waiter_parked;
}

/* The outcome has arrived on the loop of the caller's op.  Until now the op could
 * request the run's end. */
static void
on_outcome(void *arg)
{
	struct weft__op *op = arg;
	weft_dag_run *run = op->cancel_arg;

	(void)outcome(run);
	release_holder(run);
	weft__dag_run_unref(run);
	weft__op_take_result(op);
}

/* Notify the op's loop, which does not run on this thread. */
static void
notify_other_loop(weft_dag_run *run)
{
	int error = (int)weft__load(&run->frame.error, WEFT__RELAXED);

	weft__dag_run_ref(run);
	weft__lock_take(&run->lock);
	(void)set_over(run);
	weft__lock_give(&run->lock);
	weft__op_post_result(weft__op_of(run->op), error, on_outcome);
}

/* A notified caller may free everything at once, so notifying comes last.  A plain thread that
 * waits holds the run; the caller of an op may have called weft_dag_run_free() already. */
void
weft__dag_run_notify(weft_dag_run *run, const struct weft__dag_worker *worker)
{
	weft_op *op = run->op;
	weft__a32 *futex = &run->futex;
	int rc = op ? outcome(run) : 0;
	bool parked;

	leave_pools(run);
	if (weft__load(&run->frame.error, WEFT__RELAXED))
		(void)weft__add(&run->dag->failed, 1, WEFT__RELAXED);
	if (op && op->loop != weft_loop_current()) {
		notify_other_loop(run);
		return;
	}
	if (worker && worker->is_waiter) {
		release_holder(run);
		(void)set_over(run);
		return;
	}
	weft__dag_run_ref(run);
	release_holder(run);
	weft__lock_take(&run->lock);
	parked = set_over(run);
	weft__lock_give(&run->lock);
	weft__dag_run_unref(run);
	if (parked)
		weft__sys->unpark(futex);
	if (op)
		(void)weft_op_finish(op, rc);
}

static int
wait_in_threadlet(weft_dag_run *run, uint64_t deadline_ns)
{
	weft_op op;
	int rc = weft__may_wait_in(deadline_ns, "weft_dag_run_wait");

	if (rc < 0)
		return rc;
	weft__op_init_waited(&op);
	rc = weft_dag_run_op(run, &op, deadline_ns);
	if (rc < 0)
		return rc;
	(void)weft__op_wait(&op, "dag");
	return 0;
}

int
weft_dag_run_wait(weft_dag_run *run, uint64_t deadline_ns)
{
	const struct weft__thread *self = weft__thread_self();
	int rc;

	if (!run)
		return weft__misuse(WEFT_EINVAL, "weft_dag_run_wait: run is NULL");
	if (self->loop && !self->threadlet)
		return weft__fail(
			WEFT_ENOSUSPEND,
			"weft_dag_run_wait: a callback cannot wait; use weft_dag_run_op(), or "
			"call it from a threadlet");
	/* The steps may free the run. */
	(void)weft__add(&run->holders, 1, WEFT__RELAXED);
	rc = self->threadlet ? wait_in_threadlet(run, deadline_ns)
	                     : wait_in_thread(run, deadline_ns);
	if (rc == 0)
		rc = outcome(run);
	release_holder(run);
	return rc;
}

void
weft_dag_run_cancel(weft_dag_run *run)
{
	if (run && weft__load(&run->state, WEFT__RELAXED) == WEFT__DAG_GOING)
		weft__dag_run_end(run, WEFT_ECANCELED);
}

/* --- results ------------------------------------------------------------- */

int
weft_dag_run_get(weft_dag_run *run, const char *name, weft_value *out)
{
	const struct weft__dag_step *step = NULL;
	int64_t index;

	if (!run || !name || !out)
		return weft__misuse(WEFT_EINVAL, "weft_dag_run_get: run, node or out is NULL");
	if (!is_over(run))
		return weft__fail(WEFT_EBUSY, "weft_dag_run_get: the run has not ended");
	index = weft__dag_find(run->dag, name);
	step = index >= 0 ? &run->frame.steps[index] : weft__dag_find_added(run, name);
	if (!step)
		return weft_fail(WEFT_ENOENT, "weft_dag_run_get: there is no node named %s", name);
	if (step->state == WEFT_DAG_SKIPPED)
		return weft_fail(WEFT_ENOENT, "node %s was skipped", name);
	if (step->state == WEFT_DAG_FAILED)
		return weft_fail(step->error, "node %s: %s", name, weft_strerror(step->error));
	if (step->state == WEFT_DAG_DROPPED
	    || (step->state == WEFT_DAG_WAITING && !(step->node->flags & WEFT__DAG_INPUT)))
		return weft_fail(WEFT_ECANCELED, "node %s was never started", name);
	*out = step->out;
	return 0;
}

void *
weft_dag_run_context(weft_dag_run *run)
{
	return run ? run->opts.context : NULL;
}
