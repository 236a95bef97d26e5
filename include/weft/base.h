/* weft/base.h - what every other header stands on: errors, time, flags, hooks.
 *
 * Read once, true everywhere:
 *
 *   Returns    >= 0, or a negative WEFT_E*.  A count or a handle where useful.
 *   Outputs    are written only on success, unless the comment says otherwise.
 *   Order      object, inputs, outputs, callback + arg (or op), deadline.
 *   Deadlines  absolute, last, named deadline_ns.  WEFT_NEVER: no limit.
 *              WEFT_NOWAIT: do it only if it can be done at once, else
 *              WEFT_ETIMEDOUT; so it never suspends and is allowed anywhere.
 *              What has already arrived beats the deadline: a call reports
 *              WEFT_ETIMEDOUT only if nothing had arrived for it, however late
 *              the loop runs and however many calls wait.
 *   Options    a zeroed field is its default; a NULL struct is all defaults.
 *   Ownership  takes: the callee ends it, whatever it returns.  borrows: until
 *              return, or as long as stated.  fills: the caller owns it after.
 *
 *   Callbacks  must not let a C++ exception out, and neither must any other function
 *              that the library calls: the program ends where it was thrown, by
 *              std::terminate(), with a report (WEFT_REPORT_BUG).
 *
 *   Loops      NULL, as parameter or option, is the caller's: the one that runs
 *              on this thread.  Without one it is WEFT_EINVAL.
 *
 * "Thread: loop" means the thread of the loop the object belongs to, and of an
 * idle loop whichever one thread uses it (weft/loop.h); elsewhere, and in a
 * forked child, WEFT_EWRONGLOOP (debug builds abort with a message).  "Thread: any"
 * means just that.  "Blocks: suspends" stops the calling threadlet, never its
 * loop; "Blocks: waits" does that in a threadlet and blocks a plain thread.
 * Both return, besides what their comment lists, WEFT_ETIMEDOUT,
 * WEFT_ECANCELED, WEFT_EINTR, WEFT_ESHUTDOWN, and WEFT_ENOSUSPEND from a callback,
 * which has nothing to suspend.
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
#define WEFT_INIT  { 0 } /* initialises every option and embedded struct */
#define WEFT_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif
#define WEFT_API __attribute__((visibility("default")))
#define WEFT_INLINE static inline /* public too, but all in its header */

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

/* A threadlet, by number: > 0, never reused, so a stale one is WEFT_ESRCH. */
typedef int64_t weft_threadlet;

/* A call to be made later. */
typedef void (*weft_fn)(void *arg);

/* A call to be made later, in the caller's memory, which cannot run out: a post, a
 * cleanup, an abort listener.  Zeroed at first; must stay put until it ran or was
 * dropped. */
typedef struct weft_node {
	weft_fn  fn;        /* caller's */
	void    *arg;       /* caller's */
	uint64_t opaque[4]; /* private */
} __attribute__((aligned(8))) weft_node;

enum weft_error {
	/* why a wait ended early */
	WEFT_ETIMEDOUT    = -ETIMEDOUT,    /* its deadline, or its scope's */
	WEFT_ECANCELED    = -ECANCELED,    /* its op, scope or threadlet was cancelled */
	WEFT_EINTR        = -EINTR,        /* interrupted, once */
	WEFT_ESHUTDOWN    = -ESHUTDOWN,    /* we closed the object or stop its loop */
	WEFT_EPIPE        = -EPIPE,        /* the peer is gone, and takes no bytes */
	/* why a call was refused */
	WEFT_EINVAL       = -EINVAL,
	WEFT_ENOMEM       = -ENOMEM,
	WEFT_EAGAIN       = -EAGAIN,       /* a bounded queue is full */
	WEFT_EBUSY        = -EBUSY,        /* in use: a second reader, an op in flight */
	WEFT_EDEADLK      = -EDEADLK,      /* would wait for itself */
	WEFT_EALREADY     = -EALREADY,     /* settled, started or stopped before */
	WEFT_ENOENT       = -ENOENT,
	WEFT_EEXIST       = -EEXIST,
	WEFT_ESRCH        = -ESRCH,        /* no such threadlet any more */
	WEFT_EBADF        = -EBADF,
	WEFT_ENOSYS       = -ENOSYS,       /* not in this build or kernel */
	WEFT_EPERM        = -EPERM,
	WEFT_EMSGSIZE     = -EMSGSIZE,     /* more than the given bound */
	WEFT_ENOBUFS      = -ENOBUFS,      /* a write cap was reached */
	WEFT_EPROTO       = -EPROTO,       /* the peer broke its protocol */
	WEFT_ECONNRESET   = -ECONNRESET,
	WEFT_ECONNREFUSED = -ECONNREFUSED,
	WEFT_EADDRINUSE   = -EADDRINUSE,
	/* without an errno; any other -errno may be returned too */
	WEFT_ENONAME      = -10001,        /* the host name does not exist */
	WEFT_ECERT        = -10002,        /* the certificate was not accepted */
	WEFT_ETRUNCATED   = -10003,        /* TLS or HTTP ended before its end */
	WEFT_EREJECTED    = -10004,        /* a promise was, with no error code */
	WEFT_EREPLY       = -10005,        /* Redis answered with an error */
	WEFT_ESCRIPT      = -10006,        /* a script threw */
	WEFT_EWRONGLOOP   = -10007,        /* the object belongs to another loop, thread or process */
	WEFT_ENOSUSPEND   = -10008,        /* the caller cannot suspend: it is not a threadlet */
	WEFT_EOF          = -10009,        /* the stream ended before the bytes asked for */
	WEFT_ECLOSED      = -10010,        /* the channel is closed, or the promise abandoned */
};

