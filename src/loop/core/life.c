/* life.c - a loop from creation to free.
 *
 * idle -> starting -> running <-> sleeping -> stopping -> stopped, by compare-exchange on the
 * word `state`; a run that is not stopped ends in idle.  Another word, `runner`, says
 * which thread may touch the loop's own data: the thread that has claimed the loop (R, acquire)
 * and has not given it back (G, release).  Running a loop, stopping an idle loop and freeing a loop
 * claim it.
 *
 *   1. STOPPING and STOPPED are final: no transition leads back.
 *   2. The thread that sets STOPPING also closes the inbox and wakes the loop.  The loop then
 *      disarms its timers, runs iterations until everything accepted has run, and becomes
 *      STOPPED.  After that the runner only gives up `runner`.  So calls check the state
 *      before they check which thread has the loop.
 *   3. A thread inside shutdown, break, wake or a schedule call counts itself in
 *      `visitors` before it first reads the state.  free() waits until there are no visitors,
 *      until every producer that owes the inbox a wake is done, and for the runner of a
 *      stopped loop: all of them are about to return and wait for no other thread.  But a
 *      thread that stops an idle loop has to claim it; in that case free() refuses.
 *   4. A thread that begins to wait for STOPPED first counts itself and then reads the state
 *      (V).  The runner first writes STOPPED and then reads the count (S).  Both are sequentially
 *      consistent, so one of them sees the other (stop_wait.c).
 *   5. After fork() the child's copy of a loop has forks != weft__program.forks: the copy is only
 *      memory, which the child may free.
 */
#include "base/fence.h"
#include "base/report.h"
#include "loop/post/producer.h"
#include "loop/core/loop.h"

#define BRIEFLY ((uintptr_t)1) /* in `runner`: the claim soon ends, or becomes a lasting one */

WEFT__COLD static int
loop_life_refuse(const weft_loop *loop, bool stopped, const char *call)
{
	if (!loop)
		return weft__misuse_in(WEFT_EINVAL, call,
		                       "no loop is given, and none runs on this thread");
	if (weft__loop_is_forked(loop))
		return weft__misuse_in(WEFT_EWRONGLOOP, call,
		                       "the loop was made by a parent process");
	if (stopped)
		return weft__fail_in(WEFT_ESHUTDOWN, call, "the loop has stopped");
	return weft__misuse_in(WEFT_EWRONGLOOP, call,
	                       "the loop runs on another thread; make the call there, for example "
	                       "by weft_loop_post()");
}

int
weft__loop_check(const weft_loop *loop, const char *call)
{
	uintptr_t runner;
	bool stopped;

	if (!loop)
		return loop_life_refuse(loop, false, call);
	/* With or without BRIEFLY: callbacks that run while an idle loop ends may use the
	 * loop. */
	runner = weft__load(&loop->runner, WEFT__RELAXED) & ~BRIEFLY;
	stopped = weft__load(&loop->state, WEFT__RELAXED) == WEFT_STOPPED;
	if (stopped || (runner && runner != (uintptr_t)weft__thread_self())
	    || weft__loop_is_forked(loop))
		return loop_life_refuse(loop, stopped, call);
	return 0; /* invariant 2 */
}

bool
weft__loop_is_mine(const weft_loop *loop)
{
	uintptr_t runner = weft__load(&loop->runner, WEFT__RELAXED) & ~BRIEFLY;

	return runner == (uintptr_t)weft__thread_self();
}

void
weft__loop_report(const weft_report *report)
{
	const weft_loop *loop = report->loop;

	if (loop && loop->on_report)
		loop->on_report(loop->report_arg, report);
	else
		weft__report(report);
}

/* --- claims ------------------------------------------------------------- */

/* The value of `runner` while a thread is being started for the loop. */
static uintptr_t
starter_of(const weft_loop *loop)
{
	return (uintptr_t)loop;
}

