/* feed.c - a feed, by a graph of steps or by threads that block.
 *
 * GET /feed/<viewer> is one run of this graph:
 *
 *   profile ----> similar --+
 *   followed ---------------+--> merge --> features --> score --> filter --> rank
 *   trending ---------------+                          (profile)   (seen)
 *
 * Steps that call Redis are threadlets on the request's loop: `features` runs once per candidate,
 * all of them in flight at once on one connection.  The last three steps run on the CPU pool.
 * The number of admitted requests is limited; the rest are rejected at once with 503.  While Redis
 * is down, every request is rejected with the reason.
 *
 * GET /threads/<viewer> does the same work on one of 8 threads, one call after the other.
 */
#include <unistd.h>
#include "service.h"

#define RUNS_MAX 64 /* in flight per loop */
#define SOURCES  3  /* of candidates: followed, similar, trending */

enum node { PROFILE, FOLLOWED, SIMILAR, TRENDING, SEEN, MERGE, FEATURES, SCORE, FILTER, RANK };

enum { QUALITY, TOPIC, NUMBERS = TOPIC + TOPICS }; /* the features of an item */

/* A candidate is a number: item * SOURCES + the source that found it. */
struct feed {
	uint32_t taste[TOPICS]; /* of the viewer */
	uint32_t candidates, seen, count;
	struct ranked {
		int64_t candidate, score;
	} items[DEMO_FAN_OUT];
};

struct request {
	struct demo *demo;
	weft_redis *redis;
	struct side *side;
	uint32_t viewer, top, fan_out;
	char last[12];   /* index of the last item to get from a list: fan_out - 1 */
	int64_t cluster; /* of the viewer */
	uint64_t begin_ns;
	struct feed *feed; /* of the threads */
};

static const weft_type type_feed = { .name = "feed", .drop = free };

#define REPLY &weft_type_redis, WEFT_DAG_LOOP
#define LIST  &weft_type_list, WEFT_DAG_LOOP
#define FEED  &type_feed, WEFT_DAG_CPU

static const struct step {
	const char *name;
	const char *inputs[4];
	const weft_type *type;
	weft_dag_place place;
	const char *verb, *key; /* of its Redis call */
} steps[] = {
	[PROFILE] = { "profile", { NULL }, REPLY, "HGETALL", KEYS "viewer:%u" },
	[FOLLOWED] = { "followed", { NULL }, REPLY, "LRANGE", KEYS "followed:%u" },
	[SIMILAR] = { "similar", { "profile" }, REPLY, "LRANGE", KEYS "similar:%u" },
	[TRENDING] = { "trending", { NULL }, REPLY, "ZREVRANGE", KEYS "trending" },
	[SEEN] = { "seen", { NULL }, REPLY, "SMEMBERS", KEYS "seen:%u" },
	[MERGE] = { "merge", { "followed", "similar", "trending" }, LIST, NULL, NULL },
	[FEATURES] = { "features", { "merge" }, REPLY, "GET", KEYS "item:%u" },
	[SCORE] = { "score", { "features", "merge", "profile" }, FEED, NULL, NULL },
	[FILTER] = { "filter", { "score", "seen" }, FEED, NULL, NULL },
	[RANK] = { "rank", { "filter" }, FEED, NULL, NULL },
};

