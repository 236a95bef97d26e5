/* redis_call_test.c - commands of the Redis client: pairing, deadlines, queue, refusals. */
#include "proto/redis_peer.h"

struct caller {
	struct world *world;
	const char *name;
	char key[16];
	uint64_t deadline_ns;
	int result;
	int order;
};

static int finished;

static int
call_once(void *arg)
{
	struct caller *caller = arg;

	caller->result = ask(caller->world, caller->name, caller->key, caller->deadline_ns);
	caller->order = ++finished;
	return 0;
}

static struct caller
make_caller(struct world *world, const char *name, int number)
{
	struct caller caller = { .world = world, .name = name, .deadline_ns = weft_after(HOUR) };

	(void)snprintf(caller.key, sizeof(caller.key), "k%d", number);
	return caller;
}

/* --- pairing replies with commands -------------------------------------------- */

static int
call_often(void *arg)
{
	struct caller *caller = arg;

	for (int i = 0; i < 10; i++)
		OK(ask(caller->world, i & 1 ? "INCR" : "GET", caller->key, weft_after(HOUR)));
	return 0;
}

static void
play_many(struct world *world)
{
	struct caller callers[100];
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 100; i++) {
		callers[i] = make_caller(world, "GET", i);
		CHECK(weft_scope_go(&scope, call_often, &callers[i]) > 0);
	}
	OK(weft_scope_close(&scope));
	CHECK_EQ(world->peer.accepted, 1);
	CHECK_EQ(stats_of(world).calls, 1000);
	CHECK_EQ(stats_of(world).replies, 1000);
	CHECK_EQ(stats_of(world).inflight, 0);
	CHECK_EQ(stats_of(world).connections, 1);
}

TEST(many_callers_share_one_connection_and_each_gets_its_own_reply)
{
	PLAY(play_many, .user = NULL);
}

TEST(replies_are_paired_even_byte_by_byte_with_pushes_between_them)
{
	PLAY(play_many, .peer = { .drips = true, .pushes = true });
}

TEST(replies_are_paired_with_a_resp2_server)
{
	PLAY(play_many, .peer = { .is_old = true });
}

TEST(small_inflight_max_serves_all_callers)
{
	PLAY(play_many, .opts = { .inflight_max = 3 });
}

/* --- types and sizes of replies ------------------------------------------------- */

static void
play_kinds(struct world *world)
{
	weft_redis_reply *reply = NULL;
	weft_span text;

	OK(weft_redis_callf(world->redis, &reply, WEFT_NEVER, "NIL"));
	CHECK_EQ(weft_redis_reply_type(reply), WEFT_REDIS_NIL);
	weft_redis_reply_free(reply);
	OK(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "GET %s", "x"));
	reply = NULL;
	CHECK_EQ(weft_redis_callf(world->redis, &reply, WEFT_NEVER, "FAIL"), WEFT_EREPLY);
	CHECK(!reply);
	CHECK_STR(weft_detail(), "ERR it fails");
	OK(weft_redis_callf(world->redis, &reply, WEFT_NEVER, "BIG %d", 3000000));
	OK(weft_redis_text(reply, &text));
	CHECK_EQ(text.size, 3000000);
	CHECK_EQ(((const char *)text.data)[2999999], 'x');
	weft_redis_reply_free(reply);
	OK(ask(world, "GET", "after", WEFT_NEVER));
}

TEST(replies_of_all_sizes_and_errors_are_returned)
{
	PLAY(play_kinds, .user = NULL);
}

struct bulk {
	struct world *world;
	int size;
};

static int
call_big(void *arg)
{
	struct bulk *bulk = arg;
	weft_redis_reply *reply = NULL;
	weft_span text;

	OK(weft_redis_callf(bulk->world->redis, &reply, WEFT_NEVER, "BIG %d", bulk->size));
	OK(weft_redis_text(reply, &text));
	CHECK_EQ(text.size, bulk->size);
	for (size_t i = 0; i < text.size; i++)
		CHECK_EQ(((const char *)text.data)[i], 'x');
	weft_redis_reply_free(reply);
	return 0;
}

