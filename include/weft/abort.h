/* weft/abort.h - abort signals: one signal that cancels many operations.
 *
 * One object is both controller and signal: code that may fire it holds a weft_abort *, code
 * that may only check it and wait for it holds a const weft_abort *.  Suspending calls have no
 * parameter for a signal.  A signal reaches them through a scope, promises through
 * weft_abort_promise(), and requests through their options.  To get a callback when a signal
 * fires, make a promise that nothing settles, keep a reference to it, pass another reference to
 * weft_abort_promise(), and chain a handler to the result.
 *
 *   1. A signal fires at most once, and stays fired.  Its reason is freed with it.
 *   2. Scopes, promises and other signals that depend on a signal are notified in a microtask of
 *      the signal's loop, in the order they were added, and never inside the call that fires the
 *      signal.
 *   3. When its loop stops, a signal that has not fired fires with WEFT_ESHUTDOWN.  A signal
 *      whose last reference is dropped never fires.
 */
#ifndef WEFT_ABORT_H
#define WEFT_ABORT_H

#include <weft/base.h>
#include <weft/scope.h>
#include <weft/value.h>

WEFT_BEGIN

/* Make a signal, which belongs to `loop` (NULL: the caller's).  weft_abort_fire() can fire each
 * of them.  The signal of new_timeout also fires at the deadline, with WEFT_ETIMEDOUT; the
 * deadline does not keep weft_loop_run() from returning.  The signal of new_any also fires when
 * the first of `sources` (borrowed until return) fires; the sources may belong to other loops.
 * Return the signal with one reference; NULL if memory is exhausted or the loop is stopping.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_abort *weft_abort_new(weft_loop *loop);
WEFT_API weft_abort *weft_abort_new_timeout(weft_loop *loop, uint64_t deadline_ns);
WEFT_API weft_abort *weft_abort_new_any(weft_loop *loop,
                                        const weft_abort *const *sources,
                                        size_t count);

/* Add and drop a reference to the signal.
 * ref returns its argument; unref returns NULL and accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API const weft_abort *weft_abort_ref(const weft_abort *abort);
WEFT_API weft_abort       *weft_abort_unref(const weft_abort *abort);

/* Fire the signal; takes `reason`.  "No value" stands for the error WEFT_ECANCELED.
 * Returns 0, WEFT_EALREADY if it has already fired.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_abort_fire(weft_abort *abort, weft_value reason);

/* Check whether the signal has fired; fills `out` (may be NULL) with the reason, borrowed.
 * Returns 0 if it has not fired, else the error that the reason holds, or WEFT_ECANCELED if the
 * reason is not an error.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_abort_check(const weft_abort *abort, weft_value *out);

/* Cancel `scope` when `abort` fires, at once if it has fired before: from then on calls inside
 * the scope return the error that the reason holds, or WEFT_ECANCELED if the reason is not an
 * error.  The scope references the signal until the scope is closed.  The signal may belong to
 * any loop and fire on any thread, so one signal can cancel scopes on all loops.
 * Returns 0, WEFT_EBUSY if the scope already has a signal, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: loop of `scope`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_abort_scope(const weft_abort *abort, weft_scope *scope);

/* Make a promise on the caller's loop that settles as `promise` does, but is rejected if `abort`
 * fires first.  Takes `promise`; it and the signal may belong to any loop.
 * Returns the promise; NULL if memory is exhausted, and then the reference to `promise` is
 * dropped.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_abort_promise(const weft_abort *abort,
                                          weft_promise *promise);

WEFT_END
#endif
