/* loop.c - LoopCore: the most frequently called methods of an asyncio loop.
 *
 * weft.Loop derives from it first and from asyncio.SelectorEventLoop second.  The flags that
 * both use (_closed, _stopping, _debug) are members here, exposed under asyncio's names.
 */
#include "core.h"
#include <math.h>
#include <unistd.h>
#include <weft/embed.h>

static struct loop_core *
core_of(PyObject *self)
{
	return (struct loop_core *)self;
}

/* --- scheduling ----------------------------------------------------------- */

/* Returns false and raises if nothing can be scheduled. */
bool
weftpy_is_open(struct loop_core *core)
{
	if (core->closed || !core->loop) {
		PyErr_SetString(PyExc_RuntimeError, "Event loop is closed");
		return false;
	}
	return true;
}

/* Whether the names are ("context",).  A call site passes the same tuple each time, so the tuple
 * is remembered and its text compared only once. */
static bool
is_context(struct weftpy_state *state, PyObject *names)
{
	if (names == state->context_argument)
		return true;
	if (PyTuple_GET_SIZE(names) != 1
	    || PyUnicode_Compare(PyTuple_GET_ITEM(names, 0),
	                         PyTuple_GET_ITEM(state->context_argument, 0))
	               != 0)
		return false;
	Py_SETREF(state->context_argument, Py_NewRef(names));
	return true;
}

/* Parses context=, the only keyword argument of these methods. */
static int
find_context(struct weftpy_state *state, PyObject *const *args, Py_ssize_t count, PyObject *names,
             PyObject **out)
{
	*out = NULL;
	if (!names || PyTuple_GET_SIZE(names) == 0)
		return 0;
	if (!is_context(state, names)) {
		PyErr_Format(PyExc_TypeError, "unexpected keyword arguments: %R", names);
		return -1;
	}
	if (args[count] == Py_None)
		return 0;
	if (!PyContext_CheckExact(args[count])) {
		PyErr_Format(PyExc_TypeError, "context must be a contextvars.Context, not %R",
		             args[count]);
		return -1;
	}
	*out = args[count];
	return 0;
}

static int
check_callback(struct loop_core *core, PyObject *callback, const char *method)
{
	PyObject *name = PyUnicode_FromString(method);
	int rc;

	if (!name)
		return -1;
	rc = weftpy_done(weftpy_call_two((PyObject *)core, core->state->names._check_callback,
	                                 callback, name));
	Py_DECREF(name);
	return rc;
}

static int
check_thread(struct loop_core *core)
{
	return weftpy_done(weftpy_call((PyObject *)core, core->state->names._check_thread));
}

static bool
has_callback(Py_ssize_t count, Py_ssize_t need, const char *method)
{
	if (count >= need)
		return true;
	PyErr_Format(PyExc_TypeError, "%s() needs %zd positional arguments, got %zd", method, need,
	             count);
	return false;
}

static PyObject *
call_soon(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	struct loop_core *core = core_of(self);
	struct handle *handle;
	PyObject *context;

	if (!weftpy_is_open(core) || !has_callback(count, 1, "call_soon")
	    || find_context(core->state, args, count, names, &context) < 0)
		return NULL;
	if (core->debug
	    && (check_thread(core) < 0 || check_callback(core, args[0], "call_soon") < 0))
		return NULL;
	handle = weftpy_handle_new(core, args, count, context);
	if (handle && weftpy_ring_push(core, (PyObject *)handle) < 0)
		Py_CLEAR(handle);
	return (PyObject *)handle;
}

/* For our own callbacks. */
int
weftpy_call_soon(struct loop_core *core, PyObject *callback, PyObject *arg, PyObject *context)
{
	PyObject *args[2] = { callback, arg };
	struct handle *handle = weftpy_handle_new(core, args, arg ? 2 : 1, context);
	int rc;

	if (!handle)
		return -1;
	rc = weftpy_ring_push(core, (PyObject *)handle);
	Py_DECREF(handle);
	return rc;
}

static PyObject *
call_soon_threadsafe(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	struct loop_core *core = core_of(self);
	struct handle *handle;
	PyObject *context;

	if (!weftpy_is_open(core) || !has_callback(count, 1, "call_soon_threadsafe")
	    || find_context(core->state, args, count, names, &context) < 0)
		return NULL;
	if (core->debug && check_callback(core, args[0], "call_soon_threadsafe") < 0)
		return NULL;
	handle = weftpy_handle_new_shared(core, args, count, context);
	if (!handle)
		return NULL;
	if (weftpy_ring_push(core, (PyObject *)handle) < 0)
		Py_CLEAR(handle);
	else if (core->loop && core->owner != PyThread_get_thread_ident())
		weft_loop_wake(core->loop);
	return (PyObject *)handle;
}

