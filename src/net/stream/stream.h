/* stream.h - streams: the definitions that the files of this layer share.  Private.
 *
 * The files: stream.c (creation, owner loop), connect.c (outgoing connections), receive.c (the
 * receive op, and delivery of its bytes), read.c (read calls), send.c (the write queue and the
 * send op), write.c (write calls), close.c (closing), events.c (callbacks), option.c (properties),
 * queue.c (received bytes), secure.c (TLS), stream_fds.c (descriptor passing), write_file.c
 * (files), letter.c (interrupts, and reports in a later loop iteration).
 *
 *   1. A stream has no loop until the first call that reads, writes or starts callbacks
 *      (weft__stream_use()).  From then on only the thread of that loop uses the stream, except
 *      to interrupt it, and the stream references the loop.
 *   2. From the first read that may wait, or the start of callbacks, `in` is pending at the
 *      backend while the queue has room.  The op receives into memory of the loop, or into the
 *      buffer of a waiting reader.  The kernel uses no caller's buffer once the read has returned,
 *      so a read can end at any time.
 *   3. Without TLS, a write sends from the caller's memory, so it ends only when the kernel no
 *      longer uses that memory.
 *   4. A stream is freed when `in` and `out` are not pending, no callback is on the stack, its
 *      letter is not on its way, and there are no in-flight callers.  `in_flight` counts those:
 *      threadlets that were woken and have not run yet, or that are between two waits of one call.
 *   5. on_close is called, and weft_stream_close() returns in a threadlet, after the results of all
 *      ops that the program has started on the stream.  No call of the program calls on_close,
 *      unless the loop has stopped.
 *
 * Needs: threadlet, loop.
 */
#ifndef WEFT_NET_STREAM_H
#define WEFT_NET_STREAM_H

#include <weft/stream.h>
#include <weft/timer.h>
#include "base/lock.h"
#include "loop/io/fd.h"
#include "loop/post/mailbox.h"
#include "net/stream/queue.h"
#include "threadlet/threadlet.h"

#define WEFT__IOVS   16 /* spans sent by one call */
#define WEFT__IOVS_MANY 256 /* spans sent by one call if more are queued */
#define WEFT__RECORD 16384u /* maximum plaintext of one TLS record */

/* What a write sends. */
enum {
	WEFT__WRITE_BYTES,
	WEFT__WRITE_FILE,
	WEFT__WRITE_FD,   /* a descriptor, with one byte */
	WEFT__WRITE_HALF_CLOSE,
};

/* The message that passes a descriptor. */
struct weft__fd_message {
	struct msghdr msg;
	struct iovec  byte;
	union {
		struct cmsghdr head;
		char           room[CMSG_SPACE(sizeof(int))];
	} control;
};

/* A queued write: on the stack of its threadlet, or, for an op, from the loop's cache. */
struct weft__write {
	struct weft__write  *next, *prev; /* in the queue */
	uint8_t              kind;  /* WEFT__WRITE_* */
	const weft_span     *spans; /* bytes: the spans not yet sent */
	struct weft__file_part *part; /* file: the part not yet sent; not counted in `left` */
	struct weft__fd_message *fd_message; /* descriptor: its message */
	size_t               count;
	size_t               skip;  /* bytes of the first span that were sent */
	size_t               left, size; /* bytes: not yet sent, in total */
	struct weft__waiter *waiter; /* the waiting threadlet; or */
	weft_op             *op;
	weft_stream         *stream;
	int                  why;   /* cancel requested: the error to end with; else 0 */
	bool                 in_flight; /* part of the pending send op */
	bool                 ended;
	int64_t              result;
};

/* The send op and its state.  Exists only while something is being sent. */
struct weft__sender {
	weft_op       op;
	weft_timer    linger; /* limits how long a close keeps sending */
	bool          lingers; /* `linger` is in use */
	uint64_t      linger_queued; /* `queued` when the timer was last started */
	int64_t       linger_unsent; /* weft__stream_unsent() at that time; the kernel may
	                              * include its own overhead */
	struct msghdr msg;
	struct iovec  iov[WEFT__IOVS];
	struct iovec *many; /* memory for WEFT__IOVS_MANY spans, or NULL */
	struct weft__sender *next; /* in the loop's cache */
};

/* State that the streams of a loop share. */
struct weft__net {
	struct weft__part    part; /* first */
	struct weft__mailbox letters; /* of its streams; letter.c */
	uint32_t             awaited; /* letters on their way whose streams are being closed */
	struct weft__chunks  chunks;
	struct weft__sender *senders; /* cached */
	struct weft__write  *writes;
	uint32_t             sender_count, write_count;
	weft_stream         *started; /* streams with callbacks, linked by `next` */
	char                *scratch; /* decryption buffer of secure.c */
};

