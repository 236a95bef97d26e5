/* watchdog_test.c - a blocked loop is reported, with the code that blocks it. */
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/os.h"
#include "loop/core/loop.h"
#include "unit/threadlet/sched.h"

#define LIMIT (2 * WEFT_MS)

static weft__a32 reports;
static char text[4096], name[32];
static weft_report last;

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind != WEFT_REPORT_BLOCKED)
		return;
	last = *report;
	(void)snprintf(text, sizeof(text), "%s", report->text);
	(void)snprintf(name, sizeof(name), "%s", report->name);
	(void)weft__add(&reports, 1, WEFT__RELEASE);
}

static weft_loop *
make_watched(uint64_t limit_ns)
{
	weft_loop_opts opts = { .name = "held", .watchdog_ns = limit_ns };

	weft__store(&reports, 0, WEFT__RELAXED);
	weft__hooks.on_report = on_report;
	return make_with(&opts);
}

static void
free_watched(weft_loop *loop)
{
	OK(weft_loop_free(loop));
	weft__hooks.on_report = NULL;
}

static __attribute__((noinline)) void
hold_until_reported(void)
{
	while (!weft__load(&reports, WEFT__ACQUIRE))
		sched_yield();
}

static int
spin(void *arg)
{
	(void)arg;
	OK(weft_yield());
	hold_until_reported();
	note(MARK('s'));
	return 0;
}

static bool
has_function(const char *what)
{
	/* TSan delays a signal until the thread next enters TSan's runtime. */
	return TEST_TSAN || strstr(text, what);
}

/* The report names other code, or no code in time.  Then the machine was slow, not the program,
 * and the test must be tried again. */
static bool
is_of_machine(const char *what, int *tries)
{
	return !has_function(what) && ++*tries < 50;
}

#define SPINNER "(spinner), started at a_threadlet_that_spins_is_named_with_its_calls+0x"

TEST(a_threadlet_that_spins_is_named_with_its_calls)
{
	weft_threadlet id;
	int tries = 0;

	do {
		weft_loop *loop = make_watched(LIMIT);
		weft_go_opts opts = { .loop = loop, .name = "spinner" };

		id = weft_go_with(&opts, spin, NULL);
		OK(weft_loop_run(loop));
		CHECK_STR(trace, "s");
		CHECK(last.loop == loop);
		free_watched(loop);
	} while (is_of_machine(SPINNER, &tries));
	CHECK(strstr(text, "has been blocked for 0."));
	CHECK(has_function(SPINNER));
	CHECK(has_function("    #1 "));
	if (last.threadlet || !TEST_TSAN) {
		CHECK_EQ(last.threadlet, id);
		CHECK_STR(name, "spinner");
	}
}

static void
spin_in_callback(void *arg)
{
	hold_until_reported();
	note(arg);
}

#define CALLBACK " by a callback\n    #0 "

TEST(a_callback_that_spins_is_reported_as_a_callback)
{
	int tries = 0;

	do {
		weft_loop *loop = make_watched(LIMIT);

		OK(weft_loop_post(loop, spin_in_callback, MARK('c')));
		OK(weft_loop_run(loop));
		CHECK_STR(trace, "c");
		CHECK_EQ(last.threadlet, 0);
		free_watched(loop);
	} while (is_of_machine(CALLBACK, &tries));
	CHECK(has_function(CALLBACK));
}

TEST(a_loop_with_its_own_thread_is_watched_too)
{
	int tries = 0;

	do {
		weft_loop *loop = make_watched(LIMIT);

		OK(weft_loop_start(loop));
		OK(weft_loop_post(loop, spin_in_callback, MARK('c')));
		weft_loop_shutdown(loop);
		OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
		CHECK_STR(trace, "c");
		free_watched(loop);
	} while (is_of_machine(CALLBACK, &tries));
	CHECK(has_function(CALLBACK));
}

