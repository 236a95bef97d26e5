/* watch_pid_test.c - watches on child processes that the program has forked. */
#include <signal.h>
#include <unistd.h>
#include "unit/probe.h"
#include "unit/twice.h"

static void
end_loop(weft_loop *loop)
{
	OK(weft_loop_free(loop));
	check_no_child();
}

struct mourner {
	weft_watch watch;
	int calls, what;
};

static void
on_death(weft_watch *ended, int what, void *arg)
{
	struct mourner *m = arg;

	CHECK(ended == &m->watch);
	CHECK_EQ(weft_watch_stop(ended), 0); /* the watch is already stopped */
	m->calls++;
	m->what = what;
}

/* A child that exits with code 5 when it receives a byte. */
static pid_t
fork_child(int fds[2])
{
	pid_t pid;
	char byte;

	OK(pipe(fds));
	pid = test_fork();
	if (pid == 0) {
		(void)!read(fds[0], &byte, 1);
		test_child_exit(5);
	}
	CHECK(pid > 0);
	return pid;
}

static void
end_child(int fds[2])
{
	CHECK_EQ(write(fds[1], "x", 1), 1);
	OK(close(fds[0]));
	OK(close(fds[1]));
}

TEST_TWICE(a_watch_on_a_pid_is_called_once_when_it_has_been_reaped)
{
	weft_loop *loop = make();
	struct mourner m[2] = { { .calls = 0 } };
	int fds[2], more[2], status;
	pid_t pid = fork_child(fds), other = fork_child(more);

	OK(weft_watch_start_pid(loop, &m[0].watch, pid, on_death, &m[0]));
	OK(weft_watch_start_pid(loop, &m[1].watch, other, on_death, &m[1]));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_EQ(m[0].calls + m[1].calls, 0);
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	CHECK_EQ(weft_watch_stop(&m[1].watch), 1);
	end_child(fds);
	OK(weft_loop_run(loop)); /* the watch keeps the loop alive until then */
	CHECK_EQ(m[0].calls, 1);
	CHECK_EQ(WEXITSTATUS(m[0].what), 5);
	end_child(more);
	CHECK_EQ(waitpid(other, &status, 0), other); /* the loop did not reap it */
	OK(weft_watch_start_signal(loop, &m[0].watch, SIGUSR1, on_death, m));
	CHECK_EQ(weft_watch_stop(&m[0].watch), 1); /* the watch can be reused */
	end_loop(loop);
}

TEST_TWICE(a_pid_that_ended_before_it_was_watched_is_reported)
{
	weft_loop *loop = make();
	struct mourner m = { .calls = 0 };
	siginfo_t info;
	int fds[2];
	pid_t pid = fork_child(fds);

	end_child(fds);
	OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	OK(weft_watch_start_pid(loop, &m.watch, pid, on_death, &m));
	CHECK_EQ(m.calls, 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(m.calls, 1);
	CHECK_EQ(WEXITSTATUS(m.what), 5);
	end_loop(loop);
}

TEST_TWICE(a_pid_that_is_no_child_of_ours_cannot_be_watched)
{
	weft_loop *loop = make();
	struct mourner m = { .calls = 0 };

	CHECK_EQ(weft_watch_start_pid(loop, &m.watch, getppid(), on_death, &m), WEFT_ESRCH);
	end_loop(loop);
}

TEST_TWICE(a_loop_that_stops_tells_a_watch_on_a_pid_and_leaves_the_process)
{
	weft_loop *loop = make();
	struct mourner m = { .calls = 0 };
	int fds[2], status;
	pid_t pid = fork_child(fds);

	OK(weft_watch_start_pid(loop, &m.watch, pid, on_death, &m));
	stop_idle(loop);
	CHECK_EQ(m.calls, 1);
	CHECK_EQ(m.what, WEFT_ESHUTDOWN);
	end_child(fds);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_no_child();
}

TEST(misuse_of_watches_on_a_pid_is_refused)
{
	weft_loop *loop = make();
	struct mourner m = { .calls = 0 };

	CHECK_MISUSE(weft_watch_start_pid(loop, &m.watch, 0, on_death, &m), WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start_pid(loop, &m.watch, 1, NULL, &m), WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start_pid(NULL, &m.watch, 1, on_death, &m), WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start_pid(loop, NULL, 1, on_death, &m), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}
