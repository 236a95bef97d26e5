/* poll.c - poll(2) and a pipe: works everywhere, scans everything.
 *
 * There is one pollfd per armed descriptor, in no order; the entry knows its index.  Element 0
 * is the pipe by which other threads end a wait.
 *
 *   1. polls[entry->index] is the entry's while entry->armed is not 0.
 *   2. polls has room for every armed entry: arm() reserves, or fails.
 *   3. entry->identity is the identity of the file that was armed.
 *
 * There are no edges: a watch that requests them gets levels.
 */
#include <errno.h>
#include <poll.h>
#include "backend/backend.h"

struct polls {
	struct pollfd *fds;
	uint32_t count;
	uint32_t room;
	uint32_t first; /* index to start scanning at; changes each time, to be fair */
};

static struct polls *
polls_of(struct weft__backend *backend)
{
	return backend->state;
}

static int
poll_reserve(struct polls *polls)
{
	uint32_t room = polls->room ? 2 * polls->room : 16;
	struct pollfd *fds;

	if (polls->count < polls->room)
		return 0;
	fds = weft__sys->resize(polls->fds, room * sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	polls->fds = fds;
	polls->room = room;
	return 0;
}

static void
poll_close(struct weft__backend *backend)
{
	struct polls *polls = polls_of(backend);

	if (polls)
		weft__sys->release(polls->fds);
	weft__sys->release(polls);
}

static int
poll_open(struct weft__backend *backend)
{
	struct polls *polls = weft__alloc_zero(sizeof(*polls));
	int rc;

	backend->state = polls;
	if (!polls || poll_reserve(polls) < 0)
		return -ENOMEM;
	backend->at = "pipe";
	rc = weft__kernel(backend)->pipe(backend->wake_fd);
	if (rc < 0)
		return rc;
	polls->fds[polls->count++] = (struct pollfd){ .fd = backend->wake_fd[0], .events = POLLIN };
	return 0;
}

/* Fill the hole with the last element; invariant 1. */
static void
disarm(struct weft__backend *backend, struct weft__fd *entry)
{
	struct polls *polls = polls_of(backend);
	struct pollfd last;

	weft__assert(entry->index > 0 && entry->index < polls->count
	             && weft__fds_get(&backend->fds, polls->fds[entry->index].fd) == entry);
	last = polls->fds[--polls->count];
	if (entry->index == polls->count)
		return;
	polls->fds[entry->index] = last;
	weft__fds_get(&backend->fds, last.fd)->index = entry->index;
}

static int
poll_arm(struct weft__backend *backend, int fd, struct weft__fd *entry, uint32_t want)
{
	struct polls *polls = polls_of(backend);

	if (want == 0) {
		if (entry->armed)
			disarm(backend, entry);
		return 0;
	}
	if (!entry->armed) {
		int64_t identity = weft__kernel(backend)->identity(fd);

		if (identity == -EBADF || poll_reserve(polls) < 0)
			return identity == -EBADF ? -EBADF : -ENOMEM;
		entry->index = polls->count++;
		entry->identity = identity < 0 ? 0 : (uint32_t)identity;
		polls->fds[entry->index].fd = fd;
	} else if (weft__fd_is_other(backend, fd, entry)) {
		return -ENOENT;
	}
	weft__assert(polls->fds[entry->index].fd == fd); /* invariant 1 */
	polls->fds[entry->index].revents = 0;
	polls->fds[entry->index].events = (short)((want & WEFT_READABLE ? POLLIN : 0)
	                                          | (want & WEFT_WRITABLE ? POLLOUT : 0));
	return 0;
}

static void
drain(struct weft__backend *backend)
{
	char bytes[64];

	while (weft__kernel(backend)->read(backend->wake_fd[0], bytes, sizeof(bytes)) > 0)
		;
}

/* poll(2) knows only numbers.  A number that was closed without notice may refer to another
 * file by now, whose readiness must not be reported. */
static bool
is_gone(struct weft__backend *backend, int fd, const struct weft__fd *entry, int revents)
{
	if ((revents & POLLNVAL) || (entry->flags & WEFT__FD_OWNED))
		return revents & POLLNVAL;
	return weft__fd_is_other(backend, fd, entry);
}

/* A number that was closed, or refers to another file, is reported once and then disarmed. */
static void
poll_report(struct weft__backend *backend, uint32_t index)
{
	struct pollfd *p = &polls_of(backend)->fds[index];
	struct weft__fd *entry = weft__fds_get(&backend->fds, p->fd);
	int fd = p->fd, revents = p->revents;

	if (!revents)
		return;
	if (backend->events_count >= backend->events_max) {
		backend->more = true;
		return;
	}
	p->revents = 0;
	if (!is_gone(backend, fd, entry, revents)) {
		weft__ready_note(backend, fd, entry->generation, weft__ready_of_poll(revents));
		return;
	}
	weft__ready_note(backend, fd, entry->generation, WEFT_EV_ERROR | WEFT__GONE);
	disarm(backend, entry);
	entry->armed = 0;
}

static int
poll_wait(struct weft__backend *backend, int64_t timeout_ns)
{
	struct polls *polls = polls_of(backend);
	int rc = weft__kernel(backend)->poll(polls->fds, polls->count, timeout_ns);

	backend->timed_out = rc == 0;
	backend->more |= rc < 0;
	if (rc <= 0)
		return rc == -EINTR ? 0 : rc;
	if (polls->fds[0].revents)
		drain(backend);
	polls->first += backend->events_max;
	for (uint32_t i = 0; i + 1 < polls->count; i++)
		poll_report(backend, 1 + (polls->first + i) % (polls->count - 1));
	return 0;
}

static void
poll_wake(struct weft__backend *backend)
{
	/* If the pipe is full, another byte is not needed. */
	while (weft__sys->write(backend->wake_fd[1], "", 1) == -EINTR)
		;
}

const struct weft__backend_ops weft__backend_poll = {
	.name = "poll",
	.call = "poll",
	.open = poll_open,
	.close = poll_close,
	.submit = weft__ready_submit,
	.cancel = weft__ready_cancel,
	.wait = poll_wait,
	.wake = poll_wake,
	.next = weft__ready_next,
	.arm = poll_arm,
};
