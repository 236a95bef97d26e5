/* run.c - one run: makes a world from a seed, runs a scenario in it, checks for leaks.
 *
 * The order is: install the table and the hook, reset every part from the seed, run, and check
 * for threads, descriptors and memory that were not released.  A failure leaves the run at
 * once, from whatever stack it is found on; whatever the library then still holds is dropped
 * with the world.
 *
 *   1. Afterwards weft__sys, weft__atomic_hook and weft__thread_ptr have the values they had
 *      before.
 *   2. Only the first failure is reported.
 *   3. A run depends only on (scenario, seed, options).  Static variables of the library that
 *      outlive a run break that rule; running a seed twice detects them.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/thread.h"
#include "sim/kernel/clock.h"
#include "sim/run/fault.h"
#include "sim/kernel/kernel.h"
#include "sim/kernel/heap.h"
#include "dag/dag.h"
#include "loop/core/loop.h"
#include "runtime/runtime.h"
#include "sim/kernel/signal.h"
#include "sim/run/rng.h"
#include "sim/run/schedule.h"
#include "sim/run/sim.h"
#include "sim/kernel/dgram.h"
#include "sim/kernel/socket.h"
#include "sim/kernel/stack.h"
#include "sim/run/trace.h"
#include "threadlet/threadlet.h"

#define STEPS_MAX UINT64_C(5000000)

static struct {
	const struct sim_scenario *scenario; /* NULL outside of a run */
	uint64_t seed;
	struct sim_result *result;
	bool inside; /* simulated threads exist */
} run;

const struct sim_scenario *
sim_current(uint64_t *seed)
{
	*seed = run.seed;
	return run.scenario;
}

uint64_t
sim_random(void)
{
	return sim_draw(SIM_DRAW_SCENARIO);
}

uint64_t
sim_random_below(uint64_t n)
{
	return sim_below(SIM_DRAW_SCENARIO, n);
}

uint64_t
sim_time(void)
{
	return sim_clock.now_ns;
}

/* --- failing ---------------------------------------------------------- */

/* The kind of a failure: a hash of its format, or for a check of its text, which has the place. */
static uint64_t
kind_of(const char *format, const char *text)
{
	uint64_t kind = 1;

	if (strncmp(format, "%s:%d: %s", 9) == 0)
		format = text;
	for (; *format; format++)
		kind = sim_mix(kind, (unsigned char)*format);
	return kind ? kind : 1;
}

static __attribute__((format(printf, 1, 0))) void
note(const char *format, va_list args)
{
	struct sim_result *result = run.result;

	if (result->failed)
		return;
	result->failed = true;
	(void)vsnprintf(result->text, sizeof(result->text), format, args);
	result->kind = kind_of(format, result->text);
}

void
sim_fail(const char *format, ...)
{
	va_list args;

	assert(run.inside);
	va_start(args, format);
	note(format, args);
	va_end(args);
	sim_sched_leave();
}

static __attribute__((format(printf, 1, 2))) void
note_left(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(format, args);
	va_end(args);
}

/* --- the run ---------------------------------------------------------- */

static uint64_t
on_atomic(const struct weft__atomic_call *call)
{
	if (run.inside)
		sim_point(1);
	return weft__atomic_do(call);
}

static void
make_world(const struct sim_opts *opts)
{
	sim_rng_reset(run.seed);
	sim_trace_reset(opts->print_trace);
	sim_clock_reset();
	sim_sched_reset(opts->steps_max ? opts->steps_max : STEPS_MAX);
	sim_fault_reset(opts->masked_faults | run.scenario->masked_faults, opts);
	sim_memory_reset();
	sim_stack_reset();
	sim_kernel_reset();
	sim_signals_reset();
	weft__signals_forked(); /* drop what a failed run has left */
	sim_pipe_reset(opts->calm);
	sim_epoll_reset();
	sim_socket_reset();
	sim_dgram_reset();
	sim_net_reset(opts->calm);
}

static void
look_for_leaks(void)
{
	char text[SIM_TEXT_BYTES / 2];
	size_t blocks;
	int count;

	sim_sched_dump(text, sizeof(text));
	count = sim_sched_fini();
	if (count > 0)
		note_left("leaves threads: %d\n%s", count, text);
	count = sim_kernel_leaks(text, sizeof(text));
	if (count > 0)
		note_left("leaves descriptors: %d\n%s", count, text);
	if (sim_memory_spoiled())
		note_left(SIM_SPOILED_TEXT);
	blocks = sim_memory_leaks(text, sizeof(text));
	if (blocks > 0)
		note_left("leaves memory: %zu blocks, %zu bytes\n%s", blocks, sim_count_bytes(),
		          text);
	if (sim_stack_count() > 0)
		note_left("leaves stacks: %zu mappings", sim_stack_count());
}

static void
fill_result(struct sim_result *out)
{
	out->faults = sim_fault_count();
	out->steps = sim_steps();
	out->calls = sim_trace_calls();
	out->virtual_ns = sim_clock.now_ns - sim_clock.start_ns;
	out->hash = sim_mix(sim_mix(sim_trace_hash(), out->steps), out->kind);
}

void
sim_run(const struct sim_scenario *scenario, uint64_t seed, const struct sim_opts *opts,
        struct sim_result *out)
{
	static const struct sim_opts defaults;
	const struct weft__sys *sys_before = weft__sys;
	weft__atomic_fn hook_before = weft__atomic_hook;
	struct weft__thread *thread_before = weft__thread_ptr;

	assert(!run.scenario && scenario->run);
	*out = (struct sim_result){ .failed = false };
	run.scenario = scenario;
	run.seed = seed;
	run.result = out;
	make_world(opts ? opts : &defaults);
	weft__sys = &sim_sys;
	weft__atomic_hook = on_atomic;
	weft__thread_ptr = NULL;

	run.inside = true;
	sim_sched_run(scenario->run, scenario->arg);
	run.inside = false;

	look_for_leaks();
	fill_result(out);
	weft__threadlets_forked(); /* a failed run leaves threadlets, */
	weft__registry_forget();   /* loops, and locks that are held */
	weft__runtimes_forked();
	weft__dags_forked();
	sim_memory_reset();
	sim_stack_reset();
	weft__sys = sys_before;
	weft__atomic_hook = hook_before;
	weft__thread_ptr = thread_before;
	run.scenario = NULL;
}
