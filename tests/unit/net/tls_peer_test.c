/* tls_peer_test.c - peers that violate the protocol, or have nothing in common with us. */
#include "foreign.h"

static struct basics b;

/* Feeds these bytes, and then the end, to a server or client session of ours. */
static void
feed_alone(int role, const void *bytes, size_t size, struct end *end)
{
	CHECK_EQ(weft__session_open(role == WEFT_TLS_CLIENT ? b.client : b.server, role,
	                            role == WEFT_TLS_CLIENT ? "example.org" : NULL, &end->session),
	         0);
	(void)weft__session_handshake(end->session);
	CHECK_EQ(weft__session_feed(end->session, bytes, size), size);
	weft__session_ended(end->session);
	end->rc = weft__session_handshake(end->session);
	(void)snprintf(end->text, sizeof(end->text), "%s", weft_detail());
	CHECK_EQ(weft__session_handshake(end->session), end->rc);
	CHECK_STR(weft_detail(), end->text); /* the error is reported again */
	weft__session_close(end->session);
}

static void
check_alone(int role, const void *bytes, size_t size, int error, const char *words)
{
	struct end end;

	feed_alone(role, bytes, size, &end);
	CHECK_EQ(end.rc, error);
	check_words(end.text, words, "alone");
}

TEST(tls_error_for_a_peer_that_does_not_speak_tls_describes_it)
{
	static const char get[] = "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
	static const char proxy[] = "CONNECT example.org:443 HTTP/1.1\r\n\r\n";
	static const char reply[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	static const char ssh[] = "SSH-2.0-OpenSSH_9.2\r\n";
	static const unsigned char ssl2[48] = { 0x80, 0x2e, 0x01, 0x00, 0x02, 0x00, 0x15,
		                                0x00, 0x00, 0x00, 0x10, 0x01, 0x00, 0x80 };
	static const unsigned char oversize[] = { 0x16, 0x03, 0x01, 0xff, 0xff, 0x01, 0x00, 0x00 };
	static const unsigned char alert[] = { 0x15, 0x03, 0x01, 0, 2, 2, 40 };
	static char zeros[1000];

	basics_open(&b);
	check_alone(WEFT_TLS_SERVER, get, sizeof(get) - 1, WEFT_EPROTO,
	            "plain HTTP instead of TLS");
	check_alone(WEFT_TLS_SERVER, proxy, sizeof(proxy) - 1, WEFT_EPROTO,
	            "a plain HTTP proxy request instead of TLS");
	check_alone(WEFT_TLS_CLIENT, reply, sizeof(reply) - 1, WEFT_EPROTO, "does not speak TLS");
	check_alone(WEFT_TLS_CLIENT, ssh, sizeof(ssh) - 1, WEFT_EPROTO, "does not speak TLS");
	check_alone(WEFT_TLS_SERVER, ssh, sizeof(ssh) - 1, WEFT_EPROTO, "tls");
	check_alone(WEFT_TLS_SERVER, ssl2, sizeof(ssl2), WEFT_EPROTO, "tls");
	check_alone(WEFT_TLS_CLIENT, ssl2, sizeof(ssl2), WEFT_EPROTO, "tls");
	check_alone(WEFT_TLS_SERVER, oversize, sizeof(oversize), WEFT_EPROTO,
	            "is larger than allowed");
	check_alone(WEFT_TLS_CLIENT, oversize, sizeof(oversize), WEFT_EPROTO,
	            "is larger than allowed");
	check_alone(WEFT_TLS_CLIENT, alert, sizeof(alert), WEFT_EPROTO, "(alert 40)");
	check_alone(WEFT_TLS_SERVER, zeros, sizeof(zeros), WEFT_EPROTO, "tls");
	check_alone(WEFT_TLS_CLIENT, zeros, sizeof(zeros), WEFT_EPROTO, "tls");
	check_alone(WEFT_TLS_SERVER, "", 0, WEFT_ETRUNCATED, "without a close_notify");
	check_alone(WEFT_TLS_CLIENT, "\x16\x03", 2, WEFT_ETRUNCATED, "without a close_notify");
	basics_close(&b);
}

TEST(tls_garbage_is_never_accepted)
{
	uint64_t seed = test_seed();
	unsigned char bytes[512];
	struct end end;

	basics_open(&b);
	for (int i = 0; i < 2000; i++) {
		size_t size = 1 + test_random(&seed) % sizeof(bytes);

		for (size_t j = 0; j < size; j++)
			bytes[j] = (unsigned char)test_random(&seed);
		if (i % 2) /* starts with a record header */
			memcpy(bytes, "\x16\x03\x01\x00", size < 4 ? size : 4);
		feed_alone(i % 4 < 2 ? WEFT_TLS_CLIENT : WEFT_TLS_SERVER, bytes, size, &end);
		CHECK(end.rc == WEFT_EPROTO || end.rc == WEFT_ETRUNCATED || end.rc == WEFT_ECERT);
	}
	basics_close(&b);
}

/* --- versions, ciphers -------------------------------------------------- */

/* Runs a handshake with a foreign peer, whose context `change` has modified. */
static void
meet(weft_tls *tls, int role, void (*change)(SSL_CTX *ctx), struct end *end)
{
	const struct cert *chain[] = { &b.leaf, NULL };
	bool client = role == WEFT_TLS_CLIENT;
	struct foreign peer;

	foreign_open(&peer, client ? WEFT_TLS_SERVER : WEFT_TLS_CLIENT, client ? chain : NULL);
	change(peer.ctx);
	CHECK_EQ(weft__session_open(tls, role, client ? "example.org" : NULL, &end->session), 0);
	foreign_handshake(&peer, end);
	foreign_close(&peer);
	weft__session_close(end->session);
}

static void
only_1_0(SSL_CTX *ctx)
{
	CHECK(SSL_CTX_set_max_proto_version(ctx, TLS1_VERSION));
}

static void
only_1_1(SSL_CTX *ctx)
{
	CHECK(SSL_CTX_set_max_proto_version(ctx, TLS1_1_VERSION));
}

static void
only_1_2(SSL_CTX *ctx)
{
	CHECK(SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION));
}

