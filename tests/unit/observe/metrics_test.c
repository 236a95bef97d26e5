/* metrics_test.c - the counters of a loop, and reading them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
#include <weft/embed.h>
#include <weft/metrics.h>
#include "unit/observe/metrics_fake.h"

#define FOREVER (3600 * WEFT_S)

/* --- counters ----------------------------------------------------------- */

static weft_node last_node = { .fn = nothing };

static void
post_last(void *arg)
{
	OK(weft_loop_post_before_wait(arg, &last_node));
	OK(weft_loop_post_before_wait(arg, &last_node)); /* already queued: it runs only once */
}

static void
on_op(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)arg;
	OK(result);
}

static void
script(weft_loop *loop)
{
	static weft_timer timers[2];
	static weft_node node = { .fn = nothing };
	static weft_op op = { .on_done = on_op };

	op.loop = loop;
	OK(weft_loop_post(loop, nothing, NULL));
	OK(weft_loop_post(loop, post_last, loop));
	OK(weft_loop_post_node(loop, &node));
	for (int i = 0; i < 2; i++)
		OK(weft_timer_start(loop, &timers[i], clock_ns, 0, take_time_by_timer, TIME(1)));
	CHECK(weft_schedule_timeout(loop, 5, nothing, NULL) > 0);
	CHECK(weft_schedule_immediate(loop, nothing, NULL) > 0);
	OK(weft_op_sleep(&op, clock_ns));
}

TEST(counters_are_exact_after_a_scripted_run)
{
	struct weft_loop_stats s;
	weft_loop *loop;

	fake_clock();
	loop = make(0);
	script(loop);
	s = stats_of(loop);
	CHECK(s.turns == 0 && s.posts_accepted == 0 && s.timers_fired == 0);
	CHECK(s.ops_started == 1 && s.ops_finished == 0);
	CHECK_EQ(s.alive, 2 + 1); /* the timer IDs are still in the inbox */
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	clock_ns += 10;
	OK(weft_loop_run_once(loop, WEFT_NOWAIT));
	s = stats_of(loop);
	CHECK_EQ(s.turns, 2);
	CHECK_EQ(s.posts_accepted, 4);
	CHECK_EQ(s.posts_executed, 4);
	CHECK_EQ(s.timers_fired, 3);
	CHECK_EQ(s.ops_finished, 1);
	CHECK(s.alive == 0 && s.wakes == 0 && s.syscalls == 0);
	CHECK(s.posts_refused == 0 && s.polls_skipped == 0 && s.fds == 0);
	OK(weft_loop_free(loop));
	unfake();
}

TEST(a_wait_counts_as_a_syscall_and_a_post_that_ends_it_as_a_wake)
{
	struct weft_loop_stats s;

	fake_clock();
	woken = make(WEFT_LOOP_KEEP);
	on_park = post_from_outside;
	CHECK_EQ(weft_loop_run_once(woken, WEFT_NEVER), 1);
	OK(weft_loop_run_once(woken, clock_ns + 5));
	s = stats_of(woken);
	CHECK_EQ(s.wakes, 1);
	CHECK_EQ(s.syscalls, 2);
	CHECK_EQ(s.posts_executed, 1);
	OK(weft_loop_free(woken));
	unfake();
}

TEST(refused_posts_are_counted_whatever_the_reason)
{
	weft_loop_opts opts = { .inbox_max = 64 };
	weft_loop *loop = weft_loop_new(&opts);
	static weft_node node = { .fn = nothing };
	uint64_t posted = 0;

	while (weft_loop_post(loop, nothing, NULL) == 0)
		posted++;
	CHECK_EQ(weft_loop_post(loop, nothing, NULL), WEFT_EAGAIN);
	CHECK_EQ(stats_of(loop).posts_refused, 2);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_post(loop, nothing, NULL), WEFT_ESHUTDOWN);
	CHECK_EQ(weft_loop_post_node(loop, &node), WEFT_ESHUTDOWN);
	CHECK_EQ(stats_of(loop).posts_refused, 4);
	OK(weft_loop_run(loop));
	CHECK_EQ(stats_of(loop).posts_executed, posted);
	OK(weft_loop_free(loop));
}

