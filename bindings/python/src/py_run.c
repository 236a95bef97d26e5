/* py_run.c - runs a loop, by hooks in the iterations of the weft loop.
 *
 * This file calls an iteration of asyncio a round.  A round runs everything that is in the ring
 * when it begins; what is added meanwhile waits for the next round.  Rounds run inside iterations
 * of the weft loop, before its wait.  Timers that are due and descriptors that are ready put their
 * handles into the ring, before the next round.
 *
 *   1. A run starts by polling: asyncio guarantees that ready descriptors are handled, even if
 *      the loop is to stop at once.
 *   2. While the ring is not empty, one round may follow another without polling the kernel.
 *      The kernel is polled at least every WEFTPY_POLL_NS, so that callbacks cannot starve
 *      descriptors.  A round that sends data, closes a socket, watches another descriptor or
 *      starts a timer that is due soon sets polled_ns to 0.  The kernel is then polled before the
 *      next round, so that a program observes the same order as with asyncio.
 *   3. A loop that never blocks yields the GIL to other threads every YIELD_NS, and checks for
 *      signals whenever it polls: C code does neither by itself.
 *   4. An exception that ends the run is set aside until the iteration has ended, so that no
 *      Python code is called with an exception set.
 */
#include "core.h"

#define YIELD_NS (5 * WEFT_MS) /* the interpreter's own switch interval */

/* Ends the run with the current exception; only the first one is kept. */
static void
put_aside(struct loop_core *core)
{
	if (core->raised)
		PyErr_Clear();
	else
		core->raised = weftpy_fetch_exception();
	core->over = true;
}

static int
run_item(struct loop_core *core, PyObject *item)
{
	if (__builtin_expect(core->debug, 0))
		return weftpy_done(
			weftpy_call_one((PyObject *)core, core->state->names._run_in_debug, item));
	if (weftpy_is_handle(core->state, item))
		return weftpy_handle_run(core, (struct handle *)item);
	if (weftpy_stream_check(core->state, item))
		return weftpy_stream_run(item);
	/* One of asyncio's own handles, such as those of signals. */
	return weftpy_done(weftpy_call(item, core->state->names._run));
}

static int
run_round(struct loop_core *core)
{
	int rc = 0;

	for (size_t left = weftpy_ring_count(core); left > 0 && rc == 0; left--) {
		PyObject *item = weftpy_ring_pop(core);

		rc = run_item(core, item);
		if (Py_REFCNT(item) > 1 && weftpy_is_handle(core->state, item))
			weftpy_handle_track(item); /* another reference exists */
		Py_DECREF(item);
	}
	return rc;
}

static int
hook_ready(weft_loop *Py_UNUSED(loop), void *arg)
{
	struct loop_core *core = arg;
	int rc = 0;

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
hook_before_wait(weft_loop *Py_UNUSED(loop), bool may_block, void *arg)
{
	struct loop_core *core = arg;

	if (may_block)
		core->saved = PyEval_SaveThread();
}

static void
hook_after_wait(weft_loop *Py_UNUSED(loop), bool may_block, void *arg)
{
	struct loop_core *core = arg;

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
	do /* weft_loop_run() may skip polls of the kernel; weft_loop_run_once() does not */
		rc = weft_loop_run_once(core->loop, WEFT_NEVER);
	while (rc >= 0 && !core->over);
	core->owner = 0;
	raised = core->raised;
	core->raised = NULL;
	if (raised) {
		weftpy_raise(raised);
		return -1;
	}
	if (rc < 0)
		weftpy_error(rc);
	return rc < 0 ? -1 : 0;
}
