/* slots.h - memory for posted calls, cached by the threads that post.
 *
 * Needs: inbox.h.  Thread: any.
 */
#ifndef WEFT_LOOP_SLOTS_H
#define WEFT_LOOP_SLOTS_H

#include "loop/inbox.h"

/* A node of `kind` for one post, the calling thread's until it is pushed; NULL if
 * the inbox is full or there is no memory.  The last one got, if it was not accepted,
 * goes back. */
struct weft__node *weft__slot_get(struct weft__inbox *inbox, uint32_t kind);
void               weft__slot_put_back(struct weft__node *node);

/* The loop has read a node that is a slot; in the order of the posts of its kind. */
void weft__slot_done(struct weft__node *node);

/* The inbox ends: its rings go now, or with the threads that still know them. */
void weft__slots_give_up(struct weft__inbox *inbox);

#endif
