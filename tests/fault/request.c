/* request.c - io_uring requests and completions, counted and rewritten.
 *
 * The plan names the n-th request or completion of a kind (recv, accept, ...).  A rewrite must
 * leave a state that a program can work with:
 *
 *   1. A request that must fail becomes a no-op, and its completion gets the error.  The
 *      request was never made, so nothing is lost.  An interrupted connect continues, so it is
 *      started first.
 *   2. A request that must be short is made for one byte.  A multishot request that must
 *      deliver one result is made single-shot.  For a receive without buffers, the buffer group
 *      becomes one that has none.  The kernel does the rest.
 *   3. A completion that failed may fail with another error instead.  A completion that
 *      delivered something fails only with an error after which the program does not expect the
 *      data (uring.def); a descriptor that it delivered is closed.
 *   4. A completion with F_MORE is followed by others.  To make it the last one, or to make an
 *      error follow it, the request is really canceled.  Its last completion is dropped, or
 *      gets the error.
 *   5. Each request is counted once, even if it is submitted again after an error of
 *      uring_enter.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include "strike.h"

#define real       weft__sys_real
#define NO_GROUP   0x7777 /* a buffer group that is never registered */
#define ROOM_LEAST 4u     /* for the completions that canceling a request adds */
#define CQ_OF(sq)  ((sq) + (int)FAULT_cq_recv - (int)FAULT_sq_recv)

static uint32_t
word_at(const struct fault_ring *ring, uint32_t offset)
{
	const void *word = ring->mem + offset;

	return weft__load((const weft__a32 *)word, WEFT__ACQUIRE);
}

/* --- kinds -------------------------------------------------------------- */

static int
kind_of(const struct io_uring_sqe *sqe)
{
	switch (sqe->opcode) {
	case IORING_OP_RECV:
		return sqe->ioprio & IORING_RECV_MULTISHOT ? FAULT_sq_recv_multi : FAULT_sq_recv;
	case IORING_OP_RECVMSG:
		return FAULT_sq_recv;
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
		return FAULT_sq_send;
	case IORING_OP_ACCEPT:
		return sqe->ioprio & IORING_ACCEPT_MULTISHOT ? FAULT_sq_accept_multi
		                                             : FAULT_sq_accept;
	case IORING_OP_CONNECT:
		return FAULT_sq_connect;
	case IORING_OP_POLL_ADD:
		return FAULT_sq_poll;
	case IORING_OP_ASYNC_CANCEL:
		return FAULT_sq_cancel;
	case IORING_OP_READ:
	case IORING_OP_WRITE:
		return FAULT_sq_file;
	case IORING_OP_OPENAT:
		return FAULT_sq_file_open;
	case IORING_OP_FSYNC:
		return FAULT_sq_file_sync;
	case IORING_OP_CLOSE:
		return FAULT_sq_file_close;
	default:
		return -1;
	}
}

static void
note_kind(struct fault_ring *ring, uint64_t user_data, int kind)
{
	uint32_t i = 0, known = ring->known_count < FAULT_KNOWN ? ring->known_count : FAULT_KNOWN;

	while (i < known && ring->known[i].user_data != user_data)
		i++;
	if (i == known) /* replace the oldest */
		i = ring->known_count++ % FAULT_KNOWN;
	ring->known[i].user_data = user_data;
	ring->known[i].kind = kind;
}

static int
find_kind(const struct fault_ring *ring, uint64_t user_data)
{
	for (uint32_t i = 0; i < FAULT_KNOWN && i < ring->known_count; i++)
		if (ring->known[i].user_data == user_data)
			return ring->known[i].kind;
	return -1;
}

/* --- requests ----------------------------------------------------------- */

/* Invariant 1: start the connect, as a call does that a signal interrupts. */
static void
begin_connect(const struct io_uring_sqe *sqe)
{
	(void)real.set_nonblock(sqe->fd);
	(void)real.connect(sqe->fd, (const void *)(uintptr_t)sqe->addr, (socklen_t)sqe->off);
	(void)real.set_block(sqe->fd);
}