static void
only_cbc(SSL_CTX *ctx)
{
	only_1_2(ctx);
	CHECK(SSL_CTX_set_cipher_list(ctx, "ECDHE-ECDSA-AES128-SHA256"));
}

static void
only_static_rsa(SSL_CTX *ctx)
{
	only_1_2(ctx);
	CHECK(SSL_CTX_set_cipher_list(ctx, "AES128-GCM-SHA256"));
}

static void
without_encryption(SSL_CTX *ctx)
{
	only_1_2(ctx);
	CHECK(SSL_CTX_set_cipher_list(ctx, "eNULL:aNULL"));
}

static void
nothing_special(SSL_CTX *ctx)
{
	(void)ctx;
}

TEST(tls_old_versions_and_ciphers_are_refused)
{
	static const struct {
		void (*change)(SSL_CTX *ctx);
		const char *as_server; /* error text of our server */
	} bad[] = {
		{ only_1_0, "a version of TLS that is not allowed" },
		{ only_1_1, "a version of TLS that is not allowed" },
		{ only_cbc, "no cipher in common with the peer" },
		{ only_static_rsa, "no cipher in common with the peer" },
		{ without_encryption, "no cipher in common with the peer" },
	};
	struct end end;

	basics_open(&b);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		meet(b.server, WEFT_TLS_SERVER, bad[i].change, &end);
		CHECK_EQ(end.rc, WEFT_EPROTO);
		check_words(end.text, bad[i].as_server, "server");
		meet(b.client, WEFT_TLS_CLIENT, bad[i].change, &end);
		CHECK_EQ(end.rc, WEFT_EPROTO);
		check_words(end.text, "the peer ended the session: ", "client");
	}
	meet(b.server, WEFT_TLS_SERVER, only_1_2, &end);
	CHECK_EQ(end.rc, 0);
	meet(b.client, WEFT_TLS_CLIENT, only_1_2, &end);
	CHECK_EQ(end.rc, 0);
	meet(b.server, WEFT_TLS_SERVER, nothing_special, &end);
	CHECK_EQ(end.rc, 0);
	basics_close(&b);
}

