/* weft/threadlet.h - green threads: start, wait, cancel, inspect.
 *
 * A threadlet is a function with its own stack.  It stays on the loop it first runs on.  It
 * returns >= 0, or a negative error if it failed.  weft_go() starts a threadlet that is never
 * joined; its failure is reported.  A threadlet started in a scope (weft/scope.h) is joined
 * there.  Cancellation is sticky: every suspending call returns WEFT_ECANCELED until the
 * threadlet ends, except inside a shielded scope.  The library never unwinds a stack.
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
 * A loop that is about to sleep reports a deadlock (WEFT_REPORT_DEADLOCK), once, with a list of
 * its threadlets, if it waits for nothing but threadlets of its own that wait for each other.
 * Then it sleeps: a post or a cancellation could still come.  A threadlet that sleeps until
 * WEFT_NEVER, and a loop with WEFT_LOOP_KEEP, count as waiting for that.  The loops of a
 * runtime are checked together, whatever their flags, when the last of them is about to sleep.
 * Waits on shared objects count only there, under weft_main(), on Linux, and only while the
 * program has no other threads, which could use those objects.
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
	uint64_t    spare[4];
} weft_go_opts;

/* Start a threadlet on the caller's loop; it runs when the caller next suspends.  Called from a
 * plain thread, start it on the least loaded loop of the runtime.  It begins with errno 0 and
 * with the floating-point modes of the thread that runs its loop; if started from another
 * thread, with those of the caller.
 * Returns its ID, WEFT_EINVAL without a loop, WEFT_ENOMEM, WEFT_EAGAIN at a limit,
 * WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_go(weft_threadlet_fn fn, void *arg);

/* Start a threadlet as weft_go() does, with a name, a stack size, a loop or a scope.  A stack
 * has at least 16 KiB and at most 1 GiB.
 * Returns as weft_go(); WEFT_EWRONGLOOP for the scope of another loop, WEFT_ECANCELED once the
 * scope is canceled.
 * Thread: any; with a scope, that of its loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_go_with(const weft_go_opts *opts,
                                     weft_threadlet_fn fn, void *arg);

/* Wait until a threadlet of an open scope has ended; fills `out` (may be NULL) with its return
 * value.  If that is an error, weft_detail() has its message.
 * Returns 0, WEFT_ESRCH if the threadlet does not exist, or no longer, WEFT_EDEADLK for the
 * caller itself, WEFT_EWRONGLOOP for a threadlet in a scope of another loop.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_join(weft_threadlet threadlet, int *out, uint64_t deadline_ns);

/* Cancel a threadlet: its current and every later suspending call returns WEFT_ECANCELED, and
 * so do those of the threadlets in its scopes.
 * Returns 0, WEFT_ESRCH.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_cancel(weft_threadlet threadlet);

/* Interrupt a threadlet: its current suspending call, or else the next one, returns WEFT_EINTR.
 * Several interrupts before that end only one call.
 * Returns 0, WEFT_ESRCH.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_interrupt(weft_threadlet threadlet);

/* Run `fn(arg)` in a new threadlet on `loop`, and wait for its result.  `arg` may be on the
 * caller's stack: `fn` either does not run, or has returned when the call returns.  If the caller
 * is canceled, interrupted or late while `fn` runs, then so is `fn`, and the caller waits for it.
 * Returns the result of `fn`, an error with its message; WEFT_ESHUTDOWN if the loop is shut down;
 * WEFT_ETIMEDOUT, WEFT_ECANCELED or WEFT_EINTR before `fn` has begun; WEFT_ENOMEM, WEFT_EAGAIN as
 * weft_go(); WEFT_ENOSUSPEND in callbacks.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_loop_call(weft_loop *loop, weft_threadlet_fn fn, void *arg,
                            uint64_t deadline_ns);

/* --- the calling threadlet ---------------------------------------------- */

