/* write_file.c - writes a file, or a part of it, to a stream.
 *
 * A plain socket gets the file from the kernel by sendfile(2), as one write of the queue.  With
 * TLS, for a stream that is not a socket, for files that sendfile(2) does not support, and on
 * systems without it, the file is read and written piece by piece.
 */
#include <errno.h>
#include <weft/file.h>
#include "net/stream/stream.h"

#define PIECE ((size_t)65536)

/* Read and write what is left of the part. */
static int64_t
copy_by(weft_stream *stream, struct weft__file_part *part, char *buf, uint64_t deadline_ns)
{
	uint64_t unread = part->left; /* counted in queued_files */
	int64_t n = 1;

	stream->queued_files += unread;
	while (n > 0 && part->left > 0) {
		size_t max = part->left < PIECE ? (size_t)part->left : PIECE;

		n = weft_file_read(part->file, buf, max, part->offset, deadline_ns);
		if (n > 0) {
			stream->queued_files -= (uint64_t)n;
			unread -= (uint64_t)n;
			n = weft_stream_write(stream, buf, (size_t)n, deadline_ns);
		}
		part->offset += n > 0 ? (uint64_t)n : 0;
		part->left -= n > 0 ? (uint64_t)n : 0;
	}
	stream->queued_files -= unread;
	return n < 0 ? n : 0; /* 0: the end of the file or of the part */
}

static int64_t
write_file_copy(weft_stream *stream, struct weft__file_part *part, uint64_t deadline_ns)
{
	char *buf = weft__sys->alloc(PIECE);
	int64_t rc;

	if (!buf)
		return weft__fail(WEFT_ENOMEM, "weft_stream_write_file: out of memory");
	rc = copy_by(stream, part, buf, deadline_ns);
	weft__sys->release(buf);
	return rc;
}

/* Send what the kernel accepts at once.  Returns 0 at the end of the file or of the part,
 * WEFT_ETIMEDOUT if more is left, or an error. */
static int64_t
send_now(weft_stream *stream, struct weft__file_part *part)
{
	int64_t n = -EAGAIN;

	while (!stream->first && part->left > 0) {
		n = weft__fd_sendfile_now(weft__stream_loop(stream), stream->fd, part);
		if (n <= 0)
			break;
		part->offset += (uint64_t)n;
		part->left -= (uint64_t)n;
	}
	return n == -EAGAIN && part->left > 0 ? WEFT_ETIMEDOUT : n < 0 ? n : 0;
}

/* Let the kernel send the part.  Returns 0 if everything that exists was sent, or an error. */
static int64_t
send_part(weft_stream *stream, struct weft__file_part *part, uint64_t deadline_ns)
{
	int rc = weft__send_check(stream);

	if (rc < 0)
		return rc;
	if (deadline_ns == WEFT_NOWAIT)
		return send_now(stream, part);
	return weft__send_wait(stream,
	                       (struct weft__write){ .kind = WEFT__WRITE_FILE, .part = part },
	                       deadline_ns);
}

int64_t
weft_stream_write_file(weft_stream *stream, int fd, uint64_t offset, uint64_t size,
                       uint64_t deadline_ns)
{
	struct weft__file_part part = { fd, offset, size };
	int64_t rc = weft__stream_wait(stream, deadline_ns, "weft_stream_write_file");

	if (rc < 0)
		return rc;
	if (size > INT64_MAX || offset > INT64_MAX - size)
		return weft__fail(
			WEFT_EINVAL,
			"weft_stream_write_file: offset plus size is more than INT64_MAX");
	if (size == 0)
		return 0;
	stream->in_flight++; /* the stream is used between two waits */
	rc = WEFT_ENOSYS;
	if (weft__sys->sendfile && !stream->tls && !(stream->flags & WEFT__STREAM_PLAIN))
		rc = send_part(stream, &part, deadline_ns);
	if (rc == WEFT_ENOSYS || rc == WEFT_EINVAL)
		rc = write_file_copy(stream, &part, deadline_ns);
	(void)weft__stream_leave(stream);
	return rc < 0 ? rc : (int64_t)(size - part.left);
}
