/* fds.h - the state that a loop keeps per descriptor, by number.
 *
 * Entries are in pages that are allocated on first use and freed with the backend, so an entry
 * never moves and high numbers cost little.
 *
 * Needs: base.  Owned by: one backend.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_FDS_H
#define WEFT_BACKEND_FDS_H

#include "base/sys.h"

enum { WEFT__DIRECTION_READ, WEFT__DIRECTION_WRITE };

/* Flags of an entry. */
enum {
	WEFT__FD_OWNED = 1 << 0,     /* owned by the loop until it is closed or forgotten: what
	                                the kernel has armed is known to be valid */
	WEFT__FD_ALWAYS = 1 << 1,    /* a watched file: always ready */
	WEFT__FD_MAY_READ = 1 << 2,  /* edge backends: worth a try, because the last */
	WEFT__FD_MAY_WRITE = 1 << 3, /* edge was not used up */
	WEFT__FD_CLOSING = 1 << 5,   /* a close op waits until there are no waiters */
	WEFT__FD_BLOCKING = 1 << 6,  /* made blocking, for io_uring */
	WEFT__FD_STREAM = 1 << 4, /* a short read means that no data is left; not so for Unix
	                             sockets, where a passed descriptor ends a receive */
	WEFT__FD_PLAIN = 1 << 7,  /* not a socket: read(2) and write(2) */
	WEFT__FD_UNBLOCKED = 1 << 9, /* made non-blocking, for sendfile(2) */
	WEFT__FD_RECEIVES_FDS = 1 << 8, /* a Unix socket that receives descriptors */
};

/* waiter[]: the waiter of each direction, an op, or a watch if the lowest bit is set; 0: none. */
struct weft__fd {
	uintptr_t waiter[2];
	uint32_t  generation; /* events of an earlier generation are dropped */
	uint16_t  armed;      /* WEFT_READABLE, WRITABLE, EDGE as registered */
	uint16_t  flags;
	uint32_t  index;      /* for the backend's use */
	uint32_t  identity;   /* of the file, for waiters that have nothing armed, and with poll for
	                       * all; 0: unknown */
};

struct weft__fds {
	struct weft__fd **pages;
	uint32_t          count; /* number of pages */
	uint32_t          in_use; /* entries with a waiter */
};

#define WEFT__FDS_PAGE 128u

/* The entry of `fd`, or NULL if there is none. */
static inline struct weft__fd *
weft__fds_get(const struct weft__fds *fds, int fd)
{
	uint32_t page = (uint32_t)fd / WEFT__FDS_PAGE;

	if (page >= fds->count || !fds->pages[page])
		return NULL;
	return &fds->pages[page][(uint32_t)fd % WEFT__FDS_PAGE];
}

/* The entry of `fd`, created if needed; NULL without memory. */
struct weft__fd *weft__fds_make(struct weft__fds *fds, int fd);

void weft__fds_fini(struct weft__fds *fds);

#endif