/* Returns the claim that exists; or 0: this thread has claimed the loop, BRIEFLY. */
static uintptr_t
claim(weft_loop *loop)
{
	uintptr_t runner = 0;

	(void)weft__cas(&loop->runner, &runner, (uintptr_t)weft__thread_self() | BRIEFLY,
	                WEFT__ACQUIRE); /* R */
	return runner;
}

static void
loop_life_give_back(weft_loop *loop)
{
	weft__store(&loop->runner, 0, WEFT__RELEASE); /* G */
}

void
weft__loop_enter(weft_loop *loop)
{
	(void)weft__add(&loop->visitors, 1, WEFT__SEQ_CST); /* V */
}

void
weft__loop_exit(weft_loop *loop)
{
	/* The last access; free() acquires it. */
	uint32_t before = weft__add(&loop->visitors, UINT32_MAX, WEFT__RELEASE);

	weft__assert(before > 0); /* invariant 3 */
}

/* --- freeing ------------------------------------------------------------- */

/* Turn a BRIEFLY claim into a lasting one.  Other threads wait for the end of a BRIEFLY claim: a
 * thread that stops the loop must not give up.  They do not wait for the end of a lasting one. */
static void
claim_on(weft_loop *loop)
{
	weft__store(&loop->runner, (uintptr_t)weft__thread_self(), WEFT__RELAXED);
}

bool
weft__loop_claim(weft_loop *loop)
{
	uintptr_t runner;

	while ((runner = claim(loop)) & BRIEFLY)
		weft__sys->yield();
	return runner == 0;
}

/* The value names no thread: so weft__loop_check() accepts the thread that uses the idle loop. */
bool
weft__loop_hold(weft_loop *loop)
{
	uintptr_t runner = 0;

	return weft__cas(&loop->runner, &runner, BRIEFLY, WEFT__ACQUIRE); /* R */
}

void
weft__loop_give_back(weft_loop *loop)
{
	loop_life_give_back(loop);
}

/* No other thread can reach the loop: free the memory. */
static void
destroy(weft_loop *loop, bool alone)
{
	if (loop->has_thread && !alone)
		(void)weft__sys->thread_join(loop->thread);
	weft__registry_remove(loop);
	/* Invariant 3; and invariant 1 of stop_wait.c. */
	weft__assert(alone || (weft__count_get(&loop->visitors) == 0 && !loop->stop_waits));
	if (loop->watchdog_ns && !alone)
		weft__watchdog_remove(loop);
	if (alone) /* drop functions are user code, for the parent to run */
		weft__sys->release(loop->locals);
	weft__parts_free(loop, alone);
	weft__signals_fini(loop, alone);
	weft__loop_end_sleep(loop);
	weft__hooks_fini(loop);
	weft__wheel_fini(&loop->wheel);
	/* A producer that still owes a wake may use the backend for it. */
	weft__inbox_fini(&loop->inbox, alone);
	weft__backend_close(&loop->backend);
	weft__timer_handles_fini(loop);
	weft__tasks_fini(loop);
	weft__ring_fini(&loop->ticks);
	weft__ring_fini(&loop->microtasks);
	weft__sys->release((void *)weft__load(&loop->sampler, WEFT__RELAXED));
	weft__sys->release(loop->cpus);
	weft__sys->release(loop);
}

/* The loop has accepted work that has not run, or that must be notified when the loop stops.  The
 * caller has claimed the loop. */
static bool
has_accepted(weft_loop *loop)
{
	struct weft__node *lists[3] = { loop->last.first };

	if (!weft__producers_rest(&loop->inbox))
		return true;
	(void)weft__loop_take(loop);
	lists[1] = loop->first.first;
	lists[2] = loop->posts.first;
	for (int i = 0; i < 3; i++)
		for (struct weft__node *n = lists[i]; n; n = n->next)
			if (!(n->kind & WEFT__NODE_OWN))
				return true;
	weft__mailbox_drain(&loop->tasks.box);
	return weft__loop_task_count(loop) > 0 || weft__count_get(&loop->threadlets) > 0
	       || loop->ops > 0 || loop->backend.ended || loop->hooks.more > 0
	       || weft__parts_have(loop);
}

