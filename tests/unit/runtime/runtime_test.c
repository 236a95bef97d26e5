/* runtime_test.c - several loops, placement of threadlets, and complete programs. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#include "unit/threadlet/sched.h"

enum { LOOPS = 4 };

static weft_runtime *
make_runtime(uint32_t loops)
{
	weft_runtime *runtime = weft_runtime_new(&(weft_runtime_opts){ .loops = loops });

	CHECK(runtime != NULL);
	OK(weft_runtime_start(runtime));
	return runtime;
}

static void
end_runtime(weft_runtime *runtime)
{
	weft_runtime_shutdown(runtime);
	OK(weft_runtime_wait_stopped(runtime, WEFT_NEVER));
	OK(weft_runtime_free(runtime));
}

static struct {
	weft_runtime *runtime;
	weft_group started;
	weft_event go_on;
	weft__a32 per_loop[LOOPS];
	weft__a32 ended;
} spread;

static int
count_here(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < LOOPS; i++)
		if (weft_runtime_loop(spread.runtime, i) == weft_loop_current())
			(void)weft__add(&spread.per_loop[i], 1, WEFT__RELAXED);
	CHECK(weft_runtime_current() == spread.runtime);
	OK(weft_group_done(&spread.started));
	(void)weft_event_wait(&spread.go_on, WEFT_NEVER);
	(void)weft__add(&spread.ended, 1, WEFT__RELAXED);
	return 0;
}

static int
start_storm(void *arg)
{
	weft_go_opts opts = { .loop = WEFT_LEAST_LOADED };

	for (int i = 0; i < (int)(intptr_t)arg; i++)
		CHECK(weft_go_with(&opts, count_here, NULL) > 0);
	return 0;
}

static void
check_spread(int each)
{
	OK(weft_group_wait(&spread.started, WEFT_NEVER));
	for (int i = 0; i < LOOPS; i++) {
		int got = (int)weft__load(&spread.per_loop[i], WEFT__RELAXED);

		CHECK(got >= each - 2 && got <= each + 2);
	}
	OK(weft_event_set(&spread.go_on));
	end_runtime(spread.runtime);
	CHECK_EQ(weft__load(&spread.ended, WEFT__RELAXED), LOOPS * each);
}

static void
begin_spread(int each)
{
	memset(&spread, 0, sizeof(spread));
	spread.runtime = make_runtime(LOOPS);
	spread.started.flags = spread.go_on.flags = WEFT_SHARED;
	OK(weft_group_add(&spread.started, (uint32_t)(LOOPS * each)));
}

TEST(threadlets_started_by_a_plain_thread_are_spread_evenly)
{
	begin_spread(100);
	for (int i = 0; i < LOOPS * 100; i++)
		CHECK(weft_go(count_here, NULL) > 0);
	check_spread(100);
}

TEST(threadlets_started_by_a_threadlet_are_spread_evenly)
{
	begin_spread(100);
	CHECK(weft_go(start_storm, MARK(LOOPS * 100)) > 0);
	check_spread(100);
}

/* Threadlets that wait on one loop count as load.  New ones go to the other loops until those
 * have as many. */
TEST(loaded_loop_gets_no_threadlets_until_the_others_have_as_many)
{
	enum { BEFORE = 60, LATER = 90 };
	weft_go_opts opts = { .loop = NULL };

	begin_spread(0);
	opts.loop = weft_runtime_loop(spread.runtime, 0);
	OK(weft_group_add(&spread.started, BEFORE));
	for (int i = 0; i < BEFORE; i++)
		CHECK(weft_go_with(&opts, count_here, NULL) > 0);
	OK(weft_group_wait(&spread.started, WEFT_NEVER));
	OK(weft_group_add(&spread.started, LATER));
	CHECK(weft_go(start_storm, MARK(LATER)) > 0);
	OK(weft_group_wait(&spread.started, WEFT_NEVER));
	CHECK_EQ(weft__load(&spread.per_loop[0], WEFT__RELAXED), BEFORE);
	for (int i = 1; i < LOOPS; i++) {
		int got = (int)weft__load(&spread.per_loop[i], WEFT__RELAXED);

		CHECK(got >= LATER / (LOOPS - 1) - 2 && got <= LATER / (LOOPS - 1) + 2);
	}
	OK(weft_event_set(&spread.go_on));
	end_runtime(spread.runtime);
}

/* --- scopes across loops ------------------------------------------------ */

static int
return_where(void *arg)
{
	uint32_t index = (uint32_t)(intptr_t)arg;

	CHECK(weft_loop_current() == weft_runtime_loop(weft_runtime_current(), index));
	OK(weft_yield());
	return (int)index + 10;
}

