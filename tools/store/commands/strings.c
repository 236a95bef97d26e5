/* strings.c - the commands for strings and counters. */
#include "store/commands/commands.h"

/* Sets a key to a string, which expires never or at a time. */
static void
set_string(struct client *client, struct slice name, struct slice value, int64_t expires_ms)
{
	struct key *key = key_find(client, name);

	if (key && key->type != TYPE_STRING) {
		key_remove(client->store, key);
		key = NULL;
	}
	if (!key)
		key = key_add(client, name, TYPE_STRING);
	key_set_string(client, key, value);
	key->expires_ms = expires_ms;
}

enum { SET_NX = 1, SET_XX = 2, SET_KEEPTTL = 4, SET_EXPIRES = 8 };

/* Parses the options of SET.  Returns false after replying with an error. */
static bool
read_set_options(struct client *client, int *flags, int64_t *expires_ms)
{
	static const struct {
		const char *name;
		int flag, variant;
	} options[] = { { "nx", SET_NX, 0 },
		        { "xx", SET_XX, 0 },
		        { "keepttl", SET_KEEPTTL, 0 },
		        { "ex", SET_EXPIRES, POSITIVE },
		        { "px", SET_EXPIRES, POSITIVE | MS },
		        { "exat", SET_EXPIRES, POSITIVE | DATE },
		        { "pxat", SET_EXPIRES, POSITIVE | DATE | MS } };
	size_t time = 0, used = 0, i = 0;

	for (size_t at = 3; at < client->argc; at++) {
		for (i = 0; i < 7 && !slice_is(client->argv[at], options[i].name);)
			i++;
		if (i == 7 || (i > 2 && (++at == client->argc || (time && used != i))))
			return reply_error(client, SYNTAX);
		*flags |= options[i].flag;
		if (i > 2) {
			time = at;
			used = i;
		}
	}
	if ((*flags & SET_NX && *flags & SET_XX) || (*flags & SET_KEEPTTL && time))
		return reply_error(client, SYNTAX);
	return !time || arg_expiry(client, time, options[used].variant, expires_ms);
}

COMMAND(set)
{
	int64_t expires_ms = INT64_MAX;
	int flags = 0;
	struct key *key;

	if (!read_set_options(client, &flags, &expires_ms))
		return;
	key = flags ? key_find(client, client->argv[1]) : NULL;
	if (flags & (key ? SET_NX : SET_XX)) {
		reply_null(client);
		return;
	}
	set_string(client, client->argv[1], client->argv[2],
	           key && flags & SET_KEEPTTL ? key->expires_ms : expires_ms);
	reply_ok(client);
}

/* SETEX, PSETEX */
COMMAND(setex)
{
	int64_t expires_ms;

	if (!arg_expiry(client, 2, client->command->variant, &expires_ms))
		return;
	set_string(client, client->argv[1], client->argv[3], expires_ms);
	reply_ok(client);
}

COMMAND(mset)
{
	if (client->argc % 2 == 0) {
		reply_error(client, WRONG_ARITY, "mset");
		return;
	}
	for (size_t i = 1; i < client->argc; i += 2)
		set_string(client, client->argv[i], client->argv[i + 1], INT64_MAX);
	reply_ok(client);
}

COMMAND(get)
{
	reply_string(client, client->key->string);
}

COMMAND(mget)
{
	reply_many(client, '*', client->argc - 1);
	for (size_t i = 1; i < client->argc; i++) {
		struct key *key = key_find(client, client->argv[i]);

		reply_string(client, key && key->type == TYPE_STRING ? key->string : NULL);
	}
}

/* INCR, DECR, INCRBY, DECRBY.  The variant is the sign. */
COMMAND(incr)
{
	int64_t sign = client->command->variant, by = 1, number = 0;
	struct key *key = client->key;
	char text[INTEGER_MAX];

	if (client->argc == 3 && !arg_integer(client, 2, &by))
		return;
	if (key->string && !integer_parse(string_slice(key->string), &number))
		reply_error(client, NOT_INTEGER);
	else if (__builtin_mul_overflow(by, sign, &by)
	         || __builtin_add_overflow(number, by, &number))
		reply_error(client, OVERFLOW);
	else {
		key_set_string(client, key, integer_format(text, number));
		reply_integer(client, number);
	}
}
