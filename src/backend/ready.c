/* ready.c - ops and watches on top of readiness, for backends without completions.
 *
 * An op is a system call that is tried.  If it would block, the op waits in its direction of
 * the descriptor's entry (read or write) and is tried again when the kernel reports that
 * direction.  A watch occupies one or both directions, and its callback is called.  The waiters
 * determine what the kernel is to report; backends differ only in arm() and wait().  The rules
 * are in ready.h.
 */
#include <poll.h>
#include "backend/ready.h"

void
weft__backend_finish(struct weft__backend *backend, struct weft__op *op, int64_t result)
{
	weft__assert(op->state != WEFT__OP_DONE); /* invariant 1 of backend.h */
	op->result = result;
	op->more = false;
	op->state = WEFT__OP_DONE;
	weft__node_append(&backend->done, weft__op_node(op));
}

/* --- reporting readiness ------------------------------------------------ */

uint32_t
weft__ready_of_poll(int revents)
{
	return (revents & POLLIN ? WEFT_READABLE : 0) | (revents & POLLOUT ? WEFT_WRITABLE : 0)
	       | (revents & (POLLERR | POLLNVAL) ? WEFT_EV_ERROR : 0)
	       | (revents & POLLHUP ? WEFT_EV_HUP : 0);
}

/* The number of events that may stay for the next loop iteration: ops that always have more to
 * do must leave room for events of other descriptors. */
static uint32_t
events_kept_max(const struct weft__backend *backend)
{
	return backend->events_max / 2;
}

/* Record `fd` as readable; without room for an event, arm it again so that the kernel reports
 * it. */
static void
report_again(struct weft__backend *backend, int fd, struct weft__fd *entry)
{
	if (backend->events_count
	    < (backend->events_fresh ? backend->events_max : events_kept_max(backend)))
		weft__ready_note(backend, fd, entry->generation, WEFT_READABLE);
	else
		(void)backend->ops->arm(backend, fd, entry, entry->armed);
}

/* --- owned descriptors -------------------------------------------------- */

int
weft__ready_own(struct weft__backend *backend, int fd, uint16_t what)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, fd);

	if (!entry)
		return WEFT_ENOMEM;
	if (weft__ready_claim(backend, fd, WEFT__BOTH, 0) < 0)
		return WEFT_EBUSY;
	entry->generation++;
	entry->armed = 0;
	entry->flags = WEFT__FD_OWNED | WEFT__FD_MAY_WRITE | what;
	return 0;
}

void
weft__ready_disown(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (!entry || !weft__fd_is_idle(entry))
		return;
	entry->generation++;
	entry->flags = 0;
}

void
weft__ready_receive_fds(struct weft__backend *backend, int fd)
{
	weft__fds_get(&backend->fds, fd)->flags |= WEFT__FD_RECEIVES_FDS;
}

int
weft__ready_throttle_recv(struct weft__backend *backend, struct weft__op *op, bool on)
{
	struct weft__fd *entry;
	int rc = 0;

	if (!!(op->events & WEFT__RECV_THROTTLED) == on)
		return 0;
	op->events ^= WEFT__RECV_THROTTLED;
	if (op->state != WEFT__OP_WAITING)
		return 0;
	entry = weft__fds_get(&backend->fds, op->fd);
	/* What was armed while the op was throttled may not include its direction. */
	if (!backend->ops->edge || (!on && !(entry->armed & weft__op_directions(op))))
		rc = weft__directions_arm(backend, op->fd, entry, 0);
	else if (!on && (entry->flags & WEFT__FD_MAY_READ))
		report_again(backend, op->fd, entry);
	if (rc < 0 && !on)
		op->events |= WEFT__RECV_THROTTLED;
	return on ? 0 : rc;
}

int64_t
weft__ready_recv_now(struct weft__backend *backend, struct weft__op *op, void *buf, size_t size,
                     bool must)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);
	int64_t result;

	if (op->state != WEFT__OP_WAITING || (!must && !(entry->flags & WEFT__FD_MAY_READ)))
		return -EAGAIN;
	op->buf = buf;
	op->size = size;
	result = weft__try_op(backend, entry, op);
	op->buf = NULL;
	return result;
}

