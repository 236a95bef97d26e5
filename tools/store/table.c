/* table.c - a hash table of nodes that are embedded in their owners' structs.
 *
 * A scan increments its cursor from the highest bit of the mask down.  When the table doubles, a
 * slot is split into slots that share its low bits.  In this order they are adjacent, so what
 * was scanned in a small table counts as scanned in a larger one, and vice versa.
 */
#include <assert.h>
#include "table.h"

#define SLOTS_MIN 4u
#define STEP      4u  /* used slots moved per step */
#define EMPTY_MAX 40u /* empty slots skipped per step */

/* --- hashes ----------------------------------------------------------------- */

static uint64_t
mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t
load_8(const char *at)
{
	uint64_t bits;

	memcpy(&bits, at, sizeof(bits));
	return bits;
}

static uint64_t
load_4(const char *at)
{
	uint32_t bits;

	memcpy(&bits, at, sizeof(bits));
	return bits;
}

/* Loads all bytes of a short name, some possibly twice. */
static uint64_t
load_short(const char *at, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)at;

	if (size >= 4)
		return load_4(at) | load_4(at + size - 4) << 32;
	if (size == 0)
		return 0;
	return bytes[0] | (uint64_t)bytes[size / 2] << 8 | (uint64_t)bytes[size - 1] << 16;
}

uint32_t
table_hash(const struct heap *heap, struct word name)
{
	const uint64_t odd = UINT64_C(0xa0761d6478bd642f);
	const char *at = name.data;
	size_t left = name.size;
	uint64_t hash = heap->seed ^ (name.size * odd);

	for (; left > 8; left -= 8, at += 8)
		hash = mix(hash ^ load_8(at), odd);
	if (name.size >= 8)
		hash ^= load_8(at + left - 8);
	else
		hash ^= load_short(at, left);
	hash = mix(hash, heap->seed | 1);
	return (uint32_t)mix(hash, odd);
}

/* --- halves ----------------------------------------------------------------- */

static size_t
bytes_of(const struct half *half)
{
	return half->slots ? (half->mask + 1) * sizeof(*half->slots) : 0;
}

static void
free_half(struct table *table, struct half *half)
{
	heap_give(table->heap, half->slots, bytes_of(half));
	*half = (struct half){ 0 };
}

static void
store_table_put(struct half *half, struct node *node)
{
	struct node **slot = &half->slots[node->hash & half->mask];

	node->next = *slot;
	*slot = node;
	half->used++;
}

static void
set_slots(struct table *table, size_t count)
{
	assert(!table->old.slots);
	table->old = table->now;
	table->moved = 0;
	table->now = (struct half){ .mask = count - 1 };
	table->now.slots = heap_new(table->heap, count * sizeof(struct node *));
	if (table->old.used == 0)
		free_half(table, &table->old);
}

static void
move_slot(struct table *table, size_t slot)
{
	struct node *node = table->old.slots[slot];

	table->old.slots[slot] = NULL;
	while (node) {
		struct node *next = node->next;

		table->old.used--;
		store_table_put(&table->now, node);
		node = next;
	}
}

void
table_step(struct table *table)
{
	unsigned full = STEP, empty = EMPTY_MAX;

	if (!table->old.slots)
		return;
	while (table->moved <= table->old.mask && full > 0 && empty > 0) {
		if (table->old.slots[table->moved])
			full--;
		else
			empty--;
		move_slot(table, table->moved++);
	}
	if (table->old.used == 0)
		free_half(table, &table->old);
}

/* --- nodes ------------------------------------------------------------------ */

void
table_init(struct table *table, struct heap *heap, size_t offset)
{
	*table = (struct table){ .heap = heap, .offset = offset };
}

static void
drop_all(struct half *half, node_fn drop, void *arg)
{
	for (size_t i = 0; half->slots && i <= half->mask; i++) {
		struct node *node = half->slots[i];

		while (node) {
			struct node *next = node->next;

			drop(node, arg);
			node = next;
		}
	}
}

void
table_clear(struct table *table, node_fn drop, void *arg)
{
	if (drop) {
		drop_all(&table->now, drop, arg);
		drop_all(&table->old, drop, arg);
	}
	free_half(table, &table->now);
	free_half(table, &table->old);
}

