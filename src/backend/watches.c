/* watches.c - watches on descriptors, and on files, which are always ready. */
#include "backend/ready.h"

#define WATCH_EVENTS (WEFT__BOTH | WEFT_EDGE)

/* Files are reported at every wait, which therefore never blocks. */
static void
set_always(struct weft__backend *backend, struct weft__fd *entry, bool on)
{
	backend->always += (uint32_t)on - !!(entry->flags & WEFT__FD_ALWAYS);
	entry->flags = (uint16_t)((entry->flags & ~WEFT__FD_ALWAYS) | (on ? WEFT__FD_ALWAYS : 0));
}

void
weft__ready_note_files(struct weft__backend *backend)
{
	uint32_t left = backend->always;

	for (uint32_t fd = 0; left > 0 && fd < backend->fds.count * WEFT__FDS_PAGE; fd++) {
		struct weft__fd *entry = weft__fds_get(&backend->fds, (int)fd);

		if (!entry || !(entry->flags & WEFT__FD_ALWAYS))
			continue;
		left--;
		weft__ready_note(backend, (int)fd, entry->generation,
		                 weft__fd_is_other(backend, (int)fd, entry)
		                         ? WEFT_EV_ERROR | WEFT__GONE
		                         : WEFT__BOTH);
	}
}

/* The directions that a watch takes.  A muted watch keeps its directions, or takes one so that
 * it can be found. */
static uint32_t
watch_directions(const struct weft__fd *entry, uintptr_t who, uint32_t events)
{
	if (events & WEFT__BOTH)
		return events & WEFT__BOTH;
	if (entry->waiter[0] == who || entry->waiter[1] == who)
		return (entry->waiter[0] == who ? WEFT_READABLE : 0)
		       | (entry->waiter[1] == who ? WEFT_WRITABLE : 0);
	return entry->waiter[0] ? WEFT_WRITABLE : WEFT_READABLE;
}

/* A watch could not be changed: restore the entry, except for other waiters that were evicted in
 * the meantime, and for what an eviction has disarmed. */
static void
restore(struct weft__backend *backend, struct weft__fd *entry, const struct weft__fd *old,
        uintptr_t who)
{
	bool evicted = (old->waiter[0] && old->waiter[0] != who && !entry->waiter[0])
	               || (old->waiter[1] && old->waiter[1] != who && !entry->waiter[1]);
	struct weft__fd was = *old;

	for (int direction = 0; evicted && direction < 2; direction++)
		if (was.waiter[direction] != who)
			was.waiter[direction] = 0;
	if (evicted || (old->armed && !entry->armed)) {
		was.armed = was.flags = 0;
		was.generation = entry->generation;
	}
	if (weft__fd_is_idle(entry) && !weft__fd_is_idle(&was))
		weft__fds_count_used(backend, 1);
	*entry = was;
}

int
weft__ready_watch(struct weft__backend *backend, weft_watch *watch, int fd, uint32_t events)
{
	struct weft__fd *entry = weft__fds_make(&backend->fds, fd);
	uintptr_t who = (uintptr_t)watch | WEFT__IS_WATCH;
	uint32_t before = watch->flags, directions;
	struct weft__fd old;
	int rc = 0;

	if (!entry || backend->broken)
		return entry ? backend->broken : WEFT_ENOMEM;
	directions = watch_directions(entry, who, events);
	if (weft__ready_claim(backend, fd, directions, who) < 0)
		return WEFT_EBUSY;
	old = *entry;
	weft__directions_leave(backend, entry, who);
	watch->flags = (before & ~(uint32_t)WATCH_EVENTS) | (events & WATCH_EVENTS);
	weft__directions_take(backend, entry, directions, who);
	if (events & WEFT__BOTH)
		rc = weft__directions_arm(backend, fd, entry, who);
	if (rc < 0 && rc != -EPERM) {
		watch->flags = before;
		weft__directions_leave(backend, entry, who);
		restore(backend, entry, &old, who);
		return rc;
	}
	set_always(backend, entry, rc == -EPERM); /* EPERM: a file, nothing to wait for */
	if (!entry->armed)
		weft__fd_identify(backend, fd, entry);
	return 0;
}

void
weft__ready_unwatch(struct weft__backend *backend, weft_watch *watch)
{
	struct weft__fd *entry = weft__fds_get(&backend->fds, watch->id);

	weft__directions_leave(backend, entry, (uintptr_t)watch | WEFT__IS_WATCH);
	set_always(backend, entry, false);
	if (!backend->ops->edge)
		(void)weft__directions_arm(backend, watch->id, entry, 0);
}

void
weft__watch_queue_end(struct weft__backend *backend, weft_watch *watch, int why)
{
	watch->token = WEFT__WATCH_STARTED | WEFT__WATCH_ENDED | (uint64_t)(uint32_t)why << 32;
	watch->spare = (uint64_t)(uintptr_t)backend->ended;
	backend->ended = watch;
}

void
weft__watch_evict(struct weft__backend *backend, weft_watch *watch, int why)
{
	weft__ready_unwatch(backend, watch);
	weft__watch_queue_end(backend, watch, why);
}
