/* tls_phase.c - the phases of a TLS connection: handshake, shutdown, errors, the end.
 *
 *        UNWRAPPED -> DO_HANDSHAKE -> WRAPPED -> FLUSHING -> SHUTDOWN
 *            ^              |            |           |           |
 *            +--------------+------------+-----------+-----------+
 *
 * The program's protocol has its own sequence: connection_made() after the handshake, unless it
 * was called before; data; eof_received() at most once; and connection_lost(), which the loop
 * calls, never a method that the program has called.
 */
#include "tls_protocol.h"

static int
set_phase(struct tls_protocol *self, enum tls_phase phase)
{
	static const char *const names[] = { "UNWRAPPED", "DO_HANDSHAKE", "WRAPPED", "FLUSHING",
		                             "SHUTDOWN" };

	if (phase != UNWRAPPED && phase != (enum tls_phase)self->phase + 1) {
		PyErr_Format(PyExc_RuntimeError,
		             "cannot switch state from SSLProtocolState.%s to SSLProtocolState.%s",
		             names[self->phase], names[phase]);
		return -1;
	}
	self->phase = (uint8_t)phase;
	return 0;
}

/* --- the loop --------------------------------------------------------------------- */

static int
in_debug_mode(struct tls_protocol *self)
{
	return weftpy_truth(weftpy_call(self->loop, self->state->names.get_debug));
}

/* Has the loop call a method soon. */
int
weftpy_tls_call_soon(struct tls_protocol *self, PyObject *object, PyObject *name)
{
	PyObject *callback = PyObject_GetAttr(object, name);
	int rc;

	if (!callback)
		return -1;
	rc = weftpy_done(weftpy_call_one(self->loop, self->state->names.call_soon, callback));
	Py_DECREF(callback);
	return rc;
}

/* Returns the handle of a timer that calls a method. */
static PyObject *
call_later(struct tls_protocol *self, PyObject *delay, PyObject *name)
{
	PyObject *callback = PyObject_GetAttr((PyObject *)self, name), *handle;

	if (!callback)
		return NULL;
	handle = weftpy_call_two(self->loop, self->state->names.call_later, delay, callback);
	Py_DECREF(callback);
	return handle;
}

static int
cancel_timer(struct tls_protocol *self, PyObject **handle)
{
	PyObject *timer = *handle;
	int rc;

	if (!timer)
		return 0;
	*handle = NULL;
	rc = weftpy_done(weftpy_call(timer, self->state->names.cancel));
	Py_DECREF(timer);
	return rc;
}

int
weftpy_tls_wake_waiter(struct tls_protocol *self, PyObject *error)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *waiter = self->waiter;
	int rc;

	if (!waiter)
		return 0;
	self->waiter = NULL;
	rc = weftpy_truth(weftpy_call(waiter, state->names.cancelled));
	if (rc == 0)
		rc = weftpy_done(weftpy_call_one(
			waiter, error ? state->names.set_exception : state->names.set_result,
			error ? error : Py_None));
	Py_DECREF(waiter);
	return rc < 0 ? -1 : 0;
}

/* --- errors ----------------------------------------------------------------------- */

/* Logs a text with up to two values and an exception; each of them may be NULL. */
static int
log_text(struct tls_protocol *self, PyObject *level, const char *format, PyObject *one,
         PyObject *two, PyObject *error)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *args[5] = { state->logger };
	size_t count = 1;
	int rc;

	args[count++] = PyUnicode_FromString(format);
	if (!args[1])
		return -1;
	if (one)
		args[count++] = one;
	if (two)
		args[count++] = two;
	args[count] = error;
	rc = weftpy_done(
		PyObject_VectorcallMethod(level, args, count, error ? state->exc_info_name : NULL));
	Py_DECREF(args[1]);
	return rc;
}

/* System and TLS errors are logged in debug mode only. */
static int
log_error(struct tls_protocol *self, PyObject *error, const char *message)
{
	PyObject *text;
	int rc = in_debug_mode(self);

	if (rc <= 0)
		return rc;
	text = PyUnicode_FromString(message);
	if (!text)
		return -1;
	rc = log_text(self, self->state->names.debug, "%r: %s", (PyObject *)self, text, error);
	Py_DECREF(text);
	return rc;
}

