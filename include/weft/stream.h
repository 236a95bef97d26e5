/* weft/stream.h - byte streams: TCP, Unix, pipe, tty, socketpair, TLS.
 *
 * A stream belongs to no loop until the first call that waits on it, then to that loop, which
 * cannot be freed before the stream is closed.  Calls from another loop return WEFT_EWRONGLOOP.
 * One reader and one writer at a time, else WEFT_EBUSY.
 *
 * Bytes that have arrived are in the stream's read queue, in buffers of the loop.  An idle
 * stream uses no buffers.  At read_max (64 KiB) the stream stops receiving.  weft_stream_peek()
 * shows the queue and weft_stream_skip() consumes it; the callbacks below show the same queue.
 *
 * A read with WEFT_NOWAIT takes bytes from the queue or from the kernel.  On io_uring, once a read
 * has waited, it takes only bytes that the loop has fetched; the loop fetches in every
 * iteration.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <weft/addr.h>
#include <weft/base.h>
#include <weft/op.h>
#include <weft/value.h>

WEFT_BEGIN

typedef struct weft_stream weft_stream;
typedef struct weft_tls    weft_tls;

/* Serves one peer on a threadlet of its own; takes `peer`. */
typedef int (*weft_peer_fn)(weft_stream *peer, void *arg);

typedef struct weft_stream_connect_opts {
	weft_addr   local;         /* local address to connect from; default: any */
	weft_tls   *tls;           /* for tls://; default: verify with the system's CAs */
	const char *tls_name;      /* host name to verify; default: the host in the address */
	uint64_t    stagger_ns;    /* delay before trying the next address; default 250 ms */
	uint64_t    handshake_ns;  /* limit of the TLS handshake; default 10 s */
	uint64_t    spare[4];
} weft_stream_connect_opts;

/* Connect to `address`, trying all addresses of its host name (happy eyeballs).  TCP_NODELAY is
 * set.
 * Returns 0 and fills `out`; WEFT_ENONAME, WEFT_ECONNREFUSED, WEFT_ECERT, ...: the error of the
 * last attempt, with its address in weft_detail().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_connect(const char *address, const weft_stream_connect_opts *opts,
                          weft_stream **out, uint64_t deadline_ns);

/* Connect as weft_stream_connect() does, as an op.  The op fills `out` before it finishes with 0.
 * Returns as every start (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_connect_op(const char *address, const weft_stream_connect_opts *opts,
                             weft_stream **out, weft_op *op,
                             uint64_t deadline_ns);

/* Make a stream of a connected socket or a pipe; the descriptor becomes non-blocking.  Takes
 * `fd` on success.  With `borrow` it stays open and belongs to the caller; it may be closed
 * once the stream is gone.
 * Returns 0 and fills `out`, WEFT_EBADF, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_open_fd(int fd, bool borrow, weft_stream **out);

/* Read available bytes: at least one, at most `size`.
 * Returns the count, 0 at the end of the stream, WEFT_ECONNRESET, WEFT_ETRUNCATED, WEFT_ENOBUFS
 * if the peer was dropped at write_max; -EIO from a terminal that has hung up.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_read(weft_stream *stream, void *buf, size_t size,
                           uint64_t deadline_ns);

/* Read exactly `size` bytes.  On error all bytes stay in the queue.
 * Returns `size`, WEFT_EOF if the stream ends earlier, or as weft_stream_read().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_read_exact(weft_stream *stream, void *buf, size_t size,
                                 uint64_t deadline_ns);

/* Read up to and including the first `delimiter`.  On error all bytes stay in the queue.
 * Returns the count; WEFT_EMSGSIZE if the delimiter is not within `max` bytes; 0 if the stream
 * ends and no bytes are left; WEFT_EOF if it ends with bytes but no delimiter.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_read_until(weft_stream *stream, const char *delimiter,
                                 void *buf, size_t max, uint64_t deadline_ns);

/* Wait until the queue holds `min` bytes or the stream has ended, and show the start of the
 * queue in one piece: at least `min` bytes, fewer only at the end.  The bytes are not consumed.
 * They are borrowed until skipped, or until the next peek with a larger `min`.
 * Returns the count; WEFT_EMSGSIZE if `min` is above the stream's read_max.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_peek(weft_stream *stream, size_t min, const void **out,
                           uint64_t deadline_ns);

/* Peek as an op, which finishes with the number of queued bytes.  Until then it is the one
 * reader.  Get the bytes with weft_stream_peek() and WEFT_NOWAIT.  This makes streams usable in
 * weft_select().
 * Returns as every start (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_peek_op(weft_stream *stream, size_t min, weft_op *op,
                          uint64_t deadline_ns);

/* Remove `size` bytes from the queue.
 * Returns 0, WEFT_EINVAL if there are fewer.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_skip(weft_stream *stream, size_t size);

/* Write all bytes.  On error some of them may have been sent.  To write from several buffers,
 * use weft_stream_write_op() and weft_op_wait().
 * Returns the count, WEFT_EPIPE, WEFT_ECONNRESET.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_write(weft_stream *stream, const void *buf, size_t size,
                            uint64_t deadline_ns);

/* Write as many bytes as the kernel accepts now, for use in callbacks.  The caller keeps the
 * rest.
 * Returns the count, 0 if the kernel accepts none or writes are queued; or as weft_stream_write().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API ssize_t weft_stream_write_some(weft_stream *stream, const weft_span *spans,
                                 size_t count);

/* Write all bytes as an op; spans and bytes belong to it until it has finished.  Any number of
 * ops may be queued, up to write_max bytes.  Above that the peer is dropped, and the ops finish
 * with WEFT_ENOBUFS; a reader gets that error after the bytes that had arrived.
 * Returns 1 if the queue is above its high watermark (wait for on_drain), else as every start
 * (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_write_op(weft_stream *stream, const weft_span *spans,
                           size_t count, weft_op *op, uint64_t deadline_ns);

/* Write `size` bytes of the file `fd`, borrowed, from `offset`.  Where possible the kernel
 * sends them itself (sendfile(2), not with TLS).  Then the loop's thread waits for the disk if
 * the bytes are not in memory, and changes of the file meanwhile may be sent.
 * Returns the count, less than `size` only at the end of the file; or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int64_t weft_stream_write_file(weft_stream *stream, int fd, uint64_t offset,
                                 uint64_t size, uint64_t deadline_ns);

/* Close our side for sending (half-close), after all queued writes.  The peer then reads the
 * end of the stream; we can continue to read.  With WEFT_NOWAIT, as in a callback, it returns
 * WEFT_ETIMEDOUT while writes are queued: call it again when the last of them has finished.
 * Returns 0, WEFT_EPIPE.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_shutdown(weft_stream *stream, uint64_t deadline_ns);

/* Close the stream: waiting calls return WEFT_ESHUTDOWN, TLS sends its close_notify, and queued
 * writes are sent as long as the peer accepts bytes.  After linger_ns without progress (default
 * 10 s) the rest is dropped.  Takes the stream; accepts NULL; not cancelable.
 * In a threadlet it returns after all ops on the stream have finished.  In a callback it
 * returns at once.  A stream with on_close is valid until on_close is called: meanwhile it may
 * be closed or reset again, and all other calls return WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API void weft_stream_close(weft_stream *stream);

/* Close at once and drop queued writes, also after weft_stream_close(); a TCP peer sees a reset.
 * Takes the stream; on_close is called as with weft_stream_close().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_reset(weft_stream *stream);

/* End the current wait on the stream, or else the next one, with WEFT_EINTR, once.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_interrupt(weft_stream *stream);

/* --- callbacks ------------------------------------------------------------ */