static struct node *
find_in(const struct table *table, const struct half *half, uint32_t hash, struct word name)
{
	struct node *node;

	if (!half->slots)
		return NULL;
	for (node = half->slots[hash & half->mask]; node; node = node->next)
		if (node->hash == hash && node->size == name.size
		    && memcmp((const char *)node + table->offset, name.data, name.size) == 0)
			return node;
	return NULL;
}

struct node *
table_find(const struct table *table, struct word name)
{
	uint32_t hash;
	struct node *node;

	if (!table->now.slots)
		return NULL;
	hash = table_hash(table->heap, name);
	node = find_in(table, &table->now, hash, name);
	return node ? node : find_in(table, &table->old, hash, name);
}

void
table_add(struct table *table, struct node *node, size_t size)
{
	table_step(table);
	if (!table->now.slots)
		set_slots(table, SLOTS_MIN);
	else if (!table->old.slots && table->now.used > table->now.mask)
		set_slots(table, (table->now.mask + 1) * 2);
	node->size = (uint32_t)size;
	node->hash = table_hash(table->heap, table_name(table, node));
	store_table_put(&table->now, node);
}

static bool
store_table_take_out(struct half *half, struct node *node)
{
	struct node **link;

	if (!half->slots)
		return false;
	link = &half->slots[node->hash & half->mask];
	while (*link && *link != node)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = node->next;
	half->used--;
	return true;
}

void
table_remove(struct table *table, struct node *node)
{
	bool found = store_table_take_out(&table->now, node)
	             || store_table_take_out(&table->old, node);

	assert(found);
	(void)found;
	table_step(table);
	if (!table->old.slots && table->now.mask >= SLOTS_MIN * 2
	    && table->now.used < table->now.mask / 8)
		set_slots(table, (table->now.mask + 1) / 2);
}

struct node *
table_any(const struct table *table)
{
	size_t count = table_count(table);
	const struct half *half = &table->now;
	struct node *node, *first;
	size_t length = 0, begin = 0;

	if (count == 0)
		return NULL;
	if (heap_below(table->heap, count) >= half->used)
		half = &table->old;
	if (half == &table->old)
		begin = table->moved;
	do
		first = half->slots[begin + heap_below(table->heap, half->mask + 1 - begin)];
	while (!first);
	for (node = first; node; node = node->next)
		length++;
	length = heap_below(table->heap, length);
	for (node = first; length > 0; length--)
		node = node->next;
	return node;
}

/* --- walks and scans -------------------------------------------------------- */

struct walk
table_walk(const struct table *table)
{
	return (struct walk){ .table = table, .half = &table->now };
}

struct node *
walk_next(struct walk *walk)
{
	struct node *node;

	while (!walk->next) {
		if (!walk->half->slots || walk->slot > walk->half->mask) {
			if (walk->half == &walk->table->old)
				return NULL;
			walk->half = &walk->table->old;
			walk->slot = 0;
			continue;
		}
		walk->next = walk->half->slots[walk->slot++];
	}
	node = walk->next;
	walk->next = node->next;
	return node;
}

static void
show_slot(const struct half *half, uint64_t cursor, node_fn show, void *arg)
{
	struct node *node = half->slots[cursor & half->mask];

	while (node) {
		struct node *next = node->next;

		show(node, arg);
		node = next;
	}
}

static uint64_t
reversed(uint64_t bits)
{
	uint64_t out = 0;

	for (int i = 0; i < 64; i++)
		out |= ((bits >> i) & 1) << (63 - i);
	return out;
}

/* Increments the cursor, from the highest bit of the mask down. */
static uint64_t
count_down(uint64_t cursor, size_t mask)
{
	return reversed(reversed(cursor | ~(uint64_t)mask) + 1);
}

uint64_t
table_scan(const struct table *table, uint64_t cursor, node_fn show, void *arg)
{
	const struct half *small = &table->now, *large = &table->old;

	if (!small->slots)
		return 0;
	if (!large->slots) {
		show_slot(small, cursor, show, arg);
		return count_down(cursor, small->mask);
	}
	if (small->mask > large->mask) {
		small = &table->old;
		large = &table->now;
	}
	show_slot(small, cursor, show, arg);
	do { /* all slots of the larger half that share these bits */
		show_slot(large, cursor, show, arg);
		cursor = count_down(cursor, large->mask);
	} while (cursor & (small->mask ^ large->mask));
	return cursor;
}
