/* embed_wake_test.c - a host that sleeps in poll(2) or in a weft loop is woken. */
#define _GNU_SOURCE
#include <sched.h>
#include <weft/embed.h>
#include "unit/loop/embed_host.h"

/* --- a host that is asleep ---------------------------------------------- */

struct sleeper {
	struct deed deed;
	int peer; /* descriptor to send a byte to; 0: post instead */
	char stat[64];
	char state; /* of the host's thread, as /proc shows it */
};

/* Wait until the kernel shows the host's thread as sleeping, then post or send a byte. */
static void *
act_on_sleeper(void *arg)
{
	struct sleeper *sleeper = arg;

	while (sleeper->state != 'S') {
		FILE *file = fopen(sleeper->stat, "r");

		CHECK(file != NULL);
		CHECK_EQ(fscanf(file, "%*d %*s %c", &sleeper->state), 1);
		OK(fclose(file));
		sched_yield();
	}
	if (!sleeper->peer)
		OK(weft_loop_post(sleeper->deed.loop, count, &sleeper->deed.ran));
	else
		put(sleeper->peer);
	return NULL;
}

static pthread_t
act_later(struct sleeper *sleeper)
{
	pthread_t thread;

	(void)snprintf(sleeper->stat, sizeof(sleeper->stat), "/proc/self/task/%d/stat",
	               (int)gettid());
	sleeper->state = 0;
	OK(pthread_create(&thread, NULL, act_on_sleeper, sleeper));
	return thread;
}

TEST(a_host_that_sleeps_in_poll_is_woken_by_posts_and_by_bytes)
{
	struct sleeper sleeper = { .deed = { .loop = make() } };
	weft_loop *loop = sleeper.deed.loop;
	int fds[2];
	char byte;

	make_pair(fds);
	for (int i = 1; has_fd() && i < 5; i++) {
		struct pollfd p = { .fd = weft_loop_fd(loop), .events = POLLIN };
		pthread_t thread;

		if (i % 2 == 0) {
			sleeper.peer = fds[1];
			OK(weft_op_init(&sleeper.deed.op, loop, on_op, &sleeper.deed));
			OK(weft_op_recv(&sleeper.deed.op, fds[0], &byte, 1, 0, WEFT_NEVER));
		}
		while (weft_loop_next(loop) == WEFT_NOWAIT)
			(void)weft_loop_run_once(loop, WEFT_NOWAIT);
		thread = act_later(&sleeper);
		CHECK_EQ(poll(&p, 1, 60000), 1);
		OK(pthread_join(thread, NULL));
		while (sleeper.deed.ran < i)
			(void)host_once(loop);
		sleeper.peer = 0;
	}
	OK(weft_loop_free(loop));
	close_pair(fds);
}

/* --- inside another weft loop ------------------------------------------- */

struct nest {
	weft_loop *outer, *inner;
	weft_watch watch;
	weft_timer timer;
	weft_loop_hook hook;
	int turns;
};

static void on_inner_due(weft_timer *timer, void *arg);

static void
plan(struct nest *nest)
{
	uint64_t next_ns = weft_loop_next(nest->inner);

	if (next_ns == WEFT_NEVER)
		(void)weft_timer_stop(&nest->timer);
	else
		OK(weft_timer_start(nest->outer, &nest->timer, next_ns, 0, on_inner_due, nest));
}

static void
turn_inner(struct nest *nest)
{
	CHECK(weft_loop_run_once(nest->inner, WEFT_NOWAIT) >= 0);
	nest->turns++;
	weft_loop_break(nest->outer); /* return before the next wait, so that the test can check */
	plan(nest);
}

static void
on_inner_due(weft_timer *timer, void *arg)
{
	(void)timer;
	turn_inner(arg);
}

static void
on_inner_ready(weft_watch *watch, int what, void *arg)
{
	(void)watch;
	CHECK(what & WEFT_READABLE);
	turn_inner(arg);
}

static void
on_changed(weft_loop *loop, void *arg)
{
	struct nest *nest = arg;

	CHECK(loop == nest->inner);
	plan(nest);
}

static void
make_nest(struct nest *nest)
{
	*nest = (struct nest){ .outer = make(), .inner = make() };
	nest->hook = (weft_loop_hook){ .next_changed = on_changed, .arg = nest };
	OK(weft_loop_push_hook(nest->inner, &nest->hook));
	OK(weft_watch_start(nest->outer, &nest->watch, weft_loop_fd(nest->inner), WEFT_READABLE,
	                    on_inner_ready, nest));
	plan(nest);
}

static void
end_nest(struct nest *nest)
{
	CHECK_EQ(weft_watch_stop(&nest->watch), 1);
	(void)weft_timer_stop(&nest->timer);
	OK(weft_loop_free(nest->inner));
	OK(weft_loop_free(nest->outer));
}

static void *
post_later(void *arg)
{
	struct deed *deed = arg;

	for (int i = 0; i < 200; i++)
		OK(weft_loop_post(deed->loop, count, &deed->ran));
	return NULL;
}

TEST(a_loop_runs_inside_another_by_its_descriptor_and_its_hook)
{
	struct nest nest;
	struct deed deed = { 0 };
	weft_timer timer = WEFT_INIT;
	pthread_t thread;
	int ticks = 0;

	if (!has_fd())
		return;
	make_nest(&nest);
	deed.loop = nest.inner;
	OK(pthread_create(&thread, NULL, post_later, &deed));
	OK(weft_timer_start(nest.inner, &timer, weft_after(WEFT_MS), 0, on_timer, &ticks));
	while (deed.ran < 200 || ticks < 1)
		CHECK_EQ(weft_loop_run_once(nest.outer, WEFT_NEVER), 1);
	OK(pthread_join(thread, NULL));
	OK(weft_schedule_microtask(nest.inner, count, &ticks));
	while (ticks < 2)
		CHECK_EQ(weft_loop_run_once(nest.outer, WEFT_NEVER), 1);
	CHECK_EQ(deed.ran, 200);
	end_nest(&nest);
}

TEST(an_outer_loop_that_sleeps_is_woken_by_posts_and_by_bytes_for_the_inner)
{
	struct sleeper sleeper = { .peer = 0 };
	struct nest nest;
	int fds[2];
	char byte;

	if (!has_fd())
		return;
	make_nest(&nest);
	make_pair(fds);
	sleeper.deed.loop = nest.inner;
	for (int i = 1; i < 5; i++) {
		pthread_t thread;

		if (i % 2 == 0) {
			sleeper.peer = fds[1];
			OK(weft_op_init(&sleeper.deed.op, nest.inner, on_op, &sleeper.deed));
			OK(weft_op_recv(&sleeper.deed.op, fds[0], &byte, 1, 0, WEFT_NEVER));
		}
		thread = act_later(&sleeper);
		while (sleeper.deed.ran < i)
			CHECK_EQ(weft_loop_run_once(nest.outer, WEFT_NEVER), 1);
		OK(pthread_join(thread, NULL));
		sleeper.peer = 0;
	}
	end_nest(&nest);
	close_pair(fds);
}

TEST(an_idle_loop_inside_another_runs_no_iterations)
{
	struct nest nest;
	int turns;

	if (!has_fd())
		return;
	make_nest(&nest);
	for (int i = 0; i < 5; i++)
		(void)weft_loop_run_once(nest.outer, WEFT_NOWAIT);
	turns = nest.turns;
	for (int i = 0; i < 20; i++)
		(void)weft_loop_run_once(nest.outer, WEFT_NOWAIT);
	CHECK_EQ(nest.turns, turns);
	end_nest(&nest);
}
