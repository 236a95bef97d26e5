/* list_inside.c - list commands that use an index or a value. */
#include "command.h"
#include "say.h"

COMMAND(llen)
{
	struct key *key;

	(void)count;
	if (keys_read_kind(client, words[1], KIND_LIST, &key))
		say_number(client, key ? (int64_t)key->list->count : 0);
}

/* A negative index counts from the end.  Returns false if there is no such element. */
static bool
find_index(const struct deque *list, int64_t index, size_t *out)
{
	if (index < 0)
		index += (int64_t)list->count;
	*out = (size_t)index;
	return index >= 0 && index < (int64_t)list->count;
}

COMMAND(lindex)
{
	struct key *key;
	int64_t index;
	size_t at;

	(void)count;
	if (!keys_read_kind(client, words[1], KIND_LIST, &key))
		return;
	if (!key) {
		say_null(client);
		return;
	}
	if (!arg_number(client, words[2], &index))
		return;
	if (find_index(key->list, index, &at))
		say_bulk(client, text_word(*deque_at(key->list, at)));
	else
		say_null(client);
}

COMMAND(lset)
{
	struct text **place;
	struct key *key;
	int64_t index;
	size_t at;

	(void)count;
	if (!keys_write_kind(client, words[1], KIND_LIST, &key))
		return;
	if (!key) {
		say_error(client, "ERR no such key");
		return;
	}
	if (!arg_number(client, words[2], &index))
		return;
	if (!find_index(key->list, index, &at)) {
		say_error(client, "ERR index out of range");
		return;
	}
	place = deque_at(key->list, at);
	text_free(&client->store->heap, *place);
	*place = text_new(&client->store->heap, words[3]);
	keys_changed(client, client->base, words[1]);
	say_ok(client);
}

/* Parses a range of indexes, inclusive, and converts it to [begin, end); empty if begin == end. */
static bool
read_range(struct client *client, const struct word *words, size_t size, size_t *out_begin,
           size_t *out_end)
{
	int64_t begin, end, all = (int64_t)size;

	if (!arg_number(client, words[2], &begin) || !arg_number(client, words[3], &end))
		return false;
	if (begin < 0)
		begin += all;
	if (end < 0)
		end += all;
	if (begin < 0)
		begin = 0;
	if (end >= all)
		end = all - 1;
	if (begin > end || begin >= all)
		begin = end = 0;
	else
		end++;
	*out_begin = (size_t)begin;
	*out_end = (size_t)end;
	return true;
}

COMMAND(lrange)
{
	size_t begin, end;
	struct key *key;

	(void)count;
	if (!read_range(client, words, 0, &begin, &end)
	    || !keys_read_kind(client, words[1], KIND_LIST, &key))
		return;
	if (key)
		(void)read_range(client, words, key->list->count, &begin, &end);
	say_array(client, end - begin);
	for (size_t i = begin; i < end; i++)
		say_bulk(client, text_word(*deque_at(key->list, i)));
}

COMMAND(ltrim)
{
	size_t begin, end;
	struct key *key;

	(void)count;
	if (!read_range(client, words, 0, &begin, &end)
	    || !keys_write_kind(client, words[1], KIND_LIST, &key))
		return;
	if (key) {
		(void)read_range(client, words, key->list->count, &begin, &end);
		deque_trim(key->list, begin, end);
		keys_drop_empty(client->base, key);
		keys_changed(client, client->base, words[1]);
	}
	say_ok(client);
}

/* --- by value --------------------------------------------------------------- */

static bool
holds(const struct deque *list, size_t at, struct word value)
{
	return word_equal(text_word(*deque_at(list, at)), value);
}

COMMAND(linsert)
{
	bool after = word_is(words[2], "after");
	struct key *key;
	size_t at = 0;

	(void)count;
	if (!after && !word_is(words[2], "before")) {
		say_syntax(client);
		return;
	}
	if (!keys_write_kind(client, words[1], KIND_LIST, &key))
		return;
	if (!key) {
		say_number(client, 0);
		return;
	}
	while (at < key->list->count && !holds(key->list, at, words[3]))
		at++;
	if (at == key->list->count) {
		say_number(client, -1);
		return;
	}
	deque_insert(key->list, at + after, text_new(&client->store->heap, words[4]));
	keys_changed(client, client->base, words[1]);
	say_number(client, (int64_t)key->list->count);
}

