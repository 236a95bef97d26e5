/* tls_write.c - TLS data from the program to the peer.
 *
 * Data is encrypted at once, and the result is sent at once, unless the transport is full: then
 * it waits, encrypted, in `outgoing`.  Plain data waits in the backlog only while OpenSSL cannot
 * accept it: before the handshake is complete, and during a renegotiation.  Short items of the
 * backlog are sent as one record.
 */
#include <string.h>
#include "tls_protocol.h"

/* The number of writes after the end that cause no warning, as in asyncio. */
#define WARN_WRITES 5

/* --- the transport ---------------------------------------------------------------- */

/* All data for the peer is sent here. */
static int
transport_write(struct tls_protocol *self, PyObject *data)
{
	return weftpy_done(weftpy_call_one(self->transport, self->state->names.write, data));
}

/* Takes all data that OpenSSL has for the peer. */
static PyObject *
take_outgoing(struct tls_protocol *self)
{
	self->unsent = false;
	return PyObject_Vectorcall(self->state->bio_read, &self->outgoing, 1, NULL);
}

/* Sends what OpenSSL has for the peer, then pauses or resumes the program's writing. */
int
weftpy_tls_send(struct tls_protocol *self)
{
	if (self->unsent && !self->ssl_writing_paused && self->transport) {
		PyObject *data = take_outgoing(self);
		int rc;

		if (!data)
			return -1;
		rc = PyBytes_GET_SIZE(data) ? transport_write(self, data) : 0;
		Py_DECREF(data);
		if (rc < 0)
			return -1;
	}
	return weftpy_tls_control_writing(self);
}

/* --- flow control of the program -------------------------------------------------- */

Py_ssize_t
weftpy_tls_write_size(struct tls_protocol *self)
{
	Py_ssize_t pending = self->unsent ? weftpy_tls_pending(self, self->outgoing) : 0;

	return pending < 0 ? -1 : pending + self->backlog.bytes;
}

/* Reports an exception in a method of the program; it does not end the connection. */
static int
report_control(struct tls_protocol *self, const char *message)
{
	PyObject *error;
	int rc;

	if (weftpy_is_fatal())
		return -1;
	error = weftpy_fetch_exception();
	rc = weftpy_tls_report(self, error, message, (PyObject *)self->app_transport);
	Py_DECREF(error);
	return rc;
}

static int
call_control(struct tls_protocol *self, PyObject *name, const char *message)
{
	if (!self->app_protocol || weftpy_done(weftpy_call(self->app_protocol, name)) == 0)
		return 0;
	return report_control(self, message);
}

int
weftpy_tls_control_writing(struct tls_protocol *self)
{
	Py_ssize_t size = weftpy_tls_write_size(self);

	if (size < 0)
		return -1;
	if (size >= self->outgoing_limits.high && !self->app_writing_paused) {
		self->app_writing_paused = true;
		return call_control(self, self->state->names.pause_writing,
		                    "protocol.pause_writing() failed");
	}
	if (size <= self->outgoing_limits.low && self->app_writing_paused) {
		self->app_writing_paused = false;
		return call_control(self, self->state->names.resume_writing,
		                    "protocol.resume_writing() failed");
	}
	return 0;
}

/* --- the backlog ------------------------------------------------------------------ */

int
weftpy_tls_wrong_data(PyObject *data)
{
	PyObject *name = PyType_GetName(Py_TYPE(data));

	if (name)
		PyErr_Format(PyExc_TypeError, "data: expecting a bytes-like instance, got %U",
		             name);
	Py_XDECREF(name);
	return -1;
}

/* Makes room for one more item at the end. */
static int
tls_write_reserve(struct tls_backlog *backlog)
{
	Py_ssize_t room = backlog->room ? backlog->room * 2 : 4;
	PyObject **items;

	if (backlog->first + backlog->count < backlog->room)
		return 0;
	if (backlog->first > backlog->room / 2) {
		memmove(backlog->items, backlog->items + backlog->first,
		        (size_t)backlog->count * sizeof *items);
		backlog->first = 0;
		return 0;
	}
	items = PyMem_Realloc(backlog->items, (size_t)room * sizeof *items);
	if (!items) {
		PyErr_NoMemory();
		return -1;
	}
	backlog->items = items;
	backlog->room = room;
	return 0;
}

