/* send.c - the write queue, and the op that sends it.
 *
 *   1. Writes are sent in the order of the queue.  The first write, and those that fit behind
 *      it, are in flight with the sender's op: the kernel uses their memory.  A result inspects
 *      only the writes in flight, so its cost does not depend on the length of the queue.
 *   2. A canceled write leaves the queue at once, unless it is in flight.  Then the op is
 *      canceled, and the write ends with the op.  Bytes that were sent by then stay sent.
 *   3. An error of the connection ends all writes, and every later one.
 *   4. A file is in flight alone, and so is a descriptor.  An error of the file or descriptor
 *      itself ends only its own write.
 *   5. With TLS no write is in flight: the op sends the session's output (secure.c).
 */
#include <errno.h>
#include "net/stream/stream.h"
#include "net/tls/tls.h"

#define SPARE_MAX 64u
#define CROWD     256u /* see decision 14 */

/* --- caches ------------------------------------------------------------- */

static struct weft__sender *
take_sender(weft_loop *loop)
{
	struct weft__net *net = weft__net_of(loop);
	struct weft__sender *sender = net->senders;

	if (!sender)
		return weft__sys->alloc(sizeof(*sender));
	net->senders = sender->next;
	net->sender_count--;
	return sender;
}

static void
give_sender(weft_loop *loop, struct weft__sender *sender)
{
	struct weft__net *net = weft__net_of(loop);

	weft__sys->release(sender->many);
	if (net->sender_count == SPARE_MAX) {
		weft__sys->release(sender);
		return;
	}
	sender->next = net->senders;
	net->senders = sender;
	net->sender_count++;
}

struct weft__write *
weft__write_take(weft_loop *loop)
{
	struct weft__net *net = weft__net_of(loop);
	struct weft__write *write = net->writes;

	if (!write)
		return weft__sys->alloc(sizeof(*write));
	net->writes = write->next;
	net->write_count--;
	return write;
}

void
weft__write_give(weft_loop *loop, struct weft__write *write)
{
	struct weft__net *net = weft__net_of(loop);

	if (net->write_count == SPARE_MAX) {
		weft__sys->release(write);
		return;
	}
	write->next = net->writes;
	net->writes = write;
	net->write_count++;
}

/* --- the queue ---------------------------------------------------------- */

static void
append_write(weft_stream *stream, struct weft__write *write)
{
	write->next = NULL;
	write->prev = stream->first ? stream->last : NULL;
	if (write->prev)
		write->prev->next = write;
	else
		stream->first = write;
	stream->last = write;
	stream->queued += write->left;
	if (write->kind == WEFT__WRITE_FILE)
		stream->queued_files += write->part->left;
}

static void
unlink_write(weft_stream *stream, struct weft__write *write)
{
	if (write->prev)
		write->prev->next = write->next;
	else
		stream->first = write->next;
	if (write->next)
		write->next->prev = write->prev;
	else
		stream->last = write->prev;
	stream->queued -= write->left;
	if (write->kind == WEFT__WRITE_FILE)
		stream->queued_files -= write->part->left;
}

/* Remove an ended write from the queue and notify its waiter or op. */
static void
end_write(weft_stream *stream, struct weft__write *write, int64_t result)
{
	struct weft__waiter *waiter = write->waiter;
	weft_op *op = write->op;

	unlink_write(stream, write);
	write->result = result;
	write->ended = true;
	if (op) {
		weft__write_give(op->loop, write);
		(void)weft_op_finish(op, result);
	} else if (waiter && weft__claim(waiter)) {
		stream->in_flight++;
		weft__wake(waiter, result);
	}
}

void
weft__send_request_cancel(struct weft__write *write, int why)
{
	weft_stream *stream = write->stream;

	if (write->in_flight) {
		if (!write->why)
			write->why = why;
		weft__op_request_cancel(weft__op_of(&stream->out->op), why);
	} else {
		end_write(stream, write, why);
	}
}

void
weft__send_fail(weft_stream *stream, int error)
{
	struct weft__write *write = stream->first;

	if (!stream->out_error)
		stream->out_error = error;
	while (write) {
		struct weft__write *next = write->next;

		weft__send_request_cancel(write, error);
		write = next;
	}
	if (stream->tls && stream->out)
		weft__op_request_cancel(weft__op_of(&stream->out->op), error);
}

