/* ready.c - ops and watches over readiness, for every backend that has no better.
 *
 * An op is a call that is tried; if it would block, it takes its side of the
 * descriptor's entry (reading or writing) and is tried again when the kernel reports
 * that side.  A watch takes one or both sides and is called.  What the kernel is to
 * look for follows from who has the sides; backends differ only in arm() and wait().
 *
 *   1. A side has at most one waiter.  An op that is WAITING has its side (a poll op
 *      may have both), and leaves it before it is finished.
 *   2. Events are kept by number and generation, and looked up when their turn comes:
 *      what was stopped, cancelled or closed by an earlier callback of the same batch,
 *      and whoever got the number since, is not told.
 *   3. On an edge backend MAY_READ or MAY_WRITE is set from an edge until a try has
 *      found nothing: an edge that came while nobody waited is not lost.
 *   4. What is armed beyond need is taken back when it first reports something: not
 *      sooner, since mostly the next wait needs it again.
 *   5. An accept that finds no free descriptor keeps its side, unarmed, in `paused`,
 *      until weft__ready_resume(): a full process neither spins nor loses the wait.
 *
 * tidy: long file, because ops and watches share the sides, and every function here
 * keeps the rules above.
 */
#include <errno.h>
#include <poll.h>
#include "backend/backend.h"

/* Of a call that is interrupted, or of an op with many results in a row. */
#define TRIES_MAX   16
#define BUFFER_SIZE 65536u

#define IS_WATCH    ((uintptr_t)1)
#define BOTH        (WEFT_READABLE | WEFT_WRITABLE)
#define ALARMS      (WEFT_ERROR | WEFT_HUP)

void
weft__backend_finish(struct weft__backend *backend, struct weft__op *op,
                     int64_t result)
{
	op->result = result;
	op->more = false;
	op->state = WEFT__OP_DONE;
	weft__node_append(&backend->done, weft__op_node(op));
}

/* --- sides -------------------------------------------------------------- */

static uint32_t
mask_of(int side)
{
	return side == WEFT__READ_SIDE ? WEFT_READABLE : WEFT_WRITABLE;
}

/* The sides that an op waits on, as readiness. */
static uint32_t
sides_of(const struct weft__op *op)
{
	if (op->kind == WEFT__OP_POLL)
		return op->events & BOTH;
	return op->kind >= WEFT__OP_SEND ? WEFT_WRITABLE : WEFT_READABLE;
}

static struct weft__op *
op_at(const struct weft__fd *entry, int side)
{
	uintptr_t who = entry->side[side];

	return who & IS_WATCH ? NULL : (struct weft__op *)who;
}

static weft_watch *
watch_at(const struct weft__fd *entry, int side)
{
	uintptr_t who = entry->side[side];

	return who & IS_WATCH ? (weft_watch *)(who & ~IS_WATCH) : NULL;
}

static bool
is_empty(const struct weft__fd *entry)
{
	return !entry->side[0] && !entry->side[1];
}

/* One descriptor more, or less, has somebody waiting. */
static void
count_use(struct weft__backend *backend, int by)
{
	backend->fds.in_use += (uint32_t)by;
	weft__count_set(&backend->tally->fds, backend->fds.in_use);
}

/* Whoever begins to wait on a borrowed number that nobody waited on may have another
 * file behind it: what was fetched before is not for him. */
static void
take_sides(struct weft__backend *backend, struct weft__fd *entry,
           uint32_t sides, uintptr_t who)
{
	if (is_empty(entry)) {
		count_use(backend, 1);
		entry->generation += !(entry->flags & WEFT__FD_OWNED);
	}
	for (int side = 0; side < 2; side++)
		if (sides & mask_of(side))
			entry->side[side] = who;
}

static void
leave_sides(struct weft__backend *backend, struct weft__fd *entry,
            uintptr_t who)
{
	bool was_empty = is_empty(entry);

	for (int side = 0; side < 2; side++)
		if (entry->side[side] == who)
			entry->side[side] = 0;
	if (!was_empty && is_empty(entry))
		count_use(backend, -1);
}

