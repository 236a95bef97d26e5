/* sorted_range.c - converts ranges of sorted sets to ranks. */
#include <math.h>
#include <stdlib.h>
#include "say.h"
#include "sorted_range.h"

/* --- ends ------------------------------------------------------------------- */

/* An empty text is 0. */
static bool
read_score(struct word word, struct score_limit *out)
{
	char text[512], *end;

	out->open = word.size > 0 && word.data[0] == '(';
	word.data += out->open;
	word.size -= out->open;
	if (word.size >= sizeof(text))
		return false;
	memcpy(text, word.data, word.size);
	text[word.size] = '\0';
	out->score = strtod(text, &end);
	return end == text + word.size && !isnan(out->score);
}

static bool
read_name(struct word word, struct name_limit *out)
{
	*out = (struct name_limit){ 0 };
	if (word.size == 0)
		return false;
	if (word.data[0] == '-' || word.data[0] == '+') {
		out->end = word.data[0];
		return word.size == 1;
	}
	out->open = word.data[0] == '(';
	out->name = (struct word){ word.data + 1, word.size - 1 };
	return out->open || word.data[0] == '[';
}

bool
range_ends(struct client *client, struct word low, struct word high, struct range *out)
{
	if (out->by == BY_RANK)
		return arg_number(client, low, &out->first) && arg_number(client, high, &out->last);
	if (out->by == BY_SCORE) {
		if (read_score(low, &out->low) && read_score(high, &out->high))
			return true;
		say_error(client, "ERR min or max is not a float");
		return false;
	}
	if (read_name(low, &out->least) && read_name(high, &out->most))
		return true;
	say_error(client, "ERR min or max not valid string range item");
	return false;
}

/* --- ranks ------------------------------------------------------------------ */

static bool
is_below(const struct item *item, const void *arg)
{
	const struct score_limit *low = arg;

	return low->open ? item->score <= low->score : item->score < low->score;
}

static bool
is_not_above(const struct item *item, const void *arg)
{
	const struct score_limit *high = arg;

	return high->open ? item->score < high->score : item->score <= high->score;
}

static bool
is_name_below(const struct item *item, const void *arg)
{
	const struct name_limit *least = arg;
	int order;

	if (least->end)
		return least->end == '+';
	order = word_order(item_word(item), least->name);
	return least->open ? order <= 0 : order < 0;
}

static bool
is_name_not_above(const struct item *item, const void *arg)
{
	const struct name_limit *most = arg;
	int order;

	if (most->end)
		return most->end == '+';
	order = word_order(item_word(item), most->name);
	return most->open ? order < 0 : order <= 0;
}

/* Negative ranks count from the end; the range is limited to the set. */
static void
cut_ranks(const struct range *range, size_t count, size_t *begin, size_t *end)
{
	int64_t all = (int64_t)count, first = range->first, last = range->last;

	if (first < 0)
		first += all;
	if (last < 0)
		last += all;
	if (first < 0)
		first = 0;
	if (last >= all)
		last = all - 1;
	*begin = *end = 0;
	if (first <= last && first < all) {
		*begin = (size_t)first;
		*end = (size_t)last + 1;
	}
}

static void
cut_limit(const struct range *range, size_t *begin, size_t *end)
{
	if (range->offset < 0 || (size_t)range->offset >= *end - *begin) {
		*end = *begin;
		return;
	}
	*begin += (size_t)range->offset;
	if (range->limit >= 0 && (size_t)range->limit < *end - *begin)
		*end = *begin + (size_t)range->limit;
}

void
range_ranks(const struct sorted *sorted, const struct range *range, size_t *begin, size_t *end)
{
	size_t count = sorted_count(sorted), from;

	if (range->by == BY_RANK) {
		cut_ranks(range, count, begin, end);
		return;
	}
	if (range->by == BY_SCORE) {
		*begin = sorted_before(sorted, is_below, &range->low);
		*end = sorted_before(sorted, is_not_above, &range->high);
	} else {
		*begin = sorted_before(sorted, is_name_below, &range->least);
		*end = sorted_before(sorted, is_name_not_above, &range->most);
	}
	if (*end < *begin)
		*end = *begin;
	if (range->reverse) {
		from = count - *end;
		*end = count - *begin;
		*begin = from;
	}
	if (range->has_limit)
		cut_limit(range, begin, end);
}
