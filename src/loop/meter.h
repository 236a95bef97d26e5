/* meter.h - where a loop's time goes.  Private.
 *
 * What a loop has with WEFT_LOOP_METRICS, or while it is observed; meter.c writes it and
 * says how, metrics.c reads it, observe.c switches it on and off.
 *
 * Needs: base.  Owned by: one loop.  Thread: members say which.
 */
#ifndef WEFT_LOOP_METER_H
#define WEFT_LOOP_METER_H

#include <weft/metrics.h>
#include "base/histogram.h"

#define WEFT__WINDOW 10u /* seconds */
#define WEFT__SLICES (WEFT__WINDOW + 1u)

/* What every loop counts.  Written by the runner, but for `refused`, which the threads
 * that were refused add to; read by any. */
struct weft__counts {
	weft__a64 turns;
	weft__a64 polls_skipped;
	weft__a64 taken; /* posts, from the inbox and those run last */
	weft__a64 ops_started, ops_finished;
	weft__a64 timers_fired;
	weft__a64 calls[WEFT_PHASES]; /* made in each phase */
	weft__a64 refused;
	/* Of the net layer. */
	weft__a64 accepted, accepts_paused, accepts_shed;
	weft__a64 connected, connects_failed;
	weft__a64 handshakes, handshakes_failed;
	weft__a64 peers_dropped;
};

/* What was seen within a second. */
struct weft__slice {
	weft__a64 second; /* since the clock's 0, plus 1; 0: it is being cleared */
	weft__a64 turns, calls;
	weft__a64 inbox_max, tasks_max;
	struct weft__histogram turn, lag; /* nanoseconds */
};

/* A depth, as looked at now and then. */
struct weft__gauge {
	weft__a64 now;
	weft__a64 average; /* times 65,536 */
};

struct weft__meter {
	/* The runner's. */
	uint64_t at_ns;    /* the last reading; 0: none in this run */
	uint64_t begin_ns; /* of the last timed turn */
	uint64_t gap_ns;   /* that the turns between the last two took; 0: unknown */
	uint64_t woke_ns;  /* end of a wait since the last timed turn, or 0 */
	uint64_t slept_ns; /* its begin */
	uint64_t posted_ns; /* when the post was made that ended it, or 0 */
	uint64_t period_ns; /* of those turns, on average; 0: unknown */
	uint64_t busy_ns;  /* of the present turn, up to at_ns */
	uint64_t tasks_ns; /* of microtasks since at_ns */
	uint32_t drains;   /* of microtasks in this turn */
	uint32_t weight;   /* turns that this one stands for */
	uint32_t scale;    /* times that its phases count */
	uint32_t stride;   /* busy turns until the next timed one */
	bool     whole;    /* timed from its begin */
	uint64_t turns, calls; /* that are in slices already */
	uint64_t turns_timed;  /* the number of the last one that is in `turn` */
	struct weft__slice *slice; /* the present one */
	uint64_t slice_end_ns;

	/* Any thread's. */
	weft__a64 born_ns; /* when the window began to be kept */
	weft__a64 posted; /* when the loop was last woken, by who woke it; or 0 */
	weft__a64 phase_ns[WEFT_PHASES];
	struct weft__gauge inbox, tasks;
	struct weft__slice slices[WEFT__SLICES];
};

/* NULL without memory. */
struct weft__meter *weft__meter_new(void);

/* It is kept from now on, by the runner; its window as one that has not seen anything
 * yet. */
void weft__meter_reset(weft_loop *loop, struct weft__meter *meter);

/* The turn that has just been counted is to be timed. */
void weft__meter_begin(weft_loop *loop);

/* A phase of a timed turn has ended in which something was called. */
void weft__meter_mark(weft_loop *loop, int phase);

/* A timed turn has looked into the inbox, and found `some` posts. */
void weft__meter_took(weft_loop *loop, bool some);

/* The first of due timers has its turn; the wheel was last looked at `before_ns`. */
void weft__meter_late(weft_loop *loop, uint64_t due_ns, uint64_t before_ns);

/* Ticks and microtasks are about to run in a timed turn: when that began, or 0 if it
 * need not be told that they have run. */
uint64_t weft__meter_drain(weft_loop *loop, size_t depth);
void     weft__meter_drained(weft_loop *loop, uint64_t begin_ns);

void weft__meter_end(weft_loop *loop);

/* The loop blocks, and has been woken. */
void weft__meter_sleep(weft_loop *loop);
void weft__meter_woke(weft_loop *loop);

/* A run has come to its end. */
void weft__meter_pause(weft_loop *loop);

#endif
