/* weft/schedule.h - callbacks by number, as in JavaScript; and a stopwatch.
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

/* --- performance: marks and measures on one time line ------------------- */

typedef struct weft_perf weft_perf;

typedef struct weft_perf_entry {
	const char *name;
	uint64_t    start_ns;    /* since the origin */
	uint64_t    duration_ns; /* 0 for a mark */
	bool        is_measure;
} weft_perf_entry;

/* Make a time line that begins now and keeps the last `max` entries (default
 * 1,000); NULL without memory.  Accepts NULL to free.
 * Thread: any; then one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API weft_perf *weft_perf_new(size_t max);
WEFT_API void       weft_perf_free(weft_perf *perf);

/* Time since the origin; and the origin as nanoseconds since 1970.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API uint64_t weft_perf_now(const weft_perf *perf);
WEFT_API uint64_t weft_perf_origin(const weft_perf *perf);

/* Record a mark at this moment; copies `name`.
 * Returns 0, WEFT_ENOMEM, WEFT_EINVAL.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_perf_mark(weft_perf *perf, const char *name);

/* Record the time between the latest marks of two names (NULL: the origin, and now).
 * Returns 0, WEFT_ENOENT for an unknown mark, WEFT_ENOMEM.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_perf_measure(weft_perf *perf, const char *name,
                               const char *from, const char *to);

/* Read entry `index` in order of start; names stay borrowed until cleared.
 * Returns 0, WEFT_ENOENT past the last.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_perf_get(const weft_perf *perf, size_t index,
                           weft_perf_entry *out);

/* Drop the entries of `name`, or all of them for NULL.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_perf_clear(weft_perf *perf, const char *name);

WEFT_END
#endif
