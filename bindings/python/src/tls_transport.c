/* tls_transport.c - SSLTransport: the program's side of a TLS connection.
 *
 * The name follows asyncio's, because programs check for "ssl" in it.  It is a subclass of
 * asyncio's transport with flow control, which asyncio's sendfile requires, but uses nothing of
 * that class: its slots stay empty.  The protocol does all the work.  After a second close()
 * there is no protocol; then methods have no effect, and queries return what they return for a
 * closed connection.
 */
#include <stddef.h>
#include "tls_protocol.h"
#include <structmember.h> /* after Python.h */

#define READ_HIGH_BYTES  (256 * 1024) /* asyncio's defaults */
#define WRITE_HIGH_BYTES (512 * 1024)

static struct tls_transport *
transport_of(PyObject *object)
{
	return (struct tls_transport *)object;
}

/* Returns the protocol with a reference, or NULL.  The reference is needed because callbacks may
 * drop the protocol. */
static struct tls_protocol *
hold_protocol(PyObject *object)
{
	struct tls_protocol *protocol = transport_of(object)->protocol;

	Py_XINCREF(protocol);
	return protocol;
}

/* The result of a method.  Releases the protocol. */
static PyObject *
none_or_error(struct tls_protocol *protocol, int rc)
{
	Py_XDECREF(protocol);
	return weftpy_none(rc);
}

/* --- limits ----------------------------------------------------------------------- */

static int
to_size(PyObject *number, Py_ssize_t *size)
{
	double value;

	if (!PyFloat_Check(number)) {
		*size = PyNumber_AsSsize_t(number, NULL);
		return *size == -1 && PyErr_Occurred() ? -1 : 0;
	}
	value = PyFloat_AS_DOUBLE(number);
	if (value >= (double)PY_SSIZE_T_MAX)
		*size = PY_SSIZE_T_MAX;
	else
		*size = value >= 0 ? (Py_ssize_t)value : -1;
	return 0;
}

/* Sets both limits; one that is not given is derived from the other, or is the default. */
static int
limits_set(struct tls_limits *limits, PyObject *high, PyObject *low, Py_ssize_t default_high)
{
	Py_ssize_t wanted_high = default_high, wanted_low = 0;

	if (low != Py_None && to_size(low, &wanted_low) < 0)
		return -1;
	if (high != Py_None) {
		if (to_size(high, &wanted_high) < 0)
			return -1;
	} else if (low != Py_None) {
		wanted_high = wanted_low > PY_SSIZE_T_MAX / 4 ? PY_SSIZE_T_MAX : wanted_low * 4;
	}
	if (low == Py_None)
		wanted_low = wanted_high >> 2; /* a shift, because it rounds down, not toward 0 */
	if (wanted_high < wanted_low || wanted_low < 0) {
		PyErr_Format(PyExc_ValueError, "high (%zd) must be >= low (%zd) must be >= 0",
		             wanted_high, wanted_low);
		return -1;
	}
	*limits = (struct tls_limits){ wanted_high, wanted_low };
	return 0;
}

void
weftpy_tls_limits_init(struct tls_protocol *self)
{
	(void)limits_set(&self->incoming_limits, Py_None, Py_None, READ_HIGH_BYTES);
	(void)limits_set(&self->outgoing_limits, Py_None, Py_None, WRITE_HIGH_BYTES);
}

static PyObject *
set_limits(PyObject *object, PyObject *args, PyObject *kwargs, bool incoming)
{
	static char *names[] = { "high", "low", NULL };
	struct tls_protocol *protocol;
	PyObject *high = Py_None, *low = Py_None;
	int rc = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", names, &high, &low))
		return NULL;
	protocol = hold_protocol(object);
	if (protocol && incoming) {
		rc = limits_set(&protocol->incoming_limits, high, low, READ_HIGH_BYTES);
		rc = rc < 0 ? -1 : weftpy_tls_control_reading(protocol);
	} else if (protocol) {
		rc = limits_set(&protocol->outgoing_limits, high, low, WRITE_HIGH_BYTES);
		rc = rc < 0 ? -1 : weftpy_tls_control_writing(protocol);
	}
	return none_or_error(protocol, rc);
}

