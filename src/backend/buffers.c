/* buffers.c - buffers that the kernel fills for receives with many results.
 *
 * A ring of free buffers: the library adds to it and the kernel takes from it.  The kernel
 * reads entries below the tail, which is stored with release after the entries are written.
 */
#include <errno.h>
#include "backend/buffers.h"

#define COUNT      256u /* a power of two */
#define SIZE       4096u
#define RING_BYTES (COUNT * sizeof(struct io_uring_buf))
#define BYTES      ((size_t)COUNT * SIZE)

static void
buffers_give(struct weft__buffers *buffers, unsigned id)
{
	struct io_uring_buf *buf = &buffers->free->bufs[buffers->tail & (COUNT - 1)];

	buf->addr = (uint64_t)(uintptr_t)(buffers->memory + (size_t)id * SIZE);
	buf->len = SIZE;
	buf->bid = (uint16_t)id;
	weft__store((weft__a16 *)(void *)&buffers->free->tail, ++buffers->tail, WEFT__RELEASE);
}

void
weft__buffers_drop(struct weft__buffers *buffers)
{
	weft__sys->unmap(buffers->free, RING_BYTES);
	weft__sys->unmap(buffers->memory, BYTES);
	*buffers = (struct weft__buffers){ .held = -1 };
}

int
weft__buffers_make(struct weft__buffers *buffers, const struct weft__uring *ring)
{
	struct io_uring_buf_reg reg = { .ring_entries = COUNT, .bgid = WEFT__BUFFER_GROUP };
	int rc = -ENOMEM;

	if (buffers->memory)
		return 0;
	buffers->free = weft__uring_kernel(ring)->map(RING_BYTES, -1, 0);
	buffers->memory = weft__uring_kernel(ring)->map(BYTES, -1, 0);
	reg.ring_addr = (uint64_t)(uintptr_t)buffers->free;
	if (buffers->free && buffers->memory)
		rc = weft__uring_kernel(ring)->uring_register(ring->fd, IORING_REGISTER_PBUF_RING,
		                                              &reg, 1);
	if (rc < 0) {
		weft__buffers_drop(buffers);
		return rc;
	}
	for (unsigned i = 0; i < COUNT; i++)
		buffers_give(buffers, i);
	return 0;
}

const void *
weft__buffers_hold(struct weft__buffers *buffers, const struct io_uring_cqe *cqe)
{
	weft__assert(buffers->held < 0); /* invariant 4 of uring.c */
	buffers->held = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
	return buffers->memory + (size_t)buffers->held * SIZE;
}

void
weft__buffers_give_back(struct weft__buffers *buffers)
{
	if (buffers->held < 0)
		return;
	buffers_give(buffers, (unsigned)buffers->held);
	buffers->held = -1;
}