void
weft__write_advance(weft_stream *stream, struct weft__write *write, size_t size)
{
	stream->queued -= size;
	write->left -= size;
	size += write->skip;
	while (write->count > 0 && size >= write->spans->size) {
		size -= write->spans->size;
		write->spans++;
		write->count--;
	}
	write->skip = size;
}

/* Gather at most `max` pieces of the queue, and mark their writes as in flight.  Returns the
 * number of pieces. */
static size_t
gather_some(const weft_stream *stream, struct iovec *iov, size_t max)
{
	size_t n = 0;

	for (struct weft__write *w = stream->first; w && w->kind == WEFT__WRITE_BYTES && n < max;
	     w = w->next) {
		size_t skip = w->skip;

		w->in_flight = true;
		for (size_t i = 0; i < w->count && n < max; i++) {
			iov[n].iov_base = (void *)((uintptr_t)w->spans[i].data + skip);
			iov[n].iov_len = w->spans[i].size - skip;
			n += iov[n].iov_len > 0;
			skip = 0;
		}
	}
	return n;
}

/* Fill the message of the sender.  Only a queue of many pieces allocates the larger array. */
static void
gather(weft_stream *stream, struct weft__sender *out)
{
	size_t n = gather_some(stream, out->iov, WEFT__IOVS);

	out->msg = (struct msghdr){ .msg_iov = out->iov, .msg_iovlen = n };
	if (n < WEFT__IOVS)
		return;
	if (!out->many)
		out->many = weft__sys->alloc(WEFT__IOVS_MANY * sizeof(*out->many));
	if (!out->many)
		return;
	out->msg.msg_iov = out->many;
	out->msg.msg_iovlen = gather_some(stream, out->many, WEFT__IOVS_MANY);
}

static bool
is_first(const weft_stream *stream, int kind)
{
	return stream->first && stream->first->kind == kind;
}

/* `size` bytes of the queue were sent: end the writes that are complete. */
static void
sent(weft_stream *stream, size_t size)
{
	while (is_first(stream, WEFT__WRITE_BYTES)) {
		struct weft__write *write = stream->first;
		size_t n = size < write->left ? size : write->left;

		weft__write_advance(stream, write, n);
		size -= n;
		if (write->left > 0)
			return;
		end_write(stream, write, (int64_t)write->size);
	}
}

/* `size` bytes of the file at the head of the queue were sent.  0: the file has ended. */
static void
sent_file(weft_stream *stream, uint64_t size)
{
	struct weft__write *write = stream->first;

	stream->queued_files -= size;
	write->part->offset += size;
	write->part->left -= size;
	if (write->part->left == 0 || size == 0)
		end_write(stream, write, 0);
}

/* --- sending ------------------------------------------------------------ */

static void pump(weft_stream *stream);

/* Errors of the file or descriptor, not of the connection. */
static bool
is_of_thing(int64_t error)
{
	return error == WEFT_EBADF || error == -ETOOMANYREFS || error == WEFT_EPERM
	       || error == WEFT_EINVAL || error == -EIO || error == WEFT_ENOMEM
	       || error == WEFT_ENOSYS || error == -EOVERFLOW || error == -ESPIPE
	       || error == -EISDIR;
}

/* Whether `result` is the error that a write was canceled with.  Only writes in flight cancel
 * the op, and they are at the head of the queue. */
static bool
is_cancel_error(const weft_stream *stream, int64_t result)
{
	for (const struct weft__write *w = stream->first; w && w->in_flight; w = w->next)
		if (w->why != 0 && w->why == result)
			return true;
	return false;
}

/* Nothing is in flight now: end the canceled writes. */
static void
end_flight(weft_stream *stream)
{
	struct weft__write *write = stream->first, *next;

	for (; write && write->in_flight; write = next) {
		next = write->next;
		write->in_flight = false;
		if (write->why)
			end_write(stream, write, write->why);
	}
}

