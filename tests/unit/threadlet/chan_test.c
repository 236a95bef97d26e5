/* chan_test.c - channels and select: on one loop, between loops, and with plain threads. */
#include <weft/metrics.h>
#include "unit/threadlet/sched.h"

struct ends {
	weft_chan *chan;
	int from, count; /* values to send */
	int more;        /* further copies of the number in each value */
	int64_t sum;     /* of the values received */
	int got;
};

enum { MORE_MAX = 5 };

static int
send_some(void *arg)
{
	struct ends *ends = arg;

	for (int i = 0; i < ends->count; i++) {
		int value[1 + MORE_MAX];

		for (int k = 0; k <= MORE_MAX; k++)
			value[k] = ends->from + i;
		OK(weft_chan_send(ends->chan, value, WEFT_NEVER));
	}
	return 0;
}

static int
recv_all(void *arg)
{
	struct ends *ends = arg;
	int value[1 + MORE_MAX], last = -1, rc;

	while ((rc = weft_chan_recv(ends->chan, value, WEFT_NEVER)) == 0) {
		CHECK(value[0] > last); /* values of one sender are in order */
		for (int k = 0; k < ends->more; k++)
			CHECK_EQ(value[1 + k], value[0]);
		last = value[0];
		ends->sum += value[0];
		ends->got++;
	}
	CHECK_EQ(rc, WEFT_ECLOSED);
	return 0;
}

static int
send_and_close(void *arg)
{
	struct ends *ends = arg;

	(void)send_some(arg);
	weft_chan_close(ends->chan);
	return 0;
}

static void
pass(size_t capacity, uint32_t flags, int more)
{
	struct ends ends = { .count = 1000, .more = more };
	weft_loop *loop = make();

	ends.chan = weft_chan_new((size_t)(1 + more) * sizeof(int), capacity, flags);
	go_on(loop, send_and_close, &ends);
	go_on(loop, recv_all, &ends);
	OK(weft_loop_run(loop));
	CHECK_EQ(ends.got, 1000);
	CHECK_EQ(ends.sum, 499500);
	weft_chan_unref(ends.chan);
	OK(weft_loop_free(loop));
}

TEST(values_arrive_once_and_in_order_for_every_capacity_and_size)
{
	const int sizes[] = { 0, 1, MORE_MAX }; /* 4, 8 and 24 bytes */

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t capacity = 0; capacity < 5; capacity++) {
			pass(capacity, 0, sizes[i]);
			pass(capacity, WEFT_SHARED, sizes[i]);
		}
		pass(5000, 0, sizes[i]);
	}
}