/* --- closing ------------------------------------------------------------ */

static void
close_now(struct weft__backend *backend, struct weft__op *op)
{
	weft__ready_forget(backend, op->fd);
	weft__backend_finish(backend, op, weft__kernel(backend)->close(op->fd));
}

static bool
is_busy(const struct weft__backend *backend, int fd)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	return entry && !weft__fd_is_idle(entry);
}

void
weft__ready_close(struct weft__backend *backend, struct weft__op *op)
{
	if (!is_busy(backend, op->fd)) {
		close_now(backend, op);
		return;
	}
	weft__fds_get(&backend->fds, op->fd)->flags |= WEFT__FD_CLOSING;
	weft__node_append(&backend->closing, weft__op_node(op));
}

/* A waiter has left: close ops may have waited for that. */
static void
close_those_free(struct weft__backend *backend)
{
	struct weft__node *node = backend->closing.first;

	backend->closing = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);

		node = node->next;
		weft__ready_close(backend, op);
	}
}

/* --- numbers that refer to another file --------------------------------- */

static bool
is_with_kernel(const struct weft__op *op)
{
	return op && (op->state == WEFT__OP_SENT || op->state == WEFT__OP_CANCELING);
}

/* Whether `fd` now refers to another file than the one that was armed or identified. */
static bool
is_other_file(struct weft__backend *backend, int fd, struct weft__fd *entry)
{
	int rc;

	if (!entry->armed)
		return weft__fd_is_other(backend, fd, entry);
	rc = backend->ops->arm(backend, fd, entry, entry->armed);
	return rc == -ENOENT || rc == -EBADF;
}

void
weft__ready_evict_stale(struct weft__backend *backend, int fd, uintptr_t newcomer)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);
	bool other = is_other_file(backend, fd, entry);
	uint32_t stale = 0;

	for (int direction = 0; direction < 2; direction++) {
		struct weft__op *op = weft__direction_op(entry, direction);

		if (!entry->waiter[direction] || entry->waiter[direction] == newcomer)
			continue;
		if (is_with_kernel(op) ? !backend->ops->has_file(backend, op) : other)
			stale |= weft__direction_mask(direction);
	}
	if (stale | other)
		weft__ready_evict(backend, fd, stale, WEFT_EBADF);
}

/* Whether a waiter other than `newcomer` has one of `directions`, or a close op waits. */
static bool
is_taken(const struct weft__fd *entry, uint32_t directions, uintptr_t newcomer)
{
	bool taken = entry->flags & WEFT__FD_CLOSING;

	for (int direction = 0; direction < 2; direction++)
		taken |= (directions & weft__direction_mask(direction)) && entry->waiter[direction]
		         && entry->waiter[direction] != newcomer;
	return taken;
}

/* A waiter may have nothing armed: then only the identity of its file is recorded.  If a newcomer
 * armed the other direction, or gave the kernel a request for it, such a waiter would count as a
 * waiter of the newcomer's file.  So check it first. */
int
weft__ready_claim(struct weft__backend *backend, int fd, uint32_t directions, uintptr_t newcomer)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (is_taken(entry, directions, newcomer)
	    || (!entry->armed && entry->identity && !weft__fd_is_idle(entry)))
		weft__ready_evict_stale(backend, fd, newcomer);
	return is_taken(entry, directions, newcomer) ? WEFT_EBUSY : 0;
}

static void
evict_op(struct weft__backend *backend, struct weft__fd *entry, struct weft__op *op, int why)
{
	if (!is_with_kernel(op) && op->state != WEFT__OP_UNSENT) {
		backend->ops->cancel(backend, op, why);
		return;
	}
	weft__directions_leave(backend, entry, (uintptr_t)op);
	backend->ops->evict(backend, op, why);
}

/* The number of a waiting close op refers to another file now: the op has nothing to close. */
static void
evict_closing(struct weft__backend *backend, int fd, int why)
{
	struct weft__node *node = backend->closing.first;

	backend->closing = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);

		node = node->next;
		if (op->fd == fd)
			weft__backend_finish(backend, op, why);
		else
			weft__node_append(&backend->closing, weft__op_node(op));
	}
}

