/* admin_metrics.c - metrics in the text format of Prometheus.
 *
 * All samples of a name must be adjacent, so the loops are read first and then written name by
 * name.  Units are seconds and bytes.  Quantiles cover the last ten seconds, which is not what
 * Prometheus calls a summary.  So they are gauges with a label, and exist only while a loop is
 * observed.
 */
#include "admin_private.h"
#include <stdio.h>
#include <string.h>
#include <weft/loop.h>
#include "os_admin.h"

struct reading {
	weft_loop_info *loops;
	unsigned count;
	struct weft__admin_text text;
};

/* --- lines ----------------------------------------------------------------------- */

static void
put_head(struct weft__admin_text *text, const char *name, const char *help, const char *type)
{
	weft__admin_puts(text, "# HELP ");
	weft__admin_puts(text, name);
	weft__admin_puts(text, " ");
	weft__admin_put_help(text, help);
	weft__admin_puts(text, "\n# TYPE ");
	weft__admin_puts(text, name);
	weft__admin_puts(text, " ");
	weft__admin_puts(text, type);
	weft__admin_puts(text, "\n");
}

static void
put_plain(struct weft__admin_text *text, const char *name, const char *help, weft_admin_type type,
          double value)
{
	put_head(text, name, help, weft__admin_type_name(type));
	weft__admin_puts(text, name);
	weft__admin_puts(text, " ");
	weft__admin_put_double(text, value, true);
	weft__admin_puts(text, "\n");
}

static void
put_label(struct weft__admin_text *text, const char *key, const char *value)
{
	weft__admin_puts(text, text->last == '{' ? "" : ",");
	weft__admin_puts(text, key);
	weft__admin_puts(text, "=\"");
	weft__admin_put_label(text, value);
	weft__admin_put(text, "\"", 1);
}

/* Write `name{loop="1",name="x"`, open for more labels. */
static void
begin_sample(struct weft__admin_text *text, const char *name, const weft_loop_info *info)
{
	weft__admin_puts(text, name);
	weft__admin_puts(text, "{loop=\"");
	weft__admin_put_number(text, info->id);
	weft__admin_put(text, "\"", 1);
	put_label(text, "name", info->name);
}

static void
end_whole(struct weft__admin_text *text, uint64_t value)
{
	weft__admin_puts(text, "} ");
	weft__admin_put_number(text, value);
	weft__admin_puts(text, "\n");
}

static void
end_double(struct weft__admin_text *text, double value)
{
	weft__admin_puts(text, "} ");
	weft__admin_put_double(text, value, true);
	weft__admin_puts(text, "\n");
}

static double
seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* --- loops ----------------------------------------------------------------------- */

static void
name_count(const struct weft__admin_count *count, char *out, size_t room)
{
	(void)snprintf(out, room, "weft_loop_%s%s", count->name, count->grows ? "_total" : "");
}

static void
put_count(struct reading *reading, const struct weft__admin_count *count)
{
	struct weft__admin_text *text = &reading->text;
	char name[96];

	name_count(count, name, sizeof(name));
	put_head(text, name, count->help, count->grows ? "counter" : "gauge");
	for (unsigned i = 0; i < reading->count; i++) {
		const weft_loop_info *info = &reading->loops[i];
		uint64_t value;

		memcpy(&value, (const char *)&info->stats + count->offset, sizeof(value));
		begin_sample(text, name, info);
		end_whole(text, value);
	}
}

static void
put_info(struct reading *reading)
{
	struct weft__admin_text *text = &reading->text;

	put_head(text, "weft_loop_info", "The backend of the loop, and why it was chosen.",
	         "gauge");
	for (unsigned i = 0; i < reading->count; i++) {
		begin_sample(text, "weft_loop_info", &reading->loops[i]);
		put_label(text, "backend", reading->loops[i].backend);
		put_label(text, "reason", reading->loops[i].backend_reason);
		end_whole(text, 1);
	}
	put_head(text, "weft_loop_threadlets", "Live threadlets.", "gauge");
	for (unsigned i = 0; i < reading->count; i++) {
		begin_sample(text, "weft_loop_threadlets", &reading->loops[i]);
		end_whole(text, reading->loops[i].threadlets);
	}
}