static PyObject *
transport_set_write_buffer_limits(PyObject *object, PyObject *args, PyObject *kwargs)
{
	return set_limits(object, args, kwargs, false);
}

static PyObject *
transport_set_read_buffer_limits(PyObject *object, PyObject *args, PyObject *kwargs)
{
	return set_limits(object, args, kwargs, true);
}

static PyObject *
get_limits(const struct tls_limits *limits)
{
	return Py_BuildValue("nn", limits ? limits->low : 0, limits ? limits->high : 0);
}

static PyObject *
transport_get_write_buffer_limits(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;

	return get_limits(protocol ? &protocol->outgoing_limits : NULL);
}

static PyObject *
transport_get_read_buffer_limits(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;

	return get_limits(protocol ? &protocol->incoming_limits : NULL);
}

static PyObject *
transport_get_write_buffer_size(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;
	Py_ssize_t size = protocol ? weftpy_tls_write_size(protocol) : 0;

	return size < 0 ? NULL : PyLong_FromSsize_t(size);
}

static PyObject *
transport_get_read_buffer_size(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;
	Py_ssize_t size = protocol ? weftpy_tls_pending(protocol, protocol->incoming) : 0;

	return size < 0 ? NULL : PyLong_FromSsize_t(size);
}

/* --- reading ---------------------------------------------------------------------- */

static PyObject *
transport_is_reading(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;

	return PyBool_FromLong(protocol && !protocol->app_reading_paused);
}

static PyObject *
transport_pause_reading(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;

	if (protocol)
		protocol->app_reading_paused = true;
	Py_RETURN_NONE;
}

static PyObject *
transport_resume_reading(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = hold_protocol(object);

	return none_or_error(protocol, protocol ? weftpy_tls_resume_reading(protocol) : 0);
}

/* --- writing ---------------------------------------------------------------------- */

static PyObject *
transport_write(PyObject *object, PyObject *data)
{
	struct tls_protocol *protocol;
	Py_ssize_t size;
	int rc = 0;

	if (PyBytes_CheckExact(data)) {
		size = PyBytes_GET_SIZE(data);
	} else if (PyBytes_Check(data) || PyByteArray_Check(data) || PyMemoryView_Check(data)) {
		size = PyObject_Size(data);
	} else {
		(void)weftpy_tls_wrong_data(data);
		return NULL;
	}
	if (size < 0)
		return NULL;
	protocol = hold_protocol(object);
	if (protocol && size)
		rc = weftpy_tls_write(protocol, data);
	return none_or_error(protocol, rc);
}

static PyObject *
transport_writelines(PyObject *object, PyObject *lines)
{
	struct tls_protocol *protocol = hold_protocol(object);

	return none_or_error(protocol, protocol ? weftpy_tls_write_lines(protocol, lines) : 0);
}

static PyObject *
transport_write_eof(PyObject *Py_UNUSED(object), PyObject *Py_UNUSED(unused))
{
	PyErr_SetNone(PyExc_NotImplementedError);
	return NULL;
}

static PyObject *
transport_can_write_eof(PyObject *Py_UNUSED(object), PyObject *Py_UNUSED(unused))
{
	Py_RETURN_FALSE;
}

/* Adds to the backlog as if OpenSSL had not accepted the data; used by asyncio's tests. */
static PyObject *
transport_append_backlog(PyObject *object, PyObject *data)
{
	struct tls_protocol *protocol = hold_protocol(object);

	return none_or_error(protocol, protocol ? weftpy_tls_backlog_push(protocol, data) : 0);
}

/* --- the end ---------------------------------------------------------------------- */

static PyObject *
transport_close(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_transport *self = transport_of(object);
	struct tls_protocol *protocol = hold_protocol(object);
	int rc = 0;

	if (self->closed) {
		Py_CLEAR(self->protocol);
	} else {
		self->closed = true;
		rc = protocol ? weftpy_tls_start_shutdown(protocol) : 0;
	}
	return none_or_error(protocol, rc);
}

