/* weft/watch.h - persistent watches: on a descriptor, a signal, a child process.
 *
 * A watch calls back any number of times until it is stopped.  It is embedded in the caller's
 * struct.  Zero it before its first use; it must not move while started.  A watch does not keep
 * the file of its descriptor open: if the descriptor is closed without stopping the watch, the
 * file is closed and events are lost.  If another file later gets the same number, the watch does
 * not report its events: once the loop finds out, the watch ends with WEFT_EBADF.
 */
#ifndef WEFT_WATCH_H
#define WEFT_WATCH_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_watch weft_watch;

/* Called on the loop's thread; `what` is the mask of ready events, the signal number, or the wait
 * status of a child.  A negative `what` is an error, and the watch is stopped then:
 * WEFT_ESHUTDOWN if the loop stops, or if the descriptor is closed by weft_op_close() or by the
 * stream or socket that owns it; WEFT_EBADF if the descriptor was closed in another way.  The
 * callback may stop and free its watch. */
typedef void (*weft_watch_fn)(weft_watch *watch, int what, void *arg);

struct weft_watch {
	weft_watch_fn fn;     /* read-only after start */
	void         *arg;    /* caller's */
	weft_loop    *loop;   /* read-only */
	int32_t       id;     /* read-only: the fd, signal or pid */
	uint32_t      flags;  /* private from here on */
	uint64_t      token;  /* 0: not started */
	uint64_t      spare;  /* a link, or a process descriptor */
};
WEFT_STATIC_ASSERT(sizeof(struct weft_watch) <= 48, "weft_watch is part of the ABI");

/* Call `fn` whenever `fd` is ready for one of `events`: level-triggered, or edge-triggered with
 * WEFT_EDGE.  The poll backend treats WEFT_EDGE as level-triggered; callers that read until
 * EAGAIN see no difference.  A regular file is always ready.  Events 0 mute the watch: not even
 * HUP and ERROR are reported.  Muting keeps the registration and makes no system call; a muted
 * watch does not keep the loop alive.
 * Starting a started watch changes its events and callback.  If the number now refers to
 * another file, the watch moves to that file.  If the call fails, a watch on the same `fd` is
 * unchanged; a watch on something else may have been stopped.
 * Returns 0, WEFT_EINVAL, WEFT_EBADF, WEFT_ENOMEM, WEFT_ESHUTDOWN, WEFT_EBUSY if another watch
 * or an op waits for `fd` in the same direction.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_start(weft_loop *loop, weft_watch *watch, int fd,
                              uint32_t events, weft_watch_fn fn, void *arg);

/* Call `fn` for each delivery of `signo` (1 to 63).  The library installs its own handler until
 * the last watch on the signal stops; then it restores the previous one.  All watches on a
 * signal, on all loops, are called.  Several deliveries before a loop handles the first one are
 * reported as one.  At least one thread of the program must not block the signal; all others may.
 * The watch is background work: it does not keep weft_loop_run() from returning.
 * Returns as weft_watch_start(); WEFT_EINVAL also if the signal cannot be caught.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_start_signal(weft_loop *loop, weft_watch *watch,
                                     int signo, weft_watch_fn fn, void *arg);

/* Call `fn` once, with the wait status, when the child `pid` has ended and been reaped; then
 * the watch is stopped.  `fn` gets -ECHILD if other code reaped the child, as happens when
 * SIGCHLD is ignored.  On kernels without process descriptors the library installs its own
 * handler for SIGCHLD.  The loop cannot be freed before the watch is stopped.  Children of
 * weft_child_open() need no watch.
 * Returns as weft_watch_start(), or WEFT_ESRCH.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_start_pid(weft_loop *loop, weft_watch *watch,
                                  pid_t pid, weft_watch_fn fn, void *arg);

/* Stop a watch.  After this `fn` does not run, and the memory belongs to the caller.
 * Returns 1 if it was started, else 0.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_stop(weft_watch *watch);

WEFT_END
#endif
