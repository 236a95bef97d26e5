/* tls_file.c - certificates and keys from PEM files.
 *
 * The files are read here, through the sys table, and only parsed by OpenSSL.  The buffer may
 * have held a key, so it is wiped before it is freed.  There is no prompt for a password; a key
 * that has one is refused.
 */
#include <fcntl.h>
#include <string.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include "net/tls/tls_set.h"

#define FILE_MAX ((size_t)16 << 20)
#define READ_MIN ((size_t)16 << 10)

struct content {
	char *bytes;
	size_t size; /* bytes that were read */
	size_t room;
};

static int
fail_file(int error, const char *path, const char *what)
{
	return weft_fail(error, "weft_tls: %s: %s", path, what);
}

static int
fail_read(int error, const char *path)
{
	if (error == -EACCES || error == -EPERM)
		return fail_file(WEFT_EPERM, path, "permission denied");
	if (error == WEFT_ENOENT)
		return fail_file(error, path, "no such file");
	return fail_file(error, path, weft_strerror(error));
}

/* WEFT_ENOMEM if the error queue reports lack of memory, else WEFT_EINVAL. */
static int
fail_parse(const char *path, const char *what)
{
	return weft__tls_no_memory() ? fail_file(WEFT_ENOMEM, path, "out of memory")
	                             : fail_file(WEFT_EINVAL, path, what);
}

static void
drop_content(struct content *c)
{
	if (c->bytes)
		OPENSSL_cleanse(c->bytes, c->room);
	weft__sys->release(c->bytes);
	*c = (struct content){ 0 };
}

/* Copies instead of resizing, which might leave a key behind. */
static int
tls_file_grow(struct content *c)
{
	size_t room = c->room ? c->room * 2 : READ_MIN;
	char *bytes;

	if (room > FILE_MAX)
		return -EFBIG;
	bytes = weft__sys->alloc(room);
	if (!bytes)
		return WEFT_ENOMEM;
	if (c->size > 0)
		memcpy(bytes, c->bytes, c->size);
	if (c->bytes)
		OPENSSL_cleanse(c->bytes, c->room);
	weft__sys->release(c->bytes);
	c->bytes = bytes;
	c->room = room;
	return 0;
}

static int
tls_file_read_all(int fd, struct content *c)
{
	for (;;) {
		int64_t n = c->size == c->room ? tls_file_grow(c) : 0;

		if (n == 0)
			n = weft__sys->file_read(fd, c->bytes + c->size, c->room - c->size,
			                         c->size);
		if (n == WEFT_EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		c->size += (size_t)n;
	}
}

static int
read_file(const char *path, struct content *out)
{
	struct content c = { 0 };
	int rc, fd;

	do
		fd = weft__sys->file_open(path, O_RDONLY, 0);
	while (fd == WEFT_EINTR);
	if (fd < 0)
		return fail_read(fd, path);
	rc = tls_file_read_all(fd, &c);
	(void)weft__sys->close(fd); /* nothing was written, so no error matters */
	if (rc < 0) {
		drop_content(&c);
		return fail_read(rc, path);
	}
	*out = c;
	return 0;
}

/* --- certificates ------------------------------------------------------- */

void
weft__tls_free_certs(STACK_OF(X509) * certs)
{
	sk_X509_pop_free(certs, X509_free);
}

/* Whether the parser has only found no more certificates. */
static bool
is_at_end(void)
{
	unsigned long error = ERR_peek_last_error();

	return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static int
parse_certs(BIO *bio, const char *path, STACK_OF(X509) * certs)
{
	X509 *cert;

	while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
		if (sk_X509_push(certs, cert) <= 0) {
			X509_free(cert);
			return fail_parse(path, "a certificate cannot be stored");
		}
	if (!is_at_end())
		return fail_parse(path, "malformed certificate");
	ERR_clear_error();
	return sk_X509_num(certs) > 0
	               ? 0
	               : fail_file(WEFT_EINVAL, path, "no certificate in PEM format");
}

int
weft__tls_load_certs(const char *path, STACK_OF(X509) * *out)
{
	STACK_OF(X509) *certs = NULL;
	struct content c;
	BIO *bio = NULL;
	int rc = read_file(path, &c);

	if (rc < 0)
		return rc;
	ERR_clear_error();
	bio = BIO_new_mem_buf(c.bytes, (int)c.size);
	certs = sk_X509_new_null();
	rc = bio && certs ? parse_certs(bio, path, certs) : fail_parse(path, "cannot be read");
	BIO_free(bio);
	drop_content(&c);
	if (rc < 0)
		weft__tls_free_certs(certs);
	else
		*out = certs;
	return rc;
}

/* --- keys --------------------------------------------------------------- */

static int
refuse_password(char *buf, int size, int writing, void *has_password)
{
	(void)buf, (void)size, (void)writing;
	*(bool *)has_password = true;
	return -1;
}

static int
parse_key(BIO *bio, const char *path, EVP_PKEY **out)
{
	bool has_password = false;

	*out = PEM_read_bio_PrivateKey(bio, NULL, refuse_password, &has_password);
	if (*out)
		return 0;
	if (has_password) {
		ERR_clear_error();
		return fail_file(WEFT_EINVAL, path,
		                 "the key is protected by a password, which "
		                 "is not supported; store the key without one");
	}
	return fail_parse(path, "no valid private key in PEM format");
}

int
weft__tls_load_key(const char *path, EVP_PKEY **out)
{
	EVP_PKEY *key = NULL;
	struct content c;
	BIO *bio;
	int rc = read_file(path, &c);

	if (rc < 0)
		return rc;
	ERR_clear_error();
	bio = BIO_new_mem_buf(c.bytes, (int)c.size);
	rc = bio ? parse_key(bio, path, &key) : fail_parse(path, "cannot be read");
	BIO_free(bio);
	drop_content(&c);
	if (rc == 0)
		*out = key;
	ERR_clear_error();
	return rc;
}
