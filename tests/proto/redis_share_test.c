/* redis_share_test.c - the Redis client used from plain threads and other loops, with ops and
 * promises. */
#include "proto/redis_peer.h"

#define THREADS 4
#define LOOPS   2
#define CALLS   200

/* A world whose loop runs on its own thread. */
struct house {
	struct world world;
	weft_loop *loop;
	weft_group left; /* shared */
	int failed;      /* calls; atomic */
};

static struct house *
house_open(const struct world *world)
{
	struct house *house = calloc(1, sizeof(*house));

	CHECK(house);
	house->world = *world;
	house->left = (weft_group)WEFT_SHARED_INIT;
	house->loop = make();
	peer_open(&house->world.peer, house->loop);
	house->world.opts.loop = house->loop;
	OK(weft_redis_open(peer_address(&house->world.peer, NULL, NULL), &house->world.opts,
	                   &house->world.redis));
	OK(weft_loop_start(house->loop));
	return house;
}

static int
clear(void *arg)
{
	struct house *house = arg;

	weft_redis_close(house->world.redis);
	house->world.redis = NULL;
	peer_go_on(&house->world.peer);
	UNTIL(house->world.peer.open == 0);
	peer_close(&house->world.peer);
	OK(weft_group_done(&house->left));
	return 0;
}

static void
house_close(struct house *house)
{
	OK(weft_group_add(&house->left, 1));
	(void)go_on(house->loop, clear, house);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	stop_and_free(house->loop);
	free(house);
}

/* --- threads and loops -------------------------------------------------------- */

struct guest {
	struct house *house;
	int number;
	uint64_t deadline_ns; /* time for each call, or 0 */
	int result;           /* of the last call */
};

static void
call_often(struct guest *guest)
{
	char key[32];

	for (int i = 0; i < CALLS; i++) {
		(void)snprintf(key, sizeof(key), "g%d.%d", guest->number, i);
		OK(ask(&guest->house->world, i % 3 ? "GET" : "INCR", key, weft_after(HOUR)));
	}
}

static void *
run_thread(void *arg)
{
	call_often(arg);
	return NULL;
}

static int
run_threadlet_guest(void *arg)
{
	struct guest *guest = arg;

	call_often(guest);
	OK(weft_group_done(&guest->house->left));
	return 0;
}

static void
call_from_everywhere(const struct world *world)
{
	struct house *house = house_open(world);
	struct guest guests[THREADS + 4 * (LOOPS + 1)];
	pthread_t threads[THREADS];
	weft_loop *loops[LOOPS];
	int count = 0;

	OK(weft_group_add(&house->left, 4 * (LOOPS + 1)));
	for (int i = 0; i < LOOPS; i++)
		loops[i] = make_started();
	for (int i = 0; i < THREADS; i++, count++) {
		guests[count] = (struct guest){ house, count, 0, 0 };
		threads[i] = thread(run_thread, &guests[count]);
	}
	for (int i = 0; i < 4 * (LOOPS + 1); i++, count++) {
		guests[count] = (struct guest){ house, count, 0, 0 };
		(void)go_on(i % (LOOPS + 1) < LOOPS ? loops[i % (LOOPS + 1)] : house->loop,
		            run_threadlet_guest, &guests[count]);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	for (int i = 0; i < LOOPS; i++)
		stop_and_free(loops[i]);
	house_close(house);
}

TEST(threads_and_loops_share_one_client)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	call_from_everywhere(world);
	world->opts.inflight_max = 2;
	world->opts.cache_bytes = 100000;
	call_from_everywhere(world);
	free(world);
}

/* --- giving up calls ------------------------------------------------------------ */

static void *
run_short(void *arg)
{
	struct guest *guest = arg;

	for (int i = 0; i < 50; i++)
		CHECK_EQ(ask(&guest->house->world, "INCR", "k", weft_after(200 * WEFT_US)),
		         WEFT_ETIMEDOUT);
	return NULL;
}

