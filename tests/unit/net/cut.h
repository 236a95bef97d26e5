/* cut.h - transfers that are cut short, or would block although it was said they would not.
 *
 * A sys table that does so to the two ends of a stream.  It tells nothing that no kernel
 * would:
 *
 *   1. Of TCP a receive that brings less than was asked for means that nothing is left: so
 *      one that was cut is followed by news, as of bytes that have just come.  Elsewhere
 *      it means nothing, and no news follow.
 *   2. What is said to block would not, and news of that follow.  Not so if poll(2) does not
 *      say it: a Unix socket takes bytes long before it asks for them.
 *   3. News are told to epoll, by asking it once more for what it was asked for; poll(2)
 *      looks by itself.
 *   4. A request of io_uring is made shorter before the kernel takes it, and so are the
 *      buffers for those who receive again and again.  One that would block is not made,
 *      and its completion says so: then it is waited for, by epoll.
 *
 * One loop at a time, with one thread.
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

/* From now on, by chances that the seed of the run makes, which is printed; until the
 * end. */
void cut_begin(enum cut how);
void cut_end(void);

/* These are the two ends; `drains`: rule 1. */
void cut_ends(int a, int b, bool drains);

uint32_t cut_chance(void);

/* --- between the files --------------------------------------------------- */

bool   cut_is_end(int fd);
bool   cut_is_to_bytes(void);
size_t cut_size(size_t size);

/* Is the next call for that end, which waits for `event` of poll(2), to say that it would
 * block? */
bool cut_blocks(int fd, int event);

/* cut_ring.c: the calls of io_uring. */
void cut_wrap_ring(struct weft__sys *table);

#endif
