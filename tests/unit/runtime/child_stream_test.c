/* child_stream_test.c - talking to child processes over streams. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include "unit/threadlet/sched.h"

static void
check_no_child(void)
{
	int status;

	CHECK_EQ(waitpid(-1, &status, WNOHANG), -1);
	CHECK_EQ(errno, ECHILD);
}

static weft_child *
open_shell(const char *script)
{
	weft_child_opts opts = { .std = { WEFT_CHILD_PIPE, WEFT_CHILD_PIPE } };
	const char *const argv[] = { "sh", "-c", script, NULL };
	weft_child *child = NULL;

	OK(weft_child_open(argv, &opts, &child, WEFT_NEVER));
	return child;
}

/* --- talking ------------------------------------------------------------- */

#define MUCH ((size_t)1 << 20)

struct talk {
	weft_child *child;
	size_t got;
	int ended;
};

static int
feed(void *arg)
{
	struct talk *talk = arg;
	weft_stream *in = weft_child_stream(talk->child, 0);
	static char bytes[MUCH];

	memset(bytes, 'x', sizeof(bytes));
	CHECK_EQ(weft_stream_write(in, bytes, MUCH, WEFT_NEVER), MUCH);
	weft_stream_close(in); /* the child reads the end */
	CHECK(weft_child_stream(talk->child, 0) == NULL);
	return 0;
}

static int
talk_to_cat(void *arg)
{
	struct talk talk = { .child = open_shell("cat; exit 3") };
	weft_stream *out = weft_child_stream(talk.child, 1);
	char buf[4096];
	ssize_t n;
	int status;

	(void)arg;
	CHECK(out != NULL && out == weft_child_stream(talk.child, 1));
	CHECK_EQ(weft_child_fd(talk.child, 1), WEFT_EINVAL);
	CHECK(weft_child_stream(talk.child, 2) == NULL);
	CHECK(weft_go(feed, &talk) > 0);
	while ((n = weft_stream_read(out, buf, sizeof(buf), WEFT_NEVER)) > 0)
		talk.got += (size_t)n;
	CHECK_EQ(n, 0);
	CHECK_EQ(talk.got, MUCH);
	OK(weft_child_wait(talk.child, &status, WEFT_NEVER));
	CHECK_EQ(WEXITSTATUS(status), 3);
	weft_child_close(talk.child);
	return 0;
}

TEST(child_is_written_and_read_over_streams)
{
	run_threadlet(talk_to_cat, NULL);
	check_no_child();
}

/* --- the end of a child -------------------------------------------------- */

static int
read_to_the_end(void *arg)
{
	struct talk *talk = arg;
	char buf[8];
	ssize_t n = weft_stream_read(weft_child_stream(talk->child, 1), buf, sizeof(buf),
	                             WEFT_NEVER);

	CHECK(n == 0 || n == WEFT_ESHUTDOWN); /* the stream may see the end first */
	talk->ended++;
	return 0;
}

static int
write_to_the_end(void *arg)
{
	struct talk *talk = arg;
	static char bytes[MUCH];
	ssize_t n = weft_stream_write(weft_child_stream(talk->child, 0), bytes, MUCH, WEFT_NEVER);

	CHECK(n == WEFT_EPIPE || n == WEFT_ESHUTDOWN);
	talk->ended++;
	return 0;
}

static int
close_while_used(void *arg)
{
	struct talk talk = { .child = open_shell("exec sleep 100") };
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_go_with(&(weft_go_opts){ .scope = &scope }, read_to_the_end, &talk) > 0);
	CHECK(weft_go_with(&(weft_go_opts){ .scope = &scope }, write_to_the_end, &talk) > 0);
	weft_yield();
	weft_yield();
	weft_child_close(talk.child);
	OK(weft_scope_close(&scope));
	CHECK_EQ(talk.ended, 2);
	return 0;
}

TEST(closing_a_child_ends_reads_and_writes_on_its_streams)
{
	run_threadlet(close_while_used, NULL);
	check_no_child();
}

/* The child no longer reads: the write fails, and SIGPIPE does not kill this process. */
static int
write_to_one_that_ended(void *arg)
{
	struct sigaction before, usual = { .sa_handler = SIG_DFL };
	weft_child *child = open_shell("exit 0");
	int status;

	(void)arg;
	OK(sigaction(SIGPIPE, &usual, &before));
	OK(weft_child_wait(child, &status, WEFT_NEVER));
	CHECK_EQ(weft_stream_write(weft_child_stream(child, 0), "x", 1, WEFT_NEVER), WEFT_EPIPE);
	OK(sigaction(SIGPIPE, &before, NULL));
	weft_child_close(child);
	return 0;
}

TEST(write_to_a_child_that_has_exited_fails_without_sigpipe)
{
	run_threadlet(write_to_one_that_ended, NULL);
	check_no_child();
}

static int
use_none(void *arg)
{
	weft_child *child = open_shell("cat");

	(void)arg;
	CHECK(weft_child_stream(child, 0) != NULL); /* never used */
	CHECK(weft_child_fd(child, 1) >= 0);
	weft_child_close(child);
	return 0;
}

TEST(unused_stream_is_closed_with_its_child)
{
	run_threadlet(use_none, NULL);
	check_no_child();
}
