/* epoll.c - epoll(7), with an eventfd to end a wait.
 *
 * Event data carries the descriptor and the generation of its entry, so that what was
 * fetched for a number that has been closed meanwhile is dropped.  The eventfd is
 * registered by edges and never read: each write is a new edge.
 *
 *   1. What the kernel has for a number is entry->armed, unless the file was closed
 *      behind our back; so a change that finds it missing adds it, and an addition
 *      that finds it there changes it.
 *   2. Files, which epoll refuses with EPERM, are ready.c's business: they never make
 *      anybody wait.
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

static void
epoll_close(struct weft__backend *backend)
{
	if (backend->wake_fd[0] >= 0)
		(void)weft__sys->close(backend->wake_fd[0]);
	if (backend->fd >= 0)
		(void)weft__sys->close(backend->fd);
	weft__sys->release(backend->state);
}

static int
epoll_open(struct weft__backend *backend)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET,
		                     .data.u64 = WAKE };

	backend->state = weft__sys->alloc(WEFT__EVENTS_MAX
	                                  * sizeof(struct epoll_event));
	if (!backend->state)
		return -ENOMEM;
	backend->fd = weft__sys->epoll_create();
	if (backend->fd < 0)
		return backend->fd;
	backend->wake_fd[0] = weft__sys->eventfd();
	if (backend->wake_fd[0] < 0)
		return backend->wake_fd[0];
	return weft__sys->epoll_ctl(backend->fd, EPOLL_CTL_ADD,
	                            backend->wake_fd[0], &event);
}

/* Invariant 1. */
static int
change(struct weft__backend *backend, int fd, bool known,
       struct epoll_event *event)
{
	int first = known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	int rc = weft__sys->epoll_ctl(backend->fd, first, fd, event);

	if (rc == (known ? -ENOENT : -EEXIST))
		rc = weft__sys->epoll_ctl(backend->fd,
		                          known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
		                          fd, event);
	return rc;
}

static int
epoll_arm(struct weft__backend *backend, int fd, struct weft__fd *entry,
          uint32_t want)
{
	struct epoll_event event = { .data.u64 = data_of(fd, entry) };

	if (want == 0) {
		/* It may have gone with its file. */
		(void)weft__sys->epoll_ctl(backend->fd, EPOLL_CTL_DEL, fd,
		                           &event);
		return 0;
	}
	event.events = (want & WEFT_READABLE ? EPOLLIN : 0)
	               | (want & WEFT_WRITABLE ? EPOLLOUT : 0)
	               | (want & WEFT_EDGE ? EPOLLET | EPOLLRDHUP : 0);
	return change(backend, fd, entry->armed != 0, &event);
}

/* An end of the peer's stream is readable, and what follows a short read. */
static uint32_t
ready_of(uint32_t events)
{
	return (events & (EPOLLIN | EPOLLRDHUP) ? WEFT_READABLE : 0)
	       | (events & EPOLLOUT ? WEFT_WRITABLE : 0)
	       | (events & EPOLLERR ? WEFT_ERROR : 0)
	       | (events & EPOLLHUP ? WEFT_HUP : 0);
}

static int
epoll_wait_ns(struct weft__backend *backend, int64_t timeout_ns)
{
	struct epoll_event *events = backend->state;
	int room = (int)(backend->events_max - backend->events_count);
	int count = weft__sys->epoll_wait(backend->fd, events, room,
	                                  timeout_ns);

	if (count < 0)
		return count == -EINTR ? 0 : count;
	for (int i = 0; i < count; i++) {
		uint64_t data = events[i].data.u64;

		if (data == WAKE)
			continue;
		if (events[i].events & EPOLLRDHUP)
			weft__ready_ending(backend, (int)(uint32_t)data);
		weft__ready_note(backend, (int)(uint32_t)data,
		                 (uint32_t)(data >> 32),
		                 ready_of(events[i].events));
	}
	return 0;
}

static void
epoll_wake(struct weft__backend *backend)
{
	uint64_t one = 1;

	/* It overflows after 2^64 wakes. */
	(void)weft__sys->write(backend->wake_fd[0], &one, sizeof(one));
}

const struct weft__backend_ops weft__backend_epoll = {
	.name = "epoll",
	.edge = true,
	.open = epoll_open,
	.close = epoll_close,
	.submit = weft__ready_submit,
	.cancel = weft__ready_cancel,
	.wait = epoll_wait_ns,
	.wake = epoll_wake,
	.arm = epoll_arm,
};
