/* table.c - the sys table of the simulated world.
 *
 * Every call begins with enter(): a scheduling point that takes some time and may end the call
 * with an error from errnos.def.  Every call ends with a line of the trace.  The code in
 * between is in the other files.
 *
 *   1. Between enter() and the trace no other thread runs, unless the call sleeps.
 *   2. close closes, whatever it returns.
 *   3. A failed call changes nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/uio.h>
#include <weft/addr.h>
#include "sim/kernel/clock.h"
#include "sim/kernel/dgram.h"
#include "sim/run/fault.h"
#include "sim/kernel/kernel.h"
#include "sim/kernel/heap.h"
#include "sim/kernel/signal.h"
#include "sim/run/rng.h"
#include "sim/run/schedule.h"
#include "sim/run/sim.h"
#include "sim/kernel/socket.h"
#include "sim/kernel/stack.h"
#include "sim/run/trace.h"

/* As after a suspend of the machine: for its threads no time has passed. */
static void
jump(enum sim_call call)
{
	struct sim_fault *hit = sim_fault(SIM_CLOCK, call);

	if (hit)
		sim_clock_pass(sim_fault_delay_ns(hit, 86400 * WEFT_S));
}

static int
enter(enum sim_call call)
{
	int rc;

	sim_point(SIM_CALL_WEIGHT);
	rc = sim_fault_eintr(call);
	return rc < 0 ? rc : sim_fault_errno(call);
}

static int64_t
leave(enum sim_call call, int64_t a, int64_t b, int64_t rc)
{
	sim_trace(call, a, b, rc);
	return rc;
}

/* --- clock, random bytes, process ------------------------------------- */

static uint64_t
sys_now(void)
{
	sim_point(1);
	jump(SIM_CALL_now);
	sim_clock_pass(sim_clock.read_ns);
	(void)leave(SIM_CALL_now, 0, 0, 0);
	return sim_clock.now_ns;
}

static int
sys_random(void *buf, size_t size)
{
	int rc = enter(SIM_CALL_random);

	for (size_t i = 0; rc == 0 && i < size; i++)
		((unsigned char *)buf)[i] = (unsigned char)sim_draw(SIM_DRAW_BYTES);
	return (int)leave(SIM_CALL_random, (int64_t)size, 0, rc);
}

/* Not in the trace and without faults: a library that registers once per process would
 * otherwise make the run of the first seed different. */
static int
sys_at_fork(void (*fn)(void))
{
	(void)fn;
	return 0;
}

/* A scenario selects its backend itself. */
static const char *
sys_env(const char *name)
{
	(void)name;
	return NULL;
}

static int
sys_cpus(void)
{
	static const int counts[] = { 0, 1, 1, 2, 2, 4, 8, 64 };

	sim_point(1);
	return (int)leave(SIM_CALL_cpus, 0, 0, counts[sim_draw_at(SIM_CALL_cpus, 0) % 8]);
}

/* Only the scenario knows which threads may still call the library. */
/* Where a thread runs makes no difference here. */
static int
sys_other_threads(void)
{
	return -ENOSYS;
}

static int
sys_set_cpus(const struct weft__cpus *cpus)
{
	sim_point(1);
	return (int)leave(SIM_CALL_set_cpus, cpus != NULL, 0, 0);
}

/* --- descriptors ------------------------------------------------------ */

static int
sys_close(int fd)
{
	int rc;

	sim_point(SIM_CALL_WEIGHT);
	(void)sim_fd_close(fd);
	rc = sim_fault_errno(SIM_CALL_close);
	return (int)leave(SIM_CALL_close, fd, 0, rc);
}

static int64_t
socket_read(int fd, void *buf, size_t size)
{
	struct iovec part = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };

	return sim_sock_recv(SIM_CALL_read, fd, &msg, 0);
}

static int64_t
socket_write(int fd, const void *buf, size_t size)
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };

	return sim_sock_send(SIM_CALL_write, fd, &msg, 0);
}

