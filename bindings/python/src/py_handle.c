/* py_handle.c - callbacks to be called: Handle and TimerHandle.
 *
 * Both are subclasses of asyncio's classes of the same names, so that isinstance(), repr() and
 * comparisons work.  The slots of the base classes stay empty: getters of the same names read
 * the C members.
 *
 *   1. The ring owns the handles in it; the list of timers owns scheduled timers.
 *   2. cancel() drops the callback and its arguments at once, unless the call is running: then
 *      they are dropped when it has ended.
 *   3. A timer is in its loop's list exactly while it is scheduled, and has a reserved slot in
 *      the ring for that time.  If another thread cancels it, it stays there until it is due,
 *      because a timer wheel belongs to its loop's thread.
 *   4. Most handles are called and freed before the next garbage collection, so waiting handles
 *      are not tracked by the collector.  Instead the loop visits the objects that a waiting
 *      handle refers to, as if they were its own, if there is no other reference to the handle.
 *      A handle that survives its call is tracked from then on; timers always are.  As a
 *      consequence, an unclosed loop that is garbage is not collected if another garbage object
 *      holds one of its waiting handles.
 *   5. From Python 3.14 on, call_soon_threadsafe() returns a separate class.  In other threads,
 *      its cancel() and cancelled() wait for a call that has started.  So the call has either
 *      ended then, or never starts.
 */
#include <math.h>
#include "core.h"
#include <structmember.h> /* after Python.h */

#define FREE_LIST_MAX 8192 /* about 1.5 MB, after a burst */

static struct handle *
take_free(struct weftpy_state *state, int kind, PyTypeObject *type)
{
	struct handle *handle = state->free_lists[kind].first;

	if (handle) {
		state->free_lists[kind].first = (struct handle *)handle->callback;
		state->free_lists[kind].count--;
		return (struct handle *)PyObject_Init((PyObject *)handle, type);
	}
	handle = PyObject_GC_New(struct handle, type);
	if (handle)
		memset(handle->base, 0, sizeof handle->base);
	return handle;
}

/* Makes a handle that calls args[0] with the rest.  Takes new references to them and to the
 * context. */
static struct handle *
handle_make(struct loop_core *core, PyTypeObject *type, PyObject *const *args, Py_ssize_t count,
            PyObject *context)
{
	int kind = type == core->state->timer_type;
	struct handle *handle = take_free(core->state, kind, type);

	if (!handle)
		return NULL;
	handle->loop = Py_NewRef((PyObject *)core);
	handle->callback = Py_NewRef(args[0]);
	handle->args_count = 0;
	handle->cancelled = handle->running = false;
	handle->traceback = handle->repr = NULL;
	handle->context = context ? Py_NewRef(context) : PyContext_CopyCurrent();
	if (kind)
		weft__link_init(&((struct timer_handle *)handle)->link);
	if (!handle->context) {
		Py_DECREF(handle);
		return NULL;
	}
	if (count - 1 <= WEFTPY_ARGS) {
		for (Py_ssize_t i = 0; i < count - 1; i++)
			handle->args[i] = Py_NewRef(args[i + 1]);
		handle->args_count = (uint8_t)(count - 1);
	} else {
		PyObject *rest = PyTuple_New(count - 1);

		if (!rest) {
			Py_DECREF(handle);
			return NULL;
		}
		for (Py_ssize_t i = 0; i < count - 1; i++)
			PyTuple_SET_ITEM(rest, i, Py_NewRef(args[i + 1]));
		handle->args[0] = rest;
		handle->args_count = WEFTPY_IN_TUPLE;
	}
	return handle;
}

/* Records the Python stack of the caller. */
static int
note_traceback(struct weftpy_state *state, struct handle *handle)
{
	PyObject *frame = (PyObject *)PyEval_GetFrame();

	if (!frame)
		return 0;
	handle->traceback = PyObject_CallOneArg(state->extract_stack, frame);
	return handle->traceback ? 0 : -1;
}

static struct handle *
handle_new(struct loop_core *core, PyTypeObject *type, PyObject *const *args, Py_ssize_t count,
           PyObject *context)
{
	struct handle *handle = handle_make(core, type, args, count, context);

	if (!handle)
		return NULL;
	if (core->debug && note_traceback(core->state, handle) < 0) {
		Py_DECREF(handle);
		return NULL;
	}
	return handle;
}

