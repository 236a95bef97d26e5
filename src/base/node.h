/* node.h - a call to be made later, in somebody's memory, and lists of them.
 *
 * Needs: atomic.h.  Thread: a list has one.
 */
#ifndef WEFT_BASE_NODE_H
#define WEFT_BASE_NODE_H

#include <weft/base.h>
#include "base/atomic.h"

/* Laid out as weft_node, whose opaque words it names. */
struct weft__node {
	weft_fn            fn;
	void              *arg;
	struct weft__node *next;
	weft__a32          state; /* WEFT__NODE_*: 0 when not queued */
	uint32_t           kind;  /* WEFT__NODE_*; written by its pusher */
	uint64_t           before; /* number of the call it comes before; lane.c */
	uint64_t           spare;
};
WEFT_STATIC_ASSERT(sizeof(struct weft__node) == sizeof(weft_node), "one layout");

/* The part of a node that the inbox needs; for those that are part of something. */
struct weft__node_head {
	weft_fn            fn;
	void              *arg;
	struct weft__node *next;
	weft__a32          state;
	uint32_t           kind;
};
WEFT_STATIC_ASSERT(sizeof(struct weft__node_head) == offsetof(struct weft__node, before),
                   "a head is the beginning of a node");

enum {
	WEFT__NODE_QUEUED = 1, /* state */
	WEFT__NODE_SPENT = 2,  /* state of a wake that is queued and has ended a wait */

	WEFT__NODE_FIRST = 1,  /* kind: ahead of all other posts */
	WEFT__NODE_LANE = 2,   /* kind: calls for a lane, and not a caller's */
	WEFT__NODE_OWN = 8,    /* kind: the library's, not a post */
	WEFT__NODE_KEEP = 4,   /* kind: its state is changed by its users only */
};

/* Turn a chain around: from newest first to oldest first. */
static inline struct weft__node *
weft__node_turn(struct weft__node *node)
{
	struct weft__node *turned = NULL;

	while (node) {
		struct weft__node *older = weft__get(node->next);

		weft__put(node->next, turned);
		turned = node;
		node = older;
	}
	return turned;
}

/* Nodes taken, in order. */
struct weft__node_list {
	struct weft__node *first, **end; /* end: NULL stands for &first */
};

/* Move all nodes of a list, which has some, to the end of another. */
static inline void
weft__node_move(struct weft__node_list *from, struct weft__node_list *to)
{
	if (!to->end)
		to->end = &to->first;
	*to->end = from->first;
	to->end = from->end;
	*from = (struct weft__node_list){ 0 };
}

/* Take a node out of a list, wherever it stands. */
static inline void
weft__node_remove(struct weft__node_list *list, const struct weft__node *node)
{
	struct weft__node **link = &list->first;

	while (*link && *link != node)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = node->next;
	if (!*link)
		list->end = link;
}

/* Add a node to the end of a list. */
static inline void
weft__node_append(struct weft__node_list *list, struct weft__node *node)
{
	weft__put(node->next, NULL);
	if (!list->end)
		list->end = &list->first;
	*list->end = node;
	list->end = &node->next;
}

#endif