/* What the kernel should look for on behalf of a side. */
static uint32_t
want_of(const struct weft__fd *entry, int side, bool *level)
{
	const weft_watch *watch = watch_at(entry, side);
	const struct weft__op *op = op_at(entry, side);

	if (watch) {
		*level |= !(watch->flags & WEFT_EDGE);
		return watch->flags & mask_of(side);
	}
	if (!op || op->state != WEFT__OP_WAITING || (op->events & WEFT__HELD))
		return 0;
	*level |= op->kind == WEFT__OP_POLL && !(op->events & WEFT_MULTI);
	return mask_of(side);
}

/* Bring the kernel in line.  For an owned descriptor on an edge backend that is done
 * once for both sides, and then holds until it is closed. */
static int
rearm(struct weft__backend *backend, int fd, struct weft__fd *entry,
      bool verify)
{
	bool level = !backend->ops->edge;
	uint32_t want = want_of(entry, 0, &level) | want_of(entry, 1, &level);
	int rc;

	if (want && !level) {
		if (entry->flags & WEFT__FD_OWNED)
			want = BOTH;
		want |= WEFT_EDGE;
	}
	if (want == entry->armed
	    && (!verify || (entry->flags & WEFT__FD_OWNED)))
		return 0;
	rc = backend->ops->arm(backend, fd, entry, want);
	if (rc == 0)
		entry->armed = (uint16_t)want;
	return rc;
}

/* --- trying ------------------------------------------------------------- */

uint32_t
weft__ready_of_poll(int revents)
{
	return (revents & POLLIN ? WEFT_READABLE : 0)
	       | (revents & POLLOUT ? WEFT_WRITABLE : 0)
	       | (revents & (POLLERR | POLLNVAL) ? WEFT_ERROR : 0)
	       | (revents & POLLHUP ? WEFT_HUP : 0);
}

/* What a look at the descriptor tells of `events`, or -EAGAIN. */
static int64_t
poll_now(struct weft__backend *backend, int fd, uint32_t events)
{
	struct pollfd p = { .fd = fd };

	p.events = (short)((events & WEFT_READABLE ? POLLIN : 0)
	                   | (events & WEFT_WRITABLE ? POLLOUT : 0));
	if (weft__kernel(backend)->poll(&p, 1, 0) <= 0)
		return -EAGAIN;
	return weft__ready_of_poll(p.revents);
}

/* Calling connect(2) again tells what has become of it; an error shows once, and may
 * be found by either call. */
static int64_t
try_connect(struct weft__backend *backend, struct weft__op *op)
{
	int error = 0;
	int rc = op->connecting
	                 ? weft__kernel(backend)->so_error(op->fd, &error)
	                 : weft__kernel(backend)->set_nonblock(op->fd);

	if (rc < 0 || error)
		return rc < 0 ? rc : -error;
	rc = weft__kernel(backend)->connect(op->fd, op->addr,
	                                    (socklen_t)op->size);
	if (rc == -EINPROGRESS || rc == -EALREADY || rc == -EINTR) {
		op->connecting = true;
		return -EAGAIN;
	}
	if (op->connecting)
		return rc == -EISCONN ? 0 : rc;
	/* A local listener whose queue is full cannot be waited for. */
	return rc == -EAGAIN ? -ECONNREFUSED : rc;
}

/* Connections that died in the queue are nobody's concern. */
static int64_t
try_accept(struct weft__backend *backend, const struct weft__op *op)
{
	int64_t rc = -EAGAIN;

	for (int i = 0; i < TRIES_MAX; i++) {
		rc = weft__kernel(backend)->accept(op->fd);
		if (rc != -ECONNABORTED && rc != -EPROTO && rc != -EINTR)
			return rc;
	}
	return -EAGAIN;
}

