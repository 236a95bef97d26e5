/* weft/tls.h - TLS, client and server: certificates and whom to trust.
 *
 * Verification and the host-name check are on; TLS 1.2 at least.  A context holds
 * certificates and settings for both roles, may be used by all loops and threads, and
 * is immutable but for reloading.
 *
 *   1. A client verifies the server's chain, its dates, what it is meant for, and that
 *      it is for the host asked for: one of its alternative names or addresses, never
 *      its common name; a "*" stands for one whole label.  There is one way around
 *      that, and its name says so.
 *   2. A server that asks for a certificate of the client accepts none without.
 *   3. Keys of RSA below 2,048 bits and signatures with MD5 or SHA-1 are refused; so are
 *      renegotiation, compression and ciphers without forward secrecy.
 *   4. Sessions are resumed by tickets, under the server name that they were made for and no
 *      other; a client keeps the last one of up to 64 hosts.
 *      Reloading forgets them, on both sides: nobody whom new files do not trust comes
 *      in by an old ticket.
 */
#ifndef WEFT_TLS_H
#define WEFT_TLS_H

#include <weft/base.h>
#include <weft/stream.h>
#include <weft/value.h>

WEFT_BEGIN

/* Two of the same name with different kinds of keys (RSA, ECDSA) are both used: which,
 * the client's abilities decide. */
typedef struct weft_tls_cert {
	const char *name;       /* SNI name, "*.example.org"; NULL: the default */
	const char *chain_file; /* PEM, the own certificate first */
	const char *key_file;   /* PEM, without a password; NULL: in chain_file */
} weft_tls_cert;

typedef struct weft_tls_opts {
	const weft_tls_cert *certs;    /* a server needs one; a client may have one: the
	                                * default, or else the first */
	size_t               cert_count;
	const char          *ca_file;  /* whom to trust; default: the system's */
	const char *const   *alpn;     /* in order of preference, NULL-terminated */
	bool                 ask_client_cert;   /* server: demand one; needs ca_file */
	uint32_t             version_min;       /* 0x0303 (default), 0x0304 */
	bool dangerously_accept_any_peer;       /* client: no verification at all */
	bool                 no_tickets;        /* server: every handshake is a full one */
	uint64_t             spare[4];
} weft_tls_opts;

/* Read certificates and make a context; borrows `opts` until it returns.  A certificate
 * of one's own that has expired is taken, and weft_detail() says so.
 * Returns 0 and fills `out`, WEFT_ENOENT, WEFT_EPERM, WEFT_EINVAL (key and certificate
 * do not match, a password, not PEM, ...), with the file in weft_detail(); WEFT_ENOMEM,
 * WEFT_ENOSYS if this build has no TLS.
 * Thread: any.  Blocks: reads files.  Since: 0.1. */
WEFT_API int weft_tls_open(const weft_tls_opts *opts, weft_tls **out);

/* Read the files again; new handshakes use them.  On error all stays as it was.
 * Returns as weft_tls_open().
 * Thread: any.  Blocks: reads files.  Since: 0.1. */
WEFT_API int weft_tls_reload(weft_tls *tls);

/* Close; streams and listeners that use it keep it as long as they need.  NULL is fine.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_tls_close(weft_tls *tls);

enum { WEFT_TLS_CLIENT, WEFT_TLS_SERVER };

/* Turn a plain stream into TLS, as `role`; `name` is the host to verify (client), or NULL.
 * Plain bytes that arrived before and were not read are never taken for those of TLS.  A
 * client refuses to begin: WEFT_EPROTO, and the stream is plain as before.  To a server
 * they are the beginning of the handshake; if they are none, that fails with WEFT_EPROTO,
 * as it does in both roles by what comes later.  It needs some 16 KiB of stack.
 * Returns 0, WEFT_ECERT, WEFT_EPROTO, WEFT_ETRUNCATED, ...; after an error of the handshake
 * the stream can only be closed: reads and writes tell the same error.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_tls_start(weft_stream *stream, weft_tls *tls, int role,
                            const char *name, uint64_t deadline_ns);

typedef struct weft_tls_info { /* texts borrowed until the stream is closed */
	const char *version;      /* "TLSv1.3" */
	const char *cipher;
	const char *alpn;         /* "" if none was agreed */
	const char *server_name;  /* SNI; "" without */
	const char *peer_subject; /* "" without a certificate */
	weft_span   peer_cert;    /* DER; empty without */
	bool        resumed;
	uint64_t    spare[4];
} weft_tls_info;

/* What was agreed on a stream.
 * Returns 0, WEFT_EINVAL if it is not TLS.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_tls(weft_stream *stream, weft_tls_info *out);

WEFT_END
#endif
