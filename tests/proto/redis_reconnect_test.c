/* redis_reconnect_test.c - connections of the Redis client: lost at every point, reconnected,
 * handshakes, dedicated connections. */
#include "proto/redis_peer.h"

struct caller {
	struct world *world;
	const char *name;
	char key[16];
	int result;
};

static int
call_once(void *arg)
{
	struct caller *caller = arg;

	caller->result = ask(caller->world, caller->name, caller->key, weft_after(HOUR));
	return 0;
}

/* --- a connection that ends in the middle of a pipeline -------------------------- */

#define PIPE 6

static int answered, lost; /* over all positions */

/* Six commands at once.  Every second one must not be repeated. */
static void
play_cut(struct world *world)
{
	struct caller callers[PIPE];
	weft_scope scope;
	char line[32];

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < PIPE; i++) {
		callers[i] = (struct caller){ .world = world, .name = i & 1 ? "INCR" : "GET" };
		(void)snprintf(callers[i].key, sizeof(callers[i].key), "k%d", i);
		CHECK(weft_scope_go(&scope, call_once, &callers[i]) > 0);
	}
	OK(weft_scope_close(&scope));
	for (int i = 0; i < PIPE; i++) {
		(void)snprintf(line, sizeof(line), "%s %s", callers[i].name, callers[i].key);
		if (i & 1) {
			CHECK(callers[i].result == 0 || callers[i].result == WEFT_EPIPE);
			CHECK(peer_heard(&world->peer, line) <= 1);
			answered += callers[i].result == 0;
			lost += callers[i].result < 0;
		} else {
			CHECK_EQ(callers[i].result, 0);
			CHECK(peer_heard(&world->peer, line) >= 1);
		}
		if (callers[i].result == 0 && (i & 1))
			CHECK_EQ(peer_heard(&world->peer, line), 1);
	}
	OK(ask(world, "GET", "after", WEFT_NEVER));
}

static void
cut_everywhere(bool resets, bool drips)
{
	/* "$6\r\nGET:k0\r\n" and "$7\r\nINCR:k1\r\n" */
	const int64_t all = PIPE / 2 * (12 + 13);
	int64_t cuts[2];

	answered = lost = 0;
	for (int64_t at = 0; at <= all; at++) {
		cuts[0] = at;
		cuts[1] = at / 2; /* and the second connection, too */
		PLAY(play_cut,
		     .peer = { .cuts = cuts,
		               .cut_count = at & 1 ? 2 : 1,
		               .resets = resets,
		               .drips = drips },
		     .opts = { .backoff_max_ns = 1000 });
	}
	CHECK(answered > all && lost > all);
}

TEST(pipeline_cut_at_any_byte_repeats_only_reads)
{
	cut_everywhere(false, false);
}

TEST(pipeline_reset_at_any_byte_repeats_only_reads)
{
	cut_everywhere(true, true);
}

TEST(pipeline_cut_before_any_command_repeats_only_reads)
{
	for (int i = 1; i <= PIPE; i++)
		PLAY(play_cut, .peer = { .dies_at = i }, .opts = { .backoff_max_ns = 1000 });
}

/* After two repetitions, the command fails. */
static void
play_thrice(struct world *world)
{
	CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_EPIPE);
	CHECK(strstr(weft_detail(), "GET"));
	CHECK_EQ(peer_heard(&world->peer, "GET k"), 3);
	CHECK_EQ(stats_of(world).repeated, 2);
	CHECK_EQ(stats_of(world).lost, 1);
	CHECK_EQ(ask(world, "INCR", "k", WEFT_NEVER), WEFT_EPIPE);
	CHECK_EQ(peer_heard(&world->peer, "INCR k"), 1);
	OK(ask(world, "GET", "k", WEFT_NEVER));
}

TEST(read_command_is_repeated_twice_at_most)
{
	static const int64_t cuts[] = { 0, 3, 5, 2 };

	PLAY(play_thrice, .peer = { .cuts = cuts, .cut_count = 4 },
	     .opts = { .backoff_max_ns = 1000 });
}