TEST(tls_version_min_is_enforced)
{
	weft_tls_cert cert;
	weft_tls *server, *client;
	struct end end;

	basics_open(&b);
	cert = (weft_tls_cert){ NULL, b.chain_file, b.key_file };
	server = pair_open_tls(
		&(weft_tls_opts){ .certs = &cert, .cert_count = 1, .version_min = 0x0304 });
	client = pair_open_tls(&(weft_tls_opts){ .ca_file = b.ca_file, .version_min = 0x0304 });
	meet(server, WEFT_TLS_SERVER, only_1_2, &end);
	CHECK_EQ(end.rc, WEFT_EPROTO);
	check_words(end.text, "a version of TLS that is not allowed", "server");
	meet(client, WEFT_TLS_CLIENT, only_1_2, &end);
	CHECK_EQ(end.rc, WEFT_EPROTO);
	meet(server, WEFT_TLS_SERVER, nothing_special, &end);
	CHECK_EQ(end.rc, 0);
	meet(client, WEFT_TLS_CLIENT, nothing_special, &end);
	CHECK_EQ(end.rc, 0);
	weft_tls_close(server);
	weft_tls_close(client);
	basics_close(&b);
}

static int
choose_another(SSL *ssl, const unsigned char **out, unsigned char *size, const unsigned char *in,
               unsigned in_size, void *arg)
{
	(void)ssl, (void)in, (void)in_size, (void)arg;
	*out = (const unsigned char *)"evil";
	*size = 4;
	return SSL_TLSEXT_ERR_OK;
}

static void
choose_badly(SSL_CTX *ctx)
{
	SSL_CTX_set_alpn_select_cb(ctx, choose_another, NULL);
}

TEST(tls_alpn_protocol_that_was_not_offered_is_refused)
{
	static const char *const alpn[] = { "h2", NULL };
	struct end end;
	weft_tls *tls;

	basics_open(&b);
	tls = pair_open_tls(&(weft_tls_opts){ .ca_file = b.ca_file, .alpn = alpn });
	meet(tls, WEFT_TLS_CLIENT, nothing_special, &end);
	CHECK_EQ(end.rc, 0);
	meet(tls, WEFT_TLS_CLIENT, choose_badly, &end);
	CHECK_EQ(end.rc, WEFT_EPROTO);
	weft_tls_close(tls);
	basics_close(&b);
}

/* --- client certificates ------------------------------------------------ */

static weft_tls *
requesting_server(void)
{
	weft_tls_cert cert = { NULL, b.chain_file, b.key_file };

	return pair_open_tls(&(weft_tls_opts){ .certs = &cert,
	                                       .cert_count = 1,
	                                       .ca_file = b.ca_file,
	                                       .require_client_cert = true });
}

TEST(tls_client_without_certificate_is_refused_and_gets_the_reason)
{
	struct pair pair = { .chance = 1 };
	weft_tls *server;
	char byte;

	basics_open(&b);
	server = requesting_server();
	pair_open(&pair, b.client, server, "example.org");
	pair_handshake(&pair);
	CHECK_EQ(pair.server.rc, WEFT_ECERT);
	check_words(pair.server.text, "has sent no certificate", "server");
	CHECK_EQ(pair.client.rc, 0); /* it had finished before the server refused */
	pair_carry_all(&pair);
	CHECK_EQ(weft__session_read(pair.client.session, &byte, 1), WEFT_ECERT);
	check_words(weft_detail(), "it requires a certificate from us", "client");
	pair_close(&pair);
	weft_tls_close(server);
	basics_close(&b);
}