typedef struct weft_stream_events {
	/* `size` > 0: `data` is the first piece of the queue, borrowed until skipped, in this
	 * call or later.  Called again when more has arrived, and after a skip that leaves
	 * bytes.  0: the end of the stream.  < 0: an error, WEFT_ESHUTDOWN when the loop stops.
	 * The end and an error are the last call. */
	void (*on_data)(weft_stream *stream, const void *data, ssize_t size, void *arg);
	/* May be NULL.  The write queue is below the low watermark again. */
	void (*on_drain)(weft_stream *stream, void *arg);
	/* May be NULL.  The stream is gone: every op on it has finished, and no callback
	 * follows.  The loop calls it, never a call of the program, unless the loop stopped
	 * before the stream was closed. */
	void (*on_close)(void *arg);
	/* May be NULL.  Called when many bytes are queued, `*size` of them.  Return memory for
	 * them and set `*size` to its size, or return NULL.  Bytes of the queue move there at
	 * once, and the next on_data, if any, shows them; do not skip them. */
	void *(*on_buffer)(weft_stream *stream, size_t *size, void *arg);
	uint64_t spare[2];
} weft_stream_events;

/* Deliver arriving bytes to callbacks (copied) on `loop` (NULL: the stream's loop, else the
 * caller's) instead of threadlets; stop delivering.  After another start, bytes that were not
 * skipped are shown again.
 * Return 0, WEFT_EBUSY if a threadlet reads, WEFT_EWRONGLOOP if the stream belongs to another loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_start(weft_stream *stream, weft_loop *loop,
                               const weft_stream_events *events, void *arg);
WEFT_API int weft_stream_stop(weft_stream *stream);

/* Set whether the callbacks are background work: they then do not keep weft_loop_run() from
 * returning.  Off by default.  May be called at any time; stop and start keep the setting.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_set_background(weft_stream *stream, bool on);

/* --- properties ----------------------------------------------------------- */

/* Set and get a numeric option by name: nodelay, keepalive_s, linger_ns, rcvbuf, sndbuf,
 * high_water, low_water, write_max (INT64_MAX: no limit), read_max, fds (1: see
 * weft_stream_recv_fd()); get only: queued (bytes of writes and files not yet sent, with TLS
 * before encryption) and unsent (queued plus the bytes in the kernel that the peer has not
 * acknowledged).
 * Return 0, WEFT_ENOENT for an unknown name, WEFT_EINVAL for a bad value.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_set(weft_stream *stream, const char *name, int64_t value);
WEFT_API int weft_stream_get(weft_stream *stream, const char *name, int64_t *out);

/* Get the address of the peer, the local address, and the descriptor.  The descriptor is
 * borrowed: only weft_stream_close() may close it, and ends waits on it with WEFT_ESHUTDOWN.
 * Return 0 (the descriptor), or -errno.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_peer(weft_stream *stream, weft_addr *out);
WEFT_API int weft_stream_local(weft_stream *stream, weft_addr *out);
WEFT_API int weft_stream_fd(weft_stream *stream);

/* Pass a descriptor over a Unix stream, together with one byte.  send borrows `fd`; recv fills
 * `out` with a new descriptor, close-on-exec.  If another read consumes the byte, the
 * descriptor is closed.  If the receiver reads other bytes before it, it must first set the
 * option fds, else those reads may discard the descriptor.
 * Return 0, WEFT_EINVAL for other kinds, WEFT_EPIPE; recv: WEFT_EOF; WEFT_EPROTO if the next
 * byte carries no descriptor.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_send_fd(weft_stream *stream, int fd, uint64_t deadline_ns);
WEFT_API int weft_stream_recv_fd(weft_stream *stream, int *out,
                                 uint64_t deadline_ns);

WEFT_END
#endif
