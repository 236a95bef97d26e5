/* lists.c - list commands that use the ends. */
#include "lists.h"
#include "say.h"

/* --- ends ------------------------------------------------------------------- */

bool
list_side(struct client *client, struct word word, bool *out_left)
{
	*out_left = word_is(word, "left");
	if (*out_left || word_is(word, "right"))
		return true;
	say_syntax(client);
	return false;
}

void
list_push(struct client *client, struct word name, struct text *text, bool left)
{
	struct key *key = keys_write(client, name);

	if (!key)
		key = keys_add(client->base, name, KIND_LIST);
	deque_insert(key->list, left ? 0 : key->list->count, text);
}

struct text *
list_pop(struct client *client, struct key *key, bool left)
{
	struct text *text = deque_remove(key->list, left ? 0 : key->list->count - 1);

	keys_drop_empty(client->base, key);
	return text;
}

static void
lists_push(struct client *client, const struct word *words, size_t count, bool left,
           bool only_there)
{
	struct key *key;

	if (!keys_write_kind(client, words[1], KIND_LIST, &key))
		return;
	if (!key && only_there) {
		say_number(client, 0);
		return;
	}
	if (!key)
		key = keys_add(client->base, words[1], KIND_LIST);
	for (size_t i = 2; i < count; i++)
		deque_insert(key->list, left ? 0 : key->list->count,
		             text_new(&client->store->heap, words[i]));
	keys_changed(client, client->base, words[1]);
	keys_ready(client, words[1]);
	say_number(client, (int64_t)key->list->count);
}

COMMAND(lpush)
{
	lists_push(client, words, count, true, false);
}

COMMAND(rpush)
{
	lists_push(client, words, count, false, false);
}

COMMAND(lpushx)
{
	lists_push(client, words, count, true, true);
}

COMMAND(rpushx)
{
	lists_push(client, words, count, false, true);
}

static void
say_popped(struct client *client, struct key *key, bool left, size_t count)
{
	while (count-- > 0) {
		size_t at = left ? 0 : key->list->count - 1;
		struct text *text = deque_remove(key->list, at);

		say_bulk(client, text_word(text));
		text_free(&client->store->heap, text);
	}
}

static void
lists_pop(struct client *client, const struct word *words, size_t count, bool left)
{
	int64_t most = 1;
	struct key *key;

	if (count > 3) {
		say_error(client, "ERR wrong number of arguments for '%s' command",
		          client->command->name);
		return;
	}
	if (count == 3 && (!number_read(words[2], &most) || most < 0)) {
		say_error(client, "ERR value is out of range, must be positive");
		return;
	}
	if (!keys_write_kind(client, words[1], KIND_LIST, &key))
		return;
	if (!key) {
		if (count == 3)
			say_null_array(client);
		else
			say_null(client);
		return;
	}
	if ((size_t)most > key->list->count)
		most = (int64_t)key->list->count;
	if (count == 3)
		say_array(client, (size_t)most);
	say_popped(client, key, left, (size_t)most);
	if (most == 0)
		return;
	keys_drop_empty(client->base, key);
	keys_changed(client, client->base, words[1]);
}

COMMAND(lpop)
{
	lists_pop(client, words, count, true);
}

COMMAND(rpop)
{
	lists_pop(client, words, count, false);
}

/* --- from list to list ------------------------------------------------------ */

bool
list_move(struct client *client, const struct list_move *move)
{
	struct key *from = keys_write(client, move->from), *to;
	struct text *text;

	if (!from)
		return false;
	to = keys_write(client, move->to);
	if (from->kind != KIND_LIST || (to && to->kind != KIND_LIST)) {
		say_wrong_kind(client);
		return true;
	}
	text = deque_remove(from->list, move->from_left ? 0 : from->list->count - 1);
	if (from == to)
		deque_insert(to->list, move->to_left ? 0 : to->list->count, text);
	else
		list_push(client, move->to, text, move->to_left);
	say_bulk(client, text_word(text));
	keys_drop_empty(client->base, from);
	keys_changed(client, client->base, move->from);
	keys_changed(client, client->base, move->to);
	keys_ready(client, move->to);
	client->served = true;
	return true;
}

COMMAND(lmove)
{
	struct list_move move = { words[1], words[2], false, false };

	(void)count;
	if (!list_side(client, words[3], &move.from_left)
	    || !list_side(client, words[4], &move.to_left))
		return;
	if (!list_move(client, &move))
		say_null(client);
}

COMMAND(rpoplpush)
{
	struct list_move move = { words[1], words[2], false, true };

	(void)count;
	if (!list_move(client, &move))
		say_null(client);
}

struct pop_options {
	int64_t keys, count;
	bool left;
};

static bool
read_pop(struct client *client, const struct word *words, size_t count, struct pop_options *out)
{
	size_t at;

	if (!number_read(words[1], &out->keys) || out->keys <= 0) {
		say_error(client, "ERR numkeys should be greater than 0");
		return false;
	}
	if ((size_t)out->keys > count - 3) {
		say_syntax(client);
		return false;
	}
	at = 2 + (size_t)out->keys;
	if (!list_side(client, words[at], &out->left))
		return false;
	out->count = 0;
	for (at++; at < count; at += 2) {
		if (out->count != 0 || at + 1 == count || !word_is(words[at], "count")) {
			say_syntax(client);
			return false;
		}
		if (!number_read(words[at + 1], &out->count) || out->count <= 0) {
			say_error(client, "ERR count should be greater than 0");
			return false;
		}
	}
	if (out->count == 0)
		out->count = 1;
	return true;
}

COMMAND(lmpop)
{
	struct pop_options options;
	struct key *key = NULL;
	size_t i = 2, most;

	if (!read_pop(client, words, count, &options))
		return;
	for (; i < 2 + (size_t)options.keys && !key; i++)
		if (!keys_write_kind(client, words[i], KIND_LIST, &key))
			return;
	if (!key) {
		say_null_array(client);
		return;
	}
	most = key->list->count;
	if (most > (size_t)options.count)
		most = (size_t)options.count;
	say_array(client, 2);
	say_bulk(client, words[i - 1]);
	say_array(client, most);
	say_popped(client, key, options.left, most);
	keys_drop_empty(client->base, key);
	keys_changed(client, client->base, words[i - 1]);
}
