/* sorted.c - the commands for sorted sets.
 *
 * A member is a field.  Its value is its score, as 8 bytes that are in the order of the scores, and
 * its name; key->more has the values as names.
 */
#include <math.h>
#include "store/commands/commands.h"

/* The bits of a positive number are in the order of the numbers; those of a negative one are in
 * the opposite order. */
static uint64_t
order_of(double score)
{
	uint64_t bits;

	memcpy(&bits, &score, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double
score_of(const char *order)
{
	uint64_t bits = bytes_get(order);
	double score;

	bits = bits >> 63 ? bits & ~(UINT64_C(1) << 63) : ~bits;
	memcpy(&score, &bits, sizeof(score));
	return score;
}

/* The score of a member; NAN if it is not in the set. */
static double
find_score(const struct key *key, struct slice name)
{
	const struct field *field = map_find(&key->fields, name);

	return field ? score_of(field->value->bytes) : (double)NAN;
}

/* Returns whether there was such a member. */
static bool
remove_member(struct key *key, struct slice name)
{
	struct field *field = map_find(&key->fields, name);

	return field && field_remove(&key->more, map_find(&key->more, string_slice(field->value)))
	       && field_remove(&key->fields, field);
}

/* Adds a member, or changes its score. */
static void
put_member(struct key *key, struct slice name, double score)
{
	struct memory *memory = key->fields.memory;
	struct string *value = memory_alloc(memory, sizeof(*value) + 8 + name.size);

	value->size = 8 + name.size;
	bytes_put(value->bytes, order_of(score + 0.0)); /* turns -0 into 0 */
	memcpy(value->bytes + 8, name.data, name.size);
	(void)remove_member(key, name);
	((struct field *)map_add(&key->fields, name))->value = value;
	(void)map_add(&key->more, string_slice(value));
}

/* The name of the member at a rank.  Its score is before it. */
static struct slice
member_at(const struct key *key, size_t rank)
{
	struct slice ordered = map_name(&key->more, map_at(&key->more, rank));

	return (struct slice){ ordered.data + 8, ordered.size - 8 };
}

static void
reply_member(struct client *client, struct slice name, bool pair)
{
	if (pair)
		reply_many(client, '*', 2);
	reply_bulk(client, name);
	reply_double(client, score_of(name.data - 8));
}

/* --- members ---------------------------------------------------------------- */

COMMAND(zadd)
{
	int64_t added = 0;
	double score, old;

	if (client->argc % 2 != 0) {
		reply_error(client, SYNTAX);
		return;
	}
	for (size_t i = 2; i < client->argc; i += 2)
		if (!arg_double(client, i, &score))
			return;
	for (size_t i = 2; i < client->argc && arg_double(client, i, &score); i += 2) {
		old = find_score(client->key, client->argv[i + 1]);
		added += isnan(old);
		if (score != old)
			put_member(client->key, client->argv[i + 1], score);
	}
	reply_integer(client, added);
}

COMMAND(zincrby)
{
	double by, old = find_score(client->key, client->argv[3]);

	if (!arg_double(client, 2, &by))
		return;
	by += isnan(old) ? 0 : old;
	if (isnan(by)) {
		reply_error(client, "ERR resulting score is not a number (NaN)");
		return;
	}
	put_member(client->key, client->argv[3], by);
	reply_double(client, by);
}

COMMAND(zrem)
{
	int64_t removed = 0;

	for (size_t i = 2; i < client->argc; i++)
		removed += remove_member(client->key, client->argv[i]);
	reply_integer(client, removed);
}

/* ZPOPMIN, ZPOPMAX */
COMMAND(zpop)
{
	bool left = client->command->variant == LEFT;
	struct slice name = member_at(client->key, left ? 0 : map_count(&client->key->more) - 1);

	reply_many(client, '*', 2);
	reply_member(client, name, false);
	(void)remove_member(client->key, name);
}

/* ZSCORE, ZRANK, ZREVRANK */
COMMAND(zscore)
{
	const struct field *field = map_find(&client->key->fields, client->argv[2]);
	const struct map *ranks = &client->key->more;
	size_t rank;

	if (!field) {
		reply_null(client);
	} else if (client->command->variant == NEITHER) {
		reply_double(client, score_of(field->value->bytes));
	} else {
		rank = map_before(ranks, string_slice(field->value), false);
		if (client->command->variant == RIGHT)
			rank = map_count(ranks) - 1 - rank;
		reply_integer(client, (int64_t)rank);
	}
}

/* --- ranges ----------------------------------------------------------------- */

/* Parses one end of a range of scores.  The low end is inclusive, the high one is exclusive; an
 * empty text is 0. */
static bool
arg_score(struct client *client, size_t at, bool is_high, uint64_t *out)
{
	struct slice slice = client->argv[at];
	bool open = slice.size > 0 && slice.data[0] == '(';
	double score = 0;

	slice.data += open;
	slice.size -= open;
	if (slice.size > 0 && !double_parse(slice, &score))
		return reply_error(client, "ERR min or max is not a float");
	*out = order_of(score + 0.0) + (open != is_high);
	return true;
}

static int64_t
members_before(const struct key *key, uint64_t order)
{
	char bytes[8];

	bytes_put(bytes, order);
	return key ? (int64_t)map_before(&key->more, (struct slice){ bytes, 8 }, false) : 0;
}

/* Parses argv[2] and argv[3], and finds the range of ranks.  If it is reversed they count from the
 * end of the set.  Returns false after replying with an error. */
static bool
find_range(struct client *client, int variant, int64_t *begin, int64_t *end)
{
	const struct key *key = client->key;
	size_t count = key ? map_count(&key->more) : 0, low_at = variant & REVERSE ? 3 : 2;
	uint64_t low, high;

	if (!(variant & SCORE))
		return arg_range(client, count, begin, end);
	if (!arg_score(client, low_at, false, &low) || !arg_score(client, 5 - low_at, true, &high))
		return false;
	*begin = members_before(key, low);
	*end = low < high ? members_before(key, high) : *begin;
	if (variant & REVERSE) {
		int64_t from = (int64_t)count - *end;

		*end = (int64_t)count - *begin;
		*begin = from;
	}
	return true;
}

struct range_options {
	int variant;
	bool scores;
	int64_t offset, limit; /* limit < 0: none */
};

static bool
read_range_options(struct client *client, struct range_options *options)
{
	bool any = options->variant & ANY, limited = false;

	for (size_t i = 4; i < client->argc; i++) {
		if (slice_is(client->argv[i], "withscores")) {
			options->scores = true;
		} else if (slice_is(client->argv[i], "limit") && client->argc - i > 2) {
			limited = true;
			if (!arg_integer(client, ++i, &options->offset)
			    || !arg_integer(client, ++i, &options->limit))
				return false;
		} else if (any && slice_is(client->argv[i], "rev")) {
			options->variant |= REVERSE;
		} else if (any && slice_is(client->argv[i], "byscore")) {
			options->variant |= SCORE;
		} else {
			return reply_error(client, SYNTAX);
		}
	}
	if (options->variant & SCORE || !limited)
		return true;
	options->offset = 0;
	return options->limit == -1 || reply_error(client, SYNTAX);
}

/* ZRANGE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE */
COMMAND(zrange)
{
	struct range_options options = { .variant = client->command->variant, .limit = -1 };
	bool pairs = client->protocol >= 3;
	int64_t begin, end;

	if (!read_range_options(client, &options)
	    || !find_range(client, options.variant, &begin, &end))
		return;
	begin = options.offset < 0 || options.offset > end - begin ? end : begin + options.offset;
	if (options.limit >= 0 && options.limit < end - begin)
		end = begin + options.limit;
	reply_many(client, '*', (size_t)(end - begin) * (options.scores && !pairs ? 2 : 1));
	for (; begin < end; begin++) {
		size_t rank = options.variant & REVERSE
		                      ? map_count(&client->key->more) - 1 - (size_t)begin
		                      : (size_t)begin;

		if (options.scores)
			reply_member(client, member_at(client->key, rank), pairs);
		else
			reply_bulk(client, member_at(client->key, rank));
	}
}

/* ZCOUNT, ZREMRANGEBYRANK, ZREMRANGEBYSCORE */
COMMAND(zrange_size)
{
	int variant = client->command->variant;
	int64_t begin, end;

	if (!find_range(client, variant, &begin, &end))
		return;
	reply_integer(client, end - begin);
	while (variant & REMOVE && end > begin)
		(void)remove_member(client->key, member_at(client->key, (size_t)--end));
}
