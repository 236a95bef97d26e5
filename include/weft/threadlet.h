/* weft/threadlet.h - green threads: start, wait, end, look.
 *
 * A threadlet is a function on its own stack, for life on the loop it first runs
 * on.  It returns >= 0, or a negative error to say that it failed.  It is started
 * alone (weft_go: nobody joins it, a failure is reported) or in a
 * scope (weft/scope.h: joined there).  Cancellation is sticky: every suspending
 * call returns WEFT_ECANCELED until the threadlet ends, except inside a shielded
 * scope.  Nothing is ever unwound behind the program's back.
 *
 * A stack does not grow.  Below each is a guard of at least 64 KiB: an overflow ends the
 * process and damages nothing.  A function whose frame is larger than the guard can step
 * over it, unless it is compiled with -fstack-clash-protection, which the flags of
 * pkg-config and of the CMake package include.
 *
 * A loop with threadlets alive is bound to the thread that runs it.  As it stops, its
 * threadlets are cancelled and run to their end; those that are started meanwhile are
 * cancelled from birth.
 *
 * A loop that is about to sleep with nothing to wait for but threadlets, each of which
 * waits for another one of the same loop, reports a deadlock (WEFT_REPORT_DEADLOCK) with
 * all of them, once, and sleeps: a post could still come, or a cancellation.  A threadlet
 * that sleeps until WEFT_NEVER, and a loop with WEFT_LOOP_KEEP, are expected to wait for
 * just that.  Loops of a runtime are one in this: the last of them to sleep reports the
 * deadlock, whatever their flags.  Waits at shared objects count there under weft_main(),
 * on Linux, while the program has no threads of its own, which could use these objects.
 */
#ifndef WEFT_THREADLET_H
#define WEFT_THREADLET_H

#include <weft/base.h>

WEFT_BEGIN

typedef int (*weft_threadlet_fn)(void *arg);

/* For weft_go_opts.loop: the loop of the runtime (weft/runtime.h) with the least to do. */
#define WEFT_LEAST_LOADED ((weft_loop *)1)

typedef struct weft_go_opts {
	const char *name;        /* copied, 31 bytes kept */
	size_t      stack_bytes; /* rounded up; default: the loop's */
	weft_loop  *loop;        /* default: the caller's; in a plain thread least loaded */
	weft_scope *scope;       /* where it is joined; default: nowhere */
	bool        background;  /* does not keep weft_loop_run() from returning */
	uint64_t    spare[4];
} weft_go_opts;

/* Start a threadlet on the caller's loop, to run when the caller next suspends; from a
 * plain thread on the least loaded loop of the runtime.  It begins with errno 0 and the
 * floating-point modes of the thread that runs its loop, outside of threadlets; started
 * from elsewhere, with those of the caller.
 * Returns its handle, WEFT_EINVAL without a loop, WEFT_ENOMEM, WEFT_EAGAIN at a limit,
 * WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_go(weft_threadlet_fn fn, void *arg);

/* The same with a name, a stack size, a loop or a scope.  A stack is at least 16 KiB
 * and at most 1 GiB.
 * Returns as weft_go(); WEFT_EWRONGLOOP for the scope of another loop, WEFT_ECANCELED once
 * the scope is cancelled.
 * Thread: any; with a scope, that of its loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_go_with(const weft_go_opts *opts,
                                     weft_threadlet_fn fn, void *arg);

/* Wait until a threadlet of an open scope has ended; fills `out` (may be NULL)
 * with what it returned.  If that is an error, weft_detail() has its text.
 * Returns 0, WEFT_ESRCH if it is not, or no longer, there, WEFT_EDEADLK for
 * oneself, WEFT_EWRONGLOOP for one in a scope of another loop.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_join(weft_threadlet threadlet, int *out, uint64_t deadline_ns);

/* Cancel: the present and every later suspending call of that threadlet returns
 * WEFT_ECANCELED, and of the threadlets in its scopes.
 * Returns 0, WEFT_ESRCH.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_cancel(weft_threadlet threadlet);

/* Interrupt: the present, else the next, suspending call of that threadlet
 * returns WEFT_EINTR.  Once, however often called before that.
 * Returns 0, WEFT_ESRCH.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_interrupt(weft_threadlet threadlet);

/* --- the calling threadlet ---------------------------------------------- */

