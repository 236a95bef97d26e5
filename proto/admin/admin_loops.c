/* admin_loops.c - loops, the process and the program's metrics as JSON. */
#include "admin_private.h"
#include <stddef.h>
#include <string.h>
#include "os_admin.h"

#define COUNTER(name, help)                                               \
	{                                                                 \
#name, help, offsetof(struct weft_loop_stats, name), true \
	}
#define GAUGE(name, help)                                                  \
	{                                                                  \
#name, help, offsetof(struct weft_loop_stats, name), false \
	}

const struct weft__admin_count weft__admin_counts[] = {
	COUNTER(turns, "Loop iterations."),
	COUNTER(wakes, "Wakeups by other threads while the loop was asleep."),
	COUNTER(syscalls, "System calls made by the loop."),
	COUNTER(polls_skipped, "Iterations that were too busy to poll for events."),
	COUNTER(posts_accepted, "Posts accepted."),
	COUNTER(posts_executed, "Posts executed."),
	COUNTER(posts_refused,
	        "Posts refused because the inbox was full or the loop was stopping."),
	COUNTER(ops_started, "Operations started."),
	COUNTER(ops_finished, "Operations finished."),
	COUNTER(timers_fired, "Timers fired."),
	GAUGE(fds, "File descriptors being watched."),
	GAUGE(alive, "Handles and operations that keep the loop alive."),
	COUNTER(accepted, "Connections accepted by listeners."),
	COUNTER(accepts_paused, "Times that a listener paused at connections_max."),
	COUNTER(accepts_shed, "Connections dropped for lack of descriptors, memory or threadlets."),
	COUNTER(connected, "Outgoing connections established."),
	COUNTER(connects_failed, "Outgoing connections that failed."),
	COUNTER(handshakes, "TLS handshakes completed."),
	COUNTER(handshakes_failed, "TLS handshakes that failed."),
	COUNTER(peers_dropped, "Peers dropped because they did not read."),
	{ NULL, NULL, 0, false },
};

const char *const weft__admin_phases[WEFT_PHASES] = {
	[WEFT_PHASE_TIMERS] = "timers",
	[WEFT_PHASE_INBOX] = "inbox",
	[WEFT_PHASE_THREADLETS] = "threadlets",
	[WEFT_PHASE_WAIT] = "wait",
	[WEFT_PHASE_DONE] = "done",
	[WEFT_PHASE_IMMEDIATES] = "immediates",
	[WEFT_PHASE_CLOSING] = "closing",
	[WEFT_PHASE_MICROTASKS] = "microtasks",
};

static const char *
state_name(weft_state state)
{
	static const char *const names[] = { "idle",     "starting", "running",
		                             "sleeping", "stopping", "stopped" };

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

/* --- a loop ---------------------------------------------------------------------- */

static void
put_quantiles(struct weft__admin_text *text, const char *key, const weft_quantiles *q)
{
	const struct {
		const char *key;
		uint64_t value;
	} members[] = { { "count", q->count }, { "mean", q->mean }, { "p50", q->p50 },
		        { "p90", q->p90 },     { "p95", q->p95 },   { "p99", q->p99 },
		        { "max", q->max } };

	weft__json_key(text, key);
	weft__json_open(text, '{');
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		weft__json_key(text, members[i].key);
		weft__json_number(text, members[i].value);
	}
	weft__json_close(text, '}');
}

static void
put_depth(struct weft__admin_text *text, const char *key, const weft_depth *depth)
{
	weft__json_key(text, key);
	weft__json_open(text, '{');
	weft__json_key(text, "now");
	weft__json_number(text, depth->now);
	weft__json_key(text, "max");
	weft__json_number(text, depth->max);
	weft__json_key(text, "average");
	weft__json_double(text, depth->average);
	weft__json_close(text, '}');
}

static void
put_counts(struct weft__admin_text *text, const struct weft_loop_stats *stats)
{
	for (const struct weft__admin_count *c = weft__admin_counts; c->name; c++) {
		uint64_t value;

		memcpy(&value, (const char *)stats + c->offset, sizeof(value));
		weft__json_key(text, c->name);
		weft__json_number(text, value);
	}
}

static void
put_times(struct weft__admin_text *text, const struct weft_loop_stats *stats)
{
	weft__json_key(text, "turns_per_s");
	weft__json_double(text, stats->turns_per_s);
	weft__json_key(text, "callbacks_per_s");
	weft__json_double(text, stats->callbacks_per_s);
	weft__json_key(text, "phase_ns");
	weft__json_open(text, '{');
	for (int i = 0; i < WEFT_PHASES; i++) {
		weft__json_key(text, weft__admin_phases[i]);
		weft__json_number(text, stats->phase_ns[i]);
	}
	weft__json_close(text, '}');
	put_depth(text, "inbox", &stats->inbox);
	put_depth(text, "internal", &stats->internal);
	put_depth(text, "microtasks", &stats->microtasks);
	put_quantiles(text, "turn", &stats->turn);
	put_quantiles(text, "lag", &stats->lag);
}

