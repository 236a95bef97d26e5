/* tls.h - TLS of one connection, without I/O.  Private.
 *
 * A session is bytes in, bytes out: the owner of the connection feeds received bytes to it,
 * makes calls, and sends the output.  Nothing here waits, and no descriptor is known.
 *
 *   1. handshake, read, write and close_notify may produce output, even if they fail: the alert
 *      that notifies the peer.  Send the output before you wait for anything.
 *   2. WEFT_EAGAIN is not an error and has no text.  If there is output, send it first.  If
 *      not, wait for input.
 *   3. An error of the protocol or of OpenSSL ends the session: handshake, read and write return
 *      it again.  A call that is refused before it reaches OpenSSL changes nothing: by
 *      WEFT_ESHUTDOWN, WEFT_EINVAL, or WEFT_ENOMEM for lack of a buffer.
 *   4. The memory that room() returns is lent until came(), which may be called with 0.  Until
 *      then the session must not be closed or fed, and room() must not be called again; all other
 *      calls are allowed.
 *   5. A session has no buffer while it has nothing to buffer and none is lent.  Where idle
 *      connections must be small, wait for readability before room(), or receive elsewhere and
 *      feed.
 *   6. The calls of one session come from one thread at a time.
 *
 * A handshake needs some 12 KiB of stack with RSA keys, and half of that with others.  A
 * threadlet that does a handshake must have that much to spare.
 */
#ifndef WEFT_NET_TLS_H
#define WEFT_NET_TLS_H

#include <weft/tls.h>

struct weft__session;

#define WEFT__SESSION_OUT_MAX ((size_t)65536 - 64) /* maximum of output, in bytes */
#define WEFT__SESSION_IN_MAX  ((size_t)32768)      /* maximum of input, in bytes */

/* Add a reference to the context, which weft_tls_close() drops.  Thread: any. */
weft_tls *weft__tls_ref(weft_tls *tls);

/* Create a session: WEFT_TLS_CLIENT for the host `name`, a DNS name or a literal address
 * without brackets, or WEFT_TLS_SERVER, without a name.  A later reload does not affect the
 * session, and the context may be closed.  Returns 0, WEFT_EINVAL (no name; a server without
 * certificates), WEFT_ENOMEM. */
int  weft__session_open(weft_tls *tls, int role, const char *name,
                        struct weft__session **out);
void weft__session_close(struct weft__session *s); /* unless room is lent; NULL is fine */

/* Returns 0 when the handshake is done; WEFT_EAGAIN; WEFT_ECERT, WEFT_EPROTO, WEFT_ETRUNCATED,
 * WEFT_ENOMEM. */
int weft__session_handshake(struct weft__session *s);

/* room: where to put received bytes, and how many fit.  Returns 0 if there is too much input
 * that was not read, or if out of memory.  If weft__session_pending() is 0 then, the reason is
 * lack of memory.  came: `size` bytes were put there. */
size_t weft__session_room(struct weft__session *s, void **out);
void   weft__session_came(struct weft__session *s, size_t size);

/* Add received bytes by copying them, instead of room and came.  Returns how many bytes were taken,
 * 0 if there is too much input that was not read, or WEFT_ENOMEM. */
int64_t weft__session_feed(struct weft__session *s, const void *bytes, size_t size);

/* No more input will follow. */
void weft__session_ended(struct weft__session *s);

/* Read plain bytes, after the handshake.  `size` > 0.  Returns the count; 0 if the peer has
 * sent its close_notify; WEFT_EAGAIN; WEFT_ETRUNCATED if the input has ended without a
 * close_notify; WEFT_EPROTO, WEFT_ECERT if the peer has refused our certificate, WEFT_ENOMEM. */
int64_t weft__session_read(struct weft__session *s, void *buf, size_t size);

/* Accept plain bytes to send, after the handshake.  Returns how many, or WEFT_EAGAIN if there
 * is much output; WEFT_ESHUTDOWN after our close_notify; errors as of a read.  Writing works after
 * the peer's close_notify, too. */
int64_t weft__session_write(struct weft__session *s, const void *buf, size_t size);

/* output: what to send, in one piece.  The piece stays in place until all of it was sent; then
 * there may be another one.  sent: `size` bytes of it were sent. */
size_t weft__session_output(struct weft__session *s, const void **out);
void   weft__session_sent(struct weft__session *s, size_t size);

/* Produce our close_notify, once.  Nothing can be written after that, but reading continues.
 * Does nothing before the end of the handshake, and after an error.  Returns 0, WEFT_EAGAIN (send
 * the output and call again), or an error. */
int weft__session_close_notify(struct weft__session *s);

/* Received bytes that were not read yet, plain or encrypted. */
size_t weft__session_pending(const struct weft__session *s);

/* What was negotiated.  The texts belong to the session.  Returns 0, WEFT_EINVAL before the end
 * of the handshake, WEFT_ENOMEM. */
int weft__session_info(struct weft__session *s, weft_tls_info *out);

#endif
