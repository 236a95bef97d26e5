/* sorted.h - a sorted set: members in the order of (score, bytes), each found by its name.
 *
 * A skip list whose items are nodes of a hash table as well.  Every link knows how many items it
 * passes, so that ranks are counted on the way.
 *
 *   1. An item is in the table and on level 0 of the list; on level n with chance 4^-n.
 *   2. The span of a link is the distance of its ends; behind the last item, to the count.
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
	struct item_link head[SORTED_LEVELS]; /* that of level 0 is the last */
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

/* The links of an item lie before it, that of level 0 next to it: so a step along the list
 * touches one line of the cache.  The link of a level is at LEVEL(links, level). */
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

/* Add a member that is not there; change the score of one, which may move. */
struct item *sorted_add(struct sorted *sorted, struct word name, double score);
struct item *sorted_move(struct sorted *sorted, struct item *item, double score);
void         sorted_remove(struct sorted *sorted, struct item *item);

/* How many stand before it. */
size_t sorted_rank(const struct sorted *sorted, const struct item *item);

/* The one before which `rank` others stand; NULL if there is none. */
struct item *sorted_at(const struct sorted *sorted, size_t rank);

/* Whether an item stands before some limit. */
typedef bool (*item_fn)(const struct item *item, const void *limit);

/* How many items stand before a limit, of which those that do are the first. */
size_t sorted_before(const struct sorted *sorted, item_fn is_before, const void *limit);

#endif
