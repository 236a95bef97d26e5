/* uring.c - ops as io_uring requests; watches through an epoll that the ring polls.
 *
 * An op on a descriptor or a file becomes a request whose user data is the op; its completion
 * is the result.  Requests are queued during the loop iteration and submitted by the one call
 * that also waits.  Receives with many results take buffers from a ring that the kernel fills.
 * ready.c handles what readiness does better, over an epoll that the ring polls like any other
 * descriptor: watches and poll ops, which must not hold the file; non-blocking descriptors, on
 * which requests do not wait; and ops for which there is no suitable request (sendfile, control
 * data, descriptors that are not sockets).
 *
 *   1. An op that is SENT or CANCELING belongs to the kernel until its last completion.  It
 *      keeps its direction, so a close waits for it.  A file op has no direction, since any
 *      number may be in flight on one file; it is counted in `requests`.
 *   2. Canceling is a request to the kernel; the op ends with its own completion.
 *   3. An op that finds no room in the ring is UNSENT.  Such an op, and an op whose cancellation
 *      finds no room, is in `unsent`, and is submitted before the next wait.  An op that ends
 *      before its cancellation could be submitted leaves the list.
 *   4. A buffer belongs to the op while its callback runs, and is returned when the next
 *      completion is taken.
 *   5. A descriptor that is owned, listens or connects is made blocking for its first request,
 *      and again after a sendfile has made it non-blocking.
 *   6. The loop does not sleep while the eventfd or the epoll is not polled for lack of room: a
 *      wake or a watch would not end the wait.
 *   7. On a ring that is not bound, the kernel cancels the requests of a thread when that
 *      thread exits; and has_file() cancels requests to learn which file they are for.  An op
 *      that was canceled so has done nothing yet, and is submitted again.
 *   8. A foreign loop polls an eventfd that the ring signals, because a ring that leaves its
 *      work to its thread (DEFER_TASKRUN) does not wake a poller of the ring itself.  The
 *      eventfd is reset before each wait(): later completions signal it again, and earlier ones
 *      are found by that wait() or reported by has_work().
 *   9. An op without a direction (a file op, or an evicted op) that the kernel has is in
 *      `requests`, linked by next, and back by arg.  An op that is not linked has arg NULL.
 *  10. A ring that can no longer be entered is abandoned.  Its completions are taken first.
 *      Then it is unmapped, and the ops that it still has go to an epoll; file ops fail.
 */
#include <errno.h>
#include <poll.h>
#include "backend/backend.h"
#include "backend/buffers.h"
#include "backend/request.h"

#define ENTRIES 256u

/* User data of requests.  Larger values are ops. */
enum { USER_DATA_NONE, USER_DATA_WAKE, USER_DATA_EPOLL, USER_DATA_OPS };

struct uring {
	struct weft__uring ring;
	struct weft__buffers buffers;
	bool waker;  /* the eventfd is polled */
	bool poller; /* the epoll is polled */
	struct weft__node_list unsent;
	struct weft__node *requests; /* ops with the kernel that have no direction; invariant 9 */
	int error;                   /* why the ring was abandoned, or 0 */
	bool settled;                /* the ring was abandoned, and no op is left in it */
};

static struct uring *
uring_of(struct weft__backend *backend)
{
	return backend->state;
}

/* --- creating and freeing ----------------------------------------------- */

static void
uring_close(struct weft__backend *backend)
{
	struct uring *u = uring_of(backend);

	if (u) {
		weft__uring_close(&u->ring);
		weft__buffers_drop(&u->buffers);
	}
	weft__sys->release(u);
}

static int
uring_open(struct weft__backend *backend)
{
	struct uring *u = weft__alloc_zero(sizeof(*u));
	int rc;

	backend->state = u;
	if (!u)
		return -ENOMEM;
	u->buffers.held = u->ring.fd = -1;
	u->ring.syscalls = &backend->counters->syscalls;
	backend->binds = !backend->movable;
	rc = weft__uring_open(&u->ring, ENTRIES, backend->binds);
	backend->at = rc < 0 ? u->ring.failed : "eventfd";
	if (rc < 0)
		return rc;
	backend->wake_fd[0] = weft__kernel(backend)->eventfd();
	return backend->wake_fd[0] < 0 ? backend->wake_fd[0] : 0;
}

