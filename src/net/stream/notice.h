/* notice.h - interrupts from any thread, for objects that belong to a loop.
 *
 * An object embeds a weft__notice, its interrupt flag.  A thread that interrupts the object
 * marks the notice and adds it to the list of its loop.  One internal node of the loop
 * announces the whole list, so objects may come and go while the node is queued.
 *
 *   1. A notice without a loop is only marked.  The sender sets the mark before it reads the
 *      loop; the owner stores the loop before it reads the mark (I, S).
 *   2. A notice is listed at most once.  The lock of the loop's list protects the list and the
 *      removal of a notice from its loop, so every listed notice belongs to that loop.  A
 *      thread that lists a notice holds the notice's own lock.  A notice joins and leaves a
 *      loop under that lock, so the loop exists meanwhile.
 *   3. The wait that ends with WEFT_EINTR clears the mark.  It is the current wait or the next.
 *
 * Needs: loop.  Thread: the loop's, except for weft__notice_send().
 */
#ifndef WEFT_NET_NOTICE_H
#define WEFT_NET_NOTICE_H

#include "base/lock.h"
#include "loop/loop.h"

struct weft__notice {
	weft__aptr loop;  /* a weft_loop, or 0 */
	weft__a32  mark;  /* 1: interrupted */
	weft__a32  forks; /* fork count of its loop */
	struct weft__lock lock; /* taken before that of the loop's list */
	struct weft__notice *next;
	struct weft__notice **link; /* the pointer to this notice in the list; NULL: not listed */
	/* Called on the loop's thread: end the current wait, if there is one. */
	void     (*tell)(struct weft__notice *notice);
};

/* Bind it to `loop`.  Returns 0 or WEFT_ENOMEM. */
int  weft__notice_settle(struct weft__notice *notice, weft_loop *loop);

/* Unbind it: the object is freed or leaves its loop. */
void weft__notice_drop(struct weft__notice *notice);

/* Interrupt the object.  Thread: any. */
void weft__notice_send(struct weft__notice *notice);

/* Test and clear the mark. */
static inline bool
weft__notice_take(struct weft__notice *notice)
{
	return weft__load(&notice->mark, WEFT__SEQ_CST) /* I */
	       && weft__exchange(&notice->mark, 0, WEFT__RELAXED);
}

static inline bool
weft__notice_is_marked(struct weft__notice *notice)
{
	return weft__load(&notice->mark, WEFT__RELAXED);
}

static inline weft_loop *
weft__notice_loop(const struct weft__notice *notice)
{
	return (weft_loop *)weft__load(&notice->loop, WEFT__RELAXED);
}

#endif
