/* tls_protocol.c - TLSProtocol: asyncio's SSLProtocol in C, for transports in C and in Python.
 *
 * This file has the object and its Python interface.  Its behavior is in tls_phase.c, tls_read.c
 * and tls_write.c.  Attributes that begin with an underscore are those of asyncio's class,
 * because asyncio's own code and its tests use some of them.
 */
#include <stddef.h>
#include "tls_protocol.h"
#include <structmember.h> /* after Python.h */

static struct tls_protocol *
protocol_of(PyObject *object)
{
	return (struct tls_protocol *)object;
}

/* --- creation --------------------------------------------------------------------- */

/* The given timeout, or the default. */
static PyObject *
timeout_of(struct tls_protocol *self, PyObject *given, PyObject *name, const char *argument)
{
	PyObject *zero;
	int rc;

	if (given == Py_None)
		return PyObject_GetAttr(self->state->constants, name);
	zero = PyLong_FromLong(0);
	if (!zero)
		return NULL;
	rc = PyObject_RichCompareBool(given, zero, Py_LE);
	Py_DECREF(zero);
	if (rc == 0)
		return Py_NewRef(given);
	if (rc > 0)
		PyErr_Format(PyExc_ValueError, "%s should be a positive number, got %S", argument,
		             given);
	return NULL;
}

/* Whether a method of the object is the one of ssl.SSLObject. */
static bool
tls_protocol_is_plain(PyObject *sslobj, PyObject *name, PyObject *function)
{
	PyObject *method = PyObject_GetAttr(sslobj, name);
	bool plain = method && PyMethod_Check(method) && PyMethod_GET_FUNCTION(method) == function;

	Py_XDECREF(method);
	return plain;
}

/* Sets the SSL object.  Bypasses its Python methods if they are not overridden. */
static int
set_sslobj(struct tls_protocol *self, PyObject *sslobj)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *inner = NULL;

	if (state->inner_type
	    && tls_protocol_is_plain(sslobj, state->names.read, state->object_read)
	    && tls_protocol_is_plain(sslobj, state->names.write, state->object_write))
		inner = PyObject_GetAttr(sslobj, state->names._sslobj);
	if (PyErr_Occurred()) {
		if (!PyErr_ExceptionMatches(PyExc_AttributeError))
			return -1;
		PyErr_Clear();
	}
	if (inner && (PyObject *)Py_TYPE(inner) != state->inner_type)
		Py_CLEAR(inner);
	Py_XSETREF(self->inner, inner);
	Py_XSETREF(self->sslobj, Py_NewRef(sslobj));
	return 0;
}

static int
make_bios(struct tls_protocol *self)
{
	self->incoming = PyObject_CallNoArgs(self->state->bio_type);
	if (!self->incoming)
		return -1;
	self->outgoing = PyObject_CallNoArgs(self->state->bio_type);
	return self->outgoing ? 0 : -1;
}

static int
wrap(struct tls_protocol *self)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *args[] = { self->context, self->incoming, self->outgoing,
		             self->server_side ? Py_True : Py_False, self->server_hostname };
	PyObject *sslobj = PyObject_VectorcallMethod(state->names.wrap_bio, args, 3,
	                                             state->wrap_names);
	int rc;

	if (!sslobj)
		return -1;
	rc = set_sslobj(self, sslobj);
	Py_DECREF(sslobj);
	return rc;
}

/* Sets the program's context, or the default one if none is given. */
static int
set_context(struct tls_protocol *self, PyObject *context, PyObject *hostname)
{
	struct weftpy_tls_state *state = self->state;
	int named = PyObject_IsTrue(hostname), given = PyObject_IsTrue(context);

	if (named < 0 || given < 0)
		return -1;
	if (given)
		self->context = Py_NewRef(context);
	else
		self->context = weftpy_call_two(state->sslproto,
		                                state->names._create_transport_context,
		                                self->server_side ? Py_True : Py_False, hostname);
	if (!self->context)
		return -1;
	self->server_hostname = Py_NewRef(named && !self->server_side ? hostname : Py_None);
	self->extra = PyDict_New();
	if (!self->extra)
		return -1;
	return PyDict_SetItem(self->extra, state->names.sslcontext, self->context);
}

