/* cut_ring.c - io_uring requests that are cut short, or report EAGAIN; rule 4 of cut.h.
 *
 * The wrappers of the calls that create the rings record where they are mapped.  Requests are
 * changed before the kernel is entered, completions after it.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/uio.h>
#include "base/sys.h"
#include "cut.h"
#include "test.h"

#define real       weft__sys_real
#define BLOCKS_MAX 64u /* requests that are replaced by a no-op, at a time */

static struct {
	int fd; /* -1: there is no ring */
	struct io_uring_params params;
	char *mem; /* maps both rings */
	struct io_uring_sqe *sqes;
	uint32_t sq_seen, cq_seen;
	struct io_uring_buf_ring *buffers;
	uint32_t buffers_count;
	uint16_t buffers_seen;
	uint64_t blocks[BLOCKS_MAX]; /* user data of the replaced requests */
	uint32_t blocks_count;
} ring = { .fd = -1 };

static uint32_t
word_at(uint32_t offset)
{
	const void *word = ring.mem + offset;

	return weft__load((const weft__a32 *)word, WEFT__ACQUIRE);
}

/* --- requests --------------------------------------------------------------- */

static void
block(struct io_uring_sqe *sqe)
{
	uint64_t user_data = sqe->user_data;

	CHECK(ring.blocks_count < BLOCKS_MAX);
	ring.blocks[ring.blocks_count++] = user_data;
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_NOP;
	sqe->user_data = user_data;
}

/* A sendmsg request becomes a send of its first buffer. */
static void
shorten(struct io_uring_sqe *sqe)
{
	if (sqe->opcode == IORING_OP_SENDMSG) {
		const struct msghdr *msg = (const void *)(uintptr_t)sqe->addr;

		sqe->opcode = IORING_OP_SEND;
		sqe->addr = (uint64_t)(uintptr_t)msg->msg_iov->iov_base;
		sqe->len = (uint32_t)msg->msg_iov->iov_len;
	}
	sqe->len = (uint32_t)cut_size(sqe->len);
}

/* A multishot receive that once reports EAGAIN is waited for with epoll from then on.  So it
 * must not happen in tests in which the ring delivers single bytes. */
static void
inspect_request(struct io_uring_sqe *sqe)
{
	bool again = sqe->ioprio & IORING_RECV_MULTISHOT;
	int event = sqe->opcode == IORING_OP_RECV ? POLLIN : POLLOUT;

	if (sqe->opcode != IORING_OP_SEND && sqe->opcode != IORING_OP_SENDMSG
	    && sqe->opcode != IORING_OP_RECV)
		return;
	if (!cut_is_end(sqe->fd))
		return;
	if (!(again && cut_is_to_bytes()) && cut_blocks(sqe->fd, event))
		block(sqe);
	else if (!again)
		shorten(sqe);
}

/* Handles each request once, even if it is submitted again. */
static void
inspect_requests(uint32_t submit)
{
	uint32_t head = word_at(ring.params.sq_off.head);
	uint32_t mask = ring.params.sq_entries - 1;

	if ((int32_t)(ring.sq_seen - head) < 0)
		ring.sq_seen = head;
	while ((int32_t)(head + submit - ring.sq_seen) > 0)
		inspect_request(&ring.sqes[ring.sq_seen++ & mask]);
}

static void
shorten_buffers(void)
{
	uint16_t tail;

	if (!ring.buffers)
		return;
	tail = weft__load((const weft__a16 *)(const void *)&ring.buffers->tail, WEFT__ACQUIRE);
	for (; ring.buffers_seen != tail; ring.buffers_seen++) {
		struct io_uring_buf *buf =
			&ring.buffers->bufs[ring.buffers_seen & (ring.buffers_count - 1)];

		buf->len = (uint32_t)cut_size(buf->len);
	}
}

/* --- completions ------------------------------------------------------------ */

static void
inspect_completion(struct io_uring_cqe *cqe)
{
	for (uint32_t i = 0; i < ring.blocks_count; i++)
		if (ring.blocks[i] == cqe->user_data) {
			ring.blocks[i] = ring.blocks[--ring.blocks_count];
			cqe->res = -EAGAIN;
			return;
		}
}

static void
inspect_completions(void)
{
	uint32_t head = word_at(ring.params.cq_off.head);
	uint32_t mask = ring.params.cq_entries - 1;
	struct io_uring_cqe *cqes = (void *)(ring.mem + ring.params.cq_off.cqes);

	if ((int32_t)(ring.cq_seen - head) < 0)
		ring.cq_seen = head;
	while (ring.cq_seen != word_at(ring.params.cq_off.tail))
		inspect_completion(&cqes[ring.cq_seen++ & mask]);
}

/* --- calls ------------------------------------------------------------------ */

static int
on_setup(uint32_t entries, struct io_uring_params *params)
{
	int fd = real.uring_setup(entries, params);

	memset(&ring, 0, sizeof(ring));
	ring.fd = fd;
	if (fd >= 0)
		ring.params = *params;
	return fd;
}

static void *
on_map(size_t size, int fd, uint64_t offset)
{
	void *mem = real.map(size, fd, offset);

	if (fd >= 0 && fd == ring.fd && offset == IORING_OFF_SQ_RING)
		ring.mem = mem;
	if (fd >= 0 && fd == ring.fd && offset == IORING_OFF_SQES)
		ring.sqes = mem;
	return mem;
}

static int
on_register(int fd, uint32_t what, void *arg, uint32_t count)
{
	int rc = real.uring_register(fd, what, arg, count);

	if (rc == 0 && fd == ring.fd && what == IORING_REGISTER_PBUF_RING) {
		const struct io_uring_buf_reg *reg = arg;

		ring.buffers = (void *)(uintptr_t)reg->ring_addr;
		ring.buffers_count = reg->ring_entries;
		ring.buffers_seen = 0;
	}
	if (rc == 0 && fd == ring.fd && what == IORING_UNREGISTER_PBUF_RING)
		ring.buffers = NULL;
	return rc;
}

static int
on_enter(int fd, uint32_t submit, uint32_t wait, uint32_t flags, const void *arg)
{
	bool known = fd == ring.fd && ring.mem && ring.sqes;
	int rc;

	if (known) {
		inspect_requests(submit);
		shorten_buffers();
	}
	rc = real.uring_enter(fd, submit, wait, flags, arg);
	if (known)
		inspect_completions();
	return rc;
}

void
cut_wrap_ring(struct weft__sys *table)
{
	table->uring_setup = on_setup;
	table->uring_enter = on_enter;
	table->uring_register = on_register;
	table->map = on_map;
}
