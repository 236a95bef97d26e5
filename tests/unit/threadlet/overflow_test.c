/* overflow_test.c - stack overflows of threadlets are reported; other faults are not.
 *
 * Each case runs as a separate process: this program with the name of the case as an argument.
 * The test checks its output and how it ended.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/debug.h>
#include "unit/threadlet/sched.h"
#include "unit/threadlet/unprobed.h"

enum { NEIGHBORS = 16 };

static char output[16384];

/* --- in the child ------------------------------------------------------- */

static __attribute__((noinline)) int
dig(int depth)
{
	volatile char room[256];

	room[0] = (char)depth;
	return depth == 0 ? 0 : dig(depth + 1) + room[0];
}

static int
overflow(void *arg)
{
	(void)arg;
	OK(weft_yield());
	return dig(1);
}

static int
overflow_at_once(void *arg)
{
	volatile char room[1 << 20]; /* a frame larger than the stack and its guard */

	(void)arg;
	room[0] = 1;
	return room[0];
}

/* The last frame ends 8 KiB, or 56 KiB, below the stack. */
static int
overflow_by_small_frames(void *arg)
{
	(void)arg;
	_exit(dig_12_kib(5) & 0); /* must not be reached */
}

static int
overflow_by_large_frames(void *arg)
{
	(void)arg;
	_exit(dig_60_kib(1) & 0);
}

static int
sleep_forever(void *arg)
{
	(void)arg;
	return weft_sleep_until(WEFT_NEVER);
}

static int
stray(void *arg)
{
	static volatile uintptr_t nowhere = 8;

	(void)arg;
	*(volatile int *)nowhere = 1;
	return 0;
}

/* Writes into the guard from a frame that is far from the end of the stack. */
static int
stray_into_guard(void *arg)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	volatile char *at = (volatile char *)here;

	(void)arg;
	for (;; at -= 4096)
		*at = 0;
	return 0;
}

static void
print_report(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind != WEFT_REPORT_OVERFLOW)
		return;
	(void)!write(1, "hook: ", 6);
	(void)!write(1, report->name, strlen(report->name));
	(void)!write(1, report->text, strlen(report->text));
}

static void
on_signal(int number)
{
	(void)number;
	(void)!write(1, "own handler", 11);
	_exit(33);
}

static void
catch_oneself(void)
{
	struct sigaction mine = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	if (sigaction(SIGSEGV, &mine, NULL) < 0)
		_exit(2);
}

static void
run_in_child(weft_threadlet_fn fn, bool started)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop, .name = "digger" };
	weft_go_opts neighbor = { .loop = loop, .background = true };

	for (int i = 0; i < NEIGHBORS; i++) /* their stacks are below */
		if (weft_go_with(&neighbor, sleep_forever, NULL) < 0)
			_exit(2);
	if (weft_catch_overflow() < 0 || weft_catch_overflow() < 0
	    || weft_go_with(&opts, fn, NULL) < 0)
		_exit(2);
	if (started)
		(void)weft_loop_start(loop);
	else
		(void)weft_loop_run(loop);
	(void)weft_loop_wait_stopped(loop, WEFT_NEVER);
}

static void
child(const char *what)
{
	struct rlimit none = { 0, 0 };
	weft_hooks hooks = { .on_report = print_report };

	(void)setrlimit(RLIMIT_CORE, &none);
	if (strstr(what, "hook") && weft_set_hooks(&hooks) < 0)
		_exit(2);
	if (strstr(what, "handler"))
		catch_oneself();
	if (strstr(what, "main")) {
		(void)weft_main(NULL, strstr(what, "stray") ? stray : overflow, NULL);
	} else if (strstr(what, "sent")) {
		(void)weft_catch_overflow();
		(void)raise(SIGSEGV);
	} else if (strstr(what, "guard")) {
		run_in_child(stray_into_guard, false);
	} else if (strstr(what, "stray")) {
		run_in_child(stray, false);
	} else if (strstr(what, "12 KiB")) {
		run_in_child(overflow_by_small_frames, false);
	} else if (strstr(what, "60 KiB")) {
		run_in_child(overflow_by_large_frames, false);
	} else if (strstr(what, "large")) {
		run_in_child(overflow_at_once, false);
	} else {
		run_in_child(overflow, strstr(what, "thread"));
	}
	_exit(0);
}

__attribute__((constructor)) static void
become_child(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--child") == 0)
		child(argv[2]);
}

