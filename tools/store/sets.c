/* sets.c - sets: operations on single members. */
#include "command.h"
#include "say.h"

COMMAND(sadd)
{
	int64_t added = 0;
	struct key *key;

	if (!keys_write_kind(client, words[1], KIND_SET, &key))
		return;
	if (!key)
		key = keys_add(client->base, words[1], KIND_SET);
	for (size_t i = 2; i < count; i++)
		added += members_add(key->set, words[i]);
	if (added > 0)
		keys_changed(client, client->base, words[1]);
	say_number(client, added);
}

COMMAND(srem)
{
	int64_t removed = 0;
	struct key *key;

	if (!keys_write_kind(client, words[1], KIND_SET, &key))
		return;
	for (size_t i = 2; key && i < count; i++)
		removed += members_remove(key->set, words[i]);
	if (removed > 0) {
		keys_drop_empty(client->base, key);
		keys_changed(client, client->base, words[1]);
	}
	say_number(client, removed);
}

COMMAND(scard)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_SET, &key))
		say_number(client, key ? (int64_t)key_count(key) : 0);
}

COMMAND(sismember)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_SET, &key))
		say_number(client, key && table_find(key->set, words[2]));
}

COMMAND(smismember)
{
	struct key *key;

	if (!keys_read_kind(client, words[1], KIND_SET, &key))
		return;
	say_array(client, count - 2);
	for (size_t i = 2; i < count; i++)
		say_number(client, key && table_find(key->set, words[i]));
}

COMMAND(smembers)
{
	struct walk walk;
	struct node *node;
	struct key *key;

	(void)count;
	if (!keys_read_kind(client, words[1], KIND_SET, &key))
		return;
	say_set(client, key ? key_count(key) : 0);
	if (!key)
		return;
	walk = table_walk(key->set);
	while ((node = walk_next(&walk)) != NULL)
		say_bulk(client, table_name(walk.table, node));
}

COMMAND(smove)
{
	struct key *from, *to;

	(void)count;
	from = keys_write(client, words[1]);
	to = keys_write(client, words[2]);
	if (!from) {
		say_number(client, 0);
		return;
	}
	if (from->kind != KIND_SET || (to && to->kind != KIND_SET)) {
		say_wrong_kind(client);
		return;
	}
	if (from == to) {
		say_number(client, table_find(from->set, words[3]) != NULL);
		return;
	}
	if (!members_remove(from->set, words[3])) {
		say_number(client, 0);
		return;
	}
	keys_drop_empty(client->base, from);
	to = keys_write(client, words[2]);
	if (!to)
		to = keys_add(client->base, words[2], KIND_SET);
	(void)members_add(to->set, words[3]);
	keys_changed(client, client->base, words[1]);
	keys_changed(client, client->base, words[2]);
	say_number(client, 1);
}

/* --- random members --------------------------------------------------------- */

static void
say_any(struct client *client, const struct table *set)
{
	say_bulk(client, table_name(set, table_any(set)));
}

/* Removes `count` random members, which must exist, and replies with them. */
static void
pop_members(struct client *client, struct key *key, size_t count)
{
	while (count-- > 0) {
		struct node *node = table_any(key->set);

		say_bulk(client, table_name(key->set, node));
		(void)members_remove(key->set, table_name(key->set, node));
	}
}

COMMAND(spop)
{
	int64_t most = 1;
	struct key *key;

	if (count > 3) {
		say_syntax(client);
		return;
	}
	if (count == 3 && (!number_read(words[2], &most) || most < 0)) {
		say_error(client, "ERR value is out of range, must be positive");
		return;
	}
	if (!keys_write_kind(client, words[1], KIND_SET, &key))
		return;
	if (key && (size_t)most > key_count(key))
		most = (int64_t)key_count(key);
	if (count == 3)
		say_set(client, key ? (size_t)most : 0);
	else if (!key)
		say_null(client);
	if (!key || most == 0)
		return;
	pop_members(client, key, (size_t)most);
	keys_drop_empty(client->base, key);
	keys_changed(client, client->base, words[1]);
}

/* Selects distinct members by sampling without replacement. */
static void
say_different(struct client *client, const struct table *set, size_t most)
{
	size_t left = table_count(set);
	struct walk walk = table_walk(set);
	struct node *node;

	while (most > 0 && (node = walk_next(&walk)) != NULL) {
		if (heap_below(set->heap, left--) >= most)
			continue;
		say_bulk(client, table_name(set, node));
		most--;
	}
}

COMMAND(srandmember)
{
	int64_t most = 1;
	struct key *key;

	if (count > 3) {
		say_syntax(client);
		return;
	}
	if (count == 3 && !arg_number(client, words[2], &most))
		return;
	if (most < -(INT64_MAX / 2)) {
		say_error(client, "ERR value is out of range");
		return;
	}
	if (!keys_read_kind(client, words[1], KIND_SET, &key))
		return;
	if (!key) {
		if (count == 3)
			say_array(client, 0);
		else
			say_null(client);
		return;
	}
	if (most > (int64_t)key_count(key))
		most = (int64_t)key_count(key);
	if (count == 3)
		say_array(client, (size_t)(most < 0 ? -most : most));
	if (most > 0)
		say_different(client, key->set, (size_t)most);
	for (; most < 0 && client_hears(client); most++)
		say_any(client, key->set);
}
