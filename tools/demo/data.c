/* data.c - the data set, and whether Redis answers and has it.
 *
 * The data set is generated from a seed:
 *
 *   demo:viewer:<v>    hash: cluster, taste (a number of two digits for each topic)
 *   demo:followed:<v>  list: items of authors that the viewer follows
 *   demo:seen:<v>      set: items that the viewer has seen
 *   demo:similar:<c>   list: items that viewers of a cluster liked
 *   demo:trending      sorted set: items
 *   demo:item:<i>      text: quality and topics, all as numbers of two digits
 *   demo:data          text: identifies the data set; written last
 *
 * One threadlet reads the last key periodically: requests are rejected while Redis does not answer,
 * and many threadlets write the data set at once if it is not there.
 */
#include "service.h"

#define ITEMS     3000
#define ITEMS_MAX 600 /* in one key */
#define CLUSTERS  16
#define WRITERS   64
#define PATIENCE  (10 * WEFT_S) /* for one command */

enum kind { VIEWER, FOLLOWED_BY, SEEN_BY, CLUSTER, TREND, ITEM, KINDS };

static const struct {
	const char *verb, *key;
	uint32_t count, items; /* keys of this kind; items in each of them */
} kinds[KINDS] = {
	[VIEWER] = { "HSET", "viewer:%u", VIEWERS, 0 },
	[FOLLOWED_BY] = { "RPUSH", "followed:%u", VIEWERS, 150 },
	[SEEN_BY] = { "SADD", "seen:%u", VIEWERS, 40 },
	[CLUSTER] = { "RPUSH", "similar:%u", CLUSTERS, 250 },
	[TREND] = { "ZADD", "trending", 1, ITEMS_MAX },
	[ITEM] = { "SET", "item:%u", ITEMS, 0 },
};

struct fill {
	weft_redis *redis;
	uint64_t seed;
	uint32_t next; /* index of the next key to write */
};

/* A deterministic random number below `limit`, derived from the seed and its use. */
static uint32_t
sample(uint64_t seed, enum kind kind, uint32_t number, uint32_t use, uint32_t limit)
{
	uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15)
	             + ((uint64_t)kind << 56 | (uint64_t)number << 24 | use);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) >> 16) % limit;
}

/* Writes the arguments of a command; a newline ends each. */
static void
write_command(FILE *out, uint64_t seed, enum kind kind, uint32_t number)
{
	fprintf(out, "%s\n" KEYS, kinds[kind].verb);
	fprintf(out, kinds[kind].key, number);
	if (kind == VIEWER)
		fprintf(out, "\ncluster\n%u\ntaste", sample(seed, kind, number, 1, CLUSTERS) + 1);
	fputc('\n', out);
	for (uint32_t i = 0; i < kinds[kind].items; i++) {
		if (kind == TREND)
			fprintf(out, "%u\n", 100000 - i * 7); /* a score */
		fprintf(out, "%u\n", sample(seed, kind, number, i, ITEMS) + 1);
	}
	if (kinds[kind].items > 0)
		return;
	if (kind == ITEM)
		fprintf(out, "%02u", sample(seed, kind, number, 1, 100));
	for (uint32_t t = 0; t < TOPICS; t++) /* most are low: a viewer likes few topics */
		fprintf(out, "%02u",
		        sample(seed, kind, number, 100 + t, 100)
		                * sample(seed, kind, number, 200 + t, 100) / 100);
	fputc('\n', out);
}

/* Deletes the old key first: otherwise a list would grow with each fill. */
static int
fill_key(struct fill *fill, enum kind kind, uint32_t number)
{
	weft_span words[2 * ITEMS_MAX + 2];
	char *text = NULL;
	size_t size = 0, count = 0;
	FILE *out = open_memstream(&text, &size);
	int rc = WEFT_ENOMEM;

	if (out)
		write_command(out, fill->seed, kind, number);
	if (out && fclose(out) == 0) {
		for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1)
			words[count++] = (weft_span){ at, (size_t)(end - at) };
		rc = weft_redis_callf(fill->redis, NULL, weft_after(PATIENCE), "DEL %b",
		                      words[1].data, words[1].size);
		if (rc == 0)
			rc = weft_redis_call(fill->redis, words, count, NULL, weft_after(PATIENCE));
	}
	free(text);
	return rc;
}

/* Writes keys until all are written. */
static int
fill_keys(void *arg)
{
	struct fill *fill = arg;
	int rc = 0;

	while (rc == 0) {
		uint32_t number = fill->next++;
		int kind = 0;

		while (kind < KINDS && number >= kinds[kind].count)
			number -= kinds[kind++].count;
		if (kind == KINDS)
			break;
		rc = fill_key(fill, (enum kind)kind, number + 1);
	}
	return rc;
}

static int
data_fill(struct demo *demo, weft_redis *redis)
{
	struct fill fill = { .redis = redis, .seed = demo->opts.seed };
	weft_scope scope;
	int rc = weft_scope_open(&scope, WEFT_FAIL_FAST, weft_after(3 * PATIENCE)), mine;

	if (rc < 0)
		return rc;
	for (int i = 0; i < WRITERS; i++)
		(void)weft_scope_go(&scope, fill_keys, &fill);
	mine = fill_keys(&fill); /* also if there is no memory for others */
	rc = weft_scope_close(&scope);
	return rc < 0 ? rc : mine;
}

static void
health_set(struct demo *demo, const char *detail)
{
	(void)pthread_mutex_lock(&demo->lock);
	(void)snprintf(demo->detail, sizeof(demo->detail), "%s", detail);
	(void)pthread_mutex_unlock(&demo->lock);
}

bool
health_get(struct demo *demo, char *detail, size_t max)
{
	bool up;

	(void)pthread_mutex_lock(&demo->lock);
	up = !demo->detail[0];
	(void)snprintf(detail, max, "%s", demo->detail);
	(void)pthread_mutex_unlock(&demo->lock);
	return up;
}

int
health_check(struct demo *demo)
{
	weft_redis *redis = demo_redis(demo);
	weft_redis_reply *reply = NULL;
	char data[64];
	weft_span text;
	int rc = weft_redis_callf(redis, &reply, weft_after(RUN_DEADLINE), "GET " KEYS "data");

	(void)snprintf(data, sizeof(data), "2 seed %" PRIu64, demo->opts.seed);
	if (rc == 0 && (weft_redis_text(reply, &text) < 0 || strcmp(text.data, data) != 0)) {
		health_set(demo, "the data set is being written");
		rc = data_fill(demo, redis);
		if (rc == 0)
			rc = weft_redis_callf(redis, NULL, weft_after(PATIENCE),
			                      "SET " KEYS "data %s", data);
	}
	weft_redis_reply_free(reply);
	if (rc < 0)
		add_to(&demo->counts[REDIS_ERRORS], 1);
	health_set(demo, rc == 0 ? "" : *weft_detail() ? weft_detail() : weft_strerror(rc));
	return rc == WEFT_ECANCELED ? rc : 0;
}

int
health_run(void *demo)
{
	while (weft_sleep(PERIOD_NS) == 0 && health_check(demo) == 0)
		;
	return 0;
}
