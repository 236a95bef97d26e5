/* settings.c - POST /demo/set: the page's sliders. */
#include <stdlib.h>
#include <string.h>
#include "service.h"

#define BODY_MAX 256

static const struct slider {
	const char *name;
	size_t offset;
	uint32_t min, max;
} sliders[] = {
	{ "load", offsetof(struct demo_settings, load), 0, DEMO_LOAD },
	{ "fan_out", offsetof(struct demo_settings, fan_out), 1, DEMO_FAN_OUT },
	{ "delay_us", offsetof(struct demo_settings, delay_us), 0, DEMO_DELAY },
	{ "compare", offsetof(struct demo_settings, compare), 0, 1 },
};

#define SLIDERS (sizeof(sliders) / sizeof(sliders[0]))

static uint32_t *
place_of(struct demo_settings *settings, const struct slider *slider)
{
	return (uint32_t *)((char *)settings + slider->offset);
}

/* Parses "name=number".  Returns false if it is not valid or out of range. */
static bool
read_pair(const char *pair, struct demo_settings *out)
{
	size_t name = strcspn(pair, "=");
	const char *value = pair + name + (pair[name] == '=');
	size_t size = strlen(value);
	unsigned long number = strtoul(value, NULL, 10);

	if (size == 0 || size > 9 || strspn(value, "0123456789") != size)
		return false;
	for (size_t i = 0; i < SLIDERS; i++)
		if (strlen(sliders[i].name) == name && memcmp(sliders[i].name, pair, name) == 0
		    && number >= sliders[i].min && number <= sliders[i].max) {
			*place_of(out, &sliders[i]) = (uint32_t)number;
			return true;
		}
	return false;
}

/* If any pair is not valid, none is applied. */
static bool
read_body(char *body, struct demo_settings *out)
{
	char *rest = NULL;

	for (char *pair = strtok_r(body, "&", &rest); pair; pair = strtok_r(NULL, "&", &rest))
		if (!read_pair(pair, out))
			return false;
	return true;
}

int
route_set(weft_http *http, void *arg)
{
	static const char wrong[] = "load=0..3000, fan_out=1..400, delay_us=0..20000, "
				    "compare=0..1, with & between them\n";
	struct demo *demo = arg;
	struct demo_settings settings;
	char body[BODY_MAX + 1];
	ssize_t size;

	if (!window_allows(demo->window, http, true))
		return 0;
	size = weft_http_read_all(http, body, BODY_MAX, weft_after(5 * WEFT_S));
	if (size < 0)
		return (int)size;
	body[size] = '\0';
	for (size_t i = 0; i < SLIDERS; i++)
		*place_of(&settings, &sliders[i]) = setting(place_of(&demo->settings, &sliders[i]));
	if (strlen(body) != (size_t)size || !read_body(body, &settings))
		return weft_http_reply(http, 400, "text/plain", weft_text(wrong),
		                       weft_after(WEFT_S));
	for (size_t i = 0; i < SLIDERS; i++)
		__atomic_store_n(place_of(&demo->settings, &sliders[i]),
		                 *place_of(&settings, &sliders[i]), __ATOMIC_RELAXED);
	return weft_http_reply(http, 204, NULL, (weft_span){ NULL, 0 }, weft_after(WEFT_S));
}
