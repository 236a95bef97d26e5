/* py_tls.h - TLS for asyncio transports: the interface for the rest of weft._core.
 *
 * TLSProtocol and SSLTransport are C versions of asyncio.sslproto's SSLProtocol and its
 * transport, with the same constructor, methods, messages and errors.  The module embeds a
 * struct weftpy_tls_state in its own state, and passes it to exec below.
 */
#ifndef WEFTPY_TLS_H
#define WEFTPY_TLS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define WEFTPY_TLS_SPARES 4 /* receive buffers kept for reuse, for loops of several threads */

/* Names of attributes and methods that are used. */
#define WEFTPY_TLS_NAMES(X)                                                    \
	X(abort) X(buffer_updated) X(call_exception_handler) X(call_later)     \
	X(call_soon) X(cancel) X(cancelled) X(cipher) X(close) X(compression)  \
	X(connection_lost) X(connection_made) X(data_received) X(debug)        \
	X(do_handshake) X(eof_received) X(get_buffer) X(get_debug)             \
	X(get_extra_info) X(getpeercert) X(is_closing) X(join)                 \
	X(pause_reading) X(pause_writing) X(peercert) X(pending) X(read)       \
	X(resume_reading) X(resume_writing) X(set_exception) X(set_result)     \
	X(ssl_object) X(sslcontext) X(time) X(unwrap) X(warning) X(wrap_bio)   \
	X(write) X(_check_handshake_timeout) X(_check_shutdown_timeout)        \
	X(_create_transport_context) X(_do_read) X(_force_close) X(_resume)    \
	X(_sslobj) X(AppProtocolState) X(SSLProtocolState)                     \
	X(SSL_HANDSHAKE_TIMEOUT) X(SSL_SHUTDOWN_TIMEOUT)

#define WEFTPY_TLS_DECLARE_NAME(name) PyObject *name;

struct weftpy_tls_span;

/* Every member is a reference, and NULL before exec and after clear.  Those marked `of ssl` stay
 * NULL if Python was built without it. */
struct weftpy_tls_state {
	PyTypeObject *protocol_type, *transport_type, *span_type;
	PyObject *buffered_type;   /* asyncio.BufferedProtocol */
	PyObject *cancelled_error; /* asyncio.CancelledError */
	PyObject *constants;       /* asyncio.constants */
	PyObject *sslproto;        /* asyncio.sslproto */
	PyObject *logger;          /* asyncio.log.logger */
	PyObject *wrap_names;      /* ("server_side", "server_hostname") */
	PyObject *exc_info_name;   /* ("exc_info",) */
	PyObject *empty;           /* b"" */
	PyObject *ssl_error;       /* of ssl, as is everything below except names and spares */
	PyObject *certificate_error, *want_read, *syscall_error;
	PyObject *bio_type, *bio_read, *bio_write; /* MemoryBIO and its methods */
	PyObject *object_read, *object_write;      /* methods of SSLObject, in Python */
	PyObject *inner_type;                      /* _ssl._SSLSocket, and its methods: */
	PyObject *inner_read, *inner_write, *inner_pending;
	struct { WEFTPY_TLS_NAMES(WEFTPY_TLS_DECLARE_NAME) } names;
	struct weftpy_tls_span *spares[WEFTPY_TLS_SPARES];
};

/* Provided by the module. */
extern struct PyModuleDef weftpy_module;
struct weftpy_tls_state *weftpy_tls_state_of(PyObject *module);

/* Make a type and add it to the module.  Its base class is `base_name` of the module `from`, or
 * object if `from` is NULL.  The slots of the base class must fit into the first `room` bytes. */
PyTypeObject *weftpy_make_type(PyObject *module, PyType_Spec *spec, const char *from,
                               const char *base_name, size_t room);

/* An attribute of a module, or of a type in it ("Type.method"), and the member to store it in. */
struct weftpy_import {
	const char *module, *path;
	void *place; /* PyObject ** */
};

/* Import everything up to the entry without a module.  Returns 0, or -1 at the first failure. */
int  weftpy_import_all(const struct weftpy_import *imports);

/* Create the types and add them to the module.  Returns -1 with an exception set. */
int  weftpy_tls_exec(PyObject *module, struct weftpy_tls_state *state);

/* Whether the protocol is a TLSProtocol, as the next two functions require. */
int  weftpy_tls_check(PyObject *protocol);

/* Lend memory for bytes from the peer, as get_buffer() does.  It is shared by all connections,
 * and lent until weftpy_tls_received(), which must follow soon, with 0 if nothing was read.
 * Returns -1 with an exception set. */
int  weftpy_tls_buffer(PyObject *protocol, char **at, Py_ssize_t *size);

/* Process `count` bytes in the lent memory, as buffer_updated() does.  Runs callbacks of the
 * program, which may close anything.  Returns -1 with an exception set. */
int  weftpy_tls_received(PyObject *protocol, Py_ssize_t count);

#endif
