/* weft/base.h - errors, time, flags and hooks: the conventions of every other header.
 *
 * These conventions hold in all headers:
 *
 *   Returns    >= 0 (a count or a handle where useful), or a negative WEFT_E*.
 *   Outputs    are written only on success, unless the comment says otherwise.
 *   Order      object, inputs, outputs, callback + arg (or op), deadline.
 *   Deadlines  are absolute and come last, as deadline_ns.  WEFT_NEVER: no limit.
 *              WEFT_NOWAIT: complete at once or return WEFT_ETIMEDOUT; such a call does not
 *              wait and is allowed anywhere, unless its comment says otherwise.  Data that
 *              has arrived beats the deadline: a call returns WEFT_ETIMEDOUT only if nothing
 *              had arrived for it, however late the loop runs and however many calls wait.
 *   Options    a zeroed member means its default; a NULL struct means all defaults.
 *   Ownership  takes: the callee owns the object from then on and frees it, whatever
 *              the call returns.  borrows: the callee uses it until it returns, or as
 *              long as stated.  fills: the caller owns the result.
 *   Callbacks  and all other functions that the library calls must not throw C++
 *              exceptions.  If one does, the library reports it (WEFT_REPORT_BUG) and
 *              the program ends where it was thrown, by std::terminate().
 *   Loops      NULL as a loop, parameter or option, means the loop that runs on the
 *              calling thread.  If none runs there, the call returns WEFT_EINVAL.
 *   Background work does not keep the loop alive: weft_loop_run() may return although
 *              the work is still pending.
 *   Spare      members named `spare` are room for members of later versions.  They must
 *              be zero in every struct that the caller passes.
 *
 * "Thread: loop" means the thread of the loop that the object belongs to.  While that loop is
 * idle, it means any thread, but no two threads may use the loop at once (weft/loop.h).  On any
 * other thread, and in a forked child, the call returns WEFT_EWRONGLOOP; debug builds abort with
 * a message.  "Thread: any" means any thread.  "Thread: one at a time" means any thread, but no
 * two threads may use the object at once.
 *
 * "Blocks: suspends" means that the call suspends the calling threadlet, never its loop.
 * "Blocks: waits" means that the call suspends a threadlet and blocks a plain thread.  Calls of
 * both kinds may return, besides what their comments list, WEFT_ETIMEDOUT, WEFT_ECANCELED,
 * WEFT_EINTR and WEFT_ESHUTDOWN.  In a callback they return WEFT_ENOSUSPEND if they would have
 * to wait, because only a threadlet can be suspended; in a plain thread calls that suspend do
 * so, too.  If 64 calls in a row on channels, semaphores, promises, streams or sockets need not
 * wait, the last of them yields as weft_yield() does, also with WEFT_NOWAIT.
 *
 * If a comment covers several functions, `Thread:` and `Blocks:` list their values in the order
 * of the functions, separated by semicolons; a single value applies to all of them.
 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
#define WEFT_BEGIN extern "C" {
#define WEFT_END   }
#define WEFT_INIT  {}
#define WEFT_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#define WEFT_BEGIN
#define WEFT_END
#define WEFT_INIT  { 0 } /* initializes every option and embedded struct */
#define WEFT_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define WEFT_API __attribute__((visibility("default")))
#define WEFT_INLINE static inline /* public too; defined in its header */

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

WEFT_BEGIN

typedef struct weft_chan  weft_chan;
typedef struct weft_loop  weft_loop;
typedef struct weft_promise weft_promise;
typedef struct weft_abort weft_abort;
typedef struct weft_scope weft_scope;
typedef struct weft_tls   weft_tls;

/* The ID of a threadlet: > 0, never reused.  Calls with a stale ID return WEFT_ESRCH. */
typedef int64_t weft_threadlet;

/* A call to be made later. */
typedef void (*weft_fn)(void *arg);

/* A call to be made later, stored in the caller's memory, so that queuing it cannot fail for
 * lack of memory.  Zero the node before its first use.  It must not move until it has run. */
typedef struct weft_node {
	weft_fn  fn;        /* caller's */
	void    *arg;       /* caller's */
	uint64_t opaque[4]; /* private */
} __attribute__((aligned(8))) weft_node;

