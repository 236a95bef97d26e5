/* weft/abort.h - abort signals: one "stop it" for many things.
 *
 * One object is both controller and signal: who may fire holds a weft_abort *, who
 * may only look and listen a const one.  No call has a signal parameter.  A signal
 * reaches suspending calls through a scope, promises through weft_abort_promise(),
 * requests through their options, anything else by a listener.
 *
 *   1. A signal fires once, and stays so.  Its reason ends with it.
 *   2. Listeners run in a microtask of the signal's loop, in the order in which they
 *      were added; never inside of the call that fires.
 *   3. As its loop stops a signal that has not fired fires with WEFT_ESHUTDOWN.  One
 *      whose last reference goes never fires, and forgets who listens.
 */
#ifndef WEFT_ABORT_H
#define WEFT_ABORT_H

#include <weft/base.h>
#include <weft/scope.h>
#include <weft/value.h>

WEFT_BEGIN

/* Make a signal; one that fires by itself with WEFT_ETIMEDOUT at the deadline, which
 * does not keep weft_loop_run() from returning; one that fires with the first of
 * `sources` (borrowed until return), which may be of other loops.  Listeners run on
 * `loop` (NULL: the caller's).
 * Return it with one reference, or NULL: without memory, or once the loop stops.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_abort *weft_abort_new(weft_loop *loop);
WEFT_API weft_abort *weft_abort_new_timeout(weft_loop *loop, uint64_t deadline_ns);
WEFT_API weft_abort *weft_abort_new_any(weft_loop *loop,
                                        const weft_abort *const *sources,
                                        size_t count);

/* Hold the signal.  ref returns its argument, unref NULL and accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const weft_abort *weft_abort_ref(const weft_abort *abort);
WEFT_API weft_abort       *weft_abort_unref(const weft_abort *abort);

/* Fire, once; takes `reason` ("no value": WEFT_ECANCELED).
 * Returns 0, WEFT_EALREADY.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_abort_fire(weft_abort *abort, weft_value reason);

/* Whether it has fired; fills `out` (may be NULL) with the reason, borrowed.
 * Returns 0 if not, else the reason's error, WEFT_ECANCELED if it is none.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_abort_check(const weft_abort *abort, weft_value *out);

/* Listen: run `node->fn(node->arg)` on the signal's loop once when it fires, or soon
 * if it has; and stop listening: afterwards it will not run.
 * push returns 0, WEFT_EINVAL, WEFT_EBUSY (listening already), WEFT_EWRONGLOOP, WEFT_ENOMEM (it
 * has fired), WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int  weft_abort_push(const weft_abort *abort, weft_node *node);
WEFT_API void weft_abort_drop(const weft_abort *abort, weft_node *node);

/* Cancel `scope` when `abort` fires; held until the scope is closed.  The calls
 * inside return WEFT_ECANCELED, or the reason's error.  The signal may be of any
 * loop and fire on any thread: one can end scopes on all of them.
 * Returns 0, WEFT_EBUSY if the scope has one, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: loop of `scope`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_abort_scope(const weft_abort *abort, weft_scope *scope);

/* A promise on the caller's loop like `promise` (taken, of any loop) that is rejected
 * when `abort`, of any loop, fires first.
 * Returns it; NULL without memory, and then `promise` was unreferenced.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_abort_promise(const weft_abort *abort,
                                          weft_promise *promise);

WEFT_END
#endif
