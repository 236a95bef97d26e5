/* report_test.c - what a program writes to standard error when something fails.
 *
 * Each case is its own process: this program with the name of the case.  The tests check its
 * standard error and its exit status.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/weft.h>
#include "test.h"

static char output[16384];

/* --- in the child ------------------------------------------------------- */

static int
fail_with_text(void *arg)
{
	(void)arg;
	return weft_fail(WEFT_ENOENT, "load %s: no such file", "settings");
}

static int
fail_with_long_text(void *arg)
{
	char text[2000];

	(void)arg;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	return weft_fail(WEFT_EPROTO, "%s", text);
}

static int
fail_in_another(void *arg)
{
	(void)arg;
	if (weft_go(fail_with_text, NULL) < 0)
		return WEFT_EPROTO;
	return weft_yield();
}

static int
misuse(void *arg)
{
	(void)arg;
	(void)weft_set_hooks(NULL);
	return 0;
}

static void
print_kind(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind == WEFT_REPORT_FAILED)
		(void)!write(2, "hook\n", 5);
}

static void
print_report(void *arg, const weft_report *report)
{
	(void)arg;
	(void)!write(2, "hook: ", 6);
	weft_report_print(report);
}

static int
run_case(const char *what)
{
	weft_hooks hooks = { .silent = strcmp(what, "silent") == 0 };
	weft_runtime_opts opts = { .loops = 1 };
	weft_threadlet_fn fn = fail_with_text;

	if (strcmp(what, "hook") == 0)
		hooks.on_report = print_kind;
	if (strcmp(what, "forward") == 0)
		hooks.on_report = print_report;
	if (weft_set_hooks(&hooks) < 0)
		return 2;
	if (strcmp(what, "long") == 0)
		fn = fail_with_long_text;
	if (strcmp(what, "lone") == 0)
		fn = fail_in_another;
	if (strcmp(what, "misuse") == 0)
		fn = misuse;
	if (strcmp(what, "start") == 0)
		opts.loops = 5000;
	return weft_main(&opts, fn, NULL);
}

__attribute__((constructor)) static void
become_child(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--child") == 0)
		_exit(run_case(argv[2]));
}

/* --- in the parent ------------------------------------------------------ */

/* Run a case and store its standard error in `output`.  Returns its wait status. */
static int
run(const char *what)
{
	int status, fds[2];
	size_t size = 0;
	ssize_t n;

	CHECK_EQ(pipe(fds), 0);
	fflush(NULL);
	if (fork() == 0) {
		(void)dup2(fds[1], 2);
		(void)close(fds[0]);
		(void)close(fds[1]);
		(void)execl("/proc/self/exe", "report_test", "--child", what, NULL);
		_exit(3);
	}
	CHECK_EQ(close(fds[1]), 0);
	while ((n = read(fds[0], output + size, sizeof(output) - 1 - size)) > 0)
		size += (size_t)n;
	output[size] = '\0';
	CHECK_EQ(close(fds[0]), 0);
	CHECK(wait(&status) > 0);
	return status;
}

TEST(program_that_fails_prints_the_reason_in_one_line)
{
	CHECK_EQ(WEXITSTATUS(run("main")), 1);
	CHECK_STR(output, "weft: threadlet main failed: load settings: no such "
	                  "file (WEFT_ENOENT)\n");
}

TEST(unnamed_threadlet_that_fails_is_reported_by_its_function)
{
	CHECK_EQ(WEXITSTATUS(run("lone")), 0);
	CHECK(strstr(output, "weft: threadlet fail_with_text (report_test.c:") == output);
	CHECK(strstr(output, ") failed: load settings: no such file (WEFT_ENOENT)\n"));
}

TEST(long_text_is_one_line_and_ends_with_the_error)
{
	const char *end = " (WEFT_EPROTO)\n";

	CHECK_EQ(WEXITSTATUS(run("long")), 1);
	CHECK(strlen(output) > 1023);
	CHECK_STR(output + strlen(output) - strlen(end), end);
	CHECK(strchr(output, '\n') == output + strlen(output) - 1);
}

TEST(program_that_cannot_start_prints_the_reason)
{
	CHECK_EQ(WEXITSTATUS(run("start")), 1);
	CHECK_STR(output, "weft: weft_runtime_new: more than 1,024 loops\n");
}

TEST(hook_replaces_the_line)
{
	CHECK_EQ(WEXITSTATUS(run("hook")), 1);
	CHECK_STR(output, "hook\n");
}

TEST(hook_can_print_as_the_library_does)
{
	CHECK_EQ(WEXITSTATUS(run("forward")), 1);
	CHECK_STR(output, "hook: weft: threadlet main failed: load settings: "
	                  "no such file (WEFT_ENOENT)\n");
}

TEST(silent_program_prints_nothing)
{
	CHECK_EQ(WEXITSTATUS(run("silent")), 1);
	CHECK_STR(output, "");
}

TEST(misuse_is_reported_at_the_line_of_the_call)
{
	int status = run("misuse");

	if (!test_misuse_aborts)
		return; /* in this build misuse only returns an error */
	CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
	CHECK(strstr(output, "weft: misuse at misuse+0x") == output);
	CHECK(strstr(output, " (report_test.c:"));
	CHECK(strstr(output, "): weft_set_hooks: hooks is NULL"));
}
