/* notice.h - interrupts from any thread, for objects that belong to a loop.
 *
 * An object embeds a weft__notice, its interrupt flag.  A thread that interrupts the object
 * marks the notice and posts its letter to a mailbox of the loop.
 *
 *   1. A notice without a loop is only marked.  The sender sets the mark before it reads the
 *      loop; the owner stores the loop before it reads the mark (I, S).
 *   2. The lock protects `loop` and `posted`: a letter is posted at most once, and only to the
 *      loop that the notice is bound to.  A thread that posts holds the lock, so the notice stays
 *      bound, and the loop exists, until the post is complete.
 *   3. The wait that ends with WEFT_EINTR clears the mark.  It is the current wait or the next.
 *
 * Needs: loop.  Thread: the loop's, except for weft__notice_send().
 */
#ifndef WEFT_NET_NOTICE_H
#define WEFT_NET_NOTICE_H

#include "base/lock.h"
#include "loop/access.h"
#include "loop/mailbox.h"

struct weft__notice {
	weft__aptr loop;  /* a weft_loop, or 0 */
	weft__a32  mark;  /* 1: interrupted */
	weft__a32  forks; /* fork count of its loop */
	struct weft__lock lock;
	bool       posted; /* `letter` is in the loop's mailbox */
	struct weft__letter letter;
	/* Called on the loop's thread: end the current wait, if there is one. */
	void     (*tell)(struct weft__notice *notice);
};

/* A letter of the mailbox of the loop's streams has arrived. */
void weft__on_notice(struct weft__mailbox *box, struct weft__letter *letter);

/* Bind it to `loop`, whose streams have a mailbox. */
void weft__notice_settle(struct weft__notice *notice, weft_loop *loop);

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
