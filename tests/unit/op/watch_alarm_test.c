/* watch_alarm_test.c - hangups and errors that no watch or op waits for; levels and edges.
 *
 * The kernel reports HUP and ERROR even if they were not requested, at every poll.  If no watch
 * or op wants them, or no longer, they must not keep the loop awake.  The tests count how often
 * the loop begins to wait in a certain time.  The other part: a reader that always drains its
 * descriptor sees the same with level and edge triggering, on every backend.
 */
#include <unistd.h>
#include "backend/backend.h"
#include "base/sys.h"
#include "unit/probe.h"

#define WHILE_NS  (20 * WEFT_MS)
#define WAITS_MAX 6 /* in WHILE_NS, for a loop that sleeps */

struct scene {
	weft_loop *loop;
	struct watcher w;
	struct probe p, q;
	int fds[4]; /* closed at the end; -1: none */
};

/* A pipe whose end `closed` is closed.  Returns the other end. */
static int
broken_pipe(struct scene *s, int closed)
{
	int ends[2];

	OK(weft__sys->pipe(ends));
	OK(close(ends[closed]));
	s->fds[0] = ends[!closed];
	return s->fds[0];
}

static void
mute(struct watcher *w)
{
	if (!w->ends)
		watch(NULL, w, w->fd, 0);
}

static void
stop(struct watcher *w)
{
	if (!w->ends)
		CHECK_EQ(weft_watch_stop(&w->watch), 1);
}

/* --- ways to have only a hangup or error pending ------------------------- */

static void
a_hangup_muted_from_the_beginning(struct scene *s)
{
	watch(s->loop, &s->w, broken_pipe(s, 1), 0);
	turns(s->loop, 3);
	CHECK_EQ(s->w.calls, 0);
}

static void
a_hangup_muted_when_called(struct scene *s)
{
	s->w.act = mute;
	watch(s->loop, &s->w, broken_pipe(s, 1), WEFT_READABLE);
	turns(s->loop, 3);
	CHECK_EQ(s->w.calls, 1);
	CHECK_EQ(s->w.what, WEFT_EV_HUP);
}

static void
an_error_muted_when_called(struct scene *s)
{
	s->w.act = mute;
	watch(s->loop, &s->w, broken_pipe(s, 0), WEFT_WRITABLE);
	turns(s->loop, 3);
	CHECK_EQ(s->w.calls, 1);
	CHECK(s->w.what & WEFT_EV_ERROR);
}

static void
an_error_whose_watch_has_stopped(struct scene *s)
{
	s->w.act = stop;
	watch(s->loop, &s->w, broken_pipe(s, 0), WEFT_READABLE);
	turns(s->loop, 3);
	CHECK_EQ(s->w.calls, 1);
	CHECK_EQ(s->w.what, WEFT_EV_ERROR);
}

static void
a_hangup_that_has_ended_a_poll_op(struct scene *s)
{
	start(s->loop, &s->p, POLL_READ, broken_pipe(s, 1));
	turns(s->loop, 3);
	CHECK_ENDED(&s->p, WEFT_EV_HUP);
}

static void
an_end_that_was_received(struct scene *s)
{
	struct pair pair = make_pair();

	s->fds[0] = pair.fd;
	start(s->loop, &s->p, RECV, pair.fd);
	turns(s->loop, 2);
	OK(close(pair.peer));
	turns(s->loop, 3);
	CHECK_ENDED(&s->p, 0);
}

/* A connection that the loop has accepted, and its other end. */
static struct pair
accepted(struct scene *s)
{
	struct sockaddr_in addr;
	int client;

	s->fds[1] = make_listener(4, &addr);
	client = make_client(&addr);
	start(s->loop, &s->q, ACCEPT, s->fds[1]);
	while (s->q.ends == 0)
		(void)weft_loop_run_once(s->loop, WEFT_NEVER);
	s->fds[0] = (int)s->q.result;
	CHECK(s->fds[0] >= 0);
	return (struct pair){ s->fds[0], client };
}

