/* elements.c - members of sets and fields of hashes. */
#include "keys.h"

/* --- sets ------------------------------------------------------------------- */

static struct table *
new_table(struct heap *heap, size_t offset)
{
	struct table *table = heap_take(heap, sizeof(*table));

	table_init(table, heap, offset);
	return table;
}

static void
free_table(struct table *table, node_fn drop)
{
	struct heap *heap = table->heap;

	table_clear(table, drop, heap);
	heap_give(heap, table, sizeof(*table));
}

struct table *
members_new(struct heap *heap)
{
	return new_table(heap, offsetof(struct member, name));
}

bool
members_add(struct table *set, struct word name)
{
	struct member *member;

	if (table_find(set, name))
		return false;
	member = heap_take(set->heap, sizeof(*member) + name.size);
	memcpy(member->name, name.data, name.size);
	table_add(set, &member->node, name.size);
	return true;
}

static void
drop_member(struct node *node, void *heap)
{
	heap_give(heap, node, sizeof(struct member) + node->size);
}

bool
members_remove(struct table *set, struct word name)
{
	struct node *node = table_find(set, name);

	if (!node)
		return false;
	table_remove(set, node);
	drop_member(node, set->heap);
	return true;
}

void
members_free(struct table *set)
{
	free_table(set, drop_member);
}

/* --- hashes ----------------------------------------------------------------- */

struct table *
fields_new(struct heap *heap)
{
	return new_table(heap, offsetof(struct field, name));
}

struct field *
fields_find(const struct table *hash, struct word name)
{
	return (struct field *)(void *)table_find(hash, name);
}

bool
fields_set(struct table *hash, struct word name, struct word value)
{
	struct field *field = fields_find(hash, name);

	if (field) {
		struct text *old = field->value;

		field->value = text_new(hash->heap, value);
		text_free(hash->heap, old);
		return false;
	}
	field = heap_take(hash->heap, sizeof(*field) + name.size);
	field->value = text_new(hash->heap, value);
	memcpy(field->name, name.data, name.size);
	table_add(hash, &field->node, name.size);
	return true;
}

static void
drop_field(struct node *node, void *heap)
{
	struct field *field = (struct field *)(void *)node;

	text_free(heap, field->value);
	heap_give(heap, field, sizeof(*field) + node->size);
}

void
fields_remove(struct table *hash, struct field *field)
{
	table_remove(hash, &field->node);
	drop_field(&field->node, hash->heap);
}

void
fields_free(struct table *hash)
{
	free_table(hash, drop_field);
}
