/* set_sums.c - operations on several sets: union, intersection, difference. */
#include "command.h"
#include "say.h"

/* The sets at some names; NULL for those that do not exist. */
struct sets {
	struct table **all;
	size_t count;
};

/* Returns false after replying with an error if one is not a set; then there is nothing to free. */
static bool
get_sets(struct client *client, const struct word *names, size_t count, struct sets *out)
{
	struct heap *heap = &client->store->heap;
	struct key *key;

	out->count = count;
	out->all = heap_take(heap, count * sizeof(*out->all));
	for (size_t i = 0; i < count; i++) {
		if (!keys_read_kind(client, names[i], KIND_SET, &key)) {
			heap_give(heap, out->all, count * sizeof(*out->all));
			return false;
		}
		out->all[i] = key ? key->set : NULL;
	}
	return true;
}

static void
free_sets(struct client *client, struct sets *sets)
{
	heap_give(&client->store->heap, sets->all, sets->count * sizeof(*sets->all));
}

static bool
is_in_all(const struct sets *sets, struct word name)
{
	for (size_t i = 0; i < sets->count; i++)
		if (!table_find(sets->all[i], name))
			return false;
	return true;
}

/* Returns the smallest set, which contains every member of the intersection; NULL if a set does
 * not exist. */
static struct table *
smallest(const struct sets *sets)
{
	struct table *least = sets->all[0];

	for (size_t i = 0; i < sets->count; i++) {
		if (!sets->all[i])
			return NULL;
		if (table_count(sets->all[i]) < table_count(least))
			least = sets->all[i];
	}
	return least;
}

static void
intersect(const struct sets *sets, struct table *into)
{
	struct table *least = smallest(sets);
	struct walk walk;
	struct node *node;

	if (!least)
		return;
	walk = table_walk(least);
	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);

		if (is_in_all(sets, name))
			(void)members_add(into, name);
	}
}

static void
unite(const struct sets *sets, struct table *into)
{
	for (size_t i = 0; i < sets->count; i++) {
		struct walk walk;
		struct node *node;

		if (!sets->all[i])
			continue;
		walk = table_walk(sets->all[i]);
		while ((node = walk_next(&walk)) != NULL)
			(void)members_add(into, table_name(walk.table, node));
	}
}

static void
subtract(const struct sets *sets, struct table *into)
{
	struct walk walk;
	struct node *node;

	if (!sets->all[0])
		return;
	walk = table_walk(sets->all[0]);
	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);
		size_t i = 1;

		while (i < sets->count && !(sets->all[i] && table_find(sets->all[i], name)))
			i++;
		if (i == sets->count)
			(void)members_add(into, name);
	}
}

typedef void (*sum_fn)(const struct sets *sets, struct table *into);

static struct table *
sum_of(struct client *client, const struct word *names, size_t count, sum_fn sum)
{
	struct table *into;
	struct sets sets;

	if (!get_sets(client, names, count, &sets))
		return NULL;
	into = members_new(&client->store->heap);
	sum(&sets, into);
	free_sets(client, &sets);
	return into;
}

static void
say_sum(struct client *client, const struct word *words, size_t count, sum_fn sum)
{
	struct table *result = sum_of(client, words + 1, count - 1, sum);
	struct walk walk;
	struct node *node;

	if (!result)
		return;
	say_set(client, table_count(result));
	walk = table_walk(result);
	while ((node = walk_next(&walk)) != NULL)
		say_bulk(client, table_name(walk.table, node));
	members_free(result);
}

void
store_set_result(struct client *client, struct word name, struct table *set)
{
	struct key *key = keys_write(client, name);
	size_t size = table_count(set);
	bool was = key != NULL;

	if (key)
		keys_drop(client->base, key);
	if (size > 0) {
		key = keys_add(client->base, name, KIND_STRING);
		key->kind = KIND_SET;
		key->set = set;
	} else {
		members_free(set);
	}
	if (was || size > 0)
		keys_changed(client, client->base, name);
	say_number(client, (int64_t)size);
}

static void
store_sum(struct client *client, const struct word *words, size_t count, sum_fn sum)
{
	struct table *result = sum_of(client, words + 2, count - 2, sum);

	if (result)
		store_set_result(client, words[1], result);
}

COMMAND(sinter)
{
	say_sum(client, words, count, intersect);
}

COMMAND(sunion)
{
	say_sum(client, words, count, unite);
}

COMMAND(sdiff)
{
	say_sum(client, words, count, subtract);
}

COMMAND(sinterstore)
{
	store_sum(client, words, count, intersect);
}

COMMAND(sunionstore)
{
	store_sum(client, words, count, unite);
}

COMMAND(sdiffstore)
{
	store_sum(client, words, count, subtract);
}

/* --- SINTERCARD ------------------------------------------------------------- */

bool
limit_read(struct client *client, const struct word *words, size_t count, size_t at, int64_t *out)
{
	for (; at < count; at += 2) {
		if (!word_is(words[at], "limit") || at + 1 == count) {
			say_syntax(client);
			return false;
		}
		if (!number_read(words[at + 1], out) || *out < 0) {
			say_error(client, "ERR LIMIT can't be negative");
			return false;
		}
	}
	return true;
}

static bool
set_sums_read_count(struct client *client, struct word word, size_t given, size_t *out)
{
	int64_t number;

	if (!number_read(word, &number) || number <= 0) {
		say_error(client, "ERR numkeys should be greater than 0");
		return false;
	}
	*out = (size_t)number;
	if (*out <= given)
		return true;
	say_error(client, "ERR Number of keys can't be greater than number of args");
	return false;
}

COMMAND(sintercard)
{
	int64_t limit = 0, found = 0;
	struct table *least;
	struct sets sets;
	size_t keys;

	if (!set_sums_read_count(client, words[1], count - 2, &keys)
	    || !limit_read(client, words, count, 2 + keys, &limit)
	    || !get_sets(client, words + 2, keys, &sets))
		return;
	least = smallest(&sets);
	if (least) {
		struct walk walk = table_walk(least);
		struct node *node;

		while ((limit == 0 || found < limit) && (node = walk_next(&walk)) != NULL)
			found += is_in_all(&sets, table_name(least, node));
	}
	free_sets(client, &sets);
	say_number(client, found);
}
