/* process_scenarios.c - signals and child processes.
 *
 * In addition to the checks of every scenario: at the end, the signal dispositions are the
 * original ones.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>
#include "base/sys.h"
#include "fault.h"
#include "loop/process/signal.h"
#include "runtime/child.h"
#include "scenarios.h"

#define BIT(signo) (UINT64_C(1) << (signo))

/* SIGUSR1 must not end the process if the library has no handler for it. */
static void
on_benign(int signo)
{
	(void)signo;
}

static void
set_benign(void)
{
	struct sigaction action = { .sa_handler = on_benign };

	(void)sigaction(SIGUSR1, &action, NULL);
}

static bool
is_as_before(int signo)
{
	struct sigaction now;

	(void)sigaction(signo, NULL, &now);
	return now.sa_handler == (signo == SIGUSR1 ? on_benign : SIG_DFL);
}

static void
check_end(void)
{
	EXPECT(is_as_before(SIGUSR1));
	EXPECT(is_as_before(SIGCHLD));
}

/* --- signal ------------------------------------------------------------- */

struct ear {
	weft_watch watch;
	int left;
	int ended;
};

static void
on_hear(weft_watch *watch, int what, void *arg)
{
	struct ear *ear = arg;

	EXPECT(what == watch->id || what == WEFT_ESHUTDOWN);
	ear->left = 0;
	ear->ended += what < 0;
	EXPECT(ear->ended <= 1);
}

static bool
hear(struct world *world, struct ear *ear)
{
	int rc = weft_watch_start_signal(world->loop, &ear->watch, SIGUSR1, on_hear, ear);

	EXPECT(rc == 0 || fault_hits() > 0);
	EXPECT(rc == 0 || weft_watch_stop(&ear->watch) == 0);
	return rc == 0;
}

/* The watch reports its signal.  If an untrue error of the kernel lost the signal, it reports
 * the next one. */
static void
expect_signal(struct world *world, struct ear *ear)
{
	ear->left = 1;
	(void)raise(SIGUSR1);
	for (int i = 0; ear->left > 0 && i < 2 * STEPS_MIN; i++)
		(void)weft_loop_run_once(world->loop, weft_after(WAIT_NS / 20));
	if (ear->left == 0)
		return;
	EXPECT(fault_hits() > 0 && !fault_is_honest());
	fault_heal();
	(void)raise(SIGUSR1);
	turn(world->loop);
	EXPECT(ear->left == 0);
}

static void
wait_for_signal(struct world *world)
{
	struct job job;

	init(world, &job);
	begin(&job, weft__signal_op(&job.op, BIT(SIGUSR1), weft_after(WAIT_NS)));
	if (job.left == 0) {
		EXPECT(fault_hits() > 0);
		return;
	}
	(void)raise(SIGUSR1);
	EXPECT(await(world, &job) == SIGUSR1 || fault_hits() > 0);
}

void
run_signal(const char *backend)
{
	struct world world, other;
	struct ear ear = { .left = 0 }, far = { .left = 0 };

	set_benign();
	if (!make_world(&world, backend, 0))
		return;
	if (make_world(&other, backend, 0)) {
		if (hear(&other, &far) && hear(&world, &ear)) {
			expect_signal(&world, &ear);
			expect_signal(&other, &far);
			EXPECT(weft_watch_stop(&ear.watch) == 1);
		}
		wait_for_signal(&world);
		end_world(&other); /* its watch is still started */
		EXPECT(weft_watch_stop(&far.watch) == 0);
	}
	check_works(&world);
	if (hear(&world, &ear))
		expect_signal(&world, &ear);
	end_world(&world);
	check_end();
}

/* --- child -------------------------------------------------------------- */

/* A child that reads until its end is requested; NULL if it could not be started. */
static weft_child *
open_cat(struct world *world)
{
	const char *const argv[] = { "cat", NULL };
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE, WEFT_CHILD_NULL },
		                 .grace_ns = WEFT_MS };
	weft_child *child = NULL;
	int rc = weft__child_open(world->loop, argv, &opts, &child);

	EXPECT(rc == 0 || fault_hits() > 0);
	EXPECT((rc == 0) == (child != NULL));
	return child;
}

/* Run the loop until *left is 0. A process takes its time to end.  If epoll_ctl reported that
 * the process descriptor is a regular file, the loop polls it all that time.  If an untrue
 * error of the kernel may have lost a signal, another one is raised. */
