/* poller.c - readiness of many descriptors, for programs with a loop of their own.
 *
 * A backend without ops: arm() and wait() and the table of descriptors.  The two words of
 * waiter[] hold a token and the requested events instead of waiters.
 *
 *   1. A descriptor is registered exactly when waiter[EVENTS] is not 0.
 *   2. A muted descriptor is not armed.  A descriptor that reports only what was not requested,
 *      such as the end of the peer's stream, is armed again with what was requested.
 */
#include <errno.h>
#include <weft/poller.h>
#include "backend/backend.h"
#include "base/thread.h"

enum { TOKEN, EVENTS }; /* indexes of waiter[] */

#define REGISTERED ((uintptr_t)1 << 16)
#define BOTH       ((uint32_t)(WEFT_READABLE | WEFT_WRITABLE))
#define ALARMS     ((uint32_t)(WEFT_EV_ERROR | WEFT_EV_HUP))
#define KNOWN      (BOTH | ALARMS | WEFT_EDGE)

struct weft_poller {
	struct weft__backend backend;
	struct weft__backend_counters counters;
};

int
weft_poller_open(const char *backend, weft_poller **out)
{
	weft_poller *poller;
	int rc;

	if (!out || (backend && !weft__backend_exists(backend)))
		return weft__fail(
			WEFT_EINVAL,
			"weft_poller_open: out is NULL, or this build has no backend of that name");
	if (!backend)
		backend = weft__backend_exists("epoll") ? "epoll" : "poll";
	if (backend[0] == 'u')
		return weft__fail(WEFT_ENOSYS, "weft_poller_open: a poller cannot use "
		                               "io_uring; choose epoll or poll");
	poller = weft__alloc_zero(sizeof(*poller));
	if (!poller)
		return weft__fail(WEFT_ENOMEM, "weft_poller_open: out of memory");
	poller->backend.counters = &poller->counters;
	rc = weft__backend_open(&poller->backend, backend, true);
	if (rc < 0) {
		weft__sys->release(poller);
		return weft__fail(rc,
		                  "weft_poller_open: the backend cannot be opened on this system");
	}
	*out = poller;
	return 0;
}

void
weft_poller_close(weft_poller *poller)
{
	if (!poller)
		return;
	weft__backend_close(&poller->backend);
	weft__sys->release(poller);
}

static struct weft__fd *
poller_find(weft_poller *poller, int fd)
{
	struct weft__fd *entry = fd < 0 ? NULL : weft__fds_get(&poller->backend.fds, fd);

	return entry && entry->waiter[EVENTS] ? entry : NULL;
}

/* Make the kernel report `events`; with 0 the kernel reports nothing. */
static int
arm(weft_poller *poller, int fd, struct weft__fd *entry, uint32_t events)
{
	struct weft__backend *backend = &poller->backend;
	uint32_t want = events & BOTH ? events & (BOTH | WEFT_EDGE) : 0;
	int rc = backend->ops->arm(backend, fd, entry, want);
	bool file;

	if (rc == -ENOENT) { /* the number now refers to another file */
		(void)backend->ops->arm(backend, fd, entry, 0);
		entry->armed = 0;
		entry->generation++;
		rc = backend->ops->arm(backend, fd, entry, want);
	}
	file = rc == -EPERM;
	if (rc < 0 && !file)
		return weft__fail(rc, "weft_poller: the kernel rejected the descriptor");
	backend->always += (uint32_t)file - !!(entry->flags & WEFT__FD_ALWAYS);
	entry->flags = file ? WEFT__FD_ALWAYS : 0;
	entry->armed = (uint16_t)(file ? 0 : want);
	if (!entry->armed)
		weft__fd_identify(backend, fd, entry);
	return 0;
}

/* Whether the number was closed without weft_poller_remove() and now refers to another file. */
static bool
is_stale(weft_poller *poller, int fd, struct weft__fd *entry)
{
	struct weft__backend *backend = &poller->backend;
	int rc;

	if (!entry->armed)
		return weft__fd_is_other(backend, fd, entry);
	rc = backend->ops->arm(backend, fd, entry, entry->armed);
	return rc == -ENOENT || rc == -EBADF;
}

