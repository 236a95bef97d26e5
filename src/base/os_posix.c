/* os_posix.c - the sys table's functions that every POSIX system has.
 *
 * Thin on purpose: each makes one call, turns -1 and errno into -errno, and adds the flags that
 * the table promises (never blocks, raises no signal, close-on-exec).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/build.h"
#include "base/fence.h"
#include "base/os.h"
#include "base/thread.h"

int64_t
weft__os_result(int64_t rc)
{
	return rc < 0 ? -errno : rc;
}

int *
weft__errno(void)
{
	return &errno;
}

extern void *__cxa_get_globals(void) __attribute__((weak));

void **
weft__exceptions(void)
{
	return __cxa_get_globals ? __cxa_get_globals() : NULL;
}

int
weft__os_ms(int64_t timeout_ns)
{
	if (timeout_ns < 0)
		return -1;
	if (timeout_ns > (int64_t)(INT_MAX - 1) * 1000000)
		return INT_MAX;
	return (int)((timeout_ns + 999999) / 1000000);
}

void
weft__os_abort(void)
{
	abort();
}

/* Not exit(): it waits for locks that code still running may hold. */
void
weft__os_exit(int status)
{
	_exit(status);
}

const void *
weft__os_stack_end(void)
{
	const char *end = __builtin_frame_address(0);
	pthread_attr_t attr;
	size_t size;
	void *low;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return end;
	if (pthread_attr_getstack(&attr, &low, &size) == 0)
		end = (const char *)low + size;
	(void)pthread_attr_destroy(&attr);
	return end;
}

/* --- memory ------------------------------------------------------------- */

/* The flag is only ever set; testing it first keeps its cache line shared. */
static void
note_use(void)
{
	if (!weft__load(&weft__hooks_used, WEFT__RELAXED))
		weft__store(&weft__hooks_used, 1, WEFT__RELAXED);
}

/* Stress build: code that reads memory which was never written, was freed or has moved finds
 * junk. */
enum { FRESH = 0xa5, GONE = 0xdd };

static void *
stress_alloc(size_t size)
{
	void *mem = malloc(size);

	return mem ? memset(mem, FRESH, size) : NULL;
}

/* The compiler must not remove the memset as a dead store. */
static void
stress_release(void *mem)
{
	if (mem)
		memset(mem, GONE, malloc_usable_size(mem));
	__asm__ volatile("" : : "r"(mem) : "memory");
	free(mem);
}

static void *
stress_resize(void *mem, size_t size)
{
	size_t had = mem ? malloc_usable_size(mem) : 0;
	void *moved = stress_alloc(size);

	if (!moved)
		return NULL;
	if (had > 0)
		memcpy(moved, mem, had < size ? had : size);
	stress_release(mem);
	return moved;
}

void *
weft__os_alloc(size_t size)
{
	note_use();
	if (weft__hooks.alloc)
		return weft__hooks.alloc(weft__hooks.arg, size);
	return WEFT__STRESS ? stress_alloc(size) : malloc(size);
}

void *
weft__os_resize(void *mem, size_t size)
{
	note_use();
	if (weft__hooks.resize)
		return weft__hooks.resize(weft__hooks.arg, mem, size);
	return WEFT__STRESS ? stress_resize(mem, size) : realloc(mem, size);
}

void
weft__os_release(void *mem)
{
	if (weft__hooks.release)
		weft__hooks.release(weft__hooks.arg, mem);
	else if (WEFT__STRESS)
		stress_release(mem);
	else
		free(mem);
}

/* --- clock and threads -------------------------------------------------- */

