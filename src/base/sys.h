/* sys.h - the one door to the outside: memory, clock, chance, threads, kernel.
 *
 * Every system call, allocation, clock reading and random number of the library
 * goes through the table `weft__sys`.  It is the real one unless a test has put
 * another in its place before the first use: one that counts and fails, or a whole
 * simulated kernel.  Calls return >= 0 or -errno; errno itself is read nowhere else.
 *
 * Needs: nothing.  Thread: any; the pointer changes only while no other thread
 * and no loop uses the library.
 */
#ifndef WEFT_BASE_SYS_H
#define WEFT_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <weft/base.h>
#include "base/atomic.h"

struct epoll_event;
struct io_uring_params;
struct pollfd;
struct sigaction;
struct sockaddr;
struct weft__thread;
struct weft_interface;

/* What a descriptor is, as far as waiting for it goes. */
enum {
	WEFT__FD_FILE,   /* a regular file or directory: always ready */
	WEFT__FD_SOCKET,
	WEFT__FD_OTHER,  /* pipe, terminal, eventfd, ... */
};

struct weft__thread_opts {
	const char *name; /* at most 15 bytes are kept; or NULL */
	void      (*fn)(void *arg);
	void       *arg;
	size_t      stack_bytes; /* at least; 0: the system's default */
};

/* Where a host is. */
struct weft__host {
	uint16_t family; /* AF_INET, AF_INET6 */
	uint32_t scope;  /* of IPv6 */
	uint8_t  ip[16];
};

#define WEFT__CPUS_MAX 1024 /* numbers of CPUs are below; a multiple of 64 */

/* A set of CPUs: number n is bit n % 64 of word n / 64. */
struct weft__cpus {
	uint64_t words[WEFT__CPUS_MAX / 64];
};

/* A child process, until it is reaped. */
struct weft__pid {
	int32_t pid;
	int32_t fd; /* that stands for it, or -1 */
};

/* How to look for a child's end. */
enum {
	WEFT__REAP_WAIT = 1 << 0, /* until it has come */
	WEFT__REAP_KEEP = 1 << 1, /* and leave it to be reaped */
};

/* What a new process has as a descriptor, besides one that is open here. */
enum {
	WEFT__SPAWN_KEEP = -1, /* what we have */
	WEFT__SPAWN_NULL = -2, /* /dev/null */
};

struct weft__spawn {
	const char *const *argv; /* argv[0] is found by PATH */
	const char *const *env;  /* or NULL: ours */
	const char        *cwd;  /* or NULL: ours */
	int                fds[3];
	bool               group; /* it leads a process group of its own */
};

/* One of many messages; laid out as Linux has it, where `error` is padding. */
struct weft__mmsg {
	struct msghdr hdr;
	uint32_t      size;  /* received, or sent */
	int32_t       error; /* the caller's 0; of the first that was not: its -errno, if
	                      * this system tells it; it may be gone then */
};

struct weft__sys {
	/* As malloc, realloc and free. */
	void *(*alloc)(size_t size);
	void *(*resize)(void *mem, size_t size);
	void  (*release)(void *mem);

	/* The monotonic clock in nanoseconds. */
	uint64_t (*now)(void);

	/* The date: nanoseconds since 1970, which may jump. */
	uint64_t (*date)(void);

	/* Fill `buf` with random bytes.  0 or -errno. */
	int (*random)(void *buf, size_t size);

	/* Sleep while *word == value, until unpark(word), the deadline, a signal or
	 * no reason at all: 0, -EAGAIN if it was different, -ETIMEDOUT, -EINTR. */
	int  (*park)(weft__a32 *word, uint32_t value, uint64_t deadline_ns);
	void (*unpark)(weft__a32 *word); /* one of those that sleep there; the word may be
	                                  * gone: only its address is used */

	/* A full memory barrier in every thread of the process, between two of its
	 * instructions: 0, or -ENOSYS, -EPERM. */
	int (*barrier)(void);

	/* Let another thread run first. */
	void (*yield)(void);

	/* Start a thread with all signals blocked, but for those of its own faults;
	 * fills `out` for join, which waits for its end.  0 or -errno. */
	int (*thread_start)(const struct weft__thread_opts *opts, uint64_t *out);
	int (*thread_join)(uint64_t thread);

