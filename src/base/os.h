/* os.h - the functions of the real sys table, shared by its two versions.
 *
 * os_posix.c has what every POSIX system provides.  os_linux.c adds futex, epoll and eventfd;
 * os_portable.c works without them.  The build compiles one of the latter two, which defines
 * weft__sys_real.
 */
#ifndef WEFT_BASE_OS_H
#define WEFT_BASE_OS_H

#include "base/sys.h"
#include "base/text.h"

void    *weft__os_alloc(size_t size);
void    *weft__os_resize(void *mem, size_t size);
void     weft__os_release(void *mem);
uint64_t weft__os_now(void);
void     weft__os_yield(void);
int      weft__os_thread_start(const struct weft__thread_opts *opts, uint64_t *out);
int      weft__os_thread_join(uint64_t thread);
struct weft__thread *weft__os_thread_self(void);
int      weft__os_at_fork(void (*fn)(void));
const char *weft__os_env(const char *name);

int      weft__os_close(int fd);
int64_t  weft__os_read(int fd, void *buf, size_t size);
void     weft__os_ignore_pipe(void);
int64_t  weft__os_write(int fd, const void *buf, size_t size);
int64_t  weft__os_write_quiet(int fd, const void *buf, size_t size);
int      weft__os_file_open(const char *path, int flags, mode_t mode);
int64_t  weft__os_file_read(int fd, void *buf, size_t size, uint64_t offset);
int64_t  weft__os_file_write(int fd, const void *buf, size_t size, uint64_t offset);
int      weft__os_file_sync(int fd);
int      weft__os_set_nonblock(int fd);
int      weft__os_set_block(int fd);
int      weft__os_set_cloexec(int fd);
int      weft__os_kind(int fd);
int64_t  weft__os_identity(int fd);

int      weft__os_bind(int fd, const struct sockaddr *addr, socklen_t size);
int      weft__os_listen(int fd, int backlog);
int      weft__os_connect(int fd, const struct sockaddr *addr, socklen_t size);
int      weft__os_so_error(int fd, int *out);
int      weft__os_shutdown(int fd, int how);
int      weft__os_sockname(int fd, struct sockaddr *addr, socklen_t *size);
int      weft__os_peername(int fd, struct sockaddr *addr, socklen_t *size);
int      weft__os_set_option(int fd, int level, int name, const void *value,
                             socklen_t size);
int      weft__os_get_option(int fd, int level, int name, void *value,
                             socklen_t *size);
int      weft__os_path_mode(int fd, mode_t mode);
int64_t  weft__os_unsent(int fd);
int      weft__os_path_remove(const char *path);
int64_t  weft__os_recv(int fd, void *buf, size_t size, int flags);
int64_t  weft__os_send(int fd, const void *buf, size_t size, int flags);
int64_t  weft__os_recvmsg(int fd, struct msghdr *msg, int flags);
int64_t  weft__os_sendmsg(int fd, const struct msghdr *msg, int flags);
int      weft__os_interface_index(const char *name);
int      weft__os_host_find(const char *name, struct weft__host *out, size_t max);
int      weft__os_host_name(const struct weft__host *host, char *out, size_t max);

/* Threads that the library started and that still run. */
extern weft__a32 weft__os_own_threads;

void    *weft__os_stack_map(size_t size);
void     weft__os_stack_unmap(void *mem, size_t size);
int      weft__os_stack_guard(void *mem, size_t size);
void     weft__os_stack_discard(void *mem, size_t size);
int      weft__os_signal_take(int signo, void (*fn)(int signo), struct sigaction *before);
int      weft__os_signal_give(int signo, const struct sigaction *before);
int      weft__os_spawn(const struct weft__spawn *spawn);

/* Like reap() of the sys table; `type` and `id` are as in waitid(2). */
int      weft__os_waitid(int type, int id, uint32_t how, int *out);

/* Send a signal to a child by its pid, or to the process group that it leads. */
int      weft__os_kill(int pid, int signo, bool group);