/* `transport` may be NULL. */
int
weftpy_tls_report(struct tls_protocol *self, PyObject *error, const char *message,
                  PyObject *transport)
{
	PyObject *context = Py_BuildValue("{s:s,s:O,s:O,s:O}", "message", message, "exception",
	                                  error, "transport", transport ? transport : Py_None,
	                                  "protocol", self);
	int rc;

	if (!context)
		return -1;
	rc = weftpy_done(
		weftpy_call_one(self->loop, self->state->names.call_exception_handler, context));
	Py_DECREF(context);
	return rc;
}

/* Ends the connection because of an error, and reports the error. */
int
weftpy_tls_fatal_error(struct tls_protocol *self, PyObject *error, const char *message)
{
	int rc;

	if (self->transport
	    && weftpy_done(weftpy_call_one(self->transport, self->state->names._force_close, error))
	               < 0)
		return -1;
	if (PyObject_TypeCheck(error, (PyTypeObject *)PyExc_OSError))
		return log_error(self, error, message);
	rc = PyObject_IsInstance(error, self->state->cancelled_error);
	if (rc != 0)
		return rc < 0 ? -1 : 0;
	return weftpy_tls_report(self, error, message, self->transport);
}

int
weftpy_tls_fatal(struct tls_protocol *self, const char *message)
{
	PyObject *error = weftpy_fetch_exception();
	int rc = weftpy_tls_fatal_error(self, error, message);

	Py_DECREF(error);
	return rc;
}

int
weftpy_tls_abort(struct tls_protocol *self, PyObject *error)
{
	struct weftpy_tls_state *state = self->state;

	self->phase = UNWRAPPED;
	if (!self->transport)
		return 0;
	if (PY_VERSION_HEX < 0x030D0000 && error == Py_None)
		return weftpy_done(weftpy_call(self->transport, state->names.abort));
	return weftpy_done(weftpy_call_one(self->transport, state->names._force_close, error));
}

/* --- the handshake ---------------------------------------------------------------- */

/* Takes ownership of the error. */
static int
handshake_failed(struct tls_protocol *self, PyObject *error)
{
	int bad = PyObject_IsInstance(error, self->state->certificate_error);
	const char *message = bad ? "SSL handshake failed on verifying the certificate"
	                          : "SSL handshake failed";
	int rc = bad < 0 ? -1 : 0;

	self->phase = UNWRAPPED;
	if (rc == 0)
		rc = weftpy_tls_fatal_error(self, error, message);
	if (rc == 0)
		rc = weftpy_tls_wake_waiter(self, error);
	Py_DECREF(error);
	return rc;
}

/* Logs the duration, in debug mode. */
static int
log_handshake(struct tls_protocol *self)
{
	PyObject *now, *taken, *millis;
	int rc = in_debug_mode(self);

	if (rc <= 0 || !self->handshake_start)
		return rc < 0 ? -1 : 0;
	now = weftpy_call(self->loop, self->state->names.time);
	taken = now ? PyNumber_Subtract(now, self->handshake_start) : NULL;
	Py_XDECREF(now);
	millis = taken ? PyFloat_FromDouble(PyFloat_AsDouble(taken) * 1e3) : NULL;
	Py_XDECREF(taken);
	if (!millis)
		return -1;
	rc = log_text(self, self->state->names.debug, "%r: SSL handshake took %.1f ms",
	              (PyObject *)self, millis, NULL);
	Py_DECREF(millis);
	return rc;
}

