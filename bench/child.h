/* child.h - the clients of a measured server: a process on the other core. */
#ifndef WEFT_BENCH_CHILD_H
#define WEFT_BENCH_CHILD_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench.h"

/* Like fork().  The child runs on the other core and is killed when its parent ends. */
static inline pid_t
child_fork(void)
{
	pid_t parent = getpid(), child = fork();

	BENCH_CHECK(child >= 0);
	if (child > 0)
		return child;
	BENCH_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	if (getppid() != parent)
		_exit(1);
	bench_pin(BENCH_OTHER_CORE);
	return 0;
}

static inline void
child_wait(pid_t child)
{
	int status = 0;

	BENCH_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

#endif
