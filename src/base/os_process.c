/* os_process.c - signals and child processes of the sys table, for POSIX. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/os.h"

/* --- signals ------------------------------------------------------------ */

static weft__aptr signal_fn; /* one function for all signals */

static void
os_process_on_signal(int signo)
{
	int kept = errno;

	((void (*)(int))weft__load(&signal_fn, WEFT__RELAXED))(signo);
	errno = kept;
}

/* The handler runs on the thread's signal stack if the thread has one, because the interrupted
 * code may run on the small stack of a threadlet.  The first sigaction() also fills `before`: the
 * second one installs the handler before it fills `before`, and another thread may fork in
 * between; the child then restores the action from `before`. */
int
weft__os_signal_take(int signo, void (*fn)(int signo), struct sigaction *before)
{
	struct sigaction action = { .sa_handler = os_process_on_signal,
		                    .sa_flags = SA_RESTART | SA_ONSTACK };
	int rc = (int)weft__os_result(sigaction(signo, NULL, before));

	if (rc < 0)
		return rc;
	(void)sigfillset(&action.sa_mask);
	weft__store(&signal_fn, (uintptr_t)fn, WEFT__RELAXED);
	return (int)weft__os_result(sigaction(signo, &action, before));
}

int
weft__os_signal_give(int signo, const struct sigaction *before)
{
	struct sigaction now;
	int rc = (int)weft__os_result(sigaction(signo, NULL, &now));

	if (rc < 0 || now.sa_handler != os_process_on_signal)
		return rc;
	return (int)weft__os_result(sigaction(signo, before, NULL));
}

/* --- processes ---------------------------------------------------------- */

/* The child could overwrite descriptors 0 to 2 before it has duplicated them, so duplicate them to
 * higher numbers here.  0 or -errno. */
static int
lift(const int from[3], int to[3])
{
	memcpy(to, from, 3 * sizeof(*to));
	for (int i = 0; i < 3; i++) {
		if (from[i] < 0 || from[i] > 2)
			continue;
		to[i] = (int)weft__os_result(fcntl(from[i], F_DUPFD_CLOEXEC, 3));
		if (to[i] >= 0)
			continue;
		for (int k = 0; k < i; k++)
			if (to[k] != from[k])
				(void)close(to[k]);
		return to[i];
	}
	return 0;
}

static int
add_actions(const struct weft__spawn *spawn, const int fds[3], posix_spawn_file_actions_t *actions)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 3; i++)
		if (fds[i] >= 0)
			rc = posix_spawn_file_actions_adddup2(actions, fds[i], i);
		else if (fds[i] == WEFT__SPAWN_NULL)
			rc = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
	if (rc == 0 && spawn->cwd)
		rc = posix_spawn_file_actions_addchdir_np(actions, spawn->cwd);
	return -rc;
}

/* The library's threads block all signals, which a new program does not expect.  An ignored
 * SIGPIPE would be inherited through exec, so the child gets the default action. */
static int
add_attributes(const struct weft__spawn *spawn, posix_spawnattr_t *attr)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, pipe_only;

	(void)sigemptyset(&none);
	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)posix_spawnattr_setsigmask(attr, &none);
	(void)posix_spawnattr_setsigdefault(attr, &pipe_only);
	(void)posix_spawnattr_setpgroup(attr, 0);
	if (spawn->group)
		flags |= POSIX_SPAWN_SETPGROUP;
	return -posix_spawnattr_setflags(attr, flags);
}

static int
spawn_with(const struct weft__spawn *spawn, const int fds[3])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	pid_t pid = 0;
	int rc = -posix_spawn_file_actions_init(&actions);

	if (rc < 0)
		return rc;
	rc = -posix_spawnattr_init(&attr);
	if (rc == 0) {
		rc = add_actions(spawn, fds, &actions);
		if (rc == 0)
			rc = add_attributes(spawn, &attr);
		if (rc == 0) /* the casts are safe: posix_spawnp() does not write to either array */
			rc = -posix_spawnp(&pid, spawn->argv[0], &actions, &attr,
			                   (char *const *)(uintptr_t)spawn->argv,
			                   spawn->env ? (char *const *)(uintptr_t)spawn->env
			                              : environ);
		(void)posix_spawnattr_destroy(&attr);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return rc < 0 ? rc : (int)pid;
}

int
weft__os_spawn(const struct weft__spawn *spawn)
{
	int fds[3];
	int rc = lift(spawn->fds, fds);

	if (rc < 0)
		return rc;
	rc = spawn_with(spawn, fds);
	for (int i = 0; i < 3; i++)
		if (fds[i] != spawn->fds[i])
			(void)close(fds[i]);
	return rc;
}

int
weft__os_waitid(int type, int id, uint32_t how, int *out)
{
	siginfo_t info = { .si_pid = 0 };
	int flags = WEXITED | (how & WEFT__REAP_WAIT ? 0 : WNOHANG)
	            | (how & WEFT__REAP_KEEP ? WNOWAIT : 0);
	int rc = (int)weft__os_result(waitid((idtype_t)type, (id_t)id, &info, flags));

	if (rc < 0 || info.si_pid == 0)
		return rc;
	*out = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status;
	if (info.si_code == CLD_DUMPED)
		*out |= WCOREFLAG;
	return 1;
}

/* A pid stays valid until the child is reaped, and other code in the program may have reaped
 * it.  So check first that it can still be waited for. */
int
weft__os_kill(int pid, int signo, bool group)
{
	int status;
	int rc = weft__os_waitid(P_PID, pid, WEFT__REAP_KEEP, &status);

	if (rc == -ECHILD)
		return -ESRCH;
	return (int)weft__os_result(kill(group ? -pid : pid, signo));
}

/* --- this process -------------------------------------------------------- */

uint64_t
weft__os_pid(void)
{
	return (uint64_t)getpid();
}

void
weft__os_add_program(struct weft__text *text)
{
#if defined(__GLIBC__)
	weft__text_add(text, program_invocation_short_name);
#else
	weft__text_add(text, "program");
#endif
}
