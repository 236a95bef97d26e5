/* threadlet_test.c - threadlets: start, switch, wait, end. */
#include <errno.h>
#include <fenv.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/os.h"
#include "threadlet/threadlet.h"
#include "unit/threadlet/sched.h"

static int
note_twice(void *arg)
{
	note(arg);
	OK(weft_yield());
	note(arg);
	return 0;
}

TEST(threadlets_run_in_start_order_and_alternate_when_they_yield)
{
	weft_loop *loop = make();

	go_on(loop, note_twice, MARK('a'));
	go_on(loop, note_twice, MARK('b'));
	go_on(loop, note_twice, MARK('c'));
	CHECK_STR(trace, "");
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "abcabc");
	OK(weft_loop_free(loop));
}

static int
go_and_note(void *arg)
{
	(void)arg;
	note(MARK('1'));
	CHECK(weft_go(note_twice, MARK('x')) > 0);
	note(MARK('2'));
	OK(weft_yield());
	note(MARK('3'));
	return 0;
}

TEST(threadlet_that_starts_another_continues_until_it_suspends)
{
	run_threadlet(go_and_note, NULL);
	CHECK_STR(trace, "12x3x");
}

static int
see_self(void *arg)
{
	weft_threadlet *out = arg;

	*out = weft_self();
	OK(weft_check_canceled());
	CHECK(weft_loop_current() != NULL);
	return 0;
}

TEST(threadlet_knows_its_id_and_ids_are_not_reused)
{
	weft_threadlet seen[100], given[100];
	weft_loop *loop = make();

	for (int i = 0; i < 100; i++) {
		given[i] = go_on(loop, see_self, &seen[i]);
		if (i % 3 == 0)
			OK(weft_loop_run(loop));
	}
	OK(weft_loop_run(loop));
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(seen[i], given[i]);
		CHECK_EQ(weft_cancel(given[i]), WEFT_ESRCH);
		CHECK_EQ(weft_interrupt(given[i]), WEFT_ESRCH);
		for (int k = 0; k < i; k++)
			CHECK(given[i] != given[k]);
	}
	CHECK_EQ(weft_self(), 0);
	OK(weft_loop_free(loop));
}

/* --- sleeping ----------------------------------------------------------- */

static uint64_t begin_ns;

static int
sleep_a_little(void *arg)
{
	uint64_t until_ns = begin_ns + (uint64_t)(intptr_t)arg * WEFT_MS;

	OK(weft_sleep_until(until_ns));
	CHECK(weft_now() >= until_ns);
	note(MARK('0' + (intptr_t)arg));
	return 0;
}

TEST(sleepers_wake_in_deadline_order_and_not_early)
{
	weft_loop *loop = make();

	begin_ns = weft_now();
	go_on(loop, sleep_a_little, MARK(7));
	go_on(loop, sleep_a_little, MARK(1));
	go_on(loop, sleep_a_little, MARK(4));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "147");
	OK(weft_loop_free(loop));
}

static int
sleep_for(void *arg)
{
	int64_t delay_ns = (intptr_t)arg * (int64_t)WEFT_MS;
	uint64_t now_ns = weft_now();

	OK(weft_sleep(delay_ns));
	CHECK(weft_now() >= now_ns + (uint64_t)delay_ns);
	note(MARK('0' + (intptr_t)arg));
	return 0;
}

TEST(weft_sleep_wakes_after_its_delay_and_not_early)
{
	weft_loop *loop = make();

	go_on(loop, sleep_for, MARK(9));
	go_on(loop, sleep_for, MARK(1));
	go_on(loop, sleep_for, MARK(0));
	go_on(loop, note_twice, MARK('t'));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "t0t19"); /* a delay of 0 yields */
	OK(weft_loop_free(loop));
}

