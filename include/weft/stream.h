/* weft/stream.h - byte streams: TCP, Unix, pipe, tty, socketpair, TLS.
 *
 * A stream belongs to no loop until the first call that waits on it.  From then on it belongs to
 * the loop of that call, which cannot be freed before the stream is closed; calls from another
 * loop return WEFT_EWRONGLOOP.  A stream can have one reader at a time; a second one gets
 * WEFT_EBUSY.  Any number of callers may write: their writes are sent one after the other.
 *
 * Bytes that have arrived are in the stream's read queue, in buffers of the loop.  An idle
 * stream uses no buffers.  At read_max (64 KiB) the stream stops receiving.  weft_stream_peek()
 * shows the queue and weft_stream_skip() consumes it; the callbacks below show the same queue.
 *
 * A read with WEFT_NOWAIT takes bytes from the queue or from the kernel.  On io_uring, once an
 * earlier read has waited, a read with WEFT_NOWAIT takes only bytes that the loop has fetched;
 * the loop fetches in every iteration.
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
 * `fd` on success.  With `borrow` the stream does not close `fd`: it belongs to the caller and
 * may be closed once the stream is gone (on_close).
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

/* Peek as an op, which finishes with the number of queued bytes.  Until then the op is the
 * stream's one reader.  Get the bytes with weft_stream_peek() and WEFT_NOWAIT.  With this call
 * weft_select() can wait for streams.
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

/* Write all bytes as an op; spans and bytes belong to the op until it has finished.  Any number
 * of ops may be queued, up to write_max bytes.  If more bytes are queued, the connection is
 * dropped and the ops finish with WEFT_ENOBUFS; a reader gets that error after the bytes that
 * have arrived.
 * Returns 1 if the queue is above its high watermark (wait for on_drain), else as every start
 * (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_write_op(weft_stream *stream, const weft_span *spans,
                           size_t count, weft_op *op, uint64_t deadline_ns);

/* Write `size` bytes of the file `fd`, borrowed, from `offset`.  Where possible the kernel copies
 * them itself (sendfile(2), not with TLS).  In that case the loop's thread blocks for the disk if
 * the bytes are not in memory, and if the file changes meanwhile, the changes may be sent.  On
 * error some of the bytes may have been sent.
 * Returns the count, less than `size` only at the end of the file; or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int64_t weft_stream_write_file(weft_stream *stream, int fd, uint64_t offset,
                                 uint64_t size, uint64_t deadline_ns);

/* Close the stream for sending (half-close), after all queued writes.  The peer then reads the
 * end of the stream; the caller can continue to read.  With WEFT_NOWAIT, which a callback must
 * pass, the call returns WEFT_ETIMEDOUT while writes are queued: call it again when the last of
 * them has finished.
 * Returns 0, WEFT_EPIPE.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_shutdown(weft_stream *stream, uint64_t deadline_ns);

/* Close the stream: waiting calls return WEFT_ESHUTDOWN, TLS sends its close_notify, and writes
 * that ops have queued are sent as long as the peer accepts bytes.  After linger_ns without
 * progress (default 10 s) the rest is dropped.  Takes the stream; accepts NULL; not cancelable.
 * In a threadlet the call returns after all ops on the stream have finished, in a callback at
 * once.  A stream with on_close is valid until on_close is called: meanwhile it may be closed or
 * reset again, and all other calls return WEFT_ESHUTDOWN.
 * Thread: loop.  Blocks: suspends in a threadlet, else no.  Since: 0.1. */
WEFT_API void weft_stream_close(weft_stream *stream);

/* Close the stream at once and drop queued writes; a TCP peer sees a reset.  May be called after
 * weft_stream_close(), to end a close that waits for queued writes.
 * Takes the stream; on_close is called as with weft_stream_close().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_reset(weft_stream *stream);

/* End the current wait on the stream, or else the next one, with WEFT_EINTR.  Ends one wait only.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_interrupt(weft_stream *stream);

/* --- callbacks ------------------------------------------------------------ */

