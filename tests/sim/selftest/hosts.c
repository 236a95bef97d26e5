/* hosts.c - the two kernels that are compared.
 *
 * For each, the operations that the sys table has no call for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "sim/selftest/semantics.h"
#include "sim/run/sim.h"

/* The number that a descriptor gets after the `more` lowest free ones are used. */
static int
number_behind(const struct host *host, int more)
{
	int fds[8], last = -1;

	for (int i = 0; i <= more; i++) {
		fds[i] = host->open_file(1);
		last = fds[i] > last ? fds[i] : last;
	}
	for (int i = 0; i <= more; i++)
		(void)host->sys->close(fds[i]);
	return last;
}

/* --- the real kernel -------------------------------------------------- */

static int
real_dup(int fd)
{
	int rc = dup(fd);

	return rc < 0 ? -errno : rc;
}

static int
real_socketpair(int out[2])
{
	int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, out);

	return rc < 0 ? -errno : rc;
}

static int
real_open_file(size_t size)
{
	int fd = memfd_create("sim", MFD_CLOEXEC);

	return ftruncate(fd, (off_t)size) < 0 ? -errno : fd;
}

static void
real_allow_fds(int more)
{
	static struct rlimit before;
	struct rlimit limit;

	if (more < 0) {
		(void)setrlimit(RLIMIT_NOFILE, &before);
		return;
	}
	(void)getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	limit.rlim_cur = (rlim_t)number_behind(&host_real, more);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void
real_no_delay(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof(on));
}

static void
real_fail(const char *text)
{
	(void)printf("FAILED: %s\n", text);
	exit(1);
}

const struct host host_real = {
	.name = "real",
	.sys = &weft__sys_real,
	.settle_ns = 3000000,
	.dup = real_dup,
	.socketpair = real_socketpair,
	.open_file = real_open_file,
	.allow_fds = real_allow_fds,
	.no_delay = real_no_delay,
	.fail = real_fail,
};

/* --- the simulated kernel --------------------------------------------- */

static void
sim_allow_fds(int more)
{
	sim_limit_fds(more < 0 ? 1024 : number_behind(&host_simulated, more));
}

/* Nothing to do: delays are drawn from the seed. */
static void
sim_no_delay(int fd)
{
	(void)fd;
}

static void
sim_host_fail(const char *text)
{
	sim_fail("%s", text);
}

const struct host host_simulated = {
	.name = "simulated",
	.sys = &sim_sys,
	.settle_ns = UINT64_C(3000000000),
	.dup = sim_dup,
	.socketpair = sim_socketpair,
	.open_file = sim_open_file,
	.allow_fds = sim_allow_fds,
	.no_delay = sim_no_delay,
	.fail = sim_host_fail,
};
