/* process.h - waiting for the end of a child process.  Private.
 *
 * Embedded in the object that waits: a watch on a pid, a weft_child.
 *
 * Needs: loop.h.  Thread: the loop's.
 */
#ifndef WEFT_LOOP_PROCESS_H
#define WEFT_LOOP_PROCESS_H

#include "loop/core/loop.h"

struct weft__process;
struct weft__signals;

/* Called once.  `status` is the wait status of the process, which has ended and been reaped;
 * -ECHILD if other code has reaped it; or WEFT_ESHUTDOWN if the loop stops and the process still
 * runs.  weft__process_forget() is still required, before or after the callback returns. */
typedef void (*weft__process_fn)(struct weft__process *process, int status);

struct weft__process {
	struct weft__pid      pid;
	weft_loop            *loop;
	weft__process_fn      on_end; /* NULL: the program's watch on the pid is called */
	weft_watch            watch;  /* on pid.fd, if there is one */
	struct weft__process *next;   /* in the list of the processes that SIGCHLD reports */
	bool                  listed; /* in that list */
	bool                  sweep;  /* when the leader ends, kill the rest of its process group */
};

/* Begin to wait for the end of the child `pid`.  0 or an error. */
int  weft__process_watch(weft_loop *loop, struct weft__process *process, int pid,
                         weft__process_fn on_end);

/* Check now; true if the process has ended, and on_end, which must not be NULL, was called. */
bool weft__process_poll(struct weft__process *process);

/* Like reap() of the sys table: 1, 0 or -ECHILD, unless the kernel keeps failing. */
int  weft__process_reap(const struct weft__process *process, uint32_t how, int *status);

/* End the wait, and free what it used. */
void weft__process_forget(struct weft__process *process);

/* For signal.c.  next: after SIGCHLD, check the processes from the cursor on.  Returns the watch of
 * the next one that has ended, to be called with `status`; NULL: all were checked.  end: the loop
 * stops. */
weft_watch *weft__processes_next(struct weft__signals *signals, int *status);
void weft__processes_end(struct weft__signals *signals);

/* --- watches ------------------------------------------------------------ */

/* The state of a watch on a pid, kept in its spare word; or NULL and an error. */
void *weft__pid_open(weft_loop *loop, weft_watch *watch, int pid, int *error);
void  weft__pid_close(void *made);

#endif
