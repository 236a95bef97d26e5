/* keys.c - keys, and the commands for keys of any type. */
#include "store/commands/commands.h"

#define SAMPLE 2

void
key_set_string(struct client *client, struct key *key, struct slice value)
{
	if (key->string && key->string->size == value.size) {
		memcpy(key->string->bytes, value.data, value.size);
		return;
	}
	memory_free(&client->store->memory, key->string);
	key->string = string_new(&client->store->memory, value);
}

static void
field_fini(void *field, struct memory *memory)
{
	memory_free(memory, ((struct field *)field)->value);
}

static void
key_fini(void *node, struct memory *memory)
{
	struct key *key = node;

	memory_free(memory, key->string);
	map_clear(&key->fields, field_fini);
	map_clear(&key->more, key->type == TYPE_STREAM ? group_fini : NULL);
}

void
key_remove(struct weft_store *store, struct key *key)
{
	block_key_changed(store, key_name(key));
	key_fini(key, &store->memory);
	map_remove(&store->keys, key);
}

void
keys_clear(struct weft_store *store)
{
	map_clear(&store->keys, key_fini);
	for (size_t i = 0; i < map_count(&store->awaited); i++)
		block_key_changed(store, map_name(&store->awaited, map_at(&store->awaited, i)));
}

void
key_modified(struct client *client, struct key *key)
{
	if (!key->string && key->type != TYPE_STREAM && map_count(&key->fields) == 0)
		key_remove(client->store, key);
	else
		block_key_changed(client->store, key_name(key));
}

/* --- fields ----------------------------------------------------------------- */

bool
field_set(struct map *fields, struct slice name, const struct slice *value)
{
	struct field *field = map_find(fields, name);
	bool exists = field != NULL;

	if (!exists)
		field = map_add(fields, name);
	if (value) {
		memory_free(fields->memory, field->value);
		field->value = string_new(fields->memory, *value);
	}
	return !exists;
}

bool
field_remove(struct map *fields, struct field *field)
{
	if (!field)
		return false;
	memory_free(fields->memory, field->value);
	map_remove(fields, field);
	return true;
}

/* --- lookups and expiry ------------------------------------------------------- */

static bool
key_expired(struct weft_store *store, struct key *key)
{
	if (key->expires_ms > store->now_ms)
		return false;
	key_remove(store, key);
	return true;
}

/* Checks SAMPLE other keys, so that few keys that have expired are kept, without a timer. */
struct key *
key_add(struct client *client, struct slice name, enum key_type type)
{
	struct weft_store *store = client->store;
	struct key *key;

	for (size_t i = 0; i < SAMPLE && map_count(&store->keys) > 0; i++) {
		size_t position = memory_random(&store->memory) % map_count(&store->keys);

		(void)key_expired(store, map_at(&store->keys, position));
	}
	key = map_add(&store->keys, name);
	key->type = type;
	key->expires_ms = INT64_MAX;
	key->left = key->right = UINT64_C(1) << 63;
	map_init(&key->fields, &store->memory, offsetof(struct field, name));
	map_init(&key->more, &store->memory, offsetof(struct field, name));
	return key;
}

struct key *
key_find(struct client *client, struct slice name)
{
	struct weft_store *store = client->store;
	struct key *key = map_find(&store->keys, name);

	return key && !key_expired(store, key) ? key : NULL;
}

/* --- commands ------------------------------------------------------------------ */

/* DEL, UNLINK */
COMMAND(del)
{
	int64_t removed = 0;

	for (size_t i = 1; i < client->argc; i++) {
		struct key *key = key_find(client, client->argv[i]);

		removed += key != NULL;
		if (key)
			key_remove(client->store, key);
	}
	reply_integer(client, removed);
}

COMMAND(exists)
{
	int64_t found = 0;

	for (size_t i = 1; i < client->argc; i++)
		found += key_find(client, client->argv[i]) != NULL;
	reply_integer(client, found);
}

COMMAND(type)
{
	static const char *const names[] = { "none", "string", "list",  "set",
		                             "zset", "hash",   "stream" };
	struct key *key = key_find(client, client->argv[1]);

	reply_status(client, names[key ? key->type : TYPE_NONE]);
}

/* STRLEN, HLEN, SCARD, LLEN, ZCARD, XLEN */
COMMAND(length)
{
	const struct key *key = client->key;

	reply_integer(client, (int64_t)(key->string ? key->string->size : map_count(&key->fields)));
}

COMMAND(keys)
{
	const struct map *keys = &client->store->keys;
	size_t position = reply_later(client), shown = 0;

	for (size_t i = 0; i < map_count(keys); i++) {
		struct key *key = map_at(keys, i);

		if (key->expires_ms <= client->store->now_ms
		    || !slice_matches(client->argv[1], key_name(key)))
			continue;
		reply_bulk(client, key_name(key));
		shown++;
	}
	reply_count(client, position, '*', shown);
}

COMMAND(dbsize)
{
	reply_integer(client, (int64_t)map_count(&client->store->keys));
}

/* FLUSHALL, FLUSHDB */
COMMAND(flush)
{
	keys_clear(client->store);
	reply_ok(client);
}

/* --- commands for expiry ---------------------------------------------------- */

bool
arg_expiry(struct client *client, size_t at, int variant, int64_t *out_ms)
{
	int64_t from_ms = variant & DATE ? 0 : client->store->now_ms, number;

	if (!arg_integer(client, at, &number))
		return false;
	if ((number > 0 || !(variant & POSITIVE))
	    && !__builtin_mul_overflow(number, variant & MS ? 1 : 1000, &number)
	    && !__builtin_add_overflow(number, from_ms, out_ms))
		return true;
	return reply_error(client, "ERR invalid expire time in '%s' command",
	                   client->command->name);
}

/* EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT */
COMMAND(expire)
{
	struct key *key;
	int64_t at_ms;

	if (!arg_expiry(client, 2, client->command->variant, &at_ms))
		return;
	key = key_find(client, client->argv[1]);
	reply_integer(client, key != NULL);
	if (key) {
		key->expires_ms = at_ms;
		(void)key_expired(client->store, key);
	}
}

COMMAND(persist)
{
	struct key *key = key_find(client, client->argv[1]);

	reply_integer(client, key && key->expires_ms != INT64_MAX);
	if (key)
		key->expires_ms = INT64_MAX;
}

/* TTL, PTTL.  Rounds to the unit. */
COMMAND(ttl)
{
	int64_t scale = client->command->variant & MS ? 1 : 1000;
	struct key *key = key_find(client, client->argv[1]);

	if (!key || key->expires_ms == INT64_MAX)
		reply_integer(client, key ? -1 : -2);
	else
		reply_integer(client,
		              (key->expires_ms - client->store->now_ms + scale / 2) / scale);
}
