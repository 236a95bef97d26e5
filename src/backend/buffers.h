/* buffers.h - memory that the kernel fills for those who receive again and again.
 *
 * Needs: ring.h.  Owned by: uring.c.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_BUFFERS_H
#define WEFT_BACKEND_BUFFERS_H

#include "backend/ring.h"

#define WEFT__BUFFER_GROUP 0

struct weft__buffers {
	struct io_uring_buf_ring *free; /* those that the kernel may fill */
	char    *memory;                /* of all; NULL: none are made */
	uint16_t tail;
	int      held;                  /* that of the present result, or -1 */
};

/* Make them, unless they are there.  0 or -errno. */
int  weft__buffers_make(struct weft__buffers *buffers, const struct weft__uring *ring);
void weft__buffers_drop(struct weft__buffers *buffers); /* the ring is gone */

/* Give them back while nobody receives; returns the bytes. */
size_t weft__buffers_trim(struct weft__buffers *buffers,
                          const struct weft__uring *ring);

/* What a completion has brought, and stays until it is given back. */
const void *weft__buffers_hold(struct weft__buffers *buffers,
                               const struct io_uring_cqe *cqe);
void weft__buffers_give_back(struct weft__buffers *buffers);

#endif
