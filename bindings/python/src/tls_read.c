/* tls_read.c - TLS data from the peer to the program.
 *
 * Reading decrypts everything available and passes it to the program in one call.  With an SSL
 * object of the known type the data is decrypted directly to its destination: the memory of a
 * buffered protocol, or a bytes object of a size derived from the ciphertext.  Reading then
 * ends without an exception (invariant 3).  Any other object is used through its methods.
 */
#include "tls_protocol.h"

#define SLACK_BYTES 64 /* smallest buffer to decrypt into; few records are shorter */

enum filled { FILL_FAILED = -1, FILL_DRAINED, FILL_FULL, FILL_ENDED };

/* --- decrypting ------------------------------------------------------------------- */

/* Returns the number of bytes in a BIO; -1 with an exception set. */
Py_ssize_t
weftpy_tls_pending(struct tls_protocol *self, PyObject *bio)
{
	return weftpy_size(PyObject_GetAttr(bio, self->state->names.pending));
}

/* Decrypts the rest of one record.  Returns the number of bytes, 0 at the end of the stream, -1
 * with an exception set. */
static Py_ssize_t
decrypt(struct tls_protocol *self, char *at, Py_ssize_t size)
{
	PyObject *length = PyLong_FromSsize_t(size), *result;
	PyObject *args[] = { self->inner, length, (PyObject *)self->window };

	if (!length)
		return -1;
	Py_INCREF(args[0]);
	self->unsent = true; /* OpenSSL may have replied to a record that is not application data */
	self->window->at = at;
	self->window->size = size;
	result = PyObject_Vectorcall(self->state->inner_read, args, 3, NULL);
	self->window->at = NULL;
	Py_DECREF(args[0]);
	Py_DECREF(length);
	return weftpy_size(result);
}

/* Decrypts until the memory is full or nothing is left; adds to `used`. */
static enum filled
tls_read_fill(struct tls_protocol *self, char *at, Py_ssize_t size, Py_ssize_t *used)
{
	while (*used < size) {
		Py_ssize_t count = decrypt(self, at + *used, size - *used);
		bool again = count < 0 && tls_clear_again(self->state);

		if (count < 0 && !again)
			return FILL_FAILED;
		if (count == 0)
			return FILL_ENDED;
		*used += again ? 0 : count;
		if (*used == size)
			break;
		/* The record was read completely, or is incomplete. */
		self->rest = false;
		self->partial = again;
		self->incoming_pending = weftpy_tls_pending(self, self->incoming);
		if (self->incoming_pending < 0)
			return FILL_FAILED;
		if (again || self->incoming_pending == 0)
			return FILL_DRAINED;
	}
	return FILL_FULL;
}

/* After the memory was filled: an upper bound of what is left. */
static Py_ssize_t
left_over(struct tls_protocol *self)
{
	Py_ssize_t buffered = weftpy_size(
		PyObject_CallOneArg(self->state->inner_pending, self->inner));

	if (buffered < 0)
		return -1;
	self->incoming_pending = weftpy_tls_pending(self, self->incoming);
	if (self->incoming_pending < 0)
		return -1;
	self->partial = false;
	self->rest = buffered > 0;
	return buffered + self->incoming_pending;
}

/* --- into bytes ------------------------------------------------------------------- */

/* Decrypts into a bytes object.  Returns NULL if there is nothing, or with an exception set. */
static PyObject *
pull(struct tls_protocol *self, Py_ssize_t size, bool *ended)
{
	PyObject *data = PyBytes_FromStringAndSize(NULL, size);
	enum filled filled = FILL_FULL;
	Py_ssize_t used = 0;

	while (data && filled == FILL_FULL) {
		Py_ssize_t more;

		filled = tls_read_fill(self, PyBytes_AS_STRING(data), size, &used);
		more = filled == FILL_FULL ? left_over(self) : 0;
		if (filled == FILL_FAILED || more < 0) {
			Py_DECREF(data);
			return NULL;
		}
		if (more == 0)
			break;
		size += more;
		_PyBytes_Resize(&data, size);
	}
	*ended = filled == FILL_ENDED;
	if (data && used == 0)
		Py_CLEAR(data);
	else if (data && used < size)
		_PyBytes_Resize(&data, used);
	return data;
}

