/* store_test.c - replies and messages to clients of a store: expiry, blocking, streams, limits. */
#include "store/talk.h"

/* --- expiry ----------------------------------------------------------------- */

TEST(key_is_gone_when_it_expires)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SEND(client, "SET a 1 PX 100", "+OK\r\n");
	SEND(client, "PTTL a", ":100\r\n");
	talk_ms += 99;
	SEND(client, "GET a", "$1\r\n1\r\n");
	talk_ms += 1;
	SEND(client, "DBSIZE", ":1\r\n");
	SEND(client, "KEYS *", "*0\r\n");
	SEND(client, "GET a", "$-1\r\n");
	SEND(client, "DBSIZE", ":0\r\n");
	SEND(client, "TTL a", ":-2\r\n");
	talk_close(&talk);
}

TEST(expired_keys_are_removed_while_others_are_added)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);
	char line[64];

	for (int i = 0; i < 10000; i++) {
		talk_ms++;
		snprintf(line, sizeof(line), "SET key:%d v PX 100", i);
		SEND(client, line, "+OK\r\n");
		CHECK(map_count(&talk.store->keys) < 300);
	}
	SEND(client, "GET key:9999", "$1\r\nv\r\n");
	talk_close(&talk);
}

TEST(new_value_has_no_expiry_unless_it_is_kept)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SEND(client, "SET a 1 EX 100", "+OK\r\n");
	SEND(client, "SET a 2 KEEPTTL", "+OK\r\n");
	SEND(client, "INCR a", ":3\r\n");
	SEND(client, "TTL a", ":100\r\n");
	SEND(client, "SET a 2", "+OK\r\n");
	SEND(client, "TTL a", ":-1\r\n");
	talk_close(&talk);
}

/* --- blocking commands ------------------------------------------------------ */

TEST(blocked_clients_are_served_in_the_order_of_their_commands)
{
	struct talk talk = talk_open(NULL);
	struct client *first = talk_client(&talk), *second = talk_client(&talk),
		      *giver = talk_client(&talk);

	SEND(first, "BLPOP a b 0", "");
	SEND(second, "BLPOP b 0", "");
	SEND(giver, "RPUSH b 1 2 3", ":3\r\n");
	CHECK_STR(talk_output(first), "*2\r\n$1\r\nb\r\n$1\r\n1\r\n");
	CHECK_STR(talk_output(second), "*2\r\n$1\r\nb\r\n$1\r\n2\r\n");
	SEND(giver, "LRANGE b 0 -1", "*1\r\n$1\r\n3\r\n");
	CHECK_EQ(talk.store->blocked_count, 0);
	talk_close(&talk);
}

TEST(blocked_client_is_not_served_by_a_key_of_another_type)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *giver = talk_client(&talk);

	SEND(client, "BLPOP a b 0", "");
	SEND(giver, "ZADD a 1 m", ":1\r\n");
	CHECK_STR(talk_output(client), "");
	SEND(giver, "RPUSH b 1", ":1\r\n");
	CHECK_STR(talk_output(client), "*2\r\n$1\r\nb\r\n$1\r\n1\r\n");
	talk_close(&talk);
}

TEST(client_that_is_dropped_takes_no_element)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *giver = talk_client(&talk);

	SEND(client, "BLPOP a 0", "");
	client_drop(client);
	SEND(giver, "RPUSH a 1", ":1\r\n");
	SEND(giver, "LLEN a", ":1\r\n");
	client_free(client);
	SEND(giver, "RPUSH a 1", ":2\r\n");
	talk_close(&talk);
}

TEST(timeouts_are_checked_and_do_not_overflow)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SEND(client, "BLPOP a -1", "-ERR timeout is not a float or out of range\r\n");
	SEND(client, "BLPOP a inf", "-ERR timeout is not a float or out of range\r\n");
	SEND(client, "XREAD BLOCK -1 STREAMS s $", "-ERR timeout is negative\r\n");
	SEND(client, "XREAD BLOCK 9223372036854775807 STREAMS s $", "");
	CHECK(client->deadline_ns == WEFT_NEVER);
	client = talk_client(&talk);
	SEND(client, "BLPOP a 999999999999", "");
	CHECK(client->deadline_ns == WEFT_NEVER);
	client = talk_client(&talk);
	SEND(client, "BLPOP a 1000", "");
	CHECK(client->deadline_ns > weft_after(999 * WEFT_S));
	CHECK(client->deadline_ns <= weft_after(1000 * WEFT_S));
	talk_close(&talk);
}

/* --- publishing ------------------------------------------------------------- */