static void
fail_request(struct fault_ring *ring, struct io_uring_sqe *sqe, int kind)
{
	uint64_t user_data = sqe->user_data;

	if (kind == FAULT_sq_recv_multi && fault_error() == ENOBUFS) {
		sqe->buf_group = NO_GROUP; /* invariant 2 */
		return;
	}
	if (kind == FAULT_sq_connect && fault_error() == EINTR)
		begin_connect(sqe);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_NOP;
	sqe->user_data = user_data;
	ring->failed_data = user_data;
	ring->failed_error = fault_error();
}

/* A message becomes the first byte of its first buffer. */
static void
shorten(struct fault_ring *ring, struct io_uring_sqe *sqe, int kind)
{
	const struct msghdr *msg = (const void *)(uintptr_t)sqe->addr;

	if (kind == FAULT_sq_recv_multi) {
		for (uint32_t i = 0; i < ring->buffer_count; i++)
			ring->buffers->bufs[i].len = 1;
		return;
	}
	if (sqe->opcode == IORING_OP_SENDMSG || sqe->opcode == IORING_OP_RECVMSG) {
		sqe->opcode = sqe->opcode == IORING_OP_SENDMSG ? IORING_OP_SEND : IORING_OP_RECV;
		sqe->addr = (uint64_t)(uintptr_t)msg->msg_iov[0].iov_base;
	}
	sqe->len = 1;
}

static void
make_single(struct io_uring_sqe *sqe, int kind)
{
	if (kind == FAULT_sq_poll)
		sqe->len &= ~IORING_POLL_ADD_MULTI;
	else
		sqe->ioprio = 0;
}

static void
inspect_request(struct fault_ring *ring, struct io_uring_sqe *sqe)
{
	int kind = kind_of(sqe);
	uint64_t n;

	if (kind < 0)
		return;
	note_kind(ring, sqe->user_data, kind);
	n = fault_count_one(kind);
	if (fault_is_aimed(kind, FAULT_ERRNO, n))
		fail_request(ring, sqe, kind);
	else if (fault_is_aimed(kind, FAULT_SHORT, n))
		shorten(ring, sqe, kind);
	else if (fault_is_aimed(kind, FAULT_ONCE, n))
		make_single(sqe, kind);
	else
		return;
	fault_hit();
}

void
fault_inspect_requests(struct fault_ring *ring, uint32_t submit)
{
	uint32_t head = word_at(ring, ring->params.sq_off.head);
	uint32_t mask = ring->params.sq_entries - 1;

	if ((int32_t)(ring->sq_seen - head) < 0)
		ring->sq_seen = head;
	while (ring->sq_seen != head + submit && (int32_t)(head + submit - ring->sq_seen) > 0)
		inspect_request(ring, &ring->sqes[ring->sq_seen++ & mask]);
}

/* --- completions -------------------------------------------------------- */

static struct io_uring_cqe *
completion(const struct fault_ring *ring, uint32_t at)
{
	struct io_uring_cqe *cqes = (void *)(ring->mem + ring->params.cq_off.cqes);

	return &cqes[at & (ring->params.cq_entries - 1)];
}

/* Invariant 3: whether a completion that delivered something may report this error instead. */
static bool
may_be_lost(int kind, int error)
{
	switch (kind) {
	case FAULT_cq_accept:
	case FAULT_cq_accept_multi:
		return error == ECONNABORTED;
	case FAULT_cq_connect:
		return error == ECONNREFUSED || error == ETIMEDOUT;
	case FAULT_cq_poll:
	case FAULT_cq_cancel:
		return true;
	case FAULT_cq_recv:
	case FAULT_cq_recv_multi:
		return error == ECONNRESET || error == ETIMEDOUT;
	default: /* data that was sent stays sent */
		return false;
	}
}

/* The last completion of `user_data` after `at`, or NULL. */
static struct io_uring_cqe *
find_last(const struct fault_ring *ring, uint32_t at, uint64_t user_data)
{
	uint32_t tail = word_at(ring, ring->params.cq_off.tail);

	for (at++; at != tail; at++) {
		struct io_uring_cqe *cqe = completion(ring, at);

		if (cqe->user_data == user_data && !(cqe->flags & IORING_CQE_F_MORE))
			return cqe;
	}
	return NULL;
}