/* Stores what is known about the connection after the handshake. */
static int
note_extra(struct tls_protocol *self, PyObject *peercert)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *cipher = weftpy_call(self->sslobj, state->names.cipher);
	PyObject *compression = cipher ? weftpy_call(self->sslobj, state->names.compression) : NULL;
	int rc = -1;

	if (compression && PyDict_SetItem(self->extra, state->names.peercert, peercert) == 0
	    && PyDict_SetItem(self->extra, state->names.cipher, cipher) == 0
	    && PyDict_SetItem(self->extra, state->names.compression, compression) == 0)
		rc = PyDict_SetItem(self->extra, state->names.ssl_object, self->sslobj);
	Py_XDECREF(cipher);
	Py_XDECREF(compression);
	return rc;
}

static int
call_connection_made(struct tls_protocol *self)
{
	PyObject *app_transport;
	int rc;

	if (self->app_phase != APP_INIT || !self->app_protocol || !self->app_transport)
		return 0;
	self->app_phase = APP_MADE;
	app_transport = Py_NewRef((PyObject *)self->app_transport);
	rc = weftpy_done(weftpy_call_one(self->app_protocol, self->state->names.connection_made,
	                                 app_transport));
	Py_DECREF(app_transport);
	return rc;
}

static int
handshake_done(struct tls_protocol *self)
{
	PyObject *peercert = NULL;
	int rc;

	if (set_phase(self, WRAPPED) == 0)
		peercert = weftpy_call(self->sslobj, self->state->names.getpeercert);
	if (!peercert)
		return PyErr_ExceptionMatches(PyExc_Exception)
		               ? handshake_failed(self, weftpy_fetch_exception())
		               : -1;
	rc = log_handshake(self) < 0 ? -1 : note_extra(self, peercert);
	Py_DECREF(peercert);
	if (rc < 0 || call_connection_made(self) < 0 || weftpy_tls_wake_waiter(self, NULL) < 0)
		return -1;
	return weftpy_tls_read(self, 0);
}

static int
do_handshake(struct tls_protocol *self)
{
	PyObject *result = weftpy_call(self->sslobj, self->state->names.do_handshake);
	PyObject *error;
	int rc;

	self->unsent = true;
	if (!result) {
		if (tls_clear_again(self->state))
			return weftpy_tls_send(self);
		if (!PyErr_ExceptionMatches(self->state->ssl_error))
			return -1;
	}
	error = result ? NULL : weftpy_fetch_exception();
	Py_XDECREF(result);
	rc = cancel_timer(self, &self->handshake_handle);
	if (rc == 0)
		return error ? handshake_failed(self, error) : handshake_done(self);
	Py_XDECREF(error);
	return -1;
}

int
weftpy_tls_start_handshake(struct tls_protocol *self)
{
	struct weftpy_tls_state *state = self->state;
	int debug = in_debug_mode(self);

	if (debug < 0)
		return -1;
	Py_CLEAR(self->handshake_start);
	if (debug) {
		if (log_text(self, state->names.debug, "%r starts SSL handshake", (PyObject *)self,
		             NULL, NULL)
		    < 0)
			return -1;
		self->handshake_start = weftpy_call(self->loop, state->names.time);
		if (!self->handshake_start)
			return -1;
	}
	if (set_phase(self, DO_HANDSHAKE) < 0)
		return -1;
	Py_XSETREF(self->handshake_handle, call_later(self, self->handshake_timeout,
	                                              state->names._check_handshake_timeout));
	return self->handshake_handle ? do_handshake(self) : -1;
}

/* The timer of the handshake has fired. */
int
weftpy_tls_handshake_late(struct tls_protocol *self)
{
	if (self->phase != DO_HANDSHAKE)
		return 0;
	PyErr_Format(PyExc_ConnectionAbortedError,
	             "SSL handshake is taking longer than %S seconds: aborting the connection",
	             self->handshake_timeout);
	return weftpy_tls_fatal(self, "Fatal error on transport");
}

/* --- the shutdown ----------------------------------------------------------------- */

int
weftpy_tls_call_eof_received(struct tls_protocol *self)
{
	int rc;

	if (self->app_phase != APP_MADE || !self->app_protocol)
		return 0;
	self->app_phase = APP_EOF;
	rc = weftpy_truth(weftpy_call(self->app_protocol, self->state->names.eof_received));
	if (rc > 0)
		rc = log_text(self, self->state->names.warning,
		              "returning true from eof_received() has no effect when using ssl",
		              NULL, NULL, NULL);
	if (rc == 0 || weftpy_is_fatal())
		return rc;
	return weftpy_tls_fatal(self, "Error calling eof_received()");
}

