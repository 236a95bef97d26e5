/* meter.h - what the demo counts: outcomes, latencies of the last second, the slowest run.
 *
 *   1. Every request to /feed ends in exactly one of the outcomes, counted as its reply is
 *      given to the connection.
 *   2. A latency is recorded once for each request that was answered with a feed: by the
 *      built-in load, for what it asked, and by the service for all others.
 */
#ifndef WEFT_DEMO_METER_H
#define WEFT_DEMO_METER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum side { SIDE_WEFT, SIDE_THREADS, SIDES };

enum outcome { OK, NOT_FOUND, BAD, SHED, ERRORS, OUTCOMES };

/* Microseconds. */
struct quantiles {
	uint64_t count, mean, p50, p90, p95, p99, max;
};

#define METER_BUCKETS 704 /* 64 of one microsecond, then 32 for each doubling */
#define METER_SLOTS   5   /* quarters of a second: four that are over, and the present */
#define METER_SLOT_NS (250 * UINT64_C(1000000))

struct meter_slot {
	uint64_t number; /* of the quarter of a second since the clock began */
	uint64_t sum, max;
	uint32_t buckets[METER_BUCKETS];
};

struct meter {
	uint64_t outcomes[OUTCOMES]; /* atomic, of /feed */
	uint64_t redis_errors;       /* atomic: calls that failed */
	pthread_mutex_t   lock;
	struct meter_slot slots[SIDES][METER_SLOTS]; /* under the lock */
};

void meter_init(struct meter *meter);
void meter_record(struct meter *meter, enum side side, uint64_t latency_ns);

/* What was recorded in the last second; its count is the rate. */
void meter_read(struct meter *meter, enum side side, struct quantiles *out);

/* How many of something there are at once.  What is shown is the most that there were in
 * the last quarter of a second: calls come in bursts, which a look now and then would miss. */
struct gauge {
	uint64_t now, most, shown; /* atomic */
};

void gauge_add(struct gauge *gauge);
void gauge_sub(struct gauge *gauge);
void gauge_turn(struct gauge *gauge); /* a quarter of a second is over */

static inline void
meter_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline uint64_t
meter_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