/* --- requests ----------------------------------------------------------- */

/* Invariant 9. */
static void
link_request(struct uring *u, struct weft__op *op)
{
	struct weft__node *node = weft__op_node(op);

	weft__assert(!node->arg);
	node->next = u->requests;
	node->arg = &u->requests;
	if (node->next)
		node->next->arg = &node->next;
	u->requests = node;
}

static void
unlink_request(struct weft__op *op)
{
	struct weft__node *node = weft__op_node(op);

	if (!node->arg)
		return;
	*(struct weft__node **)node->arg = node->next;
	if (node->next)
		node->next->arg = node->arg;
	node->arg = NULL;
}

/* Put a request for `op` into the ring: its system call, or its cancellation. */
static void
uring_push(struct weft__backend *backend, struct weft__op *op)
{
	struct uring *u = uring_of(backend);
	struct io_uring_sqe *sqe = weft__uring_get(&u->ring);
	bool has_no_direction = weft__op_is_file(op)
	                        || (op->state == WEFT__OP_CANCELING
	                            && !weft__ready_has(backend, op));

	if (has_no_direction)
		unlink_request(op);
	if (!sqe) { /* invariant 3 */
		if (op->state != WEFT__OP_CANCELING)
			op->state = WEFT__OP_UNSENT;
		weft__node_append(&u->unsent, weft__op_node(op));
	} else if (op->state == WEFT__OP_CANCELING) {
		weft__request_cancel(sqe, op, USER_DATA_NONE);
	} else {
		weft__request_fill(sqe, op);
		op->state = WEFT__OP_SENT;
	}
	if (has_no_direction && sqe)
		link_request(u, op);
}

static void
push_unsent(struct weft__backend *backend)
{
	struct uring *u = uring_of(backend);
	struct weft__node *node = u->unsent.first;

	u->unsent = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);

		node = node->next;
		weft__assert(op->state == WEFT__OP_UNSENT
		             || op->state == WEFT__OP_CANCELING); /* invariant 3 */
		uring_push(backend, op);
	}
}

/* The kernel is done with `op`; invariant 1. */
static void
uring_leave(struct weft__backend *backend, struct weft__op *op)
{
	if (weft__op_is_file(op) || !weft__ready_has(backend, op)) {
		unlink_request(op);
		weft__assert(backend->requests > 0);
		backend->requests--;
	} else {
		weft__ready_leave(backend, op);
	}
}

/* Requests wait only on blocking descriptors; invariant 5. */
static void
make_blocking(struct weft__backend *backend, struct weft__fd *entry, const struct weft__op *op)
{
	if (entry->flags & WEFT__FD_BLOCKING)
		return;
	if ((entry->flags & WEFT__FD_OWNED) || op->kind == WEFT__OP_CONNECT
	    || op->kind == WEFT__OP_ACCEPT)
		if (weft__kernel(backend)->set_block(op->fd) == 0) {
			entry->flags |= WEFT__FD_BLOCKING;
			entry->flags &= (uint16_t)~WEFT__FD_UNBLOCKED;
		}
}

/* There is no request for sendfile.  Socket requests do not support all control data, and fail on
 * other descriptors.  A receive request has no room for passed descriptors. */
static bool
is_for_readiness(const struct weft__fd *entry, const struct weft__op *op)
{
	switch (op->kind) {
	case WEFT__OP_SENDFILE:
		return true;
	case WEFT__OP_SENDMSG:
		return (entry->flags & WEFT__FD_PLAIN) || op->msg->msg_controllen > 0;
	case WEFT__OP_RECV_MULTI:
		return entry->flags & (WEFT__FD_PLAIN | WEFT__FD_RECEIVES_FDS);
	default:
		return entry->flags & WEFT__FD_PLAIN;
	}
}

