/* span.h - wall time per event, for events of nanoseconds to milliseconds.
 *
 * Events are counted for a fixed time, after a warm-up, instead of timing a fixed number of
 * events.  The clock is read once per SPAN_EVENTS events.
 */
#ifndef WEFT_BENCH_SPAN_H
#define WEFT_BENCH_SPAN_H

#include "bench.h"

#define SPAN_SETTLE  (100 * BENCH_MS)
#define SPAN_MEASURE (500 * BENCH_MS)
#define SPAN_EVENTS    64

struct span {
	uint64_t count, begin_count; /* begin_count is 0 during the warm-up */
	uint64_t begin, end;         /* of the measured time */
};

static inline void
span_start(struct span *s)
{
	memset(s, 0, sizeof(*s));
	s->begin = bench_wall_ns();
}

/* Count an event.  Returns whether it was the last. */
static inline bool
span_count(struct span *s)
{
	uint64_t now;

	if (++s->count % SPAN_EVENTS != 0)
		return false;
	now = bench_wall_ns();
	if (s->begin_count) {
		s->end = now;
		return now - s->begin >= SPAN_MEASURE;
	}
	if (now - s->begin >= SPAN_SETTLE) {
		s->begin = now;
		s->begin_count = s->count;
	}
	return false;
}

static inline double
span_each_ns(const struct span *s)
{
	return (double)(s->end - s->begin)
	       / (double)(s->count - s->begin_count);
}

#endif
