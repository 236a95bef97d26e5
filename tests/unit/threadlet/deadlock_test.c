/* deadlock_test.c - deadlocks of threadlets are reported, other waits are not. */
#include <sched.h>
#include "base/os.h"
#include "unit/threadlet/sched.h"

static weft__a32 reports;
static char text[16384];
static weft_loop *about;
static weft_threadlet ids[2];
static bool help; /* the hook ends the deadlock */

static void
on_report(void *arg, const weft_report *report)
{
	(void)arg;
	if (report->kind != WEFT_REPORT_DEADLOCK)
		return;
	CHECK_EQ(report->error, WEFT_EDEADLK);
	about = report->loop;
	(void)snprintf(text, sizeof(text), "%s", report->text);
	if (help)
		OK(weft_cancel(ids[0]));
	(void)weft__add(&reports, 1, WEFT__RELEASE);
}

static uint32_t
reported(void)
{
	return weft__load(&reports, WEFT__ACQUIRE);
}

/* Installs the hook. */
static void
listen_for(bool helps)
{
	weft__store(&reports, 0, WEFT__RELAXED);
	help = helps;
	about = NULL;
	text[0] = '\0';
	weft__hooks.on_report = on_report;
}

static void
listen_no_more(void)
{
	weft__hooks.on_report = NULL;
}

static int
join_other(void *arg)
{
	int rc = weft_join(ids[1 - (intptr_t)arg], NULL, WEFT_NEVER);

	note(MARK('0' + (intptr_t)arg));
	return rc == WEFT_ECANCELED ? 0 : rc;
}

/* Two threadlets join each other, and a third one waits for both. */
static int
wait_in_a_circle(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	ids[0] = weft_scope_go(&scope, join_other, MARK(0));
	ids[1] = weft_scope_go(&scope, join_other, MARK(1));
	return weft_scope_close(&scope);
}

static weft__a32 circles;

static int
twice_in_a_circle(void *arg)
{
	OK(wait_in_a_circle(arg));
	weft__store(&circles, 1, WEFT__RELEASE);
	return wait_in_a_circle(arg);
}

TEST(report_of_a_deadlock_names_what_each_threadlet_waits_for)
{
	char want[64];
	weft_loop *loop;

	listen_for(true);
	loop = make_with(&(weft_loop_opts){ .name = "circle" });
	go_on(loop, wait_in_a_circle, NULL);
	OK(weft_loop_run(loop));
	CHECK_EQ(reported(), 1);
	CHECK(about == loop);
	CHECK(strstr(text, "waiting for scope 0x"));
	for (int i = 0; i < 2; i++) {
		(void)snprintf(want, sizeof(want), "waiting for join %lld", (long long)ids[i]);
		CHECK(strstr(text, want));
	}
	CHECK_STR(trace, "01");
	OK(weft_loop_free(loop));
	listen_no_more();
}

TEST(second_deadlock_is_reported_if_the_hook_has_ended_the_first)
{
	listen_for(true);
	run_threadlet(twice_in_a_circle, NULL);
	CHECK_EQ(reported(), 2);
	listen_no_more();
}

static void *
alloc_nothing(size_t size)
{
	(void)size;
	return NULL;
}

static struct weft__sys poor;

static int
starve_in_a_circle(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	ids[0] = weft_scope_go(&scope, join_other, MARK(0));
	ids[1] = weft_scope_go(&scope, join_other, MARK(1));
	weft__sys = &poor; /* nothing else runs now */
	return weft_scope_close(&scope);
}

TEST(deadlock_report_without_memory_for_the_text_is_short)
{
	const struct weft__sys *before = weft__sys;

	listen_for(true);
	poor = *before;
	poor.alloc = alloc_nothing;
	run_threadlet(starve_in_a_circle, NULL);
	weft__sys = before;
	CHECK_EQ(reported(), 1);
	CHECK_STR(text, "deadlock: the threadlets wait only for each other");
	listen_no_more();
}

static void
cancel_first(void *arg)
{
	(void)arg;
	OK(weft_cancel(ids[0]));
}

static weft__a32 posts;

