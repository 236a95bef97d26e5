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
 *   4. A rejection without a handler at the end of the microtask checkpoint is reported
 *      (WEFT_REPORT_UNHANDLED).  If a handler is added later, that is reported, too
 *      (WEFT_REPORT_HANDLED).
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
 * Returns the promise with one reference, or NULL without memory.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_new(weft_loop *loop);

/* Make a promise and its op.  Start the op with any call whose name ends in _op; its result
 * settles the promise, as an integer or an error.
 * Returns the promise and fills `out` with the op, valid until it has finished; or NULL.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_new_op(weft_loop *loop, weft_op **out);

/* Call `fn(NULL, out, arg)` on a new threadlet and make a promise of its outcome.  This turns
 * any suspending call, for example on streams or HTTP, into a promise.
 * Returns the promise, or NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_go(weft_loop *loop, weft_then_fn fn,
                                       void *arg);

/* Make a value that holds `promise`, which is taken.
 * Returns the value; for NULL an error value, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_value weft_value_promise(weft_promise *promise);

/* Add and drop a reference to the promise.
 * ref returns its argument; unref returns NULL and accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_ref(weft_promise *promise);
WEFT_API weft_promise *weft_promise_unref(weft_promise *promise);

/* Fulfill or reject the promise; only the first call counts.  Take `value` in any case.  A
 * promise that is resolved with another promise, or with a thenable, settles as that does, and
 * cannot be settled otherwise meanwhile.  Resolved with itself, it is rejected with
 * WEFT_EDEADLK.
 * Return 0, WEFT_EALREADY, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_promise_resolve(weft_promise *promise, weft_value value);
WEFT_API int weft_promise_reject(weft_promise *promise, weft_value reason);

/* Chain handlers: call `fulfilled` or `rejected` when `promise` has settled (NULL: pass the
 * outcome on).  Takes `promise`; for NULL the result is NULL.
 * Returns the promise of the handler's outcome; NULL without memory, or once the loop has
 * stopped, and then the reference to `promise` is dropped.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_then(weft_promise *promise,
                                         weft_then_fn fulfilled,
                                         weft_then_fn rejected, void *arg);

/* Combine `count` promises, which are taken; the array is borrowed.  all: the list of all
 * values, or the first rejection.  all_settled: the list of all promises, once each has
 * settled.  any: the first value, or a rejection with the list of all reasons.  race: the first
 * outcome.  Lists are of weft_type_list.  A value that is also reachable elsewhere is shared
 * into the list; if its type cannot be shared, the result is rejected with WEFT_EPERM.
 * Return a promise on the loop of the first promise (of none: the caller's); NULL without
 * memory, or if one of them is NULL, and then all references are dropped.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_promise *weft_promise_all(weft_promise *const *promises, size_t count);
WEFT_API weft_promise *weft_promise_all_settled(weft_promise *const *promises,
                                                size_t count);
WEFT_API weft_promise *weft_promise_any(weft_promise *const *promises, size_t count);
WEFT_API weft_promise *weft_promise_race(weft_promise *const *promises, size_t count);

/* Get the state of the promise; fills `out` (may be NULL) with its value or reason, borrowed
 * from the promise.
 * Returns the state.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_outcome weft_promise_state(weft_promise *promise, weft_value *out);

/* Wait until `promise`, borrowed, of any loop, has settled; fills `out` (may be NULL) with its
 * value, borrowed from the promise.
 * Returns 0; if rejected the error of the reason, or WEFT_EREJECTED if the reason is no error;
 * WEFT_ETIMEDOUT, WEFT_ECANCELED, WEFT_EINTR; WEFT_ENOSUSPEND in a callback.
 * Thread: any.  Blocks: waits.  Since: 0.1. */
WEFT_API int weft_await(weft_promise *promise, weft_value *out,
                        uint64_t deadline_ns);

WEFT_END
#endif
