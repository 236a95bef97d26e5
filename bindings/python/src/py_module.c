/* py_module.c - weft._core: its state and its imports. */
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
import(const char *module_name, const char *path)
{
	PyObject *object = PyImport_ImportModule(module_name);
	char name[64];

	while (object && *path) {
		size_t size = strcspn(path, ".");

		(void)snprintf(name, sizeof name, "%.*s", (int)size, path);
		Py_SETREF(object, PyObject_GetAttrString(object, name));
		path += size + (path[size] == '.');
	}
	return object;
}

int
weftpy_import_all(const struct weftpy_import *imports)
{
	for (; imports->module; imports++) {
		PyObject *found = import(imports->module, imports->path);

		if (!found)
			return -1;
		*(PyObject **)imports->place = found;
	}
	return 0;
}

PyTypeObject *
weftpy_make_type(PyObject *module, PyType_Spec *spec, const char *from, const char *base_name,
                 size_t room)
{
	PyObject *base = from ? import(from, base_name) : Py_NewRef(&PyBaseObject_Type);
	PyTypeObject *type = NULL;

	if (!base)
		return NULL;
	if (from && ((PyTypeObject *)base)->tp_basicsize > (Py_ssize_t)room)
		PyErr_Format(PyExc_ImportError,
		             "weft does not support this Python: asyncio.%s has unknown slots",
		             base_name);
	else
		type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, base);
	Py_DECREF(base);
	if (type && PyModule_AddType(module, type) < 0)
		Py_CLEAR(type);
	return type;
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
	const struct weftpy_import imports[] = {
		{ "socket", "socket", &state->socket_type },
		{ "asyncio", "Future", &state->future_type },
		{ "asyncio", "BufferedProtocol", &state->buffered_type },
		{ "asyncio.format_helpers", "extract_stack", &state->extract_stack },
		{ 0 },
	};

	state->context_argument = Py_BuildValue("(s)", "context");
	state->loop_argument = Py_BuildValue("(s)", "loop");
	if (!state->context_argument || !state->loop_argument)
		return -1;
	return weftpy_import_all(imports);
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

#define REFERENCES (offsetof(struct weftpy_state, free_lists) / sizeof(PyObject *))

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
	PyObject **references = (PyObject **)weftpy_state_of(module);

	for (size_t i = 0; references && i < REFERENCES; i++)
		Py_VISIT(references[i]);
	return 0;
}

static int
py_module_clear(PyObject *module)
{
	PyObject **references = (PyObject **)weftpy_state_of(module);

	weftpy_handles_free(weftpy_state_of(module)); /* while their types still exist */
	for (size_t i = 0; i < REFERENCES; i++)
		Py_CLEAR(references[i]);
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