static int64_t
receive(struct weft__backend *backend, const struct weft__fd *entry, int fd,
        void *buf, size_t size)
{
	if (entry->flags & WEFT__FD_PLAIN)
		return weft__kernel(backend)->read(fd, buf, size);
	if (entry->flags & WEFT__FD_PASSES)
		return weft__passed_receive(backend, fd, buf, size);
	return weft__kernel(backend)->recv(fd, buf, size, 0);
}

/* Into the memory of whoever waits for it, or into the loop's. */
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
try_receive(struct weft__backend *backend, const struct weft__fd *entry,
            const struct weft__op *op)
{
	switch (op->kind) {
	case WEFT__OP_RECV:
		return weft__kernel(backend)->recv(op->fd, op->buf, op->size,
		                                   op->flags);
	case WEFT__OP_RECVMSG:
		return weft__kernel(backend)->recvmsg(op->fd, op->msg,
		                                      op->flags);
	default:
		return receive_multi(backend, entry, op);
	}
}

/* As much of it as one call takes; what is no socket is written by its first piece. */
static int64_t
send_message(struct weft__backend *backend, const struct weft__fd *entry,
             int fd, const struct msghdr *msg, int flags)
{
	const struct iovec *part = msg->msg_iov;

	if (entry && (entry->flags & WEFT__FD_PLAIN))
		return weft__kernel(backend)->write_quiet(fd, part->iov_base,
		                                          part->iov_len);
	if (msg->msg_iovlen == 1 && !msg->msg_control && !msg->msg_name)
		return weft__kernel(backend)->send(fd, part->iov_base,
		                                   part->iov_len, flags);
	return weft__kernel(backend)->sendmsg(fd, msg, flags);
}

/* A ring may have it blocking, and there is no flag for one call. */
static int64_t
send_file(struct weft__backend *backend, struct weft__fd *entry,
          const struct weft__op *op)
{
	const struct weft__file_part *part = op->part;
	uint64_t size = part->left < WEFT__SENDFILE_MAX ? part->left
	                                                : WEFT__SENDFILE_MAX;

	if (!(entry->flags & WEFT__FD_UNBLOCKED)) {
		int rc = weft__kernel(backend)->set_nonblock(op->fd);

		if (rc < 0)
			return rc;
		entry->flags &= (uint16_t)~WEFT__FD_BLOCKING;
		entry->flags |= WEFT__FD_UNBLOCKED;
	}
	return weft__kernel(backend)->sendfile(op->fd, part->file, part->offset,
	                                       (size_t)size);
}

static int64_t
try_once(struct weft__backend *backend, struct weft__fd *entry,
         struct weft__op *op)
{
	switch (op->kind) {
	case WEFT__OP_ACCEPT:
		return try_accept(backend, op);
	case WEFT__OP_CONNECT:
		return try_connect(backend, op);
	case WEFT__OP_SEND:
		return weft__kernel(backend)->send(op->fd, op->data, op->size,
		                                   op->flags);
	case WEFT__OP_SENDMSG:
		return send_message(backend, entry, op->fd, op->msg, op->flags);
	case WEFT__OP_SENDFILE:
		return send_file(backend, entry, op);
	default:
		return try_receive(backend, entry, op);
	}
}

/* Whether a result means that there is no more where it came from. */
static bool
is_drained(const struct weft__fd *entry, const struct weft__op *op,
           int64_t result)
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

	return weft__kernel(backend)->sockname(fd, (struct sockaddr *)&name,
	                                       &size)
	               < 0
	       || name.ss_family == AF_UNIX;
}

/* An accepted connection is ours: whoever had the number before is gone. */
static void
adopt(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, fd);

	if (!entry) /* it will be borrowed, which is slower and no less right */
		return;
	entry->generation++;
	entry->armed = 0;
	entry->flags = WEFT__FD_OWNED | WEFT__FD_MAY_WRITE;
	if (!is_local(backend, fd))
		entry->flags |= WEFT__FD_STREAM;
}

