/* steps.c - the graph of steps of a request, and the steps.
 *
 *   profile ----> similar --+
 *   followed ---------------+--> merge --> features --> score --> filter --> rank
 *   trending ---------------+                          (profile)   (seen)
 *
 * Steps that call Redis are threadlets on the request's loop: `features` runs once per
 * candidate, all of them in flight at once on one connection.  The last three steps run on the
 * CPU pool.  The template is made once and shared by all requests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "service.h"

typedef int (*step_fn)(weft_dag_step *step, struct request *request);

struct node_kind {
	const char *name;
	step_fn fn;
	const char *inputs[4];
	const weft_type *type;
	weft_dag_place place;
	bool each;
};

const weft_type type_feed = { .name = "feed", .drop = free };

static struct request *
request_of(weft_dag_step *step)
{
	return weft_dag_run_context(weft_dag_step_run(step));
}

/* --- steps on the loop: each is a Redis call ------------------------------------ */

/* Passes a reply on as the step's value. */
static int
steps_give(weft_dag_step *step, struct request *request, int rc, weft_redis_reply *reply)
{
	if (rc == 0)
		return weft_dag_step_out(step, weft_value_ptr(&weft_type_redis, reply));
	if (rc != WEFT_ECANCELED)
		meter_count(&request->demo->meter.redis_errors);
	return rc;
}

static int
get_profile(weft_dag_step *step, struct request *request)
{
	weft_redis_reply *reply = NULL;
	int rc = weft_redis_callf(request->redis, &reply, weft_dag_step_deadline(step),
	                          "HGETALL " KEYS "viewer:%u", request->viewer);

	if (rc == 0 && weft_redis_count(reply) == 0) {
		weft_redis_reply_free(reply);
		return weft_fail(WEFT_ENOENT, "there is no viewer %u", request->viewer);
	}
	return steps_give(step, request, rc, reply);
}

static int
get_followed(weft_dag_step *step, struct request *request)
{
	weft_redis_reply *reply = NULL;
	int rc = weft_redis_callf(request->redis, &reply, weft_dag_step_deadline(step),
	                          "LRANGE " KEYS "followed:%u 0 %u", request->viewer,
	                          request->fan_out - 1);

	return steps_give(step, request, rc, reply);
}

static int
get_similar(weft_dag_step *step, struct request *request)
{
	const weft_redis_reply *profile = weft_dag_step_in(step, 0)->as.ptr;
	weft_redis_reply *reply = NULL;
	int64_t cluster = 0;
	int rc;

	(void)weft_redis_integer(weft_redis_field(profile, "cluster"), &cluster);
	rc = weft_redis_callf(request->redis, &reply, weft_dag_step_deadline(step),
	                      "LRANGE " KEYS "similar:%u 0 %u", (unsigned)cluster,
	                      request->fan_out - 1);
	return steps_give(step, request, rc, reply);
}

static int
get_trending(weft_dag_step *step, struct request *request)
{
	weft_redis_reply *reply = NULL;
	int rc = weft_redis_callf(request->redis, &reply, weft_dag_step_deadline(step),
	                          "ZREVRANGE " KEYS "trending 0 %u", request->fan_out - 1);

	return steps_give(step, request, rc, reply);
}

static int
get_seen(weft_dag_step *step, struct request *request)
{
	weft_redis_reply *reply = NULL;
	int rc = weft_redis_callf(request->redis, &reply, weft_dag_step_deadline(step),
	                          "SMEMBERS " KEYS "seen:%u", request->viewer);

	return steps_give(step, request, rc, reply);
}

/* A candidate as an integer, for the list over which `features` runs. */
static int64_t
pack(struct candidate candidate)
{
	return (int64_t)candidate.item * SOURCES + candidate.source;
}

static struct candidate
unpack(int64_t packed)
{
	return (struct candidate){ (uint32_t)(packed / SOURCES), (enum source)(packed % SOURCES) };
}

