/* main.c - a complete program: a runtime, and the main threadlet.
 *
 * The calling thread runs one more loop, the control loop.  It runs nothing of the program, so
 * it handles signals and the end of the grace period even while all other loops are blocked.
 *
 *   1. The grace period begins at the first SIGINT or SIGTERM, or when the program's function
 *      has returned, whichever comes first.  It begins once.
 *   2. After a signal the process ends no later than the grace period: if something still runs
 *      then, it is reported, and the process exits with 128 plus the signal's number.  A SIGINT
 *      that follows another signal exits at once.
 *   3. A signal that the program itself watches causes none of this: the program handles it.
 */
#include <signal.h>
#include <weft/runtime.h>
#include <weft/sync.h>
#include <weft/watch.h>
#include "base/os.h"
#include "base/report.h"
#include "loop/process/signal.h"
#include "runtime/late.h"
#include "runtime/runtime.h"
#include "threadlet/threadlet.h"

#define GRACE_DEFAULT (10 * WEFT_S)

struct program {
	weft_threadlet_fn fn;
	void *arg;
	weft_runtime *runtime;
	int result;
	weft_threadlet id;
	weft_event ended;
	struct weft__node cleanup;

	/* Used on the control loop. */
	weft_loop *control;
	weft_watch watches[2]; /* on SIGINT and SIGTERM */
	uint64_t grace_ns;
	uint64_t deadline_ns; /* end of the grace period; 0: it has not begun */
	int signo;            /* the first signal received, or 0 */
	bool stopping;        /* supervise() is stopping the runtime */
};

/* --- signals ------------------------------------------------------------ */

static void
begin_grace(struct program *program)
{
	if (program->deadline_ns == 0) /* invariant 1 */
		program->deadline_ns = weft_after(program->grace_ns);
}

static _Noreturn void
exit_by_signal(int signo)
{
	weft__os_exit(128 + signo);
}

/* A threadlet, because the report waits for other loops, which a callback must not do. */
static int
end_grace(void *arg)
{
	struct program *program = arg;

	if (weft_sleep_until(program->deadline_ns) < 0 || program->stopping)
		return 0;
	weft__runtime_report_late(program->runtime);
	exit_by_signal(program->signo); /* invariant 2 */
}

static void
runtime_main_on_signal(weft_watch *watch, int what, void *arg)
{
	struct program *program = arg;
	weft_go_opts opts = { .name = "grace", .loop = program->control, .background = true };

	if (what < 0 || weft__signal_has_others(watch->loop, what))
		return; /* invariant 3 */
	if (program->signo) {
		if (what == SIGINT)
			exit_by_signal(what);
		return;
	}
	program->signo = what;
	begin_grace(program);
	(void)weft_cancel(program->id);
	if (weft_go_with(&opts, end_grace, program) < 0)
		exit_by_signal(what); /* no memory for the grace period */
}

static int
watch_signals(struct program *program)
{
	static const int signals[] = { SIGINT, SIGTERM };
	int rc = 0;

	for (int i = 0; i < 2 && rc == 0; i++) {
		weft_watch *watch = &program->watches[i];

		weft__watch_set_background(watch, true);
		rc = weft_watch_start_signal(program->control, watch, signals[i],
		                             runtime_main_on_signal, program);
	}
	return rc;
}

/* --- threadlets --------------------------------------------------------- */

static void
end_main(void *arg)
{
	struct program *program = arg;

	(void)weft_event_set(&program->ended);
}

/* The cleanup pushed first runs last. */
static int
main_threadlet(void *arg)
{
	struct program *program = arg;

	program->cleanup = (struct weft__node){ .fn = end_main, .arg = program };
	weft__cleanup_push(&program->cleanup);
	program->result = program->fn(program->arg);
	return program->result;
}

/* Runs on the control loop, which runs until this has returned. */
static int
supervise(void *arg)
{
	struct program *program = arg;
	int rc;

	(void)weft_event_wait(&program->ended, WEFT_NEVER);
	program->stopping = true;
	weft_runtime_shutdown(program->runtime);
	begin_grace(program);
	rc = weft_runtime_wait_stopped(program->runtime, program->deadline_ns);
	if (rc < 0 && program->signo)
		exit_by_signal(program->signo); /* invariant 2 */
	if (rc == 0)
		(void)weft_runtime_free(program->runtime);
	return 0;
}

/* --- from start to end -------------------------------------------------- */

/* 0, or an error with its text. */
static int
make_program(struct program *program, const weft_runtime_opts *opts)
{
	weft_loop_opts control = { .name = "weft-main", .backend = "poll" };

	program->control = weft_loop_new(&control);
	if (!program->control)
		return WEFT_ENOMEM;
	weft__registry_remove(program->control); /* not shown in dumps and metrics */
	program->runtime = weft_runtime_new(opts);
	return program->runtime ? watch_signals(program) : WEFT_ENOMEM;
}

static void
report_start(void)
{
	weft__report(&(weft_report){ .kind = WEFT_REPORT_LOG, .text = weft_detail() });
}

/* Run the program to its end.  A program that cannot be started counts as ended. */
static void
run_program(struct program *program)
{
	weft_go_opts opts = { .name = "main" };
	bool is_supervised = false;
	weft_threadlet rc = weft_runtime_start(program->runtime);

	if (rc == 0) {
		opts.loop = program->control;
		rc = weft_go_with(&opts, supervise, program);
		is_supervised = rc > 0;
	}
	if (is_supervised) {
		weft__runtime_main_waits(program->runtime);
		opts.loop = weft_runtime_loop(program->runtime, 0);
		rc = weft_go_with(&opts, main_threadlet, program);
		program->id = rc;
	}
	if (rc < 0) {
		report_start();
		program->result = (int)rc;
		(void)weft_event_set(&program->ended);
	}
	if (is_supervised)
		(void)weft_loop_run(program->control);
	else
		(void)supervise(program);
}

/* The program no longer uses the control loop. */
static void
end_control(struct program *program)
{
	if (!program->control)
		return;
	for (int i = 0; i < 2; i++)
		(void)weft_watch_stop(&program->watches[i]);
	weft_loop_shutdown(program->control);
	/* A call that fails would replace weft_detail(), which says why weft_main() failed. */
	if (weft_loop_state(program->control) != WEFT_STOPPED)
		(void)weft_loop_run(program->control); /* run what is left */
	(void)weft_loop_free(program->control);
}

int
weft_main(const weft_runtime_opts *opts, weft_threadlet_fn fn, void *arg)
{
	struct program program = {
		.fn = fn, .arg = arg, .ended = WEFT_SHARED_INIT, .grace_ns = GRACE_DEFAULT
	};

	if (!fn || weft__thread_self()->loop) {
		(void)weft__misuse(WEFT_EINVAL,
		                   "weft_main: fn is NULL, or a loop already runs on this thread");
		report_start();
		return 1;
	}
	if (opts && opts->grace_ns)
		program.grace_ns = opts->grace_ns;
	weft__sys->ignore_pipe();
	weft__overflow_catch_unasked();
	program.result = make_program(&program, opts);
	if (program.result < 0) {
		report_start();
		(void)weft_runtime_free(program.runtime);
	} else {
		run_program(&program);
	}
	end_control(&program);
	return program.result < 0;
}