struct handle *
weftpy_handle_new(struct loop_core *core, PyObject *const *args, Py_ssize_t count,
                  PyObject *context)
{
	return handle_new(core, core->state->handle_type, args, count, context);
}

/* For call_soon_threadsafe(). */
struct handle *
weftpy_handle_new_shared(struct loop_core *core, PyObject *const *args, Py_ssize_t count,
                         PyObject *context)
{
	return handle_new(core, core->state->shared_type, args, count, context);
}

struct timer_handle *
weftpy_timer_new(struct loop_core *core, double when, PyObject *const *args, Py_ssize_t count,
                 PyObject *context)
{
	struct timer_handle *timer = (struct timer_handle *)handle_new(
		core, core->state->timer_type, args, count, context);

	if (timer) {
		timer->when = when;
		PyObject_GC_Track((PyObject *)timer);
		memset(&timer->timer, 0, sizeof timer->timer);
	}
	return timer;
}

static void
drop_args(struct handle *handle)
{
	unsigned count = handle->args_count == WEFTPY_IN_TUPLE ? 1 : handle->args_count;

	handle->args_count = 0;
	for (unsigned i = 0; i < count; i++)
		Py_DECREF(handle->args[i]);
}

static void
drop_call(struct handle *handle)
{
	Py_CLEAR(handle->callback);
	drop_args(handle);
}

/* --- waiting for a call --------------------------------------------------- */

struct waiting { /* on the waiter's stack; the GIL protects the list */
	struct handle *handle;
	PyThread_type_lock lock; /* held until the waiter is woken */
	struct waiting *next;
	bool listed;
};

static bool
is_elsewhere(const struct loop_core *core)
{
	return core->owner && core->owner != PyThread_get_thread_ident();
}

/* Removes and wakes one waiter, or all waiters of a handle. */
static void
wake(struct loop_core *core, const struct waiting *one, const struct handle *handle)
{
	struct waiting **link = &core->waiting;

	while (*link) {
		struct waiting *each = *link;

		if (each != one && each->handle != handle) {
			link = &each->next;
			continue;
		}
		*link = each->next;
		each->listed = false;
		PyThread_release_lock(each->lock);
	}
}

/* Waits until the loop's thread has ended a running call.  Fails if a signal handler raises. */
static int
wait_for_call(struct handle *handle)
{
	struct loop_core *core = (struct loop_core *)handle->loop;
	struct waiting me = { .handle = handle, .next = core->waiting };
	int rc = 0;

	if (!handle->running || !is_elsewhere(core))
		return 0;
	me.lock = PyThread_allocate_lock();
	if (!me.lock) {
		PyErr_NoMemory();
		return -1;
	}
	(void)PyThread_acquire_lock(me.lock, WAIT_LOCK); /* new, so this does not block */
	me.listed = true;
	core->waiting = &me;
	while (me.listed && rc == 0) {
		PyThreadState *saved = PyEval_SaveThread();

		/* returns early on a signal */
		(void)PyThread_acquire_lock_timed(me.lock, -1, 1);
		PyEval_RestoreThread(saved);
		rc = PyErr_CheckSignals();
	}
	if (me.listed)
		wake(core, &me, NULL);
	PyThread_free_lock(me.lock);
	return rc;
}

/* --- running -------------------------------------------------------------- */

/* Calls the exception handler.  Fails only with an exception that ends the loop's run. */
int
weftpy_report_failed(struct loop_core *core, PyObject *item)
{
	PyObject *error;
	int rc;

	if (weftpy_is_fatal())
		return -1;
	error = weftpy_fetch_exception();
	rc = weftpy_done(weftpy_call_two((PyObject *)core,
	                                 core->state->names._report_failed_callback, item, error));
	Py_XDECREF(error);
	return rc;
}

