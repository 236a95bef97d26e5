/* threads.c - the same work as the graph, one call after the other, on 8 threads.
 *
 * This is the baseline of the comparison: a pool of threads that spend most of their time
 * blocked in recv().  Requests wait for a thread in a bounded queue.  Each thread takes a
 * connection for a request; there are as many connections as threads.
 */
#include <stdlib.h>
#include "blocking.h"

#define THREADS   8
#define QUEUE_MAX 32

struct threads {
	struct demo *demo;
	weft_pool *pool;
	pthread_mutex_t lock;
	struct blocking *idle[THREADS]; /* under the lock */
	int idle_count;
	struct blocking clients[THREADS];
};

struct job {
	struct threads *threads;
	struct request *request;
	struct feed *feed;
	struct blocking *client;
	struct blocking_reply reply;
	struct ids sources[SOURCES];
	struct candidate candidates[DEMO_FAN_OUT];
};

/* --- steps --------------------------------------------------------------------------- */

static void
threads_begin(struct job *job, enum node node)
{
	job->request->nodes[node].begin_ns = weft_now();
	job->request->nodes[node].state = NODE_RUNS;
}

static int
threads_end(struct job *job, enum node node, int rc)
{
	job->request->nodes[node].end_ns = weft_now();
	job->request->nodes[node].state = rc < 0 ? NODE_FAILED : NODE_DONE;
	return rc;
}

#define CALL(job, ...)                                    \
	(gauge_add(&(job)->request->demo->threads_calls), \
	 counted((job)->request->demo,                    \
	         blocking_call((job)->client, (job)->request->demo, &(job)->reply, __VA_ARGS__)))

static int
counted(struct demo *demo, int rc)
{
	gauge_sub(&demo->threads_calls);
	if (rc < 0)
		meter_count(&demo->meter.redis_errors);
	return rc;
}

static int
get_profile(struct job *job)
{
	int rc = CALL(job, "HGETALL " KEYS "viewer:%u", job->request->viewer);

	if (rc == 0 && job->reply.count == 0)
		rc = WEFT_ENOENT;
	for (size_t i = 0; rc == 0 && i + 1 < job->reply.count; i += 2)
		(void)profile_field(&job->feed->profile, job->reply.items[i],
		                    job->reply.items[i + 1]);
	return rc;
}

static uint32_t
read_ids(const struct blocking_reply *reply, uint32_t *out, uint32_t max)
{
	uint32_t count = 0;

	for (size_t i = 0; i < reply->count && count < max; i++)
		out[count++] = (uint32_t)strtoul(reply->items[i], NULL, 10);
	return count;
}

static int
get_source(struct job *job, enum source source)
{
	struct request *request = job->request;
	struct ids *ids = &job->sources[source];
	uint32_t last = request->fan_out - 1;
	int rc;

	if (source == FOLLOWED)
		rc = CALL(job, "LRANGE " KEYS "followed:%u 0 %u", request->viewer, last);
	else if (source == SIMILAR)
		rc = CALL(job, "LRANGE " KEYS "similar:%u 0 %u", job->feed->profile.cluster, last);
	else
		rc = CALL(job, "ZREVRANGE " KEYS "trending 0 %u", last);
	if (rc == 0)
		ids->count = read_ids(&job->reply, ids->ids, DEMO_FAN_OUT);
	return rc;
}

static int
get_features(struct job *job, uint32_t count)
{
	struct features features;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		rc = CALL(job, "GET " KEYS "item:%u", job->candidates[i].item);
		if (rc == 0 && job->reply.count == 1
		    && features_read(&features, job->reply.items[0]))
			feed_add(job->feed, job->candidates[i], &features);
	}
	return rc;
}

/* --- a request ------------------------------------------------------------------------ */

static int
get_sources(struct job *job)
{
	static const enum node nodes[SOURCES] = { GET_FOLLOWED, GET_SIMILAR, GET_TRENDING };
	int rc;

	threads_begin(job, PROFILE);
	rc = threads_end(job, PROFILE, get_profile(job));
	for (int i = 0; rc == 0 && i < SOURCES; i++) {
		threads_begin(job, nodes[i]);
		rc = threads_end(job, nodes[i], get_source(job, (enum source)i));
	}
	return rc;
}

static int
rank_candidates(struct job *job)
{
	struct request *request = job->request;
	uint32_t seen[SEEN_MAX], count;
	int rc;

	threads_begin(job, SEEN);
	rc = threads_end(job, SEEN, CALL(job, "SMEMBERS " KEYS "seen:%u", request->viewer));
	if (rc < 0)
		return rc;
	count = read_ids(&job->reply, seen, SEEN_MAX);
	threads_begin(job, MERGE);
	job->feed->candidates = candidates_merge(job->sources, request->fan_out, job->candidates);
	(void)threads_end(job, MERGE, 0);
	threads_begin(job, FEATURES); /* scored as they arrive */
	rc = threads_end(job, FEATURES, get_features(job, job->feed->candidates));
	if (rc < 0)
		return rc;
	threads_begin(job, RANK);
	feed_filter(job->feed, seen, count);
	feed_rank(job->feed, request->top);
	return threads_end(job, RANK, 0);
}

static struct blocking *
take_client(struct threads *threads)
{
	struct blocking *client;

	(void)pthread_mutex_lock(&threads->lock);
	client = threads->idle[--threads->idle_count];
	(void)pthread_mutex_unlock(&threads->lock);
	return client;
}

static void
give_client(struct threads *threads, struct blocking *client)
{
	(void)pthread_mutex_lock(&threads->lock);
	threads->idle[threads->idle_count++] = client;
	(void)pthread_mutex_unlock(&threads->lock);
}

/* Runs on a thread of the pool. */
static int
work(void *arg)
{
	struct job *job = arg;
	int rc;

	job->client = take_client(job->threads);
	rc = get_sources(job);
	if (rc == 0)
		rc = rank_candidates(job);
	give_client(job->threads, job->client);
	return rc;
}

int
threads_feed(struct threads *threads, struct request *request, struct feed *feed)
{
	struct job *job = calloc(1, sizeof(*job));
	int rc;

	if (!job)
		return WEFT_ENOMEM;
	job->threads = threads;
	job->request = request;
	job->feed = feed;
	rc = weft_work(threads->pool, work, job, WEFT_NEVER);
	free(job);
	return rc;
}

/* --- creation and destruction ----------------------------------------------------------- */

int
threads_new(struct demo *demo, struct threads **out)
{
	struct threads *threads = calloc(1, sizeof(*threads));
	weft_pool_opts opts = { .name = "blocking-8",
		                .threads_max = THREADS,
		                .queue_max = QUEUE_MAX };

	if (!threads)
		return WEFT_ENOMEM;
	threads->demo = demo;
	(void)pthread_mutex_init(&threads->lock, NULL);
	for (int i = 0; i < THREADS; i++) {
		blocking_init(&threads->clients[i]);
		give_client(threads, &threads->clients[i]);
	}
	threads->pool = weft_pool_new(&opts);
	if (!threads->pool) {
		threads_free(threads);
		return WEFT_ENOMEM;
	}
	*out = threads;
	return 0;
}

void
threads_free(struct threads *threads)
{
	if (!threads)
		return;
	(void)weft_pool_free(threads->pool);
	for (int i = 0; i < THREADS; i++)
		blocking_close(&threads->clients[i]);
	(void)pthread_mutex_destroy(&threads->lock);
	free(threads);
}