	/* The calling thread's own struct, made at its first call and ended with
	 * the thread. */
	struct weft__thread *(*thread_self)(void);

	/* Run `fn` in each forked child.  0 or -errno. */
	int (*at_fork)(void (*fn)(void));

	/* A variable of the environment, or NULL. */
	const char *(*env)(const char *name);

	/* Ignore SIGPIPE: writing to a pipe that nobody reads is an error, no death. */
	void (*ignore_pipe)(void);

	/* How many CPUs this process may keep busy; a quota of half a CPU is 0. */
	int (*cpus)(void);

	/* How many threads of this process the library has not started; -ENOSYS. */
	int (*other_threads)(void);

	/* Have the calling thread run on these CPUs only; NULL: just say whether that
	 * can be asked for.  0, -EINVAL if there is none of them, -ENOSYS, -EPERM. */
	int (*set_cpus)(const struct weft__cpus *cpus);

	/* Fill `out` with those that it may run on.  0, -ENOSYS. */
	int (*get_cpus)(struct weft__cpus *out);

	/* Descriptors.  All that are made here are close-on-exec and non-blocking. */
	int (*close)(int fd);
	int64_t (*read)(int fd, void *buf, size_t size);
	int64_t (*write)(int fd, const void *buf, size_t size);
	int64_t (*write_quiet)(int fd, const void *buf, size_t size); /* no SIGPIPE */
	int (*pipe)(int out[2]);
	int (*set_nonblock)(int fd);
	int (*set_block)(int fd);
	int (*kind)(int fd); /* WEFT__FD_*, or -EBADF */

	/* A number >= 0 that is the same for the same open file, and mostly differs
	 * between two: special files of one kind may share one.  Or -errno. */
	int64_t (*identity)(int fd);

	/* Files; these may block.  open adds close-on-exec. */
	int (*file_open)(const char *path, int flags, mode_t mode);
	int64_t (*file_read)(int fd, void *buf, size_t size, uint64_t offset);
	int64_t (*file_write)(int fd, const void *buf, size_t size, uint64_t offset);
	int (*file_sync)(int fd);