static int64_t
sys_read(int fd, void *buf, size_t size)
{
	int64_t rc = enter(SIM_CALL_read);
	struct sim_file *file = sim_fd_file(fd);

	if (rc == 0 && !file)
		rc = -EBADF;
	else if (rc == 0 && file->ops == &sim_socket_ops)
		rc = socket_read(fd, buf, size);
	else if (rc == 0)
		rc = file->ops->read(file, buf, size);
	return leave(SIM_CALL_read, fd, (int64_t)size, rc);
}

static int64_t
sys_write(int fd, const void *buf, size_t size)
{
	int64_t rc = enter(SIM_CALL_write);
	struct sim_file *file = sim_fd_file(fd);

	if (rc == 0 && !file)
		rc = -EBADF;
	else if (rc == 0 && file->ops == &sim_socket_ops)
		rc = socket_write(fd, buf, size);
	else if (rc == 0)
		rc = file->ops->write(file, buf, size);
	return leave(SIM_CALL_write, fd, (int64_t)size, rc);
}

static int
sys_pipe(int out[2])
{
	int fds[2] = { -1, -1 };
	int rc = enter(SIM_CALL_pipe);

	if (rc == 0)
		rc = sim_pipe_new(fds);
	if (rc == 0)
		memcpy(out, fds, sizeof(fds));
	return (int)leave(SIM_CALL_pipe, fds[0], fds[1], rc);
}

static int
sys_set_nonblock(int fd)
{
	int rc = enter(SIM_CALL_set_nonblock);

	if (rc == 0 && !sim_fd_file(fd))
		rc = -EBADF;
	return (int)leave(SIM_CALL_set_nonblock, fd, 0, rc);
}

static int
sys_kind(int fd)
{
	int rc = enter(SIM_CALL_kind);
	struct sim_file *file = sim_fd_file(fd);

	if (rc == 0)
		rc = file ? file->ops->kind : -EBADF;
	return (int)leave(SIM_CALL_kind, fd, 0, rc);
}

static int64_t
sys_identity(int fd)
{
	int64_t rc = enter(SIM_CALL_identity);
	struct sim_file *file = sim_fd_file(fd);

	if (rc == 0)
		rc = file ? (int64_t)file->id : -EBADF;
	return leave(SIM_CALL_identity, fd, 0, rc);
}

/* --- sockets ---------------------------------------------------------- */

static int
sys_socket(int domain, int type, int protocol)
{
	int rc = enter(SIM_CALL_socket);

	if (rc == 0)
		rc = sim_any_new(domain, type, protocol);
	return (int)leave(SIM_CALL_socket, domain, type, rc);
}

static int
sys_bind(int fd, const struct sockaddr *addr, socklen_t size)
{
	int rc = enter(SIM_CALL_bind);

	if (rc == 0)
		rc = sim_any_bind(fd, addr, size);
	return (int)leave(SIM_CALL_bind, fd, addr->sa_family, rc);
}

static int
sys_listen(int fd, int backlog)
{
	int rc = enter(SIM_CALL_listen);

	if (rc == 0)
		rc = sim_sock_listen(fd, backlog);
	return (int)leave(SIM_CALL_listen, fd, backlog, rc);
}

static int
sys_accept(int fd)
{
	int rc = enter(SIM_CALL_accept);

	if (rc == 0)
		rc = sim_sock_accept(fd);
	return (int)leave(SIM_CALL_accept, fd, 0, rc);
}

static int
sys_connect(int fd, const struct sockaddr *addr, socklen_t size)
{
	int rc = enter(SIM_CALL_connect);

	if (rc == 0)
		rc = sim_any_connect(fd, addr, size);
	return (int)leave(SIM_CALL_connect, fd, addr->sa_family, rc);
}

static int
sys_so_error(int fd, int *out)
{
	int rc = enter(SIM_CALL_so_error), error = 0;

	if (rc == 0)
		rc = sim_any_error(fd, &error);
	if (rc == 0)
		*out = error;
	return (int)leave(SIM_CALL_so_error, fd, error, rc);
}