/* The same, through the methods of an SSL object of another type. */
static PyObject *
pull_foreign(struct tls_protocol *self, bool *ended)
{
	PyObject *chunks = PyList_New(0), *data = NULL;
	PyObject *size = PyLong_FromLong(TLS_SPAN_BYTES);
	int rc = chunks && size ? 0 : -1;

	self->unsent = true;
	while (rc == 0) {
		PyObject *chunk = weftpy_call_one(self->sslobj, self->state->names.read, size);

		if (!chunk) {
			rc = tls_clear_again(self->state) ? 1 : -1;
			break;
		}
		rc = PyObject_Size(chunk) > 0 ? PyList_Append(chunks, chunk) : 1;
		*ended = rc == 1;
		Py_DECREF(chunk);
		if (PyErr_Occurred())
			rc = -1;
	}
	if (rc > 0 && PyList_GET_SIZE(chunks) == 1)
		data = Py_NewRef(PyList_GET_ITEM(chunks, 0));
	else if (rc > 0 && PyList_GET_SIZE(chunks) > 1)
		data = weftpy_call_one(self->state->empty, self->state->names.join, chunks);
	Py_XDECREF(chunks);
	Py_XDECREF(size);
	return data;
}

/* Returns an upper bound of the data to decrypt, 0 if there is none, -1 with an exception set.
 * `hint` is the number of bytes known to be new. */
static Py_ssize_t
room_for(struct tls_protocol *self, Py_ssize_t hint)
{
	Py_ssize_t size = hint ? hint : weftpy_tls_pending(self, self->incoming);

	if (size < 0 || (size == 0 && !self->rest))
		return size;
	if (self->partial || self->rest)
		size += TLS_RECORD_BYTES;
	return size < SLACK_BYTES ? SLACK_BYTES : size;
}

/* The peer has closed its sending side. */
static int
tls_read_end(struct tls_protocol *self)
{
	if (weftpy_tls_call_eof_received(self) < 0)
		return -1;
	return weftpy_tls_start_shutdown(self);
}

static int
read_copied(struct tls_protocol *self, Py_ssize_t hint)
{
	Py_ssize_t size = self->inner ? room_for(self, hint) : 0;
	PyObject *data = NULL;
	bool ended = false;
	int rc = 0;

	if (size < 0)
		return -1;
	if (!self->inner)
		data = pull_foreign(self, &ended);
	else if (size > 0)
		data = pull(self, size, &ended);
	else
		self->incoming_pending = 0;
	if (!data && PyErr_Occurred())
		return -1;
	if (data && self->app_protocol)
		rc = weftpy_done(weftpy_call_one(self->app_protocol,
		                                 self->state->names.data_received, data));
	Py_XDECREF(data);
	return rc == 0 && ended ? tls_read_end(self) : rc;
}

/* --- into a buffered protocol ----------------------------------------------------- */

static int
read_again_soon(struct tls_protocol *self)
{
	return weftpy_tls_call_soon(self, (PyObject *)self, self->state->names._do_read);
}

/* Decrypts into the program's memory. */
static enum filled
fill_buffer(struct tls_protocol *self, PyObject *buffer, Py_ssize_t *used)
{
	enum filled filled;
	Py_ssize_t left;
	Py_buffer view;

	if (PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE) < 0)
		return FILL_FAILED;
	/* As in asyncio: an empty buffer ends the connection. */
	filled = view.len ? tls_read_fill(self, view.buf, view.len, used) : FILL_ENDED;
	PyBuffer_Release(&view);
	if (filled != FILL_FULL)
		return filled;
	left = left_over(self);
	if (left < 0 || (left > 0 && read_again_soon(self) < 0))
		return FILL_FAILED;
	return FILL_FULL;
}

/* Reads once, through the method of an SSL object of another type. */
static Py_ssize_t
read_foreign(struct tls_protocol *self, PyObject *buffer, Py_ssize_t offset, Py_ssize_t size)
{
	PyObject *rest = PySequence_GetSlice(buffer, offset, size);
	PyObject *length = PyLong_FromSsize_t(size - offset), *result = NULL;

	if (rest && length)
		result = weftpy_call_two(self->sslobj, self->state->names.read, length, rest);
	Py_XDECREF(rest);
	Py_XDECREF(length);
	return weftpy_size(result);
}

