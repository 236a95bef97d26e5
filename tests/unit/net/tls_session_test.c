/* tls_session_test.c - two in-memory sessions: handshakes, data, and the end of a session. */
#include "pair.h"

#define MIB ((size_t)1 << 20)

TEST(tls_handshake_works_with_pieces_of_any_size)
{
	static const size_t steps[] = { 1, 2, 3, 5, 7, 16, 100, 517, 1000, 4096, 40000 };
	struct basics b;
	uint64_t seed = test_seed();

	basics_open(&b);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct pair pair = { .chance = seed, .step = steps[i] };

		pair_open(&pair, b.client, b.server, "example.org");
		pair_shake_hands(&pair);
		pair_send(&pair, pair.client.session, pair.server.session, "hello", 5);
		pair_send(&pair, pair.server.session, pair.client.session, "world", 5);
		pair_close(&pair);
	}
	basics_close(&b);
}

TEST(tls_data_arrives_intact_in_random_pieces)
{
	struct basics b;
	struct pair pair = { .chance = test_seed() };
	size_t size = BULK_MIB * MIB;
	uint64_t *bytes = malloc(size);

	CHECK(bytes);
	for (size_t i = 0; i < size / 8; i++)
		bytes[i] = test_random(&pair.chance);
	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	pair_send(&pair, pair.client.session, pair.server.session, bytes, size);
	pair_send(&pair, pair.server.session, pair.client.session, bytes, size);
	pair_close(&pair);
	basics_close(&b);
	free(bytes);
}

TEST(tls_data_arrives_intact_byte_by_byte)
{
	struct basics b;
	struct pair pair = { .chance = test_seed(), .step = 1 };
	uint64_t *bytes = malloc(MIB / 8 * BULK_MIB / 8);
	size_t size = MIB / 8 * BULK_MIB / 8;

	CHECK(bytes);
	for (size_t i = 0; i < size / 8; i++)
		bytes[i] = test_random(&pair.chance);
	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	pair_send(&pair, pair.client.session, pair.server.session, bytes, size);
	pair_close(&pair);
	basics_close(&b);
	free(bytes);
}

TEST(tls_output_is_limited_and_a_refused_write_may_be_replaced)
{
	static char bytes[200000], seen[200000];
	struct basics b;
	struct pair pair = { .chance = 1 };
	const void *out;
	size_t put = 0, got = 0;
	int64_t n;

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	n = weft__session_write(pair.client.session, bytes, sizeof(bytes));
	CHECK(n > 60000 && n < 65536);
	put = (size_t)n;
	CHECK_EQ(weft__session_write(pair.client.session, bytes + put, sizeof(bytes) - put),
	         WEFT_EAGAIN);
	CHECK(weft__session_output(pair.client.session, &out) <= WEFT__SESSION_OUT_MAX);
	while (got < put) {
		(void)pair_carry(&pair, pair.client.session, pair.server.session);
		n = weft__session_read(pair.server.session, seen + got, sizeof(seen) - got);
		got += n > 0 ? (size_t)n : 0;
	}
	CHECK(memcmp(bytes, seen, got) == 0);
	pair_send(&pair, pair.client.session, pair.server.session, "other", 5);
	pair_close(&pair);
	basics_close(&b);
}

TEST(tls_pending_output_does_not_move)
{
	static char bytes[30000];
	struct basics b;
	struct pair pair = { .chance = 1 };
	const void *first, *again;
	size_t size;

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	CHECK_EQ(weft__session_write(pair.client.session, bytes, 10), 10);
	size = weft__session_output(pair.client.session, &first);
	CHECK_EQ(weft__session_write(pair.client.session, bytes, 30000), 30000);
	CHECK_EQ(weft__session_output(pair.client.session, &again), size);
	CHECK(first == again);
	weft__session_sent(pair.client.session, size - 1);
	CHECK_EQ(weft__session_output(pair.client.session, &again), 1);
	weft__session_sent(pair.client.session, 1);
	CHECK(weft__session_output(pair.client.session, &again) > 30000);
	pair_close(&pair);
	basics_close(&b);
}

TEST(tls_write_still_works_after_the_peers_close_notify)
{
	struct basics b;
	struct pair pair = { .chance = 1 };
	struct weft__session *c, *s;
	char buf[16];

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	c = pair.client.session;
	s = pair.server.session;
	CHECK_EQ(weft__session_write(c, "last", 4), 4);
	CHECK_EQ(weft__session_close_notify(c), 0);
	CHECK_EQ(weft__session_close_notify(c), 0);
	CHECK_EQ(weft__session_write(c, "more", 4), WEFT_ESHUTDOWN);
	pair_carry_all(&pair);
	CHECK_EQ(weft__session_read(s, buf, sizeof(buf)), 4);
	CHECK_EQ(weft__session_read(s, buf, sizeof(buf)), 0);
	CHECK_EQ(weft__session_read(s, buf, sizeof(buf)), 0);
	CHECK_EQ(weft__session_write(s, "answer", 6), 6);
	CHECK_EQ(weft__session_close_notify(s), 0);
	pair_carry_all(&pair);
	CHECK_EQ(weft__session_read(c, buf, sizeof(buf)), 6);
	CHECK_EQ(weft__session_read(c, buf, sizeof(buf)), 0);
	weft__session_ended(c);
	CHECK_EQ(weft__session_read(c, buf, sizeof(buf)), 0);
	pair_close(&pair);
	basics_close(&b);
}

