/* sorted_members.c - sorted sets: members, scores and ranks. */
#include <math.h>
#include "command.h"
#include "say.h"

/* Adding 0 to a score turns -0 into 0. */

/* --- ZADD ------------------------------------------------------------------- */

enum {
	ADD_NX = 1 << 0, /* only add new members */
	ADD_XX = 1 << 1, /* only change existing members */
	ADD_GT = 1 << 2, /* only if greater */
	ADD_LT = 1 << 3, /* only if less */
	ADD_CH = 1 << 4, /* also count changed members */
	ADD_INCR = 1 << 5,
};

struct adding {
	unsigned flags;
	size_t added, changed;
	bool done;    /* the last member was added, changed, or already has the score */
	double score; /* of the last member */
};

static unsigned
add_flag(struct word word)
{
	static const char *const names[] = { "nx", "xx", "gt", "lt", "ch", "incr" };

	for (unsigned i = 0; i < 6; i++)
		if (word_is(word, names[i]))
			return 1u << i;
	return 0;
}

static bool
check_flags(struct client *client, unsigned flags)
{
	const unsigned both = ADD_NX | ADD_XX, order = ADD_GT | ADD_LT;

	if ((flags & both) == both) {
		say_error(client, "ERR XX and NX options at the same time are not compatible");
		return false;
	}
	if (((flags & ADD_NX) && (flags & order)) || (flags & order) == order) {
		say_error(client, "ERR GT, LT, and/or NX options at the same "
		                  "time are not compatible");
		return false;
	}
	return true;
}

/* Returns false after replying with an error if the score is not a number. */
static bool
change_score(struct client *client, struct sorted *sorted, struct item *item, struct adding *adding)
{
	double score = adding->score;

	adding->done = !(adding->flags & ADD_NX);
	if (!adding->done)
		return true;
	if (adding->flags & ADD_INCR)
		score += item->score;
	if (isnan(score)) {
		say_error(client, "ERR resulting score is not a number (NaN)");
		return false;
	}
	if (((adding->flags & ADD_GT) && score <= item->score)
	    || ((adding->flags & ADD_LT) && score >= item->score)) {
		adding->done = false;
		return true;
	}
	if (score != item->score) {
		(void)sorted_move(sorted, item, score + 0.0);
		adding->changed++;
	}
	adding->score = score;
	return true;
}

static bool
add_member(struct client *client, struct sorted *sorted, struct word name, struct adding *adding)
{
	struct item *item = sorted_find(sorted, name);

	if (item)
		return change_score(client, sorted, item, adding);
	adding->done = !(adding->flags & ADD_XX);
	if (adding->done) {
		(void)sorted_add(sorted, name, adding->score + 0.0);
		adding->added++;
	}
	return true;
}

static void
say_added(struct client *client, const struct adding *adding)
{
	if (!(adding->flags & ADD_INCR))
		say_number(client, (int64_t)(adding->added
		                             + (adding->flags & ADD_CH ? adding->changed : 0)));
	else if (adding->done)
		say_double(client, adding->score);
	else
		say_null(client);
}

/* Adds pairs of score and name from `at` on.  The scores have been validated. */
static void
add_pairs(struct client *client, const struct word *words, size_t count, size_t at,
          struct adding *adding)
{
	struct key *key;
	bool good = true;

	if (!keys_write_kind(client, words[1], KIND_SORTED, &key))
		return;
	if (!key && (adding->flags & ADD_XX)) {
		adding->done = false;
		say_added(client, adding);
		return;
	}
	if (!key)
		key = keys_add(client->base, words[1], KIND_SORTED);
	for (; at < count && good; at += 2) {
		(void)real_read(words[at], &adding->score);
		good = add_member(client, key->sorted, words[at + 1], adding);
	}
	if (good)
		say_added(client, adding);
	keys_drop_empty(client->base, key);
	if (adding->added + adding->changed > 0) {
		keys_changed(client, client->base, words[1]);
		keys_ready(client, words[1]);
	}
}

