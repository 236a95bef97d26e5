/* runtime.c - several loops, and the placement of threadlets on them.
 *
 *   1. A runtime is listed from its start until it is freed.  The first listed one that is not
 *      stopping receives the threadlets that plain threads start.
 *   2. Its loops are not freed while the list's lock is held, so a loop chosen from the list
 *      can be posted to before the lock is released.
 *   3. The dumper works until all loops have stopped: a dump is most useful if they do not stop.
 */
#include <stdio.h>
#include <weft/runtime.h>
#include "runtime/late.h"
#include "runtime/runtime.h"
#include "threadlet/threadlet.h"
#include "work/pool.h"

#define LOOPS_MAX    1024u
#define BLOCKING_MAX 64u

static struct {
	struct weft__lock lock;
	weft_runtime *first;
} list;

void
weft__runtimes_forked(void)
{
	list.lock = (struct weft__lock){ 0 };
	list.first = NULL;
}

static void
lock_list(void)
{
	static weft__a32 registered;

	/* If this fails, only forked children are at risk, and the next call tries again. */
	(void)weft__fork_handler(&registered, weft__runtimes_forked);
	weft__lock_take(&list.lock);
}

/* --- placement ---------------------------------------------------------- */

static uint64_t
load_of(weft_loop *loop)
{
	const struct weft__sched *sched = weft__sched_at(loop);

	return sched ? weft__loop_threadlets(loop) + weft__load(&sched->starting, WEFT__RELAXED)
	             : 0;
}

/* The search starts at another loop each time, so that loops with the same load take turns. */
static weft_loop *
least_loaded_of(weft_runtime *runtime)
{
	uint32_t at = weft__add(&runtime->turn, 1, WEFT__RELAXED);
	weft_loop *best = NULL;
	uint64_t least = 0;

	for (uint32_t i = 0; i < runtime->count; i++) {
		weft_loop *loop = runtime->loops[(at + i) % runtime->count];
		uint64_t load = load_of(loop);

		if (best && load >= least)
			continue;
		best = loop;
		least = load;
	}
	return best;
}

static weft_threadlet
go_listed(const struct weft__start *how)
{
	weft_runtime *runtime;
	weft_threadlet id;

	lock_list(); /* invariant 2 */
	for (runtime = list.first; runtime; runtime = runtime->next)
		if (!weft__load(&runtime->stopping, WEFT__RELAXED))
			break;
	id = runtime ? weft__go_on(least_loaded_of(runtime), how)
	             : weft__misuse(
			     WEFT_EINVAL,
			     "weft_go: no loop runs on this thread, and no runtime is running");
	weft__lock_give(&list.lock);
	return id;
}

static weft_loop *
least_loaded(const weft_loop *loop)
{
	return least_loaded_of(weft__runtime_of(loop));
}

static const struct weft__runtime_ops runtime_ops = {
	.begin_quiet = weft__runtime_begin_quiet,
	.end_quiet = weft__runtime_end_quiet,
	.has_outside_wakers = weft__runtime_has_outside_wakers,
	.least_loaded = least_loaded,
};

/* --- creating and freeing ----------------------------------------------- */

static void
free_loops(weft_runtime *runtime)
{
	for (uint32_t i = 0; i < runtime->count; i++) {
		weft_loop *loop = runtime->loops[i];

		if (loop)
			weft__loop_detach(loop, WEFT__PART_RUNTIME);
		(void)weft_loop_free(loop);
	}
	weft__dumper_free(&runtime->dumper);
	(void)weft_pool_free(runtime->cpu);
	(void)weft_pool_free(runtime->blocking);
	weft__sys->release(runtime);
}

/* The CPUs to pin loops to: those of this thread's affinity that are also in `text`, if it is
 * given.  Returns their number, or an error. */