/* Makes the Redis call of a step, after the added delay; `item` is for `features`. */
static int
call_redis(struct request *request, enum node node, int64_t item, weft_redis_reply **out)
{
	int64_t id = node == FEATURES ? item : node == SIMILAR ? request->cluster : request->viewer;
	uint32_t us = setting(request->demo, DELAY_US);
	char key[40];
	weft_span words[] = {
		weft_text(steps[node].verb), { key, 0 }, { "0", 1 }, weft_text(request->last)
	};
	int rc = 0;

	words[1].size = (size_t)snprintf(key, sizeof(key), steps[node].key, (uint32_t)id);
	side_call_begins(request->side);
	if (us > 0)
		rc = weft_self() ? weft_sleep(us * WEFT_US) : usleep(us);
	if (rc == 0)
		rc = weft_redis_call(request->redis, words,
		                     node >= FOLLOWED && node <= TRENDING ? 4 : 2, out,
		                     request->begin_ns + RUN_DEADLINE);
	add_to(&request->side->calls, -1);
	if (rc < 0 && rc != WEFT_ECANCELED)
		add_to(&request->demo->counts[REDIS_ERRORS], 1);
	if (rc < 0 || node != PROFILE
	    || weft_redis_integer(weft_redis_field(*out, "cluster"), &request->cluster) == 0)
		return rc;
	weft_redis_reply_free(*out);
	*out = NULL;
	return weft_fail(WEFT_ENOENT, "there is no such viewer: %u", request->viewer);
}

/* --- ranking: arithmetic on integers, so that a test can compute the same scores --- */

/* Finds the next item of a source that is not among the first `count` of `out`. */
static bool
next_new(const weft_redis_reply *source, size_t *at, int64_t *out, uint32_t count)
{
	int64_t item;
	uint32_t i;

	while (weft_redis_integer(weft_redis_item(source, (*at)++), &item) == 0) {
		out[count] = (int64_t)(uint32_t)item * SOURCES;
		for (i = 0; (uint64_t)(out[i] - out[count]) >= SOURCES; i++)
			;
		if (i == count)
			return true;
	}
	return false;
}

/* Takes items from each source in turn, without duplicates, until there are `max`. */
static uint32_t
rank_merge(weft_redis_reply *const *sources, uint32_t max, int64_t *out)
{
	size_t at[SOURCES] = { 0 };
	uint32_t count = 0, before;

	do {
		before = count;
		for (int i = 0; i < SOURCES && count < max; i++)
			if (next_new(sources[i], &at[i], out, count))
				out[count++] += i;
	} while (count > before);
	return count;
}

/* Reads numbers of two digits each. */
static bool
read_numbers(const weft_redis_reply *reply, uint32_t *out, size_t count)
{
	weft_span text;
	const char *digits;

	if (weft_redis_text(reply, &text) < 0 || text.size != 2 * count)
		return false;
	digits = text.data;
	for (size_t i = 0; i < count; i++)
		out[i] = (uint32_t)((digits[2 * i] - '0') * 10 + digits[2 * i + 1] - '0') % 100;
	return true;
}

/* How well the item matches the viewer's taste, its quality, and its source. */
static int64_t
score_of(const uint32_t *taste, const uint32_t *numbers, int64_t candidate)
{
	static const int64_t bonus[SOURCES] = { 9000, 4000, 0 };
	int64_t score = bonus[candidate % SOURCES];

	for (int t = 0; t < TOPICS; t++)
		score += 4 * (int64_t)taste[t] * numbers[TOPIC + t];
	return score + 200 * (int64_t)numbers[QUALITY];
}

/* Adds a candidate, unless its features are not valid. */
static void
rank_add(struct feed *feed, int64_t candidate, const weft_redis_reply *features)
{
	uint32_t numbers[NUMBERS];

	if (read_numbers(features, numbers, NUMBERS))
		feed->items[feed->count++] =
			(struct ranked){ candidate, score_of(feed->taste, numbers, candidate) };
}

static void
rank_filter(struct feed *feed, const weft_redis_reply *seen)
{
	int64_t item;

	for (size_t i = 0; weft_redis_integer(weft_redis_item(seen, i), &item) == 0; i++)
		for (uint32_t k = 0; k < feed->count; k++)
			if (feed->items[k].candidate / SOURCES == item) {
				feed->items[k] = feed->items[--feed->count];
				feed->seen++;
				break;
			}
}

static int
compare(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->score != b->score)
		return a->score < b->score ? 1 : -1;
	return (a->candidate > b->candidate) - (a->candidate < b->candidate);
}

static void
rank_top(struct feed *feed, uint32_t top)
{
	qsort(feed->items, feed->count, sizeof(feed->items[0]), compare);
	if (feed->count > top)
		feed->count = top;
}

