/* threadlet_fair_test.c - threadlets that yield all the time delay neither descriptors nor
 * timers.  The delay is measured in loop iterations, so that no clock decides. */
#include <weft/metrics.h>
#include "unit/threadlet/sched.h"

/* One loop iteration switches to 64 threadlets (sched.c), so a ready threadlet runs within QUEUE
 * iterations.  A busy loop polls descriptors at least every LOOK iterations (sleep.c). */
enum { YIELDERS = 200, TRIALS = 100, QUEUE = YIELDERS / 64 + 1, LOOK = 61, SLACK = 3 };
enum { BOUND_IO = LOOK + QUEUE + SLACK, BOUND_TIME = QUEUE + SLACK };

static struct {
	struct pair line;
	bool ended;
	uint64_t yields;
	uint64_t due_ns;   /* of the sleeper; 0: it is awake */
	uint64_t due_turn; /* the first iteration that was seen after it */
	uint64_t worst_io, worst_sleep, worst_timer;
} fair;

static uint64_t
turn_now(void)
{
	struct weft_loop_stats stats;

	OK(weft_loop_stats(weft_loop_current(), &stats));
	return stats.turns;
}

static void
keep_worst(uint64_t *worst, uint64_t since)
{
	uint64_t took = turn_now() - since;

	if (took > *worst)
		*worst = took;
}

static int
yield_all_the_time(void *arg)
{
	(void)arg;
	while (!fair.ended) {
		OK(weft_yield());
		fair.yields++;
		if (fair.due_ns && !fair.due_turn && weft_now() >= fair.due_ns)
			fair.due_turn = turn_now();
	}
	return 0;
}

static int
measure_io(void *arg)
{
	(void)arg;
	for (int i = 0; i < TRIALS; i++) {
		uint64_t since = turn_now();

		put(fair.line.peer, "x");
		CHECK_EQ(weft_wait_fd(fair.line.fd, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
		keep_worst(&fair.worst_io, since);
		take(fair.line.fd);
	}
	return 0;
}

static void
sleep_until_due(uint64_t *worst, int (*wait)(uint64_t))
{
	for (int i = 0; i < TRIALS; i++) {
		fair.due_turn = 0;
		fair.due_ns = weft_after(50 * WEFT_US);
		OK(wait(fair.due_ns));
		if (fair.due_turn)
			keep_worst(worst, fair.due_turn);
		fair.due_ns = 0;
	}
}

static int
wait_for_timer(uint64_t due_ns)
{
	weft_op op;

	OK(weft_op_init(&op, NULL, NULL, NULL));
	OK(weft_op_sleep(&op, due_ns));
	return (int)weft_op_wait(&op, WEFT_NEVER);
}

static int
measure_all(void *arg)
{
	weft_scope scope;

	(void)arg;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < YIELDERS; i++)
		CHECK(weft_scope_go(&scope, yield_all_the_time, NULL) > 0);
	(void)measure_io(NULL);
	sleep_until_due(&fair.worst_sleep, weft_sleep_until);
	sleep_until_due(&fair.worst_timer, wait_for_timer);
	fair.ended = true;
	return weft_scope_close(&scope);
}

TEST(yielding_threadlets_do_not_starve_descriptors_or_timers)
{
	memset(&fair, 0, sizeof(fair));
	fair.line = make_pair();
	run_threadlet(measure_all, NULL);
	printf("among %d that have yielded %llu times: a descriptor within %llu "
	       "turns (bound %d), a sleep %llu, a timer %llu (bound %d)\n",
	       YIELDERS, (unsigned long long)fair.yields, (unsigned long long)fair.worst_io,
	       BOUND_IO, (unsigned long long)fair.worst_sleep, (unsigned long long)fair.worst_timer,
	       BOUND_TIME);
	CHECK(fair.yields > YIELDERS);
	CHECK(fair.worst_io <= BOUND_IO);
	CHECK(fair.worst_sleep <= BOUND_TIME);
	CHECK(fair.worst_timer <= BOUND_TIME);
	close_pair(fair.line);
}