static void
outlast(struct world *world, const int *left)
{
	uint64_t end_ns = weft__sys_real.now() + 100 * WAIT_NS;

	while (*left > 0 && weft__sys_real.now() < end_ns) {
		(void)weft_loop_run_once(world->loop, weft_after(WAIT_NS / 10));
		if (fault_hits() > 0 && !fault_is_honest())
			(void)raise(SIGCHLD);
	}
	EXPECT(*left == 0);
}

static void
close_cat(struct world *world, weft_child *child)
{
	static struct job job; /* outlives this call if the close fails to end */

	init(world, &job);
	begin(&job, weft__child_close_op(child, &job.op));
	EXPECT(job.left == 1 || fault_hits() > 0);
	outlast(world, &job.left); /* nothing prevents the process from ending */
}

void
run_child(const char *backend)
{
	static struct job job;
	struct world world;
	weft_child *child;

	set_benign();
	if (!make_world(&world, backend, 0))
		return;
	child = open_cat(&world);
	if (child) {
		init(&world, &job);
		begin(&job, weft__child_wait_op(child, &job.op, weft_after(100 * WAIT_NS)));
		if (weft_child_kill(child, SIGKILL) < 0)
			weft_op_cancel(&job.op);
		outlast(&world, &job.left);
		EXPECT(job.result >= 0 || fault_hits() > 0);
		EXPECT(weft_child_fd(child, 0) >= 0);
		EXPECT(weft_child_stream(child, 1) || fault_hits() > 0);
		EXPECT(weft_child_fd(child, 2) == WEFT_EINVAL);
		close_cat(&world, child);
	}
	child = open_cat(&world);
	if (child)
		close_cat(&world, child);
	check_works(&world);
	end_world(&world);
	check_end();
}

/* The loop shuts down while one child runs, one is being closed and one was killed. */
void
run_child_stop(const char *backend)
{
	struct world world;
	weft_child *children[3];
	struct job jobs[3];

	set_benign();
	if (!make_world(&world, backend, 0))
		return;
	for (int i = 0; i < 3; i++) {
		init(&world, &jobs[i]);
		children[i] = open_cat(&world);
	}
	if (children[1])
		begin(&jobs[1], weft__child_close_op(children[1], &jobs[1].op));
	if (children[2])
		(void)weft_child_kill(children[2], SIGKILL);
	turn(world.loop);
	weft_loop_shutdown(world.loop);
	for (int i = 0; weft_loop_state(world.loop) != WEFT_STOPPED && i < 100; i++)
		(void)weft_loop_run_once(world.loop, weft_after(WAIT_NS / 10));
	EXPECT(weft_loop_state(world.loop) == WEFT_STOPPED);
	EXPECT(jobs[1].left == 0);
	for (int i = 0; i < 3; i += 2)
		if (children[i])
			EXPECT(weft__child_close_op(children[i], &jobs[i].op) == WEFT_ESHUTDOWN);
	EXPECT(weft_loop_free(world.loop) == 0);
	check_end();
}

/* --- pid ---------------------------------------------------------------- */

struct grave {
	weft_watch watch;
	int left;
	int what;
};

static void
on_death(weft_watch *watch, int what, void *arg)
{
	struct grave *grave = arg;

	EXPECT(grave->left == 1);
	EXPECT(weft_watch_stop(watch) == 0);
	grave->left = 0;
	grave->what = what;
}

static pid_t
fork_one(void)
{
	pid_t pid = fork();

	while (pid == 0)
		(void)pause();
	return pid;
}

void
run_pid(const char *backend)
{
	struct world world;
	struct grave grave = { .left = 0 };
	int status;
	pid_t pid;

	set_benign();
	if (!make_world(&world, backend, 0))
		return;
	pid = fork_one();
	grave.left = weft_watch_start_pid(world.loop, &grave.watch, pid, on_death, &grave) == 0;
	EXPECT(grave.left == 1 || fault_hits() > 0);
	(void)kill(pid, SIGKILL);
	if (grave.left) {
		outlast(&world, &grave.left);
		EXPECT(grave.what == SIGKILL || fault_hits() > 0);
	}
	check_works(&world);
	if (weft_watch_stop(&grave.watch) == 1 || grave.left == 0)
		(void)waitpid(pid, &status, 0); /* unless it was reaped */
	end_world(&world);
	check_end();
}
