/* weft/threadlet.h - green threads: start, wait, cancel, inspect.
 *
 * A threadlet is a function with its own stack.  It stays on the loop it first runs on.  It
 * returns >= 0, or a negative error if it failed.  weft_go() starts a threadlet that is never
 * joined; if it fails, the library reports the failure.  A threadlet started in a scope
 * (weft/scope.h) is joined there.  A canceled threadlet stays canceled: every suspending call
 * returns WEFT_ECANCELED until the threadlet ends, except inside a shielded scope.  The library
 * never unwinds a stack.
 *
 * Stacks do not grow.  Below each stack is a guard area of at least 64 KiB, so an overflow
 * kills the process but corrupts nothing.  A function whose frame is larger than the guard area
 * can skip it, unless it is compiled with -fstack-clash-protection; the flags of pkg-config and
 * of the CMake package include that option.
 *
 * A loop with live threadlets is bound to the thread that runs it.  When a loop stops, it
 * cancels its threadlets and lets them run to their end.  Threadlets started meanwhile are
 * canceled from the start.
 *
 * A loop reports a deadlock (WEFT_REPORT_DEADLOCK) if it is about to sleep and only its own
 * threadlets keep it alive, all of which wait for each other.  It reports this once, with a list
 * of the threadlets, and then sleeps: a post or a cancellation from outside could still come.  A
 * threadlet that sleeps until WEFT_NEVER, or a loop with WEFT_LOOP_KEEP, waits for such a post or
 * cancellation on purpose, and then nothing is reported.  The loops of a runtime are checked
 * together, whatever their flags, when the last of them is about to sleep.  That check includes
 * waits on shared objects only under weft_main(), on Linux, and only while the program has no
 * other threads, which could use those objects.
 */
#ifndef WEFT_THREADLET_H
#define WEFT_THREADLET_H

#include <weft/base.h>

WEFT_BEGIN

typedef int (*weft_threadlet_fn)(void *arg);

/* For weft_go_opts.loop: the least loaded loop of the runtime (weft/runtime.h). */
#define WEFT_LEAST_LOADED ((weft_loop *)1)

typedef struct weft_go_opts {
	const char *name;        /* copied, 31 bytes kept */
	size_t      stack_bytes; /* rounded up; default: the loop's */
	weft_loop  *loop;        /* default: the caller's; in a plain thread the least loaded */
	weft_scope *scope;       /* the scope that joins it; default: none */
	bool        background;  /* does not keep weft_loop_run() from returning */
	uint64_t    spare[4];    /* must be zero: room for later versions */
} weft_go_opts;