static void
count_post(void *arg)
{
	(void)arg;
	(void)weft__add(&posts, 1, WEFT__RELEASE);
}

static void
await(const weft__a32 *count, uint32_t least)
{
	while (weft__load(count, WEFT__ACQUIRE) < least)
		sched_yield();
}

static void *
wake_and_end(void *arg)
{
	weft_loop *loop = arg;

	await(&reports, 1);
	for (uint32_t i = 1; i <= 3; i++) {
		watch_for(loop, WEFT_SLEEPING);
		OK(weft_loop_post(loop, count_post, NULL));
		await(&posts, i);
	}
	watch_for(loop, WEFT_SLEEPING);
	OK(weft_loop_post(loop, cancel_first, NULL));
	await(&circles, 1);
	watch_for(loop, WEFT_SLEEPING);
	OK(weft_loop_post(loop, cancel_first, NULL));
	return NULL;
}

TEST(deadlock_is_reported_once_and_not_if_posts_end_it)
{
	weft_loop *loop;
	pthread_t other;

	listen_for(false);
	weft__store(&circles, 0, WEFT__RELAXED);
	loop = make();
	go_on(loop, twice_in_a_circle, NULL);
	other = thread(wake_and_end, loop);
	OK(weft_loop_run(loop));
	OK(pthread_join(other, NULL));
	CHECK_EQ(reported(), 1);
	CHECK_STR(trace, "0101");
	OK(weft_loop_free(loop));
	listen_no_more();
}

/* --- no deadlock -------------------------------------------------------- */

static int
wait_for_byte(void *arg)
{
	const struct pair *pair = arg;

	return weft_wait_fd(pair->fd, WEFT_READABLE, WEFT_NEVER) < 0;
}

/* This join can end: the child waits for something from outside. */
static int
join_child(void *arg)
{
	weft_scope scope;
	weft_threadlet child;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, arg ? wait_for_byte : sleep_until_cancelled, arg);
	(void)weft_join(child, NULL, WEFT_NEVER);
	return weft_scope_close(&scope);
}

static void *
put_when_asleep(void *arg)
{
	weft_loop *loop = ((void **)arg)[0];
	const struct pair *pair = ((void **)arg)[1];

	watch_for(loop, WEFT_SLEEPING);
	if (pair)
		put(pair->peer, "x");
	else
		weft_loop_shutdown(loop);
	return NULL;
}

static void
run_until_asleep(weft_loop *loop, struct pair *pair)
{
	void *both[2] = { loop, pair };
	pthread_t other = thread(put_when_asleep, both);

	go_on(loop, join_child, pair);
	OK(weft_loop_run(loop));
	OK(pthread_join(other, NULL));
	OK(weft_loop_free(loop));
	CHECK_EQ(reported(), 0);
}

TEST(wait_that_depends_on_a_descriptor_is_no_deadlock)
{
	struct pair pair = make_pair();

	listen_for(false);
	run_until_asleep(make(), &pair);
	close_pair(pair);
	listen_no_more();
}

TEST(endless_sleep_is_no_deadlock)
{
	listen_for(false);
	run_until_asleep(make(), NULL);
	listen_no_more();
}

TEST(loop_with_the_keep_flag_reports_no_deadlock)
{
	void *both[2] = { NULL, NULL };
	pthread_t other;
	weft_loop *loop;

	listen_for(false);
	loop = make_with(&(weft_loop_opts){ .flags = WEFT_LOOP_KEEP });
	both[0] = loop;
	go_on(loop, wait_in_a_circle, NULL);
	other = thread(put_when_asleep, both);
	OK(weft_loop_run(loop));
	OK(pthread_join(other, NULL));
	CHECK_EQ(reported(), 0);
	OK(weft_loop_free(loop));
	listen_no_more();
}

static int
join_far_child(void *arg)
{
	weft_scope scope;
	weft_go_opts opts = { .loop = arg, .scope = &scope };
	weft_threadlet child;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_go_with(&opts, sleep_until_cancelled, NULL);
	CHECK(child > 0);
	(void)weft_join(child, NULL, WEFT_NEVER);
	return weft_scope_close(&scope);
}