uint64_t
weft__os_now(void)
{
	struct timespec now;

	/* Cannot fail: the clock exists and the address is valid. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * WEFT_S + (uint64_t)now.tv_nsec;
}

void
weft__os_yield(void)
{
	(void)sched_yield();
}

struct start {
	struct weft__thread_opts opts;
	char name[16];
};

weft__a32 weft__os_own_threads;

static void
forget_threads(void)
{
	weft__store(&weft__os_own_threads, 0, WEFT__RELAXED);
}

static void *
thread_main(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	if (start.name[0])
		(void)pthread_setname_np(pthread_self(), start.name);
	weft__fence(start.opts.fn, start.opts.arg);
	(void)weft__add(&weft__os_own_threads, UINT32_MAX, WEFT__RELAXED);
	return NULL;
}

/* Round up to the system's minimum and to whole pages.  An errno, or 0. */
static int
set_stack(pthread_attr_t *attr, size_t bytes)
{
	size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (bytes == 0)
		return 0;
	if (bytes > SIZE_MAX - page)
		return EINVAL;
	bytes = bytes < least ? least : bytes;
	return pthread_attr_setstacksize(attr, (bytes + page - 1) & ~(page - 1));
}

/* An errno, or 0. */
static int
create(struct start *start, pthread_t *out)
{
	pthread_attr_t attr;
	/* A fault whose signal is blocked kills the process without calling a handler. */
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	sigset_t all, before;
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return rc;
	/* The new thread inherits the mask, so the program's own threads receive the signals. */
	(void)sigfillset(&all);
	for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
		(void)sigdelset(&all, faults[k]);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = set_stack(&attr, start->opts.stack_bytes);
	if (rc == 0)
		rc = pthread_create(out, &attr, thread_main, start);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return rc;
}

int
weft__os_thread_start(const struct weft__thread_opts *opts, uint64_t *out)
{
	struct start *start = calloc(1, sizeof(*start));
	pthread_t thread;
	int rc;

	if (!start)
		return -ENOMEM;
	start->opts = *opts;
	if (opts->name)
		memcpy(start->name, opts->name, strnlen(opts->name, 15));
	(void)weft__add(&weft__os_own_threads, 1, WEFT__RELAXED);
	rc = create(start, &thread);
	if (rc != 0) {
		(void)weft__add(&weft__os_own_threads, UINT32_MAX, WEFT__RELAXED);
		free(start);
		return -rc;
	}
	*out = (uint64_t)thread;
	return 0;
}

int
weft__os_thread_join(uint64_t thread)
{
	return -pthread_join((pthread_t)thread, NULL);
}

/* --- signals ------------------------------------------------------------ */

#define SIGNAL_STACK ((size_t)65536) /* enough for a report hook and large register sets */

int
weft__os_signal_stack(struct weft__thread *self)
{
	stack_t before, mine = { .ss_size = SIGNAL_STACK };
	int rc = (int)weft__os_result(sigaltstack(NULL, &before));

	if (rc < 0 || !(before.ss_flags & SS_DISABLE)) {
		self->has_signal_stack = rc == 0;
		return rc;
	}
	mine.ss_sp = weft__os_stack_map(SIGNAL_STACK);
	if (!mine.ss_sp)
		return -ENOMEM;
	rc = (int)weft__os_result(sigaltstack(&mine, NULL));
	if (rc < 0) {
		weft__os_stack_unmap(mine.ss_sp, SIGNAL_STACK);
		return rc;
	}
	self->signal_stack = mine.ss_sp;
	self->has_signal_stack = true;
	return 0;
}

static void
drop_signal_stack(struct weft__thread *self)
{
	stack_t none = { .ss_flags = SS_DISABLE }, now;

	if (!self->signal_stack)
		return;
	if (sigaltstack(NULL, &now) == 0 && now.ss_sp == self->signal_stack)
		(void)sigaltstack(&none, NULL);
	weft__os_stack_unmap(self->signal_stack, SIGNAL_STACK);
}

static struct weft__moment
moment_of(const void *context)
{
	const mcontext_t *cpu = &((const ucontext_t *)context)->uc_mcontext;

	return (struct weft__moment)
	{
#if defined(__x86_64__)
		.pc = (const char *)cpu->gregs[REG_RIP], .fp = (const char *)cpu->gregs[REG_RBP],
		.sp = (const char *)cpu->gregs[REG_RSP],
#else
		.pc = (const char *)cpu->pc, .fp = (const char *)cpu->regs[29],
		.sp = (const char *)cpu->sp,
#endif
	};
}

static const int fault_signals[2] = { SIGSEGV, SIGBUS };
static struct sigaction faults_before[2];
static bool (*fault_handler)(const struct weft__moment *moment);

/* Pass a signal to the previous action.  SIG_DFL and SIG_IGN are not functions: restore the
 * action, so that a fault happens again, and raise a sent signal again.  A sent signal that was
 * ignored stays ignored. */
static void
pass_on(int number, siginfo_t *info, void *context, const struct sigaction *before)
{
	bool is_sent = info->si_code <= 0;

	if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(number, info, context);
	} else if (before->sa_handler == SIG_IGN && is_sent) {
		return;
	} else if (before->sa_handler == SIG_DFL || before->sa_handler == SIG_IGN) {
		(void)sigaction(number, before, NULL);
		if (is_sent)
			(void)raise(number);
	} else {
		before->sa_handler(number);
	}
}

