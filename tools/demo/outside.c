/* outside.c - what is around the service, on a loop of its own: the embedded store, the Redis
 * client of the threads, and the built-in load.
 *
 * The load makes HTTP requests at a constant rate while Redis is up, also if the service falls
 * behind.  A latency counts from when the request was due.  The client of each side has a limited
 * number of connections; requests beyond it are skipped.
 */
#include "service.h"

#define CONNECTIONS 256             /* of each side */
#define BEHIND_NS   (100 * WEFT_MS) /* requests that are later are skipped */

struct job {
	weft_http_client *client;
	struct side *side;
	uint64_t due_ns;
	char url[300];
};

static int
load_request(void *arg)
{
	struct job *job = arg;
	weft_http_field from = { LOAD_HEADER, "1" };
	weft_http_request request = { .url = job->url, .fields = &from, .field_count = 1 };
	char buffer[4096];
	weft_http *http = NULL;
	ssize_t rc = weft_http_fetch(job->client, &request, &http, weft_after(10 * WEFT_S));

	if (rc == 0)
		do /* to the end, so that the connection can be reused */
			rc = weft_http_read(http, buffer, sizeof(buffer), weft_after(5 * WEFT_S));
		while (rc > 0);
	if (rc == 0 && weft_http_status(http) == 200)
		side_record(job->side, weft_now() - job->due_ns);
	weft_http_close(http);
	free(job);
	return 0;
}

/* A change of the rate takes effect after the next request.  An interrupt ends it. */
static void
load_pace(struct demo *demo, weft_scope *scope, weft_http_client *const *clients)
{
	uint64_t due_ns = weft_now();

	for (uint32_t n = 0; weft_sleep_until(due_ns) == 0; n++) {
		uint32_t rate = health_get(demo, NULL, 0) ? setting(demo, LOAD) : 0;

		for (uint32_t i = 0; rate > 0 && i <= setting(demo, COMPARE); i++) {
			struct job *job = malloc(sizeof(*job));

			if (!job)
				continue;
			*job = (struct job){ clients[i], &demo->sides[i], due_ns, "" };
			(void)snprintf(job->url, sizeof(job->url), "%s/%s/%u", demo->url,
			               i == WEFT ? "feed" : "threads", n * 97 % VIEWERS + 1);
			if (weft_scope_go(scope, load_request, job) < 0)
				free(job);
		}
		due_ns += rate > 0 ? WEFT_S / rate : BEHIND_NS;
		if (due_ns + BEHIND_NS < weft_now())
			due_ns = weft_now();
	}
}

static int
load_run(void *demo)
{
	weft_http_client_opts opts = { .per_host_max = CONNECTIONS, .queue_max = 1 };
	weft_http_client *clients[SIDES] = { weft_http_client_new(&opts),
		                             weft_http_client_new(&opts) };
	weft_scope scope;
	int rc = WEFT_ENOMEM;

	if (clients[WEFT] && clients[THREADS])
		rc = weft_scope_open(&scope, 0, WEFT_NEVER);
	if (rc == 0) {
		load_pace(demo, &scope, clients);
		rc = weft_scope_close(&scope);
	}
	for (int i = 0; i < SIDES; i++)
		(void)weft_http_client_free(clients[i]);
	return rc;
}

int
outside_load(void *arg)
{
	struct demo *demo = arg;

	return weft_loop_call(demo->outside, load_run, demo, WEFT_NEVER);
}

static int
store_open(void *arg)
{
	struct demo *demo = arg;
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr bound;
	int rc = weft_store_open(NULL, NULL, &demo->store);

	if (rc == 0)
		rc = weft_store_listen(demo->store, "tcp://127.0.0.1:0", &bound);
	if (rc == 0)
		rc = weft_addr_format(&bound, text, sizeof(text));
	if (rc > 0)
		(void)snprintf(demo->store_url, sizeof(demo->store_url), "redis%s",
		               text + sizeof("tcp") - 1);
	return rc < 0 ? rc : 0;
}

int
outside_open(struct demo *demo)
{
	int rc = WEFT_ENOMEM;

	demo->outside = weft_loop_new(&(weft_loop_opts){ .name = "outside" });
	if (demo->outside)
		rc = weft_loop_start(demo->outside);
	if (rc == 0 && !demo->opts.redis)
		rc = weft_loop_call(demo->outside, store_open, demo, WEFT_NEVER);
	return rc == 0 ? demo_connect(demo, demo->outside, &demo->threads_redis) : rc;
}

static void
on_closed(void *event)
{
	(void)weft_event_set(event);
}

static int
close_all(void *arg)
{
	struct demo *demo = arg;
	weft_event closed = WEFT_INIT;

	weft_redis_close(demo->threads_redis);
	if (!demo->store)
		return 0;
	weft_store_close(demo->store, on_closed, &closed);
	return weft_event_wait(&closed, WEFT_NEVER);
}

void
outside_close(struct demo *demo)
{
	if (!demo->outside)
		return;
	(void)weft_loop_call(demo->outside, close_all, demo, WEFT_NEVER);
	weft_loop_shutdown(demo->outside);
	(void)weft_loop_wait_stopped(demo->outside, weft_after(5 * WEFT_S));
	(void)weft_loop_free(demo->outside);
}
