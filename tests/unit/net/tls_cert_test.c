/* tls_cert_test.c - bad certificates are refused, and otherwise equal good ones are accepted.
 *
 * Each row has two servers (or clients) that differ in one thing.  The peer is OpenSSL without
 * our settings, so that it presents whatever the test gives it.
 */
#include "foreign.h"

#define HOST "example.org"
#define DNS  "DNS:example.org"

/* Which certificate signed the leaf, and which ones are presented with it. */
enum chain {
	BY_CA,
	BY_MIDDLE,        /* an intermediate CA, which is presented, */
	BY_HIDDEN_MIDDLE, /* or not */
	BY_STRANGER,      /* a CA that is not trusted, */
	BY_STRANGER_SHOWN,
	BY_NAMESAKE, /* a CA with the name of a trusted one */
	BY_ITSELF,
	BY_LEAF,        /* a server's certificate */
	BY_NO_SIGNER,   /* an intermediate CA whose key may not sign, */
	BY_OLD_MIDDLE,  /* which has expired, */
	BY_WEAK_MIDDLE, /* which is weak, */
	BY_SHA1_MIDDLE,
	BY_SPOILED_MIDDLE,
	BY_TWO_MIDDLES,    /* one below the other */
	BY_SHORT_MIDDLES,  /* the upper one allows none below */
	BY_CLIENTS_MIDDLE, /* is for clients only */
};

struct scenario {
	struct cert_spec leaf;
	enum chain chain;
	const char *host; /* expected by the client; NULL: example.org */
};

struct row {
	const char *what;
	struct scenario good, bad;
	const char *words; /* in the error text */
};

#define LEAF(...)                                    \
	{                                            \
		.leaf = {.cn = "leaf", __VA_ARGS__ } \
	}
#define CHAIN(how)                                                 \
	{                                                          \
		.leaf = { .cn = "leaf", .san = DNS }, .chain = how \
	}
#define EXPECTED(name, ...)                                         \
	{                                                           \
		.leaf = { .cn = "leaf", __VA_ARGS__ }, .host = name \
	}