void
weft__ready_evict(struct weft__backend *backend, int fd, uint32_t directions, int why)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (entry->armed)
		(void)backend->ops->arm(backend, fd, entry, 0);
	entry->armed = 0;
	entry->generation++;
	for (int direction = 0; direction < 2; direction++) {
		struct weft__op *op = weft__direction_op(entry, direction);
		weft_watch *watch = weft__direction_watch(entry, direction);

		if (!(directions & weft__direction_mask(direction)))
			continue;
		if (op)
			evict_op(backend, entry, op, why);
		if (watch)
			weft__watch_evict(backend, watch, why);
	}
	if (entry->flags & WEFT__FD_CLOSING)
		evict_closing(backend, fd, why);
	entry->flags &= WEFT__FD_ALWAYS; /* of a watch that stays */
}

/* --- ops ---------------------------------------------------------------- */

int
weft__ready_is_free(struct weft__backend *backend, const struct weft__op *op)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

	return entry && !weft__fd_is_idle(entry)
	               ? weft__ready_claim(backend, op->fd, weft__op_directions(op), 0)
	               : 0;
}

/* Whether a try is likely to succeed before the kernel reports anything.  An accept must not be
 * tried before weft__ready_submit() has made its descriptor non-blocking: the flags may be those of
 * an earlier file with the same number. */
static bool
may_try(const struct weft__backend *backend, const struct weft__fd *entry,
        const struct weft__op *op)
{
	if (op->kind == WEFT__OP_POLL || op->kind == WEFT__OP_ACCEPT || weft__op_is_multi(op))
		return false;
	if (weft__op_directions(op) == WEFT_WRITABLE)
		return !backend->ops->edge || !(entry->armed & WEFT_EDGE)
		       || (entry->flags & WEFT__FD_MAY_WRITE) || op->kind == WEFT__OP_CONNECT;
	return backend->ops->edge && (entry->flags & WEFT__FD_MAY_READ);
}

void
weft__ready_submit(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, op->fd);
	int64_t result = entry ? -EAGAIN : -ENOMEM;
	int rc;

	if (entry && may_try(backend, entry, op))
		result = weft__try_op(backend, entry, op);
	if (result != -EAGAIN) {
		weft__backend_finish(backend, op, result);
		return;
	}
	op->state = WEFT__OP_WAITING;
	weft__directions_take(backend, entry, weft__op_directions(op), (uintptr_t)op);
	rc = op->kind == WEFT__OP_ACCEPT ? weft__kernel(backend)->set_nonblock(op->fd) : 0;
	if (rc == 0)
		rc = weft__directions_arm(backend, op->fd, entry, (uintptr_t)op);
	if (rc == 0) {
		/* Data that is already there may have been reported before, and an edge is
		 * reported once. */
		if (weft__op_is_multi(op) && (entry->flags & WEFT__FD_MAY_READ))
			report_again(backend, op->fd, entry);
		return;
	}
	weft__directions_leave(backend, entry, (uintptr_t)op);
	/* A file is always ready. */
	weft__backend_finish(backend, op,
	                     rc == -EPERM && op->kind == WEFT__OP_POLL
	                             ? (int64_t)(op->events & WEFT__BOTH)
	                             : rc);
}

struct weft__fd *
weft__ready_take(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, op->fd);

	if (entry)
		weft__directions_take(backend, entry, weft__op_directions(op), (uintptr_t)op);
	return entry;
}

void
weft__ready_leave(struct weft__backend *backend, struct weft__op *op)
{
	weft__directions_leave(backend, weft__fds_get(&backend->fds, op->fd), (uintptr_t)op);
	if (backend->closing.first)
		close_those_free(backend);
}

/* Whether a waiter still needs what is armed, even if it is throttled for now. */
static bool
is_armed_for(const struct weft__fd *entry)
{
	for (int direction = 0; direction < 2; direction++) {
		const struct weft__op *op = weft__direction_op(entry, direction);

		if (weft__direction_watch(entry, direction)
		    || (op && op->state == WEFT__OP_WAITING))
			return true;
	}
	return false;
}

