/* child_test.c - child processes: starting, waiting, signaling, closing.
 *
 * At the end of each test there is no child left, alive or dead.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/child.h"
#include "unit/probe.h"
#include "unit/twice.h"

/* --- helpers ------------------------------------------------------------ */

static weft_child *
open_with(weft_loop *loop, const weft_child_opts *opts, const char *const *argv)
{
	weft_child *child = NULL;

	OK(weft__child_open(loop, argv, opts, &child));
	CHECK(child != NULL);
	return child;
}

/* Starts a shell that runs `script`. */
static weft_child *
open_shell(weft_loop *loop, const weft_child_opts *opts, const char *script)
{
	const char *const argv[] = { "sh", "-c", script, NULL };

	return open_with(loop, opts, argv);
}

/* Starts a child that reads until it is terminated. */
static weft_child *
open_cat(weft_loop *loop)
{
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE } };
	const char *const argv[] = { "cat", NULL };

	return open_with(loop, &opts, argv);
}

static void
start_wait(weft_child *child, weft_loop *loop, struct probe *p, uint64_t deadline_ns)
{
	init(loop, p);
	OK(weft__child_wait_op(child, &p->op, deadline_ns));
}

/* Returns the wait status, or an error. */
static int
wait_for(weft_child *child, weft_loop *loop)
{
	struct probe p = { .results = 0 };

	start_wait(child, loop, &p, WEFT_NEVER);
	OK(weft_loop_run(loop));
	CHECK_EQ(p.ends, 1);
	return (int)p.result;
}

static void
close_child(weft_child *child, weft_loop *loop)
{
	struct probe p = { .results = 0 };

	init(loop, &p);
	OK(weft__child_close_op(child, &p.op));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
}

static void
end_loop(weft_loop *loop)
{
	OK(weft_loop_free(loop));
	check_no_child();
}

/* Reads everything until the end, as a text. */
static const char *
read_all(int fd)
{
	static char text[256];
	size_t size = 0;
	ssize_t n;

	OK(weft__sys_real.set_block(fd));
	while ((n = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)n;
	CHECK_EQ(n, 0);
	text[size] = '\0';
	return text;
}

/* Reads one line. */
static void
await_line(int fd)
{
	char byte = 0;

	OK(weft__sys_real.set_block(fd));
	while (byte != '\n')
		CHECK_EQ(read(fd, &byte, 1), 1);
}

/* --- exit --------------------------------------------------------------- */

TEST_TWICE(a_child_that_ends_is_reaped_and_its_status_told)
{
	weft_loop *loop = make();
	weft_child *child = open_shell(loop, NULL, "exit 7");
	int status = wait_for(child, loop);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 7);
	check_no_child();
	CHECK_EQ(wait_for(child, loop), status); /* a second wait returns it, too */
	CHECK_EQ(weft_child_kill(child, SIGTERM), WEFT_ESRCH);
	close_child(child, loop);
	child = open_shell(loop, NULL, "kill -KILL $$");
	status = wait_for(child, loop);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGKILL);
	close_child(child, loop);
	end_loop(loop);
}

TEST_TWICE(a_child_that_nobody_waits_for_is_reaped_too)
{
	weft_loop *loop = make();
	weft_child *child = open_shell(loop, NULL, "exit 1");
	siginfo_t info;

	/* Until the child can be reaped. */
	OK(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
	turns(loop, 3);
	check_no_child();
	close_child(child, loop);
	end_loop(loop);
}

TEST_TWICE(a_child_that_runs_does_not_keep_the_loop_running)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);

	OK(weft_loop_run(loop));
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY); /* but the loop cannot be freed */
	close_child(child, loop);
	end_loop(loop);
}

