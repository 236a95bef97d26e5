/* fd.h - descriptors that objects of higher layers own: what they need beside ops.
 *
 * A stream, a listener or a datagram socket waits for its descriptor by ops.  It also registers the
 * descriptor with its loop, tries a system call before it starts an op or while its op waits, and
 * throttles a receive.  The layers above use the backend of a loop only by ops and by this header;
 * the rule `backend-private` of scripts/tidy.py checks that.
 *
 *   1. From weft__fd_own() to weft__fd_forget() the program closes the number only through its
 *      owner: so the loop trusts what it has registered with the kernel.
 *   2. A try never waits: it returns the result, or -EAGAIN.  An op that waits in the same
 *      direction stays pending.
 *   3. While the kernel itself executes an op (io_uring), a try for that op returns -EAGAIN, and
 *      the op cannot be throttled: its results arrive as they come.
 *
 * Needs: loop.h.  Thread: the loop's.
 */
#ifndef WEFT_LOOP_FD_H
#define WEFT_LOOP_FD_H

#include "loop/core/loop.h"

/* --- owning ------------------------------------------------------------- */

enum weft__fd_kind {
	WEFT__FD_IS_SOCKET = 0,
	WEFT__FD_IS_STREAM = WEFT__FD_STREAM, /* a socket on which a short read means that no data
	                                       * is left */
	WEFT__FD_IS_PLAIN = WEFT__FD_PLAIN,   /* not a socket: read(2) and write(2) */
	WEFT__FD_IS_RECEIVING_FDS = WEFT__FD_RECEIVES_FDS, /* also descriptors; see below */
};

/* `loop`, whose backend is open, owns `fd` from now on.  0, or WEFT_ENOMEM, WEFT_EBUSY. */
static inline int
weft__fd_own(weft_loop *loop, int fd, enum weft__fd_kind kind)
{
	return weft__ready_own(&loop->backend, fd, (uint16_t)kind);
}

/* Give up `fd`, on which nothing has waited here: another loop may own `fd` then. */
static inline void
weft__fd_disown(weft_loop *loop, int fd)
{
	weft__ready_disown(&loop->backend, fd);
}

/* `fd` is about to be closed, or leaves the loop: all that waits on `fd` ends with WEFT_ESHUTDOWN,
 * and the loop drops what it knows of `fd`.  NULL: the loop that runs on this thread, if any. */
void weft__fd_forget(weft_loop *loop, int fd);

/* --- trying at once ----------------------------------------------------- */

/* One system call submits many ops (io_uring): to queue an op costs less than to try first. */
static inline bool
weft__loop_batches(const weft_loop *loop)
{
	return loop->backend.ops->batches;
}

/* Descriptors on which something waits. */
static inline uint32_t
weft__loop_fds(const weft_loop *loop)
{
	return loop->backend.fds.in_use;
}

/* Receive on `fd`, whose receiving op is `op`: from weft_op_recv_multi(), or not pending.  Without
 * `must` only if `op` is pending and bytes are expected.  Returns the count, 0 at the end, or an
 * error.  With `buf` NULL weft_op_data() returns the bytes, until the loop receives again. */
int64_t weft__op_recv_now(weft_op *op, int fd, void *buf, size_t size, bool must);

/* Send on `fd`, which is owned.  Without `must` only if there is room as far as the loop knows. */
static inline int64_t
weft__fd_send_now(weft_loop *loop, int fd, struct msghdr *msg, bool must)
{
	return weft__ready_send_now(&loop->backend, fd, msg, must);
}

/* Send a part of a file on `fd`, which is owned. */
int64_t weft__fd_sendfile_now(weft_loop *loop, int fd, const struct weft__file_part *part);

/* --- receives with many results ----------------------------------------- */

/* Stop or resume the results of a pending op of weft_op_recv_multi(): meanwhile the bytes stay in
 * the kernel.  Another op is left alone.  0; or an error, and the op stays throttled. */
static inline int
weft__op_throttle(weft_op *handle, bool on)
{
	struct weft__op *op = weft__op_of(handle);

	if (op->kind != WEFT__OP_RECV_MULTI)
		return 0;
	return weft__ready_throttle_recv(&op->loop->backend, op, on);
}

/* Let the next results of such an op be received into `buf`; NULL: into the loop's own memory. */
static inline void
weft__op_set_buffer(weft_op *handle, void *buf, size_t size)
{
	struct weft__op *op = weft__op_of(handle);

	if (op->kind != WEFT__OP_RECV_MULTI)
		return;
	op->buf = buf;
	op->size = size;
}

/* From now on receives on `fd`, a Unix stream that is owned, also accept descriptors.  False: `op`,
 * the pending receive, cannot, and must be canceled and started again. */
bool weft__fd_receive_fds(weft_loop *loop, int fd, const weft_op *op);

/* Take the descriptor that came with the last receive, or -1. */
static inline int
weft__fd_take_received(weft_loop *loop)
{
	return weft__fd_pass_take(&loop->backend);
}

#endif
