/* weft/dgram.h - datagrams: UDP and Unix, always in batches.
 *
 * A single message is a batch of one.  As with streams, a socket belongs to no loop until the
 * first call that waits on it.  From then on it belongs to the loop of that call, which cannot be
 * freed before the socket is closed; calls from another loop return WEFT_EWRONGLOOP.  Only one
 * threadlet may receive at a time: a second one gets WEFT_EBUSY.  Any number may send.
 */
#ifndef WEFT_DGRAM_H
#define WEFT_DGRAM_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/op.h>

WEFT_BEGIN

typedef struct weft_dgram weft_dgram;

typedef struct weft_dgram_opts {
	weft_addr peer;       /* connected mode: send to and receive from this peer only */
	bool      broadcast;
	bool      reuse_port;
	bool      borrow;     /* fd:N stays open and belongs to the caller */
	uint64_t  spare[4];   /* must be zero: room for later versions */
} weft_dgram_opts;

typedef struct weft_message {
	void     *data;      /* caller's: bytes to send, or space to receive into */
	size_t    size;      /* send: the bytes to send; receive: the space, and on return the bytes
	                      * received */
	weft_addr addr;      /* send: the receiver, or zeroed for the connected peer; receive: the
	                      * sender */
	bool      truncated; /* receive: part of the message did not fit */
} weft_message;

/* Open a socket bound to `address`.  If that is fd:N, use this socket, and take it on success.
 * With a peer, `address` may be NULL: the system then chooses the local address.  A Unix path is
 * removed when the socket is closed.
 * Returns 0 and fills `out`, WEFT_EADDRINUSE, ...
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_open(const char *address, const weft_dgram_opts *opts,
                             weft_dgram **out);

/* Send up to `count` messages; borrows them.  A callback passes WEFT_NOWAIT, and gets
 * WEFT_ETIMEDOUT if the socket's send buffer is full.
 * Returns the number sent, at least one; or -errno, including errors that ICMP has reported.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dgram_send(weft_dgram *dgram, const weft_message *messages,
                             size_t count, uint64_t deadline_ns);

/* Receive available messages: at least one, at most `count`; fills size, addr and truncated.
 * Returns the number, or -errno.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dgram_recv(weft_dgram *dgram, weft_message *messages,
                             size_t count, uint64_t deadline_ns);

/* Called with `count` messages, borrowed until return; or with an error as `count` and no
 * messages.  When the socket is closed or its loop stops, the last call has WEFT_ESHUTDOWN; it
 * comes even if weft_dgram_stop() has paused delivery. */
typedef void (*weft_dgram_fn)(weft_dgram *dgram, const weft_message *messages,
                              int count, void *arg);

/* start: deliver messages to a callback on `loop` (NULL: the socket's loop, else the caller's).
 * stop: pause delivery until the next start.
 * Return 0, WEFT_EBUSY if a threadlet receives, WEFT_EWRONGLOOP if the socket belongs to another
 * loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_start(weft_dgram *dgram, weft_loop *loop,
                              weft_dgram_fn fn, void *arg);
WEFT_API int weft_dgram_stop(weft_dgram *dgram);

/* local: get the address that the socket is bound to.  fd: get its descriptor, for example for
 * setsockopt(2) (buffers, TTL, multicast groups).  The descriptor is borrowed: only
 * weft_dgram_close() may close it.  That ends other waits for the descriptor with WEFT_ESHUTDOWN.
 * local returns 0 and fills `out`, fd the descriptor; or -errno.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_local(weft_dgram *dgram, weft_addr *out);
WEFT_API int weft_dgram_fd(weft_dgram *dgram);

/* Close the socket: waiting calls return WEFT_ESHUTDOWN.  Takes the socket; accepts NULL; not
 * cancelable.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_dgram_close(weft_dgram *dgram);

WEFT_END
#endif
