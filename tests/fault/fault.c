/* fault.c - the counting and failing sys table.
 *
 * The counts are atomic, because the library's threads update them, too.  The plan changes only
 * while the library has no threads.
 *
 * tidy: long file, because it has one small function for each member of the table.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "base/sys.h"
#include "fault.h"
#include "strike.h"

#define real weft__sys_real

static struct weft__sys table;
static struct fault_plan plan;
static weft__a64 counts[FAULT_MEMBER_COUNT];
static weft__a64 hits, problems, live, warped_ns;
static weft__a32 healed;
static char problem_text[256];

const struct fault_errno fault_errnos[] = {
#define WEFT_ERRNO(call, error, recoverable) { #call, #error, error, recoverable },
#include "errnos.def"
#define WEFT_ERRNO(call, error, recoverable) { #call, #error, error, recoverable },
#include "uring.def"
};
const size_t fault_errno_count = sizeof(fault_errnos) / sizeof(fault_errnos[0]);

#define NAME(name) #name,
static const char *const names[] = { FAULT_MEMBERS(NAME) };

const char *
fault_member_name(int member)
{
	return names[member];
}

int
fault_member_find(const char *name)
{
	for (int i = 0; i < FAULT_MEMBER_COUNT; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/* Members that move bytes or requests. */
static bool
can_be_short(int member)
{
	return member == FAULT_read || member == FAULT_write || member == FAULT_recv
	       || member == FAULT_send || member == FAULT_recvmsg || member == FAULT_sendmsg
	       || member == FAULT_recvmmsg || member == FAULT_sendmmsg || member == FAULT_sendfile
	       || member == FAULT_uring_enter || member == FAULT_sq_recv
	       || member == FAULT_sq_recv_multi || member == FAULT_sq_send
	       || member == FAULT_sq_file;
}

bool
fault_can_be(int member, enum fault_kind kind)
{
	switch (kind) {
	case FAULT_SHORT:
		return can_be_short(member);
	case FAULT_MEMORY_ONE:
	case FAULT_MEMORY_FROM:
		return member == FAULT_memory;
	case FAULT_ONCE:
		return member == FAULT_sq_recv_multi || member == FAULT_sq_accept_multi
		       || member == FAULT_sq_poll;
	case FAULT_ENDED:
		return member == FAULT_cq_recv_multi || member == FAULT_cq_accept_multi
		       || member == FAULT_cq_poll;
	case FAULT_DENIED:
		return member == FAULT_pid_open || member == FAULT_uring_setup
		       || member == FAULT_uring_enter || member == FAULT_uring_register;
	default:
		return false;
	}
}

/* --- one run ------------------------------------------------------------ */

void
fault_begin(const struct fault_plan *next)
{
	plan = *next;
	for (int i = 0; i < FAULT_MEMBER_COUNT; i++)
		weft__store(&counts[i], 0, WEFT__RELAXED);
	weft__store(&hits, 0, WEFT__RELAXED);
	weft__store(&problems, 0, WEFT__RELAXED);
	weft__store(&healed, 0, WEFT__RELAXED);
}

void
fault_heal(void)
{
	weft__store(&healed, 1, WEFT__RELAXED);
}

uint64_t
fault_count(int member)
{
	return weft__load(&counts[member], WEFT__RELAXED);
}

uint64_t
fault_hits(void)
{
	return weft__load(&hits, WEFT__RELAXED);
}

bool
fault_is_honest(void)
{
	return plan.kind != FAULT_ERRNO || plan.honest;
}

bool
fault_is_of(int member)
{
	return plan.kind != FAULT_NONE && (int)plan.member == member;
}

bool
fault_is_painless(void)
{
	return plan.kind != FAULT_NONE && plan.kind != FAULT_DENIED
	       && (plan.member == FAULT_uring_enter || plan.member >= FAULT_sq_recv)
	       && (plan.kind != FAULT_ERRNO || plan.honest);
}

bool
fault_is_lasting(void)
{
	return (plan.kind == FAULT_MEMORY_FROM || plan.kind == FAULT_DENIED)
	       && !weft__load(&healed, WEFT__RELAXED);
}

int64_t
fault_live(void)
{
	return (int64_t)weft__load(&live, WEFT__RELAXED);
}