TEST_TWICE(several_may_wait_and_a_deadline_or_cancel_ends_one_wait_only)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);
	struct probe p[4] = { { .results = 0 } };

	start_wait(child, loop, &p[0], WEFT_NEVER);
	start_wait(child, loop, &p[1], WEFT_NOWAIT);
	start_wait(child, loop, &p[2], WEFT_NEVER);
	start_wait(child, loop, &p[3], WEFT_NEVER);
	weft_op_cancel(&p[2].op);
	turns(loop, 3);
	CHECK_ENDED(&p[1], WEFT_ETIMEDOUT);
	CHECK_ENDED(&p[2], WEFT_ECANCELED);
	CHECK_EQ(p[0].results + p[3].results, 0);
	OK(weft_child_kill(child, SIGINT));
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p[0], SIGINT);
	CHECK_ENDED(&p[3], SIGINT);
	close_child(child, loop);
	end_loop(loop);
}

TEST_TWICE(a_child_that_has_ended_beats_a_deadline)
{
	weft_loop *loop = make();
	weft_child *child = open_shell(loop, NULL, "exit 0");
	struct probe p = { .results = 0 };
	siginfo_t info;

	OK(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
	start_wait(child, loop, &p, WEFT_NOWAIT);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	close_child(child, loop);
	end_loop(loop);
}

TEST_TWICE(a_child_that_somebody_else_reaps_is_told_as_such)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);
	int status;

	OK(weft_child_kill(child, SIGKILL));
	CHECK(waitpid(-1, &status, 0) > 0);
	CHECK_EQ(wait_for(child, loop), -ECHILD);
	CHECK_EQ(weft_child_kill(child, SIGTERM), WEFT_ESRCH);
	close_child(child, loop);
	end_loop(loop);
}

TEST_TWICE(children_can_be_had_where_sigchld_is_ignored)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	weft_loop *loop = make();

	OK(sigaction(SIGCHLD, &ignore, &before));
	for (int i = 0; i < 20; i++) {
		weft_child *child = open_shell(loop, NULL, "exit 0");
		int status = wait_for(child, loop);

		CHECK(status == 0 || status == -ECHILD);
		close_child(child, loop);
		child = open_cat(loop);
		OK(weft_child_kill(child, 0));
		close_child(child, loop);
	}
	OK(sigaction(SIGCHLD, &before, NULL));
	end_loop(loop);
}

TEST_TWICE(a_thousand_children_leave_no_zombie)
{
	const char *const argv[] = { "true", NULL };
	weft_loop *loop = make();

	for (int i = 0; i < 20; i++) {
		weft_child *children[50];
		struct probe p[50] = { { .results = 0 } };

		for (int k = 0; k < 50; k++) {
			children[k] = open_with(loop, NULL, argv);
			start_wait(children[k], loop, &p[k], WEFT_NEVER);
		}
		OK(weft_loop_run(loop));
		check_no_child();
		for (int k = 0; k < 50; k++) {
			CHECK_ENDED(&p[k], 0);
			close_child(children[k], loop);
		}
	}
	end_loop(loop);
}

/* --- starting ----------------------------------------------------------- */

static void
check_text(const char *begin)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "%s%s", begin, weft_strerror(WEFT_ENOENT));
	CHECK_STR(weft_detail(), text);
}

TEST(child_that_cannot_be_started_leaves_nothing_behind)
{
	static const struct {
		const char *path, *cwd;
		int error;
	} cases[] = {
		{ "no-such-program-at-all", NULL, WEFT_ENOENT },
		{ "/no/such/folder/program", NULL, WEFT_ENOENT },
		{ "/", NULL, -EACCES },
		{ "true", "/no/such/folder", WEFT_ENOENT },
	};
	weft_loop *loop = make();
	weft_child *child = NULL;

	for (size_t i = 0; i < 4; i++) {
		const char *const argv[] = { cases[i].path, NULL };
		weft_child_opts opts = { .cwd = cases[i].cwd,
			                 .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE,
			                          WEFT_CHILD_PIPE } };

		CHECK_EQ(weft__child_open(loop, argv, &opts, &child), cases[i].error);
		CHECK(!child);
		check_no_child();
	}
	OK(weft_loop_run(loop));
	end_loop(loop);
}

