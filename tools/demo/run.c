/* run.c - starts the demo, serves, waits for a signal, and shuts down in order.
 *
 * Shutdown: the load stops, the listener closes, requests in flight are answered, and only then
 * are the parts that they use released.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "service.h"

void
demo_defaults(struct demo_opts *opts)
{
	*opts = (struct demo_opts){
		.address = "127.0.0.1",
		.port = DEMO_PORT,
		.port_free = true,
		.loops = 1,
		.seed = 7,
		.settings = { .load = 50, .fan_out = 120, .delay_us = 1000, .compare = 1 },
	};
}

/* --- starting ------------------------------------------------------------------------- */

static int
add_routes(struct demo *demo)
{
	static const struct {
		const char *pattern;
		weft_http_fn fn;
	} routes[] = {
		{ "GET /feed/{viewer}", route_feed },
		{ "GET /threads/{viewer}", route_threads },
		{ "GET /demo/events", route_events },
		{ "POST /demo/set", route_set },
	};
	int rc = 0;

	demo->server = weft_http_server_new(NULL);
	if (!demo->server)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]) && rc == 0; i++)
		rc = weft_http_route(demo->server, routes[i].pattern, routes[i].fn, demo);
	return rc;
}

/* `out` is the host to listen on; demo->host is the one for URLs, 127.0.0.1 if it listens on all
 * addresses. */
static void
name_host(struct demo *demo, char *out, size_t max)
{
	const char *address = demo->opts.address;
	bool six = strchr(address, ':') != NULL;
	bool all = !*address || strcmp(address, "0.0.0.0") == 0 || strcmp(address, "::") == 0;

	(void)snprintf(out, max, six ? "[%s]" : "%s", address);
	(void)snprintf(demo->host, sizeof(demo->host), "%s", all ? "127.0.0.1" : out);
}

