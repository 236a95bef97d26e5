/* model.h - what is known of the program that is looked at.
 *
 * Rows are made of its JSON, and their texts are borrowed from that; what grows is told as
 * a rate, from one reading to the next.  A number that is not known is NAN.
 */
#ifndef WEFT_TOP_MODEL_H
#define WEFT_TOP_MODEL_H

#include "json.h"

struct loop_row {
	const char *name, *state, *backend, *reason;
	double number, threadlets;
	double busy;                     /* percent of its time, without waits */
	double turns, callbacks, syscalls; /* a second */
	double turn_p50, turn_p99, lag_p50, lag_p99; /* nanoseconds */
	double inbox, inbox_max;
	double busy_ns, syscall_count;   /* so far */
};

struct threadlet_row {
	const char *name, *function, *state, *waits_for, *spawned_at;
	double id, loop, waits_on;
	double waited, left;             /* nanoseconds */
	double stack, used, high;        /* bytes */
	double order; /* running, ready, then who waits: the longest first */
};

struct value_row {
	const char *name, *help;
	double value, rate; /* a second, of those that only grow */
};

struct model {
	struct json_document loops_json, threadlets_json;
	struct loop_row *loops;
	struct threadlet_row *threadlets;
	struct value_row *values;
	size_t loop_count, threadlet_count, value_count;
	double threadlet_total;    /* of which threadlet_count are here */
	uint32_t silent_count;     /* of loops that have not answered */
	uint32_t readings;         /* of loops, of this process */
	bool has_threadlets;
	const char *title, *version;
	double pid, uptime_ns, now_ns;
	double cpu, cpu_ns, rss, fds, threads; /* cpu: percent of one */
};

/* Take a reading of /debug/loops, or of /debug/threadlets.  Returns 0; or an error with its text,
 * and the model stays as it was. */
int model_read_loops(struct model *model, const char *bytes, size_t size);
int model_read_threadlets(struct model *model, const char *bytes, size_t size);

void model_free(struct model *model);

#endif
