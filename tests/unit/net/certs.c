/* certs.c - certificates made for a test. */
#include <dirent.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "certs.h"

#define PATHS_MAX 512
#define DAY       86400L

static char folder[256];
static char *paths[PATHS_MAX];
static size_t path_count;
static EVP_PKEY *rsa_keys[3]; /* cached, because they take long to make */

static void
must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "certs: %s failed\n", what);
	ERR_print_errors_fp(stderr);
	abort();
}

/* --- keys --------------------------------------------------------------- */

static EVP_PKEY *
rsa_key(int at, unsigned bits)
{
	if (!rsa_keys[at])
		rsa_keys[at] = EVP_RSA_gen(bits);
	must(rsa_keys[at], "RSA");
	EVP_PKEY_up_ref(rsa_keys[at]);
	return rsa_keys[at];
}

static EVP_PKEY *
make_key(enum cert_key kind)
{
	switch (kind) {
	case CERT_RSA:
		return rsa_key(0, 2048);
	case CERT_RSA_OTHER:
		return rsa_key(1, 2048);
	case CERT_RSA_1024:
		return rsa_key(2, 1024);
	case CERT_ED25519:
		return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	default:
		return EVP_EC_gen("P-256");
	}
}

/* --- certificates ------------------------------------------------------- */

static void
add_extension(X509 *x509, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX ctx;

	if (!value)
		return;
	X509V3_set_ctx(&ctx, issuer, x509, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	must(extension && X509_add_ext(x509, extension, -1), value);
	X509_EXTENSION_free(extension);
}

static void
add_raw_san(X509 *x509, const char *bytes, size_t size)
{
	GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();

	must(names && name && text && ASN1_STRING_set(text, bytes, (int)size), "name");
	GENERAL_NAME_set0_value(name, GEN_DNS, text);
	must(sk_GENERAL_NAME_push(names, name) > 0, "names");
	must(X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, 0) > 0, "raw name");
	GENERAL_NAMES_free(names);
}

static void
fill(X509 *x509, const struct cert_spec *spec, X509 *issuer)
{
	static long serial;
	X509_NAME *name = X509_get_subject_name(x509);
	int from = spec->from_days ? spec->from_days : -1;
	int to = spec->to_days ? spec->to_days : 30;

	must(X509_set_version(x509, X509_VERSION_3), "version");
	must(ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial), "serial");
	must(X509_gmtime_adj(X509_getm_notBefore(x509), from * DAY) != NULL, "date");
	must(X509_gmtime_adj(X509_getm_notAfter(x509), to * DAY) != NULL, "date");
	must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)spec->cn,
	                                -1, -1, 0),
	     "subject");
	must(X509_set_issuer_name(x509, X509_get_subject_name(issuer)), "issuer");
	add_extension(x509, issuer, NID_basic_constraints, spec->basic);
	add_extension(x509, issuer, NID_key_usage, spec->usage);
	add_extension(x509, issuer, NID_ext_key_usage, spec->eku);
	add_extension(x509, issuer, NID_subject_key_identifier, "hash");
	if (issuer != x509)
		add_extension(x509, issuer, NID_authority_key_identifier, "keyid");
	add_extension(x509, issuer, NID_subject_alt_name, spec->san);
	if (spec->raw_san)
		add_raw_san(x509, spec->raw_san, spec->raw_san_size);
}

/* Flips one bit of the signature. */
static void
spoil(X509 *x509)
{
	const ASN1_BIT_STRING *signature;

	X509_get0_signature(&signature, NULL, x509);
	((unsigned char *)(uintptr_t)ASN1_STRING_get0_data(
		signature))[ASN1_STRING_length(signature) - 1] ^= 1;
}

struct cert
cert_make(const struct cert_spec *spec, const struct cert *issuer)
{
	struct cert cert = { X509_new(), make_key(spec->key) };
	EVP_PKEY *key = issuer ? issuer->key : cert.key;
	const EVP_MD *digest = NULL;

	must(cert.x509 && cert.key, "memory");
	must(X509_set_pubkey(cert.x509, cert.key), "key");
	fill(cert.x509, spec, issuer ? issuer->x509 : cert.x509);
	if (EVP_PKEY_get_id(key) != EVP_PKEY_ED25519)
		digest = EVP_get_digestbyname(spec->digest ? spec->digest : "SHA256");
	must(X509_sign(cert.x509, key, digest) > 0, "signature");
	if (spec->spoiled)
		spoil(cert.x509);
	return cert;
}

void
cert_drop(struct cert *cert)
{
	X509_free(cert->x509);
	EVP_PKEY_free(cert->key);
	*cert = (struct cert){ NULL, NULL };
}

struct cert
cert_ca(const char *cn)
{
	return cert_make(&(struct cert_spec){ .cn = cn,
	                                      .basic = "critical,CA:TRUE",
	                                      .usage = "critical,keyCertSign" },
	                 NULL);
}

struct cert
cert_leaf(const char *cn, const char *san, const struct cert *issuer)
{
	return cert_make(&(struct cert_spec){ .cn = cn, .san = san }, issuer);
}

/* --- files -------------------------------------------------------------- */

static void
remove_folder(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	char path[600];

	for (size_t i = 0; i < path_count; i++)
		free(paths[i]);
	for (size_t i = 0; i < 3; i++)
		EVP_PKEY_free(rsa_keys[i]);
	while (dir && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		(void)unlink(path);
	}
	if (dir)
		closedir(dir);
	(void)rmdir(folder);
}

const char *
cert_path(const char *name)
{
	const char *tmp = getenv("TMPDIR");
	char path[600];

	if (!folder[0]) {
		(void)snprintf(folder, sizeof(folder), "%s/weft-tls-XXXXXX", tmp ? tmp : "/tmp");
		must(mkdtemp(folder), "mkdtemp");
		must(atexit(remove_folder) == 0, "atexit");
	}
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (size_t i = 0; i < path_count; i++)
		if (strcmp(paths[i], path) == 0)
			return paths[i];
	must(path_count < PATHS_MAX, "too many files");
	paths[path_count] = strdup(path);
	return paths[path_count++];
}

static FILE *
open_file(const char *path)
{
	FILE *file = fopen(path, "w");

	must(file != NULL, path);
	return file;
}

const char *
cert_file(const char *name, const struct cert *const *certs)
{
	const char *path = cert_path(name);
	FILE *file = open_file(path);

	for (; *certs; certs++)
		must(PEM_write_X509(file, (*certs)->x509), path);
	must(fclose(file) == 0, path);
	return path;
}

const char *
cert_key_file(const char *name, const struct cert *cert, const char *password)
{
	const char *path = cert_path(name);
	FILE *file = open_file(path);

	must(PEM_write_PrivateKey(file, cert->key, password ? EVP_aes_128_cbc() : NULL,
	                          (const unsigned char *)password,
	                          password ? (int)strlen(password) : 0, NULL, NULL),
	     path);
	must(fclose(file) == 0, path);
	return path;
}

const char *
cert_text_file(const char *name, const char *text)
{
	const char *path = cert_path(name);
	FILE *file = open_file(path);

	must(fputs(text, file) >= 0, path);
	must(fclose(file) == 0, path);
	return path;
}
