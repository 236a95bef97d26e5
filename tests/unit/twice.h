/* twice.h - tests of processes, with pidfds and without.
 *
 * A test marked TEST_TWICE runs a second time as if the kernel had no pidfds, so that the
 * library learns of the end of a process by SIGCHLD.
 */
#ifndef WEFT_TEST_TWICE_H
#define WEFT_TEST_TWICE_H

#include <errno.h>
#include <sys/wait.h>
#include "base/sys.h"
#include "test.h"

static inline int
no_pid_open(int pid)
{
	(void)pid;
	return -ENOSYS;
}

static inline void
run_by_sigchld(void (*run)(void))
{
	static struct weft__sys without;
	const struct weft__sys *with = weft__sys;

	without = *with;
	without.pid_open = no_pid_open;
	weft__sys = &without;
	run();
	weft__sys = with;
}

#define TEST_TWICE(name)                    \
	static void run_##name(void);       \
	TEST(name)                          \
	{                                   \
		run_##name();               \
	}                                   \
	TEST(name##_by_sigchld)             \
	{                                   \
		run_by_sigchld(run_##name); \
	}                                   \
	static void run_##name(void)

static inline void
check_no_child(void)
{
	int status;

	CHECK_EQ(waitpid(-1, &status, WNOHANG), -1);
	CHECK_EQ(errno, ECHILD);
}

#endif
