/* request.h - ops as requests of io_uring.
 *
 * Needs: ring.h.  Owned by: uring.c.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_REQUEST_H
#define WEFT_BACKEND_REQUEST_H

#include "backend/op.h"
#include "backend/ring.h"

/* Fill a cleared entry with the call of `op`; its completions carry the op's address. */
void weft__request_fill(struct io_uring_sqe *sqe, const struct weft__op *op);

/* Or with its cancellation, whose completion carries `tell`. */
void weft__request_cancel(struct io_uring_sqe *sqe, const struct weft__op *op,
                          uint64_t tell);

#endif
