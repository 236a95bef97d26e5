/* fd.c - descriptors that objects of higher layers own; see fd.h. */
#include "loop/io/fd.h"

void
weft__fd_forget(weft_loop *loop, int fd)
{
	loop = weft__loop_or_current(loop);
	if (!loop)
		return;
	weft__ready_forget(&loop->backend, fd);
	weft__loop_changed(loop);
}

/* --- trying at once ----------------------------------------------------- */

/* No pending op could already have fetched the bytes, so make the call for the idle op. */
static int64_t
receive_by_idle(struct weft__op *op, int fd, void *buf, size_t size)
{
	int64_t n;

	op->kind = WEFT__OP_RECV_MULTI;
	op->fd = fd;
	op->buf = buf;
	op->size = size;
	n = weft__ready_try(&op->loop->backend, op);
	op->buf = NULL;
	return n;
}

int64_t
weft__op_recv_now(weft_op *handle, int fd, void *buf, size_t size, bool must)
{
	struct weft__op *op = weft__op_of(handle);

	return must && !op->pending ? receive_by_idle(op, fd, buf, size)
	                            : weft__ready_recv_now(&op->loop->backend, op, buf, size, must);
}

int64_t
weft__fd_sendfile_now(weft_loop *loop, int fd, const struct weft__file_part *part)
{
	struct weft__op op = { .kind = WEFT__OP_SENDFILE, .fd = fd, .part = part };

	return weft__ready_try(&loop->backend, &op);
}

bool
weft__fd_receive_fds(weft_loop *loop, int fd, const weft_op *op)
{
	weft__ready_receive_fds(&loop->backend, fd);
	return !op->pending || op->state == WEFT__OP_WAITING;
}
