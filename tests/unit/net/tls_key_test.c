/* tls_key_test.c - memory that the library frees contains no part of a private key.
 *
 * Blocks are allocated zeroed, so everything in a block when it is freed was written by the
 * library.  Memory that OpenSSL allocates itself is not checked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <openssl/core_names.h>
#include "base/sys.h"
#include "pair.h"

#define PIECE 12 /* length of the parts of a key that are searched for */

static struct basics b;
static const struct weft__sys *sys_before;
static struct weft__sys watching;
static char secret[4096]; /* a key as base64, as in its file, */
static size_t secret_size;
static unsigned char *scalar; /* and in binary */
static size_t scalar_size;
static uint64_t searched, found;
static int64_t read_error; /* of a file, after its first bytes */

/* --- searching ------------------------------------------------------------ */

static bool
has_piece(const void *mem, size_t size, const void *of, size_t of_size)
{
	for (size_t at = 0; at + PIECE <= of_size; at += PIECE)
		if (memmem(mem, size, (const char *)of + at, PIECE))
			return true;
	return false;
}

static void
search_key(const void *mem)
{
	size_t size = malloc_usable_size((void *)(uintptr_t)mem);

	searched++;
	found += has_piece(mem, size, secret, secret_size)
	         || has_piece(mem, size, scalar, scalar_size);
}

static void *
alloc_empty(size_t size)
{
	return calloc(1, size);
}

static void
search_and_release(void *mem)
{
	if (mem)
		search_key(mem);
	free(mem);
}

/* Always moves the block, as realloc() may. */
static void *
resize_elsewhere(void *mem, size_t size)
{
	void *fresh = calloc(1, size);
	size_t before = mem ? malloc_usable_size(mem) : 0;

	CHECK(fresh);
	if (mem)
		memcpy(fresh, mem, before < size ? before : size);
	search_and_release(mem);
	return fresh;
}

static int64_t
read_some(int fd, void *buf, size_t size, uint64_t offset)
{
	return offset > 0 && read_error ? read_error
	                                : weft__sys_real.file_read(fd, buf, size, offset);
}

/* --- what is searched for ------------------------------------------------- */

/* Collects the base64 lines of a file. */
static void
learn_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[128];

	CHECK(file);
	secret_size = 0;
	while (fgets(line, sizeof(line), file)) {
		size_t size = strcspn(line, "\n");

		if (line[0] == '-' || secret_size + size > sizeof(secret))
			continue;
		memcpy(secret + secret_size, line, size / PIECE * PIECE);
		secret_size += size / PIECE * PIECE;
	}
	CHECK_EQ(fclose(file), 0);
	CHECK(secret_size >= (size_t)10 * PIECE);
}

static void
learn(const struct cert *cert, const char *path)
{
	BIGNUM *number = NULL;

	learn_text(path);
	CHECK(EVP_PKEY_get_bn_param(cert->key, OSSL_PKEY_PARAM_PRIV_KEY, &number));
	scalar_size = (size_t)BN_num_bytes(number);
	scalar = malloc(scalar_size);
	CHECK(scalar && BN_bn2bin(number, scalar) > 0);
	BN_clear_free(number);
}

static void
begin(void)
{
	basics_open(&b);
	learn(&b.leaf, b.key_file);
	searched = found = 0;
	sys_before = weft__sys;
	watching = *weft__sys;
	watching.alloc = alloc_empty;
	watching.resize = resize_elsewhere;
	watching.release = search_and_release;
	watching.file_read = read_some;
	weft__sys = &watching;
}

static void
end(void)
{
	weft__sys = sys_before;
	free(scalar);
	basics_close(&b);
}

static int
open_close(const char *chain_file, const char *key_file)
{
	weft_tls_cert cert = { NULL, chain_file, key_file };
	weft_tls_opts opts = { .certs = &cert, .cert_count = 1, .ca_file = b.ca_file };
	weft_tls *tls;
	int rc = weft_tls_open(&opts, &tls);

	if (rc == 0) {
		CHECK_EQ(weft_tls_reload(tls), 0);
		weft_tls_close(tls);
	}
	return rc;
}

/* Writes a file with the contents of `fronts`, followed by `size` bytes of filler. */
static const char *
longer_file(const char *name, const char *const *fronts, size_t size)
{
	const char *path = cert_path(name);
	FILE *file = fopen(path, "w"), *front;
	int c;

	CHECK(file);
	for (; *fronts; fronts++) {
		front = fopen(*fronts, "r");
		CHECK(front);
		while ((c = fgetc(front)) != EOF)
			CHECK(fputc(c, file) != EOF);
		CHECK_EQ(fclose(front), 0);
	}
	for (size_t i = 0; i < size; i++)
		CHECK(fputc(i % 60 == 59 ? '\n' : '#', file) != EOF);
	CHECK_EQ(fclose(file), 0);
	return path;
}

/* --- tests ---------------------------------------------------------------- */

TEST(tls_freed_memory_contains_no_part_of_a_key)
{
	const char *both[] = { NULL, NULL, NULL }, *path;

	begin();
	CHECK_EQ(open_close(b.chain_file, b.key_file), 0);
	both[0] = b.chain_file;
	both[1] = b.key_file;
	/* The key is in the certificate file, which is read in several pieces. */
	path = longer_file("both.pem", both, 100000);
	CHECK_EQ(open_close(path, NULL), 0);
	CHECK(searched > 10);
	CHECK_EQ(found, 0);
	end();
}

TEST(tls_freed_memory_contains_no_part_of_an_unusable_key)
{
	struct cert other;
	const char *key[] = { NULL, NULL }, *path;

	begin();
	other = cert_leaf("other", "DNS:example.org", &b.ca);
	path = cert_file("other.pem", (const struct cert *[]){ &other, NULL });
	cert_drop(&other);
	CHECK_EQ(open_close(path, b.key_file), WEFT_EINVAL);
	CHECK_EQ(open_close(b.key_file, b.key_file), WEFT_EINVAL);
	key[0] = b.key_file;
	path = longer_file("long.key", key, 100000);
	read_error = -EIO;
	CHECK_EQ(open_close(b.chain_file, path), -EIO);
	read_error = 0;
	CHECK(searched > 10);
	CHECK_EQ(found, 0);
	end();
}

/* Checks that the search itself works. */
TEST(tls_key_in_freed_memory_is_detected)
{
	char *copy;

	begin();
	copy = weft__sys->alloc(1000);
	memcpy(copy + 500, secret + 5, 50);
	weft__sys->release(copy);
	CHECK_EQ(found, 1);
	copy = weft__sys->alloc(1000);
	memcpy(copy + 500, scalar, scalar_size);
	copy = weft__sys->resize(copy, 2000);
	CHECK_EQ(found, 2);
	weft__sys->release(copy);
	CHECK_EQ(found, 3);
	end();
}