void
fault_warp(uint64_t ns)
{
	(void)weft__add(&warped_ns, ns, WEFT__RELAXED);
}

void
fault_problem(const char *file, int line, const char *text)
{
	const char *name = strrchr(file, '/');

	if (weft__add(&problems, 1, WEFT__RELAXED) == 0)
		(void)snprintf(problem_text, sizeof(problem_text), "%s:%d: not so: %s",
		               name ? name + 1 : file, line, text);
}

uint64_t
fault_problems(void)
{
	return weft__load(&problems, WEFT__RELAXED);
}

const char *
fault_problem_text(void)
{
	return problem_text;
}

/* --- fault decisions ---------------------------------------------------- */

bool
fault_is_aimed(int member, enum fault_kind kind, uint64_t n)
{
	return plan.kind == kind && (int)plan.member == member && plan.n == n
	       && !weft__load(&healed, WEFT__RELAXED);
}

void
fault_hit(void)
{
	(void)weft__add(&hits, 1, WEFT__RELAXED);
}

int
fault_error(void)
{
	return plan.error;
}

static bool
is_struck(int member, enum fault_kind kind, uint64_t n)
{
	bool aimed = fault_is_aimed(member, kind, n);

	if (aimed)
		fault_hit();
	return aimed;
}

uint64_t
fault_count_one(int member)
{
	return weft__add(&counts[member], 1, WEFT__RELAXED) + 1;
}

#define count fault_count_one

int
fault_strike(int member)
{
	uint64_t n = count(member);

	if (plan.kind == FAULT_DENIED && fault_is_of(member) && fault_is_lasting()) {
		fault_hit();
		return -EPERM;
	}
	return is_struck(member, FAULT_ERRNO, n) ? -plan.error : 0;
}

#define strike fault_strike

void
fault_hold(int by)
{
	(void)weft__add(&live, (uint64_t)(int64_t)by, WEFT__RELAXED);
}

/* The same for a call that moves bytes.  A short call is cut to one byte. */
static int
strike_bytes(int member, size_t *size)
{
	uint64_t n = count(member);

	if (*size > 1 && is_struck(member, FAULT_SHORT, n))
		*size = 1;
	return is_struck(member, FAULT_ERRNO, n) ? -plan.error : 0;
}

static bool
memory_is_struck(void)
{
	uint64_t n = count(FAULT_memory);

	if (plan.kind == FAULT_MEMORY_FROM && n > plan.n && !weft__load(&healed, WEFT__RELAXED))
		return true;
	return is_struck(FAULT_memory, FAULT_MEMORY_ONE, n)
	       || is_struck(FAULT_memory, FAULT_MEMORY_FROM, n);
}

/* --- memory, clock, threads --------------------------------------------- */

static void *
on_alloc(size_t size)
{
	void *mem = memory_is_struck() ? NULL : real.alloc(size);

	(void)weft__add(&live, mem != NULL, WEFT__RELAXED);
	return mem;
}

static void *
on_resize(void *mem, size_t size)
{
	void *moved = memory_is_struck() ? NULL : real.resize(mem, size);

	(void)weft__add(&live, moved && !mem, WEFT__RELAXED);
	return moved;
}

static void
on_release(void *mem)
{
	if (mem)
		(void)weft__add(&live, UINT64_MAX, WEFT__RELAXED);
	real.release(mem);
}

static void *
on_stack_map(size_t size)
{
	void *mem = strike(FAULT_stack_map) ? NULL : real.stack_map(size);

	if (mem)
		fault_hold(1);
	return mem;
}

static void
on_stack_unmap(void *mem, size_t size)
{
	fault_hold(-1);
	real.stack_unmap(mem, size);
}

static int
on_stack_guard(void *mem, size_t size)
{
	int rc = strike(FAULT_stack_guard);

	return rc ? rc : real.stack_guard(mem, size);
}

static uint64_t
on_now(void)
{
	return real.now() + weft__load(&warped_ns, WEFT__RELAXED);
}

static int
on_random(void *buf, size_t size)
{
	int rc = strike(FAULT_random);

	return rc ? rc : real.random(buf, size);
}

