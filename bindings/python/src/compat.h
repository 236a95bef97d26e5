/* compat.h - exceptions, and differences between Python versions: one function each.
 *
 * This covers the C API; differences in asyncio are in weft/_compat.py.
 */
#ifndef WEFTPY_COMPAT_H
#define WEFTPY_COMPAT_H

#include <Python.h>
#include <stdbool.h>

/* Take the current exception: normalized, with its traceback. */
static inline PyObject *
weftpy_fetch_exception(void)
{
#if PY_VERSION_HEX >= 0x030c0000
	return PyErr_GetRaisedException();
#else
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	if (trace)
		PyException_SetTraceback(value, trace);
	Py_XDECREF(type);
	Py_XDECREF(trace);
	return value;
#endif
}

/* The referent of a weak reference, as a new reference; NULL if it is gone. */
static inline PyObject *
weftpy_referent(PyObject *weak)
{
#if PY_VERSION_HEX >= 0x030d0000
	PyObject *found = NULL;

	if (PyWeakref_GetRef(weak, &found) < 0)
		PyErr_Clear(); /* not a weak reference at all */
	return found;
#else
	PyObject *found = PyWeakref_GetObject(weak);

	return found == Py_None ? NULL : Py_NewRef(found);
#endif
}

/* Whether a weak reference refers to this object, which the caller holds. */
static inline bool
weftpy_refers_to(PyObject *weak, PyObject *object)
{
	PyObject *found = weftpy_referent(weak);

	Py_XDECREF(found);
	return found == object;
}

/* From Python 3.14 on, the timeout of a TLS shutdown also limits how long the underlying
 * transport may take to send its queue. */
static inline bool
weftpy_bounds_end(void)
{
	return PY_VERSION_HEX >= 0x030e0000;
}

/* Exceptions that must not be handled by accident: they end the loop's run. */
static inline bool
weftpy_is_fatal(void)
{
	return PyErr_ExceptionMatches(PyExc_SystemExit)
	       || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
}

#endif
