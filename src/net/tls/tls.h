/* tls.h - TLS of one connection, without any I/O.  Private.
 *
 * A session is bytes in, bytes out: whoever has the connection puts received bytes in,
 * calls, and sends what has come out.  Nothing here waits, and no descriptor is known.
 *
 *   1. After every call but room, came and sent there may be output, also after an error:
 *      the alert that tells the peer.  Send it before anything is waited for.
 *   2. WEFT_EAGAIN is not an error and has no text.  With output: send that first.
 *      Without: wait for input.
 *   3. Every other error is the end: it is said again by each later call.
 *   4. What room() gave is lent until came(), be it with 0: the session must not be
 *      closed, and nothing fed, until then; all other calls may be made.
 *   5. A session keeps no buffer while it has nothing to keep in one and none is lent.
 *      So wait for readability first, or receive elsewhere and feed, where idle
 *      connections must be small.
 *   6. The calls of one session come from one thread at a time.
 *
 * A handshake needs some 12 KiB of stack with RSA keys, with others half of that: a
 * threadlet that makes one must have it to spare.
 */
#ifndef WEFT_NET_TLS_H
#define WEFT_NET_TLS_H

#include <weft/tls.h>

struct weft__session;

#define WEFT__SESSION_OUT_MAX ((size_t)65536 - 64) /* bytes of output, at most */
#define WEFT__SESSION_IN_MAX  ((size_t)32768)      /* bytes of input, at most */

/* One more user of the context, who closes it, too; any thread. */
weft_tls *weft__tls_ref(weft_tls *tls);

/* A new session as WEFT_TLS_CLIENT of the host `name`, a DNS name or the literal of an
 * address without brackets, or as WEFT_TLS_SERVER, without a name.  Files read later do
 * not matter to it, and the context may be closed.
 * 0, WEFT_EINVAL (no name; a server without certificates), WEFT_ENOMEM. */
int  weft__session_open(weft_tls *tls, int role, const char *name,
                        struct weft__session **out);
void weft__session_close(struct weft__session *s); /* in any state; NULL is fine */

/* 0 when it is done; WEFT_EAGAIN; WEFT_ECERT, WEFT_EPROTO, WEFT_ETRUNCATED,
 * WEFT_ENOMEM. */
int weft__session_handshake(struct weft__session *s);

/* Where received bytes are to be put, and how many fit; 0 if there is too much input that
 * was not read, or if there is no memory: then weft__session_pending() is 0. */
size_t weft__session_room(struct weft__session *s, void **out);
void   weft__session_came(struct weft__session *s, size_t size);

/* The same by copy: how many bytes were taken, or WEFT_ENOMEM. */
int64_t weft__session_feed(struct weft__session *s, const void *bytes, size_t size);

/* No input will follow. */
void weft__session_ended(struct weft__session *s);

/* Plain bytes, after the handshake: the count; 0 if the peer has said goodbye;
 * WEFT_EAGAIN; WEFT_ETRUNCATED if the input has ended without a goodbye; WEFT_EPROTO,
 * WEFT_ECERT if the peer did not like our certificate, WEFT_ENOMEM.  `size` > 0. */
int64_t weft__session_read(struct weft__session *s, void *buf, size_t size);

/* Take plain bytes, after the handshake: how many, or WEFT_EAGAIN if there is much
 * output; WEFT_ESHUTDOWN after our goodbye; errors as of a read.  It works after the peer's
 * goodbye, too. */
int64_t weft__session_write(struct weft__session *s, const void *buf, size_t size);

/* What is to be sent, in one piece, and how much of that has been.  The piece stays where
 * it is until all of it has been; then there may be another one. */
size_t weft__session_output(struct weft__session *s, const void **out);
void   weft__session_sent(struct weft__session *s, size_t size);

/* Say goodbye to the peer, once: nothing is written after that, but can be read.  Before
 * the end of the handshake there is nothing to say.  0, or WEFT_EAGAIN: send output and
 * call again. */
int weft__session_goodbye(struct weft__session *s);

/* Bytes that have come in and were not read, plain or not. */
size_t weft__session_pending(const struct weft__session *s);

/* What was agreed; after the handshake, else WEFT_EINVAL.  The texts are the session's.
 * 0, WEFT_ENOMEM. */
int weft__session_info(struct weft__session *s, weft_tls_info *out);

#endif
