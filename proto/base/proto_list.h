/* proto_list.h - intrusive doubly linked lists.  Private to proto/ and bindings/.
 *
 * A list is a ring of links.  Its head is a link that is in no object.  An empty head, and a
 * link that is in no list, point to themselves.
 */
#ifndef WEFT_PROTO_LIST_H
#define WEFT_PROTO_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct weft__link {
	struct weft__link *next, *prev;
};

/* The struct that contains a link. */
#define WEFT__LINK_OF(type, member, link_) \
	((struct type *)(void *)((char *)(link_) - offsetof(struct type, member)))

static inline void
weft__link_init(struct weft__link *link)
{
	link->next = link->prev = link;
}

static inline bool
weft__list_is_empty(const struct weft__link *head)
{
	return head->next == head;
}

/* Insert `link` before `at`; before the head is the end of the list. */
static inline void
weft__link_before(struct weft__link *at, struct weft__link *link)
{
	link->next = at;
	link->prev = at->prev;
	at->prev->next = link;
	at->prev = link;
}

/* Insert `link` after `at`; after the head is the beginning of the list. */
static inline void
weft__link_after(struct weft__link *at, struct weft__link *link)
{
	weft__link_before(at->next, link);
}

/* Remove `link` from its list, if it is in one. */
static inline void
weft__link_remove(struct weft__link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	weft__link_init(link);
}

#endif