int
weftpy_tls_set_app_protocol(struct tls_protocol *self, PyObject *app_protocol)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *get_buffer = NULL, *buffer_updated = NULL;
	int rc = PyObject_IsInstance(app_protocol, state->buffered_type);

	if (rc < 0)
		return -1;
	if (rc > 0) {
		get_buffer = PyObject_GetAttr(app_protocol, state->names.get_buffer);
		buffer_updated = PyObject_GetAttr(app_protocol, state->names.buffer_updated);
		if (!get_buffer || !buffer_updated) {
			Py_XDECREF(get_buffer);
			Py_XDECREF(buffer_updated);
			return -1;
		}
	}
	Py_XSETREF(self->get_buffer, get_buffer);
	Py_XSETREF(self->buffer_updated, buffer_updated);
	Py_XSETREF(self->app_protocol, Py_NewRef(app_protocol));
	return 0;
}

static int
make_app_transport(struct tls_protocol *self)
{
	if (self->app_transport)
		return 0;
	if (self->app_transport_made) {
		PyErr_SetString(PyExc_RuntimeError, "Creating _SSLProtocolTransport twice");
		return -1;
	}
	self->app_transport = weftpy_tls_transport_new(self);
	self->app_transport_made = self->app_transport != NULL;
	return self->app_transport ? 0 : -1;
}

struct arguments {
	PyObject *loop, *app_protocol, *context, *waiter, *hostname;
	PyObject *handshake_timeout, *shutdown_timeout;
	int server_side, call_connection_made;
};

static int
protocol_init(struct tls_protocol *self, struct arguments *given)
{
	struct weftpy_tls_state *state = self->state;

	self->handshake_timeout = timeout_of(self, given->handshake_timeout,
	                                     state->names.SSL_HANDSHAKE_TIMEOUT,
	                                     "ssl_handshake_timeout");
	if (!self->handshake_timeout)
		return -1;
	self->shutdown_timeout = timeout_of(self, given->shutdown_timeout,
	                                    state->names.SSL_SHUTDOWN_TIMEOUT,
	                                    "ssl_shutdown_timeout");
	if (!self->shutdown_timeout)
		return -1;
	self->server_side = given->server_side != 0;
	self->loop = Py_NewRef(given->loop);
	if (given->waiter != Py_None)
		self->waiter = Py_NewRef(given->waiter);
	self->app_phase = given->call_connection_made ? APP_INIT : APP_MADE;
	self->window = weftpy_tls_span_new(state, false);
	if (!self->window || set_context(self, given->context, given->hostname) < 0
	    || weftpy_tls_set_app_protocol(self, given->app_protocol) < 0 || make_bios(self) < 0
	    || wrap(self) < 0)
		return -1;
	weftpy_tls_limits_init(self);
	return make_app_transport(self);
}

static PyObject *
protocol_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "loop",
		                 "app_protocol",
		                 "sslcontext",
		                 "waiter",
		                 "server_side",
		                 "server_hostname",
		                 "call_connection_made",
		                 "ssl_handshake_timeout",
		                 "ssl_shutdown_timeout",
		                 NULL };
	struct arguments given = { .hostname = Py_None,
		                   .handshake_timeout = Py_None,
		                   .shutdown_timeout = Py_None,
		                   .call_connection_made = 1 };
	PyObject *module = PyType_GetModuleByDef(type, &weftpy_module);
	struct tls_protocol *self;

	if (!module
	    || !PyArg_ParseTupleAndKeywords(
		    args, kwargs, "OOOO|pOpOO:TLSProtocol", names, &given.loop, &given.app_protocol,
		    &given.context, &given.waiter, &given.server_side, &given.hostname,
		    &given.call_connection_made, &given.handshake_timeout, &given.shutdown_timeout))
		return NULL;
	if (!weftpy_tls_state_of(module)->bio_type) {
		PyErr_SetString(PyExc_RuntimeError, "stdlib ssl module not available");
		return NULL;
	}
	self = (struct tls_protocol *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->state = weftpy_tls_state_of(module);
	if (protocol_init(self, &given) < 0) {
		Py_DECREF(self);
		return NULL;
	}
	return (PyObject *)self;
}

/* Does nothing: protocol_new() does all the work, so an object is never incomplete. */
static int
protocol_init_again(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args),
                    PyObject *Py_UNUSED(kwargs))
{
	return 0;
}

/* --- destruction ------------------------------------------------------------------ */

/* The references of an object, as an array; and how many there are before a member. */
static PyObject **
references_of(PyObject *object)
{
	return (PyObject **)((char *)object + offsetof(struct tls_protocol, app_protocol));
}

#define REFERENCES(member)                                                                     \
	((offsetof(struct tls_protocol, member) - offsetof(struct tls_protocol, app_protocol)) \
	 / sizeof(PyObject *))

