/* steady_test.c - a loop in steady state allocates nothing.
 *
 * Each test first runs some rounds in which the loop may allocate and its structures grow to
 * their size.  Then it runs many more rounds, in which the loop must not allocate at all.
 */
#include <sched.h>
#include "unit/probe.h"

#define WARM   1000 /* rounds */
#define ROUNDS 10000

static int rounds;

/* Run iterations until `count` more rounds are over.  Returns the number of allocations. */
static int64_t
allocs_in(weft_loop *loop, int count)
{
	int64_t before = counted(&calls.allocs);
	int until = rounds + count;

	while (rounds < until)
		(void)weft_loop_run_once(loop, weft_after(HOUR));
	return counted(&calls.allocs) - before;
}

static weft_loop *
begin(void)
{
	count_calls();
	rounds = 0;
	return make();
}

static void
check_steady(weft_loop *loop)
{
	(void)allocs_in(loop, WARM);
	CHECK_EQ(allocs_in(loop, ROUNDS), 0);
}

static void
end(weft_loop *loop)
{
	stop_idle(loop);
	count_no_more();
}

/* --- posts and microtasks ----------------------------------------------- */

static void
post_again(void *arg)
{
	rounds++;
	(void)weft_loop_post(NULL, post_again, arg); /* refused when the loop stops */
}

TEST(posts_in_steady_state_allocate_nothing)
{
	weft_loop *loop = begin();

	for (int i = 0; i < 100; i++)
		OK(weft_loop_post(loop, post_again, NULL));
	check_steady(loop);
	end(loop);
}

static void
count_round(void *arg)
{
	(void)arg;
	rounds++;
}

static weft__a32 is_full, is_enough;

/* The producer queue grows with the number of queued posts up to the limit, so fill it first. */
static void *
feed(void *arg)
{
	while (weft_loop_post(arg, count_round, NULL) == 0)
		;
	weft__store(&is_full, 1, WEFT__RELEASE);
	while (!weft__load(&is_enough, WEFT__RELAXED))
		if (weft_loop_post(arg, count_round, NULL) != 0)
			sched_yield();
	return NULL;
}

TEST(posts_of_another_thread_in_steady_state_allocate_nothing)
{
	weft_loop_opts opts = { .inbox_max = 256 };
	weft_loop *loop;
	pthread_t feeder;

	count_calls();
	rounds = 0;
	loop = make_with(&opts);
	feeder = thread(feed, loop);
	while (!weft__load(&is_full, WEFT__ACQUIRE))
		sched_yield();
	check_steady(loop);
	weft__store(&is_enough, 1, WEFT__RELAXED);
	OK(pthread_join(feeder, NULL));
	end(loop);
}

static void
fan_out(void *arg)
{
	rounds++;
	for (int i = 0; i < 20; i++) {
		OK(weft_schedule_microtask(NULL, count_round, NULL));
		OK(weft_schedule_tick(NULL, count_round, NULL));
	}
	(void)weft_loop_post(NULL, fan_out, arg);
}

TEST(microtasks_and_ticks_in_steady_state_allocate_nothing)
{
	weft_loop *loop = begin();

	OK(weft_loop_post(loop, fan_out, NULL));
	check_steady(loop);
	end(loop);
}

/* --- timers and timer IDs ----------------------------------------------- */

static uint64_t seed;

static uint64_t
soon(void)
{
	return weft_loop_now(NULL) + test_random(&seed) % (50 * WEFT_US);
}

static void
arm_again(weft_timer *timer, void *arg)
{
	rounds++;
	OK(weft_timer_start(NULL, timer, soon(), 0, arm_again, arg));
}

/* Postpone another timer, as servers do with idle timeouts. */
static void
put_off(weft_timer *timer, void *arg)
{
	(void)timer;
	rounds++;
	OK(weft_timer_start(NULL, arg, weft_after(HOUR), 0, arm_again, NULL));
}

TEST(timers_in_steady_state_allocate_nothing)
{
	weft_loop *loop = begin();
	static weft_timer timers[100], repeats, late;

	seed = test_seed();
	for (int i = 0; i < 100; i++)
		OK(weft_timer_start(loop, &timers[i], WEFT_NOWAIT, 0, arm_again, NULL));
	OK(weft_timer_start(loop, &repeats, WEFT_NOWAIT, 20 * WEFT_US, put_off, &late));
	check_steady(loop);
	end(loop);
}