enum weft_error {
	/* why a wait ended early */
	WEFT_ETIMEDOUT    = -ETIMEDOUT,    /* the deadline of the call or its scope passed */
	WEFT_ECANCELED    = -ECANCELED,    /* the op, scope or threadlet was canceled */
	WEFT_EINTR        = -EINTR,        /* interrupted; ends one wait only */
	WEFT_ESHUTDOWN    = -ESHUTDOWN,    /* closed on our side, or its loop is stopping */
	WEFT_EPIPE        = -EPIPE,        /* the peer is gone and takes no more bytes */
	/* why a call was refused */
	WEFT_EINVAL       = -EINVAL,
	WEFT_ENOMEM       = -ENOMEM,
	WEFT_EAGAIN       = -EAGAIN,       /* a bounded queue is full */
	WEFT_EBUSY        = -EBUSY,        /* in use: a second reader, an op in flight */
	WEFT_EDEADLK      = -EDEADLK,      /* would wait for itself */
	WEFT_EALREADY     = -EALREADY,     /* already settled, started or stopped */
	WEFT_ENOENT       = -ENOENT,
	WEFT_EEXIST       = -EEXIST,
	WEFT_ESRCH        = -ESRCH,        /* the threadlet no longer exists */
	WEFT_EBADF        = -EBADF,
	WEFT_ENOSYS       = -ENOSYS,       /* not in this build or kernel */
	WEFT_EPERM        = -EPERM,
	WEFT_EMSGSIZE     = -EMSGSIZE,     /* larger than the given limit */
	WEFT_ENOBUFS      = -ENOBUFS,      /* a limit on queued writes was reached */
	WEFT_EPROTO       = -EPROTO,       /* the peer broke its protocol */
	WEFT_ECONNRESET   = -ECONNRESET,
	WEFT_ECONNREFUSED = -ECONNREFUSED,
	WEFT_EADDRINUSE   = -EADDRINUSE,
	/* errors without an errno of their own; calls may also return any other -errno */
	WEFT_ENONAME      = -10001,        /* the host name does not exist */
	WEFT_ECERT        = -10002,        /* the certificate was not accepted */
	WEFT_ETRUNCATED   = -10003,        /* TLS or HTTP data ended too early */
	WEFT_EREJECTED    = -10004,        /* a promise was rejected without an error */
	WEFT_EREPLY       = -10005,        /* Redis replied with an error */
	WEFT_ESCRIPT      = -10006,        /* a script threw */
	WEFT_EWRONGLOOP   = -10007,        /* belongs to another loop, thread or process */
	WEFT_ENOSUSPEND   = -10008,        /* the caller cannot suspend: it is not a threadlet */
	WEFT_EOF          = -10009,        /* the stream ended before the bytes asked for */
	WEFT_ECLOSED      = -10010,        /* the channel is closed, or the promise abandoned */
};

/* A flag of channels and sync objects: all loops and plain threads may use the object, not only
 * one loop. */
#define WEFT_SHARED 1u
#ifdef __cplusplus
#define WEFT_SHARED_INIT { WEFT_SHARED, 0, {} }
#else
#define WEFT_SHARED_INIT { .flags = WEFT_SHARED }
#endif

/* Readiness events; all calls use the same bits. */
enum {
	WEFT_READABLE = 1 << 0,
	WEFT_WRITABLE = 1 << 1,
	WEFT_EV_ERROR    = 1 << 2, /* always reported, need not be requested */
	WEFT_EV_HUP      = 1 << 3, /* always reported, need not be requested */
	WEFT_EDGE     = 1 << 4, /* request: report only changes (edge-triggered) */
	WEFT_MULTI    = 1 << 5, /* request, ops only: any number of results, edge-triggered */
};

#define WEFT_US    UINT64_C(1000)
#define WEFT_MS    UINT64_C(1000000)
#define WEFT_S     UINT64_C(1000000000)
#define WEFT_NOWAIT   UINT64_C(0)
#define WEFT_NEVER UINT64_MAX

