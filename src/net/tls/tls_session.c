/* tls_session.c - TLS of one connection, driven by the owner of the connection.
 *
 *   1. The thread's error queue is cleared before each call of OpenSSL, and read and cleared
 *      after each failure (tls_text.c).
 *   2. After an error OpenSSL is not called again: the first error stays.
 *   3. A write begins only if there is room for all its records, and for messages that the peer
 *      may have made us send before them.  So a record is never left incomplete, and after a
 *      refusal the caller may come back with other bytes.
 *   4. A handshake is done only if the certificate of the peer was verified, or if the context
 *      requires none.
 *   5. Handshake messages after the handshake, new tickets and keys, are counted: the session
 *      of a peer that sends nothing else is ended.
 *
 * No early data is sent or accepted, and there is no renegotiation.
 */
#include <string.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include "net/tls/tls_set.h"

#define RECORD_PLAIN 16384u /* bytes in a record */
#define RECORD_OVER  32u    /* overhead of a record; 29 with AES-GCM in TLS 1.2 */
#define ASIDE        128u   /* for an alert, or new keys */
#define WORTH        2048u  /* less is not worth a partial write */
#define CHATTER_MAX  128u   /* steps without data; three for each message */
#define IN_FIRST     4096u

/* --- creation and freeing ----------------------------------------------- */

void
weft__session_close(struct weft__session *s)
{
	if (!s)
		return;
	weft__assert(!s->lent);
	/* Without this, OpenSSL would not resume a session that ended before the peer's
	 * close_notify. */
	if (s->ssl && !s->broken)
		SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(s->ssl);
	weft__tls_set_unref(s->set);
	weft__tls_buffer_release(&s->in);
	weft__tls_buffer_release(&s->out);
	weft__tls_buffer_release(&s->sending);
	weft__sys->release(s->name);
	weft__sys->release(s->verdict);
	weft__sys->release(s->why);
	weft__sys->release(s->info);
	weft__sys->release(s);
}

/* Copy a DNS name without the dot of the root; or NULL. */
static char *
copy_name(const char *name)
{
	size_t size = strlen(name);
	char *copy = weft__tls_text_copy(name);

	if (copy && size > 1 && copy[size - 1] == '.')
		copy[size - 1] = '\0';
	return copy;
}

static bool
is_name(const char *name)
{
	size_t size = name ? strnlen(name, WEFT__TLS_NAME_MAX + 1) : 0;

	if (size == 0 || size > WEFT__TLS_NAME_MAX || name[0] == '.')
		return false;
	for (size_t i = 0; i < size; i++) {
		char c = name[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		bool digit = c >= '0' && c <= '9';

		if (!letter && !digit && !strchr("-._:", c))
			return false;
	}
	return true;
}

#define HOST_FLAGS (X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)

/* Set the host to verify, and the server name to send: an address has no server name. */
static bool
expect_host(struct weft__session *s)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(s->ssl);

	if (X509_VERIFY_PARAM_set1_ip_asc(param, s->name))
		return true;
	SSL_set_hostflags(s->ssl, HOST_FLAGS);
	return SSL_set1_host(s->ssl, s->name) && SSL_set_tlsext_host_name(s->ssl, s->name);
}

static bool
begin_client(struct weft__session *s)
{
	SSL_SESSION *ticket = weft__tickets_take(&s->set->tickets, s->name);
	bool ok = expect_host(s);

	if (ok && ticket)
		ok = SSL_set_session(s->ssl, ticket);
	SSL_SESSION_free(ticket);
	SSL_set_connect_state(s->ssl);
	return ok;
}

static bool
tls_session_begin(struct weft__session *s)
{
	bool client = s->role == WEFT_TLS_CLIENT;
	BIO *bio = BIO_new(s->set->bio);

	s->ssl = SSL_new(client ? s->set->client : s->set->server);
	if (!bio || !s->ssl || !SSL_set_app_data(s->ssl, s)) {
		BIO_free(bio);
		return false;
	}
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio);
	if (client)
		return begin_client(s);
	SSL_set_accept_state(s->ssl);
	return true;
}

static int
check_open(weft_tls *tls, int role, const char *name)
{
	if (!tls || (role != WEFT_TLS_CLIENT && role != WEFT_TLS_SERVER))
		return weft__misuse(
			WEFT_EINVAL,
			"weft_tls_start: the context is NULL, or the role is neither client nor "
			"server");
	if (role == WEFT_TLS_CLIENT && !is_name(name))
		return weft__fail(WEFT_EINVAL,
		                  "weft_tls_start: a client needs the host name to verify: letters "
		                  "(punycode for others), digits, - and _ "
		                  "between dots, or an address");
	return 0;
}

