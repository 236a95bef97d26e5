/* child_wait_test.c - child processes used by threadlets. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/child.h>
#include <weft/threadlet.h>
#include "unit/probe.h"

static const char *const cat[] = { "cat", NULL };
static const char *const quick[] = { "sh", "-c", "exit 7", NULL };

static void
check_no_child(void)
{
	int status;

	CHECK_EQ(waitpid(-1, &status, WNOHANG), -1);
	CHECK_EQ(errno, ECHILD);
}

/* Runs `fn` as a threadlet on a new loop. */
static void
run(weft_threadlet_fn fn)
{
	weft_loop *loop = make();
	weft_go_opts opts = { .loop = loop };

	CHECK(weft_go_with(&opts, fn, loop) > 0);
	OK(weft_loop_run(loop));
	check_no_child();
	OK(weft_loop_free(loop));
}

static weft_child *
open_cat(void)
{
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE } };
	weft_child *child = NULL;

	OK(weft_child_open(cat, &opts, &child, WEFT_NEVER));
	return child;
}

static int
wait_and_close(void *arg)
{
	weft_child *child = NULL;
	int status = 0;

	(void)arg;
	OK(weft_child_open(quick, NULL, &child, WEFT_NEVER));
	OK(weft_child_wait(child, &status, WEFT_NEVER));
	CHECK_EQ(WEXITSTATUS(status), 7);
	OK(weft_child_wait(child, &status, WEFT_NOWAIT));
	OK(weft_child_wait(child, NULL, WEFT_NEVER));
	weft_child_close(child);
	weft_child_close(NULL);
	return 0;
}

TEST(threadlet_opens_waits_for_and_closes_a_child)
{
	run(wait_and_close);
}

static int
wait_in_vain(void *arg)
{
	weft_child *child = open_cat();
	int status = -1;

	(void)arg;
	CHECK_EQ(weft_child_wait(child, &status, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_child_wait(child, &status, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(status, -1);
	weft_child_close(child);
	check_no_child();
	return 0;
}

TEST(wait_ends_at_its_deadline_and_the_child_lives_until_it_is_closed)
{
	run(wait_in_vain);
}

static int
wait_until_canceled(void *arg)
{
	weft_child *child = open_cat(), *other = NULL;
	int status;

	(void)arg;
	CHECK_EQ(weft_child_wait(child, &status, WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(weft_child_open(cat, NULL, &other, WEFT_NEVER), WEFT_ECANCELED);
	CHECK(!other);
	weft_child_close(child); /* cannot be canceled */
	check_no_child();
	return 0;
}

static int
cancel_other(void *arg)
{
	weft_go_opts opts = { .name = "waits" };
	weft_threadlet other = weft_go_with(&opts, wait_until_canceled, arg);

	OK(weft_yield());
	OK(weft_cancel(other));
	return 0;
}

TEST(canceled_threadlet_can_close_its_child)
{
	run(cancel_other);
}

static void
use_in_a_callback(void *arg)
{
	weft_child *child = NULL;
	int status;

	(void)arg;
	CHECK_EQ(weft_child_open(cat, NULL, &child, WEFT_NEVER), WEFT_ENOSUSPEND);
	CHECK(!child);
	OK(weft_child_open(quick, NULL, &child, WEFT_NOWAIT));
	CHECK_EQ(weft_child_wait(child, &status, WEFT_NEVER), WEFT_ENOSUSPEND);
	weft_child_close(child);
}

TEST(callback_may_open_a_child_and_close_it_without_waiting)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, use_in_a_callback, NULL));
	OK(weft_loop_run(loop));
	check_no_child();
	OK(weft_loop_free(loop));
}

static int last_words;

static int
close_as_the_loop_stops(void *arg)
{
	static const char *const argv[] = { "sh", "-c",
		                            "trap 'echo bye; exit' TERM; echo; read word", NULL };
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE }, .grace_ns = HOUR };
	weft_child *child = NULL;
	int status;

	OK(weft_child_open(argv, &opts, &child, WEFT_NEVER));
	last_words = dup(weft_child_fd(child, 1));
	CHECK_EQ(weft_wait_fd(last_words, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	weft_loop_shutdown(arg);
	CHECK_EQ(weft_child_wait(child, &status, WEFT_NEVER), WEFT_ECANCELED);
	weft_child_close(child);
	check_no_child();
	return 0;
}

TEST(close_while_the_loop_stops_gives_the_child_its_grace)
{
	weft_loop *loop = make();
	weft_go_opts opts = { .loop = loop };
	char text[16] = "";

	CHECK(weft_go_with(&opts, close_as_the_loop_stops, loop) > 0);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
	CHECK_EQ(read(last_words, text, sizeof(text) - 1), 5);
	CHECK_STR(text, "\nbye\n");
	OK(close(last_words));
}

static int
close_stubborn(void *arg)
{
	static const char *const argv[] = { "sh", "-c", "trap '' TERM; echo; read word", NULL };
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE },
		                 .grace_ns = 20 * WEFT_MS };
	weft_child *child = NULL;

	OK(weft_child_open(argv, &opts, &child, WEFT_NEVER));
	CHECK_EQ(weft_wait_fd(weft_child_fd(child, 1), WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	weft_loop_shutdown(arg);
	weft_child_close(child); /* must kill the child after the grace */
	check_no_child();
	return 0;
}

TEST(child_that_ignores_sigterm_is_killed_although_the_loop_stops)
{
	weft_loop *loop = make();
	weft_go_opts opts = { .loop = loop };

	CHECK(weft_go_with(&opts, close_stubborn, loop) > 0);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

static int
leave_it_open(void *arg)
{
	*(weft_child **)arg = open_cat();
	return 0;
}

TEST(child_left_open_by_its_threadlet_ends_with_the_loop)
{
	weft_loop *loop = make();
	weft_child *child = NULL;
	weft_go_opts opts = { .loop = loop };

	CHECK(weft_go_with(&opts, leave_it_open, &child) > 0);
	OK(weft_loop_run(loop));
	CHECK_EQ(waitpid(-1, NULL, WNOHANG), 0); /* it is still running */
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	check_no_child();
	weft_child_close(child);
	OK(weft_loop_free(loop));
}
