/* stream_read.c - passes received data to the protocol. */
#include "py_stream.h"
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define READ_LONG (32 * 1024) /* from this size on, data is read into its bytes object directly */

/* Returns a count, 0 at the end, WEFT_EAGAIN, or -1 with an exception. */
static ssize_t
receive(struct stream *s, void *at, size_t size)
{
	ssize_t count = recv(s->fd, at, size, MSG_DONTWAIT);

	if (count >= 0)
		return count;
	if (errno == EAGAIN || errno == EINTR)
		return WEFT_EAGAIN;
	PyErr_SetFromErrno(PyExc_OSError);
	return -1;
}

/* Reads into the loop's scratch buffer and copies. */
static ssize_t
receive_short(struct stream *s, PyObject **out)
{
	ssize_t count = receive(s, s->core->scratch, WEFTPY_SCRATCH);

	if (count > 0)
		*out = PyBytes_FromStringAndSize(s->core->scratch, count);
	return count > 0 && !*out ? -1 : count;
}

/* Reads into the final bytes object.  FIONREAD determines its size: allocating the maximum each
 * time would map, clear and unmap memory. */
static ssize_t
receive_bytes(struct stream *s, PyObject **out)
{
	PyObject *bytes;
	ssize_t count;
	int there = 0;

	if (s->last_read < READ_LONG || ioctl(s->fd, FIONREAD, &there) < 0 || there < READ_LONG)
		return receive_short(s, out);
	if (there > WEFTPY_SCRATCH)
		there = WEFTPY_SCRATCH;
	bytes = PyBytes_FromStringAndSize(NULL, there);
	if (!bytes)
		return -1;
	count = receive(s, PyBytes_AS_STRING(bytes), (size_t)there);
	if (count <= 0)
		Py_DECREF(bytes);
	else if (count < there && _PyBytes_Resize(&bytes, count) < 0)
		return -1;
	else
		*out = bytes;
	return count;
}

/* A method of the protocol has failed: the connection ends. */
static int
failed(struct stream *s, const char *message)
{
	return weftpy_is_fatal() ? -1 : weftpy_stream_fatal(s, message);
}

static int
at_end(struct stream *s)
{
	int open = weftpy_truth(weftpy_call(s->protocol, s->core->state->names.eof_received));

	if (open < 0)
		return failed(s, "Fatal error: protocol.eof_received() call failed.");
	s->reading = false; /* there is nothing more to read */
	return open ? weftpy_stream_update(s) : weftpy_stream_close(s);
}

/* Handles the result of a read.  Returns true if there is data for the protocol. */
static bool
has_data(struct stream *s, ssize_t count, int *rc)
{
	*rc = 0;
	if (count > 0) {
		s->last_read = (size_t)count;
		return true;
	}
	if (count == 0)
		*rc = at_end(s);
	else if (count != WEFT_EAGAIN)
		*rc = failed(s, "Fatal read error on socket transport");
	return false;
}

static const char not_received[] = "Fatal error: protocol.data_received() call failed.";

static int
give_bytes(struct weftpy_state *state, PyObject *protocol, PyObject *bytes)
{
	return weftpy_done(weftpy_call_one(protocol, state->names.data_received, bytes));
}

static int
read_bytes(struct stream *s)
{
	PyObject *bytes = NULL;
	int rc;

	if (!has_data(s, receive_bytes(s, &bytes), &rc))
		return rc;
	rc = give_bytes(s->core->state, s->protocol, bytes);
	Py_DECREF(bytes);
	return rc == 0 ? 0 : failed(s, not_received);
}