static int
sys_shutdown(int fd, int how)
{
	int rc = enter(SIM_CALL_shutdown);

	if (rc == 0)
		rc = sim_sock_shutdown(fd, how);
	return (int)leave(SIM_CALL_shutdown, fd, how, rc);
}

static int
sys_sockname(int fd, struct sockaddr *addr, socklen_t *size)
{
	int rc = enter(SIM_CALL_sockname);

	if (rc == 0)
		rc = sim_any_name(fd, addr, size);
	return (int)leave(SIM_CALL_sockname, fd, 0, rc);
}

static int
sys_peername(int fd, struct sockaddr *addr, socklen_t *size)
{
	int rc = enter(SIM_CALL_peername);

	if (rc == 0)
		rc = sim_sock_peer(fd, addr, size);
	return (int)leave(SIM_CALL_peername, fd, 0, rc);
}

/* Options are accepted; only SO_LINGER has an effect. */
static int
sys_set_option(int fd, int level, int name, const void *value, socklen_t size)
{
	int rc = enter(SIM_CALL_set_option);

	(void)size;
	if (rc == 0)
		rc = sim_any_check(fd);
	if (rc == 0)
		sim_sock_option(fd, level, name, value);
	return (int)leave(SIM_CALL_set_option, fd, name, rc);
}

static int
sys_get_option(int fd, int level, int name, void *value, socklen_t *size)
{
	int rc = enter(SIM_CALL_get_option);

	(void)level;
	if (rc == 0)
		rc = sim_any_check(fd);
	if (rc == 0)
		memset(value, 0, *size);
	return (int)leave(SIM_CALL_get_option, fd, name, rc);
}

/* There is no file system: a path is only a name. */
static int
sys_path_mode(int fd, mode_t mode)
{
	int rc = enter(SIM_CALL_path_mode);

	return (int)leave(SIM_CALL_path_mode, fd, mode, rc);
}

static int
sys_path_remove(const char *path)
{
	int rc = enter(SIM_CALL_path_remove);

	(void)path;
	return (int)leave(SIM_CALL_path_remove, 0, 0, rc ? rc : -ENOENT);
}

static int
sys_ignore_syn(int fd)
{
	int rc = enter(SIM_CALL_ignore_syn);

	if (rc == 0)
		rc = sim_sock_ignore_syn(fd);
	return (int)leave(SIM_CALL_ignore_syn, fd, 0, rc);
}

static int64_t
sys_unsent(int fd)
{
	int64_t rc = enter(SIM_CALL_unsent);

	if (rc == 0)
		rc = sim_sock_unsent(fd);
	return leave(SIM_CALL_unsent, fd, 0, rc);
}

static int64_t
sys_recv(int fd, void *buf, size_t size, int flags)
{
	struct iovec part = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t rc = enter(SIM_CALL_recv);

	if (rc == 0)
		rc = sim_sock_recv(SIM_CALL_recv, fd, &msg, flags);
	return leave(SIM_CALL_recv, fd, (int64_t)size, rc);
}

static int64_t
sys_send(int fd, const void *buf, size_t size, int flags)
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	int64_t rc = enter(SIM_CALL_send);

	if (rc == 0)
		rc = sim_sock_send(SIM_CALL_send, fd, &msg, flags);
	return leave(SIM_CALL_send, fd, (int64_t)size, rc);
}

static int64_t
sys_recvmsg(int fd, struct msghdr *msg, int flags)
{
	int64_t rc = enter(SIM_CALL_recvmsg);

	if (rc == 0)
		rc = sim_any_recv(SIM_CALL_recvmsg, fd, msg, flags);
	return leave(SIM_CALL_recvmsg, fd, (int64_t)msg->msg_iovlen, rc);
}