static const struct row rows[] = {
	{ "expired", LEAF(.san = DNS, .from_days = -10, .to_days = 1),
	  LEAF(.san = DNS, .from_days = -10, .to_days = -1),
	  "the certificate of \"leaf\" has expired" },
	{ "not yet valid", LEAF(.san = DNS), LEAF(.san = DNS, .from_days = 1, .to_days = 2),
	  "is not valid yet" },
	{ "wrong host", LEAF(.san = DNS), LEAF(.san = "DNS:example.net"),
	  "wrong host: the certificate is for \"example.net\"" },
	{ "subdomain", LEAF(.san = DNS), EXPECTED("www.example.org", .san = DNS), "wrong host" },
	{ "parent", EXPECTED("www.example.org", .san = "DNS:www.example.org"),
	  LEAF(.san = "DNS:www.example.org"), "wrong host" },
	{ "case", LEAF(.san = "DNS:EXAMPLE.ORG"), LEAF(.san = "DNS:EXAMPLE.OR"), "wrong host" },
	{ "one of many", LEAF(.san = "DNS:a.org,DNS:b.org,DNS:c.org,DNS:d.org," DNS),
	  LEAF(.san = "DNS:a.org,DNS:b.org,DNS:c.org,DNS:d.org,DNS:e.org"), ", and others" },
	{ "no issuer that is known", CHAIN(BY_CA), CHAIN(BY_STRANGER),
	  "neither trusted nor sent by the peer: \"Stranger\"" },
	{ "another authority, shown", CHAIN(BY_CA), CHAIN(BY_STRANGER_SHOWN),
	  "\"Stranger\" is an authority that is not trusted" },
	{ "an authority of the same name", CHAIN(BY_CA), CHAIN(BY_NAMESAKE), "certificate" },
	{ "self-signed", CHAIN(BY_CA), CHAIN(BY_ITSELF), "is self-signed" },
	{ "missing intermediate", CHAIN(BY_MIDDLE), CHAIN(BY_HIDDEN_MIDDLE),
	  "neither trusted nor sent by the peer: \"Middle\"" },
	{ "CA:FALSE", CHAIN(BY_MIDDLE), CHAIN(BY_LEAF),
	  "\"Middle\" is not allowed to sign certificates" },
	{ "no keyCertSign", CHAIN(BY_MIDDLE), CHAIN(BY_NO_SIGNER),
	  "\"Middle\" is not allowed to sign certificates" },
	{ "expired intermediate", CHAIN(BY_MIDDLE), CHAIN(BY_OLD_MIDDLE),
	  "\"Middle\" has expired" },
	{ "weak intermediate", CHAIN(BY_MIDDLE), CHAIN(BY_WEAK_MIDDLE),
	  "\"Middle\" has a key that is too weak" },
	{ "SHA-1 intermediate", CHAIN(BY_MIDDLE), CHAIN(BY_SHA1_MIDDLE),
	  "\"Middle\" is signed by a digest that is too weak" },
	{ "wrong signature above", CHAIN(BY_MIDDLE), CHAIN(BY_SPOILED_MIDDLE), "wrong signature" },
	{ "path length", CHAIN(BY_TWO_MIDDLES), CHAIN(BY_SHORT_MIDDLES),
	  "has a longer chain below it than it allows" },
	{ "intermediate for clients", CHAIN(BY_MIDDLE), CHAIN(BY_CLIENTS_MIDDLE),
	  "is not meant for servers" },
	{ "wrong signature", LEAF(.san = DNS), LEAF(.san = DNS, .spoiled = 1),
	  "has a wrong signature" },
	{ "wildcard depth", EXPECTED("x.a.org", .san = "DNS:*.a.org"),
	  EXPECTED("x.y.a.org", .san = "DNS:*.a.org"), "wrong host" },
	{ "wildcard and its parent", EXPECTED("x.a.org", .san = "DNS:*.a.org"),
	  EXPECTED("a.org", .san = "DNS:*.a.org"), "wrong host" },
	{ "wildcard in the middle", EXPECTED("a.x.b.org", .san = "DNS:a.x.b.org"),
	  EXPECTED("a.x.b.org", .san = "DNS:a.*.b.org"), "wrong host" },
	{ "partial wildcard, before", EXPECTED("www.a.org", .san = "DNS:*.a.org"),
	  EXPECTED("www.a.org", .san = "DNS:w*.a.org"), "wrong host" },
	{ "partial wildcard, behind", EXPECTED("www.a.org", .san = "DNS:*.a.org"),
	  EXPECTED("www.a.org", .san = "DNS:*w.a.org"), "wrong host" },
	{ "two wildcards", EXPECTED("x.y.a.org", .san = "DNS:*.y.a.org"),
	  EXPECTED("x.y.a.org", .san = "DNS:*.*.a.org"), "wrong host" },
	{ "wildcard of a top level", EXPECTED("x.a.org", .san = "DNS:*.a.org"),
	  EXPECTED("a.org", .san = "DNS:*.org"), "wrong host" },
	{ "wildcard alone", LEAF(.san = DNS), LEAF(.san = "DNS:*"), "wrong host" },
	{ "wildcard for an address", EXPECTED("10.0.0.1", .san = "IP:10.0.0.1"),
	  EXPECTED("10.0.0.1", .san = "DNS:*.0.0.1"), "wrong host" },
	{ "address as a name", EXPECTED("10.0.0.1", .san = "IP:10.0.0.1"),
	  EXPECTED("10.0.0.1", .san = "DNS:10.0.0.1"), "wrong host" },
	{ "wrong address", EXPECTED("10.0.0.1", .san = "IP:10.0.0.1"),
	  EXPECTED("10.0.0.1", .san = "IP:10.0.0.2"), "for the address 10.0.0.2" },
	{ "wrong address of version 6", EXPECTED("::1", .san = "IP:::1"),
	  EXPECTED("::1", .san = "IP:::2"), "the address 0000:0000:0000:0000:0000:0000:0000:0002" },
	{ "address in another version", EXPECTED("10.0.0.1", .san = "IP:10.0.0.1"),
	  EXPECTED("10.0.0.1", .san = "IP:::ffff:10.0.0.1"), "wrong host" },
	{ "NUL in a name", LEAF(.raw_san = HOST, .raw_san_size = 11),
	  LEAF(.raw_san = HOST "\0.evil.net", .raw_san_size = 21), "\"example.org?.evil.net\"" },
	{ "NUL at the end", LEAF(.raw_san = HOST, .raw_san_size = 11),
	  LEAF(.raw_san = HOST, .raw_san_size = 12), "\"example.org?\"" },
	{ "dot in front", EXPECTED("www.example.org", .san = "DNS:*.example.org"),
	  EXPECTED("www.example.org", .raw_san = ".example.org", .raw_san_size = 12),
	  "wrong host" },
	{ "empty name", LEAF(.san = DNS), LEAF(.raw_san = "", .raw_san_size = 0), "wrong host" },
	{ "common name alone", LEAF(.san = DNS), { .leaf = { .cn = HOST } }, "no host at all" },
	{ "common name besides others",
	  LEAF(.san = "email:a@b.org," DNS),
	  { .leaf = { .cn = HOST, .san = "email:a@b.org" } },
	  "no host at all" },
	{ "meant for clients", LEAF(.san = DNS, .eku = "serverAuth"),
	  LEAF(.san = DNS, .eku = "clientAuth"), "is not meant for servers" },
	{ "meant for mail", LEAF(.san = DNS, .eku = "clientAuth,serverAuth"),
	  LEAF(.san = DNS, .eku = "emailProtection"), "is not meant for servers" },
	{ "weak key", LEAF(.san = DNS, .key = CERT_RSA), LEAF(.san = DNS, .key = CERT_RSA_1024),
	  "has a key that is too weak" },
	{ "SHA-1", LEAF(.san = DNS, .digest = "SHA384"), LEAF(.san = DNS, .digest = "SHA1"),
	  "is signed by a digest that is too weak" },
	{ "MD5", LEAF(.san = DNS, .digest = "SHA512"), LEAF(.san = DNS, .digest = "MD5"),
	  "is signed by a digest that is too weak" },
	{ "strange letters in a name", LEAF(.san = DNS),
	  LEAF(.raw_san = "\"\x1b[2J\xff", .raw_san_size = 6), "\"??[2J?\"" },
};

