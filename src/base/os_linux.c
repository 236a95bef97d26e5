/* os_linux.c - the real sys table on Linux: futex, epoll, eventfd, cgroups. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/build.h"
#include "base/os.h"

#define SLICE_NS (20 * WEFT_MS)

static struct timespec
to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / WEFT_S), .tv_nsec = (long)(ns % WEFT_S) };
}

static int
os_random(void *buf, size_t size)
{
	char *at = buf;

	while (size > 0) {
		int64_t n = weft__os_result(getrandom(at, size, 0));

		if (n < 0 && n != -EINTR)
			return (int)n;
		if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int
sleep_on(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	struct timespec until = to_timespec(deadline_ns);

	/* The only futex wait that takes an absolute monotonic time. */
	return (int)weft__os_result(
		syscall(SYS_futex, &word->raw, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value,
	                deadline_ns == WEFT_NEVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY));
}

/* ThreadSanitizer delays a signal until its thread makes a call that it intercepts, which futex
 * is not.  So under ThreadSanitizer the thread sleeps in slices, with such a call after each. */
static int
os_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	uint64_t slice_ns;
	int rc;

	if (!WEFT__TSAN)
		return sleep_on(word, value, deadline_ns);
	do {
		slice_ns = weft__os_now() + SLICE_NS;
		slice_ns = slice_ns < deadline_ns ? slice_ns : deadline_ns;
		rc = sleep_on(word, value, slice_ns);
		(void)usleep(0);
	} while (rc == -ETIMEDOUT && slice_ns < deadline_ns);
	return rc;
}

