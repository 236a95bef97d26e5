/* hashes.c - the commands for hashes and sets. */
#include "store/commands/commands.h"

COMMAND(hset)
{
	int64_t added = 0;

	if (client->argc % 2 != 0) {
		reply_error(client, WRONG_ARITY, "hset");
		return;
	}
	for (size_t i = 2; i < client->argc; i += 2)
		added += field_set(&client->key->fields, client->argv[i], &client->argv[i + 1]);
	reply_integer(client, added);
}

COMMAND(sadd)
{
	int64_t added = 0;

	for (size_t i = 2; i < client->argc; i++)
		added += field_set(&client->key->fields, client->argv[i], NULL);
	reply_integer(client, added);
}

COMMAND(hincrby)
{
	struct map *fields = &client->key->fields;
	const struct field *field = map_find(fields, client->argv[2]);
	int64_t number = 0, by;
	char text[INTEGER_MAX];
	struct slice value;

	if (!arg_integer(client, 3, &by))
		return;
	if (field && !integer_parse(string_slice(field->value), &number))
		reply_error(client, "ERR hash value is not an integer");
	else if (__builtin_add_overflow(number, by, &number))
		reply_error(client, OVERFLOW);
	else {
		value = integer_format(text, number);
		(void)field_set(fields, client->argv[2], &value);
		reply_integer(client, number);
	}
}

/* HDEL, SREM */
COMMAND(hdel)
{
	int64_t removed = 0;

	for (size_t i = 2; i < client->argc; i++)
		removed += field_remove(&client->key->fields,
		                        map_find(&client->key->fields, client->argv[i]));
	reply_integer(client, removed);
}

COMMAND(hget)
{
	const struct field *field = map_find(&client->key->fields, client->argv[2]);

	reply_string(client, field ? field->value : NULL);
}

COMMAND(hmget)
{
	reply_many(client, '*', client->argc - 2);
	for (size_t i = 2; i < client->argc; i++) {
		const struct field *field =
			client->key ? map_find(&client->key->fields, client->argv[i]) : NULL;

		reply_string(client, field ? field->value : NULL);
	}
}

/* HEXISTS, SISMEMBER */
COMMAND(hexists)
{
	reply_integer(client, map_find(&client->key->fields, client->argv[2]) != NULL);
}

/* HGETALL, HKEYS, HVALS, SMEMBERS */
COMMAND(hgetall)
{
	const struct map *fields = &client->key->fields;

	reply_many(client, client->command->missing, map_count(fields));
	for (size_t i = 0; i < map_count(fields); i++) {
		struct field *field = map_at(fields, i);

		if (client->command->variant & NAMES)
			reply_bulk(client, map_name(fields, field));
		if (client->command->variant & VALUES)
			reply_string(client, field->value);
	}
}
