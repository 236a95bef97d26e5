/* dag_loop.c - what is done for a run on its loop: steps that suspend, timers, progress, the end.
 *
 * Other threads notify the loop: under the run's lock they set bits for what there is to do, and
 * send run->node once for all bits.  The node holds a reference to the run until it has arrived.
 * After a run has ended, nothing is sent.  Until then an op, the caller's or run->keep_alive,
 * keeps the loop alive.  So no notification goes to a loop that is gone.
 */
#include "dag/dag.h"
#include "promise/promise.h"

struct weft__dag_event {
	struct weft__dag_event *next;
	weft_dag_progress what;
};

/* --- progress events ----------------------------------------------------- */

/* Without memory, the event is lost. */
void
weft__dag_record_event_slow(const struct weft__dag_step *step)
{
	weft_dag_run *run = step->frame->run;
	struct weft__dag_event *event = weft__sys->alloc(sizeof(*event));
	bool ends = step->state >= WEFT_DAG_DONE, unparks;
	bool failed = ends || step->state == WEFT_DAG_RETRYING;

	weft__lock_take(&run->lock);
	unparks = !run->loop && run->waiter_parked; /* the parked thread reports them */
	if (unparks)
		weft__store(&run->futex, 1, WEFT__RELAXED);
	run->ended += ends;
	if (event) {
		*event = (struct weft__dag_event){
			.what = { .node = step->node->more->name,
			          .state = (weft_dag_state)step->state,
			          .error = failed ? step->error : 0,
			          .done = run->ended,
			          .total = run->total },
		};
		*(run->events ? run->events_end : &run->events) = event;
		run->events_end = &event->next;
		weft__dag_notify_loop(run, WEFT__DAG_NOTIFY_CHECK);
	}
	weft__lock_give(&run->lock);
	if (unparks)
		weft__sys->unpark(&run->futex);
}

void
weft__dag_report_events(weft_dag_run *run)
{
	struct weft__dag_event *event, *next;

	if (!run->opts.on_progress)
		return;
	weft__lock_take(&run->lock);
	event = run->events;
	run->events = NULL;
	weft__lock_give(&run->lock);
	for (; event; event = next) {
		next = event->next;
		run->opts.on_progress(&event->what, run->opts.arg);
		weft__sys->release(event);
	}
}

/* --- steps on the loop --------------------------------------------------- */

static void
loop_step_link(struct weft__dag_loop_step *loop_step)
{
	weft_dag_run *run = loop_step->step->frame->run;

	loop_step->other = run->loop_steps;
	loop_step->link = &run->loop_steps;
	if (loop_step->other)
		loop_step->other->link = &loop_step->other;
	run->loop_steps = loop_step;
}

static void
loop_step_unlink(struct weft__dag_loop_step *loop_step)
{
	*loop_step->link = loop_step->other;
	if (loop_step->other)
		loop_step->other->link = loop_step->link;
}

/* Run one step, in a scope through which it can be canceled. */
static void
run_loop_step(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	struct weft__dag_loop_step loop_step = { .step = step };
	int rc = weft_scope_open(&loop_step.scope, 0, weft__dag_deadline_of(step));

	if (rc < 0) {
		weft__dag_finish(worker, step, rc, (weft_value){ 0 });
		return;
	}
	loop_step_link(&loop_step);
	weft__dag_run_step(worker, step);
	loop_step_unlink(&loop_step);
	(void)weft_scope_close(&loop_step.scope);
}

/* The threadlet of a step, and of the steps that follow it here.  The run does not end before
 * this worker is done with it. */
static int
loop_step_main(void *arg)
{
	struct weft__dag_step *step = arg;
	struct weft__dag_worker worker = { .run = step->frame->run, .place = WEFT_DAG_LOOP };

	while (step) {
		run_loop_step(&worker, step);
		weft__dag_settle(&worker);
		step = worker.next;
		worker.next = NULL;
		if (!step) {
			weft__dag_flush(&worker);
			step = worker.next;
			worker.next = NULL;
		}
	}
	return 0;
}

static void
start_loop_step(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	const weft_go_opts opts = { .name = step->node->more->name };
	const struct weft__start start = { .opts = &opts, .fn = loop_step_main, .arg = step };
	weft_threadlet id = weft__go_on(worker->run->loop, &start);

	if (id < 0)
		weft__dag_finish(worker, step, (int)id, (weft_value){ 0 });
}

static void
start_loop_steps(struct weft__dag_worker *worker)
{
	weft_dag_run *run = worker->run;
	struct weft__dag_list all;
	struct weft__dag_step *step;

	weft__lock_take(&run->lock);
	all = weft__dag_take_all(&run->run_queues[WEFT_DAG_LOOP]);
	weft__lock_give(&run->lock);
	while ((step = weft__dag_pop(&all)))
		if (weft__dag_is_stopped(step->frame))
			weft__dag_append(&worker->own, step);
		else
			start_loop_step(worker, step);
}

