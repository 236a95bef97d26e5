/* watch.c - lasting interest in a descriptor, a signal, or a child process.
 *
 * The backend keeps a watch in the directions (read, write) of the descriptor's entry, signal.c
 * keeps it in a list, and process.c makes a struct for it.  This file decides which thread may
 * start and stop a watch, whether the watch keeps a run going, and how its end is reported.
 *
 *   1. token is not 0 exactly while the watch is started.  Then the watch has directions in the
 *      backend (also if it is muted), or is of kind SIGNAL or CHILD and kept by signal.c or
 *      process.c, or (ENDED) is in the backend's list of watches whose end must be reported.
 *   2. A watch counts as alive while it is started, wants something and is not BACKGROUND.
 *   3. spare is the link of a list (signals, ended), or for CHILD the pointer from
 *      weft__pid_open().
 */
#include <weft/watch.h>
#include "loop/process/process.h"
#include "loop/process/signal.h"

#define EVENTS     ((uint32_t)(WEFT_READABLE | WEFT_WRITABLE))
#define KNOWN      (EVENTS | WEFT_EV_ERROR | WEFT_EV_HUP | WEFT_EDGE)
#define BACKGROUND 0x10000u /* in flags: does not keep the loop alive */
#define CHOSEN     0x20000u /* weft__watch_set_background() has set or cleared BACKGROUND */
#define SIGNAL     0x40000u /* the kind of watch, if not on a descriptor */
#define CHILD      0x80000u
#define KIND       (SIGNAL | CHILD)
#define STARTED    WEFT__WATCH_STARTED
#define ENDED      WEFT__WATCH_ENDED

static bool
is_counted(const weft_watch *watch)
{
	return watch->token && (watch->flags & (EVENTS | KIND)) && !(watch->flags & BACKGROUND);
}

static int
loop_watch_check(weft_loop *loop, const weft_watch *watch, bool valid, weft_watch_fn fn,
                 const char *call)
{
	int rc = weft__loop_check(loop, call);

	if (rc < 0)
		return rc;
	if (!watch || !fn || !valid)
		return weft__misuse_in(WEFT_EINVAL, call,
		                       "watch or fn is NULL, or the events, the signal or the pid "
		                       "are invalid");
	if (watch->token && watch->loop != loop)
		return weft__misuse_in(WEFT_EINVAL, call, "the watch is started on another loop");
	if (weft__loop_is_stopping(loop))
		return weft__fail_in(WEFT_ESHUTDOWN, call, "the loop is stopping");
	return 0;
}

/* Remove a watch from the list of those whose end must be reported. */
static void
unend(weft_loop *loop, weft_watch *watch)
{
	weft_watch **link = &loop->backend.ended;

	while (*link != watch) {
		weft__assert(*link); /* invariant 1 */
		link = (weft_watch **)(void *)&(*link)->spare;
	}
	*link = (weft_watch *)(uintptr_t)watch->spare;
}

/* Remove a watch from where it is kept. */
static void
detach(weft_loop *loop, weft_watch *watch)
{
	if (watch->flags & SIGNAL)
		weft__signal_unlink(watch);
	else if (watch->flags & CHILD)
		weft__pid_close((void *)(uintptr_t)watch->spare);
	else
		weft__ready_unwatch(&loop->backend, watch);
}

static void
stop(weft_loop *loop, weft_watch *watch)
{
	weft__assert(watch->token); /* invariant 1 */
	if (watch->token & ENDED)
		unend(loop, watch);
	else
		detach(loop, watch);
	weft__count(&loop->alive, -(uint64_t)is_counted(watch));
	watch->token = 0;
}

/* Change the kind of a watch that is not started.  Unless the program has chosen otherwise, a
 * watch on a signal does not keep the loop alive. */
static void
set_kind(weft_watch *watch, uint32_t kind)
{
	watch->flags &= ~(EVENTS | WEFT_EDGE | KIND);
	watch->flags |= kind;
	if (watch->flags & CHOSEN)
		return;
	watch->flags &= ~BACKGROUND;
	watch->flags |= kind == SIGNAL ? BACKGROUND : 0;
}

