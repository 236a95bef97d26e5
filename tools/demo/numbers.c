/* numbers.c - the demo's statistics: counters, calls in flight, latencies of the last second. */
#include "service.h"

/* Two loops that write `calls_most` at once may lose the larger number, which does no harm. */
void
side_call_begins(struct side *side)
{
	uint64_t now = __atomic_add_fetch(&side->calls, 1, __ATOMIC_RELAXED);

	if (now > get(&side->calls_most))
		__atomic_store_n(&side->calls_most, now, __ATOMIC_RELAXED);
}

uint64_t
side_calls(struct side *side)
{
	return __atomic_exchange_n(&side->calls_most, get(&side->calls), __ATOMIC_RELAXED);
}

void
side_record(struct side *side, uint64_t latency_ns)
{
	struct latency latency = { weft_now(), (uint32_t)(latency_ns / WEFT_US) };

	(void)pthread_mutex_lock(&side->lock);
	side->ring[side->recorded++ % LATENCIES] = latency;
	(void)pthread_mutex_unlock(&side->lock);
}

static int
compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

struct quantiles
side_quantiles(struct side *side)
{
	uint32_t *all = malloc(LATENCIES * sizeof(*all)), count = 0;
	uint64_t now = weft_now();
	struct quantiles q;

	if (!all)
		return (struct quantiles){ 0 };
	(void)pthread_mutex_lock(&side->lock);
	for (; count < LATENCIES && count < side->recorded; count++) {
		struct latency one = side->ring[(side->recorded - 1 - count) % LATENCIES];

		if (one.at_ns + WEFT_S < now)
			break;
		all[count] = one.us;
	}
	(void)pthread_mutex_unlock(&side->lock);
	qsort(all, count, sizeof(*all), compare);
	q = count ? (struct quantiles){ count, all[count / 2], all[count - 1 - count / 100] }
	          : (struct quantiles){ 0 };
	free(all);
	return q;
}