static int
cpus_to_pin(struct weft__cpus *out, const char *text)
{
	struct weft__cpus requested = { { 0 } };
	int rc = weft__sys->get_cpus(out), count = 0;

	if (rc < 0)
		return weft__fail(rc, "weft_runtime_new: this system cannot bind threads to CPUs");
	if (text && !weft__cpus_read(&requested, text))
		return weft__fail(WEFT_EINVAL,
		                  "weft_runtime_new: cpus must be a list such as \"0-3,6\"");
	for (int i = 0; i < WEFT__CPUS_MAX / 64; i++) {
		out->words[i] &= text ? requested.words[i] : UINT64_MAX;
		for (uint64_t left = out->words[i]; left; left &= left - 1)
			count++;
	}
	return count > 0 ? count
	                 : weft__fail(WEFT_EINVAL, "weft_runtime_new: this process may use "
	                                           "none of the cpus");
}

/* The number of the n-th CPU in a set, counted from 0; the set must have more than n. */
static unsigned
cpu_at(const struct weft__cpus *cpus, uint32_t n)
{
	unsigned cpu = 0;

	while (!(cpus->words[cpu / 64] >> cpu % 64 & 1) || n-- > 0)
		cpu++;
	return cpu;
}

static bool
make_loops(weft_runtime *runtime, const weft_runtime_opts *given)
{
	weft_loop_opts opts = given->loop;
	struct weft__cpus cpus;
	int pins = given->pin ? cpus_to_pin(&cpus, opts.cpus) : 0;
	char name[24], cpu[8]; /* a loop keeps 15 bytes of its name */

	for (uint32_t i = 0; pins >= 0 && i < runtime->count; i++) {
		(void)snprintf(name, sizeof(name), "%.9s-%u",
		               given->loop.name ? given->loop.name : "weft", i);
		opts.name = name;
		if (pins > 0) {
			(void)snprintf(cpu, sizeof(cpu), "%u", cpu_at(&cpus, i % (uint32_t)pins));
			opts.cpus = cpu;
		}
		runtime->loops[i] = weft_loop_new(&opts);
		if (!runtime->loops[i])
			return false;
		(void)weft__loop_attach(runtime->loops[i], WEFT__PART_RUNTIME, &runtime->part);
		if (weft__loop_set_pools(runtime->loops[i], runtime->cpu, runtime->blocking) < 0)
			return false;
	}
	return pins >= 0;
}

static bool
make_pools(weft_runtime *runtime, const weft_runtime_opts *opts)
{
	bool no_spin = opts->loop.flags & WEFT_LOOP_NO_SPIN;

	runtime->cpu = weft_pool_new(&(weft_pool_opts){ .name = "cpu", .no_spin = no_spin });
	runtime->blocking = weft_pool_new(&(weft_pool_opts){
		.name = "blocking", .threads_max = BLOCKING_MAX, .no_spin = no_spin });
	return runtime->cpu && runtime->blocking;
}

static uint32_t
loops_wanted(const weft_runtime_opts *opts)
{
	int cpus = weft__sys->cpus();

	if (opts->loops)
		return opts->loops;
	return cpus < 1 ? 1 : (uint32_t)cpus;
}

weft_runtime *
weft_runtime_new(const weft_runtime_opts *opts)
{
	static const weft_runtime_opts defaults;
	weft_runtime *runtime;
	uint32_t count;

	opts = opts ? opts : &defaults;
	count = loops_wanted(opts);
	if (count > LOOPS_MAX) {
		(void)weft__fail(WEFT_EINVAL, "weft_runtime_new: more than 1,024 loops");
		return NULL;
	}
	runtime = weft__alloc_zero(sizeof(*runtime) + count * sizeof(runtime->loops[0]));
	if (!runtime) {
		(void)weft__fail(WEFT_ENOMEM, "weft_runtime_new: out of memory");
		return NULL;
	}
	runtime->part.ops = &runtime_ops.part;
	runtime->count = count;
	if (weft__dumper_make(&runtime->dumper, opts->dump_signal) == 0 && make_pools(runtime, opts)
	    && make_loops(runtime, opts))
		return runtime;
	free_loops(runtime);
	return NULL;
}

