/* request.h - converts ops to io_uring requests.
 *
 * Needs: uring_ring.h.  Owned by: uring.c.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_REQUEST_H
#define WEFT_BACKEND_REQUEST_H

#include "backend/backend_op.h"
#include "backend/uring_ring.h"

/* Fill a cleared entry with the request for `op`; its completions carry the op's address. */
void weft__request_fill(struct io_uring_sqe *sqe, const struct weft__op *op);

/* Fill a cleared entry with the cancellation of `op`; the completion carries `user_data`. */
void weft__request_cancel(struct io_uring_sqe *sqe, const struct weft__op *op,
                          uint64_t user_data);

#endif
