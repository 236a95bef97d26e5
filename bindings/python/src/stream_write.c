/* stream_write.c - sends the data that a protocol writes.
 *
 * A write is sent at once if the queue is empty.  What the socket does not accept is queued: as
 * a reference if it is a bytes object, else as a copy, because the caller may change it.  The
 * queue is sent when the socket is writable, many pieces with one system call.
 */
#include "py_stream.h"
#include <errno.h>
#include <sys/socket.h>

#define PIECES_MAX  64 /* per system call */
#define LOST_SILENT 5  /* writes after the end, before a warning is logged */

static const char write_error[] = "Fatal write error on socket transport";

void
weftpy_stream_drop_queue(struct stream *s)
{
	while (s->count > 0) {
		PyObject *bytes = s->queue[s->first].bytes;

		s->first++;
		s->count--;
		Py_DECREF(bytes);
	}
	s->first = 0;
	s->queued = 0;
}

static int
stream_write_make_room(struct stream *s)
{
	size_t size = s->queue_size ? s->queue_size * 2 : 8;
	struct piece *queue;

	if (s->first > 0) {
		memmove(s->queue, s->queue + s->first, s->count * sizeof *s->queue);
		s->first = 0;
		if (s->count < s->queue_size)
			return 0;
	}
	queue = PyMem_Realloc(s->queue, size * sizeof *queue);
	if (!queue) {
		PyErr_NoMemory();
		return -1;
	}
	s->queue = queue;
	s->queue_size = size;
	return 0;
}

/* Queues the remaining part of `data`, which starts at `at`. */
static int
enqueue(struct stream *s, PyObject *data, const char *at, size_t left)
{
	PyObject *bytes;

	if (left == 0)
		return 0;
	if (s->first + s->count == s->queue_size && stream_write_make_room(s) < 0)
		return -1;
	if (PyBytes_CheckExact(data)) {
		bytes = Py_NewRef(data);
	} else {
		bytes = PyBytes_FromStringAndSize(at, (Py_ssize_t)left);
		if (!bytes)
			return -1;
		at = PyBytes_AS_STRING(bytes);
	}
	s->queue[s->first + s->count++] = (struct piece){ bytes, at, left };
	s->queued += left;
	return 0;
}

static void
sent(struct stream *s, size_t bytes)
{
	s->queued -= bytes;
	while (bytes > 0) {
		struct piece *piece = &s->queue[s->first];
		size_t part = bytes < piece->left ? bytes : piece->left;

		piece->at += part;
		piece->left -= part;
		bytes -= part;
		if (piece->left > 0)
			return;
		s->first++;
		s->count--;
		Py_DECREF(piece->bytes);
	}
	if (s->count == 0)
		s->first = 0;
}