void
weft__ready_learn(struct weft__backend *backend, const struct weft__op *op,
                  int64_t result)
{
	if (op->kind == WEFT__OP_ACCEPT && result >= 0)
		adopt(backend, (int)result);
	if (op->kind == WEFT__OP_CONNECT && result == 0)
		weft__fds_get(&backend->fds, op->fd)->flags |= WEFT__FD_OWNED;
}

/* Make the op's call: its result, or -EAGAIN. */
static int64_t
attempt(struct weft__backend *backend, struct weft__fd *entry,
        struct weft__op *op)
{
	int64_t result = -EINTR;

	for (int i = 0; result == -EINTR && i < TRIES_MAX; i++)
		result = try_once(backend, entry, op);
	if (result == -EINTR || result == -EWOULDBLOCK)
		result = -EAGAIN;
	if (is_drained(entry, op, result))
		entry->flags &= sides_of(op) == WEFT_READABLE
		                        ? (uint16_t)~WEFT__FD_MAY_READ
		                        : (uint16_t)~WEFT__FD_MAY_WRITE;
	weft__ready_learn(backend, op, result);
	return result;
}

int64_t
weft__ready_attempt(struct weft__backend *backend, struct weft__op *op)
{
	return attempt(backend, weft__fds_get(&backend->fds, op->fd), op);
}

/* Note what is readable, or without room for that have the kernel report it. */
static void
show_again(struct weft__backend *backend, int fd, struct weft__fd *entry)
{
	if (backend->events_count < backend->events_max)
		weft__ready_note(backend, fd, entry->generation, WEFT_READABLE);
	else
		(void)backend->ops->arm(backend, fd, entry, entry->armed);
}

/* --- owned descriptors -------------------------------------------------- */

int
weft__ready_own(struct weft__backend *backend, int fd, uint16_t what)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, fd);

	if (!entry)
		return WEFT_ENOMEM;
	if (!is_empty(entry)) /* who had the number before has not left */
		return WEFT_EBUSY;
	entry->generation++;
	entry->armed = 0;
	entry->flags = WEFT__FD_OWNED | WEFT__FD_MAY_WRITE | what;
	return 0;
}

void
weft__ready_disown(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (!entry || !is_empty(entry))
		return;
	entry->generation++;
	entry->flags = 0;
}

void
weft__ready_set_passing(struct weft__backend *backend, int fd)
{
	weft__fds_get(&backend->fds, fd)->flags |= WEFT__FD_PASSES;
}

int
weft__ready_hold(struct weft__backend *backend, struct weft__op *op, bool on)
{
	struct weft__fd *entry;
	int rc = 0;

	if (!!(op->events & WEFT__HELD) == on)
		return 0;
	op->events ^= WEFT__HELD;
	if (op->state != WEFT__OP_WAITING)
		return 0;
	entry = weft__fds_get(&backend->fds, op->fd);
	if (!backend->ops->edge)
		rc = rearm(backend, op->fd, entry, false);
	else if (!on && (entry->flags & WEFT__FD_MAY_READ))
		show_again(backend, op->fd, entry);
	if (rc < 0 && !on)
		op->events |= WEFT__HELD;
	return on ? 0 : rc;
}

int64_t
weft__ready_recv_now(struct weft__backend *backend, struct weft__op *op,
                     void *buf, size_t size, bool must)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);
	int64_t result;

	if (op->state != WEFT__OP_WAITING
	    || (!must && !(entry->flags & WEFT__FD_MAY_READ)))
		return -EAGAIN;
	op->buf = buf;
	op->size = size;
	result = attempt(backend, entry, op);
	op->buf = NULL;
	return result;
}

