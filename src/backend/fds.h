/* fds.h - what a loop knows of each descriptor, by its number.
 *
 * Pages of entries, made at first need and kept, so that an entry stays put and
 * high numbers cost little.  A page that is made again begins with generations that
 * were never used, so that what the kernel still tells of an old one is not taken for
 * the new.
 *
 * Needs: base.  Owned by: one backend.  Thread: the loop's.
 */
#ifndef WEFT_BACKEND_FDS_H
#define WEFT_BACKEND_FDS_H

#include "base/sys.h"

enum { WEFT__READ_SIDE, WEFT__WRITE_SIDE };

/* Flags of an entry. */
enum {
	WEFT__FD_OWNED = 1 << 0,     /* ours until weft_op_close(): what the kernel
	                                was told is still true */
	WEFT__FD_ALWAYS = 1 << 1,    /* a watched file: never waited for */
	WEFT__FD_MAY_READ = 1 << 2,  /* edge backends: worth a try, the last edge is */
	WEFT__FD_MAY_WRITE = 1 << 3, /* not used up */
	WEFT__FD_CLOSING = 1 << 5,   /* a close waits for the last to leave */
	WEFT__FD_BLOCKING = 1 << 6,  /* made so, for io_uring */
	WEFT__FD_STREAM = 1 << 4, /* fewer bytes than asked for means: no more there; not so of
	                             Unix sockets, where a descriptor ends a receive */
	WEFT__FD_PLAIN = 1 << 7,  /* no socket: read(2) and write(2) */
	WEFT__FD_UNBLOCKED = 1 << 9, /* made non-blocking, for sendfile(2) */
	WEFT__FD_PASSES = 1 << 8, /* a Unix socket that takes descriptors */
};

/* Who waits: an op, or a watch if the lowest bit is set; 0: nobody. */
struct weft__fd {
	uintptr_t side[2];
	uint32_t  generation; /* of the number: events of an earlier one are dropped */
	uint16_t  armed;      /* WEFT_READABLE, WRITABLE, EDGE as the kernel has it */
	uint16_t  flags;
	uint32_t  index;      /* the backend's */
	uint32_t  identity;   /* of the file, for waiters who have nothing armed, and on poll
	                       * for all; 0: not known */
};

struct weft__fds {
	struct weft__fd **pages;
	uint32_t          count; /* of pages */
	uint32_t          in_use; /* entries with somebody waiting */
	uint32_t          generation; /* entries of new pages begin with it */
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

/* The entry of `fd`, made if need be; NULL without memory. */
struct weft__fd *weft__fds_make(struct weft__fds *fds, int fd);

/* Give back pages that hold nothing; returns the bytes. */
size_t weft__fds_trim(struct weft__fds *fds);

void weft__fds_fini(struct weft__fds *fds);

#endif
