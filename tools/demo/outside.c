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

/* A change of the rate takes effect after the next request. */
static void
load_pace(struct demo *demo, weft_scope *scope, weft_http_client *const *clients)
{
	uint64_t due_ns = weft_now();

	for (uint32_t n = 0; weft_sem_acquire(&demo->order, due_ns) == WEFT_ETIMEDOUT; n++) {
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

static void
load_run(struct demo *demo)
{
	weft_http_client_opts opts = { .per_host_max = CONNECTIONS, .queue_max = 1 };
	weft_http_client *clients[SIDES] = { weft_http_client_new(&opts),
		                             weft_http_client_new(&opts) };
	weft_scope scope;

	if (clients[WEFT] && clients[THREADS] && weft_scope_open(&scope, 0, WEFT_NEVER) == 0) {
		load_pace(demo, &scope, clients);
		(void)weft_scope_close(&scope);
	} else {
		(void)weft_sem_acquire(&demo->order, WEFT_NEVER);
	}
	for (int i = 0; i < SIDES; i++)
		(void)weft_http_client_free(clients[i]);
}

static int
store_open(struct demo *demo, weft_store **out)
{
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr bound;
	int rc = weft_store_open(NULL, NULL, out);

	if (rc == 0)
		rc = weft_store_listen(*out, "tcp://127.0.0.1:0", &bound);
	if (rc == 0)
		rc = weft_addr_format(&bound, text, sizeof(text));
	if (rc > 0)
		(void)snprintf(demo->store_url, sizeof(demo->store_url), "redis%s",
		               text + sizeof("tcp") - 1);
	return rc < 0 ? rc : 0;
}

static void
on_closed(void *event)
{
	(void)weft_event_set(event);
}

/* The load ends with the first order, before the service; the rest with the second. */
static int
outside_run(void *arg)
{
	struct demo *demo = arg;
	weft_event closed = WEFT_INIT;
	weft_store *store = NULL;

	demo->outside_error = demo->opts.redis ? 0 : store_open(demo, &store);
	(void)weft_sem_release(&demo->done, 1);
	load_run(demo);
	(void)weft_sem_release(&demo->done, 1);
	(void)weft_sem_acquire(&demo->order, WEFT_NEVER);
	weft_redis_close(demo->threads_redis);
	if (store) {
		weft_store_close(store, on_closed, &closed);
		(void)weft_event_wait(&closed, WEFT_NEVER);
	}
	(void)weft_sem_release(&demo->done, 1);
	return 0;
}

int
outside_start(struct demo *demo)
{
	weft_go_opts opts = { .name = "outside" };
	weft_threadlet id = WEFT_ENOMEM;

	demo->outside = opts.loop = weft_loop_new(&(weft_loop_opts){ .name = opts.name });
	demo->order.flags = demo->done.flags = WEFT_SHARED;
	if (opts.loop)
		id = weft_loop_start(opts.loop);
	if (id == 0)
		id = weft_go_with(&opts, outside_run, demo);
	if (id < 0)
		return (int)id;
	demo->orders = 2;
	(void)weft_sem_acquire(&demo->done, WEFT_NEVER);
	if (demo->outside_error < 0)
		return demo->outside_error;
	return demo_connect(demo, demo->outside, &demo->threads_redis);
}

void
outside_order(struct demo *demo)
{
	demo->orders--;
	(void)weft_sem_release(&demo->order, 1);
	(void)weft_sem_acquire(&demo->done, WEFT_NEVER);
}

void
outside_stop(struct demo *demo)
{
	while (demo->orders > 0)
		outside_order(demo);
	if (!demo->outside)
		return;
	weft_loop_shutdown(demo->outside);
	(void)weft_loop_wait_stopped(demo->outside, weft_after(5 * WEFT_S));
	(void)weft_loop_free(demo->outside);
}
