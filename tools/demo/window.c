/* window.c - the admin endpoint on the demo's own server: the page with our panel and metrics. */
#include <stdlib.h>
#include <weft/admin.h>
#include "panel.h"
#include "service.h"

struct window {
	weft_admin *admin;
};

struct number {
	const char *name, *help;
	double (*read)(void *arg);
	size_t offset; /* offset of an atomic counter in struct demo */
};

static double
window_read_count(void *arg)
{
	return (double)meter_get(arg);
}

#define COUNT(name, help, field)                                            \
	{                                                                   \
		name, help, window_read_count, offsetof(struct demo, field) \
	}

static const struct number numbers[] = {
	COUNT("demo_ok_total", "Requests answered with a feed.", meter.outcomes[OK]),
	COUNT("demo_not_found_total", "Requests for unknown viewers.", meter.outcomes[NOT_FOUND]),
	COUNT("demo_bad_total", "Malformed requests.", meter.outcomes[BAD]),
	COUNT("demo_shed_total", "Requests rejected because of overload.", meter.outcomes[SHED]),
	COUNT("demo_errors_total", "Requests that failed.", meter.outcomes[ERRORS]),
	COUNT("demo_redis_errors_total", "Redis calls that failed.", meter.redis_errors),
	COUNT("demo_in_flight", "Requests in flight.", admission.in_flight),
	COUNT("demo_capacity_rps", "Estimated capacity in requests per second.", capacity_rps),
};

static int
window_fill(struct demo *demo, weft_admin *admin)
{
	int rc = weft_admin_add_panel(admin, "Ranking service", (const char *)panel_html,
	                              (const char *)panel_script);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && rc == 0; i++)
		rc = weft_admin_add_metric(admin, numbers[i].name, numbers[i].help, numbers[i].read,
		                           (char *)demo + numbers[i].offset);
	return rc == 0 ? weft_admin_mount(admin, demo->server, "") : rc;
}

int
window_open(struct demo *demo, struct window **out)
{
	struct window *window = calloc(1, sizeof(*window));
	weft_admin_opts opts = { .title = "weft demo" };
	int rc;

	if (!window)
		return WEFT_ENOMEM;
	rc = weft_admin_open(NULL, &opts, &window->admin);
	if (rc == 0)
		rc = window_fill(demo, window->admin);
	if (rc < 0) {
		window_close(window);
		return rc;
	}
	*out = window;
	return 0;
}

void
window_close(struct window *window)
{
	if (!window)
		return;
	weft_admin_close(window->admin);
	free(window);
}

bool
window_allows(struct window *window, weft_http *http, bool writes)
{
	return weft_admin_authorize(window->admin, http, writes) == 0;
}
