/* process.h - waiting for the end of a child process.  Private.
 *
 * Embedded by whoever waits: a watch on a pid, a weft_child.
 *
 * Needs: loop.h.  Thread: the loop's.
 */
#ifndef WEFT_LOOP_PROCESS_H
#define WEFT_LOOP_PROCESS_H

#include "loop/loop.h"

struct weft__process;
struct weft__signals;

/* It has ended and been reaped: its wait status; or -ECHILD if somebody else has reaped
 * it; or WEFT_ESHUTDOWN, the loop stops and it runs.  Once.  The process is still to be
 * forgotten, before or after that. */
typedef void (*weft__process_fn)(struct weft__process *process, int status);

struct weft__process {
	struct weft__pid      pid;
	weft_loop            *loop;
	weft__process_fn      on_end;
	weft_watch            watch;  /* on pid.fd, if there is one */
	struct weft__process *next;   /* of those that SIGCHLD tells of, */
	bool                  listed; /* if it is one */
	bool                  sweep;  /* as its leader ends, kill the rest of the group */
};

/* Begin to wait for the end of the child `pid`.  0 or an error. */
int  weft__process_watch(weft_loop *loop, struct weft__process *process, int pid,
                         weft__process_fn on_end);

/* Look now; true if it has ended, and on_end was called. */
bool weft__process_look(struct weft__process *process);

/* As reap() of the sys table: 1, 0 or -ECHILD, unless the kernel keeps on refusing. */
int  weft__process_reap(const struct weft__process *process, uint32_t how, int *status);

/* Wait no more; gives back what that took. */
void weft__process_forget(struct weft__process *process);

/* For signal.c: SIGCHLD has come; the loop stops. */
void weft__processes_look(struct weft__signals *signals);
void weft__processes_end(struct weft__signals *signals);

/* --- watches ------------------------------------------------------------ */

/* What a watch on a pid is made of, as its spare word; NULL and an error. */
void *weft__pid_open(weft_loop *loop, weft_watch *watch, int pid, int *error);
void  weft__pid_close(void *made);

#endif
