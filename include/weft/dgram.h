/* weft/dgram.h - datagrams: UDP and Unix, always in batches.
 *
 * A single message is a batch of one.  As with streams, a socket belongs to no loop until the
 * first call that waits on it, then to that loop, which cannot be freed before the socket is
 * closed; calls from another loop return WEFT_EWRONGLOOP.  One threadlet may receive at a time,
 * else WEFT_EBUSY; any number may send.
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
	uint64_t  spare[4];
} weft_dgram_opts;

typedef struct weft_message {
	void     *data;      /* caller's: bytes to send, or space to receive into */
	size_t    size;      /* bytes to send; the space, then the bytes received */
	weft_addr addr;      /* to (zeroed: the connected peer), or from */
	bool      truncated; /* part of the message did not fit */
} weft_message;

/* Open a socket bound to `address` (NULL with a peer: any), or take the socket of fd:N on
 * success.  A Unix path is removed when the socket is closed.
 * Returns 0 and fills `out`, WEFT_EADDRINUSE, ...
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_open(const char *address, const weft_dgram_opts *opts,
                             weft_dgram **out);

/* Send up to `count` messages; borrows them.  A callback passes WEFT_NOWAIT, and gets
 * WEFT_ETIMEDOUT if there is no room.
 * Returns the number sent, at least one; or -errno, ICMP errors included.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dgram_send(weft_dgram *dgram, const weft_message *messages,
                             size_t count, uint64_t deadline_ns);

/* Receive available messages: at least one, at most `count`; fills size, addr and truncated.
 * Returns the number, or -errno.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dgram_recv(weft_dgram *dgram, weft_message *messages,
                             size_t count, uint64_t deadline_ns);

/* Called with `count` messages, borrowed until return; or with an error as `count` and no
 * messages.  WEFT_ESHUTDOWN is the last call, when the socket is closed or its loop stops, also
 * while paused. */
typedef void (*weft_dgram_fn)(weft_dgram *dgram, const weft_message *messages,
                              int count, void *arg);

/* Deliver messages to a callback on `loop` (NULL: the socket's loop, else the caller's); pause.
 * Return 0, WEFT_EBUSY if a threadlet receives, WEFT_EWRONGLOOP if it belongs to another loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_start(weft_dgram *dgram, weft_loop *loop,
                              weft_dgram_fn fn, void *arg);
WEFT_API int weft_dgram_stop(weft_dgram *dgram);

/* Get the address that the socket is bound to, and its descriptor, for setsockopt(2): buffers,
 * TTL, multicast groups.  The descriptor is borrowed: only weft_dgram_close() may close it, and
 * ends waits on it with WEFT_ESHUTDOWN.
 * Return 0 (the descriptor).
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_local(weft_dgram *dgram, weft_addr *out);
WEFT_API int weft_dgram_fd(weft_dgram *dgram);

/* Close the socket: waiting calls return WEFT_ESHUTDOWN.  Takes it; accepts NULL; not
 * cancelable.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_dgram_close(weft_dgram *dgram);

WEFT_END
#endif