static int
close_with_far_child(void *arg)
{
	weft_scope scope;
	weft_go_opts opts = { .loop = arg, .scope = &scope };

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_go_with(&opts, sleep_until_cancelled, NULL) > 0);
	return weft_scope_close(&scope);
}

static void *
cancel_when_asleep(void *arg)
{
	weft_loop *const *both = arg;

	watch_for(both[0], WEFT_SLEEPING);
	watch_for(both[1], WEFT_SLEEPING);
	watch_for(both[0], WEFT_SLEEPING);
	weft_loop_shutdown(both[1]);
	return NULL;
}

static void
run_with_far_child(weft_threadlet_fn fn)
{
	weft_loop *both[2];
	pthread_t other;

	listen_for(false);
	both[0] = make();
	both[1] = make_started();
	go_on(both[0], fn, both[1]);
	other = thread(cancel_when_asleep, both);
	OK(weft_loop_run(both[0]));
	OK(pthread_join(other, NULL));
	CHECK_EQ(reported(), 0);
	OK(weft_loop_free(both[0]));
	stop_and_free(both[1]);
	listen_no_more();
}

TEST(waiting_for_a_child_on_another_loop_is_no_deadlock)
{
	run_with_far_child(join_far_child);
	run_with_far_child(close_with_far_child);
}

/* --- all loops of a runtime ---------------------------------------------- */

enum { LOOPS = 3 };

static weft_chan *never_sent;

static int
receive_in_vain(void *arg)
{
	int value, rc = weft_chan_recv(never_sent, &value, WEFT_NEVER);

	(void)arg;
	return rc == WEFT_ECANCELED || rc == WEFT_ECLOSED ? 0 : rc;
}

/* Waits for a threadlet on each loop.  The hook cancels the first one. */
static int
receive_on_all_loops(void *arg)
{
	weft_runtime *runtime = weft_runtime_current();
	weft_scope scope;
	weft_loop *loop;

	(void)arg;
	never_sent = weft_chan_new(sizeof(int), 0, WEFT_SHARED);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (uint32_t i = 0; (loop = weft_runtime_loop(runtime, i)); i++) {
		weft_go_opts opts = { .loop = loop, .scope = &scope };
		weft_threadlet id = weft_go_with(&opts, receive_in_vain, NULL);

		CHECK(id > 0);
		ids[0] = i == 0 ? id : ids[0];
	}
	OK(weft_join(ids[0], NULL, WEFT_NEVER));
	weft_scope_cancel(&scope);
	OK(weft_scope_close(&scope));
	never_sent = weft_chan_unref(never_sent);
	return 0;
}

static void
run_program(uint32_t loops, weft_threadlet_fn fn)
{
	weft_runtime_opts opts = { .loops = loops };

	CHECK_EQ(weft_main(&opts, fn, NULL), 0);
}

TEST(deadlock_under_weft_main_is_reported)
{
	for (uint32_t loops = 1; loops <= LOOPS; loops++) {
		listen_for(true);
		run_program(loops, wait_in_a_circle);
		CHECK_EQ(reported(), 1);
		CHECK(strstr(text, "waiting for join "));
		listen_no_more();
	}
}

TEST(second_deadlock_under_weft_main_is_reported_if_the_first_has_ended)
{
	listen_for(true);
	run_program(LOOPS, twice_in_a_circle);
	CHECK_EQ(reported(), 2);
	listen_no_more();
}

/* The kernel counts joined threads a little longer.  TSan has its own thread, which the library
 * cannot distinguish from one of the program. */
static void
await_ends(void)
{
	while (!TEST_TSAN && weft__sys->other_threads() > 1)
		(void)sched_yield();
}

TEST(deadlock_across_several_loops_is_reported_with_all_of_them)
{
	if (TEST_TSAN || weft__sys->other_threads() < 0)
		return;
	for (uint32_t loops = 1; loops <= LOOPS; loops++) {
		const char *at = text;

		await_ends();
		listen_for(true);
		run_program(loops, receive_on_all_loops);
		CHECK_EQ(reported(), 1);
		for (uint32_t i = 0; i < loops; i++) {
			at = strstr(at, "waiting for chan");
			CHECK(at != NULL);
			at++;
		}
		listen_no_more();
	}
}

