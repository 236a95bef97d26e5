/* clock.c - the virtual clock and its queue of events.
 *
 * The clock advances in three ways: a little with each step and call, by an injected jump, and
 * to the next event when no thread can run.  Events wait in a binary heap ordered by (time,
 * order).
 *
 *   1. No event runs before its time, and none runs twice.
 *   2. An event whose version is out of date does not run and does not advance the clock: a
 *      timeout that was not needed has no effect.
 *   3. next_ns is the time of the heap's first event, so that checking for due events costs one
 *      comparison.
 *
 * The clock is monotonic: it never goes back.
 */
#include <assert.h>
#include <stdlib.h>
#include "sim/kernel/clock.h"
#include "sim/run/rng.h"

struct sim_clock sim_clock;

static struct {
	struct sim_event *heap;
	size_t count;
	size_t room;
	uint64_t order;
} queue;

/* Initial times: shortly after boot, and shortly before counters of various widths overflow. */
static uint64_t
draw_start(void)
{
	static const uint64_t near[] = {
		UINT64_C(1) << 32, UINT64_C(1) << 40, UINT64_C(1) << 42,
		UINT64_C(1) << 48, UINT64_C(1) << 53,
	};
	uint64_t which = sim_below(SIM_DRAW_SETUP, 10);

	if (which < 2)
		return sim_scaled(SIM_DRAW_SETUP, 1, 100000);
	if (which < 7)
		return near[which - 2] - sim_scaled(SIM_DRAW_SETUP, 0, 2000000000);
	return sim_scaled(SIM_DRAW_SETUP, 1000000000, UINT64_C(1) << 55);
}

void
sim_clock_reset(void)
{
	uint64_t start_ns = draw_start();

	queue.count = 0;
	queue.order = 0;
	sim_clock = (struct sim_clock){
		.now_ns = start_ns,
		.next_ns = UINT64_MAX,
		.start_ns = start_ns,
		.read_ns = sim_scaled(SIM_DRAW_SETUP, 1, 60),
	};
}

static bool
earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void
note_first(void)
{
	sim_clock.next_ns = queue.count ? queue.heap[0].at_ns : UINT64_MAX;
}

static void
grow(void)
{
	queue.room = queue.room ? queue.room * 2 : 256;
	queue.heap = realloc(queue.heap, queue.room * sizeof(*queue.heap));
	if (!queue.heap)
		abort();
}

void
sim_event_add(const struct sim_event *event)
{
	size_t at = queue.count++;
	struct sim_event added = *event;

	assert(event->fn && event->version);
	added.order = queue.order++;
	if (queue.count > queue.room)
		grow();
	while (at > 0 && earlier(&added, &queue.heap[(at - 1) / 2])) {
		queue.heap[at] = queue.heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	queue.heap[at] = added;
	note_first();
}

static struct sim_event
take_first(void)
{
	struct sim_event first = queue.heap[0];
	struct sim_event last = queue.heap[--queue.count];
	size_t at = 0, child;

	while ((child = at * 2 + 1) < queue.count) {
		if (child + 1 < queue.count && earlier(&queue.heap[child + 1], &queue.heap[child]))
			child++;
		if (!earlier(&queue.heap[child], &last))
			break;
		queue.heap[at] = queue.heap[child];
		at = child;
	}
	queue.heap[at] = last;
	note_first();
	return first;
}

static bool
current(const struct sim_event *event)
{
	return *event->version == event->wanted;
}

void
sim_clock_run_due(void)
{
	while (queue.count > 0 && queue.heap[0].at_ns <= sim_clock.now_ns) {
		struct sim_event event = take_first();

		if (current(&event))
			event.fn(event.object, event.arg);
	}
}

bool
sim_clock_skip(void)
{
	while (queue.count > 0 && !current(&queue.heap[0]))
		(void)take_first();
	if (queue.count == 0)
		return false;
	if (queue.heap[0].at_ns > sim_clock.now_ns)
		sim_clock.now_ns = queue.heap[0].at_ns;
	sim_clock_run_due();
	return true;
}
