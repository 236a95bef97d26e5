/* map.c - maps from names to structs: treaps with the sizes of subtrees. */
#include "store/data/map.h"

static size_t
count_of(const struct node *node)
{
	return node ? node->count : 0;
}

static void
count_again(struct node *node)
{
	node->count = (uint32_t)(1 + count_of(node->left) + count_of(node->right));
}

/* Splits a tree into the nodes before a name and the others. */
static void
split(const struct map *map, struct node *node, struct slice name, struct node **before,
      struct node **after)
{
	bool is_before = node && slice_order(map_name(map, node), name) < 0;

	*(is_before ? before : after) = node;
	if (!node)
		*before = NULL;
	else if (is_before)
		split(map, node->right, name, &node->right, after);
	else
		split(map, node->left, name, before, &node->left);
	if (node)
		count_again(node);
}

/* Merges two trees; the names of the first are before those of the second. */
static struct node *
merge(struct node *first, struct node *second)
{
	bool is_first = first && (!second || first->priority > second->priority);
	struct node *top = is_first ? first : second;

	if (!first || !second)
		return top;
	if (is_first)
		first->right = merge(first->right, second);
	else
		second->left = merge(first, second->left);
	count_again(top);
	return top;
}

void
map_init(struct map *map, struct memory *memory, size_t offset)
{
	*map = (struct map){ memory, offset, NULL };
}

void *
map_add(struct map *map, struct slice name)
{
	struct node *node = memory_alloc(map->memory, map->offset + name.size), *before, *after;

	node->priority = (uint32_t)memory_random(map->memory);
	node->count = 1;
	node->size = name.size;
	memcpy((char *)node + map->offset, name.data, name.size);
	split(map, map->root, name, &before, &after);
	map->root = merge(merge(before, node), after);
	return node;
}

void
map_remove(struct map *map, void *removed)
{
	struct node **link = &map->root, *node = removed;

	while (*link != node) {
		bool left = slice_order(map_name(map, node), map_name(map, *link)) < 0;

		(*link)->count--;
		link = left ? &(*link)->left : &(*link)->right;
	}
	*link = merge(node->left, node->right);
	memory_free(map->memory, node);
}

static void
clear(struct memory *memory, struct node *node, void (*fini)(void *node, struct memory *memory))
{
	if (!node)
		return;
	clear(memory, node->left, fini);
	clear(memory, node->right, fini);
	if (fini)
		fini(node, memory);
	memory_free(memory, node);
}

void
map_clear(struct map *map, void (*fini)(void *node, struct memory *memory))
{
	struct node *root = map->root;

	map->root = NULL;
	clear(map->memory, root, fini);
}

void *
map_find(const struct map *map, struct slice name)
{
	struct node *node = map->root;

	while (node) {
		int order = slice_order(name, map_name(map, node));

		if (order == 0)
			break;
		node = order < 0 ? node->left : node->right;
	}
	return node;
}

void *
map_at(const struct map *map, size_t position)
{
	struct node *node = map->root;

	while (node && position != count_of(node->left)) {
		bool left = position < count_of(node->left);

		if (!left)
			position -= count_of(node->left) + 1;
		node = left ? node->left : node->right;
	}
	return node;
}

size_t
map_before(const struct map *map, struct slice name, bool or_equal)
{
	const struct node *node = map->root;
	size_t before = 0;

	while (node) {
		bool is_before = slice_order(map_name(map, node), name) < or_equal;

		if (is_before)
			before += 1 + count_of(node->left);
		node = is_before ? node->right : node->left;
	}
	return before;
}
