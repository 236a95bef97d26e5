/* certs.h - certificates made for a test, good and bad ones.
 *
 * All of them live in memory and are written as PEM into a folder of the program's own,
 * which is gone at its end.  What goes wrong here ends the program: it is not what is
 * tested.
 */
#ifndef WEFT_TESTS_CERTS_H
#define WEFT_TESTS_CERTS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

enum cert_key { CERT_EC, CERT_RSA, CERT_RSA_OTHER, CERT_RSA_1024, CERT_ED25519 };

/* What is in it; a zeroed field is left out, or as said. */
struct cert_spec {
	const char   *cn;
	const char   *san;    /* "DNS:example.org,IP:127.0.0.1" */
	const char   *raw_san;      /* one DNS name as these bytes, */
	size_t        raw_san_size; /* and so many of them */
	const char   *eku;    /* "serverAuth" */
	const char   *basic;  /* "critical,CA:TRUE,pathlen:0" */
	const char   *usage;  /* "critical,keyCertSign" */
	const char   *digest; /* "SHA256" */
	enum cert_key key;
	int           from_days, to_days; /* from now; -1 and 30 */
	bool          spoiled; /* its signature is wrong */
};

struct cert {
	X509     *x509;
	EVP_PKEY *key;
};

/* Made and signed by `issuer`; by itself if that is NULL. */
struct cert cert_make(const struct cert_spec *spec, const struct cert *issuer);
void        cert_drop(struct cert *cert);

/* Some that are ready. */
struct cert cert_ca(const char *cn);
struct cert cert_leaf(const char *cn, const char *san, const struct cert *issuer);

/* A file in the folder: its path, valid until the program ends.  The certificates in
 * order, up to a NULL; then the key, with a password if there is one. */
const char *cert_file(const char *name, const struct cert *const *certs);
const char *cert_key_file(const char *name, const struct cert *cert,
                          const char *password);
const char *cert_text_file(const char *name, const char *text);

/* The path of a file that need not be there. */
const char *cert_path(const char *name);

#endif