/* --- the signers -------------------------------------------------------- */

static struct cert ca, stranger, namesake, middle, middle_leaf, no_signer, old_middle, weak_middle,
	sha1_middle, spoiled_middle, below, short_middle, below_short, clients_middle;

#define CA_BASIC "critical,CA:TRUE"
#define CA_USAGE "critical,keyCertSign"

static struct cert
make_middle(struct cert_spec spec, const struct cert *issuer)
{
	spec.cn = spec.cn ? spec.cn : "Middle";
	spec.basic = spec.basic ? spec.basic : CA_BASIC;
	spec.usage = spec.usage ? spec.usage : CA_USAGE;
	return cert_make(&spec, issuer);
}

static struct cert *const authorities[] = {
	&ca,        &stranger,     &namesake,    &middle,         &middle_leaf,
	&no_signer, &old_middle,   &weak_middle, &sha1_middle,    &spoiled_middle,
	&below,     &short_middle, &below_short, &clients_middle,
};

static void
make_authorities(void)
{
	ca = make_middle((struct cert_spec){ .cn = "CA", .key = CERT_RSA_OTHER },
	                 NULL); /* RSA for MD5, because EC has no MD5 signatures */
	stranger = cert_ca("Stranger");
	namesake = cert_ca("CA");
	middle = make_middle((struct cert_spec){ 0 }, &ca);
	middle_leaf = make_middle((struct cert_spec){ .basic = "CA:FALSE" }, &ca);
	no_signer = make_middle((struct cert_spec){ .usage = "critical,digitalSignature" }, &ca);
	old_middle = make_middle((struct cert_spec){ .from_days = -9, .to_days = -1 }, &ca);
	weak_middle = make_middle((struct cert_spec){ .key = CERT_RSA_1024 }, &ca);
	sha1_middle = make_middle((struct cert_spec){ .digest = "SHA1" }, &ca);
	spoiled_middle = make_middle((struct cert_spec){ .spoiled = 1 }, &ca);
	below = make_middle((struct cert_spec){ .cn = "Below" }, &middle);
	short_middle = make_middle((struct cert_spec){ .basic = CA_BASIC ",pathlen:0" }, &ca);
	below_short = make_middle((struct cert_spec){ .cn = "Below" }, &short_middle);
	clients_middle = make_middle((struct cert_spec){ .eku = "clientAuth" }, &ca);
}

