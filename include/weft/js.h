/* weft/js.h - JavaScript on a loop.
 *
 * A separate library beside weft (-lweft_js).  An engine runs on one loop, on the stack of the
 * loop's thread; its jobs are part of the microtask checkpoint.  A script can reach files, the
 * environment and the network only if the engine was granted access to them (`grants`).
 *
 *   1. Values are converted to and from weft_value.  To C: undefined and null become "no
 *      value"; booleans and whole numbers become integers; strings become text, or bytes if they
 *      contain a NUL; Uint8Array and ArrayBuffer become bytes.  Other numbers, arrays, errors
 *      and promises become values of the matching type.  Anything else becomes a value of
 *      weft_type_js.  The conversion to JavaScript is the reverse; a value of a user-defined
 *      type becomes an object that scripts can only pass on.
 *   2. An error that C passes to a script is an Error with `code` ("WEFT_ENOENT") and `errno`.
 *      If the script passes it back, or does not handle it, C gets the same error again.  Errors
 *      that scripts throw themselves are WEFT_ESCRIPT in C.  The message has the text, the
 *      position and the stack.
 *   3. An unhandled error is an exception in a callback, or a rejection that has no handler at
 *      the end of the checkpoint.  It goes first to the script's `error` or `unhandledrejection`
 *      event, then to on_error.  weft_js_failed() returns the first one.
 *   4. Timers of scripts keep weft_loop_run() from returning; promises do not.
 *   5. A script always runs on the loop's own stack.  If a threadlet calls weft_js_eval(),
 *      weft_js_load(), weft_js_call() or weft_js_expose(), the call suspends the threadlet until
 *      the script has run there; cancellation does not end this wait.
 *   6. When the loop stops, it cancels the timers of scripts without calling their callbacks.
 *      The engine must still be freed; until then it references the loop.
 *   7. The engine refuses an allocation that would exceed memory_bytes, with an error that a
 *      script can catch, if it is a string or a large block requested at once.  The items of an
 *      array may grow to 4 times memory_bytes.  Small blocks, and other blocks that grow, may
 *      reach 64 times memory_bytes, because the engine cannot handle a refusal there: a parser
 *      needs up to 60 times the size of its text.  A script that has exceeded memory_bytes this
 *      way is ended soon after, unless the excess was garbage.  If a parser needs even more, or
 *      the process itself has no memory left, a running script may crash the process.
 *   8. A callback that reaches a limit, or is interrupted, ends with an error that `catch` does
 *      not catch.  A promise does catch it: the promise of an async function, or of a job, is
 *      rejected as usual, and its handlers run in a callback of their own.  The host always
 *      learns of the error: its call fails, or the engine calls on_error.
 *   9. Data that goes to C in one call, or as one result, may take at most memory_bytes, else
 *      the call fails with WEFT_EMSGSIZE.  An object that occurs twice counts twice.
 */
#ifndef WEFT_JS_H
#define WEFT_JS_H

#include <weft/base.h>
#include <weft/tls.h>
#include <weft/value.h>

WEFT_BEGIN

typedef struct weft_js weft_js;

/* A JavaScript value that C holds; it can be shared and dropped on any thread.  Once its engine
 * is freed it is empty: undefined. */
WEFT_API extern const weft_type weft_type_js;

enum {
	WEFT_JS_FILES = 1 << 0, /* import modules, read the environment */
	WEFT_JS_NET   = 1 << 1, /* fetch */
};

