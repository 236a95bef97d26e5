/* py_stream.c - Stream: the transport of a connected socket.
 *
 * It is a subclass of asyncio.Transport, through the mixin that asyncio's sendfile() requires,
 * and the base of weft.SocketTransport, which adds in Python what happens once per connection.
 * The invariants are in py_stream.h.
 */
#include "py_stream.h"
#include <structmember.h>
#include <sys/socket.h>

static struct stream *
stream_of(PyObject *self)
{
	return (struct stream *)self;
}

/* --- the watch ------------------------------------------------------------ */

static void
on_ready(weft_watch *Py_UNUSED(watch), int what, void *arg)
{
	struct stream *s = arg;

	if (what < 0) { /* the loop is ending */
		s->watching = false;
		s->armed = 0;
		return;
	}
	if (what & (WEFT_EV_HUP | WEFT_EV_ERROR))
		what |= WEFT_READABLE | WEFT_WRITABLE;
	s->ready |= (uint32_t)what & s->armed;
	if (s->in_ring || !s->ready)
		return;
	if (weftpy_ring_push(s->core, (PyObject *)s) == 0)
		s->in_ring = true;
	else
		PyErr_Clear(); /* readiness is reported again */
}

/* May free the transport, unless the caller holds a reference. */
static void
unwatch(struct stream *s)
{
	if (s->watching)
		(void)weft_watch_stop(&s->watch);
	s->watching = false;
	s->armed = s->ready = 0;
	if (!s->listed)
		return;
	s->listed = false;
	weft__link_remove(&s->link);
	Py_DECREF(s);
}

/* Arms the watch for the events that are wanted now. */
int
weftpy_stream_update(struct stream *s)
{
	uint32_t events = (s->reading && !s->paused && !s->closing ? WEFT_READABLE : 0)
	                  | (s->count > 0 && s->lost == 0 ? WEFT_WRITABLE : 0);
	int rc;

	if (events == s->armed || !s->core)
		return 0;
	if (!events) {
		unwatch(s);
		return 0;
	}
	if (!weftpy_is_open(s->core))
		return -1;
	rc = weft_watch_start(s->core->loop, &s->watch, s->fd, events, on_ready, s);
	if (rc < 0) {
		weftpy_error(rc);
		return -1;
	}
	if (events & ~s->armed)
		s->core->polled_ns = 0;
	s->watching = true;
	s->armed = events;
	s->ready &= events;
	if (!s->listed) {
		s->listed = true;
		weft__link_after(&s->core->streams, &s->link);
		Py_INCREF(s);
	}
	return 0;
}

/* Used when the loop ends: the protocols are not notified. */
void
weftpy_streams_clear(struct loop_core *core)
{
	while (!weft__list_is_empty(&core->streams))
		unwatch(WEFT__LINK_OF(stream, link, core->streams.next));
}

int
weftpy_streams_traverse(struct loop_core *core, visitproc visit, void *arg)
{
	for (struct weft__link *at = core->streams.next; at != &core->streams; at = at->next)
		Py_VISIT(WEFT__LINK_OF(stream, link, at));
	return 0;
}

/* --- running -------------------------------------------------------------- */

static int
run_events(struct stream *s, uint32_t ready)
{
	int rc = 0;

	if ((ready & WEFT_READABLE) && (s->armed & WEFT_READABLE) && s->lost == 0)
		rc = weftpy_stream_read(s);
	if (rc == 0 && (ready & WEFT_WRITABLE) && s->count > 0 && s->lost == 0 && s->core)
		rc = weftpy_stream_flush(s);
	return rc;
}

int
weftpy_stream_run(PyObject *self)
{
	struct stream *s = stream_of(self);
	struct loop_core *core = s->core;
	PyObject *context = s->context;
	uint32_t ready = s->ready;
	int rc;

	s->ready = 0;
	s->in_ring = false;
	if (!core || !context)
		return 0;
	Py_INCREF(core);
	Py_INCREF(context);
	rc = PyContext_Enter(context);
	if (rc == 0) {
		rc = run_events(s, ready);
		(void)PyContext_Exit(context); /* cannot fail: we have entered it */
	}
	if (rc < 0)
		rc = weftpy_report_failed(core, self);
	Py_DECREF(context);
	Py_DECREF(core);
	return rc;
}

