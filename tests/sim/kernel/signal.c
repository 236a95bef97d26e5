/* signal.c - signals of the simulated process.  There are no other processes.
 *
 * A signal is pending until a thread reaches a scheduling point; there it is delivered to that
 * thread, in the middle of what the thread does.
 *
 *   1. A thread that runs a signal handler is not interrupted by another signal.
 *   2. A signal without a handler would end the process: the run fails.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include "sim/kernel/signal.h"
#include "sim/kernel/thread.h"
#include "sim/run/fault.h"
#include "sim/run/trace.h"

enum { SIGNALS = 64 };

uint64_t sim_signals_pending;
static void (*taken[SIGNALS])(int signo);

void
sim_signals_reset(void)
{
	sim_signals_pending = 0;
	memset(taken, 0, sizeof(taken));
}

void
sim_signals_deliver(void)
{
	struct sim_thread *self = sim_thread_current();
	int signo = __builtin_ctzll(sim_signals_pending);

	if (self->in_handler)
		return;
	sim_signals_pending &= sim_signals_pending - 1;
	if (!taken[signo])
		sim_fail("signal %d ends the process", signo);
	self->in_handler = true;
	taken[signo](signo);
	self->in_handler = false;
}

void
sim_kill(int signo)
{
	sim_signals_pending |= UINT64_C(1) << signo;
	while (sim_signals_pending)
		sim_point(SIM_MEET_WEIGHT);
}

int
sim_signal_take(int signo, void (*fn)(int signo), struct sigaction *before)
{
	int rc;

	sim_point(SIM_CALL_WEIGHT);
	rc = sim_fault_errno(SIM_CALL_signal_take);
	sim_check(signo > 0 && signo < SIGNALS && !taken[signo]);
	if (rc == 0) {
		memset(before, 0, sizeof(*before));
		taken[signo] = fn;
	}
	sim_trace(SIM_CALL_signal_take, signo, 0, rc);
	return rc;
}

int
sim_signal_give(int signo, const struct sigaction *before)
{
	(void)before;
	sim_point(SIM_CALL_WEIGHT);
	sim_check(taken[signo] != NULL);
	taken[signo] = NULL;
	sim_trace(SIM_CALL_signal_give, signo, 0, 0);
	return 0;
}

/* --- processes ---------------------------------------------------------- */

int
sim_spawn(const struct weft__spawn *spawn)
{
	(void)spawn;
	return -ENOSYS;
}

int
sim_pid_open(int pid)
{
	(void)pid;
	return -ENOSYS;
}

int
sim_reap(const struct weft__pid *pid, uint32_t how, int *out)
{
	(void)pid;
	(void)how;
	(void)out;
	return -ECHILD;
}

int
sim_process_kill(const struct weft__pid *pid, int signo, bool group)
{
	(void)pid;
	(void)signo;
	(void)group;
	return -ESRCH;
}
