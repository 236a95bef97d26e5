/* store_test.c - replies and messages to clients of a store: expiry, transactions, blocking,
 * limits. */
#include "store/talk.h"

/* --- expiry ----------------------------------------------------------------- */

TEST(key_is_gone_when_it_expires)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "SET a 1 PX 100", "+OK\r\n");
	SAY(client, "PTTL a", ":100\r\n");
	talk_ms += 99;
	SAY(client, "GET a", "$1\r\n1\r\n");
	talk_ms += 1;
	SAY(client, "DBSIZE", ":1\r\n");
	SAY(client, "GET a", "$-1\r\n");
	SAY(client, "DBSIZE", ":0\r\n");
	SAY(client, "TTL a", ":-2\r\n");
	talk_close(&talk);
}

TEST(expired_keys_are_removed_without_being_accessed)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);
	char line[64];

	for (int i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "SET key:%d v PX %d", i, i % 2 ? 100 : 1000000);
		SAY(client, line, "+OK\r\n");
	}
	talk.store->now_ms = talk_ms += 100;
	for (int i = 0; i < 200; i++)
		(void)keys_expire_some(talk.store);
	CHECK(table_count(&talk.store->bases[0].keys) < 700);
	CHECK(table_count(&talk.store->bases[0].keys) >= 500);
	SAY(client, "GET key:0", "$1\r\nv\r\n");
	talk_close(&talk);
}

TEST(store_without_expiring_keys_has_no_timer)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "SET a 1", "+OK\r\n");
	CHECK(!talk.store->expires);
	SAY(client, "EXPIRE a 100", ":1\r\n");
	CHECK(talk.store->expires);
	talk_close(&talk);
}

TEST(renamed_and_copied_keys_keep_their_expiry)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "SET a 1 EX 100", "+OK\r\n");
	SAY(client, "RENAME a b", "+OK\r\n");
	SAY(client, "TTL b", ":100\r\n");
	SAY(client, "COPY b c", ":1\r\n");
	SAY(client, "TTL c", ":100\r\n");
	SAY(client, "SET b 2", "+OK\r\n");
	SAY(client, "TTL b", ":-1\r\n");
	SAY(client, "SET c 2 KEEPTTL", "+OK\r\n");
	SAY(client, "TTL c", ":100\r\n");
	talk_close(&talk);
}

/* --- transactions ----------------------------------------------------------- */

TEST(transaction_aborts_when_a_watched_key_was_changed)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);

	SAY(client, "WATCH a", "+OK\r\n");
	SAY(client, "MULTI", "+OK\r\n");
	SAY(client, "SET b 1", "+QUEUED\r\n");
	SAY(other, "SET a 1", "+OK\r\n");
	SAY(client, "EXEC", "*-1\r\n");
	SAY(client, "GET b", "$-1\r\n");
	talk_close(&talk);
}

TEST(transaction_aborts_when_a_watched_key_has_expired)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "SET a 1 PX 10", "+OK\r\n");
	SAY(client, "WATCH a", "+OK\r\n");
	SAY(client, "MULTI", "+OK\r\n");
	SAY(client, "PING", "+QUEUED\r\n");
	talk_ms += 20;
	SAY(client, "EXEC", "*-1\r\n");
	talk_close(&talk);
}

TEST(transaction_with_an_invalid_command_does_nothing)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "MULTI", "+OK\r\n");
	SAY(client, "SET a 1", "+QUEUED\r\n");
	SAY(client, "SET a", "-ERR wrong number of arguments for 'set' command\r\n");
	SAY(client, "EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n");
	SAY(client, "EXISTS a", ":0\r\n");
	talk_close(&talk);
}

/* --- blocking commands ------------------------------------------------------ */

TEST(blocked_clients_are_served_in_the_order_of_their_commands)
{
	struct talk talk = talk_open(NULL);
	struct client *first = talk_client(&talk), *second = talk_client(&talk),
		      *giver = talk_client(&talk);

	SAY(first, "BLPOP a b 0", "");
	SAY(second, "BLPOP b 0", "");
	SAY(giver, "RPUSH b 1 2 3", ":3\r\n");
	CHECK_STR(talk_hear(first), "*2\r\n$1\r\nb\r\n$1\r\n1\r\n");
	CHECK_STR(talk_hear(second), "*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
	SAY(giver, "LRANGE b 0 -1", "*1\r\n$1\r\n3\r\n");
	CHECK_EQ(talk.store->blocked_count, 0);
	talk_close(&talk);
}

TEST(element_moved_by_a_blocked_client_unblocks_the_next)
{
	struct talk talk = talk_open(NULL);
	struct client *mover = talk_client(&talk), *taker = talk_client(&talk),
		      *giver = talk_client(&talk);

	SAY(mover, "BLMOVE a b LEFT RIGHT 0", "");
	SAY(taker, "BRPOP b 0", "");
	SAY(giver, "LPUSH a x", ":1\r\n");
	CHECK_STR(talk_hear(mover), "$1\r\nx\r\n");
	CHECK_STR(talk_hear(taker), "*2\r\n$1\r\nb\r\n$1\r\nx\r\n");
	SAY(giver, "DBSIZE", ":0\r\n");
	talk_close(&talk);
}

TEST(blocked_client_is_not_served_by_a_key_of_another_type)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *giver = talk_client(&talk);

	SAY(client, "BLPOP a 0", "");
	SAY(giver, "ZADD a 1 m", ":1\r\n");
	CHECK_STR(talk_hear(client), "");
	SAY(giver, "DEL a", ":1\r\n");
	SAY(giver, "RPUSH a 1", ":1\r\n");
	CHECK_STR(talk_hear(client), "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
	talk_close(&talk);
}

TEST(requests_behind_a_blocking_command_run_after_it)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *giver = talk_client(&talk);

	SAY(client, "BLPOP a 0", "");
	SAY(client, "PING", "");
	SAY(giver, "RPUSH a 1", ":1\r\n");
	store_resume(talk.store);
	CHECK_STR(talk_hear(client), "*2\r\n$1\r\na\r\n$1\r\n1\r\n+PONG\r\n");
	talk_close(&talk);
}