TEST(tls_client_certificate_is_reported_to_the_server)
{
	struct pair pair = { .chance = 1 };
	weft_tls *server, *client;
	weft_tls_info info;
	weft_tls_cert cert;

	basics_open(&b);
	server = requesting_server();
	cert = (weft_tls_cert){ NULL, b.chain_file, b.key_file };
	client = pair_open_tls(
		&(weft_tls_opts){ .certs = &cert, .cert_count = 1, .ca_file = b.ca_file });
	for (int i = 0; i < 3; i++) { /* the later ones are resumed */
		pair_open(&pair, client, server, "example.org");
		pair_shake_hands(&pair);
		CHECK_EQ(weft__session_info(pair.server.session, &info), 0);
		CHECK_STR(info.peer_subject, "CN = basic");
		CHECK(info.peer_cert.size > 0);
		CHECK_EQ(info.resumed, i > 0);
		pair_close(&pair);
	}
	weft_tls_close(server);
	weft_tls_close(client);
	basics_close(&b);
}

/* --- after the handshake ------------------------------------------------ */

TEST(tls_modified_record_ends_the_session)
{
	struct pair pair = { .chance = 1 };
	unsigned char copy[256];
	const void *out;
	size_t size;
	char buf[16];

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	CHECK_EQ(weft__session_write(pair.client.session, "hello", 5), 5);
	size = weft__session_output(pair.client.session, &out);
	CHECK(size < sizeof(copy));
	memcpy(copy, out, size);
	copy[size - 1] ^= 1;
	weft__session_sent(pair.client.session, size);
	CHECK_EQ(weft__session_feed(pair.server.session, copy, size), size);
	CHECK_EQ(weft__session_read(pair.server.session, buf, sizeof(buf)), WEFT_EPROTO);
	check_words(weft_detail(), "changed on its way", "record");
	CHECK(weft__session_output(pair.server.session, &out) > 0);
	pair_carry_all(&pair);
	CHECK_EQ(weft__session_read(pair.client.session, buf, sizeof(buf)), WEFT_EPROTO);
	check_words(weft_detail(), "(alert 20)", "record");
	pair_close(&pair);
	basics_close(&b);
}

TEST(tls_truncated_record_is_not_a_regular_end)
{
	struct pair pair = { .chance = 1 };
	const void *out;
	size_t size;
	char buf[16];

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	CHECK_EQ(weft__session_write(pair.client.session, "hello", 5), 5);
	size = weft__session_output(pair.client.session, &out);
	CHECK_EQ(weft__session_feed(pair.server.session, out, size - 1), size - 1);
	CHECK_EQ(weft__session_read(pair.server.session, buf, sizeof(buf)), WEFT_EAGAIN);
	weft__session_ended(pair.server.session);
	CHECK_EQ(weft__session_read(pair.server.session, buf, sizeof(buf)), WEFT_ETRUNCATED);
	pair_close(&pair);
	basics_close(&b);
}

static void
open_with_foreign(struct foreign *f, struct end *end)
{
	foreign_open(f, WEFT_TLS_CLIENT, NULL);
	CHECK_EQ(weft__session_open(b.server, WEFT_TLS_SERVER, NULL, &end->session), 0);
	foreign_handshake(f, end);
	CHECK_EQ(end->rc, 0);
}

TEST(tls_key_updates_are_answered_and_do_not_disturb_data)
{
	struct foreign f;
	struct end end;
	char buf[64];

	basics_open(&b);
	open_with_foreign(&f, &end);
	for (int i = 0; i < 200; i++) {
		CHECK(SSL_key_update(f.ssl, SSL_KEY_UPDATE_REQUESTED));
		CHECK_EQ(SSL_write(f.ssl, "ping", 4), 4);
		(void)foreign_carry(&f, end.session);
		CHECK_EQ(weft__session_read(end.session, buf, sizeof(buf)), 4);
		CHECK_EQ(weft__session_write(end.session, "pong", 4), 4);
		(void)foreign_carry(&f, end.session);
		CHECK_EQ(SSL_read(f.ssl, buf, sizeof(buf)), 4);
	}
	weft__session_close(end.session);
	foreign_close(&f);
	basics_close(&b);
}

