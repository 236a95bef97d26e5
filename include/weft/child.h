/* weft/child.h - child processes.
 *
 * A child belongs to the loop it was opened on, which reaps it as soon as it ends: there
 * are no zombies.  It is closed once, by weft_child_close(), and until then its loop
 * cannot be freed.  A loop that stops kills and reaps the children it has.
 *
 * It begins with no signal blocked, with SIGPIPE as by default, and with no descriptor
 * of ours but its three and those that are not close-on-exec.
 */
#ifndef WEFT_CHILD_H
#define WEFT_CHILD_H

#include <weft/base.h>
#include <weft/stream.h>

WEFT_BEGIN

typedef struct weft_child weft_child;

/* What the child's stdin, stdout and stderr are. */
enum {
	WEFT_CHILD_INHERIT, /* ours */
	WEFT_CHILD_NULL,    /* /dev/null */
	WEFT_CHILD_PIPE,    /* a pipe, see weft_child_stream() */
	WEFT_CHILD_FD,      /* the descriptor in `fd[]`, borrowed until open returns */
};

typedef struct weft_child_opts {
	const char *const *env;    /* NULL-terminated; default: ours */
	const char        *cwd;    /* default: ours */
	int                std[3]; /* WEFT_CHILD_* */
	int                fd[3];
	bool               group;  /* a process group of its own, killed as one */
	uint64_t           grace_ns; /* close: from SIGTERM to SIGKILL; default 2 s */
	uint64_t           spare[4];
} weft_child_opts;

/* Start `argv[0]`, found by PATH, with `argv` (NULL-terminated).  The thread waits until
 * the program has been loaded; with WEFT_NOWAIT it is allowed anywhere.
 * Returns 0 and fills `out`, WEFT_EINVAL, or what fork or exec said (WEFT_ENOENT: no such
 * program); then there is no child.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_child_open(const char *const *argv, const weft_child_opts *opts,
                             weft_child **out, uint64_t deadline_ns);

/* Wait until it has ended; fills `out` with its wait status (<sys/wait.h>).  May
 * be called again, and by several.
 * Returns 0, or -ECHILD if somebody else has reaped it.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_child_wait(weft_child *child, int *out, uint64_t deadline_ns);

/* Send `signo`, to the child or its group; never to a reused pid.
 * Returns 0, WEFT_EINVAL, WEFT_EPERM, WEFT_ESRCH if it has ended.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_child_kill(weft_child *child, int signo);

/* Our end of the pipe to its descriptor 0, 1 or 2, as a stream or bare and non-blocking;
 * borrowed until the child is closed, and only one of both.  A stream may be closed before
 * that, with weft_stream_close(): so the child reads the end of its input.  It is not moved.
 * Return it; NULL, or WEFT_EINVAL, if that is not a pipe, is closed, or is the other by now.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_stream *weft_child_stream(weft_child *child, int index);
WEFT_API int weft_child_fd(const weft_child *child, int index);

/* End it if it still runs (SIGTERM, after the grace SIGKILL; what is left of its group
 * is killed with it), reap it, close the pipes and end whoever waits on them.  A callback
 * does not wait for that, and has no grace to give once its loop stops.  Takes it; not
 * cancellable; accepts NULL.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API void weft_child_close(weft_child *child);

WEFT_END
#endif
