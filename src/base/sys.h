/* sys.h - the table of all system services: memory, clock, random numbers, threads, kernel.
 *
 * Every system call, allocation, clock reading and random number of the library goes through
 * the table `weft__sys`.  A test may replace the real table before the first use: with one that
 * counts and injects failures, or with a simulated kernel.  Calls return >= 0 or -errno; no
 * other code reads errno.
 *
 * Needs: nothing.  Thread: any; the pointer changes only while no other thread and no loop uses
 * the library.
 */
#ifndef WEFT_BASE_SYS_H
#define WEFT_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <weft/base.h>
#include "base/atomic.h"
#include "base/build.h"

struct epoll_event;
struct io_uring_params;
struct pollfd;
struct sigaction;
struct sockaddr;
struct weft__thread;

/* The type of a descriptor, as far as it matters for waiting. */
enum {
	WEFT__FD_FILE,   /* a regular file or directory: always ready */
	WEFT__FD_SOCKET,
	WEFT__FD_OTHER,  /* pipe, terminal, eventfd, ... */
};

struct weft__thread_opts {
	const char *name; /* at most 15 bytes are kept; may be NULL */
	void      (*fn)(void *arg);
	void       *arg;
	size_t      stack_bytes; /* minimum; 0: the system's default */
};

/* The address of a host. */
struct weft__host {
	uint16_t family; /* AF_INET, AF_INET6 */
	uint32_t scope;  /* IPv6 only */
	uint8_t  ip[16];
};

#define WEFT__CPUS_MAX 1024 /* CPU numbers are below it; a multiple of 64 */

/* A set of CPUs: CPU n is bit n % 64 of word n / 64. */
struct weft__cpus {
	uint64_t words[WEFT__CPUS_MAX / 64];
};

/* A child process, until it is reaped. */
struct weft__pid {
	int32_t pid;
	int32_t fd; /* its pidfd, or -1 */
};

/* How to check whether a child has ended. */
enum {
	WEFT__REAP_WAIT = 1 << 0, /* block until it has */
	WEFT__REAP_KEEP = 1 << 1, /* and do not reap it */
};

/* Values of weft__spawn.fds, besides a descriptor of the parent. */
enum {
	WEFT__SPAWN_KEEP = -1, /* inherit the parent's */
	WEFT__SPAWN_NULL = -2, /* /dev/null */
};

struct weft__spawn {
	const char *const *argv; /* argv[0] is searched in PATH */
	const char *const *env;  /* NULL: the parent's */
	const char        *cwd;  /* NULL: the parent's */
	int                fds[3];
	bool               group; /* make it the leader of a new process group */
};

/* One of several messages; same layout as Linux's mmsghdr, where `error` is padding. */
struct weft__mmsg {
	struct msghdr hdr;
	uint32_t      size;  /* bytes received or sent */
	int32_t       error; /* set to 0 by the caller; a system without a call for several
	                      * messages stores the -errno of the first that failed here, because
	                      * its socket may not report the error again */
};

struct weft__sys {
	/* Like malloc, realloc and free. */
	void *(*alloc)(size_t size);
	void *(*resize)(void *mem, size_t size);
	void  (*release)(void *mem);

	/* The monotonic clock in nanoseconds. */
	uint64_t (*now)(void);

	/* Fill `buf` with random bytes.  0 or -errno. */
	int (*random)(void *buf, size_t size);

	/* Sleep while *word == value, until unpark(word), the deadline, a signal, or
	 * spuriously.  0; -EAGAIN if *word had another value; -ETIMEDOUT; -EINTR. */
	int  (*park)(weft__a32 *word, uint32_t value, uint64_t deadline_ns);
	void (*unpark)(weft__a32 *word); /* wakes one sleeper; uses only the address, so the word
	                                  * may already be freed */

	/* Issue a full memory barrier in every thread of the process.  0, or -ENOSYS, -EPERM. */
	int (*barrier)(void);

	/* Let another thread run. */
	void (*yield)(void);

	/* Start a thread with all signals blocked, except those for its own faults.  Fills
	 * `out` for join, which waits until the thread exits.  0 or -errno. */
	int (*thread_start)(const struct weft__thread_opts *opts, uint64_t *out);
	int (*thread_join)(uint64_t thread);

	/* The calling thread's struct, created by its first call and destroyed when the thread
	 * exits. */
	struct weft__thread *(*thread_self)(void);

