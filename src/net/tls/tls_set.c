/* tls_set.c - builds the contexts of OpenSSL from the files of a TLS context.
 *
 * There is one SSL_CTX for clients, and for a server one for each name that has certificates;
 * all have the same settings.  Every handshake of a server begins with the same SSL_CTX, which
 * has the keys of all tickets, and switches to another when the client names a host
 * (tls_name.c).
 *
 * The system's authorities are a file, which OpenSSL reads when a set is built, and a folder, from
 * which it reads one file for each authority that it needs, while it verifies.  Either may be
 * missing.  Apart from its own configuration, OpenSSL reads no other files.
 */
#include <string.h>
#include <openssl/err.h>
#include "base/report.h"
#include "net/tls/tls_set.h"

#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"
#define CIPHERS_1_3                                      \
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:" \
	"TLS_CHACHA20_POLY1305_SHA256"
#define SECURITY  2  /* security level of OpenSSL: 112 bits */
#define DEPTH_MAX 10 /* certificates between the peer's and a trusted one */
#define CA_NAMES  32 /* if there are more authorities, clients get no list of them */

static const uint64_t options = SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION
                                | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA;

/* Partial writes are not enabled: records that are begun always have room (tls_session.c).  A call
 * that writes everything keeps OpenSSL's buffer from one record to the next. */
static const long modes = SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS
                          | SSL_MODE_NO_AUTO_CHAIN;

/* Authorities, while a set is built. */
struct load {
	X509_STORE *trusted;
	STACK_OF(X509) * ca; /* NULL: the system's */
};

/* WEFT_ENOMEM if the error queue reports lack of memory, else WEFT_EINVAL with `file` and the
 * reason in the queue. */
static int
tls_set_fail(const char *file, const char *what)
{
	unsigned long error = ERR_peek_last_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;

	if (weft__tls_no_memory())
		return weft__fail(WEFT_ENOMEM, "weft_tls: out of memory");
	return weft_fail(WEFT_EINVAL, "weft_tls: %s: %s: %s", file, what,
	                 reason ? reason : "refused");
}

/* --- settings ----------------------------------------------------------- */

static bool
set_common(SSL_CTX *ctx, const weft_tls_opts *opts)
{
	int version = opts->version_min ? (int)opts->version_min : TLS1_2_VERSION;

	(void)SSL_CTX_set_options(ctx, options);
	(void)SSL_CTX_set_mode(ctx, modes);
	SSL_CTX_set_security_level(ctx, SECURITY);
	SSL_CTX_set_verify_depth(ctx, DEPTH_MAX);
	SSL_CTX_set_info_callback(ctx, weft__tls_on_state);
	return SSL_CTX_set_min_proto_version(ctx, version) && SSL_CTX_set_max_proto_version(ctx, 0)
	       && SSL_CTX_set_cipher_list(ctx, CIPHERS)
	       && SSL_CTX_set_ciphersuites(ctx, CIPHERS_1_3);
}

static bool
set_client(SSL_CTX *ctx, struct weft__tls_set *set, const struct load *load)
{
	bool any = set->opts->dangerously_accept_any_peer;

	SSL_CTX_set_verify(ctx, any ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
	                   any ? NULL : weft__tls_on_verify);
	(void)SSL_CTX_set_session_cache_mode(ctx,
	                                     SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, weft__tls_on_ticket);
	if (load->trusted)
		SSL_CTX_set1_cert_store(ctx, load->trusted);
	return !set->alpn /* this function returns 0 on success */
	       || SSL_CTX_set_alpn_protos(ctx, set->alpn, (unsigned)set->alpn_size) == 0;
}

static bool
request_client_cert(SSL_CTX *ctx, const struct load *load)
{
	int count = sk_X509_num(load->ca);

	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
	                   weft__tls_on_verify);
	SSL_CTX_set1_cert_store(ctx, load->trusted);
	for (int i = 0; i < count && count <= CA_NAMES; i++)
		if (!SSL_CTX_add_client_CA(ctx, sk_X509_value(load->ca, i)))
			return false;
	return true;
}