/* Sizes around the limit above which a reply keeps the buffer it was received in. */
static void
play_bulks(struct world *world)
{
	static const int sizes[] = { 16380, 70000, 1, 16384, 40, 5, 65536, 3, 17000, 16383, 16000 };
	struct bulk bulks[sizeof(sizes) / sizeof(sizes[0])];
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		bulks[i] = (struct bulk){ world, sizes[i] };
		CHECK(weft_scope_go(&scope, call_big, &bulks[i]) > 0);
	}
	OK(weft_scope_close(&scope));
}

TEST(large_and_small_replies_follow_each_other)
{
	PLAY(play_bulks, .user = NULL);
}

static int
put_big(void *arg)
{
	struct world *world = arg;
	size_t size = 6 << 20;
	char *much = calloc(1, size);

	CHECK(much);
	memset(much, 'y', size);
	OK(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "SET k %b", much, size));
	free(much);
	return 0;
}

/* More than the kernel takes at once: the rest is sent while other commands are queued behind
 * it. */
static void
play_big_request(struct world *world)
{
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, put_big, world) > 0);
	OK(weft_yield());
	for (int i = 0; i < 20; i++)
		OK(ask(world, "GET", "k", WEFT_NEVER));
	OK(weft_scope_close(&scope));
	CHECK(stats_of(world).bytes_out > 6 << 20);
}

TEST(large_request_is_sent_while_others_wait_behind_it)
{
	PLAY(play_big_request, .user = NULL);
}

/* --- deadlines and cancellation ------------------------------------------------- */

/* Of eight commands in flight, those with their bit set are given up. */
static void
give_up(struct world *world, unsigned bits, bool cancel)
{
	struct caller callers[8];
	weft_threadlet ids[8];
	weft_scope scope;
	uint64_t late = stats_of(world).late;
	int gone = 0;

	world->peer.holds = true;
	world->peer.go_on = (weft_event)WEFT_INIT;
	finished = 0;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 8; i++) {
		callers[i] = make_caller(world, i & 1 ? "INCR" : "GET", i);
		if ((bits >> i & 1) && !cancel)
			callers[i].deadline_ns = weft_after(WEFT_MS);
		gone += bits >> i & 1;
		ids[i] = weft_scope_go(&scope, call_once, &callers[i]);
		CHECK(ids[i] > 0);
	}
	UNTIL(stats_of(world).inflight == 8);
	OK(weft_yield());
	for (int i = 0; i < 8; i++)
		if ((bits >> i & 1) && cancel)
			OK(weft_cancel(ids[i]));
	UNTIL(finished == gone);
	peer_go_on(&world->peer);
	OK(weft_scope_close(&scope));
	for (int i = 0; i < 8; i++)
		CHECK_EQ(callers[i].result, !(bits >> i & 1) ? 0
		                            : cancel         ? WEFT_ECANCELED
		                                             : WEFT_ETIMEDOUT);
	OK(ask(world, "GET", "after", weft_after(HOUR)));
	CHECK_EQ(stats_of(world).late, late + (uint64_t)gone);
}

static void
play_given_up(struct world *world)
{
	uint64_t seed = test_seed();

	OK(ask(world, "GET", "before", WEFT_NEVER));
	for (int i = 0; i < 8; i++) {
		give_up(world, 1u << i, false);
		give_up(world, 1u << i, true);
	}
	for (int i = 0; i < 20; i++)
		give_up(world, (unsigned)test_random(&seed) & 255, i & 1);
	give_up(world, 255, false);
	give_up(world, 255, true);
	CHECK_EQ(world->peer.accepted, 1);
}

TEST(reply_to_an_abandoned_command_is_discarded)
{
	PLAY(play_given_up, .user = NULL);
}

TEST(reply_to_an_abandoned_command_is_discarded_byte_by_byte)
{
	PLAY(play_given_up, .peer = { .drips = true, .pushes = true });
}

