/* tls_file_test.c - certificate and key files: good, bad, and replaced ones. */
#include "base/sys.h"
#include "pair.h"

static struct basics b;

static const char *
pem_of(const char *name, const struct cert *cert)
{
	return cert_file(name, (const struct cert *[]){ cert, NULL });
}

static int
open_cert(const char *chain_file, const char *key_file)
{
	weft_tls_cert cert = { NULL, chain_file, key_file };
	weft_tls *tls = NULL;
	int rc = weft_tls_open(&(weft_tls_opts){ .certs = &cert, .cert_count = 1 }, &tls);

	CHECK((rc == 0) == (tls != NULL));
	weft_tls_close(tls);
	return rc;
}

static void
refused(int rc, int want, const char *file, const char *words)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "%s", weft_detail());
	CHECK_EQ(rc, want);
	check_words(text, file, "file");
	check_words(text, words, file);
}

TEST(tls_errors_for_bad_files_name_the_file)
{
	struct cert other, small, old_digest;
	const char *path;

	basics_open(&b);
	other = cert_leaf("other", "DNS:example.org", &b.ca);
	refused(open_cert(cert_path("none.pem"), b.key_file), WEFT_ENOENT, "none.pem",
	        "no such file");
	refused(open_cert(b.chain_file, cert_path("none.key")), WEFT_ENOENT, "none.key",
	        "no such file");
	refused(open_cert(b.chain_file, cert_key_file("other.key", &other, NULL)), WEFT_EINVAL,
	        "other.key", "the key does not match the first certificate");
	refused(open_cert(b.chain_file, cert_key_file("locked.key", &b.leaf, "secret")),
	        WEFT_EINVAL, "locked.key", "password");
	refused(open_cert(b.key_file, b.key_file), WEFT_EINVAL, "basic-key.pem",
	        "no certificate in PEM format");
	refused(open_cert(b.chain_file, b.chain_file), WEFT_EINVAL, "basic.pem",
	        "no valid private key in PEM format");
	refused(open_cert(b.chain_file, NULL), WEFT_EINVAL, "basic.pem", "no valid private key");
	path = cert_text_file("empty.pem", "");
	refused(open_cert(path, b.key_file), WEFT_EINVAL, path, "no certificate");
	path = cert_text_file("broken.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n"
	                                    "-----END CERTIFICATE-----\n");
	refused(open_cert(path, b.key_file), WEFT_EINVAL, path, "malformed certificate");
	path = cert_text_file("broken.key", "-----BEGIN PRIVATE KEY-----\nMIIB\n"
	                                    "-----END PRIVATE KEY-----\n");
	refused(open_cert(b.chain_file, path), WEFT_EINVAL, path,
	        "no valid private key in PEM format");
	small = cert_make(&(struct cert_spec){ .cn = "small",
	                                       .san = "DNS:example.org",
	                                       .key = CERT_RSA_1024 },
	                  &b.ca);
	refused(open_cert(pem_of("small.pem", &small), cert_key_file("small.key", &small, NULL)),
	        WEFT_EINVAL, "small.pem", "too small");
	old_digest = cert_make(
		&(struct cert_spec){ .cn = "sha1", .san = "DNS:example.org", .digest = "SHA1" },
		&b.ca);
	refused(open_cert(pem_of("sha1.pem", &old_digest),
	                  cert_key_file("sha1.key", &old_digest, NULL)),
	        WEFT_EINVAL, "sha1.pem", "too weak");
	cert_drop(&small);
	cert_drop(&old_digest);
	cert_drop(&other);
	basics_close(&b);
}

TEST(tls_errors_for_bad_ca_files_name_the_file)
{
	weft_tls *tls;
	weft_tls_opts opts = { .ca_file = cert_path("none-ca.pem") };

	refused(weft_tls_open(&opts, &tls), WEFT_ENOENT, "none-ca.pem", "no such file");
	opts.ca_file = cert_text_file("text-ca.pem", "hello\n");
	refused(weft_tls_open(&opts, &tls), WEFT_EINVAL, "text-ca.pem", "no certificate");
}

/* --- a sys table in which some calls fail ------------------------------- */

static struct weft__sys lame;
static int lame_open_error;
static int64_t lame_read_error;
static int lame_reads;

static int
lame_file_open(const char *path, int flags, mode_t mode)
{
	return lame_open_error ? lame_open_error : weft__sys_real.file_open(path, flags, mode);
}

/* Reads one byte at a time, with EINTR every other time, until it fails. */
static int64_t
lame_file_read(int fd, void *buf, size_t size, uint64_t offset)
{
	if (lame_reads++ % 2)
		return WEFT_EINTR;
	if (lame_read_error && offset > 10)
		return lame_read_error;
	return weft__sys_real.file_read(fd, buf, size > 1 ? 1 : size, offset);
}

