/* child.c - child processes: start, wait, signal, close; as ops.
 *
 * posix_spawn(3) starts the process through the sys table, and reports errors of exec.
 * loop/process/process.c waits for its end.
 *
 *   1. The loop watches a child until it has ended, and nothing else in the library reaps it.
 *      So until then its pid is valid and can be signaled.
 *   2. `waiting` is empty once the child has ended.
 *   3. Closing proceeds in steps: the process ends, ops close the descriptors, the closer is
 *      notified, and the memory is freed.  `left` counts the descriptors, plus one for the step
 *      before them.  A descriptor that belongs to a stream is closed by the stream.  Closing the
 *      child does not wait for that.  A stream that the program closes first clears its entry in
 *      `streams`.
 *   4. If the loop cannot wait, because it is stopping or there is no memory, the process is
 *      killed and reaped at once: after SIGKILL that does not take long.
 */
#include <errno.h>
#include <signal.h>
#include <weft/timer.h>
#include "loop/process/process.h"
#include "net/stream/stream.h"
#include "runtime/child.h"

#define GRACE_NS  (2 * WEFT_S)
#define AGAIN_NS  (100 * WEFT_MS) /* between two SIGKILLs */
#define KILLS_MAX 3

struct weft_child {
	struct weft__process process; /* must be first: runtime_child_on_end() casts it */
	bool ended;
	bool group;
	bool closing;
	int status;              /* once ended: as given to runtime_child_on_end() */
	int fds[3];              /* the parent's ends of pipes; -1: none, or in a stream */
	weft_stream *streams[3]; /* NULL: not opened, or closed */
	uint64_t grace_ns;
	struct weft__node_list waiting; /* wait ops */
	weft_timer timer;               /* of the grace period */
	weft_op *closer;                /* the close op, to be finished at the end; or NULL */
	weft_op closers[3];             /* close ops of the descriptors */
	int left;
};

static const struct weft__sys *
runtime_child_kernel(const weft_child *child)
{
	return weft__loop_kernel(child->process.loop);
}

/* --- the end ------------------------------------------------------------ */

/* 0, or an error if the process has ended or may not be killed. */
static int
kill_now(const weft_child *child)
{
	int rc = -EPERM;

	for (int i = 0; i < KILLS_MAX && rc < 0 && rc != -ESRCH; i++)
		rc = runtime_child_kernel(child)->kill(&child->process.pid, SIGKILL, child->group);
	return rc;
}

/* Kill and reap the process; returns its status, or an error.  Does not wait for a process that
 * could not be killed. */
static int
end_now(const weft_child *child)
{
	int killed = kill_now(child), status = 0;
	uint32_t how = killed == 0 || killed == -ESRCH ? WEFT__REAP_WAIT : 0;
	int rc = weft__process_reap(&child->process, how, &status);

	return rc < 0 ? rc : status;
}

static void
free_if_closed(weft_child *child)
{
	weft_loop *loop = child->process.loop;

	if (--child->left > 0)
		return;
	if (child->closer)
		(void)weft_op_finish(child->closer, 0);
	weft__sys->release(child);
	(void)weft_loop_unref(loop);
}

static void
on_fd_closed(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)result;
	free_if_closed(arg);
}

/* The process has ended: close the streams and descriptors. */
static void
close_fds(weft_child *child)
{
	child->left = 1;
	for (int i = 0; i < 3; i++) {
		int fd = child->fds[i];

		if (child->streams[i]) {
			child->streams[i]->keeper = NULL;
			weft_stream_reset(child->streams[i]);
		}
		if (fd < 0)
			continue;
		child->fds[i] = -1;
		weft__assert(
			weft_op_init(&child->closers[i], child->process.loop, on_fd_closed, child)
			== 0);
		/* A loop that has stopped rejects the op, but closes the descriptor anyway. */
		if (weft_op_close(&child->closers[i], fd) == 0)
			child->left++;
	}
	free_if_closed(child);
}

