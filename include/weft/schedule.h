/* weft/schedule.h - timers with an ID, as in JavaScript; microtasks; a stopwatch.
 *
 * This is the base of setTimeout, setInterval, setImmediate, queueMicrotask and nextTick, and
 * of timers that any thread may set and clear.  IDs are > 0, come from one sequence per loop,
 * and are never reused.  When the loop stops, it cancels them all without calling their
 * callbacks.
 */
#ifndef WEFT_SCHEDULE_H
#define WEFT_SCHEDULE_H

#include <weft/base.h>

WEFT_BEGIN

/* Call `fn(arg)`: once, `delay_ns` from now; every `every_ns`; or once, after the loop's next
 * wait for events.  The ID is known before `fn` can run.
 * Return the ID, or WEFT_EINVAL, WEFT_ENOMEM, WEFT_ESHUTDOWN.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int64_t weft_schedule_timeout(weft_loop *loop, uint64_t delay_ns,
                                       weft_fn fn, void *arg);
WEFT_API int64_t weft_schedule_interval(weft_loop *loop, uint64_t every_ns,
                                        weft_fn fn, void *arg);
WEFT_API int64_t weft_schedule_immediate(weft_loop *loop, weft_fn fn, void *arg);

/* Cancel the timeout, interval or immediate `id`; allowed anywhere, also in its own callback.
 * Fills `out` (may be NULL) with its `arg`, which belongs to the caller again.
 * Returns 0: the callback will not begin (again).  WEFT_ENOENT: the ID never existed, was
 * canceled, or has begun its last call.  This is exact also between threads.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_clear(weft_loop *loop, int64_t id, void **out);

/* Set whether `id` is background work: it then does not keep weft_loop_run() from returning.
 * Off by default.
 * Returns 0, WEFT_ENOENT.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_set_background(weft_loop *loop, int64_t id, bool on);

/* Call `fn(arg)` at the microtask checkpoint that ends the current callback.  The checkpoint
 * runs ticks first, then microtasks, until both queues are empty.
 * Return 0, WEFT_ENOMEM.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_schedule_microtask(weft_loop *loop, weft_fn fn, void *arg);
WEFT_API int weft_schedule_tick(weft_loop *loop, weft_fn fn, void *arg);

/* --- performance: marks and measures on one timeline --------------------- */

typedef struct weft_perf weft_perf;

typedef struct weft_perf_entry {
	const char *name;
	uint64_t    start_ns;    /* since the origin */
	uint64_t    duration_ns; /* 0 for a mark */
	bool        is_measure;
} weft_perf_entry;

/* Make a timeline that begins now and keeps the last `max` entries (0: 1,000); free one.
 * new returns the timeline, or NULL without memory; free accepts NULL.
 * Thread: any; then one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API weft_perf *weft_perf_new(size_t max);
WEFT_API void       weft_perf_free(weft_perf *perf);

/* Get the time since the origin; and the origin itself, in nanoseconds since 1970.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_perf_now(const weft_perf *perf);
WEFT_API uint64_t weft_perf_origin(const weft_perf *perf);

/* Record a mark now; copies `name`.
 * Returns 0, WEFT_ENOMEM, WEFT_EINVAL.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_perf_mark(weft_perf *perf, const char *name);

/* Record the time between the latest marks named `from` (NULL: the origin) and `to` (NULL:
 * now).
 * Returns 0, WEFT_ENOENT for an unknown mark, WEFT_ENOMEM.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_perf_measure(weft_perf *perf, const char *name,
                               const char *from, const char *to);

/* Read entry `index`, in order of start time; its name is borrowed until cleared.
 * Returns 0, WEFT_ENOENT past the last.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_perf_get(const weft_perf *perf, size_t index,
                           weft_perf_entry *out);

/* Remove the entries called `name`, or all entries for NULL.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_perf_clear(weft_perf *perf, const char *name);

WEFT_END
#endif