/* Commands in the queue were not sent, whatever they do. */
static void
play_unsent(struct world *world)
{
	struct caller callers[5];
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 5; i++) {
		callers[i] = (struct caller){ .world = world, .name = "INCR" };
		(void)snprintf(callers[i].key, sizeof(callers[i].key), "k%d", i);
		CHECK(weft_scope_go(&scope, call_once, &callers[i]) > 0);
	}
	OK(weft_scope_close(&scope));
	CHECK_EQ(callers[0].result, WEFT_EPIPE);
	for (int i = 1; i < 5; i++)
		CHECK_EQ(callers[i].result, 0);
}

TEST(queued_commands_are_sent_on_the_next_connection)
{
	static const int64_t cuts[] = { 0 };

	PLAY(play_unsent, .peer = { .cuts = cuts, .cut_count = 1 }, .opts = { .inflight_max = 1 });
}

static int
put_big(void *arg)
{
	struct caller *caller = arg;
	size_t size = 8 << 20;
	char *much = calloc(1, size);

	CHECK(much);
	caller->result = weft_redis_callf(caller->world->redis, NULL, WEFT_NEVER, "SET big %b",
	                                  much, size);
	free(much);
	return 0;
}

/* The server reads nothing after the first command: the second one is partly sent, and the
 * third one is not. */
static void
play_unflushed(struct world *world)
{
	struct caller callers[3] = { { world, "GET", "a", 1 },
		                     { world, "SET", "big", 1 },
		                     { world, "INCR", "c", 1 } };
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, call_once, &callers[0]) > 0);
	UNTIL(peer_heard(&world->peer, "GET a") == 1);
	CHECK(weft_scope_go(&scope, put_big, &callers[1]) > 0);
	UNTIL(stats_of(world).inflight == 2);
	for (int i = 0; i < 10; i++)
		OK(weft_yield());
	CHECK(weft_scope_go(&scope, call_once, &callers[2]) > 0);
	UNTIL(stats_of(world).inflight == 3);
	peer_go_on(&world->peer);
	OK(weft_scope_close(&scope));
	CHECK_EQ(callers[0].result, 0);
	CHECK_EQ(callers[1].result, WEFT_EPIPE);
	CHECK_EQ(callers[2].result, 0);
	CHECK_EQ(peer_heard(&world->peer, "INCR c"), 1);
}

TEST(unflushed_commands_are_sent_on_the_next_connection)
{
	static const int64_t cuts[] = { 0 };

	PLAY(play_unflushed,
	     .peer = { .cuts = cuts, .cut_count = 1, .holds = true, .resets = true });
}

static void
play_idle_drop(struct world *world)
{
	OK(ask(world, "GET", "a", WEFT_NEVER));
	peer_drop(&world->peer);
	UNTIL(stats_of(world).connections == 0);
	OK(ask(world, "INCR", "b", WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 2);
	CHECK_EQ(stats_of(world).connects, 2);
}

TEST(next_command_reconnects_a_lost_idle_connection)
{
	PLAY(play_idle_drop, .user = NULL);
}

/* --- no server ------------------------------------------------------------------ */

static void
play_gone(struct world *world)
{
	struct caller callers[20];
	weft_scope scope;

	peer_close(&world->peer);
	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 20; i++) {
		callers[i] = (struct caller){ .world = world, .name = "GET", .key = "k" };
		CHECK(weft_scope_go(&scope, call_once, &callers[i]) > 0);
	}
	OK(weft_scope_close(&scope));
	for (int i = 0; i < 20; i++)
		CHECK_EQ(callers[i].result, WEFT_ECONNREFUSED);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_ECONNREFUSED);
		CHECK(strstr(weft_detail(), "127.0.0.1"));
	}
	CHECK_EQ(ask(world, "BLPOP", "k", WEFT_NEVER), WEFT_ECONNREFUSED);
}

