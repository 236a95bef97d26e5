/* cut.h - transfers that are cut short, or report EAGAIN although they would not block.
 *
 * A sys table that does this to the two ends of a stream.  It does nothing that a real kernel
 * could not do:
 *
 *   1. On TCP, a receive that returns less than requested means that the socket is empty.  So
 *      after a shortened receive a readiness event follows, as if bytes had just arrived.  On
 *      other kinds a short receive means nothing, and no event follows.
 *   2. A call reports EAGAIN only if it would not block, and a readiness event follows.  So
 *      poll(2) must report the end ready first: a Unix socket accepts bytes long before poll(2)
 *      reports it writable.
 *   3. To cause a readiness event, the last epoll_ctl(2) for the end is repeated.  With poll(2)
 *      nothing is needed: it checks the state on every call.
 *   4. An io_uring request is shortened before the kernel takes it, and so are the provided
 *      buffers of multishot receives.  A request that is to report EAGAIN is replaced by a
 *      no-op whose completion reports EAGAIN.  The backend then waits with epoll.
 *
 * Supports one loop at a time, on one thread.
 */
#ifndef WEFT_TESTS_CUT_H
#define WEFT_TESTS_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__sys;

enum cut {
	CUT_NOT,
	CUT_BY_CHANCE,
	CUT_TO_BYTES,
};

/* Starts cutting; cut_end() stops it.  The random choices follow from the seed of the run,
 * which is printed. */
void cut_begin(enum cut how);
void cut_end(void);

/* Sets the two ends that are cut.  `drains`: rule 1 applies. */
void cut_ends(int a, int b, bool drains);

uint32_t cut_chance(void);

/* --- shared by cut.c and cut_ring.c -------------------------------------- */

bool   cut_is_end(int fd);
bool   cut_is_to_bytes(void);
size_t cut_size(size_t size);

/* Decides whether the next call for this end reports EAGAIN.  `event` is the poll(2) event that
 * the call depends on. */
bool cut_blocks(int fd, int event);

/* cut_ring.c: replaces the io_uring calls in the table. */
void cut_wrap_ring(struct weft__sys *table);

#endif