	/* Call `fn` in each forked child.  0 or -errno. */
	int (*at_fork)(void (*fn)(void));

	/* An environment variable, or NULL. */
	const char *(*env)(const char *name);

	/* Ignore SIGPIPE: a write to a pipe without a reader returns an error. */
	void (*ignore_pipe)(void);

	/* The number of CPUs that this process may keep busy; 0 if its quota is less than one. */
	int (*cpus)(void);

	/* The number of threads in this process that the library did not start; or -ENOSYS. */
	int (*other_threads)(void);

	/* Restrict the calling thread to these CPUs.  NULL only checks whether the call is
	 * supported.  0, -EINVAL if none of the CPUs exists, -ENOSYS, -EPERM. */
	int (*set_cpus)(const struct weft__cpus *cpus);

	/* Fill `out` with the CPUs that the calling thread may use.  0, -ENOSYS. */
	int (*get_cpus)(struct weft__cpus *out);

	/* Descriptors.  Every descriptor created here is close-on-exec and non-blocking. */
	int (*close)(int fd);
	int64_t (*read)(int fd, void *buf, size_t size);
	int64_t (*write)(int fd, const void *buf, size_t size);
	int64_t (*write_quiet)(int fd, const void *buf, size_t size); /* no SIGPIPE */
	int (*pipe)(int out[2]);
	int (*set_nonblock)(int fd);
	int (*set_block)(int fd);
	int (*kind)(int fd); /* WEFT__FD_*, or -EBADF */

	/* A number >= 0 that is always the same for the same open file, and usually differs
	 * between two files; special files of one kind may share a number.  Or -errno. */
	int64_t (*identity)(int fd);

	/* Files.  These may block.  open adds close-on-exec. */
	int (*file_open)(const char *path, int flags, mode_t mode);
	int64_t (*file_read)(int fd, void *buf, size_t size, uint64_t offset);
	int64_t (*file_write)(int fd, const void *buf, size_t size, uint64_t offset);
	int (*file_sync)(int fd);

	/* Sockets, like the system calls of the same name.  accept and connect block if the
	 * descriptor is blocking; the others never block.  None raises a signal. */
	int (*socket)(int domain, int type, int protocol);
	int (*bind)(int fd, const struct sockaddr *addr, socklen_t size);
	int (*listen)(int fd, int backlog);
	int (*accept)(int fd);
	int (*connect)(int fd, const struct sockaddr *addr, socklen_t size);
	int (*so_error)(int fd, int *out); /* reads and clears the pending error */
	int (*shutdown)(int fd, int how);
	int (*sockname)(int fd, struct sockaddr *addr, socklen_t *size);
	int (*peername)(int fd, struct sockaddr *addr, socklen_t *size);
	int (*set_option)(int fd, int level, int name, const void *value, socklen_t size);
	int (*get_option)(int fd, int level, int name, void *value, socklen_t *size);
	int64_t (*unsent)(int fd); /* bytes sent but not acknowledged by the peer */

	/* Make a listening TCP socket ignore every new SYN.  Handshakes that have begun
	 * continue, and their connections reach the accept queue.  0 or -errno; -ENOSYS if the
	 * kernel has no such filter. */
	int (*ignore_syn)(int fd);

	/* The file system entry of a Unix socket.  path_mode sets which users may connect,
	 * before bind; path_remove deletes the entry. */
	int (*path_mode)(int fd, mode_t mode);
	int (*path_remove)(const char *path);

