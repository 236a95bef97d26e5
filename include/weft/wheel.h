/* weft/wheel.h - the timer wheel, usable alone with a clock of one's own.
 *
 * O(1) start, stop, restart and next deadline.  Inside a loop use weft/timer.h,
 * which has the same timer struct and the same rules.
 *
 *   1. A timer never fires before its deadline.
 *   2. Due timers fire in order of (deadline, start).
 *   3. One started while the wheel advances fires at a later advance.
 *   4. Starting reserves; firing and repeating never allocate.
 *
 * A repeating timer keeps to its grid: the n-th deadline is the first plus n
 * periods, however late callbacks run.  Periods missed altogether are left out.
 */
#ifndef WEFT_WHEEL_H
#define WEFT_WHEEL_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_wheel weft_wheel;
typedef struct weft_timer weft_timer;

/* May stop or restart its own timer, and may free it: a one-shot at once, a
 * repeating one after stopping it. */
typedef void (*weft_timer_fn)(weft_timer *timer, void *arg);

struct weft_timer {             /* zeroed at first */
	weft_timer_fn fn;       /* read-only after start */
	void         *arg;      /* caller's */
	uint64_t      every_ns; /* read-only: 0, or the period */
	void         *owner;    /* private: the loop or wheel */
	uint64_t      due_ns;   /* read-only: next deadline */
	uint64_t      seq;      /* private from here on */
	void         *block;    /* where it stands in the wheel; NULL: not armed */
	uint16_t      tag;
	uint16_t      slot;
	uint32_t      index;
};
WEFT_STATIC_ASSERT(sizeof(struct weft_timer) <= 64, "weft_timer is part of the ABI");

/* Make a wheel whose time begins at `now_ns`; NULL without memory.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API weft_wheel *weft_wheel_new(uint64_t now_ns);

/* Free it, stopping what is armed; from a callback too.  Accepts NULL.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_wheel_free(weft_wheel *wheel);

/* Arm `timer` for `due_ns`, then every `every_ns` if that is not 0.  An armed
 * timer moves; a time gone by means the next advance.
 * Returns 0, WEFT_ENOMEM, WEFT_EINVAL (no function, WEFT_NEVER, armed elsewhere).
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_wheel_start(weft_wheel *wheel, weft_timer *timer,
                              uint64_t due_ns, uint64_t every_ns,
                              weft_timer_fn fn, void *arg);

/* Disarm `timer`; afterwards it will not fire and its memory is the caller's.
 * Returns 1 if it was armed, else 0.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_wheel_stop(weft_wheel *wheel, weft_timer *timer);

/* Set the time to `now_ns` and fire what is due.
 * Returns the number fired, WEFT_EINVAL for going back, WEFT_EBUSY in a callback.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int64_t weft_wheel_advance(weft_wheel *wheel, uint64_t now_ns);

/* The first deadline, WEFT_NEVER if none, found by a look at one slot; and the
 * number of armed timers.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_wheel_next(const weft_wheel *wheel);
WEFT_API size_t   weft_wheel_count(const weft_wheel *wheel);

WEFT_END
#endif
