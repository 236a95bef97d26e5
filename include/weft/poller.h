/* weft/poller.h - readiness of many descriptors, without a loop.
 *
 * For programs that own their loop and want only this.  Not needed, and not to
 * be mixed, with a weft_loop.  One thread at a time.
 */
#ifndef WEFT_POLLER_H
#define WEFT_POLLER_H

#include <weft/base.h>

WEFT_BEGIN

typedef struct weft_poller weft_poller;

typedef struct weft_poller_event {
	uint64_t token;  /* as given to add */
	uint32_t events; /* WEFT_READABLE, WRITABLE, ERROR, HUP */
} weft_poller_event;

/* Open a poller on `backend` ("epoll", "poll"; NULL: the best).  There is none on
 * io_uring, by which readiness gains nothing.
 * Returns 0 and fills `out`, WEFT_EINVAL for an unknown name, WEFT_ENOSYS,
 * WEFT_ENOMEM.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_open(const char *backend, weft_poller **out);

/* Close it; takes it, accepts NULL.  Descriptors stay open.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_poller_close(weft_poller *poller);

/* Watch `fd` for `events`, reported with `token`.  Borrows `fd` until removed.
 * A number that was closed without weft_poller_remove() and stands for another file may be
 * added again.
 * Returns 0, WEFT_EEXIST if it is there, WEFT_EBADF, WEFT_EINVAL, WEFT_ENOMEM.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_add(weft_poller *poller, int fd, uint32_t events,
                             uint64_t token);

/* Change events and token of `fd`; events 0 mutes it, HUP and ERROR included.
 * Returns 0, WEFT_ENOENT, WEFT_EINVAL.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_modify(weft_poller *poller, int fd, uint32_t events,
                                uint64_t token);

/* Forget `fd`; nothing is reported for it afterwards.
 * Returns 0, WEFT_ENOENT.
 * Thread: its own.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_poller_remove(weft_poller *poller, int fd);

/* Block until something is ready or the deadline; fill at most `max` events,
 * one per descriptor, level-triggered unless WEFT_EDGE was asked for.
 * Returns the count, 0 at the deadline or when woken.
 * Thread: its own.  Blocks: the thread.  Since: 0.1. */
WEFT_API int weft_poller_wait(weft_poller *poller, weft_poller_event *events,
                              size_t max, uint64_t deadline_ns);

/* Make the present or next wait return.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API void weft_poller_wake(weft_poller *poller);

WEFT_END
#endif
