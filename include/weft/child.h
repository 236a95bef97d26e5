/* weft/child.h - child processes.
 *
 * A child belongs to the loop it was opened on, which reaps it as soon as it ends: there are no
 * zombies.  weft_child_close() must be called once; until then the loop cannot be freed.  A
 * loop that stops kills and reaps its children.
 *
 * A child starts with no signal blocked, with SIGPIPE at its default, and with only these
 * descriptors: its standard three and those that are not close-on-exec.
 */
#ifndef WEFT_CHILD_H
#define WEFT_CHILD_H

#include <weft/base.h>
#include <weft/stream.h>

WEFT_BEGIN

typedef struct weft_child weft_child;

/* Where the child's stdin, stdout and stderr come from. */
enum {
	WEFT_CHILD_INHERIT, /* those of this process */
	WEFT_CHILD_NULL,    /* /dev/null */
	WEFT_CHILD_PIPE,    /* a pipe, see weft_child_stream() */
	WEFT_CHILD_FD,      /* the descriptor in `fd[]`, borrowed until open returns */
};

typedef struct weft_child_opts {
	const char *const *env;    /* NULL-terminated; default: that of this process */
	const char        *cwd;    /* default: that of this process */
	int                std[3]; /* WEFT_CHILD_* for stdin, stdout and stderr */
	int                fd[3];  /* with WEFT_CHILD_FD: the descriptors */
	bool               group;  /* run in a process group of its own; signals go to the group */
	uint64_t           grace_ns; /* time from SIGTERM to SIGKILL in close; default 2 s */
	uint64_t           spare[4]; /* must be zero: room for later versions */
} weft_child_opts;

/* Start the program `argv[0]`, found by PATH, with the arguments `argv` (NULL-terminated).  The
 * call blocks the thread until the program has been loaded, and never suspends, whatever the
 * deadline.  With WEFT_NOWAIT it is allowed anywhere.  With another deadline only a threadlet
 * may make the call; if the threadlet is canceled or interrupted, the call starts no process and
 * returns WEFT_ECANCELED or WEFT_EINTR.
 * Returns 0 and fills `out`, WEFT_EINVAL, or the error of fork or exec (WEFT_ENOENT: no such
 * program), and then there is no child.
 * Thread: loop.  Blocks: the thread, until the program is loaded.  Since: 0.1. */
WEFT_API int weft_child_open(const char *const *argv, const weft_child_opts *opts,
                             weft_child **out, uint64_t deadline_ns);

/* Wait until the child has ended; fills `out` with its wait status (<sys/wait.h>).  May be
 * called again, and by several threadlets.
 * Returns 0, or -ECHILD if other code has reaped the child.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_child_wait(weft_child *child, int *out, uint64_t deadline_ns);

/* Send `signo` to the child or, with `group`, to its process group.  The signal never reaches
 * another process that got the same process ID later.
 * Returns 0, WEFT_EINVAL, WEFT_EPERM, WEFT_ESRCH if the child has ended.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_child_kill(weft_child *child, int signo);

/* Get the parent's end of the pipe to the child's descriptor `index` (0, 1 or 2), as a stream or
 * as a non-blocking descriptor.  It is borrowed until the child is closed; use only one of the
 * two forms.  A stream may be closed earlier with weft_stream_close(), for example to end the
 * child's input.
 * Return the stream or descriptor; NULL or WEFT_EINVAL if that descriptor is not a pipe, is
 * closed, or is already used in the other form.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_stream *weft_child_stream(weft_child *child, int index);
WEFT_API int weft_child_fd(const weft_child *child, int index);

/* Close the child: if it still runs, send SIGTERM and after grace_ns SIGKILL, and kill the rest
 * of its group with it; reap it, close the pipes and end waits on them.  In a threadlet the call
 * returns when this is done; in a callback it returns at once.  When the loop stops, the child
 * gets SIGKILL at once.  Takes the child; not cancelable; accepts NULL.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_child_close(weft_child *child);

WEFT_END
#endif
