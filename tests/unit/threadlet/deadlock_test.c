/* deadlock_test.c - threadlets that wait for each other are reported, others not. */
#include <sched.h>
#include "base/os.h"
#include "unit/threadlet/crew.h"

static weft__a32 reports;
static char text[16384];
static weft_loop *about;
static weft_threadlet ids[2];
static bool help; /* the hook ends it */

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

/* The hook, until the end of the test. */
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

/* Two that join each other, and one that waits for both. */
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

TEST(threadlets_that_join_each_other_are_reported_with_who_waits_for_whom)
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
		(void)snprintf(want, sizeof(want), "waiting for join %lld",
		               (long long)ids[i]);
		CHECK(strstr(text, want));
	}
	CHECK_STR(trace, "01");
	OK(weft_loop_free(loop));
	listen_no_more();
}

TEST(a_second_deadlock_is_reported_if_the_hook_has_ended_the_first)
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
	weft__sys = &poor; /* while nothing else runs */
	return weft_scope_close(&scope);
}

TEST(without_memory_for_the_text_a_deadlock_is_told_in_short)
{
	const struct weft__sys *before = weft__sys;

	listen_for(true);
	poor = *before;
	poor.alloc = alloc_nothing;
	run_threadlet(starve_in_a_circle, NULL);
	weft__sys = before;
	CHECK_EQ(reported(), 1);
	CHECK_STR(text, "threadlets wait for each other only");
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

TEST(a_deadlock_is_reported_once_and_not_where_posts_end_it)
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

/* A join that can end: its child waits for something from outside. */
static int
join_child(void *arg)
{
	weft_scope scope;
	weft_threadlet child;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope,
	                      arg ? wait_for_byte : sleep_until_cancelled, arg);
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
		weft_loop_stop(loop);
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

TEST(who_waits_for_a_descriptor_in_the_end_is_in_no_deadlock)
{
	struct pair pair = make_pair();

	listen_for(false);
	run_until_asleep(make(), &pair);
	close_pair(pair);
	listen_no_more();
}

TEST(who_sleeps_for_ever_waits_to_be_cancelled)
{
	listen_for(false);
	run_until_asleep(make(), NULL);
	listen_no_more();
}

TEST(a_loop_that_is_kept_waits_for_posts)
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
	weft_loop_stop(both[1]);
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

TEST(a_child_on_another_loop_may_still_end)
{
	run_with_far_child(join_far_child);
	run_with_far_child(close_with_far_child);
}