/* The members of the table that every POSIX system shares. */
#define WEFT__OS_POSIX \
	.alloc = weft__os_alloc, \
	.resize = weft__os_resize, \
	.release = weft__os_release, \
	.now = weft__os_now, \
	.yield = weft__os_yield, \
	.thread_start = weft__os_thread_start, \
	.thread_join = weft__os_thread_join, \
	.thread_self = weft__os_thread_self, \
	.at_fork = weft__os_at_fork, \
	.env = weft__os_env, \
	.ignore_pipe = weft__os_ignore_pipe, \
	.close = weft__os_close, \
	.read = weft__os_read, \
	.write = weft__os_write, \
	.write_quiet = weft__os_write_quiet, \
	.file_open = weft__os_file_open, \
	.file_read = weft__os_file_read, \
	.file_write = weft__os_file_write, \
	.file_sync = weft__os_file_sync, \
	.set_nonblock = weft__os_set_nonblock, \
	.set_block = weft__os_set_block, \
	.kind = weft__os_kind, \
	.identity = weft__os_identity, \
	.bind = weft__os_bind, \
	.listen = weft__os_listen, \
	.connect = weft__os_connect, \
	.so_error = weft__os_so_error, \
	.shutdown = weft__os_shutdown, \
	.sockname = weft__os_sockname, \
	.peername = weft__os_peername, \
	.set_option = weft__os_set_option, \
	.get_option = weft__os_get_option, \
	.path_mode = weft__os_path_mode, \
	.unsent = weft__os_unsent, \
	.path_remove = weft__os_path_remove, \
	.recv = weft__os_recv, \
	.send = weft__os_send, \
	.recvmsg = weft__os_recvmsg, \
	.sendmsg = weft__os_sendmsg, \
	.interface_index = weft__os_interface_index, \
	.host_find = weft__os_host_find, \
	.host_name = weft__os_host_name, \
	.stack_map = weft__os_stack_map, \
	.stack_unmap = weft__os_stack_unmap, \
	.stack_discard = weft__os_stack_discard, \
	.signal_take = weft__os_signal_take, \
	.signal_give = weft__os_signal_give, \
	.spawn = weft__os_spawn

/* Run `call`, which may raise SIGPIPE for this thread, without that signal being delivered. */
int64_t  weft__os_quietly(int64_t (*call)(const void *arg), const void *arg);

/* Converts the result of a system call: >= 0 stays, -1 becomes -errno. */
int64_t  weft__os_result(int64_t rc);

/* Append a description of the code address `pc`: function and line if the program's files have
 * them; else a file and an offset, or the bare address. */
void     weft__os_add_symbol(struct weft__text *text, const void *pc);

/* The same for use in a signal handler; knows the files that were loaded at the last call of
 * weft__os_symbols_prepare(). */
void     weft__os_add_symbol_in_handler(struct weft__text *text, const void *pc);
void     weft__os_symbols_prepare(void);

/* The pid of this process, and the name of its program. */
uint64_t weft__os_pid(void);
void     weft__os_add_program(struct weft__text *text);

/* CPU state at the time a signal arrived. */
struct weft__moment {
	const void *addr; /* the faulting address, or NULL */
	const char *pc, *fp, *sp;
};

/* Call `handler` in a signal handler for every fault (SIGSEGV, SIGBUS) that the kernel reports.  If
 * `handler` returns true, the previous action is restored and the fault happens again.  If it
 * returns false, or a program has sent the signal, the previous action handles the signal.  0 or
 * -errno. */
int      weft__os_catch_faults(bool (*handler)(const struct weft__moment *moment));

/* Whether SIGSEGV has a handler or is ignored. */
bool     weft__os_has_fault_handler(void);

/* Install `handler` for the signal that weft__os_signal_thread() sends.  `handler` runs on the
 * target thread, and returns false if the signal was not meant for it: then the signal goes to the
 * previous action.  0 or -errno. */
int      weft__os_catch_thread_signal(bool (*handler)(const struct weft__moment *moment));

/* Let weft__os_signal_thread() signal the calling thread; returns the thread's handle. */
uint64_t weft__os_allow_thread_signal(void);

/* Send that signal to the thread whose handle is in *thread.  0 means no thread; the handle
 * must become 0 before its thread exits.  0 or -errno. */
int      weft__os_signal_thread(const weft__a64 *thread);

/* Reset the lock of weft__os_signal_thread() in a forked child. */
void     weft__os_forget_thread_signal(void);

/* Give the calling thread an alternate signal stack, until the thread exits.  0 or -errno. */
int      weft__os_signal_stack(struct weft__thread *self);

/* End the process at once: with a core file, or with a status.  No exit handlers run. */
_Noreturn void weft__os_abort(void);
_Noreturn void weft__os_exit(int status);

/* The high end of the calling thread's stack; the address of a frame if the end is unknown. */
const void *weft__os_stack_end(void);

/* Milliseconds, rounded up so that no sleep ends early; -1 means no timeout. */
int      weft__os_ms(int64_t timeout_ns);

/* The hooks given to weft_set_hooks(); see hooks.c. */
extern weft_hooks weft__hooks;
extern weft__a32  weft__hooks_used; /* 1 once the library has allocated memory */

#endif