static PyObject *
py_handle_call(struct handle *handle)
{
	PyObject *rest;

	if (handle->args_count != WEFTPY_IN_TUPLE)
		return PyObject_Vectorcall(handle->callback, handle->args,
		                           handle->args_count | PY_VECTORCALL_ARGUMENTS_OFFSET,
		                           NULL);
	rest = handle->args[0];
	return PyObject_Vectorcall(handle->callback, &PyTuple_GET_ITEM(rest, 0),
	                           (size_t)PyTuple_GET_SIZE(rest), NULL);
}

/* Calls it in its context, unless it was canceled.  The caller holds a reference. */
int
weftpy_handle_run(struct loop_core *core, struct handle *handle)
{
	PyObject *result = NULL;
	int rc = 0;

	if (handle->cancelled || handle->running)
		return 0;
	handle->running = true;
	if (PyContext_Enter(handle->context) == 0) {
		result = py_handle_call(handle);
		if (PyContext_Exit(handle->context) < 0)
			Py_CLEAR(result);
	}
	if (!result)
		rc = weftpy_report_failed(core, (PyObject *)handle);
	handle->running = false;
	if (core->waiting)
		wake(core, NULL, handle);
	Py_XDECREF(result);
	if (handle->cancelled)
		drop_call(handle);
	return rc;
}

static PyObject *
handle_run(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct handle *handle = (struct handle *)self;
	int rc;

	Py_INCREF(self);
	rc = weftpy_handle_run((struct loop_core *)handle->loop, handle);
	Py_DECREF(self);
	return weftpy_none(rc);
}

/* --- canceling ------------------------------------------------------------ */

void
weftpy_handle_cancel(struct handle *handle)
{
	if (handle->cancelled)
		return;
	handle->cancelled = true;
	if (!handle->running)
		drop_call(handle);
}

/* In debug mode the repr is kept, for reports of slow callbacks. */
static int
keep_repr(struct handle *handle)
{
	if (!((struct loop_core *)handle->loop)->debug || handle->cancelled)
		return 0;
	Py_XSETREF(handle->repr, NULL);
	handle->cancelled = true; /* as asyncio's repr() shows it */
	handle->repr = PyObject_Repr((PyObject *)handle);
	handle->cancelled = false;
	return handle->repr ? 0 : -1;
}

static PyObject *
handle_cancel(PyObject *self, PyObject *Py_UNUSED(unused))
{
	if (keep_repr((struct handle *)self) < 0)
		return NULL;
	weftpy_handle_cancel((struct handle *)self);
	Py_RETURN_NONE;
}

static PyObject *
handle_cancelled(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyBool_FromLong(((struct handle *)self)->cancelled);
}

static PyObject *
shared_cancel(PyObject *self, PyObject *unused)
{
	return wait_for_call((struct handle *)self) < 0 ? NULL : handle_cancel(self, unused);
}

static PyObject *
shared_cancelled(PyObject *self, PyObject *unused)
{
	return wait_for_call((struct handle *)self) < 0 ? NULL : handle_cancelled(self, unused);
}

/* --- timers --------------------------------------------------------------- */

static bool
is_scheduled(const struct timer_handle *timer)
{
	return !weft__list_is_empty(&timer->link);
}

static void
fire(weft_timer *Py_UNUSED(weft), void *arg)
{
	struct timer_handle *timer = arg;

	weft__link_remove(&timer->link); /* its reference passes to the ring */
	weftpy_ring_push_reserved((struct loop_core *)timer->handle.loop, (PyObject *)timer);
}

/* A deadline that the clock will never reach is only in the list. */
int
weftpy_timer_schedule(struct loop_core *core, struct timer_handle *timer)
{
	double due = ceil(timer->when * 1e9);
	int rc = 0;

	if (isnan(due)) {
		PyErr_SetString(PyExc_ValueError, "call_at(): the time is not a number");
		return -1;
	}
	if (weftpy_ring_reserve(core, 1) < 0)
		return -1;
	if (due < 1)
		due = 1;
	if (due < 1e18)
		rc = weft_timer_start(core->loop, &timer->timer, (uint64_t)due, 0, fire, timer);
	if (rc < 0) {
		weftpy_error(rc);
		return -1;
	}
	Py_INCREF(timer);
	weft__link_after(&core->timers, &timer->link);
	core->reserved++;
	if (due < (double)(core->polled_ns + 2 * WEFTPY_POLL_NS))
		core->polled_ns = 0;
	return 0;
}