static void
set_again(void *arg)
{
	int64_t id = weft_schedule_timeout(NULL, HOUR, count_round, NULL);

	rounds++;
	OK(weft_schedule_clear(NULL, id, NULL));
	if (arg)
		CHECK(weft_schedule_immediate(NULL, set_again, arg) > 0);
	else
		CHECK(weft_schedule_timeout(NULL, 10 * WEFT_US, set_again, arg) > 0);
}

TEST(timer_ids_in_steady_state_allocate_nothing)
{
	weft_loop *loop = begin();

	for (int i = 0; i < 50; i++) {
		CHECK(weft_schedule_timeout(loop, 0, set_again, NULL) > 0);
		CHECK(weft_schedule_immediate(loop, set_again, MARK(1)) > 0);
	}
	check_steady(loop);
	end(loop);
}

/* --- ops and watches ---------------------------------------------------- */

static void
sleep_again(struct probe *p)
{
	rounds++;
	if (p->result == 0)
		OK(weft_op_sleep(&p->op, soon()));
}

TEST(sleeping_ops_in_steady_state_allocate_nothing)
{
	static struct probe probes[50];
	weft_loop *loop = begin();

	seed = test_seed();
	for (int i = 0; i < 50; i++) {
		probes[i].act = sleep_again;
		init(loop, &probes[i]);
		OK(weft_op_sleep(&probes[i].op, WEFT_NOWAIT));
	}
	check_steady(loop);
	end(loop);
}

/* Send back what was received, or receive what was sent back. */
static void
bounce(struct probe *p)
{
	bool came = !p->sends;
	int rc;

	if (p->result < 0)
		return; /* the loop stops */
	p->sends = came;
	CHECK_EQ(p->result, sizeof(p->buf));
	rounds += came;
	rc = try_start(p, came ? SEND : RECV, p->fd, weft_after(HOUR));
	CHECK(rc == 0 || rc == WEFT_ESHUTDOWN);
}

TEST(ops_on_descriptors_in_steady_state_allocate_nothing)
{
	struct pair pairs[8];
	static struct probe in[8], out[8];
	weft_loop *loop = begin();

	for (int i = 0; i < 8; i++) {
		pairs[i] = make_pair();
		in[i] = (struct probe){ .act = bounce };
		out[i] = (struct probe){ .act = bounce, .sends = true };
		start(loop, &in[i], RECV, pairs[i].fd);
		start(loop, &out[i], SEND, pairs[i].peer);
	}
	check_steady(loop);
	end(loop);
	for (int i = 0; i < 8; i++)
		close_pair(pairs[i]);
}

static void
feed_again(struct probe *p)
{
	if (p->result <= 0)
		return;
	rounds++;
	put(p->other->fd, "again");
}

TEST(ops_with_many_results_in_steady_state_allocate_nothing)
{
	struct pair pair = make_pair();
	struct probe peer = { .fd = pair.peer };
	struct probe p = { .act = feed_again, .other = &peer };
	weft_loop *loop = begin();

	start(loop, &p, RECV_MULTI, pair.fd);
	put(pair.peer, "first");
	check_steady(loop);
	end(loop);
	close_pair(pair);
}

static void
echo(struct watcher *w)
{
	if (w->ends)
		return;
	take(w->fd);
	put(w->fd, "x");
	rounds++;
	if (rounds % 7 == 0) /* now and then start a new watch */
		CHECK_EQ(weft_watch_stop(&w->watch), 1);
	if (rounds % 3 == 0)
		watch(NULL, w, w->fd, 0);
	watch(NULL, w, w->fd, WEFT_READABLE | (rounds % 5 ? 0 : WEFT_EDGE));
}

TEST(watches_in_steady_state_allocate_nothing)
{
	struct pair pair = make_pair();
	struct watcher a = { .act = echo }, b = { .act = echo };
	weft_loop *loop = begin();

	watch(loop, &a, pair.fd, WEFT_READABLE);
	watch(loop, &b, pair.peer, WEFT_READABLE);
	put(pair.fd, "x");
	check_steady(loop);
	end(loop);
	close_pair(pair);
}