/* --- the graph, and the threads -------------------------------------------- */

/* It runs on the loop because it is short, and so do the steps before and after it. */
static int
step_merge(weft_dag_step *step, const struct request *request)
{
	int64_t candidates[DEMO_FAN_OUT];
	weft_redis_reply *sources[SOURCES];
	weft_value values[DEMO_FAN_OUT];
	uint32_t count;

	for (size_t i = 0; i < SOURCES; i++)
		sources[i] = weft_dag_step_in(step, i)->as.ptr;
	count = rank_merge(sources, request->fan_out, candidates);
	for (uint32_t i = 0; i < count; i++)
		values[i] = weft_value_integer(candidates[i]);
	return weft_dag_step_out(step, weft_value_list(values, count));
}

static int
step_score(weft_dag_step *step)
{
	const weft_list *features = weft_dag_step_in(step, 0)->as.ptr;
	const weft_list *candidates = weft_dag_step_in(step, 1)->as.ptr;
	const weft_redis_reply *profile = weft_dag_step_in(step, 2)->as.ptr;
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return WEFT_ENOMEM;
	feed->candidates = (uint32_t)candidates->count;
	(void)read_numbers(weft_redis_field(profile, "taste"), feed->taste, TOPICS);
	for (size_t i = 0; i < features->count; i++)
		rank_add(feed, candidates->items[i].as.integer, features->items[i].as.ptr);
	return weft_dag_step_out(step, weft_value_ptr(&type_feed, feed));
}

/* Filter and rank change the feed that they take. */
static int
step_change(weft_dag_step *step, const struct request *request, enum node node)
{
	weft_value feed;
	int rc = weft_dag_step_take(step, 0, &feed);

	if (rc < 0)
		return rc;
	if (node == FILTER)
		rank_filter(feed.as.ptr, weft_dag_step_in(step, 1)->as.ptr);
	else
		rank_top(feed.as.ptr, request->top);
	return weft_dag_step_out(step, feed);
}

static int
run_step(weft_dag_step *step, void *arg)
{
	struct request *request = weft_dag_run_context(weft_dag_step_run(step));
	enum node node = (enum node)((const struct step *)arg - steps);
	int64_t item = node == FEATURES ? weft_dag_step_in(step, 0)->as.integer / SOURCES : 0;
	weft_redis_reply *reply = NULL;
	int rc;

	if (node == MERGE)
		return step_merge(step, request);
	if (!steps[node].verb)
		return node == SCORE ? step_score(step) : step_change(step, request, node);
	rc = call_redis(request, node, item, &reply);
	return rc < 0 ? rc : weft_dag_step_out(step, weft_value_ptr(&weft_type_redis, reply));
}

/* Makes the template, once for all requests. */
static int
make_graph(weft_dag *dag)
{
	int rc = dag ? 0 : WEFT_ENOMEM;

	for (int i = 0; i <= RANK && rc >= 0; i++)
		rc = weft_dag_add(dag, &(weft_dag_node){ .name = steps[i].name,
		                                         .fn = run_step,
		                                         .arg = (void *)&steps[i],
		                                         .inputs = steps[i].inputs,
		                                         .type = steps[i].type,
		                                         .place = steps[i].place,
		                                         .map = i == FEATURES });
	return rc < 0 ? rc : weft_dag_check(dag);
}

/* Scores the candidates as their features arrive. */
static int
rank_replies(struct request *request, weft_redis_reply *const *replies)
{
	int64_t candidates[DEMO_FAN_OUT];
	uint32_t count = rank_merge(replies + FOLLOWED, request->fan_out, candidates);
	int rc = 0;

	request->feed->candidates = count;
	(void)read_numbers(weft_redis_field(replies[PROFILE], "taste"), request->feed->taste,
	                   TOPICS);
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		weft_redis_reply *features = NULL;

		rc = call_redis(request, FEATURES, candidates[i] / SOURCES, &features);
		if (rc == 0)
			rank_add(request->feed, candidates[i], features);
		weft_redis_reply_free(features);
	}
	rank_filter(request->feed, replies[SEEN]);
	rank_top(request->feed, request->top);
	return rc;
}

