/* weft/runtime.h - whole programs: one loop per thread, startup, shutdown, signals.
 *
 * Most programs need only weft_main().  The calls on a weft_runtime do the same in steps, for
 * programs that have their own main function.  A threadlet stays on the loop it was started on.
 * With WEFT_LEAST_LOADED, and from a plain thread, a threadlet is started on the loop of the
 * runtime that has the fewest threadlets.
 */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <weft/base.h>
#include <weft/child.h>
#include <weft/loop.h>
#include <weft/stream.h>
#include <weft/threadlet.h>

WEFT_BEGIN

typedef struct weft_runtime weft_runtime;

typedef struct weft_runtime_opts {
	uint32_t       loops;    /* default: the allowed cores, cgroup quota included */
	bool           pin;      /* pin each loop's thread to one CPU: one of those that the caller
	                          * may use and that are in `loop.cpus`, if set; if there are more
	                          * loops than CPUs, some share a CPU */
	int            dump_signal; /* at this signal a library thread writes weft_dump() to
	                             * standard error, even while loops are blocked; the thread
	                             * ends once the loops have stopped; default: none */
	uint64_t       grace_ns; /* weft_main(): time to end after a signal, or after the function
	                          * has returned; default 10 s */
	weft_loop_opts loop;     /* for each loop; default name: "weft-0" and so on */
	uint64_t       spare[4]; /* must be zero: room for later versions */
} weft_runtime_opts;

/* Run `fn(arg)` as a threadlet on a new runtime; when it has ended, stop all loops.  SIGINT and
 * SIGTERM cancel the threadlet, unless the program waits for them itself.  SIGPIPE is ignored.
 * Stack overflows are reported (weft_catch_overflow()), unless the program has a handler for
 * SIGSEGV.  The grace time begins at the first signal, or else when `fn` has returned.  Work that
 * still runs at the end of the grace time is reported by name and place (WEFT_REPORT_LATE_STOP).
 * Then, if there was a signal, the process exits with 128 + the signal number, as by _exit(2);
 * else that work is abandoned.  A SIGINT that follows another signal makes the process exit at
 * once.
 * Returns an exit status: 0, or 1 if `fn` failed or the runtime could not be started.  Both are
 * reported, except a failure of `fn` after its threadlet was canceled.
 * Thread: any plain one.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_main(const weft_runtime_opts *opts, weft_threadlet_fn fn,
                       void *arg);

/* Run a simple server: weft_main() with a listener at `address` and one threadlet for each
 * peer, on all loops.  `fn` takes its peer and must close it.
 * Returns an exit status as weft_main().
 * Thread: any plain one.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_serve(const char *address, weft_peer_fn fn, void *arg);

/* Make a runtime.  Once started, its loops run on threads of their own.
 * Returns the runtime; NULL if memory is exhausted or an option is invalid (see weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_runtime *weft_runtime_new(const weft_runtime_opts *opts);

/* Free a runtime that was never started, or has stopped.  Takes it on success; accepts NULL.
 * Returns 0, WEFT_EBUSY.
 * Thread: any but those of the runtime.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_runtime_free(weft_runtime *runtime);

/* Start all loops of the runtime.  If several runtimes run, plain threads start threadlets on
 * the one that was started first.
 * Returns 0, WEFT_EALREADY; WEFT_EAGAIN if the system cannot start a thread, and then the runtime
 * has stopped.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_runtime_start(weft_runtime *runtime);

/* shutdown: begin to stop all loops of the runtime, as weft_loop_shutdown() does.  wait_stopped:
 * wait until all have stopped.
 * wait_stopped returns as weft_loop_wait_stopped().
 * Thread: any.  Blocks: no; waits.  Since: 0.1. */
WEFT_API void weft_runtime_shutdown(weft_runtime *runtime);
WEFT_API int  weft_runtime_wait_stopped(weft_runtime *runtime,
                                        uint64_t deadline_ns);

/* current: get the runtime of the caller's loop; NULL if that loop belongs to none.  loop: get a
 * loop of a runtime by its index; NULL past the last.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_runtime *weft_runtime_current(void);
WEFT_API weft_loop    *weft_runtime_loop(weft_runtime *runtime, uint32_t index);

/* --- signals ------------------------------------------------------------- */

/* A set of signals is an OR of these. */
#define WEFT_SIG(signo) (UINT64_C(1) << (signo))

/* Wait for one of `signals`.  The first call on a loop installs the library's handler for them;
 * the handler stays until the loop is freed.  So a signal that comes between two calls is kept
 * for the next call.  All threadlets of a loop that wait for a signal get it.  Callbacks use
 * weft_watch_start_signal().
 * Returns the signal number, WEFT_EINVAL.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_signal_wait(uint64_t signals, uint64_t deadline_ns);

WEFT_END
#endif