static double
seconds(void)
{
	return (double)weft_now() * 1e-9;
}

/* call_at() and call_later(). */
static PyObject *
schedule(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names, bool later)
{
	struct loop_core *core = core_of(self);
	struct timer_handle *timer;
	PyObject *context;
	double when;

	if (!has_callback(count, 2, later ? "call_later" : "call_at")
	    || find_context(core->state, args, count, names, &context) < 0)
		return NULL;
	if (args[0] == Py_None) {
		PyErr_SetString(PyExc_TypeError,
		                later ? "delay must not be None" : "when cannot be None");
		return NULL;
	}
	when = PyFloat_AsDouble(args[0]);
	if ((when == -1 && PyErr_Occurred()) || !weftpy_is_open(core))
		return NULL;
	if (core->debug && (check_thread(core) < 0 || check_callback(core, args[1], "call_at") < 0))
		return NULL;
	if (later)
		when += seconds();
	timer = weftpy_timer_new(core, when, args + 1, count - 1, context);
	if (timer && weftpy_timer_schedule(core, timer) < 0)
		Py_CLEAR(timer);
	return (PyObject *)timer;
}

static PyObject *
call_at(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	return schedule(self, args, count, names, false);
}

static PyObject *
call_later(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	return schedule(self, args, count, names, true);
}

static PyObject *
loop_time(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(unused))
{
	return PyFloat_FromDouble(seconds());
}

static PyObject *
create_future(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct weftpy_state *state = core_of(self)->state;
	PyObject *args[2] = { NULL, self }, *names = state->loop_argument;

	return PyObject_Vectorcall(state->future_type, args + 1, 0 | PY_VECTORCALL_ARGUMENTS_OFFSET,
	                           names);
}

