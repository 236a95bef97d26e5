/* watch_test.c - watches: what they report, when they are silent, how they end.
 *
 * An iteration with WEFT_NOWAIT polls the descriptors once.  So a few iterations represent "never"
 * where nothing must happen, and "soon" where something must happen soon.
 */
#include <fcntl.h>
#include <unistd.h>
#include <weft/metrics.h>
#include "loop/core/loop.h"
#include "unit/probe.h"

/* --- readiness ---------------------------------------------------------- */

TEST(a_watch_is_called_repeatedly_while_it_is_ready)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher p = { .calls = 0 };

	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 2);
	CHECK_EQ(p.calls, 0);
	put(pair.peer, "x");
	for (int i = 0; i < 4; i++) {
		int before = p.calls;

		turns(loop, 1);
		CHECK(p.calls > before);
		CHECK_EQ(p.what, WEFT_READABLE);
	}
	take(pair.fd);
	p.calls = 0;
	turns(loop, 3);
	CHECK_EQ(p.calls, 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	CHECK_EQ(weft_watch_stop(&p.watch), 0);
	put(pair.peer, "x");
	OK(weft_loop_run(loop));
	CHECK_EQ(p.calls, 0);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(an_edge_triggered_watch_is_called_at_every_change)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher p = { .calls = 0 };

	watch(loop, &p, pair.fd, WEFT_READABLE | WEFT_EDGE);
	for (int i = 0; i < 5; i++) {
		p.calls = 0;
		put(pair.peer, "x");
		while (p.calls == 0)
			(void)weft_loop_run_once(loop, WEFT_NEVER);
		CHECK_EQ(p.what, WEFT_READABLE);
		if (i % 2)
			take(pair.fd); /* more bytes are a change, too */
	}
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

/* Bytes that stay unread are reported once.  The poll backend knows only levels, so it reports
 * them in every iteration. */
TEST(an_edge_triggered_watch_is_called_once_while_nothing_changes)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher p = { .calls = 0 };
	struct weft_loop_stats stats;

	put(pair.peer, "x");
	watch(loop, &p, pair.fd, WEFT_READABLE | WEFT_EDGE);
	while (p.calls == 0)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	turns(loop, 10);
	OK(weft_loop_stats(loop, &stats));
	if (strcmp(stats.backend, "poll") == 0)
		CHECK_EQ(p.calls, 11);
	else
		CHECK_EQ(p.calls, 1);
	put(pair.peer, "y");
	while (p.calls == 1)
		(void)weft_loop_run_once(loop, WEFT_NEVER);
	CHECK_EQ(p.what, WEFT_READABLE);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(a_watch_gets_all_requested_events_together_and_hangups_always)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher p = { .calls = 0 };

	watch(loop, &p, pair.fd, BOTH);
	turns(loop, 1);
	CHECK_EQ(p.what, WEFT_WRITABLE);
	put(pair.peer, "x");
	turns(loop, 1);
	CHECK_EQ(p.what, BOTH);
	watch(loop, &p, pair.fd, WEFT_READABLE); /* fewer events */
	turns(loop, 1);
	CHECK_EQ(p.what, WEFT_READABLE);
	watch(loop, &p, pair.fd, WEFT_WRITABLE); /* other events */
	turns(loop, 1);
	CHECK_EQ(p.what, WEFT_WRITABLE);
	OK(close(pair.peer));
	turns(loop, 1);
	CHECK(p.what & WEFT_EV_HUP);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	OK(close(pair.fd));
	OK(weft_loop_free(loop));
}

static void
count_elsewhere(weft_watch *changed, int what, void *arg)
{
	(void)changed;
	*(int *)arg += what == WEFT_READABLE;
}