static void
on_fault(int number, siginfo_t *info, void *context)
{
	const struct sigaction *before = &faults_before[number == fault_signals[1]];
	struct weft__moment moment = moment_of(context);
	int saved = errno;

	moment.addr = info->si_addr;
	if (info->si_code > 0 && fault_handler(&moment))
		(void)sigaction(number, before, NULL);
	else
		pass_on(number, info, context, before);
	errno = saved;
}

int
weft__os_catch_faults(bool (*handler)(const struct weft__moment *moment))
{
	struct sigaction mine = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	int rc = 0;

	fault_handler = handler;
	(void)sigemptyset(&mine.sa_mask);
	for (int i = 0; rc == 0 && i < 2; i++) {
		struct sigaction before;

		rc = (int)weft__os_result(sigaction(fault_signals[i], NULL, &before));
		if (rc < 0)
			break;
		/* Before a fork, a thread of the parent may have installed this handler already. */
		if (before.sa_sigaction == on_fault)
			continue;
		faults_before[i] = before; /* set before the handler can run */
		rc = (int)weft__os_result(sigaction(fault_signals[i], &mine, NULL));
	}
	return rc;
}

bool
weft__os_has_fault_handler(void)
{
	struct sigaction now;

	return sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler != SIG_DFL;
}

/* The signal is SIGURG, because that is ignored by default, and rarely used. */
static struct sigaction sigurg_before;
static bool (*sigurg_handler)(const struct weft__moment *moment);
static pthread_mutex_t sigurg_lock = PTHREAD_MUTEX_INITIALIZER;

static void
on_sigurg(int number, siginfo_t *info, void *context)
{
	struct weft__moment moment = moment_of(context);
	int saved = errno;

	if (sigurg_handler(&moment))
		;
	else if (sigurg_before.sa_flags & SA_SIGINFO)
		sigurg_before.sa_sigaction(number, info, context);
	else if (sigurg_before.sa_handler != SIG_DFL && sigurg_before.sa_handler != SIG_IGN)
		sigurg_before.sa_handler(number);
	errno = saved;
}