/* For handles that were made elsewhere: those of signals. */
static PyObject *
add_callback(PyObject *self, PyObject *handle)
{
	int skip = weftpy_truth(weftpy_call(handle, core_of(self)->state->names.cancelled));

	if (skip < 0 || (skip == 0 && weftpy_ring_push(core_of(self), handle) < 0))
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *
write_to_self(PyObject *self, PyObject *Py_UNUSED(unused))
{
	if (core_of(self)->loop)
		weft_loop_wake(core_of(self)->loop);
	Py_RETURN_NONE;
}

static PyObject *
stop(PyObject *self, PyObject *Py_UNUSED(unused))
{
	core_of(self)->stopping = true;
	Py_RETURN_NONE;
}

static PyObject *
is_closed(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyBool_FromLong(core_of(self)->closed);
}

static PyObject *
get_debug(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyBool_FromLong(core_of(self)->debug);
}

static PyObject *
loop_run(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(weftpy_is_open(core_of(self)) ? weftpy_run(core_of(self)) : -1);
}

/* --- descriptors and children --------------------------------------------- */

static PyObject *
add_side(PyObject *self, int side, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	struct loop_core *core = core_of(self);
	PyObject *context;

	if (!weftpy_is_open(core) || !has_callback(count, 2, "add")
	    || find_context(core->state, args, count, names, &context) < 0)
		return NULL;
	return weftpy_fd_add(core, side, args, count, context);
}

static PyObject *
add_reader(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	return add_side(self, 0, args, count, names);
}

static PyObject *
add_writer(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	return add_side(self, 1, args, count, names);
}

static PyObject *
call_side(PyObject *self, int side, PyObject *file, int (*call)(struct loop_core *, int, int))
{
	int fd;

	if (core_of(self)->closed || !core_of(self)->loop)
		Py_RETURN_FALSE;
	fd = PyObject_AsFileDescriptor(file);
	if (fd < 0)
		return NULL;
	return PyBool_FromLong(call(core_of(self), side, fd));
}

static PyObject *
remove_reader(PyObject *self, PyObject *file)
{
	return call_side(self, 0, file, weftpy_fd_remove);
}

static PyObject *
remove_writer(PyObject *self, PyObject *file)
{
	return call_side(self, 1, file, weftpy_fd_remove);
}

static PyObject *
is_watched(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	if (!has_callback(count, 2, "_is_watched"))
		return NULL;
	return call_side(self, PyObject_IsTrue(args[1]) == 1, args[0], weftpy_fd_watched);
}

static bool
has_exactly(Py_ssize_t count, Py_ssize_t need, const char *method)
{
	if (count == need)
		return true;
	PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments, got %zd", method, need, count);
	return false;
}

static PyObject *
wait_readable(PyObject *self, PyObject *sock)
{
	return weftpy_is_open(core_of(self)) ? weftpy_fd_wait(core_of(self), 0, sock) : NULL;
}

static PyObject *
wait_writable(PyObject *self, PyObject *sock)
{
	return weftpy_is_open(core_of(self)) ? weftpy_fd_wait(core_of(self), 1, sock) : NULL;
}

static PyObject *
sock_recv(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	return has_exactly(count, 2, "sock_recv")
	               ? weftpy_sock_recv(core_of(self), args[0], args[1])
	               : NULL;
}

static PyObject *
sock_sendall(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	return has_exactly(count, 2, "sock_sendall")
	               ? weftpy_sock_sendall(core_of(self), args[0], args[1])
	               : NULL;
}

static PyObject *
watch_child(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	long pid;

	if (!weftpy_is_open(core_of(self)) || !has_callback(count, 2, "_watch_child"))
		return NULL;
	pid = PyLong_AsLong(args[0]);
	if ((pid == -1 && PyErr_Occurred())
	    || weftpy_child_watch(core_of(self), (pid_t)pid, args[1]) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *
metrics(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return weftpy_is_open(core_of(self)) ? weftpy_metrics(core_of(self)) : NULL;
}

static PyObject *
open_admin(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	if (!weftpy_is_open(core_of(self)) || !has_callback(count, 3, "_open_admin"))
		return NULL;
	return weftpy_admin_open(core_of(self), args);
}

/* --- creation and destruction --------------------------------------------- */

/* _open(backend, watchdog): create the underlying weft loop. */
static PyObject *
open_loop(PyObject *self, PyObject *args)
{
	struct loop_core *core = core_of(self);
	weft_loop_opts opts = { .name = "asyncio", .flags = WEFT_LOOP_KEEP | WEFT_LOOP_MOVABLE };
	const char *backend;
	double watchdog;

	if (!PyArg_ParseTuple(args, "zd", &backend, &watchdog))
		return NULL;
	if (core->loop) {
		PyErr_SetString(PyExc_RuntimeError, "the loop is already open");
		return NULL;
	}
	opts.backend = backend;
	opts.watchdog_ns = (uint64_t)(watchdog * 1e9);
	core->scratch = PyMem_RawMalloc(WEFTPY_SCRATCH);
	core->loop = core->scratch ? weft_loop_new(&opts) : NULL;
	if (!core->loop) {
		if (!core->scratch || weft_detail()[0] == '\0')
			return PyErr_NoMemory();
		PyErr_SetString(PyExc_ValueError, weft_detail());
		return NULL;
	}
	weftpy_run_init(core);
	(void)weft_loop_push_hook(core->loop, &core->hook); /* cannot fail on a new loop */
	core->pid = getpid();
	core->closed = false;
	if (watchdog > 0 && weftpy_blocked_watch(core) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* Runs weft's loop to its end, which frees the admin endpoint and threadlets. */
static void
end_loop(struct loop_core *core)
{
	weft_loop *loop = core->loop;

	core->loop = NULL;
	weftpy_blocked_forget(core);
	/* Freeing waits for the watchdog thread, which may be waiting for the GIL. */
	Py_BEGIN_ALLOW_THREADS if (core->pid == getpid())
	{
		weft_loop_drop_hook(loop, &core->hook);
		weftpy_admin_close(core);
		weft_loop_shutdown(loop);
		while (weft_loop_run_once(loop, WEFT_NEVER) > 0)
			continue;
	}
	(void)weft_loop_free(loop);
	Py_END_ALLOW_THREADS
}

static int
loop_clear(PyObject *self)
{
	struct loop_core *core = core_of(self);

	if (core->loop) {
		weftpy_timers_clear(core);
		weftpy_children_clear(core);
		weftpy_streams_clear(core);
		weftpy_fds_clear(core);
	}
	weftpy_ring_clear(core);
	return 0;
}

static PyObject *
dispose(PyObject *self, PyObject *Py_UNUSED(unused))
{
	(void)loop_clear(self);
	if (core_of(self)->loop)
		end_loop(core_of(self));
	Py_RETURN_NONE;
}

static PyObject *
loop_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
	PyObject *module = PyType_GetModuleByDef(type, &weftpy_module);
	struct loop_core *core;

	if (!module)
		return NULL;
	core = (struct loop_core *)type->tp_alloc(type, 0);
	if (!core)
		return NULL;
	core->state = weftpy_state_of(module);
	core->closed = true; /* until _open() */
	weft__link_init(&core->timers);
	weft__link_init(&core->children);
	weft__link_init(&core->streams);
	return (PyObject *)core;
}

static int
visit_queued(struct loop_core *core, visitproc visit, void *arg)
{
	int rc = 0;

	for (size_t i = core->head; i != core->tail && rc == 0; i++)
		rc = weftpy_handle_visit(core->state, core->ring[i & (core->ring_size - 1)], visit,
		                         arg);
	for (struct weft__link *t = core->timers.next; t != &core->timers && rc == 0; t = t->next)
		rc = weftpy_handle_visit(
			core->state, (PyObject *)WEFT__LINK_OF(timer_handle, link, t), visit, arg);
	return rc;
}

static int
loop_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct loop_core *core = core_of(self);
	int rc = visit_queued(core, visit, arg);

	Py_VISIT(Py_TYPE(self));
	if (rc == 0)
		rc = weftpy_fds_traverse(core, visit, arg);
	if (rc == 0)
		rc = weftpy_streams_traverse(core, visit, arg);
	return rc ? rc : weftpy_children_traverse(core, visit, arg);
}

static void
loop_dealloc(PyObject *self)
{
	struct loop_core *core = core_of(self);
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	(void)loop_clear(self);
	if (core->loop)
		end_loop(core);
	PyMem_RawFree(core->scratch);
	PyMem_RawFree(core->fds);
	PyMem_Free(core->ring);
	type->tp_free(self);
	Py_DECREF(type);
}

/* --- the type ------------------------------------------------------------- */

static PyObject *
get_flag(PyObject *self, void *offset)
{
	return PyBool_FromLong(*(bool *)((char *)self + (uintptr_t)offset));
}

static int
set_flag(PyObject *self, PyObject *value, void *offset)
{
	int on = value ? PyObject_IsTrue(value) : 0;

	if (on < 0)
		return -1;
	*(bool *)((char *)self + (uintptr_t)offset) = on != 0;
	return 0;
}

#define FLAG(name, field)                                                                 \
	{                                                                                 \
		name, get_flag, set_flag, NULL, (void *)offsetof(struct loop_core, field) \
	}

static PyGetSetDef loop_getters[] = {
	FLAG("_closed", closed),
	FLAG("_stopping", stopping),
	FLAG("_debug", debug),
	{ 0 },
};

#define FAST     (METH_FASTCALL)
#define KEYWORDS (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef loop_methods[] = {
	METHOD("call_soon", call_soon, KEYWORDS),
	METHOD("call_soon_threadsafe", call_soon_threadsafe, KEYWORDS),
	METHOD("call_later", call_later, KEYWORDS),
	METHOD("call_at", call_at, KEYWORDS),
	METHOD("time", loop_time, METH_NOARGS),
	METHOD("stop", stop, METH_NOARGS),
	METHOD("is_closed", is_closed, METH_NOARGS),
	METHOD("get_debug", get_debug, METH_NOARGS),
	METHOD("create_future", create_future, METH_NOARGS),
	METHOD("_add_callback", add_callback, METH_O),
	METHOD("_write_to_self", write_to_self, METH_NOARGS),
	METHOD("_add_reader", add_reader, KEYWORDS),
	METHOD("_add_writer", add_writer, KEYWORDS),
	METHOD("_remove_reader", remove_reader, METH_O),
	METHOD("_remove_writer", remove_writer, METH_O),
	METHOD("_is_watched", is_watched, FAST),
	METHOD("_wait_readable", wait_readable, METH_O),
	METHOD("_wait_writable", wait_writable, METH_O),
	METHOD("sock_recv", sock_recv, FAST),
	METHOD("sock_sendall", sock_sendall, FAST),
	METHOD("_watch_child", watch_child, FAST),
	METHOD("_metrics", metrics, METH_NOARGS),
	METHOD("_open_admin", open_admin, FAST),
	METHOD("_open", open_loop, METH_VARARGS),
	METHOD("_run", loop_run, METH_NOARGS),
	METHOD("_dispose", dispose, METH_NOARGS),
	{ 0 },
};

static PyType_Slot loop_slots[] = {
	{ Py_tp_new, loop_new },
	{ Py_tp_traverse, loop_traverse },
	{ Py_tp_clear, loop_clear },
	{ Py_tp_dealloc, loop_dealloc },
	{ Py_tp_methods, loop_methods },
	{ Py_tp_getset, loop_getters },
	{ 0, NULL },
};

static PyType_Spec loop_spec = {
	.name = "weft._core.LoopCore",
	.basicsize = sizeof(struct loop_core),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
	.slots = loop_slots,
};

int
weftpy_loop_exec(PyObject *module, struct weftpy_state *state)
{
	state->loop_type = weftpy_make_type(module, &loop_spec, NULL, NULL, 0);
	return state->loop_type ? 0 : -1;
}