/* Start a threadlet on the caller's loop; it does not run before the caller suspends or returns.
 * A call from a plain thread starts the threadlet on the least loaded loop of the runtime.  The
 * threadlet begins with errno 0, and with the floating-point modes of the thread that runs its
 * loop or, if another thread starts it, of that other thread.  A canceled threadlet may still
 * start others.
 * Returns the ID of the threadlet; WEFT_EINVAL if there is no loop to run it on, WEFT_ENOMEM,
 * WEFT_EAGAIN if the loop has threadlet_max threadlets; WEFT_ESHUTDOWN once the loop has stopped
 * or, if another thread makes the call, once the loop is stopping.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_go(weft_threadlet_fn fn, void *arg);

/* Start a threadlet as weft_go() does, with a name, a stack size, a loop or a scope.  A stack
 * has at least 16 KiB and at most 1 GiB.
 * Returns as weft_go(); WEFT_EWRONGLOOP for the scope of another loop; WEFT_ECANCELED once the
 * scope is canceled, WEFT_ETIMEDOUT once its deadline has passed, or the error of the abort
 * signal that has canceled it.
 * Thread: any; with a scope, that of its loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_go_with(const weft_go_opts *opts,
                                     weft_threadlet_fn fn, void *arg);

/* Wait until a threadlet of an open scope has ended; fills `out` (may be NULL) with its return
 * value.  If that is an error, weft_detail() has its message.
 * Returns 0, WEFT_ESRCH if the threadlet is not in an open scope or its result is no longer kept,
 * WEFT_EDEADLK if it is the caller itself, WEFT_EWRONGLOOP if its scope is on another loop.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_join(weft_threadlet threadlet, int *out, uint64_t deadline_ns);

/* Cancel a threadlet: its current and every later suspending call returns WEFT_ECANCELED.  The
 * threadlets in its scopes are canceled, too.
 * Returns 0, WEFT_ESRCH.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_cancel(weft_threadlet threadlet);

/* Interrupt a threadlet: its current suspending call, or else the next one, returns WEFT_EINTR.
 * Several interrupts before that call returns end only this one call.
 * Returns 0, WEFT_ESRCH.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_interrupt(weft_threadlet threadlet);

/* Run `fn(arg)` in a new threadlet on `loop`, and wait for its result.  `arg` may be on the
 * caller's stack: `fn` either does not run, or has returned when the call returns.  If the caller
 * is canceled or interrupted, or its deadline passes, while `fn` runs, then suspending calls in
 * `fn` end with the same error, and the caller waits until `fn` has returned.
 * Returns the result of `fn`, an error with its message; WEFT_ESHUTDOWN if the loop is shut down;
 * WEFT_ETIMEDOUT, WEFT_ECANCELED or WEFT_EINTR before `fn` has begun; WEFT_ENOMEM, WEFT_EAGAIN as
 * weft_go(); WEFT_ENOSUSPEND in callbacks; WEFT_EDEADLK in a plain thread that embeds the loop.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_loop_call(weft_loop *loop, weft_threadlet_fn fn, void *arg,
                            uint64_t deadline_ns);

/* --- the calling threadlet ---------------------------------------------- */

/* Get the ID of the calling threadlet.
 * Returns the ID, 0 outside of threadlets.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_self(void);

/* Check whether a call that suspends could wait here, for code that runs both in threadlets and
 * in callbacks.  It reads no clock: weft_check_canceled() also checks the time.
 * Returns 1 in a threadlet; 0 in a callback and in a plain thread, where such a call returns
 * WEFT_ENOSUSPEND; in a threadlet that is canceled or whose loop has stopped the error that the
 * call would return at once, with its message in weft_detail().
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_can_suspend(void);

/* Check whether the caller should end.  It should if its threadlet or scope was canceled, the
 * deadline of its scope has passed, the scope's abort signal has fired, its loop is stopping, or
 * it is pool work (weft/work.h) whose op was canceled.  A long computation can call this: the
 * result is up to date even though the computation keeps the loop from running.
 * Returns 0, WEFT_ECANCELED, WEFT_ETIMEDOUT (the scope's deadline), or the error of the abort
 * signal.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_check_canceled(void);

/* Let other threadlets and I/O run.
 * Returns 0.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_yield(void);

/* Sleep for `delay_ns` from now; a delay of 0 yields.  To sleep without an end, or in a cycle
 * without drift, use weft_sleep_until().
 * Returns 0 after the delay; WEFT_ETIMEDOUT if the deadline of the caller's scope passes first;
 * WEFT_EINVAL if the delay is negative, as WEFT_NEVER would be here.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_sleep(int64_t delay_ns);

/* Sleep until the deadline; one that has passed yields.
 * Returns 0 at the deadline; WEFT_ETIMEDOUT if the deadline of the caller's scope passes first.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_sleep_until(uint64_t deadline_ns);

/* Wait until `fd`, borrowed, is ready for one of `events`.  With WEFT_NOWAIT the call still
 * suspends while the loop polls `fd` once, so it is not allowed in callbacks.
 * Returns the mask of events; WEFT_EBUSY if another caller waits for `fd` in the same direction;
 * WEFT_EBADF if `fd` is not open, or once the loop finds out that it was closed during the wait;
 * WEFT_ESHUTDOWN if the stream or socket that owns `fd` closes it.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_wait_fd(int fd, uint32_t events, uint64_t deadline_ns);

WEFT_END
#endif