/* The calling threadlet, 0 outside of one.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_threadlet weft_self(void);

/* Whether the caller has to end: its threadlet or scope was canceled, the deadline of its
 * scope has passed, the scope's abort signal has fired, its loop is stopping, or it is
 * pool work (weft/work.h) whose op was canceled.  For long computations: the answer does
 * not depend on the loop, which a computation keeps from running.
 * Returns 0, WEFT_ECANCELED, WEFT_ETIMEDOUT (the scope's deadline), or the error of the
 * abort signal.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_check_canceled(void);

/* Let others run, and I/O.
 * Returns 0.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_yield(void);

/* Sleep until the deadline.
 * Returns 0 then; never WEFT_ETIMEDOUT but for the scope's deadline.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_sleep_until(uint64_t deadline_ns);

/* Wait until `fd`, borrowed, is ready for one of `events`.
 * Returns the mask, WEFT_EBUSY if another waits in that direction, WEFT_EBADF, also if it
 * is closed meanwhile and the loop learns of that; WEFT_ESHUTDOWN if its owner closes it.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_wait_fd(int fd, uint32_t events, uint64_t deadline_ns);

/* Read and set the calling threadlet's value for a key of weft_key_new(); NULL if
 * unset.  The key's drop ends a value that is replaced, at once, and what is left when
 * the threadlet's cleanups have run: last key first, on its stack, shielded.
 * set takes `value` on success and returns 0, WEFT_EINVAL, WEFT_ENOMEM, WEFT_ENOSUSPEND
 * outside of a threadlet, WEFT_ESHUTDOWN from a drop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_local_get(int key);
WEFT_API int   weft_local_set(int key, void *value);

/* Register a cleanup for the end of the threadlet, however it ends; unregister it
 * without running it.  What is left runs last to first once the threadlet's function
 * has returned, shielded; so the node is part of what it cleans up, not on the stack.
 * Outside of a threadlet they do nothing.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_cleanup_push(weft_node *node);
WEFT_API void weft_cleanup_drop(weft_node *node);

/* --- looking ------------------------------------------------------------ */

typedef struct weft_threadlet_info {
	weft_threadlet id;
	char           name[32];
	const char    *state;       /* "running", "ready", "waiting" */
	const char    *waits_for;   /* "fd", "recv", "join", "scope", ...; "" if nothing */
	int64_t        waits_on;    /* the fd, threadlet or address; or 0 */
	uint64_t       since_ns;    /* when it last suspended, or came */
	uint64_t       deadline_ns; /* of the wait, or WEFT_NEVER */
	const void    *spawned_at;  /* return address of weft_go() */
	size_t         stack_bytes; /* of its stack, */
	size_t         stack_used;  /* in use, and */
	size_t         stack_high;  /* ever used, in whole pages; by earlier ones, too */
	const void    *frames[16];  /* innermost first, NULLs after the last */
	const void    *fn;          /* that it was started with */
	uint64_t       spare[3];
} weft_threadlet_info;

/* Read up to `max` threadlets of `loop`, at most 64, newest first, continuing at
 * `*cursor` (begin with 0).  Those that are there from the first call to the last are
 * read once each; those that come meanwhile, or are still on their way from another
 * thread, not at all.  One slice holds the loop no longer than it takes to copy it; a
 * loop that runs copies it itself, between two callbacks.
 * Callers are found by unwind tables with glibc on x86-64, which takes a threadlet that
 * lists its own loop some 10 KiB of stack; elsewhere by frame pointers, and those whose
 * code has none may be missing.
 * Returns the count, 0 at the end.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_threadlet_list(weft_loop *loop, uint64_t *cursor,
                                 weft_threadlet_info *out, size_t max,
                                 uint64_t deadline_ns);

/* The same by the number of a loop (weft_loop_list()), which need not be kept from being
 * freed.
 * Returns as weft_threadlet_list(); WEFT_ENOENT if the loop is gone.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_threadlet_list_of(uint64_t number, uint64_t *cursor,
                                    weft_threadlet_info *out, size_t max,
                                    uint64_t deadline_ns);

/* Write what is known of a code address, as dumps do: "function+0x1f (file.c:12)", static
 * functions included.  A return address has the line of its call.  Without a line table
 * "function+0x1f (library.so)"; without a symbol "program+0x1234", where the number is for
 * addr2line(1); else the address.  Cut to `size` bytes with the NUL.  The program's files are
 * read for that: milliseconds at an address's first time.
 * Returns the length.
 * Thread: any.  Blocks: the thread, on files.  Since: 0.1. */
WEFT_API size_t weft_symbol(const void *address, char *buf, size_t size);

/* Write all threadlets of all loops as text to the descriptor `fd`.  A loop that does
 * not answer within a second, because something holds it, is named and left out; so are
 * all others, when a callback asks.
 * Returns the number of threadlets, or a write error.
 * Thread: any.  Blocks: waits; and the thread, on `fd`.  Since: 0.1. */
WEFT_API int weft_dump(int fd);

/* Take over SIGSEGV and SIGBUS to report a stack overflow (WEFT_REPORT_OVERFLOW) by
 * threadlet and spawn place before the process dies.
 * Then the fault happens again, and is the program's: a handler that was there before
 * gets it, and all faults that are something else.  Threads that run threadlets are
 * given a signal stack, unless they have one.  Any number of times; weft_main() does it.
 * Returns 0, or an error of sigaltstack(2).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_catch_overflow(void);

WEFT_END
#endif