static int
get_features(weft_dag_step *step, struct request *request)
{
	char key[32];
	weft_span words[] = { { "GET", 3 }, { key, 0 } };
	weft_redis_reply *reply = NULL;
	uint32_t item = unpack(weft_dag_step_in(step, 0)->as.integer).item;
	int rc;

	words[1].size = (size_t)snprintf(key, sizeof(key), KEYS "item:%u", item);
	rc = weft_redis_call(request->redis, words, 2, &reply, weft_dag_step_deadline(step));
	if (rc == 0 && --request->features_left == 0) {
		request->cpu_waits = true;
		meter_count(&request->demo->cpu_waiting);
	}
	return steps_give(step, request, rc, reply);
}

/* --- steps that compute ----------------------------------------------------------- */

static uint32_t
read_ids(const weft_redis_reply *reply, uint32_t *out, uint32_t max)
{
	size_t all = weft_redis_count(reply);
	uint32_t count = 0;
	int64_t id;

	for (size_t i = 0; i < all && count < max; i++)
		if (weft_redis_integer(weft_redis_item(reply, i), &id) == 0 && id > 0
		    && id < 1000000000)
			out[count++] = (uint32_t)id;
	return count;
}

/* The inputs are in the order of the sources.  It runs on the loop because it is short, and so
 * do the steps before and after it. */
static int
merge(weft_dag_step *step, struct request *request)
{
	struct ids *sources = calloc(SOURCES, sizeof(*sources));
	struct candidate candidates[DEMO_FAN_OUT];
	weft_value values[DEMO_FAN_OUT];
	uint32_t count;

	if (!sources)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < SOURCES; i++)
		sources[i].count = read_ids(weft_dag_step_in(step, i)->as.ptr, sources[i].ids,
		                            DEMO_FAN_OUT);
	count = candidates_merge(sources, request->fan_out, candidates);
	free(sources);
	for (uint32_t i = 0; i < count; i++)
		values[i] = weft_value_integer(pack(candidates[i]));
	request->features_left = count;
	return weft_dag_step_out(step, weft_value_list(values, count));
}

static void
read_profile(const weft_redis_reply *reply, struct profile *out)
{
	static const char *const names[] = { "name", "cluster", "taste" };
	weft_span text;

	for (size_t i = 0; i < 3; i++)
		if (weft_redis_text(weft_redis_field(reply, names[i]), &text) == 0)
			(void)profile_field(out, names[i], text.data);
}

static int
score(weft_dag_step *step, struct request *request)
{
	const weft_list *features = weft_dag_step_in(step, 0)->as.ptr;
	const weft_list *candidates = weft_dag_step_in(step, 1)->as.ptr;
	struct feed *feed = calloc(1, sizeof(*feed));
	struct features one;
	weft_span text;

	if (request->cpu_waits) {
		request->cpu_waits = false;
		__atomic_fetch_sub(&request->demo->cpu_waiting, 1, __ATOMIC_RELAXED);
	}
	if (!feed)
		return WEFT_ENOMEM;
	read_profile(weft_dag_step_in(step, 2)->as.ptr, &feed->profile);
	feed->candidates = (uint32_t)candidates->count;
	for (size_t i = 0; i < features->count; i++)
		if (weft_redis_text(features->items[i].as.ptr, &text) == 0
		    && features_read(&one, text.data))
			feed_add(feed, unpack(candidates->items[i].as.integer), &one);
	return weft_dag_step_out(step, weft_value_ptr(&type_feed, feed));
}

static int
filter(weft_dag_step *step, struct request *request)
{
	uint32_t seen[SEEN_MAX];
	uint32_t count = read_ids(weft_dag_step_in(step, 1)->as.ptr, seen, SEEN_MAX);
	weft_value feed;
	int rc = weft_dag_step_take(step, 0, &feed);

	(void)request;
	if (rc < 0)
		return rc;
	feed_filter(feed.as.ptr, seen, count);
	return weft_dag_step_out(step, feed);
}

