/* stream_pair.h - two streams that are connected to each other.
 *
 * The function is in a header because programs with their own main() cannot link test.c.
 */
#ifndef WEFT_TESTS_STREAM_PAIR_H
#define WEFT_TESTS_STREAM_PAIR_H

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/stream.h>

/* Returns 0 and fills both, or an error, and both are NULL. */
static inline int
open_stream_pair(weft_stream **out_a, weft_stream **out_b)
{
	weft_stream *a;
	int fds[2], rc;

	*out_a = *out_b = NULL;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	rc = weft_stream_open_fd(fds[0], false, &a);
	if (rc < 0) {
		(void)close(fds[0]);
		(void)close(fds[1]);
		return rc;
	}
	rc = weft_stream_open_fd(fds[1], false, out_b);
	if (rc < 0) {
		weft_stream_reset(a);
		(void)close(fds[1]);
		return rc;
	}
	*out_a = a;
	return 0;
}

#endif
