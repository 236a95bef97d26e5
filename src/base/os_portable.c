/* os_portable.c - the real sys table with POSIX only: poll and pipe, no futex.
 *
 * Parking uses a condition variable chosen by the word's address.  Words that share a condition
 * variable cause each other spurious wakeups, which park() allows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/os.h"

#define LOTS 64 /* a power of two */

static struct lot {
	pthread_mutex_t lock;
	pthread_cond_t cond;
} lots[LOTS];
static pthread_once_t lots_once = PTHREAD_ONCE_INIT;

static void
make_lots(void)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (int i = 0; i < LOTS; i++) {
		(void)pthread_mutex_init(&lots[i].lock, NULL);
		(void)pthread_cond_init(&lots[i].cond, &attr);
	}
	(void)pthread_condattr_destroy(&attr);
}

static struct lot *
lot_of(const weft__a32 *word)
{
	uint64_t hash = (uint64_t)(uintptr_t)word * UINT64_C(0x9e3779b97f4a7c15);

	(void)pthread_once(&lots_once, make_lots);
	return &lots[hash >> 58];
}

static int
os_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	struct lot *lot = lot_of(word);
	struct timespec until = { .tv_sec = (time_t)(deadline_ns / WEFT_S),
		                  .tv_nsec = (long)(deadline_ns % WEFT_S) };
	int rc = -EAGAIN;

	(void)pthread_mutex_lock(&lot->lock);
	/* unpark() takes the lock too: either this load sees a change of the word made before
	 * unpark() was called, or unpark() finds this thread asleep. */
	if (weft__load(word, WEFT__RELAXED) != value)
		;
	else if (deadline_ns == WEFT_NEVER)
		rc = -pthread_cond_wait(&lot->cond, &lot->lock);
	else
		rc = -pthread_cond_timedwait(&lot->cond, &lot->lock, &until);
	(void)pthread_mutex_unlock(&lot->lock);
	return rc;
}

static void
os_unpark(weft__a32 *word)
{
	struct lot *lot = lot_of(word);

	(void)pthread_mutex_lock(&lot->lock);
	(void)pthread_cond_broadcast(&lot->cond);
	(void)pthread_mutex_unlock(&lot->lock);
}

static int
os_barrier(void)
{
	return -ENOSYS;
}

static int
os_random(void *buf, size_t size)
{
	char *at = buf;
	int fd = (int)weft__os_result(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
	int64_t n = fd;

	while (n >= 0 && size > 0) {
		n = weft__os_result(read(fd, at, size));
		if (n == 0)
			n = -EIO;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		} else if (n == -EINTR) {
			n = 0;
		}
	}
	if (fd >= 0)
		(void)close(fd);
	return n < 0 ? (int)n : 0;
}

static int
os_cpus(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count < 1 ? 1 : (int)count;
}

static int
os_other_threads(void)
{
	return -ENOSYS;
}

static int
os_set_cpus(const struct weft__cpus *cpus)
{
	(void)cpus;
	return -ENOSYS;
}

static int
os_get_cpus(struct weft__cpus *out)
{
	(void)out;
	return -ENOSYS;
}

/* A child forked between the call and the flags could inherit the descriptor; these systems
 * have nothing better. */
static int
owned(int fd)
{
	int rc;

	if (fd < 0)
		return fd;
	rc = weft__os_set_cloexec(fd);
	if (rc == 0)
		rc = weft__os_set_nonblock(fd);
	if (rc < 0)
		(void)close(fd);
	return rc < 0 ? rc : fd;
}

static int
os_pipe(int out[2])
{
	int fds[2];
	int rc = (int)weft__os_result(pipe(fds));
	int other;

	if (rc < 0)
		return rc;
	rc = owned(fds[0]);
	other = owned(fds[1]);
	if (rc < 0 || other < 0) {
		if (rc >= 0)
			(void)close(fds[0]);
		if (other >= 0)
			(void)close(fds[1]);
		return rc < 0 ? rc : other;
	}
	out[0] = fds[0];
	out[1] = fds[1];
	return 0;
}

static int
os_socket(int domain, int type, int protocol)
{
	return owned((int)weft__os_result(socket(domain, type, protocol)));
}

static int
os_accept(int fd)
{
	return owned((int)weft__os_result(accept(fd, NULL, NULL)));
}

static int
os_poll(struct pollfd *fds, size_t count, int64_t timeout_ns)
{
	return (int)weft__os_result(poll(fds, (nfds_t)count, weft__os_ms(timeout_ns)));
}

/* A process is identified by its pid, which stays valid until it is reaped. */
static int
os_pid_open(int pid)
{
	(void)pid;
	return -ENOSYS;
}

static int
os_reap(const struct weft__pid *pid, uint32_t how, int *out)
{
	return weft__os_waitid(P_PID, pid->pid, how, out);
}

static int
os_kill(const struct weft__pid *pid, int signo, bool group)
{
	return weft__os_kill(pid->pid, signo, group);
}

static size_t
os_stack_touched(void *mem, size_t size)
{
	(void)mem;
	(void)size;
	return 0;
}

static int
os_recvmmsg(int fd, struct weft__mmsg *msgs, uint32_t count, int flags)
{
	for (uint32_t i = 0; i < count; i++) {
		int64_t rc = weft__os_recvmsg(fd, &msgs[i].hdr, flags);

		msgs[i].error = rc < 0 ? (int32_t)rc : 0;
		if (rc < 0)
			return i > 0 ? (int)i : (int)rc;
		msgs[i].size = (uint32_t)rc;
	}
	return (int)count;
}

static int
os_sendmmsg(int fd, struct weft__mmsg *msgs, uint32_t count, int flags)
{
	for (uint32_t i = 0; i < count; i++) {
		int64_t rc = weft__os_sendmsg(fd, &msgs[i].hdr, flags);

		msgs[i].error = rc < 0 ? (int32_t)rc : 0;
		if (rc < 0)
			return i > 0 ? (int)i : (int)rc;
		msgs[i].size = (uint32_t)rc;
	}
	return (int)count;
}

static int
os_ignore_syn(int fd)
{
	(void)fd;
	return -ENOSYS;
}

/* clang-format off */
const struct weft__sys weft__sys_real = {
	WEFT__OS_POSIX,      .random = os_random, .park = os_park,
	.unpark = os_unpark, .barrier = os_barrier,
	.cpus = os_cpus,     .set_cpus = os_set_cpus,
	.get_cpus = os_get_cpus, .other_threads = os_other_threads,
	.pipe = os_pipe,
	.recvmmsg = os_recvmmsg, .sendmmsg = os_sendmmsg,
	.sendfile = NULL, .ignore_syn = os_ignore_syn,
	.socket = os_socket, .accept = os_accept, .poll = os_poll,
	.stack_guard = weft__os_stack_guard, .stack_touched = os_stack_touched,
	.pid_open = os_pid_open, .reap = os_reap, .kill = os_kill,
};

const struct weft__sys *weft__sys = &weft__sys_real;
