/* directions.c - the waiters of a descriptor, and what the kernel is to report for them. */
#include "backend/ready.h"

#define TRIES 2 /* to detect that a number refers to another file */

void
weft__fds_count_used(struct weft__backend *backend, int by)
{
	weft__assert(by > 0 || backend->fds.in_use > 0);
	backend->fds.in_use += (uint32_t)by;
	weft__count_set(&backend->counters->fds, backend->fds.in_use);
}

/* A number that is not owned and had no waiters may refer to a new file.  The new generation
 * drops events that were fetched before. */
void
weft__directions_take(struct weft__backend *backend, struct weft__fd *entry, uint32_t directions,
                      uintptr_t who)
{
	if (weft__fd_is_idle(entry)) {
		weft__fds_count_used(backend, 1);
		entry->generation += !(entry->flags & WEFT__FD_OWNED);
		if (!entry->armed)
			entry->identity = 0;
	}
	for (int direction = 0; direction < 2; direction++) {
		if (!(directions & weft__direction_mask(direction)))
			continue;
		/* invariant 1 */
		weft__assert(!entry->waiter[direction] || entry->waiter[direction] == who);
		entry->waiter[direction] = who;
	}
}

void
weft__directions_leave(struct weft__backend *backend, struct weft__fd *entry, uintptr_t who)
{
	bool was_empty = weft__fd_is_idle(entry);

	for (int direction = 0; direction < 2; direction++)
		if (entry->waiter[direction] == who)
			entry->waiter[direction] = 0;
	if (!was_empty && weft__fd_is_idle(entry))
		weft__fds_count_used(backend, -1);
}

bool
weft__ready_has(struct weft__backend *backend, const struct weft__op *op)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

	return entry->waiter[0] == (uintptr_t)op || entry->waiter[1] == (uintptr_t)op;
}

/* What the kernel should report for the waiter of one direction. */
static uint32_t
want_of(const struct weft__fd *entry, int direction, bool *level)
{
	const weft_watch *watch = weft__direction_watch(entry, direction);
	const struct weft__op *op = weft__direction_op(entry, direction);

	if (watch) {
		*level |= !(watch->flags & WEFT_EDGE);
		return watch->flags & weft__direction_mask(direction);
	}
	if (!op || op->state != WEFT__OP_WAITING || (op->events & WEFT__RECV_THROTTLED))
		return 0;
	*level |= op->kind == WEFT__OP_POLL && !(op->events & WEFT_MULTI);
	return weft__direction_mask(direction);
}

/* On an edge backend an owned descriptor is armed once, for both directions, until it is
 * closed. */
static int
bring_in_line(struct weft__backend *backend, int fd, struct weft__fd *entry, bool verify)
{
	bool level = !backend->ops->edge;
	uint32_t want = want_of(entry, 0, &level) | want_of(entry, 1, &level);
	int rc;

	if (want && !level) {
		if (entry->flags & WEFT__FD_OWNED)
			want = WEFT__BOTH;
		want |= WEFT_EDGE;
	}
	if (want == entry->armed && (!verify || (entry->flags & WEFT__FD_OWNED)))
		return 0;
	rc = backend->ops->arm(backend, fd, entry, want);
	if (rc < 0)
		return rc;
	entry->armed = (uint16_t)want;
	if (!want && !weft__fd_is_idle(entry))
		weft__fd_identify(backend, fd, entry);
	return 0;
}

int
weft__directions_arm(struct weft__backend *backend, int fd, struct weft__fd *entry,
                     uintptr_t newcomer)
{
	int rc = bring_in_line(backend, fd, entry, newcomer != 0);

	for (int i = 0; (rc == -ENOENT || rc == -EBADF) && i < TRIES; i++) {
		weft__ready_evict_stale(backend, fd, newcomer);
		rc = bring_in_line(backend, fd, entry, newcomer != 0);
	}
	return rc;
}
