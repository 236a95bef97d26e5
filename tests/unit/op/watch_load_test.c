/* watch_load_test.c - watches: what they cost, and many of them.
 *
 * An iteration with WEFT_NOWAIT polls the descriptors once.  So a few iterations represent "never"
 * where nothing must happen, and "soon" where something must happen soon.
 */
#include <unistd.h>
#include "unit/probe.h"

/* --- calls -------------------------------------------------------------- */

/* System calls that wait, or that set up what to wait for. */
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

/* How many of those calls the loop makes in 20 ms with nothing to do. */
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

TEST(a_hangup_of_a_muted_watch_is_not_reported_and_does_not_wake_the_loop)
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

TEST(a_descriptor_closed_with_an_open_duplicate_does_not_wake_the_loop)
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

TEST(each_of_many_watches_that_stay_ready_is_called_soon)
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