int
weft_poller_add(weft_poller *poller, int fd, uint32_t events, uint64_t token)
{
	struct weft__fd *entry;
	int rc;

	if (!poller || (events & ~KNOWN))
		return weft__misuse(WEFT_EINVAL,
		                    "weft_poller_add: poller is NULL, or events has unknown bits");
	if (fd < 0 || weft__kernel(&poller->backend)->kind(fd) < 0)
		return weft__fail(WEFT_EBADF, "weft_poller_add: bad descriptor");
	entry = weft__fds_make(&poller->backend.fds, fd);
	if (!entry)
		return weft__fail(WEFT_ENOMEM, "weft_poller_add: out of memory");
	if (entry->waiter[EVENTS] && !is_stale(poller, fd, entry))
		return weft__fail(WEFT_EEXIST,
		                  "weft_poller_add: the descriptor is already registered");
	entry->generation++;
	rc = arm(poller, fd, entry, events);
	if (rc < 0)
		return rc;
	entry->waiter[EVENTS] = events | REGISTERED;
	entry->waiter[TOKEN] = token;
	return 0;
}

int
weft_poller_modify(weft_poller *poller, int fd, uint32_t events, uint64_t token)
{
	struct weft__fd *entry;
	int rc;

	if (!poller || (events & ~KNOWN))
		return weft__misuse(
			WEFT_EINVAL,
			"weft_poller_modify: poller is NULL, or events has unknown bits");
	entry = poller_find(poller, fd);
	if (!entry)
		return weft__fail(WEFT_ENOENT,
		                  "weft_poller_modify: the descriptor is not registered");
	rc = arm(poller, fd, entry, events);
	if (rc < 0)
		return rc;
	entry->waiter[EVENTS] = events | REGISTERED;
	entry->waiter[TOKEN] = token;
	return 0;
}

int
weft_poller_remove(weft_poller *poller, int fd)
{
	struct weft__fd *entry = poller ? poller_find(poller, fd) : NULL;

	if (!entry)
		return weft__fail(WEFT_ENOENT,
		                  "weft_poller_remove: the descriptor is not registered");
	(void)arm(poller, fd, entry, 0);
	entry->generation++;
	entry->waiter[EVENTS] = entry->waiter[TOKEN] = 0;
	return 0;
}

/* Convert the fetched events; returns how many were written to `out`. */
static int
collect(weft_poller *poller, weft_poller_event *out)
{
	struct weft__backend *backend = &poller->backend;
	int count = 0;

	for (uint32_t i = 0; i < backend->events_count; i++) {
		struct weft__event *event = &backend->events[i];
		struct weft__fd *entry = poller_find(poller, event->fd);
		uint32_t wanted, ready;

		if (!entry || entry->generation != event->generation)
			continue;
		wanted = (uint32_t)entry->waiter[EVENTS] & BOTH;
		ready = wanted ? event->ready & (wanted | ALARMS) : 0;
		if (ready)
			out[count++] = (weft_poller_event){ entry->waiter[TOKEN], ready };
		else if (!wanted || !(entry->armed & WEFT_EDGE))
			(void)arm(poller, event->fd, entry, wanted); /* else it would spin */
	}
	backend->events_count = 0;
	return count;
}

int
weft_poller_wait(weft_poller *poller, weft_poller_event *events, size_t max, uint64_t deadline_ns)
{
	struct weft__backend *backend;
	int rc;

	if (!poller || !events || max == 0)
		return weft__misuse(WEFT_EINVAL,
		                    "weft_poller_wait: poller or events is NULL, or max is 0");
	backend = &poller->backend;
	backend->events_max = max < WEFT__EVENTS_MAX ? (uint32_t)max : WEFT__EVENTS_MAX;
	if (backend->always > 0)
		weft__ready_note_files(backend);
	rc = backend->events_count >= backend->events_max
	             ? 0
	             : backend->ops->wait(backend, backend->events_count > 0
	                                                   ? 0
	                                                   : weft__timeout_of(deadline_ns));
	return rc < 0 ? weft__fail(rc, "weft_poller_wait: the system call failed")
	              : collect(poller, events);
}

void
weft_poller_wake(weft_poller *poller)
{
	if (poller)
		poller->backend.ops->wake(&poller->backend);
}
