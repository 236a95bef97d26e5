/* weft/js.h - JavaScript on a loop.
 *
 * A library of its own beside weft (-lweft_js).  An engine runs on one loop, on the
 * loop's own stack; its jobs are part of the microtask checkpoint.  It can do what it
 * was granted, nothing else.
 *
 *   1. Values go over as weft_value.  To C: undefined and null are "no value", booleans
 *      and whole numbers integers, others numbers, strings text (bytes if there is a NUL
 *      inside), Uint8Array and ArrayBuffer bytes, arrays lists, errors errors, promises
 *      promises; anything else is held, as weft_type_js.  To JavaScript the same way back;
 *      a value of a type of one's own becomes an object that scripts can only pass on.
 *   2. An error that goes to a script is an Error with `code` ("WEFT_ENOENT") and `errno`.
 *      One that comes back, or leaves the script unhandled, is the same error again; what
 *      scripts throw themselves is WEFT_ESCRIPT.  Its text says what, where, and the stack.
 *   3. What nobody handles - an exception in a callback, a rejection by the end of the
 *      checkpoint - goes to the script's `error` and `unhandledrejection` events first,
 *      then to on_error, and the first is kept for weft_js_failed().
 *   4. Timers of scripts keep weft_loop_run() from returning; promises do not.
 *   5. Called from a threadlet, "Thread: loop" functions here that run scripts suspend
 *      it until the loop's own stack has done it, whatever its cancellation.
 *   6. As the loop stops, timers are cleared without a call; the engine is still there
 *      to be freed.  Until then it holds a reference to the loop.
 *   7. What would go over memory_bytes is refused, an error that a script can catch, if it is
 *      big and asked for at once, or a string.  The items of an array may grow to 4 times
 *      memory_bytes.  What is small or grows otherwise may go on to 64 times, since the
 *      engine does not survive a refusal there: a parser takes up to 60 times its text.  The
 *      script is ended soon then, unless it was garbage.  Where a parser needs still more, or
 *      the process itself has no memory left, a script that runs may bring the process down.
 *   8. A callback that comes to a limit, or is interrupted, ends with an error that `catch`
 *      does not catch.  But a promise takes it: of an async function, or of a job, that is
 *      rejected as usual, and who handles that goes on, in a callback of its own.  The
 *      host is told in any case: what it called fails, or on_error hears of it.
 *   9. What goes to C in one call, or as one result, takes memory_bytes at most; else it is
 *      WEFT_EMSGSIZE.  Whatever is in it twice counts twice.
 */
#ifndef WEFT_JS_H
#define WEFT_JS_H

#include <weft/base.h>
#include <weft/tls.h>
#include <weft/value.h>

WEFT_BEGIN

typedef struct weft_js weft_js;

/* A JavaScript value, held: it can be shared and dropped on any thread.  It is empty,
 * undefined, once its engine is freed. */
WEFT_API extern const weft_type weft_type_js;

enum {
	WEFT_JS_FILES = 1 << 0, /* modules and the environment */
	WEFT_JS_NET   = 1 << 1, /* fetch */
};

typedef struct weft_js_opts {
	uint32_t grants;         /* WEFT_JS_*; default none */
	size_t   memory_bytes;   /* default 64 MiB, at least 256 KiB; see 7 */
	size_t   stack_bytes;    /* default 256 KiB */
	uint64_t run_ns;         /* one callback at most; default 5 s */
	const char *const *argv; /* for process.argv; NULL-terminated, borrowed */
	/* What nobody handled, with a text.  Return false, and the script ends here: nothing
	 * of it runs any more.  Must not free the engine. */
	bool (*on_error)(weft_js *js, int error, const char *text, void *arg);
	/* The script ended itself, by process.exit(). */
	void (*on_exit)(weft_js *js, int status, void *arg);
	/* Where console writes to, `fd` 1 or 2; default: these descriptors. */
	void (*write)(weft_js *js, int fd, weft_span text, void *arg);
	void    *arg;            /* of these three */
	weft_tls *tls;           /* of fetch; default: the system's CAs; borrowed */
	uint64_t spare[3];
} weft_js_opts;

/* Make an engine on `loop` (NULL: the caller's).
 * Returns it, or NULL: out of memory, or memory_bytes is too small for anything.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_js *weft_js_new(weft_loop *loop, const weft_js_opts *opts);

/* Free it with everything scripts hold.  Promises of scripts that C waits for are rejected
 * with WEFT_ESHUTDOWN, what C still holds becomes empty, and host functions that are
 * suspended run on: to them, `js` is an engine that returns WEFT_ESHUTDOWN.  Takes it on
 * success; accepts NULL.
 * Returns 0, WEFT_EBUSY inside of a script.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_free(weft_js *js);

/* Run `source` as a script, which messages call `file` (may be NULL); load the module
 * in `file` with its imports, which need WEFT_JS_FILES.  Modules are regular files of at
 * most 16 MiB; one of whose imports cannot be had stays so.  Fill `out` (may be NULL;
 * the caller drops it) with the result, or the module's promise.
 * Return 0; WEFT_ESCRIPT or an error from C with message, position and stack in
 * weft_detail(); WEFT_ENOMEM, WEFT_ETIMEDOUT at a limit of the engine, WEFT_EINTR after
 * weft_js_interrupt(), WEFT_EPERM; WEFT_ENOENT, WEFT_EINVAL, WEFT_EMSGSIZE of a file;
 * WEFT_ESHUTDOWN once it has ended.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_eval(weft_js *js, const char *source, const char *file,
                          weft_value *out);
WEFT_API int weft_js_load(weft_js *js, const char *file, weft_value *out);

/* Call the function at `path` ("handlers.feed") with `args`, borrowed.
 * Returns as weft_js_eval(), WEFT_ENOENT if there is no such function.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_call(weft_js *js, const char *path, const weft_value *args,
                          size_t count, weft_value *out);

/* A host function: borrows `args`, fills `out`, returns 0 or an error to throw, with
 * `out` as what is thrown if it was filled. */
typedef int (*weft_js_fn)(weft_js *js, const weft_value *args, size_t count,
                          weft_value *out, void *arg);

/* Expose `fn` as the global function at `path`; objects on the way are made.  With
 * `suspends` each call runs on a threadlet and gives the script a promise; without, it
 * runs at once and must not suspend.
 * Returns 0, WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_expose(weft_js *js, const char *path, bool suspends,
                            weft_js_fn fn, void *arg);

/* End the script that runs now with an error it cannot catch; if none does, nothing.
 * Thread: any, while the engine is there.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_js_interrupt(weft_js *js);

/* The first error that nobody handled, with its text in weft_detail(); 0 if there is
 * none.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_failed(weft_js *js);

/* What a program that runs this script should exit with: what was given to
 * process.exit(), else 1 after an error that nobody handled, else process.exitCode, for
 * which no getter is run.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_js_status(weft_js *js);

WEFT_END
#endif
