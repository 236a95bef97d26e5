/* buffers.h - buffers that the kernel fills for receives with many results.
 *
 * Needs: uring_ring.h.  Owned by: uring.c.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_BUFFERS_H
#define WEFT_BACKEND_BUFFERS_H

#include "backend/uring_ring.h"

#define WEFT__BUFFER_GROUP 0

struct weft__buffers {
	struct io_uring_buf_ring *free; /* the buffers that the kernel may fill */
	char    *memory;                /* of all buffers; NULL: not allocated */
	uint16_t tail;
	int      held;                  /* the buffer of the current result, or -1 */
};

/* Allocate the buffers, if not done yet.  0 or -errno. */
int  weft__buffers_make(struct weft__buffers *buffers, const struct weft__uring *ring);
void weft__buffers_drop(struct weft__buffers *buffers); /* after the ring was closed */

/* The data of a completion; valid until weft__buffers_give_back(). */
const void *weft__buffers_hold(struct weft__buffers *buffers,
                               const struct io_uring_cqe *cqe);
void weft__buffers_give_back(struct weft__buffers *buffers);

#endif