TEST(missing_server_fails_all_calls_and_none_hangs)
{
	PLAY(play_gone, .opts = { .backoff_max_ns = 5 * WEFT_MS });
}

/* It recovers by itself after errors. */
static void
play_back(struct world *world)
{
	for (int i = 0; i < 3; i++) {
		peer_close(&world->peer);
		peer_drop(&world->peer);
		UNTIL(stats_of(world).connections == 0);
		CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_ECONNREFUSED);
		CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_ECONNREFUSED);
		peer_open(&world->peer, weft_loop_current());
		OK(ask(world, "GET", "k", WEFT_NEVER));
	}
}

TEST(client_reconnects_when_the_server_is_back)
{
	PLAY(play_back, .opts = { .backoff_max_ns = WEFT_MS });
}

/* --- handshakes ----------------------------------------------------------------- */

static void
play_well(struct world *world)
{
	OK(ask(world, "GET", "k", WEFT_NEVER));
}

static void
play_database(struct world *world)
{
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(peer_heard(&world->peer, "SELECT 7"), world->peer.is_old ? 2 : 1);
}

static void
play_wrong(struct world *world)
{
	CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_EREPLY);
	CHECK(strstr(weft_detail(), world->peer.is_old ? "no entry" : "WRONGPASS"));
	CHECK_EQ(peer_heard(&world->peer, "GET k"), 0);
}

static void
play_closed(struct world *world)
{
	CHECK_EQ(ask(world, "GET", "k", WEFT_NEVER), WEFT_EREPLY);
	CHECK(strstr(weft_detail(), "NOAUTH"));
}

TEST(user_and_password_come_from_the_address_or_the_options)
{
	PLAY(play_well, .peer = { .password = "p@ss" }, .user = ":p%40ss@");
	PLAY(play_well, .peer = { .user = "ann", .password = "x" }, .user = "ann:x@");
	PLAY(play_well, .peer = { .user = "ann", .password = "x" }, .user = "bob:y@",
	     .opts = { .user = "ann", .password = "x" });
	PLAY(play_wrong, .peer = { .password = "x" }, .user = ":y@");
	PLAY(play_wrong, .peer = { .user = "ann", .password = "x" }, .user = "bob:x@");
	PLAY(play_closed, .peer = { .password = "x" });
}

TEST(user_and_password_are_sent_to_resp2_servers)
{
	PLAY(play_well, .peer = { .password = "x", .is_old = true }, .user = ":x@");
	PLAY(play_wrong, .peer = { .password = "x", .is_old = true }, .user = ":y@");
	PLAY(play_closed, .peer = { .password = "x", .is_old = true });
}

TEST(database_of_the_address_is_selected)
{
	PLAY(play_database, .path = "/7");
	PLAY(play_database, .path = "/07", .peer = { .is_old = true });
}

/* --- blocking commands ---------------------------------------------------------- */

static int
call_blocked(void *arg)
{
	struct caller *caller = arg;

	caller->result = ask(caller->world, "BLPOP", caller->key, WEFT_NEVER);
	return 0;
}

static void
play_blocked(struct world *world)
{
	struct caller callers[5];
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 5; i++) {
		callers[i] = (struct caller){ .world = world, .key = "soon" };
		CHECK(weft_scope_go(&scope, call_blocked, &callers[i]) > 0);
	}
	UNTIL(peer_heard(&world->peer, "BLPOP soon") == 3);
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 4);
	CHECK_EQ(stats_of(world).waiting, 2);
	peer_go_on(&world->peer);
	OK(weft_scope_close(&scope));
	for (int i = 0; i < 5; i++)
		OK(callers[i].result);
	OK(ask(world, "BLPOP", "soon", WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 4); /* they are reused */
}

TEST(blocking_commands_have_dedicated_connections)
{
	PLAY(play_blocked, .opts = { .connections_max = 4 });
}

