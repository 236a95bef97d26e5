/* stream.h - streams, as the files of this layer share them.  Private.
 *
 * The files: stream.c (making, whose it is, moving), receive.c (the one op that
 * receives, and who is told), read.c (calls that read), send.c (the queue of writes and
 * the op that sends), write.c (calls that write), close.c (the end), events.c
 * (callbacks), option.c (properties), queue.c (bytes in hand), secure.c (TLS), pass.c
 * (descriptors), write_file.c (files).
 *
 *   1. A stream has no loop until the first call that waits on it.  From then on all but
 *      interrupt is that loop's thread's, and the loop is referenced.
 *   2. `in` stands with the backend from the first read on, and receives into memory of
 *      the loop, or of a reader while that waits: nobody's memory is with the kernel
 *      when a read returns, so a read can end at any time.
 *   3. What is being sent is the caller's memory: a write ends when the kernel has let go
 *      of it.
 *   4. It is freed when `in` and `out` are not pending, no callback is on the stack or
 *      posted, and no threadlet that was woken has still to run: those are its guests.
 *   5. on_close, and the return of weft_close() in a threadlet, come after the results of
 *      all ops that the program has started on it.  No call of the program calls on_close,
 *      unless the loop has stopped.
 *
 * Needs: threadlet, loop.
 */
#ifndef WEFT_NET_STREAM_H
#define WEFT_NET_STREAM_H

#include <weft/stream.h>
#include <weft/timer.h>
#include "net/stream/notice.h"
#include "net/stream/queue.h"
#include "threadlet/threadlet.h"

#define WEFT__IOVS   16 /* spans that one call sends, */
#define WEFT__IOVS_MANY 256 /* and of a queue that has more */
#define WEFT__RECORD 16384u /* bytes that TLS carries at a time */

/* What a write is of. */
enum {
	WEFT__WRITE_BYTES,
	WEFT__WRITE_FILE,
	WEFT__WRITE_FD,   /* a descriptor, with a byte */
	WEFT__WRITE_LAST, /* the last word */
};

/* A descriptor as it is sent. */
struct weft__passing {
	struct msghdr msg;
	struct iovec  byte;
	union {
		struct cmsghdr head;
		char           room[CMSG_SPACE(sizeof(int))];
	} control;
};

/* A write that waits.  On the stack of its threadlet; of an op: from the loop's cache. */
struct weft__write {
	struct weft__write  *next, *prev; /* in the queue */
	uint8_t              kind;  /* WEFT__WRITE_* */
	const weft_span     *spans; /* of bytes: the rest of them */
	struct weft__file_part *part; /* of a file: the rest of it; not counted in `left` */
	struct weft__passing *passing; /* of a descriptor */
	size_t               count;
	size_t               skip;  /* bytes of the first that were sent */
	size_t               left, size; /* bytes */
	struct weft__waiter *waiter; /* or */
	weft_op             *op;
	weft_stream         *stream;
	int                  why;   /* it was asked to end; or 0 */
	bool                 flies; /* is with the op that sends */
	bool                 ended;
	int64_t              result;
};

/* What sends, while there is something to send. */
struct weft__sender {
	weft_op       op;
	weft_timer    linger; /* of a close, */
	bool          lingers; /* if it counts */
	uint64_t      linger_queued; /* when it was last started: bytes in memory, */
	int64_t       linger_unsent; /* and those with the kernel, which may count its own
	                              * overhead among them */
	struct msghdr msg;
	struct iovec  iov[WEFT__IOVS];
	struct iovec *many; /* room for more of them, or NULL */
	struct weft__sender *next; /* spare */
};

/* What the streams of a loop share. */
struct weft__net {
	struct weft__chunks  chunks;
	struct weft__sender *senders; /* spare ones */
	struct weft__write  *writes;
	uint32_t             sender_count, write_count;
	weft_stream         *started; /* those with callbacks, by `next` */
	char                *scratch; /* of secure.c */
};

/* Connections of a listener that are open; shared with it. */
struct weft__quota;