int
weft__os_catch_thread_signal(bool (*handler)(const struct weft__moment *moment))
{
	struct sigaction mine = { .sa_sigaction = on_sigurg,
		                  .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	int rc;

	sigurg_handler = handler;
	(void)sigemptyset(&mine.sa_mask);
	rc = (int)weft__os_result(sigaction(SIGURG, NULL, &sigurg_before));
	return rc < 0 ? rc : (int)weft__os_result(sigaction(SIGURG, &mine, NULL));
}

uint64_t
weft__os_allow_thread_signal(void)
{
	sigset_t sigurg;

	(void)sigemptyset(&sigurg);
	(void)sigaddset(&sigurg, SIGURG);
	(void)pthread_sigmask(SIG_UNBLOCK, &sigurg, NULL);
	return (uint64_t)pthread_self();
}

/* An exiting thread takes this lock first, so its handle stays valid while the lock is held. */
int
weft__os_signal_thread(const weft__a64 *thread)
{
	uint64_t number;
	int rc = -ESRCH;

	(void)pthread_mutex_lock(&sigurg_lock);
	number = weft__load(thread, WEFT__ACQUIRE);
	if (number)
		rc = -pthread_kill((pthread_t)number, SIGURG);
	(void)pthread_mutex_unlock(&sigurg_lock);
	return rc;
}

void
weft__os_forget_thread_signal(void)
{
	sigurg_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* --- the struct of a thread --------------------------------------------- */

static _Thread_local struct weft__thread storage;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void
on_thread_exit(void *arg)
{
	(void)pthread_mutex_lock(&sigurg_lock);
	(void)pthread_mutex_unlock(&sigurg_lock);
	drop_signal_stack(arg);
	weft__thread_end(arg);
	weft__thread_ptr = NULL;
}

/* Keep the object that contains this code loaded, even if a plugin that loaded it is closed:
 * from now on the system holds pointers into it, for thread exit, fork and signals, and threads
 * of the library run it.  The main program, whose name is empty here, is never unloaded. */
static void
stay_loaded(void)
{
#ifdef __GLIBC__ /* other libcs never unload, or lack dladdr1() */
	struct link_map *object;
	Dl_info info;

	if (dladdr1(&exit_key, &info, (void **)&object, RTLD_DL_LINKMAP) && object->l_name[0])
		(void)dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

static void
make_exit_key(void)
{
	stay_loaded();
	/* If this fails, exiting threads leak what they hold; nothing worse. */
	(void)pthread_key_create(&exit_key, on_thread_exit);
}

struct weft__thread *
weft__os_thread_self(void)
{
	(void)pthread_once(&exit_once, make_exit_key);
	(void)pthread_setspecific(exit_key, &storage);
	weft__thread_ptr = &storage;
	return &storage;
}

const char *
weft__os_env(const char *name)
{
	return getenv(name);
}

void
weft__os_ignore_pipe(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGPIPE, &ignore, NULL);
}

int
weft__os_at_fork(void (*fn)(void))
{
	int rc = pthread_atfork(NULL, NULL, forget_threads);

	return -(rc ? rc : pthread_atfork(NULL, NULL, fn));
}

/* --- descriptors -------------------------------------------------------- */

int
weft__os_close(int fd)
{
	/* Linux and POSIX 2024 agree that the descriptor is closed even after EINTR. */
	int rc = (int)weft__os_result(close(fd));

	return rc == -EINTR ? 0 : rc;
}

int64_t
weft__os_read(int fd, void *buf, size_t size)
{
	return weft__os_result(read(fd, buf, size));
}

int64_t
weft__os_write(int fd, const void *buf, size_t size)
{
	return weft__os_result(write(fd, buf, size));
}

static int
add_flag(int fd, int get, int set, int flag)
{
	int flags = (int)weft__os_result(fcntl(fd, get));

	if (flags < 0 || (flags & flag))
		return flags < 0 ? flags : 0;
	return (int)weft__os_result(fcntl(fd, set, flags | flag));
}

int
weft__os_set_nonblock(int fd)
{
	return add_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK);
}

int
weft__os_set_block(int fd)
{
	int flags = (int)weft__os_result(fcntl(fd, F_GETFL));

	if (flags < 0 || !(flags & O_NONBLOCK))
		return flags < 0 ? flags : 0;
	return (int)weft__os_result(fcntl(fd, F_SETFL, flags & ~O_NONBLOCK));
}

int
weft__os_set_cloexec(int fd)
{
	return add_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC);
}