/* There is a connection already, so the command is sent before its deadline. */
static void
play_blocked_deadline(struct world *world)
{
	OK(ask(world, "GET", "k", WEFT_NEVER));
	peer_go_on(&world->peer);
	for (int i = 0; i < 3; i++) {
		OK(ask(world, "BLPOP", "soon", WEFT_NEVER));
		CHECK_EQ(ask(world, "BLPOP", "never", weft_after(5 * WEFT_MS)), WEFT_ETIMEDOUT);
		UNTIL(world->peer.open == 1); /* the server sees the connection end */
		OK(ask(world, "GET", "k", WEFT_NEVER));
		CHECK_EQ(world->peer.accepted, 2 + i);
		CHECK_EQ(stats_of(world).connections, 1);
	}
}

TEST(deadline_of_a_blocking_command_closes_its_connection)
{
	PLAY(play_blocked_deadline, .opts = { .connections_max = 2 });
}

static void
play_blocked_loss(struct world *world)
{
	struct caller caller = { .world = world, .key = "never" };
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	CHECK(weft_scope_go(&scope, call_blocked, &caller) > 0);
	UNTIL(peer_heard(&world->peer, "BLPOP never") == 1);
	peer_drop(&world->peer);
	OK(weft_scope_close(&scope));
	CHECK_EQ(caller.result, WEFT_EPIPE);
	CHECK_EQ(peer_heard(&world->peer, "BLPOP never"), 1);
}

TEST(blocking_command_is_not_repeated)
{
	PLAY(play_blocked_loss, .user = NULL);
}

static void
play_one_connection(struct world *world)
{
	CHECK_EQ(ask(world, "BLPOP", "k", WEFT_NEVER), WEFT_EINVAL);
	CHECK(strstr(weft_detail(), "connections_max"));
}

TEST(blocking_command_is_refused_with_one_connection)
{
	PLAY(play_one_connection, .opts = { .connections_max = 1 });
}

/* --- transactions, scripts, sessions ---------------------------------------------- */

static void
play_unit(struct world *world)
{
	const weft_span a[] = { weft_text("SET"), weft_text("a") };
	const weft_span b[] = { weft_text("INCR"), weft_text("b") };
	const weft_span bad[] = { weft_text("FAIL") };
	const weft_span watch[] = { weft_text("WATCH"), weft_text("b") };
	const weft_redis_command unit[] = { { a, 2 }, { b, 2 } };
	const weft_redis_command wrong[] = { { a, 2 }, { bad, 1 } };
	const weft_redis_command odd[] = { { watch, 2 } };
	weft_redis_reply *reply = NULL;
	weft_span text;

	OK(weft_redis_multi(world->redis, unit, 2, &reply, WEFT_NEVER));
	CHECK_EQ(weft_redis_count(reply), 2);
	OK(weft_redis_text(weft_redis_item(reply, 1), &text));
	CHECK_STR((const char *)text.data, "INCR:b");
	weft_redis_reply_free(reply);
	CHECK_EQ(weft_redis_multi(world->redis, wrong, 2, &reply, WEFT_NEVER), WEFT_EREPLY);
	CHECK_STR(weft_detail(), "command 2 of the transaction: ERR it fails");
	CHECK_EQ(weft_redis_multi(world->redis, odd, 1, &reply, WEFT_NEVER), WEFT_EINVAL);
	CHECK_EQ(weft_redis_multi(world->redis, odd, 0, &reply, WEFT_NEVER), WEFT_EINVAL);
	OK(ask(world, "GET", "after", WEFT_NEVER));
}

TEST(transaction_returns_all_its_replies)
{
	PLAY(play_unit, .user = NULL);
	PLAY(play_unit, .peer = { .drips = true, .is_old = true });
}

static void
play_unit_cut(struct world *world)
{
	const weft_span a[] = { weft_text("GET"), weft_text("a") };
	const weft_redis_command unit[] = { { a, 2 }, { a, 2 } };
	int rc = weft_redis_multi(world->redis, unit, 2, NULL, WEFT_NEVER);

	CHECK(rc == WEFT_EPIPE || rc == 0);
	CHECK_EQ(peer_heard(&world->peer, "MULTI"), 1);
	OK(ask(world, "GET", "after", WEFT_NEVER));
}

