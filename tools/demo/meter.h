/* meter.h - the demo's statistics: outcomes, and latencies of the last second.
 *
 *   1. Every request to /feed ends in exactly one outcome, counted when its reply is passed to
 *      the connection.
 *   2. A latency is recorded once for each request that was answered with a feed: by the
 *      built-in load for its own requests, and by the service for all others.
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
#define METER_SLOTS   5   /* quarters of a second: four complete ones, and the current one */
#define METER_SLOT_NS (250 * UINT64_C(1000000))

struct meter_slot {
	uint64_t number; /* index of the quarter second on the clock */
	uint64_t sum, max;
	uint32_t buckets[METER_BUCKETS];
};

struct meter {
	uint64_t outcomes[OUTCOMES]; /* atomic, of /feed */
	uint64_t redis_errors;       /* atomic: failed calls */
	pthread_mutex_t   lock;
	struct meter_slot slots[SIDES][METER_SLOTS]; /* under the lock */
};

void meter_init(struct meter *meter);
void meter_record(struct meter *meter, enum side side, uint64_t latency_ns);

/* The latencies of the last second; the count is the rate. */
void meter_read(struct meter *meter, enum side side, struct quantiles *out);

/* The number of concurrent operations.  The value shown is the maximum of the last quarter
 * second: calls come in bursts, which occasional sampling would miss. */
struct gauge {
	uint64_t now, most, shown; /* atomic */
};

void gauge_add(struct gauge *gauge);
void gauge_sub(struct gauge *gauge);
void gauge_turn(struct gauge *gauge); /* a quarter of a second has passed */

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