static int
on_park(weft__a32 *word, uint32_t value, uint64_t deadline_ns)
{
	uint64_t ahead_ns = weft__load(&warped_ns, WEFT__RELAXED);
	int rc = strike(FAULT_park);

	if (deadline_ns != WEFT_NEVER)
		deadline_ns -= deadline_ns < ahead_ns ? deadline_ns : ahead_ns;
	return rc ? rc : real.park(word, value, deadline_ns);
}

static int
on_thread_start(const struct weft__thread_opts *opts, uint64_t *out)
{
	int rc = strike(FAULT_thread_start);

	return rc ? rc : real.thread_start(opts, out);
}

static int
on_thread_join(uint64_t thread)
{
	int rc = strike(FAULT_thread_join);
	int joined = real.thread_join(thread);

	return rc ? rc : joined;
}

static int
on_barrier(void)
{
	int rc = strike(FAULT_barrier);

	return rc ? rc : real.barrier();
}

static int
on_set_cpus(const struct weft__cpus *cpus)
{
	int rc = strike(FAULT_set_cpus);

	return rc ? rc : real.set_cpus(cpus);
}

static int
on_at_fork(void (*fn)(void))
{
	int rc = strike(FAULT_at_fork);

	return rc ? rc : real.at_fork(fn);
}

/* --- descriptors -------------------------------------------------------- */

static int
close_and_check(int fd)
{
	int rc = real.close(fd);

	if (rc == -EBADF)
		fault_problem(__FILE__, __LINE__, "a descriptor closed is open");
	return rc;
}

void
fault_close(int fd)
{
	if (fd >= 0)
		(void)close_and_check(fd);
}

static int
on_close(int fd)
{
	int rc = strike(FAULT_close);
	int closed = close_and_check(fd);

	return rc ? rc : closed;
}

static int64_t
on_read(int fd, void *buf, size_t size)
{
	int rc = strike_bytes(FAULT_read, &size);

	return rc ? rc : real.read(fd, buf, size);
}

/* The library writes to wake a loop, and such a write is never partial.  So all bytes are
 * written, and only the returned count is short. */
static int64_t
on_write(int fd, const void *buf, size_t size)
{
	size_t limit = size;
	int rc = strike_bytes(FAULT_write, &limit);
	int64_t written = rc ? rc : real.write(fd, buf, size);

	return written < (int64_t)limit ? written : (int64_t)limit;
}

static int64_t
on_write_quiet(int fd, const void *buf, size_t size)
{
	int rc = strike_bytes(FAULT_write, &size);

	return rc ? rc : real.write_quiet(fd, buf, size);
}

static int
on_pipe(int out[2])
{
	int rc = strike(FAULT_pipe);

	return rc ? rc : real.pipe(out);
}

static int
on_set_nonblock(int fd)
{
	int rc = strike(FAULT_set_nonblock);

	return rc ? rc : real.set_nonblock(fd);
}

static int
on_set_block(int fd)
{
	int rc = strike(FAULT_set_block);

	return rc ? rc : real.set_block(fd);
}

static int
on_kind(int fd)
{
	int rc = strike(FAULT_kind);

	return rc ? rc : real.kind(fd);
}

static int64_t
on_identity(int fd)
{
	int rc = strike(FAULT_identity);

	return rc ? rc : real.identity(fd);
}

/* --- sockets ------------------------------------------------------------ */

static int
on_socket(int domain, int type, int protocol)
{
	int rc = strike(FAULT_socket);

	return rc ? rc : real.socket(domain, type, protocol);
}

static int
on_bind(int fd, const struct sockaddr *addr, socklen_t size)
{
	int rc = strike(FAULT_bind);

	return rc ? rc : real.bind(fd, addr, size);
}

static int
on_listen(int fd, int backlog)
{
	int rc = strike(FAULT_listen);

	return rc ? rc : real.listen(fd, backlog);
}

static int
on_accept(int fd)
{
	int rc = strike(FAULT_accept);

	return rc ? rc : real.accept(fd);
}

static int
on_connect(int fd, const struct sockaddr *addr, socklen_t size)
{
	int rc = strike(FAULT_connect), connected = 0;

	if (!rc || rc == -EINPROGRESS || rc == -EINTR)
		connected = real.connect(fd, addr, size);
	return rc ? rc : connected;
}

static int
on_so_error(int fd, int *out)
{
	int rc = strike(FAULT_so_error);

	return rc ? rc : real.so_error(fd, out);
}

