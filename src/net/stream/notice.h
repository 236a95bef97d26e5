/* notice.h - interrupts from any thread, for what belongs to a loop.
 *
 * An object embeds a notice.  Whoever interrupts it marks the notice and lists it with
 * its loop, which is then told by one node of its own: so objects come and go while the
 * node is on its way.
 *
 *   1. A notice that has no loop is only marked: the mark is set before the loop is looked
 *      for, and the loop is set before the mark is looked for (I, S).
 *   2. A notice is listed at most once; the list is under the lock of the loop's notices,
 *      and so is leaving the loop: what is listed there belongs to it.
 *      Whoever lists it holds the notice's own lock, under which it comes to a loop and
 *      leaves it: so the loop is there as long.
 *   3. The mark is taken by the wait that ends with WEFT_EINTR, present or next.
 *
 * Needs: loop.  Thread: the loop's, but for weft__notice_send().
 */
#ifndef WEFT_NET_NOTICE_H
#define WEFT_NET_NOTICE_H

#include "base/lock.h"
#include "loop/loop.h"

struct weft__notice {
	weft__aptr loop;  /* a weft_loop, or 0 */
	weft__a32  mark;  /* 1: interrupted */
	weft__a32  forks; /* of its loop */
	struct weft__lock lock; /* taken before the loop's */
	struct weft__notice *next;
	struct weft__notice **link; /* what points to it; NULL: it is not listed */
	/* Called on the loop's thread: if somebody waits, ask him. */
	void     (*tell)(struct weft__notice *notice);
};

/* It belongs to `loop` from now on.  0, or WEFT_ENOMEM. */
int  weft__notice_settle(struct weft__notice *notice, weft_loop *loop);

/* It ends, or leaves its loop: it has none. */
void weft__notice_drop(struct weft__notice *notice);

/* Interrupt it.  Thread: any. */
void weft__notice_send(struct weft__notice *notice);

/* Was it interrupted?  Takes the mark. */
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
