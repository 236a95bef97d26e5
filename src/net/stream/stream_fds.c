/* stream_fds.c - descriptor passing over Unix streams (SCM_RIGHTS).  Each descriptor comes with one
 * byte.
 *
 * A descriptor is sent by a write of the queue.  A received descriptor is kept with the position of
 * its byte in the queue.  While the stream has a descriptor, it receives nothing more, so it holds
 * at most one.  The descriptor is closed when another call than weft_stream_recv_fd() consumes its
 * byte, or when a reader waits for bytes behind it.
 *
 * A stream accepts descriptors only on request.  Otherwise the kernel closes the descriptors
 * that a peer sends, as they arrive.
 */
#include <errno.h>
#include "net/stream/stream.h"

/* --- received descriptors ----------------------------------------------- */

void
weft__stream_fd_drop(weft_stream *stream)
{
	int fd = stream->received_fd;

	if (fd < 0)
		return;
	stream->received_fd = -1;
	(void)weft__sys->close(fd);
}

void
weft__stream_fd_keep(weft_stream *stream, size_t before)
{
	int fd = weft__fd_take_received(stream->in.loop);

	if (fd < 0)
		return;
	weft__stream_fd_drop(stream);
	stream->received_fd = fd;
	stream->received_fd_at = before;
}

void
weft__stream_fd_skip(weft_stream *stream, size_t size)
{
	if (stream->received_fd < 0)
		return;
	if (stream->received_fd_at < size)
		weft__stream_fd_drop(stream);
	else
		stream->received_fd_at -= size;
}

/* --- accepting descriptors ---------------------------------------------- */

static int
check_unix(const weft_stream *stream, const char *call)
{
	return stream->tls || !(stream->flags & WEFT__STREAM_LOCAL) ? weft_fail(
		       WEFT_EINVAL,
		       "%s: descriptors can only be passed over a Unix stream without TLS", call)
	                                                            : 0;
}

/* A pending receive of io_uring cannot accept descriptors: cancel it, so that receiving
 * restarts by readiness. */
static void
change_receive(weft_stream *stream)
{
	weft_loop *loop = weft__stream_loop(stream);

	if (!loop)
		return;
	if (!weft__fd_receive_fds(loop, stream->fd, &stream->in)
	    && !(stream->flags & WEFT__STREAM_PAUSED)) {
		stream->flags |= WEFT__STREAM_PAUSED;
		weft_op_cancel(&stream->in);
	}
}

int
weft__stream_fd_enable(weft_stream *stream, const char *call)
{
	int rc;

	if (stream->flags & WEFT__STREAM_RECEIVES_FDS)
		return 0;
	rc = check_unix(stream, call);
	if (rc < 0)
		return rc;
	stream->flags |= WEFT__STREAM_RECEIVES_FDS;
	change_receive(stream);
	return 0;
}

int
weft_stream_recv_fd(weft_stream *stream, int *out, uint64_t deadline_ns)
{
	int rc = weft__stream_use(stream, NULL, "weft_stream_recv_fd");
	const void *seen;
	ssize_t n = 1;

	if (rc == 0 && !out)
		rc = weft__misuse(WEFT_EINVAL, "weft_stream_recv_fd: out is NULL");
	if (rc == 0 && stream->tls)
		rc = weft__fail(WEFT_EINVAL,
		                "weft_stream_recv_fd: a TLS stream cannot pass descriptors");
	if (rc == 0)
		rc = weft__stream_fd_enable(stream, "weft_stream_recv_fd");
	if (rc < 0)
		return rc;
	if (stream->in_queue.size == 0)
		n = weft_stream_peek(stream, 1, &seen, deadline_ns);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return weft__fail(WEFT_EOF, "weft_stream_recv_fd: the stream has ended");
	if (stream->received_fd < 0)
		return weft__fail(WEFT_EPROTO,
		                  "weft_stream_recv_fd: the next byte comes without a descriptor");
	*out = stream->received_fd;
	stream->received_fd = -1;
	return weft_stream_skip(stream, 1);
}

/* --- sending ------------------------------------------------------------ */

static void
fd_message_fill(struct weft__fd_message *message, int fd)
{
	static char byte;

	message->byte = (struct iovec){ &byte, 1 };
	message->control.head = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	*(int *)(void *)CMSG_DATA(&message->control.head) = fd;
	message->msg = (struct msghdr){
		.msg_iov = &message->byte,
		.msg_iovlen = 1,
		.msg_control = &message->control,
		.msg_controllen = sizeof(message->control),
	};
}

static int
send_now(weft_stream *stream, int fd)
{
	struct weft__fd_message message;
	int64_t n = -EAGAIN;

	fd_message_fill(&message, fd);
	if (!stream->first)
		n = weft__fd_send_now(weft__stream_loop(stream), stream->fd, &message.msg, true);
	return n == -EAGAIN ? WEFT_ETIMEDOUT : n < 0 ? (int)n : 0;
}

int
weft_stream_send_fd(weft_stream *stream, int fd, uint64_t deadline_ns)
{
	int rc = weft__stream_wait(stream, deadline_ns, "weft_stream_send_fd");
	struct weft__fd_message message;

	if (rc == 0 && fd < 0)
		rc = weft__misuse(WEFT_EBADF, "weft_stream_send_fd: fd is negative");
	if (rc == 0)
		rc = check_unix(stream, "weft_stream_send_fd");
	if (rc == 0)
		rc = weft__send_check(stream);
	if (rc < 0)
		return rc;
	if (deadline_ns == WEFT_NOWAIT)
		return send_now(stream, fd);
	fd_message_fill(&message, fd);
	return (int)weft__send_wait(
		stream, (struct weft__write){ .kind = WEFT__WRITE_FD, .fd_message = &message },
		deadline_ns);
}
