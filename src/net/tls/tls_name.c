/* tls_name.c - chooses the certificate that a server shows, and the protocol it speaks.
 *
 * A client names the host it wants before the server shows a certificate.  The exact name is
 * tried first, then the one with a star in place of the first label, then the default.  If
 * there is none, the handshake ends: the client would not accept a certificate for another host
 * anyway.
 */
#include <string.h>
#include "net/tls/tls_set.h"

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

bool
weft__tls_same_name(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b))
		a++, b++;
	return lower(*a) == lower(*b);
}

static SSL_CTX *
tls_name_find(const struct weft__tls_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->named[i].name && weft__tls_same_name(set->named[i].name, name))
			return set->named[i].ctx;
	return NULL;
}

static SSL_CTX *
find_star(const struct weft__tls_set *set, const char *name)
{
	const char *rest = strchr(name, '.');

	for (size_t i = 0; rest && rest > name && i < set->count; i++) {
		const char *star = set->named[i].name;

		if (star && star[0] == '*' && weft__tls_same_name(star + 1, rest))
			return set->named[i].ctx;
	}
	return NULL;
}

static SSL_CTX *
find_default(const struct weft__tls_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (!set->named[i].name)
			return set->named[i].ctx;
	return NULL;
}

/* The name in a client hello: the first of a list, behind sizes and type.  OpenSSL refuses
 * malformed ones later. */
static size_t
hello_name(SSL *ssl, char out[WEFT__TLS_NAME_MAX])
{
	const unsigned char *data;
	size_t size, name;

	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &size) || size < 5)
		return 0;
	name = (size_t)data[3] << 8 | data[4];
	if (name > size - 5 || name > WEFT__TLS_NAME_MAX)
		return 0;
	for (size_t i = 0; i < name; i++)
		out[i] = lower((char)data[5 + i]);
	return name;
}

/* A session is resumed only under the name that it was made for (RFC 6066, section 3): a client
 * that one host has accepted is not thereby accepted by another.  OpenSSL resumes a session only
 * under the same session ID context, so that context is the hash of the name. */
int
weft__tls_on_hello(SSL *ssl, int *alert, void *arg)
{
	char name[WEFT__TLS_NAME_MAX];
	size_t size = hello_name(ssl, name);
	unsigned char id[EVP_MAX_MD_SIZE];
	unsigned id_size = 0;

	(void)arg;
	if (EVP_Digest(name, size, id, &id_size, EVP_sha256(), NULL)
	    && SSL_set_session_id_context(ssl, id, id_size))
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_INTERNAL_ERROR;
	return SSL_CLIENT_HELLO_ERROR;
}

int
weft__tls_on_name(SSL *ssl, int *alert, void *arg)
{
	const struct weft__tls_set *set = arg;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct weft__session *s = SSL_get_app_data(ssl);
	SSL_CTX *ctx = name ? tls_name_find(set, name) : NULL;

	if (!ctx && name)
		ctx = find_star(set, name);
	if (!ctx)
		ctx = find_default(set);
	if (!ctx) {
		s->no_name = true;
		*alert = SSL_AD_UNRECOGNIZED_NAME;
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	if (!SSL_set_SSL_CTX(ssl, ctx)) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	return SSL_TLSEXT_ERR_OK;
}

/* Our order decides.  OpenSSL has checked the sizes in the client's list. */
int
weft__tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                  const unsigned char *in, unsigned int in_size, void *arg)
{
	const struct weft__tls_set *set = arg;

	(void)ssl;
	for (size_t i = 0; i < set->alpn_size; i += 1u + set->alpn[i])
		for (size_t j = 0; j < in_size; j += 1u + in[j])
			if (in[j] == set->alpn[i] && j + in[j] < in_size
			    && memcmp(in + j + 1, set->alpn + i + 1, in[j]) == 0) {
				*out = in + j + 1;
				*out_size = in[j];
				return SSL_TLSEXT_ERR_OK;
			}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}
