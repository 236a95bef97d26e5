/* weft/tls.h - TLS, client and server: certificates and trust.
 *
 * Verification and the host-name check are on by default; the oldest version is TLS 1.2.  A
 * context holds certificates and settings for both roles, may be used by all loops and threads,
 * and never changes except by weft_tls_reload().
 *
 *   1. A client verifies the server's chain, its validity dates, its purpose, and that it is
 *      valid for the requested host.  The host must match one of the certificate's alternative
 *      names or addresses, never its common name; a "*" matches one whole label.  The only way
 *      to turn this off is dangerously_accept_any_peer.
 *   2. A server that requests a client certificate accepts no client without one.
 *   3. RSA keys below 2,048 bits and signatures with MD5 or SHA-1 are refused; so are
 *      renegotiation, compression and ciphers without forward secrecy.
 *   4. Sessions are resumed by tickets, only under the server name they were made for.  A
 *      client keeps the last ticket of up to 64 hosts.  A reload invalidates all tickets on
 *      both sides: a peer that the new files do not trust cannot connect with an old ticket.
 */
#ifndef WEFT_TLS_H
#define WEFT_TLS_H

#include <weft/base.h>
#include <weft/stream.h>
#include <weft/value.h>

WEFT_BEGIN

/* Two certificates with the same name and different key types (RSA, ECDSA) are both used: each
 * client gets the one that it supports. */
typedef struct weft_tls_cert {
	const char *name;       /* SNI name, "*.example.org"; NULL: the default */
	const char *chain_file; /* PEM, the server's or client's own certificate first */
	const char *key_file;   /* PEM, without a password; NULL: in chain_file */
} weft_tls_cert;

typedef struct weft_tls_opts {
	const weft_tls_cert *certs;    /* a server needs at least one; a client uses the default
	                                * one, else the first, if there is any */
	size_t               cert_count;
	const char          *ca_file;  /* trusted CAs; default: the system's */
	const char *const   *alpn;     /* in order of preference, NULL-terminated */
	bool                 require_client_cert; /* server; needs ca_file */
	uint32_t             version_min;       /* 0x0303 (default), 0x0304 */
	bool dangerously_accept_any_peer;       /* client: no verification at all */
	bool                 no_tickets;        /* server: no resumption, only full handshakes */
	uint64_t             spare[4];          /* must be zero: room for later versions */
} weft_tls_opts;

/* Read certificates and make a context; borrows `opts` until it returns.  If a certificate in
 * `certs` has expired, it is accepted, and weft_detail() says so.
 * Returns 0 and fills `out`, WEFT_ENOENT, WEFT_EPERM, WEFT_EINVAL (key and certificate do not
 * match, the key has a password, not PEM, ...), with the file in weft_detail(); WEFT_ENOMEM,
 * WEFT_ENOSYS if this build has no TLS.
 * Thread: any.  Blocks: the thread, on files.  Since: 0.1. */
WEFT_API int weft_tls_open(const weft_tls_opts *opts, weft_tls **out);

/* Read the files again; new handshakes use the new contents.  On error the context does not
 * change.
 * Returns as weft_tls_open().
 * Thread: any.  Blocks: the thread, on files.  Since: 0.1. */
WEFT_API int weft_tls_reload(weft_tls *tls);

/* Close the context.  Streams and listeners that use it still can: it is freed with the last of
 * them.  Accepts NULL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_tls_close(weft_tls *tls);

enum { WEFT_TLS_CLIENT, WEFT_TLS_SERVER };

/* Start TLS on a plain stream, as `role` (WEFT_TLS_CLIENT or WEFT_TLS_SERVER).  `name` is the
 * host that a client verifies; a server ignores it.  The call needs about 16 KiB of stack.
 * Bytes that arrived before the call and were not read are never delivered as decrypted data.  If
 * there are any, a client refuses to start with WEFT_EPROTO, and the stream stays plain; a server
 * takes them as the start of the handshake.  In both roles, bytes that are not TLS make the
 * handshake fail with WEFT_EPROTO.
 * Returns 0, WEFT_ECERT, WEFT_EPROTO, WEFT_ETRUNCATED, ...; WEFT_EBUSY if the stream is in use or
 * uses TLS already; WEFT_EINVAL with WEFT_NOWAIT, because a handshake takes time.  After a failed
 * handshake the stream can only be closed: reads and writes return the same error.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_tls_start(weft_stream *stream, weft_tls *tls, int role,
                            const char *name, uint64_t deadline_ns);

typedef struct weft_tls_info { /* texts are borrowed until the stream is closed */
	const char *version;      /* "TLSv1.3" */
	const char *cipher;
	const char *alpn;         /* "" if none was negotiated */
	const char *server_name;  /* SNI; "" if none */
	const char *peer_subject; /* "" without a certificate */
	weft_span   peer_cert;    /* DER; empty without a certificate */
	bool        resumed;      /* the handshake resumed an earlier session */
	uint64_t    spare[4];     /* room for later versions */
} weft_tls_info;

/* Get the negotiated properties of a TLS stream.
 * Returns 0, WEFT_EINVAL if it is not TLS.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_tls(weft_stream *stream, weft_tls_info *out);

WEFT_END
#endif
