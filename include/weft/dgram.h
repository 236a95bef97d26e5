/* weft/dgram.h - datagrams: UDP and Unix, always in batches.
 *
 * One message is a batch of one.  Ownership by loops is as for streams: a socket
 * belongs to no loop until the first call that waits on it, then to that loop, which
 * cannot be freed before it is closed; from another it is WEFT_EWRONGLOOP.  One threadlet
 * receives at a time, else WEFT_EBUSY; any number may send.
 */
#ifndef WEFT_DGRAM_H
#define WEFT_DGRAM_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/op.h>

WEFT_BEGIN

typedef struct weft_dgram weft_dgram;

typedef struct weft_dgram_opts {
	weft_addr peer;       /* connected mode: send there, receive only from there */
	bool      broadcast;
	bool      reuse_port;
	bool      borrow;     /* fd:N stays open, and the caller's */
	uint64_t  spare[4];
} weft_dgram_opts;

typedef struct weft_message {
	void     *data;      /* caller's: to send, or to receive into */
	size_t    size;      /* to send; space, then received */
	weft_addr addr;      /* to (zeroed: the connected peer), or from */
	bool      truncated; /* received less than was sent */
} weft_message;

/* Open a socket bound to `address` (NULL with a peer: any), or take that of fd:N, on
 * success.  A Unix path is removed when it is closed.
 * Returns 0 and fills `out`, WEFT_EADDRINUSE, ...
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_open(const char *address, const weft_dgram_opts *opts,
                             weft_dgram **out);

/* Send up to `count` messages; borrows them.
 * Returns the number sent, at least one; or -errno, ICMP errors included.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dgram_send(weft_dgram *dgram, const weft_message *messages,
                             size_t count, uint64_t deadline_ns);

/* The same as an op, which finishes with the number; messages and bytes belong to
 * it until then.  Any number may be queued, up to write_max bytes: then WEFT_ENOBUFS.
 * Returns as every start (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_send_op(weft_dgram *dgram, const weft_message *messages,
                                size_t count, weft_op *op, uint64_t deadline_ns);

/* Receive what there is, at least one, at most `count`; fills size, addr and
 * truncated.
 * Returns the number, or -errno.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_dgram_recv(weft_dgram *dgram, weft_message *messages,
                             size_t count, uint64_t deadline_ns);

/* `count` messages borrowed until return; or an error, with none.  WEFT_ESHUTDOWN is
 * the last call, also if paused: it is closed, or its loop stops. */
typedef void (*weft_dgram_fn)(weft_dgram *dgram, const weft_message *messages,
                              int count, void *arg);

/* Deliver messages to a callback on `loop` (NULL: the one it has, else the
 * caller's); and pause.
 * Return 0, WEFT_EBUSY if a threadlet receives, WEFT_EWRONGLOOP if it has another loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_start(weft_dgram *dgram, weft_loop *loop,
                              weft_dgram_fn fn, void *arg);
WEFT_API int weft_dgram_stop(weft_dgram *dgram);

/* Say whether its callbacks are background work, which does not keep
 * weft_loop_run() from returning.  Off at first; any time; stays over stop and start.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dgram_set_background(weft_dgram *dgram, bool on);

/* Enter (or quit) the multicast `group` on interface `index` (0: any).
 * Returns 0, or -errno.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_set_group(weft_dgram *dgram, const weft_addr *group,
                                  uint32_t index, bool on);

/* Set and get a numeric option by name: broadcast, ttl, multicast_ttl,
 * multicast_loop, multicast_interface, rcvbuf, sndbuf, write_max; queued (get only:
 * bytes of ops not yet sent).
 * Return 0, WEFT_ENOENT, WEFT_EINVAL.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_set(weft_dgram *dgram, const char *name, int64_t value);
WEFT_API int weft_dgram_get(weft_dgram *dgram, const char *name, int64_t *out);

/* The address it is bound to; the descriptor, borrowed: only weft_dgram_close() closes it,
 * and ends what waits on it with WEFT_ESHUTDOWN.
 * Return 0 (the descriptor).
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_dgram_local(weft_dgram *dgram, weft_addr *out);
WEFT_API int weft_dgram_fd(weft_dgram *dgram);

/* End the present, else the next, wait on it with WEFT_EINTR, once.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_dgram_interrupt(weft_dgram *dgram);

/* Close: waiters end with WEFT_ESHUTDOWN.  Takes it; accepts NULL; not
 * cancellable.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_dgram_close(weft_dgram *dgram);

WEFT_END
#endif
