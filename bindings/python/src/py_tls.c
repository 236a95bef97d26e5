/* py_tls.c - the state of TLS in weft._core, and the entry points for transports in C. */
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

static int
import_asyncio(struct weftpy_tls_state *state)
{
	const struct weftpy_import imports[] = {
		{ "asyncio", "BufferedProtocol", &state->buffered_type },
		{ "asyncio", "CancelledError", &state->cancelled_error },
		{ "asyncio", "constants", &state->constants },
		{ "asyncio", "sslproto", &state->sslproto },
		{ "asyncio.log", "logger", &state->logger },
		{ 0 },
	};

	return weftpy_import_all(imports);
}

/* Imports the type of the object that wraps OpenSSL.  It is not part of the documented interface
 * of ssl; if it is not as expected, the code does without it: the type, which comes last, stays
 * NULL. */
static int
import_inner(struct weftpy_tls_state *state)
{
	const struct weftpy_import imports[] = {
		{ "_ssl", "_SSLSocket.read", &state->inner_read },
		{ "_ssl", "_SSLSocket.write", &state->inner_write },
		{ "_ssl", "_SSLSocket.pending", &state->inner_pending },
		{ "_ssl", "_SSLSocket", &state->inner_type },
		{ 0 },
	};

	if (weftpy_import_all(imports) == 0)
		return 0;
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
	const struct weftpy_import imports[] = {
		{ "ssl", "SSLError", &state->ssl_error },
		{ "ssl", "CertificateError", &state->certificate_error },
		{ "ssl", "SSLWantReadError", &state->want_read },
		{ "ssl", "SSLSyscallError", &state->syscall_error },
		{ "ssl", "MemoryBIO", &state->bio_type },
		{ "ssl", "MemoryBIO.read", &state->bio_read },
		{ "ssl", "MemoryBIO.write", &state->bio_write },
		{ "ssl", "SSLObject.read", &state->object_read },
		{ "ssl", "SSLObject.write", &state->object_write },
		{ 0 },
	};

	if (weftpy_import_all(imports) == 0)
		return import_inner(state);
	if (!PyErr_ExceptionMatches(PyExc_ImportError))
		return -1;
	PyErr_Clear();
	return 0;
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
		rc = weftpy_done(PyObject_Vectorcall(self->state->bio_write, args, 2, NULL));
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
