/* threadlet_forked_test.c - a forked child can use new loops, whatever the parent was doing. */
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/build.h"
#include "unit/threadlet/sched.h"

/* TSan does not follow children of a program with threads. */
enum { FORKS = TEST_TSAN ? 10 : 200 };

static int
count(void *arg)
{
	++*(int *)arg;
	return weft_yield();
}

/* Runs in the child.  Returns 0 if everything worked. */
static int
live_anew(void)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop };
	int ran = 0;

	if (!loop)
		return 1;
	for (int i = 0; i < 300; i++)
		if (weft_go_with(&opts, count, &ran) <= 0)
			return 2;
	if (weft_loop_run(loop) < 0)
		return 3;
	if (ran != 300)
		return 4;
	return weft_loop_free(loop) < 0 ? 5 : 0;
}

/* A child that hangs is killed, which is a failure. */
static void
fork_and_live(void)
{
	int status;
	int pid = test_fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		(void)alarm(30);
		test_child_exit(live_anew());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

/* --- while other threads are busy ----------------------------------------- */

static weft__a32 enough;

static int
end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

static void *
start_and_cancel(void *arg)
{
	weft_go_opts opts = { .loop = arg };

	while (!weft__load(&enough, WEFT__RELAXED)) {
		weft_threadlet id = weft_go_with(&opts, end_at_once, NULL);

		if (id > 0)
			(void)weft_cancel(id);
		else
			(void)sched_yield();
	}
	return NULL;
}

TEST(child_forked_while_threads_start_threadlets_can_run_its_own)
{
	weft_loop *loop = make_with(&(weft_loop_opts){ .threadlet_max = 500 });
	pthread_t threads[2];

	weft__store(&enough, 0, WEFT__RELAXED);
	OK(weft_loop_start(loop));
	for (int i = 0; i < 2; i++)
		threads[i] = thread(start_and_cancel, loop);
	/* Another thread may hold the lock of AddressSanitizer's allocator at the fork.  Then
	 * no child of a program with threads can allocate. */
	for (int i = 0; i < FORKS && !WEFT__ASAN; i++)
		fork_and_live();
	weft__store(&enough, 1, WEFT__RELAXED);
	for (int i = 0; i < 2; i++)
		OK(pthread_join(threads[i], NULL));
	stop_and_free(loop);
}

/* --- inside a threadlet ----------------------------------------------------- */

static int
fork_inside(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, end_at_once, NULL) > 0);
	fork_and_live();
	OK(weft_scope_close(&scope));
	OK(weft_sleep_until(weft_after(1)));
	fork_and_live();
	note(arg);
	return 0;
}

TEST(child_forked_by_a_threadlet_can_run_its_own_loop)
{
	run_threadlet(fork_inside, MARK('f'));
	CHECK_STR(trace, "f");
}

static int
try_parents_loop(void)
{
	if (weft_yield() != WEFT_EWRONGLOOP)
		return 1;
	if (weft_sleep_until(weft_after(1)) != WEFT_EWRONGLOOP)
		return 2;
	if (weft_go(end_at_once, NULL) != WEFT_EWRONGLOOP)
		return 3;
	return live_anew();
}

static int
fork_and_try(void *arg)
{
	int status;
	int pid = test_fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		(void)alarm(30);
		test_child_exit(try_parents_loop());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	note(arg);
	return 0;
}

TEST(child_forked_by_a_threadlet_cannot_use_its_parents_loop)
{
	if (test_misuse_aborts)
		return; /* the misuse would abort the process */
	run_threadlet(fork_and_try, MARK('t'));
	CHECK_STR(trace, "t");
}

/* --- threadlet IDs ----------------------------------------------------------- */

static int
see_own_numbers(weft_threadlet parents)
{
	weft_loop *loop = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = loop };
	weft_threadlet id = weft_go_with(&opts, end_at_once, NULL);

	if (id <= 0 || id == parents)
		return 1;
	if (weft_cancel(parents) != WEFT_ESRCH)
		return 2;
	if (weft_loop_run(loop) < 0 || weft_loop_free(loop) < 0)
		return 3;
	return 0;
}

TEST(forked_child_does_not_find_the_threadlets_of_its_parent)
{
	weft_loop *loop = make();
	weft_threadlet id = go_on(loop, end_at_once, NULL);
	int status;
	int pid = test_fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		(void)alarm(30);
		test_child_exit(see_own_numbers(id));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}
