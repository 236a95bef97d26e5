/* foreign.c - a TLS peer made of plain OpenSSL. */
#include <openssl/err.h>
#include "foreign.h"

static void
show(SSL_CTX *ctx, const struct cert *const *chain)
{
	CHECK(SSL_CTX_use_certificate(ctx, chain[0]->x509));
	CHECK(SSL_CTX_use_PrivateKey(ctx, chain[0]->key));
	for (size_t i = 1; chain[i]; i++)
		CHECK(SSL_CTX_add1_chain_cert(ctx, chain[i]->x509));
}

void
foreign_open(struct foreign *f, int role, const struct cert *const *chain)
{
	bool client = role == WEFT_TLS_CLIENT;

	f->ctx = SSL_CTX_new(client ? TLS_client_method() : TLS_server_method());
	CHECK(f->ctx);
	SSL_CTX_set_security_level(f->ctx, 0);
	(void)SSL_CTX_set_mode(f->ctx, SSL_MODE_NO_AUTO_CHAIN);
	CHECK(SSL_CTX_set_min_proto_version(f->ctx, TLS1_VERSION));
	if (chain)
		show(f->ctx, chain);
	f->in = BIO_new(BIO_s_mem());
	f->out = BIO_new(BIO_s_mem());
	CHECK(f->in && f->out);
	f->ssl = NULL;
	f->rc = 0;
}

/* Creates the SSL late, so that a test can change the context first. */
static void
begin(struct foreign *f)
{
	if (f->ssl)
		return;
	f->ssl = SSL_new(f->ctx);
	CHECK(f->ssl);
	SSL_set_bio(f->ssl, f->in, f->out);
	if (SSL_CTX_get_ssl_method(f->ctx) == TLS_server_method())
		SSL_set_accept_state(f->ssl);
	else
		SSL_set_connect_state(f->ssl);
}

void
foreign_close(struct foreign *f)
{
	if (f->ssl) {
		SSL_free(f->ssl);
	} else {
		BIO_free(f->in);
		BIO_free(f->out);
	}
	SSL_CTX_free(f->ctx);
	ERR_clear_error();
}

size_t
foreign_carry(struct foreign *f, struct weft__session *session)
{
	const void *bytes;
	char buf[4096];
	size_t moved = 0, size;
	int n;

	while ((size = weft__session_output(session, &bytes)) > 0) {
		CHECK_EQ(BIO_write(f->in, bytes, (int)size), size);
		weft__session_sent(session, size);
		moved += size;
	}
	while (WEFT__SESSION_IN_MAX - weft__session_pending(session) >= sizeof(buf)
	       && (n = BIO_read(f->out, buf, sizeof(buf))) > 0) {
		CHECK_EQ(weft__session_feed(session, buf, (size_t)n), n);
		moved += (size_t)n;
	}
	return moved;
}

static void
step(struct foreign *f)
{
	int rc;

	if (f->rc != 0)
		return;
	ERR_clear_error();
	rc = SSL_do_handshake(f->ssl);
	if (rc == 1)
		f->rc = 1;
	else if (SSL_get_error(f->ssl, rc) != SSL_ERROR_WANT_READ)
		f->rc = -1;
	ERR_clear_error();
}

void
foreign_handshake(struct foreign *f, struct end *end)
{
	begin(f);
	end->rc = WEFT_EAGAIN;
	for (size_t idle = 0; idle < 3;) {
		step(f);
		if (end->rc == WEFT_EAGAIN)
			end->rc = weft__session_handshake(end->session);
		if (end->rc < 0 && end->rc != WEFT_EAGAIN)
			(void)snprintf(end->text, sizeof(end->text), "%s", weft_detail());
		idle = foreign_carry(f, end->session) ? 0 : idle + 1;
	}
}