static bool
set_server(SSL_CTX *ctx, struct weft__tls_set *set, const struct load *load)
{
	static const unsigned char id[] = "weft"; /* until a client has named a host */
	bool tickets = !set->opts->no_tickets;

	/* One ticket is enough: a client that resumes gets the next. */
	if (!SSL_CTX_set_num_tickets(ctx, tickets))
		return false;
	if (!tickets)
		(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_client_hello_cb(ctx, weft__tls_on_hello, set);
	(void)SSL_CTX_set_tlsext_servername_callback(ctx, weft__tls_on_name);
	(void)SSL_CTX_set_tlsext_servername_arg(ctx, set);
	if (set->alpn)
		SSL_CTX_set_alpn_select_cb(ctx, weft__tls_on_alpn, set);
	if (set->opts->require_client_cert && !request_client_cert(ctx, load))
		return false;
	return SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1);
}

static SSL_CTX *
new_ctx(struct weft__tls_set *set, const struct load *load, int role)
{
	bool client = role == WEFT_TLS_CLIENT;
	SSL_CTX *ctx = SSL_CTX_new(client ? TLS_client_method() : TLS_server_method());

	if (ctx && set_common(ctx, set->opts)
	    && (client ? set_client(ctx, set, load) : set_server(ctx, set, load)))
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

/* --- trusted authorities ------------------------------------------------ */

static int
load_trusted(const weft_tls_opts *opts, struct load *load)
{
	int rc;

	if (opts->ca_file) {
		rc = weft__tls_load_certs(opts->ca_file, &load->ca);
		if (rc < 0)
			return rc;
	}
	ERR_clear_error();
	load->trusted = X509_STORE_new();
	if (!load->trusted)
		return tls_set_fail("authorities", "cannot be stored");
	if (!load->ca && !X509_STORE_set_default_paths(load->trusted))
		return tls_set_fail("the system's authorities", "cannot be used");
	for (int i = 0; i < sk_X509_num(load->ca); i++)
		if (!X509_STORE_add_cert(load->trusted, sk_X509_value(load->ca, i)))
			return tls_set_fail(opts->ca_file, "cannot be trusted");
	ERR_clear_error();
	return 0;
}

/* --- own certificates --------------------------------------------------- */

/* A certificate of our own, with the intermediate ones. */
struct own {
	const weft_tls_cert *from;
	STACK_OF(X509) * chain; /* without `cert` */
	X509 *cert;
	EVP_PKEY *key;
};

static void
drop_own(struct own *own)
{
	X509_free(own->cert);
	EVP_PKEY_free(own->key);
	weft__tls_free_certs(own->chain);
}

/* An expired certificate is used all the same: a server with an old certificate is better than
 * none, and its clients will report it. */
static void
report_if_expired(const struct own *own)
{
	weft_report report = { .kind = WEFT_REPORT_LOG, .level = 1 };

	if (X509_cmp_current_time(X509_get0_notAfter(own->cert)) >= 0)
		return;
	(void)weft_fail(0, "weft_tls: %s: the certificate has expired", own->from->chain_file);
	report.text = weft_detail();
	weft__report(&report);
}

static int
load_own(struct own *own)
{
	const weft_tls_cert *from = own->from;
	const char *key_file = from->key_file ? from->key_file : from->chain_file;
	int rc = weft__tls_load_certs(from->chain_file, &own->chain);

	if (rc < 0)
		return rc;
	own->cert = sk_X509_shift(own->chain);
	rc = weft__tls_load_key(key_file, &own->key);
	if (rc < 0)
		return rc;
	ERR_clear_error();
	if (X509_check_private_key(own->cert, own->key))
		return 0;
	ERR_clear_error();
	return weft_fail(WEFT_EINVAL,
	                 "weft_tls: %s: the key does not match the first certificate in %s",
	                 key_file, from->chain_file);
}

static int
use_own(SSL_CTX *ctx, const struct own *own)
{
	ERR_clear_error();
	if (SSL_CTX_use_cert_and_key(ctx, own->cert, own->key, own->chain, 0))
		return 0;
	if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_NOT_REPLACING_CERTIFICATE) {
		ERR_clear_error();
		return weft_fail(WEFT_EINVAL,
		                 "weft_tls: %s: a second certificate for the "
		                 "same name, with the same kind of key",
		                 own->from->chain_file);
	}
	return tls_set_fail(own->from->chain_file, "the certificate cannot be used");
}

static bool
same_name(const char *a, const char *b)
{
	return a && b ? weft__tls_same_name(a, b) : a == b;
}

/* The context for `name`, referenced: the existing one, or a new one. */
static SSL_CTX *
ctx_of(struct weft__tls_set *set, const struct load *load, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (same_name(set->named[i].name, name)) {
			(void)SSL_CTX_up_ref(set->named[i].ctx);
			return set->named[i].ctx;
		}
	return new_ctx(set, load, WEFT_TLS_SERVER);
}

