/* try.c - makes the system call of an op: returns its result, or -EAGAIN if it would block. */
#include "backend/ready.h"

#define BUFFER_SIZE 65536u /* the loop's buffer, for receives without one */

/* A second connect(2) returns the outcome of the first.  The socket reports a pending error only
 * once, to SO_ERROR or to that call: so check both. */
static int64_t
try_connect(struct weft__backend *backend, struct weft__op *op)
{
	int error = 0;
	int rc = op->connecting ? weft__kernel(backend)->so_error(op->fd, &error)
	                        : weft__kernel(backend)->set_nonblock(op->fd);

	if (rc < 0 || error)
		return rc < 0 ? rc : -error;
	rc = weft__kernel(backend)->connect(op->fd, op->addr, (socklen_t)op->size);
	if (rc == -EINPROGRESS || rc == -EALREADY || rc == -EINTR) {
		op->connecting = true;
		return -EAGAIN;
	}
	if (op->connecting)
		return rc == -EISCONN ? 0 : rc;
	/* A Unix listener whose queue is full cannot be waited for. */
	return rc == -EAGAIN ? -ECONNREFUSED : rc;
}

/* Ignore connections that failed while in the queue. */
static int64_t
try_accept(struct weft__backend *backend, const struct weft__op *op)
{
	int64_t rc = -EAGAIN;

	for (int i = 0; i < WEFT__TRIES_MAX; i++) {
		rc = weft__kernel(backend)->accept(op->fd);
		if (rc != -ECONNABORTED && rc != -EPROTO && rc != -EINTR)
			return rc;
	}
	return -EAGAIN;
}

static int64_t
receive(struct weft__backend *backend, const struct weft__fd *entry, int fd, void *buf, size_t size)
{
	if (entry->flags & WEFT__FD_PLAIN)
		return weft__kernel(backend)->read(fd, buf, size);
	if (entry->flags & WEFT__FD_RECEIVES_FDS)
		return weft__fd_pass_receive(backend, fd, buf, size);
	return weft__kernel(backend)->recv(fd, buf, size, 0);
}

/* Receive into the op's buffer if it has one, else into the loop's. */
static int64_t
receive_multi(struct weft__backend *backend, const struct weft__fd *entry,
              const struct weft__op *op)
{
	if (op->buf) {
		backend->data = op->buf;
		return receive(backend, entry, op->fd, op->buf, op->size);
	}
	if (!backend->buffer)
		backend->buffer = weft__sys->alloc(BUFFER_SIZE);
	if (!backend->buffer)
		return -ENOMEM;
	backend->data = backend->buffer;
	return receive(backend, entry, op->fd, backend->buffer, BUFFER_SIZE);
}

static int64_t
try_receive(struct weft__backend *backend, const struct weft__fd *entry, const struct weft__op *op)
{
	if (op->kind == WEFT__OP_RECV)
		return weft__kernel(backend)->recv(op->fd, op->buf, op->size, op->flags);
	return receive_multi(backend, entry, op);
}

/* Send as much as one call takes; for a descriptor that is not a socket, the first part. */
static int64_t
send_message(struct weft__backend *backend, const struct weft__fd *entry, int fd,
             const struct msghdr *msg, int flags)
{
	const struct iovec *part = msg->msg_iov;

	if (entry && (entry->flags & WEFT__FD_PLAIN))
		return weft__kernel(backend)->write_quiet(fd, part->iov_base, part->iov_len);
	if (msg->msg_iovlen == 1 && !msg->msg_control && !msg->msg_name)
		return weft__kernel(backend)->send(fd, part->iov_base, part->iov_len, flags);
	return weft__kernel(backend)->sendmsg(fd, msg, flags);
}

/* The ring may have made the descriptor blocking, and sendfile(2) has no MSG_DONTWAIT. */
static int64_t
send_file(struct weft__backend *backend, struct weft__fd *entry, const struct weft__op *op)
{
	const struct weft__file_part *part = op->part;
	uint64_t size = part->left < WEFT__SENDFILE_MAX ? part->left : WEFT__SENDFILE_MAX;

	if (!(entry->flags & WEFT__FD_UNBLOCKED)) {
		int rc = weft__kernel(backend)->set_nonblock(op->fd);

		if (rc < 0)
			return rc;
		entry->flags &= (uint16_t)~WEFT__FD_BLOCKING;
		entry->flags |= WEFT__FD_UNBLOCKED;
	}
	return weft__kernel(backend)->sendfile(op->fd, part->file, part->offset, (size_t)size);
}

