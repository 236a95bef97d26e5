/* data.c - the data set: generated from a seed, the same for the same seed.
 *
 *   demo:viewer:<v>    hash: name, cluster, taste (8 numbers of 0 to 99)
 *   demo:followed:<v>  list: items of authors that the viewer follows
 *   demo:seen:<v>      set: items that the viewer has seen
 *   demo:similar:<c>   list: items that viewers of a cluster liked
 *   demo:trending      sorted set: items
 *   demo:item:<i>      text: author, quality, age, topics (8 numbers of 0 to 99)
 *   demo:data          text: identifies the data set; written last
 *
 * Many threadlets write concurrently, through one connection.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "service.h"

#define VIEWERS        500
#define ITEMS          3000
#define AUTHORS        200
#define CLUSTERS       16
#define FOLLOWED_ITEMS 150
#define SIMILAR_ITEMS  250
#define TRENDING_ITEMS 600
#define SEEN_ITEMS     40

#define WRITERS        64
#define WORDS          (TRENDING_ITEMS * 2 + 2)
#define WORD           64 /* bytes */

enum kind { VIEWER, FOLLOWED_BY, SEEN_BY, CLUSTER, TREND, ITEM, KINDS };

static const uint32_t counts[KINDS] = { VIEWERS, VIEWERS, VIEWERS, CLUSTERS, 1, ITEMS };

struct writer {
	struct fill *fill;
	char words[WORDS][WORD];
	weft_span spans[WORDS];
	size_t count;
};

struct fill {
	weft_redis *redis;
	uint64_t seed;
	uint32_t next; /* index of the next command */
};

/* A deterministic random number, derived from the seed and its use. */
static uint32_t
draw(uint64_t seed, enum kind kind, uint32_t number, uint32_t what)
{
	uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15)
	             + ((uint64_t)kind << 56 | (uint64_t)number << 24 | what);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) >> 16);
}

__attribute__((format(printf, 2, 3))) static void
add_word(struct writer *writer, const char *format, ...)
{
	char *word = writer->words[writer->count];
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(word, WORD, format, args);
	va_end(args);
	writer->spans[writer->count++] = (weft_span){ word, (size_t)size };
}

/* Eight numbers, most of them low: a viewer likes few topics. */
static void
write_topics(uint64_t seed, enum kind kind, uint32_t number, char *out)
{
	size_t size = 0;

	for (uint32_t t = 0; t < TOPICS; t++) {
		uint32_t a = draw(seed, kind, number, 100 + t) % 100;
		uint32_t b = draw(seed, kind, number, 200 + t) % 100;

		size += (size_t)snprintf(out + size, WORD - size, "%s%u", t ? " " : "",
		                         a * b / 100);
	}
}

static void
add_items(struct writer *writer, enum kind kind, uint32_t number, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add_word(writer, "%u", draw(writer->fill->seed, kind, number, i) % ITEMS + 1);
}

static void
add_viewer(struct writer *writer, uint32_t number)
{
	uint64_t seed = writer->fill->seed;
	char taste[WORD];

	write_topics(seed, VIEWER, number, taste);
	add_word(writer, "HSET");
	add_word(writer, KEYS "viewer:%u", number);
	add_word(writer, "name");
	add_word(writer, "viewer %u", number);
	add_word(writer, "cluster");
	add_word(writer, "%u", draw(seed, VIEWER, number, 1) % CLUSTERS + 1);
	add_word(writer, "taste");
	add_word(writer, "%s", taste);
}

/* Distinct items, with distinct scores. */
static void
add_trending(struct writer *writer)
{
	uint32_t first = draw(writer->fill->seed, TREND, 1, 0) % ITEMS;

	add_word(writer, "ZADD");
	add_word(writer, KEYS "trending");
	for (uint32_t i = 0; i < TRENDING_ITEMS; i++) {
		add_word(writer, "%u", 100000 - i * 7);
		add_word(writer, "%u", (first + i * 1009) % ITEMS + 1);
	}
}