static void
drop_authorities(void)
{
	for (size_t i = 0; i < sizeof(authorities) / sizeof(authorities[0]); i++)
		cert_drop(authorities[i]);
}

/* The issuer, and up to two certificates that are presented. */
struct above {
	const struct cert *issuer, *shown[2];
};

static const struct above aboves[] = {
	[BY_CA] = { &ca, { NULL } },
	[BY_MIDDLE] = { &middle, { &middle } },
	[BY_HIDDEN_MIDDLE] = { &middle, { NULL } },
	[BY_STRANGER] = { &stranger, { NULL } },
	[BY_STRANGER_SHOWN] = { &stranger, { &stranger } },
	[BY_NAMESAKE] = { &namesake, { &namesake } },
	[BY_ITSELF] = { NULL, { NULL } },
	[BY_LEAF] = { &middle_leaf, { &middle_leaf } },
	[BY_NO_SIGNER] = { &no_signer, { &no_signer } },
	[BY_OLD_MIDDLE] = { &old_middle, { &old_middle } },
	[BY_WEAK_MIDDLE] = { &weak_middle, { &weak_middle } },
	[BY_SHA1_MIDDLE] = { &sha1_middle, { &sha1_middle } },
	[BY_SPOILED_MIDDLE] = { &spoiled_middle, { &spoiled_middle } },
	[BY_TWO_MIDDLES] = { &below, { &below, &middle } },
	[BY_SHORT_MIDDLES] = { &below_short, { &below_short, &short_middle } },
	[BY_CLIENTS_MIDDLE] = { &clients_middle, { &clients_middle } },
};

/* --- handshakes --------------------------------------------------------- */

/* Runs a handshake between a session of `tls` and a foreign peer with this certificate. */
static void
meet(const struct scenario *scenario, weft_tls *tls, int role, struct end *end)
{
	const struct above *above = &aboves[scenario->chain];
	struct cert leaf = cert_make(&scenario->leaf, above->issuer);
	const struct cert *chain[] = { &leaf, above->shown[0], above->shown[1], NULL };
	const char *host = scenario->host ? scenario->host : HOST;
	bool client = role == WEFT_TLS_CLIENT;
	struct foreign peer;

	foreign_open(&peer, client ? WEFT_TLS_SERVER : WEFT_TLS_CLIENT, chain);
	CHECK_EQ(weft__session_open(tls, role, client ? host : NULL, &end->session), 0);
	end->text[0] = '\0';
	foreign_handshake(&peer, end);
	foreign_close(&peer);
	weft__session_close(end->session);
	cert_drop(&leaf);
}

