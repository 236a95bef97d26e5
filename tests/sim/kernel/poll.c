/* poll.c - poll, and what its sleep has in common with epoll's.
 *
 * A thread that sleeps in poll rechecks all its descriptors whenever any file changes: there
 * are few such threads, and a check is cheap.
 *
 *   1. An injected signal ends a sleep, but what is ready is still reported.
 *
 * Negative numbers are skipped and unknown ones give POLLNVAL, as in Linux.  Unlike in Linux, a
 * number that is closed during the sleep also gives POLLNVAL.
 */
#include <errno.h>
#include <poll.h>
#include "sim/kernel/clock.h"
#include "sim/run/fault.h"
#include "sim/kernel/kernel.h"
#include "sim/run/schedule.h"

uint64_t
sim_wait_end_ns(int64_t timeout_ns)
{
	uint64_t ns = (uint64_t)timeout_ns;

	if (timeout_ns < 0 || ns >= WEFT_NEVER - sim_clock.now_ns)
		return WEFT_NEVER;
	return sim_clock.now_ns + ns;
}

uint64_t
sim_wait_signal_ns(enum sim_call call)
{
	struct sim_fault *hit = sim_fault(SIM_EINTR, call);

	if (!hit)
		return WEFT_NEVER;
	return sim_clock.now_ns + (hit->bits & 1 ? 0 : sim_fault_delay_ns(hit, WEFT_S));
}

static const char poll_channel; /* all threads in poll sleep here, and recheck when woken */

void
sim_poll_wake(void)
{
	sim_wake_all(&poll_channel, 0);
}

static int
poll_look(struct pollfd *fds, size_t count)
{
	int found = 0;

	for (size_t i = 0; i < count; i++) {
		struct sim_file *file = sim_fd_file(fds[i].fd);
		uint32_t ready = POLLNVAL;

		if (file)
			ready = file->ops->ready(file)
			        & ((uint32_t)(uint16_t)fds[i].events | POLLERR | POLLHUP);
		if (fds[i].fd < 0)
			ready = 0;
		fds[i].revents = (short)ready;
		found += ready != 0;
	}
	return found;
}

int
sim_poll_sleep(struct pollfd *fds, size_t count, int64_t timeout_ns)
{
	struct sim_wait wait = { .channel = &poll_channel,
		                 .what = "poll, first of",
		                 .what_arg = count ? fds[0].fd : -1,
		                 .spurious_ns = WEFT_NEVER };
	int rc = poll_look(fds, count);

	if (rc > 0 || timeout_ns == 0)
		return rc;
	wait.deadline_ns = sim_wait_end_ns(timeout_ns);
	wait.interrupt_ns = sim_wait_signal_ns(SIM_CALL_poll);
	do {
		int woken = sim_wait(&wait);

		rc = poll_look(fds, count);
		if (rc == 0 && woken == -EINTR)
			rc = -EINTR;
		if (woken == -ETIMEDOUT)
			break;
	} while (rc == 0);
	return rc;
}