/* Cancel the running steps whose frame is stopped. */
static void
cancel_loop_steps(weft_dag_run *run)
{
	struct weft__dag_loop_step *next;

	for (struct weft__dag_loop_step *s = run->loop_steps; s; s = next) {
		next = s->other;
		if (weft__dag_is_stopped(s->step->frame))
			weft_scope_cancel(&s->scope);
	}
}

/* --- timers -------------------------------------------------------------- */

static uint64_t
backoff_of(const struct weft__dag_step *step)
{
	uint64_t ns = step->node->more->set.backoff_ns;
	uint32_t doublings = step->attempt - 1u;

	doublings = doublings < 20 ? doublings : 20;
	if (ns > (UINT64_C(1) << 40)) /* 18 minutes: not doubled */
		doublings = 0;
	ns <<= doublings;
	/* Jitter: from three quarters of the delay to all of it. */
	return ns - (ns / 4 * (weft__chance() >> 16) >> 16);
}

/* Wait for the next attempt. */
void
weft__dag_sleep(struct weft__dag_worker *worker, struct weft__dag_step *step)
{
	weft_dag_run *run = step->frame->run;
	bool stopped;

	step->due_ns = weft_after(backoff_of(step));
	weft__lock_take(&run->lock);
	stopped = weft__dag_is_stopped(step->frame); /* see sweep_sleepers() */
	if (!stopped) {
		weft__dag_append(&run->sleepers, step);
		weft__dag_notify_loop(run, WEFT__DAG_NOTIFY_CHECK);
	}
	weft__lock_give(&run->lock);
	if (stopped)
		weft__dag_append(&worker->own, step);
}

/* Under the lock: collect attempts that have timed out.  Each counts as a step of the run's
 * frame until it returns (dag.h, invariants 3 and 5). */
static void
take_expired(weft_dag_run *run, uint64_t now_ns, struct weft__dag_list *out)
{
	for (struct weft__dag_worker *h = run->timers; h; h = h->other) {
		if (!h->timed || h->deadline_ns > now_ns)
			continue;
		weft__dag_append(out, h->timed);
		h->late_limited = h->timed->limited;
		h->timed->limited = false;
		h->timed = NULL;
		weft__store(&h->why, (uint32_t)WEFT_ETIMEDOUT, WEFT__RELAXED);
		(void)weft__add(&run->frame.left, 1, WEFT__RELAXED);
		(void)weft__add(&run->late, 1, WEFT__RELAXED);
	}
}

static void
take_due(weft_dag_run *run, uint64_t now_ns, struct weft__dag_list *out)
{
	struct weft__dag_list all = run->sleepers;
	struct weft__dag_step *step;

	run->sleepers = (struct weft__dag_list){ 0 };
	while ((step = weft__dag_pop(&all)))
		weft__dag_append(step->due_ns <= now_ns ? out : &run->sleepers, step);
}

static uint64_t
next_time(weft_dag_run *run)
{
	uint64_t next_ns = WEFT_NEVER;
	struct weft__dag_step *step;

	for (struct weft__dag_worker *h = run->timers; h; h = h->other)
		if (h->timed && h->deadline_ns < next_ns)
			next_ns = h->deadline_ns;
	for (step = run->sleepers.first; step; step = step->next)
		if (step->due_ns < next_ns)
			next_ns = step->due_ns;
	for (struct weft__dag_frame *f = run->bounded; f; f = f->bounded)
		if (f->deadline_ns < next_ns)
			next_ns = f->deadline_ns;
	return next_ns;
}

static void dag_loop_check(weft_dag_run *run);

static void
on_time(weft_timer *timer, void *arg)
{
	weft_dag_run *run = arg;

	(void)timer;
	weft__dag_run_ref(run);
	dag_loop_check(run);
	weft__dag_run_unref(run);
}

static void
arm_timer(struct weft__dag_worker *worker)
{
	weft_dag_run *run = worker->run;
	uint64_t next_ns;
	int rc = 0;

	weft__lock_take(&run->lock);
	next_ns = next_time(run);
	weft__lock_give(&run->lock);
	if (next_ns == WEFT_NEVER)
		(void)weft_timer_stop(&run->timer);
	else
		rc = weft_timer_start(run->loop, &run->timer, next_ns, 0, on_time, run);
	if (rc < 0)
		weft__dag_stop(worker, &run->frame, rc);
}

/* A frame that has timed out, or NULL.  Its deadline is removed. */
static struct weft__dag_frame *
take_overdue(weft_dag_run *run, uint64_t now_ns)
{
	struct weft__dag_frame *frame;

	weft__lock_take(&run->lock);
	frame = run->bounded;
	while (frame && frame->deadline_ns > now_ns)
		frame = frame->bounded;
	if (frame)
		weft__dag_unbound(frame);
	weft__lock_give(&run->lock);
	return frame;
}

static void
stop_overdue(struct weft__dag_worker *worker, uint64_t now_ns)
{
	struct weft__dag_frame *frame;

	while ((frame = take_overdue(worker->run, now_ns)))
		weft__dag_stop(worker, frame, WEFT_ETIMEDOUT);
}

