/* sorted.h - a sorted set: members ordered by (score, bytes), with lookup by name.
 *
 * A skip list of items that are also nodes of a hash table.  Each link stores how many items it
 * skips, so that ranks are computed during the search.
 *
 *   1. An item is in the table and on level 0 of the list; it is on level n with probability
 *      4^-n.
 *   2. The span of a link is the distance between its ends; for a link without a next item, the
 *      distance to the end of the list.
 */
#ifndef STORE_SORTED_H
#define STORE_SORTED_H

#include "table.h"

#define SORTED_LEVELS 24

struct item {
	struct node  node;
	double       score;
	struct item *before; /* NULL for the first */
	uint32_t     levels;
	char         name[];
};

struct item_link {
	struct item *next;
	size_t       span;
};

struct sorted {
	struct table     table;
	struct item     *last;
	uint32_t         levels; /* in use */
	struct item_link head[SORTED_LEVELS]; /* level 0 is the last element */
};

struct sorted *sorted_new(struct heap *heap);
void           sorted_free(struct sorted *sorted);

static inline size_t
sorted_count(const struct sorted *sorted)
{
	return table_count(&sorted->table);
}

static inline struct word
item_word(const struct item *item)
{
	return (struct word){ item->name, item->node.size };
}

/* The links of an item are stored before it, level 0 adjacent to it: so a step along the list
 * touches one cache line.  The link of a level is LEVEL(links, level). */
#define LEVEL(links, level) ((links)[-(ptrdiff_t)(level)])

static inline struct item_link *
item_links(const struct item *item)
{
	return (struct item_link *)(uintptr_t)item - 1;
}

static inline struct item *
item_next(const struct item *item)
{
	return item_links(item)->next;
}

static inline struct item *
sorted_first(const struct sorted *sorted)
{
	return sorted->head[SORTED_LEVELS - 1].next;
}

struct item *sorted_find(const struct sorted *sorted, struct word name);

/* Add a new member; or change the score of a member, which may move it. */
struct item *sorted_add(struct sorted *sorted, struct word name, double score);
struct item *sorted_move(struct sorted *sorted, struct item *item, double score);
void         sorted_remove(struct sorted *sorted, struct item *item);

/* The number of items before it. */
size_t sorted_rank(const struct sorted *sorted, const struct item *item);

/* The item at `rank`; NULL if there is none. */
struct item *sorted_at(const struct sorted *sorted, size_t rank);

/* Whether an item is before some limit. */
typedef bool (*item_fn)(const struct item *item, const void *limit);

/* The number of items before a limit; these must be the first items of the list. */
size_t sorted_before(const struct sorted *sorted, item_fn is_before, const void *limit);

#endif