static int
sleep_long(void *arg)
{
	int rc = weft_sleep_until(weft_after(HOUR));

	(void)arg;
	CHECK_EQ(rc, WEFT_ECANCELED);
	return rc;
}

static int
join_over_loops(void *arg)
{
	weft_threadlet ids[LOOPS];
	weft_scope scope;
	int out;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < LOOPS; i++) {
		weft_go_opts opts = {
			.scope = &scope,
			.loop = weft_runtime_loop(weft_runtime_current(), (uint32_t)i),
		};

		ids[i] = weft_go_with(&opts, return_where, MARK(i));
		CHECK(ids[i] > 0);
		CHECK(weft_go_with(&opts, sleep_long, NULL) > 0);
	}
	for (int i = 0; i < LOOPS; i++) {
		OK(weft_join(ids[i], &out, WEFT_NEVER));
		CHECK_EQ(out, i + 10);
	}
	weft_scope_cancel(&scope);
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(scope_joins_and_cancels_threadlets_on_other_loops)
{
	weft_runtime_opts opts = { .loops = LOOPS };

	for (int i = 0; i < 50; i++)
		CHECK_EQ(weft_main(&opts, join_over_loops, NULL), 0);
}

static int
fail_elsewhere(void *arg)
{
	(void)arg;
	return WEFT_EPROTO;
}

static int
see_failure(void *arg)
{
	weft_go_opts opts = { .loop = WEFT_LEAST_LOADED };
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER));
	opts.scope = &scope;
	CHECK(weft_go_with(&opts, sleep_long, NULL) > 0);
	CHECK(weft_go_with(&opts, fail_elsewhere, NULL) > 0);
	CHECK_EQ(weft_scope_close(&scope), WEFT_EPROTO);
	return 0;
}

TEST(failure_on_another_loop_ends_a_fail_fast_scope)
{
	for (int i = 0; i < 20; i++)
		CHECK_EQ(weft_main(&(weft_runtime_opts){ .loops = 3 }, see_failure, NULL), 0);
}

/* --- from other threads ------------------------------------------------- */

static weft__a32 asleep;

static int
sleep_until_told(void *arg)
{
	int rc;

	weft__store(&asleep, 1, WEFT__RELEASE);
	rc = weft_sleep_until(WEFT_NEVER);
	CHECK_EQ(rc, (int)(intptr_t)arg);
	weft__store(&asleep, 2, WEFT__RELEASE);
	return 0;
}

TEST(any_thread_can_cancel_and_interrupt_a_threadlet)
{
	weft_runtime *runtime = make_runtime(2);

	for (int i = 0; i < 200; i++) {
		int why = i % 2 ? WEFT_ECANCELED : WEFT_EINTR;
		weft_threadlet id = weft_go(sleep_until_told, MARK(why));

		CHECK(id > 0);
		if (i % 4 < 2) /* otherwise possibly before it has begun */
			while (weft__load(&asleep, WEFT__ACQUIRE) < 1)
				;
		OK(i % 2 ? weft_cancel(id) : weft_interrupt(id));
		while (weft__load(&asleep, WEFT__ACQUIRE) < 2)
			;
		weft__store(&asleep, 0, WEFT__RELAXED);
	}
	end_runtime(runtime);
}

/* --- programs ----------------------------------------------------------- */

static int
return_arg(void *arg)
{
	return (int)(intptr_t)arg;
}

static int
leave_others(void *arg)
{
	for (int i = 0; i < 10; i++)
		CHECK(weft_go_with(&(weft_go_opts){ .loop = WEFT_LEAST_LOADED }, sleep_long, NULL)
		      > 0);
	return (int)(intptr_t)arg;
}

TEST(weft_main_ends_with_its_main_threadlet_and_cancels_the_rest)
{
	CHECK_EQ(weft_main(NULL, return_arg, MARK(5)), 0);
	CHECK_EQ(weft_main(NULL, return_arg, MARK(WEFT_EPROTO)), 1);
	CHECK_EQ(weft_main(NULL, leave_others, NULL), 0);
	CHECK_MISUSE(weft_main(NULL, NULL, NULL), 1);
}

static int
main_inside(void *arg)
{
	(void)arg;
	CHECK_MISUSE(weft_main(NULL, return_arg, NULL), 1);
	return 0;
}

TEST(weft_main_cannot_run_inside_another)
{
	CHECK_EQ(weft_main(NULL, main_inside, NULL), 0);
}