/* Set the loop and the threadlet that this thread runs; for iterations outside of a run. */
static void
be_in(weft_loop *loop, struct weft__threadlet *threadlet)
{
	weft__thread_self()->loop = loop;
	weft__thread_self()->threadlet = threadlet;
}

static void
drop_locals(void *arg)
{
	weft_loop *loop = arg;

	while (weft__locals_end(loop))
		while (loop->ops > 0 || weft__count_get(&loop->threadlets) > 0
		       || weft__loop_is_runnable(loop))
			weft__turn(loop, WEFT_NOWAIT);
}

/* An idle loop that has values is freed.  From their drop functions the loop accepts only what
 * a stopping loop accepts, and runs that. */
static void
end_locals(weft_loop *loop)
{
	struct weft__thread before = *weft__thread_self();

	be_in(loop, NULL);
	claim_on(loop);
	weft__store(&loop->state, WEFT_STOPPING, WEFT__RELAXED);
	weft__inbox_close(&loop->inbox);
	loop->ending = true;
	weft__wheel_fini(&loop->wheel);
	weft__fence(drop_locals, loop);
	be_in(before.loop, before.threadlet);
}

/* In a forked child.  The loop may have run on this thread, and this thread may still run on the
 * stack of a threadlet of the loop. */
static void
free_forked(weft_loop *loop)
{
	if (weft__thread_self()->loop == loop)
		be_in(NULL, NULL);
	destroy(loop, true);
}

/* Wait until no thread is inside a call, and let no new visitor in.  Visitors that wait for a list
 * of threadlets get it, which ends their visit.  False: a visitor stops the loop and waits until
 * this thread gives the loop back, or has left a reference. */
static bool
wait_for_visitors(weft_loop *loop, uint32_t state)
{
	bool same = true;

	weft__store(&loop->going, 1, WEFT__SEQ_CST); /* E, in registry.c */
	while (same && weft__load(&loop->visitors, WEFT__SEQ_CST) > 0) {
		same = weft__load(&loop->state, WEFT__RELAXED) == state;
		if (weft__load(&loop->listings, WEFT__RELAXED) > 0)
			weft__loop_sched(loop)->answer_listings(loop);
		weft__sys->yield();
	}
	if (same && weft__load(&loop->refs, WEFT__ACQUIRE) == 0)
		return true;
	weft__store(&loop->going, 0, WEFT__SEQ_CST);
	return false;
}

int
weft_loop_free(weft_loop *loop)
{
	uintptr_t runner;
	uint32_t state;

	if (!loop)
		return 0;
	if (weft__loop_is_forked(loop)) {
		free_forked(loop);
		return 0;
	}
	state = weft__load(&loop->state, WEFT__ACQUIRE);
	while ((runner = claim(loop)) != 0) { /* invariant 3 */
		if (state != WEFT_STOPPED && !(runner & BRIEFLY))
			return weft__fail(WEFT_EBUSY,
			                  "weft_loop_free: the loop is running; stop it first");
		weft__sys->yield();
	}
	state = weft__load(&loop->state, WEFT__RELAXED);
	if (weft__load(&loop->refs, WEFT__ACQUIRE) > 0
	    || (state != WEFT_STOPPED && (state != WEFT_IDLE || has_accepted(loop)))) {
		loop_life_give_back(loop);
		return weft__fail(WEFT_EBUSY, "weft_loop_free: the loop is referenced, "
		                              "or has accepted work left to run");
	}
	if (!wait_for_visitors(loop, state)) {
		loop_life_give_back(loop);
		return weft__fail(WEFT_EBUSY,
		                  "weft_loop_free: another thread is stopping the loop, or holds a "
		                  "reference to it");
	}
	if (loop->locals)
		end_locals(loop);
	destroy(loop, false);
	return 0;
}

