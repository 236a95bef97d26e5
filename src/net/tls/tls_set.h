/* tls_set.h - the definitions that the files that use OpenSSL share.  Private.
 *
 * A set is the content of the files at one time: SSL_CTXs for both roles.  It never changes,
 * except for its cache of tickets; a reload makes a new set.  Each session references its set.
 *
 * The files: tls.c (contexts), tls_setup.c (a copy of the options), tls_set.c (sets),
 * tls_file.c (PEM), tls_name.c (choice of certificate and protocol), tls_cache.c (the client's
 * tickets), tls_verdict.c and tls_text.c (error texts for certificates, and for all else),
 * tls_bio.c (the session's buffers), tls_session.c and tls_info.c (sessions).
 */
#ifndef WEFT_NET_TLS_SET_H
#define WEFT_NET_TLS_SET_H

#include <openssl/ssl.h>
#include "base/lock.h"
#include "base/thread.h"
#include "net/tls/tls.h"

#define WEFT__TLS_NAME_MAX  255 /* bytes of a host name */
#define WEFT__TLS_CACHE_MAX 64  /* hosts with a cached ticket */

/* --- options ------------------------------------------------------------ */

/* Copy the options into one block of memory.  NULL if out of memory, with its text. */
weft_tls_opts *weft__tls_setup_copy(const weft_tls_opts *opts);

/* Check the options.  Returns 0, or WEFT_EINVAL with its text. */
int weft__tls_setup_check(const weft_tls_opts *opts);

/* --- files -------------------------------------------------------------- */

/* Load the certificates, or the key, of a file.  Returns 0, or an error with a text that names
 * the file. */
int  weft__tls_load_certs(const char *path, STACK_OF(X509) **out);
int  weft__tls_load_key(const char *path, EVP_PKEY **out);
void weft__tls_free_certs(STACK_OF(X509) *certs);

/* --- tickets ------------------------------------------------------------ */

struct weft__ticket {
	char        *name; /* NULL: a free entry */
	SSL_SESSION *session;
	uint64_t     used; /* value of `count` at its last use */
};

struct weft__tickets {
	struct weft__lock   lock;
	uint64_t            count;
	struct weft__ticket entries[WEFT__TLS_CACHE_MAX];
};

/* Keep `session` for `name`.  Returns true if the cache owns it from now on. */
bool weft__tickets_put(struct weft__tickets *t, const char *name, SSL_SESSION *session);

/* Get a session to resume for `name`, which the caller frees; or NULL.  A ticket that must not
 * be used twice leaves the cache. */
SSL_SESSION *weft__tickets_take(struct weft__tickets *t, const char *name);
void         weft__tickets_fini(struct weft__tickets *t);

/* --- sets --------------------------------------------------------------- */

struct weft__tls_named {
	const char *name; /* in `opts`; NULL: the default */
	SSL_CTX    *ctx;  /* referenced */
};

struct weft__tls_set {
	weft__a32  refs;
	SSL_CTX   *client;
	SSL_CTX   *server;  /* with which handshakes begin; NULL without certificates */
	BIO_METHOD *bio;
	weft_tls_opts *opts; /* a copy */
	uint8_t   *alpn;    /* in the format of the protocol, each name behind its size; or NULL */
	size_t     alpn_size;
	size_t     count;   /* of `named` */
	struct weft__tls_named *named; /* one for each certificate; some share a ctx */
	struct weft__tickets tickets;
};

int  weft__tls_set_new(const weft_tls_opts *opts, struct weft__tls_set **out);
void weft__tls_set_unref(struct weft__tls_set *set); /* NULL is fine */

/* The current set of `tls`, for the caller to unref. */
struct weft__tls_set *weft__tls_set_of(weft_tls *tls);

/* Callbacks of OpenSSL. */
int weft__tls_on_name(SSL *ssl, int *alert, void *set);
int weft__tls_on_hello(SSL *ssl, int *alert, void *set);
int weft__tls_on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                      const unsigned char *in, unsigned int in_size, void *set);
int weft__tls_on_ticket(SSL *ssl, SSL_SESSION *session);
int weft__tls_on_verify(int ok, X509_STORE_CTX *store);
void weft__tls_on_state(const SSL *ssl, int where, int result);

/* Whether two host names are the same; letter case is ignored. */
bool weft__tls_same_name(const char *a, const char *b);

/* --- sessions ----------------------------------------------------------- */

struct weft__tls_buffer {
	uint8_t *mem;  /* NULL while it is empty and not lent */
	uint32_t size; /* of mem */
	uint32_t head, tail; /* the bytes in it are from head to tail */
};

struct weft__session {
	SSL *ssl;
	struct weft__tls_set   *set;
	struct weft__tls_buffer in, out, sending; /* see tls_bio.c */
	char    *name;    /* host name, for a client; or NULL */
	char    *verdict; /* why a certificate was not accepted; or NULL */
	char    *why;     /* the text of `broken`; or NULL */
	void    *info;    /* of weft__session_info(); or NULL */
	int      broken;  /* the error that ended it; or 0 */
	uint32_t in_want; /* size of the next input buffer */
	uint32_t chatter; /* handshake steps since the last data */
	uint8_t  role;
	bool     done;    /* the handshake is done */
	bool     ended;   /* the input has ended */
	bool     lent;    /* room is lent */
	bool     close_sent; /* our close_notify was sent */
	bool     swollen; /* OpenSSL may hold buffers that it does not need */
	bool     no_name; /* there is no certificate for the name that the client requested */
	bool     no_memory; /* there was no memory for output */
};

BIO_METHOD *weft__tls_bio_new(void);

/* Make room for `size` more bytes behind the tail.  False if the buffer would exceed `max`, or if
 * out of memory. */
bool weft__tls_buffer_reserve(struct weft__tls_buffer *b, size_t size, size_t max);
void weft__tls_buffer_release(struct weft__tls_buffer *b);
void weft__tls_in_release(struct weft__session *s); /* frees `in` if it is empty and not lent */

/* How much more output is allowed. */
size_t weft__tls_out_room(const struct weft__session *s);

/* --- texts -------------------------------------------------------------- */

/* Whether the thread's error queue reports lack of memory; clears the queue.  An empty queue
 * means the same: OpenSSL may have had no memory for an entry. */
bool weft__tls_no_memory(void);

/* End the session with the error in the queue, and set its text.  Returns the error. */
int weft__tls_break(struct weft__session *s);

/* End the session with an error and a text of our own, as printf(3).  Returns the error. */
int weft__tls_break_by(struct weft__session *s, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The common name of a subject or issuer, else its last entry; printable, in `buf`. */
const char *weft__tls_subject(const X509_NAME *name, char *buf, size_t size);

/* A copy in the library's memory, or NULL. */
char *weft__tls_text_copy(const char *text);

#endif
