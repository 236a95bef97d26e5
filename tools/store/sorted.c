/* sorted.c - a sorted set, as a skip list over a hash table. */
#include <assert.h>
#include "sorted.h"

static size_t
links_at(size_t name_size)
{
	return (sizeof(struct item) + name_size + 7) & ~(size_t)7;
}

static struct item_link *
links_of(const struct item *item)
{
	return (struct item_link *)(void *)((char *)(uintptr_t)item
	                                    + links_at(item->node.size));
}

static size_t
bytes_of(size_t name_size, uint32_t levels)
{
	return links_at(name_size) + levels * sizeof(struct item_link);
}

static void
free_item(struct sorted *sorted, struct item *item)
{
	heap_give(sorted->table.heap, item,
	          bytes_of(item->node.size, item->levels));
}

struct sorted *
sorted_new(struct heap *heap)
{
	struct sorted *sorted = heap_new(heap, sizeof(*sorted));

	table_init(&sorted->table, heap, offsetof(struct item, name));
	sorted->levels = 1;
	return sorted;
}

void
sorted_free(struct sorted *sorted)
{
	struct heap *heap = sorted->table.heap;
	struct item *item = sorted->head[0].next;

	while (item) {
		struct item *next = item_next(item);

		free_item(sorted, item);
		item = next;
	}
	table_clear(&sorted->table, NULL, NULL);
	heap_give(heap, sorted, sizeof(*sorted));
}

struct item *
item_next(const struct item *item)
{
	return links_of(item)[0].next;
}

struct item *
sorted_find(const struct sorted *sorted, struct word name)
{
	return (struct item *)(void *)table_find(&sorted->table, name);
}

/* --- the list --------------------------------------------------------------- */

/* Whether an item comes before a member with this score and name. */
static bool
is_less(const struct item *item, double score, struct word name)
{
	if (item->score != score)
		return item->score < score;
	return word_order(item_word(item), name) < 0;
}

/* The links that lead to a place, on each level, and the ranks of those who have them. */
struct way {
	struct item_link *links[SORTED_LEVELS];
	size_t ranks[SORTED_LEVELS];
	struct item *before;
};

static void
find_way(struct sorted *sorted, double score, struct word name, struct way *way)
{
	struct item_link *links = sorted->head;
	size_t rank = 0;

	way->before = NULL;
	for (uint32_t i = sorted->levels; i-- > 0;) {
		while (links[i].next && is_less(links[i].next, score, name)) {
			rank += links[i].span;
			way->before = links[i].next;
			links = links_of(way->before);
		}
		way->links[i] = &links[i];
		way->ranks[i] = rank;
	}
}

static uint32_t
draw_levels(struct heap *heap)
{
	uint64_t bits = heap_draw(heap)
	                | UINT64_C(1) << (2 * SORTED_LEVELS - 2);

	return 1 + (uint32_t)__builtin_ctzll(bits) / 2;
}

/* Put an item into the list.  The table has it, or will. */
static void
link_item(struct sorted *sorted, struct item *item, size_t count)
{
	struct item_link *links = links_of(item);
	struct way way;

	for (; sorted->levels < item->levels; sorted->levels++)
		sorted->head[sorted->levels] = (struct item_link){ NULL,
			                                           count };
	find_way(sorted, item->score, item_word(item), &way);
	for (uint32_t i = 0; i < sorted->levels; i++) {
		size_t passed = way.ranks[0] - way.ranks[i];

		if (i >= item->levels) {
			way.links[i]->span++;
			continue;
		}
		links[i].next = way.links[i]->next;
		links[i].span = way.links[i]->span - passed;
		way.links[i]->next = item;
		way.links[i]->span = passed + 1;
	}
	item->before = way.before;
	if (links[0].next)
		links[0].next->before = item;
	else
		sorted->last = item;
}

static void
unlink_item(struct sorted *sorted, struct item *item)
{
	struct item_link *links = links_of(item);
	struct way way;

	find_way(sorted, item->score, item_word(item), &way);
	assert(way.links[0]->next == item);
	for (uint32_t i = 0; i < sorted->levels; i++) {
		way.links[i]->span--;
		if (i < item->levels) {
			way.links[i]->next = links[i].next;
			way.links[i]->span += links[i].span;
		}
	}
	if (links[0].next)
		links[0].next->before = item->before;
	else
		sorted->last = item->before;
	while (sorted->levels > 1 && !sorted->head[sorted->levels - 1].next)
		sorted->levels--;
}

/* --- members ---------------------------------------------------------------- */

struct item *
sorted_add(struct sorted *sorted, struct word name, double score)
{
	struct heap *heap = sorted->table.heap;
	uint32_t levels = draw_levels(heap);
	struct item *item = heap_take(heap, bytes_of(name.size, levels));

	item->score = score;
	item->levels = levels;
	memcpy(item->name, name.data, name.size);
	item->node.size = (uint32_t)name.size;
	link_item(sorted, item, sorted_count(sorted));
	table_add(&sorted->table, &item->node, name.size);
	return item;
}

struct item *
sorted_move(struct sorted *sorted, struct item *item, double score)
{
	struct item *next = item_next(item);
	bool stays = (!item->before
	              || is_less(item->before, score, item_word(item)))
	             && (!next || !is_less(next, score, item_word(item)));

	if (!stays)
		unlink_item(sorted, item);
	item->score = score;
	if (!stays)
		link_item(sorted, item, sorted_count(sorted) - 1);
	return item;
}

void
sorted_remove(struct sorted *sorted, struct item *item)
{
	unlink_item(sorted, item);
	table_remove(&sorted->table, &item->node);
	free_item(sorted, item);
}

/* --- ranks ------------------------------------------------------------------ */

size_t
sorted_rank(const struct sorted *sorted, const struct item *item)
{
	const struct item_link *links = sorted->head;
	size_t rank = 0;

	for (uint32_t i = sorted->levels; i-- > 0;)
		while (links[i].next
		       && is_less(links[i].next, item->score,
		                  item_word(item))) {
			rank += links[i].span;
			links = links_of(links[i].next);
		}
	return rank;
}

struct item *
sorted_at(const struct sorted *sorted, size_t rank)
{
	const struct item_link *links = sorted->head;
	size_t left = rank;

	if (rank >= sorted_count(sorted))
		return NULL;
	for (uint32_t i = sorted->levels; i-- > 0;)
		while (links[i].next && links[i].span <= left) {
			left -= links[i].span;
			links = links_of(links[i].next);
		}
	return links[0].next;
}

size_t
sorted_before(const struct sorted *sorted, item_fn is_before, const void *limit)
{
	const struct item_link *links = sorted->head;
	size_t rank = 0;

	for (uint32_t i = sorted->levels; i-- > 0;)
		while (links[i].next && is_before(links[i].next, limit)) {
			rank += links[i].span;
			links = links_of(links[i].next);
		}
	return rank;
}