static PyObject *
transport_force_close(PyObject *object, PyObject *error)
{
	struct tls_protocol *protocol = hold_protocol(object);

	transport_of(object)->closed = true;
	return none_or_error(protocol, protocol ? weftpy_tls_abort(protocol, error) : 0);
}

static PyObject *
transport_abort(PyObject *object, PyObject *Py_UNUSED(unused))
{
	return transport_force_close(object, Py_None);
}

static PyObject *
transport_is_closing(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_transport *self = transport_of(object);

	if (self->closed || !self->protocol)
		Py_RETURN_TRUE;
	if (!self->protocol->transport)
		Py_RETURN_FALSE;
	return weftpy_call(self->protocol->transport, self->protocol->state->names.is_closing);
}

/* --- other methods ---------------------------------------------------------------- */

static PyObject *
transport_get_extra_info(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "name", "default", NULL };
	PyObject *name, *other = Py_None, *value;
	struct tls_protocol *protocol;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:get_extra_info", names, &name, &other))
		return NULL;
	protocol = hold_protocol(object);
	if (!protocol)
		return Py_NewRef(other);
	value = weftpy_tls_extra_info(protocol, name, other);
	Py_DECREF(protocol);
	return value;
}

static PyObject *
transport_set_protocol(PyObject *object, PyObject *protocol)
{
	struct tls_protocol *tls = hold_protocol(object);

	return none_or_error(tls, tls ? weftpy_tls_set_app_protocol(tls, protocol) : 0);
}

static PyObject *
transport_get_protocol(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;

	return weftpy_or_none(protocol ? protocol->app_protocol : NULL);
}

static PyObject *
transport_protocol_paused(PyObject *object, void *Py_UNUSED(unused))
{
	struct tls_protocol *protocol = transport_of(object)->protocol;

	return PyBool_FromLong(protocol && protocol->app_writing_paused);
}

/* --- the type --------------------------------------------------------------------- */

static int
transport_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct tls_transport *self = transport_of(object);

	Py_VISIT(Py_TYPE(object));
	for (int i = 0; i < TLS_BASE_WORDS; i++)
		Py_VISIT(self->base[i]);
	Py_VISIT(self->dict);
	Py_VISIT(self->loop);
	Py_VISIT(self->protocol);
	return 0;
}

static int
transport_clear(PyObject *object)
{
	struct tls_transport *self = transport_of(object);

	for (int i = 0; i < TLS_BASE_WORDS; i++)
		Py_CLEAR(self->base[i]);
	Py_CLEAR(self->dict);
	Py_CLEAR(self->loop);
	Py_CLEAR(self->protocol);
	return 0;
}

/* A transport that was never closed is a bug in the program. */
static void
transport_finalize(PyObject *object)
{
	struct tls_transport *self = transport_of(object);
	PyObject *type, *error, *traceback;

	if (self->closed)
		return;
	self->closed = true;
	PyErr_Fetch(&type, &error, &traceback);
	if (PyErr_WarnEx(PyExc_ResourceWarning,
	                 "unclosed transport <asyncio._SSLProtocolTransport object>", 1)
	    < 0)
		PyErr_WriteUnraisable(object);
	PyErr_Restore(type, error, traceback);
}