static int
on_shutdown(int fd, int how)
{
	int rc = strike(FAULT_shutdown);

	return rc ? rc : real.shutdown(fd, how);
}

static int
on_sockname(int fd, struct sockaddr *addr, socklen_t *size)
{
	int rc = strike(FAULT_sockname);

	return rc ? rc : real.sockname(fd, addr, size);
}

static int
on_peername(int fd, struct sockaddr *addr, socklen_t *size)
{
	int rc = strike(FAULT_peername);

	return rc ? rc : real.peername(fd, addr, size);
}

static int
on_set_option(int fd, int level, int name, const void *value, socklen_t size)
{
	int rc = strike(FAULT_set_option);

	return rc ? rc : real.set_option(fd, level, name, value, size);
}

static int
on_get_option(int fd, int level, int name, void *value, socklen_t *size)
{
	int rc = strike(FAULT_get_option);

	return rc ? rc : real.get_option(fd, level, name, value, size);
}

static int
on_path_mode(int fd, mode_t mode)
{
	int rc = strike(FAULT_path_mode);

	return rc ? rc : real.path_mode(fd, mode);
}

static int64_t
on_unsent(int fd)
{
	int rc = strike(FAULT_unsent);

	return rc ? rc : real.unsent(fd);
}

static int
on_ignore_syn(int fd)
{
	int rc = strike(FAULT_ignore_syn);

	return rc ? rc : real.ignore_syn(fd);
}

static int
on_path_remove(const char *path)
{
	int rc = strike(FAULT_path_remove);

	return rc ? rc : real.path_remove(path);
}

static int
on_interface_index(const char *name)
{
	int rc = strike(FAULT_interface_index);

	return rc ? rc : real.interface_index(name);
}

/* No resolver is involved: every host has the same address. */
static int
on_host_find(const char *name, struct weft__host *out, size_t max)
{
	int rc = strike(FAULT_host_find);

	(void)name;
	if (rc || max == 0)
		return rc;
	*out = (struct weft__host){ .family = AF_INET, .ip = { 192, 0, 2, 1 } };
	return 1;
}

static int
on_host_name(const struct weft__host *host, char *out, size_t max)
{
	int rc = strike(FAULT_host_name);

	(void)host;
	return rc ? rc : snprintf(out, max, "host.test");
}

static int64_t
on_recv(int fd, void *buf, size_t size, int flags)
{
	int rc = strike_bytes(FAULT_recv, &size);

	return rc ? rc : real.recv(fd, buf, size, flags);
}

static int64_t
on_send(int fd, const void *buf, size_t size, int flags)
{
	int rc = strike_bytes(FAULT_send, &size);

	return rc ? rc : real.send(fd, buf, size, flags);
}

/* A message that consists of the first buffer of `msg`, cut to `size` bytes. */
static struct msghdr
cut(const struct msghdr *msg, struct iovec *room, size_t size)
{
	struct msghdr shorter = *msg;

	*room = msg->msg_iov[0];
	room->iov_len = room->iov_len < size ? room->iov_len : size;
	shorter.msg_iov = room;
	shorter.msg_iovlen = 1;
	return shorter;
}

static int64_t
on_recvmsg(int fd, struct msghdr *msg, int flags)
{
	size_t size = SIZE_MAX;
	struct iovec room;
	struct msghdr shorter;
	int64_t rc = strike_bytes(FAULT_recvmsg, &size);

	if (rc || size == SIZE_MAX)
		return rc ? rc : real.recvmsg(fd, msg, flags);
	shorter = cut(msg, &room, size);
	rc = real.recvmsg(fd, &shorter, flags);
	msg->msg_flags = shorter.msg_flags;
	msg->msg_namelen = shorter.msg_namelen;
	msg->msg_controllen = shorter.msg_controllen;
	return rc;
}

static int64_t
on_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	size_t size = SIZE_MAX;
	struct iovec room;
	struct msghdr shorter;
	int rc = strike_bytes(FAULT_sendmsg, &size);

	if (rc || size == SIZE_MAX)
		return rc ? rc : real.sendmsg(fd, msg, flags);
	shorter = cut(msg, &room, size);
	return real.sendmsg(fd, &shorter, flags);
}

static int64_t
on_sendfile(int fd, int file, uint64_t offset, size_t size)
{
	int rc = strike_bytes(FAULT_sendfile, &size);

	return rc ? rc : real.sendfile(fd, file, offset, size);
}

