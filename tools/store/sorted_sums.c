/* sorted_sums.c - operations on several sorted sets: ZUNION, ZINTER, ZDIFF.
 *
 * Plain sets are allowed as inputs; their members have a score of 1. */
#include <math.h>
#include <stdlib.h>
#include "command.h"
#include "say.h"

enum sum { SUM_UNION, SUM_INTER, SUM_DIFF };
enum aggregate { AGGREGATE_SUM, AGGREGATE_MIN, AGGREGATE_MAX };

struct source {
	const struct table *table; /* NULL: does not exist */
	bool is_sorted;
	double weight;
	size_t place; /* original position */
};

struct sources {
	struct source *all;
	size_t count;
	enum aggregate aggregate;
	bool scores;
};

/* --- parsing ---------------------------------------------------------------- */

static bool
get_sources(struct client *client, const struct word *names, struct sources *sources)
{
	for (size_t i = 0; i < sources->count; i++) {
		struct source *source = &sources->all[i];
		struct key *key = keys_read(client, names[i]);

		*source = (struct source){ .weight = 1 };
		if (!key)
			continue;
		if (key->kind != KIND_SORTED && key->kind != KIND_SET) {
			say_wrong_kind(client);
			return false;
		}
		source->is_sorted = key->kind == KIND_SORTED;
		source->table = source->is_sorted ? &key->sorted->table : key->set;
	}
	return true;
}

static bool
read_weights(struct client *client, const struct word *words, struct sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		if (!real_read(words[i], &sources->all[i].weight)) {
			say_error(client, "ERR weight value is not a float");
			return false;
		}
	return true;
}

static bool
read_aggregate(struct word word, enum aggregate *out)
{
	static const char *const names[] = { "sum", "min", "max" };

	for (int i = 0; i < 3; i++)
		if (word_is(word, names[i])) {
			*out = (enum aggregate)i;
			return true;
		}
	return false;
}

struct ask {
	enum sum sum;
	bool stores;
	const struct word *words; /* the arguments after the keys */
	size_t count;
};

static bool
sorted_sums_read_options(struct client *client, const struct ask *ask, struct sources *sources)
{
	const struct word *words = ask->words;

	for (size_t i = 0; i < ask->count; i++) {
		size_t left = ask->count - i - 1;

		if (ask->sum != SUM_DIFF && word_is(words[i], "weights")
		    && left >= sources->count) {
			if (!read_weights(client, words + i + 1, sources))
				return false;
			i += sources->count;
		} else if (ask->sum != SUM_DIFF && word_is(words[i], "aggregate") && left > 0
		           && read_aggregate(words[i + 1], &sources->aggregate)) {
			i++;
		} else if (!ask->stores && word_is(words[i], "withscores")) {
			sources->scores = true;
		} else {
			say_syntax(client);
			return false;
		}
	}
	return true;
}

