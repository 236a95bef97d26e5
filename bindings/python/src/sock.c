/* sock.c - SockCall: the awaitable that sock_recv() and sock_sendall() return.
 *
 * A coroutine in C: it tries the system call, and while that would block it awaits a future of
 * py_fds.c.  It creates no exception when a call would block, which is most of the cost of such a
 * call in Python.  It handles only plain socket objects: a subclass may behave differently, and
 * is handled by the Python methods.
 *
 *   1. Nothing happens before it is awaited.
 *   2. While it waits, `future` is the future it waits for and `iter` its iterator; otherwise
 *      they are NULL.  If it is ended from outside, it cancels the future, so that others can
 *      wait for the socket.
 *   3. After it has returned or raised it is finished, and awaiting it again is an error.
 */
#include "core.h"
#include <errno.h>
#include <structmember.h>
#include <sys/socket.h>

enum kind { RECEIVES, SENDS };

struct sock_call {
	PyObject_HEAD struct loop_core *core;
	PyObject *sock; /* NULL once it is finished */
	PyObject *iter, *future;
	PyObject *name;  /* of the method, shown when tasks are inspected */
	Py_buffer view;  /* of the data to send; view.obj is NULL before the first try */
	PyObject *data;  /* the object to send */
	Py_ssize_t done; /* bytes sent */
	Py_ssize_t size; /* most bytes to receive */
	enum kind kind;
};

static void
over(struct sock_call *call)
{
	Py_CLEAR(call->iter);
	Py_CLEAR(call->future);
	Py_CLEAR(call->sock);
	Py_CLEAR(call->data);
	if (call->view.obj)
		PyBuffer_Release(&call->view);
}

/* --- system calls: 1 with a result, 0 if it would block, -1 with an exception ----- */

static int
would_block(void)
{
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	PyErr_SetFromErrno(PyExc_OSError);
	return -1;
}

static int
try_receive(struct sock_call *call, int fd, PyObject **out)
{
	char *at = call->core->scratch;
	ssize_t count;

	if (call->size > WEFTPY_SCRATCH) {
		*out = PyBytes_FromStringAndSize(NULL, call->size);
		if (!*out)
			return -1;
		at = PyBytes_AS_STRING(*out);
	}
	count = recv(fd, at, (size_t)call->size, MSG_DONTWAIT);
	if (count < 0) {
		Py_CLEAR(*out);
		return would_block();
	}
	if (!*out)
		*out = PyBytes_FromStringAndSize(at, count);
	else if (count < call->size)
		(void)_PyBytes_Resize(out, count); /* sets *out to NULL on failure */
	return *out ? 1 : -1;
}

static int
try_send(struct sock_call *call, int fd, PyObject **out)
{
	if (!call->view.obj && PyObject_GetBuffer(call->data, &call->view, PyBUF_SIMPLE) < 0)
		return -1;
	call->core->polled_ns = 0;
	do {
		ssize_t count = send(fd, (char *)call->view.buf + call->done,
		                     (size_t)(call->view.len - call->done),
		                     MSG_NOSIGNAL | MSG_DONTWAIT);

		if (count < 0)
			return would_block();
		call->done += count;
	} while (call->done < call->view.len);
	*out = Py_NewRef(Py_None);
	return 1;
}

static int
try_call(struct sock_call *call, PyObject **out)
{
	int fd = PyObject_AsFileDescriptor(call->sock);

	*out = NULL;
	if (fd < 0 && PyErr_ExceptionMatches(PyExc_ValueError)) {
		PyErr_Clear(); /* the socket was closed */
		errno = EBADF;
		return would_block();
	}
	if (fd < 0)
		return -1;
	return call->kind == SENDS ? try_send(call, fd, out) : try_receive(call, fd, out);
}

static int
begin_wait(struct sock_call *call)
{
	PyObject *future = weftpy_fd_wait(call->core, call->kind == SENDS, call->sock);

	if (!future)
		return -1;
	/* An asyncio future is its own iterator. */
	call->iter = PyObject_GetIter(future);
	call->future = future;
	return call->iter ? 0 : -1;
}

/* --- as a coroutine ------------------------------------------------------- */

static PySendResult
step(PyObject *self, PyObject *value, PyObject **out)
{
	struct sock_call *call = (struct sock_call *)self;
	PySendResult sent;
	int rc;

	*out = NULL;
	if (!call->sock) {
		PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
		return PYGEN_ERROR;
	}
	for (;;) {
		if (call->iter) {
			sent = PyIter_Send(call->iter, value, out);
			if (sent == PYGEN_NEXT)
				return PYGEN_NEXT;
			Py_CLEAR(call->iter);
			Py_CLEAR(call->future);
			if (sent == PYGEN_ERROR)
				break;
			Py_CLEAR(*out);
		}
		rc = try_call(call, out);
		if (rc == 0)
			rc = begin_wait(call);
		if (rc < 0)
			break;
		if (rc == 1) {
			over(call);
			return PYGEN_RETURN;
		}
	}
	over(call);
	return PYGEN_ERROR;
}

/* For callers that do not use PyIter_Send(): the result is in a StopIteration. */
static PyObject *
send_method(PyObject *self, PyObject *value)
{
	PyObject *result, *stop;
	PySendResult sent = step(self, value, &result);

	if (sent != PYGEN_RETURN)
		return sent == PYGEN_NEXT ? result : NULL;
	stop = PyObject_CallOneArg(PyExc_StopIteration, result);
	Py_DECREF(result);
	if (stop)
		PyErr_SetObject(PyExc_StopIteration, stop);
	Py_XDECREF(stop);
	return NULL;
}

