/* weft/schedule.h - callbacks by number, as in JavaScript.
 *
 * The one home of setTimeout, setInterval, setImmediate, queueMicrotask and
 * nextTick, and of timers that other threads may set and clear.  Numbers are
 * > 0, of one sequence per loop, and never reused.  As the loop stops all are
 * cleared without a call.
 */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include <weft/base.h>

WEFT_BEGIN

/* Call `fn(arg)` once, `delay_ns` from now; every `every_ns`; after the next
 * wait for events.  The number is known before `fn` can run.
 * Return it, or WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int64_t weft_schedule_timeout(weft_loop *loop, uint64_t delay_ns,
                                       weft_fn fn, void *arg);
WEFT_API int64_t weft_schedule_interval(weft_loop *loop, uint64_t every_ns,
                                        weft_fn fn, void *arg);
WEFT_API int64_t weft_schedule_immediate(weft_loop *loop, weft_fn fn, void *arg);

/* Clear whatever has number `id`, from anywhere, its own callback included; fills
 * `out` (may be NULL) with its `arg`, given back.
 * Returns 0: it will not begin (again).  WEFT_ENOENT: it had run its last, was
 * cleared, or never was.  Exact also between threads.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_clear(weft_loop *loop, int64_t id, void **out);

/* Say whether `id` is background work, which does not keep weft_loop_run() from
 * returning.  Off at first.
 * Returns 0, WEFT_ENOENT.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_set_background(weft_loop *loop, int64_t id, bool on);

/* Call `fn(arg)` at the checkpoint that ends the present callback: ticks first,
 * then microtasks, until both queues are empty.
 * Return 0, WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_microtask(weft_loop *loop, weft_fn fn, void *arg);
WEFT_API int weft_schedule_tick(weft_loop *loop, weft_fn fn, void *arg);

WEFT_END
#endif