/* On one of the 8 threads. */
static int
run_blocking(void *request)
{
	weft_redis_reply *replies[SEEN + 1] = { NULL };
	int rc = 0;

	for (int node = PROFILE; rc == 0 && node <= SEEN; node++)
		rc = call_redis(request, (enum node)node, 0, &replies[node]);
	if (rc == 0)
		rc = rank_replies(request, replies);
	for (int node = PROFILE; node <= SEEN; node++)
		weft_redis_reply_free(replies[node]);
	return rc;
}

static void
write_feed(FILE *out, const struct request *request, const struct feed *feed)
{
	fprintf(out, "{\"viewer\":%u,\"candidates\":%u,\"seen\":%u,\"items\":[", request->viewer,
	        feed->candidates, feed->seen);
	for (uint32_t i = 0; i < feed->count; i++) {
		const struct ranked *item = &feed->items[i];

		fprintf(out, "%s{\"item\":%" PRId64 ",\"score\":%" PRId64 ",\"source\":\"%s\"}",
		        i ? "," : "", item->candidate / SOURCES, item->score,
		        steps[FOLLOWED + item->candidate % SOURCES].name);
	}
	fprintf(out, "],\"total_us\":%" PRIu64 "}\n", (weft_now() - request->begin_ns) / WEFT_US);
}

static int
reply_text(weft_http *http, int status, const char *text)
{
	if (status == 503)
		(void)weft_http_set_header(http, "Retry-After", "1");
	return weft_http_reply(http, status, "text/plain; charset=utf-8", weft_text(text),
	                       weft_after(5 * WEFT_S));
}

/* Replies with the feed, or with the error of its computation.  Clients that do not measure the
 * latency themselves are measured here. */
static int
reply_feed(weft_http *http, const struct request *request, int rc, const struct feed *feed)
{
	char why[1100], *text = NULL;
	size_t size = 0;
	FILE *out;

	if (rc < 0) {
		(void)snprintf(why, sizeof(why), "%s\n", weft_detail());
		return reply_text(http,
		                  rc == WEFT_ENOENT   ? 404
		                  : rc == WEFT_EAGAIN ? 503
		                                      : 502,
		                  why);
	}
	out = open_memstream(&text, &size);
	rc = WEFT_ENOMEM;
	if (out)
		write_feed(out, request, feed);
	if (out && fclose(out) == 0)
		rc = weft_http_reply(http, 200, "application/json", (weft_span){ text, size },
		                     weft_after(10 * WEFT_S));
	free(text);
	if (rc >= 0 && !weft_http_header(http, LOAD_HEADER))
		side_record(request->side, weft_now() - request->begin_ns);
	return rc;
}

/* --- requests and replies -------------------------------------------------- */

/* Reads a number from 1 to `max`, if it is there.  Returns false after the reply to a wrong one. */
static bool
read_number(weft_http *http, struct request *request, const char *name, uint64_t max, uint32_t *out)
{
	const struct args_option option = { .out = out, .min = 1, .max = max };
	const char *text = weft_http_param(http, name);
	const char *wrong = text ? args_number(&option, text) : NULL;
	char why[160];

	if (!wrong)
		return true;
	(void)snprintf(why, sizeof(why), "%s: %s\n", name, wrong);
	if (request->side == &request->demo->sides[WEFT])
		add_to(&request->demo->counts[BAD], 1);
	(void)reply_text(http, 400, why);
	return false;
}

static bool
read_request(struct demo *demo, weft_http *http, enum side_name side, struct request *out)
{
	*out = (struct request){ .demo = demo,
		                 .side = &demo->sides[side],
		                 .redis = side == WEFT ? demo_redis(demo) : demo->threads_redis,
		                 .top = 10,
		                 .fan_out = setting(demo, FAN_OUT),
		                 .begin_ns = weft_now() };
	(void)snprintf(out->last, sizeof(out->last), "%u", out->fan_out - 1);
	return read_number(http, out, "viewer", 999999999, &out->viewer)
	       && read_number(http, out, "k", 50, &out->top);
}

