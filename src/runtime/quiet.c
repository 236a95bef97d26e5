/* quiet.c - detects deadlocks across all loops of a runtime.
 *
 * A loop is quiet while it sleeps and only other threads can wake it.  The last loop of a
 * runtime to become quiet checks whether all threadlets wait for each other.
 *
 *   1. A loop becomes quiet when it begins to sleep: from then on, anything sent to it removes
 *      the sleep mark in its inbox.  It stops being quiet, under the lock, before it takes
 *      anything from the inbox.  So if under the lock all loops are quiet and all marks are
 *      set, nothing is in flight between them, and none of their threadlets runs.
 *   2. Threads other than those of the loops can post, and can use shared objects.  The check
 *      assumes that they do not post, but that they do use shared objects if such threads
 *      exist.  Pool threads are not counted: they do neither, except in work, which is an op of
 *      some loop.
 *   3. A deadlock is reported once, unless the report hook resolves it.
 */
#include "runtime/runtime.h"
#include "threadlet/threadlet.h"

#define TEXT_BYTES ((size_t)16384)

void
weft__runtime_main_waits(weft_runtime *runtime)
{
	weft__store(&runtime->quiet.main_waits, 1, WEFT__RELAXED);
}

/* Whether there are loops outside of the runtime: other threads run them. */
static bool
has_other_loops(const struct weft_runtime *runtime)
{
	bool found = false;

	weft__lock_take(&weft__registry.lock);
	for (const weft_loop *loop = weft__registry.first; loop && !found;
	     loop = weft__loop_next_listed(loop))
		found = weft__runtime_of(loop) != runtime && loop != runtime->dumper.loop;
	weft__lock_give(&weft__registry.lock);
	return found;
}

/* Invariant 2; under the lock. */
bool
weft__runtime_has_outside_wakers(const weft_loop *loop)
{
	struct weft_runtime *runtime = weft__runtime_of(loop);
	struct weft__quiet *quiet = &runtime->quiet;

	if (!weft__load(&quiet->main_waits, WEFT__RELAXED))
		return true;
	if (!quiet->outside_wakers)
		quiet->outside_wakers = weft__sys->other_threads() != 1 || has_other_loops(runtime);
	return quiet->outside_wakers;
}

/* Invariant 1; under the lock. */
static bool
all_sleep(const struct weft_runtime *runtime)
{
	if (runtime->quiet.count < runtime->count)
		return false;
	for (uint32_t i = 0; i < runtime->count; i++)
		if (!weft__loop_is_asleep(runtime->loops[i]))
			return false;
	return !weft__load(&runtime->stopping, WEFT__RELAXED);
}

/* Under the lock. */
static bool
is_stuck(const struct weft_runtime *runtime)
{
	uint64_t alive = 0;

	if (runtime->quiet.over || !all_sleep(runtime))
		return false;
	for (uint32_t i = 0; i < runtime->count; i++)
		if (!weft__sched_is_stuck(runtime->loops[i], &alive))
			return false;
	return alive > 0;
}

/* Under the lock: no threadlet runs.  NULL without memory. */
static char *
runtime_quiet_describe(const struct weft_runtime *runtime)
{
	char *buf = weft__sys->alloc(TEXT_BYTES);
	struct weft__text text;

	if (!buf)
		return NULL;
	text = weft__text_begin(buf, TEXT_BYTES);
	weft__text_add(&text, "deadlock: all threadlets wait for each other:\n");
	for (uint32_t i = 0; i < runtime->count; i++) {
		struct weft__sched *sched = weft__sched_at(runtime->loops[i]);

		if (sched)
			weft__add_sched(&text, sched);
	}
	weft__text_end_line(&text);
	return buf;
}

bool
weft__runtime_begin_quiet(weft_loop *loop)
{
	struct weft_runtime *runtime = weft__runtime_of(loop);
	struct weft__quiet *quiet = &runtime->quiet;
	bool stuck;

	weft__lock_take(&quiet->lock);
	weft__loop_set_quiet(loop, true);
	quiet->count++;
	stuck = is_stuck(runtime);
	if (stuck) {
		quiet->over = true;
		quiet->reporter = loop;
		quiet->text = runtime_quiet_describe(runtime);
	}
	weft__lock_give(&quiet->lock);
	return stuck;
}

static void
runtime_quiet_report(weft_loop *loop, char *text)
{
	weft__loop_report(&(weft_report){
		.kind = WEFT_REPORT_DEADLOCK,
		.error = WEFT_EDEADLK,
		.loop = loop,
		.name = weft__loop_name(loop),
		.text = text ? text : "deadlock: all threadlets wait for each other",
	});
	weft__sys->release(text);
}

/* If the hook has sent anything to a loop, then that loop has woken since the report, or is about
 * to wake.  Then the next deadlock is reported again: invariant 3. */
static void
end_report(weft_loop *loop, uint64_t wakes)
{
	struct weft_runtime *runtime = weft__runtime_of(loop);
	struct weft__quiet *quiet = &runtime->quiet;

	weft__lock_take(&quiet->lock);
	if (quiet->wakes != wakes || weft__loop_is_runnable(loop))
		quiet->over = false;
	for (uint32_t i = 0; i < runtime->count; i++)
		if (weft__loop_is_quiet(runtime->loops[i])
		    && !weft__loop_is_asleep(runtime->loops[i]))
			quiet->over = false;
	weft__lock_give(&quiet->lock);
}

void
weft__runtime_end_quiet(weft_loop *loop)
{
	struct weft__quiet *quiet = &weft__runtime_of(loop)->quiet;
	char *text = NULL;
	uint64_t wakes;
	bool reports;

	weft__lock_take(&quiet->lock);
	weft__loop_set_quiet(loop, false);
	quiet->count--;
	wakes = ++quiet->wakes;
	reports = quiet->reporter == loop;
	if (reports) {
		text = quiet->text;
		quiet->reporter = NULL;
	}
	weft__lock_give(&quiet->lock);
	if (!reports)
		return;
	runtime_quiet_report(loop, text);
	end_report(loop, wakes);
}
