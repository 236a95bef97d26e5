/* tls_choice_test.c - what a handshake selects: certificate, protocol, session. */
#include "foreign.h"

static struct basics b;

/* --- server names ------------------------------------------------------- */

#define NAMES 5
static const char *const names[NAMES] = { NULL, "a.org", "*.a.org", "deep.x.a.org", "*.B.org" };

/* Opens a server with a certificate for each name, with or without a default. */
static weft_tls *
open_names(bool has_default)
{
	weft_tls_cert certs[NAMES];
	weft_tls *tls;
	int n = 0;

	for (int i = has_default ? 0 : 1; i < NAMES; i++) {
		char pem[32], key[32], cn[32];
		struct cert leaf;

		(void)snprintf(pem, sizeof(pem), "name%d.pem", i);
		(void)snprintf(key, sizeof(key), "name%d.key", i);
		(void)snprintf(cn, sizeof(cn), "cert%d", i);
		leaf = cert_leaf(cn,
		                 "DNS:a.org,DNS:*.a.org,DNS:*.x.a.org,"
		                 "DNS:*.b.org,DNS:c.org,IP:10.0.0.1",
		                 &b.ca);
		certs[n++] = (weft_tls_cert){
			names[i],
			cert_file(pem, (const struct cert *[]){ &leaf, NULL }),
			cert_key_file(key, &leaf, NULL),
		};
		cert_drop(&leaf);
	}
	tls = pair_open_tls(&(weft_tls_opts){ .certs = certs, .cert_count = (size_t)n });
	return tls;
}

static const struct {
	const char *host, *subject, *without; /* without a default; NULL: refused */
} choices[] = {
	{ "a.org", "CN = cert1", "CN = cert1" },
	{ "A.Org", "CN = cert1", "CN = cert1" },
	{ "x.a.org", "CN = cert2", "CN = cert2" },
	{ "y.x.a.org", "CN = cert0", NULL },
	{ "deep.x.a.org", "CN = cert3", "CN = cert3" },
	{ "w.b.org", "CN = cert4", "CN = cert4" },
	{ "c.org", "CN = cert0", NULL },
	{ "10.0.0.1", "CN = cert0", NULL },
};

static void
check_choice(weft_tls *server, const char *host, const char *subject)
{
	struct pair pair = { .chance = 1 };
	weft_tls *client = pair_client(b.ca_file);
	weft_tls_info info;

	pair_open(&pair, client, server, host);
	if (subject) {
		pair_shake_hands(&pair);
		CHECK_EQ(weft__session_info(pair.client.session, &info), 0);
		CHECK_STR(info.peer_subject, subject);
	} else {
		pair_handshake(&pair);
		CHECK_EQ(pair.server.rc, WEFT_EPROTO);
		check_words(pair.server.text, "no certificate for the name", host);
		CHECK_EQ(pair.client.rc, WEFT_EPROTO);
		check_words(pair.client.text, "no certificate for this name", host);
	}
	pair_close(&pair);
	weft_tls_close(client);
}

TEST(tls_certificate_is_selected_by_server_name)
{
	weft_tls *with, *without;

	basics_open(&b);
	with = open_names(true);
	without = open_names(false);
	for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
		check_choice(with, choices[i].host, choices[i].subject);
		check_choice(without, choices[i].host, choices[i].without);
	}
	weft_tls_close(with);
	weft_tls_close(without);
	basics_close(&b);
}

TEST(tls_certificate_is_selected_by_the_clients_signature_algorithms)
{
	struct cert rsa;
	weft_tls_cert certs[2];
	struct foreign f;
	struct end end;
	weft_tls *tls;

	basics_open(&b);
	rsa = cert_make(
		&(struct cert_spec){ .cn = "rsa", .san = "DNS:example.org", .key = CERT_RSA },
		&b.ca);
	certs[0] = (weft_tls_cert){ NULL, b.chain_file, b.key_file };
	certs[1] = (weft_tls_cert){ NULL,
		                    cert_file("rsa.pem", (const struct cert *[]){ &rsa, NULL }),
		                    cert_key_file("rsa.key", &rsa, NULL) };
	tls = pair_open_tls(&(weft_tls_opts){ .certs = certs, .cert_count = 2 });
	for (int i = 0; i < 2; i++) {
		foreign_open(&f, WEFT_TLS_CLIENT, NULL);
		CHECK(SSL_CTX_set1_sigalgs_list(f.ctx, i ? "ECDSA+SHA256" : "RSA-PSS+SHA256"));
		CHECK_EQ(weft__session_open(tls, WEFT_TLS_SERVER, NULL, &end.session), 0);
		foreign_handshake(&f, &end);
		CHECK_EQ(end.rc, 0);
		CHECK_EQ(EVP_PKEY_get_id(X509_get0_pubkey(SSL_get0_peer_certificate(f.ssl))),
		         i ? EVP_PKEY_EC : EVP_PKEY_RSA);
		weft__session_close(end.session);
		foreign_close(&f);
	}
	weft_tls_close(tls);
	cert_drop(&rsa);
	basics_close(&b);
}