static int
wait_on_another_loop(void *arg)
{
	weft_runtime *runtime = weft_runtime_current();
	weft_scope scope;
	weft_go_opts opts = { .loop = weft_runtime_loop(runtime, 1), .scope = &scope };

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_go_with(&opts, wait_in_a_circle, arg) > 0);
	return weft_scope_close(&scope);
}

static weft_event finished;

static int
finish_after(void *arg)
{
	int rc = wait_on_another_loop(arg);

	OK(weft_event_set(&finished));
	return rc;
}

TEST(deadlock_in_a_runtime_without_weft_main_is_reported)
{
	weft_runtime *runtime;
	weft_go_opts opts = WEFT_INIT;

	listen_for(true);
	finished = (weft_event)WEFT_SHARED_INIT;
	runtime = weft_runtime_new(&(weft_runtime_opts){ .loops = 2 });
	OK(weft_runtime_start(runtime));
	opts.loop = weft_runtime_loop(runtime, 0);
	CHECK(weft_go_with(&opts, finish_after, NULL) > 0);
	OK(weft_event_wait(&finished, WEFT_NEVER));
	CHECK_EQ(reported(), 1);
	weft_runtime_shutdown(runtime);
	OK(weft_runtime_wait_stopped(runtime, WEFT_NEVER));
	OK(weft_runtime_free(runtime));
	listen_no_more();
}

static weft__a32 fed;

static void *
feed_when_asleep(void *arg)
{
	int value = 1;

	for (uint32_t i = 0; i < LOOPS; i++)
		watch_for(weft_runtime_loop(arg, i), WEFT_SLEEPING);
	OK(weft_chan_send(never_sent, &value, WEFT_NEVER));
	weft__store(&fed, 1, WEFT__RELEASE);
	return NULL;
}

static int
receive_from_a_thread(void *arg)
{
	int value;
	pthread_t feeder;

	(void)arg;
	never_sent = weft_chan_new(sizeof(int), 0, WEFT_SHARED);
	feeder = thread(feed_when_asleep, weft_runtime_current());
	OK(weft_chan_recv(never_sent, &value, WEFT_NEVER));
	OK(pthread_join(feeder, NULL));
	never_sent = weft_chan_unref(never_sent);
	return 0;
}

TEST(waiting_for_a_plain_thread_is_no_deadlock)
{
	listen_for(false);
	run_program(LOOPS, receive_from_a_thread);
	CHECK_EQ(reported(), 0);
	listen_no_more();
}

enum { ROUNDS = 2000 };

static weft_chan *there, *back;

static int
answer_all(void *arg)
{
	int value;

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		OK(weft_chan_recv(there, &value, WEFT_NEVER));
		OK(weft_chan_send(back, &value, WEFT_NEVER));
	}
	return 0;
}

static int
ask_all(void *arg)
{
	weft_scope scope;
	weft_go_opts opts = { .loop = weft_runtime_loop(weft_runtime_current(), 1),
		              .scope = &scope };

	(void)arg;
	there = weft_chan_new(sizeof(int), 0, WEFT_SHARED);
	back = weft_chan_new(sizeof(int), 0, WEFT_SHARED);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_go_with(&opts, answer_all, NULL) > 0);
	for (int i = 0; i < ROUNDS; i++) {
		int value = i;

		OK(weft_chan_send(there, &value, WEFT_NEVER));
		OK(weft_chan_recv(back, &value, WEFT_NEVER));
		CHECK_EQ(value, i);
	}
	OK(weft_scope_close(&scope));
	there = weft_chan_unref(there);
	back = weft_chan_unref(back);
	return 0;
}

TEST(loops_that_sleep_and_wake_each_other_are_no_deadlock)
{
	weft_runtime_opts opts = { .loops = 2, .loop.flags = WEFT_LOOP_NO_SPIN };

	await_ends();
	listen_for(false);
	CHECK_EQ(weft_main(&opts, ask_all, NULL), 0);
	CHECK_EQ(reported(), 0);
	listen_no_more();
}