weft_loop *
weft_loop_ref(weft_loop *loop)
{
	if (loop)
		(void)weft__add(&loop->refs, 1, WEFT__RELAXED);
	return loop;
}

weft_loop *
weft_loop_unref(weft_loop *loop)
{
	if (loop) /* release: what the caller did under the reference comes before a free */
		(void)weft__add(&loop->refs, UINT32_MAX, WEFT__RELEASE);
	return NULL;
}

weft_state
weft_loop_state(const weft_loop *loop)
{
	if (!loop)
		loop = weft__thread_self()->loop;
	return loop ? (weft_state)weft__load(&loop->state, WEFT__ACQUIRE) : WEFT_STOPPED;
}

weft_loop *
weft_loop_current(void)
{
	return weft__thread_self()->loop;
}

/* --- ending ------------------------------------------------------------- */

/* Everything has run: become STOPPED, and end the waits for the stop. */
static void
loop_life_end(weft_loop *loop)
{
	weft__assert(weft__count_get(&loop->state) == WEFT_STOPPING);        /* invariant 1 */
	weft__assert(weft__inbox_is_closed(&loop->inbox) && loop->ops == 0); /* invariant 2 */
	weft__store(&loop->state, WEFT_STOPPED, WEFT__SEQ_CST);              /* S */
	if (weft__load(&loop->visitors, WEFT__SEQ_CST) > 0
	    || weft__load(&loop->refs, WEFT__ACQUIRE) > 0)
		weft__stop_waits_end(loop);
}

/* Disarm once; the loop then runs iterations until everything accepted has run.  The inbox is
 * closed already; because this thread closes it, too, this thread sees every post that was accepted
 * before. */
static void
begin_to_end(weft_loop *loop)
{
	if (loop->draining)
		return;
	loop->draining = true;
	weft__inbox_close(&loop->inbox);
	weft__tasks_close(loop);
	weft__timer_handles_clear(loop);
	if (weft__loop_sched(loop))
		weft__loop_sched(loop)->cancel(loop);
}

/* There are threadlets, or posts that may start some. */
static bool
has_to_drain(weft_loop *loop)
{
	return weft__count_get(&loop->threadlets) > 0 || loop->own.first || loop->first.first
	       || loop->posts.first || !weft__producers_rest(&loop->inbox)
	       || weft__inbox_has(&loop->inbox);
}

/* End what the parts have pending; true if some of it has not ended yet.  A thread that is about to
 * make the loop's first promise finds the slot closed. */
static bool
end_parts(weft_loop *loop)
{
	bool more;

	weft__loop_close_slot(loop, WEFT__PART_PROMISES);
	more = weft__parts_end(loop);
	weft__checkpoint(loop);
	return more;
}

static void
run_to_end(void *arg)
{
	weft_loop *loop = arg;

	begin_to_end(loop);
	while (has_to_drain(loop))
		weft__turn(loop, WEFT_NEVER);
	if (!loop->ending) {
		loop->ending = true;
		weft__timer_handles_clear(loop);
		weft__ops_end(loop);
	}
	do /* drop functions may leave something to run */
		while (end_parts(loop) || loop->ops > 0 || weft__count_get(&loop->threadlets) > 0
		       || weft__loop_is_runnable(loop))
			weft__turn(loop, WEFT_NEVER);
	while (!weft__producers_rest(&loop->inbox) || weft__inbox_has(&loop->inbox)
	       || weft__locals_end(loop));
	weft__parts_ended(loop);
	/* Timers were disarmed without decrementing the count. */
	weft__count_set(&loop->alive, 0);
	weft__hooks_fini(loop);
	loop_life_end(loop);
}

/* No thread runs the loop: stop it here, unless something accepted must still run, or a watch
 * has to be notified.  Those need the loop's thread, and this may be any thread. */
