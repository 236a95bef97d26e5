/* sampler.h - the sampler: where a loop's time goes.  Private.
 *
 * A loop has one with WEFT_LOOP_METRICS, or while it is observed.  sampler.c writes the samples,
 * metrics.c reads them, observe.c switches sampling on and off.
 *
 * Needs: base.  Owned by: one loop.  Thread: members state which.
 */
#ifndef WEFT_LOOP_SAMPLER_H
#define WEFT_LOOP_SAMPLER_H

#include <weft/metrics.h>
#include "base/histogram.h"

/* The window: ten seconds, of slices.  There is one slice more than the window covers. */
#define WEFT__TIMES_NS WEFT_S
#define WEFT__TIMES    10u /* slices of the window with times */
#define WEFT__RATES_NS (100 * WEFT_MS)
#define WEFT__RATES    100u /* slices of the window with counts and depths */

/* Counters that every loop has.  Written by the runner, except for `refused`, to which any
 * posting thread adds; read by any thread. */
struct weft__counts {
	weft__a64 turns;
	weft__a64 polls_skipped;
	weft__a64 taken; /* posts taken from the inbox, and those of weft_loop_post_before_wait() */
	weft__a64 ops_started, ops_finished;
	weft__a64 timers_fired;
	weft__a64 internal; /* nodes in the list `first` now */
	weft__a64 calls[WEFT_PHASES]; /* calls made in each phase */
	weft__a64 refused;
	/* Counters of the net layer. */
	weft__a64 accepted, accepts_paused, accepts_shed;
	weft__a64 connected, connects_failed;
	weft__a64 handshakes, handshakes_failed;
	weft__a64 peers_dropped;
};

/* What a slice covers: its number since the clock's 0, plus 1; 0: it is being cleared. */
typedef weft__a64 weft__slice_mark;

/* The samples of one second. */
struct weft__times {
	weft__slice_mark mark; /* first */
	weft_histogram turn, lag; /* nanoseconds */
};

/* What was counted in 100 ms. */
struct weft__rates {
	weft__slice_mark mark; /* first */
	weft__a64 turns, calls;
	weft__a64 inbox_max, internal_max, tasks_max;
};

/* The depth of a queue, sampled now and then. */
struct weft__gauge {
	weft__a64 now;
	weft__a64 average; /* times 65,536 */
};

struct weft__sampler {
	/* Members of the runner. */
	uint64_t at_ns;    /* the last clock reading; 0: none in this run */
	uint64_t begin_ns; /* when the last timed iteration began */
	uint64_t gap_ns;   /* from the last reading in the timed iteration before this one to the
	                    * beginning of this one; 0: unknown */
	uint64_t woke_ns;  /* end of a wait since the last timed iteration, or 0 */
	uint64_t slept_ns; /* when that wait began */
	uint64_t posted_ns; /* when the post that ended the wait was made, or 0 */
	uint64_t period_ns; /* mean duration of an iteration since that one began; 0: unknown */
	uint64_t busy_ns;  /* of the present iteration, up to at_ns */
	uint64_t tasks_ns; /* of microtasks since at_ns */
	uint32_t drains;   /* drains of microtasks in this iteration */
	uint32_t weight;   /* iterations that this one stands for */
	uint32_t scale;    /* factor for the times of its phases */
	uint32_t stride;   /* busy iterations until the next timed one */
	bool     whole;    /* the present iteration was timed from its beginning */
	uint64_t turns, calls; /* counted in slices already */
	uint64_t turns_timed;  /* number of the last iteration that is in `turn` */
	struct weft__times *times; /* the present slices, or NULL; their ends follow */
	struct weft__rates *rates;
	uint64_t times_end_ns, rates_end_ns;

	/* Read by any thread. */
	weft__a64 born_ns; /* when the window began */
	weft__a64 posted; /* when a thread last woke the loop; stored by that thread; or 0 */
	weft__a64 phase_ns[WEFT_PHASES];
	struct weft__gauge inbox, internal, tasks;
	struct weft__times all_times[WEFT__TIMES + 1];
	struct weft__rates all_rates[WEFT__RATES + 1];
};

/* NULL without memory. */
struct weft__sampler *weft__sampler_new(void);

/* The sampler is active from now on, called by the runner; its window begins empty. */
void weft__sampler_reset(weft_loop *loop, struct weft__sampler *sampler);

/* The iteration that has just been counted is to be timed. */
void weft__sampler_begin(weft_loop *loop);

/* A phase of a timed iteration has ended in which something was called. */
void weft__sampler_mark(weft_loop *loop, int phase);

/* A timed iteration has checked the inbox, and found `some` posts. */
void weft__sampler_took(weft_loop *loop, bool some);

/* The first of the due timers is about to fire; the wheel was last checked at `before_ns`. */
void weft__sampler_late(weft_loop *loop, uint64_t due_ns, uint64_t before_ns);

/* Ticks and microtasks are about to run in a timed iteration.  Returns the time, or 0 if
 * weft__sampler_drained() need not be called. */
uint64_t weft__sampler_drain(weft_loop *loop, size_t depth);
void     weft__sampler_drained(weft_loop *loop, uint64_t begin_ns);

void weft__sampler_end(weft_loop *loop);

/* The loop is about to block; it has been woken. */
void weft__sampler_sleep(weft_loop *loop);
void weft__sampler_woke(weft_loop *loop);

/* A run has ended. */
void weft__sampler_pause(weft_loop *loop);

#endif
