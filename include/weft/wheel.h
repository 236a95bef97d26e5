/* weft/wheel.h - a timer wheel, usable without a loop and with any clock.
 *
 * A wheel is for programs that have their own event loop and need only timers; weft/weft.h does
 * not include this header.  Start, stop and restart take amortized O(1).  weft_wheel_next()
 * searches the first occupied slot.  That takes longer the farther away the first deadline is,
 * because slots for later deadlines cover more time and can hold more timers.  On a loop use
 * weft/timer.h, which has the same timer struct and the same rules.
 *
 *   1. A timer never fires before its deadline.
 *   2. Due timers fire in order of (deadline, start).
 *   3. A timer started while the wheel advances fires at a later advance.
 *   4. Starting reserves memory; firing and repeating never allocate.
 *
 * A repeating timer does not drift: each of its deadlines is the first one plus a whole number
 * of periods, however late callbacks run.  Periods that were missed entirely are skipped.
 */
#ifndef WEFT_WHEEL_H
#define WEFT_WHEEL_H

#include <weft/base.h>
#include <weft/timer.h>

WEFT_BEGIN

typedef struct weft_wheel weft_wheel;

/* Make a wheel whose time begins at `now_ns`.
 * Returns the wheel; NULL if memory is exhausted.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_wheel *weft_wheel_new(uint64_t now_ns);

/* Free a wheel and stop all its timers; allowed in a timer's callback.  Accepts NULL.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_wheel_free(weft_wheel *wheel);

/* Arm `timer` for `due_ns`, then every `every_ns` if that is not 0.  An armed timer is moved to
 * the new time.  A timer whose time has passed fires at the next advance.
 * Returns 0, WEFT_ENOMEM; WEFT_EINVAL if `fn` is NULL, `due_ns` is WEFT_NEVER, or the timer is
 * armed in another wheel or loop.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_wheel_start(weft_wheel *wheel, weft_timer *timer,
                              uint64_t due_ns, uint64_t every_ns,
                              weft_timer_fn fn, void *arg);

/* Disarm `timer`.  After this it does not fire, and its memory belongs to the caller.
 * Returns 1 if it was armed, else 0.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_wheel_stop(weft_wheel *wheel, weft_timer *timer);

/* Set the time to `now_ns` and fire all due timers.
 * Returns the number of timers fired, WEFT_EINVAL if the time would go back, WEFT_EBUSY in a
 * callback.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int64_t weft_wheel_advance(weft_wheel *wheel, uint64_t now_ns);

/* next: get the earliest deadline, WEFT_NEVER if there is none.  count: get the number of armed
 * timers.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_wheel_next(const weft_wheel *wheel);
WEFT_API size_t   weft_wheel_count(const weft_wheel *wheel);

WEFT_END
#endif
