/* ring.h - the two rings of io_uring, as shared with the kernel.
 *
 * Needs: base.  Owned by: uring.c.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_RING_H
#define WEFT_BACKEND_RING_H

#include <linux/io_uring.h>
#include "base/sys.h"

struct weft__uring {
	int      fd;
	uint32_t features;
	bool     enabled;    /* by the thread that submits from then on */
	bool     dead;       /* abandoned: what was completed by then can be taken */

	/* Submission: entries from sq_done to sq_tail are ours to hand over. */
	struct io_uring_sqe *sqes;
	uint32_t *sq_head, *sq_tail_shared, *sq_flags;
	uint32_t  sq_tail, sq_mask, sq_entries;

	/* Completion. */
	struct io_uring_cqe *cqes;
	uint32_t *cq_head_shared, *cq_tail, *cq_overflow;
	uint32_t  cq_head, cq_mask;

	void  *ring_mem, *sqe_mem;
	size_t ring_size, sqe_size;

	weft__a64  *syscalls; /* where they are counted; set before it is opened */
	const char *failed;   /* what open() failed at */
};

/* The sys table, for one call that enters the kernel. */
static inline const struct weft__sys *
weft__uring_kernel(const struct weft__uring *ring)
{
	weft__count(ring->syscalls, 1);
	return weft__sys;
}

/* Make a ring of `entries`; bound to the thread that first enters it if `bound`.
 * 0 or -errno. */
int  weft__uring_open(struct weft__uring *ring, uint32_t entries, bool bound);
void weft__uring_close(struct weft__uring *ring);

/* The kernel refuses to be entered, with `error`: have it give up all requests, and close the
 * ring.  What has completed can still be taken. */
void weft__uring_abandon(struct weft__uring *ring, int error);

/* Let this thread, and no other from now on, enter it.  0 or -errno. */
int weft__uring_enable(struct weft__uring *ring);

/* A cleared entry to fill; hands over what there is if the ring is full.  NULL if
 * the kernel takes none. */
struct io_uring_sqe *weft__uring_get(struct weft__uring *ring);

/* Take back the entry with that user data if the kernel has not got it; false if it has. */
bool weft__uring_withdraw(struct weft__uring *ring, const void *user_data);

/* Hand over, and wait for a completion until the timeout; -1: none.  0 or -errno; -ETIME if
 * none came until then. */
int weft__uring_enter(struct weft__uring *ring, int64_t timeout_ns);

/* Would entering, without a wait, bring anything? */
bool weft__uring_has_work(const struct weft__uring *ring);

/* The kernel holds back completions until it is entered again: a call makes a limited
 * number of them. */
bool weft__uring_is_behind(const struct weft__uring *ring);

/* Is there a completion with that user data to be taken? */
bool weft__uring_has_result(const struct weft__uring *ring, const void *user_data);

/* The next completion, copied; false if there is none. */
bool weft__uring_next(struct weft__uring *ring, struct io_uring_cqe *out);

#endif