/* Process the result of the op, which a write in flight may have canceled. */
static void
take_result(weft_stream *stream, int64_t result)
{
	bool canceled = result < 0 && is_cancel_error(stream, result);
	bool file = is_first(stream, WEFT__WRITE_FILE);
	bool thing = file || is_first(stream, WEFT__WRITE_FD);

	if (result >= 0 && stream->tls)
		weft__session_sent(stream->tls, (size_t)result);
	else if (result >= 0 && file)
		sent_file(stream, (uint64_t)result);
	else if (result >= 0 && thing)
		end_write(stream, stream->first, 0);
	else if (result >= 0)
		sent(stream, (size_t)result);
	if (thing && is_of_thing(result)) { /* invariant 4 */
		end_write(stream, stream->first, result);
		canceled = true;
	}
	end_flight(stream);
	if (result < 0 && !canceled)
		weft__send_fail(stream, (int)result);
}

static void
on_sent(weft_op *op, int64_t result, void *arg)
{
	weft_stream *stream = arg;

	(void)op;
	take_result(stream, result);
	if (weft__events_begin_drain(stream)) {
		stream->events.on_drain(stream, stream->arg);
		weft__events_returned(stream);
	}
	pump(stream);
}

/* Close the sending side. */
static void
send_half_close(weft_stream *stream)
{
	int rc = weft__loop_kernel(stream->out->op.loop)->shutdown(stream->fd, SHUT_WR);

	stream->flags |= WEFT__STREAM_SHUT;
	if (rc == -ENOTCONN) /* the connection is already gone */
		rc = WEFT_EPIPE;
	end_write(stream, stream->first, rc);
	stream->out_error = WEFT_EPIPE;
}

/* All TLS output was sent: end the writes that the session has accepted completely. */
static void
end_handed_over(weft_stream *stream)
{
	while (is_first(stream, WEFT__WRITE_BYTES) && stream->first->left == 0)
		end_write(stream, stream->first, (int64_t)stream->first->size);
}