static void
reset(int fd)
{
	struct linger at_once = { .l_onoff = 1 };

	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	OK(close(fd));
}

static void
a_reset_that_was_received(struct scene *s)
{
	struct pair pair = accepted(s);

	start(s->loop, &s->p, RECV, pair.fd);
	turns(s->loop, 2);
	reset(pair.peer);
	while (s->p.ends == 0)
		(void)weft_loop_run_once(s->loop, WEFT_NEVER);
	CHECK_ENDED(&s->p, WEFT_ECONNRESET);
}

/* The descriptor stays registered with the kernel, and then its peer closes or resets. */
static void
an_end_or_reset_that_comes_when_nobody_waits(struct scene *s, bool resets)
{
	struct pair pair = accepted(s);

	put(pair.peer, "x");
	start(s->loop, &s->p, RECV, pair.fd);
	while (s->p.ends == 0)
		(void)weft_loop_run_once(s->loop, WEFT_NEVER);
	CHECK_ENDED(&s->p, 1);
	if (resets)
		reset(pair.peer);
	else
		OK(close(pair.peer));
}

static void
an_end_that_comes_when_nobody_waits(struct scene *s)
{
	an_end_or_reset_that_comes_when_nobody_waits(s, false);
}

static void
a_reset_that_comes_when_nobody_waits(struct scene *s)
{
	an_end_or_reset_that_comes_when_nobody_waits(s, true);
}

/* --- what that costs ---------------------------------------------------- */

static void
leave(weft_timer *timer, void *arg)
{
	(void)timer;
	weft_loop_break(arg);
}

/* How often the loop begins to wait in WHILE_NS. */
static int64_t
waits_in_a_while(weft_loop *loop)
{
	weft_timer timer = WEFT_INIT;
	int64_t before = counted(&calls.waits);

	OK(weft_timer_start(loop, &timer, weft_after(WHILE_NS), 0, leave, loop));
	OK(weft_loop_run(loop));
	return counted(&calls.waits) - before;
}

/* The same after `play` has set up a scene.  A quiet watch makes sure that the loop waits for
 * descriptors at all. */
static int64_t
waits_after(void (*play)(struct scene *s))
{
	struct scene s = { .fds = { -1, -1, -1, -1 } };
	struct pair quiet = make_pair();
	struct watcher w = { .calls = 0 };
	int64_t waits;

	count_calls();
	s.loop = make();
	watch(s.loop, &w, quiet.fd, WEFT_READABLE);
	play(&s);
	waits = waits_in_a_while(s.loop);
	CHECK_EQ(w.calls, 0);
	stop_idle(s.loop);
	count_no_more();
	for (int i = 0; i < 4; i++)
		if (s.fds[i] >= 0)
			OK(close(s.fds[i]));
	close_pair(quiet);
	return waits;
}

TEST(an_unwanted_hangup_or_error_does_not_keep_the_loop_awake)
{
	CHECK(waits_after(a_hangup_muted_from_the_beginning) <= WAITS_MAX);
	CHECK(waits_after(a_hangup_muted_when_called) <= WAITS_MAX);
	CHECK(waits_after(an_error_muted_when_called) <= WAITS_MAX);
	CHECK(waits_after(an_error_whose_watch_has_stopped) <= WAITS_MAX);
}

TEST(a_hangup_after_an_op_or_without_any_op_does_not_keep_the_loop_awake)
{
	CHECK(waits_after(a_hangup_that_has_ended_a_poll_op) <= WAITS_MAX);
	CHECK(waits_after(an_end_that_was_received) <= WAITS_MAX);
	CHECK(waits_after(a_reset_that_was_received) <= WAITS_MAX);
	CHECK(waits_after(an_end_that_comes_when_nobody_waits) <= WAITS_MAX);
	CHECK(waits_after(a_reset_that_comes_when_nobody_waits) <= WAITS_MAX);
}

