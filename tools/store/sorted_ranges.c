/* sorted_ranges.c - ZRANGE and related commands. */
#include "say.h"
#include "sorted_range.h"

/* --- parsing ---------------------------------------------------------------- */

/* What the command's name determines, and therefore is not an option. */
struct form {
	enum range_by by;
	bool can_reverse, reverse, stores;
};

static bool
read_limit(struct client *client, const struct word *words, struct range *out)
{
	out->has_limit = true;
	return arg_number(client, words[1], &out->offset)
	       && arg_number(client, words[2], &out->limit);
}

static bool
sorted_ranges_read_options(struct client *client, const struct word *words, size_t count,
                           const struct form *form, struct range *out)
{
	for (size_t i = form->stores ? 5 : 4; i < count; i++) {
		if (!form->stores && word_is(words[i], "withscores")) {
			out->scores = true;
		} else if (word_is(words[i], "limit") && count - i > 2) {
			if (!read_limit(client, words + i, out))
				return false;
			i += 2;
		} else if (form->can_reverse && word_is(words[i], "rev")) {
			out->reverse = true;
		} else if (form->by == BY_ANY && word_is(words[i], "bylex")) {
			out->by = BY_NAME;
		} else if (form->by == BY_ANY && word_is(words[i], "byscore")) {
			out->by = BY_SCORE;
		} else {
			say_syntax(client);
			return false;
		}
	}
	return true;
}

static bool
read_range(struct client *client, const struct word *words, size_t count, const struct form *form,
           struct range *out)
{
	const struct word *ends = words + (form->stores ? 3 : 2);
	bool turned;

	*out = (struct range){ .by = form->by, .reverse = form->reverse };
	if (!sorted_ranges_read_options(client, words, count, form, out))
		return false;
	if (out->by == BY_ANY)
		out->by = BY_RANK;
	if (out->has_limit && out->limit != -1 && out->by == BY_RANK) {
		say_error(client, "ERR syntax error, LIMIT is only supported in "
		                  "combination with either BYSCORE or BYLEX");
		return false;
	}
	if (out->scores && out->by == BY_NAME) {
		say_error(client, "ERR syntax error, WITHSCORES not supported "
		                  "in combination with BYLEX");
		return false;
	}
	turned = out->reverse && out->by != BY_RANK;
	return range_ends(client, ends[turned], ends[!turned], out);
}

/* --- replies ---------------------------------------------------------------- */

static struct item *
step(const struct item *item, bool reverse)
{
	return reverse ? item->before : item_next(item);
}

static struct item *
item_at(const struct sorted *sorted, size_t rank, bool reverse)
{
	return sorted_at(sorted, reverse ? sorted_count(sorted) - 1 - rank : rank);
}

static void
say_range(struct client *client, const struct sorted *sorted, const struct range *range)
{
	bool pairs = range->scores && client->protocol >= 3;
	struct item *item;
	size_t begin, end;

	range_ranks(sorted, range, &begin, &end);
	say_array(client, (end - begin) * (range->scores && !pairs ? 2 : 1));
	if (begin == end)
		return;
	item = item_at(sorted, begin, range->reverse);
	for (size_t i = begin; i < end; i++) {
		if (pairs)
			say_array(client, 2);
		say_bulk(client, item_word(item));
		if (range->scores)
			say_double(client, item->score);
		item = step(item, range->reverse);
	}
}

static void
show(struct client *client, const struct word *words, size_t count, struct form form)
{
	struct range range;
	struct key *key;

	if (!read_range(client, words, count, &form, &range)
	    || !keys_read_kind(client, words[1], KIND_SORTED, &key))
		return;
	if (key)
		say_range(client, key->sorted, &range);
	else
		say_array(client, 0);
}

COMMAND(zrange)
{
	show(client, words, count, (struct form){ .can_reverse = true });
}

COMMAND(zrevrange)
{
	show(client, words, count, (struct form){ .by = BY_RANK, .reverse = true });
}

COMMAND(zrangebyscore)
{
	show(client, words, count, (struct form){ .by = BY_SCORE });
}

COMMAND(zrevrangebyscore)
{
	show(client, words, count, (struct form){ .by = BY_SCORE, .reverse = true });
}

COMMAND(zrangebylex)
{
	show(client, words, count, (struct form){ .by = BY_NAME });
}

COMMAND(zrevrangebylex)
{
	show(client, words, count, (struct form){ .by = BY_NAME, .reverse = true });
}

COMMAND(zrangestore)
{
	struct form form = { .can_reverse = true, .stores = true };
	struct sorted *result;
	struct range range;
	struct key *key;
	size_t begin = 0, end = 0;

	if (!read_range(client, words, count, &form, &range)
	    || !keys_write_kind(client, words[2], KIND_SORTED, &key))
		return;
	if (key)
		range_ranks(key->sorted, &range, &begin, &end);
	result = sorted_new(&client->store->heap);
	for (; begin < end; begin++) {
		struct item *item = item_at(key->sorted, begin, range.reverse);

		(void)sorted_add(result, item_word(item), item->score);
	}
	store_sorted_result(client, words[1], result);
}

/* --- counting and removing -------------------------------------------------- */

static void
count_range(struct client *client, const struct word *words, enum range_by by)
{
	struct range range = { .by = by };
	size_t begin = 0, end = 0;
	struct key *key;

	if (!range_ends(client, words[2], words[3], &range)
	    || !keys_read_kind(client, words[1], KIND_SORTED, &key))
		return;
	if (key)
		range_ranks(key->sorted, &range, &begin, &end);
	say_number(client, (int64_t)(end - begin));
}

COMMAND(zcount)
{
	(void)count;
	count_range(client, words, BY_SCORE);
}

COMMAND(zlexcount)
{
	(void)count;
	count_range(client, words, BY_NAME);
}

static void
remove_range(struct client *client, const struct word *words, enum range_by by)
{
	struct range range = { .by = by };
	size_t begin = 0, end = 0, removed;
	struct item *item;
	struct key *key;

	if (!range_ends(client, words[2], words[3], &range)
	    || !keys_write_kind(client, words[1], KIND_SORTED, &key))
		return;
	if (key)
		range_ranks(key->sorted, &range, &begin, &end);
	removed = end - begin;
	item = removed > 0 ? sorted_at(key->sorted, begin) : NULL;
	for (; begin < end; begin++) {
		struct item *next = item_next(item);

		sorted_remove(key->sorted, item);
		item = next;
	}
	if (removed > 0) {
		keys_drop_empty(client->base, key);
		keys_changed(client, client->base, words[1]);
	}
	say_number(client, (int64_t)removed);
}

COMMAND(zremrangebyrank)
{
	(void)count;
	remove_range(client, words, BY_RANK);
}

COMMAND(zremrangebyscore)
{
	(void)count;
	remove_range(client, words, BY_SCORE);
}

COMMAND(zremrangebylex)
{
	(void)count;
	remove_range(client, words, BY_NAME);
}