/* A short call moves one message. */
static int
on_recvmmsg(int fd, struct weft__mmsg *msgs, uint32_t messages, int flags)
{
	size_t size = messages;
	int rc = strike_bytes(FAULT_recvmmsg, &size);

	return rc ? rc : real.recvmmsg(fd, msgs, (uint32_t)size, flags);
}

static int
on_sendmmsg(int fd, struct weft__mmsg *msgs, uint32_t messages, int flags)
{
	size_t size = messages;
	int rc = strike_bytes(FAULT_sendmmsg, &size);

	return rc ? rc : real.sendmmsg(fd, msgs, (uint32_t)size, flags);
}

/* --- readiness ---------------------------------------------------------- */

static int
on_poll(struct pollfd *fds, size_t nfds, int64_t timeout_ns)
{
	int rc = strike(FAULT_poll);

	return rc ? rc : real.poll(fds, nfds, timeout_ns);
}

static int
on_epoll_create(void)
{
	int rc = strike(FAULT_epoll_create);

	return rc ? rc : real.epoll_create();
}

static int
on_epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
	uint64_t n = count(FAULT_epoll_ctl);
	bool fits = op == EPOLL_CTL_ADD || (plan.error != ENOMEM && plan.error != ENOSPC);
	int rc = 0, done = 0;

	if (fits && is_struck(FAULT_epoll_ctl, FAULT_ERRNO, n))
		rc = -plan.error;
	if (!rc || op == EPOLL_CTL_DEL)
		done = real.epoll_ctl(ep, op, fd, event);
	return rc ? rc : done;
}

static int
on_epoll_wait(int ep, struct epoll_event *events, int max, int64_t timeout_ns)
{
	int rc = strike(FAULT_epoll_wait);

	return rc ? rc : real.epoll_wait(ep, events, max, timeout_ns);
}

static int
on_eventfd(void)
{
	int rc = strike(FAULT_eventfd);

	return rc ? rc : real.eventfd();
}

static void
wrap_sockets(void)
{
	table.socket = on_socket;
	table.bind = on_bind;
	table.listen = on_listen;
	table.accept = on_accept;
	table.connect = on_connect;
	table.so_error = on_so_error;
	table.shutdown = on_shutdown;
	table.sockname = on_sockname;
	table.peername = on_peername;
	table.set_option = on_set_option;
	table.get_option = on_get_option;
	table.path_mode = on_path_mode;
	table.unsent = on_unsent;
	table.ignore_syn = on_ignore_syn;
	table.path_remove = on_path_remove;
	table.recv = on_recv;
	table.send = on_send;
	table.recvmmsg = on_recvmmsg;
	table.sendmmsg = on_sendmmsg;
	table.host_find = on_host_find;
	table.host_name = on_host_name;
	table.interface_index = on_interface_index;
	table.recvmsg = on_recvmsg;
	table.sendmsg = on_sendmsg;
	table.sendfile = real.sendfile ? on_sendfile : NULL;
}

void
fault_install(void)
{
	table = real;
	table.alloc = on_alloc;
	table.resize = on_resize;
	table.release = on_release;
	table.stack_map = on_stack_map;
	table.stack_unmap = on_stack_unmap;
	table.stack_guard = on_stack_guard;
	table.now = on_now;
	table.random = on_random;
	table.park = on_park;
	table.thread_start = on_thread_start;
	table.thread_join = on_thread_join;
	table.at_fork = on_at_fork;
	table.barrier = on_barrier;
	table.set_cpus = on_set_cpus;
	table.close = on_close;
	table.read = on_read;
	table.write = on_write;
	table.write_quiet = on_write_quiet;
	table.pipe = on_pipe;
	table.set_nonblock = on_set_nonblock;
	table.set_block = on_set_block;
	table.kind = on_kind;
	table.identity = on_identity;
	table.poll = on_poll;
	table.epoll_create = on_epoll_create;
	table.epoll_ctl = on_epoll_ctl;
	table.epoll_wait = on_epoll_wait;
	table.eventfd = on_eventfd;
	wrap_sockets();
	fault_wrap_uring(&table);
	fault_wrap_processes(&table);
	weft__sys = &table;
}