static int
protocol_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(object));
	for (size_t i = 0; i < REFERENCES(backlog); i++)
		Py_VISIT(references_of(object)[i]);
	return 0;
}

/* Members that a connection cannot work without are released by dealloc, not here: a callback of
 * another object that is being cleared may still call this one. */
static int
protocol_clear(PyObject *object)
{
	struct tls_protocol *self = protocol_of(object);

	for (size_t i = 0; i < REFERENCES(loop); i++)
		Py_CLEAR(references_of(object)[i]);
	if (self->extra)
		PyDict_Clear(self->extra);
	return 0;
}

static void
protocol_dealloc(PyObject *object)
{
	struct tls_protocol *self = protocol_of(object);
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	if (self->weak)
		PyObject_ClearWeakRefs(object);
	(void)protocol_clear(object);
	for (size_t i = REFERENCES(loop); i < REFERENCES(backlog); i++)
		Py_CLEAR(references_of(object)[i]);
	weftpy_tls_backlog_clear(self);
	type->tp_free(object);
	Py_DECREF(type);
}

/* --- methods of a protocol -------------------------------------------------------- */

static PyObject *
protocol_connection_made(PyObject *object, PyObject *transport)
{
	struct tls_protocol *self = protocol_of(object);

	Py_XSETREF(self->transport, Py_NewRef(transport));
	return weftpy_none(weftpy_tls_start_handshake(self));
}

static PyObject *
protocol_connection_lost(PyObject *object, PyObject *error)
{
	return weftpy_none(weftpy_tls_lost(protocol_of(object), error));
}

static PyObject *
protocol_get_buffer(PyObject *object, PyObject *Py_UNUSED(hint))
{
	char *at;
	Py_ssize_t size;

	if (weftpy_tls_buffer(object, &at, &size) < 0)
		return NULL;
	return PyMemoryView_FromObject((PyObject *)protocol_of(object)->span);
}

static PyObject *
protocol_buffer_updated(PyObject *object, PyObject *number)
{
	struct tls_protocol *self = protocol_of(object);
	Py_ssize_t count = PyNumber_AsSsize_t(number, NULL);

	if (count == -1 && PyErr_Occurred())
		return NULL;
	if (!self->span) /* the connection was lost meanwhile */
		return weftpy_none(weftpy_tls_advance(self, 0));
	if (count < 0 || count > self->span->size) {
		PyErr_SetString(PyExc_ValueError, "buffer_updated(): nbytes is out of range");
		return NULL;
	}
	return weftpy_none(weftpy_tls_received(object, count));
}

static PyObject *
protocol_eof_received(PyObject *object, PyObject *Py_UNUSED(unused))
{
	int rc = weftpy_tls_eof_received(protocol_of(object));

	if (rc > 0)
		Py_RETURN_TRUE;
	return weftpy_none(rc);
}

static PyObject *
protocol_pause_writing(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *self = protocol_of(object);

	if (self->ssl_writing_paused) {
		PyErr_SetNone(PyExc_AssertionError);
		return NULL;
	}
	self->ssl_writing_paused = true;
	Py_RETURN_NONE;
}

static PyObject *
protocol_resume_writing(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *self = protocol_of(object);

	if (!self->ssl_writing_paused) {
		PyErr_SetNone(PyExc_AssertionError);
		return NULL;
	}
	self->ssl_writing_paused = false;
	return weftpy_none(weftpy_tls_send(self));
}

/* --- methods of asyncio's class --------------------------------------------------- */

static PyObject *
protocol_get_app_transport(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *self = protocol_of(object);

	if (make_app_transport(self) < 0)
		return NULL;
	return Py_NewRef((PyObject *)self->app_transport);
}

static PyObject *
protocol_set_app_protocol(PyObject *object, PyObject *app_protocol)
{
	return weftpy_none(weftpy_tls_set_app_protocol(protocol_of(object), app_protocol));
}

PyObject *
weftpy_tls_extra_info(struct tls_protocol *self, PyObject *name, PyObject *other)
{
	PyObject *value = PyDict_GetItemWithError(self->extra, name);

	if (value || PyErr_Occurred())
		return Py_XNewRef(value);
	if (!self->transport)
		return Py_NewRef(other);
	return weftpy_call_two(self->transport, self->state->names.get_extra_info, name, other);
}

static PyObject *
protocol_get_extra_info(PyObject *object, PyObject *args)
{
	PyObject *name, *other = Py_None;

	if (!PyArg_ParseTuple(args, "O|O:_get_extra_info", &name, &other))
		return NULL;
	return weftpy_tls_extra_info(protocol_of(object), name, other);
}

