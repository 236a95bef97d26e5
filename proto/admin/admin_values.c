/* admin_values.c - metrics of the program: how they are added, and read. */
#include "admin_private.h"
#include <string.h>

#define NAME_MAX_BYTES ((size_t)128)

/* --- names ----------------------------------------------------------------------- */

static bool
is_name(const char *name)
{
	size_t size = strlen(name);

	for (size_t i = 0; i < size; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z')
		      || name[i] == '_' || (i > 0 && name[i] >= '0' && name[i] <= '9')))
			return false;
	return size > 0 && size <= NAME_MAX_BYTES;
}

static bool
ends_in(const char *name, const char *end)
{
	size_t size = strlen(name), end_size = strlen(end);

	return size > end_size && strcmp(name + size - end_size, end) == 0;
}

/* Whether a name is reserved for metrics of weft or the process. */
static bool
is_reserved(const char *name)
{
	static const char *const taken[] = { "weft_loop_", "weft_build_", "process_", NULL };

	for (const char *const *at = taken; *at; at++)
		if (strncmp(name, *at, strlen(*at)) == 0)
			return true;
	return false;
}

/* Whether `metric` is a histogram that has samples of that name. */
static bool
is_part(const char *name, const weft_admin_metric *metric)
{
	size_t size = strlen(metric->name);

	return metric->type == WEFT_ADMIN_HISTOGRAM && strncmp(name, metric->name, size) == 0
	       && (strcmp(name + size, "_bucket") == 0 || strcmp(name + size, "_sum") == 0
	           || strcmp(name + size, "_count") == 0);
}

/* Whether the name, or one that a histogram adds to it, is in use. */
static bool
is_taken(weft_admin *admin, const weft_admin_metric *metric)
{
	for (struct weft__admin_value *v = admin->values; v; v = v->next)
		if (strcmp(v->name, metric->name) == 0 || is_part(metric->name, &v->metric)
		    || is_part(v->name, metric))
			return true;
	return is_reserved(metric->name);
}

/* --- adding ---------------------------------------------------------------------- */

/* What is wrong with the description; NULL: nothing. */
static const char *
find_mistake(const weft_admin_metric *metric)
{
	if (!metric->name || !is_name(metric->name))
		return "a name has letters, digits and underscores, no digit first, and at most "
		       "128 bytes";
	if (metric->type != WEFT_ADMIN_GAUGE && metric->type != WEFT_ADMIN_COUNTER
	    && metric->type != WEFT_ADMIN_HISTOGRAM)
		return "the type is unknown";
	if (metric->unit != WEFT_ADMIN_NUMBER && metric->unit != WEFT_ADMIN_SECONDS
	    && metric->unit != WEFT_ADMIN_BYTES)
		return "the unit is unknown";
	if (ends_in(metric->name, "_total") != (metric->type == WEFT_ADMIN_COUNTER))
		return "the name of a counter ends in _total, and no other name does";
	if (!!metric->read + !!metric->value + !!metric->histogram != 1)
		return "set one of read, value and histogram";
	if ((metric->type == WEFT_ADMIN_HISTOGRAM) != !!metric->histogram)
		return "the type of a histogram, and of nothing else, is WEFT_ADMIN_HISTOGRAM";
	return NULL;
}

static struct weft__admin_value *
value_new(const weft_admin_metric *metric)
{
	const char *help = metric->help && metric->help[0] ? metric->help : metric->name;
	size_t size = strlen(metric->name) + 1, help_size = strlen(help) + 1;
	struct weft__admin_value *value = weft_alloc(sizeof(*value) + size + help_size);

	if (!value)
		return NULL;
	*value = (struct weft__admin_value){ .metric = *metric };
	memcpy(value->name, metric->name, size);
	memcpy(value->name + size, help, help_size);
	value->metric.name = value->name;
	value->metric.help = value->name + size;
	return value;
}

int
weft_admin_add_metric(weft_admin *admin, const weft_admin_metric *metric)
{
	struct weft__admin_value **link;
	const char *mistake;

	if (!admin || !metric)
		return weft_fail(WEFT_EINVAL, "weft_admin_add_metric: an argument is NULL");
	mistake = find_mistake(metric);
	if (mistake)
		return weft_fail(WEFT_EINVAL, "weft_admin_add_metric %.128s: %s",
		                 metric->name ? metric->name : "", mistake);
	if (is_taken(admin, metric))
		return weft_fail(WEFT_EEXIST,
		                 "weft_admin_add_metric %s: a metric of this name already exists",
		                 metric->name);
	link = &admin->values;
	while (*link)
		link = &(*link)->next;
	*link = value_new(metric);
	return *link ? 0 : weft_fail(WEFT_ENOMEM, "weft_admin_add_metric: no memory");
}

/* --- reading --------------------------------------------------------------------- */

double
weft__admin_read(const struct weft__admin_value *value)
{
	const weft_admin_metric *metric = &value->metric;

	if (metric->read)
		return metric->read(metric->arg);
	return (double)__atomic_load_n(metric->value, __ATOMIC_RELAXED);
}

const char *
weft__admin_type_name(weft_admin_type type)
{
	static const char *const names[] = {
		[WEFT_ADMIN_GAUGE] = "gauge",
		[WEFT_ADMIN_COUNTER] = "counter",
		[WEFT_ADMIN_HISTOGRAM] = "histogram",
	};

	return names[type];
}

const char *
weft__admin_unit_name(weft_admin_unit unit)
{
	static const char *const names[] = {
		[WEFT_ADMIN_NUMBER] = "",
		[WEFT_ADMIN_SECONDS] = "seconds",
		[WEFT_ADMIN_BYTES] = "bytes",
	};

	return names[unit];
}
