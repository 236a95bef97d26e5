/* events.c - GET /demo/events: statistics of both sides, four times a second.
 *
 * The numbers are computed for each client when they are sent, so there is no work without
 * clients.
 */
#include <stdlib.h>
#include "service.h"

#define READERS_MAX 16
#define PERIOD_NS   (250 * WEFT_MS)
#define EVENT_MAX   4096

#define ULL(number) ((unsigned long long)(number))

static void
add_quantiles(struct text *text, const char *name, const struct quantiles *q)
{
	text_add(text,
	         "\"%s\":{\"count\":%llu,\"mean\":%llu,\"p50\":%llu,"
	         "\"p90\":%llu,\"p95\":%llu,\"p99\":%llu,\"max\":%llu}",
	         name, ULL(q->count), ULL(q->mean), ULL(q->p50), ULL(q->p90), ULL(q->p95),
	         ULL(q->p99), ULL(q->max));
}

static void
add_sides(struct text *text, struct demo *demo)
{
	struct quantiles weft, threads;

	meter_read(&demo->meter, SIDE_WEFT, &weft);
	meter_read(&demo->meter, SIDE_THREADS, &threads);
	text_add(text, "\"rps\":{\"weft\":%llu,\"threads\":%llu},\"latency_us\":{", ULL(weft.count),
	         ULL(threads.count));
	add_quantiles(text, "weft", &weft);
	text_add(text, ",");
	add_quantiles(text, "threads", &threads);
	text_add(text, "}");
}

static void
add_depths(struct text *text, struct demo *demo)
{
	uint64_t waiting = 0;

	for (uint32_t i = 0; i < demo->station_count; i++)
		waiting += meter_get(&demo->stations[i].waiting);
	text_add(text,
	         ",\"in_flight\":{\"requests\":%llu,\"redis\":%llu,"
	         "\"threads_redis\":%llu},\"queues\":{\"cpu\":%llu,"
	         "\"redis_waiting\":%llu}",
	         ULL(meter_get(&demo->admission.in_flight)), ULL(meter_get(&demo->calls.shown)),
	         ULL(meter_get(&demo->threads_calls.shown)), ULL(meter_get(&demo->cpu_waiting)),
	         ULL(waiting));
}

static void
add_counts(struct text *text, struct demo *demo)
{
	static const char *const names[OUTCOMES] = { "ok", "not_found", "bad", "shed", "errors" };

	text_add(text, ",\"counts\":{");
	for (int i = 0; i < OUTCOMES; i++)
		text_add(text, "\"%s\":%llu,", names[i], ULL(meter_get(&demo->meter.outcomes[i])));
	text_add(text, "\"redis_errors\":%llu}", ULL(meter_get(&demo->meter.redis_errors)));
}

/* The address is shown without user and password. */
static void
add_redis(struct text *text, struct demo *demo)
{
	const char *upstream = demo->endpoint.upstream;
	char detail[256];

	health_detail(demo, detail, sizeof(detail));
	text_add(text, ",\"redis\":{\"state\":\"%s\",\"url\":", health_is_up(demo) ? "up" : "down");
	text_add_quoted(text, upstream[0] ? upstream : "embedded store");
	text_add(text, ",\"detail\":");
	text_add_quoted(text, detail);
	text_add(text, "}");
}

static void
add_settings(struct text *text, struct demo *demo)
{
	const struct demo_settings *settings = &demo->settings;

	text_add(text,
	         ",\"settings\":{\"load\":%u,\"fan_out\":%u,\"delay_us\":%u,"
	         "\"compare\":%s},\"limits\":{\"load\":[0,%d],"
	         "\"fan_out\":[1,%d],\"delay_us\":[0,%d]},"
	         "\"capacity_rps\":%llu}",
	         setting(&settings->load), setting(&settings->fan_out),
	         setting(&settings->delay_us), setting(&settings->compare) ? "true" : "false",
	         DEMO_LOAD, DEMO_FAN_OUT, DEMO_DELAY, ULL(meter_get(&demo->capacity_rps)));
}

static int
send_demo(struct demo *demo, weft_http *http, char *data)
{
	struct text text = text_in(data, EVENT_MAX);

	text_add(&text, "{");
	add_sides(&text, demo);
	add_depths(&text, demo);
	add_counts(&text, demo);
	add_redis(&text, demo);
	add_settings(&text, demo);
	return weft_http_send_event(http, "demo", text.data, weft_after(5 * WEFT_S));
}

static int
send_slow(struct demo *demo, weft_http *http, char *data, uint64_t *number)
{
	struct text text = text_in(data, EVENT_MAX);

	if (!slow_write(&demo->slow, number, &text))
		return 0;
	return weft_http_send_event(http, "slow", text.data, weft_after(5 * WEFT_S));
}

static int
send_events(struct demo *demo, weft_http *http)
{
	char *data = malloc(EVENT_MAX);
	uint64_t next = weft_now(), number = 0;
	int rc = data ? weft_http_set_header(http, "Cache-Control", "no-store") : WEFT_ENOMEM;

	while (rc >= 0) {
		rc = send_demo(demo, http, data);
		if (rc >= 0)
			rc = send_slow(demo, http, data, &number);
		next += PERIOD_NS;
		if (rc >= 0)
			rc = weft_sleep_until(next);
	}
	free(data);
	return rc;
}

int
route_events(weft_http *http, void *arg)
{
	struct demo *demo = arg;
	int rc;

	if (!window_allows(demo->window, http, false))
		return 0;
	if (__atomic_fetch_add(&demo->readers, 1, __ATOMIC_RELAXED) < READERS_MAX) {
		rc = send_events(demo, http);
	} else {
		(void)weft_http_set_header(http, "Retry-After", "5");
		rc = weft_http_reply(http, 503, "text/plain", weft_text("too many readers\n"),
		                     weft_after(WEFT_S));
	}
	__atomic_fetch_sub(&demo->readers, 1, __ATOMIC_RELAXED);
	return rc;
}