static void
ready_leave(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

	weft__directions_leave(backend, entry, (uintptr_t)op);
	/* Invariant 4.  The poll backend disarms at once, which costs nothing.  A ring disarms
	 * after a sendfile: else the epoll reports what the ring's requests wait for. */
	if (!backend->ops->edge)
		(void)weft__directions_arm(backend, op->fd, entry, 0);
	else if (op->kind == WEFT__OP_SENDFILE && backend->ops->batches && entry->armed
	         && !is_armed_for(entry) && backend->ops->arm(backend, op->fd, entry, 0) == 0)
		entry->armed = 0;
	if (op->kind == WEFT__OP_ACCEPT && backend->throttled.first)
		weft__node_remove(&backend->throttled, weft__op_node(op));
}

void
weft__ready_cancel(struct weft__backend *backend, struct weft__op *op, int why)
{
	ready_leave(backend, op);
	weft__backend_finish(backend, op, why);
}

/* --- accepts without a free descriptor ---------------------------------- */

bool
weft__ready_is_exhausted(int64_t result)
{
	return result == -EMFILE || result == -ENFILE || result == -ENOBUFS || result == -ENOMEM;
}

void
weft__ready_throttle_accept(struct weft__backend *backend, struct weft__op *op)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

	op->state = WEFT__OP_THROTTLED;
	weft__node_append(&backend->throttled, weft__op_node(op));
	backend->sheds++;
	weft__fd_identify(backend, op->fd, entry);
	(void)weft__directions_arm(backend, op->fd, entry, 0);
}

void
weft__ready_resume(struct weft__backend *backend)
{
	struct weft__node *node = backend->throttled.first;

	backend->throttled = (struct weft__node_list){ 0 };
	while (node) {
		struct weft__op *op = weft__node_op(node);
		struct weft__fd *entry = weft__fds_get(&backend->fds, op->fd);

		node = node->next;
		weft__assert(op->state == WEFT__OP_THROTTLED); /* invariant 5 */
		weft__directions_leave(backend, entry, (uintptr_t)op);
		entry->flags |= WEFT__FD_MAY_READ;
		backend->ops->submit(backend, op);
	}
}

/* --- events ------------------------------------------------------------- */

void
weft__ready_note(struct weft__backend *backend, int fd, uint32_t generation, uint32_t ready)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (!entry || entry->generation != generation
	    || backend->events_count >= backend->events_max)
		return;
	if (ready & (WEFT_READABLE | WEFT__ALARMS))
		entry->flags |= WEFT__FD_MAY_READ;
	if (ready & (WEFT_WRITABLE | WEFT__ALARMS))
		entry->flags |= WEFT__FD_MAY_WRITE;
	if (ready & WEFT_EV_HUP)
		entry->flags &= (uint16_t)~WEFT__FD_STREAM;
	backend->events[backend->events_count++] = (struct weft__event){
		.fd = fd,
		.generation = generation,
		.ready = (uint16_t)ready,
		.directions = 3,
	};
}

void
weft__ready_ending(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (entry)
		entry->flags &= (uint16_t)~WEFT__FD_STREAM;
}

/* Deliver one more result of an op with many.  Try its direction again while there may be more,
 * up to a limit: then other descriptors come first, and the kernel is to report this one
 * again.  A level-triggered backend does that by itself. */
static void
keep_armed(struct weft__backend *backend, struct weft__event *event, struct weft__fd *entry,
           int direction)
{
	struct weft__op *op = weft__direction_op(entry, direction);

	op->more = true;
	if (op->kind == WEFT__OP_POLL)
		return;
	if (op->kind != WEFT__OP_ACCEPT
	    && !(backend->ops->edge && (entry->flags & WEFT__FD_MAY_READ)))
		return;
	if (++event->tries < WEFT__TRIES_MAX)
		event->directions |= (uint8_t)(1u << direction);
	else if (backend->ops->edge)
		(void)backend->ops->arm(backend, op->fd, entry, entry->armed);
}