/* Makes a bytes object only if the reader is not one of asyncio's own. */
static int
read_stream(struct stream *s)
{
	struct weftpy_state *state = s->core->state;
	char *scratch = s->core->scratch;
	PyObject *protocol = Py_NewRef(s->protocol), *bytes;
	ssize_t count = receive(s, scratch, WEFTPY_SCRATCH);
	int rc;

	if (has_data(s, count, &rc)) {
		rc = weftpy_reader_feed(state, protocol, scratch, (size_t)count);
		if (rc == 0) {
			bytes = PyBytes_FromStringAndSize(scratch, count);
			rc = bytes ? give_bytes(state, protocol, bytes) : -1;
			Py_XDECREF(bytes);
		}
		rc = rc < 0 ? failed(s, not_received) : 0;
	}
	Py_DECREF(protocol);
	return rc;
}

/* Calls the protocol's get_buffer(), with the checks that asyncio makes. */
static PyObject *
get_buffer(struct stream *s, PyObject *protocol)
{
	PyObject *hint = PyLong_FromLong(-1), *buffer = NULL;
	Py_ssize_t size;

	if (hint)
		buffer = PyObject_CallMethodOneArg(protocol, s->core->state->names.get_buffer,
		                                   hint);
	Py_XDECREF(hint);
	if (!buffer)
		return NULL;
	size = PyObject_Size(buffer);
	if (size > 0)
		return buffer;
	Py_DECREF(buffer);
	if (size == 0)
		PyErr_SetString(PyExc_RuntimeError, "get_buffer() returned an empty buffer");
	return NULL;
}

static ssize_t
receive_into(struct stream *s, PyObject *buffer)
{
	Py_buffer view;
	ssize_t count;

	if (PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE) < 0) {
		PyErr_Format(PyExc_TypeError,
		             "recv_into() argument 1 must be read-write bytes-like object, not %s",
		             Py_TYPE(buffer)->tp_name);
		return -1;
	}
	/* get_buffer() may have closed this transport: then there is nothing to read from. */
	count = s->fd >= 0 ? receive(s, view.buf, (size_t)view.len) : WEFT_EAGAIN;
	PyBuffer_Release(&view);
	return count;
}

static int
buffer_updated(struct stream *s, PyObject *protocol, ssize_t count)
{
	PyObject *number = PyLong_FromSsize_t(count), *result = NULL;

	if (number)
		result = weftpy_call_one(protocol, s->core->state->names.buffer_updated, number);
	Py_XDECREF(number);
	return weftpy_done(result);
}

static int
read_buffer(struct stream *s)
{
	PyObject *protocol = Py_NewRef(s->protocol);
	PyObject *buffer = get_buffer(s, protocol);
	ssize_t count;
	int rc;

	if (!buffer) {
		rc = failed(s, "Fatal error: protocol.get_buffer() call failed.");
	} else {
		count = receive_into(s, buffer);
		Py_DECREF(buffer);
		if (has_data(s, count, &rc) && buffer_updated(s, protocol, count) < 0)
			rc = failed(s, "Fatal error: protocol.buffer_updated() call failed.");
	}
	Py_DECREF(protocol);
	return rc;
}

static int
read_tls(struct stream *s)
{
	PyObject *protocol = Py_NewRef(s->protocol);
	Py_ssize_t size;
	ssize_t count;
	char *at;
	int rc = 0;

	if (weftpy_tls_buffer(protocol, &at, &size) < 0) {
		rc = failed(s, "Fatal error: protocol.get_buffer() call failed.");
	} else {
		count = receive(s, at, (size_t)size);
		if (!has_data(s, count, &rc)) {
			if (rc == 0 && weftpy_tls_received(protocol, 0) < 0)
				PyErr_Clear(); /* it only returned its buffer */
		} else if (weftpy_tls_received(protocol, count) < 0) {
			rc = failed(s, "Fatal error: protocol.buffer_updated() call failed.");
		}
	}
	Py_DECREF(protocol);
	return rc;
}

int
weftpy_stream_read(struct stream *s)
{
	switch (s->taker) {
	case TAKES_BUFFER:
		return read_buffer(s);
	case TAKES_TLS:
		return read_tls(s);
	case TAKES_STREAM:
		return read_stream(s);
	default:
		return read_bytes(s);
	}
}
