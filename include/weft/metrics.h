/* weft/metrics.h - what a loop did.
 *
 * Counters only grow, and every loop has them.  A loop with WEFT_LOOP_METRICS, or one that
 * is being observed (weft_loop_observe()), also knows where its time goes: rates, depths
 * and quantiles of the last ten seconds, with at most 5 % error, in constant memory.
 * Reading never stops a loop, and counters of one reading may be some callbacks apart.
 *
 *   1. Calls are counted when the batch that they are part of has run.
 *   2. With WEFT_LOOP_METRICS every turn that follows a blocking wait is timed.  Of a
 *      loop that turns without blocking only some turns are, each standing for those
 *      since the one before: times, depths and lags of busy turns are sampled.  What
 *      those in between took beyond that shows as one turn that stalled.
 */
#ifndef WEFT_METRICS_H
#define WEFT_METRICS_H

#include <weft/base.h>
#include <weft/loop.h>

WEFT_BEGIN

typedef struct weft_quantiles { /* nanoseconds */
	uint64_t count, mean, p50, p90, p95, p99, max;
} weft_quantiles;

typedef struct weft_depth {
	uint64_t now, max; /* max: of the last ten seconds */
	double   average;  /* moving, over some 32 looks */
} weft_depth;

/* Where a turn's time goes, in its order; THREADLETS is kept for later, and 0. */
enum {
	WEFT_PHASE_TIMERS, WEFT_PHASE_FIRST, WEFT_PHASE_INBOX, WEFT_PHASE_THREADLETS,
	WEFT_PHASE_WAIT, WEFT_PHASE_DONE, WEFT_PHASE_IMMEDIATES, WEFT_PHASE_CLOSING,
	WEFT_PHASE_MICROTASKS, WEFT_PHASES,
};

struct weft_loop_stats {
	const char    *backend;         /* "uring"; "" before it is opened */
	const char    *backend_reason;  /* "io_uring_setup: EPERM, so epoll", "best here",
	                                   "asked for", "not opened yet"; changes if the
	                                   backend fails later, and may name "none" then */
	uint64_t       turns;
	uint64_t       wakes;           /* by threads that found it asleep */
	uint64_t       syscalls;        /* of the loop's thread, for the loop */
	uint64_t       polls_skipped;   /* turns too busy to ask for events */
	uint64_t       posts_accepted;  /* counted as the loop takes them */
	uint64_t       posts_executed;  /* once stopped, as many */
	uint64_t       posts_refused;   /* the inbox was full, or the loop stopping */
	uint64_t       ops_started, ops_finished;
	uint64_t       timers_fired;    /* and scheduled numbers */
	uint64_t       fds;             /* that are waited for */
	uint64_t       alive;           /* what keeps weft_loop_run() going */

	/* Of connections, on the loop that had to do with it. */
	uint64_t       accepted;        /* by listeners */
	uint64_t       accepts_paused;  /* times that a listener had connections_max */
	uint64_t       accepts_shed;    /* no descriptor, memory or threadlet was to be had */
	uint64_t       connected, connects_failed;
	uint64_t       handshakes, handshakes_failed; /* of TLS */
	uint64_t       peers_dropped;   /* did not read, and had write_max queued */

	/* 0 without WEFT_LOOP_METRICS and while it is not observed. */
	uint64_t       phase_ns[WEFT_PHASES]; /* only grow */
	double         turns_per_s, callbacks_per_s;
	weft_depth     inbox;           /* posts that wait */
	weft_depth     microtasks;      /* and ticks, as a drain of them began */
	weft_quantiles turn;            /* how long a turn lasts, without its wait */
	weft_quantiles lag;             /* how late timers and posts ran, of each batch
	                                   the first; at most so late while busy */
	uint64_t       spare[8];
};

/* Read a loop's metrics.  The texts stay until it is freed, which the caller keeps
 * from happening meanwhile (weft_loop_ref()).
 * Returns 0.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_stats(weft_loop *loop, struct weft_loop_stats *out);

typedef struct weft_loop_info {
	uint64_t        number;     /* from 1; never used again in this process */
	char            name[32];
	weft_state      state;
	uint64_t        threadlets; /* that live */
	char            backend[16], backend_reason[96]; /* copies; those in stats are NULL */
	struct weft_loop_stats stats;
	uint64_t        spare[4];
} weft_loop_info;

/* Read the loop of the process that was made next after number `*cursor` (begin with 0),
 * which becomes its number.  Loops that are being freed are left out; so are those of a
 * parent process.
 * Returns 1, 0 at the end.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_list(uint64_t *cursor, weft_loop_info *out);

/* Have the loop of that number (0: all that there are now) keep what WEFT_LOOP_METRICS
 * has a loop keep, until `until_ns`; asked again, that is prolonged.  It begins with the
 * loop's next turn, and the memory is given back with the loop.
 * Returns 0, WEFT_ENOENT, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_observe(uint64_t number, uint64_t until_ns);

WEFT_END
#endif