static void
play_mute(struct world *world)
{
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(ask(world, "GET", "k", weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
		CHECK(strstr(weft_detail(), "GET"));
		CHECK(strstr(weft_detail(), "127.0.0.1"));
	}
	UNTIL(world->peer.accepted == 1);
}

TEST(silent_server_times_commands_out)
{
	PLAY(play_mute, .peer = { .is_mute = true });
}

TEST(silent_server_times_queued_commands_out)
{
	PLAY(play_mute, .peer = { .is_mute = true }, .opts = { .inflight_max = 4 });
}

static void
play_deaf(struct world *world)
{
	CHECK_EQ(ask(world, "GET", "k", weft_after(WEFT_MS)), WEFT_ETIMEDOUT);
	CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_ETIMEDOUT);
	CHECK(strstr(weft_detail(), "did not answer the handshake"));
	CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_ETIMEDOUT);
}

TEST(missing_handshake_reply_is_an_error)
{
	PLAY(play_deaf, .peer = { .is_deaf = true },
	     .opts = { .connect_ns = 20 * WEFT_MS, .backoff_max_ns = WEFT_MS });
}

static void
play_now(struct world *world)
{
	CHECK_EQ(ask(world, "GET", "k", WEFT_NOWAIT), WEFT_ETIMEDOUT);
	CHECK_EQ(world->peer.accepted, 0);
}

TEST(command_with_an_immediate_deadline_is_not_sent)
{
	PLAY(play_now, .user = NULL);
}

static int
call_cancelled(void *arg)
{
	CHECK_EQ(weft_sleep_until(WEFT_NEVER), WEFT_ECANCELED);
	CHECK_EQ(ask(arg, "INCR", "never", WEFT_NEVER), WEFT_ECANCELED);
	return 0;
}

static void
play_cancelled(struct world *world)
{
	weft_scope scope;

	OK(ask(world, "GET", "k", WEFT_NEVER));
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, call_cancelled, world) > 0);
	OK(weft_yield());
	weft_scope_cancel(&scope);
	(void)weft_scope_close(&scope);
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(peer_heard(&world->peer, "INCR never"), 0);
}

TEST(canceled_caller_sends_nothing)
{
	PLAY(play_cancelled, .user = NULL);
}

/* --- queues ------------------------------------------------------------------- */

/* Two commands in flight, three in the queue, one too many. */
static void
play_queue(struct world *world)
{
	struct caller callers[6];
	weft_threadlet ids[6];
	weft_scope scope;

	OK(ask(world, "GET", "k", WEFT_NEVER));
	world->peer.holds = true;
	finished = 0;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 6; i++) {
		callers[i] = make_caller(world, "INCR", i);
		ids[i] = weft_scope_go(&scope, call_once, &callers[i]);
		CHECK(ids[i] > 0);
		OK(weft_yield());
	}
	OK(weft_join(ids[5], NULL, WEFT_NEVER));
	CHECK_EQ(callers[5].result, WEFT_EAGAIN);
	CHECK_EQ(stats_of(world).inflight, 2);
	CHECK_EQ(stats_of(world).waiting, 3);
	OK(weft_cancel(ids[3]));
	OK(weft_join(ids[3], NULL, WEFT_NEVER));
	CHECK_EQ(callers[3].result, WEFT_ECANCELED);
	CHECK_EQ(stats_of(world).waiting, 2);
	peer_go_on(&world->peer);
	OK(weft_scope_close(&scope));
	CHECK_EQ(callers[0].order, 3);
	CHECK_EQ(callers[1].order, 4);
	CHECK_EQ(callers[2].order, 5);
	CHECK_EQ(callers[4].order, 6);
	CHECK_EQ(peer_heard(&world->peer, "INCR k3"), 0);
}

TEST(callers_over_inflight_max_wait_in_order_in_a_limited_queue)
{
	PLAY(play_queue, .opts = { .inflight_max = 2, .queue_max = 3 });
}

/* --- refusals ------------------------------------------------------------------ */

static void
play_refused(struct world *world)
{
	static const char *const refused[] = {
		"MULTI",
		"exec",
		"Discard",
		"WATCH k",
		"SELECT 1",
		"auth x",
		"SUBSCRIBE a",
		"MONITOR",
		"QUIT",
		"reset",
		"HELLO 3",
		"PSYNC a 1",
		"CLIENT REPLY OFF",
		"client tracking on",
		"WAIT 1 0",
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK_EQ(weft_redis_callf(world->redis, NULL, WEFT_NEVER, refused[i]), WEFT_EINVAL);
	CHECK_EQ(weft_redis_call(world->redis, NULL, 0, NULL, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "GET %q", 1), WEFT_EINVAL);
	CHECK_EQ(world->peer.accepted, 0);
	OK(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "CLIENT ID"));
}

