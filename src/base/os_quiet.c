/* os_quiet.c - makes a write without a reader return an error instead of raising SIGPIPE.
 *
 * Sends have a flag for this.  Calls without one raise SIGPIPE for the calling thread.  The
 * code here blocks the signal during the call and then consumes it, so the program's own
 * handling of SIGPIPE is not affected.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include "base/os.h"

/* Consume the pending SIGPIPE, if there is one.  Where the system sends SIGPIPE to the whole
 * process, another thread may have received it already. */
static void
take_back(const sigset_t *pipe_only)
{
	sigset_t pending;
	int signo;

	if (sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1)
		(void)sigwait(pipe_only, &signo);
}

int64_t
weft__os_quietly(int64_t (*call)(const void *arg), const void *arg)
{
	sigset_t pipe_only, before;
	int64_t rc;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	rc = call(arg);
	if (sigismember(&before, SIGPIPE) == 1)
		return rc;
	if (rc == -EPIPE)
		take_back(&pipe_only);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

struct bytes {
	int fd;
	const void *buf;
	size_t size;
};

static int64_t
write_bytes(const void *arg)
{
	const struct bytes *bytes = arg;

	return weft__os_write(bytes->fd, bytes->buf, bytes->size);
}

int64_t
weft__os_write_quiet(int fd, const void *buf, size_t size)
{
	return weft__os_quietly(write_bytes, &(struct bytes){ fd, buf, size });
}
