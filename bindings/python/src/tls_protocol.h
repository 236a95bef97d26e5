/* tls_protocol.h - the definitions that the TLS files share.
 *
 * Data from the peer goes socket -> receive buffer -> `incoming` -> OpenSSL -> the program's
 * protocol; data to the peer goes program -> OpenSSL -> `outgoing` -> socket.  Both BIOs and the
 * SSL object are Python's, made by the program's own SSLContext.
 *
 *   1. Code that calls into the program holds references to everything it uses afterwards: the
 *      program may close, abort, write, pause or set a protocol at any time.
 *   2. `transport` and `app_protocol` are NULL once the connection is lost; `transport` also
 *      before it is made.
 *   3. `inner` is set only if it has the type of _ssl that this code knows, and the SSLObject
 *      that owns it does not override read and write.  Only then can we rely on OpenSSL not
 *      holding back a complete record, and stop reading when `incoming` is empty.  Finding that
 *      out by an exception costs more than decrypting a short record.
 *   4. `rest` is set if OpenSSL may hold plaintext, `partial` if it may hold part of a record,
 *      `unsent` if `outgoing` may contain data.
 *   5. Items of the backlog are bytes objects, so they cannot change while they wait.
 *   6. A function that returns int returns 0, or -1 with an exception set.
 */
#ifndef WEFTPY_TLS_PROTOCOL_H
#define WEFTPY_TLS_PROTOCOL_H

#include "call.h"
#include "compat.h"
#include "py_tls.h"

#define TLS_SPAN_BYTES   (256 * 1024) /* size of a receive buffer */
#define TLS_RECORD_BYTES 16384        /* most plaintext in one record */
#define TLS_BASE_WORDS   5            /* slots of asyncio's base classes of a transport */

enum tls_phase { UNWRAPPED, DO_HANDSHAKE, WRAPPED, FLUSHING, SHUTDOWN };
enum tls_app_phase { APP_INIT, APP_MADE, APP_EOF, APP_LOST };

/* Memory that can be passed to C functions of Python: a receive buffer, or some other memory for
 * the duration of a call.  Buffer views can be taken only while `at` is set. */
struct weftpy_tls_span {
	PyObject_HEAD
	char      *at;
	Py_ssize_t size;
	Py_ssize_t exports; /* views taken and not released */
	char      *memory;  /* its own, TLS_SPAN_BYTES; or NULL */
};

struct tls_backlog { /* a queue: items[first], and count - 1 after it */
	PyObject **items;
	Py_ssize_t first, count, room;
	Py_ssize_t bytes;
};

struct tls_limits { /* watermarks, bytes */
	Py_ssize_t high, low;
};

struct tls_transport {
	PyObject_HEAD
	PyObject *base[TLS_BASE_WORDS]; /* set only by code of the base class */
	PyObject *weak, *dict;
	PyObject *loop;
	struct tls_protocol *protocol; /* NULL after the second close() */
	char closed;
};

struct tls_protocol {
	PyObject_HEAD
	PyObject *weak;
	struct weftpy_tls_state *state; /* lives as long as the type */
	/* References, from here to `backlog`.  protocol_clear() releases those before `loop`. */
	PyObject *app_protocol;
	PyObject *get_buffer, *buffer_updated; /* of a buffered app_protocol, else NULL */
	struct tls_transport *app_transport;
	PyObject *transport;
	PyObject *waiter;
	PyObject *handshake_handle, *shutdown_handle;   /* handles of the timers */
	struct weftpy_tls_span *span;   /* lent to the transport; else NULL */
	PyObject *loop;
	PyObject *context, *server_hostname;
	PyObject *extra; /* a dict */
	PyObject *incoming, *outgoing;
	PyObject *sslobj, *inner;
	PyObject *handshake_timeout, *shutdown_timeout; /* seconds */
	PyObject *handshake_start; /* in debug mode */
	struct weftpy_tls_span *window; /* over the memory that is decrypted into */
	struct tls_backlog backlog;
	Py_ssize_t incoming_pending;    /* as the last read saw it */
	struct tls_limits incoming_limits, outgoing_limits;
	unsigned lost_writes;
	uint8_t phase, app_phase;
	char server_side, eof_received;
	char ssl_writing_paused, ssl_reading_paused;
	char app_writing_paused, app_reading_paused;
	bool app_transport_made;
	bool rest, partial, unsent;
};