TEST(transaction_that_was_sent_is_never_repeated)
{
	for (int64_t at = 0; at < 50; at++)
		PLAY(play_unit_cut, .peer = { .cuts = &at, .cut_count = 1 });
}

static void
play_script(struct world *world)
{
	const weft_span words[] = { weft_text("1"), weft_text("key") };
	weft_redis_reply *reply = NULL;

	OK(weft_redis_script(world->redis, "return 1", words, 2, &reply, WEFT_NEVER));
	weft_redis_reply_free(reply);
	CHECK_EQ(peer_heard(&world->peer, "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 1 key"),
	         1);
	CHECK_EQ(peer_heard(&world->peer, "EVAL return 1 1 key"), world->peer.knows ? 0 : 1);
}

TEST(script_is_sent_only_if_the_server_does_not_have_it)
{
	PLAY(play_script, .peer = { .knows = true });
	PLAY(play_script, .user = NULL);
}

static void
play_session(struct world *world)
{
	OK(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "WATCH k"));
	OK(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "MULTI"));
	OK(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "GET k"));
	OK(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "EXEC"));
	CHECK_EQ(weft_redis_callf(world->redis, NULL, WEFT_NEVER, "SUBSCRIBE a"), WEFT_EINVAL);
	peer_drop(&world->peer);
	UNTIL(stats_of(world).connections == 0);
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(ask(world, "BLPOP", "never", weft_after(5 * WEFT_MS)), WEFT_ETIMEDOUT);
	OK(ask(world, "GET", "k", WEFT_NEVER));
	CHECK_EQ(world->peer.accepted, 3);
}

TEST(session_keeps_state_on_one_connection)
{
	PLAY(play_session, .opts = { .session = true });
}

static void
play_session_cut(struct world *world)
{
	struct caller callers[4];
	weft_scope scope;

	OK(weft_scope_open(&scope, 0, WEFT_NEVER));
	for (int i = 0; i < 4; i++) {
		callers[i] = (struct caller){ .world = world, .name = "GET", .key = "k" };
		CHECK(weft_scope_go(&scope, call_once, &callers[i]) > 0);
	}
	OK(weft_scope_close(&scope));
	for (int i = 0; i < 4; i++)
		CHECK_EQ(callers[i].result, i == 0 ? 0 : WEFT_EPIPE);
	OK(ask(world, "GET", "k", WEFT_NEVER));
}

TEST(session_repeats_no_command)
{
	static const int64_t cuts[] = { 13 };

	PLAY(play_session_cut, .peer = { .cuts = cuts, .cut_count = 1 },
	     .opts = { .session = true, .inflight_max = 2 });
}

/* --- addresses ------------------------------------------------------------------ */

TEST(invalid_addresses_are_refused)
{
	static const char *const wrong[] = {
		"",
		"http://x",
		"redis:/x",
		"redis://x:",
		"redis://x:y",
		"redis://x/a",
		"redis://x/1/2",
		"redis://x?y",
		"redis+unix:",
		"redis://a%4@x",
		"redis://a:%zz@x",
		"redis://a@x",
		"redis://x:123456",
	};
	static const char *const right[] = {
		"redis://",      "redis://x",         "redis://:6380",       "redis://[::1]:1",
		"rediss://x/15", "redis+unix:/tmp/x", "redis://a:b%20c@x/0",
	};
	weft_loop *loop = make();
	weft_redis_opts opts = { .loop = loop };
	weft_redis *redis;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_EQ(weft_redis_open(wrong[i], &opts, &redis), WEFT_EINVAL);
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		OK(weft_redis_open(right[i], &opts, &redis));
		weft_redis_close(redis);
	}
	weft_redis_close(NULL);
	CHECK_EQ(weft_redis_open("redis://x", NULL, &redis), WEFT_EINVAL);
	OK(weft_loop_free(loop));
}