TEST(error_of_a_program_that_cannot_be_started_names_it)
{
	const char *const none[] = { "no-such-program-at-all", NULL };
	const char *const some[] = { "true", NULL };
	const weft_child_opts opts = { .cwd = "/no/such/folder" };
	weft_loop *loop = make();
	weft_child *child;

	CHECK_EQ(weft__child_open(loop, none, NULL, &child), WEFT_ENOENT);
	check_text("weft_child_open: no-such-program-at-all: ");
	CHECK_EQ(weft__child_open(loop, some, &opts, &child), WEFT_ENOENT);
	check_text("weft_child_open: true in /no/such/folder: ");
	end_loop(loop);
}

TEST(bytes_pass_through_the_pipes_both_ways)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);
	struct watcher w = { .calls = 0 };
	char bytes[8];

	CHECK_EQ(read(weft_child_fd(child, 1), bytes, 8), -1);
	CHECK_EQ(errno, EAGAIN); /* our end does not block */
	CHECK_EQ(write(weft_child_fd(child, 0), "hello", 5), 5);
	watch(loop, &w, weft_child_fd(child, 1), WEFT_READABLE);
	while (w.calls == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(read(w.fd, bytes, 8), 5);
	CHECK_EQ(memcmp(bytes, "hello", 5), 0);
	CHECK_EQ(weft_child_fd(child, 2), WEFT_EINVAL);
	w.calls = 0;
	close_child(child, loop);
	CHECK_EQ(w.ends, 1); /* the watch on the pipe is notified */
	end_loop(loop);
}

TEST(child_gets_the_environment_folder_and_descriptors_of_its_options)
{
	const char *const env[] = { "WORD=there", NULL };
	weft_child_opts opts = {
		.env = env,
		.cwd = "/",
		.std = { WEFT_CHILD_NULL, WEFT_CHILD_PIPE, WEFT_CHILD_FD },
	};
	weft_loop *loop = make();
	weft_child *child;
	int fds[2];

	OK(pipe(fds));
	opts.fd[2] = fds[1];
	child = open_shell(loop, &opts, "cat; echo \"$WORD $PWD $HOME\"; echo err >&2");
	OK(close(fds[1]));
	CHECK_STR(read_all(weft_child_fd(child, 1)), "there / \n");
	CHECK_STR(read_all(fds[0]), "err\n");
	OK(close(fds[0]));
	CHECK_EQ(wait_for(child, loop), 0);
	close_child(child, loop);
	end_loop(loop);
}

TEST(standard_descriptors_of_a_child_may_be_swapped)
{
	int fds[2], kept[2] = { dup(1), dup(2) };
	weft_child_opts opts = { .std = { WEFT_CHILD_NULL, WEFT_CHILD_FD, WEFT_CHILD_FD },
		                 .fd = { -1, 2, 1 } };
	weft_loop *loop = make();
	weft_child *child;

	OK(pipe(fds));
	CHECK_EQ(dup2(fds[1], 2), 2); /* our descriptor 2 becomes its descriptor 1 */
	child = open_shell(loop, &opts, "echo one; : >&2");
	CHECK_EQ(dup2(kept[1], 2), 2);
	OK(close(fds[1]));
	CHECK_STR(read_all(fds[0]), "one\n");
	CHECK_EQ(wait_for(child, loop), 0);
	close_child(child, loop);
	for (int i = 0; i < 2; i++)
		OK(close(kept[i]));
	OK(close(fds[0]));
	end_loop(loop);
}

static struct {
	weft_child *child;
	struct probe wait, close;
	weft__a32 done;
} far;

static void
close_far(struct probe *p)
{
	(void)p;
	init(NULL, &far.close);
	OK(weft__child_close_op(far.child, &far.close.op));
}