int64_t
weft__ready_send_now(struct weft__backend *backend, int fd, struct msghdr *msg,
                     bool must)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);
	int64_t result = -EINTR;

	if (!must && (entry->armed & WEFT_EDGE)
	    && !(entry->flags & WEFT__FD_MAY_WRITE))
		return -EAGAIN;
	for (int i = 0; result == -EINTR && i < TRIES_MAX; i++)
		result = send_message(backend, entry, fd, msg, 0);
	if (result == -EINTR || result == -EWOULDBLOCK)
		result = -EAGAIN;
	if (result == -EAGAIN)
		entry->flags &= (uint16_t)~WEFT__FD_MAY_WRITE;
	return result;
}

size_t
weft__ready_trim(struct weft__backend *backend)
{
	size_t bytes = backend->buffer ? BUFFER_SIZE : 0;

	weft__sys->release(backend->buffer);
	backend->buffer = NULL;
	backend->data = NULL;
	return bytes;
}

/* --- closing ------------------------------------------------------------ */

static void
close_now(struct weft__backend *backend, struct weft__op *op)
{
	weft__ready_forget(backend, op->fd);
	weft__backend_finish(backend, op, weft__kernel(backend)->close(op->fd));
}

static bool
is_busy(const struct weft__backend *backend, int fd)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	return entry && !is_empty(entry);
}

void
weft__ready_close(struct weft__backend *backend, struct weft__op *op)
{
	if (!is_busy(backend, op->fd)) {
		close_now(backend, op);
		return;
	}
	weft__fds_get(&backend->fds, op->fd)->flags |= WEFT__FD_CLOSING;
	weft__node_append(&backend->closing, weft__op_node(op));
}

/* Somebody has left a side: perhaps that is what a close waits for. */
static void
close_those_free(struct weft__backend *backend)
{
	struct weft__node *node = backend->closing.first;

	backend->closing = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);

		node = node->next;
		weft__ready_close(backend, op);
	}
}

/* --- ops ---------------------------------------------------------------- */

int
weft__ready_is_free(struct weft__backend *backend, const struct weft__op *op)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);
	uint32_t sides = sides_of(op);

	if (entry && (entry->flags & WEFT__FD_CLOSING))
		return WEFT_EBUSY;
	for (int side = 0; entry && side < 2; side++)
		if ((sides & mask_of(side)) && entry->side[side])
			return WEFT_EBUSY;
	return 0;
}

/* Is a try likely to succeed before anything is reported? */
static bool
may_try(const struct weft__backend *backend, const struct weft__fd *entry,
        const struct weft__op *op)
{
	if (op->kind == WEFT__OP_POLL || weft__op_is_multi(op))
		return false;
	if (sides_of(op) == WEFT_WRITABLE)
		return !backend->ops->edge || !(entry->armed & WEFT_EDGE)
		       || (entry->flags & WEFT__FD_MAY_WRITE)
		       || op->kind == WEFT__OP_CONNECT;
	return backend->ops->edge && (entry->flags & WEFT__FD_MAY_READ);
}

void
weft__ready_submit(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, op->fd);
	int64_t result = entry ? -EAGAIN : -ENOMEM;
	int rc;

	if (entry && may_try(backend, entry, op))
		result = attempt(backend, entry, op);
	if (result != -EAGAIN) {
		weft__backend_finish(backend, op, result);
		return;
	}
	op->state = WEFT__OP_WAITING;
	take_sides(backend, entry, sides_of(op), (uintptr_t)op);
	rc = op->kind == WEFT__OP_ACCEPT
	             ? weft__kernel(backend)->set_nonblock(op->fd)
	             : 0;
	if (rc == 0)
		rc = rearm(backend, op->fd, entry, true);
	if (rc == 0) {
		/* The edge of what is there already may have been used up. */
		if (weft__op_is_multi(op) && (entry->flags & WEFT__FD_MAY_READ))
			show_again(backend, op->fd, entry);
		return;
	}
	leave_sides(backend, entry, (uintptr_t)op);
	/* A file never makes anybody wait. */
	weft__backend_finish(backend, op,
	                     rc == -EPERM && op->kind == WEFT__OP_POLL
	                             ? (int64_t)(op->events & BOTH)
	                             : rc);
}