struct producer {
	pthread_t thread;
	weft_loop *loop;
	uint64_t accepted, refused;
};

/* Until a post is refused: posts, and calls that use the same inbox but are not posts. */
static void *
produce(void *arg)
{
	struct producer *p = arg;
	int rc = 0;

	for (int i = 0; rc != WEFT_ESHUTDOWN; i++) {
		if (i % 16 == 0)
			(void)weft_schedule_immediate(p->loop, nothing, NULL);
		if (i % 32 == 0)
			weft_loop_wake(p->loop);
		rc = weft_loop_post(p->loop, nothing, NULL);
		p->accepted += rc == 0;
		p->refused += rc != 0;
	}
	return NULL;
}

TEST(accepted_posts_are_executed_when_stop_races_with_producers)
{
	struct producer producers[3];
	struct weft_loop_stats s;

	for (int round = 0; round < 20; round++) {
		weft_loop *loop = make(round % 2 ? WEFT_LOOP_METRICS : 0);
		uint64_t accepted = 0, refused = 0;

		OK(weft_loop_start(loop));
		for (int i = 0; i < 3; i++) {
			producers[i] = (struct producer){ .loop = loop };
			OK(pthread_create(&producers[i].thread, NULL, produce, &producers[i]));
		}
		while (stats_of(loop).posts_executed < 1000)
			weft__sys->yield();
		weft_loop_shutdown(loop);
		OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
		for (int i = 0; i < 3; i++) {
			OK(pthread_join(producers[i].thread, NULL));
			accepted += producers[i].accepted;
			refused += producers[i].refused;
		}
		s = stats_of(loop);
		CHECK_EQ(s.posts_accepted, accepted);
		CHECK_EQ(s.posts_executed, accepted);
		CHECK_EQ(s.posts_refused, refused);
		CHECK_EQ(s.inbox.now, 0);
		CHECK_EQ(s.alive, 0);
		OK(weft_loop_free(loop));
	}
}

static void
on_ready(weft_watch *watch, int ready, void *arg)
{
	char byte;

	(void)arg;
	if (ready > 0)
		CHECK_EQ(read(watch->id, &byte, 1), 1);
}

static void
post_again(void *arg)
{
	static int left = 200;

	if (left-- > 0)
		OK(weft_loop_post(arg, post_again, arg));
}

TEST(watched_descriptors_and_skipped_polls_are_counted)
{
	weft_loop *loop = make(0);
	weft_watch watch = WEFT_INIT;
	struct weft_loop_stats s;
	int fds[2];

	OK(pipe(fds));
	OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, on_ready, NULL));
	s = stats_of(loop);
	CHECK(s.fds == 1 && s.alive == 1 && s.syscalls > 0);
	OK(weft_loop_post(loop, post_again, loop));
	CHECK_EQ(write(fds[1], "", 1), 1);
	for (int i = 0; i < 300 && stats_of(loop).posts_executed < 201; i++) {
		weft_loop_break(loop);
		OK(weft_loop_run(loop));
	}
	CHECK(stats_of(loop).polls_skipped > 100);
	CHECK_EQ(weft_watch_stop(&watch), 1);
	s = stats_of(loop);
	CHECK(s.fds == 0 && s.alive == 0);
	OK(weft_loop_free(loop));
	OK(close(fds[0]) | close(fds[1]));
}

/* --- the backend -------------------------------------------------------- */

static int
no_uring(uint32_t entries, struct io_uring_params *params)
{
	(void)entries;
	(void)params;
	return -EPERM;
}

static int
no_epoll(void)
{
	return -EMFILE;
}

/* Open the backend of a new loop by starting a watch, and check what the stats report. */
static void
check_backend(const char *requested, const char *name, const char *reason)
{
	weft_loop_opts opts = { .backend = requested };
	weft_loop *loop = weft_loop_new(&opts);
	weft_watch watch = WEFT_INIT;
	int fds[2];

	OK(pipe(fds));
	CHECK_STR(stats_of(loop).backend, "");
	CHECK_STR(stats_of(loop).backend_reason, "not opened yet");
	OK(weft_watch_start(loop, &watch, fds[0], WEFT_READABLE, on_ready, NULL));
	CHECK_STR(stats_of(loop).backend, name);
	CHECK_STR(stats_of(loop).backend_reason, reason);
	CHECK_EQ(weft_watch_stop(&watch), 1);
	OK(weft_loop_free(loop));
	OK(close(fds[0]) | close(fds[1]));
}

