/* weft/runtime.h - whole programs: several loops, each on a thread of its own; signals.
 *
 * weft_main() is all that most programs need.  A runtime is the same in parts, for
 * programs that have a main of their own.  Threadlets stay on the loop they were started
 * on; WEFT_LEAST_LOADED, and a start from a plain thread, choose the loop of the runtime
 * with the fewest threadlets.
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
	uint32_t       loops;    /* default: the cores allowed, cgroup quota included */
	bool           pin;      /* each loop's thread to a CPU of its own, of those that the
	                          * caller may use, and of `loop.cpus` if that is set; beyond
	                          * the last they begin anew */
	int            dump_signal; /* weft_dump(2) at this signal, by a thread of its own:
	                             * also while the loops are held up, until they have
	                             * stopped; default none */
	uint64_t       grace_ns; /* of weft_main(): to end after a signal, or after the
	                          * function has returned; 10 s */
	weft_loop_opts loop;     /* of each loop; default name: "weft-0" and so on */
	uint64_t       spare[4];
} weft_runtime_opts;

/* Run `fn(arg)` as a threadlet on a new runtime; when it has ended, stop all.  SIGINT and
 * SIGTERM cancel it, unless the program waits for them itself; SIGPIPE is ignored; stack
 * overflows are reported (weft_catch_overflow()), unless the program has a handler for
 * SIGSEGV.  The grace begins at the first signal, else when `fn` has returned.  What still
 * runs at its end is reported by name and place (WEFT_REPORT_LATE_STOP); then, after a
 * signal, the process exits with 128 + its number, as by _exit(2); without one, it is left
 * behind.  A SIGINT that follows another signal exits at once.
 * Returns an exit status: 0, or 1 if `fn` failed or something could not be started; either
 * is reported.
 * Thread: any plain one.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_main(const weft_runtime_opts *opts, weft_threadlet_fn fn,
                       void *arg);

/* The whole of a simple server: weft_main() with a listener at `address`, one threadlet for
 * each peer, on every loop.  `fn` takes its peer and closes it.
 * Returns an exit status as weft_main().
 * Thread: any plain one.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_serve(const char *address, weft_peer_fn fn, void *arg);

/* Make a runtime whose loops run on threads of their own once started.
 * Returns it, or NULL: out of memory, or an option is wrong (weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_runtime *weft_runtime_new(const weft_runtime_opts *opts);

/* Free a runtime that was not started, or has stopped.  Takes it on success; accepts
 * NULL.
 * Returns 0, WEFT_EBUSY.
 * Thread: any but its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_runtime_free(weft_runtime *runtime);

/* Start all its loops.  While it runs, plain threads start threadlets on the runtime
 * that was started first.
 * Returns 0, WEFT_EALREADY, WEFT_EAGAIN (no threads: then it has stopped).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_runtime_start(weft_runtime *runtime);

/* Begin to stop all its loops, as weft_loop_shutdown(); wait until all are stopped.
 * wait returns as weft_loop_wait_stopped().
 * Thread: any.  Blocks: no; waits.  Since: 0.1. */
WEFT_API void weft_runtime_shutdown(weft_runtime *runtime);
WEFT_API int  weft_runtime_wait_stopped(weft_runtime *runtime,
                                        uint64_t deadline_ns);

/* The runtime of the caller's loop, or NULL; one of its loops, NULL past the
 * last.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_runtime *weft_runtime_current(void);
WEFT_API weft_loop    *weft_runtime_loop(weft_runtime *runtime, uint32_t index);

/* --- signals ------------------------------------------------------------- */

/* A set of signals is an OR of these. */
#define WEFT_SIG(signo) (UINT64_C(1) << (signo))

/* Wait for one of `signals`.  The first call takes them over for the process,
 * until its loop is freed: one that comes between two calls is kept for the next.
 * All threadlets of a loop that wait for a signal get it.
 * Callbacks use weft_watch_start_signal().
 * Returns the signal's number, WEFT_EINVAL.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_signal_wait(uint64_t signals, uint64_t deadline_ns);

WEFT_END
#endif
