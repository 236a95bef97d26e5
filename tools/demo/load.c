/* load.c - a moderate load: HTTP requests at a constant rate, from a loop of its own.
 *
 * The clock sets the pace, not the replies: a service that falls behind gets no fewer requests.
 * A latency counts from when the request was due.  Each side has its own limit of requests in
 * flight; requests beyond it are skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "service.h"

#define UNDER_WAY_MAX 256
#define LOOK_NS       (50 * WEFT_MS) /* longest interval between two checks of the settings */
#define BEHIND_NS     (100 * WEFT_MS)
#define VIEWERS       500

struct load {
	struct demo *demo;
	weft_loop *loop;
	weft_http_client *client;
	weft_scope scope;
	uint64_t random;
	uint32_t under_way[SIDES];
	weft_event end, gone; /* shared */
	bool runs;
};

struct job {
	struct load *load;
	enum side side;
	uint32_t viewer;
	uint64_t due_ns;
};

static uint32_t
draw_viewer(struct load *load)
{
	load->random ^= load->random << 13;
	load->random ^= load->random >> 7;
	load->random ^= load->random << 17;
	return (uint32_t)(load->random % VIEWERS) + 1;
}

/* Reads a reply to its end, so that its connection can be reused. */
static int
read_reply(weft_http *http)
{
	char buffer[4096];
	ssize_t rc = 1;

	while (rc > 0)
		rc = weft_http_read(http, buffer, sizeof(buffer), weft_after(5 * WEFT_S));
	return (int)rc;
}

static void
load_request(struct job *job)
{
	static const char *const paths[SIDES] = { "feed", "threads" };
	struct demo *demo = job->load->demo;
	weft_http_field from = { LOAD_HEADER, "1" };
	char url[160];
	weft_http_request request = { .url = url, .fields = &from, .field_count = 1 };
	weft_http *http;
	int rc;

	(void)snprintf(url, sizeof(url), "http://%s:%u/%s/%u", demo->host, demo->port,
	               paths[job->side], job->viewer);
	rc = weft_http_fetch(job->load->client, &request, &http, weft_after(10 * WEFT_S));
	if (rc < 0)
		return;
	rc = read_reply(http);
	if (rc == 0 && weft_http_status(http) == 200)
		meter_record(&demo->meter, job->side, weft_now() - job->due_ns);
	weft_http_close(http);
}

static int
ask_once(void *arg)
{
	struct job *job = arg;

	load_request(job);
	job->load->under_way[job->side]--;
	free(job);
	return 0;
}

static void
load_send(struct load *load, enum side side, uint32_t viewer, uint64_t due_ns)
{
	struct job *job;

	if (load->under_way[side] >= UNDER_WAY_MAX)
		return;
	job = malloc(sizeof(*job));
	if (!job)
		return;
	*job = (struct job){ load, side, viewer, due_ns };
	load->under_way[side]++;
	if (weft_scope_go(&load->scope, ask_once, job) < 0) {
		load->under_way[side]--;
		free(job);
	}
}

/* When the next request is due at this rate. */
static uint64_t
next_due(uint64_t last_ns, uint64_t now, uint32_t rate)
{
	uint64_t due;

	if (rate == 0)
		return WEFT_NEVER;
	due = last_ns + WEFT_S / rate;
	return due + BEHIND_NS < now ? now : due;
}

static void
pace(struct load *load)
{
	struct demo *demo = load->demo;
	uint64_t last_ns = weft_now(), now, due_ns;
	int rc = WEFT_ETIMEDOUT;

	while (rc == WEFT_ETIMEDOUT) {
		now = weft_now();
		due_ns = next_due(last_ns, now, setting(&demo->settings.load));
		if (due_ns <= now) {
			uint32_t viewer = draw_viewer(load);

			load_send(load, SIDE_WEFT, viewer, due_ns);
			if (setting(&demo->settings.compare))
				load_send(load, SIDE_THREADS, viewer, due_ns);
			last_ns = due_ns;
			continue;
		}
		if (due_ns > now + LOOK_NS)
			due_ns = now + LOOK_NS;
		rc = weft_event_wait(&load->end, due_ns);
	}
}

static int
load_run(void *arg)
{
	struct load *load = arg;
	weft_http_client_opts opts = { .per_host_max = 2 * UNDER_WAY_MAX,
		                       .idle_max = 2 * UNDER_WAY_MAX };

	load->client = weft_http_client_new(&opts);
	if (load->client && weft_scope_open(&load->scope, 0, WEFT_NEVER) == 0) {
		pace(load);
		(void)weft_scope_close(&load->scope);
	}
	(void)weft_http_client_free(load->client);
	(void)weft_event_set(&load->gone);
	return 0;
}

int
load_start(struct demo *demo, struct load **out)
{
	struct load *load = calloc(1, sizeof(*load));
	int rc;

	if (!load)
		return WEFT_ENOMEM;
	load->demo = demo;
	load->random = demo->opts.seed * 2 + 1;
	load->end.flags = load->gone.flags = WEFT_SHARED;
	load->loop = weft_loop_new(&(weft_loop_opts){ .name = "load" });
	rc = load->loop ? weft_loop_start(load->loop) : WEFT_ENOMEM;
	if (rc == 0) {
		weft_go_opts opts = { .loop = load->loop, .name = "load" };
		weft_threadlet id = weft_go_with(&opts, load_run, load);

		load->runs = id > 0;
		rc = id < 0 ? (int)id : 0;
	}
	if (rc < 0) {
		load_stop(load);
		return rc;
	}
	*out = load;
	return 0;
}

void
load_stop(struct load *load)
{
	if (!load)
		return;
	(void)weft_event_set(&load->end);
	if (load->runs)
		(void)weft_event_wait(&load->gone, WEFT_NEVER);
	if (load->loop) {
		weft_loop_shutdown(load->loop);
		(void)weft_loop_wait_stopped(load->loop, weft_after(5 * WEFT_S));
		(void)weft_loop_free(load->loop);
	}
	free(load);
}
