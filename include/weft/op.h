/* weft/op.h - the op: everything that waits, and how it ends.
 *
 * An op is embedded in the caller's struct.  It is started by one of the calls
 * below or by any call whose name ends in _op; it finishes exactly once, on its
 * loop's thread, with one result.  From start to finish it must stay put and
 * belongs to the loop, and so does every buffer given with it.  After on_done
 * has begun it is the caller's again: start it anew, or free it.
 *
 * Starting returns 0: the result will come, errors of the operation included.
 * Or it refuses, and nothing will come: WEFT_EINVAL, WEFT_EBUSY (in flight),
 * WEFT_EWRONGLOOP, WEFT_ENOMEM (of its deadline), WEFT_ESHUTDOWN.  So there is one place to
 * handle a failed connect.
 *
 * Cancel, deadline, close and stop ask an op to finish early, with WEFT_ECANCELED,
 * WEFT_ETIMEDOUT and twice WEFT_ESHUTDOWN; a result that carries bytes, an fd or a
 * value beats them, and before a deadline is told, what has arrived is looked for.
 *
 * A descriptor is closed by weft_op_close(), or after its ops have finished.  If it is closed
 * unannounced, its ops may wait on; they finish with WEFT_EBADF once the loop learns that
 * the number stands for another file.
 *
 * On a descriptor one op may wait to read (receive, accept, poll for READABLE) and one
 * to write (send, connect, poll for WRITABLE); another is refused with WEFT_EBUSY.
 */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include <sys/socket.h>
#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_op weft_op;

/* Runs on the loop's thread with the result: a count, an fd, a mask, a value
 * of the kind's own, or WEFT_E*.  `op->more` tells whether others follow. */
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

/* Prepare `op` for `loop` (NULL: the caller's), whatever was in its memory; not
 * while it is in flight.  Once; then start it as often as wanted.  Without on_done its
 * end is learned by weft_op_wait(), or by looking at `pending`.
 * Returns 0, WEFT_EINVAL.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_init(weft_op *op, weft_loop *loop, weft_op_fn on_done,
                          void *arg);

/* Ask `op` to finish with WEFT_ECANCELED.  A no-op if it is not pending.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_op_cancel(weft_op *op);

/* Wait until `op`, which has no on_done, has finished; at the deadline, on cancellation
 * and on interrupt ask it to finish early, and still wait until it has.  With WEFT_NOWAIT it
 * is left alone, and WEFT_ETIMEDOUT means that it is pending.
 * Returns its result; WEFT_EINVAL if it was never started.
 * Thread: loop.  Blocks: suspends.  Since: 0.1. */
WEFT_API int64_t weft_op_wait(weft_op *op, uint64_t deadline_ns);

/* Say whether `op` is background work, which does not keep weft_loop_run()
 * from returning.  Off at init; any time.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_op_set_background(weft_op *op, bool on);

/* Finish with 0 at the deadline.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_sleep(weft_op *op, uint64_t deadline_ns);

/* Finish with the mask when `fd` is ready for one of `events`; with WEFT_MULTI at
 * each change, on every backend, until cancelled (for levels: weft/watch.h).
 * Borrows `fd` and may keep its file open until the end: cancel, then close.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_poll(weft_op *op, int fd, uint32_t events,
                          uint64_t deadline_ns);

/* Receive into, or send from, `buf`: finish with the count, 0 at the end of a
 * stream.  `flags` are those of recv(2) and send(2).
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_recv(weft_op *op, int fd, void *buf, size_t size,
                          int flags, uint64_t deadline_ns);
WEFT_API int weft_op_send(weft_op *op, int fd, const void *buf, size_t size,
                          int flags, uint64_t deadline_ns);

/* Receive again and again, into the loop's own buffers: each result is a count,
 * its bytes lie at weft_op_data() until on_done returns; 0 at the end.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_recv_multi(weft_op *op, int fd, uint64_t deadline_ns);
WEFT_API const void *weft_op_data(const weft_op *op);

/* The same for messages: several buffers, addresses, control data.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_recvmsg(weft_op *op, int fd, struct msghdr *msg, int flags,
                             uint64_t deadline_ns);
WEFT_API int weft_op_sendmsg(weft_op *op, int fd, const struct msghdr *msg,
                             int flags, uint64_t deadline_ns);

/* Accept on a listening socket: finish with a new fd, non-blocking and
 * close-on-exec; `events` is 0 or WEFT_MULTI.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_accept(weft_op *op, int fd, uint32_t events,
                            uint64_t deadline_ns);

/* Connect `fd`; borrows `addr` until it has finished.  Finish with 0.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_connect(weft_op *op, int fd, const struct sockaddr *addr,
                             socklen_t size, uint64_t deadline_ns);

/* Cancel every op on `fd`, wait for them, close it; also while the loop stops.
 * Finish with 0.  Takes `fd`, unless the call is misuse.  A descriptor that came from
 * an accept or connect op is closed in this way and no other.
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_close(weft_op *op, int fd);

/* Called when an op of one's own kind is asked to finish early: see that
 * weft_op_finish() follows, now or later.  `why` is the error to finish with. */
typedef void (*weft_op_cancel_fn)(weft_op *op, int why, void *arg);

/* Start an op of one's own kind: a command on a shared connection, a call into
 * another library.  It is pending until weft_op_finish().
 * Thread: loop.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_begin(weft_op *op, weft_op_cancel_fn on_cancel, void *arg,
                           uint64_t deadline_ns);

/* Finish an op begun with weft_op_begin(); on_done is queued, not called.  It has
 * one finisher: where a reply on another loop can meet on_cancel, the protocol
 * claims the op first (one atomic exchange), and the loser leaves it alone.
 * Returns 0, or WEFT_EALREADY if it has finished before.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_op_finish(weft_op *op, int64_t result);

WEFT_END
#endif
