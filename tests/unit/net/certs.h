/* certs.h - certificates made for a test, good and bad ones.
 *
 * They are kept in memory and written as PEM files to a temporary folder, which is removed when
 * the program exits.  A failure in here aborts the program, because this code is not what is
 * tested.
 */
#ifndef WEFT_TESTS_CERTS_H
#define WEFT_TESTS_CERTS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

enum cert_key { CERT_EC, CERT_RSA, CERT_RSA_OTHER, CERT_RSA_1024, CERT_ED25519 };

/* The contents of a certificate.  A zeroed member is left out, or has the default given here. */
struct cert_spec {
	const char   *cn;
	const char   *san;    /* "DNS:example.org,IP:127.0.0.1" */
	const char   *raw_san;      /* one DNS name, as raw bytes, */
	size_t        raw_san_size; /* and their number */
	const char   *eku;    /* "serverAuth" */
	const char   *basic;  /* "critical,CA:TRUE,pathlen:0" */
	const char   *usage;  /* "critical,keyCertSign" */
	const char   *digest; /* "SHA256" */
	enum cert_key key;
	int           from_days, to_days; /* relative to now; defaults: -1 and 30 */
	bool          spoiled; /* the signature is wrong */
};

struct cert {
	X509     *x509;
	EVP_PKEY *key;
};

/* Makes a certificate that `issuer` signs.  It is self-signed if `issuer` is NULL. */
struct cert cert_make(const struct cert_spec *spec, const struct cert *issuer);
void        cert_drop(struct cert *cert);

/* Make a CA and a leaf with the usual contents. */
struct cert cert_ca(const char *cn);
struct cert cert_leaf(const char *cn, const char *san, const struct cert *issuer);

/* Write a file into the folder and return its path, which stays valid until the program exits:
 * the certificates in order, up to a NULL; the key, encrypted if `password` is not NULL; a
 * text. */
const char *cert_file(const char *name, const struct cert *const *certs);
const char *cert_key_file(const char *name, const struct cert *cert,
                          const char *password);
const char *cert_text_file(const char *name, const char *text);

/* The path of a file in the folder.  The file need not exist. */
const char *cert_path(const char *name);

#endif
