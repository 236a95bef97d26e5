/* uring_ring.h - the submission and completion rings that io_uring shares with the kernel.
 *
 * Needs: base.  Owned by: uring.c.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_URING_RING_H
#define WEFT_BACKEND_URING_RING_H

#include <linux/io_uring.h>
#include "base/sys.h"

struct weft__uring {
	int      fd;
	uint32_t features;
	bool     enabled;    /* weft__uring_enable() has succeeded */
	bool     dead;       /* abandoned; completions that arrived before can still be taken */

	/* Submission: the kernel has not taken the entries from *sq_head to sq_tail yet. */
	struct io_uring_sqe *sqes;
	uint32_t *sq_head, *sq_tail_shared, *sq_flags;
	uint32_t  sq_tail, sq_mask, sq_entries;

	/* Completion. */
	struct io_uring_cqe *cqes;
	uint32_t *cq_head_shared, *cq_tail, *cq_overflow;
	uint32_t  cq_head, cq_mask;

	void  *ring_mem, *sqe_mem;
	size_t ring_size, sqe_size;

	weft__a64  *syscalls; /* the counter; set before opening */
	const char *failed;   /* the step that failed in open() */
};

/* The sys table, counting one system call. */
static inline const struct weft__sys *
weft__uring_kernel(const struct weft__uring *ring)
{
	weft__count(ring->syscalls, 1);
	return weft__sys;
}

/* Create a ring of `entries`; if `bound`, it is bound to the thread that first enters it.  0 or
 * -errno. */
int  weft__uring_open(struct weft__uring *ring, uint32_t entries, bool bound);
void weft__uring_close(struct weft__uring *ring);

/* The kernel rejects io_uring_enter(2) with `error`: make the kernel cancel all requests, and
 * close the ring.  The ring is dead then; completions that arrived can still be taken. */
void weft__uring_abandon(struct weft__uring *ring, int error);

/* Enable the ring, if not done yet.  A bound ring accepts only this thread from now on.  0 or
 * -errno. */
int weft__uring_enable(struct weft__uring *ring);

/* A cleared entry to fill.  Submits the queued entries if the ring is full.  NULL if the ring is
 * still full then, or is dead. */
struct io_uring_sqe *weft__uring_get(struct weft__uring *ring);

/* Remove the entry with that user data if the kernel has not taken it; false if it has. */
bool weft__uring_withdraw(struct weft__uring *ring, const void *user_data);

/* Submit the queued entries and, if there is no completion yet, wait for one: at most timeout_ns
 * nanoseconds; 0 does not wait, and -1 waits without limit.  Enables the ring first.  Returns 0,
 * also after a signal; -ETIME at the timeout; or another -errno. */
int weft__uring_enter(struct weft__uring *ring, int64_t timeout_ns);

/* Whether the ring has anything to do now: completions to take, entries to submit, or
 * completions that the kernel holds back. */
bool weft__uring_has_work(const struct weft__uring *ring);

/* Whether the kernel holds back completions until it is entered again; one call produces a
 * limited number of them. */
bool weft__uring_is_behind(const struct weft__uring *ring);

/* Whether a completion with that user data is ready to be taken. */
bool weft__uring_has_result(const struct weft__uring *ring, const void *user_data);

/* The next completion, copied; false if there is none. */
bool weft__uring_next(struct weft__uring *ring, struct io_uring_cqe *out);

#endif