static void
transport_dealloc(PyObject *object)
{
	struct tls_transport *self = transport_of(object);
	PyTypeObject *type = Py_TYPE(object);

	if (PyObject_CallFinalizerFromDealloc(object) < 0)
		return;
	PyObject_GC_UnTrack(object);
	if (self->weak)
		PyObject_ClearWeakRefs(object);
	(void)transport_clear(object);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMemberDef transport_members[] = {
	{ "_loop", T_OBJECT, offsetof(struct tls_transport, loop), READONLY, NULL },
	{ "_ssl_protocol", T_OBJECT, offsetof(struct tls_transport, protocol), READONLY, NULL },
	{ "_closed", T_BOOL, offsetof(struct tls_transport, closed), 0, NULL },
	{ "__dictoffset__", T_PYSSIZET, offsetof(struct tls_transport, dict), READONLY, NULL },
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct tls_transport, weak), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyGetSetDef transport_getset[] = {
	{ "_protocol_paused", transport_protocol_paused, NULL, NULL, NULL },
	{ "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef transport_methods[] = {
	METHOD("get_extra_info", transport_get_extra_info, METH_VARARGS | METH_KEYWORDS),
	METHOD("set_protocol", transport_set_protocol, METH_O),
	METHOD("get_protocol", transport_get_protocol, METH_NOARGS),
	METHOD("is_closing", transport_is_closing, METH_NOARGS),
	METHOD("close", transport_close, METH_NOARGS),
	METHOD("abort", transport_abort, METH_NOARGS),
	METHOD("_force_close", transport_force_close, METH_O),
	METHOD("is_reading", transport_is_reading, METH_NOARGS),
	METHOD("pause_reading", transport_pause_reading, METH_NOARGS),
	METHOD("resume_reading", transport_resume_reading, METH_NOARGS),
	METHOD("set_write_buffer_limits", transport_set_write_buffer_limits,
	       METH_VARARGS | METH_KEYWORDS),
	METHOD("set_read_buffer_limits", transport_set_read_buffer_limits,
	       METH_VARARGS | METH_KEYWORDS),
	METHOD("get_write_buffer_limits", transport_get_write_buffer_limits, METH_NOARGS),
	METHOD("get_read_buffer_limits", transport_get_read_buffer_limits, METH_NOARGS),
	METHOD("get_write_buffer_size", transport_get_write_buffer_size, METH_NOARGS),
	METHOD("get_read_buffer_size", transport_get_read_buffer_size, METH_NOARGS),
	METHOD("write", transport_write, METH_O),
	METHOD("writelines", transport_writelines, METH_O),
	METHOD("write_eof", transport_write_eof, METH_NOARGS),
	METHOD("can_write_eof", transport_can_write_eof, METH_NOARGS),
	METHOD("_test__append_write_backlog", transport_append_backlog, METH_O),
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot transport_slots[] = {
	{ Py_tp_doc, "The program's end of a TLS connection." },
	{ Py_tp_dealloc, transport_dealloc },
	{ Py_tp_finalize, transport_finalize },
	{ Py_tp_traverse, transport_traverse },
	{ Py_tp_clear, transport_clear },
	{ Py_tp_members, transport_members },
	{ Py_tp_getset, transport_getset },
	{ Py_tp_methods, transport_methods },
	{ 0, NULL },
};

static PyType_Spec transport_spec = {
	.name = "weft._core.SSLTransport",
	.basicsize = sizeof(struct tls_transport),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = transport_slots,
};

struct tls_transport *
weftpy_tls_transport_new(struct tls_protocol *protocol)
{
	PyTypeObject *type = protocol->state->transport_type;
	struct tls_transport *self = (struct tls_transport *)type->tp_alloc(type, 0);

	if (!self)
		return NULL;
	Py_INCREF(protocol);
	self->protocol = protocol;
	self->loop = Py_NewRef(protocol->loop);
	return self;
}

/* Sets the attributes that asyncio's start_tls() and sendfile() check. */
static int
set_abilities(PyObject *type, PyObject *constants)
{
	PyObject *modes = PyObject_GetAttrString(constants, "_SendfileMode");
	PyObject *mode = modes ? PyObject_GetAttrString(modes, "FALLBACK") : NULL;
	int rc = -1;

	if (mode && PyObject_SetAttrString(type, "_sendfile_compatible", mode) == 0)
		rc = PyObject_SetAttrString(type, "_start_tls_compatible", Py_True);
	Py_XDECREF(modes);
	Py_XDECREF(mode);
	return rc;
}

int
weftpy_tls_transport_exec(PyObject *module, struct weftpy_tls_state *state)
{
	state->transport_type = weftpy_make_type(module, &transport_spec, "asyncio.transports",
	                                         "_FlowControlMixin",
	                                         offsetof(struct tls_transport, weak));
	if (!state->transport_type)
		return -1;
	return set_abilities((PyObject *)state->transport_type, state->constants);
}