/* The name of the certificates that a client uses. */
static const char *
client_name(const weft_tls_opts *opts)
{
	for (size_t i = 0; i < opts->cert_count; i++)
		if (!opts->certs[i].name)
			return NULL;
	return opts->certs[0].name;
}

static int
add_own(struct weft__tls_set *set, const struct load *load, const struct own *own)
{
	const char *name = own->from->name;
	SSL_CTX *ctx = ctx_of(set, load, name);
	int rc;

	if (!ctx)
		return tls_set_fail(own->from->chain_file, "cannot create a context for it");
	set->named[set->count++] = (struct weft__tls_named){ name, ctx };
	rc = use_own(ctx, own);
	if (rc == 0 && same_name(name, client_name(set->opts)))
		rc = use_own(set->client, own);
	if (rc == 0 && (!set->server || !name))
		set->server = ctx;
	if (rc == 0)
		report_if_expired(own);
	return rc;
}

static int
load_owns(struct weft__tls_set *set, const struct load *load)
{
	size_t count = set->opts->cert_count;
	int rc = 0;

	if (count == 0)
		return 0;
	set->named = weft__alloc_zero(count * sizeof(set->named[0]));
	if (!set->named)
		return weft__fail(WEFT_ENOMEM, "weft_tls: out of memory");
	for (size_t i = 0; i < count && rc == 0; i++) {
		struct own own = { .from = &set->opts->certs[i] };

		rc = load_own(&own);
		if (rc == 0)
			rc = add_own(set, load, &own);
		drop_own(&own);
	}
	return rc;
}

/* --- the set ------------------------------------------------------------ */

static int
write_alpn(struct weft__tls_set *set)
{
	const char *const *names = set->opts->alpn;
	uint8_t *to;

	for (size_t i = 0; names && names[i]; i++)
		set->alpn_size += 1 + strlen(names[i]);
	if (set->alpn_size == 0)
		return 0;
	to = set->alpn = weft__sys->alloc(set->alpn_size);
	if (!to)
		return weft__fail(WEFT_ENOMEM, "weft_tls: out of memory");
	for (size_t i = 0; names[i]; i++) {
		*to = (uint8_t)strlen(names[i]);
		memcpy(to + 1, names[i], *to);
		to += 1 + *to;
	}
	return 0;
}

static int
build(struct weft__tls_set *set, struct load *load)
{
	int rc = write_alpn(set);

	if (rc == 0)
		rc = load_trusted(set->opts, load);
	if (rc < 0)
		return rc;
	set->bio = weft__tls_bio_new();
	set->client = new_ctx(set, load, WEFT_TLS_CLIENT);
	if (!set->bio || !set->client)
		return tls_set_fail("settings", "not accepted by OpenSSL");
	return load_owns(set, load);
}

/* Accepts a set that is only partly built. */
static void
free_set(struct weft__tls_set *set)
{
	weft__tickets_fini(&set->tickets);
	for (size_t i = 0; i < set->count; i++)
		SSL_CTX_free(set->named[i].ctx);
	SSL_CTX_free(set->client);
	BIO_meth_free(set->bio);
	weft__sys->release(set->named);
	weft__sys->release(set->alpn);
	weft__sys->release(set->opts);
	weft__sys->release(set);
}

void
weft__tls_set_unref(struct weft__tls_set *set)
{
	/* The thread that drops the last reference sees all changes by the others. */
	if (set && weft__add(&set->refs, UINT32_MAX, WEFT__ACQ_REL) == 1)
		free_set(set);
}

int
weft__tls_set_new(const weft_tls_opts *opts, struct weft__tls_set **out)
{
	struct weft__tls_set *set = weft__alloc_zero(sizeof(*set));
	struct load load = { 0 };
	int rc;

	if (!set)
		return weft__fail(WEFT_ENOMEM, "weft_tls: out of memory");
	weft__store(&set->refs, 1, WEFT__RELAXED);
	set->opts = weft__tls_setup_copy(opts);
	/* OpenSSL must not clean up at exit while loops still run. */
	if (!set->opts)
		rc = WEFT_ENOMEM;
	else if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL))
		rc = tls_set_fail("OpenSSL", "cannot be initialized");
	else
		rc = build(set, &load);
	X509_STORE_free(load.trusted);
	weft__tls_free_certs(load.ca);
	ERR_clear_error();
	if (rc < 0)
		free_set(set);
	else
		*out = set;
	return rc;
}
