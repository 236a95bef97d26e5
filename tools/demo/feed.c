/* feed.c - GET /feed/<viewer>: each request is one run of the graph.
 *
 * The number of admitted requests is limited, so that they keep their latency; the rest are
 * rejected at once with 503.  While Redis is down, every request is rejected with the reason.
 * GET /threads/<viewer> returns the same feed, computed by the threads that block.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "service.h"

#define JSON  "application/json"
#define PLAIN "text/plain; charset=utf-8"

static int
say(weft_http *http, int status, const char *text)
{
	return weft_http_reply(http, status, PLAIN, weft_text(text), weft_after(5 * WEFT_S));
}

static int
say_later(weft_http *http, const char *text)
{
	(void)weft_http_set_header(http, "Retry-After", "1");
	return say(http, 503, text);
}

/* Parses a whole number from 1 to `max`: digits only, without a leading zero. */
static bool
demo_feed_read_number(const char *text, uint32_t max, uint32_t *out)
{
	uint64_t number = 0;
	size_t size = text ? strlen(text) : 0;

	if (size == 0 || size > 9 || strspn(text, "0123456789") != size || *text == '0')
		return false;
	for (; *text; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	*out = (uint32_t)number;
	return number <= max;
}

/* Returns what is wrong with the request, or NULL. */
static const char *
read_request(struct demo *demo, weft_http *http, struct request *out)
{
	const char *top = weft_http_param(http, "k");

	*out = (struct request){ .demo = demo,
		                 .top = TOP,
		                 .fan_out = setting(&demo->settings.fan_out),
		                 .begin_ns = weft_now() };
	if (!demo_feed_read_number(weft_http_param(http, "viewer"), 999999999, &out->viewer))
		return "the viewer is not a number from 1 to 999999999\n";
	if (top && !demo_feed_read_number(top, TOP_MAX, &out->top))
		return "k is not a number from 1 to 50\n";
	return NULL;
}

/* --- by the graph ------------------------------------------------------------------ */

static int
run_graph(struct request *request, struct text *text)
{
	weft_dag_run *run = weft_dag_run_new(request->demo->dag,
	                                     &(weft_dag_run_opts){ .context = request });
	weft_value feed;
	int rc = run ? 0 : WEFT_ENOMEM;

	if (rc == 0)
		rc = weft_dag_run_wait(run, weft_after(RUN_DEADLINE));
	if (rc == 0)
		rc = weft_dag_run_get(run, steps_name(RANK), &feed);
	if (rc == 0)
		reply_write(text, request, feed.as.ptr);
	if (request->cpu_waits) /* it failed before scoring started */
		__atomic_fetch_sub(&request->demo->cpu_waiting, 1, __ATOMIC_RELAXED);
	weft_dag_run_free(run);
	return rc;
}

/* The outcome is counted before the reply is sent: a client that has the reply finds it counted. */
static int
answer(weft_http *http, struct demo *demo, int rc, const struct text *text)
{
	char why[600];
	enum outcome outcome = rc == 0 ? OK : rc == WEFT_ENOENT ? NOT_FOUND : ERRORS;

	meter_count(&demo->meter.outcomes[outcome]);
	if (rc == 0)
		return weft_http_reply(http, 200, JSON, (weft_span){ text->data, text->size },
		                       weft_after(10 * WEFT_S));
	if (rc == WEFT_ENOENT)
		return say(http, 404, "there is no such viewer\n");
	(void)snprintf(why, sizeof(why), "redis: %s\n", weft_detail());
	return say(http, 502, why);
}

/* The target duration of an admitted request: some consecutive calls, and the time that a busy
 * loop needs for all its requests. */
static uint64_t
target_ns(const struct demo *demo)
{
	return 100 * WEFT_MS + 4 * setting(&demo->settings.delay_us) * WEFT_US;
}

static int
refuse_down(weft_http *http, struct demo *demo)
{
	char why[320] = "redis is down: ";
	size_t size = strlen(why);

	meter_count(&demo->meter.outcomes[ERRORS]);
	health_detail(demo, why + size, sizeof(why) - size - 1);
	size = strlen(why);
	why[size] = '\n';
	why[size + 1] = '\0';
	return say_later(http, why);
}

static int
serve_inside(weft_http *http, struct demo *demo, struct request *request)
{
	char *data = malloc(REPLY_MAX);
	struct text text;
	uint64_t end_ns;
	int rc, ran = WEFT_ENOMEM;

	if (data) {
		text = text_in(data, REPLY_MAX);
		request->redis = station_here(demo)->redis;
		ran = run_graph(request, &text);
	}
	rc = answer(http, demo, ran, data ? &text : NULL);
	end_ns = weft_now();
	if (ran == 0) {
		slow_note(&demo->slow, request, end_ns);
		if (!weft_http_header(http, LOAD_HEADER))
			meter_record(&demo->meter, SIDE_WEFT, end_ns - request->begin_ns);
	}
	free(data);
	return rc;
}

int
route_feed(weft_http *http, void *arg)
{
	struct demo *demo = arg;
	struct request request;
	const char *wrong = read_request(demo, http, &request);
	uint64_t now_ns;
	int rc;

	if (wrong) {
		meter_count(&demo->meter.outcomes[BAD]);
		return say(http, 400, wrong);
	}
	if (!health_is_up(demo))
		return refuse_down(http, demo);
	if (!admission_enter(&demo->admission)) {
		meter_count(&demo->meter.outcomes[SHED]);
		return say_later(http, "overloaded: try again later\n");
	}
	rc = serve_inside(http, demo, &request);
	now_ns = weft_now();
	admission_leave(&demo->admission, now_ns - request.begin_ns, target_ns(demo), now_ns);
	return rc;
}

/* --- by threads -------------------------------------------------------------------- */

static int
answer_threads(weft_http *http, int rc, const struct text *text)
{
	char why[600];

	if (rc == 0)
		return weft_http_reply(http, 200, JSON, (weft_span){ text->data, text->size },
		                       weft_after(10 * WEFT_S));
	if (rc == WEFT_ENOENT)
		return say(http, 404, "there is no such viewer\n");
	if (rc == WEFT_EAGAIN)
		return say_later(http, "overloaded: try again later\n");
	(void)snprintf(why, sizeof(why), "redis: %s\n", weft_detail());
	return say(http, 502, why);
}

int
route_threads(weft_http *http, void *arg)
{
	struct demo *demo = arg;
	struct request request;
	const char *wrong = read_request(demo, http, &request);
	struct feed *feed = calloc(1, sizeof(*feed) + REPLY_MAX);
	struct text text;
	int rc = feed ? 0 : WEFT_ENOMEM, ran;

	if (rc < 0 || wrong) {
		free(feed);
		return wrong ? say(http, 400, wrong) : rc;
	}
	text = text_in((char *)(feed + 1), REPLY_MAX);
	ran = threads_feed(demo->threads, &request, feed);
	if (ran == 0)
		reply_write(&text, &request, feed);
	rc = answer_threads(http, ran, &text);
	if (ran == 0 && !weft_http_header(http, LOAD_HEADER))
		meter_record(&demo->meter, SIDE_THREADS, weft_now() - request.begin_ns);
	free(feed);
	return rc;
}