/* One pass that closes the gaps; starts at the end if `count` is negative. */
static size_t
remove_values(struct deque *list, struct word value, int64_t count)
{
	size_t most = count == 0 ? SIZE_MAX : count < 0 ? -(size_t)count : (size_t)count;
	size_t kept = 0, removed = 0, all = list->count;

	for (size_t i = 0; i < all; i++) {
		size_t from = count < 0 ? all - 1 - i : i;
		size_t to = count < 0 ? all - 1 - kept : kept;

		if (removed < most && holds(list, from, value)) {
			text_free(list->heap, *deque_at(list, from));
			removed++;
			continue;
		}
		*deque_at(list, to) = *deque_at(list, from);
		kept++;
	}
	if (count < 0)
		list->first += removed;
	list->count = kept;
	return removed;
}

COMMAND(lrem)
{
	struct key *key;
	int64_t most;
	size_t removed;

	(void)count;
	if (!arg_number(client, words[2], &most)
	    || !keys_write_kind(client, words[1], KIND_LIST, &key))
		return;
	removed = key ? remove_values(key->list, words[3], most) : 0;
	if (removed > 0) {
		keys_drop_empty(client->base, key);
		keys_changed(client, client->base, words[1]);
	}
	say_number(client, (int64_t)removed);
}

/* --- LPOS ------------------------------------------------------------------- */

struct search {
	int64_t rank, count, most; /* most: compare at most this many; 0: all */
	bool many;
};

static bool
read_search(struct client *client, const struct word *words, size_t count, struct search *out)
{
	for (size_t i = 3; i < count; i += 2) {
		bool last = i + 1 == count;

		if (!last && word_is(words[i], "rank")) {
			if (!arg_number(client, words[i + 1], &out->rank))
				return false;
			if (out->rank == 0) {
				say_error(client, "ERR RANK can't be zero: use 1 to "
				                  "start from the first match, 2 from "
				                  "the second ... or use negative to "
				                  "start from the end of the list");
				return false;
			}
		} else if (!last && word_is(words[i], "count")) {
			if (!number_read(words[i + 1], &out->count) || out->count < 0) {
				say_error(client, "ERR COUNT can't be negative");
				return false;
			}
			out->many = true;
		} else if (!last && word_is(words[i], "maxlen")) {
			if (!number_read(words[i + 1], &out->most) || out->most < 0) {
				say_error(client, "ERR MAXLEN can't be negative");
				return false;
			}
		} else {
			say_syntax(client);
			return false;
		}
	}
	return true;
}

/* Replies with the positions of the value.  Returns how many were found. */
static size_t
search_list(struct client *client, const struct deque *list, struct word value,
            const struct search *search)
{
	int64_t skip = search->rank < 0 ? -(search->rank + 1) : search->rank - 1;
	size_t most = list->count, found = 0;

	if (search->most > 0 && (size_t)search->most < most)
		most = (size_t)search->most;
	for (size_t i = 0; i < most; i++) {
		size_t at = search->rank < 0 ? list->count - 1 - i : i;

		if (!holds(list, at, value) || skip-- > 0)
			continue;
		say_number(client, (int64_t)at);
		found++;
		if (!search->many || found == (size_t)search->count)
			break;
	}
	return found;
}

COMMAND(lpos)
{
	struct search search = { .rank = 1 };
	size_t place, found = 0;
	struct key *key;

	if (!read_search(client, words, count, &search)
	    || !keys_read_kind(client, words[1], KIND_LIST, &key))
		return;
	place = say_later(client);
	if (key)
		found = search_list(client, key->list, words[2], &search);
	if (search.many)
		say_count(client, place, '*', found);
	else if (found == 0)
		say_null(client);
}