enum {
	WEFT__STREAM_BORROWED = 1 << 0, /* its descriptor is the caller's */
	WEFT__STREAM_PLAIN = 1 << 1,    /* no socket */
	WEFT__STREAM_ENDED = 1 << 2,    /* the peer has said its last */
	WEFT__STREAM_PAUSED = 1 << 3,   /* the queue is full: receiving was stopped */
	WEFT__STREAM_SHUT = 1 << 4,     /* we have said ours */
	WEFT__STREAM_CLOSING = 1 << 5,
	WEFT__STREAM_STARTED = 1 << 7,  /* callbacks are told */
	WEFT__STREAM_BACKGROUND = 1 << 9,
	WEFT__STREAM_HIGH = 1 << 10,    /* was above the high mark: on_drain is owed */
	WEFT__STREAM_BOUND = 1 << 11,   /* its loop knows the descriptor */
	WEFT__STREAM_AGAIN = 1 << 12,   /* `again` is posted */
	WEFT__STREAM_CALLED = 1 << 13,  /* a callback is on the stack */
	WEFT__STREAM_MOVING = 1 << 14,  /* between two loops */
	WEFT__STREAM_PASSES = 1 << 15,  /* takes descriptors */
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
	/* What every read and write looks at comes first. */
	struct weft__notice notice; /* its loop, and interrupts */
	int         fd;
	uint32_t    flags; /* WEFT__STREAM_* */
	int         in_error, out_error; /* for good, or 0 */
	int         passed;   /* a descriptor that has come, or -1; see passed_at */
	uint32_t    guests;   /* woken, or between two looks */
	struct weft__session *tls; /* NULL: plain */
	struct weft__write *first; /* that waits, */
	struct weft__queue in_queue;
	weft_op     in;
	/* Who waits to read: a threadlet or an op. */
	struct weft__waiter *reader;
	weft_op    *reader_op;
	size_t      min;      /* bytes that have to be there; or */
	char       *into;     /* memory for what comes, */
	size_t      into_size;

	struct weft__sender *out; /* NULL: nothing is being sent */
	struct weft__write *last; /* and that comes after all others */
	size_t      queued;   /* bytes of them, */
	uint64_t    queued_files; /* and of files that are being written */

	union {
		weft_loop    *moved_to; /* whose it is to be; NULL: it has a loop, or none */
		weft_stream **link;     /* of one that is started: what points to it */
	};
	size_t      passed_at; /* how many bytes of the queue are before what it came with */
	struct weft__stream_calls events;
	void       *arg;
	weft_node   again;    /* that shows what is left */
	struct weft__waiter *closer, *mover;

	uint32_t    read_max, high_water, low_water;
	uint64_t    write_max, linger_ns;

	struct weft__quota *quota; /* or NULL */
	weft_stream *next;    /* accepted, and not given to the program; or started */
	weft_stream **keeper; /* set to NULL when it is gone; or NULL */
};

static inline weft_loop *
weft__stream_loop(const weft_stream *stream)
{
	return weft__notice_loop(&stream->notice);
}

#define weft__notice_stream(n) \
	((weft_stream *)(void *)((char *)(n) - offsetof(weft_stream, notice)))

/* --- stream.c ----------------------------------------------------------- */

/* What the streams of `loop` share, made at first need; NULL without memory. */
struct weft__net *weft__net_of(weft_loop *loop);

/* A stream of `fd`, which it takes; NULL without memory. */
weft_stream *weft__stream_make(int fd, uint32_t flags);
void         weft__stream_free(weft_stream *stream);

/* May this thread use it, and is it open?  If it has no loop, it gets `loop` (NULL: the
 * caller's).  0, or an error. */
int weft__stream_use_slow(weft_stream *stream, weft_loop *loop, const char *call);

static inline int
weft__stream_use(weft_stream *stream, weft_loop *loop, const char *call)
{
	const uint32_t all = WEFT__STREAM_BOUND | WEFT__STREAM_CLOSING | WEFT__STREAM_MOVING;
	weft_loop *its = stream ? weft__stream_loop(stream) : NULL;

	/* Mostly it is open, and its loop is this one. */
	if (its && (!loop || loop == its) && (stream->flags & all) == WEFT__STREAM_BOUND
	    && weft__loop_is_usable(its))
		return 0;
	return weft__stream_use_slow(stream, loop, call);
}

/* The same for a call that does not wait: it is given no loop. */
int weft__stream_check(weft_stream *stream, const char *call);

/* The same as weft__stream_use() for a call that may suspend: what a wait would be refused
 * with comes first. */
int weft__stream_wait(weft_stream *stream, uint64_t deadline_ns, const char *call);

/* --- option.c ----------------------------------------------------------- */

/* Bytes that are queued, and those in the kernel that the peer has not acknowledged. */
int64_t weft__stream_unsent(const weft_stream *stream);

/* The connection has failed: a text that names its peer.  Returns `error`. */
int weft__stream_explain(const weft_stream *stream, const char *call, int error);

/* --- receive.c ---------------------------------------------------------- */

/* See that it receives, if it can and there is room.  0, or an error. */
int weft__receive_start(weft_stream *stream);

/* Have it receive no more, and wait until that is so.  0, or WEFT_EBUSY in a callback. */
int weft__receive_stop(weft_stream *stream);

