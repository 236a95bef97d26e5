/* lists.c - the commands for lists. */
#include "store/commands/commands.h"
#include <math.h>

/* LPUSH, RPUSH */
COMMAND(push)
{
	bool left = client->command->variant == LEFT;
	struct key *key = client->key;
	char position[8];

	for (size_t i = 2; i < client->argc; i++) {
		bytes_put(position, left ? --key->left : key->right++);
		(void)field_set(&key->fields, (struct slice){ position, 8 }, &client->argv[i]);
	}
	reply_integer(client, (int64_t)map_count(&key->fields));
}

/* Removes the element at the end that the command names, and replies with it. */
static void
pop_element(struct client *client, struct key *key)
{
	bool left = client->command->variant == LEFT;
	struct field *field = map_at(&key->fields, left ? 0 : map_count(&key->fields) - 1);

	reply_string(client, field->value);
	(void)field_remove(&key->fields, field);
}

/* LPOP, RPOP */
COMMAND(pop)
{
	pop_element(client, client->key);
}

/* BLPOP, BRPOP.  A key of another type is an error, but does not end a wait. */
COMMAND(blpop)
{
	size_t last = client->argc - 1;
	struct key *key = NULL;
	double seconds;

	if (!double_parse(client->argv[last], &seconds) || seconds < 0 || seconds > 1e12) {
		reply_error(client, "ERR timeout is not a float or out of range");
		return;
	}
	for (size_t i = 1; i < last && !key; i++) {
		key = key_find(client, client->argv[i]);
		if (key && key->type != TYPE_LIST && client->flags & CLIENT_RETRY)
			key = NULL;
	}
	if (!key) {
		client_block(client, 1, last - 1, (int64_t)ceil(seconds * 1000));
	} else if (key->type != TYPE_LIST) {
		reply_error(client, WRONG_TYPE);
	} else {
		reply_many(client, '*', 2);
		reply_bulk(client, key_name(key));
		pop_element(client, key);
		key_modified(client, key);
	}
}

/* LRANGE, LTRIM */
COMMAND(lrange)
{
	struct key *key = client->key;
	int64_t begin, end, count = key ? (int64_t)map_count(&key->fields) : 0;

	if (!arg_range(client, (size_t)count, &begin, &end))
		return;
	if (client->command->variant != REMOVE) {
		reply_many(client, '*', (size_t)(end - begin));
		for (; begin < end; begin++)
			reply_string(client,
			             ((struct field *)map_at(&key->fields, (size_t)begin))->value);
		return;
	}
	while (count-- > 0)
		if (count < begin || count >= end)
			(void)field_remove(&key->fields, map_at(&key->fields, (size_t)count));
	reply_ok(client);
}
