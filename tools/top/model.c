/* model.c - converts the replies of the admin endpoint to rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <weft/base.h>
#include "model.h"

#define LOOPS_MAX      4096u
#define VALUES_MAX     4096u
#define THREADLETS_MAX 65536u

/* The increase per second between two readings; NAN if it is not known. */
static double
rate(double now, double before, double seconds)
{
	return seconds > 0 && now >= before ? (now - before) / seconds : NAN;
}

static int
top_model_refuse(const char *what, const struct json_document *json)
{
	return weft_fail(WEFT_EPROTO, "%s: %s at byte %zu", what, json->error, json->error_at);
}

static size_t
list_size(const struct json *object, const char *name, size_t max)
{
	const struct json *list = json_get(object, name);

	if (!list || list->kind != JSON_LIST)
		return 0;
	return list->count < max ? list->count : max;
}

/* --- loops ------------------------------------------------------------------ */

/* The time in all phases except waiting; NAN if it is not reported. */
static double
busy_ns(const struct json *loop)
{
	const struct json *phases = json_get(loop, "phase_ns");
	double sum = 0;

	if (!phases || phases->kind != JSON_OBJECT || phases->count == 0)
		return NAN;
	for (const struct json *phase = phases->first; phase; phase = phase->next)
		if (phase->kind == JSON_NUMBER && strcmp(phase->name, "wait") != 0)
			sum += phase->number;
	return sum;
}

/* Most are at the same index as before. */
static const struct loop_row *
loop_before(const struct model *before, double id, size_t index)
{
	for (size_t i = 0; i < before->loop_count; i++, index++)
		if (before->loops[index % before->loop_count].id == id)
			return &before->loops[index % before->loop_count];
	return NULL;
}

/* Quantiles of an empty histogram are not known. */
static double
quantile(const struct json *loop, const char *name, const char *which)
{
	const struct json *quantiles = json_get(loop, name);

	if (json_number(quantiles, "count", 0) <= 0)
		return NAN;
	return json_number(quantiles, which, NAN);
}

static void
read_loop(struct loop_row *row, const struct json *loop)
{
	const struct json *inbox = json_get(loop, "inbox");

	*row = (struct loop_row){
		.name = json_text(loop, "name"),
		.state = json_text(loop, "state"),
		.backend = json_text(loop, "backend"),
		.reason = json_text(loop, "backend_reason"),
		.id = json_number(loop, "id", 0),
		.threadlets = json_number(loop, "threadlets", NAN),
		.busy = NAN,
		.turns = json_number(loop, "turns_per_s", NAN),
		.callbacks = json_number(loop, "callbacks_per_s", NAN),
		.syscalls = NAN,
		.turn_p50 = quantile(loop, "turn", "p50"),
		.turn_p99 = quantile(loop, "turn", "p99"),
		.lag_p50 = quantile(loop, "lag", "p50"),
		.lag_p99 = quantile(loop, "lag", "p99"),
		.inbox = json_number(inbox, "now", NAN),
		.inbox_max = json_number(inbox, "max", NAN),
		.busy_ns = busy_ns(loop),
		.syscall_count = json_number(loop, "syscalls", NAN),
	};
}

static void
rate_loop(struct loop_row *row, const struct loop_row *before, double seconds)
{
	row->syscalls = rate(row->syscall_count, before->syscall_count, seconds);
	row->busy = rate(row->busy_ns, before->busy_ns, seconds) / 1e7;
	if (row->busy > 100)
		row->busy = 100; /* the two clocks are not read at the same instant */
}

static int
read_loops(struct model *model, const struct model *before)
{
	const struct json *root = model->loops_json.root;
	size_t count = list_size(root, "loops", LOOPS_MAX), i = 0;
	double seconds = (model->now_ns - before->now_ns) / 1e9;

	model->loops = calloc(count + 1, sizeof(*model->loops));
	if (!model->loops)
		return WEFT_ENOMEM;
	for (const struct json *loop = json_list(root, "loops"); i < count;
	     loop = loop->next, i++) {
		const struct loop_row *old;

		read_loop(&model->loops[i], loop);
		old = loop_before(before, model->loops[i].id, i);
		if (old)
			rate_loop(&model->loops[i], old, seconds);
	}
	model->loop_count = count;
	return 0;
}

/* --- the program's own values ------------------------------------------------ */

static const struct value_row *
value_before(const struct model *before, const char *name, size_t index)
{
	for (size_t i = 0; i < before->value_count; i++, index++)
		if (strcmp(before->values[index % before->value_count].name, name) == 0)
			return &before->values[index % before->value_count];
	return NULL;
}

/* The value of a histogram is how many values it has. */
static bool
only_grows(const struct json *value)
{
	const char *type = json_text(value, "type");

	return strcmp(type, "counter") == 0 || strcmp(type, "histogram") == 0;
}

static int
read_values(struct model *model, const struct model *before)
{
	const struct json *root = model->loops_json.root;
	size_t count = list_size(root, "values", VALUES_MAX), i = 0;
	double seconds = (model->now_ns - before->now_ns) / 1e9;

	model->values = calloc(count + 1, sizeof(*model->values));
	if (!model->values)
		return WEFT_ENOMEM;
	for (const struct json *value = json_list(root, "values"); i < count;
	     value = value->next, i++) {
		struct value_row *row = &model->values[i];
		const struct value_row *old;

		row->name = json_text(value, "name");
		row->help = json_text(value, "help");
		row->value = json_number(value, "value", NAN);
		old = value_before(before, row->name, i);
		row->rate = old && only_grows(value) ? rate(row->value, old->value, seconds) : NAN;
	}
	model->value_count = count;
	return 0;
}