TEST(subscriber_gets_published_messages)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);

	SEND(client, "SUBSCRIBE news", "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
	SEND(client, "PSUBSCRIBE n*", "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:2\r\n");
	SEND(other, "PUBLISH news hi", ":2\r\n");
	CHECK_STR(talk_output(client),
	          "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"
	          "*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
	SEND(client, "GET a",
	     "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE "
	     "/ PING / QUIT / RESET are allowed in this context\r\n");
	SEND(client, "RESET", "+RESET\r\n");
	SEND(other, "PUBLISH news hi", ":0\r\n");
	talk_close(&talk);
}

/* --- streams ---------------------------------------------------------------- */

TEST(stream_ids_follow_the_clock_and_never_go_back)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SEND(client, "XADD s * f v", "$15\r\n1700000000000-0\r\n");
	SEND(client, "XADD s * f v", "$15\r\n1700000000000-1\r\n");
	talk_ms -= 5000;
	SEND(client, "XADD s * f v", "$15\r\n1700000000000-2\r\n");
	talk_ms += 5001;
	SEND(client, "XADD s * f v", "$15\r\n1700000000001-0\r\n");
	SEND(client, "XADD s 1700000000001-0 f v",
	     "-ERR The ID specified in XADD is equal or smaller than the target stream top "
	     "item\r\n");
	SEND(client, "XADD s 18446744073709551615-18446744073709551615 f v",
	     "$41\r\n18446744073709551615-18446744073709551615\r\n");
	SEND(client, "XADD s * f v",
	     "-ERR The ID specified in XADD is equal or smaller than the target stream top "
	     "item\r\n");
	talk_close(&talk);
}

TEST(stream_is_trimmed_exactly_or_by_whole_nodes)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);
	char line[64];

	for (int i = 1; i <= 350; i++) {
		snprintf(line, sizeof(line), "XADD s MAXLEN 1000 %d f v", i);
		(void)talk_send(client, line);
	}
	SEND(client, "XTRIM s MAXLEN ~ 100", ":200\r\n");
	SEND(client, "XTRIM s MINID 251", ":50\r\n");
	SEND(client, "XLEN s", ":100\r\n");
	SEND(client, "XADD s MAXLEN 2 400 f v", "$5\r\n400-0\r\n");
	SEND(client, "XRANGE s - + COUNT 1",
	     "*1\r\n*2\r\n$5\r\n350-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
	SEND(client, "XDEL s 350 400", ":2\r\n");
	SEND(client, "TYPE s", "+stream\r\n");
	talk_close(&talk);
}

TEST(blocked_reader_gets_only_entries_that_are_added_later)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk), *writer = talk_client(&talk);

	SEND(writer, "XADD s 1 f old", "$3\r\n1-0\r\n");
	SEND(client, "XREAD BLOCK 0 STREAMS s t $ $", "");
	SEND(writer, "XDEL s 1", ":1\r\n");
	CHECK_STR(talk_output(client), "");
	SEND(writer, "XADD s 2 f new", "$3\r\n2-0\r\n");
	CHECK_STR(talk_output(client), "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n2-0\r\n"
	                               "*2\r\n$1\r\nf\r\n$3\r\nnew\r\n");
	talk_close(&talk);
}

TEST(consumers_of_a_group_share_its_entries)
{
	struct talk talk = talk_open(NULL);
	struct client *a = talk_client(&talk), *b = talk_client(&talk);
	static const char *const entry = "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n%d-0\r\n"
					 "*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
	char want[128];

	SEND(a, "XGROUP CREATE s g $ MKSTREAM", "+OK\r\n");
	SEND(a, "XREADGROUP GROUP g a COUNT 1 BLOCK 0 STREAMS s >", "");
	SEND(b, "XREADGROUP GROUP g b COUNT 1 BLOCK 0 STREAMS s >", "");
	for (int i = 1; i <= 2; i++) {
		snprintf(want, sizeof(want), "XADD s %d f v", i);
		(void)talk_send(talk_client(&talk), want);
		snprintf(want, sizeof(want), entry, i);
		CHECK_STR(talk_output(i == 1 ? a : b), want);
	}
	SEND(a, "XACK s g 1 2", ":2\r\n");
	SEND(a, "XPENDING s g", "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n");
	talk_close(&talk);
}

TEST(entries_that_are_not_acknowledged_can_be_claimed)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	(void)talk_send(client, "XGROUP CREATE s g 0 MKSTREAM");
	for (int i = 1; i <= 3; i++)
		(void)talk_send(client, "XADD s * f v");
	(void)talk_send(client, "XREADGROUP GROUP g a STREAMS s >");
	SEND(client, "XDEL s 1700000000000-1", ":1\r\n");
	talk_ms += 1000;
	SEND(client, "XAUTOCLAIM s g b 1001 0",
	     "*3\r\n$3\r\n0-0\r\n*0\r\n*1\r\n"
	     "$15\r\n1700000000000-1\r\n");
	SEND(client, "XAUTOCLAIM s g b 1000 0 COUNT 1",
	     "*3\r\n$15\r\n1700000000000-2\r\n*1\r\n*2\r\n$15\r\n1700000000000-0\r\n"
	     "*2\r\n$1\r\nf\r\n$1\r\nv\r\n*0\r\n");
	talk_ms += 7;
	SEND(client, "XPENDING s g - + 9 b",
	     "*1\r\n*4\r\n$15\r\n1700000000000-0\r\n$1\r\nb\r\n:7\r\n:2\r\n");
	talk_close(&talk);
}