/* Read the monotonic clock.
 * Returns the time in nanoseconds.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_now(void);

/* Compute the deadline that is `delay_ns` after the present time, as weft_now() reads it.
 * Returns the deadline, at most WEFT_NEVER.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_after(uint64_t delay_ns);

/* strerror: get the text of an error ("timed out").  errname: get its name ("WEFT_ETIMEDOUT").
 * Return a static string, also for unknown numbers.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_strerror(int error);
WEFT_API const char *weft_errname(int error);

/* Get the message of the last call that failed in this threadlet or, outside of threadlets, in
 * this thread: "connect tcp://10.0.0.1:80: refused".  A message travels with its error through
 * joins, scopes, ops, work, promises and aborts, also between loops.  A callback that receives
 * an error gets the message of that error from this call.  If a wait ended early without a
 * message, the library makes one from the call and the error: "weft_chan_recv: timed out".
 * Returns the message, borrowed until the next weft call; "" if there is none.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_detail(void);

/* Set the message that weft_detail() returns for `error`, formatted as by printf(3).  The
 * message travels with the error if you finish an op or reject a promise with the error, or
 * return it.  The library keeps up to 1,023 bytes.  If there is no memory for the message,
 * weft_detail() returns the text of weft_strerror().
 * Returns `error`.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Get the version of the library.
 * Returns a text such as "0.1.0".
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_version(void);

/* Events that the library reports because there is no caller to return them to. */
typedef enum weft_report_kind {
	WEFT_REPORT_LOG, /* a log line; see `level` */
	WEFT_REPORT_FAILED, /* a threadlet that is never joined failed */
	WEFT_REPORT_BUG, /* a bug in the library, misuse in a debug build, or an exception that left
	                  * a callback; the process dies */
	WEFT_REPORT_UNHANDLED, /* a rejected promise had no handler at the end of the microtask
	                        * checkpoint */
	WEFT_REPORT_HANDLED,   /* a promise reported as UNHANDLED got a handler later */
	WEFT_REPORT_MICROTASK_FLOOD, /* 100,000 microtasks ran in one checkpoint */
	WEFT_REPORT_BLOCKED,         /* the watchdog: something blocks a loop for too long */
	WEFT_REPORT_DEADLOCK,        /* threadlets wait, and nothing can wake them */
	WEFT_REPORT_OVERFLOW,        /* a stack overflowed: a signal handler reports it, and the
	                              * process dies */
	WEFT_REPORT_LATE_STOP,       /* a loop did not stop by the deadline; the text lists what
	                              * still runs */
	WEFT_REPORT_BACKEND,         /* a loop's backend failed; the text says how it continues */
} weft_report_kind;

typedef struct weft_report {
	weft_report_kind kind;
	int              level; /* 0 error, 1 warning, 2 notice, 3 debug */
	int              error; /* WEFT_E*, or 0 */
	weft_loop       *loop;  /* or NULL */
	const char      *name;  /* of the threadlet, loop or pool; or NULL */
	const char      *text;  /* one line; several for BLOCKED and DEADLOCK */
	weft_threadlet   threadlet; /* or 0 */
	weft_promise    *promise;   /* of UNHANDLED and HANDLED, else NULL; borrowed */
	const struct weft_value *reason; /* of its rejection, borrowed; or NULL */
	uint64_t         spare[1];  /* room for later versions */
} weft_report;

typedef struct weft_hooks {
	void *(*alloc)(void *arg, size_t size);               /* as malloc */
	void *(*resize)(void *arg, void *mem, size_t size);   /* as realloc */
	void  (*release)(void *arg, void *mem);               /* as free */
	void  (*on_report)(void *arg, const weft_report *report); /* borrows report */
	void  *arg;
	int    log_level;  /* LOG reports above this level are dropped; default 0: only errors */
	bool   silent;     /* if there is no on_report, print only BUG and OVERFLOW */
	uint64_t spare[4]; /* must be zero: room for later versions */
} weft_hooks;

/* Set the allocator and the report hook of the process; copies `hooks`.  Set all three memory
 * functions or none of them.  Without a report hook the library prints errors and warnings, as
 * weft_report_print() does, unless `silent` is set.
 * Returns 0, WEFT_EINVAL, or WEFT_EBUSY if the library has already allocated memory.
 * Thread: any, before first use.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_set_hooks(const weft_hooks *hooks);

/* Print a report to standard error in one line: "weft: threadlet loader failed: load settings:
 * no such file (WEFT_ENOENT)".  Further lines of the text are indented.  Without a hook the
 * library prints reports this way; a hook may call it for reports that it does not handle.  It
 * is safe to call in a signal handler.
 * Thread: any.  Blocks: the thread, on standard error.  Since: 0.1. */
WEFT_API void weft_report_print(const weft_report *report);

/* Allocate and free memory with the library's allocator, for protocols and bindings.  The hooks
 * of weft_set_hooks() then see these calls, too: they can count them, limit the memory and make
 * allocations fail.
 * weft_release() takes `mem` and accepts NULL.
 * weft_alloc returns the memory, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_alloc(size_t size);
WEFT_API void  weft_release(void *mem);

WEFT_END
#endif