static int
sleep_below_zero(void *arg)
{
	(void)arg;
	CHECK_MISUSE(weft_sleep(-1), WEFT_EINVAL);
	CHECK_MISUSE(weft_sleep(INT64_MIN), WEFT_EINVAL);
	CHECK_MISUSE(weft_sleep((int64_t)WEFT_NEVER), WEFT_EINVAL);
	if (!test_misuse_aborts)
		CHECK_STR(weft_detail(), "weft_sleep: the delay is negative; to sleep without an "
		                         "end use weft_sleep_until");
	return 0;
}

TEST(weft_sleep_refuses_a_negative_delay)
{
	run_threadlet(sleep_below_zero, NULL);
}

static int
sleep_too_long(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, weft_after(WEFT_MS)));
	CHECK_EQ(weft_sleep(INT64_MAX), WEFT_ETIMEDOUT);
	OK(weft_scope_close(&scope));
	return 0;
}

TEST(the_longest_delay_does_not_overflow)
{
	run_threadlet(sleep_too_long, NULL);
}

static int
sleep_until_canceled_twice(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_sleep(INT64_MAX), WEFT_ECANCELED);
	CHECK_STR(weft_detail(), "weft_sleep: canceled");
	CHECK_EQ(weft_sleep(0), WEFT_ECANCELED);
	CHECK_EQ(weft_sleep(1), WEFT_ECANCELED);
	return 0;
}

static int
cancel_a_sleeper(void *arg)
{
	weft_threadlet id = weft_go(sleep_until_canceled_twice, NULL);

	(void)arg;
	OK(weft_yield());
	OK(weft_cancel(id));
	return 0;
}

TEST(cancellation_ends_a_sleep_and_every_later_one)
{
	run_threadlet(cancel_a_sleeper, NULL);
}

/* --- descriptors -------------------------------------------------------- */

static int
await_readable(void *arg)
{
	const struct pair *pair = arg;

	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	note(MARK('r'));
	return 0;
}

static int
await_writable(void *arg)
{
	const struct pair *pair = arg;

	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_WRITABLE, WEFT_NEVER), WEFT_WRITABLE);
	note(MARK('w'));
	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, WEFT_NEVER), WEFT_EBUSY);
	put(pair->peer, "x");
	return 0;
}

TEST(reader_and_writer_of_one_descriptor_do_not_disturb_each_other)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();

	go_on(loop, await_readable, &pair);
	go_on(loop, await_writable, &pair);
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "wr");
	OK(weft_loop_free(loop));
	close_pair(pair);
}

static int
time_out(void *arg)
{
	const struct pair *pair = arg;

	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	put(pair->peer, "x");
	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, WEFT_NOWAIT), WEFT_READABLE);
	CHECK_EQ(weft_wait_fd(pair->fd, WEFT_READABLE, weft_now() - 1), WEFT_READABLE);
	return 0;
}

TEST(wait_fd_past_its_deadline_still_reports_readiness)
{
	struct pair pair = make_pair();

	run_threadlet(time_out, &pair);
	close_pair(pair);
}

/* --- outside of threadlets ---------------------------------------------- */

static void
try_to_suspend(void *arg)
{
	(void)arg;
	CHECK_EQ(weft_yield(), WEFT_ENOSUSPEND);
	CHECK_EQ(weft_sleep(WEFT_MS), WEFT_ENOSUSPEND);
	CHECK_STR(weft_detail(),
	          "weft_sleep: only a threadlet can sleep; use a timer in a callback");
	CHECK_EQ(weft_sleep_until(weft_after(WEFT_MS)), WEFT_ENOSUSPEND);
	CHECK_STR(weft_detail(),
	          "weft_sleep_until: only a threadlet can sleep; use a timer in a callback");
	CHECK_EQ(weft_wait_fd(0, WEFT_READABLE, WEFT_NEVER), WEFT_ENOSUSPEND);
	note(MARK('k'));
}

TEST(suspending_call_in_a_callback_is_refused)
{
	weft_loop *loop = make();

	OK(weft_loop_post(loop, try_to_suspend, NULL));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "k");
	try_to_suspend(NULL);
	OK(weft_loop_free(loop));
}

static int
run_inside(void *arg)
{
	CHECK_MISUSE(weft_loop_run(arg), WEFT_EDEADLK);
	return 0;
}

