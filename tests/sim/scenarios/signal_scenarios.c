/* signal_scenarios.c - signals at arbitrary moments, for loops that watch them all the time and
 * for loops that come and go.
 *
 *   1. Each signal is reported to every started watch, unless a later one is.
 *   2. A stopped watch reports nothing.
 *   3. An op finishes once, with a signal that it waits for, or because it was canceled or
 *      timed out.
 */
#include <string.h>
#include "loop/process/signal.h"
#include "sim/scenarios/oracle.h"
#include "sim/scenarios/scenarios.h"

enum { SIGNO = 10, OTHER = 12, ACTS = 60, KILLS = 40, VISITS = 12 };

struct ear {
	weft_watch watch;
	bool started;
	weft__a32 heard;
};

static struct {
	struct host hosts[2];
	struct ear steady[2]; /* one on each loop */
	struct ear fickle[3]; /* all on the second loop */
	weft_op op;
	struct once once;
	weft_timer timer;
	int left;
	weft__a32 done;
} town;

static void
on_hear(weft_watch *watch, int what, void *arg)
{
	struct ear *ear = arg;

	sim_check(watch == &ear->watch && ear->started);
	if (what == WEFT_ESHUTDOWN) {
		ear->started = false;
		return;
	}
	sim_check(what == watch->id);
	count_up(&ear->heard);
}

static void
start_ear(struct ear *ear, int signo)
{
	int rc;

	do
		rc = weft_watch_start_signal(NULL, &ear->watch, signo, on_hear, ear);
	while (rc < 0);
	ear->started = true;
}

static void
begin_steady(void *arg)
{
	start_ear(arg, SIGNO);
}

static void
on_op(weft_op *op, int64_t result, void *arg)
{
	(void)op;
	(void)arg;
	sim_check(result == SIGNO || result < 0);
	once_end(&town.once);
}

static void
act_on_op(void)
{
	if (town.op.pending) {
		weft_op_cancel(&town.op);
		return;
	}
	if (weft__signal_op(&town.op, UINT64_C(1) << SIGNO, weft_after(sim_random_below(WEFT_MS)))
	    == 0)
		once_begin(&town.once);
}

static void
act(weft_timer *timer, void *arg)
{
	struct ear *ear = &town.fickle[sim_random_below(3)];

	(void)arg;
	if (sim_random_below(4) == 0) {
		act_on_op();
	} else if (ear->started) {
		sim_check(weft_watch_stop(&ear->watch) == 1);
		ear->started = false;
	} else {
		start_ear(ear, sim_random_below(2) ? SIGNO : OTHER);
	}
	if (--town.left == 0) {
		(void)weft_timer_stop(timer);
		count_up(&town.done);
	}
}

static void
begin_fickle(void *arg)
{
	(void)arg;
	begin_steady(&town.steady[1]);
	sim_check(weft_op_init(&town.op, NULL, on_op, NULL) == 0);
	while (weft_timer_start(NULL, &town.timer, weft_after(WEFT_US),
	                        1 + sim_random_below(100 * WEFT_US), act, NULL)
	       == WEFT_ENOMEM)
		continue;
}

static void
kill_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < KILLS; i++) {
		sim_kill(SIGNO);
		pause_ns(sim_random_below(100 * WEFT_US));
	}
}

static void
end_steady(void *arg)
{
	struct ear *ear = arg;

	sim_check(weft_watch_stop(&ear->watch) == 1);
	ear->started = false;
}

/* The last signal reaches both steady watches. */
static void
kill_last(void)
{
	uint32_t before[2];

	for (int i = 0; i < 2; i++)
		before[i] = count_of(&town.steady[i].heard);
	sim_kill(SIGNO);
	for (int i = 0; i < 2; i++)
		await_count(&town.steady[i].heard, before[i] + 1);
}

static void
check_quiet(void *arg)
{
	struct weft__signals *signals = weft_loop_current()->signals;

	(void)arg;
	if (weft__load(&signals->came, WEFT__RELAXED))
		sim_fail("a signal has come, and nobody looks");
}

/* Several signals in a row: when no more come, all of them have been handled. */
static void
kill_in_a_row(void)
{
	for (int i = 0; i < 4; i++) {
		sim_kill(SIGNO);
		for (uint64_t k = sim_random_below(4); k > 0; k--)
			pause_briefly();
	}
	pause_ns(WEFT_S);
	for (int i = 0; i < 2; i++)
		host_call(&town.hosts[i], check_quiet, NULL);
}

/* A loop that watches for a moment while signals arrive. */
static void
visit(void)
{
	weft_loop_opts opts = WEFT_INIT;
	weft_loop *loop = loop_make(&opts);
	struct ear ear = { .started = true };

	if (weft_watch_start_signal(loop, &ear.watch, SIGNO, on_hear, &ear) == 0) {
		for (uint64_t i = sim_random_below(4); i > 0; i--)
			(void)weft_loop_run_once(loop, WEFT_NOWAIT);
		if (sim_random_below(2))
			sim_check(weft_watch_stop(&ear.watch) == 1);
	}
	sim_check(weft_loop_free(loop) == 0);
}

static void
run_signals(void *arg)
{
	uint64_t peer;

	(void)arg;
	memset(&town, 0, sizeof(town));
	town.left = ACTS;
	for (int i = 0; i < 2; i++) {
		host_make(&town.hosts[i]);
		host_run(&town.hosts[i]);
	}
	host_call(&town.hosts[0], begin_steady, &town.steady[0]);
	host_call(&town.hosts[1], begin_fickle, NULL);
	peer = thread_start("killer", kill_often, NULL);
	for (int i = 0; i < VISITS; i++) {
		visit();
		pause_ns(sim_random_below(300 * WEFT_US));
	}
	sim_heal();
	thread_join(peer);
	await_count(&town.done, 1);
	kill_last();
	for (int i = 0; i < 3; i++)
		kill_in_a_row();
	kill_last();
	if (sim_random_below(2)) /* otherwise the end of the loop does it */
		host_call(&town.hosts[0], end_steady, &town.steady[0]);
	for (int i = 0; i < 2; i++)
		host_end(&town.hosts[i]);
	once_check(&town.once);
	for (int i = 0; i < 2; i++)
		sim_check(!town.steady[i].started);
}

const struct sim_scenario sim_scenario_signals = { .name = "signals", .run = run_signals };
