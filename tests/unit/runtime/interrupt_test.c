/* interrupt_test.c - signals end programs, even programs that do not cooperate.
 *
 * Each case runs as a separate process: this program with the name of the case as an argument.
 * It reports its progress on standard output.  The test checks its error output and its exit
 * status.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>
#include "test.h"

#define HOUR (3600 * WEFT_S)

static char output[16384];

struct child {
	int pid;
	int says;   /* its standard output, */
	int errors; /* and its standard error */
};

/* --- in the child ------------------------------------------------------- */

static void
say(const char *what)
{
	(void)!write(1, what, 1);
}

static int
compute_for_ever(void *arg)
{
	volatile unsigned long count = 0;

	(void)arg;
	say("r");
	for (;;)
		count++;
	return 0;
}

static int
work_for_ever(void *arg)
{
	int rc = weft_work(WEFT_CPU, compute_for_ever, NULL, WEFT_NEVER);

	(void)arg;
	say("w"); /* keeps this frame on the stack while it waits */
	return rc;
}

/* Inside a shield it does not notice a cancellation. */
static int
sleep_behind_a_shield(void *arg)
{
	weft_scope scope;

	(void)arg;
	weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER);
	say("r");
	(void)weft_sleep_until(WEFT_NEVER);
	return weft_scope_close(&scope);
}

static int
leave_a_sleeper(void *arg)
{
	weft_go_opts opts = { .name = "sleeper" };

	(void)arg;
	if (weft_go_with(&opts, sleep_behind_a_shield, NULL) < 0)
		return WEFT_EPROTO;
	(void)weft_sleep_until(WEFT_NEVER);
	return 0;
}

/* Reports when it is canceled, and continues. */
static int
ignore_cancellation(void *arg)
{
	say("r");
	(void)weft_sleep_until(WEFT_NEVER);
	return sleep_behind_a_shield(arg);
}

static int
end_well(void *arg)
{
	(void)arg;
	say("r");
	(void)weft_sleep_until(WEFT_NEVER);
	return 0;
}

static int
run_case(const char *what)
{
	weft_runtime_opts opts = { .loops = 2, .grace_ns = 20 * WEFT_MS };
	weft_threadlet_fn fn = end_well;

	if (strstr(what, "patient"))
		opts.grace_ns = HOUR;
	if (strstr(what, "work"))
		fn = work_for_ever;
	if (strstr(what, "compute"))
		fn = compute_for_ever;
	if (strstr(what, "shield"))
		fn = sleep_behind_a_shield;
	if (strstr(what, "sleeper"))
		fn = leave_a_sleeper;
	if (strstr(what, "ignore"))
		fn = ignore_cancellation;
	return weft_main(&opts, fn, NULL);
}

__attribute__((constructor)) static void
become_child(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--child") == 0)
		_exit(run_case(argv[2]));
}

/* --- in the parent ------------------------------------------------------ */

static struct child
start(const char *what)
{
	struct child child;
	int says[2], errors[2];

	CHECK_EQ(pipe(says), 0);
	CHECK_EQ(pipe(errors), 0);
	fflush(NULL);
	child.pid = fork();
	if (child.pid == 0) {
		(void)dup2(says[1], 1);
		(void)dup2(errors[1], 2);
		for (int i = 0; i < 2; i++) {
			(void)close(says[i]);
			(void)close(errors[i]);
		}
		(void)execl("/proc/self/exe", "interrupt_test", "--child", what, NULL);
		_exit(3);
	}
	CHECK_EQ(close(says[1]), 0);
	CHECK_EQ(close(errors[1]), 0);
	child.says = says[0];
	child.errors = errors[0];
	return child;
}

/* Waits until the child reports once more. */
static void
await(const struct child *child)
{
	char byte;

	CHECK_EQ(read(child->says, &byte, 1), 1);
}

static int
end(const struct child *child)
{
	int status;
	size_t size = 0;
	ssize_t n;

	while ((n = read(child->errors, output + size, sizeof(output) - 1 - size)) > 0)
		size += (size_t)n;
	output[size] = '\0';
	CHECK_EQ(waitpid(child->pid, &status, 0), child->pid);
	CHECK_EQ(close(child->says), 0);
	CHECK_EQ(close(child->errors), 0);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
run_and_signal(const char *what, int signo)
{
	struct child child = start(what);

	await(&child);
	CHECK_EQ(kill(child.pid, signo), 0);
	return end(&child);
}

TEST(program_that_ends_in_time_has_its_own_status_and_reports_nothing)
{
	CHECK_EQ(run_and_signal("well, patient", SIGINT), 0);
	CHECK_STR(output, "");
}

TEST(work_that_does_not_end_is_named_and_the_process_exits_by_the_signal)
{
	CHECK_EQ(run_and_signal("work", SIGINT), 128 + SIGINT);
	CHECK(strstr(output, "weft: loop weft-0: has not stopped by the deadline; "
	                     "threadlet main waits for work"));
	CHECK(strstr(output, ", in work_for_ever+0x"));
	CHECK(strstr(output, "weft: pool cpu: still runs compute_for_ever (interrupt_test.c:"));
}

/* TSan delays a signal until the thread next calls an intercepted function. */
TEST(threadlet_that_blocks_its_loop_is_named_with_its_code_location)
{
	CHECK_EQ(run_and_signal("compute", SIGTERM), 128 + SIGTERM);
	CHECK(strstr(output, "weft: loop weft-0: has not stopped by the deadline; "));
	if (TEST_TSAN)
		return;
	CHECK(strstr(output, "threadlet main does not suspend, in compute_for_ever"));
	CHECK(strstr(output, "(interrupt_test.c:"));
}

TEST(threadlet_in_a_shield_is_named_with_its_code_location)
{
	CHECK_EQ(run_and_signal("shield", SIGINT), 128 + SIGINT);
	CHECK(strstr(output, "threadlet main waits for sleep until, in sleep_behind_a_shield+0x"));
}

TEST(threadlet_left_behind_by_main_is_named_too)
{
	CHECK_EQ(run_and_signal("sleeper", SIGINT), 128 + SIGINT);
	CHECK(strstr(output, "threadlet sleeper waits for sleep until, "
	                     "in sleep_behind_a_shield+0x"));
}

TEST(second_interrupt_exits_at_once)
{
	struct child child = start("ignore, patient");

	await(&child);
	CHECK_EQ(kill(child.pid, SIGTERM), 0);
	await(&child); /* it was canceled, and the grace lasts an hour */
	CHECK_EQ(kill(child.pid, SIGINT), 0);
	CHECK_EQ(end(&child), 128 + SIGINT);
}
