/* tls_info.c - what was negotiated on a connection, as texts that belong to its session.
 *
 * They are built on the first request, in one block of memory: most programs never request
 * them, and idle connections should be small.
 */
#include <string.h>
#include "base/text.h"
#include "net/tls/tls_set.h"

#define SUBJECT_BYTES 512

struct info {
	weft_tls_info fields;
	char alpn[256];
	char server_name[WEFT__TLS_NAME_MAX + 1];
	char subject[SUBJECT_BYTES];
	unsigned char der[];
};

static void
info_set_alpn(struct info *info, SSL *ssl)
{
	const unsigned char *name;
	unsigned size;

	SSL_get0_alpn_selected(ssl, &name, &size);
	if (size > 0)
		memcpy(info->alpn, name, size); /* at most 255 bytes */
	info->fields.alpn = info->alpn;
}

static void
info_set_server_name(struct info *info, SSL *ssl)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct weft__text text = weft__text_begin(info->server_name, sizeof(info->server_name));

	weft__text_add(&text, name ? name : "");
	info->fields.server_name = info->server_name;
}

/* "CN = example.org, O = Example", as OpenSSL formats it on one line, all of it printable. */
static bool
info_set_peer(struct info *info, const X509 *cert, int der_size)
{
	BIO *bio = BIO_new(BIO_s_mem());
	unsigned char *to = info->der;
	char *bytes;
	long size;
	bool ok;

	ok = bio && X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, XN_FLAG_ONELINE) >= 0;
	size = ok ? BIO_get_mem_data(bio, &bytes) : 0;
	if (size > SUBJECT_BYTES - 1)
		size = SUBJECT_BYTES - 1;
	if (size > 0)
		memcpy(info->subject, bytes, (size_t)size);
	BIO_free(bio);
	info->fields.peer_cert = (weft_span){ info->der, (size_t)der_size };
	return ok && i2d_X509(cert, &to) == der_size;
}

static struct info *
make_info(SSL *ssl)
{
	const X509 *cert = SSL_get0_peer_certificate(ssl);
	int der_size = cert ? i2d_X509(cert, NULL) : 0;
	struct info *info;

	if (der_size < 0)
		return NULL;
	info = weft__alloc_zero(sizeof(*info) + (size_t)der_size);
	if (!info)
		return NULL;
	info->fields.version = SSL_get_version(ssl);
	info->fields.cipher = SSL_get_cipher_name(ssl);
	info->fields.resumed = SSL_session_reused(ssl);
	info->fields.peer_subject = info->subject;
	info_set_alpn(info, ssl);
	info_set_server_name(info, ssl);
	if (cert && !info_set_peer(info, cert, der_size)) {
		weft__sys->release(info);
		return NULL;
	}
	return info;
}

int
weft__session_info(struct weft__session *s, weft_tls_info *out)
{
	if (!s->done)
		return weft__fail(WEFT_EINVAL, "weft_stream_tls: the handshake is not done yet");
	if (!s->info)
		s->info = make_info(s->ssl);
	if (!s->info)
		return weft__fail(WEFT_ENOMEM, "weft_stream_tls: out of memory");
	*out = ((struct info *)s->info)->fields;
	return 0;
}
