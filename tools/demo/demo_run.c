/* demo_run.c - starts the demo, serves, and shuts down in order: no new requests, then the end of
 * the load, then answers to the requests in flight, then the end of the parts that they use. */
#include <signal.h>
#include <weft/embed.h>
#include "service.h"

#define PORT  7070
#define PORTS 10 /* further ports to try, if none was specified */
#define ENDS  (WEFT_SIG(SIGINT) | WEFT_SIG(SIGTERM))

/* Binds the requested port; if none was requested, one of the next ten is acceptable. */
static int
bind_port(struct demo *demo)
{
	const char *host = demo->opts.address;
	bool given = demo->opts.port != DEMO_PORT_FREE, six = strchr(host, ':') != NULL;
	bool all = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0; /* addresses */
	uint32_t first = given ? demo->opts.port : PORT, last = given ? first : PORT + PORTS;
	char text[WEFT_ADDR_TEXT_MAX];
	weft_addr bound;
	int rc = WEFT_EADDRINUSE;

	for (uint32_t port = first; port <= last && rc == WEFT_EADDRINUSE; port++) {
		(void)snprintf(text, sizeof(text), six ? "tcp://[%s]:%u" : "tcp://%s:%u", host,
		               port);
		rc = weft_listener_open(text, NULL, &demo->listener);
	}
	if (rc == WEFT_EADDRINUSE)
		return weft_fail(rc, "port %u of %s is in use%s", first, host,
		                 given ? "" : ", and so are the next ten: choose one with --port");
	if (rc == 0)
		rc = weft_listener_local(demo->listener, &bound);
	if (rc < 0 || (rc = weft_addr_format(&bound, text, sizeof(text))) < 0)
		return rc;
	(void)snprintf(demo->url, sizeof(demo->url), "http://%s%s", all ? "127.0.0.1" : "",
	               all ? strrchr(text, ':') : text + strlen("tcp://"));
	return 0;
}

int
demo_connect(const struct demo *demo, weft_loop *loop, weft_redis **out)
{
	weft_redis_opts opts = { .loop = loop,
		                 .backoff_max_ns = 500 * WEFT_MS,
		                 .connect_ns = 2 * WEFT_S,
		                 .inflight_max = 65536 };

	return weft_redis_open(demo->opts.redis ? demo->opts.redis : demo->store_url, &opts, out);
}

/* The loop closes its client when it stops. */
weft_redis *
demo_redis(const struct demo *demo)
{
	weft_loop *loop = weft_loop_current();
	weft_redis *redis = weft_loop_local_get(loop, demo->client_key);

	if (!redis && demo_connect(demo, loop, &redis) == 0)
		(void)weft_loop_local_set(loop, demo->client_key, redis);
	return redis;
}

static void
close_client(void *redis)
{
	weft_redis_close(redis);
}

static int
start_parts(struct demo *demo)
{
	int rc = bind_port(demo);

	demo->client_key = weft_key_new(close_client);
	demo->server = weft_http_server_new(NULL);
	if (rc == 0)
		rc = demo->server ? outside_open(demo) : WEFT_ENOMEM;
	if (rc == 0)
		rc = feed_open(demo);
	return rc == 0 ? page_open(demo) : rc;
}

static int
serve(void *arg)
{
	struct demo *demo = arg;
	int rc = weft_http_serve(demo->server, demo->listener, WEFT_NEVER);

	return rc == WEFT_ESHUTDOWN ? 0 : rc;
}

static void
print_ready(struct demo *demo)
{
	char detail[256];

	if (!health_get(demo, detail, sizeof(detail)) && !demo->opts.quiet)
		printf("redis is down, and will be tried again: %s\n", detail);
	printf("page: %s/\n", demo->url);
	if (!demo->opts.quiet)
		printf("feed: curl %s/feed/7\n", demo->url);
	(void)fflush(stdout);
}

static void
print_end(const struct demo *demo)
{
	const uint64_t *counts = demo->counts;

	if (!demo->opts.quiet)
		printf("ended: %" PRIu64 " ok, %" PRIu64 " not found, %" PRIu64 " bad, %" PRIu64
		       " shed, %" PRIu64 " errors\n",
		       get(&counts[OK]), get(&counts[NOT_FOUND]), get(&counts[BAD]),
		       get(&counts[SHED]), get(&counts[ERRORS]));
}

/* Serves until a signal arrives, then until all admitted requests are answered. */
static int
serve_until_signal(struct demo *demo)
{
	weft_threadlet serving, health = 0, load = 0;
	weft_scope scope;
	int rc = weft_scope_open(&scope, 0, WEFT_NEVER), status = 0;

	if (rc < 0)
		return rc;
	(void)weft_signal_wait(ENDS, WEFT_NOWAIT); /* keeps signals for the next call */
	serving = weft_scope_go(&scope, serve, demo);
	rc = serving < 0 ? (int)serving : health_check(demo);
	if (rc == 0) {
		health = weft_scope_go(&scope, health_run, demo);
		load = weft_scope_go(&scope, outside_load, demo);
		rc = health < 0 || load < 0 ? WEFT_ENOMEM : 0;
	}
	if (rc == 0) {
		print_ready(demo);
		rc = weft_signal_wait(ENDS, WEFT_NEVER);
	}
	weft_listener_close(demo->listener);
	demo->listener = NULL;
	(void)weft_interrupt(load);
	(void)weft_join(load, NULL, WEFT_NEVER);
	(void)weft_join(serving, &status, WEFT_NEVER);
	(void)weft_cancel(health);
	(void)weft_scope_close(&scope);
	print_end(demo);
	return rc < 0 ? rc : status;
}

static int
demo_main(void *arg)
{
	struct demo *demo = arg;
	int rc = start_parts(demo);

	if (rc == 0)
		rc = serve_until_signal(demo);
	if (rc < 0)
		fprintf(stderr, "weft demo: %s\n",
		        weft_detail()[0] ? weft_detail() : weft_strerror(rc));
	weft_listener_close(demo->listener);
	weft_admin_close(demo->admin);
	(void)weft_pool_free(demo->pool);
	outside_close(demo);
	(void)weft_dag_free(demo->dag);
	(void)weft_http_server_free(demo->server);
	weft_value_drop(&demo->slow);
	demo->failed = rc < 0;
	return 0;
}

int
demo_run(const struct demo_opts *opts)
{
	static struct demo demo;

	demo.opts = *opts;
	(void)snprintf(demo.detail, sizeof(demo.detail), "not checked yet");
	(void)pthread_mutex_init(&demo.lock, NULL);
	for (int i = 0; i < SIDES; i++)
		(void)pthread_mutex_init(&demo.sides[i].lock, NULL);
	return weft_main(&(weft_runtime_opts){ .loops = opts->loops }, demo_main, &demo)
	       || demo.failed;
}