TEST(tls_peer_that_only_sends_key_updates_is_cut_off)
{
	struct foreign f;
	struct end end;
	int64_t n = WEFT_EAGAIN;
	char byte;
	int i;

	basics_open(&b);
	open_with_foreign(&f, &end);
	for (i = 0; i < 1000 && n == WEFT_EAGAIN; i++) {
		CHECK(SSL_key_update(f.ssl, SSL_KEY_UPDATE_NOT_REQUESTED));
		CHECK_EQ(SSL_do_handshake(f.ssl), 1);
		(void)foreign_carry(&f, end.session);
		n = weft__session_read(end.session, &byte, 1);
	}
	CHECK_EQ(n, WEFT_EPROTO);
	CHECK(i > 16 && i < 200);
	check_words(weft_detail(), "too many handshake messages without data", "keys");
	weft__session_close(end.session);
	foreign_close(&f);
	basics_close(&b);
}

/* The peer does not read the answers.  They must stay within the limit. */
TEST(tls_answers_to_key_updates_are_limited)
{
	struct foreign f;
	struct end end;
	const void *out;
	char buf[4096];
	int n;

	basics_open(&b);
	open_with_foreign(&f, &end);
	for (int i = 0; i < 5000; i++) {
		CHECK(SSL_key_update(f.ssl, SSL_KEY_UPDATE_REQUESTED));
		CHECK_EQ(SSL_write(f.ssl, "x", 1), 1);
		while ((n = BIO_read(f.out, buf, sizeof(buf))) > 0)
			CHECK_EQ(weft__session_feed(end.session, buf, (size_t)n), n);
		n = (int)weft__session_read(end.session, buf, sizeof(buf));
		if (n == WEFT_EAGAIN)
			break; /* output must be sent first */
		CHECK_EQ(n, 1);
	}
	CHECK(weft__session_output(end.session, &out) <= WEFT__SESSION_OUT_MAX);
	n = weft__session_close_notify(end.session);
	CHECK(n == 0 || n == WEFT_EAGAIN);
	(void)foreign_carry(&f, end.session);
	CHECK_EQ(weft__session_close_notify(end.session), 0);
	weft__session_close(end.session);
	foreign_close(&f);
	basics_close(&b);
}

/* The peer requests renegotiation, which exists only in TLS 1.2.  If it succeeded, the client
 * random would change. */
static void
renegotiate(int role)
{
	const struct cert *chain[] = { &b.leaf, NULL };
	bool client = role == WEFT_TLS_CLIENT;
	unsigned char before[32], after[32];
	struct foreign f;
	struct end end;
	char byte;

	foreign_open(&f, client ? WEFT_TLS_SERVER : WEFT_TLS_CLIENT, client ? chain : NULL);
	only_1_2(f.ctx);
	CHECK_EQ(weft__session_open(client ? b.client : b.server, role,
	                            client ? "example.org" : NULL, &end.session),
	         0);
	foreign_handshake(&f, &end);
	CHECK_EQ(end.rc, 0);
	CHECK_EQ(SSL_get_client_random(f.ssl, before, 32), 32);
	CHECK(SSL_renegotiate(f.ssl));
	for (int i = 0; i < 8; i++) {
		(void)SSL_do_handshake(f.ssl);
		(void)SSL_read(f.ssl, &byte, 1);
		(void)foreign_carry(&f, end.session);
		(void)weft__session_read(end.session, &byte, 1);
		(void)foreign_carry(&f, end.session);
	}
	CHECK_EQ(SSL_get_client_random(f.ssl, after, 32), 32);
	CHECK(client ? memcmp(before, after, 32) == 0 : !SSL_is_init_finished(f.ssl));
	weft__session_close(end.session);
	foreign_close(&f);
}

TEST(tls_renegotiation_is_refused)
{
	basics_open(&b);
	renegotiate(WEFT_TLS_CLIENT);
	renegotiate(WEFT_TLS_SERVER);
	basics_close(&b);
}