/* Counts the open connections of a listener.  The listener and their streams share it. */
struct weft__quota;

enum {
	WEFT__STREAM_BORROWED = 1 << 0, /* the caller owns the descriptor */
	WEFT__STREAM_PLAIN = 1 << 1,    /* not a socket */
	WEFT__STREAM_ENDED = 1 << 2,    /* the peer has closed its sending side */
	WEFT__STREAM_PAUSED = 1 << 3,   /* `in` was canceled, to be started again later */
	WEFT__STREAM_SHUT = 1 << 4,     /* our sending side is closed */
	WEFT__STREAM_CLOSING = 1 << 5,
	WEFT__STREAM_STARTED = 1 << 7,  /* callbacks are active */
	WEFT__STREAM_BACKGROUND = 1 << 9,
	WEFT__STREAM_HIGH = 1 << 10,    /* exceeded high_water: on_drain is due */
	WEFT__STREAM_BOUND = 1 << 11,   /* its loop has registered the descriptor */
	WEFT__STREAM_AGAIN = 1 << 12,   /* on_data is to get what is left, in another call */
	WEFT__STREAM_CALLED = 1 << 13,  /* a callback is on the stack */
	WEFT__STREAM_RECEIVES_FDS = 1 << 15, /* accepts descriptors */
	WEFT__STREAM_LOCAL = 1 << 16,   /* a Unix socket */
	WEFT__STREAM_OPS = 1 << 17,     /* the program has started ops on it */
};

/* weft_stream_events, without its spare words. */
struct weft__stream_calls {
	void (*on_data)(weft_stream *stream, const void *data, ssize_t size, void *arg);
	void (*on_drain)(weft_stream *stream, void *arg);
	void (*on_close)(void *arg);
	void *(*on_buffer)(weft_stream *stream, size_t *size, void *arg);
};

struct weft_stream {
	/* The members that every read and write uses come first. */
	weft__aptr  loop;     /* its owner, a weft_loop, or 0 */
	weft__a32   interrupted; /* the interrupt flag, 0 or 1 */
	weft__a32   forks;    /* fork count of its loop */
	int         fd;
	uint32_t    flags; /* WEFT__STREAM_* */
	int         in_error, out_error; /* permanent errors, or 0 */
	int         received_fd; /* or -1; see received_fd_at */
	uint32_t    in_flight; /* in-flight callers; invariant 4 */
	struct weft__session *tls; /* NULL: no TLS */
	struct weft__write *first; /* head of the write queue */
	struct weft__queue in_queue;
	weft_op     in;
	/* The waiting reader: a threadlet or an op. */
	struct weft__waiter *reader;
	weft_op    *reader_op;
	size_t      min;      /* bytes that must be in the queue; or */
	char       *into;     /* buffer for the next bytes */
	size_t      into_size;

	struct weft__sender *out; /* NULL: nothing is being sent */
	struct weft__write *last; /* tail of the write queue */
	size_t      queued;   /* bytes of the write queue */
	uint64_t    queued_files; /* bytes of files that are being written */

	weft_stream **link;   /* if started: the pointer to this stream in the list */
	size_t      received_fd_at; /* bytes of the queue before the byte that it came with */
	struct weft__stream_calls events;
	void       *arg;
	struct weft__waiter *closer;

	struct weft__letter letter; /* see letter.c, also for the next two */
	struct weft__lock lock;
	uint8_t     letter_state;

	uint32_t    read_max, high_water, low_water;
	uint64_t    write_max, linger_ns;

	struct weft__quota *quota; /* or NULL */
	weft_stream *next;    /* in a list: accepted but not yet delivered, or started */
	weft_stream **keeper; /* set to NULL when the stream is freed; or NULL */
};

static inline weft_loop *
weft__stream_loop(const weft_stream *stream)
{
	return (weft_loop *)weft__load(&stream->loop, WEFT__RELAXED);
}

#define weft__letter_stream(l) \
	((weft_stream *)(void *)((char *)(l) - offsetof(weft_stream, letter)))

/* --- stream.c ----------------------------------------------------------- */

/* The state that the streams of `loop` share, created on first use.  NULL if out of memory. */
struct weft__net *weft__net_of(weft_loop *loop);

