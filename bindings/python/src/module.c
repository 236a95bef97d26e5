/* module.c - weft._core: its state and its imports. */
#include "core.h"
#include <weft/base.h>

struct weftpy_state *
weftpy_state_of(PyObject *module)
{
	return PyModule_GetState(module);
}

struct weftpy_tls_state *
weftpy_tls_state_of(PyObject *module)
{
	return &weftpy_state_of(module)->tls;
}

/* Raises the exception that Python uses for such an error. */
PyObject *
weftpy_error(int error)
{
	if (error == WEFT_ENOMEM)
		return PyErr_NoMemory();
	if (error == WEFT_EWRONGLOOP) {
		PyErr_SetString(PyExc_RuntimeError,
		                "Non-thread-safe operation invoked on an event "
		                "loop other than the current one, or on that of a parent process");
		return NULL;
	}
	if (error > -10000) {
		errno = -error;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	PyErr_SetString(PyExc_RuntimeError, weft_strerror(error));
	return NULL;
}

static PyObject *
import(const char *module_name, const char *name)
{
	PyObject *module = PyImport_ImportModule(module_name), *object;

	if (!module)
		return NULL;
	object = PyObject_GetAttrString(module, name);
	Py_DECREF(module);
	return object;
}

#define INTERN(name)                                                  \
	if (!(state->names.name = PyUnicode_InternFromString(#name))) \
		return -1;

static int
intern_names(struct weftpy_state *state)
{
	WEFTPY_NAMES(INTERN)
	return 0;
}

static int
import_all(struct weftpy_state *state)
{
	state->socket_type = import("socket", "socket");
	state->future_type = import("asyncio", "Future");
	state->buffered_type = import("asyncio", "BufferedProtocol");
	state->extract_stack = import("asyncio.format_helpers", "extract_stack");
	state->context_argument = Py_BuildValue("(s)", "context");
	state->loop_argument = Py_BuildValue("(s)", "loop");
	return state->socket_type && state->future_type && state->buffered_type
	                       && state->extract_stack && state->context_argument
	                       && state->loop_argument
	               ? 0
	               : -1;
}

static int
exec(PyObject *module)
{
	struct weftpy_state *state = weftpy_state_of(module);

	weftpy_blocked_init();
	if (intern_names(state) < 0 || import_all(state) < 0
	    || weftpy_handle_exec(module, state) < 0 || weftpy_loop_exec(module, state) < 0
	    || weftpy_sock_exec(module, state) < 0 || weftpy_reader_exec(state) < 0
	    || weftpy_stream_exec(module, state) < 0 || weftpy_tls_exec(module, &state->tls) < 0)
		return -1;
	return PyModule_AddStringConstant(module, "version", weft_version());
}

#define VISIT_NAME(name) Py_VISIT(state->names.name);
#define CLEAR_NAME(name) Py_CLEAR(state->names.name);

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
	struct weftpy_state *state = weftpy_state_of(module);
	int rc;

	if (!state)
		return 0;
	WEFTPY_NAMES(VISIT_NAME)
	Py_VISIT(state->loop_type);
	Py_VISIT(state->handle_type);
	Py_VISIT(state->timer_type);
	Py_VISIT(state->shared_type);
	Py_VISIT(state->stream_type);
	Py_VISIT(state->sock_type);
	Py_VISIT(state->socket_type);
	Py_VISIT(state->future_type);
	Py_VISIT(state->buffered_type);
	Py_VISIT(state->extract_stack);
	rc = weftpy_reader_traverse(state, visit, arg);
	return rc ? rc : weftpy_tls_traverse(&state->tls, visit, arg);
}

static int
py_module_clear(PyObject *module)
{
	struct weftpy_state *state = weftpy_state_of(module);

	weftpy_handles_free(state); /* while their types still exist */
	WEFTPY_NAMES(CLEAR_NAME)
	Py_CLEAR(state->loop_type);
	Py_CLEAR(state->stream_type);
	Py_CLEAR(state->sock_type);
	Py_CLEAR(state->socket_type);
	Py_CLEAR(state->future_type);
	Py_CLEAR(state->buffered_type);
	Py_CLEAR(state->extract_stack);
	Py_CLEAR(state->context_argument);
	Py_CLEAR(state->loop_argument);
	Py_CLEAR(state->handle_type);
	Py_CLEAR(state->timer_type);
	Py_CLEAR(state->shared_type);
	weftpy_reader_clear(state);
	weftpy_tls_clear(&state->tls);
	return 0;
}

static void
py_module_release(void *module)
{
	if (weftpy_state_of(module))
		(void)py_module_clear(module);
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, exec },
	{ 0, NULL },
};

struct PyModuleDef weftpy_module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "weft._core",
	.m_doc = "The part of weft's asyncio loop that is written in C.",
	.m_size = sizeof(struct weftpy_state),
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = py_module_clear,
	.m_free = py_module_release,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC
PyInit__core(void)
{
	return PyModuleDef_Init(&weftpy_module);
}
