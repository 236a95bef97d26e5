/* weft/metrics.h - counters and timings of loops.
 *
 * Every loop has counters, which only grow.  A loop with WEFT_LOOP_METRICS, or one that is
 * being observed (weft_loop_observe()), also measures where its time goes: rates, queue depths
 * and quantiles of the last ten seconds, with at most 5 % error, in constant memory.  Reading
 * never stops a loop; counters of one reading may be a few callbacks apart.
 *
 *   1. Callbacks are counted when the batch they belong to has run.
 *   2. With WEFT_LOOP_METRICS every iteration that follows a blocking wait is timed.  While the
 *      loop runs without blocking, only some iterations are timed.  A timed iteration stands for
 *      all iterations since the previous timed one, so times, depths and lags of a busy loop are
 *      samples.  If the untimed iterations took longer than these samples say, the excess is
 *      recorded as one stalled iteration.
 *   3. The ten seconds of rates and depths end now and move in steps of 100 ms, those of
 *      quantiles in steps of a second.
 */
#ifndef WEFT_METRICS_H
#define WEFT_METRICS_H

#include <weft/base.h>
#include <weft/histogram.h>
#include <weft/loop.h>

WEFT_BEGIN

typedef struct weft_depth {
	uint64_t now, max; /* max: of the last ten seconds */
	double   average;  /* moving average over about 32 samples */
} weft_depth;

/* The phases of a loop iteration, in their order. */
enum {
	WEFT_PHASE_TIMERS, WEFT_PHASE_INBOX, WEFT_PHASE_THREADLETS, WEFT_PHASE_WAIT,
	 WEFT_PHASE_DONE, WEFT_PHASE_IMMEDIATES, WEFT_PHASE_CLOSING,
	WEFT_PHASE_MICROTASKS, WEFT_PHASES,
};

struct weft_loop_stats {
	const char    *backend;         /* "uring"; "" before it is opened */
	const char    *backend_reason;  /* why: "best available", "requested by name",
	                                 * "not opened yet",
	                                 * "io_uring_setup: EPERM, so epoll"; changes if the backend
	                                 * fails later; "none" in it means no backend is left */
	uint64_t       turns;           /* iterations */
	uint64_t       wakes;           /* wakes by threads that found the loop asleep */
	uint64_t       syscalls;        /* made by the loop's thread, for the loop */
	uint64_t       polls_skipped;   /* iterations that did not poll because the loop was busy */
	uint64_t       posts_accepted;  /* counted when the loop takes them from the inbox; the
	                                 * start of a threadlet by another thread is one, too */
	uint64_t       posts_executed;  /* equal to posts_accepted once stopped */
	uint64_t       posts_refused;   /* the inbox was full, or the loop was stopping */
	uint64_t       ops_started, ops_finished;
	uint64_t       timers_fired;    /* timers and timer IDs */
	uint64_t       fds;             /* descriptors the loop waits for */
	uint64_t       alive;           /* timers, ops, watches, ... that keep weft_loop_run() from
	                                 * returning */

	/* Connections, counted on the loop that handled them. */
	uint64_t       accepted;        /* by listeners */
	uint64_t       accepts_paused;  /* times a listener has reached connections_max */
	uint64_t       accepts_shed;    /* dropped for lack of a descriptor, memory or threadlet */
	uint64_t       connected, connects_failed;
	uint64_t       handshakes, handshakes_failed; /* TLS */
	uint64_t       peers_dropped;   /* dropped at write_max because they did not read */

	/* The members below are 0 without WEFT_LOOP_METRICS, unless the loop is observed. */
	uint64_t       phase_ns[WEFT_PHASES]; /* time spent in each phase; only grows */
	double         turns_per_s, callbacks_per_s;
	weft_depth     inbox;           /* queued posts */
	weft_depth     microtasks;      /* microtasks and ticks at the start of a checkpoint */
	weft_quantiles turn;            /* duration of an iteration, without its wait, in
	                                 * nanoseconds */
	weft_quantiles lag;             /* latency of the first timer or post in each batch, from
	                                 * due (or posted) to run, in nanoseconds; an upper bound
	                                 * while the loop is busy */
	weft_depth     internal;        /* what the library queued on the loop for its own use, such
	                                 * as results of other threads, when an iteration took it */
	uint64_t       spare[5];        /* room for later versions */
};

/* Read the metrics of a loop.  The caller must keep the loop from being freed (weft_loop_ref())
 * during the call and as long as it uses the texts.
 * Returns 0.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_stats(weft_loop *loop, struct weft_loop_stats *out);

typedef struct weft_loop_info {
	uint64_t        id;         /* from 1; never reused in this process */
	char            name[32];
	weft_state      state;
	uint64_t        threadlets; /* live threadlets */
	char            backend[16], backend_reason[96]; /* the texts; NULL in `stats` */
	struct weft_loop_stats stats;
	uint64_t        spare[4];   /* room for later versions */
} weft_loop_info;

/* Read the next loop of the process, in the order of their IDs: the one after `*cursor` (begin
 * with 0).  Sets `*cursor` to its ID.  Loops that are being freed, and loops of a parent process,
 * are skipped.
 * Returns 1, 0 at the end.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_list(uint64_t *cursor, weft_loop_info *out);

/* Make the loop with that ID (0: all present loops) measure as with WEFT_LOOP_METRICS until
 * `until_ns`.  Another call can extend the time.  Measuring begins with the loop's next
 * iteration; its memory is freed with the loop.
 * Returns 0, WEFT_ENOENT, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_loop_observe(uint64_t id, uint64_t until_ns);

WEFT_END
#endif
