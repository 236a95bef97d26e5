/* rank.h - what a feed is made of, and how it is ranked: plain functions on plain data.
 *
 * The graph of steps and the blocking threads both use them, so that they do the same work.
 * All is in whole numbers: a test that reads the same data comes to the same scores.
 */
#ifndef WEFT_DEMO_RANK_H
#define WEFT_DEMO_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "demo.h"

#define TOPICS     8
#define TOP_MAX    50
#define TOP        10 /* if nobody says how many */
#define SEEN_MAX   256
#define PER_AUTHOR 2  /* in one feed */

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

/* What a request comes to. */
struct feed {
	struct profile profile;
	uint32_t       candidates, seen;
	uint32_t       count;
	struct ranked  items[DEMO_FAN_OUT];
};

/* A field of a profile, as the store has it.  False if it makes no sense. */
bool profile_field(struct profile *profile, const char *name, const char *value);

/* The features of an item, as the store has them: author, quality, age, topics. */
bool features_read(struct features *features, const char *text);

/* Take from each source in turn what no other has given, until there are `max`.
 * Returns how many. */
uint32_t candidates_merge(const struct ids sources[SOURCES], uint32_t max,
                          struct candidate *out);

int64_t score_of(const struct profile *profile, const struct features *features,
                 enum source source);

/* Add a candidate with its score; one of low quality is left out. */
void feed_add(struct feed *feed, struct candidate candidate,
              const struct features *features);

/* Leave out what has been seen. */
void feed_filter(struct feed *feed, const uint32_t *seen, uint32_t count);

/* Sort by score, then item; keep the first `top`, and of an author the first two. */
void feed_rank(struct feed *feed, uint32_t top);

#endif