typedef struct weft_stream_events {
	/* `size` > 0: `data` is the first piece of the queue.  It is borrowed until skipped,
	 * which may happen in this call or later.  on_data is called again when more bytes have
	 * arrived, and after a skip that leaves bytes.  `size` 0 means the end of the stream;
	 * < 0 is an error, WEFT_ESHUTDOWN when the loop stops.  After either of these
	 * on_data is not called again. */
	void (*on_data)(weft_stream *stream, const void *data, ssize_t size, void *arg);
	/* Called when the write queue has fallen below the low watermark.  May be NULL. */
	void (*on_drain)(weft_stream *stream, void *arg);
	/* Called when the stream is gone: every op on it has finished, and no callback follows.
	 * It never runs inside a call of the program, except if the loop has stopped before the
	 * stream is closed.  May be NULL. */
	void (*on_close)(void *arg);
	/* Called when many bytes are queued, `*size` of them.  Return memory for them and set
	 * `*size` to its size, or return NULL.  Unless this call has stopped the callbacks, the
	 * library moves bytes of the queue into that memory and calls on_data with them.  They
	 * are no longer in the queue: do not skip them.  May be NULL. */
	void *(*on_buffer)(weft_stream *stream, size_t *size, void *arg);
	uint64_t spare[2]; /* must be zero: room for later versions */
} weft_stream_events;

/* start: deliver arriving bytes to the callbacks in `events`, which is copied, on `loop` (NULL:
 * the stream's loop, else the caller's).  stop: stop delivering.  After another start, bytes
 * that were not skipped are delivered again.
 * Return 0, WEFT_EBUSY if a threadlet reads, WEFT_EWRONGLOOP if the stream belongs to another loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_start(weft_stream *stream, weft_loop *loop,
                               const weft_stream_events *events, void *arg);
WEFT_API int weft_stream_stop(weft_stream *stream);

/* Set whether the callbacks are background work, which does not keep weft_loop_run() from
 * returning.  Off by default.  May be called at any time; stop and start keep the setting.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_set_background(weft_stream *stream, bool on);

/* --- properties ----------------------------------------------------------- */

/* Set and get a numeric option by name: nodelay, keepalive_s, linger_ns, rcvbuf, sndbuf,
 * high_water, low_water, write_max (INT64_MAX: no limit), read_max, fds (1: the stream can
 * receive descriptors, see weft_stream_recv_fd()).  Two options can only be read: queued (bytes
 * of writes and files not yet sent, with TLS before encryption) and unsent (queued plus the bytes
 * in the kernel that the peer has not acknowledged).
 * Return 0, WEFT_ENOENT for an unknown name, WEFT_EINVAL for a bad value.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_set(weft_stream *stream, const char *name, int64_t value);
WEFT_API int weft_stream_get(weft_stream *stream, const char *name, int64_t *out);

/* Get the address of the peer, the local address, or the descriptor.  The descriptor is
 * borrowed: only weft_stream_close() may close it.  That ends other waits for the descriptor with
 * WEFT_ESHUTDOWN.
 * Return 0 (fd: the descriptor), or -errno.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_peer(weft_stream *stream, weft_addr *out);
WEFT_API int weft_stream_local(weft_stream *stream, weft_addr *out);
WEFT_API int weft_stream_fd(weft_stream *stream);

/* Pass a descriptor over a Unix stream, together with one byte.  send_fd borrows `fd`; recv_fd
 * fills `out` with a new descriptor, which is close-on-exec.  If another read consumes the byte,
 * the descriptor is closed.  A receiver that also reads plain bytes from the stream must set the
 * option fds before its first read, else a read may discard the descriptor.
 * Return 0, WEFT_EINVAL for other kinds of streams, WEFT_EPIPE; recv_fd also WEFT_EOF, and
 * WEFT_EPROTO if the next byte carries no descriptor.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_send_fd(weft_stream *stream, int fd, uint64_t deadline_ns);
WEFT_API int weft_stream_recv_fd(weft_stream *stream, int *out,
                                 uint64_t deadline_ns);

WEFT_END
#endif
