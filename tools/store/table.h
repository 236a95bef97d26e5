/* table.h - a hash table of nodes that are embedded in their owners' structs.
 *
 * An owner starts with its node, and has its name at an offset that is the same for all owners
 * in a table.  The table doubles when there are as many nodes as slots, and halves when fewer
 * than an eighth are in use.  Then nodes move from the old slots to the new ones, a few with
 * each insertion and removal, so that no single operation takes long.
 *
 *   1. A node is in exactly one of the halves; new ones go to `now`.
 *   2. Lookups and walks move nothing, so a lookup is allowed during a walk.
 *   3. A scan shows every node that is present from its first call to its last, whatever is
 *      inserted, removed or moved meanwhile; some nodes may be shown twice.
 */
#ifndef STORE_TABLE_H
#define STORE_TABLE_H

#include "text.h"

struct node {
	struct node *next;
	uint32_t     hash;
	uint32_t     size; /* of the name */
};

struct half {
	struct node **slots; /* NULL: there are none */
	size_t        mask, used;
};

struct table {
	struct heap *heap;
	struct half  now, old; /* old has slots while nodes are being moved */
	size_t       moved;    /* slots of `old` that are already empty */
	size_t       offset;   /* of names */
};

typedef void (*node_fn)(struct node *node, void *arg);

void table_init(struct table *table, struct heap *heap, size_t offset);

/* Free the slots; also free every node with `drop`, unless it is NULL. */
void table_clear(struct table *table, node_fn drop, void *arg);

uint32_t table_hash(const struct heap *heap, struct word name);

static inline size_t
table_count(const struct table *table)
{
	return table->now.used + table->old.used;
}

static inline struct word
table_name(const struct table *table, const struct node *node)
{
	return (struct word){ (const char *)node + table->offset, node->size };
}

struct node *table_find(const struct table *table, struct word name);

/* Add a node.  Its name is already set, and not in the table. */
void table_add(struct table *table, struct node *node, size_t size);

/* Remove a node; the caller frees it. */
void table_remove(struct table *table, struct node *node);

/* Move some nodes, if the table is being resized. */
void table_step(struct table *table);

/* A random node, all about equally likely; NULL if there are none. */
struct node *table_any(const struct table *table);

/* Iterate over all nodes, in no particular order.  The table must not change meanwhile. */
struct walk {
	const struct table *table;
	const struct half  *half;
	size_t              slot;
	struct node        *next;
};

struct walk  table_walk(const struct table *table);
struct node *walk_next(struct walk *walk);

/* Show the nodes of one step of a scan that starts with cursor 0.  Returns the next cursor; 0 at
 * the end. */
uint64_t table_scan(const struct table *table, uint64_t cursor, node_fn show, void *arg);

#endif