static void
enlist(weft_runtime *runtime)
{
	weft_runtime **end = &list.first;

	lock_list();
	while (*end)
		end = &(*end)->next;
	*end = runtime;
	weft__store(&weft__go_anywhere, (uintptr_t)go_listed, WEFT__RELEASE);
	weft__lock_give(&list.lock);
}

static void
runtime_unlist(weft_runtime *runtime)
{
	weft_runtime **link = &list.first;

	lock_list();
	while (*link && *link != runtime)
		link = &(*link)->next;
	if (*link)
		*link = runtime->next;
	weft__lock_give(&list.lock);
}

int
weft_runtime_start(weft_runtime *runtime)
{
	int rc;

	if (!runtime)
		return weft__misuse(WEFT_EINVAL, "weft_runtime_start: runtime is NULL");
	if (runtime->started || weft__load(&runtime->stopping, WEFT__RELAXED))
		return weft__fail(WEFT_EALREADY,
		                  "weft_runtime_start: the runtime was already started or stopped");
	runtime->started = true;
	rc = weft__dumper_start(&runtime->dumper);
	for (uint32_t i = 0; i < runtime->count && rc == 0; i++)
		rc = weft_loop_start(runtime->loops[i]);
	if (rc == 0)
		enlist(runtime);
	else
		weft_runtime_shutdown(runtime);
	return rc;
}

void
weft_runtime_shutdown(weft_runtime *runtime)
{
	if (!runtime)
		return;
	weft__store(&runtime->stopping, 1, WEFT__RELAXED);
	for (uint32_t i = 0; i < runtime->count; i++)
		weft_loop_shutdown(runtime->loops[i]);
}

static void
report_pools(weft_runtime *runtime)
{
	weft__pool_report_late(runtime->cpu);
	weft__pool_report_late(runtime->blocking);
}

void
weft__runtime_report_late(weft_runtime *runtime)
{
	for (uint32_t i = 0; i < runtime->count; i++)
		if (weft_loop_state(runtime->loops[i]) != WEFT_STOPPED)
			weft__loop_report_late(runtime->loops[i]);
	report_pools(runtime);
}

int
weft_runtime_wait_stopped(weft_runtime *runtime, uint64_t deadline_ns)
{
	int rc = 0;

	if (!runtime)
		return weft__misuse(WEFT_EINVAL, "weft_runtime_wait_stopped: runtime is NULL");
	for (uint32_t i = 0; i < runtime->count; i++) {
		int one = weft_loop_wait_stopped(runtime->loops[i], deadline_ns);

		rc = one < 0 ? one : rc;
	}
	if (rc == WEFT_ETIMEDOUT && deadline_ns != WEFT_NOWAIT)
		report_pools(runtime);
	return rc < 0 ? rc : weft__dumper_stop(&runtime->dumper, deadline_ns); /* invariant 3 */
}

int
weft_runtime_free(weft_runtime *runtime)
{
	if (!runtime)
		return 0;
	for (uint32_t i = 0; i < runtime->count; i++) {
		weft_state state = weft_loop_state(runtime->loops[i]);

		if (state != WEFT_STOPPED && (state != WEFT_IDLE || runtime->started))
			return weft__fail(
				WEFT_EBUSY,
				"weft_runtime_free: the runtime still runs; stop it and wait "
				"first");
	}
	if (weft__dumper_stop(&runtime->dumper, WEFT_NEVER) < 0)
		return weft__fail(WEFT_EBUSY,
		                  "weft_runtime_free: call weft_runtime_wait_stopped first");
	runtime_unlist(runtime);
	free_loops(runtime);
	return 0;
}

weft_runtime *
weft_runtime_current(void)
{
	const weft_loop *loop = weft__thread_self()->loop;

	return loop ? weft__runtime_of(loop) : NULL;
}

weft_loop *
weft_runtime_loop(weft_runtime *runtime, uint32_t index)
{
	return runtime && index < runtime->count ? runtime->loops[index] : NULL;
}
