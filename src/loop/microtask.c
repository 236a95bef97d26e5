/* microtask.c - ticks and microtasks: what runs between two callbacks.
 *
 * A checkpoint runs all ticks, then all microtasks, and repeats until both are empty; then it
 * calls the hooks that have jobs of their own, and starts over if any job ran.  It does not nest:
 * a checkpoint inside one of its own calls would run what the outer one is about to run.  It is
 * exhaustive, like that of every JavaScript engine; a drain that does not end is reported once.
 */
#include <weft/schedule.h>
#include "base/report.h"
#include "loop/loop.h"

#define FLOOD 100000u

static void
report_flood(weft_loop *loop)
{
	weft__report(&(weft_report){
		.kind = WEFT_REPORT_MICROTASK_FLOOD,
		.level = 1,
		.loop = loop,
		.name = loop->name,
		.text = "a checkpoint has run 100,000 microtasks and has not ended",
	});
}

/* Count `jobs` more.  A drain is reported once, as it reaches FLOOD. */
static void
microtask_add(weft_loop *loop, uint64_t *count, uint64_t jobs)
{
	if (*count < FLOOD && *count + jobs >= FLOOD)
		report_flood(loop);
	*count += jobs;
}

static void
run_ring(weft_loop *loop, struct weft__ring *ring, uint64_t *count)
{
	while (ring->count > 0) {
		struct weft__call call = weft__ring_pop(ring);

		microtask_add(loop, count, 1);
		call.fn(call.arg);
	}
}

void
weft__checkpoint_slow(weft_loop *loop)
{
	uint64_t count = 0, begin_ns = 0, jobs;

	if (loop->in_checkpoint)
		return;
	loop->in_checkpoint = true;
	if (loop->timed)
		begin_ns = weft__meter_drain(loop, loop->ticks.count + loop->microtasks.count);
	do {
		while (loop->ticks.count | loop->microtasks.count) {
			run_ring(loop, &loop->ticks, &count);
			run_ring(loop, &loop->microtasks, &count);
		}
		jobs = loop->hooks.checkpoints ? weft__hooks_checkpoint(loop) : 0;
		if (!jobs && loop->promises_due) {
			loop->promises_due = false;
			jobs = weft__loop_part(loop, WEFT__PART_PROMISES)->ops->due(loop);
		}
		microtask_add(loop, &count, jobs);
	} while (jobs | loop->ticks.count | loop->microtasks.count | loop->promises_due);
	loop->in_checkpoint = false;
	weft__count(&loop->counts.calls[WEFT_PHASE_MICROTASKS], count);
	if (begin_ns)
		weft__meter_drained(loop, begin_ns);
}

static int
queue(weft_loop *loop, struct weft__ring *ring, weft_fn fn, void *arg)
{
	if (!fn)
		return weft__misuse(WEFT_EINVAL, "microtask: fn is NULL");
	if (weft__ring_push(ring, fn, arg) < 0)
		return weft__fail(WEFT_ENOMEM, "microtask: out of memory");
	weft__loop_changed(loop);
	return 0;
}

int
weft_schedule_microtask(weft_loop *loop, weft_fn fn, void *arg)
{
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_schedule_microtask");
	return rc < 0 ? rc : queue(loop, &loop->microtasks, fn, arg);
}

int
weft_schedule_tick(weft_loop *loop, weft_fn fn, void *arg)
{
	int rc;

	loop = weft__loop_or_current(loop);
	rc = weft__loop_check(loop, "weft_schedule_tick");
	return rc < 0 ? rc : queue(loop, &loop->ticks, fn, arg);
}
