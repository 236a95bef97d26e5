/* demo_page.c - the admin endpoint with the demo's panel, metrics, events and settings.
 *
 * GET /demo/events sends statistics of both sides four times a second.  They are computed for
 * each client when they are sent, so there is no work without clients.
 */
#include "service.h"

extern const unsigned char panel_html[], panel_script[]; /* with a NUL; made by embed.cmake */

static const char *const sides[SIDES] = { "weft", "threads" };
static const char *const settings[SETTINGS] = { "load", "fan_out", "delay_us", "compare" };
static const struct {
	const char *name, *help;
} counts[COUNTS] = {
	[OK] = { "ok", "Requests answered with a feed." },
	[NOT_FOUND] = { "not_found", "Requests for unknown viewers." },
	[BAD] = { "bad", "Malformed requests." },
	[SHED] = { "shed", "Requests rejected because of overload." },
	[ERRORS] = { "errors", "Requests that failed." },
	[REDIS_ERRORS] = { "redis_errors", "Redis calls that failed." },
};

/* Writes bytes from outside as a JSON string; what would need an escape becomes an apostrophe. */
static void
write_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++)
		fputc(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\'' : *text,
		      out);
	fputc('"', out);
}

/* Returns the current numbers as JSON, to be freed.  The address of Redis is shown without user and
 * password. */
static char *
state_text(struct demo *demo)
{
	const struct args_option *options = demo->opts.setting_options;
	const char *redis = demo->opts.redis;
	char *text = NULL, detail[256], url[256];
	bool up = health_get(demo, detail, sizeof(detail));
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "{\"in_flight\":%" PRIu64 ",", get(&demo->in_flight));
	for (int i = 0; i < SIDES; i++) {
		struct quantiles q = side_quantiles(&demo->sides[i]);

		fprintf(out, "\"%s\":{\"rps\":%u,\"p50_us\":%u,\"p99_us\":%u,", sides[i], q.count,
		        q.p50, q.p99);
		fprintf(out, "\"calls\":%" PRIu64 "},", side_calls(&demo->sides[i]));
	}
	for (int i = 0; i < SETTINGS; i++)
		fprintf(out, "%s\"%s\":%u", i ? "," : "\"settings\":{", settings[i],
		        setting(demo, (enum demo_setting)i));
	for (int i = 0; i < SETTINGS; i++)
		fprintf(out, "%s\"%s\":[%" PRIu64 ",%" PRIu64 "]", i ? "," : "},\"limits\":{",
		        settings[i], options[i].min, options[i].max);
	for (int i = 0; i < COUNTS; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "},\"counts\":{", counts[i].name,
		        get(&demo->counts[i]));
	fprintf(out, "},\"redis\":{\"state\":\"%s\",\"url\":", up ? "up" : "down");
	write_quoted(out, redis ? weft_addr_mask(redis, url, sizeof(url)) : "embedded store");
	fputs(",\"detail\":", out);
	write_quoted(out, detail);
	fputs("}}", out);
	(void)fclose(out);
	return text;
}

/* Returns the trace of the slowest request, to be freed. */
static char *
slow_text(struct demo *demo)
{
	char *text;

	(void)pthread_mutex_lock(&demo->lock);
	text = strdup(demo->slow.as.ptr);
	(void)pthread_mutex_unlock(&demo->lock);
	return text;
}

static int
send_event(weft_http *http, const char *name, char *text)
{
	int rc = text ? weft_http_send_event(http, name, text, weft_after(5 * WEFT_S))
	              : WEFT_ENOMEM;

	free(text);
	return rc;
}

static int
route_events(weft_http *http, void *arg)
{
	struct demo *demo = arg;
	uint64_t next_ns = weft_now(), sent = 0;
	int rc = weft_http_set_header(http, "Cache-Control", "no-store");

	if (weft_admin_authorize(demo->admin, http, false) != 0)
		return 0;
	while (rc >= 0) {
		uint64_t number = get(&demo->slow_number);

		rc = send_event(http, "demo", state_text(demo));
		if (rc >= 0 && number != sent)
			rc = send_event(http, "slow", slow_text(demo));
		sent = number;
		if (rc >= 0)
			rc = weft_sleep_until(next_ns += PERIOD_NS);
	}
	return rc;
}

/* Reads "name=number" as the option of that name would be read.  Returns what is wrong, or NULL. */
static const char *
read_pair(const struct demo *demo, char *pair, uint32_t *values)
{
	char *equals = strchr(pair, '=');

	if (equals)
		*equals = '\0';
	for (int i = 0; equals && i < SETTINGS; i++)
		if (strcmp(pair, settings[i]) == 0) {
			struct args_option option = demo->opts.setting_options[i];

			option.out = &values[i];
			return option.read(&option, equals + 1);
		}
	return "use load, fan_out, delay_us and compare, each with = and a number";
}

/* POST /demo/set: pairs with & between them; if one is wrong, none is applied. */
static int
route_set(weft_http *http, void *arg)
{
	struct demo *demo = arg;
	uint32_t values[SETTINGS];
	char body[257], *rest = body, *pair;
	const char *wrong;
	ssize_t size;

	if (weft_admin_authorize(demo->admin, http, true) != 0)
		return 0;
	size = weft_http_read_all(http, body, sizeof(body) - 1, weft_after(5 * WEFT_S));
	if (size < 0)
		return (int)size;
	body[size] = '\0';
	wrong = strlen(body) < (size_t)size ? "there is a zero byte" : NULL;
	for (int i = 0; i < SETTINGS; i++)
		values[i] = setting(demo, (enum demo_setting)i);
	while (!wrong && (pair = strsep(&rest, "&")))
		wrong = *pair ? read_pair(demo, pair, values) : NULL;
	if (wrong)
		return weft_http_reply(http, 400, "text/plain", weft_text(wrong),
		                       weft_after(WEFT_S));
	for (int i = 0; i < SETTINGS; i++)
		__atomic_store_n(&demo->opts.settings[i], values[i], __ATOMIC_RELAXED);
	return weft_http_reply(http, 204, NULL, (weft_span){ NULL, 0 }, weft_after(WEFT_S));
}

int
page_open(struct demo *demo)
{
	int rc = weft_admin_open(NULL, &(weft_admin_opts){ .title = "weft demo" }, &demo->admin);
	char name[40];

	if (rc == 0)
		rc = weft_admin_add_panel(demo->admin, "Ranking service", (const char *)panel_html,
		                          (const char *)panel_script);
	for (int i = 0; i < COUNTS && rc == 0; i++) {
		(void)snprintf(name, sizeof(name), "demo_%s_total", counts[i].name);
		rc = weft_admin_add_metric(demo->admin,
		                           &(weft_admin_metric){ .name = name,
		                                                 .help = counts[i].help,
		                                                 .type = WEFT_ADMIN_COUNTER,
		                                                 .value = &demo->counts[i] });
	}
	if (rc == 0)
		rc = weft_http_route(demo->server, "GET /demo/events", route_events, demo);
	if (rc == 0)
		rc = weft_http_route(demo->server, "POST /demo/set", route_set, demo);
	return rc == 0 ? weft_admin_mount(demo->admin, demo->server, "") : rc;
}
