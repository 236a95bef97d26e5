/* weft/watch.h - standing interest: a descriptor, a signal, a child.
 *
 * A watch calls back any number of times until it is stopped.  It is embedded
 * in the caller's struct, zeroed at first, and must stay put while started.  It
 * holds no reference to the file it watches: closing a descriptor unannounced
 * closes the file and loses events.  The next owner of the number is not affected:
 * once the loop learns that the number stands for another file, the watch ends with
 * WEFT_EBADF.
 */
#ifndef WEFT_WATCH_H
#define WEFT_WATCH_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_watch weft_watch;

/* Runs on the loop's thread with what happened: readiness, the signal's number, or a
 * child's wait status.  Or once with an error, and then the watch is stopped:
 * WEFT_ESHUTDOWN as the loop stops, or as weft_op_close() or the stream or socket that owns
 * the descriptor closes it; WEFT_EBADF if it was closed unannounced.  May stop and free its
 * watch. */
typedef void (*weft_watch_fn)(weft_watch *watch, int what, void *arg);

struct weft_watch {
	weft_watch_fn fn;     /* read-only after start */
	void         *arg;    /* caller's */
	weft_loop    *loop;   /* read-only */
	int32_t       id;     /* read-only: the fd, signal or pid */
	uint32_t      flags;  /* private from here on */
	uint64_t      token;  /* 0: not started */
	uint64_t      spare;
};
WEFT_STATIC_ASSERT(sizeof(struct weft_watch) <= 48, "weft_watch is part of the ABI");

/* Call `fn` whenever `fd` is ready for one of `events`, level-triggered unless
 * WEFT_EDGE, which the poll backend takes for the level: who reads until EAGAIN cannot
 * tell.  A regular file is always ready.  Starting again changes events and
 * callback and verifies that the number is still the same file, else watches the
 * new one.  Events 0 mute it, HUP and ERROR included: the registration is kept,
 * no system call is made, and nothing is alive for it.
 * If that fails it stays as it was.
 * Returns 0, WEFT_EINVAL, WEFT_EBADF, WEFT_ENOMEM, WEFT_ESHUTDOWN, WEFT_EBUSY if
 * another watch or an op waits there in the same direction.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_start(weft_loop *loop, weft_watch *watch, int fd,
                              uint32_t events, weft_watch_fn fn, void *arg);

/* Call `fn` for each delivery of `signo` (1 to 63), which the process takes over until
 * the last watch on it stops: then what was done before is done again.  Every watch on a
 * signal sees it, on any loop; deliveries that come before a loop gets to them are told
 * as one.  Threads of the program need not block it, and one of them must not.
 * Returns as weft_watch_start(); WEFT_EINVAL also if it cannot be caught.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_start_signal(weft_loop *loop, weft_watch *watch,
                                     int signo, weft_watch_fn fn, void *arg);

/* Call `fn` once, when the child `pid` has ended and been reaped; then the watch
 * is stopped.  With -ECHILD instead of its wait status if somebody else reaped it, as
 * where SIGCHLD is ignored.  Where the kernel has no descriptors for processes it takes
 * SIGCHLD over.  Until it is stopped the loop cannot be freed.  Children opened with
 * weft_child_open() need none.
 * Returns as weft_watch_start(), or WEFT_ESRCH.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_start_pid(weft_loop *loop, weft_watch *watch,
                                  pid_t pid, weft_watch_fn fn, void *arg);

/* Stop; afterwards `fn` will not run and the memory is the caller's.
 * Returns 1 if it was started, else 0.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_watch_stop(weft_watch *watch);

/* Say whether the watch is background work, which does not keep weft_loop_run()
 * from returning.  Any time; stays over stop and start.  At first on for signals,
 * else off.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_watch_set_background(weft_watch *watch, bool on);

WEFT_END
#endif