static PyObject *
stream_run(PyObject *self, PyObject *Py_UNUSED(unused))
{
	int rc;

	Py_INCREF(self);
	rc = weftpy_stream_run(self);
	Py_DECREF(self);
	return weftpy_none(rc);
}

/* --- the end -------------------------------------------------------------- */

static int
plan_lost(struct stream *s, PyObject *error)
{
	PyObject *call = PyObject_GetAttr((PyObject *)s,
	                                  s->core->state->names._call_connection_lost);
	int rc;

	if (!call)
		return -1;
	s->lost++;
	rc = weftpy_call_soon(s->core, call, error, s->context_given ? s->context : NULL);
	Py_DECREF(call);
	return rc;
}

int
weftpy_stream_close(struct stream *s)
{
	if (s->closing || !s->core)
		return 0;
	s->closing = true;
	if (s->count == 0 && plan_lost(s, Py_None) < 0)
		return -1;
	return weftpy_stream_update(s);
}

static PyObject *
stream_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(weftpy_stream_close(stream_of(self)));
}

static PyObject *
stream_force_close(PyObject *self, PyObject *error)
{
	struct stream *s = stream_of(self);

	if (s->lost > 0 || !s->core)
		Py_RETURN_NONE;
	weftpy_stream_drop_queue(s);
	s->closing = true;
	if (plan_lost(s, error) < 0 || weftpy_stream_update(s) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *
stream_abort(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return stream_force_close(self, Py_None);
}

/* Reports the current exception, and ends the connection with it. */
int
weftpy_stream_fatal(struct stream *s, const char *message)
{
	PyObject *error = weftpy_fetch_exception();
	PyObject *text = PyUnicode_FromString(message);
	int rc = text ? 0 : -1;

	if (text && s->core) /* else it has already ended */
		rc = weftpy_done(weftpy_call_two((PyObject *)s, s->core->state->names._fatal_error,
		                                 error, text));
	Py_XDECREF(error);
	Py_XDECREF(text);
	return rc;
}

/* Ends the connection: drops the references to the loop and the protocol. */
static PyObject *
stream_release(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct stream *s = stream_of(self);
	struct loop_core *core = s->core;

	if (core)
		core->polled_ns = 0;
	unwatch(s);
	weftpy_stream_drop_queue(s);
	s->core = NULL;
	s->fd = -1;
	s->closing = true;
	s->lost++;
	Py_CLEAR(s->sock);
	Py_CLEAR(s->protocol);
	Py_CLEAR(s->server);
	Py_CLEAR(s->context);
	Py_XDECREF(core);
	Py_RETURN_NONE;
}

/* --- reading and writing -------------------------------------------------- */

static PyObject *
stream_start_reading(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct stream *s = stream_of(self);

	s->reading = true;
	return weftpy_none(weftpy_stream_update(s));
}

static int
set_paused(struct stream *s, bool paused)
{
	int rc = 0;

	if (s->closing || s->paused == paused)
		return 0;
	s->paused = paused;
	rc = weftpy_stream_update(s);
	if (rc < 0)
		s->paused = !paused;
	return rc;
}

static PyObject *
pause_reading(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(set_paused(stream_of(self), true));
}

static PyObject *
resume_reading(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return weftpy_none(set_paused(stream_of(self), false));
}

static PyObject *
is_reading(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyBool_FromLong(!stream_of(self)->paused && !stream_of(self)->closing);
}

static PyObject *
is_closing(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyBool_FromLong(stream_of(self)->closing);
}

static PyObject *
stream_write(PyObject *self, PyObject *data)
{
	return weftpy_none(weftpy_stream_write(self, data));
}

static PyObject *
stream_writelines(PyObject *self, PyObject *items)
{
	return weftpy_none(weftpy_stream_writelines(stream_of(self), items));
}

static PyObject *
write_eof(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct stream *s = stream_of(self);

	if (s->closing || s->eof || !s->core)
		Py_RETURN_NONE;
	s->eof = true;
	s->core->polled_ns = 0;
	if (s->count == 0 && shutdown(s->fd, SHUT_WR) < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

static PyObject *
get_write_buffer_size(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return PyLong_FromSize_t(stream_of(self)->queued);
}

static PyObject *
set_marks(PyObject *self, PyObject *args)
{
	struct stream *s = stream_of(self);
	Py_ssize_t high, low;

	if (!PyArg_ParseTuple(args, "nn", &high, &low))
		return NULL;
	s->high = (size_t)high;
	s->low = (size_t)low;
	return weftpy_none(weftpy_stream_maybe_pause(s));
}

/* --- the protocol --------------------------------------------------------- */

static PyObject *
set_protocol(PyObject *self, PyObject *protocol)
{
	struct stream *s = stream_of(self);
	PyObject *module = PyType_GetModuleByDef(Py_TYPE(self), &weftpy_module);
	struct weftpy_state *state = weftpy_state_of(module);
	int buffered = PyObject_IsInstance(protocol, state->buffered_type);

	if (buffered < 0)
		return NULL;
	s->taker = weftpy_tls_check(protocol)                          ? TAKES_TLS
	           : buffered                                          ? TAKES_BUFFER
	           : Py_IS_TYPE(protocol, state->reader.protocol_type) ? TAKES_STREAM
	                                                               : TAKES_BYTES;
	s->connected = true;
	Py_XSETREF(s->protocol, Py_NewRef(protocol));
	Py_RETURN_NONE;
}

static PyObject *
get_protocol(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return weftpy_or_none(stream_of(self)->protocol);
}

/* _start(loop, sock, protocol, server, context): if context is None, callbacks run in a copy of
 * the current context. */
static PyObject *
stream_start(PyObject *self, PyObject *args)
{
	struct stream *s = stream_of(self);
	PyObject *loop, *sock, *protocol, *server, *context, *result;
	PyTypeObject *type;

	if (!PyArg_ParseTuple(args, "OOOOO", &loop, &sock, &protocol, &server, &context))
		return NULL;
	type = weftpy_state_of(PyType_GetModuleByDef(Py_TYPE(self), &weftpy_module))->loop_type;
	if (!PyObject_TypeCheck(loop, type) || s->core) {
		PyErr_SetString(PyExc_TypeError,
		                "Stream._start() needs a weft loop, and can be called only once");
		return NULL;
	}
	s->fd = PyObject_AsFileDescriptor(sock);
	if (s->fd < 0)
		return NULL;
	s->context_given = context != Py_None;
	Py_XSETREF(s->context, s->context_given ? Py_NewRef(context) : PyContext_CopyCurrent());
	if (!s->context)
		return NULL;
	result = set_protocol(self, protocol);
	if (!result)
		return NULL;
	Py_DECREF(result);
	s->core = (struct loop_core *)Py_NewRef(loop);
	weftpy_fd_forget(s->core, s->fd); /* ends readers and waits of a former socket */
	s->sock = Py_NewRef(sock);
	s->server = Py_NewRef(server);
	Py_RETURN_NONE;
}

/* --- the type ------------------------------------------------------------- */

static int
stream_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct stream *s = stream_of(self);

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(s->extra);
	Py_VISIT(s->core);
	Py_VISIT(s->sock);
	Py_VISIT(s->protocol);
	Py_VISIT(s->server);
	Py_VISIT(s->context);
	Py_VISIT(s->empty_waiter);
	return 0;
}

/* The watch is stopped by the loop, or when the transport is freed. */
static int
stream_clear(PyObject *self)
{
	struct stream *s = stream_of(self);

	Py_CLEAR(s->extra);
	Py_CLEAR(s->sock);
	Py_CLEAR(s->protocol);
	Py_CLEAR(s->server);
	Py_CLEAR(s->context);
	Py_CLEAR(s->empty_waiter);
	return 0;
}

static void
stream_dealloc(PyObject *self)
{
	struct stream *s = stream_of(self);
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	if (s->weak)
		PyObject_ClearWeakRefs(self);
	if (s->watching)
		(void)weft_watch_stop(&s->watch);
	weftpy_stream_drop_queue(s);
	PyMem_Free(s->queue);
	(void)stream_clear(self);
	Py_CLEAR(s->core);
	type->tp_free(self);
	Py_DECREF(type);
}

#define MEMBER(name, kind, field, flags)                                \
	{                                                               \
		name, kind, offsetof(struct stream, field), flags, NULL \
	}

static PyMemberDef stream_members[] = {
	MEMBER("__weaklistoffset__", T_PYSSIZET, weak, READONLY),
	MEMBER("_loop", T_OBJECT, core, READONLY),
	MEMBER("_empty_waiter", T_OBJECT, empty_waiter, 0),
	MEMBER("_sock", T_OBJECT, sock, READONLY),
	MEMBER("_sock_fd", T_INT, fd, READONLY),
	MEMBER("_protocol", T_OBJECT, protocol, READONLY),
	MEMBER("_server", T_OBJECT, server, READONLY),
	MEMBER("_conn_lost", T_INT, lost, READONLY),
	MEMBER("_closing", T_BOOL, closing, READONLY),
	MEMBER("_paused", T_BOOL, paused, READONLY),
	MEMBER("_eof", T_BOOL, eof, READONLY),
	MEMBER("_protocol_connected", T_BOOL, connected, READONLY),
	MEMBER("_protocol_paused", T_BOOL, protocol_paused, READONLY),
	MEMBER("_high_water", T_PYSSIZET, high, READONLY),
	MEMBER("_low_water", T_PYSSIZET, low, READONLY),
	{ 0 },
};

static PyMethodDef stream_methods[] = {
	{ "write", stream_write, METH_O, NULL },
	{ "writelines", stream_writelines, METH_O, NULL },
	{ "write_eof", write_eof, METH_NOARGS, NULL },
	{ "close", stream_close, METH_NOARGS, NULL },
	{ "abort", stream_abort, METH_NOARGS, NULL },
	{ "is_closing", is_closing, METH_NOARGS, NULL },
	{ "is_reading", is_reading, METH_NOARGS, NULL },
	{ "pause_reading", pause_reading, METH_NOARGS, NULL },
	{ "resume_reading", resume_reading, METH_NOARGS, NULL },
	{ "set_protocol", set_protocol, METH_O, NULL },
	{ "get_protocol", get_protocol, METH_NOARGS, NULL },
	{ "get_write_buffer_size", get_write_buffer_size, METH_NOARGS, NULL },
	{ "_set_marks", set_marks, METH_VARARGS, NULL },
	{ "_start", stream_start, METH_VARARGS, NULL },
	{ "_start_reading", stream_start_reading, METH_NOARGS, NULL },
	{ "_force_close", stream_force_close, METH_O, NULL },
	{ "_release", stream_release, METH_NOARGS, NULL },
	{ "_run", stream_run, METH_NOARGS, NULL },
	{ 0 },
};

static PyType_Slot stream_slots[] = {
	{ Py_tp_traverse, stream_traverse }, { Py_tp_clear, stream_clear },
	{ Py_tp_dealloc, stream_dealloc },   { Py_tp_methods, stream_methods },
	{ Py_tp_members, stream_members },   { 0, NULL },
};

static PyType_Spec stream_spec = {
	.name = "weft._core.Stream",
	.basicsize = sizeof(struct stream),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
	.slots = stream_slots,
};

int
weftpy_stream_check(struct weftpy_state *state, PyObject *object)
{
	return PyObject_TypeCheck(object, state->stream_type);
}

int
weftpy_stream_exec(PyObject *module, struct weftpy_state *state)
{
	state->stream_type = weftpy_make_type(module, &stream_spec, "asyncio.transports",
	                                      "_FlowControlMixin", offsetof(struct stream, weak));
	return state->stream_type ? 0 : -1;
}