static void
stop_idle(weft_loop *loop)
{
	if (!weft__loop_claim(loop))
		return; /* the thread that has claimed it sees STOPPING */
	weft__loop_end_sleep(loop);
	weft__tasks_close(loop); /* so has_accepted() sees all of them */
	if (!has_accepted(loop) && loop->backend.fds.in_use == 0) {
		struct weft__thread before = *weft__thread_self();

		if (loop->locals) /* else a thread that wants to run it waits */
			claim_on(loop);
		be_in(loop, NULL);
		weft__fence(run_to_end, loop);
		be_in(before.loop, before.threadlet);
	}
	weft__loop_settle(loop);
	loop_life_give_back(loop);
	if (weft__loop_is_embedded(loop) && weft__load(&loop->state, WEFT__RELAXED) != WEFT_STOPPED)
		weft__loop_wake(loop); /* its host has to run the loop to its end */
}

void
weft_loop_shutdown(weft_loop *loop)
{
	uint32_t state;

	loop = weft__loop_or_current(loop);
	if (!loop || weft__loop_is_forked(loop))
		return;
	weft__loop_enter(loop);
	state = weft__load(&loop->state, WEFT__RELAXED);
	do {
		if (state >= WEFT_STOPPING)
			goto out;
	} while (!weft__cas(&loop->state, &state, WEFT_STOPPING, WEFT__RELAXED));
	weft__inbox_close(&loop->inbox);
	if (state == WEFT_IDLE && !weft__loop_is_hosted_elsewhere(loop))
		stop_idle(loop);
	else
		weft__loop_wake(loop);
out:
	weft__loop_exit(loop);
}

/* --- running ------------------------------------------------------------ */

/* Begin a run, as the runner.  Sets `before` to the loop that ran on this thread until now. */
static int
enter_run(weft_loop *loop, weft_loop **before)
{
	struct weft__thread *self = weft__thread_self();
	uint32_t state = weft__load(&loop->state, WEFT__RELAXED);

	while (state < WEFT_RUNNING
	       && !weft__cas(&loop->state, &state, WEFT_RUNNING, WEFT__RELAXED))
		;
	if (state == WEFT_STOPPED) {
		loop_life_give_back(loop);
		return weft__fail(WEFT_EALREADY, "weft_loop_run: the loop has stopped");
	}
	weft__loop_adopt(loop);
	loop->stack_end = before;
	if (loop->watchdog_ns || weft__loop_runtime(loop))
		weft__watchdog_begin(loop);
	*before = self->loop;
	self->loop = loop;
	self->threadlet = NULL; /* left over from a parent process, if any */
	return 0;
}

/* Claim the loop and begin a run. */
static int
begin_run(weft_loop *loop, weft_loop **before)
{
	uintptr_t runner;

	if (!loop || weft__loop_is_forked(loop))
		return weft__misuse(loop ? WEFT_EWRONGLOOP : WEFT_EINVAL,
		                    "weft_loop_run: loop is NULL, or was made by a parent process");
	if (weft__load(&loop->state, WEFT__RELAXED) == WEFT_STOPPED)
		return weft__fail(WEFT_EALREADY, "weft_loop_run: the loop has stopped");
	while ((runner = claim(loop)) & BRIEFLY)
		weft__sys->yield();
	if (runner == (uintptr_t)weft__thread_self())
		return weft__misuse(WEFT_EDEADLK,
		                    "weft_loop_run: the loop is already running on this thread");
	if (runner == 0 && weft__thread_self()->threadlet
	    && !weft__loop_is_forked(weft__thread_self()->loop)) {
		loop_life_give_back(loop);
		return weft__misuse(WEFT_EDEADLK, "weft_loop_run: a threadlet cannot run a loop");
	}
	if (runner != 0)
		return weft__fail(WEFT_EBUSY,
		                  "weft_loop_run: the loop is running on another thread");
	if (loop->bound && loop->bound != (uintptr_t)weft__thread_self()) {
		loop_life_give_back(loop);
		return weft__misuse(WEFT_EWRONGLOOP,
		                    "weft_loop_run: the loop is bound to another thread");
	}
	claim_on(loop);
	return enter_run(loop, before);
}