int
weftpy_tls_backlog_push(struct tls_protocol *self, PyObject *data)
{
	struct tls_backlog *backlog = &self->backlog;
	PyObject *bytes;

	if (!PyObject_CheckBuffer(data))
		return weftpy_tls_wrong_data(data);
	bytes = PyBytes_CheckExact(data) ? Py_NewRef(data) : PyBytes_FromObject(data);
	if (!bytes)
		return -1;
	if (!PyBytes_GET_SIZE(bytes)) {
		Py_DECREF(bytes);
		return 0;
	}
	if (tls_write_reserve(backlog) < 0) {
		Py_DECREF(bytes);
		return -1;
	}
	backlog->items[backlog->first + backlog->count++] = bytes;
	backlog->bytes += PyBytes_GET_SIZE(bytes);
	return 0;
}

/* Replaces the first `count` items by one item, or by none. */
static void
backlog_replace(struct tls_backlog *backlog, Py_ssize_t count, PyObject *item)
{
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *old = backlog->items[backlog->first++];

		backlog->count--;
		backlog->bytes -= PyBytes_GET_SIZE(old);
		Py_DECREF(old); /* a bytes object: this runs no code */
	}
	if (item) {
		backlog->items[--backlog->first] = item;
		backlog->count++;
		backlog->bytes += PyBytes_GET_SIZE(item);
	}
	if (!backlog->count)
		backlog->first = 0;
}

void
weftpy_tls_backlog_clear(struct tls_protocol *self)
{
	struct tls_backlog *backlog = &self->backlog;

	backlog_replace(backlog, backlog->count, NULL);
	PyMem_Free(backlog->items);
	*backlog = (struct tls_backlog){ .items = NULL };
}

/* Joins the first items, up to the size of one record.  If OpenSSL could not complete a write,
 * it must be retried with the same bytes, possibly followed by more; joining ensures that. */
static int
backlog_join(struct tls_backlog *backlog)
{
	PyObject **items = backlog->items + backlog->first;
	Py_ssize_t count = 0, size = 0;
	PyObject *joined;
	char *at;

	while (count < backlog->count && PyBytes_GET_SIZE(items[count]) <= TLS_RECORD_BYTES - size)
		size += PyBytes_GET_SIZE(items[count++]);
	if (count < 2)
		return 0;
	joined = PyBytes_FromStringAndSize(NULL, size);
	if (!joined)
		return -1;
	at = PyBytes_AS_STRING(joined);
	for (Py_ssize_t i = 0; i < count; i++) {
		size_t part = (size_t)PyBytes_GET_SIZE(items[i]);

		memcpy(at, PyBytes_AS_STRING(items[i]), part);
		at += part;
	}
	backlog_replace(backlog, count, joined);
	return 0;
}

/* --- encrypting ------------------------------------------------------------------- */

/* Returns how much OpenSSL has accepted; -1 with an exception set. */
static Py_ssize_t
encrypt(struct tls_protocol *self, PyObject *data)
{
	PyObject *sslobj = self->inner ? self->inner : self->sslobj, *result;
	PyObject *args[] = { sslobj, data };

	self->unsent = true;
	Py_INCREF(sslobj);
	if (self->inner)
		result = PyObject_Vectorcall(self->state->inner_write, args, 2, NULL);
	else
		result = weftpy_call_one(sslobj, self->state->names.write, data);
	Py_DECREF(sslobj);
	return weftpy_size(result);
}

