/* epoll.c - epoll(7), with an eventfd to end a wait.
 *
 * Event data carries the descriptor and the generation of its entry, so events for a number
 * that was closed in the meantime are dropped.  The eventfd is registered edge-triggered and
 * never read: each write is a new edge.
 *
 *   1. The kernel has entry->armed registered for a number, unless the file was closed without
 *      notice.  A change then finds no registration (ENOENT), whichever file has the number
 *      now.  An addition that finds a registration changes that.
 *   2. The epoll descriptor may have to be replaced.  A foreign loop that polls the backend
 *      gets an outer epoll descriptor, which contains the inner one, never changes, and is
 *      readable when the inner one is.
 *   3. epoll rejects files with EPERM.  ready.c handles them: an op never waits for a file.
 */
#include <errno.h>
#include <sys/epoll.h>
#include "backend/backend.h"

#define WAKE UINT64_MAX /* event data of the eventfd */

static uint64_t
data_of(int fd, const struct weft__fd *entry)
{
	return (uint64_t)entry->generation << 32 | (uint32_t)fd;
}

int
weft__epoll_make(struct weft__backend *backend)
{
	if (!backend->fetched) /* may exist from an earlier try */
		backend->fetched = weft__sys->alloc(WEFT__EVENTS_MAX * sizeof(struct epoll_event));
	if (!backend->fetched)
		return -ENOMEM;
	backend->at = "epoll_create";
	backend->fd = weft__kernel(backend)->epoll_create();
	return backend->fd < 0 ? backend->fd : 0;
}

int
weft__epoll_add_wake(struct weft__backend *backend)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = WAKE };

	return weft__kernel(backend)->epoll_ctl(backend->fd, EPOLL_CTL_ADD, backend->wake_fd[0],
	                                        &event);
}

static int
epoll_open(struct weft__backend *backend)
{
	int rc = weft__epoll_make(backend);

	if (rc < 0)
		return rc;
	backend->at = "eventfd";
	backend->wake_fd[0] = weft__kernel(backend)->eventfd();
	if (backend->wake_fd[0] < 0)
		return backend->wake_fd[0];
	backend->at = "epoll_ctl";
	return weft__epoll_add_wake(backend);
}

static struct epoll_event
event_of(int fd, const struct weft__fd *entry, uint32_t want)
{
	return (struct epoll_event){
		.events = (want & WEFT_READABLE ? EPOLLIN : 0)
		          | (want & WEFT_WRITABLE ? EPOLLOUT : 0)
		          | (want & WEFT_EDGE ? EPOLLET | EPOLLRDHUP : 0),
		.data.u64 = data_of(fd, entry),
	};
}

/* Register `fd`, which may already be registered; invariant 1. */
static int
epoll_add(struct weft__backend *backend, int fd, struct epoll_event *event)
{
	int rc = weft__kernel(backend)->epoll_ctl(backend->fd, EPOLL_CTL_ADD, fd, event);

	if (rc == -EEXIST)
		rc = weft__kernel(backend)->epoll_ctl(backend->fd, EPOLL_CTL_MOD, fd, event);
	return rc;
}

int
weft__epoll_arm(struct weft__backend *backend, int fd, struct weft__fd *entry, uint32_t want)
{
	struct epoll_event event = event_of(fd, entry, want);

	if (want == 0) {
		/* The registration may have vanished with its file. */
		(void)weft__kernel(backend)->epoll_ctl(backend->fd, EPOLL_CTL_DEL, fd, &event);
		return 0;
	}
	if (!entry->armed)
		return epoll_add(backend, fd, &event);
	return weft__kernel(backend)->epoll_ctl(backend->fd, EPOLL_CTL_MOD, fd, &event);
}

/* The end of the peer's stream counts as readable, even after a short read. */
static uint32_t
ready_of(uint32_t events)
{
	return (events & (EPOLLIN | EPOLLRDHUP) ? WEFT_READABLE : 0)
	       | (events & EPOLLOUT ? WEFT_WRITABLE : 0) | (events & EPOLLERR ? WEFT_EV_ERROR : 0)
	       | (events & EPOLLHUP ? WEFT_EV_HUP : 0);
}

static int
add_inner(struct weft__backend *backend, int outer, int inner)
{
	struct epoll_event event = { .events = EPOLLIN };

	return weft__kernel(backend)->epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event);
}

