/* weft/stream.h - bytes both ways: TCP, Unix, pipe, tty, socketpair, TLS.
 *
 * A stream belongs to no loop until the first call that waits on it, then to that
 * loop, which cannot be freed before it is closed; from another it is WEFT_EWRONGLOOP.  One
 * reader and one writer at a time, else WEFT_EBUSY.  What has arrived lies in the
 * stream's queue, in buffers of the loop: an idle stream keeps none, and at read_max
 * (64 KiB) it stops reading.  weft_stream_peek() shows the queue, weft_stream_skip() consumes it, and
 * the callback face shows the same queue; so a leased read, a look ahead and a buffered
 * reader are one thing.
 *
 * A read with WEFT_NOWAIT takes what is in the queue or with the kernel; on io_uring, once a read
 * has waited, what the loop has fetched, which it does in every turn.
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

/* Serves one peer on its own threadlet; takes `peer`. */
typedef int (*weft_peer_fn)(weft_stream *peer, void *arg);

typedef struct weft_stream_connect_opts {
	weft_addr   local;         /* to connect from; default: any */
	weft_tls   *tls;           /* for tls://; default: verify with the system's CAs */
	const char *tls_name;      /* to verify; default: the host in the address */
	uint64_t    stagger_ns;    /* happy eyeballs: next address after; default 250 ms */
	uint64_t    handshake_ns;  /* TLS; default 10 s */
	uint64_t    spare[4];
} weft_stream_connect_opts;

