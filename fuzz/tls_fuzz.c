/* tls_fuzz.c - a TLS server or client that receives the input.
 *
 * The first bytes select the role and how the rest is split into pieces; the rest is the input from
 * the peer.  A peer without the keys cannot finish a handshake, so no handshake may ever be done,
 * for any input; and nothing may crash or grow.  A second mode feeds the input into a connection
 * that two sessions have established, in place of a record.
 */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fuzz.h"
#include "net/tls/tls.h"

#define MUST(cond) ORACLE(cond, "check failed: %s", #cond)

static weft_tls *tls;

/* --- a context with a self-signed certificate --------------------------- */

static void
write_pem(char path[], X509 *x509, EVP_PKEY *key)
{
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	MUST(file && PEM_write_X509(file, x509));
	MUST(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL));
	MUST(fclose(file) == 0);
}

static X509 *
make_cert(EVP_PKEY *key)
{
	X509 *x509 = X509_new();
	X509_NAME *name = X509_get_subject_name(x509);
	X509_EXTENSION *san;

	MUST(X509_set_version(x509, X509_VERSION_3));
	MUST(ASN1_INTEGER_set(X509_get_serialNumber(x509), 1));
	MUST(X509_gmtime_adj(X509_getm_notBefore(x509), -86400));
	MUST(X509_gmtime_adj(X509_getm_notAfter(x509), 86400L * 365));
	MUST(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"fuzz", -1,
	                                -1, 0));
	MUST(X509_set_issuer_name(x509, name) && X509_set_pubkey(x509, key));
	san = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:fuzz.example");
	MUST(san && X509_add_ext(x509, san, -1));
	X509_EXTENSION_free(san);
	MUST(X509_sign(x509, key, EVP_sha256()) > 0);
	return x509;
}

static void
open_context(void)
{
	static const char *const alpn[] = { "h2", "http/1.1", NULL };
	char path[] = "/tmp/weft-fuzz-XXXXXX";
	weft_tls_cert cert = { NULL, path, NULL };
	weft_tls_opts opts = { .certs = &cert,
		               .cert_count = 1,
		               .ca_file = path,
		               .require_client_cert = true,
		               .alpn = alpn };
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x509 = make_cert(key);

	write_pem(path, x509, key);
	MUST(weft_tls_open(&opts, &tls) == 0);
	(void)unlink(path);
	X509_free(x509);
	EVP_PKEY_free(key);
}

/* --- pieces ------------------------------------------------------------- */

struct input {
	const uint8_t *data;
	size_t size;
	uint32_t chance; /* random state that selects the sizes of the pieces */
};

static size_t
piece_of(struct input *in)
{
	size_t n;

	in->chance = in->chance * 1664525u + 1013904223u;
	n = 1 + (in->chance >> 16) % (in->chance >> 31 ? 64 : 2048);
	return n < in->size ? n : in->size;
}

/* Feed one piece to the session: by weft__session_feed(), or into weft__session_room(). */
static void
give(struct weft__session *s, struct input *in)
{
	size_t n = piece_of(in);
	void *room;

	if (in->chance & 0x8000) {
		size_t fits = weft__session_room(s, &room);

		n = n < fits ? n : fits;
		if (n > 0)
			memcpy(room, in->data, n);
		if (fits > 0)
			weft__session_came(s, n);
	} else {
		int64_t took = weft__session_feed(s, in->data, n);

		n = took > 0 ? (size_t)took : 0;
	}
	in->data += n;
	in->size -= n;
}

static void
throw_output_away(struct weft__session *s)
{
	const void *bytes;
	size_t size;

	while ((size = weft__session_output(s, &bytes)) > 0) {
		MUST(size <= WEFT__SESSION_OUT_MAX);
		weft__session_sent(s, size);
	}
}

static void
fuzz_handshake(int role, struct input *in)
{
	struct weft__session *s;

	MUST(weft__session_open(tls, role, role == WEFT_TLS_CLIENT ? "fuzz.example" : NULL, &s)
	     == 0);
	do {
		int rc = weft__session_handshake(s);

		MUST(rc < 0); /* never done */
		throw_output_away(s);
		if (rc != WEFT_EAGAIN)
			break;
		if (in->size == 0)
			weft__session_ended(s);
		else
			give(s, in);
	} while (1);
	MUST(weft__session_handshake(s) < 0);
	weft__session_close(s);
}

/* --- after a handshake -------------------------------------------------- */

static void
carry(struct weft__session *from, struct weft__session *to)
{
	const void *bytes;
	size_t size = weft__session_output(from, &bytes);

	if (size == 0)
		return;
	MUST(weft__session_feed(to, bytes, size) == (int64_t)size);
	weft__session_sent(from, size);
}

static void
fuzz_data(int role, struct input *in)
{
	struct weft__session *c, *s, *victim;
	char buf[4096];
	int64_t n;

	MUST(weft__session_open(tls, WEFT_TLS_CLIENT, "fuzz.example", &c) == 0);
	MUST(weft__session_open(tls, WEFT_TLS_SERVER, NULL, &s) == 0);
	for (int i = 0; i < 6; i++) {
		(void)weft__session_handshake(c);
		carry(c, s);
		(void)weft__session_handshake(s);
		carry(s, c);
	}
	victim = role == WEFT_TLS_CLIENT ? c : s;
	MUST(weft__session_handshake(victim) == 0);
	do {
		n = weft__session_read(victim, buf, sizeof(buf));
		MUST(n < 0); /* no data, and no close_notify */
		throw_output_away(victim);
		if (in->size > 0)
			give(victim, in);
		else
			weft__session_ended(victim);
	} while (n == WEFT_EAGAIN);
	weft__session_close(c);
	weft__session_close(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in;
	int role;

	if (!tls)
		open_context();
	if (size < 4)
		return 0;
	role = data[0] & 1 ? WEFT_TLS_SERVER : WEFT_TLS_CLIENT;
	in = (struct input){ data + 4, size - 4,
		             (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3] };
	if (data[0] & 2)
		fuzz_data(role, &in);
	else
		fuzz_handshake(role, &in);
	return 0;
}
