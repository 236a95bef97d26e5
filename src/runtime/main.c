/* main.c - a whole program: a runtime, and one threadlet that it is about.
 *
 * SIGINT and SIGTERM cancel that threadlet, unless the program has an interest in them of
 * its own: then it knows what to do.
 */
#include <signal.h>
#include <weft/runtime.h>
#include <weft/sync.h>
#include <weft/watch.h>
#include "loop/signal.h"
#include "threadlet/threadlet.h"

#define GRACE_DEFAULT (10 * WEFT_S)

struct program {
	weft_threadlet_fn fn;
	void *arg;
	int result;
	weft_threadlet id;
	weft_event ended;
	weft_node cleanup;
	weft_watch watches[2]; /* on those signals */
};

static void
on_signal(weft_watch *watch, int what, void *arg)
{
	struct program *program = arg;

	if (what > 0 && !weft__signal_has_others(watch->loop, what))
		(void)weft_cancel(program->id);
}

static int
watch_signals(struct program *program)
{
	static const int signals[] = { SIGINT, SIGTERM };
	int rc = 0;

	for (int i = 0; i < 2 && rc == 0; i++)
		rc = weft_watch_start_signal(NULL, &program->watches[i],
		                             signals[i], on_signal, program);
	return rc;
}

static void
end_main(void *arg)
{
	struct program *program = arg;

	for (int i = 0; i < 2; i++)
		(void)weft_watch_stop(&program->watches[i]);
	(void)weft_event_set(&program->ended);
}

/* Its end is told by the cleanup that was pushed first, and so runs last. */
static int
main_threadlet(void *arg)
{
	struct program *program = arg;

	program->id = weft_self();
	program->cleanup = (weft_node){ .fn = end_main, .arg = program };
	weft_cleanup_push(&program->cleanup);
	program->result = watch_signals(program);
	if (program->result == 0)
		program->result = program->fn(program->arg);
	return program->result;
}

static int
run_program(weft_runtime *runtime, struct program *program)
{
	weft_go_opts opts = { .name = "main",
		              .loop = weft_runtime_loop(runtime, 0) };

	if (weft_go_with(&opts, main_threadlet, program) < 0)
		return 1;
	(void)weft_event_wait(&program->ended, WEFT_NEVER);
	return program->result < 0;
}

int
weft_main(const weft_runtime_opts *opts, weft_threadlet_fn fn, void *arg)
{
	struct program program = { .fn = fn,
		                   .arg = arg,
		                   .ended = WEFT_SHARED_INIT };
	uint64_t grace_ns = opts && opts->grace_ns ? opts->grace_ns
	                                           : GRACE_DEFAULT;
	weft_runtime *runtime;
	int status = 1;

	if (!fn || weft__thread_self()->loop) {
		(void)weft__misuse(WEFT_EINVAL,
		                   "weft_main: no function, or inside a loop");
		return 1;
	}
	weft__sys->ignore_pipe();
	weft__overflow_catch_unasked();
	runtime = weft_runtime_new(opts);
	if (!runtime)
		return 1;
	if (weft_runtime_start(runtime) == 0)
		status = run_program(runtime, &program);
	weft_runtime_stop(runtime);
	if (weft_runtime_wait_stopped(runtime, weft_in(grace_ns)) == 0)
		(void)weft_runtime_free(runtime);
	return status;
}