TEST(tls_keys_of_all_kinds_work)
{
	static const enum cert_key kinds[] = { CERT_EC, CERT_RSA, CERT_ED25519 };
	basics_open(&b);
	for (size_t i = 0; i < 3; i++) {
		struct pair pair = { .chance = 1 };
		struct cert leaf = cert_make(&(struct cert_spec){ .cn = "kind",
		                                                  .san = "DNS:example.org",
		                                                  .key = kinds[i] },
		                             &b.ca);
		weft_tls *tls = pair_server(
			cert_file("kind.pem", (const struct cert *[]){ &leaf, NULL }),
			cert_key_file("kind.key", &leaf, NULL));

		pair_open(&pair, b.client, tls, "example.org");
		pair_shake_hands(&pair);
		pair_close(&pair);
		weft_tls_close(tls);
		cert_drop(&leaf);
		CHECK_EQ(weft_tls_reload(b.client), 0); /* drops its ticket */
	}
	basics_close(&b);
}

/* --- protocols (ALPN) --------------------------------------------------- */

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
check_alpn(const char *const *ours, const char *const *theirs, const char *want)
{
	struct pair pair = { .chance = 1 };
	weft_tls_cert cert = { NULL, b.chain_file, b.key_file };
	weft_tls *server = pair_open_tls(
		&(weft_tls_opts){ .certs = &cert, .cert_count = 1, .alpn = ours });
	weft_tls *client = pair_open_tls(&(weft_tls_opts){ .ca_file = b.ca_file, .alpn = theirs });
	weft_tls_info info;

	pair_open(&pair, client, server, "example.org");
	if (want) {
		pair_shake_hands(&pair);
		CHECK_EQ(weft__session_info(pair.client.session, &info), 0);
		CHECK_STR(info.alpn, want);
		CHECK_EQ(weft__session_info(pair.server.session, &info), 0);
		CHECK_STR(info.alpn, want);
	} else {
		pair_handshake(&pair);
		CHECK_EQ(pair.server.rc, WEFT_EPROTO);
		check_words(pair.server.text, "ALPN", "server");
		CHECK_EQ(pair.client.rc, WEFT_EPROTO);
		check_words(pair.client.text, "ALPN", "client");
		check_words(pair.client.text, "(alert 120)", "client");
	}
	pair_close(&pair);
	weft_tls_close(client);
	weft_tls_close(server);
}

TEST(tls_alpn_protocol_is_selected_in_the_servers_order)
{
	basics_open(&b);
	check_alpn(LIST("h2", "http/1.1"), LIST("http/1.1", "h2"), "h2");
	check_alpn(LIST("http/1.1", "h2"), LIST("h2", "http/1.1"), "http/1.1");
	check_alpn(LIST("h2", "http/1.1"), LIST("x", "http/1.1"), "http/1.1");
	check_alpn(LIST("h2"), NULL, "");
	check_alpn(NULL, LIST("h2"), "");
	check_alpn(LIST("h2"), LIST("h", "h22", "H2"), NULL);
	basics_close(&b);
}

/* --- session resumption ------------------------------------------------- */

/* Connects, and returns whether the session was resumed. */
static bool
is_resumed(weft_tls *client, weft_tls *server, const char *host)
{
	struct pair pair = { .chance = 1 };
	weft_tls_info info, other;

	pair_open(&pair, client, server, host);
	pair_shake_hands(&pair);
	CHECK_EQ(weft__session_info(pair.client.session, &info), 0);
	CHECK_EQ(weft__session_info(pair.server.session, &other), 0);
	CHECK_EQ(info.resumed, other.resumed);
	CHECK_STR(info.peer_subject, "CN = basic");
	pair_send(&pair, pair.client.session, pair.server.session, "hello", 5);
	pair_close(&pair);
	return info.resumed;
}

TEST(tls_sessions_are_resumed_for_the_same_name_only)
{
	basics_open(&b);
	CHECK(!is_resumed(b.client, b.server, "example.org"));
	CHECK(is_resumed(b.client, b.server, "example.org"));
	CHECK(is_resumed(b.client, b.server, "EXAMPLE.org"));
	CHECK(!is_resumed(b.client, b.server, "127.0.0.1"));
	CHECK(is_resumed(b.client, b.server, "127.0.0.1"));
	CHECK(is_resumed(b.client, b.server, "example.org"));
	CHECK_EQ(weft_tls_reload(b.client), 0);
	CHECK(!is_resumed(b.client, b.server, "example.org"));
	CHECK(is_resumed(b.client, b.server, "example.org"));
	CHECK_EQ(weft_tls_reload(b.server), 0);
	CHECK(!is_resumed(b.client, b.server, "example.org"));
	CHECK(is_resumed(b.client, b.server, "example.org"));
	basics_close(&b);
}