static void
set_ended(weft_child *child, int status)
{
	struct weft__node *node = child->waiting.first;

	child->ended = true;
	child->status = status;
	weft__process_forget(&child->process);
	(void)weft_timer_stop(&child->timer);
	child->waiting = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);

		node = node->next;
		(void)weft_op_finish((weft_op *)(void *)op, status);
	}
}

static void
runtime_child_on_end(struct weft__process *process, int status)
{
	weft_child *child = (weft_child *)(void *)process;

	set_ended(child, status == WEFT_ESHUTDOWN ? end_now(child) : status);
	if (child->closing)
		close_fds(child);
}

/* --- opening ------------------------------------------------------------ */

static int
runtime_child_check(const char *const *argv, const weft_child_opts *opts, weft_child **out)
{
	if (!argv || !argv[0] || !out)
		return weft__misuse(WEFT_EINVAL, "weft_child_open: argv, argv[0] or out is NULL");
	for (int i = 0; i < 3; i++)
		if (opts->std[i] < WEFT_CHILD_INHERIT || opts->std[i] > WEFT_CHILD_FD
		    || (opts->std[i] == WEFT_CHILD_FD && opts->fd[i] < 0))
			return weft__misuse(
				WEFT_EINVAL,
				"weft_child_open: std has an unknown value, or fd is negative");
	return 0;
}

/* Make a pipe for descriptor `index`; returns the child's end, which is blocking. */
static int
make_pipe(weft_child *child, int index)
{
	int fds[2], theirs = index == 0 ? 0 : 1;
	int rc = runtime_child_kernel(child)->pipe(fds);

	if (rc < 0)
		return rc;
	child->fds[index] = fds[1 - theirs];
	rc = runtime_child_kernel(child)->set_block(fds[theirs]);
	if (rc == 0)
		return fds[theirs];
	(void)runtime_child_kernel(child)->close(fds[theirs]);
	return rc;
}

/* Prepare the child's three descriptors.  0 or an error. */
static int
make_fds(weft_child *child, const weft_child_opts *opts, struct weft__spawn *spawn)
{
	static const int others[] = {
		[WEFT_CHILD_INHERIT] = WEFT__SPAWN_KEEP, [WEFT_CHILD_NULL] = WEFT__SPAWN_NULL
	};

	for (int i = 0; i < 3; i++) {
		if (opts->std[i] == WEFT_CHILD_PIPE)
			spawn->fds[i] = make_pipe(child, i);
		else
			spawn->fds[i] = opts->std[i] == WEFT_CHILD_FD ? opts->fd[i]
			                                              : others[opts->std[i]];
		if (opts->std[i] == WEFT_CHILD_PIPE && spawn->fds[i] < 0)
			return spawn->fds[i];
	}
	return 0;
}

/* Start the process and watch for its end.  0; or an error, and then there is no process. */
static int
launch(weft_child *child, const struct weft__spawn *spawn)
{
	weft_loop *loop = child->process.loop;
	int pid = runtime_child_kernel(child)->spawn(spawn), rc;

	if (pid < 0)
		return pid;
	rc = weft__process_watch(loop, &child->process, pid, runtime_child_on_end);
	if (rc == -ESRCH) { /* it has ended, and this process cannot reap it */
		child->ended = true;
		child->status = -ECHILD;
	}
	if (rc == 0 || child->ended)
		return 0;
	child->process.pid = (struct weft__pid){ .pid = pid, .fd = -1 };
	(void)end_now(child);
	return rc;
}

static int
open_child(weft_child *child, const weft_child_opts *opts, struct weft__spawn *spawn)
{
	int rc = make_fds(child, opts, spawn);

	if (rc == 0)
		rc = launch(child, spawn);
	for (int i = 0; i < 3; i++) /* the child has its own copies */
		if (opts->std[i] == WEFT_CHILD_PIPE && spawn->fds[i] >= 0)
			(void)runtime_child_kernel(child)->close(spawn->fds[i]);
	for (int i = 0; rc < 0 && i < 3; i++)
		if (child->fds[i] >= 0)
			(void)runtime_child_kernel(child)->close(child->fds[i]);
	return rc;
}

