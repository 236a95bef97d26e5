/* tls.c - the state of TLS in weft._core, and the entry points for transports in C. */
#include <stddef.h>
#include "tls_protocol.h"

/* --- the state -------------------------------------------------------------------- */

static int
make_names(struct weftpy_tls_state *state)
{
#define TEXT(name) #name,
	static const char *const texts[] = { WEFTPY_TLS_NAMES(TEXT) };
#undef TEXT
	PyObject **names = (PyObject **)&state->names;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		names[i] = PyUnicode_InternFromString(texts[i]);
		if (!names[i])
			return -1;
	}
	state->empty = PyBytes_FromStringAndSize(NULL, 0);
	state->wrap_names = Py_BuildValue("(ss)", "server_side", "server_hostname");
	state->exc_info_name = Py_BuildValue("(s)", "exc_info");
	return state->empty && state->wrap_names && state->exc_info_name ? 0 : -1;
}

/* An attribute of a module or a type, and the member to store it in. */
struct wanted {
	const char *name;
	PyObject **place;
};

static int
fetch(PyObject *from, const struct wanted *wanted)
{
	for (; wanted->name; wanted++) {
		*wanted->place = PyObject_GetAttrString(from, wanted->name);
		if (!*wanted->place)
			return -1;
	}
	return 0;
}

static int
fetch_from(const char *module, const struct wanted *wanted)
{
	PyObject *imported = PyImport_ImportModule(module);
	int rc = imported ? fetch(imported, wanted) : -1;

	Py_XDECREF(imported);
	return rc;
}

/* Imports from asyncio. */
static int
import_asyncio(struct weftpy_tls_state *state)
{
	const struct wanted names[] = {
		{ "BufferedProtocol", &state->buffered_type },
		{ "CancelledError", &state->cancelled_error },
		{ "constants", &state->constants },
		{ "sslproto", &state->sslproto },
		{ NULL, NULL },
	};
	const struct wanted log[] = {
		{ "logger", &state->logger },
		{ NULL, NULL },
	};

	if (fetch_from("asyncio", names) < 0)
		return -1;
	return fetch_from("asyncio.log", log);
}

/* Imports the type of the object that wraps OpenSSL.  It is not part of the documented interface
 * of ssl; if it is not as expected, the code does without it. */
static int
import_inner(struct weftpy_tls_state *state)
{
	PyObject *type = NULL;
	const struct wanted types[] = {
		{ "_SSLSocket", &type },
		{ NULL, NULL },
	};
	const struct wanted methods[] = {
		{ "read", &state->inner_read },
		{ "write", &state->inner_write },
		{ "pending", &state->inner_pending },
		{ NULL, NULL },
	};

	if (fetch_from("_ssl", types) == 0 && fetch(type, methods) == 0) {
		state->inner_type = type;
		return 0;
	}
	Py_XDECREF(type);
	if (!PyErr_ExceptionMatches(PyExc_ImportError)
	    && !PyErr_ExceptionMatches(PyExc_AttributeError))
		return -1;
	PyErr_Clear();
	return 0;
}

/* Imports from ssl; does nothing if there is no ssl module. */
static int
import_ssl(struct weftpy_tls_state *state)
{
	PyObject *object_type = NULL;
	const struct wanted names[] = {
		{ "SSLError", &state->ssl_error },
		{ "CertificateError", &state->certificate_error },
		{ "SSLWantReadError", &state->want_read },
		{ "SSLSyscallError", &state->syscall_error },
		{ "SSLObject", &object_type },
		{ "MemoryBIO", &state->bio_type },
		{ NULL, NULL },
	};
	const struct wanted bio[] = {
		{ "read", &state->bio_read },
		{ "write", &state->bio_write },
		{ NULL, NULL },
	};
	const struct wanted object[] = {
		{ "read", &state->object_read },
		{ "write", &state->object_write },
		{ NULL, NULL },
	};
	int rc = fetch_from("ssl", names);

	if (rc < 0 && PyErr_ExceptionMatches(PyExc_ImportError)) {
		PyErr_Clear();
		return 0;
	}
	if (rc == 0 && fetch(state->bio_type, bio) == 0 && fetch(object_type, object) == 0)
		rc = import_inner(state);
	else
		rc = -1;
	Py_XDECREF(object_type);
	return rc;
}

int
weftpy_tls_exec(PyObject *module, struct weftpy_tls_state *state)
{
	if (make_names(state) < 0 || import_asyncio(state) < 0 || import_ssl(state) < 0)
		return -1;
	if (weftpy_tls_span_exec(module, state) < 0 || weftpy_tls_transport_exec(module, state) < 0)
		return -1;
	return weftpy_tls_protocol_exec(module, state);
}

/* Every member is a pointer to an object. */
#define MEMBER_COUNT (sizeof(struct weftpy_tls_state) / sizeof(PyObject *))

int
weftpy_tls_traverse(struct weftpy_tls_state *state, visitproc visit, void *arg)
{
	PyObject **members = (PyObject **)state;

	for (size_t i = 0; i < MEMBER_COUNT; i++)
		Py_VISIT(members[i]);
	return 0;
}

void
weftpy_tls_clear(struct weftpy_tls_state *state)
{
	PyObject **members = (PyObject **)state;

	for (size_t i = 0; i < MEMBER_COUNT; i++)
		Py_CLEAR(members[i]);
}

/* --- for transports --------------------------------------------------------------- */

int
weftpy_tls_buffer(PyObject *protocol, char **at, Py_ssize_t *size)
{
	struct tls_protocol *self = (struct tls_protocol *)protocol;

	if (!self->span)
		self->span = weftpy_tls_span_take(self->state);
	if (!self->span)
		return -1;
	*at = self->span->memory;
	*size = TLS_SPAN_BYTES;
	return 0;
}

/* Copies the received data to the BIO that OpenSSL reads from, and gives the memory back. */
static int
feed(struct tls_protocol *self, Py_ssize_t count)
{
	struct weftpy_tls_span *span = self->span;
	PyObject *args[] = { self->incoming, (PyObject *)span };
	int rc = 0;

	if (count) {
		span->size = count;
		rc = tls_done(PyObject_Vectorcall(self->state->bio_write, args, 2, NULL));
		span->size = TLS_SPAN_BYTES;
	}
	weftpy_tls_span_give(self->state, &self->span);
	return rc;
}

int
weftpy_tls_received(PyObject *protocol, Py_ssize_t count)
{
	struct tls_protocol *self = (struct tls_protocol *)protocol;
	int rc;

	if (!self->span || count < 0 || count > TLS_SPAN_BYTES) {
		PyErr_BadInternalCall();
		return -1;
	}
	Py_INCREF(protocol);
	rc = feed(self, count);
	if (rc == 0 && count)
		rc = weftpy_tls_advance(self, count);
	Py_DECREF(protocol);
	return rc;
}