TEST(loop_cannot_be_run_by_a_threadlet)
{
	weft_loop *other = weft_loop_new(NULL);

	run_threadlet(run_inside, other);
	OK(weft_loop_free(other));
}

TEST(weft_go_needs_a_function_and_a_loop)
{
	weft_loop *loop = make();
	weft_go_opts opts = { .loop = loop };
	weft_go_opts large = { .loop = loop, .stack_bytes = (size_t)2 << 30 };

	CHECK_MISUSE(weft_go(note_twice, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_go_with(&opts, NULL, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_go_with(&large, note_twice, NULL), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}

/* --- per-threadlet state ------------------------------------------------ */

static int
keep_own(void *arg)
{
	int mine = (int)(intptr_t)arg;

	errno = mine;
	(void)weft_fail(WEFT_EPROTO, "text %d", mine);
	(void)fesetround(mine % 2 ? FE_UPWARD : FE_DOWNWARD);
	for (int i = 0; i < 50; i++) {
		char text[16];

		OK(i % 10 ? weft_yield() : weft_sleep_until(weft_after(1)));
		CHECK_EQ(errno, mine);
		CHECK_EQ(fegetround(), mine % 2 ? FE_UPWARD : FE_DOWNWARD);
		(void)snprintf(text, sizeof(text), "text %d", mine);
		CHECK_STR(weft_detail(), text);
	}
	return 0;
}

TEST(errno_rounding_mode_and_detail_text_stay_with_their_threadlet)
{
	weft_loop *loop = make();

	errno = 77;
	for (int i = 0; i < 8; i++)
		go_on(loop, keep_own, MARK(100 + i));
	OK(weft_loop_run(loop));
	CHECK(errno < 100 || errno >= 108); /* the loop does not get that of a threadlet */
	CHECK_EQ(fegetround(), FE_TONEAREST);
	OK(weft_loop_free(loop));
}

static void *where; /* the frame of the previous threadlet */

/* Leaves behind all state that a threadlet can leave behind. */
static int
leave_much(void *arg)
{
	errno = 5;
	where = __builtin_frame_address(0);
	(void)fesetround(FE_UPWARD);
	OK(weft_interrupt(weft_self()));
	(void)weft_fail(WEFT_EPROTO, "text %d", 1);
	return arg ? weft_scope_open(arg, WEFT_SHIELD, weft_after(HOUR)) : 0;
}

static int
find_nothing(void *arg)
{
	(void)arg;
	CHECK_EQ(errno, 0);
	CHECK(where == __builtin_frame_address(0)); /* otherwise the test proves nothing */
	CHECK_EQ(fegetround(), FE_TONEAREST);
	CHECK_STR(weft_detail(), "");
	OK(weft_check_canceled());
	OK(weft_yield());
	return 0;
}

static int
begin_after_one_another(void *arg)
{
	weft_threadlet first = weft_go(leave_much, arg), second;

	CHECK(first > 0);
	OK(weft_cancel(first));
	while (weft_interrupt(first) == 0)
		OK(weft_yield());
	second = weft_go(find_nothing, NULL);
	CHECK(second > 0 && second != first);
	OK(weft_yield());
	return 0;
}

TEST(threadlet_finds_nothing_of_the_previous_one_on_its_stack)
{
	weft_scope scope;

	run_threadlet(begin_after_one_another, NULL);
	run_threadlet(begin_after_one_another, &scope);
}

static int
see_mode(void *arg)
{
	CHECK_EQ(fegetround(), (int)(intptr_t)arg);
	return 0;
}

static int
start_with_modes(void *arg)
{
	(void)fesetround(FE_DOWNWARD);
	CHECK(weft_go(see_mode, arg) > 0);
	OK(weft_yield());
	(void)fesetround(FE_TONEAREST);
	return 0;
}

TEST(threadlet_begins_with_the_modes_of_the_thread_that_runs_or_starts_it)
{
	weft_loop *loop = make();

	go_on(loop, start_with_modes, MARK(FE_UPWARD));
	(void)fesetround(FE_TOWARDZERO);
	go_on(loop, see_mode, MARK(FE_TOWARDZERO));
	(void)fesetround(FE_UPWARD);
	OK(weft_loop_run(loop));
	CHECK_EQ(fegetround(), FE_UPWARD);
	(void)fesetround(FE_TONEAREST);
	OK(weft_loop_free(loop));
}

/* --- stacks ------------------------------------------------------------- */

static size_t
dig(size_t depth)
{
	volatile char room[1024];

	room[0] = (char)depth;
	return depth == 0 ? 0 : dig(depth - 1) + (size_t)(room[0] != 0);
}

static int
dig_deep(void *arg)
{
	OK(weft_yield());
	(void)dig((size_t)(intptr_t)arg);
	note(MARK('d'));
	return 0;
}

TEST(stack_can_be_as_large_as_requested)
{
	static const size_t sizes[] = { 1, 64 << 10, 1 << 20, 64 << 20 };
	static const intptr_t depths[] = { 4, 40, 600, 40000 };
	weft_loop *loop = make();

	for (int i = 0; i < 4; i++) {
		weft_go_opts opts = { .loop = loop, .stack_bytes = sizes[i] };

		CHECK(weft_go_with(&opts, dig_deep, MARK(depths[i])) > 0);
	}
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "dddd");
	OK(weft_loop_free(loop));
}

/* Threadlets with stacks on both sides of the one that overflows. */
enum { NEIGHBOURS = 6, WHOLE = 42, HARMED = 43 };
static volatile unsigned char *patterns[NEIGHBOURS];

static int
keep_pattern(void *arg)
{
	volatile unsigned char mine[4096];

	for (size_t i = 0; i < sizeof(mine); i++)
		mine[i] = (unsigned char)(i * 7);
	patterns[(intptr_t)arg] = mine;
	return weft_sleep_until(WEFT_NEVER);
}

static void
on_fault(int signo)
{
	(void)signo;
	for (int k = 0; k < NEIGHBOURS; k++)
		for (size_t i = 0; i < 4096; i++)
			if (patterns[k][i] != (unsigned char)(i * 7))
				test_child_exit(HARMED);
	test_child_exit(WHOLE);
}

static int
overflow(void *arg)
{
	(void)arg;
	OK(weft_yield()); /* the neighbors fill their stacks */
	(void)dig(100);
	return 0;
}

static void
overflow_among_neighbours(void)
{
	static char room[64 << 10];
	stack_t other = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction action = { .sa_flags = SA_ONSTACK };
	weft_loop *loop = make();

	action.sa_handler = on_fault;
	OK(sigaltstack(&other, NULL));
	OK(sigaction(SIGSEGV, &action, NULL));
	OK(sigaction(SIGBUS, &action, NULL));
	for (int i = 0; i < NEIGHBOURS; i++) {
		go_on(loop, keep_pattern, MARK(i));
		if (i == NEIGHBOURS / 2)
			go_on(loop, overflow, NULL);
	}
	(void)weft_loop_run(loop);
}

TEST(overflowing_stack_faults_and_harms_no_neighbor)
{
	int status;

	if (test_fork() == 0) {
		overflow_among_neighbours();
		test_child_exit(0);
	}
	CHECK(wait(&status) > 0);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), WHOLE);
}