static void
read_process(struct model *model, const struct model *before)
{
	const struct json *root = model->loops_json.root;
	const struct json *process = json_get(root, "process");
	double seconds = (model->now_ns - before->now_ns) / 1e9;

	model->cpu_ns = json_number(process, "cpu_ns", NAN);
	model->rss = json_number(process, "rss_bytes", NAN);
	model->fds = json_number(process, "fds", NAN);
	model->threads = json_number(process, "threads", NAN);
	model->cpu = before->readings > 0 ? rate(model->cpu_ns, before->cpu_ns, seconds) / 1e7
	                                  : NAN;
}

static void
free_loops(struct model *model)
{
	json_free(&model->loops_json);
	free(model->loops);
	free(model->values);
}

/* A new process starts from zero: readings of the old one do not count. */
static const struct model *
before_of(const struct model *model, const struct model *fresh)
{
	static const struct model nothing;

	return model->readings > 0 && model->pid == fresh->pid ? model : &nothing;
}

int
model_read_loops(struct model *model, const char *bytes, size_t size)
{
	struct model fresh = *model;
	const struct model *before;
	const struct json *root;

	if (json_read(&fresh.loops_json, bytes, size) < 0)
		return top_model_refuse("loops", &fresh.loops_json);
	root = fresh.loops_json.root;
	fresh.loops = NULL;
	fresh.values = NULL;
	fresh.title = json_text(root, "title");
	if (!*fresh.title)
		fresh.title = json_text(root, "program");
	fresh.version = json_text(root, "version");
	fresh.pid = json_number(root, "pid", NAN);
	fresh.uptime_ns = json_number(root, "uptime_ns", NAN);
	fresh.now_ns = json_number(root, "now_ns", NAN);
	before = before_of(model, &fresh);
	if (before->readings > 0 && before->now_ns == fresh.now_ns) {
		json_free(&fresh.loops_json); /* the same reading, sent again */
		return 0;
	}
	read_process(&fresh, before);
	if (!json_get(root, "loops")) {
		free_loops(&fresh);
		return weft_fail(WEFT_EPROTO, "this is not a reply of a weft admin endpoint");
	}
	if (read_loops(&fresh, before) < 0 || read_values(&fresh, before) < 0) {
		free_loops(&fresh);
		return weft_fail(WEFT_ENOMEM, "out of memory");
	}
	fresh.readings = before->readings + 1;
	free_loops(model);
	*model = fresh;
	return 0;
}

/* --- threadlets --------------------------------------------------------------- */

/* In microseconds, so that a double has enough digits for both the time and the rank. */
static double
order_of(const struct threadlet_row *row)
{
	const double most = 1e13;
	double waited = isnan(row->waited) ? 0 : row->waited / 1e3;
	int rank = strcmp(row->state, "running") == 0 ? 0
	           : strcmp(row->state, "ready") == 0 ? 1
	                                              : 2;

	return rank * most - (waited < most ? waited : most);
}

static void
read_threadlet(struct threadlet_row *row, const struct json *threadlet)
{
	*row = (struct threadlet_row){
		.name = json_text(threadlet, "name"),
		.function = json_text(threadlet, "fn"),
		.state = json_text(threadlet, "state"),
		.waits_for = json_text(threadlet, "waits_for"),
		.spawned_at = json_text(threadlet, "spawned_at"),
		.id = json_number(threadlet, "id", NAN),
		.loop = json_number(threadlet, "loop", NAN),
		.waits_on = json_number(threadlet, "waits_on", NAN),
		.waited = json_number(threadlet, "waited_ns", NAN),
		.left = json_number(threadlet, "left_ns", NAN),
		.stack = json_number(threadlet, "stack_bytes", NAN),
		.used = json_number(threadlet, "stack_used", NAN),
		.high = json_number(threadlet, "stack_high", NAN),
	};
	if (row->waits_on == 0)
		row->waits_on = NAN;
	row->order = order_of(row);
}

int
model_read_threadlets(struct model *model, const char *bytes, size_t size)
{
	struct json_document json;
	struct threadlet_row *rows;
	size_t count, i = 0;

	if (json_read(&json, bytes, size) < 0)
		return top_model_refuse("threadlets", &json);
	if (!json_get(json.root, "threadlets")) {
		json_free(&json);
		return weft_fail(WEFT_EPROTO,
		                 "this is not a list of threadlets from a weft admin endpoint");
	}
	count = list_size(json.root, "threadlets", THREADLETS_MAX);
	rows = calloc(count + 1, sizeof(*rows));
	if (!rows) {
		json_free(&json);
		return weft_fail(WEFT_ENOMEM, "out of memory");
	}
	for (const struct json *item = json_list(json.root, "threadlets"); i < count;
	     item = item->next, i++)
		read_threadlet(&rows[i], item);
	json_free(&model->threadlets_json);
	free(model->threadlets);
	model->threadlets_json = json;
	model->threadlets = rows;
	model->threadlet_count = count;
	model->threadlet_total = json_number(json.root, "total", (double)count);
	model->silent_count = (uint32_t)list_size(json.root, "silent", LOOPS_MAX);
	model->has_threadlets = true;
	return 0;
}

void
model_free(struct model *model)
{
	free_loops(model);
	json_free(&model->threadlets_json);
	free(model->threadlets);
	*model = (struct model){ 0 };
}
