/* watch_load_test.c - watches: what they cost, and many of them.
 *
 * A turn with WEFT_NOWAIT looks at descriptors once, so where nothing must happen a few
 * turns stand for "never", and where something must happen soon, for "soon".
 */
#include <unistd.h>
#include "unit/probe.h"

/* --- calls -------------------------------------------------------------- */

/* Calls that wait, or that say for what. */
static int64_t
all_calls(void)
{
	return counted(&calls.waits) + counted(&calls.arms);
}

static void
wake_up(weft_timer *timer, void *arg)
{
	(void)timer;
	weft_loop_break(arg);
}

/* How many calls the loop makes in a while in which nothing is to be done. */
static int64_t
idle_calls(weft_loop *loop)
{
	weft_timer timer = WEFT_INIT;
	int64_t before = all_calls();

	OK(weft_timer_start(loop, &timer, weft_after(20 * WEFT_MS), 0, wake_up, loop));
	OK(weft_loop_run(loop));
	return all_calls() - before;
}

TEST(muting_makes_no_system_call)
{
	struct pair pair = make_pair();
	struct watcher p = { .calls = 0 };
	weft_loop *loop;
	int64_t before;

	count_calls();
	loop = make();
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	before = all_calls();
	watch(loop, &p, pair.fd, 0);
	CHECK_EQ(all_calls(), before);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	OK(weft_loop_free(loop));
	count_no_more();
	close_pair(pair);
}

TEST(a_hangup_of_what_is_muted_is_not_told_and_keeps_nobody_awake)
{
	struct pair pair = make_pair(), quiet = make_pair();
	struct watcher p = { .calls = 0 }, q = { .calls = 0 };
	weft_loop *loop;

	count_calls();
	loop = make();
	watch(loop, &q, quiet.fd, WEFT_READABLE);
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	OK(close(pair.peer));
	watch(loop, &p, pair.fd, 0);
	CHECK(idle_calls(loop) < 20);
	CHECK_EQ(p.calls, 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	CHECK_EQ(weft_watch_stop(&q.watch), 1);
	OK(weft_loop_free(loop));
	count_no_more();
	OK(close(pair.fd));
	close_pair(quiet);
}

TEST(a_descriptor_closed_while_a_copy_of_it_lives_keeps_nobody_awake)
{
	struct pair pair = make_pair(), quiet = make_pair();
	struct watcher p = { .calls = 0 }, q = { .calls = 0 };
	weft_loop *loop;
	int copy = dup(pair.fd);

	count_calls();
	loop = make();
	watch(loop, &q, quiet.fd, WEFT_READABLE);
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	OK(close(pair.fd));
	put(pair.peer, "x");
	turns(loop, 2);
	(void)weft_watch_stop(&p.watch);
	turns(loop, 2);
	CHECK(idle_calls(loop) < 100);
	CHECK_EQ(weft_watch_stop(&q.watch), 1);
	OK(weft_loop_free(loop));
	count_no_more();
	close_pair(quiet);
	close_pair((struct pair){ copy, pair.peer });
}

/* --- many --------------------------------------------------------------- */

TEST(however_many_stay_ready_each_is_called_soon)
{
	enum { COUNT = 600 };
	static struct watcher probes[COUNT];
	static struct pair pairs[COUNT];
	weft_loop *loop = make();
	int called = 0;

	for (int i = 0; i < COUNT; i++) {
		pairs[i] = make_pair();
		put(pairs[i].peer, "x");
		watch(loop, &probes[i], pairs[i].fd, WEFT_READABLE);
	}
	turns(loop, 10);
	for (int i = 0; i < COUNT; i++) {
		called += probes[i].calls > 0;
		CHECK_EQ(weft_watch_stop(&probes[i].watch), 1);
		close_pair(pairs[i]);
	}
	CHECK_EQ(called, COUNT);
	OK(weft_loop_free(loop));
}