static int
run_cancelled(void *arg)
{
	struct guest *guest = arg;

	CHECK_EQ(ask(&guest->house->world, "INCR", "k", WEFT_NEVER), WEFT_ECANCELED);
	OK(weft_group_done(&guest->house->left));
	return 0;
}

static int
unmute(void *arg)
{
	struct house *house = arg;

	peer_go_on(&house->world.peer);
	OK(weft_group_done(&house->left));
	return 0;
}

TEST(abandoned_remote_calls_do_not_disturb_later_replies)
{
	struct world *world = calloc(1, sizeof(*world));
	struct guest guests[8];
	weft_threadlet ids[4];
	pthread_t threads[2];
	weft_loop *other = make_started();
	struct house *house;

	CHECK(world);
	world->peer.holds = true;
	house = house_open(world);
	OK(weft_group_add(&house->left, 4));
	for (int i = 0; i < 4; i++) {
		guests[i] = (struct guest){ house, i, 0, 0 };
		ids[i] = go_on(other, run_cancelled, &guests[i]);
	}
	for (int i = 0; i < 2; i++) {
		guests[4 + i] = (struct guest){ house, i, 0, 0 };
		threads[i] = thread(run_short, &guests[4 + i]);
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 4; i++)
		OK(weft_cancel(ids[i]));
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	OK(weft_group_add(&house->left, 1));
	(void)go_on(house->loop, unmute, house);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	guests[6] = (struct guest){ house, 6, 0, 0 };
	call_often(&guests[6]);
	stop_and_free(other);
	house_close(house);
	free(world);
}

static int
run_blocked(void *arg)
{
	struct guest *guest = arg;

	CHECK_EQ(ask(&guest->house->world, "BLPOP", "never", WEFT_NEVER), WEFT_ECANCELED);
	OK(weft_group_done(&guest->house->left));
	return 0;
}

static int
see_it_block(void *arg)
{
	struct house *house = arg;

	UNTIL(peer_heard(&house->world.peer, "BLPOP never") == 1);
	OK(weft_group_done(&house->left));
	return 0;
}

static int
see_it_go(void *arg)
{
	struct house *house = arg;

	UNTIL(house->world.peer.open == 0);
	OK(weft_group_done(&house->left));
	return 0;
}

TEST(canceled_remote_blocking_command_closes_its_connection)
{
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *other = make_started();
	struct guest guest;
	struct house *house;
	weft_threadlet id;

	CHECK(world);
	house = house_open(world);
	guest = (struct guest){ house, 0, 0, 0 };
	OK(weft_group_add(&house->left, 1));
	(void)go_on(house->loop, see_it_block, house);
	id = go_on(other, run_blocked, &guest);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	OK(weft_group_add(&house->left, 2));
	(void)go_on(house->loop, see_it_go, house);
	OK(weft_cancel(id));
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	stop_and_free(other);
	house_close(house);
	free(world);
}

/* --- loop shutdown --------------------------------------------------------------- */

static void *
run_until_end(void *arg)
{
	struct guest *guest = arg;

	while ((guest->result = ask(&guest->house->world, "GET", "k", WEFT_NEVER)) == 0)
		;
	return NULL;
}

static int
run_until_end_there(void *arg)
{
	struct guest *guest = arg;

	(void)run_until_end(guest);
	OK(weft_group_done(&guest->house->left));
	return 0;
}