/* Create a stream that owns `fd`.  NULL if out of memory; then the caller still owns `fd`. */
weft_stream *weft__stream_make(int fd, uint32_t flags);
void         weft__stream_free(weft_stream *stream);

/* Check that this thread may use the stream and that it is open.  A stream without a loop is
 * bound to `loop` (NULL: the caller's).  Returns 0 or an error. */
int weft__stream_use_slow(weft_stream *stream, weft_loop *loop, const char *call);

static inline int
weft__stream_use(weft_stream *stream, weft_loop *loop, const char *call)
{
	const uint32_t all = WEFT__STREAM_BOUND | WEFT__STREAM_CLOSING;
	weft_loop *its = stream ? weft__stream_loop(stream) : NULL;

	/* The common case: the stream is open and belongs to this loop. */
	if (its && (!loop || loop == its) && (stream->flags & all) == WEFT__STREAM_BOUND
	    && weft__loop_is_usable(its))
		return 0;
	return weft__stream_use_slow(stream, loop, call);
}

/* The same check for the calls of option.c.  It does not bind the stream to a loop. */
int weft__stream_check(weft_stream *stream, const char *call);

/* The same as weft__stream_use() for a call that may suspend.  Unless `deadline_ns` is WEFT_NOWAIT,
 * also returns the error that would refuse a wait, and WEFT_EINTR for a pending interrupt. */
int weft__stream_wait(weft_stream *stream, uint64_t deadline_ns, const char *call);

/* --- letter.c ----------------------------------------------------------- */

/* Bind the stream to `loop`, whose streams have a mailbox. */
void weft__stream_bind(weft_stream *stream, weft_loop *loop);

/* Post the letter, unless it is on its way.  Thread: any. */
void weft__stream_post(weft_stream *stream);

/* Before the stream is freed: forbid further posts of its letter.  False if the letter is on its
 * way: then its arrival continues the close. */
bool weft__stream_seal(weft_stream *stream);

/* The letter has arrived, and may be posted again.  False if the stream is sealed: then the letter
 * is to be ignored. */
bool weft__stream_open_letter(weft_stream *stream);

/* If the stream was interrupted, end the wait of the reader, or else of the first write. */
void weft__stream_end_wait(weft_stream *stream);

/* Test and clear the interrupt flag. */
static inline bool
weft__stream_take_interrupt(weft_stream *stream)
{
	return weft__load(&stream->interrupted, WEFT__SEQ_CST) /* I */
	       && weft__exchange(&stream->interrupted, 0, WEFT__RELAXED);
}

/* --- option.c ----------------------------------------------------------- */

/* Bytes that are queued, and those in the kernel that the peer has not acknowledged. */
int64_t weft__stream_unsent(const weft_stream *stream);

/* Set the error text of a failed connection, which names its peer.  Returns `error`. */
int weft__stream_explain(const weft_stream *stream, const char *call, int error);

/* --- receive.c ---------------------------------------------------------- */

/* Start receiving if the stream can receive and the queue has room.  Returns 0 or an error. */
int weft__receive_start(weft_stream *stream);

/* Receive without waiting, into `buf` (NULL: into the queue).  `must`: try even if the backend does
 * not expect bytes.  Returns the count, 0 at the end, or an error; -EAGAIN if there are no
 * bytes. */
int64_t weft__receive_now(weft_stream *stream, void *buf, size_t size, bool must);

/* Wait for bytes in `into`, or for `min` bytes in the queue; the caller has set these members.
 * Returns the result. */
int64_t weft__receive_wait(weft_stream *stream, uint64_t deadline_ns);

/* Take a result of the receive op: its bytes, or its end.  False if the stream is being closed:
 * then the stream may be gone. */
bool weft__receive_result(weft_stream *stream, const weft_op *op, int64_t result);

/* Bytes were consumed: resume receiving if the queue has room again. */
void weft__receive_more(weft_stream *stream);

/* The state behind the bytes of the queue.  1: more may come, 0: the end, < 0: an error. */
int weft__receive_state(const weft_stream *stream);

/* End an in-flight call.  Returns 0, or WEFT_ESHUTDOWN if the stream is being closed: then the
 * stream may be gone. */
int weft__stream_leave(weft_stream *stream);

/* serve: end the wait of the reader if it has what it waits for.  end: end it with `result`. */
void weft__reader_serve(weft_stream *stream);
void weft__reader_end(weft_stream *stream, int64_t result);

/* --- send.c ------------------------------------------------------------- */

/* Send what the kernel accepts at once.  Returns the count, 0 for none, or an error.  `must`: try
 * even if the backend expects no room, or if a queued write would be cheaper. */