int
weft__session_open(weft_tls *tls, int role, const char *name, struct weft__session **out)
{
	struct weft__session *s;
	int rc = check_open(tls, role, name);

	if (rc < 0)
		return rc;
	s = weft__alloc_zero(sizeof(*s));
	if (!s)
		return weft__fail(WEFT_ENOMEM, "weft_tls_start: out of memory");
	s->role = (uint8_t)role;
	s->in_want = IN_FIRST;
	s->set = weft__tls_set_of(tls);
	if (role == WEFT_TLS_SERVER && !s->set->server) {
		weft__session_close(s);
		return weft__fail(WEFT_EINVAL, "weft_tls_start: a server needs a certificate");
	}
	if (role == WEFT_TLS_CLIENT)
		s->name = copy_name(name);
	ERR_clear_error();
	if ((role == WEFT_TLS_CLIENT && !s->name) || !tls_session_begin(s)) {
		ERR_clear_error();
		weft__session_close(s);
		return weft__fail(WEFT_ENOMEM, "weft_tls_start: out of memory");
	}
	ERR_clear_error();
	*out = s;
	return 0;
}

/* --- common to all calls ------------------------------------------------ */

static int
fail_again(const struct weft__session *s)
{
	return weft_fail(s->broken, "%s", s->why ? s->why : weft_strerror(s->broken));
}