struct weft__fd *
weft__ready_take(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, op->fd);

	if (entry)
		take_sides(backend, entry, sides_of(op), (uintptr_t)op);
	return entry;
}

void
weft__ready_leave(struct weft__backend *backend, struct weft__op *op)
{
	leave_sides(backend, weft__fds_get(&backend->fds, op->fd),
	            (uintptr_t)op);
	if (backend->closing.first)
		close_those_free(backend);
}

/* Does somebody wait there for what is armed, also if he holds for now? */
static bool
is_armed_for(const struct weft__fd *entry)
{
	for (int side = 0; side < 2; side++) {
		const struct weft__op *op = op_at(entry, side);

		if (watch_at(entry, side)
		    || (op && op->state == WEFT__OP_WAITING))
			return true;
	}
	return false;
}

static void
leave(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

	leave_sides(backend, entry, (uintptr_t)op);
	/* Invariant 4; a poll(2) backend forgets at once, which costs nothing, and a ring
	 * lest it is told what its requests tell as well. */
	if (!backend->ops->edge)
		(void)rearm(backend, op->fd, entry, false);
	else if (op->kind == WEFT__OP_SENDFILE && backend->ops->batches
	         && entry->armed && !is_armed_for(entry)
	         && backend->ops->arm(backend, op->fd, entry, 0) == 0)
		entry->armed = 0;
	if (op->kind == WEFT__OP_ACCEPT && backend->paused.first)
		weft__node_remove(&backend->paused, weft__op_node(op));
}

void
weft__ready_cancel(struct weft__backend *backend, struct weft__op *op, int why)
{
	leave(backend, op);
	weft__backend_finish(backend, op, why);
}

bool
weft__ready_remind(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

	if (poll_now(backend, op->fd, WEFT_READABLE) < 0)
		return false;
	weft__ready_note(backend, op->fd, entry->generation, WEFT_READABLE);
	return true;
}

bool
weft__ready_look(struct weft__backend *backend, struct weft__op *op)
{
	int64_t result;

	if (op->kind == WEFT__OP_POLL)
		result = poll_now(backend, op->fd, op->events);
	else
		result = weft__ready_attempt(backend, op);
	if (result == -EAGAIN)
		return false;
	leave(backend, op);
	weft__backend_finish(backend, op, result);
	return true;
}

/* --- accepts without a free descriptor ---------------------------------- */

bool
weft__ready_is_exhausted(int64_t result)
{
	return result == -EMFILE || result == -ENFILE || result == -ENOBUFS
	       || result == -ENOMEM;
}

void
weft__ready_pause(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

	op->state = WEFT__OP_PAUSED;
	weft__node_append(&backend->paused, weft__op_node(op));
	backend->sheds++;
	(void)rearm(backend, op->fd, entry, false);
}

void
weft__ready_resume(struct weft__backend *backend)
{
	struct weft__node *node = backend->paused.first;

	backend->paused = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);
		struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

		node = node->next;
		leave_sides(backend, entry, (uintptr_t)op);
		entry->flags |= WEFT__FD_MAY_READ;
		backend->ops->submit(backend, op);
	}
}

/* --- events ------------------------------------------------------------- */

void
weft__ready_note(struct weft__backend *backend, int fd, uint32_t generation,
                 uint32_t ready)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (!entry || entry->generation != generation
	    || backend->events_count >= backend->events_max)
		return;
	if (ready & (WEFT_READABLE | ALARMS))
		entry->flags |= WEFT__FD_MAY_READ;
	if (ready & (WEFT_WRITABLE | ALARMS))
		entry->flags |= WEFT__FD_MAY_WRITE;
	if (ready & WEFT_HUP)
		entry->flags &= (uint16_t)~WEFT__FD_STREAM;
	backend->events[backend->events_count++] = (struct weft__event){
		.fd = fd,
		.generation = generation,
		.ready = (uint16_t)ready,
		.sides = 3,
	};
}