static int
try_it(void *arg)
{
	weft_chan *chan = weft_chan_new(sizeof(int), 2, 0);
	int value = 7;

	(void)arg;
	CHECK_EQ(weft_chan_recv(chan, &value, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_chan_recv(chan, &value, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(value, 7);
	OK(weft_chan_send(chan, &value, WEFT_NOWAIT));
	value = 8;
	OK(weft_chan_send(chan, &value, WEFT_NOWAIT));
	CHECK_EQ(weft_chan_send(chan, &value, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_chan_send(chan, &value, weft_after(1)), WEFT_ETIMEDOUT);
	weft_chan_close(chan);
	weft_chan_close(chan);
	CHECK_EQ(weft_chan_send(chan, &value, WEFT_NEVER), WEFT_ECLOSED);
	OK(weft_chan_recv(chan, &value, WEFT_NEVER));
	CHECK_EQ(value, 7);
	OK(weft_chan_recv(chan, &value, WEFT_NEVER));
	CHECK_EQ(value, 8);
	CHECK_EQ(weft_chan_recv(chan, &value, WEFT_NEVER), WEFT_ECLOSED);
	CHECK(weft_chan_ref(chan) == chan);
	CHECK(weft_chan_unref(chan) == NULL);
	CHECK(weft_chan_unref(chan) == NULL);
	CHECK(weft_chan_unref(NULL) == NULL);
	return 0;
}

TEST(chan_calls_time_out_and_sent_values_survive_a_close)
{
	run_threadlet(try_it, NULL);
}

static int
wait_to(void *arg)
{
	struct ends *ends = arg;
	int value = 1;

	if (ends->from)
		CHECK_EQ(weft_chan_send(ends->chan, &value, WEFT_NEVER), WEFT_ECLOSED);
	else
		CHECK_EQ(weft_chan_recv(ends->chan, &value, WEFT_NEVER), WEFT_ECLOSED);
	ends->got++;
	return 0;
}

static int
close_it(void *arg)
{
	struct ends *ends = arg;

	OK(weft_yield());
	weft_chan_close(ends->chan);
	return 0;
}

TEST(chan_close_wakes_all_waiting_threadlets)
{
	for (int sends = 0; sends < 2; sends++) {
		struct ends ends = { .from = sends };
		weft_loop *loop = make();

		ends.chan = weft_chan_new(sizeof(int), 0, 0);
		for (int i = 0; i < 5; i++)
			go_on(loop, wait_to, &ends);
		go_on(loop, close_it, &ends);
		OK(weft_loop_run(loop));
		CHECK_EQ(ends.got, 5);
		weft_chan_unref(ends.chan);
		OK(weft_loop_free(loop));
	}
}

TEST(chan_new_refuses_impossible_sizes_and_flags)
{
	CHECK(weft_chan_new(8, SIZE_MAX, 0) == NULL);
	CHECK(weft_chan_new(SIZE_MAX, 1, 0) == NULL);
	CHECK(weft_chan_new(8, 1, 1u << 7) == NULL);
	CHECK(weft_chan_unref(weft_chan_new(0, 10, 0)) == NULL);
}

static int
use_foreign(void *arg)
{
	int value = 0;

	CHECK_MISUSE(weft_chan_send(arg, &value, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	return 0;
}

static int
use_own(void *arg)
{
	int value = 0;

	OK(weft_chan_send(arg, &value, WEFT_NOWAIT));
	return 0;
}

TEST(local_channel_belongs_to_the_first_loop_that_uses_it)
{
	weft_chan *chan = weft_chan_new(sizeof(int), 10, 0);
	int value = 0;

	CHECK_MISUSE(weft_chan_send(chan, &value, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	run_threadlet(use_own, chan);
	run_threadlet(use_foreign, chan);
	weft_chan_unref(chan);
}

/* --- between loops ------------------------------------------------------ */

enum { ACROSS = TEST_TSAN ? 2000 : 20000, SENDERS = 3 };

/* Each value contains the number of its sender.  The values of one sender arrive in order. */
static int
send_tagged(void *arg)
{
	struct ends *ends = arg;

	for (int i = 0; i < ends->count; i++) {
		int64_t value = (int64_t)ends->from << 32 | i;

		OK(weft_chan_send(ends->chan, &value, WEFT_NEVER));
	}
	return 0;
}

static void *
send_tagged_in_thread(void *arg)
{
	(void)send_tagged(arg);
	return NULL;
}

static int
recv_tagged(void *arg)
{
	struct ends *ends = arg;
	int64_t last[SENDERS + 1], value;

	memset(last, 0xff, sizeof(last));
	while (ends->got < ends->count) {
		OK(weft_chan_recv(ends->chan, &value, WEFT_NEVER));
		CHECK_EQ(value & 0xffffffff, last[value >> 32] + 1);
		last[value >> 32]++;
		ends->got++;
	}
	return 0;
}

static void
pass_between_loops(size_t capacity)
{
	weft_chan *chan = weft_chan_new(sizeof(int64_t), capacity, WEFT_SHARED);
	struct ends to = { .chan = chan, .count = (SENDERS + 1) * ACROSS };
	struct ends from[SENDERS + 1];
	weft_loop *loops[2] = { make_started(), make_started() }, *here;
	pthread_t plain;

	here = weft_loop_new(NULL);
	go_on(here, recv_tagged, &to);
	for (int i = 0; i <= SENDERS; i++) {
		from[i] = (struct ends){ .chan = chan, .count = ACROSS, .from = i };
		if (i < SENDERS)
			go_on(i == 2 ? here : loops[i], send_tagged, &from[i]);
		else
			plain = thread(send_tagged_in_thread, &from[i]);
	}
	OK(weft_loop_run(here));
	CHECK_EQ(to.got, to.count);
	OK(pthread_join(plain, NULL));
	stop_and_free(loops[0]);
	stop_and_free(loops[1]);
	OK(weft_loop_free(here));
	weft_chan_unref(chan);
}

TEST(values_between_loops_and_threads_arrive_once_and_in_sender_order)
{
	pass_between_loops(0);
	pass_between_loops(1);
	pass_between_loops(64);
}

/* Values arrive as fast as they are received, so a receiver never waits for long. */
struct flow {
	weft_chan *there, *back;
	weft__a32 rested; /* number of loops on which rest_some_times() is done */
	int count;        /* calls that `here` made */
};

static bool
goes_on(const struct flow *flow)
{
	return weft__load(&flow->rested, WEFT__RELAXED) < 2;
}

static int
send_until_rested(void *arg)
{
	struct flow *flow = arg;

	for (int value = 0; goes_on(flow); value++)
		OK(weft_chan_send(flow->there, &value, WEFT_NEVER));
	weft_chan_close(flow->there);
	return 0;
}

static int
recv_in_order(void *arg)
{
	struct flow *flow = arg;
	int value;

	while (weft_chan_recv(flow->there, &value, WEFT_NEVER) == 0)
		CHECK_EQ(value, flow->count++);
	return 0;
}

static int
send_each_back(void *arg)
{
	const struct flow *flow = arg;
	int value;

	while (weft_chan_recv(flow->there, &value, WEFT_NEVER) == 0)
		OK(weft_chan_send(flow->back, &value, WEFT_NEVER));
	return 0;
}

static int
send_one_at_a_time(void *arg)
{
	struct flow *flow = arg;
	int value = 0;

	for (; goes_on(flow); flow->count++) {
		OK(weft_chan_send(flow->there, &flow->count, WEFT_NEVER));
		OK(weft_chan_recv(flow->back, &value, WEFT_NEVER));
		CHECK_EQ(value, flow->count);
	}
	weft_chan_close(flow->there);
	return 0;
}

static int
rest_some_times(void *arg)
{
	struct flow *flow = arg;

	for (int i = 0; i < 5; i++)
		OK(weft_sleep_until(weft_after(WEFT_MS)));
	(void)weft__add(&flow->rested, 1, WEFT__RELAXED);
	return 0;
}

/* Checks that `here` makes at most `most` calls in a loop iteration, so that the other threadlet
 * of its loop gets its turn. */
static void
flow_between_loops(size_t capacity, weft_threadlet_fn there, weft_threadlet_fn here, uint64_t most)
{
	weft_loop *other = make_started(), *own = weft_loop_new(NULL);
	struct flow flow = { .rested = { 0 } };
	struct weft_loop_stats stats;

	flow.there = weft_chan_new(sizeof(int), capacity, WEFT_SHARED);
	flow.back = weft_chan_new(sizeof(int), capacity, WEFT_SHARED);
	go_on(other, there, &flow);
	go_on(other, rest_some_times, &flow);
	go_on(own, here, &flow);
	go_on(own, rest_some_times, &flow);
	OK(weft_loop_run(own));
	stop_and_free(other);
	OK(weft_loop_stats(own, &stats));
	CHECK((uint64_t)flow.count <= (stats.turns + 1) * most);
	OK(weft_loop_free(own));
	weft_chan_unref(flow.there);
	weft_chan_unref(flow.back);
}

TEST(loops_that_exchange_values_do_not_starve_their_other_threadlets)
{
	/* 64 calls in a row that do not suspend, and 64 switches between threadlets. */
	flow_between_loops(64, send_until_rested, recv_in_order, 64 * 64 + 64);
	/* Each side waits for the other side, unless that is already there. */
	flow_between_loops(0, send_each_back, send_one_at_a_time, 512);
	flow_between_loops(1, send_each_back, send_one_at_a_time, 512);
}

/* --- select ------------------------------------------------------------- */

static int
select_ready(void *arg)
{
	weft_chan *a = weft_chan_new(sizeof(int), 1, 0);
	weft_chan *b = weft_chan_new(sizeof(int), 1, 0);
	weft_event event = WEFT_INIT;
	int value = 5, out = 0, counts[3] = { 0 };
	weft_case cases[] = {
		{ .recv = a, .value = &out },
		{ .send = b, .value = &value },
		{ .event = &event },
	};

	(void)arg;
	CHECK_EQ(weft_select(NULL, 0, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_select(cases, 1, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_select(cases, 3, WEFT_NOWAIT), 1);
	CHECK_EQ(cases[1].result, 0);
	CHECK_EQ(weft_select(cases, 3, weft_after(1)), WEFT_ETIMEDOUT);
	for (int i = 0; i < 300; i++) {
		int which;

		(void)weft_chan_recv(b, &out, WEFT_NOWAIT);
		(void)weft_chan_send(a, &value, WEFT_NOWAIT);
		OK(weft_event_set(&event));
		which = weft_select(cases, 3, WEFT_NEVER);
		CHECK(which >= 0);
		counts[which]++;
	}
	for (int i = 0; i < 3; i++)
		CHECK(counts[i] > 30); /* chosen at random */
	OK(weft_event_reset(&event));
	(void)weft_chan_recv(a, &out, WEFT_NOWAIT);
	weft_chan_close(a);
	CHECK_EQ(weft_select(cases, 1, WEFT_NEVER), 0);
	CHECK_EQ(cases[0].result, WEFT_ECLOSED);
	weft_chan_unref(a);
	weft_chan_unref(b);
	return 0;
}

TEST(select_chooses_a_ready_case_at_random)
{
	run_threadlet(select_ready, NULL);
}

static int
end_with_42(void *arg)
{
	(void)arg;
	OK(weft_yield());
	return 42;
}

static int
set_event(void *arg)
{
	OK(weft_yield());
	return weft_event_set(arg);
}

static int
select_waits(void *arg)
{
	struct pair *pair = arg;
	weft_chan *chan = weft_chan_new(sizeof(int), 0, 0);
	weft_event event = WEFT_INIT;
	struct ends ends = { .chan = chan, .from = 9, .count = 1 };
	uint64_t until_ns;
	int out = 0;
	weft_scope scope;
	weft_op op;
	weft_case cases[10] = { { .recv = chan, .value = &out },
		                { .event = &event },
		                { .op = &op } };

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_poll(&op, pair->fd, WEFT_READABLE, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, send_some, &ends) > 0);
	CHECK_EQ(weft_select(cases, 4, WEFT_NEVER), 0);
	CHECK_EQ(out, 9);
	CHECK(weft_scope_go(&scope, set_event, &event) > 0);
	CHECK_EQ(weft_select(cases, 4, WEFT_NEVER), 1);
	OK(weft_event_reset(&event));
	cases[3].joined = weft_scope_go(&scope, end_with_42, NULL);
	CHECK_EQ(weft_select(cases, 4, WEFT_NEVER), 3);
	CHECK_EQ(cases[3].result, 42);
	cases[3].joined = 0;
	cases[9].until_ns = until_ns = weft_after(WEFT_MS); /* the last of many cases */
	CHECK_EQ(weft_select(cases, 10, WEFT_NEVER), 9);
	CHECK(weft_now() >= until_ns);
	cases[9].until_ns = weft_after(HOUR);
	put(pair->peer, "x");
	CHECK_EQ(weft_select(cases, 10, WEFT_NEVER), 2);
	CHECK_EQ(cases[2].result, WEFT_READABLE);
	CHECK_EQ(weft_select(cases, 3, WEFT_NOWAIT), 2); /* it has finished already */
	OK(weft_scope_close(&scope));
	weft_chan_unref(chan);
	return 0;
}

TEST(select_waits_for_channels_events_ops_threadlets_and_time)
{
	struct pair pair = make_pair();

	run_threadlet(select_waits, &pair);
	close_pair(pair);
}

static int
select_badly(void *arg)
{
	weft_chan *chan = weft_chan_new(sizeof(int), 1, 0);
	weft_event event = WEFT_INIT;
	int value = 1;
	weft_case one = { .send = chan, .value = &value };

	(void)arg;
	one.event = &event;
	CHECK_MISUSE(weft_select(&one, 1, WEFT_NOWAIT), WEFT_EINVAL);
	CHECK_EQ(weft_chan_recv(chan, &value, WEFT_NOWAIT), WEFT_ETIMEDOUT); /* it was not sent */
	weft_chan_unref(chan);
	return 0;
}

TEST(select_refuses_a_case_with_two_sources)
{
	run_threadlet(select_badly, NULL);
}

struct foreign {
	struct pair pair;
	weft_loop *other;
	weft_event done; /* shared */
	weft_op op;
};

static int
select_foreign(void *arg)
{
	struct foreign *f = arg;
	weft_case one = { .op = &f->op };

	CHECK_MISUSE(weft_select(&one, 1, WEFT_NOWAIT), WEFT_EWRONGLOOP);
	return weft_event_set(&f->done);
}

static int
select_own(void *arg)
{
	struct foreign *f = arg;
	weft_case one = { .op = &f->op };

	OK(weft_op_init(&f->op, NULL, NULL, NULL));
	OK(weft_op_poll(&f->op, f->pair.fd, WEFT_READABLE, WEFT_NEVER));
	go_on(f->other, select_foreign, f);
	OK(weft_event_wait(&f->done, WEFT_NEVER));
	put(f->pair.peer, "x");
	CHECK_EQ(weft_select(&one, 1, WEFT_NEVER), 0);
	return 0;
}

TEST(select_refuses_an_op_of_another_loop)
{
	struct foreign f = { .pair = make_pair(),
		             .other = make_started(),
		             .done = WEFT_SHARED_INIT };

	run_threadlet(select_own, &f);
	stop_and_free(f.other);
	close_pair(f.pair);
}

/* --- two selects on the same channels ----------------------------------- */

struct meeting {
	weft_chan *a, *b;
	int count, sent, received;
};

static int
send_either(void *arg)
{
	struct meeting *m = arg;

	for (int i = 0; i < m->count; i++) {
		int value = i;
		weft_case cases[] = { { .send = m->a, .value = &value },
			              { .send = m->b, .value = &value } };
		int which = weft_select(cases, 2, WEFT_NEVER);

		CHECK(which >= 0);
		OK((int)cases[which].result);
		m->sent++;
	}
	return 0;
}

static int
recv_either(void *arg)
{
	struct meeting *m = arg;

	for (int i = 0; i < m->count; i++) {
		int value = -1;
		weft_case cases[] = { { .recv = m->b, .value = &value },
			              { .recv = m->a, .value = &value } };

		CHECK(weft_select(cases, 2, WEFT_NEVER) >= 0);
		CHECK_EQ(value, i);
		m->received++;
	}
	return 0;
}

TEST(selects_on_two_loops_agree_on_each_value)
{
	struct meeting m = { .count = ACROSS };
	weft_loop *other = make_started(), *here = weft_loop_new(NULL);

	m.a = weft_chan_new(sizeof(int), 0, WEFT_SHARED);
	m.b = weft_chan_new(sizeof(int), 0, WEFT_SHARED);
	go_on(other, send_either, &m);
	go_on(here, recv_either, &m);
	OK(weft_loop_run(here));
	CHECK_EQ(m.received, ACROSS);
	stop_and_free(other);
	CHECK_EQ(m.sent, ACROSS);
	OK(weft_loop_free(here));
	weft_chan_unref(m.a);
	weft_chan_unref(m.b);
}

/* --- plain threads ------------------------------------------------------ */

static weft_event waited = WEFT_SHARED_INIT;

static void *
wait_in_vain(void *arg)
{
	weft_case one = { .recv = arg };
	int value;

	one.value = &value;
	CHECK_EQ(weft_chan_recv(arg, &value, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(weft_select(&one, 1, weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	OK(weft_event_set(&waited));
	CHECK_EQ(weft_select(&one, 1, WEFT_NEVER), 0);
	CHECK_EQ(value, 3);
	return NULL;
}

TEST(plain_thread_waits_for_a_shared_channel)
{
	weft_chan *chan = weft_chan_new(sizeof(int), 0, WEFT_SHARED);
	pthread_t t = thread(wait_in_vain, chan);
	int value = 3;

	OK(weft_event_wait(&waited, WEFT_NEVER));
	OK(weft_chan_send(chan, &value, WEFT_NEVER));
	OK(pthread_join(t, NULL));
	weft_chan_unref(chan);
}