static enum filled
fill_foreign(struct tls_protocol *self, PyObject *buffer, Py_ssize_t *used)
{
	PyObject *view = PyMemoryView_FromObject(buffer);
	Py_ssize_t size = view ? PyObject_Size(view) : -1;
	enum filled filled = size < 0 ? FILL_FAILED : FILL_FULL;

	self->unsent = true;
	while (filled == FILL_FULL && *used < size) {
		Py_ssize_t count = read_foreign(self, view, *used, size);

		if (count > 0)
			*used += count;
		else if (count == 0)
			filled = FILL_ENDED;
		else
			filled = tls_clear_again(self->state) ? FILL_DRAINED : FILL_FAILED;
	}
	Py_XDECREF(view);
	if (filled == FILL_FULL && read_again_soon(self) < 0)
		return FILL_FAILED;
	return filled;
}

static int
read_buffered(struct tls_protocol *self)
{
	Py_ssize_t pending = weftpy_tls_pending(self, self->incoming), used = 0;
	PyObject *get_buffer, *updated, *buffer, *count;
	enum filled filled;
	int rc = 0;

	self->incoming_pending = pending;
	if (pending < 0)
		return -1;
	if (self->inner && pending == 0 && !self->rest)
		return 0;
	get_buffer = Py_NewRef(self->get_buffer);
	updated = Py_NewRef(self->buffer_updated);
	buffer = PyObject_CallFunction(get_buffer, "n", pending);
	Py_DECREF(get_buffer);
	if (!buffer)
		filled = FILL_FAILED;
	else if (self->inner)
		filled = fill_buffer(self, buffer, &used);
	else
		filled = fill_foreign(self, buffer, &used);
	Py_XDECREF(buffer);
	if (filled == FILL_FAILED)
		rc = -1;
	if (rc == 0 && used > 0) {
		count = PyLong_FromSsize_t(used);
		rc = count ? weftpy_done(PyObject_CallOneArg(updated, count)) : -1;
		Py_XDECREF(count);
	}
	Py_DECREF(updated);
	return rc == 0 && filled == FILL_ENDED ? tls_read_end(self) : rc;
}

/* --- flow control of the transport ------------------------------------------------ */

static int
control(struct tls_protocol *self, Py_ssize_t size)
{
	struct weftpy_tls_state *state = self->state;
	PyObject *name;

	if (size < 0)
		return -1;
	if (size >= self->incoming_limits.high && !self->ssl_reading_paused)
		name = state->names.pause_reading;
	else if (size <= self->incoming_limits.low && self->ssl_reading_paused)
		name = state->names.resume_reading;
	else
		return 0;
	self->ssl_reading_paused = name == state->names.pause_reading;
	return self->transport ? weftpy_done(weftpy_call(self->transport, name)) : 0;
}

int
weftpy_tls_control_reading(struct tls_protocol *self)
{
	return control(self, weftpy_tls_pending(self, self->incoming));
}

/* --- reading ---------------------------------------------------------------------- */

static int
tls_read_read_all(struct tls_protocol *self, Py_ssize_t hint)
{
	bool known = self->inner && !self->app_reading_paused;
	int rc = 0;

	if (!self->app_reading_paused)
		rc = self->get_buffer ? read_buffered(self) : read_copied(self, hint);
	if (rc < 0)
		return -1;
	if (self->backlog.count && (self->phase == WRAPPED || self->phase == FLUSHING))
		rc = weftpy_tls_write_out(self);
	else if (self->unsent)
		rc = weftpy_tls_send(self);
	if (rc < 0)
		return -1;
	return known ? control(self, self->incoming_pending) : weftpy_tls_control_reading(self);
}

/* Passes all data that can be decrypted to the program; `hint` is the number of bytes known to
 * have arrived, or 0.  An error ends the connection. */
int
weftpy_tls_read(struct tls_protocol *self, Py_ssize_t hint)
{
	if (self->phase != WRAPPED && self->phase != FLUSHING)
		return 0;
	return weftpy_tls_settle(self, tls_read_read_all(self, hint));
}

/* Data that arrived while the program had paused is passed on by a later callback, not now. */
int
weftpy_tls_resume_reading(struct tls_protocol *self)
{
	int rc;

	if (!self->app_reading_paused)
		return 0;
	rc = weftpy_tls_call_soon(self, (PyObject *)self, self->state->names._resume);
	if (rc == 0)
		self->app_reading_paused = false;
	return rc;
}
