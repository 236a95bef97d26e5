/* map.h - maps from names to structs, in the order of their names, as balanced trees.
 *
 * All data of the store is in maps: keys, hashes, lists, sorted sets, streams, subscriptions.  A
 * struct of a map begins with its node, and ends with its name, at an offset that is the same for
 * the whole map.  All functions but map_clear() take O(log n) steps.
 *
 *   1. node->count is the number of nodes in its subtree.
 *   2. Priorities are random, and no node has a higher one than its parent.  The depth is
 *      therefore O(log n), whatever a peer inserts.
 */
#ifndef STORE_MAP_H
#define STORE_MAP_H

#include "store/data/store_bytes.h"

struct node {
	struct node *left, *right;
	uint32_t     priority, count;
	size_t       size; /* of the name */
};

struct map {
	struct memory *memory;
	size_t         offset;
	struct node   *root;
};

void map_init(struct map *map, struct memory *memory, size_t offset);

static inline size_t
map_count(const struct map *map)
{
	return map->root ? map->root->count : 0;
}

static inline struct slice
map_name(const struct map *map, const void *node)
{
	return (struct slice){ (const char *)node + map->offset,
		               ((const struct node *)node)->size };
}

/* Add a struct of zeros, with a name that is not in the map. */
void *map_add(struct map *map, struct slice name);

/* Remove a struct, and free it. */
void map_remove(struct map *map, void *node);

/* Remove all structs, and free them; before, pass each to `fini`, which may be NULL. */
void map_clear(struct map *map, void (*fini)(void *node, struct memory *memory));

/* The struct with a name; the struct at a position.  NULL if there is none. */
void *map_find(const struct map *map, struct slice name);
void *map_at(const struct map *map, size_t position);

/* The number of names before `name`, or also equal to it. */
size_t map_before(const struct map *map, struct slice name, bool or_equal);

#endif