static void
uring_submit(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry;
	int rc = 0;

	if (op->kind == WEFT__OP_POLL) {
		weft__ready_submit(backend, op);
		return;
	}
	if (weft__op_is_file(op)) {
		backend->requests++;
		weft__op_node(op)->arg = NULL;
		uring_push(backend, op);
		return;
	}
	if (op->kind == WEFT__OP_RECV_MULTI)
		rc = weft__buffers_make(&uring_of(backend)->buffers, &uring_of(backend)->ring);
	entry = rc < 0 ? NULL : weft__ready_take(backend, op);
	if (!entry) {
		weft__backend_finish(backend, op, rc < 0 ? rc : WEFT_ENOMEM);
		return;
	}
	if (is_for_readiness(entry, op)) {
		weft__ready_leave(backend, op);
		weft__ready_submit(backend, op);
		return;
	}
	make_blocking(backend, entry, op);
	uring_push(backend, op);
}

static void
uring_cancel(struct weft__backend *backend, struct weft__op *op, int why)
{
	if (op->state == WEFT__OP_SENT) {
		op->why = why;
		op->state = WEFT__OP_CANCELING;
		uring_push(backend, op);
	} else if (op->state == WEFT__OP_UNSENT) {
		weft__node_remove(&uring_of(backend)->unsent, weft__op_node(op));
		uring_leave(backend, op);
		weft__backend_finish(backend, op, why);
	} else {
		weft__ready_cancel(backend, op, why);
	}
}

/* No state records whether a cancellation is in `unsent`, so search for it. */
static bool
is_unsent(const struct uring *u, struct weft__op *op)
{
	const struct weft__node *node = u->unsent.first;

	while (node && node != weft__op_node(op))
		node = node->next;
	return node != NULL;
}

static void
uring_evict(struct weft__backend *backend, struct weft__op *op, int why)
{
	struct uring *u = uring_of(backend);

	if (op->state == WEFT__OP_UNSENT)
		weft__node_remove(&u->unsent, weft__op_node(op));
	if (op->state == WEFT__OP_UNSENT
	    || (op->state == WEFT__OP_SENT && weft__uring_withdraw(&u->ring, op))) {
		weft__backend_finish(backend, op, why);
		return;
	}
	op->why = why;
	weft__op_node(op)->arg = NULL;
	backend->requests++;
	if (op->state == WEFT__OP_SENT) {
		op->state = WEFT__OP_CANCELING;
		uring_push(backend, op);
	} else if (!is_unsent(u, op)) {
		link_request(u, op);
	}
}

/* Canceling by descriptor finds requests by their file.  If it finds none, the kernel has the
 * op for another file, or has finished the op.  The requests that it finds are canceled and
 * submitted again.  Kernels before 6.0 cannot answer: then the file counts as the same. */
static bool
uring_has_file(struct weft__backend *backend, struct weft__op *op)
{
	struct uring *u = uring_of(backend);
	struct io_uring_sync_cancel_reg reg = {
		.fd = op->fd,
		.flags = IORING_ASYNC_CANCEL_FD,
		.timeout = { 0, 0 },
	};

	return weft__uring_enter(&u->ring, 0) < 0
	       || weft__kernel(backend)->uring_register(u->ring.fd, IORING_REGISTER_SYNC_CANCEL,
	                                                &reg, 1)
	                  != -ENOENT
	       || weft__uring_has_result(&u->ring, op);
}

/* --- completions -------------------------------------------------------- */

/* Whether an op with many results continues after this one. */
static bool
goes_on(const struct weft__op *op, int result)
{
	return weft__op_is_multi(op) && op->state == WEFT__OP_SENT
	       && (result > 0 || (result == 0 && op->kind == WEFT__OP_ACCEPT));
}

/* A transient error: submit again.  The same errors as in try.c, and a receive that found no
 * buffer. */
static bool
is_transient(const struct weft__op *op, int64_t result)
{
	switch (result) {
	case -EINTR:
		return op->kind != WEFT__OP_CONNECT        /* the connect continues */
		       && op->kind != WEFT__OP_FILE_CLOSE; /* the file is closed */
	case -ENOBUFS:
		return op->kind == WEFT__OP_RECV_MULTI;
	case -ECONNABORTED:
	case -EPROTO:
		return op->kind == WEFT__OP_ACCEPT;
	default:
		return false;
	}
}

/* The result of a canceled op: `why`, unless the op finished before it was canceled. */
static int64_t
result_of_canceled(const struct weft__op *op, int64_t result)
{
	return result == -ECANCELED || result == -EINTR || result == -EAGAIN
	                       || is_transient(op, result)
	               ? op->why
	               : result;
}