int64_t weft__send_now(weft_stream *stream, const weft_span *spans, size_t count,
                       bool must);

/* Queue a write and start sending.  The write may have ended on return; without a waiter or an
 * op, `ended` is the only report of that.  Returns 0 or an error. */
int weft__send_queue(weft_stream *stream, struct weft__write *write);

/* Check whether the stream accepts writes.  Returns 0, or an error with its text. */
int weft__send_check(const weft_stream *stream);

/* Queue a write and wait for its end.  Returns its result. */
int64_t weft__send_wait(weft_stream *stream, struct weft__write write,
                        uint64_t deadline_ns);

/* A write for an op, from the loop's cache; NULL if out of memory. */
struct weft__write *weft__write_take(weft_loop *loop);
void weft__write_give(weft_loop *loop, struct weft__write *write);

/* Cancel a write.  It ends with `why`, or with its result if that comes first. */
void weft__send_request_cancel(struct weft__write *write, int why);

/* End all writes with `error`, which all later writes get, too. */
void weft__send_fail(weft_stream *stream, int error);

/* Send TLS output that no write has produced. */
void weft__send_flush(weft_stream *stream);

/* `size` bytes of a write were sent, or accepted by TLS: the caller's memory is free again. */
void weft__write_advance(weft_stream *stream, struct weft__write *write, size_t size);

/* --- stream_fds.c ------------------------------------------------------- */

/* Accept descriptors from now on.  Returns 0, or WEFT_EINVAL if it is not a Unix stream. */
int  weft__stream_fd_enable(weft_stream *stream, const char *call);

/* Bytes were received: keep the descriptor that came with them, if any.  Its byte is behind
 * `before` bytes of the queue. */
void weft__stream_fd_keep(weft_stream *stream, size_t before);

/* skip: `size` bytes have left the queue; close the descriptor if its byte was one of them.
 * drop: close the descriptor, if there is one. */
void weft__stream_fd_skip(weft_stream *stream, size_t size);
void weft__stream_fd_drop(weft_stream *stream);

/* --- secure.c ----------------------------------------------------------- */

/* take: bytes have arrived on a connection with TLS.  end: the connection has ended.  drain:
 * decrypt what the session holds. */
void weft__secure_take(weft_stream *stream, const char *bytes, size_t size);
void weft__secure_end(weft_stream *stream);
void weft__secure_drain(weft_stream *stream);

/* output: hand queued writes to the session and get its output; returns the size or an error.
 * close_notify: make the session produce its close_notify. */
int64_t weft__secure_output(weft_stream *stream, const void **out);
void    weft__secure_close_notify(weft_stream *stream);

/* Set the error text of the failed session, or of the connection below.  Returns `error`. */
int     weft__secure_explain(const weft_stream *stream, const char *call, int error);

/* --- close.c ------------------------------------------------------------ */

/* Something has ended: continue the close of the stream.  True if the stream is gone. */
bool weft__close_go_on(weft_stream *stream);

/* --- events.c ----------------------------------------------------------- */

/* The callback of the receive op.  The stream may be gone afterwards. */
void weft__events_on_received(weft_op *op, int64_t result, void *stream);

/* Let the loop report what is left for on_data, if anything, in another call.  If a callback is on
 * the stack, that is decided when it returns. */
void weft__events_again(weft_stream *stream);

/* A letter of the mailbox of a loop's streams has arrived. */
void weft__events_on_letter(struct weft__mailbox *box, struct weft__letter *letter);

/* Whether on_drain is due.  If so, the caller calls it, and then weft__events_returned(). */
bool weft__events_begin_drain(weft_stream *stream);

/* A callback has returned. */
void weft__events_returned(weft_stream *stream);

/* Stop calling on_data. */
void weft__events_end(weft_stream *stream);

/* The loop stops: notify the started streams that have no pending op to be notified by. */
void weft__events_stop(weft_loop *loop);

/* --- quota.c ------------------------------------------------------------ */

/* Count the open connections of a listener, at most `max`.  When a connection ends after one
 * was refused, fn(arg) runs on the listener's loop. */
struct weft__quota *weft__quota_new(uint32_t max, weft_fn fn, void *arg);

/* Add a connection if there is room.  If not, fn is called once there may be room. */
bool weft__quota_enter(struct weft__quota *quota, weft_loop *loop);

/* Remove a connection.  Thread: any. */
void weft__quota_leave(struct weft__quota *quota);

/* The listener is being freed: fn is no longer called. */
void weft__quota_drop(struct weft__quota *quota);

#endif
