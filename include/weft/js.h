/* weft/js.h - JavaScript on a loop.
 *
 * A separate library beside weft (-lweft_js).  An engine runs on one loop, on the stack of the
 * loop's thread; its jobs are part of the microtask checkpoint.  Scripts can use only what the
 * engine was granted.
 *
 *   1. Values are converted to and from weft_value.  To C: undefined and null become "no
 *      value", booleans and whole numbers integers, other numbers numbers, strings text (bytes
 *      if they contain a NUL), Uint8Array and ArrayBuffer bytes, arrays lists, errors errors,
 *      promises promises; anything else is held as weft_type_js.  To JavaScript the same in
 *      reverse; a value of a user-defined type becomes an object that scripts can only pass on.
 *   2. An error that goes to a script is an Error with `code` ("WEFT_ENOENT") and `errno`.  If
 *      it comes back, or leaves the script unhandled, it is the same error again; errors that
 *      scripts throw themselves are WEFT_ESCRIPT.  The message has the text, the position and
 *      the stack.
 *   3. An unhandled error - an exception in a callback, a rejection without a handler at the
 *      end of the checkpoint - goes first to the script's `error` and `unhandledrejection`
 *      events, then to on_error.  The first one is kept for weft_js_failed().
 *   4. Timers of scripts keep weft_loop_run() from returning; promises do not.
 *   5. If a threadlet calls a "Thread: loop" function here that runs scripts, it is suspended
 *      until the loop's own stack has run them; cancellation does not end this wait.
 *   6. When the loop stops, timers of scripts are canceled without a call.  The engine must
 *      still be freed; until then it references the loop.
 *   7. An allocation that would exceed memory_bytes is refused, with an error that a script can
 *      catch, if it is a large block requested at once, or a string.  The items of an array may
 *      grow to 4 times memory_bytes.  Small blocks, and other blocks that grow, may reach 64
 *      times memory_bytes, because the engine cannot handle a refusal there: a parser needs up
 *      to 60 times the size of its text.  Such a script is ended soon after, unless the excess
 *      was garbage.  If a parser needs even more, or the process itself has no memory left, a
 *      running script may crash the process.
 *   8. A callback that reaches a limit, or is interrupted, ends with an error that `catch` does
 *      not catch.  A promise does catch it: the promise of an async function, or of a job, is
 *      rejected as usual, and its handlers run in a callback of their own.  The host is
 *      notified in any case: its call fails, or on_error is called.
 *   9. Data that goes to C in one call, or as one result, may take at most memory_bytes, else
 *      WEFT_EMSGSIZE.  An object that occurs twice counts twice.
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
	/* Called for an unhandled error, with its message.  Return false to end the script:
	 * nothing of it runs after that.  Must not free the engine. */
	bool (*on_error)(weft_js *js, int error, const char *text, void *arg);
	/* The script has ended itself with process.exit(). */
	void (*on_exit)(weft_js *js, int status, void *arg);
	/* Receives the output of console, `fd` 1 or 2; default: these descriptors. */
	void (*write)(weft_js *js, int fd, weft_span text, void *arg);
	void    *arg;            /* of these three */
	weft_tls *tls;           /* for fetch; default: the system's CAs; borrowed */
	uint64_t spare[3];
} weft_js_opts;

/* Make an engine on `loop` (NULL: the caller's).
 * Returns the engine, or NULL: out of memory, or memory_bytes is too small.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_js *weft_js_new(weft_loop *loop, const weft_js_opts *opts);

/* Free an engine and everything its scripts hold.  Promises of scripts that C waits for are
 * rejected with WEFT_ESHUTDOWN, and values that C still holds become empty.  Suspended host
 * functions continue to run; for them calls with `js` return WEFT_ESHUTDOWN.  Takes the engine
 * on success; accepts NULL.
 * Returns 0, WEFT_EBUSY inside a script.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_free(weft_js *js);

/* Run `source` as a script, called `file` (may be NULL) in messages; or load the module in
 * `file` with its imports, which need WEFT_JS_FILES.  Modules are regular files of at most 16
 * MiB.  A module with an import that cannot be loaded stays unusable.  Fill `out` (may be NULL;
 * the caller drops it) with the result, or with the module's promise.
 * Return 0; WEFT_ESCRIPT or an error from C with message, position and stack in weft_detail();
 * WEFT_ENOMEM, WEFT_ETIMEDOUT at a limit of the engine, WEFT_EINTR after weft_js_interrupt(),
 * WEFT_EPERM; WEFT_ENOENT, WEFT_EINVAL, WEFT_EMSGSIZE for a file; WEFT_ESHUTDOWN once the
 * script has ended.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_eval(weft_js *js, const char *source, const char *file,
                          weft_value *out);
WEFT_API int weft_js_load(weft_js *js, const char *file, weft_value *out);

/* Call the function at `path` ("handlers.feed") with `args`, borrowed.
 * Returns as weft_js_eval(), WEFT_ENOENT if there is no such function.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_call(weft_js *js, const char *path, const weft_value *args,
                          size_t count, weft_value *out);

/* A host function: borrows `args`, fills `out`, returns 0; or returns an error, which is
 * thrown, with `out` as the thrown value if it is filled. */
typedef int (*weft_js_fn)(weft_js *js, const weft_value *args, size_t count,
                          weft_value *out, void *arg);

/* Expose `fn` as the global function at `path`; missing objects on the path are made.  With
 * `suspends` each call runs on a threadlet and returns a promise to the script; without, it
 * runs at once and must not suspend.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_expose(weft_js *js, const char *path, bool suspends,
                            weft_js_fn fn, void *arg);

/* Interrupt the script that runs now, with an error that it cannot catch.  Has no effect if
 * none runs.
 * Thread: any, while the engine is there.  Blocks: no.  Since: 0.1. */
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
