/* weft/promise.h - promises: settle once, from any thread; chain; await.
 *
 * A promise belongs to a loop, where its handlers run, always in microtasks and in
 * order (Promise/A+).  It owns its value.  Handlers and readers borrow it.  Calls
 * that make a promise of promises take them: hold one with weft_promise_ref()
 * first to keep it.
 *
 *   1. Each chained handler that fits the outcome runs exactly once.  Nothing stays
 *      pending for ever: at stop pending promises are rejected with WEFT_ESHUTDOWN, and
 *      one whose last reference goes, so that nobody can settle it, with WEFT_ECLOSED.
 *   2. A value passed on is not copied: those behind in the chain keep the promise that
 *      has it.  It ends with the last of them.
 *   3. A rejection with an error has its text, that of weft_detail() when it was made:
 *      weft_detail() in handlers, and after an await.
 *   4. A rejection that nobody handles by the end of the checkpoint is reported
 *      (WEFT_REPORT_UNHANDLED), and if somebody does later, that too
 *      (WEFT_REPORT_HANDLED).
 *   5. A pending promise does not keep weft_loop_run() from returning, but its loop
 *      cannot be freed before it is stopped.  Of a promise whose loop is freed only
 *      weft_promise_state(), weft_await(), ref and unref may be called.
 */
#ifndef WEFT_PROMISE_H
#define WEFT_PROMISE_H

#include <weft/base.h>
#include <weft/op.h>
#include <weft/value.h>

WEFT_BEGIN

WEFT_API extern const weft_type weft_type_promise; /* as.ptr, weft_promise *, held */

typedef enum weft_outcome {
	WEFT_PENDING, WEFT_FULFILLED, WEFT_REJECTED,
} weft_outcome;

/* Given what the promise before settled with (borrowed), fill `out` (taken by the
 * new promise) and return 0; or return an error to reject, with `out` as the reason
 * if it was filled.  With a value of weft_type_promise the new one settles as that
 * promise does. */
typedef int (*weft_then_fn)(const weft_value *in, weft_value *out, void *arg);

/* Make a pending promise on `loop` (NULL: the caller's).
 * Returns it with one reference, or NULL without memory.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_new(weft_loop *loop);

/* Make a promise and its op: start the op by any call ending in _op, and its
 * result settles the promise, an integer or an error.
 * Returns the promise and fills `out`, valid until it has finished; or NULL.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_new_op(weft_loop *loop, weft_op **out);

/* Make a promise of what `fn(NULL, out, arg)` does, which is called before the return.
 * Returns it, or NULL: no memory, and no call.
 * Thread: any.  Blocks: as `fn`.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_try(weft_loop *loop, weft_then_fn fn, void *arg);

/* Make a promise of what `fn(NULL, out, arg)` does on a threadlet of its own: any
 * suspending call, stream or HTTP, becomes a promise this way.
 * Returns it, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_go(weft_loop *loop, weft_then_fn fn,
                                       void *arg);

/* A value that holds `promise` (taken); of NULL an error, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_promise(weft_promise *promise);

/* Hold the promise.  ref returns its argument, unref NULL and accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_ref(weft_promise *promise);
WEFT_API weft_promise *weft_promise_unref(weft_promise *promise);

/* Settle; the first wins.  Take `value`, also when they come late.  A promise that is
 * resolved with another promise, or with a thenable, settles as that does, and cannot be
 * settled otherwise meanwhile; with itself it is rejected with WEFT_EDEADLK.
 * Return 0, WEFT_EALREADY, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_promise_resolve(weft_promise *promise, weft_value value);
WEFT_API int weft_promise_reject(weft_promise *promise, weft_value reason);

/* Chain: when `promise` is fulfilled or rejected call the handler for it (NULL:
 * pass on).  Takes `promise`; NULL in gives NULL out.
 * Returns the promise of the handler's outcome; NULL without memory, or once its loop
 * has stopped, and then `promise` was unreferenced.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_then(weft_promise *promise,
                                         weft_then_fn fulfilled,
                                         weft_then_fn rejected, void *arg);

/* Chain what runs in either case and passes the outcome on, unless it fails: then the
 * new promise is rejected with its error.  Takes `promise`.
 * Returns as weft_promise_then().
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_finally(weft_promise *promise,
                                            int (*fn)(void *arg), void *arg);

/* Of `count` promises (taken; the array is borrowed): all values, or the first
 * rejection; all promises, when each has settled; the first value, or all reasons; the
 * first to settle.  Lists are of weft_type_list.  A value that also others can reach is
 * shared into a list, and if its type cannot be shared, that is the rejection
 * (WEFT_EPERM).
 * Return a promise on the loop of the first (of none: the caller's), or NULL
 * without memory, or if one of them is NULL; then all were unreferenced.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_all(weft_promise *const *promises, size_t count);
WEFT_API weft_promise *weft_promise_all_settled(weft_promise *const *promises,
                                                size_t count);
WEFT_API weft_promise *weft_promise_any(weft_promise *const *promises, size_t count);
WEFT_API weft_promise *weft_promise_race(weft_promise *const *promises, size_t count);

/* Look: fills `out` (may be NULL) with value or reason, borrowed from the promise.
 * Returns the state.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_outcome weft_promise_state(weft_promise *promise, weft_value *out);

/* Wait until `promise`, borrowed, of any loop, is settled; fills `out` (may be
 * NULL) with its value, borrowed from it.
 * Returns 0; if rejected the reason's error, WEFT_EREJECTED if it is none;
 * WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EINTR; WEFT_ENOSUSPEND in a callback.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_await(weft_promise *promise, weft_value *out,
                        uint64_t deadline_ns);

WEFT_END
#endif