static const bool portable =
#ifdef WEFT_PORTABLE
	true;
#else
	false;
#endif

TEST(the_reason_why_better_backends_were_not_chosen_is_reported)
{
	unsetenv("WEFT_BACKEND");
	fake();
	faked.uring_setup = no_uring;
	if (portable)
		check_backend(NULL, "poll", "best available");
	else
		check_backend(NULL, "epoll", "io_uring_setup: EPERM, so epoll");
	faked.epoll_create = no_epoll;
	if (!portable)
		check_backend(NULL, "poll", "io_uring_setup: EPERM, epoll_create: EMFILE, so poll");
	unfake();
}

TEST(a_requested_backend_is_reported_as_requested)
{
	check_backend("poll", "poll", "requested by name");
	if (!portable)
		check_backend("epoll", "epoll", "requested by name");
}

/* --- without metrics, and misuse ---------------------------------------- */

TEST(times_rates_and_depths_are_0_without_the_metrics_flag)
{
	struct weft_loop_stats s, zero = WEFT_INIT;
	weft_loop *loop;

	fake_clock();
	loop = make(0);
	OK(weft_loop_post(loop, take_time, TIME(WEFT_MS)));
	OK(weft_loop_run(loop));
	s = stats_of(loop);
	OK(memcmp(s.phase_ns, zero.phase_ns, sizeof(s.phase_ns)));
	OK(memcmp(&s.inbox, &zero.inbox, sizeof(s.inbox)));
	OK(memcmp(&s.microtasks, &zero.microtasks, sizeof(s.inbox)));
	OK(memcmp(&s.internal, &zero.internal, sizeof(s.internal)));
	OK(memcmp(&s.turn, &zero.turn, sizeof(s.turn)));
	OK(memcmp(&s.lag, &zero.lag, sizeof(s.lag)));
	CHECK(s.turns_per_s <= 0 && s.callbacks_per_s <= 0);
	OK(weft_loop_free(loop));
	unfake();
}

static int64_t allocations;

static void *
fail_at_0(size_t size)
{
	return allocations-- == 0 ? NULL : plain->alloc(size);
}

TEST(a_loop_is_not_created_without_memory_for_its_metrics)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_METRICS };

	fake();
	faked.alloc = fail_at_0;
	for (int i = 0; i < 2; i++) {
		allocations = i;
		CHECK(weft_loop_new(&opts) == NULL);
		CHECK(strlen(weft_detail()) > 0);
	}
	unfake();
}

static void
read_inside(void *arg)
{
	struct weft_loop_stats stats;

	OK(weft_loop_stats(NULL, &stats));
	CHECK_EQ(stats.turns, 1);
	*(int *)arg += 1;
}

TEST(null_means_the_running_loop)
{
	weft_loop *loop = make(WEFT_LOOP_METRICS);
	struct weft_loop_stats stats;
	int calls = 0;

	OK(weft_loop_post(loop, read_inside, &calls));
	OK(weft_loop_run(loop));
	CHECK_EQ(calls, 1);
	CHECK_MISUSE(weft_loop_stats(NULL, &stats), WEFT_EINVAL);
	CHECK_MISUSE(weft_loop_stats(loop, NULL), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}

TEST(a_stopped_loop_still_has_its_counters)
{
	weft_loop *loop = make(WEFT_LOOP_METRICS);
	weft_timer timer = WEFT_INIT;

	OK(weft_timer_start(loop, &timer, weft_after(FOREVER), 0, take_time_by_timer, NULL));
	OK(weft_loop_post(loop, nothing, NULL));
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_EQ(stats_of(loop).alive, 1);
	weft_loop_shutdown(loop);
	CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
	CHECK_EQ(stats_of(loop).alive, 0);
	CHECK_EQ(stats_of(loop).posts_executed, 1);
	CHECK(stats_of(loop).turns >= 1);
	OK(weft_loop_free(loop));
}
