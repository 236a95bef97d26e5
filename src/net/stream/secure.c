/* secure.c - TLS between a stream and its connection.
 *
 * The session (tls.h) does no I/O.  Received bytes are fed to it, and the bytes it returns go
 * where plain bytes go.  Writes are handed to it, and its output is sent.
 *
 *   1. The session has its own copy of the bytes of a write once it has accepted them.  The
 *      kernel uses no memory but the session's, and that output stays in place while it is
 *      sent.
 *   2. A write ends when the session has accepted all its bytes and has no output left to send.
 *   3. Reading may produce output, too (an answer, an alert).  It is sent like a write that has
 *      no waiter.
 *   4. Until the handshake is done, the stream is plain, and the threadlet that does the
 *      handshake owns the session.  It is an in-flight caller of the stream all the time, so a
 *      close waits for it.
 */
#include <errno.h>
#include "net/stream/stream.h"
#include "net/tls/tls.h"

/* --- receiving ---------------------------------------------------------- */

/* The loop's memory to decrypt into. */
static char *
scratch_of(weft_stream *stream)
{
	struct weft__net *net = weft__net_of(weft__stream_loop(stream));

	if (!net->scratch)
		net->scratch = weft__sys->alloc(WEFT__RECORD);
	return net->scratch;
}

/* Decrypt a record, or what there is of it; false if there is no more. */
static bool
read_some(weft_stream *stream, char *scratch)
{
	int64_t n = weft__session_read(stream->tls, scratch, WEFT__RECORD);

	if (n > 0)
		n = weft__queue_add(&stream->in_queue,
		                    &weft__net_of(weft__stream_loop(stream))->chunks, scratch,
		                    (size_t)n)
		                    == 0
		            ? n
		            : WEFT_ENOMEM;
	if (n > 0)
		return true;
	if (n == 0)
		stream->flags |= WEFT__STREAM_ENDED;
	else if (n != WEFT_EAGAIN)
		stream->in_error = (int)n;
	return false;
}

void
weft__secure_drain(weft_stream *stream)
{
	char *scratch = scratch_of(stream);

	if (!scratch) {
		stream->in_error = WEFT_ENOMEM;
		return;
	}
	while (weft__receive_state(stream) > 0 && read_some(stream, scratch))
		;
	weft__send_flush(stream);
}

void
weft__secure_take(weft_stream *stream, const char *bytes, size_t size)
{
	while (size > 0 && weft__receive_state(stream) > 0) {
		int64_t n = weft__session_feed(stream->tls, bytes, size);

		if (n < 0) {
			stream->in_error = (int)n;
			return;
		}
		bytes += n;
		size -= (size_t)n;
		weft__secure_drain(stream);
	}
}

void
weft__secure_end(weft_stream *stream)
{
	weft__session_ended(stream->tls);
	weft__secure_drain(stream);
}

/* --- sending ------------------------------------------------------------ */

/* Hand queued writes to the session.  Returns 0, or an error of the session. */
static int
secure_hand_over(weft_stream *stream)
{
	for (struct weft__write *w = stream->first; w && w->spans; w = w->next)
		while (w->left > 0) {
			const char *at = (const char *)w->spans->data + w->skip;
			size_t size = w->spans->size - w->skip;
			int64_t n = size == 0 ? 0 : weft__session_write(stream->tls, at, size);

			if (n == WEFT_EAGAIN)
				return 0;
			if (n < 0)
				return (int)n;
			weft__write_advance(stream, w, (size_t)n);
		}
	return 0;
}

int64_t
weft__secure_output(weft_stream *stream, const void **out)
{
	int rc = secure_hand_over(stream);

	return rc < 0 ? rc : (int64_t)weft__session_output(stream->tls, out);
}

void
weft__secure_close_notify(weft_stream *stream)
{
	(void)weft__session_close_notify(stream->tls);
}

/* --- the handshake ------------------------------------------------------ */

/* Send the output of the session while the stream is still plain. */
static int
secure_notify(weft_stream *stream, struct weft__session *s, uint64_t deadline_ns)
{
	const void *bytes;
	size_t size;

	while ((size = weft__session_output(s, &bytes)) > 0) {
		ssize_t n = weft_stream_write(stream, bytes, size, deadline_ns);

		if (n < 0)
			return (int)n;
		weft__session_sent(s, size);
	}
	return 0;
}

static int
secure_receive(weft_stream *stream, struct weft__session *s, uint64_t deadline_ns)
{
	char buf[2048];
	ssize_t n = weft_stream_read(stream, buf, sizeof(buf), deadline_ns);
	int64_t fed;

	if (n == 0)
		weft__session_ended(s);
	if (n <= 0)
		return (int)n;
	fed = weft__session_feed(s, buf, (size_t)n);
	return fed == n ? 0 : fed < 0 ? (int)fed : WEFT_EPROTO;
}

/* The handshake is done; `io_rc` is the result of sending its last output, the session tickets.  A
 * peer that has already closed needs none, and what it has sent can still be read: so that result
 * only closes our sending side. */