static int
epoll_fd(struct weft__backend *backend)
{
	int outer = backend->outer_fd, rc;

	if (outer >= 0)
		return outer;
	outer = weft__kernel(backend)->epoll_create();
	if (outer < 0)
		return outer;
	rc = add_inner(backend, outer, backend->fd);
	if (rc < 0) {
		(void)weft__kernel(backend)->close(outer);
		return rc;
	}
	backend->outer_fd = outer;
	return outer;
}

/* Register everything that is armed with a new epoll descriptor; 0 or -errno. */
static int
arm_all(struct weft__backend *backend)
{
	int rc = backend->ops == &weft__backend_uring ? 0 /* the ring polls the eventfd itself */
	                                              : weft__epoll_add_wake(backend);

	for (uint32_t i = 0; rc == 0 && i < backend->fds.count * WEFT__FDS_PAGE; i++) {
		struct weft__fd *entry = weft__fds_get(&backend->fds, (int)i);
		struct epoll_event event;

		if (!entry || !entry->armed)
			continue;
		event = event_of((int)i, entry, entry->armed);
		rc = epoll_add(backend, (int)i, &event);
		if (rc == -EBADF) /* closed without notice */
			rc = 0;
	}
	if (rc == 0 && backend->ops == &weft__backend_epoll && backend->outer_fd >= 0)
		rc = add_inner(backend, backend->outer_fd, backend->fd);
	return rc;
}

/* The kernel reports a number that has no registration here: it was closed while a duplicate of
 * it is still open.  epoll offers no way to remove it, so start with a new descriptor.  If that
 * fails, the stray event returns and this is tried again. */
static void
rebuild(struct weft__backend *backend)
{
	int old = backend->fd, fresh = weft__kernel(backend)->epoll_create();

	if (fresh < 0)
		return;
	backend->fd = fresh;
	if (arm_all(backend) < 0) {
		backend->fd = old;
		old = fresh;
	}
	/* A forked child may keep the old descriptor open, which keeps it registered. */
	if (backend->ops == &weft__backend_epoll && backend->outer_fd >= 0)
		(void)weft__kernel(backend)->epoll_ctl(backend->outer_fd, EPOLL_CTL_DEL, old, NULL);
	(void)weft__kernel(backend)->close(old);
}

/* Record one event; false if its number has no registration here. */
static bool
note(struct weft__backend *backend, const struct epoll_event *event)
{
	int fd = (int)(uint32_t)event->data.u64;
	uint32_t generation = (uint32_t)(event->data.u64 >> 32);
	struct weft__fd *entry = weft__fds_get(&backend->fds, fd);

	if (!entry || entry->generation != generation || !entry->armed)
		return false;
	if (event->events & EPOLLRDHUP)
		weft__ready_ending(backend, fd);
	weft__ready_note(backend, fd, generation, ready_of(event->events));
	return true;
}

int
weft__epoll_fetch(struct weft__backend *backend, int64_t timeout_ns)
{
	struct epoll_event *events = backend->fetched;
	int room = (int)(backend->events_max - backend->events_count);
	bool stray = false;
	int count;

	count = weft__kernel(backend)->epoll_wait(backend->fd, events, room, timeout_ns);
	backend->timed_out = count == 0;
	backend->more |= count < 0 || count == room;
	if (count < 0)
		return count == -EINTR ? 0 : count;
	for (int i = 0; i < count; i++)
		if (events[i].data.u64 != WAKE)
			stray |= !note(backend, &events[i]);
	if (stray)
		rebuild(backend);
	return 0;
}

static void
epoll_wake(struct weft__backend *backend)
{
	uint64_t one = 1;

	/* The counter overflows only after 2^64 wakes. */
	while (weft__sys->write(backend->wake_fd[0], &one, sizeof(one)) == -EINTR)
		;
}

const struct weft__backend_ops weft__backend_epoll = {
	.name = "epoll",
	.call = "epoll_wait",
	.edge = true,
	.open = epoll_open,
	.submit = weft__ready_submit,
	.cancel = weft__ready_cancel,
	.wait = weft__epoll_fetch,
	.wake = epoll_wake,
	.next = weft__ready_next,
	.fd = epoll_fd,
	.show = epoll_wake,
	.arm = weft__epoll_arm,
};
