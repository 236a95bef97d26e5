/* ready.h - readiness, as the files that turn it into results share it.  Private.
 *
 * The files: sides.c (who waits at a descriptor, and what the kernel is to look for),
 * attempt.c (the call of an op, tried), ready.c (ops, and what is reported), watches.c.
 *
 *   1. A side has at most one waiter.  An op that is WAITING has its side (a poll op
 *      may have both), and leaves it before it is finished.
 *   2. Events are kept by number and generation, and looked up when their turn comes:
 *      what was stopped, cancelled or closed by an earlier callback of the same batch,
 *      and whoever got the number since, is not told.
 *   3. On an edge backend MAY_READ or MAY_WRITE is set from an edge until a try has
 *      found nothing: an edge that came while nobody waited is not lost.
 *   4. What is armed beyond need is taken back when it first reports something: not
 *      sooner, since mostly the next wait needs it again.
 *   5. An accept that finds no free descriptor keeps its side, unarmed, in `paused`,
 *      until weft__ready_resume(): a full process neither spins nor loses the wait.
 *   6. A number may be closed behind our back and stand for another file since.  That
 *      shows when the kernel does not know what is armed, or by the identity of the file;
 *      then the waiters of the old file are evicted: they end with WEFT_EBADF.
 */
#ifndef WEFT_BACKEND_READY_H
#define WEFT_BACKEND_READY_H

#include <errno.h>
#include "backend/backend.h"

#define WEFT__TRIES_MAX 16 /* of a call that is interrupted, or results in a row */

#define WEFT__IS_WATCH ((uintptr_t)1)
#define WEFT__BOTH     (WEFT_READABLE | WEFT_WRITABLE)
#define WEFT__ALARMS   (WEFT_ERROR | WEFT_HUP)

/* --- sides.c ------------------------------------------------------------ */

static inline uint32_t
weft__side_mask(int side)
{
	return side == WEFT__READ_SIDE ? WEFT_READABLE : WEFT_WRITABLE;
}

/* The sides that an op waits on, as readiness. */
static inline uint32_t
weft__op_sides(const struct weft__op *op)
{
	if (op->kind == WEFT__OP_POLL)
		return op->events & WEFT__BOTH;
	return op->kind >= WEFT__OP_SEND ? WEFT_WRITABLE : WEFT_READABLE;
}

static inline struct weft__op *
weft__side_op(const struct weft__fd *entry, int side)
{
	uintptr_t who = entry->side[side];

	return who & WEFT__IS_WATCH ? NULL : (struct weft__op *)who;
}

static inline weft_watch *
weft__side_watch(const struct weft__fd *entry, int side)
{
	uintptr_t who = entry->side[side];

	return who & WEFT__IS_WATCH ? (weft_watch *)(who & ~WEFT__IS_WATCH) : NULL;
}

static inline bool
weft__fd_is_idle(const struct weft__fd *entry)
{
	return !entry->side[0] && !entry->side[1];
}

/* One descriptor more, or less, has somebody waiting. */
void weft__sides_count(struct weft__backend *backend, int by);

/* `who` begins to wait at sides, or waits at none any more. */
void weft__sides_take(struct weft__backend *backend, struct weft__fd *entry,
                      uint32_t sides, uintptr_t who);
void weft__sides_leave(struct weft__backend *backend, struct weft__fd *entry,
                       uintptr_t who);

/* Bring the kernel in line with the waiters.  `newcomer` is the waiter that has just
 * begun, or 0: for a newcomer the kernel is always asked, unless the descriptor is owned.
 * If the number stands for another file by now, all other waiters are evicted.
 * 0 or an error. */
int  weft__sides_arm(struct weft__backend *backend, int fd, struct weft__fd *entry,
                     uintptr_t newcomer);

/* --- attempt.c ---------------------------------------------------------- */

/* Make the op's call: its result, or -EAGAIN. */
int64_t weft__attempt(struct weft__backend *backend, struct weft__fd *entry,
                      struct weft__op *op);

#endif