TEST(transaction_does_not_block)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "MULTI", "+OK\r\n");
	SAY(client, "BLPOP a 0", "+QUEUED\r\n");
	SAY(client, "BLMOVE a b LEFT LEFT 0", "+QUEUED\r\n");
	SAY(client, "EXEC", "*2\r\n*-1\r\n$-1\r\n");
	talk_close(&talk);
}

/* --- publishing ------------------------------------------------------------- */

TEST(subscriber_gets_published_messages)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);

	SAY(client, "SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
	SAY(client, "PSUBSCRIBE n*", "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:2\r\n");
	SAY(other, "PUBLISH news hi", ":2\r\n");
	CHECK_STR(talk_hear(client),
	          "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"
	          "*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
	SAY(other, "PUBSUB NUMSUB news", "*2\r\n$4\r\nnews\r\n:1\r\n");
	SAY(client, "GET a",
	    "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE "
	    "/ PING / QUIT / RESET are allowed in this context\r\n");
	SAY(client, "RESET", "+RESET\r\n");
	SAY(other, "PUBLISH news hi", ":0\r\n");
	talk_close(&talk);
}

/* --- tracking --------------------------------------------------------------- */

TEST(tracking_client_gets_one_invalidation_per_read)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);

	(void)talk_say(client, "HELLO 3");
	SAY(client, "CLIENT TRACKING ON", "+OK\r\n");
	SAY(client, "GET a", "_\r\n");
	SAY(other, "SET a 1", "+OK\r\n");
	CHECK_STR(talk_hear(client), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
	SAY(other, "SET a 2", "+OK\r\n");
	CHECK_STR(talk_hear(client), "");
	SAY(client, "MGET a b", "*2\r\n$1\r\n2\r\n_\r\n");
	SAY(client, "SET b 1", "+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nb\r\n");
	SAY(other, "FLUSHALL", "+OK\r\n");
	CHECK_STR(talk_hear(client), ">2\r\n$10\r\ninvalidate\r\n_\r\n");
	talk_close(&talk);
}

TEST(tracking_client_gets_an_invalidation_when_a_key_expires)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);

	(void)talk_say(client, "HELLO 3");
	SAY(client, "CLIENT TRACKING ON NOLOOP", "+OK\r\n");
	SAY(client, "SET a 1 PX 10", "+OK\r\n");
	SAY(client, "GET a", "$1\r\n1\r\n");
	talk_ms += 10;
	SAY(other, "GET a", "$-1\r\n");
	CHECK_STR(talk_hear(client), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
	talk_close(&talk);
}

static void
track(struct client *client)
{
	(void)talk_say(client, "HELLO 3");
	SAY(client, "CLIENT TRACKING ON", "+OK\r\n");
}

TEST(tracking_table_is_limited_in_bytes)
{
	const weft_store_opts opts = { .tracking_max = 100000 };
	struct talk talk = talk_open(&opts);
	struct client *client = talk_client(&talk);
	const char *heard;
	char line[2048];
	size_t before;

	track(client);
	before = talk.store->heap.used;
	for (int i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "GET %01000d", i);
		(void)talk_say(client, line);
		CHECK(talk.store->tracking_used <= opts.tracking_max);
	}
	CHECK(talk.store->heap.used < before + 2 * opts.tracking_max);
	/* A name that alone exceeds the limit is reported at once. */
	snprintf(line, sizeof(line), "GET a");
	talk.store->opts.tracking_max = 1;
	heard = talk_say(client, line);
	CHECK(strstr(heard, "invalidate"));
	CHECK_EQ(talk.store->tracking_used, 0);
	talk_close(&talk);
}