static void
add_item(struct writer *writer, uint32_t number)
{
	uint64_t seed = writer->fill->seed;
	char topics[WORD];

	write_topics(seed, ITEM, number, topics);
	add_word(writer, "SET");
	add_word(writer, KEYS "item:%u", number);
	add_word(writer, "%u %u %u %s", draw(seed, ITEM, number, 1) % AUTHORS + 1,
	         draw(seed, ITEM, number, 2) % 100, draw(seed, ITEM, number, 3) % 72, topics);
}

static void
add_command(struct writer *writer, enum kind kind, uint32_t number)
{
	static const struct {
		const char *verb, *key;
		uint32_t items;
	} lists[KINDS] = {
		[FOLLOWED_BY] = { "RPUSH", "followed", FOLLOWED_ITEMS },
		[SEEN_BY] = { "SADD", "seen", SEEN_ITEMS },
		[CLUSTER] = { "RPUSH", "similar", SIMILAR_ITEMS },
	};

	writer->count = 0;
	if (kind == VIEWER) {
		add_viewer(writer, number);
	} else if (kind == ITEM) {
		add_item(writer, number);
	} else if (kind == TREND) {
		add_trending(writer);
	} else {
		add_word(writer, "%s", lists[kind].verb);
		add_word(writer, KEYS "%s:%u", lists[kind].key, number);
		add_items(writer, kind, number, lists[kind].items);
	}
}

/* Builds the next command; false if there are no more. */
static bool
next_command(struct writer *writer)
{
	uint32_t number = writer->fill->next++;

	for (int kind = 0; kind < KINDS; kind++) {
		if (number < counts[kind]) {
			add_command(writer, (enum kind)kind, number + 1);
			return true;
		}
		number -= counts[kind];
	}
	return false;
}

/* Deletes the old key first: otherwise a list would grow with each fill. */
static int
drop_old(struct writer *writer)
{
	weft_span words[] = { { "DEL", 3 }, writer->spans[1] };

	return weft_redis_call(writer->fill->redis, words, 2, NULL, weft_after(10 * WEFT_S));
}

static int
write_some(void *arg)
{
	struct writer *writer = arg;
	int rc = 0;

	while (rc == 0 && next_command(writer)) {
		rc = drop_old(writer);
		if (rc == 0)
			rc = weft_redis_call(writer->fill->redis, writer->spans, writer->count,
			                     NULL, weft_after(10 * WEFT_S));
	}
	return rc;
}

static void
data_describe(const struct demo *demo, char *out, size_t max)
{
	(void)snprintf(out, max, "1 seed %llu", (unsigned long long)demo->opts.seed);
}

int
data_there(struct demo *demo, weft_redis *redis)
{
	weft_redis_reply *reply = NULL;
	char want[64];
	weft_span text;
	int rc = weft_redis_callf(redis, &reply, weft_after(RUN_DEADLINE), "GET " KEYS "data");

	data_describe(demo, want, sizeof(want));
	if (rc == 0)
		rc = weft_redis_text(reply, &text) == 0 && strcmp(text.data, want) == 0;
	weft_redis_reply_free(reply);
	return rc;
}

int
data_fill(struct demo *demo, weft_redis *redis)
{
	struct writer *writers = calloc(WRITERS, sizeof(*writers));
	struct fill fill = { .redis = redis, .seed = demo->opts.seed };
	weft_scope scope;
	char what[64];
	int rc = writers ? 0 : WEFT_ENOMEM;

	if (rc == 0)
		rc = weft_scope_open(&scope, WEFT_FAIL_FAST, weft_after(30 * WEFT_S));
	if (rc == 0) {
		weft_threadlet first = 0;

		/* One is enough if there is no memory for more. */
		for (int i = 0; i < WRITERS; i++) {
			weft_threadlet id;

			writers[i].fill = &fill;
			id = weft_scope_go(&scope, write_some, &writers[i]);
			first = i == 0 ? id : first;
		}
		rc = weft_scope_close(&scope);
		rc = rc == 0 && first < 0 ? (int)first : rc;
	}
	free(writers);
	data_describe(demo, what, sizeof(what));
	if (rc == 0)
		rc = weft_redis_callf(redis, NULL, weft_after(10 * WEFT_S), "SET " KEYS "data %s",
		                      what);
	return rc;
}