/* The direction of an op was reported: true if the op has a result. */
static bool
dispatch_op(struct weft__backend *backend, struct weft__event *event, struct weft__fd *entry,
            int direction)
{
	struct weft__op *op = weft__direction_op(entry, direction);
	bool multi = weft__op_is_multi(op);
	int64_t result;

	if (op->state != WEFT__OP_WAITING || (op->events & WEFT__RECV_THROTTLED))
		return false;
	if (op->kind == WEFT__OP_POLL) {
		result = event->ready & ((op->events & WEFT__BOTH) | WEFT__ALARMS);
		event->directions = 0;
	} else {
		__builtin_prefetch(op->arg); /* on_done reads it */
		result = weft__try_op(backend, entry, op);
	}
	if (result == -EAGAIN)
		return false;
	if (multi && op->kind == WEFT__OP_ACCEPT && weft__ready_is_exhausted(result)) {
		weft__ready_throttle_accept(backend, op);
		return false;
	}
	op->result = result;
	if (multi && (result > 0 || (result == 0 && op->kind == WEFT__OP_ACCEPT))) {
		keep_armed(backend, event, entry, direction);
		return true;
	}
	op->more = false;
	op->state = WEFT__OP_DONE;
	ready_leave(backend, op);
	return true;
}

/* The direction of a watch was reported: true if the watch is to be called.  A watch with both
 * directions is called once for both. */
static bool
dispatch_watch(const struct weft__fd *entry, struct weft__event *event, int direction,
               struct weft__ready *out)
{
	uint32_t wanted = out->watch->flags & WEFT__BOTH;

	if (entry->waiter[0] == entry->waiter[1])
		event->directions = 0;
	else
		wanted &= weft__direction_mask(direction);
	out->ready = wanted ? event->ready & (wanted | WEFT__ALARMS) : 0;
	return out->ready != 0;
}

/* Inspect the next direction of an event; true if there is something to do. */
static bool
dispatch(struct weft__backend *backend, struct weft__event *event, struct weft__fd *entry,
         struct weft__ready *out)
{
	int direction = event->directions & 1 ? WEFT__DIRECTION_READ : WEFT__DIRECTION_WRITE;

	event->directions &= (uint8_t) ~(1u << direction);
	if (!(event->ready & (weft__direction_mask(direction) | WEFT__ALARMS)))
		return false;
	*out = (struct weft__ready){ .watch = weft__direction_watch(entry, direction),
		                     .op = weft__direction_op(entry, direction) };
	if (out->watch && dispatch_watch(entry, event, direction, out))
		return true;
	if (out->op)
		return dispatch_op(backend, event, entry, direction);
	if (!(entry->armed & WEFT_EDGE)) /* invariant 4 */
		(void)weft__directions_arm(backend, event->fd, entry, 0);
	return false;
}

bool
weft__ready_next(struct weft__backend *backend, struct weft__ready *out)
{
	while (backend->events_at < backend->events_count) {
		struct weft__event *event = &backend->events[backend->events_at];
		struct weft__fd *entry = weft__fds_get(&backend->fds, event->fd);

		if (!entry || entry->generation != event->generation || event->directions == 0)
			backend->events_at++; /* invariant 2 */
		else if (event->ready & WEFT__GONE)
			weft__ready_evict(backend, event->fd, WEFT__BOTH, WEFT_EBADF);
		else if (dispatch(backend, event, entry, out))
			return true;
	}
	backend->events_count = backend->events_at = 0;
	backend->events_fresh = false;
	return false;
}

void
weft__ready_forget(struct weft__backend *backend, int fd)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (!entry)
		return;
	weft__ready_evict(backend, fd, WEFT__BOTH, WEFT_ESHUTDOWN);
}

weft_watch *
weft__ready_watch_at(struct weft__backend *backend, int fd, int direction)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	return entry ? weft__direction_watch(entry, direction) : NULL;
}

struct weft__op *
weft__ready_op_at(struct weft__backend *backend, int fd, int direction)
{
	const struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	return entry ? weft__direction_op(entry, direction) : NULL;
}