/* Get the ID of the calling threadlet.
 * Returns the ID, 0 outside of threadlets.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_self(void);

/* Check whether the caller should end: its threadlet or scope was canceled, the deadline of its
 * scope has passed, the scope's abort signal has fired, its loop is stopping, or it is pool
 * work (weft/work.h) whose op was canceled.  For long computations: the result is up to date
 * even though the computation keeps the loop from running.
 * Returns 0, WEFT_ECANCELED, WEFT_ETIMEDOUT (the scope's deadline), or the error of the abort
 * signal.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_check_canceled(void);

/* Let other threadlets and I/O run.
 * Returns 0.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_yield(void);

/* Sleep until the deadline.
 * Returns 0 at the deadline; WEFT_ETIMEDOUT only for the scope's deadline.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_sleep_until(uint64_t deadline_ns);

/* Wait until `fd`, borrowed, is ready for one of `events`.
 * Returns the mask of events; WEFT_EBUSY if another caller waits in that direction; WEFT_EBADF,
 * also if `fd` is closed during the wait and the loop finds out; WEFT_ESHUTDOWN if the stream
 * or socket that owns `fd` closes it.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_wait_fd(int fd, uint32_t events, uint64_t deadline_ns);

/* --- inspection --------------------------------------------------------- */

typedef struct weft_threadlet_info {
	weft_threadlet id;
	char           name[32];
	const char    *state;       /* "running", "ready", "waiting" */
	const char    *waits_for;   /* "fd", "recv", "join", "scope", ...; "" if nothing */
	int64_t        waits_on;    /* the fd, threadlet or address; or 0 */
	uint64_t       since_ns;    /* when it last suspended, or was started */
	uint64_t       deadline_ns; /* of the wait, or WEFT_NEVER */
	const void    *spawned_at;  /* return address of weft_go() */
	size_t         stack_bytes; /* size of its stack */
	size_t         stack_used;  /* bytes in use */
	size_t         stack_high;  /* most bytes ever used, in whole pages, also by earlier
	                             * threadlets */
	const void    *frames[16];  /* innermost first; unused entries are NULL */
	const void    *fn;          /* the function it was started with */
	uint64_t       spare[3];
} weft_threadlet_info;

/* List up to `max` threadlets of the loop with that number (weft_loop_list()), at most 64 per
 * call, newest first, continuing at `*cursor` (begin with 0).  The loop may be freed at any time.
 * Each threadlet that exists from the first call to the last is
 * listed once.  Threadlets that start meanwhile, or are still being started by another thread,
 * are not listed.  A running loop copies the entries itself, between two callbacks.
 * Call stacks are found by unwind tables with glibc on x86-64; a threadlet that lists its own
 * loop needs about 10 KiB of stack for it.  Elsewhere they are found by frame pointers, and
 * functions compiled without may be missing.
 * Returns the count, 0 at the end; WEFT_ENOENT if the loop is gone.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_threadlet_list(uint64_t number, uint64_t *cursor,
                                 weft_threadlet_info *out, size_t max,
                                 uint64_t deadline_ns);

/* Describe a code address as dumps do: "function+0x1f (file.c:12)", static functions included.
 * For a return address the line is that of the call.  Without a line table it is "function+0x1f
 * (library.so)"; without a symbol "program+0x1234", with an offset for addr2line(1); else the
 * address.  The text is cut to `size` bytes with the NUL.  The first lookup of an address reads
 * the program's files and takes milliseconds.
 * Returns the length.
 * Thread: any.  Blocks: the thread, on files.  Since: 0.1. */
WEFT_API size_t weft_symbol(const void *address, char *buf, size_t size);

/* Write a list of all threadlets of all loops as text to the descriptor `fd`.  A loop that does
 * not answer within a second, because something blocks it, is named and left out.  In a
 * callback all other loops are left out.
 * Returns the number of threadlets, or a write error.
 * Thread: any.  Blocks: waits; and the thread, on `fd`.  Since: 0.1. */
WEFT_API int weft_dump(int fd);

/* Install handlers for SIGSEGV and SIGBUS that report a stack overflow (WEFT_REPORT_OVERFLOW),
 * with the threadlet and where it was started, before the process dies.  After the report the
 * fault is repeated and goes to the handler that was installed before, if any; so do all faults
 * that are no stack overflow.  Threads that run threadlets get a signal stack, unless they have
 * one.  May be called any number of times; weft_main() calls it.
 * Returns 0, or an error of sigaltstack(2).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_catch_overflow(void);

WEFT_END
#endif