static PyObject *
next(PyObject *self)
{
	return send_method(self, Py_None);
}

/* Ends the call early, on behalf of its awaiter. */
static void
give_up(struct sock_call *call)
{
	if (call->future
	    && weftpy_done(weftpy_call(call->future, call->core->state->names.cancel)) < 0)
		PyErr_WriteUnraisable(call->future);
	over(call);
}

/* throw(exception), or the deprecated throw(type, value, traceback) */
static PyObject *
throw_method(PyObject *self, PyObject *args)
{
	PyObject *type, *value = NULL, *trace = NULL;

	if (!PyArg_UnpackTuple(args, "throw", 1, 3, &type, &value, &trace))
		return NULL;
	give_up((struct sock_call *)self);
	if (PyExceptionInstance_Check(type))
		PyErr_SetObject((PyObject *)Py_TYPE(type), type);
	else if (PyExceptionClass_Check(type))
		PyErr_SetObject(type, value ? value : Py_None);
	else
		PyErr_SetString(PyExc_TypeError, "exceptions must be classes or instances "
		                                 "deriving from BaseException");
	return NULL;
}

static PyObject *
close_method(PyObject *self, PyObject *Py_UNUSED(unused))
{
	give_up((struct sock_call *)self);
	Py_RETURN_NONE;
}

/* --- creation ------------------------------------------------------------- */

static struct sock_call *
call_new(struct loop_core *core, enum kind kind, PyObject *sock)
{
	PyTypeObject *type = core->state->sock_type;
	struct sock_call *call = PyObject_GC_New(struct sock_call, type);

	if (!call)
		return NULL;
	memset(&call->core, 0, sizeof *call - offsetof(struct sock_call, core));
	call->core = (struct loop_core *)Py_NewRef(core);
	call->sock = Py_NewRef(sock);
	call->kind = kind;
	call->name = Py_NewRef(kind == SENDS ? core->state->names.sock_sendall
	                                     : core->state->names.sock_recv);
	PyObject_GC_Track((PyObject *)call);
	return call;
}

/* Whether this socket is handled in C: a plain socket, and not in debug mode, which makes
 * further checks. */
static bool
sock_is_plain(struct loop_core *core, PyObject *sock)
{
	return (PyObject *)Py_TYPE(sock) == core->state->socket_type && !core->debug;
}

PyObject *
weftpy_sock_recv(struct loop_core *core, PyObject *sock, PyObject *size)
{
	struct sock_call *call;
	Py_ssize_t bytes;

	if (!sock_is_plain(core, sock) || !PyLong_Check(size)
	    || (bytes = PyLong_AsSsize_t(size)) < 0) {
		PyErr_Clear();
		return weftpy_call_two((PyObject *)core, core->state->names._sock_recv, sock, size);
	}
	call = call_new(core, RECEIVES, sock);
	if (call)
		call->size = bytes;
	return (PyObject *)call;
}

PyObject *
weftpy_sock_sendall(struct loop_core *core, PyObject *sock, PyObject *data)
{
	struct sock_call *call;

	if (!sock_is_plain(core, sock))
		return weftpy_call_two((PyObject *)core, core->state->names._sock_sendall, sock,
		                       data);
	call = call_new(core, SENDS, sock);
	if (call)
		call->data = Py_NewRef(data);
	return (PyObject *)call;
}

/* --- the type ------------------------------------------------------------- */

static int
call_traverse(PyObject *self, visitproc visit, void *arg)
{
	struct sock_call *call = (struct sock_call *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(call->core);
	Py_VISIT(call->sock);
	Py_VISIT(call->iter);
	Py_VISIT(call->future);
	Py_VISIT(call->data);
	Py_VISIT(call->view.obj);
	return 0;
}

static int
call_clear(PyObject *self)
{
	over((struct sock_call *)self);
	return 0;
}

static void
call_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	over((struct sock_call *)self);
	Py_CLEAR(((struct sock_call *)self)->core);
	Py_CLEAR(((struct sock_call *)self)->name);
	PyObject_GC_Del(self);
	Py_DECREF(type);
}

static PyMethodDef call_methods[] = {
	{ "send", send_method, METH_O, NULL },
	{ "throw", throw_method, METH_VARARGS, NULL },
	{ "close", close_method, METH_NOARGS, NULL },
	{ 0 },
};

static PyMemberDef call_members[] = {
	{ "__name__", T_OBJECT, offsetof(struct sock_call, name), READONLY, NULL },
	{ "__qualname__", T_OBJECT, offsetof(struct sock_call, name), READONLY, NULL },
	{ 0 },
};

static PyType_Slot call_slots[] = {
	{ Py_tp_traverse, call_traverse },
	{ Py_tp_clear, call_clear },
	{ Py_tp_dealloc, call_dealloc },
	{ Py_tp_methods, call_methods },
	{ Py_tp_members, call_members },
	{ Py_tp_iter, PyObject_SelfIter },
	{ Py_tp_iternext, next },
	{ Py_am_await, PyObject_SelfIter },
	{ Py_am_send, step },
	{ 0, NULL },
};

static PyType_Spec call_spec = {
	.name = "weft._core.SockCall",
	.basicsize = sizeof(struct sock_call),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = call_slots,
};

int
weftpy_sock_exec(PyObject *module, struct weftpy_state *state)
{
	state->sock_type = weftpy_make_type(module, &call_spec, NULL, NULL, 0);
	return state->sock_type ? 0 : -1;
}
