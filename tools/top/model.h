/* model.h - the data received from the monitored program.
 *
 * Rows are built from the program's JSON, and their texts are borrowed from it.  Counters are
 * converted to rates between two readings.  A number that is not known is NAN.
 */
#ifndef WEFT_TOP_MODEL_H
#define WEFT_TOP_MODEL_H

#include "json.h"

struct loop_row {
	const char *name, *state, *backend, *reason;
	double id, threadlets;
	double busy;                     /* percent of wall time, waits excluded */
	double turns, callbacks, syscalls; /* per second */
	double turn_p50, turn_p99, lag_p50, lag_p99; /* nanoseconds */
	double inbox, inbox_max;
	double busy_ns, syscall_count;   /* totals so far */
};

struct threadlet_row {
	const char *name, *function, *state, *waits_for, *spawned_at;
	double id, loop, waits_on;
	double waited, left;             /* nanoseconds */
	double stack, used, high;        /* bytes */
	double order; /* sort key: running, ready, then waiting, the longest wait first */
};

struct value_row {
	const char *name, *help;
	double value, rate; /* per second, for counters and histograms */
};

struct model {
	struct json_document loops_json, threadlets_json;
	struct loop_row *loops;
	struct threadlet_row *threadlets;
	struct value_row *values;
	size_t loop_count, threadlet_count, value_count;
	double threadlet_total;    /* threadlets in the program; threadlet_count of them are here */
	uint32_t silent_count;     /* loops that did not answer */
	uint32_t readings;         /* readings of loops from this process */
	bool has_threadlets;
	const char *title, *version;
	double pid, uptime_ns, now_ns;
	double cpu, cpu_ns, rss, fds, threads; /* cpu: percent of one CPU */
};

/* Parse a reply of /debug/loops or of /debug/threadlets.  Returns 0; or an error with a text,
 * and the model is unchanged. */
int model_read_loops(struct model *model, const char *bytes, size_t size);
int model_read_threadlets(struct model *model, const char *bytes, size_t size);

void model_free(struct model *model);

#endif
