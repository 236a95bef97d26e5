/* request.c - converts ops to io_uring requests. */
#include <fcntl.h>
#include "backend/request.h"
#include "backend/buffers.h"

/* The kernel first tries a request on the loop's thread as if it were non-blocking.  That is
 * wrong for opening a FIFO, and closing a file can take long.  So both are forced onto the
 * kernel's worker threads. */
static void
fill_file(struct io_uring_sqe *sqe, const struct weft__op *op)
{
	switch (op->kind) {
	case WEFT__OP_FILE_OPEN:
		sqe->opcode = IORING_OP_OPENAT;
		sqe->flags = IOSQE_ASYNC;
		sqe->fd = AT_FDCWD;
		sqe->open_flags = (uint32_t)op->flags | O_CLOEXEC;
		sqe->len = (uint32_t)op->offset;
		break;
	case WEFT__OP_FILE_READ:
	case WEFT__OP_FILE_WRITE:
		sqe->opcode = op->kind == WEFT__OP_FILE_READ ? IORING_OP_READ : IORING_OP_WRITE;
		sqe->len = op->length;
		sqe->off = op->offset;
		break;
	case WEFT__OP_FILE_SYNC:
		sqe->opcode = IORING_OP_FSYNC;
		sqe->addr = 0;
		break;
	default:
		sqe->opcode = IORING_OP_CLOSE;
		sqe->flags = IOSQE_ASYNC;
		sqe->addr = 0;
		break;
	}
}

void
weft__request_fill(struct io_uring_sqe *sqe, const struct weft__op *op)
{
	sqe->fd = op->fd;
	sqe->user_data = (uint64_t)(uintptr_t)op;
	sqe->addr = (uint64_t)(uintptr_t)op->buf;
	if (weft__op_is_file(op)) {
		fill_file(sqe, op);
		return;
	}
	sqe->len = op->size > INT32_MAX ? INT32_MAX : (uint32_t)op->size;
	sqe->msg_flags = (uint32_t)op->flags;
	switch (op->kind) {
	case WEFT__OP_RECV:
		sqe->opcode = IORING_OP_RECV;
		break;
	case WEFT__OP_RECV_MULTI:
		sqe->opcode = IORING_OP_RECV;
		sqe->ioprio = IORING_RECV_MULTISHOT;
		sqe->flags = IOSQE_BUFFER_SELECT;
		sqe->buf_group = WEFT__BUFFER_GROUP;
		sqe->addr = 0;
		sqe->len = 0;
		break;
	case WEFT__OP_SEND:
		sqe->opcode = IORING_OP_SEND;
		sqe->msg_flags |= MSG_NOSIGNAL;
		break;
	case WEFT__OP_SENDMSG:
		sqe->opcode = IORING_OP_SENDMSG;
		sqe->len = 1;
		sqe->msg_flags |= MSG_NOSIGNAL;
		break;
	case WEFT__OP_ACCEPT:
		sqe->opcode = IORING_OP_ACCEPT;
		sqe->addr = 0;
		sqe->len = 0;
		sqe->accept_flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
		sqe->ioprio = op->events & WEFT_MULTI ? IORING_ACCEPT_MULTISHOT : 0;
		break;
	default:
		sqe->opcode = IORING_OP_CONNECT;
		sqe->len = 0;
		sqe->off = op->size;
		break;
	}
}

void
weft__request_cancel(struct io_uring_sqe *sqe, const struct weft__op *op, uint64_t user_data)
{
	sqe->opcode = IORING_OP_ASYNC_CANCEL;
	sqe->addr = (uint64_t)(uintptr_t)op;
	sqe->user_data = user_data;
}
