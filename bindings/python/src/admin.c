/* admin.c - what a running loop shows: its metrics, and weft's window. */
#include "core.h"
#include <weft/admin.h>
#include <weft/metrics.h>

static PyObject *
quantiles(const weft_quantiles *q)
{
	return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "count", q->count,
	                     "mean_ns", q->mean, "p50_ns", q->p50, "p90_ns",
	                     q->p90, "p95_ns", q->p95, "p99_ns", q->p99,
	                     "max_ns", q->max);
}

static PyObject *
counters(const struct loop_core *core, const weft_loop_stats *s)
{
	return Py_BuildValue(
		"{s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:n,s:n}", "backend",
		s->backend, "backend_reason", s->backend_reason, "turns",
		s->turns, "wakes", s->wakes, "syscalls", s->syscalls,
		"polls_skipped", s->polls_skipped, "timers_fired",
		s->timers_fired, "fds", s->fds, "turns_per_s", s->turns_per_s,
		"callbacks_per_s", s->callbacks_per_s, "ready",
		(Py_ssize_t)weftpy_ring_count(core), "timers",
		(Py_ssize_t)core->reserved);
}

/* The counters of weft/metrics.h, as a dict. */
PyObject *
weftpy_metrics(struct loop_core *core)
{
	weft_loop_stats stats;
	PyObject *all, *turn, *lag;

	(void)weft_loop_metrics(core->loop, &stats);
	all = counters(core, &stats);
	turn = all ? quantiles(&stats.turn) : NULL;
	lag = turn ? quantiles(&stats.lag) : NULL;
	if (!lag || PyDict_SetItemString(all, "turn", turn) < 0
	    || PyDict_SetItemString(all, "lag", lag) < 0)
		Py_CLEAR(all);
	Py_XDECREF(turn);
	Py_XDECREF(lag);
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
		                "the loop has a window already");
		return NULL;
	}
	for (int i = 0; i < 3; i++)
		if (args[i] != Py_None
		    && !(texts[i] = PyUnicode_AsUTF8(args[i])))
			return NULL;
	opts.token = texts[1];
	opts.title = texts[2];
	rc = weft_admin_open(texts[0], &opts, &core->admin);
	if (rc == 0)
		rc = weft_admin_addr(core->admin, &addr);
	if (rc < 0) {
		PyErr_SetString(rc == WEFT_EPERM ? PyExc_PermissionError
		                                 : PyExc_OSError,
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