/* --- files -------------------------------------------------------------- */

int
weft__os_file_open(const char *path, int flags, mode_t mode)
{
	return (int)weft__os_result(open(path, flags | O_CLOEXEC, mode));
}

int64_t
weft__os_file_read(int fd, void *buf, size_t size, uint64_t offset)
{
	return weft__os_result(pread(fd, buf, size, (off_t)offset));
}

int64_t
weft__os_file_write(int fd, const void *buf, size_t size, uint64_t offset)
{
	return weft__os_result(pwrite(fd, buf, size, (off_t)offset));
}

int
weft__os_file_sync(int fd)
{
	return (int)weft__os_result(fsync(fd));
}

/* --- sockets ------------------------------------------------------------ */

int
weft__os_bind(int fd, const struct sockaddr *addr, socklen_t size)
{
	return (int)weft__os_result(bind(fd, addr, size));
}

int
weft__os_listen(int fd, int backlog)
{
	return (int)weft__os_result(listen(fd, backlog));
}

int
weft__os_connect(int fd, const struct sockaddr *addr, socklen_t size)
{
	return (int)weft__os_result(connect(fd, addr, size));
}

int
weft__os_so_error(int fd, int *out)
{
	socklen_t size = sizeof(*out);

	return (int)weft__os_result(getsockopt(fd, SOL_SOCKET, SO_ERROR, out, &size));
}

int
weft__os_shutdown(int fd, int how)
{
	return (int)weft__os_result(shutdown(fd, how));
}

int
weft__os_sockname(int fd, struct sockaddr *addr, socklen_t *size)
{
	return (int)weft__os_result(getsockname(fd, addr, size));
}

int
weft__os_peername(int fd, struct sockaddr *addr, socklen_t *size)
{
	return (int)weft__os_result(getpeername(fd, addr, size));
}

int
weft__os_set_option(int fd, int level, int name, const void *value, socklen_t size)
{
	return (int)weft__os_result(setsockopt(fd, level, name, value, size));
}

int
weft__os_get_option(int fd, int level, int name, void *value, socklen_t *size)
{
	return (int)weft__os_result(getsockopt(fd, level, name, value, size));
}

int
weft__os_path_mode(int fd, mode_t mode)
{
	return (int)weft__os_result(fchmod(fd, mode));
}

int64_t
weft__os_unsent(int fd)
{
	int bytes = 0;
	int64_t rc = weft__os_result(ioctl(fd, TIOCOUTQ, &bytes));

	return rc < 0 ? rc : bytes;
}

int
weft__os_path_remove(const char *path)
{
	return (int)weft__os_result(unlink(path));
}

int64_t
weft__os_recv(int fd, void *buf, size_t size, int flags)
{
	return weft__os_result(recv(fd, buf, size, flags | MSG_DONTWAIT));
}

int64_t
weft__os_send(int fd, const void *buf, size_t size, int flags)
{
	return weft__os_result(send(fd, buf, size, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

int64_t
weft__os_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return weft__os_result(recvmsg(fd, msg, flags | MSG_DONTWAIT));
}

int64_t
weft__os_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return weft__os_result(sendmsg(fd, msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* --- stacks ------------------------------------------------------------- */

/* MAP_NORESERVE: most stacks only ever touch their first page.  Huge pages would allocate the
 * whole stack at once. */
void *
weft__os_stack_map(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
	                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	(void)madvise(mem, size, MADV_NOHUGEPAGE);
	return mem;
}

void
weft__os_stack_unmap(void *mem, size_t size)
{
	(void)munmap(mem, size);
}

int
weft__os_stack_guard(void *mem, size_t size)
{
	return (int)weft__os_result(mprotect(mem, size, PROT_NONE));
}

void
weft__os_stack_discard(void *mem, size_t size)
{
	(void)madvise(mem, size, MADV_DONTNEED);
}
