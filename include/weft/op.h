/* weft/op.h - ops: asynchronous operations with one final result.
 *
 * An op is embedded in the caller's struct.  The calls below start one, and so does every call
 * whose name ends in _op.  An op finishes exactly once, on its loop's thread, with one final
 * result.  An op started with WEFT_MULTI, or by weft_op_recv_multi(), delivers other results
 * before that one, with `more` set.  From start to finish an op must not move, and it belongs to
 * the loop, as does every buffer given with it.  Once on_done has begun with the final result,
 * the op belongs to the caller again: start it again, or free it.
 *
 * A start call returns 0 if a result will follow, even if that result is an error of the
 * operation.  If it returns an error, no result follows: WEFT_EINVAL, WEFT_EBUSY (the op is in
 * flight), WEFT_EWRONGLOOP, WEFT_ENOMEM (for its deadline), WEFT_ESHUTDOWN.  So a failed connect,
 * for example, is always reported in one place.
 *
 * An op finishes early when it is canceled (WEFT_ECANCELED), when its deadline passes
 * (WEFT_ETIMEDOUT), and when its descriptor is closed or its loop stops (WEFT_ESHUTDOWN).  But if
 * bytes, a descriptor or a value have arrived by then, the op finishes with these.  Before an op
 * finishes at its deadline, the loop checks for data that has arrived.
 *
 * Close a descriptor with weft_op_close(), or after its ops have finished.  If a descriptor is
 * closed in another way, its ops may continue to wait; they finish with WEFT_EBADF once the loop
 * finds out that the number refers to another file.
 *
 * On one descriptor, one op may wait to read (receive, accept, poll for READABLE) and one to
 * write (send, connect, poll for WRITABLE); a second one is refused with WEFT_EBUSY.
 */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include <sys/socket.h>
#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_op weft_op;

/* Called on the loop's thread with the result: a count, a descriptor, a mask, another value
 * that the operation defines, or WEFT_E*.  `op->more` is true if more results follow. */
typedef void (*weft_op_fn)(weft_op *op, int64_t result, void *arg);

struct weft_op {
	weft_op_fn on_done;  /* read-only after init */
	void      *arg;      /* caller's */
	weft_loop *loop;     /* read-only */
	int64_t    result;   /* read-only once finished */
	bool       more;     /* read-only: not the final result yet */
	bool       pending;  /* read-only: started and not finished */
	uint8_t    kind;     /* private from here on */
	uint8_t    state;
	uint32_t   token;
	uint64_t   opaque[12];
};
WEFT_STATIC_ASSERT(sizeof(struct weft_op) <= 136, "weft_op is part of the ABI");

/* Prepare `op` for `loop` (NULL: the caller's).  The memory of the op need not be zeroed before,
 * but the op must not be in flight.  Call this once; then start the op as often as wanted.  If
 * on_done is NULL, use weft_op_wait() or check `pending`.
 * Returns 0, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_init(weft_op *op, weft_loop *loop, weft_op_fn on_done,
                          void *arg);

/* Make `op` finish with WEFT_ECANCELED, unless it has its result already.  A close op cannot be
 * canceled.  Has no effect if `op` is not pending.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_op_cancel(weft_op *op);

/* Wait until `op`, which has no on_done, has finished.  At the deadline, and if the caller is
 * canceled or interrupted, the call makes the op finish early, and still waits until it has
 * finished.  With WEFT_NOWAIT it does not cancel the op, and WEFT_ETIMEDOUT means that the op is
 * pending.
 * Returns the result of the op; WEFT_EINVAL if it was never started or has an on_done;
 * WEFT_ENOSUSPEND in a callback while the op is pending, also with WEFT_NOWAIT.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int64_t weft_op_wait(weft_op *op, uint64_t deadline_ns);

/* Set whether `op` is background work, which does not keep weft_loop_run() from returning.  Off
 * after weft_op_init().  May be called at any time.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_op_set_background(weft_op *op, bool on);

/* Sleep: the op finishes with 0 at the deadline.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_sleep(weft_op *op, uint64_t deadline_ns);

/* Poll: the op finishes with the mask of events when `fd` is ready for one of `events`.  With
 * WEFT_MULTI it delivers a result at each change, on every backend, until it is canceled (for
 * level-triggered events use weft/watch.h).  The op borrows `fd`, and may keep its file open
 * until it has finished: cancel the op first, then close `fd`.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_poll(weft_op *op, int fd, uint32_t events,
                          uint64_t deadline_ns);

/* Receive into `buf`, or send from it: the op finishes with the count, 0 at the end of a
 * stream.  `flags` are those of recv(2) and send(2).  For messages with addresses or control
 * data, poll and call recvmsg(2) or sendmsg(2).
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_recv(weft_op *op, int fd, void *buf, size_t size,
                          int flags, uint64_t deadline_ns);
WEFT_API int weft_op_send(weft_op *op, int fd, const void *buf, size_t size,
                          int flags, uint64_t deadline_ns);

/* Receive repeatedly into the loop's own buffers.  Each result is a count, 0 at the end of the
 * stream; weft_op_data() points to the bytes until on_done returns.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_recv_multi(weft_op *op, int fd, uint64_t deadline_ns);
WEFT_API const void *weft_op_data(const weft_op *op);

/* Accept on a listening socket: the op finishes with a new descriptor, which is non-blocking
 * and close-on-exec; `events` is 0 or WEFT_MULTI.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_accept(weft_op *op, int fd, uint32_t events,
                            uint64_t deadline_ns);

/* Connect `fd`: the op finishes with 0.  Borrows `addr` until then.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_connect(weft_op *op, int fd, const struct sockaddr *addr,
                             socklen_t size, uint64_t deadline_ns);

/* End every op and watch on `fd` with WEFT_ESHUTDOWN, wait for the ops and close `fd`, even while
 * the loop stops.  Then `op` finishes with 0.  Takes `fd`, unless the call is refused as misuse.
 * A descriptor from an accept or connect op must be closed this way.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_close(weft_op *op, int fd);

/* Called when a custom op must finish early.  The function calls weft_op_finish(), or makes sure
 * that other code does so later.  `why` is the error to finish with. */
typedef void (*weft_op_cancel_fn)(weft_op *op, int why, void *arg);

/* Start a custom op, for example a command on a shared connection or a call into another
 * library.  It is pending until weft_op_finish().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_begin(weft_op *op, weft_op_cancel_fn on_cancel, void *arg,
                           uint64_t deadline_ns);

/* Finish an op begun with weft_op_begin(); its on_done is queued, not called.  Only one caller
 * may finish an op.  If a reply on another loop can race with on_cancel, both must first claim
 * the op, for example with one atomic exchange; the loser must not touch it.
 * Returns 0, or WEFT_EALREADY if it has already finished.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_finish(weft_op *op, int64_t result);

WEFT_END
#endif