static void
note_far(struct probe *p)
{
	(void)p;
	weft__store(&far.done, 1, WEFT__RELEASE);
}

static void
open_far(void *arg)
{
	(void)arg;
	far.child = open_shell(NULL, NULL, "kill -TERM $$; exit 3");
	far.wait.act = close_far;
	far.close.act = note_far;
	start_wait(far.child, NULL, &far.wait, WEFT_NEVER);
}

TEST(child_of_a_thread_that_blocks_all_signals_blocks_none)
{
	weft_loop *loop = make_started();

	OK(weft_loop_post(loop, open_far, NULL));
	while (!weft__load(&far.done, WEFT__ACQUIRE))
		sched_yield();
	stop_and_free(loop);
	CHECK_ENDED(&far.wait, SIGTERM);
	CHECK_ENDED(&far.close, 0);
	check_no_child();
}

/* --- closing ------------------------------------------------------------ */

TEST_TWICE(closing_asks_a_child_to_end_and_waits_for_that)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);
	struct probe p = { .results = 0 };

	start_wait(child, loop, &p, WEFT_NEVER);
	close_child(child, loop);
	CHECK_ENDED(&p, SIGTERM);
	end_loop(loop);
}

TEST_TWICE(a_child_that_ignores_sigterm_is_killed_after_its_grace)
{
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE },
		                 .grace_ns = 20 * WEFT_MS };
	weft_loop *loop = make();
	weft_child *child = open_shell(loop, &opts, "trap '' TERM; echo ready; exec cat");
	struct probe p = { .results = 0 };
	uint64_t before_ns;

	await_line(weft_child_fd(child, 1));
	start_wait(child, loop, &p, WEFT_NEVER);
	before_ns = weft_now();
	close_child(child, loop);
	CHECK(weft_now() >= before_ns + 20 * WEFT_MS);
	CHECK_ENDED(&p, SIGKILL);
	end_loop(loop);
}

TEST_TWICE(a_group_is_killed_as_one)
{
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE }, .group = true };
	weft_loop *loop = make();
	weft_child *child = open_shell(loop, &opts,
	                               "(trap '' TERM; echo ready; exec cat <&3) 3<&0 &"
	                               "wait");
	int fd;

	await_line(weft_child_fd(child, 1));
	fd = dup(weft_child_fd(child, 1));
	close_child(child, loop);
	CHECK_STR(read_all(fd), ""); /* no writer is left */
	OK(close(fd));
	end_loop(loop);
}

TEST_TWICE(closing_cannot_be_cancelled)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);
	struct probe p = { .results = 0 };

	init(loop, &p);
	OK(weft__child_close_op(child, &p.op));
	weft_op_cancel(&p.op);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	end_loop(loop);
}

TEST_TWICE(a_child_can_be_closed_without_waiting_for_it)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);
	int status = 0;

	CHECK_EQ(weft__child_poll(child, &status), WEFT_ETIMEDOUT);
	OK(weft__child_close_later(child));
	OK(weft_loop_run(loop)); /* the close keeps the loop alive */
	check_no_child();
	child = open_shell(loop, NULL, "exit 3");
	while (weft__child_poll(child, &status) != 0)
		(void)weft_loop_run_once(loop, weft_after(WEFT_MS));
	CHECK_EQ(WEXITSTATUS(status), 3);
	OK(weft__child_poll(child, &status));
	OK(weft__child_close_later(child));
	end_loop(loop);
}

/* --- loop stop ---------------------------------------------------------- */

TEST_TWICE(a_loop_that_stops_kills_and_reaps_its_children)
{
	weft_loop *loop = make();
	weft_child *child = open_cat(loop);
	struct probe p = { .results = 0 }, late = { .results = 0 };

	start_wait(child, loop, &p, WEFT_NEVER);
	init(loop, &late);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, WEFT_ESHUTDOWN);
	check_no_child();
	CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
	CHECK_EQ(weft_child_kill(child, SIGTERM), WEFT_ESHUTDOWN);
	CHECK_EQ(weft__child_close_op(child, &late.op), WEFT_ESHUTDOWN);
	end_loop(loop);
}