COMMAND(zadd)
{
	struct adding adding = { 0 };
	unsigned flag;
	double score;
	size_t at = 2;

	for (; at < count && (flag = add_flag(words[at])) != 0; at++)
		adding.flags |= flag;
	if (at == count || (count - at) % 2 != 0) {
		say_syntax(client);
		return;
	}
	if (!check_flags(client, adding.flags))
		return;
	if ((adding.flags & ADD_INCR) && count - at > 2) {
		say_error(client, "ERR INCR option supports a single increment-element pair");
		return;
	}
	for (size_t i = at; i < count; i += 2)
		if (!arg_real(client, words[i], &score))
			return;
	add_pairs(client, words, count, at, &adding);
}

COMMAND(zincrby)
{
	struct adding adding = { .flags = ADD_INCR };
	double score;

	if (arg_real(client, words[2], &score))
		add_pairs(client, words, count, 2, &adding);
}

/* --- members ---------------------------------------------------------------- */

COMMAND(zrem)
{
	int64_t removed = 0;
	struct key *key;

	if (!keys_write_kind(client, words[1], KIND_SORTED, &key))
		return;
	for (size_t i = 2; key && i < count; i++) {
		struct item *item = sorted_find(key->sorted, words[i]);

		if (!item)
			continue;
		sorted_remove(key->sorted, item);
		removed++;
	}
	if (removed > 0) {
		keys_drop_empty(client->base, key);
		keys_changed(client, client->base, words[1]);
	}
	say_number(client, removed);
}

COMMAND(zcard)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_SORTED, &key))
		say_number(client, key ? (int64_t)key_count(key) : 0);
}

static void
say_score(struct client *client, const struct key *key, struct word name)
{
	struct item *item = key ? sorted_find(key->sorted, name) : NULL;

	if (item)
		say_double(client, item->score);
	else
		say_null(client);
}

COMMAND(zscore)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_SORTED, &key))
		say_score(client, key, words[2]);
}

COMMAND(zmscore)
{
	struct key *key;

	if (!keys_read_kind(client, words[1], KIND_SORTED, &key))
		return;
	say_array(client, count - 2);
	for (size_t i = 2; i < count; i++)
		say_score(client, key, words[i]);
}

static void
say_rank(struct client *client, const struct word *words, bool reverse)
{
	struct item *item;
	struct key *key;
	size_t rank;

	if (!keys_read_kind(client, words[1], KIND_SORTED, &key))
		return;
	item = key ? sorted_find(key->sorted, words[2]) : NULL;
	if (!item) {
		say_null(client);
		return;
	}
	rank = sorted_rank(key->sorted, item);
	say_number(client, (int64_t)(reverse ? key_count(key) - 1 - rank : rank));
}

COMMAND(zrank)
{
	(void)count;
	say_rank(client, words, false);
}

COMMAND(zrevrank)
{
	(void)count;
	say_rank(client, words, true);
}

/* --- popping ---------------------------------------------------------------- */

/* With a count, RESP3 uses an array of pairs. */
static void
say_ends(struct client *client, struct key *key, bool most, size_t count, bool pairs)
{
	struct item *item;

	while (count-- > 0) {
		item = most ? key->sorted->last : sorted_first(key->sorted);
		if (pairs)
			say_array(client, 2);
		say_bulk(client, item_word(item));
		say_double(client, item->score);
		sorted_remove(key->sorted, item);
	}
}

static void
sorted_members_pop(struct client *client, const struct word *words, size_t count, bool most)
{
	int64_t number = 1;
	bool pairs = client->protocol >= 3 && count == 3;
	struct key *key;

	if (count > 3) {
		say_syntax(client);
		return;
	}
	if (count == 3 && (!number_read(words[2], &number) || number < 0)) {
		say_error(client, "ERR value is out of range, must be positive");
		return;
	}
	if (!keys_write_kind(client, words[1], KIND_SORTED, &key))
		return;
	if (!key || number == 0) {
		say_array(client, 0);
		return;
	}
	if ((size_t)number > key_count(key))
		number = (int64_t)key_count(key);
	say_array(client, (size_t)number * (pairs ? 1 : 2));
	say_ends(client, key, most, (size_t)number, pairs);
	keys_drop_empty(client->base, key);
	keys_changed(client, client->base, words[1]);
}

COMMAND(zpopmin)
{
	sorted_members_pop(client, words, count, false);
}

COMMAND(zpopmax)
{
	sorted_members_pop(client, words, count, true);
}
