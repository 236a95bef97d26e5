/* py_admin.c - a loop's metrics, and its admin endpoint. */
#include "core.h"
#include <weft/admin.h>
#include <weft/metrics.h>

#define OBSERVED_NS (60 * WEFT_S) /* measuring continues this long after each reading */

/* None if nothing was measured. */
static PyObject *
quantiles(const weft_quantiles *q)
{
	if (q->count == 0)
		Py_RETURN_NONE;
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "count", q->count, "mean_ns", q->mean,
	                     "p50_ns", q->p50, "p90_ns", q->p90, "p95_ns", q->p95, "p99_ns", q->p99,
	                     "max_ns", q->max);
}

static PyObject *
counters(const struct loop_core *core, const struct weft_loop_stats *s)
{
	return Py_BuildValue("{s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:K,s:n,s:n}", "backend", s->backend,
	                     "backend_reason", s->backend_reason, "turns", s->turns, "wakes",
	                     s->wakes, "syscalls", s->syscalls, "polls_skipped", s->polls_skipped,
	                     "timers_fired", s->timers_fired, "fds", s->fds, "ready",
	                     (Py_ssize_t)weftpy_ring_count(core), "timers",
	                     (Py_ssize_t)core->reserved);
}

/* None while nothing has been measured. */
static PyObject *
rate(const struct weft_loop_stats *s, double per_s)
{
	if (s->turn.count == 0)
		Py_RETURN_NONE;
	return PyFloat_FromDouble(per_s);
}

/* Adds `value` and takes ownership of it.  Returns false on failure. */
static bool
admin_add(PyObject *dict, const char *name, PyObject *value)
{
	bool done = value && PyDict_SetItemString(dict, name, value) == 0;

	Py_XDECREF(value);
	return done;
}

/* The counters of weft/metrics.h, as a dict.  Rates and times are measured only while the loop
 * is observed; each reading extends that, so the first one has none. */
PyObject *
weftpy_metrics(struct loop_core *core)
{
	struct weft_loop_stats stats;
	PyObject *all;

	(void)weft_loop_stats(core->loop, &stats);
	(void)weft_loop_observe(0, weft_after(OBSERVED_NS)); /* starts measuring, if it was off */
	all = counters(core, &stats);
	if (all
	    && (!admin_add(all, "turns_per_s", rate(&stats, stats.turns_per_s))
	        || !admin_add(all, "callbacks_per_s", rate(&stats, stats.callbacks_per_s))
	        || !admin_add(all, "turn", quantiles(&stats.turn))
	        || !admin_add(all, "lag", quantiles(&stats.lag))))
		Py_CLEAR(all);
	return all;
}

/* args: address, token, title; the last two may be None. */
PyObject *
weftpy_admin_open(struct loop_core *core, PyObject *const *args)
{
	weft_admin_opts opts = { .loop = core->loop };
	const char *texts[3] = { NULL, NULL, NULL };
	char address[WEFT_ADDR_TEXT_MAX];
	weft_addr addr;
	int rc;

	if (core->admin) {
		PyErr_SetString(PyExc_RuntimeError,
		                "serve_admin(): the loop already has an admin endpoint");
		return NULL;
	}
	for (int i = 0; i < 3; i++)
		if (args[i] != Py_None && !(texts[i] = PyUnicode_AsUTF8(args[i])))
			return NULL;
	opts.token = texts[1];
	opts.title = texts[2];
	rc = weft_admin_open(texts[0], &opts, &core->admin);
	if (rc == 0)
		rc = weft_admin_local(core->admin, &addr);
	if (rc < 0) {
		PyErr_SetString(rc == WEFT_EPERM ? PyExc_PermissionError : PyExc_OSError,
		                weft_detail());
		return NULL;
	}
	(void)weft_addr_format(&addr, address, sizeof address);
	return PyUnicode_FromString(address);
}

void
weftpy_admin_close(struct loop_core *core)
{
	weft_admin_close(core->admin);
	core->admin = NULL;
}
