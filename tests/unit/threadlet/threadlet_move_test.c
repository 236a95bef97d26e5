/* threadlet_move_test.c - threadlets whose loop moves to another thread.
 *
 * While a loop has threadlets, it can move in one way only: the thread of weft_loop_start()
 * leaves the loop and ends, and another thread runs the loop and its threadlets.  Code that
 * kept a pointer to the first thread would use one that no longer exists.
 */
#include "unit/threadlet/sched.h"

/* Lets all waiting threadlets continue on another thread. */
static void
cross(void)
{
	weft_loop_break(weft_loop_current());
	OK(weft_sleep_until(weft_now() + 1));
}

/* Runs `fn(arg)`, and all that it starts, on another thread until it crosses, then here. */
static void
run_moving(weft_threadlet_fn fn, void *arg)
{
	weft_loop_opts opts = { .flags = WEFT_LOOP_MOVABLE };
	weft_loop *loop = make_with(&opts);

	(void)go_on(loop, fn, arg);
	OK(weft_loop_start(loop));
	watch_for(loop, WEFT_IDLE);
	OK(weft_loop_run(loop));
	OK(weft_loop_free(loop));
}

/* --- what waits meanwhile ----------------------------------------------- */

struct trip {
	weft_mutex mutex;
	weft_cond cond;
	weft_sem sem;
	weft_group group;
	weft_event event;
	weft_chan *chan;
	weft_promise *promise;
	weft_op op;
	struct pair line;
	int arrived;
};

static int
wait_for_cond(void *arg)
{
	struct trip *trip = arg;

	OK(weft_mutex_lock(&trip->mutex, WEFT_NEVER));
	OK(weft_cond_wait(&trip->cond, &trip->mutex, WEFT_NEVER));
	OK(weft_mutex_unlock(&trip->mutex));
	trip->arrived++;
	return 0;
}

static int
wait_for_locks(void *arg)
{
	struct trip *trip = arg;

	OK(weft_sem_acquire(&trip->sem, WEFT_NEVER));
	OK(weft_group_wait(&trip->group, WEFT_NEVER));
	trip->arrived++;
	return 0;
}

static int
try_locks(void *arg)
{
	struct trip *trip = arg;

	OK(weft_group_add(&trip->group, 1));
	CHECK(weft_go(wait_for_cond, trip) > 0);
	CHECK(weft_go(wait_for_locks, trip) > 0);
	cross();
	CHECK_EQ(weft_cond_wake(&trip->cond), 1);
	OK(weft_sem_release(&trip->sem, 1));
	OK(weft_group_done(&trip->group));
	return 0;
}

TEST(locks_and_conditions_continue_on_another_thread)
{
	struct trip trip = WEFT_INIT;

	run_moving(try_locks, &trip);
	CHECK_EQ(trip.arrived, 2);
}

static int
receive(void *arg)
{
	struct trip *trip = arg;
	int value = 0;

	/* This call binds the channel to the loop, unless it is shared. */
	CHECK_EQ(weft_chan_recv(trip->chan, &value, WEFT_NOWAIT), WEFT_ETIMEDOUT);
	OK(weft_chan_recv(trip->chan, &value, WEFT_NEVER));
	CHECK_EQ(value, 5);
	trip->arrived++;
	return 0;
}

static int
choose(void *arg)
{
	struct trip *trip = arg;
	int value = 0;
	weft_case cases[] = { { .recv = trip->chan, .value = &value }, { .event = &trip->event } };

	CHECK_EQ(weft_select(cases, 2, WEFT_NEVER), 1);
	trip->arrived++;
	return 0;
}

static int
try_channel(void *arg)
{
	struct trip *trip = arg;
	int value = 5;

	CHECK(weft_go(receive, trip) > 0);
	CHECK(weft_go(choose, trip) > 0);
	cross();
	OK(weft_event_set(&trip->event));
	OK(weft_chan_send(trip->chan, &value, WEFT_NEVER));
	return 0;
}

TEST(channels_and_select_continue_on_another_thread)
{
	for (uint32_t flags = 0; flags <= WEFT_SHARED; flags += WEFT_SHARED) {
		struct trip trip = { .event = { .flags = flags } };

		trip.chan = weft_chan_new(sizeof(int), 0, flags);
		CHECK(trip.chan != NULL);
		run_moving(try_channel, &trip);
		CHECK_EQ(trip.arrived, 2);
		weft_chan_unref(trip.chan);
	}
}

static int
await(void *arg)
{
	struct trip *trip = arg;
	weft_value got = WEFT_INIT;

	OK(weft_await(trip->promise, &got, WEFT_NEVER));
	CHECK_EQ(got.as.integer, 5);
	return 7;
}

static int
cross_and_answer(void *arg)
{
	struct trip *trip = arg;

	cross();
	OK(weft_promise_resolve(trip->promise, weft_value_integer(5)));
	put(trip->line.peer, "a");
	return 0;
}

static int
try_scope(void *arg)
{
	struct trip *trip = arg;
	weft_threadlet child;
	weft_scope scope;
	int out = 0;

	trip->promise = weft_promise_new(weft_loop_current());
	CHECK(trip->promise != NULL);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	child = weft_scope_go(&scope, await, trip);
	CHECK(child > 0);
	CHECK(weft_scope_go(&scope, cross_and_answer, trip) > 0);
	CHECK_EQ(weft_wait_fd(trip->line.fd, WEFT_READABLE, WEFT_NEVER), WEFT_READABLE);
	OK(weft_join(child, &out, WEFT_NEVER));
	CHECK_EQ(out, 7);
	OK(weft_scope_close(&scope));
	weft_promise_unref(trip->promise);
	trip->arrived++;
	return 0;
}

TEST(scopes_promises_and_descriptors_continue_on_another_thread)
{
	struct trip trip = WEFT_INIT;

	trip.line = make_pair();
	run_moving(try_scope, &trip);
	CHECK_EQ(trip.arrived, 1);
	close_pair(trip.line);
}

static void
ignore(weft_op *op, int why, void *arg)
{
	(void)op;
	(void)arg;
	CHECK_EQ(why, WEFT_EINTR);
}

static int
cross_and_finish(void *arg)
{
	struct trip *trip = arg;

	cross();
	return weft_op_finish(&trip->op, 5);
}

static int
try_interrupt(void *arg)
{
	struct trip *trip = arg;

	OK(weft_op_init(&trip->op, weft_loop_current(), NULL, NULL));
	OK(weft_op_begin(&trip->op, ignore, NULL, WEFT_NEVER));
	CHECK(weft_go(cross_and_finish, trip) > 0);
	OK(weft_interrupt(weft_self()));
	CHECK_EQ(weft_op_wait(&trip->op, WEFT_NEVER), 5);
	CHECK_EQ(weft_yield(), WEFT_EINTR);
	trip->arrived++;
	return 0;
}

TEST(interrupt_that_an_op_ignores_is_kept_on_another_thread)
{
	struct trip trip = WEFT_INIT;

	run_moving(try_interrupt, &trip);
	CHECK_EQ(trip.arrived, 1);
}