static void
keep_times(struct weft__dag_worker *worker)
{
	weft_dag_run *run = worker->run;
	struct weft__dag_list expired = { 0 }, due = { 0 };
	struct weft__dag_step *step;
	uint64_t now_ns = weft_now();

	weft__lock_take(&run->lock);
	take_expired(run, now_ns, &expired);
	take_due(run, now_ns, &due);
	weft__lock_give(&run->lock);
	while ((step = weft__dag_pop(&expired)))
		weft__dag_finish(worker, step, weft__fail(WEFT_ETIMEDOUT, "timed out"),
		                 (weft_value){ 0 });
	while ((step = weft__dag_pop(&due)))
		weft__dag_ready(worker, step);
	stop_overdue(worker, now_ns);
}

/* --- notifications ------------------------------------------------------- */

/* Do all that WEFT__DAG_NOTIFY_CHECK stands for. */
static void
dag_loop_check(weft_dag_run *run)
{
	struct weft__dag_worker worker = { .run = run, .place = -1 };

	weft__dag_report_events(run);
	start_loop_steps(&worker);
	keep_times(&worker);
	arm_timer(&worker);
	weft__dag_flush(&worker);
	cancel_loop_steps(run);
}

static void
on_keep_alive_done(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)result;
	weft__dag_run_unref(arg);
}

static void
end_run(weft_dag_run *run)
{
	weft__dag_report_events(run);
	(void)weft_timer_stop(&run->timer);
	if (run->abort) {
		weft__abort_drop(run->abort, &run->abort_node);
		run->abort = weft_abort_unref(run->abort);
	}
	if (run->keep_alive.pending)
		(void)weft_op_finish(&run->keep_alive, 0);
	weft__dag_run_notify(run, NULL);
}

static void
on_notified(void *arg)
{
	weft_dag_run *run = arg;
	uint32_t what = weft__exchange(&run->notified, 0, WEFT__ACQ_REL);

	if (what & WEFT__DAG_NOTIFY_OVER)
		end_run(run);
	else
		dag_loop_check(run);
	weft__dag_run_unref(run);
}

void
weft__dag_notify_loop(weft_dag_run *run, uint32_t what)
{
	if (!run->loop || weft__load(&run->state, WEFT__RELAXED) != WEFT__DAG_GOING
	    || weft__or(&run->notified, what, WEFT__ACQ_REL))
		return;
	weft__dag_run_ref(run);
	weft__loop_send(run->loop, &run->node, on_notified, run);
}

/* --- the start ----------------------------------------------------------- */

static void
on_abort(void *arg)
{
	weft_dag_run *run = arg;

	weft__dag_run_end(run, weft_abort_check(run->abort, NULL));
}

static int
listen_to_abort(weft_dag_run *run)
{
	run->abort = weft_abort_new_any(run->loop, &run->opts.abort, 1);
	if (!run->abort)
		return WEFT_ENOMEM;
	run->abort_node = (weft_node){ .fn = on_abort, .arg = run };
	return weft__abort_push(run->abort, &run->abort_node);
}

static int
find_pools(weft_dag_run *run)
{
	struct weft__dag_run_queue *cpu = &run->run_queues[WEFT_DAG_CPU];
	struct weft__dag_run_queue *blocking = &run->run_queues[WEFT_DAG_BLOCKING];

	if (!cpu->pool)
		cpu->pool = weft__loop_pool(run->loop, WEFT_CPU);
	if (!blocking->pool)
		blocking->pool = weft__loop_pool(run->loop, WEFT_BLOCKING);
	weft__dag_enter_pools(run);
	return cpu->pool && blocking->pool ? 0 : WEFT_ENOMEM;
}

void
weft__dag_begin_here(weft_dag_run *run)
{
	struct weft__dag_worker worker = { .run = run, .place = -1 };
	int rc = find_pools(run);

	if (rc == 0 && run->opts.abort)
		rc = listen_to_abort(run);
	if (rc < 0)
		weft__dag_stop(&worker, &run->frame, rc);
	weft__dag_start(&worker);
	weft__dag_flush(&worker);
}

static void
on_keep_alive_cancel(weft_op *op, int why, void *arg)
{
	(void)op;
	weft__dag_run_end(arg, why);
}

static void
on_start(void *arg)
{
	weft_dag_run *run = arg;
	int rc = weft_op_init(&run->keep_alive, run->loop, on_keep_alive_done, run);

	if (rc == 0)
		rc = weft_op_begin(&run->keep_alive, on_keep_alive_cancel, run, run->deadline_ns);
	if (rc < 0) {
		weft__store(&run->frame.error, (uint32_t)rc, WEFT__RELAXED);
		weft__dag_run_notify(run, NULL);
		return;
	}
	weft__dag_run_ref(run); /* on_keep_alive_done() */
	weft__dag_begin_here(run);
}

int
weft__dag_begin_there(weft_dag_run *run)
{
	run->start = (weft_node){ .fn = on_start, .arg = run };
	return weft_loop_post_node(run->loop, &run->start);
}