TEST(several_loops_share_one_watchdog)
{
	weft_loop *idle = make_watched(HOUR), *loop = make_watched(LIMIT);

	for (int i = 0; i < 3; i++) {
		weft__store(&reports, 0, WEFT__RELAXED);
		OK(weft_loop_post(loop, spin_in_callback, MARK('c')));
		OK(weft_loop_run(loop));
	}
	CHECK_STR(trace, "ccc");
	OK(weft_loop_free(idle));
	free_watched(loop);
}

static int
start_nothing(const struct weft__thread_opts *opts, uint64_t *out)
{
	(void)opts;
	(void)out;
	return -EAGAIN;
}

TEST(a_loop_is_not_created_without_its_watchdog)
{
	const struct weft__sys *before = weft__sys;
	struct weft__sys poor = *before;
	weft_loop_opts opts = { .watchdog_ns = HOUR };

	poor.thread_start = start_nothing;
	weft__sys = &poor;
	CHECK(weft_loop_new(&opts) == NULL);
	CHECK_STR(weft_detail(), "weft_loop_new: cannot start the watchdog");
	weft__sys = before;
	OK(weft_loop_free(make_with(&opts)));
}

/* --- with an explicit clock --------------------------------------------- */

static weft_loop *watched;

static int
yield_and_check(void *arg)
{
	uint64_t now_ns = HOUR;

	(void)arg;
	CHECK(!weft__watchdog_check(watched, now_ns));
	CHECK(!weft__watchdog_check(watched, now_ns + HOUR - 1));
	CHECK(weft__watchdog_check(watched, now_ns + HOUR));
	CHECK(!weft__watchdog_check(watched, now_ns + 3 * HOUR)); /* reported only once */
	OK(weft_yield());
	now_ns += 4 * HOUR;
	CHECK(!weft__watchdog_check(watched, now_ns)); /* the loop has made progress */
	CHECK(weft__watchdog_check(watched, now_ns + HOUR));
	note(MARK('y'));
	return 0;
}

static int
yield_twice(void *arg)
{
	OK(weft_yield());
	OK(weft_yield());
	note(arg);
	return 0;
}

TEST(a_loop_is_blocked_only_while_it_makes_no_progress)
{
	/* Set the limit directly, so that the watchdog thread does not check this loop. */
	watched = make();
	watched->watchdog_ns = HOUR;
	go_on(watched, yield_and_check, NULL);
	go_on(watched, yield_twice, MARK('z'));
	OK(weft_loop_run(watched));
	CHECK_STR(trace, "yz");
	CHECK(!weft__watchdog_check(watched, 20 * HOUR));
	CHECK(!weft__watchdog_check(watched, 30 * HOUR)); /* the loop is idle */
	watched->watchdog_ns = 0;
	OK(weft_loop_free(watched));
}

TEST(a_sleeping_loop_is_not_reported_as_blocked)
{
	weft_loop *loop = make_started(); /* with a limit of 0 */

	watch_for(loop, WEFT_SLEEPING);
	while (!weft__inbox_is_asleep(&loop->inbox))
		sched_yield();
	CHECK(!weft__watchdog_check(loop, HOUR));
	CHECK(!weft__watchdog_check(loop, 3 * HOUR));
	stop_and_free(loop);
}

/* --- fork --------------------------------------------------------------- */

TEST(a_forked_child_can_free_a_watched_loop_and_have_its_own)
{
	weft_loop *loop = make_watched(HOUR);
	int status;

	if (test_fork() == 0) {
		weft_loop *mine;

		OK(weft_loop_free(loop));
		if (TEST_TSAN) /* TSan allows no threads after a fork */
			test_child_exit(0);
		mine = make_watched(LIMIT);
		OK(weft_loop_post(mine, spin_in_callback, MARK('c')));
		OK(weft_loop_run(mine));
		free_watched(mine);
		test_child_exit(strcmp(trace, "c"));
	}
	CHECK(wait(&status) > 0);
	CHECK_EQ(status, 0);
	free_watched(loop);
}