static int64_t
try_once(struct weft__backend *backend, struct weft__fd *entry, struct weft__op *op)
{
	switch (op->kind) {
	case WEFT__OP_ACCEPT:
		return try_accept(backend, op);
	case WEFT__OP_CONNECT:
		return try_connect(backend, op);
	case WEFT__OP_SEND:
		return weft__kernel(backend)->send(op->fd, op->data, op->size, op->flags);
	case WEFT__OP_SENDMSG:
		return send_message(backend, entry, op->fd, op->msg, op->flags);
	case WEFT__OP_SENDFILE:
		return send_file(backend, entry, op);
	default:
		return try_receive(backend, entry, op);
	}
}

/* Whether a result means that nothing more is available. */
static bool
is_drained(const struct weft__fd *entry, const struct weft__op *op, int64_t result)
{
	if (result == -EAGAIN)
		return true;
	if (!(entry->flags & WEFT__FD_STREAM) || result <= 0)
		return false;
	if (op->kind == WEFT__OP_RECV_MULTI)
		return (uint64_t)result < (op->buf ? op->size : BUFFER_SIZE);
	return op->kind == WEFT__OP_RECV && (uint64_t)result < op->size;
}

static bool
is_local(struct weft__backend *backend, int fd)
{
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);

	return weft__kernel(backend)->sockname(fd, (struct sockaddr *)&name, &size) < 0
	       || name.ss_family == AF_UNIX;
}

/* An accepted connection is owned; earlier waiters on its number are obsolete. */
static void
adopt(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, fd);

	if (!entry) /* it is treated as not owned, which is slower but correct */
		return;
	weft__ready_evict(backend, fd, WEFT__BOTH, WEFT_EBADF);
	entry->generation++;
	entry->armed = 0;
	entry->flags = WEFT__FD_OWNED | WEFT__FD_MAY_WRITE;
	if (!is_local(backend, fd))
		entry->flags |= WEFT__FD_STREAM;
}

void
weft__ready_update_state(struct weft__backend *backend, const struct weft__op *op, int64_t result)
{
	if (op->kind == WEFT__OP_ACCEPT && result >= 0)
		adopt(backend, (int)result);
	if (op->kind == WEFT__OP_CONNECT && result == 0 && weft__ready_has(backend, op))
		weft__fds_get(&backend->fds, op->fd)->flags |= WEFT__FD_OWNED;
}

int64_t
weft__try_op(struct weft__backend *backend, struct weft__fd *entry, struct weft__op *op)
{
	int64_t result = -EINTR;

	for (int i = 0; result == -EINTR && i < WEFT__TRIES_MAX; i++)
		result = try_once(backend, entry, op);
	if (result == -EINTR || result == -EWOULDBLOCK)
		result = -EAGAIN;
	if (is_drained(entry, op, result))
		entry->flags &= weft__op_directions(op) == WEFT_READABLE
		                        ? (uint16_t)~WEFT__FD_MAY_READ
		                        : (uint16_t)~WEFT__FD_MAY_WRITE;
	weft__ready_update_state(backend, op, result);
	return result;
}

int64_t
weft__ready_try(struct weft__backend *backend, struct weft__op *op)
{
	return weft__try_op(backend, weft__fds_get(&backend->fds, op->fd), op);
}

int64_t
weft__ready_send_now(struct weft__backend *backend, int fd, struct msghdr *msg, bool must)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);
	int64_t result = -EINTR;

	if (!must && (entry->armed & WEFT_EDGE) && !(entry->flags & WEFT__FD_MAY_WRITE))
		return -EAGAIN;
	for (int i = 0; result == -EINTR && i < WEFT__TRIES_MAX; i++)
		result = send_message(backend, entry, fd, msg, 0);
	if (result == -EINTR || result == -EWOULDBLOCK)
		result = -EAGAIN;
	if (result == -EAGAIN)
		entry->flags &= (uint16_t)~WEFT__FD_MAY_WRITE;
	return result;
}