static int
shutdown_done(struct tls_protocol *self)
{
	if ((!self->transport || !weftpy_bounds_end())
	    && cancel_timer(self, &self->shutdown_handle) < 0)
		return -1;
	if (!self->transport)
		return 0;
	/* The transport first sends what it has queued.  The timer ensures that a peer which
	 * does not read cannot keep the connection open forever. */
	if (!self->shutdown_handle && weftpy_bounds_end()) {
		self->shutdown_handle = call_later(self, self->shutdown_timeout,
		                                   self->state->names._check_shutdown_timeout);
		if (!self->shutdown_handle)
			return -1;
	}
	return weftpy_tls_call_soon(self, self->transport, self->state->names.close);
}

static int
do_shutdown(struct tls_protocol *self)
{
	PyObject *result, *error;
	int rc;

	if (!self->eof_received) {
		self->unsent = true;
		result = weftpy_call(self->sslobj, self->state->names.unwrap);
		if (!result && tls_clear_again(self->state))
			return weftpy_tls_send(self);
		if (!result && PyErr_ExceptionMatches(self->state->ssl_error)) {
			error = weftpy_fetch_exception();
			rc = cancel_timer(self, &self->shutdown_handle);
			if (rc == 0)
				rc = weftpy_tls_fatal_error(self, error,
				                            "Fatal error on transport");
			Py_DECREF(error);
			return rc;
		}
		if (weftpy_done(result) < 0)
			return -1;
	}
	if (weftpy_tls_send(self) < 0 || weftpy_tls_call_eof_received(self) < 0)
		return -1;
	return shutdown_done(self);
}

/* Gives the program the remaining data, then sends close_notify to the peer. */
static int
do_flush(struct tls_protocol *self, Py_ssize_t hint)
{
	if (weftpy_tls_read(self, hint) < 0)
		return -1;
	if (self->phase != FLUSHING)
		return 0; /* the program has aborted meanwhile */
	self->phase = SHUTDOWN;
	return do_shutdown(self);
}

/* Without its timer a shutdown might never end, so the connection is aborted. */
static int
shut_at_once(struct tls_protocol *self)
{
	PyObject *error = weftpy_fetch_exception();

	if (weftpy_tls_abort(self, Py_None) < 0)
		PyErr_Clear(); /* the first error is reported */
	weftpy_raise(error);
	return -1;
}

int
weftpy_tls_start_shutdown(struct tls_protocol *self)
{
	if (self->phase != WRAPPED && self->phase != DO_HANDSHAKE)
		return 0;
	if (self->app_transport)
		self->app_transport->closed = true;
	if (self->phase == DO_HANDSHAKE)
		return weftpy_tls_abort(self, Py_None);
	self->phase = FLUSHING;
	Py_XSETREF(self->shutdown_handle, call_later(self, self->shutdown_timeout,
	                                             self->state->names._check_shutdown_timeout));
	return self->shutdown_handle ? do_flush(self, 0) : shut_at_once(self);
}

/* The timer of the shutdown has fired. */
int
weftpy_tls_shutdown_late(struct tls_protocol *self)
{
	PyObject *error;
	int rc;

	if ((self->phase != FLUSHING && self->phase != SHUTDOWN) || !self->transport)
		return 0;
	error = PyObject_CallFunction(PyExc_TimeoutError, "s", "SSL shutdown timed out");
	if (!error)
		return -1;
	rc = weftpy_done(weftpy_call_one(self->transport, self->state->names._force_close, error));
	Py_DECREF(error);
	return rc;
}

/* --- events from the transport ---------------------------------------------------- */

