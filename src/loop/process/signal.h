/* signal.h - a loop's use of signals.  Private.
 *
 * Needs: loop.h.  Owned by: one loop; made when the loop first uses a signal, freed with its
 * last use.  Thread: members state which.
 */
#ifndef WEFT_LOOP_SIGNAL_H
#define WEFT_LOOP_SIGNAL_H

#include "loop/core/loop.h"

#define WEFT__SIGNALS 64 /* numbers from 1 */

struct weft__process;

struct weft__signals {
	/* Used by the handler, on any thread. */
	weft__aptr next;   /* in the process-wide list; under its lock */
	weft__a64  wanted; /* bits by signal number; under that lock */
	weft__a64  came;   /* bits of signals that the loop has not taken yet */
	int        fds[2]; /* a pipe: the handler writes, the loop reads; set once */

	/* Used by the loop's thread. */
	weft_loop  *loop;
	weft_watch  watch;   /* on the pipe */
	weft_watch *first;   /* linked by their spare words, in order of start */
	weft_watch *cursor;  /* the next watch to check, while watches are called */
	struct weft__process *processes; /* those whose end only SIGCHLD reports */
	struct weft__process *process_cursor;
	struct weft__node_list waiting;  /* ops; each has its signal set as cancel_arg */
	uint64_t    keep;    /* signals that were waited for once: used until the loop ends */
	uint64_t    kept;    /* those of `keep` that arrived while no op waited for them */
	uint64_t    due;     /* signals that were taken, but whose watches were not called yet */
	bool        busy;    /* watches are being called: do not free */
	uint32_t    uses[WEFT__SIGNALS]; /* uses by watches and processes */
};

/* Begin to use a signal, 0 or an error; and end that. */
int  weft__signal_use(weft_loop *loop, int signo);
void weft__signal_unuse(weft_loop *loop, int signo);

/* Something other than one watch of this loop uses the signal. */
bool weft__signal_has_others(weft_loop *loop, int signo);

/* Act as if the signal had arrived: the loop handles it soon. */
void weft__signal_pretend(weft_loop *loop, int signo);

/* Add a watch, which uses its signal already, to the list; and remove it. */
void weft__signal_link(weft_watch *watch);
void weft__signal_unlink(weft_watch *watch);

/* Finish `op` with the number of one of `signals` (bits by number).  From the first call on, a
 * signal that arrives while no op of the loop waits for it is kept for the next op. */
int  weft__signal_op(weft_op *op, uint64_t signals, uint64_t deadline_ns);

/* The same without waiting: returns the number, WEFT_ETIMEDOUT, or another error. */
int  weft__signal_poll(weft_loop *loop, uint64_t signals);

#endif
