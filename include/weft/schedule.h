/* weft/schedule.h - timers with an ID, as in JavaScript; ticks and microtasks.
 *
 * This is the base of setTimeout, setImmediate, queueMicrotask and nextTick, and of timers that
 * any thread may set and clear.  For a timer that repeats use weft/timer.h.  IDs are > 0, come
 * from one sequence per loop, and are never reused.  When the loop stops, it cancels all timeouts
 * and immediates without calling their callbacks.
 */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include <weft/base.h>

WEFT_BEGIN

/* Call `fn(arg)` once: timeout after `delay_ns`, immediate after the loop's next wait for events.
 * On the loop's thread `fn` never runs inside this call.  If another thread makes the call, the
 * loop may run `fn` before the call returns.
 * Return the ID, or WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int64_t weft_schedule_timeout(weft_loop *loop, uint64_t delay_ns,
                                       weft_fn fn, void *arg);
WEFT_API int64_t weft_schedule_immediate(weft_loop *loop, weft_fn fn, void *arg);

/* Cancel the timeout or immediate `id`.  Allowed anywhere, also in the callback of `id`.  Fills
 * `out` (may be NULL) with the `arg` of `id`, which belongs to the caller again.
 * Returns 0 if the callback has not begun and never will; WEFT_ENOENT if the ID never existed,
 * was canceled, or its callback has begun.  The result is exact also between threads.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_clear(weft_loop *loop, int64_t id, void **out);

/* Call `fn(arg)`, as a microtask or as a tick, at the loop's next microtask checkpoint, which
 * follows its current callback.  The checkpoint runs all ticks, then all microtasks, until both
 * queues are empty; it leaves what other threads queue meanwhile to the next checkpoint.  The
 * ticks of one thread run in the order in which it queued them, and so do its microtasks.  Both
 * calls wake a loop that sleeps; an idle loop runs `fn` at the beginning of its next run.  A loop
 * that stops runs everything it has accepted, and meanwhile refuses calls of other threads.
 * Return 0, WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_microtask(weft_loop *loop, weft_fn fn, void *arg);
WEFT_API int weft_schedule_tick(weft_loop *loop, weft_fn fn, void *arg);

WEFT_END
#endif