/* --- limits ------------------------------------------------------------- */

TEST(loop_has_at_most_threadlet_max_threadlets)
{
	weft_loop *loop = make_with(&(weft_loop_opts){ .threadlet_max = 2 });
	weft_go_opts opts = { .loop = loop };

	go_on(loop, note_twice, MARK('a'));
	go_on(loop, note_twice, MARK('b'));
	CHECK_EQ(weft_go_with(&opts, note_twice, MARK('c')), WEFT_EAGAIN);
	OK(weft_loop_run(loop));
	go_on(loop, note_twice, MARK('d'));
	OK(weft_loop_run(loop));
	CHECK_STR(trace, "ababdd");
	OK(weft_loop_free(loop));
}

/* --- cleanups ----------------------------------------------------------- */

static struct weft__node nodes[3];

static void
sleep_and_note(void *arg)
{
	OK(weft_sleep_until(weft_after(1))); /* cleanups are shielded */
	note(arg);
}

static int
clean_up(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		nodes[i] = (struct weft__node){ .fn = sleep_and_note, .arg = MARK('a' + i) };
		weft__cleanup_push(&nodes[i]);
	}
	OK(weft_cancel(weft_self()));
	return weft_yield();
}

TEST(cleanups_run_last_to_first_however_the_threadlet_ends)
{
	run_threadlet(clean_up, NULL);
	CHECK_STR(trace, "cba");
}

