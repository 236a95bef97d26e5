/* table.h - a hash table of nodes that stand in their owners' structs.
 *
 * An owner begins with its node and has the bytes of its name at an offset that is the same for
 * all of a table.  The table doubles when there are as many nodes as slots, and halves when an
 * eighth is in use; then nodes move from the old slots to the new, some with each insertion and
 * removal, so that no single one takes long.
 *
 *   1. A node is in exactly one of the halves; new ones go to `now`.
 *   2. Looking and walking move nothing: a table may be looked into while it is walked.
 *   3. A scan shows every node that is there from its first call to its last, whatever is
 *      inserted, removed or moved meanwhile; some perhaps twice.
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
	struct half  now, old; /* old has slots while nodes move */
	size_t       moved;    /* slots of old that are empty for good */
	size_t       offset;   /* of names */
};

typedef void (*node_fn)(struct node *node, void *arg);

void table_init(struct table *table, struct heap *heap, size_t offset);

/* Free the slots, and every node by `drop` if that is not NULL. */
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

/* Add a node, whose name is in its place and not in the table yet. */
void table_add(struct table *table, struct node *node, size_t size);

/* Take a node out.  Its memory is the caller's. */
void table_remove(struct table *table, struct node *node);

/* Move some nodes, if any are to be moved. */
void table_step(struct table *table);

/* One at random, each likely; NULL if there are none. */
struct node *table_any(const struct table *table);

/* Walk: all nodes in no order.  The table must not be changed meanwhile. */
struct walk {
	const struct table *table;
	const struct half  *half;
	size_t              slot;
	struct node        *next;
};

struct walk  table_walk(const struct table *table);
struct node *walk_next(struct walk *walk);

/* Show the nodes of one step of a scan that began with cursor 0.
 * Returns the next cursor, 0 at the end. */
uint64_t table_scan(const struct table *table, uint64_t cursor, node_fn show, void *arg);

#endif