void
weft__ready_ending(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (entry)
		entry->flags &= (uint16_t)~WEFT__FD_STREAM;
}

/* One more result of an op that has many; look at its side again while there may be
 * more, but not for ever. */
static void
stay(struct weft__backend *backend, struct weft__event *event,
     const struct weft__fd *entry, int side)
{
	struct weft__op *op = op_at(entry, side);

	op->more = true;
	if (op->kind == WEFT__OP_POLL)
		return;
	if (op->kind == WEFT__OP_ACCEPT
	    || (backend->ops->edge && (entry->flags & WEFT__FD_MAY_READ)))
		event->sides |= (uint8_t)(1u << side);
	if (++event->tries == TRIES_MAX) {
		event->tries = 0;
		backend->events[backend->events_kept++] = *event;
		event->sides = 0;
	}
}

/* An op's side was reported: true if it has a result. */
static bool
dispatch_op(struct weft__backend *backend, struct weft__event *event,
            struct weft__fd *entry, int side)
{
	struct weft__op *op = op_at(entry, side);
	bool multi = weft__op_is_multi(op);
	int64_t result;

	if (op->state != WEFT__OP_WAITING || (op->events & WEFT__HELD))
		return false;
	if (op->kind == WEFT__OP_POLL) {
		result = event->ready & ((op->events & BOTH) | ALARMS);
		event->sides = 0;
	} else {
		result = attempt(backend, entry, op);
	}
	if (result == -EAGAIN)
		return false;
	if (multi && op->kind == WEFT__OP_ACCEPT
	    && weft__ready_is_exhausted(result)) {
		weft__ready_pause(backend, op);
		return false;
	}
	op->result = result;
	if (multi
	    && (result > 0 || (result == 0 && op->kind == WEFT__OP_ACCEPT))) {
		stay(backend, event, entry, side);
		return true;
	}
	op->more = false;
	op->state = WEFT__OP_DONE;
	leave(backend, op);
	return true;
}

/* A watch's side was reported: true if it is to be called.  One that has both sides
 * is called once for both. */
static bool
dispatch_watch(const struct weft__fd *entry, struct weft__event *event,
               int side, struct weft__ready *out)
{
	uint32_t asked = out->watch->flags & BOTH;

	if (entry->side[0] == entry->side[1])
		event->sides = 0;
	else
		asked &= mask_of(side);
	out->ready = asked ? event->ready & (asked | ALARMS) : 0;
	return out->ready != 0;
}

/* Look at the next side of an event; true if there is something to do. */
static bool
dispatch(struct weft__backend *backend, struct weft__event *event,
         struct weft__fd *entry, struct weft__ready *out)
{
	int side = event->sides & 1 ? WEFT__READ_SIDE : WEFT__WRITE_SIDE;

	event->sides &= (uint8_t) ~(1u << side);
	if (!(event->ready & (mask_of(side) | ALARMS)))
		return false;
	*out = (struct weft__ready){ .watch = watch_at(entry, side),
		                     .op = op_at(entry, side) };
	if (out->watch && dispatch_watch(entry, event, side, out))
		return true;
	if (out->op)
		return dispatch_op(backend, event, entry, side);
	if (!(entry->armed & WEFT_EDGE)) /* invariant 4 */
		(void)rearm(backend, event->fd, entry, false);
	return false;
}

bool
weft__ready_next(struct weft__backend *backend, struct weft__ready *out)
{
	while (backend->events_at < backend->events_count) {
		struct weft__event *event =
			&backend->events[backend->events_at];
		struct weft__fd *entry = weft__fds_get(&backend->fds,
		                                       event->fd);

		if (!entry || entry->generation != event->generation
		    || event->sides == 0)
			backend->events_at++; /* invariant 2 */
		else if (dispatch(backend, event, entry, out))
			return true;
	}
	backend->events_count = backend->events_kept;
	backend->events_at = backend->events_kept = 0;
	return false;
}

