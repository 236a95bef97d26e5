/* process.c - the failing sys table's calls for signals and processes.
 *
 * An injected error about a process is made true: a process that is reported as gone is killed,
 * and a process that is reported as not our child was reaped before.
 */
#include <errno.h>
#include <signal.h>
#include "base/sys.h"
#include "strike.h"

#define real   weft__sys_real
#define strike fault_strike

static int
on_signal_take(int signo, void (*fn)(int signo), struct sigaction *before)
{
	int rc = strike(FAULT_signal_take);

	return rc ? rc : real.signal_take(signo, fn, before);
}

/* The signal is restored even if the call reports an error. */
static int
on_signal_give(int signo, const struct sigaction *before)
{
	int rc = strike(FAULT_signal_give);
	int given = real.signal_give(signo, before);

	return rc ? rc : given;
}

static int
on_spawn(const struct weft__spawn *spawn)
{
	int rc = strike(FAULT_spawn);

	return rc ? rc : real.spawn(spawn);
}

static void
kill_and_reap(const struct weft__pid *pid)
{
	int status;

	(void)real.kill(pid, SIGKILL, false);
	while (real.reap(pid, WEFT__REAP_WAIT, &status) == -EINTR)
		continue;
}

static int
on_pid_open(int pid)
{
	int rc = strike(FAULT_pid_open);

	if (rc == -ESRCH)
		kill_and_reap(&(struct weft__pid){ .pid = pid, .fd = -1 });
	return rc ? rc : real.pid_open(pid);
}

static int
on_reap(const struct weft__pid *pid, uint32_t how, int *out)
{
	int rc = strike(FAULT_reap);

	if (rc == -ECHILD)
		kill_and_reap(pid);
	return rc ? rc : real.reap(pid, how, out);
}

static int
on_kill(const struct weft__pid *pid, int signo, bool group)
{
	int rc = strike(FAULT_kill);

	if (rc == -ESRCH)
		kill_and_reap(pid);
	return rc ? rc : real.kill(pid, signo, group);
}

void
fault_wrap_processes(struct weft__sys *table)
{
	table->signal_take = on_signal_take;
	table->signal_give = on_signal_give;
	table->spawn = on_spawn;
	table->pid_open = on_pid_open;
	table->reap = on_reap;
	table->kill = on_kill;
}
