/* tls_span.c - memory that can be passed to C functions of Python.
 *
 * Receive buffers are large, and in use only from when a transport has data to read until that
 * data is passed to OpenSSL.  So connections have none of their own: they take a spare one from
 * the state, and give it back.  A program that has obtained a view of one by get_buffer() may
 * keep it; then the buffer stays with its connection.
 *
 *   1. A spare span has its own memory, and no view of it exists.
 *   2. A span without its own memory has `at` set only during one call of a function that takes
 *      a view of it and releases the view before it returns.
 */
#include "tls_protocol.h"

static int
span_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
	struct weftpy_tls_span *self = (struct weftpy_tls_span *)object;

	if (!self->at) {
		view->obj = NULL;
		PyErr_SetString(PyExc_BufferError, "the buffer is not available now");
		return -1;
	}
	if (PyBuffer_FillInfo(view, object, self->at, self->size, 0, flags) < 0)
		return -1;
	self->exports++;
	return 0;
}

static void
span_release_buffer(PyObject *object, Py_buffer *Py_UNUSED(view))
{
	((struct weftpy_tls_span *)object)->exports--;
}

static void
span_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	PyMem_Free(((struct weftpy_tls_span *)object)->memory);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyType_Slot span_slots[] = {
	{ Py_tp_doc, "Memory that is lent." },
	{ Py_tp_dealloc, span_dealloc },
	{ Py_bf_getbuffer, span_get_buffer },
	{ Py_bf_releasebuffer, span_release_buffer },
	{ 0, NULL },
};

static PyType_Spec span_spec = {
	.name = "weft._core.TLSSpan",
	.basicsize = sizeof(struct weftpy_tls_span),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = span_slots,
};

int
weftpy_tls_span_exec(PyObject *module, struct weftpy_tls_state *state)
{
	state->span_type = weftpy_make_type(module, &span_spec, NULL, NULL, 0);
	return state->span_type ? 0 : -1;
}

struct weftpy_tls_span *
weftpy_tls_span_new(struct weftpy_tls_state *state, bool memory)
{
	struct weftpy_tls_span *self = PyObject_New(struct weftpy_tls_span, state->span_type);

	if (!self)
		return NULL;
	self->at = self->memory = NULL;
	self->size = self->exports = 0;
	if (!memory)
		return self;
	self->memory = PyMem_Malloc(TLS_SPAN_BYTES);
	if (!self->memory) {
		Py_DECREF(self);
		PyErr_NoMemory();
		return NULL;
	}
	self->at = self->memory;
	self->size = TLS_SPAN_BYTES;
	return self;
}

/* A receive buffer. */
struct weftpy_tls_span *
weftpy_tls_span_take(struct weftpy_tls_state *state)
{
	for (int i = 0; i < WEFTPY_TLS_SPARES; i++) {
		struct weftpy_tls_span *span = state->spares[i];

		if (span) {
			state->spares[i] = NULL;
			return span;
		}
	}
	return weftpy_tls_span_new(state, true);
}

/* Gives a receive buffer back, unless a view of it still exists (invariant 1). */
void
weftpy_tls_span_give(struct weftpy_tls_state *state, struct weftpy_tls_span **span)
{
	struct weftpy_tls_span *given = *span;

	if (!given || given->exports)
		return;
	*span = NULL;
	for (int i = 0; i < WEFTPY_TLS_SPARES; i++) {
		if (!state->spares[i]) {
			state->spares[i] = given;
			return;
		}
	}
	Py_DECREF(given);
}
