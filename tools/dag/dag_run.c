/* dag_run.c - runs a DAG file from its first node to the exit status. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "run.h"

/* --- signals ---------------------------------------------------------------- */

/* The first signal ends all commands with a grace period; the second one kills them. */
static void
dagfile_run_on_signal(weft_watch *watch, int what, void *arg)
{
	struct dagrun *run = arg;

	(void)watch;
	if (what < 0)
		return; /* the loop is shutting down */
	if (run->signal) {
		shell_kill_all(run);
		return;
	}
	run->signal = what;
	show_note(&run->show, "signal %d: ending all commands; a second signal kills them", what);
	weft_dag_run_cancel(run->dag_run);
}

static int
watch_signals(struct dagrun *run)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	int rc = 0;

	for (int i = 0; i < 3 && rc == 0; i++)
		rc = weft_watch_start_signal(run->loop, &run->watches[i], signals[i],
		                             dagfile_run_on_signal, run);
	return rc;
}

static void
unwatch_signals(struct dagrun *run)
{
	for (int i = 0; i < 3; i++)
		(void)weft_watch_stop(&run->watches[i]);
}

/* --- the end ---------------------------------------------------------------- */

struct counts {
	uint32_t done, failed, skipped, dropped;
};

static void
count(struct dagrun *run, struct counts *counts)
{
	for (uint32_t i = 0; i < run->file->node_count; i++) {
		weft_value value;
		int rc = weft_dag_run_get(run->dag_run, run->file->nodes[i].name, &value);

		if (rc == 0)
			counts->done++;
		else if (rc == WEFT_ENOENT)
			counts->skipped++;
		else if (rc == WEFT_ECANCELED)
			counts->dropped++;
		else
			counts->failed++;
	}
}

static void
sum_up(struct dagrun *run)
{
	struct show *show = &run->show;
	struct counts counts = { 0 };

	count(run, &counts);
	show_end(show);
	if (show->mode == SHOW_QUIET)
		return;
	fprintf(stderr, "weft: %s: %u done, %u failed, %u skipped",
	        run->file->name ? run->file->name : run->path, counts.done, counts.failed,
	        counts.skipped);
	if (counts.dropped > 0)
		fprintf(stderr, ", %u not begun or ended early", counts.dropped);
	if (show->taken > 0)
		fprintf(stderr, ", %u restored from the last run", show->taken);
	fprintf(stderr, "; %.2f s\n", (double)(weft_now() - show->begin_ns) / 1e9);
}

static int
write_trace(struct dagrun *run)
{
	weft_value text = { 0 };
	int rc = weft_dag_run_write(run->dag_run, WEFT_DAG_TRACE, &text);
	FILE *to;
	bool failed;

	if (rc < 0) {
		fprintf(stderr, "weft: %s: %s\n", run->opts.trace, weft_detail());
		return rc;
	}
	to = fopen(run->opts.trace, "we");
	failed = !to || fputs(text.as.ptr, to) < 0;
	if (to && fclose(to) != 0)
		failed = true;
	if (failed)
		fprintf(stderr, "weft: %s: %s\n", run->opts.trace, strerror(errno));
	weft_value_drop(&text);
	return failed ? WEFT_EINVAL : 0;
}

/* --- the run ---------------------------------------------------------------- */

static void
on_progress(const weft_dag_progress *progress, void *arg)
{
	struct dagrun *run = arg;

	show_progress(&run->show, progress->done, progress->total);
}

static int
set_inputs(struct dagrun *run)
{
	const struct dagfile *file = run->file;
	int rc = 0;

	for (uint32_t i = 0; i < file->input_count && rc == 0; i++)
		if (file->inputs[i].is_list)
			rc = weft_dag_run_set(run->dag_run, file->inputs[i].name,
			                      values_lines(run->values[i]));
	return rc;
}

/* Reports an error that no node has reported, such as a deadline or running out of memory. */
static void
report_rest(struct dagrun *run, const char *detail)
{
	if (run->failures == 0)
		show_note(&run->show, "%s", detail);
}

static int
run_main(void *arg)
{
	struct dagrun *run = arg;
	uint64_t deadline_ns = run->opts.deadline_ns ? weft_after(run->opts.deadline_ns)
	                                             : WEFT_NEVER;

	run->rc = set_inputs(run);
	if (run->rc == 0)
		run->rc = weft_dag_run_wait(run->dag_run, deadline_ns);
	if (run->rc < 0 && !run->signal)
		report_rest(run, weft_detail());
	redis_end(run);
	return 0;
}

static int
dagfile_run_start(struct dagrun *run)
{
	const weft_dag_run_opts opts = {
		.loop = run->loop,
		.collect_errors = run->opts.keep_going,
		.trace = run->opts.trace != NULL,
		.on_progress = on_progress,
		.arg = run,
	};
	const weft_go_opts go = { .name = "dag", .loop = run->loop };
	weft_threadlet id;
	int rc;

	run->dag_run = weft_dag_run_new(run->dag, &opts);
	if (!run->dag_run)
		return WEFT_ENOMEM;
	rc = watch_signals(run);
	if (rc < 0)
		return rc;
	id = weft_go_with(&go, run_main, run);
	if (id < 0)
		return (int)id;
	run->show.total = run->file->node_count;
	show_begin(&run->show, run->loop,
	           run->opts.quiet         ? SHOW_QUIET
	           : isatty(STDERR_FILENO) ? SHOW_BAR
	                                   : SHOW_LINES);
	return weft_loop_run(run->loop);
}

static int
status_of(struct dagrun *run)
{
	if (run->signal)
		return 128 + run->signal;
	return run->rc < 0 ? 1 : 0;
}

/* The state is saved even without --resume, so that any run can be resumed later.  Failing to
 * open it is fatal only with --resume. */
static int
open_state(struct dagrun *run)
{
	int rc = state_open(&run->state, run->path, run->opts.resume);

	if (rc == 0)
		return 0;
	fprintf(stderr, "weft: %s%s\n", weft_detail(),
	        run->opts.resume ? "" : "; this run cannot be resumed");
	return run->opts.resume ? rc : 0;
}

static int
run_whole(struct dagrun *run)
{
	int rc = dagfile_run_start(run), status;

	if (rc < 0) {
		fprintf(stderr, "weft: %s\n", weft_detail());
		return 1;
	}
	sum_up(run);
	status = status_of(run);
	if (run->opts.trace && write_trace(run) < 0 && status == 0)
		status = 1;
	return status;
}

int
dagrun_run(struct dagrun *run)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	int status;

	(void)sigaction(SIGPIPE, &ignore, NULL);
	run->jobs.free = run->opts.jobs;
	run->loop = weft_loop_new(NULL);
	if (!run->loop) {
		fprintf(stderr, "weft: %s\n", weft_detail());
		return 1;
	}
	if (open_state(run) < 0)
		status = 2;
	else
		status = run_whole(run);
	unwatch_signals(run);
	weft_dag_run_free(run->dag_run);
	state_close(&run->state, status == 0);
	(void)weft_loop_free(run->loop); /* whatever is left ends with the process */
	return status;
}
