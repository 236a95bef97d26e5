/* generic.c - keys of any type: DEL, EXISTS, TYPE, RENAME, COPY, MOVE, KEYS, FLUSHALL. */
#include "command.h"
#include "say.h"

COMMAND(del)
{
	int64_t dropped = 0;

	for (size_t i = 1; i < count; i++) {
		struct key *key = keys_write(client, words[i]);

		if (!key)
			continue;
		keys_drop(client->base, key);
		keys_changed(client, client->base, words[i]);
		dropped++;
	}
	say_number(client, dropped);
}

COMMAND(unlink)
{
	do_del(client, words, count);
}

COMMAND(exists)
{
	int64_t found = 0;

	for (size_t i = 1; i < count; i++)
		found += keys_read(client, words[i]) != NULL;
	say_number(client, found);
}

COMMAND(touch)
{
	do_exists(client, words, count);
}

COMMAND(type)
{
	struct key *key = keys_read(client, words[1]);

	(void)count;
	say_status(client, key ? kind_name(key->kind) : "none");
}

/* --- renaming and copying --------------------------------------------------- */

/* Moves the value of `from` to a new key `name`, and deletes `from`.  Containers are not copied. */
static void
move_key(struct client *client, struct base *base, struct key *from, struct word name)
{
	struct key *to = keys_add(base, name, KIND_STRING);
	struct key held = *from;

	to->kind = held.kind;
	to->text = held.text;
	keys_mortal(client, base, to, held.expires_ms);
	from->kind = KIND_STRING;
	from->text = NULL;
	keys_drop(client->base, from);
}

static bool
is_list(const struct key *key)
{
	return key->kind == KIND_LIST || key->kind == KIND_SORTED;
}

/* Returns false after replying if it was not renamed. */
static bool
rename_key(struct client *client, const struct word *words, bool replace)
{
	struct key *from = keys_write(client, words[1]), *to;
	bool waited;

	if (!from) {
		say_error(client, "ERR no such key");
		return false;
	}
	if (word_equal(words[1], words[2])) {
		if (!replace)
			say_number(client, 0);
		return replace;
	}
	to = keys_write(client, words[2]);
	if (to && !replace) {
		say_number(client, 0);
		return false;
	}
	if (to)
		keys_drop(client->base, to);
	waited = is_list(from);
	move_key(client, client->base, from, words[2]);
	keys_changed(client, client->base, words[1]);
	keys_changed(client, client->base, words[2]);
	if (waited)
		keys_ready(client, words[2]);
	return true;
}

COMMAND(rename)
{
	(void)count;
	if (rename_key(client, words, true))
		say_ok(client);
}

COMMAND(renamenx)
{
	(void)count;
	if (rename_key(client, words, false))
		say_number(client, 1);
}

struct copy_options {
	struct base *base;
	bool replace;
};

static bool
read_copy(struct client *client, const struct word *words, size_t count, struct copy_options *out)
{
	int64_t number;

	for (size_t i = 3; i < count; i++) {
		if (word_is(words[i], "replace")) {
			out->replace = true;
		} else if (word_is(words[i], "db") && i + 1 < count) {
			if (!arg_number(client, words[++i], &number))
				return false;
			if (number < 0 || number >= BASES) {
				say_error(client, "ERR DB index is out of range");
				return false;
			}
			out->base = &client->store->bases[number];
		} else {
			say_syntax(client);
			return false;
		}
	}
	return true;
}

COMMAND(copy)
{
	struct copy_options options = { client->base, false };
	struct key *from, *to;

	if (!read_copy(client, words, count, &options))
		return;
	if (options.base == client->base && word_equal(words[1], words[2])) {
		say_error(client, "ERR source and destination objects are the same");
		return;
	}
	from = keys_write(client, words[1]);
	to = keys_peek(client->store, options.base, words[2]);
	if (!from || (to && !options.replace)) {
		say_number(client, 0);
		return;
	}
	to = (struct key *)(void *)table_find(&options.base->keys, words[2]);
	if (to)
		keys_drop(options.base, to);
	to = keys_add(options.base, words[2], KIND_STRING);
	keys_copy(options.base, to, from);
	keys_mortal(client, options.base, to, from->expires_ms);
	keys_changed(client, options.base, words[2]);
	if (is_list(to) && options.base == client->base)
		keys_ready(client, words[2]);
	say_number(client, 1);
}

COMMAND(move)
{
	struct base *base;
	struct key *key, *there;
	int64_t number;

	(void)count;
	if (!arg_number(client, words[2], &number))
		return;
	if (number < 0 || number >= BASES) {
		say_error(client, "ERR DB index is out of range");
		return;
	}
	base = &client->store->bases[number];
	if (base == client->base) {
		say_error(client, "ERR source and destination objects are the same");
		return;
	}
	key = keys_write(client, words[1]);
	there = keys_peek(client->store, base, words[1]);
	if (!key || there) {
		say_number(client, 0);
		return;
	}
	there = (struct key *)(void *)table_find(&base->keys, words[1]);
	if (there)
		keys_drop(base, there);
	move_key(client, base, key, words[1]);
	keys_changed(client, client->base, words[1]);
	keys_changed(client, base, words[1]);
	say_number(client, 1);
}

/* --- whole databases -------------------------------------------------------- */

COMMAND(keys)
{
	struct walk walk = table_walk(&client->base->keys);
	size_t place = say_later(client), shown = 0;
	struct node *node;

	(void)count;
	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);

		if (!word_matches(words[1], name) || !keys_peek(client->store, client->base, name))
			continue;
		say_bulk(client, name);
		shown++;
	}
	say_count(client, place, '*', shown);
}

COMMAND(randomkey)
{
	struct table *table = &client->base->keys;
	struct node *node;

	(void)words, (void)count;
	while ((node = table_any(table)) != NULL) {
		struct key *key = keys_write(client, table_name(table, node));

		if (!key) /* it has expired, and was removed */
			continue;
		say_bulk(client, key_word(key));
		return;
	}
	say_null(client);
}

COMMAND(dbsize)
{
	(void)words, (void)count;
	say_number(client, (int64_t)table_count(&client->base->keys));
}

static bool
flush_options(struct client *client, const struct word *words, size_t count)
{
	if (count == 1 || (count == 2 && (word_is(words[1], "async") || word_is(words[1], "sync"))))
		return true;
	say_syntax(client);
	return false;
}

COMMAND(flushdb)
{
	if (!flush_options(client, words, count))
		return;
	watch_touch_all(client->store, client->base);
	tracking_flushed(client->store);
	base_clear(client->base);
	say_ok(client);
}

COMMAND(flushall)
{
	if (!flush_options(client, words, count))
		return;
	watch_touch_all(client->store, NULL);
	tracking_flushed(client->store);
	for (uint32_t i = 0; i < BASES; i++)
		base_clear(&client->store->bases[i]);
	say_ok(client);
}
