/* ready.h - readiness, as shared by the files that turn it into results.  Private.
 *
 * The files: directions.c (the waiters of a descriptor, and what the kernel is to report),
 * try.c (the system call of an op), ready.c (ops, and events), watches.c.
 *
 *   1. A descriptor has two directions, read and write.  Each has at most one waiter.
 *      An op that is WAITING has its direction (a poll op may have both), and leaves it before
 *      it is finished.
 *   2. Events are stored by descriptor number and generation.  Their waiters are looked up only
 *      when they are processed.  A waiter that an earlier callback of the same batch stopped,
 *      canceled or closed is not notified, nor is a later waiter on the same number.
 *   3. On an edge backend MAY_READ or MAY_WRITE is set from an edge until a try finds nothing,
 *      so an edge that arrives while nothing waits is not lost.
 *   4. A registration that no waiter needs is kept for the next waiter, which usually comes
 *      soon.  A level-triggered one is disarmed when it first reports something; an
 *      edge-triggered one stays armed.  The poll backend disarms at once.
 *   5. A multishot accept that fails for lack of descriptors or memory keeps its direction,
 *      unarmed, and is in `throttled` until weft__ready_resume().  So a process that is out of
 *      descriptors neither spins nor loses the wait.  Any other accept ends with the error.
 *   6. The program may close a descriptor without notice and reuse its number for another file.
 *      The backend detects that because the kernel has no registration for the new file, or by
 *      the identity of the file.  It then evicts the waiters of the old file: they end with
 *      WEFT_EBADF.
 */
#ifndef WEFT_BACKEND_READY_H
#define WEFT_BACKEND_READY_H

#include <errno.h>
#include "backend/backend.h"

#define WEFT__TRIES_MAX 16 /* tries of an interrupted call, or results in a row */

#define WEFT__IS_WATCH ((uintptr_t)1)
#define WEFT__BOTH     (WEFT_READABLE | WEFT_WRITABLE)
#define WEFT__ALARMS   (WEFT_EV_ERROR | WEFT_EV_HUP)

/* --- directions.c ------------------------------------------------------- */

static inline uint32_t
weft__direction_mask(int direction)
{
	return direction == WEFT__DIRECTION_READ ? WEFT_READABLE : WEFT_WRITABLE;
}

/* The directions that an op waits in, as readiness bits. */
static inline uint32_t
weft__op_directions(const struct weft__op *op)
{
	if (op->kind == WEFT__OP_POLL)
		return op->events & WEFT__BOTH;
	return op->kind >= WEFT__OP_SEND ? WEFT_WRITABLE : WEFT_READABLE;
}

static inline struct weft__op *
weft__direction_op(const struct weft__fd *entry, int direction)
{
	uintptr_t who = entry->waiter[direction];

	return who & WEFT__IS_WATCH ? NULL : (struct weft__op *)who;
}

static inline weft_watch *
weft__direction_watch(const struct weft__fd *entry, int direction)
{
	uintptr_t who = entry->waiter[direction];

	return who & WEFT__IS_WATCH ? (weft_watch *)(who & ~WEFT__IS_WATCH) : NULL;
}

static inline bool
weft__fd_is_idle(const struct weft__fd *entry)
{
	return !entry->waiter[0] && !entry->waiter[1];
}

/* Add `by` to the number of descriptors that have a waiter. */
void weft__fds_count_used(struct weft__backend *backend, int by);

/* `who` begins to wait in `directions`; or stops waiting in all directions. */
void weft__directions_take(struct weft__backend *backend, struct weft__fd *entry,
                           uint32_t directions, uintptr_t who);
void weft__directions_leave(struct weft__backend *backend, struct weft__fd *entry,
                            uintptr_t who);

/* Register with the kernel what the waiters of `fd` need: nothing, if it has no waiter.
 * `newcomer` is a waiter that has just begun, or 0.  For a newcomer the kernel is called even if
 * the registration does not change, unless the descriptor is owned.  If `fd` now refers to
 * another file, all other waiters are evicted.  0 or an error. */
int  weft__directions_arm(struct weft__backend *backend, int fd, struct weft__fd *entry,
                          uintptr_t newcomer);

/* --- try.c -------------------------------------------------------------- */

/* Make the op's system call.  Returns its result, or -EAGAIN if it would block. */
int64_t weft__try_op(struct weft__backend *backend, struct weft__fd *entry,
                     struct weft__op *op);

#endif