int
weft__child_open(weft_loop *loop, const char *const *argv, const weft_child_opts *opts,
                 weft_child **out)
{
	static const weft_child_opts defaults;
	struct weft__spawn spawn = { .argv = argv, .fds = { -1, -1, -1 } };
	weft_child *child;
	int rc;

	if (!opts)
		opts = &defaults;
	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_child_open");
	if (rc == 0)
		rc = runtime_child_check(argv, opts, out);
	if (rc < 0)
		return rc;
	if (weft__loop_is_stopping(loop))
		return weft__fail(WEFT_ESHUTDOWN, "weft_child_open: the loop is stopping");
	child = weft__alloc_zero(sizeof(*child));
	if (!child)
		return weft__fail(WEFT_ENOMEM, "weft_child_open: out of memory");
	child->process.loop = loop;
	child->fds[0] = child->fds[1] = child->fds[2] = -1;
	child->group = spawn.group = opts->group;
	child->grace_ns = opts->grace_ns ? opts->grace_ns : GRACE_NS;
	spawn.env = opts->env;
	spawn.cwd = opts->cwd;
	rc = open_child(child, opts, &spawn);
	if (rc < 0) {
		weft__sys->release(child);
		return weft_fail(rc, "weft_child_open: %s%s%s: %s", argv[0],
		                 opts->cwd ? " in " : "", opts->cwd ? opts->cwd : "",
		                 weft_strerror(rc));
	}
	(void)weft_loop_ref(loop);
	*out = child;
	return 0;
}

/* --- while it runs ------------------------------------------------------ */

static void
on_wait_cancel(weft_op *op, int why, void *arg)
{
	weft_child *child = arg;

	weft__node_remove(&child->waiting, weft__op_node(weft__op_of(op)));
	(void)weft_op_finish(op, why);
}

int
weft__child_wait_op(weft_child *child, weft_op *op, uint64_t deadline_ns)
{
	int rc;

	if (!child || (op && op->loop != child->process.loop))
		return weft__misuse(
			child ? WEFT_EWRONGLOOP : WEFT_EINVAL,
			"weft_child_wait: child is NULL, or the op belongs to another loop");
	rc = weft_op_begin(op, on_wait_cancel, child, deadline_ns);
	if (rc < 0)
		return rc;
	if (child->ended)
		(void)weft_op_finish(op, child->status);
	else
		weft__node_append(&child->waiting, weft__op_node(weft__op_of(op)));
	return 0;
}

int
weft__child_poll(weft_child *child, int *out)
{
	int rc;

	if (!child)
		return weft__misuse(WEFT_EINVAL, "weft_child_wait: child is NULL");
	rc = child->ended ? 0 : weft__loop_check(child->process.loop, "weft_child_wait");
	if (rc < 0)
		return rc;
	if (!child->ended && !weft__process_poll(&child->process))
		return WEFT_ETIMEDOUT;
	if (child->status < 0)
		return child->status;
	*out = child->status;
	return 0;
}

int
weft_child_kill(weft_child *child, int signo)
{
	int rc;

	if (!child || signo < 0)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_child_kill: child is NULL, or signo is negative");
	rc = weft__loop_check(child->process.loop, "weft_child_kill");
	if (rc < 0)
		return rc;
	rc = child->ended
	             ? WEFT_ESRCH
	             : runtime_child_kernel(child)->kill(&child->process.pid, signo, child->group);
	return rc < 0 ? weft__fail_in(rc, "weft_child_kill", weft_strerror(rc)) : 0;
}

int
weft_child_fd(const weft_child *child, int index)
{
	if (!child || index < 0 || index > 2)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_child_fd: child is NULL, or index is not 0, 1 or 2");
	return child->fds[index] >= 0
	               ? child->fds[index]
	               : weft__fail(
			       WEFT_EINVAL,
			       "weft_child_fd: this descriptor is not a pipe, or is in a stream");
}