/* Of what is waited for by threadlets: for all loops and plain threads, not for one
 * loop. */
#define WEFT_SHARED 1u
#ifdef __cplusplus
#define WEFT_SHARED_INIT { WEFT_SHARED, 0, {} }
#else
#define WEFT_SHARED_INIT { .flags = WEFT_SHARED }
#endif

/* Readiness, the same bits everywhere. */
enum {
	WEFT_READABLE = 1 << 0,
	WEFT_WRITABLE = 1 << 1,
	WEFT_EV_ERROR    = 1 << 2, /* reported, need not be asked for */
	WEFT_EV_HUP      = 1 << 3, /* reported, need not be asked for */
	WEFT_EDGE     = 1 << 4, /* asked for: report changes only */
	WEFT_MULTI    = 1 << 5, /* asked for, ops: any number of results; edge */
};

#define WEFT_US    UINT64_C(1000)
#define WEFT_MS    UINT64_C(1000000)
#define WEFT_S     UINT64_C(1000000000)
#define WEFT_NOWAIT   UINT64_C(0)
#define WEFT_NEVER UINT64_MAX

/* Read the monotonic clock, in nanoseconds.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_now(void);

/* The deadline that lies `delay_ns` after the real time of this call;
 * saturates at WEFT_NEVER.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_after(uint64_t delay_ns);

/* The text for an error ("timed out") and its name ("WEFT_ETIMEDOUT").
 * Return a static string, also for unknown numbers.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_strerror(int error);
WEFT_API const char *weft_errname(int error);

/* What an error would say to a person: "connect tcp://10.0.0.1:80: refused".  It
 * is of the last failed call of this threadlet, outside of one of this thread.
 * Texts travel with their errors through joins, scopes, ops, work, promises and aborts,
 * also between loops: in a callback that gets an error, it is of that error.  A wait that
 * ended early without one has its call and the error: "weft_chan_recv: timed out".
 * Returns a text, "" if there is none, borrowed until the next weft call.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_detail(void);

/* Fail with a text: set weft_detail() for `error`, in the manner of printf(3).
 * Finish an op, reject or return with that error, and the text goes along.  Kept
 * are 1,023 bytes; without memory for them, weft_strerror().
 * Returns `error`.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The version as text, "0.1.0".
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const char *weft_version(void);

/* What the library reports because no caller is there to return it to. */
typedef enum weft_report_kind {
	WEFT_REPORT_LOG, /* a line of trace; `level` says how loud */
	WEFT_REPORT_FAILED, /* a threadlet failed and nobody joins it */
	WEFT_REPORT_BUG, /* a bug of the library, misuse in a debug build, or an exception
	                  * that left a callback; dies after */
	WEFT_REPORT_UNHANDLED, /* a promise was rejected, no handler by checkpoint end */
	WEFT_REPORT_HANDLED,   /* ... and got one later */
	WEFT_REPORT_MICROTASK_FLOOD, /* 100,000 microtasks in one drain */
	WEFT_REPORT_BLOCKED,         /* the watchdog: a loop is held too long */
	WEFT_REPORT_DEADLOCK,        /* threadlets parked, nothing can wake them */
	WEFT_REPORT_OVERFLOW,        /* a stack overflowed; signal context, dies after */
	WEFT_REPORT_LATE_STOP,       /* did not end by the deadline; says what still runs */
	WEFT_REPORT_BACKEND,         /* a loop cannot wait as before; says how it goes on */
} weft_report_kind;

typedef struct weft_report {
	weft_report_kind kind;
	int              level; /* 0 error, 1 warning, 2 notice, 3 debug */
	int              error; /* WEFT_E*, or 0 */
	weft_loop       *loop;  /* or NULL */
	const char      *name;  /* of the threadlet or loop, or NULL */
	const char      *text;  /* one line; more for BLOCKED and DEADLOCK */
	weft_threadlet   threadlet; /* or 0 */
	uint64_t         spare[3];
} weft_report;

typedef struct weft_hooks {
	void *(*alloc)(void *arg, size_t size);               /* as malloc */
	void *(*resize)(void *arg, void *mem, size_t size);   /* as realloc */
	void  (*release)(void *arg, void *mem);               /* as free */
	void  (*on_report)(void *arg, const weft_report *report); /* borrows report */
	void  *arg;
	int    log_level;  /* reports of kind LOG up to this level; default errors */
	bool   silent;     /* without on_report: print no reports but BUG and OVERFLOW */
	uint64_t spare[4];
} weft_hooks;

/* Set the process's allocator and report hook; copies `hooks`.  The three
 * memory functions come together or not at all.  Without a report hook errors and warnings
 * are printed, as by weft_report_print(), unless `silent` is set.
 * Returns 0, WEFT_EINVAL, or WEFT_EBUSY if the library has allocated before.
 * Thread: any, before first use.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_set_hooks(const weft_hooks *hooks);

/* Print a report on standard error, in one line: "weft: threadlet loader failed: load
 * settings: no such file (WEFT_ENOENT)".  Reports without a hook are printed so; a hook may
 * do the same with those that it does not handle.  Lines that follow the first are indented.
 * It may be called in a signal handler.
 * Thread: any.  Blocks: the thread, on standard error.  Since: 0.1. */
WEFT_API void weft_report_print(const weft_report *report);

/* Memory of the library's allocator, for protocols and bindings: what they hold is then
 * counted, bounded and made to fail with all else.  Release takes `mem`, and accepts NULL.
 * alloc returns it, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void *weft_alloc(size_t size);
WEFT_API void  weft_release(void *mem);

WEFT_END
#endif
