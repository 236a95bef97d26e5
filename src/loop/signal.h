/* signal.h - a loop's interest in signals.  Private.
 *
 * Needs: loop.h.  Owned by: one loop, made at its first interest and given back with
 * the last.  Thread: members say which.
 */
#ifndef WEFT_LOOP_SIGNAL_H
#define WEFT_LOOP_SIGNAL_H

#include "loop/loop.h"

#define WEFT__SIGNALS 64 /* numbers from 1 */

struct weft__process;

struct weft__signals {
	/* The handler's, on any thread. */
	weft__aptr next;   /* of the process's list; under its lock */
	weft__a64  wanted; /* bits by number; under that lock */
	weft__a64  came;   /* and have not been taken by the loop */
	int        fds[2]; /* a pipe: the handler writes, the loop reads; set once */

	/* The loop's thread's. */
	weft_loop  *loop;
	weft_watch  watch;   /* on the pipe */
	weft_watch *first;   /* linked by their spare words, in order of start */
	weft_watch *cursor;  /* the next to be looked at while they are told */
	struct weft__process *processes; /* whose ends are told by SIGCHLD only */
	struct weft__process *process_cursor;
	struct weft__node_list waiting;  /* ops; each has its set as cancel_arg */
	uint64_t    keep;    /* waited for once: never let go of */
	uint64_t    kept;    /* of those, what came while nobody waited */
	uint64_t    due;     /* taken, and not told to watches yet */
	bool        busy;    /* watches are being told: not to be given back */
	uint32_t    uses[WEFT__SIGNALS]; /* by watches and processes */
};

/* Begin and end to use a signal; the former 0 or an error. */
int  weft__signal_use(weft_loop *loop, int signo);
void weft__signal_unuse(weft_loop *loop, int signo);

/* Somebody besides one watch of this loop has an interest in it. */
bool weft__signal_has_others(weft_loop *loop, int signo);

/* Act as if the signal had come: the loop looks soon. */
void weft__signal_pretend(weft_loop *loop, int signo);

/* Put a watch into the list, which uses its signal already; and take it out. */
void weft__signal_link(weft_watch *watch);
void weft__signal_unlink(weft_watch *watch);

/* Finish `op` with the number of one of `signals` (bits by number).  What comes while
 * no op of the loop waits for it is kept for the next, from the first call on. */
int  weft__signal_op(weft_op *op, uint64_t signals, uint64_t deadline_ns);

/* The same for what is there now: its number, or WEFT_ETIMEDOUT, or another error. */
int  weft__signal_look(weft_loop *loop, uint64_t signals);

#endif