static int
rank(weft_dag_step *step, struct request *request)
{
	weft_value feed;
	int rc = weft_dag_step_take(step, 0, &feed);

	if (rc < 0)
		return rc;
	feed_rank(feed.as.ptr, request->top);
	return weft_dag_step_out(step, feed);
}

/* --- the template ------------------------------------------------------------------- */

#define REPLY &weft_type_redis
#define LIST  &weft_type_list

static const struct node_kind kinds[NODES] = {
	[PROFILE] = { "profile", get_profile, { NULL }, REPLY, WEFT_DAG_LOOP, false },
	[GET_FOLLOWED] = { "followed", get_followed, { NULL }, REPLY, WEFT_DAG_LOOP, false },
	[GET_SIMILAR] = { "similar", get_similar, { "profile" }, REPLY, WEFT_DAG_LOOP, false },
	[GET_TRENDING] = { "trending", get_trending, { NULL }, REPLY, WEFT_DAG_LOOP, false },
	[SEEN] = { "seen", get_seen, { NULL }, REPLY, WEFT_DAG_LOOP, false },
	[MERGE] = { "merge",
	            merge,
	            { "followed", "similar", "trending" },
	            LIST,
	            WEFT_DAG_LOOP,
	            false },
	[FEATURES] = { "features", get_features, { "merge" }, REPLY, WEFT_DAG_LOOP, true },
	[SCORE] = { "score",
	            score,
	            { "features", "merge", "profile" },
	            &type_feed,
	            WEFT_DAG_CPU,
	            false },
	[FILTER] = { "filter", filter, { "score", "seen" }, &type_feed, WEFT_DAG_CPU, false },
	[RANK] = { "rank", rank, { "filter" }, &type_feed, WEFT_DAG_CPU, false },
};

const char *
steps_name(enum node node)
{
	return kinds[node].name;
}

const char *
steps_place(enum node node)
{
	return kinds[node].place == WEFT_DAG_LOOP ? "loop" : "cpu";
}

const char *const *
steps_inputs(enum node node)
{
	return kinds[node].inputs;
}

/* Times every step with two clock reads; for `features`, from the first start to the last end. */
static int
run_step(weft_dag_step *step, void *arg)
{
	const struct node_kind *kind = arg;
	struct request *request = request_of(step);
	struct node_time *time = &request->nodes[kind - kinds];
	int rc;

	if (time->begin_ns == 0)
		time->begin_ns = weft_now();
	if (time->state == NODE_WAITS)
		time->state = NODE_RUNS;
	if (kind->type == REPLY)
		gauge_add(&request->demo->calls);
	rc = kind->fn(step, request);
	if (kind->type == REPLY)
		gauge_sub(&request->demo->calls);
	time->end_ns = weft_now();
	if (rc < 0)
		time->state = NODE_FAILED;
	else if (time->state == NODE_RUNS && (!kind->each || request->features_left == 0))
		time->state = NODE_DONE;
	return rc;
}

int
steps_make(struct demo *demo, weft_dag **out)
{
	weft_dag *dag = weft_dag_new("feed");
	int rc = dag ? 0 : WEFT_ENOMEM;

	(void)demo;
	for (int i = 0; i < NODES && rc >= 0; i++)
		rc = weft_dag_add(dag, &(weft_dag_node){ .name = kinds[i].name,
		                                         .fn = run_step,
		                                         .arg = (void *)&kinds[i],
		                                         .inputs = kinds[i].inputs,
		                                         .type = kinds[i].type,
		                                         .place = kinds[i].place,
		                                         .each = kinds[i].each });
	if (rc >= 0)
		rc = weft_dag_check(dag);
	if (rc < 0) {
		(void)weft_dag_free(dag);
		return rc;
	}
	*out = dag;
	return 0;
}
