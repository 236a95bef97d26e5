/* reader.c - passes received data to a StreamReader.
 *
 * asyncio's streams consist of a StreamReaderProtocol that passes bytes to a StreamReader:
 * several Python calls for each chunk, which do little.  If both are asyncio's own, this file
 * does the same work in C.  If a method was overridden, in the class or in the object, or if
 * data_received() would do more than store bytes and wake a reader, nothing is done here and
 * Python is called.
 */
#include "py_stream.h"
#include <string.h>

/* Returns NULL, without an exception, if there is none. */
static PyObject *
get(PyObject *obj, PyObject *name)
{
	PyObject *value = PyObject_GetAttr(obj, name);

	if (!value)
		PyErr_Clear();
	return value;
}

/* Whether obj.name() would call asyncio's own function. */
static bool
is_asyncios(PyObject *obj, PyObject *name, PyObject *function)
{
	PyObject *method = get(obj, name);
	bool same = method && PyMethod_Check(method) && PyMethod_GET_SELF(method) == obj
	            && PyMethod_GET_FUNCTION(method) == function;

	Py_XDECREF(method);
	return same;
}

/* Whether the reader accepts data, and has room for `count` bytes without pausing its transport. */
static bool
has_room(struct weftpy_state *state, PyObject *reader, PyObject *buffer, size_t count)
{
	PyObject *eof = get(reader, state->names._eof);
	PyObject *limit = get(reader, state->names._limit);
	long long most = limit && PyLong_CheckExact(limit) ? PyLong_AsLongLong(limit) : -1;
	bool room = eof == Py_False && most >= 0
	            && ((size_t)PyByteArray_GET_SIZE(buffer) + count) / 2 < (size_t)most;

	PyErr_Clear(); /* the limit does not fit */
	Py_XDECREF(eof);
	Py_XDECREF(limit);
	return room;
}

static int
py_reader_append(PyObject *buffer, const char *at, size_t count)
{
	Py_ssize_t size = PyByteArray_GET_SIZE(buffer);

	if (PyByteArray_Resize(buffer, size + (Py_ssize_t)count) < 0)
		return -1;
	memcpy(PyByteArray_AS_STRING(buffer) + size, at, count);
	return 0;
}

/* Does what _wakeup_waiter() does. */
static int
wake(struct weftpy_state *state, PyObject *reader)
{
	PyObject *waiter = PyObject_GetAttr(reader, state->names._waiter);
	int rc;

	if (!waiter || waiter == Py_None)
		return weftpy_done(waiter);
	rc = PyObject_SetAttr(reader, state->names._waiter, Py_None);
	if (rc == 0)
		rc = weftpy_truth(weftpy_call(waiter, state->names.cancelled));
	if (rc == 0)
		rc = weftpy_done(weftpy_call_one(waiter, state->names.set_result, Py_None));
	Py_DECREF(waiter);
	return rc < 0 ? -1 : 0;
}

static int
feed(struct weftpy_state *state, PyObject *reader, const char *at, size_t count)
{
	PyObject *buffer;
	int rc = 0;

	if (!is_asyncios(reader, state->names.feed_data, state->reader.feed_data)
	    || !is_asyncios(reader, state->names._wakeup_waiter, state->reader.wakeup_waiter))
		return 0;
	buffer = get(reader, state->names._buffer);
	if (buffer && PyByteArray_CheckExact(buffer) && has_room(state, reader, buffer, count))
		rc = py_reader_append(buffer, at, count) < 0 || wake(state, reader) < 0 ? -1 : 1;
	Py_XDECREF(buffer);
	return rc;
}

int
weftpy_reader_feed(struct weftpy_state *state, PyObject *protocol, const char *at, size_t count)
{
	PyObject *weak, *reader = NULL;
	int rc;

	if (!is_asyncios(protocol, state->names.data_received, state->reader.data_received))
		return 0;
	weak = get(protocol, state->names._stream_reader_wr);
	if (weak && PyWeakref_CheckRef(weak))
		reader = weftpy_referent(weak);
	Py_XDECREF(weak);
	rc = reader ? feed(state, reader, at, count) : 0;
	Py_XDECREF(reader);
	return rc;
}

/* --- the module ----------------------------------------------------------- */

/* The method `name` as asyncio's source defines it.  NULL if the program has replaced it
 * already, or if this Python is newer than the versions known here. */
static PyObject *
method_of(PyObject *streams, PyObject *type, const char *name)
{
	PyObject *function = PY_VERSION_HEX < 0x030f0000 ? PyObject_GetAttrString(type, name)
	                                                 : NULL;

	if (!function)
		PyErr_Clear();
	else if (!PyFunction_Check(function)
	         || PyFunction_GET_GLOBALS(function) != PyModule_GetDict(streams))
		Py_CLEAR(function);
	return function;
}

int
weftpy_reader_exec(struct weftpy_state *state)
{
	PyObject *streams = PyImport_ImportModule("asyncio.streams");
	PyObject *protocol = NULL, *reader = NULL;

	if (streams) {
		protocol = PyObject_GetAttrString(streams, "StreamReaderProtocol");
		reader = PyObject_GetAttrString(streams, "StreamReader");
	}
	if (protocol && reader) {
		state->reader.data_received = method_of(streams, protocol, "data_received");
		state->reader.feed_data = method_of(streams, reader, "feed_data");
		state->reader.wakeup_waiter = method_of(streams, reader, "_wakeup_waiter");
		state->reader.protocol_type = (PyTypeObject *)Py_NewRef(protocol);
	}
	Py_XDECREF(streams);
	Py_XDECREF(protocol);
	Py_XDECREF(reader);
	return PyErr_Occurred() ? -1 : 0;
}