static int64_t
sys_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	int64_t rc = enter(SIM_CALL_sendmsg);

	if (rc == 0)
		rc = sim_any_send(SIM_CALL_sendmsg, fd, msg, flags);
	return leave(SIM_CALL_sendmsg, fd, (int64_t)msg->msg_iovlen, rc);
}

/* There are no files. */
static int64_t
sys_sendfile(int fd, int file, uint64_t offset, size_t size)
{
	(void)fd;
	(void)file;
	(void)offset;
	(void)size;
	return -ENOSYS;
}

static int
sys_recvmmsg(int fd, struct weft__mmsg *msgs, uint32_t count, int flags)
{
	int64_t rc = enter(SIM_CALL_recvmmsg);
	uint32_t done = 0;

	count = (uint32_t)sim_fault_short(SIM_CALL_recvmmsg, count);
	for (; rc >= 0 && done < count; done++) {
		rc = sim_any_recv(SIM_CALL_recvmmsg, fd, &msgs[done].hdr, flags);
		if (rc < 0)
			break;
		msgs[done].size = (uint32_t)rc;
	}
	if (done > 0 && rc < 0 && rc != -EAGAIN)
		sim_any_give_back(fd, (int)-rc);
	return (int)leave(SIM_CALL_recvmmsg, fd, count, done ? done : rc);
}

/* A train: several messages passed as one, with one span each.  If there is no room for a
 * message after the first, it is lost, as in a network. */
static int64_t
send_train(int fd, const struct msghdr *train, int flags)
{
	struct msghdr one = *train;
	int64_t rc = 0, sent = 0;

	one.msg_control = NULL;
	one.msg_controllen = 0;
	one.msg_iovlen = 1;
	for (size_t i = 0; i < train->msg_iovlen && rc >= 0; i++) {
		one.msg_iov = &train->msg_iov[i];
		rc = sim_any_send(SIM_CALL_sendmmsg, fd, &one, flags);
		sent += rc > 0 ? rc : 0;
	}
	return sent > 0 ? sent : rc;
}

static int
sys_sendmmsg(int fd, struct weft__mmsg *msgs, uint32_t count, int flags)
{
	int64_t rc = enter(SIM_CALL_sendmmsg);
	uint32_t done = 0;

	count = (uint32_t)sim_fault_short(SIM_CALL_sendmmsg, count);
	for (; rc >= 0 && done < count; done++) {
		rc = msgs[done].hdr.msg_controllen > 0
		             ? send_train(fd, &msgs[done].hdr, flags)
		             : sim_any_send(SIM_CALL_sendmmsg, fd, &msgs[done].hdr, flags);
		if (rc < 0)
			break;
		msgs[done].size = (uint32_t)rc;
	}
	return (int)leave(SIM_CALL_sendmmsg, fd, count, done ? done : rc);
}

static int
sys_interface_index(const char *name)
{
	int rc = enter(SIM_CALL_interface_index);

	if (rc == 0)
		rc = strcmp(name, "lo") == 0 ? 1 : -ENODEV;
	return (int)leave(SIM_CALL_interface_index, 0, 0, rc);
}

/* There is no other host. */
static int
sys_host_find(const char *name, struct weft__host *out, size_t max)
{
	int rc = enter(SIM_CALL_host_find);

	(void)name;
	(void)out;
	return (int)leave(SIM_CALL_host_find, (int64_t)max, 0, rc == 0 ? WEFT_ENONAME : rc);
}

static int
sys_host_name(const struct weft__host *host, char *out, size_t max)
{
	int rc = enter(SIM_CALL_host_name);

	(void)host;
	(void)out;
	return (int)leave(SIM_CALL_host_name, (int64_t)max, 0, rc == 0 ? WEFT_ENONAME : rc);
}

/* --- readiness -------------------------------------------------------- */

static int
sys_poll(struct pollfd *fds, size_t count, int64_t timeout_ns)
{
	int rc;

	sim_point(SIM_CALL_WEIGHT);
	rc = sim_fault_errno(SIM_CALL_poll);
	if (rc == 0)
		rc = sim_poll_sleep(fds, count, timeout_ns);
	jump(SIM_CALL_poll);
	return (int)leave(SIM_CALL_poll, (int64_t)count, timeout_ns, rc);
}