/* Continues after `hint` bytes have arrived from the peer, or as if some had. */
int
weftpy_tls_advance(struct tls_protocol *self, Py_ssize_t hint)
{
	switch (self->phase) {
	case DO_HANDSHAKE:
		return do_handshake(self);
	case WRAPPED:
		return weftpy_tls_read(self, hint);
	case FLUSHING:
		return do_flush(self, hint);
	case SHUTDOWN:
		return do_shutdown(self);
	default:
		return 0;
	}
}

static int
reset_by_peer(struct tls_protocol *self)
{
	PyObject *error;

	if (cancel_timer(self, &self->handshake_handle) < 0)
		return -1;
	error = PyObject_CallNoArgs(PyExc_ConnectionResetError);
	return error ? handshake_failed(self, error) : -1;
}

static int
after_eof(struct tls_protocol *self)
{
	int debug = in_debug_mode(self);

	if (debug < 0)
		return -1;
	if (debug
	    && log_text(self, self->state->names.debug, "%r received EOF", (PyObject *)self, NULL,
	                NULL)
	               < 0)
		return -1;
	switch (self->phase) {
	case DO_HANDSHAKE:
		return reset_by_peer(self);
	case WRAPPED:
		self->phase = FLUSHING;
		return self->app_reading_paused ? 1 : do_flush(self, 0);
	case FLUSHING:
		if (weftpy_tls_write_out(self) < 0)
			return -1;
		if (self->phase == FLUSHING)
			self->phase = SHUTDOWN;
		return self->phase == SHUTDOWN ? do_shutdown(self) : 0;
	case SHUTDOWN:
		return do_shutdown(self);
	default:
		return 0;
	}
}

int
weftpy_tls_eof_received(struct tls_protocol *self)
{
	PyObject *error;
	int rc;

	self->eof_received = true;
	rc = after_eof(self);
	if (rc >= 0 || !self->transport || !PyErr_ExceptionMatches(PyExc_Exception))
		return rc;
	error = weftpy_fetch_exception();
	if (weftpy_done(weftpy_call(self->transport, self->state->names.close)) < 0)
		PyErr_Clear(); /* the first error is reported */
	weftpy_raise(error);
	return -1;
}

static int
call_connection_lost(struct tls_protocol *self, PyObject *error)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *callback;
	int rc;

	if (self->phase == DO_HANDSHAKE || !self->app_protocol
	    || (self->app_phase != APP_MADE && self->app_phase != APP_EOF))
		return 0;
	self->app_phase = APP_LOST;
	callback = PyObject_GetAttr(self->app_protocol, state->names.connection_lost);
	if (!callback)
		return -1;
	rc = weftpy_done(weftpy_call_two(self->loop, state->names.call_soon, callback, error));
	Py_DECREF(callback);
	return rc;
}

/* Keeps the first of several errors. */
static void
keep_first(int rc, PyObject **first)
{
	PyObject *error = rc < 0 ? weftpy_fetch_exception() : NULL;

	if (!*first)
		*first = error;
	else
		Py_XDECREF(error);
}

/* The connection is lost: releases everything, even if a step fails. */
int
weftpy_tls_lost(struct tls_protocol *self, PyObject *error)
{
	PyObject *first = NULL;

	weftpy_tls_backlog_clear(self);
	self->lost_writes++;
	if (self->app_transport)
		self->app_transport->closed = true;
	keep_first(call_connection_lost(self, error), &first);
	self->phase = UNWRAPPED;
	Py_CLEAR(self->transport);
	Py_CLEAR(self->app_transport);
	Py_CLEAR(self->app_protocol);
	Py_CLEAR(self->get_buffer);
	Py_CLEAR(self->buffer_updated);
	Py_CLEAR(self->span);
	keep_first(weftpy_tls_wake_waiter(self, error == Py_None ? NULL : error), &first);
	keep_first(cancel_timer(self, &self->shutdown_handle), &first);
	keep_first(cancel_timer(self, &self->handshake_handle), &first);
	keep_first(
		weftpy_done(PyObject_Vectorcall(self->state->bio_read, &self->outgoing, 1, NULL)),
		&first);
	self->unsent = false;
	if (!first)
		return 0;
	weftpy_raise(first);
	return -1;
}
