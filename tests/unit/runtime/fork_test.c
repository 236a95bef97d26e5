/* fork_test.c - a child is forked while another thread of its parent is inside the library.
 *
 * The child has a copy of what that thread was changing, and of the locks it held.  A hook in the
 * sys table stands for the other thread: it forks wherever the library calls the system, so each
 * run has the same forks.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/dag.h>
#include <weft/runtime.h>
#include <weft/stream.h>
#include <weft/trace.h>
#include <weft/watch.h>
#include "base/build.h"
#include "base/sys.h"
#include "promise/promise.h"
#include "test.h"

static const struct weft__sys *real_sys;
static _Thread_local bool is_forking;
static int forks, first_status;
static int (*child_use)(void);

static int
end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

static int
end_step(weft_dag_step *step, void *arg)
{
	(void)step;
	(void)arg;
	return 0;
}

/* --- what parent and child do: 0, or the number of what failed ------------- */

static int
use_threadlets(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop };

	if (!loop)
		return 1;
	for (int i = 0; i < 300; i++)
		if (weft_go_with(&opts, end_at_once, NULL) <= 0)
			return 2;
	if (weft_loop_run(loop) < 0)
		return 3;
	return weft_loop_free(loop) < 0 ? 4 : 0;
}

static int
use_dag(void)
{
	weft_dag *dag = weft_dag_new("forked");
	weft_dag_node node = { .name = "a", .fn = end_step };

	if (!dag || weft_dag_add(dag, &node) < 0 || weft_dag_check(dag) < 0)
		return 5;
	return weft_dag_free(dag) < 0 ? 6 : 0;
}

static int
use_trace(void)
{
	weft_trace *trace;

	if (weft_trace_begin(&(weft_trace_opts){ .bytes_max = 1 << 20 }, &trace) < 0)
		return 7;
	weft_trace_free(trace);
	return 0;
}

static int
use_runtime(void)
{
	weft_runtime *runtime = weft_runtime_new(&(weft_runtime_opts){ .loops = 1 });

	if (!runtime || weft_runtime_start(runtime) < 0)
		return 8;
	if (weft_go(end_at_once, NULL) <= 0)
		return 9;
	weft_runtime_shutdown(runtime);
	if (weft_runtime_wait_stopped(runtime, WEFT_NEVER) < 0)
		return 10;
	return weft_runtime_free(runtime) < 0 ? 11 : 0;
}

static int
connect_tls(void *arg)
{
	weft_stream *stream;

	(void)arg;
	return weft_stream_connect("tls://127.0.0.1:1", NULL, &stream, WEFT_NEVER) < 0 ? 0 : -1;
}

/* Opens the context that a connection without one uses. */
static int
use_default_tls(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop };

	if (!loop || weft_go_with(&opts, connect_tls, NULL) <= 0 || weft_loop_run(loop) < 0)
		return 12;
	return weft_loop_free(loop) < 0 ? 13 : 0;
}

/* The first promise of the loop is made after it has stopped.  If `out` is not NULL, it gets a
 * reference. */
static int
make_late_promise(weft_promise **out)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_promise *promise;

	if (!loop)
		return 14;
	weft_loop_shutdown(loop);
	promise = weft_promise_new(loop);
	if (!promise)
		return 15;
	if (out)
		*out = weft_promise_ref(promise);
	(void)weft_promise_unref(promise);
	return weft_loop_free(loop) < 0 ? 16 : 0;
}

static int
use_late_promise(void)
{
	return make_late_promise(NULL);
}

static int (*const uses[])(void) = { use_trace, use_threadlets, use_dag, use_late_promise,
	                             use_runtime };

/* Not the runtime, which has threads, with sanitizers.  One of them may hold the lock of
 * AddressSanitizer's allocator at the fork.  Then no child can allocate.  ThreadSanitizer ends a
 * child of a program with threads that starts a thread. */
enum { USES = sizeof(uses) / sizeof(uses[0]) - (WEFT__ASAN || WEFT__TSAN) };

static int
use_all(void)
{
	int failed = 0;

	for (size_t i = 0; i < USES && !failed; i++)
		failed = uses[i]();
	return failed;
}

/* --- the other thread -------------------------------------------------------- */