/* Return to IDLE.  False if the loop is stopping: then the run continues.  A thread that sees
 * IDLE finds the runner about to give the loop back, and waits for that. */
static bool
become_idle(weft_loop *loop)
{
	uintptr_t self = (uintptr_t)weft__thread_self();
	uint32_t state = WEFT_RUNNING;

	weft__store(&loop->runner, self | BRIEFLY, WEFT__RELAXED);
	if (weft__cas(&loop->state, &state, WEFT_IDLE, WEFT__RELEASE))
		return true;
	weft__store(&loop->runner, self, WEFT__RELAXED);
	return false;
}

static void
end_run(weft_loop *loop, weft_loop *before)
{
	/* The thread of weft_loop_start() ends with the run: then other threads may run the
	 * loop. */
	loop->bound =
		loop->backend.binds || (weft__count_get(&loop->threadlets) > 0 && !loop->own_thread)
			? (uintptr_t)weft__thread_self()
			: 0;
	if (loop->traced)
		weft__trace_rest(loop);
	/* Do not check for a runtime: a stopped loop may have been detached from it already. */
	if (weft__load(&loop->signals_to, WEFT__RELAXED))
		weft__watchdog_end(loop);
	weft__thread_self()->loop = before;
	weft__loop_settle(loop);
	loop_life_give_back(loop);
}

static bool
take_break_request(weft_loop *loop)
{
	return weft__load(&loop->break_requested, WEFT__RELAXED)
	       && weft__exchange(&loop->break_requested, 0, WEFT__ACQUIRE);
}

/* Run iterations until the loop is stopped, weft_loop_break() is called, or there is no work. */
static void
turn_on(void *arg)
{
	weft_loop *loop = arg;

	weft__checkpoint(loop);
	for (;;) {
		if (weft__loop_is_stopping(loop)) {
			run_to_end(loop);
			break;
		}
		weft__turn(loop, WEFT_NEVER);
		if (take_break_request(loop)) {
			(void)become_idle(loop); /* if stopping: left to the next run */
			break;
		}
		if (!loop->keep && !weft__loop_is_alive(loop) && become_idle(loop))
			break;
	}
}

static void
loop_life_run(weft_loop *loop, weft_loop *before, bool keep)
{
	loop->keep = keep;
	weft__fence(turn_on, loop);
	if (weft__loop_sampler(loop))
		weft__sampler_pause(loop);
	end_run(loop, before);
}

int
weft_loop_run(weft_loop *loop)
{
	weft_loop *before;
	int rc;

	loop = weft__loop_or_current(loop);
	rc = begin_run(loop, &before);

	if (rc == 0)
		loop_life_run(loop, before, loop->flags & WEFT_LOOP_KEEP);
	return rc;
}

struct once {
	weft_loop *loop;
	uint64_t deadline_ns;
};

static void
turn_once(void *arg)
{
	const struct once *once = arg;
	weft_loop *loop = once->loop;

	weft__checkpoint(loop);
	loop->must_poll = true;
	if (weft__loop_is_stopping(loop))
		begin_to_end(loop);
	weft__turn(loop, once->deadline_ns);
	loop->must_poll = false;
	if (loop->backend.ops && loop->backend.ops->flush)
		loop->backend.ops->flush(&loop->backend);
	(void)take_break_request(loop);
	if (weft__loop_is_stopping(loop) || !become_idle(loop)) {
		begin_to_end(loop);
		if (weft__count_get(&loop->threadlets) == 0)
			run_to_end(loop);
	}
}