static void
unschedule(struct loop_core *core, struct timer_handle *timer)
{
	(void)weft_timer_stop(&timer->timer); /* one with no reachable deadline is not armed */
	weft__link_remove(&timer->link);
	core->reserved--;
	Py_DECREF(timer);
}

static PyObject *
timer_cancel(PyObject *self, PyObject *unused)
{
	struct timer_handle *timer = (struct timer_handle *)self;
	struct loop_core *core = (struct loop_core *)timer->handle.loop;

	if (is_scheduled(timer) && !is_elsewhere(core)) {
		if (keep_repr(&timer->handle) < 0)
			return NULL;
		unschedule(core, timer); /* the caller holds a reference */
	}
	return handle_cancel(self, unused);
}

void
weftpy_timers_clear(struct loop_core *core)
{
	while (!weft__list_is_empty(&core->timers))
		unschedule(core, WEFT__LINK_OF(timer_handle, link, core->timers.next));
}

static PyObject *
timer_when(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyFloat_FromDouble(((struct timer_handle *)self)->when);
}

/* --- attributes of asyncio's classes -------------------------------------- */

static PyObject *
get_args(PyObject *self, void *Py_UNUSED(unused))
{
	struct handle *handle = (struct handle *)self;
	PyObject *args;

	if (!handle->callback)
		Py_RETURN_NONE;
	if (handle->args_count == WEFTPY_IN_TUPLE)
		return Py_NewRef(handle->args[0]);
	args = PyTuple_New(handle->args_count);
	for (Py_ssize_t i = 0; args && i < handle->args_count; i++)
		PyTuple_SET_ITEM(args, i, Py_NewRef(handle->args[i]));
	return args;
}

static PyObject *
get_scheduled(PyObject *self, void *Py_UNUSED(unused))
{
	return PyBool_FromLong(is_scheduled((struct timer_handle *)self));
}

/* --- types ---------------------------------------------------------------- */

static int
handle_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct handle *handle = (struct handle *)self;
	unsigned count = handle->args_count == WEFTPY_IN_TUPLE ? 1 : handle->args_count;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(handle->loop);
	Py_VISIT(handle->callback);
	Py_VISIT(handle->context);
	Py_VISIT(handle->traceback);
	for (unsigned i = 0; i < count; i++)
		Py_VISIT(handle->args[i]);
	return 0;
}

/* Visits an item that the ring or the list of timers owns (rule 4). */
int
weftpy_handle_visit(struct weftpy_state *state, PyObject *item, visitproc visit, void *arg)
{
	if (weftpy_is_handle(state, item) && !PyObject_GC_IsTracked(item))
		return Py_REFCNT(item) == 1 ? handle_traverse(item, visit, arg) : 0;
	Py_VISIT(item);
	return 0;
}

/* The collector clears only handles that will never be called. */
static int
handle_clear(PyObject *self)
{
	struct handle *handle = (struct handle *)self;

	if (!handle->running)
		drop_call(handle);
	Py_CLEAR(handle->traceback);
	return 0;
}

static void
handle_dealloc(PyObject *self)
{
	struct handle *handle = (struct handle *)self;
	PyTypeObject *type = Py_TYPE(self);
	struct weftpy_state *state = ((struct loop_core *)handle->loop)->state;
	int kind = type == state->timer_type;
	PyObject *loop = handle->loop;

	PyObject_GC_UnTrack(self);
	if (*(PyObject **)((char *)self + type->tp_weaklistoffset))
		PyObject_ClearWeakRefs(self);
	drop_call(handle);
	Py_CLEAR(handle->context);
	Py_CLEAR(handle->traceback);
	Py_CLEAR(handle->repr);
	if (state->free_lists[kind].count < FREE_LIST_MAX) {
		handle->callback = (PyObject *)state->free_lists[kind].first;
		state->free_lists[kind].first = handle;
		state->free_lists[kind].count++;
	} else {
		PyObject_GC_Del(self);
	}
	Py_DECREF(loop);
	Py_DECREF(type);
}