TEST(tls_end_without_close_notify_is_reported)
{
	struct basics b;
	struct pair pair = { .chance = 1 };
	char buf[16];

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	CHECK_EQ(weft__session_write(pair.client.session, "last", 4), 4);
	pair_carry_all(&pair);
	weft__session_ended(pair.server.session);
	CHECK_EQ(weft__session_read(pair.server.session, buf, sizeof(buf)), 4);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(weft__session_read(pair.server.session, buf, 16), WEFT_ETRUNCATED);
		check_words(weft_detail(), "without a close_notify", "end");
	}
	CHECK_EQ(weft__session_write(pair.server.session, "x", 1), WEFT_ETRUNCATED);
	pair_close(&pair);
	basics_close(&b);
}

TEST(tls_info_reports_the_negotiated_parameters)
{
	struct basics b;
	struct pair pair = { .chance = 1 };
	weft_tls_info info;

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "Example.org.");
	CHECK_EQ(weft__session_info(pair.client.session, &info), WEFT_EINVAL);
	pair_shake_hands(&pair);
	CHECK_EQ(weft__session_info(pair.client.session, &info), 0);
	CHECK_STR(info.version, "TLSv1.3");
	CHECK_STR(info.cipher, "TLS_AES_128_GCM_SHA256");
	CHECK_STR(info.alpn, "");
	CHECK_STR(info.server_name, "Example.org");
	CHECK_STR(info.peer_subject, "CN = basic");
	CHECK(info.peer_cert.size > 100);
	CHECK(!info.resumed);
	CHECK_EQ(weft__session_info(pair.server.session, &info), 0);
	CHECK_STR(info.server_name, "Example.org");
	CHECK_STR(info.peer_subject, "");
	CHECK_EQ(info.peer_cert.size, 0);
	pair_close(&pair);
	basics_close(&b);
}

TEST(tls_receive_buffer_stays_while_it_is_lent)
{
	struct basics b;
	struct pair pair = { .chance = 1 };
	const void *out;
	void *room, *again;
	char buf[16];
	size_t size;

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	CHECK_EQ(weft__session_write(pair.client.session, "hello", 5), 5);
	size = weft__session_output(pair.client.session, &out);
	CHECK_EQ(weft__session_feed(pair.server.session, out, size), size);
	CHECK(weft__session_room(pair.server.session, &room) >= 16);
	CHECK_EQ(weft__session_pending(pair.server.session), size);
	CHECK_EQ(weft__session_read(pair.server.session, buf, 16), 5);
	weft__session_sent(pair.client.session, size);
	CHECK_EQ(weft__session_write(pair.client.session, "again", 5), 5);
	size = weft__session_output(pair.client.session, &out);
	memcpy(room, out, size);
	weft__session_came(pair.server.session, size);
	CHECK_EQ(weft__session_read(pair.server.session, buf, 2), 2);
	CHECK_EQ(weft__session_pending(pair.server.session), 3);
	CHECK_EQ(weft__session_read(pair.server.session, buf + 2, 14), 3);
	CHECK(memcmp(buf, "again", 5) == 0);
	CHECK(weft__session_room(pair.server.session, &again) > 0);
	weft__session_came(pair.server.session, 0);
	pair_close(&pair);
	basics_close(&b);
}

TEST(tls_client_needs_a_valid_name_and_a_server_a_certificate)
{
	static const char *const names[] = { "",    "a b",  "\xc3\xa4.de", "a/b", ".a",
		                             "*.a", "a\nb", "[::1]",       "x@y" };
	struct basics b;
	struct weft__session *s;

	basics_open(&b);
	CHECK_EQ(weft__session_open(b.client, WEFT_TLS_CLIENT, NULL, &s), WEFT_EINVAL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK_EQ(weft__session_open(b.client, WEFT_TLS_CLIENT, names[i], &s), WEFT_EINVAL);
	CHECK_EQ(weft__session_open(b.client, WEFT_TLS_SERVER, NULL, &s), WEFT_EINVAL);
	check_words(weft_detail(), "a server needs a certificate", "server");
	basics_close(&b);
}