/* Whether the loop has been observed, so that its time per phase is known. */
static bool
is_timed(const weft_loop_info *info)
{
	for (int i = 0; i < WEFT_PHASES; i++)
		if (info->stats.phase_ns[i] > 0)
			return true;
	return false;
}

static void
put_phases(struct reading *reading)
{
	struct weft__admin_text *text = &reading->text;

	put_head(text, "weft_loop_phase_seconds_total",
	         "Time per phase of the loop iteration, while observed.", "counter");
	for (unsigned i = 0; i < reading->count; i++)
		for (int p = 0; p < WEFT_PHASES && is_timed(&reading->loops[i]); p++) {
			begin_sample(text, "weft_loop_phase_seconds_total", &reading->loops[i]);
			put_label(text, "phase", weft__admin_phases[p]);
			end_double(text, seconds(reading->loops[i].stats.phase_ns[p]));
		}
}

static void
put_depth(struct reading *reading, const char *name, const char *help, size_t offset)
{
	struct weft__admin_text *text = &reading->text;

	put_head(text, name, help, "gauge");
	for (unsigned i = 0; i < reading->count; i++) {
		const weft_loop_info *info = &reading->loops[i];
		weft_depth depth;

		memcpy(&depth, (const char *)&info->stats + offset, sizeof(depth));
		if (!is_timed(info))
			continue;
		begin_sample(text, name, info);
		put_label(text, "stat", "now");
		end_whole(text, depth.now);
		begin_sample(text, name, info);
		put_label(text, "stat", "max");
		end_whole(text, depth.max);
	}
}

static void
put_quantiles(struct reading *reading, const char *name, const char *help, size_t offset)
{
	static const char *const stats[] = { "mean", "p50", "p90", "p95", "p99", "max" };
	struct weft__admin_text *text = &reading->text;

	put_head(text, name, help, "gauge");
	for (unsigned i = 0; i < reading->count; i++) {
		const weft_loop_info *info = &reading->loops[i];
		weft_quantiles q;
		uint64_t values[6];

		memcpy(&q, (const char *)&info->stats + offset, sizeof(q));
		memcpy(values, &q.mean, sizeof(values));
		for (int s = 0; s < 6 && q.count > 0; s++) {
			begin_sample(text, name, info);
			put_label(text, "stat", stats[s]);
			end_double(text, seconds(values[s]));
		}
	}
}

static void
put_loops(struct reading *reading)
{
	put_info(reading);
	for (const struct weft__admin_count *c = weft__admin_counts; c->name; c++)
		put_count(reading, c);
	put_phases(reading);
	put_depth(reading, "weft_loop_inbox_depth",
	          "Pending posts, now and maximum of the last ten seconds.",
	          offsetof(struct weft_loop_stats, inbox));
	put_depth(reading, "weft_loop_internal_depth",
	          "Pending calls of the library itself, now and maximum of the last ten seconds.",
	          offsetof(struct weft_loop_stats, internal));
	put_depth(reading, "weft_loop_microtask_depth",
	          "Microtasks pending when a drain began, now and maximum of the last ten seconds.",
	          offsetof(struct weft_loop_stats, microtasks));
	put_quantiles(reading, "weft_loop_turn_seconds",
	              "Duration of loop iterations in the last ten seconds.",
	              offsetof(struct weft_loop_stats, turn));
	put_quantiles(reading, "weft_loop_lag_seconds",
	              "Latency of timers and posts in the last ten seconds.",
	              offsetof(struct weft_loop_stats, lag));
}

/* --- the process and the program --------------------------------------------------- */

static void
put_process(struct weft__admin_text *text)
{
	struct weft__admin_process p;

	weft__admin_os_process(&p);
	put_plain(text, "process_cpu_seconds_total", "Total user and system CPU time.",
	          WEFT_ADMIN_COUNTER, seconds(p.cpu_ns));
	put_plain(text, "process_resident_memory_bytes", "Resident memory size.", WEFT_ADMIN_GAUGE,
	          (double)p.rss_bytes);
	put_plain(text, "process_virtual_memory_bytes", "Virtual memory size.", WEFT_ADMIN_GAUGE,
	          (double)p.virtual_bytes);
	put_plain(text, "process_open_fds", "Open file descriptors.", WEFT_ADMIN_GAUGE,
	          (double)p.fds);
	put_plain(text, "process_max_fds", "Maximum number of open file descriptors.",
	          WEFT_ADMIN_GAUGE, (double)p.fds_max);
	put_plain(text, "process_threads", "Operating system threads.", WEFT_ADMIN_GAUGE,
	          (double)p.threads);
	put_plain(text, "process_start_time_seconds",
	          "Start time of the process in seconds since 1970.", WEFT_ADMIN_GAUGE,
	          (double)p.started_ms / 1e3);
}