TEST(runtime_is_started_once_and_freed_when_it_has_stopped)
{
	weft_runtime *runtime = weft_runtime_new(NULL);

	CHECK(weft_runtime_loop(runtime, 0) != NULL);
	CHECK(weft_runtime_loop(runtime, 5000) == NULL);
	CHECK(weft_runtime_current() == NULL);
	OK(weft_runtime_free(runtime));
	OK(weft_runtime_free(NULL));
	runtime = make_runtime(1);
	CHECK_EQ(weft_runtime_start(runtime), WEFT_EALREADY);
	CHECK_EQ(weft_runtime_free(runtime), WEFT_EBUSY);
	end_runtime(runtime);
	CHECK(weft_runtime_new(&(weft_runtime_opts){ .loops = 5000 }) == NULL);
	CHECK_MISUSE(weft_runtime_start(NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_runtime_wait_stopped(NULL, WEFT_NOWAIT), WEFT_EINVAL);
}

/* --- signals ------------------------------------------------------------ */

static int
be_terminated(void *arg)
{
	OK(kill(getpid(), (int)(intptr_t)arg));
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	return 0;
}

TEST(program_is_canceled_by_sigterm_and_sigint)
{
	CHECK_EQ(weft_main(NULL, be_terminated, MARK(SIGTERM)), 0);
	CHECK_EQ(weft_main(NULL, be_terminated, MARK(SIGINT)), 0);
}

static int
see_to_it(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_signal_wait(WEFT_SIG(SIGTERM), WEFT_NOWAIT), WEFT_ETIMEDOUT);
	OK(kill(getpid(), SIGTERM));
	CHECK_EQ(weft_signal_wait(WEFT_SIG(SIGTERM), WEFT_NEVER), SIGTERM);
	OK(weft_yield());
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	return 0;
}

TEST(program_that_waits_for_a_signal_is_not_canceled_by_it)
{
	CHECK_EQ(weft_main(NULL, see_to_it, NULL), 0);
}

/* --- dumps -------------------------------------------------------------- */

/* Redirects standard error for a while. */
struct errors {
	int before, fd; /* the original, and where the output can be read */
};