static void
stop_under(const struct world *world)
{
	struct house *house = house_open(world);
	weft_loop *other = make_started();
	struct guest guests[8];
	pthread_t threads[4];

	OK(weft_group_add(&house->left, 4));
	for (int i = 0; i < 8; i++) {
		guests[i] = (struct guest){ house, i, 0, 0 };
		if (i < 4)
			threads[i] = thread(run_until_end, &guests[i]);
		else
			(void)go_on(other, run_until_end_there, &guests[i]);
	}
	weft_loop_shutdown(house->loop);
	OK(weft_loop_wait_stopped(house->loop, WEFT_NEVER));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	/* The server runs on that loop, too, and may have ended first. */
	for (int i = 0; i < 8; i++)
		if (guests[i].result != WEFT_EPIPE && guests[i].result != WEFT_ECONNREFUSED
		    && guests[i].result != WEFT_ECONNRESET)
			CHECK_EQ(guests[i].result, WEFT_ESHUTDOWN);
	weft_redis_close(house->world.redis);
	stop_and_free(other);
	OK(weft_loop_free(house->loop));
	free(house);
}

TEST(loop_shutdown_ends_calls_from_other_threads)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world);
	for (int i = 0; i < 20; i++) {
		world->peer.is_mute = i & 1;
		stop_under(world);
	}
	free(world);
}

/* --- ops ------------------------------------------------------------------------ */

struct order {
	weft_op op;
	weft_redis_reply *reply;
	int64_t result;
	char detail[64]; /* weft_detail() in the callback */
	int told;
};

static void
on_told(weft_op *op, int64_t result, void *arg)
{
	struct order *order = arg;

	CHECK(op == &order->op);
	order->result = result;
	(void)snprintf(order->detail, sizeof(order->detail), "%s", weft_detail());
	order->told++;
}

static void
place(struct world *world, struct order *order, const char *name, uint64_t deadline_ns)
{
	char words_of_mine[32];
	weft_span words[2] = { { words_of_mine, strlen(name) }, weft_text("key") };

	*order = (struct order){ .reply = NULL };
	(void)snprintf(words_of_mine, sizeof(words_of_mine), "%s", name);
	OK(weft_op_init(&order->op, NULL, on_told, order));
	OK(weft_redis_call_op(world->redis, words, 2, &order->reply, &order->op, deadline_ns));
	memset(words_of_mine, 0, sizeof(words_of_mine)); /* the call has copied it */
}

static void
finish_well(struct order *order, const char *tag)
{
	weft_span text;

	UNTIL(order->told == 1);
	OK(order->result);
	OK(weft_redis_text(order->reply, &text));
	CHECK_STR((const char *)text.data, tag);
	weft_redis_reply_free(order->reply);
}

static void
play_ops(struct world *world)
{
	struct order order, other;
	const weft_span multi = weft_text("MULTI");

	place(world, &order, "GET", WEFT_NEVER);
	place(world, &other, "INCR", WEFT_NEVER);
	finish_well(&other, "INCR:key");
	finish_well(&order, "GET:key");
	place(world, &order, "FAIL", WEFT_NEVER);
	UNTIL(order.told == 1);
	CHECK_EQ(order.result, WEFT_EREPLY);
	CHECK_STR(order.detail, "ERR it fails");
	CHECK(!order.reply);
	place(world, &order, "BLPOP", weft_after(WEFT_MS));
	UNTIL(order.told == 1);
	CHECK_EQ(order.result, WEFT_ETIMEDOUT);
	place(world, &order, "BLPOP", WEFT_NEVER);
	weft_op_cancel(&order.op);
	UNTIL(order.told == 1);
	CHECK_EQ(order.result, WEFT_ECANCELED);
	OK(weft_op_init(&order.op, NULL, on_told, &order));
	CHECK_EQ(weft_redis_call_op(world->redis, &multi, 1, NULL, &order.op, WEFT_NEVER),
	         WEFT_EINVAL);
	place(world, &order, "GET", WEFT_NEVER);
	weft_redis_reply_free(NULL);
	finish_well(&order, "GET:key");
}

TEST(commands_can_be_ops)
{
	PLAY(play_ops, .user = NULL);
}

static int
run_ops_there(void *arg)
{
	struct guest *guest = arg;

	play_ops(&guest->house->world);
	OK(weft_group_done(&guest->house->left));
	return 0;
}