	/* Sockets, as their namesakes; a call never blocks and never signals. */
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t size);
	int (*listen)(int fd, int backlog);
	int (*accept)(int fd);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t size);
	int (*so_error)(int fd, int *out); /* reads and clears the pending one */
	int (*shutdown)(int fd, int how);
	int (*sockname)(int fd, struct sockaddr *addr, socklen_t *size);
	int (*peername)(int fd, struct sockaddr *addr, socklen_t *size);
	int (*set_option)(int fd, int level, int name, const void *value, socklen_t size);
	int (*get_option)(int fd, int level, int name, void *value, socklen_t *size);
	int (*socket_pair)(int out[2]); /* two Unix streams, connected */
	int64_t (*unsent)(int fd); /* bytes sent that the peer has not acknowledged */

	/* Have a listening TCP socket ignore every new SYN.  Handshakes that have begun
	 * go on, and their connections reach its queue.  0, or -errno; -ENOSYS where the
	 * kernel has no filters for that. */
	int (*ignore_syn)(int fd);

	/* The name of a Unix socket in the file system: who may connect to it, said
	 * before it is bound; and its end. */
	int (*path_mode)(int fd, mode_t mode);
	int (*path_remove)(const char *path);

	int64_t (*recv)(int fd, void *buf, size_t size, int flags);
	int64_t (*send)(int fd, const void *buf, size_t size, int flags);
	int64_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	int64_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);

	/* The same for `count` messages at once: how many of them, at least one; or the
	 * error of the first. */
	int (*recvmmsg)(int fd, struct weft__mmsg *msgs, uint32_t count, int flags);
	int (*sendmmsg)(int fd, struct weft__mmsg *msgs, uint32_t count, int flags);

	/* Send bytes of a file from `offset` on, to a socket that does not block: the
	 * count, 0 at the end of the file, or -errno; -ENOSYS or -EINVAL where that is
	 * not to be had.  No SIGPIPE; but it may wait for the disk. */
	int64_t (*sendfile)(int fd, int file, uint64_t offset, size_t size);

	/* The machine's interfaces with their addresses: their number, of which the first
	 * `max` are filled; and the number of the one with that name.  Or -errno. */
	int (*interfaces)(struct weft_interface *out, size_t max);
	int (*interface_index)(const char *name);

	/* Hosts, by the system's own resolver; these block.  Where the host of that name
	 * is: the number of places, at most `max`; and the name of one: its length.  Or
	 * WEFT_ENONAME, -EAGAIN if nobody knows now, or another error. */
	int (*host_find)(const char *name, struct weft__host *out, size_t max);
	int (*host_name)(const struct weft__host *host, char *out, size_t max);

	/* Readiness.  timeout_ns: -1 for none; it is never cut short by rounding. */
	int (*poll)(struct pollfd *fds, size_t count, int64_t timeout_ns);
	int (*epoll_create)(void);
	int (*epoll_ctl)(int ep, int op, int fd, struct epoll_event *event);
	int (*epoll_wait)(int ep, struct epoll_event *events, int max,
	                  int64_t timeout_ns);
	int (*eventfd)(void); /* counts from 0 */

	/* io_uring; `arg` of enter is a struct io_uring_getevents_arg, or NULL. */
	int (*uring_setup)(uint32_t entries, struct io_uring_params *params);
	int (*uring_enter)(int ring, uint32_t submit, uint32_t wait, uint32_t flags,
	                   const void *arg);
	int (*uring_register)(int ring, uint32_t what, void *arg, uint32_t count);

	/* Have `fn` called at each delivery of `signo`, on whichever thread gets it, with
	 * all signals blocked and errno kept; calls of the program go on after it.  Fills
	 * `before` with what was done until now, and give puts that back, unless somebody
	 * else has taken the signal since.  0 or -errno. */
	int (*signal_take)(int signo, void (*fn)(int signo), struct sigaction *before);
	int (*signal_give)(int signo, const struct sigaction *before);

	/* Start a process with no signal blocked and SIGPIPE as by default: its pid, or
	 * -errno, also of exec; then there is none. */
	int (*spawn)(const struct weft__spawn *spawn);

	/* A descriptor that stands for a process and is readable once that has ended; or
	 * -errno, -ENOSYS where there is no such thing. */
	int (*pid_open)(int pid);

	/* Has a child ended?  1, and fills `out` with its wait status; 0; or -errno,
	 * -ECHILD if it is not ours to reap.  `how` is of WEFT__REAP_*. */
	int (*reap)(const struct weft__pid *pid, uint32_t how, int *out);

	/* Send a signal to a child that is not reaped, or to the group it leads. */
	int (*kill)(const struct weft__pid *pid, int signo, bool group);

	/* Memory shared with the kernel: of `fd`, or anonymous if that is -1.  NULL if
	 * it is not to be had.  A forked child does not inherit it. */
	void *(*map)(size_t size, int fd, uint64_t offset);
	void  (*unmap)(void *mem, size_t size);

	/* Memory for stacks: zeroed pages that take room when first touched, and that a
	 * forked child inherits.  NULL if it is not to be had. */
	void *(*stack_map)(size_t size);
	void  (*stack_unmap)(void *mem, size_t size);

	/* Make pages of it a guard, whose use ends the process.  0 or -errno. */
	int  (*stack_guard)(void *mem, size_t size);

	/* Give the room of pages back: they are zeroes again; guards stay. */
	void (*stack_discard)(void *mem, size_t size);

	/* How many bytes at its end reach down to the lowest page in use; 0 if that
	 * cannot be told. */
	size_t (*stack_touched)(void *mem, size_t size);
};

extern const struct weft__sys *weft__sys;
extern const struct weft__sys weft__sys_real;

/* A deadline as the table's calls want it: nanoseconds from now, -1 for never. */
int64_t weft__timeout_of(uint64_t deadline_ns);

/* Read "0-3,6" into a set, which is empty; false if it is not like that. */
bool weft__cpus_read(struct weft__cpus *out, const char *text);

/* `size` bytes, zeroed, or NULL. */
void *weft__alloc_zero(size_t size);

/* End the process for a bug of our own, or misuse found by a debug build: the
 * text goes to the report hook, and to standard error if there is none. */
_Noreturn void weft__panic(const char *file, int line, const char *text);

/* A check that stays on in every build: cheap ones only. */
#define weft__assert(cond) \
	((cond) ? (void)0 : weft__panic(__FILE__, __LINE__, #cond))

#endif