/* Invariant 4: cancel the request of the completion at `at`.  Returns its last completion if
 * the cancellation caused it; NULL if there is no room or the request ended by itself. */
static struct io_uring_cqe *
end_request(const struct fault_ring *ring, uint32_t at)
{
	uint64_t user_data = completion(ring, at)->user_data;
	struct io_uring_sync_cancel_reg reg = { .addr = user_data,
		                                .fd = -1,
		                                .timeout = { -1, -1 } };
	uint32_t head = word_at(ring, ring->params.cq_off.head);
	uint32_t tail = word_at(ring, ring->params.cq_off.tail);
	struct io_uring_cqe *last;

	if (tail - head + ROOM_LEAST > ring->params.cq_entries || find_last(ring, at, user_data))
		return NULL;
	(void)real.uring_register(ring->fd, IORING_REGISTER_SYNC_CANCEL, &reg, 1);
	(void)real.uring_enter(ring->fd, 0, 0, IORING_ENTER_GETEVENTS, NULL);
	last = find_last(ring, at, user_data);
	return last && last->res == -ECANCELED ? last : NULL;
}

static bool
end_with_error(struct fault_ring *ring, uint32_t at)
{
	struct io_uring_cqe *last = end_request(ring, at);

	if (last)
		last->res = -fault_error();
	return last != NULL;
}

/* Mark the last completion with a result as the last one.  The final completion gets user data
 * 0, so the library ignores it. */
static bool
end_silently(struct fault_ring *ring, uint32_t at)
{
	struct io_uring_cqe *last = end_request(ring, at), *cqe;
	uint64_t user_data = completion(ring, at)->user_data;
	struct io_uring_cqe *good = NULL;

	if (!last)
		return false;
	while ((cqe = completion(ring, at++)) != last)
		if (cqe->user_data == user_data)
			good = cqe;
	good->flags &= ~IORING_CQE_F_MORE;
	last->user_data = 0;
	return true;
}

/* Replace the result of a completion by the plan's error.  Returns true if that was possible. */
static bool
fail_completion(struct fault_ring *ring, uint32_t at, int kind)
{
	struct io_uring_cqe *cqe = completion(ring, at);

	if (cqe->flags & IORING_CQE_F_MORE)
		return end_with_error(ring, at);
	if (cqe->res >= 0 && !may_be_lost(kind, fault_error()))
		return false;
	if (cqe->res >= 0 && (kind == FAULT_cq_accept || kind == FAULT_cq_accept_multi))
		(void)real.close(cqe->res);
	cqe->res = -fault_error();
	cqe->flags = 0;
	return true;
}

static void
inspect_completion(struct fault_ring *ring, uint32_t at)
{
	struct io_uring_cqe *cqe = completion(ring, at);
	int kind = find_kind(ring, cqe->user_data);
	bool done = false;
	uint64_t n;

	if (ring->failed_error && cqe->user_data == ring->failed_data) {
		cqe->res = -ring->failed_error;
		ring->failed_error = 0;
	}
	if (kind < 0)
		return;
	kind = CQ_OF(kind);
	n = fault_count_one(kind);
	if (fault_is_aimed(kind, FAULT_ERRNO, n))
		done = fail_completion(ring, at, kind);
	else if (fault_is_aimed(kind, FAULT_ENDED, n) && (cqe->flags & IORING_CQE_F_MORE))
		done = end_silently(ring, at);
	if (done)
		fault_hit();
}

void
fault_inspect_completions(struct fault_ring *ring)
{
	uint32_t head = word_at(ring, ring->params.cq_off.head);

	if ((int32_t)(ring->cq_seen - head) < 0)
		ring->cq_seen = head;
	while (ring->cq_seen != word_at(ring, ring->params.cq_off.tail))
		inspect_completion(ring, ring->cq_seen++);
}
