/* threadlet_fork_test.c - what a forked child of a program with threadlets may do. */
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/sys.h"
#include "threadlet/handle.h"
#include "unit/threadlet/sched.h"

static int
add_one(void *arg)
{
	OK(weft_yield());
	OK(weft_sleep_until(weft_after(1)));
	++*(int *)arg;
	return 0;
}

/* Runs threadlets on a new loop.  Returns 0, or a number that shows what failed. */
static int
run_own(void)
{
	weft_loop *own = weft_loop_new(NULL);
	weft_go_opts opts = { .loop = own };
	int count = 0;

	for (int i = 0; own && i < 3; i++)
		if (weft_go_with(&opts, add_one, &count) < 0)
			return 10;
	if (!own || weft_loop_run(own) != 0)
		return 11;
	return weft_loop_free(own) != 0 ? 12 : count != 3 ? 13 : 0;
}

/* The child exited with 0, or was aborted if it may be. */
static bool
is_well(int child, bool may_abort)
{
	int status = -1;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	if (status != 0 && !may_abort)
		printf("status %x\n", (unsigned)status);
	return status == 0 || (may_abort && WIFSIGNALED(status));
}

/* --- what a child may not do -------------------------------------------- */

static weft_threadlet sibling;
static struct pair pair;

static int
sleep_on(void *arg)
{
	(void)arg;
	(void)weft_sleep_until(WEFT_NEVER);
	return 0;
}

enum { USES_ANYWHERE = 6, USES = 14 };

/* Makes a call by its number.  Those from USES_ANYWHERE on are only for threadlets. */
static int64_t
use(weft_scope *scope, weft_op *op, int what)
{
	weft_scope inner;

	/* clang-format off */
	switch (what) {
	case 0: return weft_go(sleep_on, NULL);
	case 1: return weft_go_with(NULL, sleep_on, NULL);
	case 2: return weft_join(sibling, NULL, WEFT_NEVER);
	case 3: return weft_join(sibling, NULL, WEFT_NOWAIT);
	case 4: return weft_cancel(sibling);
	case 5: return weft_interrupt(sibling);
	case 6: return weft_yield();
	case 7: return weft_sleep(1);
	case 8: return weft_wait_fd(pair.fd, WEFT_READABLE, WEFT_NEVER);
	case 9: return weft_scope_open(&inner, 0, WEFT_NEVER);
	case 10: return weft_scope_go(scope, sleep_on, NULL);
	case 11: return weft_scope_set_deadline(scope, 1);
	case 12: return weft_scope_close(scope);
	default: return weft_op_wait(op, WEFT_NEVER);
	}
	/* clang-format on */
}

static int
try_all(weft_scope *scope, weft_op *op, int count)
{
	int wrong = 0;

	for (int i = 0; i < count; i++) {
		int child = test_fork();

		if (child == 0)
			test_child_exit(use(scope, op, i) != WEFT_EWRONGLOOP);
		if (is_well(child, test_misuse_aborts))
			continue;
		printf("call %d\n", i);
		wrong++;
	}
	return wrong;
}

static void
try_in_callback(void *arg)
{
	*(int *)arg += try_all(NULL, NULL, USES_ANYWHERE);
}

static int
try_in_threadlet(void *arg)
{
	weft_scope scope;
	weft_op op;
	char byte;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	sibling = weft_scope_go(&scope, sleep_on, NULL);
	CHECK(sibling > 0);
	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_recv(&op, pair.fd, &byte, 1, 0, WEFT_NEVER));
	OK(weft_yield());
	*(int *)arg += try_all(&scope, &op, USES);
	OK(weft_loop_post(NULL, try_in_callback, arg));
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	OK(weft_cancel(sibling));
	OK(weft_join(sibling, NULL, WEFT_NEVER));
	put(pair.peer, "x");
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), 1);
	return weft_scope_close(&scope);
}

TEST(forked_child_cannot_use_its_parents_threadlets)
{
	int wrong = 0;

	pair = make_pair();
	run_threadlet(try_in_threadlet, &wrong);
	CHECK_EQ(wrong, 0);
	close_pair(pair);
}

/* --- what a child may do ------------------------------------------------ */

enum { EXIT, EXEC, RUN_OWN, FREE_THEN_RUN, RUN_THEN_FREE, WAYS };

/* Runs in the child. */
static int
go_way(int way)
{
	weft_loop *parents = weft_loop_current();
	int rc = 0;

	if (way == EXIT)
		_exit(0);
	if (way == EXEC)
		return execl("/bin/true", "true", NULL);
	if (way == FREE_THEN_RUN)
		rc = weft_loop_free(parents);
	if (rc == 0)
		rc = run_own();
	if (rc == 0 && way == RUN_THEN_FREE)
		rc = weft_loop_free(parents);
	if (rc == 0 && way != RUN_OWN)
		rc = weft_loop_current() != NULL;
	return rc != 0 ? rc : run_own();
}

static void
go_all_ways(void *arg)
{
	for (int way = 0; way < WAYS; way++) {
		int child = test_fork();

		if (child == 0)
			test_child_exit(go_way(way));
		if (!is_well(child, false)) {
			printf("way %d\n", way);
			++*(int *)arg;
		}
	}
}

static int
go_all_ways_here(void *arg)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, sleep_on, NULL) > 0);
	OK(weft_yield());
	go_all_ways(arg);
	OK(weft_loop_post(NULL, go_all_ways, arg));
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	weft_scope_cancel(&scope);
	return weft_scope_close(&scope);
}

TEST(child_forked_anywhere_may_exit_and_run_its_own_threadlets)
{
	int wrong = 0;

	run_threadlet(go_all_ways_here, &wrong);
	CHECK_EQ(wrong, 0);
}

/* --- while another thread holds a lock ---------------------------------- */

static struct weft__sys table;
static const struct weft__sys *table_before;
static weft__a32 held; /* 1: a thread holds a lock of the library, until it is 0 */
static pthread_t holder;

enum { CHUNK = 256 }; /* handles, which are allocated under a lock */

static void *
hold_in_alloc(size_t size)
{
	if (pthread_equal(pthread_self(), holder) && size == CHUNK * sizeof(struct weft__handle)) {
		weft__store(&held, 1, WEFT__RELEASE);
		while (weft__load(&held, WEFT__ACQUIRE))
			(void)sched_yield();
	}
	return table_before->alloc(size);
}

static void *
start_there(void *loop)
{
	static int count;

	holder = pthread_self();
	(void)go_on(loop, add_one, &count);
	return NULL;
}

/* The other thread finds no free handle and allocates more under the lock. */
TEST(forked_child_does_not_wait_for_a_lock_held_by_a_parents_thread)
{
	weft_loop *loop = make();
	int count = 0, child;
	pthread_t other;

	for (int i = 0; i < CHUNK; i++) /* all handles of a chunk */
		(void)go_on(loop, add_one, &count);
	table_before = weft__sys;
	table = *table_before;
	table.alloc = hold_in_alloc;
	weft__sys = &table;
	other = thread(start_there, loop);
	while (!weft__load(&held, WEFT__ACQUIRE))
		(void)sched_yield();
	child = test_fork();
	if (child == 0) {
		(void)alarm(20);
		test_child_exit(run_own());
	}
	weft__store(&held, 0, WEFT__RELEASE);
	(void)pthread_join(other, NULL);
	weft__sys = table_before;
	CHECK(is_well(child, false));
	OK(weft_loop_run(loop));
	CHECK_EQ(count, CHUNK);
	OK(weft_loop_free(loop));
}