/* --- in the parent ------------------------------------------------------ */

/* Runs a case.  Its output is in `output`.  Returns its wait status. */
static int
run(const char *what)
{
	int status, fds[2];
	size_t size = 0;
	ssize_t n;

	OK(pipe(fds));
	fflush(NULL);
	if (fork() == 0) {
		(void)dup2(fds[1], 1);
		(void)dup2(fds[1], 2);
		(void)close(fds[0]);
		(void)close(fds[1]);
		(void)execl("/proc/self/exe", "overflow_test", "--child", what, NULL);
		_exit(3);
	}
	OK(close(fds[1]));
	while ((n = read(fds[0], output + size, sizeof(output) - 1 - size)) > 0)
		size += (size_t)n;
	output[size] = '\0';
	OK(close(fds[0]));
	CHECK(wait(&status) > 0);
	return status;
}

/* The process must die from the signal.  Sanitizers have their own handler, which exits. */
static void
check_died(int status)
{
	CHECK(WIFSIGNALED(status)
	      || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 2
	          && WEXITSTATUS(status) != 33));
}

static void
check_told(const char *before)
{
	const char *at = strstr(output, "stack overflow in threadlet ");

	CHECK(at != NULL);
	CHECK(strstr(output, before) != NULL && strstr(output, before) < at);
	CHECK(strstr(at, " (digger), started at run_in_child+0x"));
	CHECK(strstr(at, " with the function overflow"));
	CHECK(strstr(at, " (overflow_test.c:"));
	CHECK(strstr(at, "65536 bytes, about "));
	CHECK(!strstr(at + 1, "stack overflow in threadlet "));
}

TEST(overflow_is_reported_to_the_hook_and_ends_the_process)
{
	check_died(run("hook"));
	check_told("hook: digger");
}

TEST(overflow_without_a_hook_is_reported_on_standard_error)
{
	check_died(run("plain"));
	check_told("weft: ");
}

TEST(overflow_on_a_loop_thread_is_reported_too)
{
	check_died(run("thread"));
	check_told("weft: ");
}

TEST(overflow_report_names_the_function_and_line_where_it_happened)
{
	const char *at;

	check_died(run("plain"));
	at = strstr(output, " calls deep, in dig");
	CHECK(at != NULL);
	CHECK(strstr(at, " (overflow_test.c:"));
}

TEST(one_frame_larger_than_the_guard_is_an_overflow)
{
	check_died(run("large"));
	check_told("weft: ");
}

/* The frames are compiled without -fstack-clash-protection, so only the guard catches them. */
TEST(frames_of_less_than_64_kib_do_not_step_over_the_guard)
{
	check_died(run("frames of 12 KiB"));
	check_told("weft: ");
	check_died(run("frames of 60 KiB"));
	check_told("weft: ");
}

TEST(other_faults_are_not_reported_as_overflows)
{
	check_died(run("hook, stray"));
	CHECK(!strstr(output, "stack overflow in threadlet"));
	check_died(run("guard"));
	CHECK(!strstr(output, "stack overflow in threadlet"));
	check_died(run("sent"));
	CHECK(!strstr(output, "stack overflow in threadlet"));
}

TEST(own_signal_handler_gets_other_faults_and_runs_after_an_overflow_report)
{
	CHECK_EQ(WEXITSTATUS(run("stray, handler")), 33);
	CHECK(!strstr(output, "stack overflow in threadlet"));
	CHECK(strstr(output, "own handler"));
	CHECK_EQ(WEXITSTATUS(run("sent, handler")), 33);
	CHECK(strstr(output, "own handler"));
	CHECK_EQ(WEXITSTATUS(run("overflow, handler")), 33);
	check_told("weft: ");
	CHECK(strstr(output, "own handler"));
}

/* A sanitizer's handler counts as the program's own. */
TEST(overflow_under_weft_main_is_reported)
{
	int status = run("main");

	check_died(status);
	if (WIFSIGNALED(status) && !TEST_TSAN)
		CHECK(strstr(output, "stack overflow in threadlet "));
}

/* The threads of weft_main() have no signal stack for that handler, unless a sanitizer provides
 * one. */
TEST(weft_main_does_not_replace_a_sigsegv_handler_of_the_program)
{
	int status = run("main, handler");

	CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 33);
	CHECK(!strstr(output, "stack overflow in threadlet "));
	CHECK_EQ(WEXITSTATUS(run("main, handler, stray")), 33);
}