TEST(tracked_keys_of_a_client_are_removed_when_it_disconnects)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);
	size_t alone, both;

	track(other);
	SAY(other, "GET shared", "_\r\n");
	alone = talk.store->tracking_used;
	track(client);
	SAY(client, "MGET a b shared", "*3\r\n_\r\n_\r\n_\r\n");
	both = talk.store->tracking_used;
	CHECK(both > alone);
	SAY(client, "GET a", "_\r\n"); /* a second time */
	CHECK_EQ(talk.store->tracking_used, both);
	client_free(client);
	CHECK_EQ(talk.store->tracking_used, alone);
	client = talk_client(&talk);
	SAY(client, "MSET a 1 b 1 shared 1", "+OK\r\n");
	CHECK_STR(talk_hear(other), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nshared\r\n");
	CHECK_EQ(talk.store->tracking_used, 0);
	talk_close(&talk);
}

/* --- requests that browsers send --------------------------------------------- */

static void
check_dropped(struct talk *talk, const char *bytes)
{
	struct client *client = talk_client(talk);

	client_feed(client, bytes, strlen(bytes));
	CHECK(client->flags & CLIENT_DOOMED);
	SAY(talk_client(talk), "GET kept", "$1\r\n1\r\n");
}

TEST(commands_in_the_body_of_an_http_request_are_not_run)
{
	struct talk talk = talk_open(NULL);

	SAY(talk_client(&talk), "SET kept 1", "+OK\r\n");
	check_dropped(&talk, "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n"
	                     "FLUSHALL\r\n");
	check_dropped(&talk, "PUT / HTTP/1.1\r\nhost: a\r\n\r\nFLUSHALL\r\n");
	check_dropped(&talk, "*1\r\n$4\r\npost\r\nFLUSHALL\r\n");
	talk_close(&talk);
}

TEST(debug_command_is_refused_unless_enabled)
{
	const weft_store_opts opts = { .debug = true };
	struct talk strict = talk_open(NULL), lax = talk_open(&opts);

	SAY(talk_client(&strict), "DEBUG SLEEP 0", "-ERR DEBUG command not allowed.\r\n");
	SAY(talk_client(&lax), "DEBUG SLEEP 0", "+OK\r\n");
	talk_close(&strict);
	talk_close(&lax);
}

/* --- limits ----------------------------------------------------------------- */

TEST(full_store_refuses_writes_but_allows_reads_and_deletes)
{
	const weft_store_opts opts = { .memory_max = 100000 };
	struct talk talk = talk_open(&opts);
	struct client *client = talk_client(&talk);
	char line[64];

	for (int i = 0; i < 2000; i++) {
		snprintf(line, sizeof(line), "SET key:%d value", i);
		(void)talk_say(client, line);
	}
	SAY(client, "SET b 1", "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
	SAY(client, "GET key:0", "$5\r\nvalue\r\n");
	SAY(client, "FLUSHALL", "+OK\r\n");
	SAY(client, "SET b 1", "+OK\r\n");
	talk_close(&talk);
}

TEST(client_with_too_much_pending_output_is_dropped)
{
	const weft_store_opts opts = { .output_max = 100000 };
	struct talk talk = talk_open(&opts);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);

	(void)talk_say(client, "SUBSCRIBE a");
	for (int i = 0; i < 10000; i++)
		(void)talk_say(other, "PUBLISH a 0123456789");
	CHECK(client->flags & CLIENT_DOOMED);
	CHECK(client->out.room <= 200000);
	talk_close(&talk);
}

TEST(client_is_dropped_before_a_huge_reply_is_built)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "SADD a 1 2 3", ":3\r\n");
	(void)talk_say(client, "SRANDMEMBER a -4000000000000000000");
	CHECK(client->flags & CLIENT_DOOMED);
	CHECK(talk.store->traffic.peak < 1 << 20);
	talk_close(&talk);
}

TEST(client_must_authenticate_if_there_is_a_password)
{
	const weft_store_opts opts = { .password = "secret" };
	struct talk talk = talk_open(&opts);
	struct client *client = talk_client(&talk);

	SAY(client, "GET a", "-NOAUTH Authentication required.\r\n");
	SAY(client, "AUTH wrong",
	    "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
	SAY(client, "GET a", "-NOAUTH Authentication required.\r\n");
	SAY(client, "AUTH default secret", "+OK\r\n");
	SAY(client, "GET a", "$-1\r\n");
	SAY(client, "RESET", "+RESET\r\n");
	SAY(client, "GET a", "-NOAUTH Authentication required.\r\n");
	talk_close(&talk);
}

TEST(client_can_turn_replies_off)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "CLIENT REPLY SKIP", "");
	SAY(client, "PING", "");
	SAY(client, "PING", "+PONG\r\n");
	SAY(client, "CLIENT REPLY OFF", "");
	SAY(client, "SET a 1", "");
	SAY(client, "SRANDMEMBER b -4000000000000000000", "");
	SAY(client, "CLIENT REPLY ON", "+OK\r\n");
	SAY(client, "GET a", "$1\r\n1\r\n");
	talk_close(&talk);
}

TEST(malformed_request_gets_an_error_and_ends_the_client)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SAY(client, "*1\r\nx", "-ERR Protocol error: expected '$', got 'x'\r\n");
	CHECK(client->flags & CLIENT_LAST);
	SAY(client, "PING", "");
	talk_close(&talk);
}