static int
compare_sources(const void *left, const void *right)
{
	const struct source *a = left, *b = right;
	size_t a_size = a->table ? table_count(a->table) : 0;
	size_t b_size = b->table ? table_count(b->table) : 0;

	if (a_size != b_size)
		return a_size < b_size ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* Smallest first, in the original order if equal: the sum of floating-point numbers depends on
 * their order. */
static void
sort_sources(struct sources *sources)
{
	for (size_t i = 0; i < sources->count; i++)
		sources->all[i].place = i;
	qsort(sources->all, sources->count, sizeof(*sources->all), compare_sources);
}

/* --- computing -------------------------------------------------------------- */

/* May be NaN: 0 times infinity. */
static double
product_in(const struct source *source, const struct node *node)
{
	double score = source->is_sorted ? ((const struct item *)(const void *)node)->score : 1;

	return score * source->weight;
}

static double
score_in(const struct source *source, const struct node *node)
{
	double score = product_in(source, node);

	return isnan(score) ? 0 : score;
}

static double
put_together(enum aggregate aggregate, double a, double b)
{
	if (aggregate == AGGREGATE_MIN)
		return b < a ? b : a;
	if (aggregate == AGGREGATE_MAX)
		return b > a ? b : a;
	return isnan(a + b) ? 0 : a + b;
}

/* Whether a member of one source is in all others, with its aggregated score; for ZDIFF, in none
 * of them. */
static bool
sorted_sums_is_wanted(const struct sources *sources, const struct source *own, enum sum sum,
                      struct word name, double *score)
{
	for (size_t i = 0; i < sources->count; i++) {
		const struct source *other = &sources->all[i];
		struct node *node = other->table ? table_find(other->table, name) : NULL;

		if (other == own)
			continue;
		if ((sum == SUM_INTER) != (node != NULL))
			return false;
		if (node)
			*score = put_together(sources->aggregate, *score, product_in(other, node));
	}
	return true;
}

/* Adds the members of one source that belong to the result. */
static void
sum_source(struct sorted *into, const struct sources *sources, const struct source *own,
           enum sum sum)
{
	struct walk walk = table_walk(own->table);
	struct node *node;

	while ((node = walk_next(&walk)) != NULL) {
		struct word name = table_name(walk.table, node);
		double score = score_in(own, node);
		struct item *item;

		if (sum != SUM_UNION) {
			if (sorted_sums_is_wanted(sources, own, sum, name, &score))
				(void)sorted_add(into, name, score);
			continue;
		}
		item = sorted_find(into, name);
		if (item)
			(void)sorted_move(into, item,
			                  put_together(sources->aggregate, item->score, score));
		else
			(void)sorted_add(into, name, score);
	}
}

static struct sorted *
sum_up(struct client *client, struct sources *sources, enum sum sum)
{
	struct sorted *into = sorted_new(&client->store->heap);

	if (sum != SUM_DIFF)
		sort_sources(sources);
	for (size_t i = 0; i < sources->count; i++) {
		if (sources->all[i].table)
			sum_source(into, sources, &sources->all[i], sum);
		if (sum != SUM_UNION)
			break;
	}
	return into;
}

/* --- commands --------------------------------------------------------------- */

static void
say_sorted(struct client *client, struct sorted *sorted, bool scores)
{
	bool pairs = scores && client->protocol >= 3;
	struct item *item = sorted_first(sorted);

	say_array(client, sorted_count(sorted) * (scores && !pairs ? 2 : 1));
	for (; item; item = item_next(item)) {
		if (pairs)
			say_array(client, 2);
		say_bulk(client, item_word(item));
		if (scores)
			say_double(client, item->score);
	}
	sorted_free(sorted);
}

void
store_sorted_result(struct client *client, struct word name, struct sorted *sorted)
{
	struct key *key = keys_write(client, name);
	size_t size = sorted_count(sorted);
	bool was = key != NULL;

	if (key)
		keys_drop(client->base, key);
	for (struct item *item = sorted_first(sorted); item; item = item_next(item))
		item->score += 0.0; /* turns -0 into 0 */
	if (size > 0) {
		key = keys_add(client->base, name, KIND_STRING);
		key->kind = KIND_SORTED;
		key->sorted = sorted;
		keys_ready(client, name);
	} else {
		sorted_free(sorted);
	}
	if (was || size > 0)
		keys_changed(client, client->base, name);
	say_number(client, (int64_t)size);
}

/* Parses the number of keys, which must not exceed `given`. */
static bool
sorted_sums_read_count(struct client *client, struct word word, size_t given, size_t *out)
{
	int64_t number;

	if (!arg_number(client, word, &number))
		return false;
	if (number < 1) {
		say_error(client, "ERR at least 1 input key is needed for '%s' command",
		          client->command->name);
		return false;
	}
	*out = (size_t)number;
	if (*out <= given)
		return true;
	say_syntax(client);
	return false;
}

static void
sum(struct client *client, const struct word *words, size_t count, enum sum what, bool stores)
{
	const struct word *keys = words + 2 + stores;
	size_t given = count - 2 - stores;
	struct sources sources = { 0 };
	struct ask ask = { .sum = what, .stores = stores };

	if (!sorted_sums_read_count(client, keys[-1], given, &sources.count))
		return;
	sources.all = heap_take(&client->store->heap, sources.count * sizeof(*sources.all));
	ask.words = keys + sources.count;
	ask.count = given - sources.count;
	if (get_sources(client, keys, &sources)
	    && sorted_sums_read_options(client, &ask, &sources)) {
		struct sorted *result = sum_up(client, &sources, what);

		if (stores)
			store_sorted_result(client, words[1], result);
		else
			say_sorted(client, result, sources.scores);
	}
	heap_give(&client->store->heap, sources.all, sources.count * sizeof(*sources.all));
}

COMMAND(zunion)
{
	sum(client, words, count, SUM_UNION, false);
}

COMMAND(zinter)
{
	sum(client, words, count, SUM_INTER, false);
}

COMMAND(zdiff)
{
	sum(client, words, count, SUM_DIFF, false);
}

COMMAND(zunionstore)
{
	sum(client, words, count, SUM_UNION, true);
}

COMMAND(zinterstore)
{
	sum(client, words, count, SUM_INTER, true);
}

COMMAND(zdiffstore)
{
	sum(client, words, count, SUM_DIFF, true);
}

COMMAND(zintercard)
{
	struct sources sources = { 0 };
	int64_t limit = 0;

	if (!sorted_sums_read_count(client, words[1], count - 2, &sources.count))
		return;
	sources.all = heap_take(&client->store->heap, sources.count * sizeof(*sources.all));
	if (get_sources(client, words + 2, &sources)
	    && limit_read(client, words, count, 2 + sources.count, &limit)) {
		struct sorted *result = sum_up(client, &sources, SUM_INTER);
		size_t found = sorted_count(result);

		sorted_free(result);
		say_number(client, limit > 0 && found > (size_t)limit ? limit : (int64_t)found);
	}
	heap_give(&client->store->heap, sources.all, sources.count * sizeof(*sources.all));
}