/* Keeps the trace of the slowest request, for ten seconds or until one is slower. */
static void
note_slowest(struct demo *demo, weft_dag_run *run, uint64_t begin_ns)
{
	uint64_t end_ns = weft_now();
	weft_value text;

	(void)pthread_mutex_lock(&demo->lock);
	if ((end_ns - begin_ns > demo->slow_ns || end_ns > demo->slow_end_ns + 10 * WEFT_S)
	    && weft_dag_run_write(run, WEFT_DAG_TRACE, &text) == 0) {
		weft_value_drop(&demo->slow);
		demo->slow = text;
		demo->slow_ns = end_ns - begin_ns;
		demo->slow_end_ns = end_ns;
		add_to(&demo->slow_number, 1);
	}
	(void)pthread_mutex_unlock(&demo->lock);
}

/* The outcome is counted before the reply is sent: a client that has the reply finds it counted. */
static int
run_graph(weft_http *http, struct demo *demo, struct request *request)
{
	weft_dag_run_opts opts = { .context = request, .trace = true };
	weft_dag_run *run = weft_dag_run_new(demo->dag, &opts);
	int rc = run ? weft_dag_run_wait(run, weft_after(RUN_DEADLINE)) : WEFT_ENOMEM, sent;
	weft_value feed = { 0 };

	if (rc == 0)
		rc = weft_dag_run_get(run, steps[RANK].name, &feed);
	add_to(&demo->counts[rc == 0 ? OK : rc == WEFT_ENOENT ? NOT_FOUND : ERRORS], 1);
	sent = reply_feed(http, request, rc, feed.as.ptr);
	if (rc == 0)
		note_slowest(demo, run, request->begin_ns);
	weft_dag_run_free(run);
	return sent;
}

static int
route_feed(weft_http *http, void *arg)
{
	struct demo *demo = arg;
	struct request request;
	char detail[256], why[320];
	int rc;

	if (!read_request(demo, http, WEFT, &request))
		return 0;
	if (!health_get(demo, detail, sizeof(detail))) {
		(void)snprintf(why, sizeof(why), "redis is down: %s\n", detail);
		add_to(&demo->counts[ERRORS], 1);
		return reply_text(http, 503, why);
	}
	if (__atomic_add_fetch(&demo->in_flight, 1, __ATOMIC_RELAXED)
	    > RUNS_MAX * demo->opts.loops) {
		add_to(&demo->in_flight, -1);
		add_to(&demo->counts[SHED], 1);
		return reply_text(http, 503, "overloaded: try again later\n");
	}
	rc = run_graph(http, demo, &request);
	add_to(&demo->in_flight, -1);
	return rc;
}

static int
route_threads(weft_http *http, void *arg)
{
	struct demo *demo = arg;
	struct request request;
	int rc;

	if (!read_request(demo, http, THREADS, &request))
		return 0;
	request.feed = calloc(1, sizeof(*request.feed));
	rc = request.feed ? weft_work(demo->pool, run_blocking, &request, WEFT_NEVER) : WEFT_ENOMEM;
	rc = reply_feed(http, &request, rc, request.feed);
	free(request.feed);
	return rc;
}

int
feed_open(struct demo *demo)
{
	int rc;

	demo->pool = weft_pool_new(
		&(weft_pool_opts){ .name = "blocking-8", .threads_max = 8, .queue_max = 32 });
	demo->dag = weft_dag_new("feed");
	rc = demo->pool ? make_graph(demo->dag) : WEFT_ENOMEM;
	if (rc == 0)
		rc = weft_http_route(demo->server, "GET /feed/{viewer}", route_feed, demo);
	return rc == 0 ? weft_http_route(demo->server, "GET /threads/{viewer}", route_threads, demo)
	               : rc;
}
