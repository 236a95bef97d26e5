/* scan.c - SCAN, HSCAN, SSCAN, ZSCAN: iterate over elements, a few at a time. */
#include <stdio.h>
#include "command.h"
#include "say.h"

#define SMALL 128u /* up to this size all elements are returned, regardless of COUNT */

struct scan_options {
	uint64_t cursor;
	int64_t count;
	struct word pattern;
	bool has_pattern;
	int kind;      /* TYPE, or KIND_ANY */
	bool is_other; /* TYPE is unknown: nothing matches */
};

static bool
read_cursor(struct client *client, struct word word, uint64_t *out)
{
	uint64_t cursor = 0;
	bool good = word.size > 0 && word.size <= 20;

	for (size_t i = 0; good && i < word.size; i++) {
		unsigned digit = (unsigned)(word.data[i] - '0');

		good = digit < 10 && !__builtin_mul_overflow(cursor, 10u, &cursor)
		       && !__builtin_add_overflow(cursor, digit, &cursor);
	}
	*out = cursor;
	if (!good)
		say_error(client, "ERR invalid cursor");
	return good;
}

static bool
read_kind(struct word word, struct scan_options *out)
{
	out->is_other = true;
	for (int kind = 0; kind < KIND_ANY; kind++)
		if (word_is(word, kind_name(kind))) {
			out->kind = kind;
			out->is_other = false;
		}
	return true;
}

static bool
scan_read_options(struct client *client, const struct word *words, size_t count, size_t at,
                  struct scan_options *out)
{
	bool keys = at == 1;

	for (size_t i = at + 1; i < count; i += 2) {
		bool last = i + 1 == count;

		if (!last && word_is(words[i], "count")) {
			if (!arg_number(client, words[i + 1], &out->count))
				return false;
			if (out->count > 0)
				continue;
		} else if (!last && word_is(words[i], "match")) {
			out->pattern = words[i + 1];
			out->has_pattern = true;
			continue;
		} else if (!last && keys && word_is(words[i], "type")) {
			(void)read_kind(words[i + 1], out);
			continue;
		}
		say_syntax(client);
		return false;
	}
	return true;
}

struct show {
	struct client *client;
	const struct table *table;
	const struct scan_options *options;
	int kind; /* type of the elements; KIND_ANY: keys */
	size_t shown, seen;
};

static void
show_key(struct show *show, const struct node *node)
{
	struct client *client = show->client;
	struct word name = table_name(show->table, node);
	struct key *key = keys_peek(client->store, client->base, name);
	int kind = show->options->kind;

	if (!key || show->options->is_other || (kind != KIND_ANY && kind != key->kind))
		return;
	say_bulk(client, name);
	show->shown++;
}

static void
show_element(struct node *node, void *arg)
{
	struct show *show = arg;
	struct word name = table_name(show->table, node);
	char score[REAL_MAX];

	show->seen++;
	if (show->options->has_pattern && !word_matches(show->options->pattern, name))
		return;
	if (show->kind == KIND_ANY) {
		show_key(show, node);
		return;
	}
	say_bulk(show->client, name);
	show->shown++;
	if (show->kind == KIND_HASH) {
		say_bulk(show->client, text_word(((struct field *)(void *)node)->value));
		show->shown++;
	} else if (show->kind == KIND_SORTED) {
		double real = ((struct item *)(void *)node)->score;

		say_bulk(show->client, (struct word){ score, real_write(score, real) });
		show->shown++;
	}
}

static void
say_cursor(struct client *client, uint64_t cursor)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)cursor);
	say_text(client, text);
}

/* The cursor is known last, but comes first in the reply. */
static void
scan_elements(struct client *client, const struct table *table, int kind,
              const struct scan_options *options)
{
	struct show show = { client, table, options, kind, 0, 0 };
	size_t begin = client->out.size, end;
	uint64_t cursor = options->cursor;
	bool whole = kind != KIND_ANY && table_count(table) <= SMALL;
	size_t rounds = (size_t)options->count * 10;

	do
		cursor = table_scan(table, cursor, show_element, &show);
	while (cursor != 0 && (whole || (show.seen < (size_t)options->count && --rounds)));
	say_count(client, begin, '*', show.shown);
	end = client->out.size;
	say_array(client, 2);
	say_cursor(client, cursor);
	say_turn(client, begin, end);
}

COMMAND(scan)
{
	struct scan_options options = { .count = 10, .kind = KIND_ANY };

	if (read_cursor(client, words[1], &options.cursor)
	    && scan_read_options(client, words, count, 1, &options))
		scan_elements(client, &client->base->keys, KIND_ANY, &options);
}

static void
scan_key(struct client *client, const struct word *words, size_t count, int kind)
{
	struct scan_options options = { .count = 10, .kind = KIND_ANY };
	const struct table *table;
	struct key *key;

	if (!read_cursor(client, words[2], &options.cursor)
	    || !keys_read_kind(client, words[1], kind, &key))
		return;
	if (!key) {
		say_array(client, 2);
		say_text(client, "0");
		say_array(client, 0);
		return;
	}
	if (!scan_read_options(client, words, count, 2, &options))
		return;
	table = kind == KIND_SORTED ? &key->sorted->table : key->set;
	scan_elements(client, table, kind, &options);
}

COMMAND(hscan)
{
	scan_key(client, words, count, KIND_HASH);
}

COMMAND(sscan)
{
	scan_key(client, words, count, KIND_SET);
}

COMMAND(zscan)
{
	scan_key(client, words, count, KIND_SORTED);
}