TEST(a_watch_for_readiness_gets_a_lone_hangup_until_it_is_stopped)
{
	struct scene s = { .fds = { -1 } };

	s.loop = make();
	watch(s.loop, &s.w, broken_pipe(&s, 1), WEFT_READABLE);
	for (int i = 1; i < 5; i++) {
		turns(s.loop, 1);
		CHECK(s.w.calls >= i);
		CHECK_EQ(s.w.what, WEFT_EV_HUP);
	}
	CHECK_EQ(weft_watch_stop(&s.w.watch), 1);
	OK(weft_loop_run(s.loop));
	OK(close(s.fds[0]));
	OK(weft_loop_free(s.loop));
}

/* poll(2) has no edges, so its backend reports the level. */
static void
a_hangup_by_edge(struct scene *s)
{
	watch(s->loop, &s->w, broken_pipe(s, 1), WEFT_READABLE | WEFT_EDGE);
	turns(s->loop, 5);
	CHECK_EQ(s->w.calls, 1);
	CHECK_EQ(s->w.what, WEFT_EV_HUP);
}

TEST(an_edge_triggered_watch_gets_a_hangup_once_where_edges_exist)
{
	const char *name = getenv("WEFT_BACKEND");

	if (name && strcmp(name, "poll") != 0)
		CHECK(waits_after(a_hangup_by_edge) <= WAITS_MAX);
}

/* --- levels and edges --------------------------------------------------- */

#define STEPS 60

struct outcome {
	bool at_all;
	int64_t bytes;
};

static void
drain_all(struct watcher *w)
{
	if (!w->ends)
		w->bytes += drain(w->fd);
}

/* Send zero to three portions of random size. */
static void
put_some(int fd, uint64_t *seed)
{
	static const char bytes[5000];

	for (uint64_t left = test_random(seed) % 4; left > 0; left--) {
		size_t size = 1 + test_random(seed) % sizeof(bytes);

		CHECK_EQ(send(fd, bytes, size, MSG_DONTWAIT), size);
	}
}

/* What a reader that drains sees, step by step.  The last step is the end of the stream. */
static void
play(const char *backend, uint32_t events, uint64_t seed, struct outcome *out)
{
	weft_loop_opts opts = { .backend = backend };
	weft_loop *loop = make_with(&opts);
	struct pair pair = make_pair();
	struct watcher w = { .act = drain_all };

	watch(loop, &w, pair.fd, events);
	for (int i = 0; i < STEPS; i++) {
		w.calls = 0;
		w.bytes = 0;
		if (i < STEPS - 1)
			put_some(pair.peer, &seed);
		else
			OK(shutdown(pair.peer, SHUT_WR));
		turns(loop, 4);
		out[i] = (struct outcome){ w.calls > 0, w.bytes };
	}
	CHECK_EQ(weft_watch_stop(&w.watch), 1);
	OK(weft_loop_free(loop));
	close_pair(pair);
}

TEST(a_draining_reader_sees_the_same_by_level_and_edge_on_every_backend)
{
	static const char *const backends[] = { "poll", "epoll", "uring" };
	struct outcome first[STEPS], outcome[STEPS];
	uint64_t seed = test_seed();
	int64_t all = 0;

	play("poll", WEFT_READABLE, seed, first);
	for (int b = 0; b < 3; b++)
		for (uint32_t edge = 0; edge <= WEFT_EDGE; edge += WEFT_EDGE) {
			if (!weft__backend_exists(backends[b]))
				continue;
			play(backends[b], WEFT_READABLE | edge, seed, outcome);
			for (int i = 0; i < STEPS; i++) {
				CHECK_EQ(outcome[i].at_all, first[i].at_all);
				CHECK_EQ(outcome[i].bytes, first[i].bytes);
			}
		}
	for (int i = 0; i < STEPS - 1; i++) {
		CHECK_EQ(first[i].at_all, first[i].bytes > 0);
		all += first[i].bytes;
	}
	CHECK(first[STEPS - 1].at_all && all > 0);
}