static void
os_unpark(weft__a32 *word)
{
	/* A private futex is identified by its address alone.  Waking no thread is not an
	 * error. */
	(void)syscall(SYS_futex, &word->raw, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
}

/* A process must register before it uses the barrier; the first call does so. */
static int
os_barrier(void)
{
	int rc = (int)weft__os_result(
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));

	if (rc != -EPERM)
		return rc;
	rc = (int)weft__os_result(
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
	return rc < 0 ? rc
	              : (int)weft__os_result(
			      syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
}

/* --- CPUs --------------------------------------------------------------- */

/* Whole CPUs that the quota in the file `path` (cpu.max: "200000 100000") allows; `most` if
 * there is no quota. */
static int
quota_of(const char *path, int most)
{
	char text[64];
	char *end;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	long quota, period;

	if (fd < 0)
		return most;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return most;
	text[n] = '\0';
	quota = strtol(text, &end, 10);
	if (end == text) /* "max" */
		return most;
	period = strtol(end, NULL, 10);
	if (quota <= 0 || period <= 0 || quota / period >= most)
		return most;
	return (int)(quota / period);
}

/* The smallest quota from this process's control group up to the root. */
static int
cgroup_quota(int most)
{
	char group[512], path[600];
	char *slash;
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, group, sizeof(group) - 1);

	if (fd >= 0)
		(void)close(fd);
	if (n <= 3 || memcmp(group, "0::", 3) != 0) /* not the unified hierarchy */
		return most;
	group[n] = '\0';
	group[strcspn(group, "\n")] = '\0';
	for (;;) {
		(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group + 3);
		most = quota_of(path, most);
		slash = strrchr(group + 3, '/');
		if (!slash)
			return most;
		*slash = '\0';
	}
}

static int
os_cpus(void)
{
	static weft__a32 known; /* the count plus one; read from the system once */
	uint32_t count = weft__load(&known, WEFT__RELAXED);
	long online;

	if (count > 0)
		return (int)count - 1;
	/* Not the affinity of the calling thread: other threads may have a different one. */
	online = sysconf(_SC_NPROCESSORS_ONLN);
	count = (uint32_t)cgroup_quota(online < 1 ? 1 : (int)online);
	weft__store(&known, count + 1, WEFT__RELAXED);
	return (int)count;
}

/* /proc/self/task has one link per thread, plus two of its own. */
static int
os_other_threads(void)
{
	struct stat folder;

	if (stat("/proc/self/task", &folder) < 0)
		return -errno;
	return (int)folder.st_nlink - 2 - (int)weft__load(&weft__os_own_threads, WEFT__RELAXED);
}

static int
os_set_cpus(const struct weft__cpus *cpus)
{
	cpu_set_t set;

	if (!cpus)
		return 0;
	CPU_ZERO(&set);
	for (size_t i = 0; i < WEFT__CPUS_MAX; i++)
		if (cpus->words[i / 64] >> (i % 64) & 1)
			CPU_SET(i, &set);
	return (int)weft__os_result(sched_setaffinity(0, sizeof(set), &set));
}

static int
os_get_cpus(struct weft__cpus *out)
{
	cpu_set_t set;
	int rc = (int)weft__os_result(sched_getaffinity(0, sizeof(set), &set));

	if (rc < 0)
		return rc;
	*out = (struct weft__cpus){ { 0 } };
	for (size_t i = 0; i < WEFT__CPUS_MAX; i++)
		if (CPU_ISSET(i, &set))
			out->words[i / 64] |= UINT64_C(1) << (i % 64);
	return 0;
}

/* --- descriptors -------------------------------------------------------- */

static int
os_pipe(int out[2])
{
	return (int)weft__os_result(pipe2(out, O_CLOEXEC | O_NONBLOCK));
}

static int
os_socket(int domain, int type, int protocol)
{
	return (int)weft__os_result(socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
}

static int
os_accept(int fd)
{
	return (int)weft__os_result(accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

static int
os_poll(struct pollfd *fds, size_t count, int64_t timeout_ns)
{
	struct timespec timeout = to_timespec((uint64_t)timeout_ns);

	return (int)weft__os_result(ppoll(fds, count, timeout_ns < 0 ? NULL : &timeout, NULL));
}

static int
os_epoll_create(void)
{
	return (int)weft__os_result(epoll_create1(EPOLL_CLOEXEC));
}

static int
os_epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
	return (int)weft__os_result(epoll_ctl(ep, op, fd, event));
}

static int
os_epoll_wait(int ep, struct epoll_event *events, int max, int64_t timeout_ns)
{
	static weft__a32 old_kernel; /* before 5.11: no epoll_pwait2 */
	struct timespec timeout = to_timespec((uint64_t)timeout_ns);
	int rc = -ENOSYS;

	if (timeout_ns <= 0) /* nothing to round, and the older call is cheaper */
		return (int)weft__os_result(epoll_wait(ep, events, max, timeout_ns < 0 ? -1 : 0));
	if (!weft__load(&old_kernel, WEFT__RELAXED))
		rc = (int)weft__os_result(epoll_pwait2(ep, events, max, &timeout, NULL));
	if (rc != -ENOSYS)
		return rc;
	weft__store(&old_kernel, 1, WEFT__RELAXED);
	return (int)weft__os_result(epoll_wait(ep, events, max, weft__os_ms(timeout_ns)));
}

static int
os_eventfd(void)
{
	return (int)weft__os_result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

/* --- io_uring ----------------------------------------------------------- */

static int
os_uring_setup(uint32_t entries, struct io_uring_params *params)
{
	return (int)weft__os_result(syscall(SYS_io_uring_setup, entries, params));
}

static int
os_uring_enter(int ring, uint32_t submit, uint32_t wait, uint32_t flags, const void *arg)
{
	return (int)weft__os_result(syscall(SYS_io_uring_enter, ring, submit, wait, flags, arg,
	                                    arg ? sizeof(struct io_uring_getevents_arg) : 0));
}

static int
os_uring_register(int ring, uint32_t what, void *arg, uint32_t count)
{
	return (int)weft__os_result(syscall(SYS_io_uring_register, ring, what, arg, count));
}

static void *
os_map(size_t size, int fd, uint64_t offset)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);

	if (mem == MAP_FAILED)
		return NULL;
	(void)madvise(mem, size, MADV_DONTFORK);
	return mem;
}

static void
os_unmap(void *mem, size_t size)
{
	if (mem)
		(void)munmap(mem, size);
}

/* A guard marker in the page table (Linux 6.13) does not split the mapping.  mprotect() splits
 * it twice per stack, and a process may have only 65,530 mappings by default. */
static int
os_stack_guard(void *mem, size_t size)
{
	const int guard_install = 102; /* MADV_GUARD_INSTALL */

	if (madvise(mem, size, guard_install) == 0)
		return 0;
	return weft__os_stack_guard(mem, size);
}

/* --- processes ---------------------------------------------------------- */

static int
os_pid_open(int pid)
{
	return (int)weft__os_result(syscall(SYS_pidfd_open, pid, 0));
}

static int
os_reap(const struct weft__pid *pid, uint32_t how, int *out)
{
	int rc = -EINVAL;

	if (pid->fd >= 0)
		rc = weft__os_waitid(P_PIDFD, pid->fd, how, out);
	if (rc == -EINVAL) /* before 5.4: by pid only */
		rc = weft__os_waitid(P_PID, pid->pid, how, out);
	return rc;
}

static int
os_kill(const struct weft__pid *pid, int signo, bool group)
{
	if (group || pid->fd < 0)
		return weft__os_kill(pid->pid, signo, group);
	return (int)weft__os_result(syscall(SYS_pidfd_send_signal, pid->fd, signo, NULL, 0));
}

/* A swapped-out page counts as unused here. */
static size_t
os_stack_touched(void *mem, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages;
	unsigned char in_use[256];

	for (size_t at = 0; at < size; at += pages * page) {
		pages = (size - at) / page;
		pages = pages < sizeof(in_use) ? pages : sizeof(in_use);
		if (pages == 0 || mincore((char *)mem + at, pages * page, in_use) < 0)
			return 0;
		for (size_t i = 0; i < pages; i++)
			if (in_use[i] & 1)
				return size - at - i * page;
	}
	return 0;
}

WEFT_STATIC_ASSERT(sizeof(struct weft__mmsg) == sizeof(struct mmsghdr)
                           && offsetof(struct weft__mmsg, size)
                                      == offsetof(struct mmsghdr, msg_len),
                   "one layout");

static int
os_recvmmsg(int fd, struct weft__mmsg *msgs, uint32_t count, int flags)
{
	return (int)weft__os_result(recvmmsg(fd, (void *)msgs, count, flags | MSG_DONTWAIT, NULL));
}

static int
os_sendmmsg(int fd, struct weft__mmsg *msgs, uint32_t count, int flags)
{
	return (int)weft__os_result(
		sendmmsg(fd, (void *)msgs, count, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

struct part {
	int fd, file;
	uint64_t offset;
	size_t size;
};

static int64_t
send_part(const void *arg)
{
	const struct part *part = arg;
	off_t offset = (off_t)part->offset;

	return weft__os_result(sendfile(part->fd, part->file, &offset, part->size));
}

static int64_t
os_sendfile(int fd, int file, uint64_t offset, size_t size)
{
	return weft__os_quietly(send_part, &(struct part){ fd, file, offset, size });
}

/* The filter sees a segment from its TCP header on; the flags are in byte 13. */
static int
os_ignore_syn(int fd)
{
	enum { FLAGS = 13, SYN = 2 };
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SYN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	return weft__os_set_option(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* clang-format off */
const struct weft__sys weft__sys_real = {
	WEFT__OS_POSIX,
	.random = os_random,
	.park = os_park,
	.unpark = os_unpark,
	.barrier = os_barrier,
	.cpus = os_cpus,
	.other_threads = os_other_threads,
	.set_cpus = os_set_cpus,
	.get_cpus = os_get_cpus,
	.pipe = os_pipe,
	.socket = os_socket,
	.accept = os_accept,
	.recvmmsg = os_recvmmsg,
	.sendmmsg = os_sendmmsg,
	.sendfile = os_sendfile,
	.ignore_syn = os_ignore_syn,
	.poll = os_poll,
	.epoll_create = os_epoll_create,
	.epoll_ctl = os_epoll_ctl,
	.epoll_wait = os_epoll_wait,
	.eventfd = os_eventfd,
	.pid_open = os_pid_open,
	.reap = os_reap,
	.kill = os_kill,
	.uring_setup = os_uring_setup,
	.uring_enter = os_uring_enter,
	.uring_register = os_uring_register,
	.map = os_map,
	.unmap = os_unmap,
	.stack_guard = os_stack_guard,
	.stack_touched = os_stack_touched,
};

const struct weft__sys *weft__sys = &weft__sys_real;