TEST(tls_server_without_tickets_resumes_nothing)
{
	weft_tls_cert cert;
	weft_tls *server;

	basics_open(&b);
	cert = (weft_tls_cert){ NULL, b.chain_file, b.key_file };
	server = pair_open_tls(
		&(weft_tls_opts){ .certs = &cert, .cert_count = 1, .no_tickets = true });
	for (int i = 0; i < 3; i++)
		CHECK(!is_resumed(b.client, server, "example.org"));
	weft_tls_close(server);
	basics_close(&b);
}

/* Connects a client for `name` with the session of another connection, or none.  Returns the
 * session that the client has afterwards. */
static SSL_SESSION *
resume_as(weft_tls *server, int version, const char *name, SSL_SESSION *session, bool *resumed)
{
	struct foreign f;
	struct end end;
	char byte;

	foreign_open(&f, WEFT_TLS_CLIENT, NULL);
	CHECK(SSL_CTX_set_max_proto_version(f.ctx, version));
	f.ssl = SSL_new(f.ctx);
	CHECK(f.ssl);
	SSL_set_bio(f.ssl, f.in, f.out);
	SSL_set_connect_state(f.ssl);
	if (name)
		CHECK(SSL_set_tlsext_host_name(f.ssl, name));
	if (session)
		CHECK(SSL_set_session(f.ssl, session));
	SSL_SESSION_free(session);
	CHECK_EQ(weft__session_open(server, WEFT_TLS_SERVER, NULL, &end.session), 0);
	foreign_handshake(&f, &end);
	CHECK_EQ(f.rc, 1);
	CHECK_EQ(end.rc, 0);
	(void)SSL_read(f.ssl, &byte, 1); /* receives the ticket */
	*resumed = SSL_session_reused(f.ssl);
	session = SSL_get1_session(f.ssl);
	SSL_set_shutdown(f.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	weft__session_close(end.session);
	foreign_close(&f);
	return session;
}

TEST(tls_server_does_not_resume_a_session_of_another_name)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	static const struct {
		const char *name;
		bool resumed;
	} steps[] = {
		{ "a.example.org", false },
		{ "a.example.org", true },
		{ "A.Example.org", true },
		{ "b.example.org", false },
		{ "b.example.org", true },
		{ NULL, false },
		{ NULL, true },
		{ "a.example.org", false },
	};

	basics_open(&b);
	for (int v = 0; v < 2; v++) {
		SSL_SESSION *session = NULL;

		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
			bool resumed;

			session = resume_as(b.server, versions[v], steps[i].name, session,
			                    &resumed);
			if (resumed != steps[i].resumed)
				test_fail(__FILE__, __LINE__, "version %d, step %zu", v, i);
		}
		SSL_SESSION_free(session);
	}
	basics_close(&b);
}

/* Sessions of a foreign server that supports only TLS 1.2 are resumed, repeatedly. */
TEST(tls_1_2_sessions_are_resumed)
{
	const struct cert *chain[] = { &b.leaf, NULL };
	struct foreign f;

	basics_open(&b);
	foreign_open(&f, WEFT_TLS_SERVER, chain);
	CHECK(SSL_CTX_set_max_proto_version(f.ctx, TLS1_2_VERSION));
	for (int i = 0; i < 3; i++) {
		weft_tls_info info;
		struct foreign one = { .ctx = f.ctx };
		struct end end;

		CHECK(SSL_CTX_up_ref(f.ctx));
		one.in = BIO_new(BIO_s_mem());
		one.out = BIO_new(BIO_s_mem());
		CHECK_EQ(weft__session_open(b.client, WEFT_TLS_CLIENT, "example.org", &end.session),
		         0);
		foreign_handshake(&one, &end);
		CHECK_EQ(end.rc, 0);
		CHECK_EQ(weft__session_info(end.session, &info), 0);
		CHECK_STR(info.version, "TLSv1.2");
		CHECK_EQ(info.resumed, i > 0);
		weft__session_close(end.session);
		foreign_close(&one);
	}
	foreign_close(&f);
	basics_close(&b);
}

TEST(tls_client_keeps_tickets_of_the_last_64_hosts)
{
	struct cert leaf;
	weft_tls *server;
	char host[32];

	basics_open(&b);
	leaf = cert_leaf("basic", "DNS:*.many.org", &b.ca);
	server = pair_server(cert_file("many.pem", (const struct cert *[]){ &leaf, NULL }),
	                     cert_key_file("many.key", &leaf, NULL));
	for (int i = 0; i < 70; i++) {
		(void)snprintf(host, sizeof(host), "h%d.many.org", i);
		CHECK(!is_resumed(b.client, server, host));
	}
	CHECK(is_resumed(b.client, server, "h69.many.org"));
	CHECK(is_resumed(b.client, server, "h6.many.org"));
	CHECK(!is_resumed(b.client, server, "h5.many.org"));
	weft_tls_close(server);
	cert_drop(&leaf);
	basics_close(&b);
}