/* tls_span.c */
int  weftpy_tls_span_exec(PyObject *module, struct weftpy_tls_state *state);
struct weftpy_tls_span *weftpy_tls_span_new(struct weftpy_tls_state *state, bool memory);
struct weftpy_tls_span *weftpy_tls_span_take(struct weftpy_tls_state *state);
void weftpy_tls_span_give(struct weftpy_tls_state *state, struct weftpy_tls_span **span);

/* tls_protocol.c */
int  weftpy_tls_protocol_exec(PyObject *module, struct weftpy_tls_state *state);
int  weftpy_tls_set_app_protocol(struct tls_protocol *self, PyObject *app_protocol);
PyObject *weftpy_tls_extra_info(struct tls_protocol *self, PyObject *name, PyObject *other);

/* tls_phase.c */
int  weftpy_tls_start_handshake(struct tls_protocol *self);
int  weftpy_tls_handshake_late(struct tls_protocol *self);
int  weftpy_tls_start_shutdown(struct tls_protocol *self);
int  weftpy_tls_shutdown_late(struct tls_protocol *self);
int  weftpy_tls_advance(struct tls_protocol *self, Py_ssize_t hint);
int  weftpy_tls_eof_received(struct tls_protocol *self); /* 1: stay open */
int  weftpy_tls_lost(struct tls_protocol *self, PyObject *error);
int  weftpy_tls_abort(struct tls_protocol *self, PyObject *error);
int  weftpy_tls_call_eof_received(struct tls_protocol *self);
int  weftpy_tls_report(struct tls_protocol *self, PyObject *error, const char *message,
                       PyObject *transport); /* calls the exception handler */
int  weftpy_tls_call_soon(struct tls_protocol *self, PyObject *object, PyObject *name);
int  weftpy_tls_wake_waiter(struct tls_protocol *self, PyObject *error);
int  weftpy_tls_fatal_error(struct tls_protocol *self, PyObject *error, const char *message);
int  weftpy_tls_fatal(struct tls_protocol *self, const char *message); /* takes the exception */

/* tls_read.c */
int  weftpy_tls_read(struct tls_protocol *self, Py_ssize_t hint);
int  weftpy_tls_resume_reading(struct tls_protocol *self);
int  weftpy_tls_control_reading(struct tls_protocol *self);
Py_ssize_t weftpy_tls_pending(struct tls_protocol *self, PyObject *bio);

/* tls_write.c */
/* After reading or writing with the result `rc`: an error ends the connection, but is not raised to
 * the caller.  Returns the result. */
int  weftpy_tls_settle(struct tls_protocol *self, int rc);
int  weftpy_tls_write(struct tls_protocol *self, PyObject *data);
int  weftpy_tls_write_lines(struct tls_protocol *self, PyObject *lines);
int  weftpy_tls_write_out(struct tls_protocol *self);
int  weftpy_tls_send(struct tls_protocol *self);
int  weftpy_tls_control_writing(struct tls_protocol *self);
int  weftpy_tls_backlog_push(struct tls_protocol *self, PyObject *data);
int  weftpy_tls_wrong_data(PyObject *data); /* returns -1, with TypeError set */
void weftpy_tls_backlog_clear(struct tls_protocol *self);
Py_ssize_t weftpy_tls_write_size(struct tls_protocol *self);

/* tls_transport.c */
int  weftpy_tls_transport_exec(PyObject *module, struct weftpy_tls_state *state);
struct tls_transport *weftpy_tls_transport_new(struct tls_protocol *protocol);
void weftpy_tls_limits_init(struct tls_protocol *self);

/* --- calls ------------------------------------------------------------------------- */

/* Whether OpenSSL needs more data from the peer first; if so, clears the exception. */
static inline bool
tls_clear_again(struct weftpy_tls_state *state)
{
	if (!PyErr_ExceptionMatches(state->want_read)
	    && !PyErr_ExceptionMatches(state->syscall_error))
		return false;
	PyErr_Clear();
	return true;
}

#endif
