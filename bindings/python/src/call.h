/* call.h - calls of Python methods, and what becomes of their results. */
#ifndef WEFTPY_CALL_H
#define WEFTPY_CALL_H

#include <Python.h>

/* The three functions below call object.name().  They hold a reference to the object, because
 * the call may drop the caller's. */
static inline PyObject *
weftpy_call_args(PyObject *name, PyObject *const *args, size_t count)
{
	PyObject *object = Py_NewRef(args[0]);
	PyObject *result = PyObject_VectorcallMethod(name, args, count, NULL);

	Py_DECREF(object);
	return result;
}

static inline PyObject *
weftpy_call(PyObject *object, PyObject *name)
{
	return weftpy_call_args(name, &object, 1);
}

static inline PyObject *
weftpy_call_one(PyObject *object, PyObject *name, PyObject *argument)
{
	PyObject *args[] = { object, argument };

	return weftpy_call_args(name, args, 2);
}

static inline PyObject *
weftpy_call_two(PyObject *object, PyObject *name, PyObject *one, PyObject *two)
{
	PyObject *args[] = { object, one, two };

	return weftpy_call_args(name, args, 3);
}

/* An entry of a table of methods. */
#define METHOD(name, function, flags)                                      \
	{                                                                  \
		name, (PyCFunction)(void (*)(void))(function), flags, NULL \
	}

/* The functions below release the result of a call.  If the call failed they return -1, and its
 * exception stays set. */

static inline int
weftpy_done(PyObject *result)
{
	Py_XDECREF(result);
	return result ? 0 : -1;
}

static inline int
weftpy_truth(PyObject *result)
{
	int truth = result ? PyObject_IsTrue(result) : -1;

	Py_XDECREF(result);
	return truth;
}

static inline Py_ssize_t
weftpy_size(PyObject *result)
{
	Py_ssize_t size = result ? PyLong_AsSsize_t(result) : -1;

	Py_XDECREF(result);
	return size;
}

/* The result of a method that returns None: NULL if `rc` is negative. */
static inline PyObject *
weftpy_none(int rc)
{
	return rc < 0 ? NULL : Py_NewRef(Py_None);
}

/* The object, or None if it is NULL. */
static inline PyObject *
weftpy_or_none(PyObject *object)
{
	return Py_NewRef(object ? object : Py_None);
}

/* Raise an exception that was taken.  Takes ownership of it. */
static inline void
weftpy_raise(PyObject *error)
{
	PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_DECREF(error);
}

#endif
