/* blocking.c - commands that block until there is an element: BLPOP, BLMOVE, BZPOPMIN, ... */
#include <math.h>
#include "lists.h"
#include "say.h"

/* Converts seconds to milliseconds; 0: no timeout. */
static bool
read_timeout(struct client *client, struct word word, int64_t *out_ms)
{
	double seconds;

	if (!real_read(word, &seconds) || !isfinite(seconds)
	    || seconds > (double)(INT64_MAX / 2000000)) {
		say_error(client, "ERR timeout is not a float or out of range");
		return false;
	}
	if (seconds < 0) {
		say_error(client, "ERR timeout is negative");
		return false;
	}
	*out_ms = (int64_t)ceil(seconds * 1000);
	return true;
}

/* Returns the first of the keys that exists.  Returns NULL if none does, or if an error was
 * replied (`told`). */
static struct key *
first_key(struct client *client, const struct word *words, size_t count, int kind, bool *told)
{
	struct key *key = NULL;

	*told = false;
	for (size_t i = 1; i + 1 < count && !key && !*told; i++)
		*told = !keys_write_kind(client, words[i], kind, &key);
	return *told ? NULL : key;
}

/* Blocks the client; inside EXEC, replies with null instead. */
static void
store_blocking_wait_for(struct client *client, const struct word *keys, size_t count,
                        int64_t timeout_ms)
{
	if (client->flags & CLIENT_EXEC)
		say_null_array(client);
	else
		client_wait(client, keys, count, timeout_ms);
}

static void
pop_list(struct client *client, const struct word *words, size_t count, bool left)
{
	int64_t timeout_ms;
	struct text *text, *name;
	struct key *key;
	bool told;

	if (!read_timeout(client, words[count - 1], &timeout_ms))
		return;
	key = first_key(client, words, count, KIND_LIST, &told);
	if (!key) {
		if (!told)
			store_blocking_wait_for(client, words + 1, count - 2, timeout_ms);
		return;
	}
	name = text_new(&client->store->heap, key_word(key));
	text = list_pop(client, key, left);
	say_array(client, 2);
	say_bulk(client, text_word(name));
	say_bulk(client, text_word(text));
	keys_changed(client, client->base, text_word(name));
	text_free(&client->store->heap, text);
	text_free(&client->store->heap, name);
	client->served = true;
}

COMMAND(blpop)
{
	pop_list(client, words, count, true);
}

COMMAND(brpop)
{
	pop_list(client, words, count, false);
}

static void
move_or_wait(struct client *client, const struct list_move *move, struct word timeout)
{
	int64_t timeout_ms;

	if (!read_timeout(client, timeout, &timeout_ms) || list_move(client, move))
		return;
	if (client->flags & CLIENT_EXEC)
		say_null(client);
	else
		client_wait(client, &move->from, 1, timeout_ms);
}

COMMAND(blmove)
{
	struct list_move move = { words[1], words[2], false, false };

	(void)count;
	if (list_side(client, words[3], &move.from_left)
	    && list_side(client, words[4], &move.to_left))
		move_or_wait(client, &move, words[5]);
}

COMMAND(brpoplpush)
{
	struct list_move move = { words[1], words[2], false, true };

	(void)count;
	move_or_wait(client, &move, words[3]);
}

static void
pop_sorted(struct client *client, const struct word *words, size_t count, bool most)
{
	int64_t timeout_ms;
	struct text *name;
	struct item *item;
	struct key *key;
	bool told;

	if (!read_timeout(client, words[count - 1], &timeout_ms))
		return;
	key = first_key(client, words, count, KIND_SORTED, &told);
	if (!key) {
		if (!told)
			store_blocking_wait_for(client, words + 1, count - 2, timeout_ms);
		return;
	}
	name = text_new(&client->store->heap, key_word(key));
	item = most ? key->sorted->last : sorted_first(key->sorted);
	say_array(client, 3);
	say_bulk(client, text_word(name));
	say_bulk(client, item_word(item));
	say_double(client, item->score);
	sorted_remove(key->sorted, item);
	keys_drop_empty(client->base, key);
	keys_changed(client, client->base, text_word(name));
	text_free(&client->store->heap, name);
	client->served = true;
}

COMMAND(bzpopmin)
{
	pop_sorted(client, words, count, false);
}

COMMAND(bzpopmax)
{
	pop_sorted(client, words, count, true);
}