/* Send TLS output at once, where that costs no more than an op.  True if some was sent. */
static bool
send_output(weft_stream *stream, const void *bytes, size_t size)
{
	weft_loop *loop = stream->out->op.loop;
	struct iovec part = { (void *)(uintptr_t)bytes, size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t n = -EAGAIN;

	if (!weft__loop_batches(loop))
		n = weft__fd_send_now(loop, stream->fd, &msg, false);
	if (n > 0)
		weft__session_sent(stream->tls, (size_t)n);
	return n > 0;
}

/* Whether a closing TLS stream still has to send its close_notify. */
static bool
owes_close_notify(const weft_stream *stream)
{
	return (stream->flags & (WEFT__STREAM_CLOSING | WEFT__STREAM_SHUT)) == WEFT__STREAM_CLOSING;
}

/* The same as stream_send_start(), for TLS. */
static bool
start_secure(weft_stream *stream)
{
	const void *bytes;
	int64_t size = 0;
	int rc = stream->out_error;

	while (rc == 0 && (size = weft__secure_output(stream, &bytes)) >= 0) {
		if (size > 0 && send_output(stream, bytes, (size_t)size))
			continue;
		if (size > 0)
			break;
		end_handed_over(stream);
		if (!stream->first && !owes_close_notify(stream))
			return false;
		if (is_first(stream, WEFT__WRITE_BYTES)) /* the session accepts no more */
			return take_result(stream, WEFT_EPROTO), false;
		if (!(stream->flags & WEFT__STREAM_SHUT)) {
			stream->flags |= WEFT__STREAM_SHUT;
			weft__secure_close_notify(stream);
			continue;
		}
		send_half_close(stream);
		rc = stream->out_error;
	}
	if (rc == 0 && size < 0)
		rc = (int)size;
	if (rc == 0)
		rc = weft_op_send(&stream->out->op, stream->fd, bytes, (size_t)size, 0, WEFT_NEVER);
	if (rc < 0)
		take_result(stream, rc);
	return rc == 0;
}

static bool
start_thing(weft_stream *stream)
{
	struct weft__write *first = stream->first;
	weft_op *op = &stream->out->op;
	int rc = first->kind == WEFT__WRITE_FILE
	                 ? weft__op_sendfile(op, stream->fd, first->part, WEFT_NEVER)
	                 : weft__op_sendmsg(op, stream->fd, &first->fd_message->msg, 0, WEFT_NEVER);

	stream->first->in_flight = rc == 0;
	if (rc < 0)
		take_result(stream, rc);
	return rc == 0;
}

/* Start the op for the queue; false if nothing is being sent. */
static bool
stream_send_start(weft_stream *stream)
{
	struct weft__sender *out = stream->out;
	int rc;

	while (is_first(stream, WEFT__WRITE_HALF_CLOSE))
		send_half_close(stream);
	if (!stream->first)
		return false;
	if (stream->first->kind != WEFT__WRITE_BYTES)
		return start_thing(stream);
	gather(stream, out);
	if (out->msg.msg_iovlen == 1 && !(stream->flags & WEFT__STREAM_PLAIN))
		rc = weft_op_send(&out->op, stream->fd, out->iov->iov_base, out->iov->iov_len, 0,
		                  WEFT_NEVER);
	else
		rc = weft__op_sendmsg(&out->op, stream->fd, &out->msg, 0, WEFT_NEVER);
	if (rc < 0)
		take_result(stream, rc); /* nothing is in flight */
	return rc == 0;
}

/* Send the queue.  If there is nothing to send, release the sender. */
static void
pump(weft_stream *stream)
{
	struct weft__sender *out = stream->out;

	if (stream->tls ? start_secure(stream) : stream_send_start(stream))
		return;
	stream->out = NULL;
	if (out->lingers)
		(void)weft_timer_stop(&out->linger);
	give_sender(out->op.loop, out);
	if (stream->flags & WEFT__STREAM_CLOSING)
		(void)weft__close_go_on(stream);
}

/* Get a sender.  Returns 0 or WEFT_ENOMEM. */
static int
have_sender(weft_stream *stream)
{
	weft_loop *loop = weft__stream_loop(stream);

	stream->out = take_sender(loop);
	if (!stream->out)
		return weft__fail(WEFT_ENOMEM, "weft_stream_write: out of memory");
	stream->out->lingers = false;
	stream->out->many = NULL;
	return weft_op_init(&stream->out->op, loop, on_sent, stream);
}

int
weft__send_queue(weft_stream *stream, struct weft__write *write)
{
	bool idle = !stream->out;
	int rc = idle ? have_sender(stream) : 0;

	if (rc < 0)
		return rc;
	write->stream = stream;
	write->why = 0;
	write->in_flight = write->ended = false;
	append_write(stream, write);
	if (idle)
		pump(stream);
	return 0;
}

void
weft__send_flush(weft_stream *stream)
{
	const void *bytes;

	if (stream->out || stream->out_error
	    || (!owes_close_notify(stream) && weft__session_output(stream->tls, &bytes) == 0))
		return;
	if (have_sender(stream) < 0)
		stream->out_error = WEFT_ENOMEM;
	else
		pump(stream);
}

/* --- sending at once ---------------------------------------------------- */

/* Where the loop batches system calls (io_uring), a queued write is cheapest, but it wakes
 * its writer once more.  With this many descriptors the writer is cold in the caches by then,
 * and a system call of its own costs less. */
static bool
is_crowded(const weft_loop *loop)
{
	return weft__loop_fds(loop) > CROWD;
}

int64_t
weft__send_now(weft_stream *stream, const weft_span *spans, size_t count, bool must)
{
	weft_loop *loop = weft__stream_loop(stream);
	struct iovec iov[WEFT__IOVS];
	struct msghdr msg = { .msg_iov = iov };
	int64_t n;

	if (stream->first || stream->tls
	    || (weft__loop_batches(loop) && !must && !is_crowded(loop)))
		return 0;
	for (size_t i = 0; i < count && msg.msg_iovlen < WEFT__IOVS; i++)
		if (spans[i].size > 0) {
			iov[msg.msg_iovlen].iov_base = (void *)(uintptr_t)spans[i].data;
			iov[msg.msg_iovlen++].iov_len = spans[i].size;
		}
	if (msg.msg_iovlen == 0)
		return 0;
	n = weft__fd_send_now(loop, stream->fd, &msg, must);
	if (n < 0 && n != -EAGAIN)
		stream->out_error = (int)n;
	return n == -EAGAIN ? 0 : n;
}