	int64_t (*recv)(int fd, void *buf, size_t size, int flags);
	int64_t (*send)(int fd, const void *buf, size_t size, int flags);
	int64_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	int64_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);

	/* The same for `count` messages at once: the number of messages processed, at least
	 * one; or the error of the first. */
	int (*recvmmsg)(int fd, struct weft__mmsg *msgs, uint32_t count, int flags);
	int (*sendmmsg)(int fd, struct weft__mmsg *msgs, uint32_t count, int flags);

	/* Send bytes of a file, starting at `offset`, to a non-blocking socket.  Returns the
	 * number of bytes, 0 at the end of the file, or -errno; -ENOSYS or -EINVAL if the file
	 * does not support it.  Raises no SIGPIPE, but may wait for the disk.  NULL if the system
	 * has no such call. */
	int64_t (*sendfile)(int fd, int file, uint64_t offset, size_t size);

	/* The index of a network interface by its name; or -errno. */
	int (*interface_index)(const char *name);

	/* Host lookups by the system's resolver.  These block.  host_find returns the number of
	 * addresses of a name, at most `max`; host_name returns the length of an address's
	 * name.  Or WEFT_ENONAME, -EAGAIN for a temporary failure, or another error. */
	int (*host_find)(const char *name, struct weft__host *out, size_t max);
	int (*host_name)(const struct weft__host *host, char *out, size_t max);

	/* Readiness.  timeout_ns: -1 means none; rounding never makes it shorter. */
	int (*poll)(struct pollfd *fds, size_t count, int64_t timeout_ns);
	int (*epoll_create)(void);
	int (*epoll_ctl)(int ep, int op, int fd, struct epoll_event *event);
	int (*epoll_wait)(int ep, struct epoll_event *events, int max,
	                  int64_t timeout_ns);
	int (*eventfd)(void); /* its initial count is 0 */

	/* io_uring; `arg` of enter is a struct io_uring_getevents_arg, or NULL. */
	int (*uring_setup)(uint32_t entries, struct io_uring_params *params);
	int (*uring_enter)(int ring, uint32_t submit, uint32_t wait, uint32_t flags,
	                   const void *arg);
	int (*uring_register)(int ring, uint32_t what, void *arg, uint32_t count);

	/* Call `fn` for each delivery of `signo`, on the thread that receives it, with all
	 * signals blocked and errno preserved.  Interrupted system calls are restarted.
	 * signal_take fills `before` with the previous action, and then installs the handler.
	 * signal_give restores it if that handler is installed, and else changes nothing.  0 or
	 * -errno. */
	int (*signal_take)(int signo, void (*fn)(int signo), struct sigaction *before);
	int (*signal_give)(int signo, const struct sigaction *before);

	/* Start a process with no signal blocked and SIGPIPE at its default.  Returns its pid
	 * or -errno, including errors of exec; no child exists after an error. */
	int (*spawn)(const struct weft__spawn *spawn);

	/* A pidfd: readable once the process has ended.  Or -errno; -ENOSYS if the system has
	 * none. */
	int (*pid_open)(int pid);

	/* Check whether a child has ended.  1, with its wait status in `out`; 0 if it still
	 * runs; or -errno, -ECHILD if this process cannot reap it.  `how` is a mask of
	 * WEFT__REAP_*. */
	int (*reap)(const struct weft__pid *pid, uint32_t how, int *out);

	/* Send a signal to a child that is not reaped yet, or to the process group that it
	 * leads. */
	int (*kill)(const struct weft__pid *pid, int signo, bool group);

	/* Memory shared with the kernel: of `fd`, or anonymous if `fd` is -1.  NULL on
	 * failure.  A forked child does not inherit it. */
	void *(*map)(size_t size, int fd, uint64_t offset);
	void  (*unmap)(void *mem, size_t size);

	/* Memory for stacks: zeroed pages that are allocated when first touched, and that a
	 * forked child inherits.  NULL on failure. */
	void *(*stack_map)(size_t size);
	void  (*stack_unmap)(void *mem, size_t size);

	/* Turn pages of such memory into a guard; touching one is a fault.  0 or -errno. */
	int  (*stack_guard)(void *mem, size_t size);

	/* Return pages of such memory to the system: they read as zeroes again.  Guards stay. */
	void (*stack_discard)(void *mem, size_t size);

	/* The number of bytes from the lowest page in use to the end; 0 if unknown. */
	size_t (*stack_touched)(void *mem, size_t size);
};

WEFT__SHARED extern const struct weft__sys *weft__sys;
extern const struct weft__sys weft__sys_real;

/* Convert a deadline to a timeout for the table's calls: nanoseconds from now, 0 if it has passed,
 * -1 for WEFT_NEVER. */
int64_t weft__timeout_of(uint64_t deadline_ns);

/* Parse "0-3,6" into `out`, which must be empty; false if the text is malformed. */
bool weft__cpus_read(struct weft__cpus *out, const char *text);

/* `size` bytes, zeroed, or NULL. */
WEFT__SHARED void *weft__alloc_zero(size_t size);

/* End the process because of a bug in the library.  The text goes to the report hook, or to
 * standard error if there is none. */
_Noreturn void weft__panic(const char *file, int line, const char *text);

/* An assertion that is enabled in every build; for cheap checks only. */
#define weft__assert(cond) \
	((cond) ? (void)0 : weft__panic(__FILE__, __LINE__, #cond))

#endif