int
weft_watch_start(weft_loop *loop, weft_watch *watch, int fd, uint32_t events, weft_watch_fn fn,
                 void *arg)
{
	bool was_counted;
	int rc;

	loop = weft__loop_or_current(loop);
	rc = loop_watch_check(loop, watch, !(events & ~KNOWN), fn, "weft_watch_start");
	if (rc < 0)
		return rc;
	/* Muting needs no system call. */
	if (fd < 0 || ((events & EVENTS) && weft__kernel(&loop->backend)->kind(fd) < 0))
		return weft__fail(WEFT_EBADF, "weft_watch_start: the descriptor is not open");
	if (watch->token && (watch->id != fd || (watch->token & ENDED) || (watch->flags & KIND)))
		stop(loop, watch);
	if (!watch->token)
		set_kind(watch, 0);
	rc = weft__loop_open_backend(loop);
	was_counted = is_counted(watch);
	if (rc == 0)
		rc = weft__ready_watch(&loop->backend, watch, fd, events);
	if (rc < 0)
		return weft__fail(rc, "weft_watch_start: the descriptor cannot be watched");
	watch->fn = fn;
	watch->arg = arg;
	watch->loop = loop;
	watch->id = fd;
	watch->token = STARTED;
	weft__count(&loop->alive, (uint64_t)is_counted(watch) - was_counted);
	weft__loop_changed(loop);
	return 0;
}

/* Start a watch of that kind on `id`; what it watched before has ended. */
static void
loop_watch_begin(weft_loop *loop, weft_watch *watch, uint32_t kind, int id)
{
	set_kind(watch, kind);
	watch->loop = loop;
	watch->id = id;
	watch->token = STARTED;
	weft__count(&loop->alive, is_counted(watch));
}

int
weft_watch_start_signal(weft_loop *loop, weft_watch *watch, int signo, weft_watch_fn fn, void *arg)
{
	int rc;

	loop = weft__loop_or_current(loop);
	rc = loop_watch_check(loop, watch, signo > 0 && signo < WEFT__SIGNALS, fn,
	                      "weft_watch_start_signal");
	if (rc < 0)
		return rc;
	if (watch->token != STARTED || !(watch->flags & SIGNAL) || watch->id != signo) {
		rc = weft__signal_use(loop, signo);
		if (rc < 0)
			return weft__fail(
				rc, "weft_watch_start_signal: no handler can be installed for the "
				    "signal");
		if (watch->token)
			stop(loop, watch);
		loop_watch_begin(loop, watch, SIGNAL, signo);
		weft__signal_link(watch);
	}
	watch->fn = fn;
	watch->arg = arg;
	weft__loop_changed(loop);
	return 0;
}

int
weft_watch_start_pid(weft_loop *loop, weft_watch *watch, pid_t pid, weft_watch_fn fn, void *arg)
{
	void *made;
	int rc;

	loop = weft__loop_or_current(loop);
	rc = loop_watch_check(loop, watch, pid > 0, fn, "weft_watch_start_pid");
	if (rc < 0)
		return rc;
	if (watch->token != STARTED || !(watch->flags & CHILD) || watch->id != pid) {
		made = weft__pid_open(loop, watch, (int)pid, &rc);
		if (!made)
			return weft__fail(rc, "weft_watch_start_pid: pid is not a "
			                      "child of this process, or cannot be watched");
		if (watch->token)
			stop(loop, watch);
		loop_watch_begin(loop, watch, CHILD, (int)pid);
		watch->spare = (uint64_t)(uintptr_t)made;
	}
	watch->fn = fn;
	watch->arg = arg;
	weft__loop_changed(loop);
	return 0;
}

int
weft_watch_stop(weft_watch *watch)
{
	weft_loop *loop;
	int rc;

	if (!watch || !watch->token)
		return 0;
	loop = watch->loop;
	rc = weft__loop_check(loop, "weft_watch_stop");
	if (rc < 0)
		return rc;
	stop(loop, watch);
	weft__loop_changed(loop);
	return 1;
}

void
weft__watch_set_background(weft_watch *watch, bool on)
{
	bool was_counted;

	if (!watch
	    || (watch->token && weft__loop_check(watch->loop, "weft__watch_set_background") < 0))
		return;
	was_counted = is_counted(watch);
	watch->flags = (watch->flags & ~BACKGROUND) | CHOSEN | (on ? BACKGROUND : 0);
	if (watch->token)
		weft__count(&watch->loop->alive, (uint64_t)is_counted(watch) - was_counted);
}

void
weft__watch_end(weft_loop *loop, weft_watch *watch)
{
	detach(loop, watch);
	weft__watch_queue_end(&loop->backend, watch, WEFT_ESHUTDOWN);
}

void
weft__watches_run_ended(weft_loop *loop)
{
	uint32_t calls = 0;

	while (loop->backend.ended) {
		weft_watch *watch = loop->backend.ended;
		int why = (int)(uint32_t)(watch->token >> 32);

		stop(loop, watch);
		watch->fn(watch, why, watch->arg);
		weft__checkpoint(loop);
		calls++;
	}
	weft__loop_called(loop, WEFT_PHASE_CLOSING, calls);
}