TEST(group_reader_is_unblocked_when_its_stream_or_group_is_removed)
{
	static const char *const ends[] = { "DEL s", "XGROUP DESTROY s g", "FLUSHALL",
		                            "EXPIRE s -1" };

	for (int i = 0; i < 4; i++) {
		struct talk talk = talk_open(NULL);
		struct client *client = talk_client(&talk), *other = talk_client(&talk);

		SEND(other, "XGROUP CREATE s g 0 MKSTREAM", "+OK\r\n");
		SEND(client, "XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "");
		(void)talk_send(other, ends[i]);
		CHECK_STR(talk_output(client),
		          i == 1 ? "-NOGROUP the consumer group this client was blocked on no "
		                   "longer exists\r\n"
		                 : "-UNBLOCKED the stream key no longer exists\r\n");
		talk_close(&talk);
	}
}

/* --- requests that browsers send --------------------------------------------- */

static void
check_dropped(struct talk *talk, const char *bytes)
{
	struct client *client = talk_client(talk);

	(void)client_run(client, bytes, strlen(bytes));
	CHECK(client->flags & CLIENT_CLOSING);
	SEND(talk_client(talk), "GET kept", "$1\r\n1\r\n");
}

TEST(commands_in_the_body_of_an_http_request_are_not_run)
{
	struct talk talk = talk_open(NULL);

	SEND(talk_client(&talk), "SET kept 1", "+OK\r\n");
	check_dropped(&talk, "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n"
	                     "FLUSHALL\r\n");
	check_dropped(&talk, "PUT / HTTP/1.1\r\nhost: a\r\n\r\nFLUSHALL\r\n");
	check_dropped(&talk, "*1\r\n$4\r\npost\r\nFLUSHALL\r\n");
	talk_close(&talk);
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
		(void)talk_send(client, line);
	}
	SEND(client, "SET b 1", "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
	SEND(client, "XADD s * f v",
	     "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
	SEND(client, "GET key:0", "$5\r\nvalue\r\n");
	SEND(client, "FLUSHALL", "+OK\r\n");
	SEND(client, "SET b 1", "+OK\r\n");
	talk_close(&talk);
}

TEST(client_with_too_much_pending_output_is_dropped)
{
	const weft_store_opts opts = { .output_max = 100000 };
	struct talk talk = talk_open(&opts);
	struct client *client = talk_client(&talk), *other = talk_client(&talk);

	(void)talk_send(client, "SUBSCRIBE a");
	for (int i = 0; i < 10000; i++)
		(void)talk_send(other, "PUBLISH a 0123456789");
	CHECK(client->flags & CLIENT_CLOSING);
	CHECK(client->out.room <= 200000);
	talk_close(&talk);
}

TEST(client_is_dropped_before_a_huge_reply_is_built)
{
	const weft_store_opts opts = { .output_max = 1000 };
	struct talk talk = talk_open(&opts);
	struct client *client = talk_client(&talk);
	char line[64];

	for (int i = 0; i < 400; i++) {
		snprintf(line, sizeof(line), "SADD s %d", i);
		SEND(client, line, ":1\r\n");
	}
	SEND(client, "SMEMBERS s", "");
	CHECK(client->flags & CLIENT_CLOSING);
	talk_close(&talk);
}

TEST(client_must_authenticate_if_there_is_a_password)
{
	const weft_store_opts opts = { .password = "secret" };
	struct talk talk = talk_open(&opts);
	struct client *client = talk_client(&talk);

	SEND(client, "GET a", "-NOAUTH Authentication required.\r\n");
	SEND(client, "HELLO 3", "-NOAUTH HELLO needs AUTH <user> <password> first\r\n");
	SEND(client, "AUTH wrong",
	     "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
	SEND(client, "GET a", "-NOAUTH Authentication required.\r\n");
	SEND(client, "AUTH default secret", "+OK\r\n");
	SEND(client, "GET a", "$-1\r\n");
	SEND(client, "RESET", "+RESET\r\n");
	SEND(client, "GET a", "-NOAUTH Authentication required.\r\n");
	talk_close(&talk);
}

TEST(malformed_request_gets_an_error_and_ends_the_client)
{
	struct talk talk = talk_open(NULL);
	struct client *client = talk_client(&talk);

	SEND(client, "*1\r\nx", "-ERR Protocol error: expected '$', got 'x'\r\n");
	CHECK(client->flags & CLIENT_LAST);
	SEND(client, "PING", "");
	talk_close(&talk);
}
