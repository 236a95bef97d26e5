/* weft/poller.h - readiness of many descriptors, without a loop.
 *
 * A poller is for programs that have their own event loop and need only readiness; weft/weft.h
 * does not include it.  A program with a weft_loop does not need a poller, and should not use
 * both.
 */
#ifndef WEFT_POLLER_H
#define WEFT_POLLER_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_poller weft_poller;

typedef struct weft_poller_event {
	uint64_t token;  /* as passed to weft_poller_add() */
	uint32_t events; /* WEFT_READABLE, WEFT_WRITABLE, WEFT_EV_ERROR, WEFT_EV_HUP */
} weft_poller_event;

/* Open a poller on `backend` ("epoll", "poll"; NULL: the best).  There is no io_uring poller:
 * io_uring does not make readiness faster.
 * Returns 0 and fills `out`, WEFT_EINVAL for an unknown name, WEFT_ENOSYS, WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_open(const char *backend, weft_poller **out);

/* Close a poller.  Takes it; accepts NULL.  The watched descriptors stay open.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_poller_close(weft_poller *poller);

/* Watch `fd` for `events`, reported with `token`.  Borrows `fd` until weft_poller_remove().  A
 * number that was closed without weft_poller_remove(), and now refers to another file, may be
 * added again.
 * Returns 0, WEFT_EEXIST if it is already watched, WEFT_EBADF, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_add(weft_poller *poller, int fd, uint32_t events,
                             uint64_t token);

/* Change the events and the token of `fd`.  Events 0 mute `fd`: not even WEFT_EV_ERROR and
 * WEFT_EV_HUP are reported.
 * Returns 0, WEFT_ENOENT, WEFT_EINVAL.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_modify(weft_poller *poller, int fd, uint32_t events,
                                uint64_t token);

/* Stop watching `fd`; no event is reported for it after that.
 * Returns 0, WEFT_ENOENT.
 * Thread: one at a time.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_remove(weft_poller *poller, int fd);

/* Block until a descriptor is ready or the deadline passes; fill at most `max` events, one per
 * descriptor, level-triggered unless requested with WEFT_EDGE.
 * Returns the count, 0 at the deadline or when woken.
 * Thread: one at a time.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_poller_wait(weft_poller *poller, weft_poller_event *events,
                              size_t max, uint64_t deadline_ns);

/* Make the current wait return, or else the next one.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_poller_wake(weft_poller *poller);

WEFT_END
#endif