/* The first child that hangs or fails is reported; after it there are no more. */
static void
fork_here(void)
{
	pid_t pid;
	int status = 0;

	if (!is_forking || first_status)
		return;
	is_forking = false;
	forks++;
	pid = test_fork();
	if (pid == 0) {
		(void)alarm(30);
		weft__sys = real_sys;
		test_child_exit(child_use());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = -1;
	first_status = status;
	is_forking = true;
}

static int
fork_and_register(void (*fn)(void))
{
	int rc;

	fork_here();
	rc = real_sys->at_fork(fn);
	fork_here();
	return rc;
}

static void *
fork_and_alloc(size_t size)
{
	fork_here();
	return real_sys->alloc(size);
}

static void
fork_and_release(void *mem)
{
	fork_here();
	real_sys->release(mem);
}

static void
check_children(void)
{
	CHECK(forks > 0);
	CHECK(!WIFSIGNALED(first_status));
	CHECK_EQ(WEXITSTATUS(first_status), 0);
}

/* The parent runs `use`, its children run `in_child`. */
static void
fork_between(int (*use)(void), int (*in_child)(void), struct weft__sys sys)
{
	real_sys = weft__sys;
	forks = first_status = 0;
	child_use = in_child;
	weft__sys = &sys;
	is_forking = true;
	CHECK_EQ(use(), 0);
	is_forking = false;
	weft__sys = real_sys;
	check_children();
}

static void
fork_inside(int (*use)(void), struct weft__sys sys)
{
	fork_between(use, use, sys);
}

/* First, because a process registers its handlers once. */
TEST(child_forked_while_fork_handlers_are_registered_can_use_the_library)
{
	struct weft__sys sys = *weft__sys;

	sys.at_fork = fork_and_register;
	fork_inside(use_all, sys);
	CHECK_EQ(forks, 2 * USES); /* one handler each */
}

TEST(child_forked_while_the_library_allocates_and_frees_can_use_it)
{
	struct weft__sys sys = *weft__sys;

	sys.alloc = fork_and_alloc;
	sys.release = fork_and_release;
	fork_inside(use_trace, sys);
	fork_inside(use_threadlets, sys);
	fork_inside(use_dag, sys);
}

/* Forks while this thread holds the lock of promises whose loop has stopped. */
TEST(child_forked_while_a_promise_of_a_stopped_loop_is_made_can_make_one)
{
	weft_promise *promise;

	CHECK_EQ(make_late_promise(&promise), 0);
	real_sys = weft__sys;
	forks = first_status = 0;
	child_use = use_late_promise;
	weft__lock_take(&promise->owner->lock);
	is_forking = true;
	fork_here();
	is_forking = false;
	weft__lock_give(&promise->owner->lock);
	(void)weft_promise_unref(promise);
	check_children();
}

/* --- signals ----------------------------------------------------------------- */

static void
on_own_signal(int signo)
{
	(void)signo;
}

static void
on_watched(weft_watch *watch, int what, void *arg)
{
	(void)watch;
	(void)what;
	(void)arg;
}

static int
use_signal(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_watch watch = WEFT_INIT;

	if (!loop || weft_watch_start_signal(loop, &watch, SIGUSR1, on_watched, NULL) < 0
	    || weft_watch_stop(&watch) < 0)
		return 17;
	return weft_loop_free(loop) < 0 ? 18 : 0;
}

static int
check_own_handler(void)
{
	struct sigaction now;

	return sigaction(SIGUSR1, NULL, &now) < 0 || now.sa_handler != on_own_signal ? 19 : 0;
}

static int
fork_and_take(int signo, void (*fn)(int signo), struct sigaction *before)
{
	int rc;

	fork_here();
	rc = real_sys->signal_take(signo, fn, before);
	fork_here();
	return rc;
}

static int
fork_and_give(int signo, const struct sigaction *before)
{
	int rc;

	fork_here();
	rc = real_sys->signal_give(signo, before);
	fork_here();
	return rc;
}

TEST(child_forked_while_a_signal_watch_starts_or_stops_has_the_original_handler)
{
	struct sigaction own = { .sa_handler = on_own_signal }, before;
	struct weft__sys sys = *weft__sys;

	CHECK_EQ(sigaction(SIGUSR1, &own, &before), 0);
	sys.signal_take = fork_and_take;
	sys.signal_give = fork_and_give;
	fork_between(use_signal, check_own_handler, sys);
	CHECK_EQ(forks, 4);
	CHECK_EQ(check_own_handler(), 0);
	CHECK_EQ(sigaction(SIGUSR1, &before, NULL), 0);
}

/* --- TLS --------------------------------------------------------------------- */

/* In a child, because the process keeps the context, which looks like a leak. */
TEST(child_forked_while_the_default_tls_context_is_opened_can_connect)
{
	struct weft__sys sys = *weft__sys;
	int status;
	pid_t pid;

	sys.alloc = fork_and_alloc;
	sys.release = fork_and_release;
	pid = test_fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		fork_inside(use_default_tls, sys);
		test_child_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}
