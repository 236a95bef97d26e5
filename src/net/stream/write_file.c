/* write_file.c - a file, or a part of it, into a stream. */
#include <weft/file.h>
#include "net/stream/stream.h"

#define PIECE ((size_t)65536)

static int64_t
copy(weft_stream *stream, int fd, uint64_t offset, uint64_t size, char *buf,
     uint64_t deadline_ns)
{
	uint64_t done = 0;

	while (done < size) {
		size_t max = size - done < PIECE ? (size_t)(size - done)
		                                 : PIECE;
		ssize_t n = weft_file_read(fd, buf, max, offset + done,
		                           deadline_ns);

		if (n > 0)
			n = weft_write(stream, buf, (size_t)n, deadline_ns);
		if (n < 0)
			return n;
		if (n == 0) /* the file has ended */
			break;
		done += (uint64_t)n;
	}
	return (int64_t)done;
}

int64_t
weft_write_file(weft_stream *stream, int fd, uint64_t offset, uint64_t size,
                uint64_t deadline_ns)
{
	int rc = weft__stream_wait(stream, deadline_ns, "weft_write_file");
	int64_t done;
	char *buf;

	if (rc < 0)
		return rc;
	if (size > INT64_MAX || offset > INT64_MAX - size)
		return weft__fail(WEFT_EINVAL, "weft_write_file: no such "
		                               "range");
	buf = weft__sys->alloc(PIECE);
	if (!buf)
		return weft__fail(WEFT_ENOMEM,
		                  "weft_write_file: out of memory");
	done = copy(stream, fd, offset, size, buf, deadline_ns);
	weft__sys->release(buf);
	return done;
}