/* Connect to `address`, trying all addresses of its name, with no-delay on.
 * Returns 0 and fills `out`, WEFT_ENONAME, WEFT_ECONNREFUSED, WEFT_ECERT, ...; the error of
 * the last attempt, with the address in weft_detail().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_connect(const char *address, const weft_stream_connect_opts *opts,
                          weft_stream **out, uint64_t deadline_ns);

/* The same as an op, which fills `out` before it finishes with 0.
 * Returns as every start (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_connect_op(const char *address, const weft_stream_connect_opts *opts,
                             weft_stream **out, weft_op *op,
                             uint64_t deadline_ns);

/* Make a stream of a connected or piped descriptor, which becomes non-blocking; takes
 * `fd` on success, or with `borrow` leaves it open and the caller's, who may close it once
 * the stream is gone.
 * Returns 0 and fills `out`, WEFT_EBADF, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_open_fd(int fd, bool borrow, weft_stream **out);

/* Make two streams that are connected with each other.
 * Returns 0 and fills both, or -errno.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_open_pair(weft_stream **out_a, weft_stream **out_b);

/* Read what there is, at least one byte, at most `size`.
 * Returns the count, 0 at the end of the stream, WEFT_ECONNRESET, WEFT_ETRUNCATED,
 * WEFT_ENOBUFS if the peer was dropped at write_max; of a terminal that has hung up, -EIO.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_read(weft_stream *stream, void *buf, size_t size,
                           uint64_t deadline_ns);

/* Read exactly `size` bytes.  On error what arrived stays in the queue.
 * Returns `size`, WEFT_EOF if the stream ends before, or as weft_stream_read().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_read_exact(weft_stream *stream, void *buf, size_t size,
                                 uint64_t deadline_ns);

/* Read up to and with the first `delimiter`.  On error all stays in the queue.
 * Returns the count, WEFT_EMSGSIZE if it is not within `max`, 0 at the end of an
 * empty stream, WEFT_EOF at the end of another.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_read_until(weft_stream *stream, const char *delimiter,
                                 void *buf, size_t max, uint64_t deadline_ns);

/* Wait until the queue holds `min` bytes or the stream has ended, and show them in
 * one piece.  Borrowed until skipped, or until the next peek with a larger `min`.
 * Returns the count, less than `min` only at the end; WEFT_EMSGSIZE if `min` is
 * above the stream's read_max.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_peek(weft_stream *stream, size_t min, const void **out,
                           uint64_t deadline_ns);

/* The same as an op, which finishes with the count and is the one reader until
 * then; weft_stream_peek() with WEFT_NOWAIT shows the bytes.  So a stream can be selected.
 * Returns as every start (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_peek_op(weft_stream *stream, size_t min, weft_op *op,
                          uint64_t deadline_ns);

/* Consume `size` bytes of the queue.
 * Returns 0, WEFT_EINVAL if there are fewer.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_skip(weft_stream *stream, size_t size);

/* Write all of it.  On error some may have been sent.
 * Return the count, WEFT_EPIPE, WEFT_ECONNRESET.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API ssize_t weft_stream_write(weft_stream *stream, const void *buf, size_t size,
                            uint64_t deadline_ns);
WEFT_API ssize_t weft_stream_write_spans(weft_stream *stream, const weft_span *spans,
                                  size_t count, uint64_t deadline_ns);

/* Write what the kernel takes now, for callbacks; the rest is the caller's still.
 * Returns the count, 0 if it is full or writes are queued; or as weft_stream_write().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API ssize_t weft_stream_write_some(weft_stream *stream, const weft_span *spans,
                                 size_t count);

/* Write all as an op; spans and bytes belong to it until it has finished.  Any
 * number may be queued, up to the stream's write_max: then the peer is dropped and
 * they finish with WEFT_ENOBUFS, and so does a reader, behind what had arrived.
 * Returns 1 if the queue is above its high mark (wait for on_drain), else as every
 * start (weft/op.h).
 * Thread: loop of `op`.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_write_op(weft_stream *stream, const weft_span *spans,
                           size_t count, weft_op *op, uint64_t deadline_ns);

/* Write `size` bytes of the file `fd`, borrowed, from `offset`.  The kernel sends them
 * itself where it can (sendfile(2), not under TLS): then the loop's thread waits for the
 * disk, if they are not in memory, and what is changed in the file meanwhile may show.
 * Returns the count, less only at the end of the file; or as weft_stream_write().
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int64_t weft_stream_write_file(weft_stream *stream, int fd, uint64_t offset,
                                 uint64_t size, uint64_t deadline_ns);

/* Say the last on our side, after what is queued: the peer reads to the end;
 * reading goes on.  As an op it finishes with 0.
 * Return 0, WEFT_EPIPE; the op: as every start (weft/op.h).
 * Thread: loop.  Blocks: suspends; no.  Since: 0.1. */
WEFT_API int weft_stream_shutdown(weft_stream *stream, uint64_t deadline_ns);
WEFT_API int weft_stream_shutdown_op(weft_stream *stream, weft_op *op,
                                     uint64_t deadline_ns);

/* Close: waiters end with WEFT_ESHUTDOWN, TLS says goodbye, queued writes are sent
 * as long as the peer takes bytes; after linger_ns without any (default 10 s) the rest is
 * dropped.  Takes it; accepts NULL; not cancellable.  From a
 * callback it returns at once; a stream with on_close is valid until that, and
 * meanwhile may be closed or reset again, all else being WEFT_ESHUTDOWN.  In a
 * threadlet it returns after the results of all ops on the stream.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API void weft_stream_close(weft_stream *stream);

/* Close at once and drop what is queued, also after weft_stream_close(); a TCP peer sees a
 * reset.  Takes it, with on_close as weft_stream_close() does.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_reset(weft_stream *stream);

/* End the present, else the next, wait on the stream with WEFT_EINTR, once.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_interrupt(weft_stream *stream);

/* Hand an idle stream, with its queue, to `loop`.
 * Returns 0, WEFT_EBUSY if somebody reads or writes it, in a callback of its own, or if it
 * still receives and the caller is no threadlet; WEFT_ESHUTDOWN if it is closed meanwhile.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_move(weft_stream *stream, weft_loop *loop);

/* --- callbacks ------------------------------------------------------------ */

