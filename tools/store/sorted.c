/* sorted.c - a sorted set: a skip list and a hash table. */
#include <assert.h>
#include "sorted.h"

static size_t
bytes_of(size_t name_size, uint32_t levels)
{
	return levels * sizeof(struct item_link) + sizeof(struct item) + name_size;
}

static struct item_link *
head_of(const struct sorted *sorted)
{
	return (struct item_link *)(uintptr_t)&sorted->head[SORTED_LEVELS - 1];
}

static void
free_item(struct sorted *sorted, struct item *item)
{
	heap_give(sorted->table.heap, &LEVEL(item_links(item), item->levels - 1),
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
	struct item *item = sorted_first(sorted);

	while (item) {
		struct item *next = item_next(item);

		free_item(sorted, item);
		item = next;
	}
	table_clear(&sorted->table, NULL, NULL);
	heap_give(heap, sorted, sizeof(*sorted));
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

/* The links that lead to a position, on each level, and the ranks of the items that contain
 * them. */
struct way {
	struct item_link *links[SORTED_LEVELS];
	size_t ranks[SORTED_LEVELS];
	struct item *before;
};

static void
find_way(struct sorted *sorted, double score, struct word name, struct way *way)
{
	struct item_link *links = head_of(sorted);
	size_t rank = 0;

	way->before = NULL;
	for (uint32_t i = sorted->levels; i-- > 0;) {
		while (LEVEL(links, i).next && is_less(LEVEL(links, i).next, score, name)) {
			rank += LEVEL(links, i).span;
			way->before = LEVEL(links, i).next;
			links = item_links(way->before);
		}
		way->links[i] = &LEVEL(links, i);
		way->ranks[i] = rank;
	}
}

static uint32_t
draw_levels(struct heap *heap)
{
	uint64_t bits = heap_draw(heap) | UINT64_C(1) << (2 * SORTED_LEVELS - 2);

	return 1 + (uint32_t)__builtin_ctzll(bits) / 2;
}

/* Links an item into the list; the table is updated separately. */
static void
link_item(struct sorted *sorted, struct item *item, size_t count)
{
	struct item_link *links = item_links(item);
	struct way way;

	while (sorted->levels < item->levels) {
		struct item_link *head = &LEVEL(head_of(sorted), sorted->levels++);

		*head = (struct item_link){ NULL, count };
	}
	find_way(sorted, item->score, item_word(item), &way);
	for (uint32_t i = 0; i < sorted->levels; i++) {
		size_t passed = way.ranks[0] - way.ranks[i];

		if (i >= item->levels) {
			way.links[i]->span++;
			continue;
		}
		LEVEL(links, i).next = way.links[i]->next;
		LEVEL(links, i).span = way.links[i]->span - passed;
		way.links[i]->next = item;
		way.links[i]->span = passed + 1;
	}
	item->before = way.before;
	if (links->next)
		links->next->before = item;
	else
		sorted->last = item;
}

static void
unlink_item(struct sorted *sorted, struct item *item)
{
	struct item_link *links = item_links(item);
	struct way way;

	find_way(sorted, item->score, item_word(item), &way);
	assert(way.links[0]->next == item);
	for (uint32_t i = 0; i < sorted->levels; i++) {
		way.links[i]->span--;
		if (i < item->levels) {
			way.links[i]->next = LEVEL(links, i).next;
			way.links[i]->span += LEVEL(links, i).span;
		}
	}
	if (links->next)
		links->next->before = item->before;
	else
		sorted->last = item->before;
	while (sorted->levels > 1 && !LEVEL(head_of(sorted), sorted->levels - 1).next)
		sorted->levels--;
}

/* --- members ---------------------------------------------------------------- */

struct item *
sorted_add(struct sorted *sorted, struct word name, double score)
{
	struct heap *heap = sorted->table.heap;
	uint32_t levels = draw_levels(heap);
	struct item_link *links = heap_take(heap, bytes_of(name.size, levels));
	struct item *item = (struct item *)(void *)(links + levels);

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
	bool stays = (!item->before || is_less(item->before, score, item_word(item)))
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
	const struct item_link *links = head_of(sorted);
	size_t rank = 0;

	for (uint32_t i = sorted->levels; i-- > 0;)
		while (LEVEL(links, i).next
		       && is_less(LEVEL(links, i).next, item->score, item_word(item))) {
			rank += LEVEL(links, i).span;
			links = item_links(LEVEL(links, i).next);
		}
	return rank;
}

struct item *
sorted_at(const struct sorted *sorted, size_t rank)
{
	const struct item_link *links = head_of(sorted);
	size_t left = rank;

	if (rank >= sorted_count(sorted))
		return NULL;
	for (uint32_t i = sorted->levels; i-- > 0;)
		while (LEVEL(links, i).next && LEVEL(links, i).span <= left) {
			left -= LEVEL(links, i).span;
			links = item_links(LEVEL(links, i).next);
		}
	return links->next;
}

size_t
sorted_before(const struct sorted *sorted, item_fn is_before, const void *limit)
{
	const struct item_link *links = head_of(sorted);
	size_t rank = 0;

	for (uint32_t i = sorted->levels; i-- > 0;)
		while (LEVEL(links, i).next && is_before(LEVEL(links, i).next, limit)) {
			rank += LEVEL(links, i).span;
			links = item_links(LEVEL(links, i).next);
		}
	return rank;
}