TEST(tls_errors_for_unreadable_files_name_the_file)
{
	const struct weft__sys *before = weft__sys;

	basics_open(&b);
	lame = *before;
	lame.file_open = lame_file_open;
	lame.file_read = lame_file_read;
	weft__sys = &lame;
	CHECK_EQ(open_cert(b.chain_file, b.key_file), 0);
	lame_open_error = -EACCES;
	refused(open_cert(b.chain_file, b.key_file), WEFT_EPERM, "basic.pem", "permission denied");
	lame_open_error = 0;
	lame_read_error = -EIO;
	refused(open_cert(b.chain_file, b.key_file), -EIO, "basic.pem", "input/output error");
	lame_read_error = 0;
	weft__sys = before;
	basics_close(&b);
}

TEST(tls_options_are_checked)
{
	static const char *const empty[] = { "h2", "", NULL };
	static char long_name[300];
	const char *const longer[] = { long_name, NULL };
	weft_tls_cert cert = { 0 };
	weft_tls_opts opts[] = {
		{ .version_min = 0x0302 },
		{ .version_min = 0x0305 },
		{ .cert_count = 1 },
		{ .certs = &cert, .cert_count = 1 },
		{ .require_client_cert = true },
		{ .alpn = empty },
		{ .alpn = longer },
	};
	weft_tls *tls;

	memset(long_name, 'a', sizeof(long_name) - 1);
	for (size_t i = 0; i < sizeof(opts) / sizeof(opts[0]); i++)
		CHECK_EQ(weft_tls_open(&opts[i], &tls), WEFT_EINVAL);
	CHECK_MISUSE(weft_tls_open(NULL, NULL), WEFT_EINVAL);
	CHECK_MISUSE(weft_tls_reload(NULL), WEFT_EINVAL);
	weft_tls_close(NULL);
	CHECK_EQ(weft_tls_open(NULL, &tls), 0);
	CHECK_EQ(weft_tls_reload(tls), 0);
	weft_tls_close(tls);
}

TEST(tls_own_expired_certificate_is_reported_and_used)
{
	struct cert old;

	basics_open(&b);
	old = cert_make(
		&(struct cert_spec){
			.cn = "old", .san = "DNS:example.org", .from_days = -20, .to_days = -10 },
		&b.ca);
	CHECK_EQ(open_cert(pem_of("old.pem", &old), cert_key_file("old.key", &old, NULL)), 0);
	check_words(weft_detail(), "old.pem", "file");
	check_words(weft_detail(), "has expired", "words");
	cert_drop(&old);
	basics_close(&b);
}

TEST(tls_two_certificates_for_one_name_need_different_key_types)
{
	struct cert rsa;
	weft_tls_cert certs[2];
	weft_tls_opts opts = { .certs = certs, .cert_count = 2 };
	weft_tls *tls;

	basics_open(&b);
	rsa = cert_make(
		&(struct cert_spec){ .cn = "rsa", .san = "DNS:example.org", .key = CERT_RSA },
		&b.ca);
	certs[0] = (weft_tls_cert){ NULL, b.chain_file, b.key_file };
	certs[1] = (weft_tls_cert){ NULL, pem_of("rsa.pem", &rsa),
		                    cert_key_file("rsa.key", &rsa, NULL) };
	CHECK_EQ(weft_tls_open(&opts, &tls), 0);
	weft_tls_close(tls);
	certs[1] = certs[0];
	refused(weft_tls_open(&opts, &tls), WEFT_EINVAL, "basic.pem",
	        "a second certificate for the same name");
	cert_drop(&rsa);
	basics_close(&b);
}

/* --- reloading ---------------------------------------------------------- */

static void
check_subject(struct pair *pair, const char *want)
{
	weft_tls_info info;

	CHECK_EQ(weft__session_info(pair->client.session, &info), 0);
	CHECK_STR(info.peer_subject, want);
}

TEST(tls_reload_affects_new_handshakes_only)
{
	struct pair pair = { .chance = 1 }, half = { .chance = 1 }, next = { .chance = 1 };
	struct cert fresh;

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	pair_shake_hands(&pair);
	pair_open(&half, b.client, b.server, "example.org");
	CHECK_EQ(weft__session_handshake(half.client.session), WEFT_EAGAIN);
	(void)pair_carry(&half, half.client.session, half.server.session);

	fresh = cert_leaf("fresh", "DNS:example.org", &b.ca);
	(void)pem_of("basic.pem", &fresh);
	refused(weft_tls_reload(b.server), WEFT_EINVAL, "basic-key.pem",
	        "the key does not match the first certificate");
	(void)cert_key_file("basic-key.pem", &fresh, NULL);
	CHECK_EQ(weft_tls_reload(b.server), 0);

	pair_open(&next, b.client, b.server, "example.org");
	pair_shake_hands(&next);
	check_subject(&next, "CN = fresh");
	pair_shake_hands(&half);
	check_subject(&half, "CN = basic");
	check_subject(&pair, "CN = basic");
	pair_send(&pair, pair.client.session, pair.server.session, "on", 2);
	pair_close(&pair);
	pair_close(&half);
	pair_close(&next);
	cert_drop(&fresh);
	basics_close(&b);
}

TEST(tls_sessions_outlive_their_context)
{
	struct pair pair = { .chance = 1 };

	basics_open(&b);
	pair_open(&pair, b.client, b.server, "example.org");
	basics_close(&b);
	pair_shake_hands(&pair);
	pair_send(&pair, pair.server.session, pair.client.session, "on", 2);
	pair_close(&pair);
}
