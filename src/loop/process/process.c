/* process.c - the end of child processes: reported by a pidfd, else by SIGCHLD.
 *
 * Where the kernel has descriptors for processes, the loop watches one, which becomes readable
 * when the process has ended.  Elsewhere a loop that waits for processes uses SIGCHLD.  Signals are
 * not counted, so the loop checks all its processes at each SIGCHLD.
 *
 *   1. A process that is waited for has a watch on pid.fd, or is listed, or has ended.
 *   2. It is reaped only here, right before on_end is called.
 */
#include <errno.h>
#include <signal.h>
#include "loop/process/process.h"
#include "loop/process/signal.h"

#define TRIES_MAX 16

/* What a watch on a pid waits for. */
struct pid_watch {
	struct weft__process process; /* without on_end */
	weft_watch *watch;
};

static weft_watch *
pid_watch_of(struct weft__process *process)
{
	return ((struct pid_watch *)(void *)process)->watch;
}

static const struct weft__sys *
loop_process_kernel(const struct weft__process *process)
{
	return weft__kernel(&process->loop->backend);
}

int
weft__process_reap(const struct weft__process *process, uint32_t how, int *status)
{
	int rc = -EINTR;

	for (int i = 0; rc < 0 && rc != -ECHILD && i < TRIES_MAX; i += rc != -EINTR)
		rc = loop_process_kernel(process)->reap(&process->pid, how, status);
	return rc;
}

/* End the wait, but keep the descriptor of the process. */
static void
unwatch(struct weft__process *process)
{
	struct weft__signals *s = process->loop->signals;
	struct weft__process **link;

	(void)weft_watch_stop(&process->watch);
	if (!process->listed)
		return;
	process->listed = false;
	link = &s->processes;
	while (*link != process) {
		weft__assert(*link); /* invariant 1 */
		link = &(*link)->next;
	}
	*link = process->next;
	if (s->process_cursor == process)
		s->process_cursor = process->next;
	weft__signal_unuse(process->loop, SIGCHLD);
}

/* The wait has ended.  Returns the program's watch, for the caller to call with `status`; or NULL,
 * and on_end was called. */
static weft_watch *
loop_process_end(struct weft__process *process, int status)
{
	weft_watch *watch = process->on_end ? NULL : pid_watch_of(process);

	unwatch(process);
	if (watch)
		(void)weft_watch_stop(watch); /* which also forgets the process */
	else
		process->on_end(process, status);
	return watch;
}

/* Whether it has ended, and with which status. */
static bool
loop_process_has_ended(struct weft__process *process, int *status)
{
	int rc;

	*status = 0;
	/* The process is not reaped yet: so its pid is still its own, and the ID of its process
	 * group, too. */
	if (process->sweep && weft__process_reap(process, WEFT__REAP_KEEP, status) == 1)
		(void)loop_process_kernel(process)->kill(&process->pid, SIGKILL, true);
	rc = weft__process_reap(process, 0, status);
	if (rc < 0)
		*status = rc;
	return rc != 0;
}

bool
weft__process_poll(struct weft__process *process)
{
	int status;

	if (!loop_process_has_ended(process, &status))
		return false;
	(void)loop_process_end(process, status);
	return true;
}

static void
on_readable(weft_watch *watch, int what, void *arg)
{
	int status = WEFT_ESHUTDOWN;

	if (what >= 0 && !loop_process_has_ended(arg, &status))
		return;
	watch = loop_process_end(arg, status);
	if (watch)
		watch->fn(watch, status, watch->arg);
}

weft_watch *
weft__processes_next(struct weft__signals *s, int *status)
{
	struct weft__process *process;
	weft_watch *watch;

	while ((process = s->process_cursor)) {
		s->process_cursor = process->next;
		if (!loop_process_has_ended(process, status))
			continue;
		watch = loop_process_end(process, *status);
		if (watch)
			return watch;
		weft__checkpoint(s->loop);
	}
	return NULL;
}

void
weft__processes_end(struct weft__signals *s)
{
	while (s->processes) {
		weft_watch *watch = loop_process_end(s->processes, WEFT_ESHUTDOWN);

		if (watch)
			watch->fn(watch, WEFT_ESHUTDOWN, watch->arg);
		weft__checkpoint(s->loop);
	}
}

/* The process may have ended before the loop handled SIGCHLD, so make the loop check once. */
static int
enlist(struct weft__process *process)
{
	int rc = weft__signal_use(process->loop, SIGCHLD);

	weft__assert(!process->listed); /* invariant 1 */
	if (rc < 0)
		return rc;
	process->next = process->loop->signals->processes;
	process->loop->signals->processes = process;
	process->listed = true;
	weft__signal_pretend(process->loop, SIGCHLD);
	return 0;
}

int
weft__process_watch(weft_loop *loop, struct weft__process *process, int pid,
                    weft__process_fn on_end)
{
	int fd = weft__kernel(&loop->backend)->pid_open(pid), rc;

	*process = (struct weft__process){ .pid = { .pid = pid, .fd = fd },
		                           .loop = loop,
		                           .on_end = on_end };
	if (fd == -ENOSYS || fd == -EPERM) { /* not available, or forbidden */
		process->pid.fd = -1;
		return enlist(process);
	}
	if (fd < 0)
		return fd;
	weft__watch_set_background(&process->watch, true);
	rc = weft_watch_start(loop, &process->watch, fd, WEFT_READABLE, on_readable, process);
	if (rc < 0)
		weft__process_forget(process);
	return rc;
}

void
weft__process_forget(struct weft__process *process)
{
	unwatch(process);
	if (process->pid.fd < 0)
		return;
	if (process->loop->backend.ops)
		weft__ready_forget(&process->loop->backend, process->pid.fd);
	(void)loop_process_kernel(process)->close(process->pid.fd);
	process->pid.fd = -1;
}

/* --- watches ------------------------------------------------------------ */

void *
weft__pid_open(weft_loop *loop, weft_watch *watch, int pid, int *error)
{
	struct pid_watch *made = weft__alloc_zero(sizeof(*made));
	int status;

	*error = WEFT_ENOMEM;
	if (!made)
		return NULL;
	made->watch = watch;
	made->process.loop = loop;
	made->process.pid = (struct weft__pid){ .pid = pid, .fd = -1 };
	*error = weft__process_reap(&made->process, WEFT__REAP_KEEP, &status);
	if (*error >= 0)
		*error = weft__process_watch(loop, &made->process, pid, NULL);
	if (*error == 0) {
		(void)weft_loop_ref(loop); /* the loop does not know of the watch otherwise */
		return made;
	}
	if (*error == -ECHILD)
		*error = WEFT_ESRCH;
	weft__sys->release(made);
	return NULL;
}

void
weft__pid_close(void *made)
{
	struct pid_watch *own = made;

	weft__process_forget(&own->process);
	(void)weft_loop_unref(own->process.loop);
	weft__sys->release(own);
}