/* The kernel has canceled `op` without a request from here; invariant 7.  A connect that has
 * begun can only be waited for. */
static void
send_again(struct weft__backend *backend, struct weft__op *op)
{
	if (op->kind == WEFT__OP_CONNECT) {
		weft__ready_leave(backend, op);
		weft__ready_submit(backend, op);
	} else {
		uring_push(backend, op);
	}
}

/* The last completion of `op`: true if there is a result to deliver. */
static bool
complete(struct weft__backend *backend, struct weft__op *op, int64_t result)
{
	struct uring *u = uring_of(backend);
	bool cancel_requested = op->state == WEFT__OP_CANCELING;

	if (cancel_requested) /* the cancellation is no longer needed */
		weft__node_remove(&u->unsent, weft__op_node(op));
	if (weft__op_is_multi(op) && op->kind == WEFT__OP_ACCEPT && !cancel_requested
	    && weft__ready_is_exhausted(result)) {
		weft__ready_throttle_accept(backend, op);
		return false;
	}
	if (!cancel_requested && result == -ECANCELED) {
		send_again(backend, op);
		return false;
	}
	if (cancel_requested) {
		result = result_of_canceled(op, result);
	} else if (is_transient(op, result)) {
		backend->more = true; /* its descriptor may be ready */
		uring_push(backend, op);
		return false;
	}
	uring_leave(backend, op);
	if (!cancel_requested && !weft__op_is_file(op) && (result == -EAGAIN || result == -EINTR)) {
		/* The descriptor is non-blocking, or a connect was interrupted. */
		backend->more = true;
		weft__ready_submit(backend, op);
		return false;
	}
	op->result = result;
	op->more = false;
	op->state = WEFT__OP_DONE;
	return true;
}

/* A completion of `op`: true if there is a result to deliver. */
static bool
uring_take(struct weft__backend *backend, struct weft__op *op, const struct io_uring_cqe *cqe)
{
	struct uring *u = uring_of(backend);

	weft__assert(op->state == WEFT__OP_SENT
	             || op->state == WEFT__OP_CANCELING); /* invariant 1 */
	weft__ready_update_state(backend, op, cqe->res);
	if (cqe->flags & IORING_CQE_F_BUFFER)
		backend->data = weft__buffers_hold(&u->buffers, cqe);
	if (!(cqe->flags & IORING_CQE_F_MORE) && !goes_on(op, cqe->res))
		return complete(backend, op, cqe->res);
	if (!(cqe->flags & IORING_CQE_F_MORE))
		uring_push(backend, op); /* the kernel ended the multishot request; continue it */
	op->result = cqe->res;
	op->more = true;
	return true;
}

static void
poll_forever(struct uring *u, int fd, uint64_t user_data, uint32_t how)
{
	struct io_uring_sqe *sqe = weft__uring_get(&u->ring);

	if (!sqe)
		return; /* retried before the next wait */
	sqe->opcode = IORING_OP_POLL_ADD;
	sqe->fd = fd;
	sqe->poll32_events = POLLIN;
	sqe->len = how;
	sqe->user_data = user_data;
	if (user_data == USER_DATA_WAKE)
		u->waker = true;
	else
		u->poller = true;
}

/* Take completions until there is a result to deliver. */
static bool
next_completion(struct weft__backend *backend, struct weft__ready *out)
{
	struct uring *u = uring_of(backend);
	struct io_uring_cqe cqe;

	weft__buffers_give_back(&u->buffers); /* invariant 4 */
	while (weft__uring_next(&u->ring, &cqe)) {
		struct weft__op *op = (struct weft__op *)(uintptr_t)cqe.user_data;
		bool ended = !(cqe.flags & IORING_CQE_F_MORE);

		if (cqe.user_data == USER_DATA_WAKE) {
			u->waker = !ended;
		} else if (cqe.user_data == USER_DATA_EPOLL) {
			u->poller = !ended;
			(void)weft__epoll_fetch(backend, 0);
		} else if (cqe.user_data >= USER_DATA_OPS && uring_take(backend, op, &cqe)) {
			*out = (struct weft__ready){ .op = op };
			return true;
		}
	}
	return false;
}

