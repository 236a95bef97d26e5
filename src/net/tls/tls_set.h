/* tls_set.h - what the files that use OpenSSL share.  Private.
 *
 * A set is what was read from the files at one time: SSL_CTXs for both roles.  It never
 * changes, but for its cache; a reload makes another one.  Sessions hold theirs.
 *
 * The files: tls.c (contexts and their lives), tls_setup.c (a copy of the options),
 * tls_set.c (sets), tls_file.c (PEM), tls_name.c (which certificate, which protocol),
 * tls_cache.c (the client's tickets), tls_verdict.c and tls_text.c (what is said of
 * certificates and errors), tls_bio.c (the session's buffers), tls_session.c and
 * tls_info.c (sessions).
 */
#ifndef WEFT_NET_TLS_SET_H
#define WEFT_NET_TLS_SET_H

#include <openssl/ssl.h>
#include "base/lock.h"
#include "base/thread.h"
#include "net/tls/tls.h"

#define WEFT__TLS_NAME_MAX  255 /* bytes of a host name */
#define WEFT__TLS_CACHE_MAX 64  /* hosts whose tickets are kept */

/* --- options ------------------------------------------------------------ */

/* A copy, in one piece of memory; NULL without memory, with its text. */
weft_tls_opts *weft__tls_setup_copy(const weft_tls_opts *opts);

/* 0, or WEFT_EINVAL with its text. */
int weft__tls_setup_check(const weft_tls_opts *opts);

/* --- files -------------------------------------------------------------- */

/* The certificates of a file; takes nothing.  0 or an error with the file in its text. */
int  weft__tls_load_certs(const char *path, STACK_OF(X509) **out);
int  weft__tls_load_key(const char *path, EVP_PKEY **out);
void weft__tls_free_certs(STACK_OF(X509) *certs);

/* --- tickets ------------------------------------------------------------ */

struct weft__ticket {
	char        *name; /* NULL: a free place */
	SSL_SESSION *session;
	uint64_t     used; /* when, in the cache's count */
};

struct weft__tickets {
	struct weft__lock   lock;
	uint64_t            count;
	struct weft__ticket places[WEFT__TLS_CACHE_MAX];
};

/* Keep `session` for `name`; takes it if true. */
bool weft__tickets_put(struct weft__tickets *t, const char *name, SSL_SESSION *session);

/* One to be used for `name`, which the caller frees; or NULL.  Those that must not be
 * used twice are gone with that. */
SSL_SESSION *weft__tickets_take(struct weft__tickets *t, const char *name);
void         weft__tickets_fini(struct weft__tickets *t);

/* --- sets --------------------------------------------------------------- */

struct weft__tls_named {
	const char *name; /* of `opts`; NULL: the default */
	SSL_CTX    *ctx;  /* referenced */
};

struct weft__tls_set {
	weft__a32  refs;
	SSL_CTX   *client;
	SSL_CTX   *server;  /* by which handshakes begin; NULL without certificates */
	BIO_METHOD *bio;
	weft_tls_opts *opts; /* a copy */
	uint8_t   *alpn;    /* as in the protocol, each with its size before; or NULL */
	size_t     alpn_size;
	size_t     count;   /* of `named` */
	struct weft__tls_named *named; /* by certificate; some have the same ctx */
	struct weft__tickets tickets;
};

int  weft__tls_set_new(const weft_tls_opts *opts, struct weft__tls_set **out);
void weft__tls_set_unref(struct weft__tls_set *set); /* NULL is fine */

/* The present one of `tls`, for the caller to unref. */
struct weft__tls_set *weft__tls_set_of(weft_tls *tls);

/* Callbacks of OpenSSL. */
int weft__tls_on_name(SSL *ssl, int *alert, void *set);
int weft__tls_on_hello(SSL *ssl, int *alert, void *set);
int weft__tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                      const unsigned char *in, unsigned int in_size, void *set);
int weft__tls_on_ticket(SSL *ssl, SSL_SESSION *session);
int weft__tls_on_verify(int ok, X509_STORE_CTX *store);
void weft__tls_on_state(const SSL *ssl, int where, int result);

/* The same host name, whatever its letters' case. */
bool weft__tls_same_name(const char *a, const char *b);

/* --- sessions ----------------------------------------------------------- */

struct weft__tls_buffer {
	uint8_t *mem;  /* NULL while it is empty and not lent */
	uint32_t size; /* of mem */
	uint32_t head, tail; /* bytes from head to tail are in it */
};

struct weft__session {
	SSL *ssl;
	struct weft__tls_set   *set;
	struct weft__tls_buffer in, out, sending; /* tls_bio.c */
	char    *name;    /* of the host, a client's; or NULL */
	char    *verdict; /* on the certificate that was not accepted; or NULL */
	char    *why;     /* the text of `broken`; or NULL */
	void    *info;    /* texts that were asked for; or NULL */
	int      broken;  /* the error that ended it; or 0 */
	uint32_t in_want; /* bytes, for the next buffer */
	uint32_t chatter; /* steps of the handshake's kind since the last data */
	uint8_t  role;
	bool     done;    /* the handshake is */
	bool     ended;   /* the input is */
	bool     lent;    /* room is */
	bool     said;    /* our goodbye is */
	bool     swollen; /* OpenSSL may hold buffers that it does not need */
	bool     no_name; /* the client asked for one that we have no certificate for */
	bool     no_memory; /* there was none for output */
};

BIO_METHOD *weft__tls_bio_new(void);

/* Room for `size` bytes more behind the tail, if the whole stays within `max`. */
bool weft__tls_buffer_reserve(struct weft__tls_buffer *b, size_t size, size_t max);
void weft__tls_buffer_release(struct weft__tls_buffer *b);
void weft__tls_in_release(struct weft__session *s); /* if it is empty and not lent */

/* How much more output there may be. */
size_t weft__tls_out_room(const struct weft__session *s);

/* --- texts -------------------------------------------------------------- */

/* Whether the thread's error queue speaks of missing memory; empties it.  So does an
 * empty one: OpenSSL may have had no memory for its words. */
bool weft__tls_no_memory(void);

/* End the session: the error of what the queue says, told by its text. */
int weft__tls_break(struct weft__session *s);

/* The same by an error and a text of our own; printf(3)'s manner. */
int weft__tls_break_by(struct weft__session *s, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The common name of a subject or issuer, else all of it, printable; in `buf`. */
const char *weft__tls_subject(const X509_NAME *name, char *buf, size_t size);

/* A copy in the library's memory, or NULL. */
char *weft__tls_text_copy(const char *text);

#endif
