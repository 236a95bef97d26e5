/* rank.c - merging, scoring, filtering, sorting. */
#include "rank.h"
#include <stdlib.h>
#include <string.h>

#define HIDDEN      32 /* units of the model */
#define QUALITY_MIN 10

const char *const source_names[SOURCES] = { "followed", "similar", "trending" };

/* --- reading ------------------------------------------------------------------ */

/* Parses a number of at most nine digits.  Returns the position after it, or NULL. */
static const char *
rank_read_number(const char *text, uint32_t *out)
{
	uint32_t number = 0;
	int digits = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++)
		number = number * 10 + (uint32_t)(*text - '0');
	if (digits == 0 || digits > 9)
		return NULL;
	*out = number;
	return *text == ' ' ? text + 1 : text;
}

static const char *
read_topics(const char *text, uint8_t topics[TOPICS])
{
	uint32_t number;

	for (int i = 0; i < TOPICS && text; i++) {
		text = rank_read_number(text, &number);
		if (text)
			topics[i] = (uint8_t)(number > 99 ? 99 : number);
	}
	return text;
}

bool
profile_field(struct profile *profile, const char *name, const char *value)
{
	if (strcmp(name, "cluster") == 0)
		return rank_read_number(value, &profile->cluster) != NULL;
	if (strcmp(name, "taste") == 0)
		return read_topics(value, profile->taste) != NULL;
	if (strcmp(name, "name") == 0) {
		size_t size = strnlen(value, sizeof(profile->name) - 1);

		memcpy(profile->name, value, size);
		profile->name[size] = '\0';
	}
	return true;
}

bool
features_read(struct features *features, const char *text)
{
	text = rank_read_number(text, &features->author);
	if (text)
		text = rank_read_number(text, &features->quality);
	if (text)
		text = rank_read_number(text, &features->age);
	if (text)
		text = read_topics(text, features->topics);
	return text && *text == '\0';
}

/* --- merging ------------------------------------------------------------------ */

#define SLOTS 1024 /* size of a hash set of items; larger than SEEN_MAX + DEMO_FAN_OUT */

/* Returns false if `id` is already in the set.  A slot contains the ID plus 1. */
static bool
set_add(uint32_t set[SLOTS], uint32_t id)
{
	uint32_t slot = (id * UINT32_C(2654435761)) >> 22;

	while (set[slot] && set[slot] != id + 1)
		slot = (slot + 1) % SLOTS;
	if (set[slot])
		return false;
	set[slot] = id + 1;
	return true;
}

/* Finds the next item of a source that is not in the set; false if there is none. */
static bool
next_new(const struct ids *ids, uint32_t *at, uint32_t set[SLOTS], uint32_t *out)
{
	while (*at < ids->count) {
		*out = ids->ids[(*at)++];
		if (set_add(set, *out))
			return true;
	}
	return false;
}

uint32_t
candidates_merge(const struct ids sources[SOURCES], uint32_t max, struct candidate *out)
{
	uint32_t set[SLOTS] = { 0 }, at[SOURCES] = { 0 };
	uint32_t count = 0;
	bool more = true;

	while (more && count < max) {
		more = false;
		for (int i = 0; i < SOURCES && count < max; i++)
			if (next_new(&sources[i], &at[i], set, &out[count].item)) {
				out[count++].source = (enum source)i;
				more = true;
			}
	}
	return count;
}

/* --- scoring ------------------------------------------------------------------ */

/* A small model: how well the viewer's taste matches the item, also through units that combine
 * topics; the quality of the item; and its source. */
int64_t
score_of(const struct profile *profile, const struct features *features, enum source source)
{
	static const int64_t bonus[SOURCES] = { 9000, 4000, 0 };
	int64_t match[TOPICS], score = bonus[source];

	for (int t = 0; t < TOPICS; t++) {
		match[t] = (int64_t)profile->taste[t] * features->topics[t];
		score += 4 * match[t];
	}
	for (int h = 0; h < HIDDEN; h++) {
		int64_t sum = 0;

		for (int t = 0; t < TOPICS; t++)
			sum += ((h * 7 + t * 13 + h * t) % 9 - 4) * match[t];
		if (sum > 0)
			score += (1 + h % 3) * sum / 16;
	}
	return score + 200 * (int64_t)features->quality - 50 * (int64_t)features->age;
}

void
feed_add(struct feed *feed, struct candidate candidate, const struct features *features)
{
	struct ranked *item = &feed->items[feed->count];

	if (features->quality < QUALITY_MIN)
		return;
	*item = (struct ranked){ .item = candidate.item,
		                 .author = features->author,
		                 .source = candidate.source,
		                 .score = score_of(&feed->profile, features, candidate.source) };
	feed->count++;
}

void
feed_filter(struct feed *feed, const uint32_t *seen, uint32_t count)
{
	uint32_t set[SLOTS] = { 0 }, kept = 0;

	for (uint32_t i = 0; i < count; i++)
		(void)set_add(set, seen[i]);
	/* Candidates are distinct, so one that cannot be added has been seen. */
	for (uint32_t i = 0; i < feed->count; i++)
		if (set_add(set, feed->items[i].item))
			feed->items[kept++] = feed->items[i];
	feed->seen = feed->count - kept;
	feed->count = kept;
}

static int
compare(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->score != b->score)
		return a->score < b->score ? 1 : -1;
	return (a->item > b->item) - (a->item < b->item);
}

void
feed_rank(struct feed *feed, uint32_t top)
{
	uint32_t kept = 0;

	qsort(feed->items, feed->count, sizeof(feed->items[0]), compare);
	for (uint32_t i = 0; i < feed->count && kept < top; i++) {
		uint32_t same = 0;

		for (uint32_t j = 0; j < kept; j++)
			same += feed->items[j].author == feed->items[i].author;
		if (same < PER_AUTHOR)
			feed->items[kept++] = feed->items[i];
	}
	feed->count = kept;
}