/* Receive at once into the queue, or into `buf`: the count, 0 at the end, or an error,
 * -EAGAIN for nothing there. */
int64_t weft__receive_now(weft_stream *stream, void *buf, size_t size, bool must);

/* Wait for `into` to be filled, or for `min` bytes; both are set.  The result. */
int64_t weft__receive_wait(weft_stream *stream, uint64_t deadline_ns);

/* Bytes have been consumed: perhaps there is room again. */
void weft__receive_more(weft_stream *stream);

/* What a reader finds at the end of the queue: 1: more may come, 0: the end, < 0. */
int weft__receive_state(const weft_stream *stream);

/* A guest has run, and looks at the stream no more if it is being closed: 0, or
 * WEFT_ESHUTDOWN. */
int weft__guest_leave(weft_stream *stream);

/* End the wait of a reader. */
void weft__reader_end(weft_stream *stream, int64_t result);

/* --- send.c ------------------------------------------------------------- */

/* Send what can be sent at once: the count, 0 for none, or an error. */
int64_t weft__send_now(weft_stream *stream, const weft_span *spans, size_t count,
                       bool must);

/* Put a write into the queue and see that it is sent; it may have ended by the return,
 * and without a waiter that is all that is told.  0, or an error. */
int weft__send_queue(weft_stream *stream, struct weft__write *write);

/* May the caller write?  0, or an error with its text. */
int weft__send_check(const weft_stream *stream);

/* Queue it and wait for its end.  What it came to. */
int64_t weft__send_wait(weft_stream *stream, struct weft__write write,
                        uint64_t deadline_ns);

/* A write for an op; NULL without memory. */
struct weft__write *weft__write_take(weft_loop *loop);
void weft__write_give(weft_loop *loop, struct weft__write *write);

/* A write is not wanted any more. */
void weft__send_ask(struct weft__write *write, int why);

/* End all writes. */
void weft__send_fail(weft_stream *stream, int error);

/* See that output of TLS is sent which no write has made. */
void weft__send_flush(weft_stream *stream);

/* `size` bytes of a write are not the caller's any more. */
void weft__write_advance(weft_stream *stream, struct weft__write *write, size_t size);

/* --- pass.c ------------------------------------------------------------- */

/* Descriptors are taken from now on.  0, or WEFT_EINVAL for other kinds of streams. */
int  weft__passed_start(weft_stream *stream, const char *call);

/* With bytes that were received after `before` of the queue, perhaps one has come. */
void weft__passed_came(weft_stream *stream, size_t before);

/* `size` bytes have left the queue; or: close the one that is there. */
void weft__passed_skip(weft_stream *stream, size_t size);
void weft__passed_end(weft_stream *stream);

/* --- secure.c ----------------------------------------------------------- */

/* Bytes have come over a connection with TLS; or its end. */
void weft__secure_take(weft_stream *stream, const char *bytes, size_t size);
void weft__secure_end(weft_stream *stream);
void weft__secure_drain(weft_stream *stream);

/* What is to be sent, with what is queued: its size, or an error. */
int64_t weft__secure_output(weft_stream *stream, const void **out);
void    weft__secure_goodbye(weft_stream *stream);

/* Say why it has failed, the session or the connection below.  Returns `error`. */
int     weft__secure_explain(const weft_stream *stream, const char *call, int error);

/* --- close.c ------------------------------------------------------------ */

/* It is closing, and something has ended: go on with that.  True if it is gone. */
bool weft__close_go_on(weft_stream *stream);

/* --- events.c ----------------------------------------------------------- */

/* Bytes, the end or an error are there; it may be gone afterwards. */
void weft__events_tell(weft_stream *stream);

/* Tell soon what is left. */
void weft__events_again(weft_stream *stream);
void weft__events_drain(weft_stream *stream);

/* The callbacks are told no more. */
void weft__events_end(weft_stream *stream);

/* The loop stops: tell the streams of `net` that would not hear of it otherwise. */
void weft__events_stop(void *net);
void weft__events_on_again(void *stream);

/* --- quota.c ------------------------------------------------------------ */

/* How many connections of a listener are open, and what is to be done when one is not
 * any more: fn(arg) on the listener's loop. */
struct weft__quota *weft__quota_new(uint32_t max, weft_fn fn, void *arg);

/* One more, if there is room; if not, fn is called once there may be. */
bool weft__quota_enter(struct weft__quota *quota, weft_loop *loop);

/* One less.  Thread: any. */
void weft__quota_leave(struct weft__quota *quota);

/* The listener goes: fn is not called any more. */
void weft__quota_drop(struct weft__quota *quota);

#endif