/* The first item was accepted, completely or in part. */
static int
backlog_taken(struct tls_protocol *self, PyObject *data, Py_ssize_t count)
{
	struct tls_backlog *backlog = &self->backlog;
	Py_ssize_t left = PyBytes_GET_SIZE(data) - count;
	PyObject *rest = NULL;

	if (!backlog->count || backlog->items[backlog->first] != data)
		return 0; /* a callback of OpenSSL has changed the backlog meanwhile */
	if (left > 0) {
		rest = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + count, left);
		if (!rest)
			return -1;
	}
	backlog_replace(backlog, 1, rest);
	return 0;
}

/* Encrypts as much of the backlog as OpenSSL accepts, and sends it. */
int
weftpy_tls_write_out(struct tls_protocol *self)
{
	struct tls_backlog *backlog = &self->backlog;

	while (backlog->count) {
		PyObject *data;
		Py_ssize_t count;
		int rc = backlog_join(backlog);

		if (rc < 0)
			return -1;
		data = Py_NewRef(backlog->items[backlog->first]);
		count = encrypt(self, data);
		if (count >= 0)
			rc = backlog_taken(self, data, count);
		Py_DECREF(data);
		if (rc < 0)
			return -1;
		if (count < 0 && !tls_clear_again(self->state))
			return -1;
		if (count <= 0)
			break;
	}
	return weftpy_tls_send(self);
}

/* Encrypts data without the backlog, if possible. */
static int
write_at_once(struct tls_protocol *self, PyObject *data)
{
	Py_ssize_t count = encrypt(self, data), size;

	if (count < 0) {
		if (!tls_clear_again(self->state))
			return -1;
		count = 0;
	}
	size = PyBytes_CheckExact(data) ? PyBytes_GET_SIZE(data) : PyObject_Length(data);
	if (count >= size)
		return size < 0 ? -1 : weftpy_tls_send(self);
	if (weftpy_tls_backlog_push(self, data) < 0)
		return -1;
	if (count > 0 && backlog_taken(self, self->backlog.items[self->backlog.first], count) < 0)
		return -1;
	return weftpy_tls_send(self);
}

/* --- methods for the program ------------------------------------------------------ */

/* Returns whether data is still accepted; -1 with an exception set. */
static int
may_write(struct tls_protocol *self)
{
	PyObject *text;
	int rc;

	if (self->phase == WRAPPED || self->phase == DO_HANDSHAKE)
		return 1;
	if (self->lost_writes++ < WARN_WRITES)
		return 0;
	text = PyUnicode_FromString("SSL connection is closed");
	if (!text)
		return -1;
	rc = weftpy_done(weftpy_call_one(self->state->logger, self->state->names.warning, text));
	Py_DECREF(text);
	return rc;
}

int
weftpy_tls_settle(struct tls_protocol *self, int rc)
{
	if (rc == 0 || !PyErr_ExceptionMatches(PyExc_Exception))
		return rc;
	return weftpy_tls_fatal(self, "Fatal error on SSL protocol");
}

int
weftpy_tls_write(struct tls_protocol *self, PyObject *data)
{
	int rc = may_write(self);

	if (rc <= 0)
		return rc;
	if (self->phase == WRAPPED && !self->backlog.count)
		return weftpy_tls_settle(self, write_at_once(self, data));
	rc = weftpy_tls_backlog_push(self, data);
	if (rc == 0 && self->phase == WRAPPED)
		rc = weftpy_tls_settle(self, weftpy_tls_write_out(self));
	return rc;
}

int
weftpy_tls_write_lines(struct tls_protocol *self, PyObject *lines)
{
	int rc = may_write(self);
	PyObject *iterator, *data;

	if (rc <= 0)
		return rc;
	iterator = PyObject_GetIter(lines);
	if (!iterator)
		return -1;
	rc = 0;
	while (rc == 0 && (data = PyIter_Next(iterator))) {
		rc = weftpy_tls_backlog_push(self, data);
		Py_DECREF(data);
	}
	Py_DECREF(iterator);
	if (rc < 0 || PyErr_Occurred())
		return -1;
	if (self->phase == WRAPPED)
		rc = weftpy_tls_settle(self, weftpy_tls_write_out(self));
	return rc;
}