typedef struct weft_js_opts {
	uint32_t grants;         /* WEFT_JS_*; default none */
	size_t   memory_bytes;   /* default 64 MiB, at least 256 KiB; see 7 */
	size_t   stack_bytes;    /* default 256 KiB */
	uint64_t run_ns;         /* limit of one callback; default 5 s */
	const char *const *argv; /* for process.argv; NULL-terminated, borrowed */
	/* Called for an unhandled error, with its message.  Return false to end the script: none
	 * of its code runs after that.  Must not free the engine. */
	bool (*on_error)(weft_js *js, int error, const char *text, void *arg);
	/* Called when the script has ended itself with process.exit(). */
	void (*on_exit)(weft_js *js, int status, void *arg);
	/* Receives the output of console; `fd` is 1 or 2.  Default: write to that descriptor. */
	void (*write)(weft_js *js, int fd, weft_span text, void *arg);
	void    *arg;            /* of these three */
	weft_tls *tls;           /* for fetch; default: the system's CAs; borrowed */
	uint64_t spare[3];       /* must be zero: room for later versions */
} weft_js_opts;

/* Make an engine on `loop` (NULL: the caller's).
 * Returns the engine; NULL if memory is exhausted or memory_bytes is too small.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_js *weft_js_new(weft_loop *loop, const weft_js_opts *opts);

/* Free an engine and everything its scripts hold.  Promises of scripts that C waits for are
 * rejected with WEFT_ESHUTDOWN, and values that C still holds become empty.  Suspended host
 * functions continue to run; the calls they then make with `js` return WEFT_ESHUTDOWN.  Takes
 * the engine on success; accepts NULL.
 * Returns 0, WEFT_EBUSY inside a script.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_free(weft_js *js);

/* eval: run `source` as a script; messages call it `file` (may be NULL).  load: load the module
 * in `file` with its imports; imports need WEFT_JS_FILES.  A module is a regular file of at most
 * 16 MiB.  If an import of a module cannot be loaded, the module stays unusable.  `out` (may be
 * NULL; the caller drops it) is filled with the result, or with the module's promise.
 * Return 0; WEFT_ESCRIPT or an error from C with message, position and stack in weft_detail();
 * WEFT_ENOMEM, WEFT_ETIMEDOUT at a limit of the engine, WEFT_EINTR after weft_js_interrupt(),
 * WEFT_EPERM; WEFT_ENOENT, WEFT_EINVAL, WEFT_EMSGSIZE for a file; WEFT_ESHUTDOWN once the
 * script has ended.
 * Thread: loop.  Blocks: no, but suspends a threadlet (rule 5).  Since: 0.1. */
WEFT_API int weft_js_eval(weft_js *js, const char *source, const char *file,
                          weft_value *out);
WEFT_API int weft_js_load(weft_js *js, const char *file, weft_value *out);

/* Call the function at `path` ("handlers.feed") with at most 65,535 `args`, borrowed.
 * Returns as weft_js_eval(), WEFT_ENOENT if there is no such function.
 * Thread: loop.  Blocks: no, but suspends a threadlet (rule 5).  Since: 0.1. */
WEFT_API int weft_js_call(weft_js *js, const char *path, const weft_value *args,
                          size_t count, weft_value *out);

/* A host function: borrows `args`, fills `out`, returns 0; or returns an error, which is
 * thrown, with `out` as the thrown value if it is filled. */
typedef int (*weft_js_fn)(weft_js *js, const weft_value *args, size_t count,
                          weft_value *out, void *arg);

/* Expose `fn` as the global function at `path`; objects on the path that do not exist are made.
 * If `suspends` is true, each call of the script runs `fn` on a new threadlet and returns a
 * promise.  If it is false, `fn` runs at once and must not suspend.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no, but suspends a threadlet (rule 5).  Since: 0.1. */
WEFT_API int weft_js_expose(weft_js *js, const char *path, bool suspends,
                            weft_js_fn fn, void *arg);

/* Interrupt the script that runs now, with an error that it cannot catch.  Has no effect if
 * none runs.
 * Thread: any, until the engine is freed.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_js_interrupt(weft_js *js);

/* Get the first unhandled error, with its message in weft_detail().
 * Returns the error, 0 if there is none.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_failed(weft_js *js);

/* Get the exit status for a program that runs this script.
 * Returns the argument of process.exit(); else 1 after an unhandled error; else
 * process.exitCode, for which no getter is run.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_status(weft_js *js);

WEFT_END
#endif