TEST(commands_that_change_a_shared_connection_are_refused)
{
	PLAY(play_refused, .user = NULL);
}

/* --- a peer that breaks the protocol ---------------------------------------------- */

static void
play_broken(struct world *world)
{
	weft_redis_reply *reply = NULL;

	CHECK_EQ(weft_redis_callf(world->redis, &reply, WEFT_NEVER, "JUNK"), WEFT_EPROTO);
	CHECK(*weft_detail());
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 2);
	OK(ask(world, "TWICE", "k", WEFT_NEVER)); /* the second reply belongs to no command */
	UNTIL(stats_of(world).connections == 0);
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 3);
	CHECK_EQ(weft_redis_callf(world->redis, &reply, WEFT_NEVER, "BIG 20000"), WEFT_EMSGSIZE);
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 4);
	CHECK_EQ(peer_heard(&world->peer, "BIG 20000"), 1);
}

TEST(invalid_or_large_or_unexpected_reply_ends_the_connection)
{
	PLAY(play_broken, .opts = { .reply_max = 10000 });
}

/* --- closing ------------------------------------------------------------------- */

static void
play_close(struct world *world)
{
	struct caller callers[10];
	weft_scope scope;

	finished = 0;
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 10; i++) {
		callers[i] = make_caller(world, i & 1 ? "INCR" : "GET", i);
		CHECK(weft_scope_go(&scope, call_once, &callers[i]) > 0);
	}
	UNTIL(stats_of(world).inflight == 4);
	weft_redis_close(world->redis);
	OK(weft_scope_close(&scope));
	for (int i = 0; i < 10; i++)
		CHECK_EQ(callers[i].result, WEFT_ESHUTDOWN);
	world->redis = NULL;
}

TEST(close_ends_commands_in_flight_and_in_the_queue)
{
	PLAY(play_close, .peer = { .is_mute = true }, .opts = { .inflight_max = 4 });
}

static int
leave_open(void *arg)
{
	struct world *world = arg;

	OK(weft_redis_open(peer_address(&world->peer, NULL, NULL), NULL, &world->redis));
	OK(ask(world, "GET", "k", WEFT_NEVER));
	return 0;
}

TEST(idle_connection_does_not_keep_the_loop_alive)
{
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *loop = make();

	CHECK(world);
	peer_open(&world->peer, loop);
	(void)go_on(loop, leave_open, world);
	OK(weft_loop_run(loop));
	CHECK_EQ(world->peer.open, 1);
	weft_loop_shutdown(loop);
	OK(weft_loop_run(loop));
	weft_redis_close(world->redis);
	OK(weft_loop_free(loop));
	free(world);
}

static int
call_until_stopped(void *arg)
{
	struct world *world = arg;
	int rc = ask(world, "BLPOP", "never", WEFT_NEVER);

	CHECK(rc == WEFT_ESHUTDOWN || rc == WEFT_ECANCELED);
	return 0;
}

static int
stop_inside(void *arg)
{
	struct world *world = arg;

	OK(weft_redis_open(peer_address(&world->peer, NULL, NULL), NULL, &world->redis));
	CHECK(weft_go(call_until_stopped, world) > 0);
	UNTIL(peer_heard(&world->peer, "BLPOP never") == 1);
	weft_loop_shutdown(weft_loop_current());
	CHECK(ask(world, "GET", "k", WEFT_NEVER) < 0);
	return 0;
}

TEST(loop_shutdown_ends_commands_in_flight)
{
	struct world *world = calloc(1, sizeof(*world));
	weft_loop *loop = make();

	CHECK(world);
	peer_open(&world->peer, loop);
	(void)go_on(loop, stop_inside, world);
	OK(weft_loop_run(loop));
	weft_redis_close(world->redis);
	OK(weft_loop_free(loop));
	free(world);
}