static int
bind_port(struct demo *demo, uint32_t port)
{
	char host[80], text[WEFT_ADDR_TEXT_MAX];
	weft_addr bound;
	int rc;

	name_host(demo, host, sizeof(host));
	(void)snprintf(text, sizeof(text), "tcp://%s:%u", host, port);
	rc = weft_listener_open(text, NULL, &demo->listener);
	if (rc == 0)
		rc = weft_listener_local(demo->listener, &bound);
	if (rc == 0 && weft_addr_format(&bound, text, sizeof(text)) > 0)
		demo->port = (uint32_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
	return rc;
}

/* Binds the requested port; if none was requested, one of the next ten is acceptable. */
static int
bind_somewhere(struct demo *demo)
{
	uint32_t last = demo->opts.port + (demo->opts.port_free ? DEMO_PORTS : 0);
	int rc = WEFT_EADDRINUSE;

	for (uint32_t port = demo->opts.port; port <= last && rc == WEFT_EADDRINUSE; port++)
		rc = bind_port(demo, port);
	if (rc == WEFT_EADDRINUSE && demo->opts.port_free)
		return weft_fail(rc,
		                 "ports %u to %u of %s are all in use: choose another with --port",
		                 demo->opts.port, last, demo->opts.address);
	if (rc == WEFT_EADDRINUSE)
		return weft_fail(rc, "port %u of %s is in use", demo->opts.port,
		                 demo->opts.address);
	return rc;
}

static void
make_url(struct demo *demo)
{
	const struct endpoint *endpoint = &demo->endpoint;

	(void)snprintf(demo->redis_url, sizeof(demo->redis_url), "redis://%s127.0.0.1:%d%s%s",
	               endpoint->userinfo, far_port(demo->far), endpoint->database[0] ? "/" : "",
	               endpoint->database);
}

static int
start_parts(struct demo *demo)
{
	int rc = bind_somewhere(demo);

	if (rc == 0)
		rc = add_routes(demo);
	if (rc == 0)
		rc = far_start(demo, &demo->far);
	if (rc == 0) {
		make_url(demo);
		rc = stations_open(demo);
	}
	if (rc == 0)
		rc = steps_make(demo, &demo->dag);
	if (rc == 0)
		rc = threads_new(demo, &demo->threads);
	if (rc == 0)
		rc = window_open(demo, &demo->window);
	return rc;
}

/* --- serving -------------------------------------------------------------------------- */

static int
serve(void *arg)
{
	struct demo *demo = arg;
	int rc = weft_http_serve(demo->server, demo->listener, WEFT_NEVER);

	return rc == WEFT_ESHUTDOWN ? 0 : rc;
}

static void
tell_ready(struct demo *demo)
{
	char detail[256];

	health_detail(demo, detail, sizeof(detail));
	if (!health_is_up(demo) && !demo->opts.quiet)
		printf("redis is down, and will be tried again: %s\n", detail);
	printf("page: http://%s:%u/\n", demo->host, demo->port);
	if (!demo->opts.quiet)
		printf("feed: curl http://%s:%u/feed/7\n", demo->host, demo->port);
	(void)fflush(stdout);
}

static void
tell_end(struct demo *demo)
{
	const uint64_t *outcomes = demo->meter.outcomes;

	if (!demo->opts.quiet)
		printf("ended: %llu ok, %llu not found, %llu bad, %llu shed, %llu errors\n",
		       (unsigned long long)meter_get(&outcomes[OK]),
		       (unsigned long long)meter_get(&outcomes[NOT_FOUND]),
		       (unsigned long long)meter_get(&outcomes[BAD]),
		       (unsigned long long)meter_get(&outcomes[SHED]),
		       (unsigned long long)meter_get(&outcomes[ERRORS]));
	(void)fflush(stdout);
}

/* Announces the demo, and waits for a signal to end.  The first call takes over the signals
 * before the announcement: so a caller that reads the page's address and then sends a signal
 * gets an orderly shutdown. */
static int
wait_for_signal(struct demo *demo)
{
	const uint64_t ends = WEFT_SIG(SIGINT) | WEFT_SIG(SIGTERM);
	int rc = weft_signal_wait(ends, WEFT_NOWAIT);

	if (rc != WEFT_ETIMEDOUT)
		return rc;
	tell_ready(demo);
	return weft_signal_wait(ends, WEFT_NEVER);
}

/* Serves until a signal arrives, then until all admitted requests are answered. */
static int
serve_until_signal(struct demo *demo)
{
	weft_threadlet serving, health;
	weft_scope scope;
	int rc = weft_scope_open(&scope, 0, WEFT_NEVER), status = 0;

	if (rc < 0)
		return rc;
	serving = weft_scope_go(&scope, serve, demo);
	health = weft_scope_go(&scope, health_run, demo);
	if (serving < 0 || health < 0)
		rc = WEFT_ENOMEM;
	if (rc == 0)
		rc = weft_event_wait(&demo->first_look, weft_after(10 * WEFT_S));
	if (rc == 0 || rc == WEFT_ETIMEDOUT)
		rc = load_start(demo, &demo->load);
	if (rc == 0)
		rc = wait_for_signal(demo);
	weft_listener_close(demo->listener);
	demo->listener = NULL;
	load_stop(demo->load);
	(void)weft_join(serving, &status, WEFT_NEVER);
	(void)weft_cancel(health);
	(void)weft_scope_close(&scope);
	tell_end(demo);
	return rc < 0 ? rc : status;
}

/* --- shutdown --------------------------------------------------------------------------- */

static void
end_parts(struct demo *demo)
{
	weft_listener_close(demo->listener);
	window_close(demo->window);
	threads_free(demo->threads);
	if (demo->station_count > 0)
		stations_close(demo);
	(void)weft_dag_free(demo->dag);
	far_stop(demo->far);
	(void)weft_http_server_free(demo->server);
}

static int
demo_run_run(void *arg)
{
	struct demo *demo = arg;
	int rc = start_parts(demo);

	if (rc == 0)
		rc = serve_until_signal(demo);
	if (rc < 0)
		fprintf(stderr, "weft demo: %s\n",
		        weft_detail()[0] ? weft_detail() : weft_strerror(rc));
	end_parts(demo);
	return rc < 0 ? rc : 0;
}

int
demo_run(const struct demo_opts *opts)
{
	struct demo *demo = calloc(1, sizeof(*demo));
	weft_runtime_opts runtime = { .loops = opts->loops };
	int status = 1;

	if (!demo)
		return 1;
	demo->opts = *opts;
	demo->settings = opts->settings;
	demo->first_look.flags = WEFT_SHARED;
	admission_init(&demo->admission, RUNS_MAX * opts->loops);
	meter_init(&demo->meter);
	slow_init(&demo->slow);
	(void)pthread_mutex_init(&demo->health_lock, NULL);
	if (endpoint_read(opts->redis, &demo->endpoint) < 0)
		fprintf(stderr, "weft demo: %s\n", weft_detail());
	else
		status = weft_main(&runtime, demo_run_run, demo);
	free(demo);
	return status;
}
