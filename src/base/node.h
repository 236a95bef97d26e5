/* node.h - a deferred call in its caller's memory, and lists of such calls.
 *
 * Needs: atomic.h.  Thread: a list belongs to one thread.
 */
#ifndef WEFT_BASE_NODE_H
#define WEFT_BASE_NODE_H

#include <weft/base.h>
#include "base/atomic.h"

/* Same layout as weft_node; names its opaque words. */
struct weft__node {
	weft_fn            fn;
	void              *arg;
	struct weft__node *next;
	weft__a32          state; /* WEFT__NODE_*: 0 when not queued */
	uint32_t           kind;  /* WEFT__NODE_*; written by the thread that pushes the node */
	uint64_t           before; /* index of the queued call it precedes; see producer.c */
	uint64_t           spare;
};
WEFT_STATIC_ASSERT(sizeof(struct weft__node) == sizeof(weft_node), "one layout");

/* The part of a node that the inbox uses, for nodes embedded in other objects. */
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
	WEFT__NODE_SPENT = 2,  /* state of the wake node: queued, and has already ended a wait */

	WEFT__NODE_FIRST = 1,  /* kind: one of the library's own, which runs before all posts */
	WEFT__NODE_PRODUCER = 2, /* kind: announces calls in a producer queue, not a caller's */
	WEFT__NODE_OWN = 8,    /* kind: the library's own, does not count as a post */
	WEFT__NODE_KEEP = 4,   /* kind: only the node's users change its state, not the inbox */
};

/* Reverse a chain: from newest first to oldest first. */
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

/* Nodes in order, oldest first. */
struct weft__node_list {
	struct weft__node *first, **end; /* `end` is the link to write next; NULL means &first */
};

/* Move all nodes of `from`, which is not empty, to the end of `to`. */
static inline void
weft__node_move(struct weft__node_list *from, struct weft__node_list *to)
{
	if (!to->end)
		to->end = &to->first;
	*to->end = from->first;
	to->end = from->end;
	*from = (struct weft__node_list){ 0 };
}

/* Remove a node from any position.  Does nothing if the list does not contain it. */
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