static PyObject *
protocol_start_shutdown(PyObject *object, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(weftpy_tls_start_shutdown(protocol_of(object)));
}

static PyObject *
protocol_abort(PyObject *object, PyObject *args)
{
	PyObject *error = Py_None;

	if (!PyArg_ParseTuple(args, "|O:_abort", &error))
		return NULL;
	return weftpy_none(weftpy_tls_abort(protocol_of(object), error));
}

static PyObject *
protocol_fatal_error(PyObject *object, PyObject *args)
{
	const char *message = "Fatal error on transport";
	PyObject *error;

	if (!PyArg_ParseTuple(args, "O|s:_fatal_error", &error, &message))
		return NULL;
	return weftpy_none(weftpy_tls_fatal_error(protocol_of(object), error, message));
}

static PyObject *
protocol_check_handshake_timeout(PyObject *object, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(weftpy_tls_handshake_late(protocol_of(object)));
}

static PyObject *
protocol_check_shutdown_timeout(PyObject *object, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(weftpy_tls_shutdown_late(protocol_of(object)));
}

static PyObject *
protocol_do_read(PyObject *object, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(weftpy_tls_read(protocol_of(object), 0));
}

static PyObject *
protocol_resume(PyObject *object, PyObject *Py_UNUSED(unused))
{
	struct tls_protocol *self = protocol_of(object);

	if (self->phase == DO_HANDSHAKE)
		Py_RETURN_NONE;
	return weftpy_none(weftpy_tls_advance(self, 0));
}

static PyObject *
protocol_write_appdata(PyObject *object, PyObject *lines)
{
	return weftpy_none(weftpy_tls_write_lines(protocol_of(object), lines));
}

/* --- attributes ------------------------------------------------------------------- */

static PyObject *
enum_member(struct tls_protocol *self, PyObject *type_name, const char *member)
{
	PyObject *type = PyObject_GetAttr(self->state->sslproto, type_name);
	PyObject *value = type ? PyObject_GetAttrString(type, member) : NULL;

	Py_XDECREF(type);
	return value;
}

static PyObject *
protocol_state(PyObject *object, void *Py_UNUSED(unused))
{
	static const char *const names[] = { "UNWRAPPED", "DO_HANDSHAKE", "WRAPPED", "FLUSHING",
		                             "SHUTDOWN" };
	struct tls_protocol *self = protocol_of(object);

	return enum_member(self, self->state->names.SSLProtocolState, names[self->phase]);
}

static PyObject *
protocol_app_state(PyObject *object, void *Py_UNUSED(unused))
{
	static const char *const names[] = { "STATE_INIT", "STATE_CON_MADE", "STATE_EOF",
		                             "STATE_CON_LOST" };
	struct tls_protocol *self = protocol_of(object);

	return enum_member(self, self->state->names.AppProtocolState, names[self->app_phase]);
}

static PyObject *
protocol_is_buffer(PyObject *object, void *Py_UNUSED(unused))
{
	return PyBool_FromLong(protocol_of(object)->get_buffer != NULL);
}

static PyObject *
protocol_sslobj(PyObject *object, void *Py_UNUSED(unused))
{
	return Py_NewRef(protocol_of(object)->sslobj);
}

/* For asyncio's tests.  Never allowed while OpenSSL is running, because its callbacks are Python
 * code. */
static int
protocol_set_sslobj(PyObject *object, PyObject *value, void *Py_UNUSED(unused))
{
	struct tls_protocol *self = protocol_of(object);

	if (!value || self->transport || self->lost_writes) {
		PyErr_SetString(PyExc_AttributeError,
		                "_sslobj can be set only before connection_made()");
		return -1;
	}
	return set_sslobj(self, value);
}

#define MEMBER(name, kind, field)                                                \
	{                                                                        \
		name, kind, offsetof(struct tls_protocol, field), READONLY, NULL \
	}
#define OBJECT(name, field) MEMBER(name, T_OBJECT, field)
#define FLAG(name, field)   MEMBER(name, T_BOOL, field)
#define SIZE(name, field)   MEMBER(name, T_PYSSIZET, field)

