/* hashes.c - hashes: fields and their values. */
#include "command.h"
#include "say.h"

static void
say_value(struct client *client, const struct field *field)
{
	if (field)
		say_bulk(client, text_word(field->value));
	else
		say_null(client);
}

static int64_t
set_fields(struct client *client, const struct word *words, size_t count)
{
	int64_t added = 0;
	struct key *key;

	if (count % 2 != 0) {
		say_error(client, "ERR wrong number of arguments for '%s' command",
		          client->command->name);
		return -1;
	}
	if (!keys_write_kind(client, words[1], KIND_HASH, &key))
		return -1;
	if (!key)
		key = keys_add(client->base, words[1], KIND_HASH);
	for (size_t i = 2; i < count; i += 2)
		added += fields_set(key->hash, words[i], words[i + 1]);
	keys_changed(client, client->base, words[1]);
	return added;
}

COMMAND(hset)
{
	int64_t added = set_fields(client, words, count);

	if (added >= 0)
		say_number(client, added);
}

COMMAND(hmset)
{
	if (set_fields(client, words, count) >= 0)
		say_ok(client);
}

COMMAND(hsetnx)
{
	struct key *key;

	(void)count;
	if (!keys_write_kind(client, words[1], KIND_HASH, &key))
		return;
	if (key && fields_find(key->hash, words[2])) {
		say_number(client, 0);
		return;
	}
	if (!key)
		key = keys_add(client->base, words[1], KIND_HASH);
	(void)fields_set(key->hash, words[2], words[3]);
	keys_changed(client, client->base, words[1]);
	say_number(client, 1);
}

COMMAND(hget)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_HASH, &key))
		say_value(client, key ? fields_find(key->hash, words[2]) : NULL);
}

COMMAND(hmget)
{
	struct key *key;

	if (!keys_read_kind(client, words[1], KIND_HASH, &key))
		return;
	say_array(client, count - 2);
	for (size_t i = 2; i < count; i++)
		say_value(client, key ? fields_find(key->hash, words[i]) : NULL);
}

COMMAND(hdel)
{
	int64_t removed = 0;
	struct key *key;

	if (!keys_write_kind(client, words[1], KIND_HASH, &key))
		return;
	for (size_t i = 2; key && i < count; i++) {
		struct field *field = fields_find(key->hash, words[i]);

		if (!field)
			continue;
		fields_remove(key->hash, field);
		removed++;
	}
	if (removed > 0) {
		keys_drop_empty(client->base, key);
		keys_changed(client, client->base, words[1]);
	}
	say_number(client, removed);
}

COMMAND(hlen)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_HASH, &key))
		say_number(client, key ? (int64_t)key_count(key) : 0);
}

COMMAND(hexists)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_HASH, &key))
		say_number(client, key && fields_find(key->hash, words[2]));
}

COMMAND(hstrlen)
{
	struct field *field;
	struct key *key;

	(void)count;
	if (!keys_read_kind(client, words[1], KIND_HASH, &key))
		return;
	field = key ? fields_find(key->hash, words[2]) : NULL;
	say_number(client, field ? field->value->size : 0);
}

/* --- all of them ------------------------------------------------------------ */

enum { NAMES = 1, VALUES = 2 };

static void
say_all(struct client *client, struct word name, int what)
{
	struct walk walk;
	struct node *node;
	struct key *key;

	if (!keys_read_kind(client, name, KIND_HASH, &key))
		return;
	if (what == (NAMES | VALUES))
		say_map(client, key ? key_count(key) : 0);
	else
		say_array(client, key ? key_count(key) : 0);
	if (!key)
		return;
	walk = table_walk(key->hash);
	while ((node = walk_next(&walk)) != NULL) {
		if (what & NAMES)
			say_bulk(client, table_name(walk.table, node));
		if (what & VALUES)
			say_value(client, (struct field *)(void *)node);
	}
}

COMMAND(hgetall)
{
	(void)count;
	say_all(client, words[1], NAMES | VALUES);
}

COMMAND(hkeys)
{
	(void)count;
	say_all(client, words[1], NAMES);
}

COMMAND(hvals)
{
	(void)count;
	say_all(client, words[1], VALUES);
}