typedef struct weft_stream_events {
	/* `size` > 0: the first piece of the queue, borrowed until skipped, at once
	 * or later; comes again when more has arrived, and after a skip that leaves
	 * some.  0: the end.  < 0: the error, WEFT_ESHUTDOWN as its loop stops.  These
	 * two are the last. */
	void (*on_data)(weft_stream *stream, const void *data, ssize_t size, void *arg);
	/* May be NULL.  Below the low mark again. */
	void (*on_drain)(weft_stream *stream, void *arg);
	/* May be NULL.  Gone: every op on it has finished; no call after this.  The loop
	 * calls it, never a call of the program's, unless the loop has stopped before the
	 * stream was closed. */
	void (*on_close)(void *arg);
	/* May be NULL.  Much is waiting and the queue is empty: give memory of
	 * `*size` bytes to receive into, or NULL.  It is filled at once, and shown by
	 * the on_data that follows next, if any; such bytes are not skipped. */
	void *(*on_buffer)(weft_stream *stream, size_t *size, void *arg);
	uint64_t spare[2];
} weft_stream_events;

/* Deliver what arrives to callbacks (copied) on `loop` (NULL: the one it has, else
 * the caller's), instead of threadlets; and pause.  Start again to go on: what was
 * not skipped is shown again.
 * Return 0, WEFT_EBUSY if a threadlet reads, WEFT_EWRONGLOOP if it has another loop.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_start(weft_stream *stream, weft_loop *loop,
                               const weft_stream_events *events, void *arg);
WEFT_API int weft_stream_stop(weft_stream *stream);

/* Say whether its callbacks are background work, which does not keep
 * weft_loop_run() from returning.  Off at first; any time; stays over stop and start.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_stream_set_background(weft_stream *stream, bool on);

/* --- properties ----------------------------------------------------------- */

/* Set and get a numeric option by name: nodelay, keepalive_s, linger_ns, rcvbuf,
 * sndbuf, high_water, low_water, write_max (INT64_MAX: no bound), read_max, fds (1: see
 * weft_stream_recv_fd()), queued (get only: bytes of the caller's and of files not yet sent,
 * under TLS the plain ones), unsent (get only: queued, and the bytes that the kernel holds
 * because the peer has not acknowledged them), ...
 * Return 0, WEFT_ENOENT for an unknown name, WEFT_EINVAL for a bad value.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_set(weft_stream *stream, const char *name, int64_t value);
WEFT_API int weft_stream_get(weft_stream *stream, const char *name, int64_t *out);

/* The addresses of the peer and of our side; the descriptor, borrowed: only weft_stream_close()
 * closes it, and ends what waits on it with WEFT_ESHUTDOWN.
 * Return 0 (the descriptor), or -errno.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_peer(weft_stream *stream, weft_addr *out);
WEFT_API int weft_stream_local(weft_stream *stream, weft_addr *out);
WEFT_API int weft_stream_fd(weft_stream *stream);

typedef struct weft_creds { pid_t pid; uid_t uid; gid_t gid; } weft_creds;

/* Who the peer of a Unix stream is.
 * Returns 0, WEFT_EINVAL for other kinds.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_stream_creds(weft_stream *stream, weft_creds *out);

/* Pass a descriptor over a Unix stream, with one byte: send borrows `fd`, recv
 * fills `out` with a new one, close-on-exec.  One whose byte is read otherwise is closed; so
 * where others are read before it, set the option fds first, else these may take it.
 * Return 0, WEFT_EINVAL for other kinds, WEFT_EPIPE; recv: WEFT_EOF, and WEFT_EPROTO
 * if the next byte brings none.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int weft_stream_send_fd(weft_stream *stream, int fd, uint64_t deadline_ns);
WEFT_API int weft_stream_recv_fd(weft_stream *stream, int *out,
                                 uint64_t deadline_ns);

WEFT_END
#endif