/* --- failures ----------------------------------------------------------- */

static int
fail(void *arg)
{
	return weft_fail((int)(intptr_t)arg, "it went wrong");
}

static weft_report reported;
static char reported_text[64];

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind != WEFT_REPORT_FAILED)
		return;
	reported = *report;
	(void)snprintf(reported_text, sizeof(reported_text), "%s: %s", report->name, report->text);
}

static int
fail_in_child(void)
{
	weft_hooks hooks = { .on_report = on_report };
	weft_loop *loop;
	weft_go_opts opts = { .name = "worker" };
	weft_threadlet id;

	if (weft_set_hooks(&hooks) < 0)
		return 2;
	loop = weft_loop_new(NULL);
	opts.loop = loop;
	id = weft_go_with(&opts, fail, MARK(WEFT_EPROTO));
	if (weft_loop_run(loop) < 0 || reported.error != WEFT_EPROTO || reported.threadlet != id
	    || reported.loop != loop || strcmp(reported_text, "worker: it went wrong") != 0)
		return 1;
	return weft_loop_free(loop);
}

TEST(failure_that_is_not_joined_is_reported)
{
	int status;

	if (test_fork() == 0)
		test_child_exit(execl("/proc/self/exe", "threadlet_test", "--report", NULL));
	CHECK(wait(&status) > 0);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

__attribute__((constructor)) static void
report_and_exit(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--report") == 0)
		_exit(fail_in_child());
}

/* --- op waits ----------------------------------------------------------- */

static int
wait_for_ops(void *arg)
{
	const struct pair *pair = arg;
	char byte;
	weft_op op;

	OK(weft_op_init(&op, NULL, NULL, NULL));
	CHECK_MISUSE((int)weft_op_wait(&op, WEFT_NEVER), WEFT_EINVAL);
	OK(weft_op_recv(&op, pair->fd, &byte, 1, 0, WEFT_NEVER));
	CHECK_EQ(weft_op_wait(&op, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK(op.pending);
	CHECK_EQ(weft_op_wait(&op, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK(!op.pending);
	OK(weft_op_recv(&op, pair->fd, &byte, 1, 0, WEFT_NEVER));
	put(pair->peer, "y");
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), 1);
	CHECK_EQ(byte, 'y');
	CHECK_EQ(weft_op_wait(&op, WEFT_NEVER), 1);
	return 0;
}

TEST(threadlet_waits_for_an_op_until_it_has_finished)
{
	struct pair pair = make_pair();

	run_threadlet(wait_for_ops, &pair);
	close_pair(pair);
}

/* --- many --------------------------------------------------------------- */

/* TSan has room for 8,128 threads and threadlets. */
enum { MANY = TEST_TSAN ? 2000 : 20000 };
static int ended;

static int
sleep_then_end(void *arg)
{
	(void)arg;
	OK(weft_sleep_until(weft_after(WEFT_MS)));
	ended++;
	return 0;
}

static int
start_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < MANY; i++)
		CHECK(weft_go(sleep_then_end, NULL) > 0);
	return 0;
}

TEST(many_threadlets_sleep_at_once)
{
	ended = 0;
	run_threadlet(start_many, NULL);
	CHECK_EQ(ended, MANY);
}