int
weft_loop_run_once(weft_loop *loop, uint64_t deadline_ns)
{
	weft_loop *before;
	int rc;

	loop = weft__loop_or_current(loop);
	rc = begin_run(loop, &before);

	if (rc < 0)
		return rc;
	loop->keep = loop->flags & WEFT_LOOP_KEEP;
	weft__fence(turn_once, &(struct once){ loop, deadline_ns });
	rc = weft__count_get(&loop->threadlets) > 0 || weft__loop_is_alive(loop);
	if (weft__loop_sampler(loop))
		weft__sampler_pause(loop);
	end_run(loop, before);
	return rc;
}

void
weft_loop_break(weft_loop *loop)
{
	loop = weft__loop_or_current(loop);
	if (!loop || weft__loop_is_forked(loop))
		return;
	weft__loop_enter(loop);
	weft__store(&loop->break_requested, 1, WEFT__RELEASE);
	weft__loop_wake(loop);
	weft__loop_exit(loop);
}

static void
thread_main(void *arg)
{
	weft_loop *loop = arg, *before;

	/* Take over the claim of the thread that started this one.  No acquire is needed: starting
	 * a thread orders what that thread wrote before. */
	weft__store(&loop->runner, (uintptr_t)weft__thread_self(), WEFT__RELAXED);
	loop->own_thread = true;
	if (loop->cpus) /* if none of these CPUs exists, it runs where it can */
		(void)weft__sys->set_cpus(loop->cpus);
	if (enter_run(loop, &before) == 0)
		loop_life_run(loop, before, true);
}

/* Start the thread for which the loop is claimed. */
static int
start_thread(weft_loop *loop)
{
	struct weft__thread_opts opts = {
		.fn = thread_main,
		.arg = loop,
		.name = loop->name[0] ? loop->name : "weft",
	};
	uint32_t state = WEFT_IDLE;
	int rc;

	/* A loop that is stopping and has posts to run gets a thread for that. */
	if (!weft__cas(&loop->state, &state, WEFT_STARTING, WEFT__RELAXED)
	    && state == WEFT_STOPPED) {
		loop_life_give_back(loop);
		return weft__fail(WEFT_EALREADY, "weft_loop_start: the loop has stopped");
	}
	if (loop->has_thread) /* that thread has left its run and is about to end */
		(void)weft__sys->thread_join(loop->thread);
	loop->has_thread = true;
	rc = weft__sys->thread_start(&opts, &loop->thread);
	if (rc == 0)
		return 0;
	loop->has_thread = false;
	state = WEFT_STARTING;
	(void)weft__cas(&loop->state, &state, WEFT_IDLE, WEFT__RELAXED);
	loop_life_give_back(loop);
	if (weft__loop_is_stopping(loop))
		stop_idle(loop); /* it was stopped meanwhile, and no thread will run it */
	return weft__fail(WEFT_EAGAIN, "weft_loop_start: cannot create a thread");
}

int
weft_loop_start(weft_loop *loop)
{
	uintptr_t runner = 0;

	loop = weft__loop_or_current(loop);
	if (!loop || weft__loop_is_forked(loop))
		return weft__misuse(
			loop ? WEFT_EWRONGLOOP : WEFT_EINVAL,
			"weft_loop_start: loop is NULL, or was made by a parent process");
	if (weft__load(&loop->state, WEFT__RELAXED) == WEFT_STOPPED)
		return weft__fail(WEFT_EALREADY, "weft_loop_start: the loop has stopped");
	while (!weft__cas(&loop->runner, &runner, starter_of(loop) | BRIEFLY,
	                  WEFT__ACQUIRE)) { /* R */
		if (!(runner & BRIEFLY))
			return weft__fail(WEFT_EBUSY,
			                  "weft_loop_start: the loop is already running");
		weft__sys->yield();
		runner = 0;
	}
	if (loop->bound) {
		loop_life_give_back(loop);
		return weft__misuse(WEFT_EWRONGLOOP, "weft_loop_start: the loop is "
		                                     "bound to the thread that ran it");
	}
	weft__store(&loop->runner, starter_of(loop), WEFT__RELAXED);
	return start_thread(loop);
}