TEST_TWICE(a_loop_that_stops_finishes_what_is_being_closed)
{
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE }, .grace_ns = HOUR };
	weft_loop *loop = make();
	weft_child *child = open_shell(loop, &opts, "trap '' TERM; echo ready; exec cat");
	struct probe p = { .results = 0 };

	await_line(weft_child_fd(child, 1));
	init(loop, &p);
	OK(weft__child_close_op(child, &p.op));
	weft_op_cancel(&p.op);
	turns(loop, 3);
	CHECK_EQ(p.results, 0);
	stop_idle(loop);
	CHECK_ENDED(&p, 0);
	check_no_child();
}

static struct {
	weft_child *child;
	struct probe close;
} dying;

static void
close_while_stopping(void *arg)
{
	weft_loop *loop = arg;

	weft_loop_shutdown(loop);
	CHECK_EQ(weft__child_close_op(dying.child, &dying.close.op), WEFT_ESHUTDOWN);
	check_no_child();
}

TEST_TWICE(a_child_may_be_closed_while_its_loop_stops)
{
	weft_loop *loop = make();

	dying.child = open_cat(loop);
	init(loop, &dying.close);
	OK(weft_loop_post(loop, close_while_stopping, loop));
	OK(weft_loop_run(loop));
	CHECK_EQ(dying.close.results, 0);
	end_loop(loop);
}

/* --- misuse ------------------------------------------------------------- */

TEST(misuse_of_children_is_reported)
{
	const char *const none[] = { NULL }, *const argv[] = { "cat", NULL };
	weft_child_opts bad[3] = {
		{ .std = { 9 } },
		{ .std = { -1 } },
		{ .std = { WEFT_CHILD_FD }, .fd = { -1 } },
	};
	weft_loop *loop = make();
	weft_child *child = NULL;

	CHECK_MISUSE(weft__child_open(NULL, argv, NULL, &child), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_open(loop, none, NULL, &child), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_open(loop, NULL, NULL, &child), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_open(loop, argv, NULL, NULL), WEFT_EINVAL);
	for (int i = 0; i < 3; i++)
		CHECK_MISUSE(weft__child_open(loop, argv, &bad[i], &child), WEFT_EINVAL);
	CHECK(!child);
	CHECK_MISUSE(weft_child_kill(NULL, SIGTERM), WEFT_EINVAL);
	CHECK_MISUSE(weft_child_fd(NULL, 0), WEFT_EINVAL);
	end_loop(loop);
}

TEST(misuse_of_child_ops_is_reported)
{
	weft_loop *loop = make(), *other = make();
	weft_child *child = open_cat(loop);
	struct probe p = { .results = 0 }, stranger = { .results = 0 };

	init(loop, &p);
	init(other, &stranger);
	CHECK_MISUSE(weft_child_fd(child, 3), WEFT_EINVAL);
	CHECK_MISUSE(weft_child_kill(child, -1), WEFT_EINVAL);
	CHECK_EQ(weft_child_kill(child, 9999), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_wait_op(NULL, &p.op, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_close_op(NULL, &p.op), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_wait_op(child, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_close_op(child, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_wait_op(child, &stranger.op, WEFT_NEVER), WEFT_EWRONGLOOP);
	CHECK_MISUSE(weft__child_close_op(child, &stranger.op), WEFT_EWRONGLOOP);
	CHECK_MISUSE(weft__child_poll(NULL, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft__child_close_later(NULL), WEFT_EINVAL);
	OK(weft__child_close_op(child, &p.op));
	CHECK_MISUSE(weft__child_close_op(child, &p.op), WEFT_EBUSY);
	OK(weft_loop_run(loop));
	CHECK_ENDED(&p, 0);
	OK(weft_loop_free(other));
	end_loop(loop);
}