static void
put_loop(struct weft__admin_text *text, const weft_loop_info *info)
{
	weft__json_open(text, '{');
	weft__json_key(text, "id");
	weft__json_number(text, info->id);
	weft__json_key(text, "name");
	weft__json_text(text, info->name);
	weft__json_key(text, "state");
	weft__json_text(text, state_name(info->state));
	weft__json_key(text, "threadlets");
	weft__json_number(text, info->threadlets);
	weft__json_key(text, "backend");
	weft__json_text(text, info->backend);
	weft__json_key(text, "backend_reason");
	weft__json_text(text, info->backend_reason);
	put_counts(text, &info->stats);
	put_times(text, &info->stats);
	weft__json_close(text, '}');
}

/* --- the rest -------------------------------------------------------------------- */

/* The value of a histogram is its count.  If its unit is seconds, its quantiles are in ns. */
static void
put_value(struct weft__admin_text *text, const struct weft__admin_value *v)
{
	struct weft_histogram_stats stats = { .sum = 0 };

	weft__json_open(text, '{');
	weft__json_key(text, "name");
	weft__json_text(text, v->name);
	weft__json_key(text, "help");
	weft__json_text(text, v->metric.help);
	weft__json_key(text, "type");
	weft__json_text(text, weft__admin_type_name(v->metric.type));
	weft__json_key(text, "unit");
	weft__json_text(text, weft__admin_unit_name(v->metric.unit));
	if (v->metric.type == WEFT_ADMIN_HISTOGRAM) {
		(void)weft_histogram_stats(v->metric.histogram, &stats);
		weft__json_key(text, "value");
		weft__json_number(text, stats.values.count);
		put_quantiles(text, "quantiles", &stats.values);
	} else {
		weft__json_key(text, "value");
		weft__json_double(text, weft__admin_read(v));
	}
	weft__json_close(text, '}');
}

static void
put_values(weft_admin *admin, struct weft__admin_text *text)
{
	for (struct weft__admin_value *v = admin->values; v; v = v->next)
		put_value(text, v);
}

static void
put_program(weft_admin *admin, struct weft__admin_text *text,
            const struct weft__admin_process *process)
{
	weft__json_key(text, "program");
	weft__json_text(text, weft__admin_os_program());
	weft__json_key(text, "title");
	weft__json_text(text, admin->title);
	weft__json_key(text, "pid");
	weft__json_number(text, process->pid);
	weft__json_key(text, "version");
	weft__json_text(text, weft_version());
	weft__json_key(text, "uptime_ns");
	weft__json_number(text, process->uptime_ns);
	weft__json_key(text, "now_ns");
	weft__json_number(text, weft_now());
}

static void
put_process(struct weft__admin_text *text, const struct weft__admin_process *process)
{
	weft__json_key(text, "process");
	weft__json_open(text, '{');
	weft__json_key(text, "cpu_ns");
	weft__json_number(text, process->cpu_ns);
	weft__json_key(text, "rss_bytes");
	weft__json_number(text, process->rss_bytes);
	weft__json_key(text, "fds");
	weft__json_number(text, process->fds);
	weft__json_key(text, "threads");
	weft__json_number(text, process->threads);
	weft__json_close(text, '}');
}

static void
put_loops(struct weft__admin_text *text)
{
	weft_loop_info info;
	uint64_t cursor = 0;

	weft__json_key(text, "loops");
	weft__json_open(text, '[');
	for (unsigned i = 0; i < WEFT__ADMIN_LOOPS_MAX && weft_loop_list(&cursor, &info) > 0; i++)
		put_loop(text, &info);
	weft__json_close(text, ']');
}

void
weft__admin_write_loops(weft_admin *admin, struct weft__admin_text *text)
{
	struct weft__admin_process process;

	weft__admin_os_process(&process);
	weft__json_open(text, '{');
	put_program(admin, text, &process);
	put_loops(text);
	weft__json_key(text, "values");
	weft__json_open(text, '[');
	weft__admin_on_owner(admin, put_values, text);
	weft__json_close(text, ']');
	put_process(text, &process);
	weft__json_close(text, '}');
}

int
weft__admin_loops(weft_http *http, weft_admin *admin)
{
	struct weft__admin_text text = { 0 };

	weft__admin_write_loops(admin, &text);
	return weft__admin_reply(http, "application/json", &text);
}