static bool
uring_next(struct weft__backend *backend, struct weft__ready *out)
{
	return next_completion(backend, out) || weft__ready_next(backend, out);
}

static void
uring_prepare(struct weft__backend *backend)
{
	struct uring *u = uring_of(backend);

	if (u->unsent.first)
		push_unsent(backend);
	if (!u->waker)
		poll_forever(u, backend->wake_fd[0], USER_DATA_WAKE, IORING_POLL_ADD_MULTI);
	if (!u->poller && backend->fd >= 0)
		poll_forever(u, backend->fd, USER_DATA_EPOLL, 0);
}

/* Whether the polls that end a wait are with the kernel, or will be when the wait begins. */
static bool
can_be_woken(const struct weft__backend *backend)
{
	const struct uring *u = backend->state;

	return u->waker && (u->poller || backend->fd < 0);
}

static void
write_one(int event_fd)
{
	uint64_t one = 1;

	while (weft__sys->write(event_fd, &one, sizeof(one)) == -EINTR)
		;
}

static void
reset(struct weft__backend *backend, int event_fd)
{
	uint64_t count;

	(void)weft__kernel(backend)->read(event_fd, &count, sizeof(count));
}

static int
uring_wait(struct weft__backend *backend, int64_t timeout_ns)
{
	struct uring *u = uring_of(backend);
	int rc = weft__uring_enable(&u->ring);

	if (rc < 0)
		return rc;
	if (backend->outer_fd >= 0)
		reset(backend, backend->outer_fd); /* invariant 8 */
	uring_prepare(backend);
	while (u->unsent.first) { /* more than the ring takes at once */
		rc = weft__uring_enter(&u->ring, 0);
		if (rc < 0)
			return rc;
		push_unsent(backend);
	}
	if (!can_be_woken(backend))
		timeout_ns = 0; /* invariant 6 */
	if (timeout_ns == 0 && !weft__uring_has_work(&u->ring))
		return 0;
	rc = weft__uring_enter(&u->ring, timeout_ns);
	backend->timed_out = rc == -ETIME;
	backend->more |= (rc < 0 && rc != -ETIME) || weft__uring_is_behind(&u->ring);
	return backend->timed_out ? 0 : rc;
}

static void
uring_flush(struct weft__backend *backend)
{
	(void)uring_wait(backend, 0);
}

static int
uring_fd(struct weft__backend *backend)
{
	struct uring *u = uring_of(backend);
	int rc, fd = backend->outer_fd;

	if (fd >= 0)
		return fd;
	fd = weft__kernel(backend)->eventfd();
	if (fd < 0)
		return fd;
	rc = uring_wait(backend, 0);
	if (rc == 0)
		rc = weft__kernel(backend)->uring_register(u->ring.fd, IORING_REGISTER_EVENTFD, &fd,
		                                           1);
	if (rc < 0) {
		(void)weft__kernel(backend)->close(fd);
		return rc;
	}
	backend->outer_fd = fd;
	return fd;
}

static void
uring_show(struct weft__backend *backend)
{
	write_one(backend->outer_fd);
}

static bool
uring_has_work(struct weft__backend *backend)
{
	struct uring *u = uring_of(backend);

	return u->unsent.first || !u->waker || (!u->poller && backend->fd >= 0)
	       || weft__uring_has_work(&u->ring);
}

static void
uring_wake(struct weft__backend *backend)
{
	write_one(backend->wake_fd[0]);
}

/* The epoll for watches and poll ops is created when the first of them arrives. */
static int
uring_arm(struct weft__backend *backend, int fd, struct weft__fd *entry, uint32_t want)
{
	int rc = backend->fd < 0 ? weft__epoll_make(backend) : 0;

	return rc < 0 ? rc : weft__epoll_arm(backend, fd, entry, want);
}

/* --- without the ring --------------------------------------------------- */

/* The ring was abandoned with `op` in it: wait for its descriptor by readiness, if there is an
 * epoll for that.  A connect that has begun continues. */