static int
end_handshake(weft_stream *stream, int io_rc)
{
	if (io_rc != WEFT_EPIPE && io_rc != WEFT_ECONNRESET)
		return io_rc;
	stream->out_error = WEFT_EPIPE;
	return 0;
}

static int
run_handshake(weft_stream *stream, struct weft__session *s, uint64_t deadline_ns)
{
	for (;;) {
		int rc = weft__session_handshake(s);
		int io_rc = secure_notify(stream, s, deadline_ns);

		if (rc == 0)
			return end_handshake(stream, io_rc);
		if (rc != WEFT_EAGAIN) /* set its error text again, in case sending failed */
			return weft__session_handshake(s);
		if (io_rc == 0)
			io_rc = secure_receive(stream, s, deadline_ns);
		if (io_rc < 0)
			return io_rc;
	}
}

static int
check_start(weft_stream *stream, const weft_tls *tls, int role, uint64_t deadline_ns)
{
	if (!tls || deadline_ns == WEFT_NOWAIT)
		return weft__misuse(
			WEFT_EINVAL,
			"weft_tls_start: tls is NULL, or the deadline leaves no time for a "
			"handshake");
	if (stream->tls || stream->first || stream->reader || stream->reader_op
	    || (stream->flags & WEFT__STREAM_STARTED))
		return weft__fail(WEFT_EBUSY,
		                  "weft_tls_start: the stream is in use, or it uses TLS already");
	/* A server may have received the start of the handshake.  Bytes that are not TLS fail
	 * later. */
	if (stream->in_queue.size > 0 && role == WEFT_TLS_CLIENT)
		return weft__fail(
			WEFT_EPROTO,
			"weft_tls_start: the peer has sent plain bytes before the handshake");
	return 0;
}

/* Feed the bytes that were received before to the session. */
static void
take_raw(weft_stream *stream, struct weft__queue *raw)
{
	struct weft__chunks *chunks = &weft__net_of(weft__stream_loop(stream))->chunks;
	const void *bytes;
	size_t size;

	while ((size = weft__queue_piece(raw, &bytes)) > 0) {
		weft__secure_take(stream, bytes, size);
		weft__queue_skip(raw, chunks, size);
	}
}

/* From now on received bytes pass through the session, also those that are already here.  The
 * connection may have ended or failed behind them; that is reported after them. */
static void
take_over(weft_stream *stream, struct weft__session *s)
{
	struct weft__queue raw = stream->in_queue;
	bool ended = stream->flags & WEFT__STREAM_ENDED;
	int error = stream->in_error;

	stream->in_queue = (struct weft__queue){ 0 };
	stream->flags &= ~(uint32_t)WEFT__STREAM_ENDED;
	stream->in_error = 0;
	weft__stream_fd_drop(stream);
	stream->tls = s;
	take_raw(stream, &raw);
	if (ended)
		weft__secure_end(stream);
	else
		weft__secure_drain(stream);
	if (weft__receive_state(stream) > 0)
		stream->in_error = error;
}

static int
secure_start(weft_stream *stream, weft_tls *tls, int role, const char *name, uint64_t deadline_ns)
{
	struct weft__session *s;
	struct weft__counts *counts = weft__loop_counts(weft__stream_loop(stream));
	int rc = check_start(stream, tls, role, deadline_ns);

	if (rc == 0)
		rc = weft__session_open(tls, role, name, &s);
	if (rc < 0)
		return rc;
	rc = run_handshake(stream, s, deadline_ns);
	if (rc == 0 && (stream->flags & WEFT__STREAM_CLOSING))
		rc = WEFT_ESHUTDOWN;
	weft__count(rc < 0 ? &counts->handshakes_failed : &counts->handshakes, 1);
	if (rc < 0) {
		weft__session_close(s);
		stream->in_error = stream->out_error = rc;
		return rc;
	}
	take_over(stream, s);
	return 0;
}

int
weft_tls_start(weft_stream *stream, weft_tls *tls, int role, const char *name, uint64_t deadline_ns)
{
	int rc = weft__stream_wait(stream, deadline_ns, "weft_tls_start"), left;

	if (rc < 0)
		return rc;
	stream->in_flight++; /* invariant 4 */
	rc = secure_start(stream, tls, role, name, deadline_ns);
	left = weft__stream_leave(stream);
	return left < 0 ? left : rc;
}

/* A failed session sets its error text again at every call. */
int
weft__secure_explain(const weft_stream *stream, const char *call, int error)
{
	if (weft__session_handshake(stream->tls) == error)
		return error;
	return weft__stream_explain(stream, call, error);
}

int
weft_stream_tls(weft_stream *stream, weft_tls_info *out)
{
	int rc = weft__stream_use(stream, NULL, "weft_stream_tls");

	if (rc == 0 && !out)
		rc = weft__misuse(WEFT_EINVAL, "weft_stream_tls: out is NULL");
	if (rc < 0)
		return rc;
	return stream->tls
	               ? weft__session_info(stream->tls, out)
	               : weft__fail(WEFT_EINVAL, "weft_stream_tls: the stream does not use TLS");
}