static int
leave_ops(void *arg)
{
	static struct order orders[3];
	struct guest *guest = arg;

	for (int i = 0; i < 3; i++)
		place(&guest->house->world, &orders[i], "BLPOP", WEFT_NEVER);
	OK(weft_group_done(&guest->house->left));
	(void)weft_sleep_until(WEFT_NEVER);
	for (int i = 0; i < 3; i++)
		while (!orders[i].told && weft_yield() == 0)
			;
	return 0;
}

TEST(ops_of_another_loop_finish_there_even_at_its_shutdown)
{
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *other = make_started();
	struct guest guest;
	struct house *house;

	CHECK(world);
	house = house_open(world);
	guest = (struct guest){ house, 0, 0, 0 };
	OK(weft_group_add(&house->left, 1));
	(void)go_on(other, run_ops_there, &guest);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	OK(weft_group_add(&house->left, 1));
	(void)go_on(other, leave_ops, &guest);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	stop_and_free(other);
	house_close(house);
	free(world);
}

/* --- promises -------------------------------------------------------------------- */

static void
play_promise(struct world *world)
{
	const weft_span get[] = { weft_text("GET"), weft_text("key") };
	const weft_span fail[] = { weft_text("FAIL") };
	const weft_span multi[] = { weft_text("MULTI") };
	weft_promise *promise = weft_redis_call_promise(world->redis, get, 2, WEFT_NEVER);
	weft_value value;
	weft_span text;

	CHECK(promise);
	OK(weft_await(promise, &value, WEFT_NEVER));
	CHECK(value.type == &weft_type_redis);
	OK(weft_redis_text(value.as.ptr, &text));
	CHECK_STR((const char *)text.data, "GET:key");
	(void)weft_promise_unref(promise);
	promise = weft_redis_call_promise(world->redis, fail, 1, WEFT_NEVER);
	CHECK_EQ(weft_await(promise, NULL, WEFT_NEVER), WEFT_EREPLY);
	CHECK_STR(weft_detail(), "ERR it fails");
	(void)weft_promise_unref(promise);
	promise = weft_redis_call_promise(world->redis, multi, 1, WEFT_NEVER);
	CHECK_EQ(weft_await(promise, NULL, WEFT_NEVER), WEFT_EINVAL);
	(void)weft_promise_unref(promise);
}

TEST(commands_can_be_promises)
{
	PLAY(play_promise, .user = NULL);
}

static int
run_promise_there(void *arg)
{
	struct guest *guest = arg;

	play_promise(&guest->house->world);
	OK(weft_group_done(&guest->house->left));
	return 0;
}

TEST(promises_of_another_loop_settle_on_that_loop)
{
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *other = make_started();
	struct guest guest;
	struct house *house;

	CHECK(world);
	house = house_open(world);
	guest = (struct guest){ house, 0, 0, 0 };
	OK(weft_group_add(&house->left, 1));
	(void)go_on(other, run_promise_there, &guest);
	OK(weft_group_wait(&house->left, WEFT_NEVER));
	stop_and_free(other);
	house_close(house);
	free(world);
}

/* --- callbacks --------------------------------------------------------------------- */

static int was_called;

static void
call_in_callback(void *arg)
{
	struct world *world = arg;

	CHECK_EQ(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "GET k"), WEFT_ENOSUSPEND);
	was_called = 1;
}

static void
play_callback(struct world *world)
{
	struct weft_redis_stats before, after;

	was_called = 0;
	OK(weft_redis_stats(world->redis, &before));
	OK(weft_loop_post(weft_loop_current(), call_in_callback, world));
	UNTIL(was_called);
	OK(weft_redis_stats(world->redis, &after));
	CHECK_EQ(after.calls, before.calls); /* nothing was sent */
}

TEST(callback_cannot_wait_for_a_reply)
{
	PLAY(play_callback, .user = NULL);
}
