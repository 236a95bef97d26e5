/* mailbox.h - letters from any thread to a loop.
 *
 * A mailbox is part of an object that belongs to a loop.  Any thread posts letters, which are
 * parts of objects of its own: posting allocates nothing.  One internal node announces all
 * letters, so posting to a mailbox that is not empty touches neither the loop nor its inbox.  The
 * loop calls `take` with each letter, in the order of posting.
 *
 * Needs: inbox.h.  Thread: any for weft__mailbox_post(), _add(), _announce() and _is_due(); the
 * loop's for the rest.
 */
#ifndef WEFT_LOOP_MAILBOX_H
#define WEFT_LOOP_MAILBOX_H

#include "base/node.h"

/* States of a mailbox without letters, instead of a pointer. */
#define WEFT__MAILBOX_EMPTY    ((uintptr_t)0)
#define WEFT__MAILBOX_EXPECTED ((uintptr_t)1) /* the node is on its way */
#define WEFT__MAILBOX_CLOSED   ((uintptr_t)2)

struct weft__letter {
	struct weft__letter *next; /* while posted the next older one, once taken the next newer */
};

struct weft__mailbox {
	weft__aptr head; /* newest letter, or WEFT__MAILBOX_* */
	weft_loop *loop;
	/* Called with each letter, which may be freed or posted again from then on. */
	void     (*take)(struct weft__mailbox *box, struct weft__letter *letter);
	struct weft__letter *taken;  /* the loop's: oldest first, not given to `take` yet */
	struct weft__node_head node; /* announces the letters */
};

static inline void
weft__mailbox_init(struct weft__mailbox *box, weft_loop *loop,
                   void (*take)(struct weft__mailbox *box, struct weft__letter *letter))
{
	*box = (struct weft__mailbox){ .loop = loop, .take = take };
}

/* Post a letter.  False: the mailbox is closed, and the letter stays the caller's.
 * The caller makes sure that the loop exists until the call returns. */
bool weft__mailbox_post(struct weft__mailbox *box, struct weft__letter *letter);

/* Take the letters that are there now, before the node arrives.  `take` may call this function,
 * too: when it returns, no letter that was posted before the call is left. */
void weft__mailbox_drain_now(struct weft__mailbox *box);

static inline void
weft__mailbox_drain(struct weft__mailbox *box)
{
	if (box->taken || weft__load(&box->head, WEFT__RELAXED) > WEFT__MAILBOX_CLOSED)
		weft__mailbox_drain_now(box);
}

/* Refuse letters from now on.  Returns those that were not taken, oldest first. */
struct weft__letter *weft__mailbox_close(struct weft__mailbox *box);

/* There are letters, or the node is on its way.  While this is true the loop must not end, and
 * the mailbox must not be freed. */
static inline bool
weft__mailbox_is_due(const struct weft__mailbox *box)
{
	return weft__load(&box->head, WEFT__RELAXED) != WEFT__MAILBOX_EMPTY;
}

/* The two halves of posting, for callers that hold a lock, and for models.  _add(): 1 if the
 * caller has to announce the letter, 0 if the node is on its way, WEFT_ESHUTDOWN if the mailbox is
 * closed.  _announce(): send the node; it may wake the loop.  _arrive(): the node has arrived. */
int  weft__mailbox_add(struct weft__mailbox *box, struct weft__letter *letter);
void weft__mailbox_announce(struct weft__mailbox *box);
void weft__mailbox_arrive(void *box);

#endif