static void
move_op(struct weft__backend *backend, struct weft__op *op)
{
	bool has_way = backend->ops != &weft__backend_uring;
	int rc = 0;

	uring_leave(backend, op);
	if (op->state == WEFT__OP_CANCELING || weft__op_is_file(op) || !has_way) {
		weft__backend_finish(backend, op,
		                     op->state == WEFT__OP_CANCELING ? op->why
		                                                     : uring_of(backend)->error);
		return;
	}
	if (op->kind == WEFT__OP_CONNECT) {
		op->connecting = true;
		rc = weft__kernel(backend)->set_nonblock(op->fd);
	}
	if (rc < 0)
		weft__backend_finish(backend, op, rc);
	else
		weft__ready_submit(backend, op);
}

/* All completions were taken, and the rest will never complete; invariant 10. */
static void
uring_settle(struct weft__backend *backend)
{
	struct uring *u = uring_of(backend);
	uint32_t count = 2 * backend->fds.count * WEFT__FDS_PAGE;

	u->settled = true;
	/* The kernel may have refused to cancel, and a mapped ring lives on after its close: its
	 * requests would compete with the ops for what arrives. */
	weft__uring_close(&u->ring);
	while (u->requests)
		move_op(backend, weft__node_op(u->requests));
	while (u->unsent.first) {
		struct weft__op *op = weft__node_op(u->unsent.first);

		weft__node_remove(&u->unsent, weft__op_node(op));
		move_op(backend, op);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct weft__op *op = weft__ready_op_at(backend, (int)(i / 2), (int)(i % 2));

		if (op && (op->state == WEFT__OP_SENT || op->state == WEFT__OP_CANCELING))
			move_op(backend, op);
	}
	weft__assert(backend->requests == 0); /* invariant 9 */
}

static bool
fallen_next(struct weft__backend *backend, struct weft__ready *out)
{
	if (!uring_of(backend)->settled) {
		if (next_completion(backend, out))
			return true;
		uring_settle(backend);
	}
	return weft__ready_next(backend, out);
}

static int
fallen_wait(struct weft__backend *backend, int64_t timeout_ns)
{
	if (backend->outer_fd >= 0)
		reset(backend, backend->outer_fd);
	return weft__epoll_fetch(backend, uring_of(backend)->settled ? timeout_ns : 0);
}

static int
fallen_fd(struct weft__backend *backend)
{
	if (backend->outer_fd < 0)
		backend->outer_fd = weft__kernel(backend)->eventfd();
	return backend->outer_fd;
}

/* Called only before uring_settle(), for an op that is still in the ring: the file counts as the
 * same. */
static bool
fallen_has_file(struct weft__backend *backend, struct weft__op *op)
{
	(void)backend, (void)op;
	return true;
}

static const struct weft__backend_ops backend_fallen = {
	.name = "epoll",
	.call = "epoll_wait",
	.edge = true,
	.deaf = true,
	.close = uring_close,
	.submit = weft__ready_submit,
	.cancel = uring_cancel,
	.wait = fallen_wait,
	.next = fallen_next,
	.fd = fallen_fd,
	.has_file = fallen_has_file,
	.evict = uring_evict,
	.arm = weft__epoll_arm,
};

static int
uring_fall(struct weft__backend *backend, int error)
{
	struct uring *u = uring_of(backend);
	int rc;

	u->error = error;
	weft__uring_abandon(&u->ring, error);
	rc = backend->fd < 0 ? weft__epoll_make(backend) : 0;
	if (rc == 0)
		rc = weft__epoll_add_wake(backend);
	if (rc == 0)
		backend->ops = &backend_fallen;
	else
		uring_settle(backend); /* nothing else would end the ops in the ring */
	return rc;
}

const struct weft__backend_ops weft__backend_uring = {
	.name = "uring",
	.call = "io_uring_enter",
	.edge = true,
	.files = true,
	.shares = true,
	.batches = true,
	.open = uring_open,
	.close = uring_close,
	.submit = uring_submit,
	.cancel = uring_cancel,
	.wait = uring_wait,
	.wake = uring_wake,
	.next = uring_next,
	.flush = uring_flush,
	.fd = uring_fd,
	.show = uring_show,
	.has_work = uring_has_work,
	.has_file = uring_has_file,
	.evict = uring_evict,
	.fall = uring_fall,
	.arm = uring_arm,
};