void
weftpy_handles_free(struct weftpy_state *state)
{
	for (int kind = 0; kind < 2; kind++) {
		while (state->free_lists[kind].first) {
			struct handle *handle = state->free_lists[kind].first;

			state->free_lists[kind].first = (struct handle *)handle->callback;
			PyObject_GC_Del(handle);
		}
		state->free_lists[kind].count = FREE_LIST_MAX; /* keep none from now on */
	}
}

static PyMethodDef handle_methods[] = {
	{ "cancel", handle_cancel, METH_NOARGS, NULL },
	{ "cancelled", handle_cancelled, METH_NOARGS, NULL },
	{ "_run", handle_run, METH_NOARGS, NULL },
	{ 0 },
};

static PyMethodDef shared_methods[] = {
	{ "cancel", shared_cancel, METH_NOARGS, NULL },
	{ "cancelled", shared_cancelled, METH_NOARGS, NULL },
	{ "_run", handle_run, METH_NOARGS, NULL },
	{ 0 },
};

static PyMethodDef timer_methods[] = {
	{ "cancel", timer_cancel, METH_NOARGS, NULL },
	{ "cancelled", handle_cancelled, METH_NOARGS, NULL },
	{ "when", timer_when, METH_NOARGS, NULL },
	{ "_run", handle_run, METH_NOARGS, NULL },
	{ 0 },
};

#define MEMBER(name, kind, field)                                                \
	{                                                                        \
		name, kind, offsetof(struct timer_handle, field), READONLY, NULL \
	}

/* The first entry of both lists is for timers only. */
static PyMemberDef timer_members[] = {
	MEMBER("_when", T_DOUBLE, when),
	MEMBER("_callback", T_OBJECT, handle.callback),
	MEMBER("_cancelled", T_BOOL, handle.cancelled),
	MEMBER("_loop", T_OBJECT, handle.loop),
	MEMBER("_context", T_OBJECT, handle.context),
	MEMBER("_source_traceback", T_OBJECT, handle.traceback),
	MEMBER("_repr", T_OBJECT, handle.repr),
	{ 0 },
};

static PyGetSetDef timer_getters[] = {
	{ "_scheduled", get_scheduled, NULL, NULL, NULL },
	{ "_args", get_args, NULL, NULL, NULL },
	{ 0 },
};

/* Makes a subclass of the class `base_name` of asyncio. */
static PyTypeObject *
make_type(PyObject *module, const char *base_name, const char *name, PyMethodDef *methods)
{
	bool is_timer = methods == timer_methods;
	PyType_Slot slots[] = {
		{ Py_tp_traverse, handle_traverse },
		{ Py_tp_clear, handle_clear },
		{ Py_tp_dealloc, handle_dealloc },
		{ Py_tp_methods, methods },
		{ Py_tp_members, timer_members + !is_timer },
		{ Py_tp_getset, timer_getters + !is_timer },
		{ 0, NULL },
	};
	PyType_Spec spec = {
		.name = name,
		.basicsize = is_timer ? sizeof(struct timer_handle) : sizeof(struct handle),
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC
		         | Py_TPFLAGS_DISALLOW_INSTANTIATION,
		.slots = slots,
	};

	return weftpy_make_type(module, &spec, "asyncio.events", base_name,
	                        offsetof(struct handle, loop));
}

/* Rule 5. */
static PyTypeObject *
make_shared_type(PyObject *module, struct weftpy_state *state)
{
	PyObject *events = PyImport_ImportModule("asyncio.events");
	bool separate = events && PyObject_HasAttrString(events, "_ThreadSafeHandle");

	Py_XDECREF(events);
	if (!separate)
		return (PyTypeObject *)Py_NewRef(state->handle_type);
	return make_type(module, "_ThreadSafeHandle", "weft._core.ThreadSafeHandle",
	                 shared_methods);
}

int
weftpy_handle_exec(PyObject *module, struct weftpy_state *state)
{
	state->handle_type = make_type(module, "Handle", "weft._core.Handle", handle_methods);
	if (state->handle_type)
		state->timer_type = make_type(module, "TimerHandle", "weft._core.TimerHandle",
		                              timer_methods);
	if (state->timer_type)
		state->shared_type = make_shared_type(module, state);
	return state->shared_type ? 0 : -1;
}
