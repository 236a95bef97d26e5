/* rank.h - the data of a feed and how it is ranked: plain functions on plain data.
 *
 * The graph of steps and the blocking threads both use them, so both do the same work.  All
 * arithmetic is on integers: a test that reads the same data computes the same scores.
 */
#ifndef WEFT_DEMO_RANK_H
#define WEFT_DEMO_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "demo.h"

#define TOPICS     8
#define TOP_MAX    50
#define TOP        10 /* default number of results */
#define SEEN_MAX   256
#define PER_AUTHOR 2  /* items of one author in one feed */

enum source { FOLLOWED, SIMILAR, TRENDING, SOURCES };

extern const char *const source_names[SOURCES];

struct profile {
	char     name[32];
	uint32_t cluster;
	uint8_t  taste[TOPICS]; /* 0 to 99 for each topic */
};

struct ids {
	uint32_t count;
	uint32_t ids[DEMO_FAN_OUT];
};

struct candidate {
	uint32_t    item;
	enum source source;
};

struct features {
	uint32_t author, quality, age;
	uint8_t  topics[TOPICS];
};

struct ranked {
	uint32_t    item, author;
	enum source source;
	int64_t     score;
};

/* The result of a request. */
struct feed {
	struct profile profile;
	uint32_t       candidates, seen;
	uint32_t       count;
	struct ranked  items[DEMO_FAN_OUT];
};

/* Parse a field of a profile from the store.  Returns false if it is not valid. */
bool profile_field(struct profile *profile, const char *name, const char *value);

/* Parse the features of an item from the store: author, quality, age, topics.  Returns false if
 * they are not valid. */
bool features_read(struct features *features, const char *text);

/* Take items from each source in turn, without duplicates, until there are `max`.  Returns the
 * number of items. */
uint32_t candidates_merge(const struct ids sources[SOURCES], uint32_t max,
                          struct candidate *out);

int64_t score_of(const struct profile *profile, const struct features *features,
                 enum source source);

/* Add a candidate with its score; a candidate of low quality is dropped. */
void feed_add(struct feed *feed, struct candidate candidate,
              const struct features *features);

/* Remove items that the viewer has seen. */
void feed_filter(struct feed *feed, const uint32_t *seen, uint32_t count);

/* Sort by score, then by item; keep the first `top`, and at most PER_AUTHOR of each author. */
void feed_rank(struct feed *feed, uint32_t top);

#endif