/* Sends from the queue once.  Returns 1; 0 if the socket accepts nothing; -1 with an exception. */
static int
send_queue(struct stream *s)
{
	struct iovec spans[PIECES_MAX];
	struct msghdr message = { .msg_iov = spans };
	ssize_t count;

	for (size_t i = 0; i < s->count && i < PIECES_MAX; i++) {
		spans[i].iov_base = (char *)s->queue[s->first + i].at;
		spans[i].iov_len = s->queue[s->first + i].left;
		message.msg_iovlen++;
	}
	s->core->polled_ns = 0;
	count = sendmsg(s->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (count < 0) {
		PyErr_SetFromErrno(PyExc_OSError);
		return -1;
	}
	sent(s, (size_t)count);
	return 1;
}

/* --- watermarks ----------------------------------------------------------- */

static int
call_protocol(struct stream *s, PyObject *name)
{
	PyObject *error;
	int rc = weftpy_done(weftpy_call(s->protocol, name));

	if (rc == 0 || weftpy_is_fatal())
		return rc;
	error = weftpy_fetch_exception();
	rc = weftpy_done(weftpy_call_two((PyObject *)s, s->core->state->names._report_flow_control,
	                                 error, name));
	Py_XDECREF(error);
	return rc;
}

int
weftpy_stream_maybe_pause(struct stream *s)
{
	if (s->queued <= s->high || s->protocol_paused || !s->core)
		return 0;
	s->protocol_paused = true;
	return call_protocol(s, s->core->state->names.pause_writing);
}

static int
maybe_resume(struct stream *s)
{
	if (s->queued > s->low || !s->protocol_paused)
		return 0;
	s->protocol_paused = false;
	return call_protocol(s, s->core->state->names.resume_writing);
}

/* --- writing -------------------------------------------------------------- */

/* Returns false if nothing can be written: raises an exception, or counts the write. */
static bool
may_write(struct stream *s, int *rc)
{
	*rc = -1;
	if (s->eof) {
		PyErr_SetString(PyExc_RuntimeError, "Cannot call write() after write_eof()");
		return false;
	}
	if (s->empty_waiter) {
		PyErr_SetString(PyExc_RuntimeError, "unable to write; sendfile is in progress");
		return false;
	}
	*rc = 0;
	if (s->lost == 0 && s->core)
		return true;
	if (s->lost++ >= LOST_SILENT) {
		PyObject *name = PyUnicode_FromString("_warn_lost");

		*rc = weftpy_done(name ? weftpy_call((PyObject *)s, name) : NULL);
		Py_XDECREF(name);
	}
	return false;
}

/* Sends what the socket accepts now; queues the rest. */
static int
write_span(struct stream *s, PyObject *data, const char *at, size_t size)
{
	ssize_t count = 0;

	s->core->polled_ns = 0;
	if (s->count == 0) {
		count = send(s->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (count == (ssize_t)size)
			return 0;
		if (count < 0 && errno != EAGAIN && errno != EINTR) {
			PyErr_SetFromErrno(PyExc_OSError);
			return weftpy_stream_fatal(s, write_error);
		}
		if (count < 0)
			count = 0;
	}
	if (enqueue(s, data, at + count, size - (size_t)count) < 0 || weftpy_stream_update(s) < 0)
		return -1;
	return weftpy_stream_maybe_pause(s);
}

static bool
is_data(PyObject *data)
{
	if (PyBytes_Check(data) || PyByteArray_Check(data) || PyMemoryView_Check(data))
		return true;
	PyErr_Format(PyExc_TypeError, "data argument must be a bytes-like object, not '%s'",
	             Py_TYPE(data)->tp_name);
	return false;
}

int
weftpy_stream_write(PyObject *self, PyObject *data)
{
	struct stream *s = (struct stream *)self;
	Py_buffer view;
	int rc;

	if (PyBytes_CheckExact(data)) {
		size_t size = (size_t)PyBytes_GET_SIZE(data);

		if (!may_write(s, &rc) || size == 0)
			return rc;
		return write_span(s, data, PyBytes_AS_STRING(data), size);
	}
	if (!is_data(data) || PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
		return -1;
	if (may_write(s, &rc) && view.len > 0)
		rc = write_span(s, data, view.buf, (size_t)view.len);
	PyBuffer_Release(&view);
	return rc;
}

static int
enqueue_all(struct stream *s, PyObject *items)
{
	for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++) {
		PyObject *data = PySequence_Fast_GET_ITEM(items, i);
		Py_buffer view;
		int rc;

		if (!is_data(data) || PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
			return -1;
		rc = enqueue(s, data, view.buf, (size_t)view.len);
		PyBuffer_Release(&view);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* If one item of a list is not valid, none of the list is sent. */
static void
drop_from(struct stream *s, size_t count)
{
	while (s->count > count) {
		struct piece *piece = &s->queue[s->first + --s->count];

		s->queued -= piece->left;
		Py_DECREF(piece->bytes);
	}
}

int
weftpy_stream_writelines(struct stream *s, PyObject *list)
{
	PyObject *items = PySequence_Fast(list, "writelines() argument must be an iterable");
	size_t before = s->count;
	int rc;

	if (!items)
		return -1;
	if (may_write(s, &rc)) {
		rc = enqueue_all(s, items);
		if (rc < 0)
			drop_from(s, before);
		if (rc == 0 && before == 0 && s->count > 0 && send_queue(s) < 0)
			rc = weftpy_stream_fatal(s, write_error);
		if (rc == 0 && s->core)
			rc = weftpy_stream_update(s);
		if (rc == 0)
			rc = weftpy_stream_maybe_pause(s);
	}
	Py_DECREF(items);
	return rc;
}

/* The socket has failed, so sendfile(), which waits for the queue, has failed too. */
static int
flush_failed(struct stream *s)
{
	PyObject *error = weftpy_fetch_exception();
	int rc;

	weftpy_stream_drop_queue(s);
	PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	rc = weftpy_stream_fatal(s, write_error);
	if (rc == 0 && s->empty_waiter)
		rc = weftpy_done(weftpy_call_one(s->empty_waiter,
		                                 s->core->state->names.set_exception, error));
	Py_DECREF(error);
	return rc;
}

/* The queue is empty: continues whatever waited for that. */
static int
drained(struct stream *s)
{
	int rc = weftpy_stream_update(s);

	if (rc == 0 && s->empty_waiter)
		rc = weftpy_done(weftpy_call_one(s->empty_waiter, s->core->state->names.set_result,
		                                 Py_None));
	if (rc == 0 && s->closing) {
		s->lost++;
		rc = weftpy_done(weftpy_call_one(
			(PyObject *)s, s->core->state->names._call_connection_lost, Py_None));
	} else if (rc == 0 && s->eof && shutdown(s->fd, SHUT_WR) < 0) {
		PyErr_SetFromErrno(PyExc_OSError);
		rc = -1;
	}
	return rc;
}

int
weftpy_stream_flush(struct stream *s)
{
	if (send_queue(s) < 0)
		return flush_failed(s);
	if (maybe_resume(s) < 0)
		return -1;
	return s->count == 0 && s->core && s->lost == 0 ? drained(s) : 0;
}