/* --- watches ------------------------------------------------------------ */

#define WATCH_EVENTS (BOTH | WEFT_EDGE)

/* Files are reported at every wait, which they keep from blocking. */
static void
set_always(struct weft__backend *backend, struct weft__fd *entry, bool on)
{
	backend->always += (uint32_t)on - !!(entry->flags & WEFT__FD_ALWAYS);
	entry->flags = (uint16_t)((entry->flags & ~WEFT__FD_ALWAYS)
	                          | (on ? WEFT__FD_ALWAYS : 0));
}

void
weft__ready_note_files(struct weft__backend *backend)
{
	uint32_t left = backend->always;

	for (uint32_t fd = 0;
	     left > 0 && fd < backend->fds.count * WEFT__FDS_PAGE; fd++) {
		struct weft__fd *entry = weft__fds_get(&backend->fds, (int)fd);

		if (!entry || !(entry->flags & WEFT__FD_ALWAYS))
			continue;
		left--;
		weft__ready_note(backend, (int)fd, entry->generation, BOTH);
	}
}

/* The sides that a watch takes; one that is muted keeps what it has, or takes one,
 * so that it can be found. */
static uint32_t
watch_sides(const struct weft__fd *entry, uintptr_t who, uint32_t events)
{
	if (events & BOTH)
		return events & BOTH;
	if (entry->side[0] == who || entry->side[1] == who)
		return (entry->side[0] == who ? WEFT_READABLE : 0)
		       | (entry->side[1] == who ? WEFT_WRITABLE : 0);
	return entry->side[0] ? WEFT_WRITABLE : WEFT_READABLE;
}

int
weft__ready_watch(struct weft__backend *backend, weft_watch *watch, int fd,
                  uint32_t events)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, fd);
	uintptr_t who = (uintptr_t)watch | IS_WATCH;
	uint32_t before = watch->flags, sides;
	struct weft__fd old;
	int rc = 0;

	if (!entry)
		return WEFT_ENOMEM;
	sides = watch_sides(entry, who, events);
	for (int side = 0; side < 2; side++)
		if ((sides & mask_of(side)) && entry->side[side]
		    && entry->side[side] != who)
			return WEFT_EBUSY;
	old = *entry;
	leave_sides(backend, entry, who);
	watch->flags = (before & ~(uint32_t)WATCH_EVENTS)
	               | (events & WATCH_EVENTS);
	take_sides(backend, entry, sides, who);
	if (events & BOTH)
		rc = rearm(backend, fd, entry, true);
	if (rc < 0 && rc != -EPERM) { /* as if it had not been asked */
		watch->flags = before;
		leave_sides(backend, entry, who);
		if (is_empty(entry) && !is_empty(&old))
			count_use(backend, 1);
		*entry = old;
		return rc;
	}
	set_always(backend, entry,
	           rc == -EPERM); /* a file: nothing to wait for */
	return 0;
}

void
weft__ready_unwatch(struct weft__backend *backend, weft_watch *watch)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, watch->id);

	leave_sides(backend, entry, (uintptr_t)watch | IS_WATCH);
	set_always(backend, entry, false);
	if (!backend->ops->edge)
		(void)rearm(backend, watch->id, entry, false);
}

void
weft__ready_forget(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (!entry)
		return;
	weft__assert(is_empty(entry));
	if (entry->armed)
		(void)backend->ops->arm(backend, fd, entry, 0);
	entry->armed = entry->flags = 0;
	entry->generation++;
}

weft_watch *
weft__ready_watch_at(struct weft__backend *backend, int fd, int side)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	return entry ? watch_at(entry, side) : NULL;
}

struct weft__op *
weft__ready_op_at(struct weft__backend *backend, int fd, int side)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	return entry ? op_at(entry, side) : NULL;
}
