/* weft/promise.h - promises: settle once, from any thread; chain; await.
 *
 * A promise belongs to a loop.  Its handlers run there, always in microtasks and in order
 * (Promises/A+).  A promise owns its value; handlers and readers borrow it.  Calls that make a
 * promise from other promises take them: to keep one, call weft_promise_ref() first.
 *
 *   1. Each chained handler that fits the outcome runs exactly once.  No promise stays pending
 *      forever: when its loop stops, a pending promise is rejected with WEFT_ESHUTDOWN; when
 *      its last reference is dropped, so that it can never be settled, with WEFT_ECLOSED.
 *   2. Passing a value along a chain does not copy it: later promises reference the promise
 *      that owns the value.  The value is freed with the last of them.
 *   3. A rejection with an error keeps the message that weft_detail() had when the promise was
 *      rejected.  weft_detail() returns it in handlers, and after an await.
 *   4. A rejection without a handler at the end of the microtask checkpoint is reported with
 *      its promise and reason (WEFT_REPORT_UNHANDLED).  If another thread made or settled the
 *      promise, and a reference to it is left, the report comes a second later, because that
 *      thread may be about to add a handler.  If a handler is added after the report, that is
 *      reported, too (WEFT_REPORT_HANDLED).
 *   5. A pending promise does not keep weft_loop_run() from returning, but its loop must be
 *      stopped before it can be freed.  Once the loop is freed, only weft_promise_state(),
 *      weft_await(), ref and unref may be called on the promise.
 */
#ifndef WEFT_PROMISE_H
#define WEFT_PROMISE_H

#include <weft/base.h>
#include <weft/op.h>
#include <weft/value.h>

WEFT_BEGIN

WEFT_API extern const weft_type weft_type_promise; /* as.ptr, weft_promise *, referenced */

typedef enum weft_outcome {
	WEFT_PENDING, WEFT_FULFILLED, WEFT_REJECTED,
} weft_outcome;

/* A handler.  `in` is the value or reason of the previous promise, borrowed.  The handler fills
 * `out`, which the new promise takes, and returns 0; or it returns an error, which rejects the
 * new promise, with `out` as the reason if it is filled.  If `out` is of weft_type_promise, the
 * new promise settles as that promise does. */
typedef int (*weft_then_fn)(const weft_value *in, weft_value *out, void *arg);

/* Make a pending promise on `loop` (NULL: the caller's).
 * Returns the promise with one reference; NULL if memory is exhausted.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_new(weft_loop *loop);

/* Make a promise and its op.  Start the op with any call that starts one (weft/op.h); the result
 * of the op settles the promise, as an integer or an error.
 * Returns the promise and fills `out` with the op, which is valid until it has finished; NULL on
 * error (see weft_detail()).
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_new_op(weft_loop *loop, weft_op **out);

/* Call `fn(NULL, out, arg)` on a new threadlet and make a promise of its outcome.  This turns
 * any suspending call, for example on streams or HTTP, into a promise.
 * Returns the promise; NULL on error (see weft_detail()).
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_go(weft_loop *loop, weft_then_fn fn,
                                       void *arg);

/* Make a value that holds `promise`, which is taken.
 * Returns the value; if `promise` is NULL, an error value with WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_promise(weft_promise *promise);

/* Add and drop a reference to the promise.
 * ref returns its argument; unref returns NULL and accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_ref(weft_promise *promise);
WEFT_API weft_promise *weft_promise_unref(weft_promise *promise);

/* Fulfill or reject the promise; only the first call has an effect.  Both take `value` or
 * `reason` in any case.  A promise that is resolved with another promise, or with a thenable,
 * settles as that one does, and later calls cannot settle it otherwise.  A promise that is
 * resolved with itself is rejected with WEFT_EDEADLK.
 * Return 0, WEFT_EALREADY, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_promise_resolve(weft_promise *promise, weft_value value);
WEFT_API int weft_promise_reject(weft_promise *promise, weft_value reason);

/* Chain handlers: when `promise` has settled, `fulfilled` or `rejected` is called.  If that
 * handler is NULL, the new promise gets the outcome of `promise`.  Takes `promise`.
 * Returns the promise of the handler's outcome; NULL if `promise` is NULL, memory is exhausted
 * or the loop has stopped, and then the reference to `promise` is dropped.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_then(weft_promise *promise,
                                         weft_then_fn fulfilled,
                                         weft_then_fn rejected, void *arg);

/* Combine `count` promises, which are taken; the array is borrowed.  The result of all is the
 * list of all values, or the first rejection; of all_settled the list of all promises, once each
 * has settled; of any the first value, or a rejection with the list of all reasons; of race the
 * first outcome.  Lists are of weft_type_list.  A value that other code can still reach is
 * shared into the list; if its type cannot be shared, the result is rejected with WEFT_EPERM.
 * Return a promise on the loop of the first promise (if `count` is 0, on the caller's loop);
 * NULL if memory is exhausted or one of the promises is NULL, and then all references are
 * dropped.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_all(weft_promise *const *promises, size_t count);
WEFT_API weft_promise *weft_promise_all_settled(weft_promise *const *promises,
                                                size_t count);
WEFT_API weft_promise *weft_promise_any(weft_promise *const *promises, size_t count);
WEFT_API weft_promise *weft_promise_race(weft_promise *const *promises, size_t count);

/* Get the state of the promise.  Fills `out` (may be NULL) with its value or reason, borrowed
 * from the promise.
 * Returns the state.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_outcome weft_promise_state(weft_promise *promise, weft_value *out);

/* Wait until `promise`, which is borrowed and may belong to any loop, has settled.  Fills `out`
 * (may be NULL) with its value, borrowed from the promise.
 * Returns 0; if the promise was rejected, the error that the reason holds, or WEFT_EREJECTED if
 * the reason is not an error; WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EINTR; WEFT_ENOSUSPEND in a
 * callback.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_await(weft_promise *promise, weft_value *out,
                        uint64_t deadline_ns);

WEFT_END
#endif