/* Buckets from 1 us to 100 s for times, which are recorded in nanoseconds; else from 1 to 10^9.
 * They are always the same, so that no series appears later than the others. */
static void
put_buckets(struct weft__admin_text *text, const weft_admin_metric *metric,
            const struct weft_histogram_stats *stats, double scale)
{
	uint64_t first = metric->unit == WEFT_ADMIN_SECONDS ? WEFT_US : 1;
	uint64_t last = metric->unit == WEFT_ADMIN_SECONDS ? 100 * WEFT_S : 1000000000;

	for (int i = 0; i < WEFT_HISTOGRAM_BOUNDS; i++) {
		if (stats->buckets[i].bound < first || stats->buckets[i].bound > last)
			continue;
		weft__admin_puts(text, metric->name);
		weft__admin_puts(text, "_bucket{le=\"");
		weft__admin_put_double(text, (double)stats->buckets[i].bound / scale, true);
		weft__admin_puts(text, "\"");
		end_whole(text, stats->buckets[i].count);
	}
	weft__admin_puts(text, metric->name);
	weft__admin_puts(text, "_bucket{le=\"+Inf\"");
	end_whole(text, stats->values.count);
}

static void
put_histogram(struct weft__admin_text *text, const weft_admin_metric *metric)
{
	double scale = metric->unit == WEFT_ADMIN_SECONDS ? 1e9 : 1;
	struct weft_histogram_stats stats;

	if (weft_histogram_stats(metric->histogram, &stats) < 0)
		return;
	put_head(text, metric->name, metric->help, "histogram");
	put_buckets(text, metric, &stats, scale);
	weft__admin_puts(text, metric->name);
	weft__admin_puts(text, "_sum ");
	weft__admin_put_double(text, (double)stats.sum / scale, true);
	weft__admin_puts(text, "\n");
	weft__admin_puts(text, metric->name);
	weft__admin_puts(text, "_count ");
	weft__admin_put_number(text, stats.values.count);
	weft__admin_puts(text, "\n");
}

static void
put_value(struct weft__admin_text *text, const struct weft__admin_value *v)
{
	if (v->metric.type == WEFT_ADMIN_HISTOGRAM)
		put_histogram(text, &v->metric);
	else
		put_plain(text, v->name, v->metric.help, v->metric.type, weft__admin_read(v));
}

static void
put_values(weft_admin *admin, struct weft__admin_text *text)
{
	for (struct weft__admin_value *v = admin->values; v; v = v->next)
		put_value(text, v);
}

static int
read_loops(struct reading *reading)
{
	uint64_t cursor = 0;

	reading->loops = weft_alloc(WEFT__ADMIN_LOOPS_MAX * sizeof(*reading->loops));
	if (!reading->loops)
		return WEFT_ENOMEM;
	while (reading->count < WEFT__ADMIN_LOOPS_MAX
	       && weft_loop_list(&cursor, &reading->loops[reading->count]) > 0)
		reading->count++;
	return 0;
}

int
weft__admin_metrics(weft_http *http, weft_admin *admin)
{
	struct reading reading = { 0 };
	struct weft__admin_text *text = &reading.text;

	text->error = read_loops(&reading);
	put_head(text, "weft_build_info", "The version of weft.", "gauge");
	weft__admin_puts(text, "weft_build_info{");
	put_label(text, "version", weft_version());
	end_whole(text, 1);
	if (!text->error)
		put_loops(&reading);
	weft_release(reading.loops);
	put_process(text);
	weft__admin_on_owner(admin, put_values, text);
	return weft__admin_reply(http, "text/plain; version=0.0.4; charset=utf-8", text);
}