static int
sys_epoll_create(void)
{
	int rc = enter(SIM_CALL_epoll_create);

	if (rc == 0)
		rc = sim_epoll_new();
	return (int)leave(SIM_CALL_epoll_create, 0, 0, rc);
}

/* Only adding an item needs memory, so sim_epoll_change() injects the faults. */
static int
sys_epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
	int rc;

	sim_point(SIM_CALL_WEIGHT);
	rc = sim_epoll_change(ep, op, fd, event);
	return (int)leave(SIM_CALL_epoll_ctl, fd,
	                  op == EPOLL_CTL_DEL ? -op : (int64_t)event->events, rc);
}

static int
sys_epoll_wait(int ep, struct epoll_event *events, int max, int64_t timeout_ns)
{
	int rc;

	sim_point(SIM_CALL_WEIGHT);
	rc = sim_epoll_sleep(ep, events, max, timeout_ns);
	jump(SIM_CALL_epoll_wait);
	return (int)leave(SIM_CALL_epoll_wait, ep, timeout_ns, rc);
}

static int
sys_eventfd(void)
{
	int rc = enter(SIM_CALL_eventfd);

	if (rc == 0)
		rc = sim_eventfd_new();
	return (int)leave(SIM_CALL_eventfd, 0, 0, rc);
}

const struct weft__sys sim_sys = {
	.alloc = sim_alloc,
	.resize = sim_resize,
	.release = sim_release,
	.now = sys_now,
	.random = sys_random,
	.park = sim_park,
	.unpark = sim_unpark,
	.yield = sim_yield,
	.barrier = sim_barrier,
	.thread_start = sim_thread_start,
	.thread_join = sim_thread_join,
	.thread_self = sim_thread_self,
	.at_fork = sys_at_fork,
	.cpus = sys_cpus,
	.other_threads = sys_other_threads,
	.set_cpus = sys_set_cpus,
	.env = sys_env,
	.close = sys_close,
	.read = sys_read,
	.write = sys_write,
	.write_quiet = sys_write,
	.pipe = sys_pipe,
	.set_nonblock = sys_set_nonblock,
	.kind = sys_kind,
	.identity = sys_identity,
	.socket = sys_socket,
	.bind = sys_bind,
	.listen = sys_listen,
	.accept = sys_accept,
	.connect = sys_connect,
	.so_error = sys_so_error,
	.shutdown = sys_shutdown,
	.sockname = sys_sockname,
	.peername = sys_peername,
	.set_option = sys_set_option,
	.get_option = sys_get_option,
	.path_mode = sys_path_mode,
	.unsent = sys_unsent,
	.ignore_syn = sys_ignore_syn,
	.path_remove = sys_path_remove,
	.recv = sys_recv,
	.send = sys_send,
	.recvmsg = sys_recvmsg,
	.sendmsg = sys_sendmsg,
	.recvmmsg = sys_recvmmsg,
	.sendmmsg = sys_sendmmsg,
	.sendfile = sys_sendfile,
	.host_find = sys_host_find,
	.host_name = sys_host_name,
	.interface_index = sys_interface_index,
	.poll = sys_poll,
	.epoll_create = sys_epoll_create,
	.epoll_ctl = sys_epoll_ctl,
	.epoll_wait = sys_epoll_wait,
	.eventfd = sys_eventfd,
	.signal_take = sim_signal_take,
	.signal_give = sim_signal_give,
	.spawn = sim_spawn,
	.pid_open = sim_pid_open,
	.reap = sim_reap,
	.kill = sim_process_kill,
	.stack_map = sim_stack_map,
	.stack_unmap = sim_stack_unmap,
	.stack_guard = sim_stack_guard,
	.stack_discard = sim_stack_discard,
	.stack_touched = sim_stack_touched,
};