static struct errors
take_errors(void)
{
	struct errors errors = { .before = dup(STDERR_FILENO) };
	int fds[2];

	OK(pipe(fds));
	CHECK_EQ(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	OK(close(fds[1]));
	errors.fd = fds[0];
	return errors;
}

static void
give_errors_back(struct errors errors)
{
	CHECK_EQ(dup2(errors.before, STDERR_FILENO), STDERR_FILENO);
	OK(close(errors.before));
	OK(close(errors.fd));
}

/* Reads until the text has appeared.  Returns everything read. */
static const char *
await_text(struct errors errors, const char *text)
{
	static char seen[65536];
	size_t size = 0;

	do {
		ssize_t n = read(errors.fd, seen + size, sizeof(seen) - 1 - size);

		CHECK(n > 0);
		size += (size_t)n;
		seen[size] = '\0';
	} while (!strstr(seen, text));
	return seen;
}

static weft_runtime *
make_dumping(void)
{
	weft_runtime_opts opts = { .loops = 2, .dump_signal = SIGUSR1 };
	weft_runtime *runtime = weft_runtime_new(&opts);

	CHECK(runtime != NULL);
	OK(weft_runtime_start(runtime));
	return runtime;
}

TEST(dump_signal_makes_a_runtime_dump_its_threadlets)
{
	struct errors errors = take_errors();
	weft_runtime *runtime = make_dumping();
	weft_go_opts opts = { .name = "sleeper" };

	opts.loop = weft_runtime_loop(runtime, 1);
	CHECK(weft_go_with(&opts, sleep_long, NULL) > 0);
	for (int i = 0; i < 2; i++) {
		OK(raise(SIGUSR1));
		(void)await_text(errors, "(sleeper)");
	}
	end_runtime(runtime);
	give_errors_back(errors);
}

static weft__a32 held, let_go;

static void
hold_loop(void *arg)
{
	(void)arg;
	(void)weft__add(&held, 1, WEFT__RELEASE);
	while (!weft__load(&let_go, WEFT__ACQUIRE))
		sched_yield();
}

/* It also works while the loops are stopping, when it is needed most. */
TEST(dump_works_while_every_loop_is_blocked)
{
	struct errors errors = take_errors();
	weft_runtime *runtime = make_dumping();

	for (uint32_t i = 0; i < 2; i++) {
		weft_loop *loop = weft_runtime_loop(runtime, i);

		CHECK(go_on(loop, sleep_long, NULL) > 0);
		OK(weft_loop_post(loop, hold_loop, NULL));
	}
	while (weft__load(&held, WEFT__ACQUIRE) < 2)
		sched_yield();
	weft_runtime_shutdown(runtime);
	CHECK_EQ(weft_runtime_wait_stopped(runtime, weft_after(10 * WEFT_MS)), WEFT_ETIMEDOUT);
	OK(raise(SIGUSR1));
	CHECK(strstr(await_text(errors, "(weft-1) does not answer"), "(weft-0) does not answer"));
	weft__store(&let_go, 1, WEFT__RELEASE);
	end_runtime(runtime);
	give_errors_back(errors);
}

TEST(handler_of_the_dump_signal_is_restored)
{
	weft_runtime_opts opts = { .dump_signal = SIGUSR1 };
	struct sigaction before, now;
	weft_runtime *runtime;

	OK(sigaction(SIGUSR1, NULL, &before));
	runtime = make_dumping();
	OK(sigaction(SIGUSR1, NULL, &now));
	CHECK(now.sa_handler != before.sa_handler);
	end_runtime(runtime);
	OK(sigaction(SIGUSR1, NULL, &now));
	CHECK(now.sa_handler == before.sa_handler);
	runtime = weft_runtime_new(&opts); /* never started */
	OK(weft_runtime_free(runtime));
	opts.dump_signal = SIGKILL;
	runtime = weft_runtime_new(&opts);
	CHECK_EQ(weft_runtime_start(runtime), WEFT_EINVAL);
	OK(weft_runtime_wait_stopped(runtime, WEFT_NEVER));
	OK(weft_runtime_free(runtime));
	opts.dump_signal = 64;
	CHECK(weft_runtime_new(&opts) == NULL);
}

/* --- CPUs --------------------------------------------------------------- */

static cpu_set_t allowed;

/* The number of the n-th allowed CPU.  Wraps around after the last one. */
static int
allowed_cpu(int n)
{
	int cpu = 0;

	for (n %= CPU_COUNT(&allowed); !CPU_ISSET(cpu, &allowed) || n-- > 0;)
		cpu++;
	return cpu;
}

static int
check_pinned(void *arg)
{
	cpu_set_t mine;

	OK(sched_getaffinity(0, sizeof(mine), &mine));
	CHECK_EQ(CPU_COUNT(&mine), 1);
	CHECK(CPU_ISSET((int)(intptr_t)arg, &mine));
	return 0;
}

/* Loop i must run on the i-th allowed CPU, or all loops on `only`. */
static int
check_all_pinned(void *arg)
{
	const int *only = arg;
	weft_scope scope;
	weft_go_opts opts = { .scope = &scope };

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < LOOPS; i++) {
		opts.loop = weft_runtime_loop(weft_runtime_current(), (uint32_t)i);
		CHECK(weft_go_with(&opts, check_pinned, MARK(only ? *only : allowed_cpu(i))) > 0);
	}
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(each_loop_of_a_pinned_runtime_has_its_own_cpu)
{
	weft_runtime_opts opts = { .loops = LOOPS, .pin = true };
	char text[8];
	int only;

	OK(sched_getaffinity(0, sizeof(allowed), &allowed));
	if (weft_main(&opts, check_all_pinned, NULL) != 0) {
		CHECK(TEST_PORTABLE);
		CHECK_STR(weft_detail(),
		          "weft_runtime_new: this system cannot bind threads to CPUs");
		return;
	}
	only = allowed_cpu(CPU_COUNT(&allowed) - 1);
	(void)snprintf(text, sizeof(text), "%d", only);
	opts.loop.cpus = text;
	CHECK_EQ(weft_main(&opts, check_all_pinned, &only), 0);
	opts.loop.cpus = "1023";
	CHECK(weft_runtime_new(&opts) == NULL);
	opts.loop.cpus = "0-";
	CHECK(weft_runtime_new(&opts) == NULL);
}

TEST(threads_of_a_runtime_can_be_bound_to_cpus)
{
	weft_runtime_opts opts = { .loops = 1 };

	opts.loop.cpus = "0-";
	CHECK(weft_runtime_new(&opts) == NULL);
	CHECK_EQ(weft_main(&opts, return_arg, NULL), 1);
	CHECK(strstr(weft_detail(), "cpus") || strstr(weft_detail(), "CPUs"));
	opts.loop.cpus = "0";
	if (weft_main(&opts, return_arg, NULL) != 0)
		CHECK_STR(weft_detail(), "weft_loop_new: this system cannot bind threads to CPUs");
}
