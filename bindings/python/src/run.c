/* run.c - running a loop: hooks in the turns of weft's.
 *
 * What asyncio calls an iteration is here a round: what the ring holds is called, and
 * what is added meanwhile waits for the next.  Rounds are part of weft's turns, before
 * the wait; timers that are due and descriptors that are ready put what belongs to them
 * into the ring, before the next.
 *
 *   1. A run begins by polling: asyncio promises that descriptors which are ready
 *      are seen to, even if the loop is to stop at once.
 *   2. While something is ready a round may follow another without asking the kernel:
 *      it is asked at most WEFTPY_POLL_NS after the last time, so that callbacks cannot starve
 *      descriptors.  But it is asked before the next round if this one has given it a
 *      reason, so that a program sees what it would see with asyncio: something was sent
 *      or closed, something else is watched for, or a timer is near (polled_ns is 0 then).
 *   3. A loop that never blocks gives other threads their turn with the GIL every
 *      YIELD_NS, and looks for signals whenever it polls: code in C does neither.
 *   4. An exception that ends the run is put aside, since the turn goes on: no
 *      Python is called with an exception set.
 */
#include "core.h"

#define YIELD_NS (5 * WEFT_MS) /* the interpreter's own interval */

/* End the run with the exception that is set; the first one counts. */
static void
put_aside(struct loop_core *core)
{
	if (core->raised)
		PyErr_Clear();
	else
		core->raised = weftpy_fetch_exception();
	core->over = true;
}

/* A handle of asyncio's own, as those of signals are. */
static int
run_foreign(struct loop_core *core, PyObject *item)
{
	PyObject *result = PyObject_CallMethodNoArgs(item, core->state->names._run);

	Py_XDECREF(result);
	return result ? 0 : -1;
}

static int
run_in_debug(struct loop_core *core, PyObject *item)
{
	PyObject *result = PyObject_CallMethodOneArg((PyObject *)core,
	                                             core->state->names._run_in_debug, item);

	Py_XDECREF(result);
	return result ? 0 : -1;
}

static int
run_item(struct loop_core *core, PyObject *item)
{
	if (__builtin_expect(core->debug, 0))
		return run_in_debug(core, item);
	if (weftpy_is_handle(core->state, item))
		return weftpy_handle_run(core, (struct handle *)item);
	if (weftpy_stream_check(core->state, item))
		return weftpy_stream_run(item);
	return run_foreign(core, item);
}

static int
run_round(struct loop_core *core)
{
	int rc = weftpy_inbox_take(core);

	for (size_t left = weftpy_ring_count(core); left > 0 && rc == 0; left--) {
		PyObject *item = weftpy_ring_pop(core);

		rc = run_item(core, item);
		if (Py_REFCNT(item) > 1 && weftpy_is_handle(core->state, item))
			weftpy_handle_track(item); /* somebody holds it */
		Py_DECREF(item);
	}
	return rc;
}

static int
hook_ready(weft_loop *loop, void *arg)
{
	struct loop_core *core = arg;
	int rc = 0;

	(void)loop;
	if (core->poll_first) { /* rule 1 */
		core->poll_first = false;
		return 1;
	}
	do
		rc = run_round(core);
	while (rc == 0 && weftpy_ring_count(core) > 0 && !core->stopping
	       && weft_now() - core->polled_ns < WEFTPY_POLL_NS);
	if (rc < 0)
		put_aside(core);
	else if (core->stopping)
		core->over = true;
	return core->over || weftpy_ring_count(core) > 0;
}

static void
hook_before_wait(weft_loop *loop, bool may_block, void *arg)
{
	struct loop_core *core = arg;

	(void)loop;
	if (may_block)
		core->saved = PyEval_SaveThread();
}

static void
hook_after_wait(weft_loop *loop, bool may_block, void *arg)
{
	struct loop_core *core = arg;

	(void)loop;
	core->polled_ns = weft_now();
	if (may_block) {
		PyEval_RestoreThread(core->saved);
		core->yielded_ns = core->polled_ns;
	} else if (core->polled_ns - core->yielded_ns >= YIELD_NS) {
		core->yielded_ns = core->polled_ns;
		Py_BEGIN_ALLOW_THREADS Py_END_ALLOW_THREADS
	}
	if (PyErr_CheckSignals() < 0)
		put_aside(core);
}

void
weftpy_run_init(struct loop_core *core)
{
	core->hook.ready = hook_ready;
	core->hook.before_wait = hook_before_wait;
	core->hook.after_wait = hook_after_wait;
	core->hook.arg = core;
}

int
weftpy_run(struct loop_core *core)
{
	PyObject *raised;
	int rc;

	core->owner = PyThread_get_thread_ident();
	core->poll_first = true;
	core->over = false;
	do /* one turn, since each of these does ask the kernel */
		rc = weft_loop_run_once(core->loop, WEFT_NEVER);
	while (rc >= 0 && !core->over);
	core->owner = 0;
	raised = core->raised;
	core->raised = NULL;
	if (raised) {
		PyErr_SetObject((PyObject *)Py_TYPE(raised), raised);
		Py_DECREF(raised);
		return -1;
	}
	if (rc < 0)
		weftpy_error(rc);
	return rc < 0 ? -1 : 0;
}
