/* tls_setup.c - the options of a TLS context: checks, and a copy for reloading.
 *
 * The copy is one block of memory: the struct, the certificates, the list of protocols, and all
 * strings behind them.  The layout is done twice, the first time only to count.
 */
#include <string.h>
#include "net/tls/tls_set.h"

#define ALPN_MAX 1024 /* bytes of all protocol names */

/* Memory that is handed out front to back; NULL while its size is only counted. */
struct piece {
	char *mem;
	size_t size;
};

static void *
cut(struct piece *piece, size_t size, size_t align)
{
	size_t at = (piece->size + align - 1) / align * align;

	piece->size = at + size;
	return piece->mem ? piece->mem + at : NULL;
}

static const char *
tls_setup_put_text(struct piece *piece, const char *text)
{
	size_t size;
	char *copy;

	if (!text)
		return NULL;
	size = strlen(text) + 1;
	copy = cut(piece, size, 1);
	if (copy)
		memcpy(copy, text, size);
	return copy;
}

static void
put_certs(struct piece *piece, const weft_tls_opts *opts, weft_tls_cert *certs)
{
	for (size_t i = 0; i < opts->cert_count; i++) {
		weft_tls_cert cert = {
			.name = tls_setup_put_text(piece, opts->certs[i].name),
			.chain_file = tls_setup_put_text(piece, opts->certs[i].chain_file),
			.key_file = tls_setup_put_text(piece, opts->certs[i].key_file),
		};

		if (certs)
			certs[i] = cert;
	}
}

static weft_tls_opts *
lay_out(struct piece *piece, const weft_tls_opts *opts)
{
	weft_tls_opts *copy = cut(piece, sizeof(*copy), _Alignof(max_align_t));
	weft_tls_cert *certs = cut(piece, opts->cert_count * sizeof(*certs), _Alignof(void *));
	size_t protocols = 0;
	const char **alpn, *ca_file;

	while (opts->alpn && opts->alpn[protocols])
		protocols++;
	alpn = cut(piece, (protocols + 1) * sizeof(*alpn), _Alignof(void *));
	for (size_t i = 0; i < protocols; i++) {
		const char *text = tls_setup_put_text(piece, opts->alpn[i]);

		if (alpn)
			alpn[i] = text;
	}
	put_certs(piece, opts, certs);
	ca_file = tls_setup_put_text(piece, opts->ca_file);
	if (copy) {
		*copy = *opts;
		copy->certs = certs;
		copy->ca_file = ca_file;
		alpn[protocols] = NULL;
		copy->alpn = protocols ? alpn : NULL;
	}
	return copy;
}

weft_tls_opts *
weft__tls_setup_copy(const weft_tls_opts *opts)
{
	struct piece piece = { 0 };

	(void)lay_out(&piece, opts);
	piece.mem = weft__sys->alloc(piece.size);
	if (!piece.mem) {
		(void)weft__fail(WEFT_ENOMEM, "weft_tls_open: out of memory");
		return NULL;
	}
	piece.size = 0;
	return lay_out(&piece, opts);
}

static int
check_alpn(const char *const *alpn)
{
	size_t sum = 0;

	for (size_t i = 0; alpn && alpn[i]; i++) {
		size_t size = strnlen(alpn[i], 256);

		sum += 1 + size;
		if (size < 1 || size > 255 || sum > ALPN_MAX)
			return weft__fail(WEFT_EINVAL, "weft_tls_open: protocol names (alpn) must "
			                               "have 1 to 255 bytes, together "
			                               "1,024 at most");
	}
	return 0;
}

int
weft__tls_setup_check(const weft_tls_opts *opts)
{
	if (opts->version_min && opts->version_min != TLS1_2_VERSION
	    && opts->version_min != TLS1_3_VERSION)
		return weft__fail(WEFT_EINVAL, "weft_tls_open: version_min is neither 0, "
		                               "0x0303 (TLS 1.2) nor 0x0304 (TLS 1.3)");
	if (opts->cert_count > 0 && !opts->certs)
		return weft__fail(WEFT_EINVAL,
		                  "weft_tls_open: certs is NULL, but cert_count is not 0");
	for (size_t i = 0; i < opts->cert_count; i++)
		if (!opts->certs[i].chain_file)
			return weft__fail(WEFT_EINVAL,
			                  "weft_tls_open: a certificate has no chain_file");
	if (opts->require_client_cert && !opts->ca_file)
		return weft__fail(WEFT_EINVAL, "weft_tls_open: require_client_cert needs "
		                               "ca_file, the authorities of the clients to trust");
	return check_alpn(opts->alpn);
}