TEST(a_regular_file_is_always_ready)
{
	weft_loop *loop = make();
	struct watcher p = { .calls = 0 };
	int fd = open("/proc/self/exe", O_RDONLY), elsewhere = 0;

	CHECK(fd >= 0);
	watch(loop, &p, fd, WEFT_READABLE);
	for (int i = 1; i < 4; i++) {
		turns(loop, 1);
		CHECK(p.calls >= i);
		CHECK_EQ(p.what, WEFT_READABLE);
	}
	p.calls = 0; /* starting again changes the callback: */
	OK(weft_watch_start(loop, &p.watch, fd, WEFT_READABLE, count_elsewhere, &elsewhere));
	turns(loop, 1);
	CHECK_EQ(p.calls, 0);
	CHECK(elsewhere > 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	OK(weft_loop_run(loop));
	OK(close(fd));
	OK(weft_loop_free(loop));
}

/* --- muting ------------------------------------------------------------- */

TEST(a_muted_watch_is_not_called_until_it_is_unmuted)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher p = { .calls = 0 };

	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	put(pair.peer, "x");
	watch(loop, &p, pair.fd, 0);
	turns(loop, 3);
	OK(weft_loop_run(loop)); /* a muted watch does not keep the loop alive */
	CHECK_EQ(p.calls, 0);
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	CHECK(p.calls > 0);
	watch(loop, &p, pair.fd, 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	CHECK_EQ(weft_watch_stop(&p.watch), 0);
	watch(loop, &p, pair.fd, 0); /* muted from the beginning */
	p.calls = 0;
	turns(loop, 2);
	CHECK_EQ(p.calls, 0);
	watch(loop, &p, pair.fd, WEFT_READABLE);
	turns(loop, 1);
	CHECK(p.calls > 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

/* --- one batch ---------------------------------------------------------- */

static void
stop_self(struct watcher *p)
{
	CHECK_EQ(weft_watch_stop(&p->watch), 1);
	free(p);
}

TEST(a_watch_may_be_stopped_and_freed_by_its_own_callback)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher *p = calloc(1, sizeof(*p));

	p->act = stop_self;
	put(pair.peer, "x");
	watch(loop, p, pair.fd, BOTH);
	OK(weft_loop_run(loop));
	close_pair(pair);
	OK(weft_loop_free(loop));
}

static struct watcher *freed;

static void
free_other(struct watcher *p)
{
	CHECK_EQ(weft_watch_stop(&p->other->watch), 1);
	freed = p->other;
	memset(freed, 0xdd, sizeof(*freed));
	free(freed);
	p->act = NULL;
	CHECK_EQ(weft_watch_stop(&p->watch), 1);
}

TEST(the_first_of_two_ready_watches_may_stop_and_free_the_other)
{
	weft_loop *loop = make();
	struct pair a = make_pair(), b = make_pair();
	struct watcher *p = calloc(1, sizeof(*p)), *q = calloc(1, sizeof(*q));

	p->act = q->act = free_other;
	p->other = q;
	q->other = p;
	put(a.peer, "x");
	put(b.peer, "x");
	watch(loop, p, a.fd, WEFT_READABLE);
	watch(loop, q, b.fd, WEFT_READABLE);
	OK(weft_loop_run(loop));
	CHECK(freed == p || freed == q);
	free(freed == p ? q : p);
	close_pair(a);
	close_pair(b);
	OK(weft_loop_free(loop));
}

static struct pair fresh;
static struct watcher heir;

static void
replace_other(struct watcher *p)
{
	p->act = p->other->act = NULL;
	CHECK_EQ(weft_watch_stop(&p->other->watch), 1);
	OK(close(p->other->fd));
	fresh = make_pair(); /* gets the same number again */
	CHECK(fresh.fd == p->other->fd || fresh.peer == p->other->fd);
	watch(NULL, &heir, p->other->fd, WEFT_READABLE);
}

TEST(a_reused_descriptor_number_gets_no_events_of_its_previous_file)
{
	weft_loop *loop = make();
	struct pair a = make_pair(), b = make_pair();
	struct watcher p = { .act = replace_other }, q = { .act = replace_other };

	p.other = &q;
	q.other = &p;
	watch(loop, &p, a.fd, WEFT_READABLE);
	watch(loop, &q, b.fd, WEFT_READABLE);
	put(a.peer, "x");
	put(b.peer, "x");
	turns(loop, 3);
	CHECK_EQ(heir.calls, 0);
	put(heir.fd == fresh.fd ? fresh.peer : fresh.fd, "x");
	turns(loop, 1);
	CHECK(heir.calls > 0);
	CHECK_EQ(weft_watch_stop(&heir.watch), 1);
	CHECK_EQ(weft_watch_stop(&p.watch) + weft_watch_stop(&q.watch), 1);
	OK(close(heir.fd == a.fd ? b.fd : a.fd));
	OK(close(a.peer));
	OK(close(b.peer));
	close_pair(fresh);
	OK(weft_loop_free(loop));
}

/* --- several watches and ops on one descriptor -------------------------- */

static void
keep_result(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	*(int64_t *)arg = result;
}

TEST(one_watch_or_op_may_wait_per_direction)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher r = { .calls = 0 }, w = { .calls = 0 }, x = { .calls = 0 };
	int64_t result = 1;
	weft_op op = WEFT_INIT;

	OK(weft_op_init(&op, loop, keep_result, &result));
	watch(loop, &r, pair.fd, WEFT_READABLE);
	CHECK_EQ(weft_watch_start(loop, &x.watch, pair.fd, BOTH, on_ready, &x), WEFT_EBUSY);
	CHECK_EQ(weft_watch_stop(&x.watch), 0);
	CHECK_EQ(weft_op_poll(&op, pair.fd, WEFT_READABLE, WEFT_NEVER), WEFT_EBUSY);
	watch(loop, &w, pair.fd, WEFT_WRITABLE);
	put(pair.peer, "x");
	turns(loop, 1);
	CHECK_EQ(r.what, WEFT_READABLE);
	CHECK_EQ(w.what, WEFT_WRITABLE);
	CHECK_EQ(weft_watch_stop(&r.watch), 1);
	take(pair.fd);
	OK(weft_op_poll(&op, pair.fd, WEFT_READABLE, WEFT_NEVER));
	CHECK_EQ(weft_watch_start(loop, &r.watch, pair.fd, WEFT_READABLE, on_ready, &r),
	         WEFT_EBUSY);
	CHECK_EQ(weft_watch_stop(&w.watch), 1);
	weft_op_cancel(&op);
	OK(weft_loop_run(loop));
	CHECK_EQ(result, WEFT_ECANCELED);
	close_pair(pair);
	OK(weft_loop_free(loop));
}

/* --- ends --------------------------------------------------------------- */

TEST(a_descriptor_closed_without_notice_blocks_neither_loop_nor_number)
{
	weft_loop *loop = make();
	struct pair a = make_pair(), next;
	struct watcher p = { .calls = 0 }, q = { .calls = 0 };

	watch(loop, &p, a.fd, WEFT_READABLE);
	turns(loop, 1);
	OK(close(a.fd));
	CHECK_EQ(recv(a.peer, &next, 1, MSG_DONTWAIT), 0); /* really closed */
	turns(loop, 3);
	p.ends = 0; /* the poll backend has reported the close */
	next = make_pair();
	CHECK_EQ(next.fd, a.fd);
	watch(loop, &p, next.fd, WEFT_READABLE); /* detects that the number is a new file */
	p.calls = 0;
	put(next.peer, "x");
	turns(loop, 1);
	CHECK(p.calls > 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	OK(close(next.fd)); /* now after the stop, and the number is reused again */
	OK(close(next.peer));
	next = make_pair();
	CHECK_EQ(next.fd, a.fd);
	watch(loop, &q, next.fd, WEFT_READABLE);
	put(next.peer, "x");
	turns(loop, 1);
	CHECK(q.calls > 0);
	CHECK_EQ(weft_watch_stop(&q.watch), 1);
	close_pair(next);
	OK(close(a.peer));
	OK(weft_loop_free(loop));
}

static void
stop_loop(void *arg)
{
	weft_loop_shutdown(arg);
}

static void
check_last(struct watcher *p)
{
	if (p->ends)
		CHECK_EQ(weft_watch_start(NULL, &p->watch, p->fd, WEFT_READABLE, on_ready, p),
		         WEFT_ESHUTDOWN);
}

TEST(a_stopping_loop_calls_every_watch_once_and_the_watch_is_then_stopped)
{
	for (int muted = 0; muted < 2; muted++) {
		struct watcher p[4] = { { .act = check_last } };
		struct pair pairs[4];
		weft_loop *loop = make();

		for (int i = 0; i < 4; i++) {
			pairs[i] = make_pair();
			watch(loop, &p[i], pairs[i].fd, i == 1 ? BOTH | WEFT_EDGE : WEFT_READABLE);
		}
		weft__watch_set_background(&p[2].watch, true);
		if (muted)
			watch(loop, &p[3], pairs[3].fd, 0);
		turns(loop, 1);
		OK(weft_loop_post(loop, stop_loop, loop));
		OK(weft_loop_run(loop));
		for (int i = 0; i < 4; i++) {
			CHECK_EQ(p[i].ends, 1);
			CHECK_EQ(weft_watch_stop(&p[i].watch), 0);
			close_pair(pairs[i]);
		}
		OK(weft_loop_free(loop));
	}
}

TEST(a_stopped_idle_loop_calls_its_watches_when_it_is_run)
{
	for (int muted = 0; muted < 2; muted++) {
		weft_loop *loop = make();
		struct pair pair = make_pair();
		struct watcher p = { .calls = 0 };

		watch(loop, &p, pair.fd, muted ? 0 : WEFT_READABLE);
		weft_loop_shutdown(loop);
		CHECK_EQ(p.ends, 0); /* weft_loop_shutdown() itself calls no callbacks */
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPING);
		CHECK_EQ(weft_loop_free(loop), WEFT_EBUSY);
		OK(weft_loop_run(loop));
		CHECK_EQ(p.ends, 1);
		CHECK_EQ(weft_loop_state(loop), WEFT_STOPPED);
		OK(weft_loop_free(loop));
		close_pair(pair);
	}
}

TEST(a_close_op_calls_the_watches_on_its_descriptor_once)
{
	for (int muted = 0; muted < 2; muted++) {
		weft_loop *loop = make();
		struct pair pair = make_pair();
		struct watcher r = { .calls = 0 }, w = { .calls = 0 };
		int64_t result = 1;
		weft_op op = WEFT_INIT;

		watch(loop, &r, pair.fd, WEFT_READABLE);
		watch(loop, &w, pair.fd, WEFT_WRITABLE);
		if (muted)
			watch(loop, &w, pair.fd, 0);
		turns(loop, 1);
		OK(weft_op_init(&op, loop, keep_result, &result));
		OK(weft_op_close(&op, pair.fd));
		OK(weft_loop_run(loop));
		CHECK_EQ(result, 0);
		CHECK_EQ(r.ends, 1);
		CHECK_EQ(w.ends, 1);
		OK(close(pair.peer));
		OK(weft_loop_free(loop));
	}
}

static void
free_self(struct watcher *p)
{
	if (p->ends)
		free(p);
}

TEST(a_watch_may_be_freed_by_its_callback_for_the_end)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher *p = calloc(1, sizeof(*p));

	p->act = free_self;
	watch(loop, p, pair.fd, WEFT_READABLE);
	OK(weft_loop_start(loop));
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	close_pair(pair);
	OK(weft_loop_free(loop));
}