/* WEFT_EAGAIN, 0 at the peer's close_notify, or the error that ends the session. */
static int
result_of(struct weft__session *s, int rc)
{
	switch (SSL_get_error(s->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		if (s->no_memory)
			return weft__tls_break(s);
		ERR_clear_error();
		return WEFT_EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		ERR_clear_error();
		return 0;
	default:
		return weft__tls_break(s);
	}
}

/* After the handshake, only new tickets and keys change the state, the peer's and ours. */
void
weft__tls_on_state(const SSL *ssl, int where, int result)
{
	struct weft__session *s = SSL_get_app_data(ssl);

	(void)result;
	if (!s || !(where & SSL_CB_LOOP))
		return;
	s->swollen = true;
	if (s->done)
		s->chatter++;
}

/* Handshake messages leave OpenSSL with a buffer that only the next record would free.  Between
 * two records ("RH") the buffer is empty; some versions of OpenSSL do not check whether a
 * record has begun. */
static void
shrink(struct weft__session *s)
{
	if (s->swollen && strcmp(SSL_rstate_string(s->ssl), "RH") == 0 && SSL_free_buffers(s->ssl))
		s->swollen = false;
}

/* --- the handshake ------------------------------------------------------ */

/* Whether the server has chosen a protocol that was offered. */
static bool
is_alpn_ours(const struct weft__session *s)
{
	const unsigned char *name;
	unsigned size;

	SSL_get0_alpn_selected(s->ssl, &name, &size);
	if (size == 0)
		return true;
	for (size_t i = 0; i < s->set->alpn_size; i += 1u + s->set->alpn[i])
		if (s->set->alpn[i] == size && memcmp(s->set->alpn + i + 1, name, size) == 0)
			return true;
	return false;
}

/* Whether the certificate is for the requested host.  OpenSSL has checked that, unless it had
 * no memory for the name: it copies the name before it verifies, and does not notice a failure. */
static bool
is_host(const struct weft__session *s, X509 *cert)
{
	int match = X509_check_ip_asc(cert, s->name, 0);

	if (match == -2) /* not an address */
		match = X509_check_host(cert, s->name, 0, HOST_FLAGS, NULL);
	return match == 1;
}

/* Check invariant 4 again. */
static int
check_peer(struct weft__session *s)
{
	const weft_tls_opts *opts = s->set->opts;
	X509 *cert = SSL_get0_peer_certificate(s->ssl);
	bool client = s->role == WEFT_TLS_CLIENT;
	bool verify = client ? !opts->dangerously_accept_any_peer : opts->require_client_cert;

	if (client && !is_alpn_ours(s))
		return weft__tls_break_by(s, WEFT_EPROTO,
		                          "the server has chosen an application "
		                          "protocol that was not offered");
	if (verify && !cert)
		return weft__tls_break_by(s, WEFT_ECERT, "the peer has sent no certificate");
	if (verify && SSL_get_verify_result(s->ssl) != X509_V_OK)
		return weft__tls_break_by(s, WEFT_ECERT, "the certificate was not verified");
	if (verify && client && !is_host(s, cert))
		return weft__tls_break_by(s, WEFT_ECERT,
		                          "wrong host: the certificate is for another host");
	return 0;
}

int
weft__session_handshake(struct weft__session *s)
{
	int rc;

	if (s->broken)
		return fail_again(s);
	if (s->done)
		return 0;
	ERR_clear_error();
	rc = SSL_do_handshake(s->ssl);
	weft__tls_in_release(s);
	if (rc <= 0) {
		rc = result_of(s, rc);
		return rc == 0 ? weft__tls_break_by(
			       s, WEFT_ETRUNCATED,
			       "the peer ended the session during the handshake")
		               : rc;
	}
	rc = check_peer(s);
	s->done = rc == 0;
	return rc;
}

/* --- data --------------------------------------------------------------- */

static int
check_ready(const struct weft__session *s)
{
	if (s->broken)
		return fail_again(s);
	return s->done ? 0
	               : weft__misuse(WEFT_EINVAL, "weft_stream_*: the handshake is not done yet");
}

static int64_t
read_some(struct weft__session *s, void *buf, size_t size)
{
	size_t got = 0;
	int rc;

	ERR_clear_error();
	rc = SSL_read_ex(s->ssl, buf, size, &got);
	if (rc > 0) {
		s->chatter = 0;
		return (int64_t)got;
	}
	rc = result_of(s, rc);
	if (rc == WEFT_EAGAIN)
		shrink(s);
	if (rc == WEFT_EAGAIN && s->chatter > CHATTER_MAX)
		return weft__tls_break_by(s, WEFT_EPROTO,
		                          "the peer sent too many handshake messages without data");
	return rc;
}

/* Read as much as there is.  If an error comes after some bytes, the next call returns it. */
int64_t
weft__session_read(struct weft__session *s, void *buf, size_t size)
{
	size_t sum = 0;
	int64_t n = check_ready(s);

	if (n < 0)
		return n;
	weft__assert(size > 0);
	while (sum < size) {
		n = read_some(s, (char *)buf + sum, size - sum);
		if (n <= 0)
			break;
		sum += (size_t)n;
	}
	weft__tls_in_release(s);
	return sum > 0 ? (int64_t)sum : n;
}

/* How many plain bytes fit into `room` as records. */
static size_t
plain_for(size_t room)
{
	size_t full, rest;

	if (room <= ASIDE)
		return 0;
	full = (room - ASIDE) / (RECORD_PLAIN + RECORD_OVER);
	rest = (room - ASIDE) % (RECORD_PLAIN + RECORD_OVER);
	return full * RECORD_PLAIN + (rest > RECORD_OVER ? rest - RECORD_OVER : 0);
}

/* Make room for the records of `size` bytes before OpenSSL begins with them. */
static bool
tls_session_reserve(struct weft__session *s, size_t size)
{
	size_t records = (size + RECORD_PLAIN - 1) / RECORD_PLAIN;

	return weft__tls_buffer_reserve(&s->out, size + records * RECORD_OVER + ASIDE,
	                                WEFT__SESSION_OUT_MAX);
}

int64_t
weft__session_write(struct weft__session *s, const void *buf, size_t size)
{
	size_t fits = plain_for(weft__tls_out_room(s)), put = 0;
	int rc = check_ready(s);

	if (rc < 0 || size == 0)
		return rc;
	if (s->close_sent)
		return weft__fail(WEFT_ESHUTDOWN,
		                  "weft_stream_write: the sending side is already closed");
	if (fits < size && fits < WORTH)
		return WEFT_EAGAIN;
	size = size < fits ? size : fits;
	if (!tls_session_reserve(s, size))
		return weft__fail(WEFT_ENOMEM, "weft_stream_write: no memory for output");
	ERR_clear_error();
	rc = SSL_write_ex(s->ssl, buf, size, &put);
	if (rc > 0)
		return (int64_t)put;
	rc = result_of(s, rc);
	if (rc == 0)
		return weft__tls_break_by(s, WEFT_EPIPE, "the peer is gone");
	return rc;
}

int
weft__session_close_notify(struct weft__session *s)
{
	int rc;

	if (s->broken || !s->done || s->close_sent)
		return 0;
	ERR_clear_error();
	/* New keys that had no room are sent first. */
	rc = SSL_in_init(s->ssl) ? SSL_do_handshake(s->ssl) : 1;
	rc = rc == 1 ? SSL_shutdown(s->ssl) : -1;
	if (rc < 0) {
		rc = result_of(s, rc);
		if (rc < 0)
			return rc;
	}
	s->close_sent = true;
	return 0;
}

size_t
weft__session_pending(const struct weft__session *s)
{
	return (size_t)SSL_pending(s->ssl) + (s->in.tail - s->in.head);
}