TEST(tls_bad_server_certificates_are_refused_and_good_ones_accepted)
{
	struct end end;
	weft_tls *tls;

	make_authorities();
	tls = pair_client(cert_file("ca.pem", (const struct cert *[]){ &ca, NULL }));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		meet(&rows[i].good, tls, WEFT_TLS_CLIENT, &end);
		if (end.rc != 0)
			test_fail(__FILE__, __LINE__, "%s, the good one: %s", rows[i].what,
			          end.text);
		meet(&rows[i].bad, tls, WEFT_TLS_CLIENT, &end);
		if (end.rc != WEFT_ECERT)
			test_fail(__FILE__, __LINE__, "%s: %d, %s", rows[i].what, end.rc, end.text);
		check_words(end.text, rows[i].words, rows[i].what);
		printf("%-28s %s\n", rows[i].what, end.text);
	}
	weft_tls_close(tls);
	drop_authorities();
}

TEST(tls_bad_server_certificates_are_accepted_only_if_requested)
{
	struct end end;
	weft_tls *tls = pair_open_tls(&(weft_tls_opts){ .dangerously_accept_any_peer = true });

	make_authorities();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].bad.leaf.key == CERT_RSA_1024)
			continue; /* too weak for any handshake */
		meet(&rows[i].bad, tls, WEFT_TLS_CLIENT, &end);
		if (end.rc != 0)
			test_fail(__FILE__, __LINE__, "%s: %s", rows[i].what, end.text);
	}
	weft_tls_close(tls);
	drop_authorities();
}

TEST(tls_system_authorities_do_not_trust_our_ca)
{
	struct scenario scenario = LEAF(.san = DNS);
	struct end end;
	weft_tls *tls = pair_open_tls(NULL);

	make_authorities();
	meet(&scenario, tls, WEFT_TLS_CLIENT, &end);
	CHECK_EQ(end.rc, WEFT_ECERT);
	check_words(end.text, "neither trusted nor sent by the peer: \"CA\"", "system");
	weft_tls_close(tls);
	drop_authorities();
}

/* --- clients ------------------------------------------------------------ */

static const struct row client_rows[] = {
	{ "expired client", LEAF(.eku = "clientAuth"),
	  LEAF(.eku = "clientAuth", .from_days = -10, .to_days = -1),
	  "the certificate of \"leaf\" has expired" },
	{ "client of another authority", CHAIN(BY_CA), CHAIN(BY_STRANGER),
	  "neither trusted nor sent by the peer: \"Stranger\"" },
	{ "self-signed client", CHAIN(BY_MIDDLE), CHAIN(BY_ITSELF), "is self-signed" },
	{ "client meant for servers", LEAF(.eku = "serverAuth,clientAuth"),
	  LEAF(.eku = "serverAuth"), "is not meant for clients" },
	{ "weak client", LEAF(.key = CERT_RSA), LEAF(.key = CERT_RSA_1024), "too weak" },
};

TEST(tls_bad_client_certificates_are_refused_and_good_ones_accepted)
{
	struct end end;
	struct cert own;
	weft_tls_cert cert;
	weft_tls *tls;

	make_authorities();
	own = cert_leaf("server", DNS, &ca);
	cert.name = NULL;
	cert.chain_file = cert_file("server.pem", (const struct cert *[]){ &own, NULL });
	cert.key_file = cert_key_file("server.key", &own, NULL);
	tls = pair_open_tls(&(weft_tls_opts){
		.certs = &cert,
		.cert_count = 1,
		.require_client_cert = true,
		.ca_file = cert_file("ca.pem", (const struct cert *[]){ &ca, NULL }) });
	for (size_t i = 0; i < sizeof(client_rows) / sizeof(client_rows[0]); i++) {
		const struct row *row = &client_rows[i];

		meet(&row->good, tls, WEFT_TLS_SERVER, &end);
		if (end.rc != 0)
			test_fail(__FILE__, __LINE__, "%s, the good one: %s", row->what, end.text);
		meet(&row->bad, tls, WEFT_TLS_SERVER, &end);
		if (end.rc != WEFT_ECERT)
			test_fail(__FILE__, __LINE__, "%s: %d, %s", row->what, end.rc, end.text);
		check_words(end.text, row->words, row->what);
	}
	weft_tls_close(tls);
	cert_drop(&own);
	drop_authorities();
}