TEST(background_watches_do_not_keep_the_loop_alive_also_after_a_restart)
{
	weft_loop *loop = make();
	struct pair pair = make_pair();
	struct watcher p = { .calls = 0 };

	weft__watch_set_background(&p.watch, true); /* allowed at any time */
	watch(loop, &p, pair.fd, WEFT_READABLE);
	OK(weft_loop_run(loop));
	put(pair.peer, "x");
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 0);
	CHECK(p.calls > 0);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	watch(loop, &p, pair.fd, WEFT_READABLE);
	OK(weft_loop_run(loop));
	weft__watch_set_background(&p.watch, false);
	CHECK_EQ(weft_loop_run_once(loop, WEFT_NOWAIT), 1);
	CHECK_EQ(weft_watch_stop(&p.watch), 1);
	OK(weft_loop_run(loop));
	close_pair(pair);
	OK(weft_loop_free(loop));
}

/* --- misuse ------------------------------------------------------------- */

TEST(watches_with_invalid_arguments_are_refused)
{
	weft_loop *loop = make();
	struct watcher p = { .calls = 0 };
	int fd = fcntl(0, F_DUPFD, 300);

	OK(close(fd));
	CHECK_EQ(weft_watch_start(loop, &p.watch, fd, BOTH, on_ready, &p), WEFT_EBADF);
	CHECK_EQ(weft_watch_start(loop, &p.watch, -1, BOTH, on_ready, &p), WEFT_EBADF);
	CHECK_EQ(weft_watch_stop(&p.watch), 0);
	CHECK_MISUSE(weft_watch_start(loop, NULL, 0, BOTH, on_ready, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start(loop, &p.watch, 0, BOTH, NULL, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start(loop, &p.watch, 0, 1 << 20, on_ready, &p), WEFT_EINVAL);
	CHECK_MISUSE(weft_watch_start(NULL, &p.watch, 0, BOTH, on_ready, &p), WEFT_EINVAL);
	OK(weft_loop_start(loop));
	CHECK_MISUSE(weft_watch_start(loop, &p.watch, 0, BOTH, on_ready, &p), WEFT_EWRONGLOOP);
	weft_loop_shutdown(loop);
	OK(weft_loop_wait_stopped(loop, WEFT_NEVER));
	OK(weft_loop_free(loop));
}