static PyMemberDef protocol_members[] = {
	OBJECT("_loop", loop),
	OBJECT("_app_protocol", app_protocol),
	OBJECT("_app_transport", app_transport),
	OBJECT("_transport", transport),
	OBJECT("_waiter", waiter),
	OBJECT("_sslcontext", context),
	OBJECT("_server_hostname", server_hostname),
	OBJECT("_extra", extra),
	OBJECT("_incoming", incoming),
	OBJECT("_outgoing", outgoing),
	OBJECT("_ssl_handshake_timeout", handshake_timeout),
	OBJECT("_ssl_shutdown_timeout", shutdown_timeout),
	OBJECT("_handshake_timeout_handle", handshake_handle),
	OBJECT("_shutdown_timeout_handle", shutdown_handle),
	OBJECT("_handshake_start_time", handshake_start),
	FLAG("_server_side", server_side),
	FLAG("_eof_received", eof_received),
	FLAG("_ssl_writing_paused", ssl_writing_paused),
	FLAG("_ssl_reading_paused", ssl_reading_paused),
	FLAG("_app_writing_paused", app_writing_paused),
	FLAG("_app_reading_paused", app_reading_paused),
	SIZE("_write_buffer_size", backlog.bytes),
	SIZE("_incoming_high_water", incoming_limits.high),
	SIZE("_incoming_low_water", incoming_limits.low),
	SIZE("_outgoing_high_water", outgoing_limits.high),
	SIZE("_outgoing_low_water", outgoing_limits.low),
	SIZE("__weaklistoffset__", weak),
	MEMBER("_conn_lost", T_UINT, lost_writes),
	{ NULL, 0, 0, 0, NULL },
};

static PyGetSetDef protocol_getset[] = {
	{ "_state", protocol_state, NULL, NULL, NULL },
	{ "_app_state", protocol_app_state, NULL, NULL, NULL },
	{ "_app_protocol_is_buffer", protocol_is_buffer, NULL, NULL, NULL },
	{ "_sslobj", protocol_sslobj, protocol_set_sslobj, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef protocol_methods[] = {
	{ "connection_made", protocol_connection_made, METH_O, NULL },
	{ "connection_lost", protocol_connection_lost, METH_O, NULL },
	{ "get_buffer", protocol_get_buffer, METH_O, NULL },
	{ "buffer_updated", protocol_buffer_updated, METH_O, NULL },
	{ "eof_received", protocol_eof_received, METH_NOARGS, NULL },
	{ "pause_writing", protocol_pause_writing, METH_NOARGS, NULL },
	{ "resume_writing", protocol_resume_writing, METH_NOARGS, NULL },
	{ "_get_app_transport", protocol_get_app_transport, METH_NOARGS, NULL },
	{ "_set_app_protocol", protocol_set_app_protocol, METH_O, NULL },
	{ "_get_extra_info", protocol_get_extra_info, METH_VARARGS, NULL },
	{ "_start_shutdown", protocol_start_shutdown, METH_NOARGS, NULL },
	{ "_abort", protocol_abort, METH_VARARGS, NULL },
	{ "_fatal_error", protocol_fatal_error, METH_VARARGS, NULL },
	{ "_check_handshake_timeout", protocol_check_handshake_timeout, METH_NOARGS, NULL },
	{ "_check_shutdown_timeout", protocol_check_shutdown_timeout, METH_NOARGS, NULL },
	{ "_do_read", protocol_do_read, METH_NOARGS, NULL },
	{ "_resume", protocol_resume, METH_NOARGS, NULL },
	{ "_write_appdata", protocol_write_appdata, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot protocol_slots[] = {
	{ Py_tp_doc, "TLS between a transport and the protocol of a program." },
	{ Py_tp_new, protocol_new },
	{ Py_tp_init, protocol_init_again },
	{ Py_tp_dealloc, protocol_dealloc },
	{ Py_tp_traverse, protocol_traverse },
	{ Py_tp_clear, protocol_clear },
	{ Py_tp_members, protocol_members },
	{ Py_tp_getset, protocol_getset },
	{ Py_tp_methods, protocol_methods },
	{ 0, NULL },
};

static PyType_Spec protocol_spec = {
	.name = "weft._core.TLSProtocol",
	.basicsize = sizeof(struct tls_protocol),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.slots = protocol_slots,
};

int
weftpy_tls_check(PyObject *protocol)
{
	return Py_TYPE(protocol)->tp_dealloc == protocol_dealloc;
}

int
weftpy_tls_protocol_exec(PyObject *module, struct weftpy_tls_state *state)
{
	PyObject *size = PyLong_FromLong(TLS_SPAN_BYTES);
	int rc = -1;

	state->protocol_type = weftpy_make_type(module, &protocol_spec, "asyncio",
	                                        "BufferedProtocol", sizeof(PyObject));
	if (state->protocol_type && size)
		rc = PyObject_SetAttrString((PyObject *)state->protocol_type, "max_size", size);
	Py_XDECREF(size);
	return rc;
}