weft_stream *
weft_child_stream(weft_child *child, int index)
{
	weft_stream *stream;

	if (!child || index < 0 || index > 2) {
		(void)weft__misuse(WEFT_EINVAL,
		                   "weft_child_stream: child is NULL, or index is not 0, 1 or 2");
		return NULL;
	}
	if (child->streams[index])
		return child->streams[index];
	if (child->fds[index] < 0) {
		(void)weft__fail(
			WEFT_EINVAL,
			"weft_child_stream: this descriptor is not a pipe, or its stream was "
			"closed");
		return NULL;
	}
	if (weft_stream_open_fd(child->fds[index], false, &stream) < 0)
		return NULL;
	child->fds[index] = -1;
	child->streams[index] = stream;
	stream->keeper = &child->streams[index];
	return stream;
}

/* --- closing ------------------------------------------------------------ */

static void
on_grace(weft_timer *timer, void *arg)
{
	(void)timer;
	(void)kill_now(arg); /* if that fails, the timer tries again */
}

/* Send SIGTERM, and SIGKILL after the grace period.  Without a close op the timer keeps the
 * loop alive.  It is armed directly, because weft_timer_start() fails on a stopping loop, which
 * may still have threadlets that clean up. */
static void
terminate(weft_child *child)
{
	weft_loop *loop = child->process.loop;

	(void)runtime_child_kernel(child)->kill(&child->process.pid, SIGTERM, child->group);
	child->process.sweep = child->group;
	weft_timer_set_background(&child->timer, child->closer != NULL);
	child->timer.tag |= WEFT__ENTRY_FIRM;
	child->timer.owner = loop;
	if (weft__timer_arm(weft__loop_wheel(loop), &child->timer, weft_after(child->grace_ns),
	                    AGAIN_NS, on_grace, child)
	    < 0)
		(void)kill_now(child); /* no memory for the grace period */
	weft__loop_changed(loop);
}

/* A close cannot be canceled.  If the loop stops, runtime_child_on_end() gets WEFT_ESHUTDOWN and
 * ends the process. */
static void
on_close_cancel(weft_op *op, int why, void *arg)
{
	(void)op;
	(void)why;
	(void)arg;
}

static bool
is_misuse(int rc)
{
	return rc == WEFT_EINVAL || rc == WEFT_EBUSY || rc == WEFT_EWRONGLOOP;
}

/* `rc` is 0 if the loop can wait for the end; then the loop finishes `closer`, unless it is
 * NULL. */
static void
close_child(weft_child *child, int rc, weft_op *closer)
{
	child->closing = true;
	child->closer = closer;
	if (rc < 0 && !child->ended) /* invariant 4 */
		set_ended(child, end_now(child));
	if (child->ended)
		close_fds(child);
	else
		terminate(child);
}

int
weft__child_close_op(weft_child *child, weft_op *op)
{
	int rc;

	if (!child || (op && op->loop != child->process.loop))
		return weft__misuse(
			child ? WEFT_EWRONGLOOP : WEFT_EINVAL,
			"weft_child_close: child is NULL, or the op belongs to another loop");
	if (child->closing)
		return weft__misuse(WEFT_EBUSY,
		                    "weft_child_close: child is NULL, or is already being closed");
	rc = weft_op_begin(op, on_close_cancel, child, WEFT_NEVER);
	if (!is_misuse(rc))
		close_child(child, rc, rc == 0 ? op : NULL);
	return rc;
}

int
weft__child_close_later(weft_child *child)
{
	weft_loop *loop;
	int rc;

	if (!child || child->closing)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_child_close: child is NULL, or is already being closed");
	loop = child->process.loop;
	rc = weft__loop_check(loop, "weft_child_close");
	if (is_misuse(rc))
		return rc;
	close_child(child, weft__loop_is_stopping(loop) ? WEFT_ESHUTDOWN : 0, NULL);
	return 0;
}
